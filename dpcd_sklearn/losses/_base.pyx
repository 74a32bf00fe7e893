"""What a loss is: a pointwise value, derivative and curvature bound; no data, no solver."""

import numpy as np


cdef class Loss:
    """A loss of one margin and one target.

    A subclass gives ``value`` (Python, vectorised), ``derivative`` (Cython, over a block of
    records) and two public constants:

    Attributes
    ----------
    name : str
    curvature : float
        The largest second derivative in the margin: the papers' smoothness of a feature of unit
        root mean square.
    """

    name = None
    curvature = None

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        """out[i] = d loss(margin[i], target[i]) / d margin[i] for i < n."""
        pass

    def value(self, margin, target):
        """Loss of each record, as an array."""
        raise NotImplementedError

    def gradient(self, margin, target):
        """Derivative of each record's loss in its margin, as an array."""
        cdef const double[::1] m = np.ascontiguousarray(margin, dtype=np.float64)
        cdef const double[::1] t = np.ascontiguousarray(target, dtype=np.float64)
        if m.shape[0] != t.shape[0]:
            raise ValueError(f"{m.shape[0]} margins but {t.shape[0]} targets")
        out = np.empty(m.shape[0])
        cdef double[::1] o = out
        if m.shape[0]:
            self.derivative(m.shape[0], &m[0], &t[0], &o[0])
        return out
