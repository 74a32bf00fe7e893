"""Sums of gradients that are clipped in a geometry: a triangular matrix of integers.

(a) A record's gradient there is its derivative times the image of its row. The norm of that is
    bounded from above once, and gradients are clipped by it and summed in the coordinates that they
    are in. The sums are integers, so their image is exact too. No record's image is kept.
(b) *Rows of 16 bits.* Where the geometry is near enough to one of 16 bits, rows become whole
    numbers of 16 bits, in units of their own length: once, and it is those that are clipped and
    summed. Margins and sums are exact then, whatever their order. They are kept where memory is
    enough, a quarter of what the records take in doubles; if not, or if records are sparse, they
    are made again in each pass.
(c) *Other geometries* read the records as they are, in the fixed order of ``_gradient_sums``.
"""

import numpy as np
from libc.math cimport INFINITY, floor, sqrt
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport calloc, free

from ...losses._loss cimport Loss
from ...utils._interrupts cimport Interrupts
from ...utils._threads cimport SLAB
from ._curvature_sums cimport Bench, CurvatureSums, Room
from ._integer_rows import ROW_UNITS, limbs, longest_row, split, whole_weights
from ._kernels cimport (
    DPCD_MOST_PAIRS,
    KERNELS,
    dpcd_pairs_apart,
    dpcd_paying_threads,
    dpcd_tile,
    dpcd_tile_of,
)
from ._records cimport Records
from ._sums cimport Question, question_of

# More than the rounding of a computed norm, of up to 4,000 entries.
cdef double LONGER = 1 + 2.0**-29
# Adding it rounds to an integer; as in the kernels.
cdef double MAGIC = 6755399441055744.0
# A longer row counts as it: its derivative is cut, or next to nothing.
cdef double LONGEST = 1e150
# Rows that are read as doubles at a time: what the first cache holds; of many columns, no crumbs.
cdef Py_ssize_t SHORT_CELLS = 4096, LEAST_SHORT_ROWS = 8
# The norm of a whole row, of which so many multiples are a clip that their rounding is little; and
# cells of a tile of them, which the second cache holds.
cdef double LONGEST_ROW = 2.0**14 - 1
# So many units a record has at most: sums of 2 DPCD_MOST_PAIRS of them have 32 bits.
cdef double MOST_UNITS = 2.0**26
cdef Py_ssize_t WHOLE_CELLS = 2**16
# So many rows, of 2^40 units each at most, are added up exactly in doubles.
cdef Py_ssize_t EXACT_ROWS = 4096
cdef enum:
    COARSE = 24
# Bytes of rows that are kept; public, as the number of records is.
cdef Py_ssize_t MOST_KEPT = 2**30


cdef bint _measure_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    return (<GeometrySums>of)._measure_some(i, stop)


cdef class GeometrySums(CurvatureSums):
    """Sums of gradients in a geometry, and the sums that such a geometry is made of.

    Parameters
    ----------
    records, loss, smoothness, fit_intercept, n_outputs : as of CurvatureSums
    """

    cdef double[::1] _square_norms
    cdef double _smallest
    cdef bint _is_measured
    # rows of 16 bits: as they are kept; the geometry, and units of its rows; those of a row and of
    # its columns; of every record, its length over its units, and how often it may count
    cdef Py_ssize_t _apart
    cdef int16_t[:, ::1] _short
    cdef int32_t[:, ::1] _pairs
    cdef double[::1] _of_rows, _of_columns, _squares, _lengths, _rooms
    cdef double _row_units, _slack
    # an iterate: integers, their unit, and units of a gradient in its clip
    cdef double[:, ::1] _whole
    cdef double _unit, _per_clip

    def measure(self, transform, double largest, double smallest, narrow=None):
        """Bound the norms of all rows' images, for gradients that are clipped by them.

        Parameters
        ----------
        transform : ndarray of shape (n_coordinates, n_coordinates), lower triangular
            Integers up to `most_of_transform`, in Fortran order.
        largest, smallest : float
            Bounds of its singular values.
        narrow : tuple, default=None
            The same geometry in 16 bits, as `short_transform` gives it, or None.
        """
        self._smallest = smallest
        if narrow is None:
            self._apart = 0
            self._measure_images(transform, largest)
        else:
            self._pairs, self._of_rows, of_columns, self._row_units, self._slack = narrow
            self._of_columns = of_columns * np.asarray(self._per_unit)
            self._squares = np.square(self._of_columns)
            self._apart = (self.n_coordinates + 7) // 8 * 8
            self._measure_short()
        self._is_measured = True

    cdef int _measure_images(self, transform, double largest) except -1:
        """Bounds of images, from those of rows in doubles."""
        cdef Py_ssize_t i, i0 = 0, m, d = self.n_coordinates
        cdef double[::1] lengths = np.empty(self._tile_rows)
        cdef double slack = 0.5 * largest * sqrt(<double>d), norm
        cdef Interrupts interrupts = Interrupts()
        cdef Room room = Room(self)
        self._square_norms = np.empty(self.n)
        while i0 < self.n:
            interrupts.look()
            m = self._read(&room.bench, i0, self.n, &self._per_square[0])
            self._image(room, m, transform, lengths)
            for i in range(m):
                norm = (sqrt(room.bench.norms[i]) + slack) * lengths[i] * LONGER
                norm /= ROW_UNITS * self._root_curvature * self._smallest
                norm = norm * norm
                # an undefined one, of a row that overflows, is infinite: it is multiplied by zero
                self._square_norms[i0 + i] = norm if norm == norm else INFINITY
            i0 += m
        return 0

    cdef int _measure_short(self) except -1:
        """Bounds of images of rows of 16 bits, which are kept where memory is enough."""
        cdef bint kept = not self.records.is_sparse and 2 * self.n * self._apart <= MOST_KEPT
        try:
            self._short = np.empty((self.n if kept else 0, self._apart), dtype=np.int16)
        except MemoryError:  # whether there is room is up to the machine, and shows in no sum
            self._short = np.empty((0, self._apart), dtype=np.int16)
        self._lengths, self._rooms = np.empty(self.n), np.empty(self.n)
        return self._over_tiles(_measure_rows, 0)

    cdef bint _measure_some(self, Py_ssize_t i0, Py_ssize_t stop) noexcept nogil:
        cdef Py_ssize_t i, m, in_pairs = dpcd_pairs_apart(self.n_coordinates)
        cdef Bench bench = self._bench(in_pairs, 4 * in_pairs)
        while bench.norms != NULL and i0 < stop:
            m = self._read(&bench, i0, stop, &self._squares[0])
            self._rows_of_units(&bench, m, self._row_units, &self._of_columns[0], bench.parts)
            if self._pairs.shape[0]:
                KERNELS.image_norms(bench.rows, m, self.n_coordinates, in_pairs,
                                    &self._pairs[0, 0], &self._of_rows[0], bench.room, bench.norms)
            for i in range(m):
                self._rooms[i0 + i] = self._room(sqrt(bench.norms[i]) if self._pairs.shape[0]
                                                 else 0.0)
                self._lengths[i0 + i] = bench.parts[i] / self._row_units
            if self._short.shape[0]:
                KERNELS.narrow(bench.rows, m, in_pairs, self._apart, &self._short[i0, 0])
            i0 += m
        free(bench.norms)
        return bench.norms != NULL

    cdef double _room(self, double image) noexcept nogil:
        """The largest multiple of a row, over that of one whose image is as short as can be."""
        cdef double longest = (image + self._slack) * LONGER
        return self._smallest / longest if longest > self._smallest else 1.0

    def gradient(self, coef, double clip, double limit):
        """Sums of gradients at `coef` in units of clip / limit, in the geometry of M^(-1/2).

        Clipped such that the image under the transform, over its smallest singular value, is no
        longer than `clip`, in the Frobenius norm over all outputs. Plain sums with a limit of 0,
        which need no geometry.

        Returns
        -------
        ndarray of shape (n_outputs * n_coordinates,), int64 (float64 for plain sums, in the units
        of X); of rows of 16 bits (2, n_outputs * n_coordinates), to be `joined`
        """
        cdef Py_ssize_t size = self.n_outputs * self.n_coordinates
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Question question = question_of(NULL, size, True, clip, limit)
        cdef const int64_t *integers
        cdef const double *plain
        if w.shape[0] != size:
            raise ValueError(f"expected {size} coefficients, got {w.shape[0]}")
        question.coef = &w[0]
        if limit == 0:
            with nogil:
                plain = self.plain(&question)
            if plain == NULL:
                raise MemoryError
            return np.array(<const double[:size]>plain)
        if not self._is_measured:
            raise RuntimeError("gradients are clipped in a geometry: measure the rows first")
        if self._apart:
            return self._short_gradient(w, &question)
        question.square_norms = &self._square_norms[0]
        with nogil:
            integers = self.integers(&question)
        if integers == NULL:
            raise MemoryError
        return np.array(<const int64_t[:size]>integers)

    # ---- rows of 16 bits ----

    cdef object _short_gradient(self, const double[::1] coef, const Question *question):
        """The integers of `gradient`: a record adds whole multiples of its whole row."""
        cdef Py_ssize_t start = 0, stop, n_threads, size = 2 * self.n_outputs * self._apart
        cdef Py_ssize_t at_once = max(1, SLAB // self._apart)
        cdef bint enough = True
        cdef Interrupts interrupts = Interrupts()
        columns = np.asarray(self._of_columns)
        self._whole, self._unit = whole_weights(
            np.reshape(coef, (self.n_outputs, -1)), columns, self._apart)
        self._per_clip = question.limit / (question.clip * self._root_curvature)
        if not self._has_room(size, True, False):
            raise MemoryError
        for k in range(size):
            self._totals[k] = 0.0
        n_threads = dpcd_paying_threads(self.records.n_threads, self.n * self._apart)
        while start < self.n and enough:
            interrupts.look()
            stop = min(start + n_threads * at_once, self.n)
            with nogil:
                enough = self._add_in_threads(question, start, stop, n_threads, size)
            start = stop
        if not enough:
            raise MemoryError
        coarse, fine = np.asarray(self._totals)[:size].reshape(2, self.n_outputs, -1)
        # in units of the columns, of which the largest are one
        units = np.asarray(self._per_unit) / columns
        totals = [
            ((int(much) << COARSE) + int(rest)) * int(unit)
            for k in range(self.n_outputs)
            for much, rest, unit in zip(coarse[k], fine[k], units)
        ]
        return np.array([split(total) for total in totals], dtype=np.int64).T

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        if self._apart == 0 or question.limit == 0:
            return CurvatureSums._add_rows(self, question, i, stop, sums)
        return self._add_short(question, i, stop, sums)

    cdef bint _add_short(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                         double *sums) noexcept nogil:
        """sums += contributions of rows i, ..., stop - 1, which are kept or made again.

        Sums of some are exact in doubles, those of all in two: multiples of 2^COARSE, and the rest.
        """
        cdef Py_ssize_t K = self.n_outputs, apart = self._apart, j, k, n_rows
        cdef Py_ssize_t at_once = max(LEAST_SHORT_ROWS, SHORT_CELLS // apart // 8 * 8)
        cdef double *room = <double *>calloc(at_once * (apart + 2 * K) + K * apart, sizeof(double))
        cdef double *margins = room + at_once * apart
        cdef double *r = margins + at_once * K
        cdef double *some = r + at_once * K
        cdef Py_ssize_t since = 0
        cdef double coarse
        cdef const double *weights = NULL
        cdef const double *tile
        cdef dpcd_tile doubles
        cdef bint kept = self._short.shape[0] > 0
        cdef Bench bench
        bench.norms, bench.rows = NULL, room
        if not kept and room != NULL:
            bench = self._bench(apart, 0)
        if room == NULL or not (kept or bench.norms != NULL):
            free(room)
            return False
        while i < stop:
            n_rows, k, tile = min(at_once, stop - i), 0, bench.rows
            # 1. margins: products of integers, exact in any order
            if not kept:
                self._read(&bench, i, i + n_rows, &self._squares[0])
                self._rows_of_units(&bench, n_rows, self._row_units, &self._of_columns[0],
                                    bench.parts)
            else:
                KERNELS.short_dot(&self._short[i, 0], n_rows, apart, &self._whole[0, 0], room,
                                  margins)
                k = 1
            while k < K:
                for j in range(n_rows):
                    margins[k * n_rows + j] = 0.0
                doubles = dpcd_tile_of(tile, apart, n_rows, apart, True)
                KERNELS.rows_dot(&doubles, &self._whole[k, 0], False, 0, margins + k * n_rows)
                k += 1
            for k in range(K):
                for j in range(n_rows):
                    margins[k * n_rows + j] *= self._unit * self._lengths[i + j]
            # 2. derivatives, and how many times a row counts
            self.loss.derivatives(n_rows, K, margins, self.records.y + i, r)
            if self.records.weights != NULL:
                weights = self.records.weights + i
            for k in range(K):
                KERNELS.weigh(n_rows, weights, r + k * n_rows)
            self._multiples(i, n_rows, question.limit, r)
            # 3. sums of integers, exact in any order
            for k in range(K):
                KERNELS.short_sums(tile, n_rows, apart, r + k * n_rows, some + k * apart)
            i, since = i + n_rows, since + n_rows
            if since + at_once > EXACT_ROWS or i == stop:
                since = 0
                for k in range(K * apart):
                    coarse = (some[k] * (1.0 / (1 << COARSE)) + MAGIC) - MAGIC
                    sums[k] += coarse
                    sums[K * apart + k] += some[k] - coarse * (1 << COARSE)
                    some[k] = 0.0
        free(bench.norms)
        free(room)
        return True

    cdef void _multiples(self, Py_ssize_t i0, Py_ssize_t n_rows, double limit,
                         double *r) noexcept nogil:
        """r[k, i] = rint(r[k, i] length per clip), cut such that the vector over k has its room.

        Derivatives are within 1e90: no product overflows before it is cut.
        """
        cdef Py_ssize_t i, k, K = self.n_outputs
        cdef double norm, scale, most, half = 0.5 * sqrt(<double>K)  # what rounding may add
        for i in range(n_rows):
            most = limit * self._rooms[i0 + i] - half
            most = most if most > 0.0 else 0.0
            scale = self._lengths[i0 + i] * self._per_clip
            scale = scale if scale < LONGEST else LONGEST
            if K == 1:
                norm = r[i] * scale
                norm = norm if norm < most else most
                norm = norm if norm > -most else -most
                r[i] = (norm + MAGIC) - MAGIC
                continue
            norm = 0.0
            for k in range(K):
                norm += r[k * n_rows + i] * r[k * n_rows + i]
            norm = sqrt(norm) * scale
            scale *= most / norm if norm > most else 1.0
            for k in range(K):
                r[k * n_rows + i] = (r[k * n_rows + i] * scale + MAGIC) - MAGIC


cdef class WholeRows(GeometrySums):
    """Sums of gradients at an iterate that moves, clipped by their norm: all coordinates at once.

    A record adds a whole multiple of its row of 16 bits, and all products are of 16 bits too, those
    of an iterate in two limbs. Parameters are as of CurvatureSums.
    """

    cdef double[::1] _coef
    cdef int16_t[:, ::1] _limbs
    cdef double _of_first, _most

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        self._coef = np.zeros(n_outputs * self.n_coordinates)
        self._apart = dpcd_pairs_apart(self.n_coordinates)
        self._pairs = np.empty((0, 0), dtype=np.int32)
        self._of_columns, self._squares = self._per_unit, self._per_square
        self._row_units = longest_row(self.n_coordinates, LONGEST_ROW)
        self._measure_short()

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(size):
            self._coef[block[k]] += step[k]
        return True

    cdef const int64_t *integers(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t j, k, apart = self._apart, d = self.n_coordinates
        cdef Py_ssize_t size = self.n_outputs * apart
        if question.block != NULL or not (question.joint and 0 < question.limit <= MOST_UNITS):
            return NULL
        if not (self._fix_iterate() and self._has_room(size, True, True)):
            return NULL
        self._per_clip = question.limit / (question.clip * self._root_curvature)
        self._most = floor(question.limit / LONGEST_ROW)
        for k in range(size):
            self._totals[k] = 0.0
        if not self._add_in_threads(question, 0, self.n, dpcd_paying_threads(
                self.records.n_threads, self.n * apart), size):
            return NULL
        for k in range(self.n_outputs):
            for j in range(d):
                self._integers[k * d + j] = <int64_t>self._totals[k * apart + j]
        return &self._integers[0]

    cdef bint _fix_iterate(self) noexcept with gil:
        """Make the limbs of the iterate; False when out of memory."""
        try:
            coef = np.reshape(self._coef, (self.n_outputs, -1))
            self._limbs, self._unit, self._of_first = limbs(
                coef, np.asarray(self._per_unit), self._apart)
        except MemoryError:
            return False
        return True

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t K = self.n_outputs, apart = self._apart, j, k, n_rows
        cdef Py_ssize_t at_once = min(max(LEAST_SHORT_ROWS, WHOLE_CELLS // apart // 8 * 8),
                                      2 * DPCD_MOST_PAIRS)
        cdef bint kept = self._short.shape[0] > 0
        cdef Bench bench = self._bench(apart if not kept else 0, 0)
        cdef double *room = <double *>calloc(at_once * (4 * K + apart // 4), sizeof(double))
        cdef double *r = room + at_once * K
        cdef int32_t *products = <int32_t *>(r + at_once * K)
        cdef int16_t *made = <int16_t *>(products + at_once * 4 * K)
        cdef const int16_t *rows = made
        cdef const double *weights = NULL
        cdef bint enough = room != NULL and bench.norms != NULL
        while enough and i < stop:
            n_rows = min(at_once, stop - i)
            # 1. rows, and their products with the limbs
            if kept:
                rows = &self._short[i, 0]
            else:
                self._read(&bench, i, i + n_rows, &self._squares[0])
                self._rows_of_units(&bench, n_rows, self._row_units, &self._of_columns[0],
                                    bench.parts)
                KERNELS.narrow(bench.rows, n_rows, apart, apart, made)
            KERNELS.whole_dot(rows, n_rows, apart, &self._limbs[0, 0], 2 * K, products)
            for k in range(K):
                for j in range(n_rows):
                    room[k * n_rows + j] = self._unit * self._lengths[i + j] * (
                        products[2 * k * n_rows + j] * self._of_first
                        + products[(2 * k + 1) * n_rows + j])
            # 2. derivatives, and how many times a row counts
            self.loss.derivatives(n_rows, K, room, self.records.y + i, r)
            if self.records.weights != NULL:
                weights = self.records.weights + i
            for k in range(K):
                KERNELS.weigh(n_rows, weights, r + k * n_rows)
            self._multiples(i, n_rows, self._most, r)
            # 3. sums of integers, exact in any order
            KERNELS.whole_sums(rows, n_rows, apart, r, K, sums)
            i += n_rows
        free(bench.norms)
        free(room)
        return enough
