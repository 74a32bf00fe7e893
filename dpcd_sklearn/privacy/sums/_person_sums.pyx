"""Sums over persons of clipped gradients at a stated iterate, in integer units.

(a) A person's vector is M^(-1/2) times the sum over its records of derivative times features, over
    the root of their number. It is clipped by its norm as one vector, rounded to integers and
    added to those of others.
(b) It is a function of the person's own records in their order and of the question: they are read
    in one fixed order, in blocks of nobody else. Whatever they are, its integers have a norm of
    at most the limit, as one record's have. Proof: ``proofs/release_mean_of_persons.md``.
(c) Records are read where they lie, in the order that `order` gives: no sorted copy is made. A cell
    that a sparse row does not store is zero, and changes no sum: sums are those of the same array.
(d) Of several outputs a person's vector has the coordinates of all of them, and one norm.
(e) In a geometry that was released, the clipped norm is that of the vector's image. Curvatures are
    sums over one record of each person, which ``drawn`` answers.
"""

import numpy as np
from libc.math cimport INFINITY, rint, sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memset

from ...losses._loss cimport Loss
from ._kernels cimport KERNELS, dpcd_matrix, dpcd_tile
from ._records cimport Records, dpcd_sparse
from ._sums cimport Question, Sums, question_of


cdef extern from "_sparse.h":
    void DPCD_PREFETCH(const void *address) noexcept nogil
    double dpcd_bounded(double v) noexcept nogil
    Py_ssize_t dpcd_line_start(const dpcd_sparse *m, Py_ssize_t line) noexcept nogil
    Py_ssize_t dpcd_where(const dpcd_sparse *m, Py_ssize_t at) noexcept nogil
    double dpcd_entry(const dpcd_sparse *m, Py_ssize_t at, Py_ssize_t j) noexcept nogil


cdef enum:
    BLOCK = 64  # records of one person that are read together
    AHEAD = 12  # records between the wish for one and its use

# More than the rounding of a norm, a quotient and products with it.
cdef double LONGER = 1 + 2.0**-29


cdef class PersonSums(Sums):
    """Integer sums of clipped gradients over persons.

    Parameters
    ----------
    records : Records
        Features in any order, which are clipped to bounds while they are read.
    y, weights : float64 ndarrays of shape (n_records,)
        Sorted by person.
    order : intp ndarray of shape (n_records,)
        Row numbers, sorted by person.
    starts : intp ndarray of shape (n_persons + 1,)
        Where the records of each person start in that order, and where all end.
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public, of every output; the intercept comes last.
    fit_intercept : bool
    n_outputs : int, default=1
    drawn : GeometrySums, default=None
        Sums over one record of each person.
    """

    reads_short_rows = False

    cdef Records _records
    cdef const double[::1] _y, _weights
    cdef const Py_ssize_t[::1] _order, _starts
    cdef double[::1] _factors, _one, _margins, _slopes, _totals
    cdef Loss _loss
    cdef bint _fit_intercept
    cdef Py_ssize_t _p
    # coordinates of one output that a person's vector has, ascending, and marks of those of columns
    cdef Py_ssize_t[::1] _columns
    cdef Py_ssize_t _n_columns
    cdef uint64_t[::1] _marks
    # a geometry: its rows, and bounds of its singular values; and records as they are read
    cdef double[:, ::1] _transform, _tile
    cdef double _largest, _smallest
    cdef object _drawn

    def __init__(self, Records records, y, weights, order, starts, Loss loss, smoothness,
                 bint fit_intercept, Py_ssize_t n_outputs=1, drawn=None):
        self._records, self._y, self._weights = records, y, weights
        self._order, self._starts, self._drawn = order, starts, drawn
        self._loss, self._fit_intercept, self._p = loss, fit_intercept, records.p
        cdef Py_ssize_t size = self._p + fit_intercept
        self.n_coordinates, self.n_outputs = size, n_outputs
        if smoothness.shape != (size,):
            raise ValueError(f"smoothness has shape {smoothness.shape}, expected ({size},)")
        if records.is_sparse and not records.holds(True):
            raise MemoryError
        self._tile = np.empty((BLOCK, 0 if records.is_sparse else self._p))
        self._marks = np.zeros(self._p // 8 + 1 if records.is_sparse else 0, dtype=np.uint64)
        self._columns, self._n_columns = np.arange(size), size
        self._factors = 1.0 / np.sqrt(smoothness, dtype=np.float64)
        self._one = np.zeros(n_outputs * size)
        self._margins, self._slopes = np.empty((2, n_outputs * BLOCK))
        self._totals = np.empty(n_outputs * size)

    def row_sums(self, *asked):
        """See GeometrySums; of one record of each person."""
        return self._drawn.row_sums(*asked)

    def gram(self, row_norm, units, keeps=False):
        """See GeometrySums; of one record of each person, whose rows no gradient reads."""
        return self._drawn.gram(row_norm, units)

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
        ndarray of shape (n_outputs * n_coordinates,), int64
        """
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Question question = question_of(NULL, len(w), True, clip, limit)
        if w.shape[0] != self._totals.shape[0] or not self._smallest > 0:
            raise ValueError("gradients are of all coefficients, in a geometry that was measured")
        question.coef = &w[0]
        with nogil:
            self.answer(&question)
        return np.array(self._totals, dtype=np.int64)

    cdef const double *answer(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t u
        if (question.limit <= 0 or question.coef == NULL or question.anchor != NULL
                or question.directions != NULL or question.rows != NULL
                or question.block != NULL):
            return NULL
        memset(&self._totals[0], 0, self._totals.shape[0] * sizeof(double))
        for u in range(self._starts.shape[0] - 1):
            self._add(question, self._starts[u], self._starts[u + 1])
        return &self._totals[0]

    cdef void _add(self, const Question *question, Py_ssize_t start,
                   Py_ssize_t stop) noexcept nogil:
        """Add the integers of the person who has these records."""
        cdef Py_ssize_t i = start, c, j, k, size = self._factors.shape[0]
        cdef double v, square = 0.0, norm, scale, units
        # 1. the sum of its gradients
        while i < stop:
            self._add_gradients(question.coef, i, min(i + BLOCK, stop))
            i += BLOCK
        if self._records.is_sparse:
            self._list_columns()
        # 2. in the geometry of M^(-1/2), over the root of their number; its norm
        scale = 1.0 / sqrt(<double>(stop - start))
        for k in range(self.n_outputs):
            for c in range(self._n_columns):
                j = self._columns[c]
                v = self._one[k * size + j] * scale * self._factors[j]
                self._one[k * size + j] = v
                square += v * v
        norm = sqrt(square)
        if self._smallest > 0:  # a geometry is measured
            norm = self._image_norm(norm)
        # 3. clipped as one vector: of what overflows nothing is left
        scale = question.limit / question.clip if norm <= question.clip else question.limit / norm
        for k in range(self.n_outputs):
            for c in range(self._n_columns):
                j = k * size + self._columns[c]
                units = rint(self._one[j] * scale)
                self._one[j] = 0.0
                if units != units:
                    units = 0.0
                units = units if units < question.limit else question.limit
                units = units if units > -question.limit else -question.limit
                self._totals[j] += units

    cdef double _image_norm(self, double length) noexcept nogil:
        """At least the norm of the vector's image, over the least singular value."""
        cdef Py_ssize_t i, j, k, size = self._factors.shape[0]
        cdef double entry, square = 0.0, slack
        for k in range(self.n_outputs):
            for j in range(size):
                entry = 0.0
                for i in range(j + 1):
                    entry += self._transform[j, i] * self._one[k * size + i]
                square += entry * entry
        slack = self._largest * length * size * sqrt(<double>size) * 2.0**-51
        length = (sqrt(square) + slack) / self._smallest * LONGER
        return length if length == length else INFINITY

    cdef void _list_columns(self) noexcept nogil:
        """The coordinates that sparse records of one person store, of which marks are forgotten."""
        cdef Py_ssize_t at, j
        cdef char *marks = <char *>&self._marks[0]
        self._n_columns = 0
        for at in range(self._marks.shape[0]):
            if self._marks[at] == 0:
                continue
            for j in range(8 * at, 8 * at + 8):
                if marks[j]:
                    self._columns[self._n_columns] = j
                    self._n_columns += 1
            self._marks[at] = 0
        if self._fit_intercept:
            self._columns[self._n_columns] = self._p
            self._n_columns += 1

    cdef void _add_gradients(self, const double *w, Py_ssize_t start,
                             Py_ssize_t stop) noexcept nogil:
        """Add the gradients of some records of one person."""
        cdef Py_ssize_t i, k, n = stop - start, size = self._factors.shape[0]
        cdef double r
        if not self._records.is_sparse:
            self._read(start, n)
        for i in range(n):
            for k in range(self.n_outputs):
                self._margins[k * n + i] = self._margin(start + i, i, w + k * size)
        self._loss.derivatives(n, self.n_outputs, &self._margins[0], &self._y[start],
                               &self._slopes[0])
        for i in range(n):
            for k in range(self.n_outputs):
                r = dpcd_bounded(self._slopes[k * n + i] * self._weights[start + i])
                self._add_row(start + i, i, r, &self._one[k * size])

    cdef void _read(self, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
        """Read n dense records of one person, clipped and centred, and ask for those behind."""
        cdef const dpcd_matrix *X = &self._records.X
        cdef const char *cells = <const char *>X.data
        cdef Py_ssize_t i, j, size = 4 if X.is_float else 8
        cdef dpcd_tile tile
        for i in range(start + AHEAD, min(start + n + AHEAD, self._order.shape[0])):
            for j in range(0, min(self._p * size, 512), 64):
                DPCD_PREFETCH(cells + self._order[i] * X.stride * size + j)
        KERNELS.load(X, 0, &self._order[start], n, NULL, self._p, &self._tile[0, 0], &tile)

    cdef double _margin(self, Py_ssize_t i, Py_ssize_t row, const double *w) noexcept nogil:
        """A record's margin: columns of even and of odd numbers, each in their order."""
        cdef double even = w[self._p] if self._fit_intercept else 0.0, odd = 0.0, v
        cdef Py_ssize_t j, at, p = self._p
        cdef const double *x
        cdef const dpcd_sparse *m = &self._records.rows
        if self._records.is_sparse:
            for at in range(dpcd_line_start(m, self._order[i]),
                            dpcd_line_start(m, self._order[i] + 1)):
                j = dpcd_where(m, at)
                v = w[j] * dpcd_entry(m, at, j)
                if j % 2:
                    odd += v
                else:
                    even += v
            return even + odd
        x = &self._tile[row, 0]
        for j in range(p // 2):
            even += x[2 * j] * w[2 * j]
            odd += x[2 * j + 1] * w[2 * j + 1]
        if p % 2:
            even += x[p - 1] * w[p - 1]
        return even + odd

    cdef void _add_row(self, Py_ssize_t i, Py_ssize_t row, double r, double *sums) noexcept nogil:
        """sums += r times a record's features."""
        cdef Py_ssize_t j, at
        cdef const double *x
        cdef const dpcd_sparse *m = &self._records.rows
        if self._fit_intercept:
            sums[self._p] += r
        if self._records.is_sparse:
            for at in range(dpcd_line_start(m, self._order[i]),
                            dpcd_line_start(m, self._order[i] + 1)):
                j = dpcd_where(m, at)
                (<char *>&self._marks[0])[j] = 1
                sums[j] += r * dpcd_entry(m, at, j)
            return
        x = &self._tile[row, 0]
        for j in range(self._p):
            sums[j] += r * x[j]
