"""The sums of ``_coordinate_sums`` over sparse records, in time that follows the entries touched.

(a) One coordinate reads its column; all of them read every entry once.
(b) After a step of one coordinate only the records in its column have new derivatives: sums of all
    coordinates are brought up to date through their rows, without drift, since sums are integers.
    A popular column is a full pass instead.
(c) The integers are those of the dense kernels.
"""

import numpy as np

from ..losses._base cimport Loss
from ._coordinate_sums cimport CoordinateSums
from ._kernels cimport DPCD_LANES, KERNELS, dpcd_units
from ._records cimport (
    DPCD_SLICE,
    Records,
    dpcd_gather_at,
    dpcd_join_lanes,
    dpcd_line_start,
    dpcd_scatter_lane,
    dpcd_slice,
    dpcd_slice_change,
    dpcd_slice_sum,
    dpcd_sparse,
)

# Entries of the rows in a column, over all entries, up to which an update is cheaper than a pass.
cdef double CHEAP = 0.2


cdef CoordinateSums coordinate_sums(Records records, Loss loss, smoothness,
                                    double coordinate_clip, bint fit_intercept, bint exact):
    """The sums that suit the records."""
    kind = SparseSums if records.is_sparse else CoordinateSums
    return kind(records, loss, smoothness, coordinate_clip, fit_intercept, exact)


cdef class SparseSums(CoordinateSums):
    """Sums over sparse records; the parameters are those of CoordinateSums."""

    def __init__(self, Records records, Loss loss, smoothness, double coordinate_clip,
                 bint fit_intercept, bint exact):
        super().__init__(records, loss, smoothness, coordinate_clip, fit_intercept, exact)
        self._derivatives = np.empty(self.n)
        self._lanes = np.zeros(self.n * DPCD_LANES)
        self._values, self._gathered = np.empty(DPCD_SLICE), np.empty(4 * DPCD_SLICE)
        self._where = np.empty(DPCD_SLICE, dtype=np.intp)

    # ---- margins and derivatives ----

    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *out) noexcept nogil:
        """out[i] = weighted derivative of record where[i] at its margin; n <= DPCD_SLICE."""
        cdef double *margins = &self._gathered[0]
        cdef double *targets = margins + DPCD_SLICE
        cdef double *weights = targets + DPCD_SLICE
        dpcd_gather_at(n, where, &self._margins[0], margins)
        dpcd_gather_at(n, where, self.records.y, targets)
        if self.records.weights != NULL:
            dpcd_gather_at(n, where, self.records.weights, weights)
        self.loss.derivative(n, margins, targets, out)
        KERNELS.weigh(n, NULL if self.records.weights == NULL else weights, out)

    cdef void _all_derivatives(self) noexcept nogil:
        self.loss.derivative(self.n, &self._margins[0], self.records.y, &self._derivatives[0])
        KERNELS.weigh(self.n, self.records.weights, &self._derivatives[0])

    cdef void _add_line(self, Py_ssize_t j, double a, int square, Py_ssize_t lane) noexcept nogil:
        """lanes[i, lane] += a f(X[i, j]) for the entries of a column."""
        cdef dpcd_sparse *columns = &self.records.columns
        cdef Py_ssize_t at = dpcd_line_start(columns, j), end = dpcd_line_start(columns, j + 1), n
        while at < end:
            n = min(<Py_ssize_t>DPCD_SLICE, end - at)
            dpcd_slice(columns, j, at, n, &self._where[0], &self._values[0])
            dpcd_scatter_lane(n, &self._where[0], &self._values[0], a, square, lane,
                              &self._lanes[0])
            at += n

    cdef void _move_all_margins(self) noexcept nogil:
        """margins += X @ step"""
        cdef Py_ssize_t i, k, j, at, end, n
        cdef dpcd_sparse *columns = &self.records.columns
        if not self.has_step:
            return
        if self._n_step_columns == 1:  # one column: nothing to join
            j = self._step_columns[0]
            at, end = dpcd_line_start(columns, j), dpcd_line_start(columns, j + 1)
            while at < end:
                n = min(<Py_ssize_t>DPCD_SLICE, end - at)
                dpcd_slice(columns, j, at, n, &self._where[0], &self._values[0])
                for i in range(n):
                    self._margins[self._where[i]] += self._step[0] * self._values[i]
                at += n
        elif self._n_step_columns:
            for k in range(self._n_step_columns):
                if self._step[k] != 0.0:
                    self._add_line(self._step_columns[k], self._step[k], 0, k % DPCD_LANES)
            dpcd_join_lanes(self.n, &self._lanes[0], &self._margins[0])
        if self._intercept_step != 0.0:
            for i in range(self.n):
                self._margins[i] += self._intercept_step

    # ---- sums ----

    cdef bint _pass(self, bint all_columns, double limit, double joint_clip) noexcept nogil:
        cdef Py_ssize_t k, i
        cdef double units = 0.0 if self.exact else limit
        cdef bint clips = joint_clip > 0 and not self.exact
        # one column needs the derivatives of its own records only
        cdef bint derived = self._n_columns > 1 or self._intercept_at >= 0 or clips
        self._move_all_margins()
        self._kept = False
        if derived:
            self._all_derivatives()
        if clips:
            if not (all_columns and self._norms_known):
                for i in range(self.n):
                    self._norms[i] = 0.0
                for k in range(self._n_columns):
                    self._add_line(self._columns[k], self._block_inverses[k], 1, k % DPCD_LANES)
                dpcd_join_lanes(self.n, &self._lanes[0], &self._norms[0])
                if self._intercept_at >= 0:
                    for i in range(self.n):
                        self._norms[i] += self._block_inverses[self._intercept_at]
                self._norms_known = False  # of a block: `sum` says when they are of all columns
            KERNELS.clip_norms(self.n, &self._norms[0], joint_clip, &self._derivatives[0])
        for k in range(self._n_columns):
            self.sums[k] += self._column_sum(self._columns[k], self._scale[k], units, derived)
        if self._intercept_at >= 0:
            if self.exact:
                self.sums[self._intercept_at] += KERNELS.plain_sum_of_ones(
                    self.n, &self._derivatives[0])
            else:
                self.sums[self._intercept_at] += KERNELS.clipped_sum_of_ones(
                    self.n, &self._derivatives[0], self._scale[self._intercept_at], limit)
        self._kept = all_columns and derived and not clips and not self.exact
        self._kept_limit = limit
        return True

    cdef double _column_sum(self, Py_ssize_t j, double scale, double limit,
                            bint derived) noexcept nogil:
        cdef dpcd_sparse *columns = &self.records.columns
        cdef Py_ssize_t at = dpcd_line_start(columns, j), end = dpcd_line_start(columns, j + 1), n
        cdef double total = 0.0
        cdef double *r = &self._gathered[3 * DPCD_SLICE]
        while at < end:
            n = min(<Py_ssize_t>DPCD_SLICE, end - at)
            dpcd_slice(columns, j, at, n, &self._where[0], &self._values[0])
            if derived:
                dpcd_gather_at(n, &self._where[0], &self._derivatives[0], r)
            else:
                self._derive(n, &self._where[0], r)
            total += dpcd_slice_sum(n, r, &self._values[0], scale, limit)
            at += n
        return total

    # ---- greedy updates ----

    cdef bint _is_cheap(self, Py_ssize_t j) noexcept nogil:
        cdef dpcd_sparse *columns = &self.records.columns
        cdef dpcd_sparse *rows = &self.records.rows
        cdef Py_ssize_t at = dpcd_line_start(columns, j), end = dpcd_line_start(columns, j + 1)
        cdef Py_ssize_t n, k, i, cost = 0
        cdef double most = CHEAP * <double>self.records.n_entries
        while at < end and cost <= most:
            n = min(<Py_ssize_t>DPCD_SLICE, end - at)
            dpcd_slice(columns, j, at, n, &self._where[0], &self._values[0])
            for k in range(n):
                i = self._where[k]
                cost += dpcd_line_start(rows, i + 1) - dpcd_line_start(rows, i)
            at += n
        return cost <= most

    cdef bint _refresh(self, double limit) noexcept nogil:
        cdef dpcd_sparse *columns = &self.records.columns
        cdef dpcd_sparse *rows = &self.records.rows
        cdef Py_ssize_t j = self._step_columns[0], at, end, n, k, i, first, last, m
        cdef Py_ssize_t records[256]
        cdef double derivatives[256]
        cdef double r, s
        if not self._kept or self._kept_limit != limit or rows.indptr == NULL:
            return False
        if not self.has_step:
            return True
        if self._n_step_columns != 1 or self._intercept_step != 0.0 or not self._is_cheap(j):
            return False
        self._move_all_margins()
        at, end = dpcd_line_start(columns, j), dpcd_line_start(columns, j + 1)
        while at < end:
            n = min(<Py_ssize_t>256, end - at)
            dpcd_slice(columns, j, at, n, &self._where[0], &self._values[0])
            for k in range(n):
                records[k] = self._where[k]
            self._derive(n, records, derivatives)
            for k in range(n):
                i = records[k]
                r, s = self._derivatives[i], derivatives[k]
                self._derivatives[i] = s
                first, last = dpcd_line_start(rows, i), dpcd_line_start(rows, i + 1)
                while first < last:
                    m = min(<Py_ssize_t>DPCD_SLICE, last - first)
                    dpcd_slice(rows, i, first, m, &self._where[0], &self._values[0])
                    dpcd_slice_change(m, &self._where[0], &self._values[0], r, s,
                                      &self._scale[0], limit, &self.sums[0])
                    first += m
                if self._fit_intercept:
                    self.sums[self.p] += (dpcd_units(s * self._scale[self.p], limit)
                                          - dpcd_units(r * self._scale[self.p], limit))
            at += n
        self.has_step = False
        return True
