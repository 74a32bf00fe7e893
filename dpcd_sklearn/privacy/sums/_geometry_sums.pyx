"""Sums of gradients that are clipped in a geometry: a triangular matrix of integers.

(a) A record's gradient there is its derivative times the image of its row. The norm of that is
    bounded from above once, and gradients are clipped by it and summed in the coordinates that they
    are in. The sums are integers, so their image is exact too. No record's image is kept.
(b) A record adds a whole multiple of its whole row. All products are of 16 bits, those of
    geometries, iterates and large multiples in two limbs: sums of 32 bits are exact, whatever their
    order. Descents keep whole rows of sparse records too, of which only what is stored.
"""

import numpy as np
from libc.math cimport floor, sqrt
from libc.stdint cimport int16_t, int32_t
from libc.stdlib cimport calloc, free

from ...losses._loss cimport Loss
from ...utils._interrupts cimport Interrupts, hold
from ...utils._interrupts import held
from ...utils._threads cimport SLAB
from ._curvature_sums cimport Bench, CurvatureSums
from ._integer_rows import limbs, longest_row
from ._kernels cimport DPCD_MAGIC, KERNELS, dpcd_pairs_apart, dpcd_paying_threads
from ._records cimport DPCD_SLICE, Records, dpcd_dot_rows, dpcd_sparse
from ._sums cimport Question, question_of


cdef extern from "_sparse.h":
    void dpcd_whole_entries(const dpcd_sparse *m, Py_ssize_t n, const double *scale,
                            const double *factors, int16_t *whole) noexcept nogil
    void dpcd_whole_row_dots(const dpcd_sparse *m, Py_ssize_t i0, Py_ssize_t n,
                             const int16_t *whole, const int16_t *v, Py_ssize_t apart,
                             int32_t *out) noexcept nogil
    void dpcd_whole_row_sums(const dpcd_sparse *m, Py_ssize_t i0, Py_ssize_t n,
                             const int16_t *whole, const double *r, double *sums) noexcept nogil

# More than the rounding of a computed norm, of up to 2^18 entries in eight lanes.
cdef double LONGER = 1 + 2.0**-29
# The norm of a shorter row is taken to be this: its square may underflow.
cdef double SHORTEST = 1e-120
# A longer row counts as it: its derivative is cut, or next to nothing.
cdef double LONGEST = 1e150
# Cells of a tile of whole rows, and the least rows of one: what the first cache holds, no crumbs.
cdef Py_ssize_t WHOLE_CELLS = 2**14, LEAST_WHOLE_ROWS = 32
# The norm of a whole row, of which so many multiples are a clip that their rounding is little.
cdef double LONGEST_ROW = 2.0**14 - 1
# So many units a record has at most: sums of DPCD_SHORT_SUM of them have 32 bits.
cdef double MOST_UNITS = 2.0**26
# In a geometry a row counts this often at most, in multiples of the first limb and what is left: as
# many of both as sums of so many rows have 32 bits.
cdef double MOST_TIMES = 2.0**23, FIRST_LIMB = 2.0**12


cdef void _join(Py_ssize_t n, const int32_t *products, Py_ssize_t apart, double of_first,
                double unit, const double *lengths, double *margins) noexcept nogil:
    """Margins from products with the two limbs of an iterate."""
    cdef Py_ssize_t i
    for i in range(n):
        margins[i] = unit * lengths[i] * (products[i] * of_first + products[apart + i])


cdef void _multiples(Py_ssize_t n, Py_ssize_t n_outputs, const double *lengths, double per_clip,
                     const double *rooms, double limit, double *r) noexcept nogil:
    """r[k, i] = rint(r[k, i] length per clip), cut such that the vector over k has its room.

    Derivatives are within 1e60: no product overflows before it is cut.
    """
    cdef Py_ssize_t i, k
    cdef double norm, scale, most, half = 0.5 * sqrt(<double>n_outputs)  # what rounding may add
    cdef double most_times = MOST_TIMES, longest = LONGEST  # no write to r changes these
    for i in range(n if n_outputs == 1 else 0):  # without branches, several rows at a time
        most = max(min(limit * rooms[i], most_times) - half, 0.0)
        norm = r[i] * min(lengths[i] * per_clip, longest)
        norm = norm if norm < most else most
        norm = norm if norm > -most else -most
        r[i] = (norm + DPCD_MAGIC) - DPCD_MAGIC
    for i in range(n if n_outputs > 1 else 0):
        most = max(min(limit * rooms[i], most_times) - half, 0.0)
        scale, norm = min(lengths[i] * per_clip, longest), 0.0
        for k in range(n_outputs):
            norm += r[k * n + i] * r[k * n + i]
        norm = sqrt(norm) * scale
        scale *= most / norm if norm > most else 1.0
        for k in range(n_outputs):
            r[k * n + i] = (r[k * n + i] * scale + DPCD_MAGIC) - DPCD_MAGIC


cdef void _split(Py_ssize_t n, const double *multiples, double unit, int16_t *first,
                 int16_t *rest) noexcept nogil:
    """Multiples of the unit, what is left of each, and a zero behind them."""
    cdef Py_ssize_t i
    cdef double times
    for i in range(n):
        times = (multiples[i] * (1.0 / unit) + DPCD_MAGIC) - DPCD_MAGIC
        first[i], rest[i] = <int16_t>times, <int16_t>(multiples[i] - unit * times)
    first[n] = rest[n] = 0


cdef bint _measure_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    return (<GeometrySums>of)._measure_some(i, stop)


cdef class GeometrySums(CurvatureSums):
    """Sums of gradients in a geometry, and the sums that such a geometry is made of."""

    # how far apart vectors are that whole rows are multiplied by (0 until rows are measured); the
    # geometry, and units of its rows; how often every record may count
    cdef Py_ssize_t _apart, _n_limbs
    cdef int32_t[:, ::1] _pairs
    cdef double[::1] _of_rows, _rooms
    cdef double _slack, _smallest
    # an iterate: its limbs, their units, and units of a gradient in its clip
    cdef int16_t[:, ::1] _limbs
    cdef double _unit, _of_first, _per_clip, _most

    def measure(self, transform, double largest, double smallest, narrow):
        """Bound the norms of all rows' images, for gradients that are clipped by them.

        Parameters
        ----------
        transform : ndarray of shape (n_coordinates, n_coordinates), lower triangular
            Integers up to `most_of_transform`, in Fortran order.
        largest, smallest : float
            Bounds of its singular values.
        narrow : tuple
            The same geometry in 16 bits, as `short_transform` gives it.
        """
        self._pairs, self._of_rows, self._slack = narrow
        self._smallest = smallest
        self._measure_whole(2)

    cdef int _measure_whole(self, Py_ssize_t n_limbs) except -1:
        """Make whole rows, if they are not kept already, and bound their images."""
        self._apart, self._n_limbs = dpcd_pairs_apart(self.n_coordinates), n_limbs
        self._rooms, self._totals = np.ones(self.n), np.empty(self._size_whole())
        if not self._are_made:
            self._keep_rows()
        self._over_tiles(_measure_rows, 0)
        self._are_made = self._whole.shape[0] > 0
        return 0

    cdef bint _measure_some(self, Py_ssize_t i0, Py_ssize_t stop) noexcept nogil:
        cdef Py_ssize_t i, m
        cdef double image
        cdef Bench bench = self._bench(self._row_apart, True, 0)
        while bench.norms != NULL and i0 < stop:
            m = self._whole_rows(&bench, i0, stop)
            if self._pairs.shape[0]:
                KERNELS.image_norms(bench.whole, m, self.n_coordinates, self._row_apart,
                                    self._of_rows.shape[0] // self._apart, &self._pairs[0, 0],
                                    &self._of_rows[0], bench.norms)
                for i in range(m):
                    image = (sqrt(bench.norms[i]) + self._slack) * LONGER
                    self._rooms[i0 + i] = self._smallest / max(image, self._smallest)
            i0 += m
        free(bench.norms)
        return bench.norms != NULL

    def gradient(self, coef, double clip, double limit):
        """Sums of gradients at `coef` in units of clip / limit, in the geometry of M^(-1/2).

        Clipped such that the image under the transform, over its smallest singular value, is no
        longer than `clip`, in the Frobenius norm over all outputs. Plain sums with a limit of 0,
        which need no geometry.

        Returns
        -------
        ndarray of shape (n_outputs * n_coordinates,), of int, which may have more than 64 bits;
        float64 for plain sums, in the units of X
        """
        cdef Py_ssize_t size = self.n_outputs * self.n_coordinates
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Question question = question_of(NULL, size, True, clip, limit)
        cdef const double *plain = NULL
        if w.shape[0] != size:
            raise ValueError(f"expected {size} coefficients, got {w.shape[0]}")
        question.coef = &w[0]
        if limit == 0:
            with nogil:
                plain = self.answer(&question)
            if plain == NULL:
                raise MemoryError
            return np.array(<const double[:size]>plain)
        if not self._apart:
            raise RuntimeError("gradients are clipped in a geometry: measure the rows first")
        return self._whole_gradient(w, &question)

    # ---- whole rows ----

    cdef object _whole_gradient(self, const double[::1] coef, const Question *question):
        """The integers of `gradient`: a record adds whole multiples of its whole row."""
        cdef Py_ssize_t start = 0, stop, n_threads, at_once = max(1, SLAB // self._apart)
        cdef bint enough
        cdef Interrupts interrupts = Interrupts()
        total = np.zeros(self._size_whole(), dtype=np.int64)
        n_threads = dpcd_paying_threads(self.records.n_threads, self.n * self._apart)
        while start < self.n:
            interrupts.look()
            stop = min(start + n_threads * at_once, self.n)
            enough = self._begin(coef, question, question.limit)
            with nogil:
                enough = enough and self._add_in_threads(question, start, stop, n_threads,
                                                         self._size_whole())
            if not enough:
                raise held(MemoryError())
            total += np.asarray(self._totals)[:len(total)].astype(np.int64)
            start = stop
        total = total.reshape(2, self.n_outputs, -1)[:, :, :self.n_coordinates].astype(object)
        return (total[0] * int(FIRST_LIMB) + total[1]).ravel()

    cdef Py_ssize_t _size_whole(self) noexcept nogil:
        return self._n_limbs * self.n_outputs * self._apart

    cdef bint _begin(self, const double[::1] coef, const Question *question,
                     double most) noexcept nogil:
        """Begin a sum of multiples of rows at an iterate; False when out of memory.

        `most`: how often a row may count that has all the room.
        """
        cdef Py_ssize_t k
        with gil:
            try:
                self._limbs, self._unit, self._of_first = limbs(
                    np.asarray(coef).reshape(self.n_outputs, -1), self._per_unit, self._apart)
            except BaseException as error:
                return hold(error)
        self._per_clip, self._most = question.limit / (question.clip * self._root_curvature), most
        for k in range(self._size_whole()):
            self._totals[k] = 0.0
        return True

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        if self._apart == 0 or question.limit == 0:
            return CurvatureSums._add_rows(self, question, i, stop, sums)
        return self._add_multiples(i, stop, sums)

    cdef bint _add_multiples(self, Py_ssize_t i, Py_ssize_t stop, double *sums) noexcept nogil:
        """sums += limbs of contributions of rows i, ..., stop - 1, which are kept or made again."""
        cdef Py_ssize_t K = self.n_outputs, apart = self._row_apart, k, n_rows
        cdef Py_ssize_t room = max(LEAST_WHOLE_ROWS, WHOLE_CELLS // apart // 8 * 8) + 2
        cdef Bench bench = self._bench(0 if self._are_made else apart, True, 0)
        # margins; derivatives; products of limbs of the iterate; multiples in limbs, and zeros
        cdef double *margins = <double *>calloc(room * 4 * K, sizeof(double))
        cdef double *r = margins + room * K
        cdef int32_t *products = <int32_t *>(r + room * K)
        cdef int16_t *times = <int16_t *>(products + 2 * room * K)
        cdef int16_t *rest = times + room * K
        cdef double unit = FIRST_LIMB if self._n_limbs == 2 else 1.0
        cdef bint enough = margins != NULL and bench.norms != NULL
        while enough and i < stop:
            n_rows = min(room - 2, stop - i)
            # 1. rows, and their margins
            self._whole_rows(&bench, i, i + n_rows)
            KERNELS.whole_dot(bench.whole, n_rows, apart, &self._limbs[0, 0], 2 * K, room, products)
            # 2. derivatives, and how many times a row counts
            self._count_rows(i, n_rows, products, room, margins, r)
            for k in range(K):
                _split(n_rows, r + k * n_rows, unit, times + k * room, rest + k * room)
            # 3. sums of integers, exact in any order
            KERNELS.whole_sums(bench.whole, n_rows, apart, times, room, self._n_limbs * K, sums)
            i += n_rows
        free(bench.norms)
        free(margins)
        return enough

    cdef void _count_rows(self, Py_ssize_t i, Py_ssize_t n_rows, const int32_t *products,
                          Py_ssize_t apart, double *margins, double *r) noexcept nogil:
        """How many times each row counts in each output, to `r`: whole numbers."""
        cdef Py_ssize_t k, K = self.n_outputs
        cdef const double *weights = NULL
        if self.records.weights != NULL:
            weights = self.records.weights + i
        for k in range(K):
            _join(n_rows, products + 2 * k * apart, apart, self._of_first, self._unit,
                  &self._lengths[i], margins + k * n_rows)
        self.loss.derivatives(n_rows, K, margins, self.records.y + i, r)
        for k in range(K):
            KERNELS.weigh(n_rows, weights, r + k * n_rows)
        _multiples(n_rows, K, &self._lengths[i], self._per_clip, &self._rooms[i], self._most, r)


cdef class WholeRows(GeometrySums):
    """Sums of gradients at an iterate that moves, clipped by their norm: all coordinates at once.

    Every row has the same room; parameters are as of MovingSums, but that all outputs have the
    smoothness of the first.
    """

    cdef double[::1] _coef

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        of_one = smoothness[: len(smoothness) // n_outputs]
        super().__init__(records, loss, of_one, fit_intercept, n_outputs)
        self._coef = np.zeros(n_outputs * self.n_coordinates)
        self._pairs = np.empty((0, 0), dtype=np.int32)
        self._row_units = longest_row(self.n_coordinates, LONGEST_ROW)
        self._measure_whole(1)

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(size):
            self._coef[block[k]] += step[k]
        return True

    cdef const double *answer(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t j, k, apart = self._apart, d = self.n_coordinates
        if question.block != NULL or not (question.joint and 0 < question.limit <= MOST_UNITS):
            return NULL
        if not (self._begin(self._coef, question, floor(question.limit / LONGEST_ROW))
                and self._add_in_threads(question, 0, self.n, dpcd_paying_threads(
                    self.records.n_threads, self.records.n_entries), self._size_whole())):
            return NULL
        for k in range(self.n_outputs):
            for j in range(d):
                self._totals[k * d + j] = self._totals[k * apart + j]
        return &self._totals[0]


cdef class SparseWholeRows(WholeRows):
    """The same integers of sparse records, of up to 2^18 coordinates."""

    cdef int16_t[::1] _entries  # whole numbers, and
    cdef double[::1] _ones  # those of the intercept's constant

    cdef int _measure_whole(self, Py_ssize_t n_limbs) except -1:
        cdef Py_ssize_t[::1] rows = np.arange(self.n, dtype=np.intp)
        cdef double[::1] norms = np.zeros(self.n), factors
        self._apart, self._n_limbs = dpcd_pairs_apart(self.n_coordinates), n_limbs
        self._rooms, self._totals = np.ones(self.n), np.empty(self._size_whole())
        dpcd_dot_rows(&self.records.rows, self.n, &rows[0], &self._per_square[0], True, &norms[0])
        lengths = np.sqrt(np.asarray(norms) + self._one * self._one) * LONGER
        lengths = np.maximum(lengths, SHORTEST)
        factors = self._row_units / lengths
        self._lengths, self._ones = lengths / self._row_units, np.rint(self._one * factors.base)
        self._entries = np.empty(self.records.n_entries + 1, dtype=np.int16)
        dpcd_whole_entries(&self.records.rows, self.n, &self._per_unit[0], &factors[0],
                           &self._entries[0])
        return 0

    cdef bint _add_multiples(self, Py_ssize_t i, Py_ssize_t stop, double *sums) noexcept nogil:
        cdef Py_ssize_t K = self.n_outputs, apart = self._apart, k, q, n_rows
        cdef double *r = <double *>calloc(DPCD_SLICE * 3 * K, sizeof(double))
        cdef double *margins = r + DPCD_SLICE * K
        cdef int32_t *products = <int32_t *>(margins + DPCD_SLICE * K)
        while r != NULL and i < stop:
            n_rows = min(<Py_ssize_t>DPCD_SLICE, stop - i)
            for k in range(K):
                dpcd_whole_row_dots(&self.records.rows, i, n_rows, &self._entries[0],
                                    &self._limbs[2 * k, 0], apart, products + 2 * k * n_rows)
            for k in range(2 * K if self.fit_intercept else 0):
                for q in range(n_rows):
                    products[k * n_rows + q] += <int32_t>self._ones[i + q] * self._limbs[k, self.p]
            self._count_rows(i, n_rows, products, n_rows, margins, r)
            for k in range(K):
                dpcd_whole_row_sums(&self.records.rows, i, n_rows, &self._entries[0],
                                    r + k * n_rows, sums + k * apart)
                for q in range(n_rows if self.fit_intercept else 0):
                    sums[k * apart + self.p] += r[k * n_rows + q] * self._ones[i + q]
            i += n_rows
        free(r)
        return r != NULL
