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
from libc.stdint cimport int32_t, int64_t
from scipy.linalg.blas import dsyrk, dtrmm

from ...losses._loss cimport Loss
from ...utils._interrupts cimport Interrupts
from ._integer_rows import ROW_UNITS, rows_at_once
from ._kernels cimport KERNELS, dpcd_pairs_apart, dpcd_rows_ahead, dpcd_tile, dpcd_tile_of
from ._records cimport Records

# More than the rounding of a computed norm, of up to 4,000 entries.
cdef double SHORTER = 1 - 2.0**-30
cdef double LONGER = 1 + 2.0**-29
# Adding it rounds to an integer; as in the kernels.
cdef double MAGIC = 6755399441055744.0
cdef double EXACT = 2.0**53
# Rows of a tile: what the second cache holds, but no crumbs; columns that lie pages apart would
# fall into the same few lines of a cache.
cdef Py_ssize_t TILE_CELLS = 2**14, LEAST_ROWS = 128, MOST_ROWS = 4096 - 8
# The norm of a shorter row is taken to be this: its square may underflow.
cdef double SHORTEST = 1e-140
# A weight below it leaves as much room as this one.
cdef double LIGHTEST = 1e-30


def _symmetric(upper):
    return np.triu(upper) + np.triu(upper, 1).T


cdef class CurvatureSums(GradientSums):
    """Second moments of rows, and of their images.

    Parameters
    ----------
    records : Records
    X : ndarray or CSR matrix
        The same records; sparse ones become dense a tile at a time.
    bounds : tuple (lo, hi, center) or None
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j; a column's unit is sqrt(M_j / curvature of the loss).
    fit_intercept : bool
    n_outputs : int, default=1
        Margins of a record, of gradients alone: rows are the same in all outputs.
    """

    def __init__(self, Records records, X, bounds, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        self._sparse, self._bounds = (X if records.is_sparse else None), bounds
        self._per_square = loss.curvature / np.asarray(smoothness, dtype=np.float64)
        self._per_unit = np.sqrt(self._per_square)
        self._one = self._per_unit[self.p] if fit_intercept else 0.0
        self._root_curvature = sqrt(loss.curvature)
        self._tile_rows = max(LEAST_ROWS, min(TILE_CELLS // self.n_coordinates, MOST_ROWS))
        self._tile_rows -= self._tile_rows % 8
        self._norms, self._factors, self._of_ones, self._parts = np.empty((4, self._tile_rows))

    # ---- rows ----

    cdef Py_ssize_t _read(self, Py_ssize_t i0, const double *squares) except -1:
        """Read a tile, and the squared norms of its features; returns the number of its rows.

        `squares`: what the square of a column counts in them.
        """
        cdef Py_ssize_t i, m = min(self._tile_rows, self.n - i0)
        if self._sparse is None:
            KERNELS.load(&self.records.X, i0, NULL, m, NULL, self.p, NULL, &self._tile)
        else:
            cells = self._sparse[i0:i0 + m].toarray().astype(np.float64, copy=False)
            if self._bounds is not None:
                cells = np.clip(cells, self._bounds[0], self._bounds[1])
            self._cells = np.ascontiguousarray(cells)
            self._tile = dpcd_tile_of(&self._cells[0, 0], self.p, m, self.p, True)
        for i in range(m):
            self._norms[i] = 0.0
        self._ahead = dpcd_rows_ahead(m, self.n - i0 - m)
        KERNELS.rows_dot(&self._tile, squares, True, self._ahead, &self._norms[0])
        return m

    cdef void _fill(self, Py_ssize_t m, double magic, const double *of_columns,
                    double[:, ::1] out) noexcept nogil:
        """Rows in the units of their columns times factors; integers unless `magic` is zero."""
        cdef Py_ssize_t i
        KERNELS.scaled_rows(&self._tile, of_columns, &self._factors[0], magic, self._ahead,
                            &out[0, 0], out.shape[1])
        if self.fit_intercept:
            for i in range(m):
                out[i, self.p] = (self._of_ones[i] * of_columns[self.p] + magic) - magic

    # ---- second moments ----

    def gram(self, double row_norm, double units):
        """Σ q qᵀ, q = rint(units τ / row_norm) and |τ| at most `row_norm`; with 0 units plain sums.

        A weight multiplies a row by its root. Features are scaled down to what the intercept's
        constant leaves of the norm, of light rows to as much more, and heavy ones as a whole.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates), int64 (float64 for plain sums)
        """
        cdef Py_ssize_t i0 = 0, i, m, n_groups, size, d = self.n_coordinates
        cdef Py_ssize_t apart = dpcd_pairs_apart(d)
        cdef Interrupts interrupts = Interrupts()
        if units == 0:
            return self._plain_gram(row_norm)
        cdef Py_ssize_t at_once = rows_at_once(units, d)
        self._check_norm(row_norm)
        cdef double[:, ::1] q = np.zeros((self._tile_rows, apart))
        cdef int32_t[:, ::1] room = np.empty(((self._tile_rows + 1) // 2, apart), dtype=np.int32)
        cdef int64_t[:, ::1] total = np.zeros((apart, apart), dtype=np.int64)
        while i0 < self.n:
            interrupts.look()
            m = self._read(i0, &self._per_square[0])
            n_groups = (m + at_once - 1) // at_once
            size = (m + n_groups - 1) // n_groups
            with nogil:
                self._clip_rows(i0, m, row_norm, units)
                self._fill(m, MAGIC, &self._per_unit[0], q)
                for i in range(n_groups):
                    if i * size < m:
                        KERNELS.add_products(&q[i * size, 0], min(size, m - i * size), d, apart,
                                             &room[0, 0], &total[0, 0])
            i0 += m
        return _symmetric(np.asarray(total)[:d, :d])

    def _plain_gram(self, double row_norm):
        """Σ τ τᵀ, weighted, in floating point: for fits without noise."""
        cdef Py_ssize_t i0 = 0, m, d = self.n_coordinates
        cdef Interrupts interrupts = Interrupts()
        rows, total = np.empty((self._tile_rows, d)), np.zeros((d, d), order="F")
        cdef double[:, ::1] q = rows
        while i0 < self.n:
            interrupts.look()
            m = self._read(i0, &self._per_square[0])
            with nogil:
                self._clip_rows(i0, m, row_norm, 0.0)
                self._fill(m, 0.0, &self._per_unit[0], q)
            total = dsyrk(1.0, rows[:m].T, beta=1.0, c=total, overwrite_c=1)
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
        cdef Py_ssize_t i, j, i0 = 0, m, d = self.n_coordinates
        cdef Interrupts interrupts = Interrupts()
        cdef double[:, ::1] q = np.empty((self._tile_rows, d))
        cdef double[::1] part = np.empty(d + 1)
        cdef int64_t[::1] total = np.zeros(d + 1, dtype=np.int64)
        cdef double length, most = units_of_squares * SHORTER
        self._check_norm(row_norm)
        while i0 < self.n:
            interrupts.look()
            m = self._read(i0, &self._per_square[0])
            with nogil:
                part[:] = 0.0
                self._clip_rows(i0, m, row_norm, units)
                if self.records.weights != NULL:
                    self._weigh_rows(i0, m, row_norm, units)
                self._fill(m, MAGIC, &self._per_unit[0], q)
                for i in range(m):
                    for j in range(d):
                        part[j] += q[i, j]
                    length = most * self._parts[i]
                    part[d] += (length * length + MAGIC) - MAGIC
                for j in range(d + 1):
                    total[j] += <int64_t>part[j]
            i0 += m
        return np.asarray(total)

    cdef int _check_norm(self, double row_norm) except -1:
        """Features are cut to what the constant leaves of a norm: it has to leave something."""
        if not row_norm >= self._one:
            raise ValueError(f"rows have a constant of length {self._one:.6g}, which is not cut to "
                             f"the norm {row_norm:.6g}")
        return 0

    cdef void _clip_rows(self, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                         double units) noexcept nogil:
        """Factors of features and of the constant, for rows within `row_norm`.

        And how long the features are then, over that norm. Without branches, four rows at a time.
        """
        cdef double whole = units / row_norm * SHORTER, one = self._one * self._one
        cdef double norm, longest, room, light, of_features, of_row, weight
        cdef double *roots = &self._of_ones[0]
        cdef double *factors = &self._factors[0]
        cdef double *parts = &self._parts[0]
        cdef const double *norms = &self._norms[0]
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

    cdef void _weigh_rows(self, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                          double units) noexcept nogil:
        """Factors for rows times their weights, or as much of these as keeps them in their norm.

        So much of a weight goes to the root of the features' length, too.
        """
        cdef double whole = units / row_norm * SHORTER, one = self._one / row_norm
        cdef double root, length, most, weight
        cdef Py_ssize_t i
        for i in range(m):
            root = self._of_ones[i] / whole
            length = self._parts[i] / root if root > 0.0 else 0.0
            most = sqrt(length * length + one * one)
            most = SHORTER / (most if most > SHORTEST else SHORTEST)
            weight = self.records.weights[i0 + i] if root > 0.0 else 0.0
            weight = weight if weight < most else most
            length = sqrt(weight) * length
            self._parts[i] = length if length < 1.0 else 1.0
            self._factors[i] *= weight / root if root > 0.0 else 0.0
            self._of_ones[i] = weight * whole

    # ---- images in a geometry ----

    cdef void _rows_of_units(self, Py_ssize_t m, double units, const double *of_columns,
                             double[::1] lengths, double[:, ::1] out) noexcept nogil:
        """The rows of a tile as integers, whose norm is `units` but for the rounding.

        `of_columns`: what a column counts, the constant's last, as `_norms` have it.
        """
        cdef Py_ssize_t i
        cdef double norm, one = of_columns[self.p] if self.fit_intercept else 0.0
        for i in range(m):
            norm = sqrt(self._norms[i] + one * one) * LONGER
            norm = norm if norm >= 0.0 else INFINITY  # NaN
            lengths[i] = norm if norm > SHORTEST else SHORTEST
        for i in range(m):
            self._factors[i] = units / lengths[i]  # 0 where it is infinite
            self._of_ones[i] = self._factors[i]
        self._fill(m, MAGIC, of_columns, out)

    cdef object _image(self, Py_ssize_t m, transform, rows, double[::1] lengths):
        """Images of the rows of a tile in units of their lengths / ROW_UNITS, and squared norms.

        Exact integers: the transform times rint(ROW_UNITS τ / length).
        """
        cdef Py_ssize_t i, d = self.n_coordinates
        cdef double[::1] ones = np.ones(d)
        cdef dpcd_tile image
        self._rows_of_units(m, ROW_UNITS, &self._per_unit[0], lengths, rows)
        moved = dtrmm(1.0, transform, rows[:m].T, lower=1, overwrite_b=1)
        image = dpcd_tile_of(<const double *><size_t>moved.ctypes.data, d, m, d, True)
        for i in range(m):
            self._norms[i] = 0.0
        KERNELS.rows_dot(&image, &ones[0], True, 0, &self._norms[0])
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
        rows = np.empty((self._tile_rows, d))
        dtype = np.int64 if units > 0 else np.float64
        parts = [np.zeros((d, d), order="F") for _ in range(2)]
        totals = [np.zeros((d, d), dtype=dtype) for _ in range(2)]
        exact = EXACT / (units + d + 1.0) ** 2 if units > 0 else np.inf
        while i0 < self.n:
            interrupts.look()
            m = self._read(i0, &self._per_square[0])
            margins[:] = w[self.p] if self.fit_intercept else 0.0
            KERNELS.rows_dot(&self._tile, &w[0], False, 0, &margins[0])
            images = self._image(m, transform, rows, lengths)
            y = np.asarray(<const double[:m]>(self.records.y + i0))
            weights = (np.ones(m) if self.records.weights == NULL
                       else np.asarray(<const double[:m]>(self.records.weights + i0)))
            factors = _factors_of_moments(
                self.loss, np.asarray(margins)[:m], y, weights,
                np.asarray(lengths)[:m] * (unit / (ROW_UNITS * self._root_curvature)),
                np.sqrt(np.asarray(self._norms)[:m]), clip, row_norm, score_norm, units)
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
