"""Sums of squares and products of rows, and of their images; no noise here.

(a) *Rows as integers.* What products of rows are made of is rint(u τ): τ a row in the units of its
    columns, u a number that depends on this row alone. Products of rows of 16 bits are added in 32
    (``_pairs_body.h``), matrix products of larger integers stay below 2^53, so whatever order,
    blocking or fused operations a BLAS likes, all are exact: what a record adds depends on no other
    record, and not on its place among them.
(b) *Whole rows* have 16 bits, in units of their own length. They are made once, for second moments
    and for gradients in a geometry that is made of these, and kept where memory is enough, a
    quarter of what the records take in doubles; if not, or if records are sparse, they are made
    again in each pass.
(c) *Second moments.* Σ q qᵀ over whole rows that are scaled down to a public norm.
(d) *Images* of rows under a triangular matrix of integers. No record's image is kept.
"""

import numpy as np
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport calloc, free
from scipy.linalg.blas import dsyrk, dtrmm

from ...losses._loss cimport Loss
from ...utils._interrupts cimport Interrupts
from ...utils._interrupts import held
from ...utils._threads cimport Work, over_rows
from ._integer_rows import ROW_UNITS, longest_row, rows_at_once
from ._kernels cimport (
    DPCD_MAGIC,
    KERNELS,
    dpcd_pairs_apart,
    dpcd_paying_threads,
    dpcd_rows_ahead,
    dpcd_tile,
    dpcd_tile_of,
)
from ._records cimport Records, dpcd_spread_rows

# More than the rounding of a computed norm, of up to 4,000 entries.
cdef double SHORTER = 1 - 2.0**-30
cdef double LONGER = 1 + 2.0**-29
cdef double EXACT = 2.0**53
# Rows of a tile: what the second cache holds, but no crumbs; columns that lie pages apart would
# fall into the same few lines of a cache.
cdef Py_ssize_t TILE_CELLS = 2**14, LEAST_ROWS = 128, MOST_ROWS = 4096 - 8
# The norm of a shorter row is taken to be this: its square may underflow.
cdef double SHORTEST = 1e-120
# A weight below it leaves as much room as this one.
cdef double LIGHTEST = 1e-30
# More than what rounding to float32 adds to a factor and to its product.
cdef double NARROWER = 1 - 2.0**-22
# Bytes of rows that are kept; public, as the number of records is.
cdef Py_ssize_t MOST_KEPT = 2**30


def _symmetric(upper):
    return np.triu(upper) + np.triu(upper, 1).T


cdef bint _gram_of_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    cdef int64_t *total = &(<CurvatureSums>of)._of_shares[share, 0]
    return (<CurvatureSums>of)._add_gram(i, stop, total)


cdef bint _sums_of_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    cdef int64_t *total = &(<CurvatureSums>of)._of_shares[share, 0]
    return (<CurvatureSums>of)._add_row_sums(i, stop, total)


cdef class Room:
    """A bench whose rows BLAS reads, in one thread."""

    def __init__(self, CurvatureSums sums):
        self.bench = sums._bench(sums.n_coordinates, False, 0)
        if self.bench.norms == NULL:
            raise MemoryError
        self.rows = <double[:sums._tile_rows, :sums.n_coordinates]>self.bench.rows

    def __dealloc__(self):
        free(self.bench.norms)


cdef class CurvatureSums(GradientSums):
    """Second moments of rows, and of their images; the parameters are those of GradientSums.

    A column's unit is sqrt(M_j / curvature of the loss). Rows are the same in all outputs. Sparse
    ones become dense a tile at a time.
    """

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        if records.is_sparse and not records.holds(True):
            raise held(MemoryError())
        self._per_square = loss.curvature / np.asarray(smoothness, dtype=np.float64)
        self._per_unit = np.sqrt(self._per_square)
        self._one = self._per_unit[self.p] if fit_intercept else 0.0
        self._root_curvature = sqrt(loss.curvature)
        self._tile_rows = max(LEAST_ROWS, min(TILE_CELLS // self.n_coordinates, MOST_ROWS))
        self._tile_rows -= self._tile_rows % 8
        self._row_units, self._row_apart = longest_row(self.n_coordinates), self.n_coordinates + 7
        self._row_apart -= self._row_apart % 8
        self._whole, self._lengths = np.empty((0, 0), dtype=np.int16), np.empty(self.n)

    # ---- rows ----

    cdef Bench _bench(self, Py_ssize_t apart, bint whole, Py_ssize_t n_integers) noexcept nogil:
        """To be freed by its `norms`, which are NULL when out of memory."""
        cdef Bench bench
        cdef Py_ssize_t n = self._tile_rows, p = self.p if self.records.is_sparse else 0
        bench.norms = <double *>calloc(n * (4 + apart + p) + n_integers // 2 + 1, sizeof(double))
        bench.factors, bench.of_ones = bench.norms + n, bench.norms + 2 * n
        bench.parts, bench.rows = bench.norms + 3 * n, bench.norms + 4 * n
        bench.whole = <int16_t *>bench.rows if whole else NULL
        bench.cells, bench.apart = bench.rows + n * apart, apart
        bench.room = <int32_t *>(bench.cells + n * p)
        return bench

    cdef int _over_tiles(self, Work work, Py_ssize_t n_integers) except -1:
        """Do the work of all rows in threads, each of which adds to so many integers of its own."""
        cdef Py_ssize_t n_threads = dpcd_paying_threads(self.records.n_threads,
                                                        self.n * self.n_coordinates)
        # the integers of all shares are fewer than the cells of the records
        n_threads = max(1, min(n_threads, self.n * self.n_coordinates // (n_integers + 1)))
        self._of_shares = np.zeros((n_threads, n_integers), dtype=np.int64)
        return over_rows(work, <void *>self, self.n, self.n_coordinates, n_threads)

    cdef Py_ssize_t _read(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop) noexcept nogil:
        """Read a tile, and the squared norms of its features; returns the number of its rows."""
        cdef Py_ssize_t i, m = min(self._tile_rows, stop - i0)
        if self.records.is_sparse:
            dpcd_spread_rows(&self.records.rows, i0, m, self.p, bench.cells)
            bench.tile = dpcd_tile_of(bench.cells, self.p, m, self.p, True)
        else:
            KERNELS.load(&self.records.X, i0, NULL, m, NULL, self.p, NULL, &bench.tile)
        for i in range(m):
            bench.norms[i] = 0.0
        bench.ahead = dpcd_rows_ahead(m, self.n - i0 - m)
        KERNELS.rows_dot(&bench.tile, &self._per_square[0], True, bench.ahead, bench.norms)
        return m

    cdef void _fill(self, Bench *bench, Py_ssize_t m, double magic) noexcept nogil:
        """Rows in the units of their columns times factors; integers unless `magic` is zero."""
        cdef Py_ssize_t i
        cdef double one
        KERNELS.scaled_rows(&bench.tile, &self._per_unit[0], bench.factors, magic, bench.ahead,
                            bench.rows, bench.whole, bench.apart)
        for i in range(m if self.fit_intercept else 0):
            one = (bench.of_ones[i] * self._one + magic) - magic
            if bench.whole != NULL:
                bench.whole[i * bench.apart + self.p] = <int16_t>one
            else:
                bench.rows[i * bench.apart + self.p] = one

    cdef Py_ssize_t _rows_of_units(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop,
                                   double units) noexcept nogil:
        """Rows of a tile as integers, whose norm is `units` but for the rounding: how many."""
        cdef Py_ssize_t i, m = self._read(bench, i0, stop)
        cdef double norm
        for i in range(m):
            norm = sqrt(bench.norms[i] + self._one * self._one) * LONGER
            norm = norm if norm >= 0.0 else INFINITY  # NaN
            norm = (norm if norm > SHORTEST else SHORTEST) / units
            self._lengths[i0 + i] = norm
            bench.factors[i] = bench.of_ones[i] = 1.0 / norm  # 0 where it is infinite
        self._fill(bench, m, DPCD_MAGIC)
        return m

    cdef void _weights(self, Py_ssize_t i0, Py_ssize_t m, double *weights) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(m):
            weights[i] = 1.0 if self.records.weights == NULL else self.records.weights[i0 + i]

    cdef Py_ssize_t _whole_rows(self, Bench *bench, Py_ssize_t i0,
                                Py_ssize_t stop) noexcept nogil:
        """Whole rows of a tile, which are made if they are not kept already: how many."""
        if self._whole.shape[0]:
            bench.whole = &self._whole[i0, 0]
        if self._are_made:
            return min(self._tile_rows, stop - i0)
        return self._rows_of_units(bench, i0, stop, self._row_units)

    cdef int _keep_rows(self) except -1:
        """Room for whole rows, where memory is enough."""
        if 2 * self.n * self._row_apart <= MOST_KEPT and not self.records.is_sparse:
            try:  # one more than there are: vectors may reach beyond the last one
                self._whole = np.zeros((self.n + 1, self._row_apart), dtype=np.int16)
            except MemoryError:  # whether there is room is up to the machine, and shows in no sum
                pass
        return 0

    # ---- second moments ----

    def gram(self, double row_norm, double units, bint keeps=False):
        """Σ q qᵀ, q = rint(units τ / row_norm) and |τ| at most `row_norm`; with 0 units plain sums.

        τ is a whole row times the root of its weight, scaled down to the norm if it is longer.
        Where it `keeps` them and memory is enough, whole rows are kept for gradients.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates), int64 (float64 for plain sums)
        """
        cdef Py_ssize_t d = self.n_coordinates, apart = dpcd_pairs_apart(d)
        if units == 0:
            return self._plain_gram()
        self._row_norm, self._at_once = row_norm, rows_at_once(units, d)
        # whole rows were rounded before, and are longer by half a unit in every column at most
        self._units = units * self._row_units / (self._row_units + 0.5 * sqrt(<double>d))
        if keeps:
            self._keep_rows()
        self._over_tiles(_gram_of_rows, apart * apart)
        self._are_made = self._whole.shape[0] > 0
        total = np.asarray(self._of_shares).sum(axis=0).reshape(apart, apart)
        return _symmetric(total[:d, :d])

    cdef bint _add_gram(self, Py_ssize_t i0, Py_ssize_t stop, int64_t *total) noexcept nogil:
        cdef Py_ssize_t i, m, n_groups, size, d = self.n_coordinates, apart = self._row_apart
        cdef Bench bench = self._bench(apart, True, self._tile_rows // 2 * dpcd_pairs_apart(d))
        cdef double length, longest = self._row_norm / self._row_units
        cdef double scale = self._units / self._row_norm * NARROWER
        cdef double *factors = bench.factors
        while bench.norms != NULL and i0 < stop:
            m = self._whole_rows(&bench, i0, stop)
            n_groups = (m + self._at_once - 1) // self._at_once
            size = (m + n_groups - 1) // n_groups
            self._weights(i0, m, factors)
            for i in range(m):
                length = sqrt(factors[i]) * self._lengths[i0 + i]
                factors[i] = scale * (length if length < longest else longest)  # also for NaN
            for i in range(n_groups):
                if i * size < m:
                    KERNELS.add_products(bench.whole + i * size * apart, min(size, m - i * size),
                                         d, apart, factors + i * size, bench.room, total)
            i0 += m
        free(bench.norms)
        return bench.norms != NULL

    def _plain_gram(self):
        """Σ τ τᵀ, weighted, in floating point: for fits without noise."""
        cdef Py_ssize_t i, i0 = 0, m, d = self.n_coordinates
        cdef Interrupts interrupts = Interrupts()
        total = np.zeros((d, d), order="F")
        cdef Room room = Room(self)
        while i0 < self.n:
            interrupts.look()
            m = self._read(&room.bench, i0, self.n)
            self._weights(i0, m, room.bench.of_ones)
            for i in range(m):
                room.bench.of_ones[i] = room.bench.factors[i] = sqrt(room.bench.of_ones[i])
            self._fill(&room.bench, m, 0.0)
            total = dsyrk(1.0, np.asarray(room.rows)[:m].T, beta=1.0, c=total, overwrite_c=1)
            i0 += m
        return _symmetric(total)

    def row_sums(self, double row_norm, double units, double units_of_squares):
        """Σ q over rows times their weights and, last, the weighted squared norms of features.

        A weight counts up to what keeps the row, times it, within `row_norm`: of so many units. A
        square is rint(units_of_squares² weight |features|² / row_norm²). Exact whatever the order:
        an entry is an integer of at most `units` and a half, a square one of at most 2^34 or so,
        and both are summed over a tile before they are 64-bit integers.

        Returns
        -------
        ndarray of shape (n_coordinates + 1,), int64
        """
        if not row_norm >= self._one:  # to what it leaves of the norm features are cut
            raise ValueError(f"rows have a constant of length {self._one:.6g}, which is not cut to "
                             f"the norm {row_norm:.6g}")
        self._row_norm, self._units, self._units_of_squares = row_norm, units, units_of_squares
        self._over_tiles(_sums_of_rows, self.n_coordinates + 1)
        return np.asarray(self._of_shares).sum(axis=0)

    cdef bint _add_row_sums(self, Py_ssize_t i0, Py_ssize_t stop, int64_t *total) noexcept nogil:
        cdef Py_ssize_t i, j, m, d = self.n_coordinates
        cdef Bench bench = self._bench(0, False, 2 * (d + 1))
        cdef double *part = <double *>bench.room
        cdef double length, most = self._units_of_squares * SHORTER
        while bench.norms != NULL and i0 < stop:
            m = self._read(&bench, i0, stop)
            self._weigh_rows(&bench, i0, m)
            KERNELS.sums(&bench.tile, bench.factors, &self._per_unit[0], self._units, bench.ahead,
                         True, part)
            part[self.p] += KERNELS.sum_of_ones(m, bench.of_ones, self._one, self._units)
            for i in range(m):
                length = most * bench.parts[i]
                part[d] += (length * length + DPCD_MAGIC) - DPCD_MAGIC
            for j in range(d + 1):
                total[j] += <int64_t>part[j]
                part[j] = 0.0
            i0 += m
        free(bench.norms)
        return bench.norms != NULL

    cdef void _weigh_rows(self, Bench *bench, Py_ssize_t i0, Py_ssize_t m) noexcept nogil:
        """Factors of features, cut to their norm, and of the constant, both times a weight.

        Or as much of it as keeps the row within the norm. And the root of that, times how long the
        features are over the norm. Without branches, four rows at a time.
        """
        cdef double most = self._row_norm, one = self._one * self._one
        cdef double per_norm = self._units / most * SHORTER
        cdef double norm, longest, room, light, of_features, weight
        cdef double *ones = bench.of_ones
        cdef double *factors = bench.factors
        cdef double *parts = bench.parts
        cdef const double *norms = bench.norms
        cdef Py_ssize_t i
        self._weights(i0, m, ones)
        for i in range(m):
            norm, weight = sqrt(norms[i]), ones[i]
            light = weight if weight < 1.0 else 1.0
            room = sqrt(most * most / (light if light > LIGHTEST else LIGHTEST) - one)
            longest = norm if norm > room else room
            of_features = room / (longest if longest > SHORTEST else SHORTEST)
            of_features = of_features if norm < INFINITY else 0.0
            norm = norm * of_features if norm < INFINITY else 0.0
            longest = sqrt(norm * norm + one)
            longest = most * SHORTER / (longest if longest > SHORTEST else SHORTEST)
            weight = weight if weight < longest else longest
            norm = sqrt(weight) * norm / most
            parts[i] = norm if norm < 1.0 else 1.0
            ones[i] = weight * per_norm
            factors[i] = ones[i] * of_features

    # ---- images in a geometry ----

    cdef object _image(self, Room room, Py_ssize_t i0, transform):
        """Images of the rows of a tile in units of their lengths / ROW_UNITS, and squared norms.

        Exact integers: the transform times rint(ROW_UNITS τ / length).
        """
        cdef Py_ssize_t i, m, d = self.n_coordinates
        cdef double[::1] ones = np.ones(d)
        cdef dpcd_tile image
        m = self._rows_of_units(&room.bench, i0, self.n, ROW_UNITS)
        moved = dtrmm(1.0, transform, np.asarray(room.rows)[:m].T, lower=1, overwrite_b=1)
        image = dpcd_tile_of(<const double *><size_t>moved.ctypes.data, d, m, d, True)
        for i in range(m):
            room.bench.norms[i] = 0.0
        KERNELS.rows_dot(&image, &ones[0], True, 0, room.bench.norms)
        return moved.T

    def image_grams(self, transform, coef, double unit, double clip, double row_norm,
                    double score_norm, double units):
        """Second moments of images at an iterate: of weighted rows, and of clipped gradients.

        z is the image of a record's row over sqrt(M_j), in units of 1 / `unit` of the transform's.
        The rows of the first are sqrt(second derivative times weight) z within `row_norm`, or zero
        for a record whose gradient is longer than `clip`; those of the second are gradients within
        `score_norm`.
        Both become integers of at most `units`; with 0 units sums are plain.

        Returns
        -------
        jacobian and scores : ndarray of shape (2, n_coordinates, n_coordinates), int64 (or float64)
        """
        cdef Py_ssize_t i0 = 0, m, d = self.n_coordinates, since = 0
        cdef double[::1] margins = np.empty(self._tile_rows)
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Interrupts interrupts = Interrupts()
        cdef Room room = Room(self)
        dtype = np.int64 if units > 0 else np.float64
        parts = [np.zeros((d, d), order="F") for _ in range(2)]
        totals = [np.zeros((d, d), dtype=dtype) for _ in range(2)]
        exact = EXACT / (units + d + 1.0) ** 2 if units > 0 else np.inf
        while i0 < self.n:
            interrupts.look()
            images = self._image(room, i0, transform)
            m = len(images)
            margins[:] = w[self.p] if self.fit_intercept else 0.0
            KERNELS.rows_dot(&room.bench.tile, &w[0], False, 0, &margins[0])
            y = np.asarray(<const double[:m]>(self.records.y + i0))
            norms = np.sqrt(np.asarray(<double[:m]>room.bench.norms))
            weights = (np.ones(m) if self.records.weights == NULL
                       else np.asarray(<const double[:m]>(self.records.weights + i0)))
            factors = _factors_of_moments(
                self.loss, np.asarray(margins)[:m], y, weights,
                np.asarray(self._lengths)[i0:i0 + m] * (unit / self._root_curvature),
                norms, clip, row_norm, score_norm, units)
            if since + m > exact:
                for total, part in zip(totals, parts):
                    total += part.astype(dtype)
                    part[:] = 0.0
                since = 0
            for k in range(2):
                scaled = images * factors[k][:, None]
                scaled = np.rint(scaled) if units > 0 else scaled
                parts[k] = dsyrk(1.0, scaled.T, beta=1.0, c=parts[k], overwrite_c=1)
            i0, since = i0 + m, since + m
        for total, part in zip(totals, parts):
            total += part.astype(dtype)
        return np.array([_symmetric(total) for total in totals])


@np.errstate(all="ignore")
def _factors_of_moments(loss, margins, y, weights, scale, norms, clip, row_norm, score_norm,
                        units):
    """By what images are multiplied: no row is longer than `units` then, whatever it was.

    Element by element, in operations that are rounded as IEEE 754 says: a record's factors are
    functions of this record.
    """
    derivative = loss.gradient(margins, y)
    second = np.sqrt(weights * loss.second_derivative(derivative, y)) * scale
    first = np.abs(weights * derivative) * scale
    second[first * norms > clip] = 0.0
    found = []
    for factor, most in ((second, row_norm), (first, score_norm)):
        if units > 0:
            longest = units * SHORTER / norms
            factor = np.minimum(factor * (units * SHORTER / most), longest)
            factor = np.where(np.isfinite(factor) & (norms > 0), factor, 0.0)
        found.append(factor)
    return found
