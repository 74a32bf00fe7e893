"""Sums over persons of clipped gradients at a stated iterate, in integer units.

(a) A person's vector is M^(-1/2) times the sum over its records of derivative times features, over
    the root of their number. It is clipped by its norm as one vector, rounded to integers and
    added to those of others.
(b) It is a function of the person's own records in their order and of the question: they are read
    in one fixed order, in blocks of nobody else. Whatever they are, its integers have a norm of
    at most the limit, as one record's have. Proof: ``proofs/release_mean_of_persons.md``.
(c) In a geometry that was released, the clipped norm is that of the vector's image. Curvatures are
    sums over one record of each person, which ``drawn`` answers.
"""

import numpy as np
from libc.math cimport INFINITY, rint, sqrt
from libc.stdint cimport int64_t

from ...losses._loss cimport Loss
from ._sums cimport Question, Sums, question_of


cdef enum:
    BLOCK = 64  # records of one person that are read together

# More than the rounding of a norm, a quotient and products with it.
cdef double LONGER = 1 + 2.0**-29


cdef class PersonSums(Sums):
    """Integer sums of clipped gradients over persons.

    Parameters
    ----------
    X : float64 ndarray of shape (n_records, n_features), in C order
        As it is; records are clipped to `bounds` while they are read.
    y, weights : float64 ndarrays of shape (n_records,)
    starts : intp ndarray of shape (n_persons + 1,)
        Where the records of each person start, and where all end.
    bounds : float64 ndarray of shape (3, n_features)
        Least and largest values, and the centre.
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public; the intercept comes last.
    fit_intercept : bool
    drawn : GeometrySums, default=None
        Sums over one record of each person.
    """

    reads_short_rows = False

    cdef const double[:, ::1] _X, _bounds
    cdef const double[::1] _y, _weights
    cdef const Py_ssize_t[::1] _starts
    cdef double[::1] _factors, _one, _margins, _slopes
    cdef int64_t[::1] _integers
    cdef Loss _loss
    cdef bint _fit_intercept
    cdef Py_ssize_t _p
    # a geometry: its rows, and bounds of its singular values; and records as they are read
    cdef double[:, ::1] _transform, _tile
    cdef double _largest, _smallest
    cdef object _drawn

    def __init__(self, X, y, weights, starts, bounds, Loss loss, smoothness, bint fit_intercept,
                 drawn=None):
        self._X, self._y, self._weights, self._starts = X, y, weights, starts
        self._loss, self._fit_intercept, self._p = loss, fit_intercept, X.shape[1]
        self._bounds, self._drawn = bounds, drawn
        self._tile = np.empty((BLOCK, self._p))
        size = self._p + fit_intercept
        if smoothness.shape != (size,):
            raise ValueError(f"smoothness has shape {smoothness.shape}, expected ({size},)")
        self._factors, self._one = 1.0 / np.sqrt(smoothness, dtype=np.float64), np.empty(size)
        self._margins, self._slopes = np.empty(BLOCK), np.empty(BLOCK)
        self._integers = np.empty(size, dtype=np.int64)

    def row_sums(self, *asked):
        """See GeometrySums; of one record of each person."""
        return self._drawn.row_sums(*asked)

    def gram(self, *asked):
        """See GeometrySums; of one record of each person."""
        return self._drawn.gram(*asked)

    def times(self, double most, double units):
        """Σ over persons of the root of their number of records less 1, up to `most` less 1.

        In units of (most - 1) / units; a person adds an integer of at most `units`.

        Returns
        -------
        ndarray of shape (1,), int64
        """
        roots = np.minimum(np.sqrt(np.diff(self._starts)), most)
        return np.array([np.rint((roots - 1) * (units / (most - 1))).astype(np.int64).sum()])

    def measure(self, transform, double largest, double smallest, narrow=None):
        """Fix the geometry in which persons are clipped; see GeometrySums."""
        self._transform = np.ascontiguousarray(transform)
        self._largest, self._smallest = largest, smallest

    def gradient(self, coef, double clip, double limit):
        """Sums of gradients of persons at `coef`, clipped in the geometry; see GeometrySums.

        Returns
        -------
        ndarray of shape (n_coordinates,), int64
        """
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Question question = question_of(NULL, len(w), True, clip, limit)
        if w.shape[0] != self._integers.shape[0] or not self._smallest > 0:
            raise ValueError("gradients are of all coefficients, in a geometry that was measured")
        question.coef = &w[0]
        with nogil:
            self.integers(&question)
        return np.array(self._integers)

    cdef const int64_t *integers(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t u, j, size = self._integers.shape[0]
        if (question.limit <= 0 or question.coef == NULL or question.anchor != NULL
                or question.directions != NULL or question.rows != NULL
                or question.block != NULL or question.square_norms != NULL):
            return NULL
        for j in range(size):
            self._integers[j] = 0
        for u in range(self._starts.shape[0] - 1):
            self._add(question, self._starts[u], self._starts[u + 1])
        return &self._integers[0]

    cdef void _add(self, const Question *question, Py_ssize_t start,
                   Py_ssize_t stop) noexcept nogil:
        """Add the integers of the person who has these records."""
        cdef Py_ssize_t i = start, j, size = self._integers.shape[0]
        cdef double v, square = 0.0, norm, scale, units
        # 1. the sum of its gradients
        for j in range(size):
            self._one[j] = 0.0
        while i < stop:
            self._add_gradients(question.coef, i, min(i + BLOCK, stop))
            i += BLOCK
        # 2. in the geometry of M^(-1/2), over the root of their number; its norm
        scale = 1.0 / sqrt(<double>(stop - start))
        for j in range(size):
            v = self._one[j] * scale * self._factors[j]
            self._one[j] = v
            square += v * v
        norm = sqrt(square)
        if self._smallest > 0:  # a geometry is measured
            norm = self._image_norm(norm)
        # 3. clipped as one vector: of what overflows nothing is left
        scale = question.limit / question.clip if norm <= question.clip else question.limit / norm
        for j in range(size):
            units = rint(self._one[j] * scale)
            if units != units:
                units = 0.0
            units = units if units < question.limit else question.limit
            units = units if units > -question.limit else -question.limit
            self._integers[j] += <int64_t>units

    cdef double _image_norm(self, double length) noexcept nogil:
        """At least the norm of the vector's image, over the least singular value."""
        cdef Py_ssize_t j, k, size = self._integers.shape[0]
        cdef double entry, square = 0.0, slack
        for j in range(size):
            entry = 0.0
            for k in range(j + 1):
                entry += self._transform[j, k] * self._one[k]
            square += entry * entry
        slack = self._largest * length * size * sqrt(<double>size) * 2.0**-51
        length = (sqrt(square) + slack) / self._smallest * LONGER
        return length if length == length else INFINITY

    cdef void _add_gradients(self, const double *w, Py_ssize_t start,
                             Py_ssize_t stop) noexcept nogil:
        """Add the gradients of some records of one person."""
        cdef Py_ssize_t i, j, p = self._p
        cdef double *x
        cdef double even, odd, r
        for i in range(start, stop):
            x = &self._tile[i - start, 0]
            for j in range(p):
                r = self._X[i, j]
                r = r if r > self._bounds[0, j] else self._bounds[0, j]
                r = r if r < self._bounds[1, j] else self._bounds[1, j]
                x[j] = r - self._bounds[2, j]
            even, odd = w[p] if self._fit_intercept else 0.0, 0.0
            for j in range(p // 2):
                even += x[2 * j] * w[2 * j]
                odd += x[2 * j + 1] * w[2 * j + 1]
            if p % 2:
                even += x[p - 1] * w[p - 1]
            self._margins[i - start] = even + odd
        self._loss.derivatives(stop - start, 1, &self._margins[0], &self._y[start],
                               &self._slopes[0])
        for i in range(start, stop):
            x = &self._tile[i - start, 0]
            r = self._slopes[i - start] * self._weights[i]
            r = r if r < 1e90 else 1e90  # not a number, too
            r = r if r > -1e90 else -1e90
            for j in range(p):
                self._one[j] += r * x[j]
            if self._fit_intercept:
                self._one[p] += r
