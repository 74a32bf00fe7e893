"""A loss: a pointwise value, derivative and curvature bound; no data, no solver."""

import numpy as np


cdef class Loss:
    """A loss of the margins of a record and its target.

    A subclass gives ``value`` (Python, vectorised), ``derivative`` or ``derivatives`` (Cython, over
    a block of records) and public constants:

    Attributes
    ----------
    name : str
    curvature : float
        The largest second derivative in the margins: the papers' smoothness of a feature of unit
        root mean square.
    task : {"regression", "classification"}
        Which estimators have it.
    multi_output : bool
        Whether a record has one margin for each output, and the loss mixes them.
    zero_sum : bool
        Whether derivatives add up to zero over outputs: a softmax does not see a shift of all.
    unit : float
        By what the loss that users state was divided, beside the square of the target's unit.
    has_log_link : bool
        Whether predictions are exp(margin); the target is not scaled then, and the loss has a
        public range ``low``, ``high`` of it and a ``mean``.
    has_known_errors : bool
        Whether released numbers tell how far coefficients are from those of all records, which an
        inference and a choice among strengths rely on.
    reach : float
        By which the clips of recipes, for targets within [-1, 1], are multiplied.
    steepest : float
        No derivative is larger, so no clip needs to be.
    twin : str or None
        Whose objective it has in scikit-learn: a row of ``solvers/_scikit_learn.py``.
    """

    name = None
    curvature = None
    task = None
    multi_output = zero_sum = has_log_link = False
    has_known_errors, unit, reach, steepest, twin = True, 1.0, 1.0, np.inf, None

    @classmethod
    def of(cls, stated, target_half_width):
        """The loss that an estimator states, of a target divided by `target_half_width`.

        With a log link that stands for the public range of the target.
        """
        return cls()

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        """out[i] = d loss(margin[i], target[i]) / d margin[i] for i < n."""
        pass

    cdef void derivatives(self, Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                          const double *target, double *out) noexcept nogil:
        """out[k * n + i] = d loss of record i / d margins[k * n + i]."""
        self.derivative(n, margins, target, out)

    def second_derivative(self, derivative, target):
        """Second derivative of each record's loss in its margin, from the first one: an array.

        A few operations, the same for every record: it does not follow from where a record lies.
        """
        raise NotImplementedError

    def value(self, margin, target):
        """Loss of each record, as an array."""
        raise NotImplementedError

    def gradient(self, margin, target):
        """Derivative of each record's loss in its margins, as an array of the margins' shape."""
        cdef const double[::1] t = np.ascontiguousarray(target, dtype=np.float64)
        margins = np.ascontiguousarray(np.transpose(margin), dtype=np.float64)
        cdef const double[:, ::1] m = np.atleast_2d(margins)
        if m.shape[1] != t.shape[0]:
            raise ValueError(f"{m.shape[1]} margins but {t.shape[0]} targets")
        out = np.empty_like(margins)
        cdef double[:, ::1] o = np.atleast_2d(out)
        if t.shape[0]:
            with nogil:
                self.derivatives(t.shape[0], m.shape[0], &m[0, 0], &t[0], &o[0, 0])
        return out.T
