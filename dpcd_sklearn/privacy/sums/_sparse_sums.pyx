"""The sums of ``_moving_sums`` over sparse records, in time that follows the entries touched.

(a) Few coordinates read their columns, and what belongs to the records in them; all coordinates
    read every entry once.
(b) After a step of few coordinates only the records in their columns have new derivatives: sums of
    all coordinates are brought up to date through their rows, without drift, since sums are
    integers. Popular columns are a full pass instead.
(c) The integers are those of the dense kernels.
(d) What has the size of all coordinates is written by a full pass alone, once each.
"""

import numpy as np
from libc.stdint cimport int64_t

from ...losses._base cimport Loss
from ._kernels cimport DPCD_LANES, KERNELS, dpcd_units
from ._moving_sums cimport MovingSums
from ._records cimport (
    DPCD_SLICE,
    Records,
    dpcd_add_column,
    dpcd_add_columns,
    dpcd_add_squares,
    dpcd_change_rows,
    dpcd_count,
    dpcd_gather_at,
    dpcd_join_lanes,
    dpcd_sum_columns,
    dpcd_touch,
)
from ._sums cimport Question

# Entries of the rows in the columns of a step, over all entries, up to which an update is cheaper
# than a pass.
cdef double CHEAP = 0.2
# Entries of columns, over the number of records, up to which their records are few.
cdef double FEW = 0.25
# Instead of the number of touched records.
cdef Py_ssize_t ALL = -1


cdef class SparseSums(MovingSums):
    """Sums over sparse records; the parameters are those of MovingSums."""

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept):
        super().__init__(records, loss, smoothness, fit_intercept)
        self._derivatives = np.empty(self.n)
        self._lanes = np.zeros(self.n * DPCD_LANES)  # zeros between any two uses
        self._gathered = np.empty(4 * DPCD_SLICE)
        self._touched = np.empty(self.n + 1, dtype=np.intp)
        self._marks = np.zeros(self.n, dtype=np.int8)  # likewise

    cdef bint _sum(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t size = question.size, n_columns = size, n_touched = ALL
        cdef const Py_ssize_t *block = question.block
        cdef bint all_columns = block == NULL, clips = question.limit > 0
        cdef double *r = &self._derivatives[0]
        if question.joint and clips and not self._has_norms():
            return False
        if not self._has_room(size, not clips, clips):
            return False
        # 1. the iterate
        self._settle()
        if (size - 1 if all_columns else block[size - 1]) == self.p:
            n_columns -= 1
        # 2. derivatives: of all records, or of the few that have an entry in the block
        if n_columns == size and not all_columns:
            n_touched = self._touch(block, size)
        self._make_derivatives(n_touched)
        if question.joint and clips:
            if not (all_columns and self._norms_known):
                self._make_norms(block, size, n_columns, n_touched)
                self._norms_known = all_columns
            self._clip(question.clip, n_touched)
        # 3. the sums
        dpcd_sum_columns(&self.records.columns, n_columns, block, r, &self.roots[0], question.clip,
                         question.limit, NULL if clips else &self._totals[0],
                         &self._integers[0] if clips else NULL)
        if n_columns == size:
            return True
        if clips:
            self._integers[n_columns] = <int64_t>KERNELS.clipped_sum_of_ones(
                self.n, r, question.limit / (question.clip * self.roots[self.p]), question.limit)
        else:
            self._totals[n_columns] = KERNELS.plain_sum_of_ones(self.n, r)
        return True

    # ---- margins and derivatives ----

    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil:
        """Write the records of these columns to `_touched`, and how many; ALL unless they are few.
        """
        cdef Py_ssize_t few = <Py_ssize_t>(FEW * <double>self.n)
        if dpcd_count(&self.records.columns, n_columns, columns, few) > few:
            return ALL
        return dpcd_touch(&self.records.columns, n_columns, columns, &self._marks[0],
                          &self._touched[0])

    cdef bint _settle(self) noexcept nogil:
        """margins += X @ step"""
        cdef Py_ssize_t i
        if not self._has_step():
            return True
        self._move_margins_at(ALL if self._n_step_columns == 1 else self._touch(
            &self._step_columns[0], self._n_step_columns))
        if self._intercept_step != 0.0:
            for i in range(self.n):
                self._margins[i] += self._intercept_step
        return True

    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil:
        """The same at the touched records, which are all that the step's columns have."""
        if self._n_step_columns == 1:
            dpcd_add_column(&self.records.columns, self._step_columns[0], self._step[0],
                            &self._margins[0])
        elif self._n_step_columns:
            dpcd_add_columns(&self.records.columns, self._n_step_columns, &self._step_columns[0],
                             &self._step[0], &self._lanes[0])
            dpcd_join_lanes(self.n if n_touched == ALL else n_touched,
                            NULL if n_touched == ALL else &self._touched[0], &self._lanes[0],
                            &self._margins[0])

    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *out) noexcept nogil:
        """out[k] = weighted derivative of record where[k] at its margin; n <= DPCD_SLICE."""
        cdef double *margins = &self._gathered[0]
        cdef double *targets = margins + DPCD_SLICE
        cdef double *weights = targets + DPCD_SLICE
        dpcd_gather_at(n, where, &self._margins[0], margins)
        dpcd_gather_at(n, where, self.records.y, targets)
        if self.records.weights != NULL:
            dpcd_gather_at(n, where, self.records.weights, weights)
        self.loss.derivative(n, margins, targets, out)
        KERNELS.weigh(n, NULL if self.records.weights == NULL else weights, out)

    cdef void _make_derivatives(self, Py_ssize_t n_touched) noexcept nogil:
        cdef Py_ssize_t k, at = 0, m
        cdef double *r = &self._gathered[3 * DPCD_SLICE]
        if n_touched == ALL:
            self.loss.derivative(self.n, &self._margins[0], self.records.y, &self._derivatives[0])
            KERNELS.weigh(self.n, self.records.weights, &self._derivatives[0])
            return
        while at < n_touched:
            m = min(<Py_ssize_t>DPCD_SLICE, n_touched - at)
            self._derive(m, &self._touched[at], r)
            for k in range(m):
                self._derivatives[self._touched[at + k]] = r[k]
            at += m

    # ---- norms of the records' blocks ----

    cdef void _make_norms(self, const Py_ssize_t *block, Py_ssize_t size, Py_ssize_t n_columns,
                          Py_ssize_t n_touched) noexcept nogil:
        """Squared norms in the geometry of M^(-1/2); `_norms_known` when of all columns."""
        cdef Py_ssize_t k, m = self.n if n_touched == ALL else n_touched
        cdef const Py_ssize_t *where = NULL if n_touched == ALL else &self._touched[0]
        for k in range(m):
            self._norms[k if where == NULL else where[k]] = 0.0
        dpcd_add_squares(&self.records.columns, n_columns, block, &self._smoothness[0],
                         &self._lanes[0])
        dpcd_join_lanes(m, where, &self._lanes[0], &self._norms[0])
        if n_columns < size:
            for k in range(self.n):
                self._norms[k] += 1 / self._smoothness[self.p]

    cdef void _clip(self, double clip, Py_ssize_t n_touched) noexcept nogil:
        cdef Py_ssize_t k, i
        if n_touched == ALL:
            KERNELS.clip_norms(self.n, &self._norms[0], clip, &self._derivatives[0])
            return
        for k in range(n_touched):
            i = self._touched[k]
            KERNELS.clip_norms(1, &self._norms[i], clip, &self._derivatives[i])

    # ---- greedy updates ----

    cdef bint _refresh(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t at = 0, n_touched, k, m
        cdef Py_ssize_t most = <Py_ssize_t>(CHEAP * <double>self.records.n_entries)
        cdef double clip = question.clip, limit = question.limit, unit, before, after
        cdef double *now = &self._gathered[3 * DPCD_SLICE]
        if limit == 0 or self.records.rows.indptr == NULL or self._intercept_step != 0.0:
            return False
        if dpcd_count(&self.records.columns, self._n_step_columns, &self._step_columns[0],
                      most) > most:
            return False
        n_touched = dpcd_touch(&self.records.columns, self._n_step_columns,
                               &self._step_columns[0], &self._marks[0], &self._touched[0])
        if dpcd_count(&self.records.rows, n_touched, &self._touched[0], most) > most:
            return False
        self._move_margins_at(n_touched)
        while at < n_touched:
            m = min(<Py_ssize_t>DPCD_SLICE, n_touched - at)
            self._derive(m, &self._touched[at], now)
            if self.fit_intercept:
                unit = limit / (clip * self.roots[self.p])
                for k in range(m):
                    before, after = self._derivatives[self._touched[at + k]], now[k]
                    self._integers[self.p] += <int64_t>(dpcd_units(after * unit, limit)
                                                        - dpcd_units(before * unit, limit))
            dpcd_change_rows(&self.records.rows, m, &self._touched[at], now, &self.roots[0], clip,
                             limit, &self._derivatives[0], &self._integers[0])
            at += m
        return True
