"""Sums of squares and products of rows, and of their images; no noise here.

(a) *Rows as integers.* What products of rows are made of is rint(u τ): τ a row in the units of its
    columns, u a number that depends on this row alone. Products of rows of 16 bits are added in 32
    (``_pairs_body.h``), matrix products of larger integers stay below 2^53, so whatever order,
    blocking or fused operations a BLAS likes, all are exact: what a record adds depends on no other
    record, and not on its place among them.
(b) *Second moments.* Σ q qᵀ over rows clipped to a public norm.
(c) *Images* of rows under a triangular matrix of integers. No record's image is kept.
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
from ._integer_rows import ROW_UNITS, rows_at_once
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

    cdef Py_ssize_t _read(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop,
                          const double *squares) noexcept nogil:
        """Read a tile, and the squared norms of its features; returns the number of its rows.

        `squares`: what the square of a column counts in them.
        """
        cdef Py_ssize_t i, m = min(self._tile_rows, stop - i0)
        if self.records.is_sparse:
            dpcd_spread_rows(&self.records.rows, i0, m, self.p, bench.cells)
            bench.tile = dpcd_tile_of(bench.cells, self.p, m, self.p, True)
        else:
            KERNELS.load(&self.records.X, i0, NULL, m, NULL, self.p, NULL, &bench.tile)
        for i in range(m):
            bench.norms[i] = 0.0
        bench.ahead = dpcd_rows_ahead(m, self.n - i0 - m)
        KERNELS.rows_dot(&bench.tile, squares, True, bench.ahead, bench.norms)
        return m

    cdef void _fill(self, Bench *bench, Py_ssize_t m, double magic,
                    const double *of_columns) noexcept nogil:
        """Rows in the units of their columns times factors; integers unless `magic` is zero."""
        cdef Py_ssize_t i
        cdef double one
        KERNELS.scaled_rows(&bench.tile, of_columns, bench.factors, magic, bench.ahead,
                            bench.rows, bench.whole, bench.apart)
        for i in range(m if self.fit_intercept else 0):
            one = (bench.of_ones[i] * of_columns[self.p] + magic) - magic
            if bench.whole != NULL:
                bench.whole[i * bench.apart + self.p] = <int16_t>one
            else:
                bench.rows[i * bench.apart + self.p] = one

    # ---- second moments ----

    def gram(self, double row_norm, double units):
        """Σ q qᵀ, q = rint(units τ / row_norm) and |τ| at most `row_norm`; with 0 units plain sums.

        A weight multiplies a row by its root. Features are scaled down to what the intercept's
        constant leaves of the norm, of light rows to as much more, and heavy ones as a whole.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates), int64 (float64 for plain sums)
        """
        cdef Py_ssize_t d = self.n_coordinates, apart = dpcd_pairs_apart(d)
        if units == 0:
            return self._plain_gram(row_norm)
        self._check_norm(row_norm)
        self._row_norm, self._units, self._at_once = row_norm, units, rows_at_once(units, d)
        self._over_tiles(_gram_of_rows, apart * apart)
        total = np.asarray(self._of_shares).sum(axis=0).reshape(apart, apart)
        return _symmetric(total[:d, :d])

    cdef bint _add_gram(self, Py_ssize_t i0, Py_ssize_t stop, int64_t *total) noexcept nogil:
        cdef Py_ssize_t i, m, n_groups, size, d = self.n_coordinates, apart = dpcd_pairs_apart(d)
        cdef Bench bench = self._bench(apart, True, self._tile_rows // 2 * apart)
        while bench.norms != NULL and i0 < stop:
            m = self._read(&bench, i0, stop, &self._per_square[0])
            n_groups = (m + self._at_once - 1) // self._at_once
            size = (m + n_groups - 1) // n_groups
            self._clip_rows(&bench, i0, m, self._row_norm, self._units)
            self._fill(&bench, m, DPCD_MAGIC, &self._per_unit[0])
            for i in range(n_groups):
                if i * size < m:
                    KERNELS.add_products(bench.whole + i * size * apart, min(size, m - i * size),
                                         d, apart, bench.room, total)
            i0 += m
        free(bench.norms)
        return bench.norms != NULL

    def _plain_gram(self, double row_norm):
        """Σ τ τᵀ, weighted, in floating point: for fits without noise."""
        cdef Py_ssize_t i0 = 0, m, d = self.n_coordinates
        cdef Interrupts interrupts = Interrupts()
        total = np.zeros((d, d), order="F")
        cdef Room room = Room(self)
        while i0 < self.n:
            interrupts.look()
            m = self._read(&room.bench, i0, self.n, &self._per_square[0])
            self._clip_rows(&room.bench, i0, m, row_norm, 0.0)
            self._fill(&room.bench, m, 0.0, &self._per_unit[0])
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
        self._check_norm(row_norm)
        self._row_norm, self._units, self._units_of_squares = row_norm, units, units_of_squares
        self._over_tiles(_sums_of_rows, self.n_coordinates + 1)
        return np.asarray(self._of_shares).sum(axis=0)

    cdef bint _add_row_sums(self, Py_ssize_t i0, Py_ssize_t stop, int64_t *total) noexcept nogil:
        cdef Py_ssize_t i, j, m, d = self.n_coordinates
        cdef Bench bench = self._bench(0, False, 2 * (d + 1))
        cdef double *part = <double *>bench.room
        cdef double length, most = self._units_of_squares * SHORTER
        while bench.norms != NULL and i0 < stop:
            m = self._read(&bench, i0, stop, &self._per_square[0])
            self._clip_rows(&bench, i0, m, self._row_norm, self._units)
            if self.records.weights != NULL:
                self._weigh_rows(&bench, i0, m, self._row_norm, self._units)
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

    cdef int _check_norm(self, double row_norm) except -1:
        """Features are cut to what the constant leaves of a norm: it has to leave something."""
        if not row_norm >= self._one:
            raise ValueError(f"rows have a constant of length {self._one:.6g}, which is not cut to "
                             f"the norm {row_norm:.6g}")
        return 0

    cdef void _clip_rows(self, Bench *bench, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                         double units) noexcept nogil:
        """Factors of features and of the constant, for rows within `row_norm`.

        And how long the features are then, over that norm. Without branches, four rows at a time.
        """
        cdef double whole = units / row_norm * SHORTER, one = self._one * self._one
        cdef double norm, longest, room, light, of_features, of_row, weight
        cdef double *roots = bench.of_ones
        cdef double *factors = bench.factors
        cdef double *parts = bench.parts
        cdef const double *norms = bench.norms
        cdef Py_ssize_t i
        for i in range(m):
            roots[i] = 1.0
        for i in range(m if self.records.weights != NULL else 0):
            weight = self.records.weights[i0 + i]
            roots[i] = sqrt(weight) if weight > 0.0 else 0.0
        if units == 0:
            for i in range(m):
                factors[i] = roots[i]
            return
        for i in range(m):
            norm = sqrt(norms[i])
            light = roots[i] * roots[i]
            light = light if light < 1.0 else 1.0
            room = sqrt(row_norm * row_norm / (light if light > LIGHTEST else LIGHTEST) - one)
            longest = norm if norm > room else room
            of_features = room / (longest if longest > SHORTEST else SHORTEST)
            of_features = of_features if norm < INFINITY else 0.0
            norm = norm * of_features if norm < INFINITY else 0.0
            longest = roots[i] * sqrt(norm * norm + one)
            of_row = row_norm / (longest if longest > row_norm else row_norm)
            norm = roots[i] * norm * of_row
            parts[i] = (norm if norm < row_norm else row_norm) / row_norm
            roots[i] = roots[i] * of_row * whole
            factors[i] = roots[i] * of_features

    cdef void _weigh_rows(self, Bench *bench, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                          double units) noexcept nogil:
        """Factors for rows times their weights, or as much of these as keeps them in their norm.

        So much of a weight goes to the root of the features' length, too.
        """
        cdef double whole = units / row_norm * SHORTER, one = self._one / row_norm
        cdef double root, length, most, weight
        cdef Py_ssize_t i
        for i in range(m):
            root = bench.of_ones[i] / whole
            length = bench.parts[i] / root if root > 0.0 else 0.0
            most = sqrt(length * length + one * one)
            most = SHORTER / (most if most > SHORTEST else SHORTEST)
            weight = self.records.weights[i0 + i] if root > 0.0 else 0.0
            weight = weight if weight < most else most
            length = sqrt(weight) * length
            bench.parts[i] = length if length < 1.0 else 1.0
            bench.factors[i] *= weight / root if root > 0.0 else 0.0
            bench.of_ones[i] = weight * whole

    # ---- images in a geometry ----

    cdef void _rows_of_units(self, Bench *bench, Py_ssize_t m, double units,
                             const double *of_columns, double *lengths) noexcept nogil:
        """The rows of a tile as integers, whose norm is `units` but for the rounding.

        `of_columns`: what a column counts, the constant's last, as the bench's `norms` have it.
        """
        cdef Py_ssize_t i
        cdef double norm, one = of_columns[self.p] if self.fit_intercept else 0.0
        for i in range(m):
            norm = sqrt(bench.norms[i] + one * one) * LONGER
            norm = norm if norm >= 0.0 else INFINITY  # NaN
            lengths[i] = norm if norm > SHORTEST else SHORTEST
        for i in range(m):
            bench.factors[i] = units / lengths[i]  # 0 where it is infinite
            bench.of_ones[i] = bench.factors[i]
        self._fill(bench, m, DPCD_MAGIC, of_columns)

    cdef object _image(self, Room room, Py_ssize_t m, transform, double[::1] lengths):
        """Images of the rows of a tile in units of their lengths / ROW_UNITS, and squared norms.

        Exact integers: the transform times rint(ROW_UNITS τ / length).
        """
        cdef Py_ssize_t i, d = self.n_coordinates
        cdef double[::1] ones = np.ones(d)
        cdef dpcd_tile image
        self._rows_of_units(&room.bench, m, ROW_UNITS, &self._per_unit[0], &lengths[0])
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
        jacobian, scores : ndarrays of shape (n_coordinates, n_coordinates), int64 (or float64)
        """
        cdef Py_ssize_t i0 = 0, m, d = self.n_coordinates, since = 0
        cdef double[::1] lengths = np.empty(self._tile_rows), margins = np.empty(self._tile_rows)
        cdef const double[::1] w = np.ascontiguousarray(coef, dtype=np.float64)
        cdef Interrupts interrupts = Interrupts()
        cdef Room room = Room(self)
        dtype = np.int64 if units > 0 else np.float64
        parts = [np.zeros((d, d), order="F") for _ in range(2)]
        totals = [np.zeros((d, d), dtype=dtype) for _ in range(2)]
        exact = EXACT / (units + d + 1.0) ** 2 if units > 0 else np.inf
        while i0 < self.n:
            interrupts.look()
            m = self._read(&room.bench, i0, self.n, &self._per_square[0])
            margins[:] = w[self.p] if self.fit_intercept else 0.0
            KERNELS.rows_dot(&room.bench.tile, &w[0], False, 0, &margins[0])
            images = self._image(room, m, transform, lengths)
            y = np.asarray(<const double[:m]>(self.records.y + i0))
            norms = np.sqrt(np.asarray(<double[:m]>room.bench.norms))
            weights = (np.ones(m) if self.records.weights == NULL
                       else np.asarray(<const double[:m]>(self.records.weights + i0)))
            factors = _factors_of_moments(
                self.loss, np.asarray(margins)[:m], y, weights,
                np.asarray(lengths)[:m] * (unit / (ROW_UNITS * self._root_curvature)),
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
        return [_symmetric(total) for total in totals]


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
