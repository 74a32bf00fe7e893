"""The sums of ``_moving_sums`` over sparse records, in time that follows the entries touched.

(a) Few coordinates read their columns, and what belongs to the records in them; all coordinates
    read the rows, a slice at a time: twice, the second time from the cache. Threads share them.
(b) After a step of few coordinates only the records in their columns have new derivatives, in all
    outputs: sums of all coordinates are brought up to date through their rows, without drift,
    since sums are integers. Popular columns are a full pass instead.
(c) The integers are those of the dense kernels.
(d) What has the size of all coordinates is written by a full pass alone, once each.
"""

import numpy as np
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cython

from ...losses._loss cimport Loss
from ._kernels cimport DPCD_LANES, KERNELS, dpcd_paying_threads, dpcd_units
from ._moving_sums cimport SETTLED, MovingSums
from ._records cimport (
    DPCD_SLICE,
    Records,
    dpcd_add_column,
    dpcd_add_columns,
    dpcd_add_squares,
    dpcd_change_rows,
    dpcd_count,
    dpcd_dot_rows,
    dpcd_gather_at,
    dpcd_join_lanes,
    dpcd_sum_columns,
    dpcd_sum_rows,
    dpcd_touch,
)
from ._sums cimport Question, question_of

# Entries of the rows in the columns of a step, over all entries, up to which an update is cheaper
# than a pass.
cdef double CHEAP = 0.2
# Entries of columns, over the number of records, up to which their records are few.
cdef double FEW = 0.25
# Instead of the number of touched records.
cdef Py_ssize_t ALL = -1


@cython.final
cdef class SparseSums(MovingSums):
    """Sums over sparse records; the parameters are those of MovingSums."""

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        self._derivatives = np.empty(n_outputs * self.n)
        self._lanes = np.zeros(self.n * DPCD_LANES)  # zeros between any two uses
        # of a slice of records: targets, weights; margins, derivatives and norms of all outputs
        self._slice_size = (2 + 3 * n_outputs) * DPCD_SLICE
        self._room, self._scale = np.empty(self._slice_size), np.empty(self._size)
        self._inverses = 1 / np.asarray(self._smoothness)
        self._touched = np.empty(self.n + 1, dtype=np.intp)
        self._marks = np.zeros(self.n, dtype=np.int8)  # likewise
        self._distinct = np.empty(self.p if n_outputs > 1 else 0, dtype=np.intp)
        self._column_marks = np.zeros(len(self._distinct), dtype=np.int8)  # likewise

    cdef bint _sum(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t k, n_touched = ALL
        cdef bint clips = question.limit > 0, joint = question.joint and clips
        if joint and not self._has_norms():
            return False
        if question.block == NULL:
            return self._sum_all(question)
        if not self.records.holds(False) or not self._has_room(question.size, not clips, clips):
            return False
        # 1. the iterate
        if not self._settle():
            return False
        # 2. derivatives: of all records, or of the few that have an entry in the block
        self._split(question)
        if self._n_columns == question.size:
            n_touched = self._touch(self._part(question, 0), question.size)
        if joint:
            self._make_norms(question, n_touched)
            self._norms_known = False
        self._make_derivatives(question, n_touched)
        # 3. the sums
        self._sum_columns(question)
        for k in range(self.n_outputs):
            if self._has_ones(k):
                self._sum_ones(question, k)
        return True

    # ---- all coordinates, by rows ----

    cdef bint _sum_all(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t c, n_threads = 1
        cdef bint clips = question.limit > 0
        if not self.records.holds(True) or not self._has_room(self._size, True, clips):
            return False
        if self._has_step() and not self._moves_all():
            if not self._settle():
                return False
            self._state = SETTLED
        self._split(question)
        for c in range(self._size):
            self._totals[c] = 0.0
            if clips:
                self._scale[c] = question.limit / (question.clip * self.roots[c])
        if clips:  # plain sums are added in order
            n_threads = self._threads()
        if not self._add_in_threads(question, n_threads, self._size):
            return False
        if clips:
            self._norms_known = self._norms_known or question.joint
            self._round(self._size)
        return True

    cdef bint _moves_all(self) noexcept nogil:
        """Whether the step is one of all columns of all outputs."""
        return self._step_starts[self.n_outputs] == self.n_outputs * self.p

    cdef Py_ssize_t _threads(self) noexcept nogil:
        return dpcd_paying_threads(self.records.n_threads,
                                   self.n_outputs * self.records.n_entries)

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t[DPCD_SLICE] rows
        cdef Py_ssize_t k, n
        cdef double *room = <double *>malloc(self._slice_size * sizeof(double))
        cdef bint moves = self._has_step()
        while room != NULL and i < stop:
            n = min(<Py_ssize_t>DPCD_SLICE, stop - i)
            for k in range(n):
                rows[k] = i + k
            if moves:
                self._move_rows(n, rows)
            if question.size:
                self._sum_rows(question, n, rows, room, sums)
            i += n
        free(room)
        return room != NULL

    cdef void _move_rows(self, Py_ssize_t n, const Py_ssize_t *rows) noexcept nogil:
        """margins += X @ step, a step of all columns"""
        cdef Py_ssize_t i, k
        cdef double *margins
        for k in range(self.n_outputs):
            margins = &self._margins[0] + k * self.n + rows[0]
            dpcd_dot_rows(&self.records.rows, n, rows, &self._step[0] + k * self.p, False, margins)
            if self._intercept_steps[k] != 0.0:
                for i in range(n):
                    margins[i] += self._intercept_steps[k]

    cdef void _sum_rows(self, const Question *question, Py_ssize_t n, const Py_ssize_t *rows,
                        double *room, double *sums) noexcept nogil:
        cdef Py_ssize_t k, start
        cdef double *r = room + (2 + self.n_outputs) * n
        self._derive(n, rows, room, r)
        if question.joint and question.limit > 0:
            if not self._norms_known:
                self._make_norms_of_rows(question, n, rows)
            KERNELS.clip_norms(n, self.n_outputs, &self._norms[0] + rows[0],
                               self._norms_apart(question), question.clip, r)
        for k in range(self.n_outputs):
            start = k * self.n_coordinates
            memcpy(&self._derivatives[0] + k * self.n + rows[0], r + k * n, n * sizeof(double))
            dpcd_sum_rows(&self.records.rows, n, rows, r + k * n, &self._scale[0] + start,
                          question.limit, sums + start)
            if self.fit_intercept and question.limit > 0:
                sums[start + self.p] += KERNELS.clipped_sum_of_ones(
                    n, r + k * n, self._scale[start + self.p], question.limit)
            elif self.fit_intercept:
                sums[start + self.p] += KERNELS.plain_sum_of_ones(n, r + k * n)

    cdef void _make_norms_of_rows(self, const Question *question, Py_ssize_t n,
                                  const Py_ssize_t *rows) noexcept nogil:
        cdef Py_ssize_t i, k, start
        cdef double *norms
        for k in range(self.n_outputs if self._norms_apart(question) else 1):
            norms, start = &self._norms[0] + k * self.n + rows[0], k * self.n_coordinates
            for i in range(n):
                norms[i] = 0.0
            dpcd_dot_rows(&self.records.rows, n, rows, &self._inverses[0] + start, True, norms)
            if self.fit_intercept:
                for i in range(n):
                    norms[i] += self._inverses[start + self.p]

    # ---- columns of a block ----

    cdef void _sum_columns(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t k, start
        for k in range(self.n_outputs):
            start = self._starts[k]
            dpcd_sum_columns(
                &self.records.columns, self._widths[k], self._part(question, k),
                &self._derivatives[0] + k * self.n, &self.roots[0] + k * self.n_coordinates,
                question.clip, question.limit,
                NULL if question.limit > 0 else &self._totals[0] + start,
                &self._integers[0] + start if question.limit > 0 else NULL)

    cdef void _sum_ones(self, const Question *question, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t at = self._starts[k + 1] - 1
        cdef const double *r = &self._derivatives[0] + k * self.n
        cdef double root = self.roots[k * self.n_coordinates + self.p]
        if question.limit > 0:
            self._integers[at] = <int64_t>KERNELS.clipped_sum_of_ones(
                self.n, r, question.limit / (question.clip * root), question.limit)
        else:
            self._totals[at] = KERNELS.plain_sum_of_ones(self.n, r)

    # ---- columns and the records in them ----

    cdef const Py_ssize_t *_once(self, const Py_ssize_t *columns,
                                 Py_ssize_t *n_columns) noexcept nogil:
        """Columns of several outputs, each of them once."""
        cdef Py_ssize_t k, n = 0
        if self.n_outputs == 1:
            return columns
        for k in range(n_columns[0]):
            if not self._column_marks[columns[k]]:
                self._column_marks[columns[k]] = 1
                self._distinct[n] = columns[k]
                n += 1
        for k in range(n):
            self._column_marks[self._distinct[k]] = 0
        n_columns[0] = n
        return &self._distinct[0]

    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil:
        """Write the records of these columns to `_touched`, and how many; ALL unless they are few.
        """
        cdef Py_ssize_t few = <Py_ssize_t>(FEW * <double>self.n)
        columns = self._once(columns, &n_columns)
        if dpcd_count(&self.records.columns, n_columns, columns, few) > few:
            return ALL
        return dpcd_touch(&self.records.columns, n_columns, columns, &self._marks[0],
                          &self._touched[0])

    # ---- margins and derivatives ----

    cdef bint _settle(self) noexcept nogil:
        """margins += X @ step"""
        cdef Py_ssize_t i, k, n_columns = self._step_starts[self.n_outputs]
        cdef Question nothing = question_of(NULL, 0, False, 1.0, 1.0)
        if not self._has_step():
            return True
        if self._moves_all():
            return (self.records.holds(True) and self._has_room(1, True, False)
                    and self._add_in_threads(&nothing, self._threads(), 0))
        if not self.records.holds(False):
            return False
        self._move_margins_at(ALL if n_columns == 1 else self._touch(&self._step_columns[0],
                                                                     n_columns))
        for k in range(self.n_outputs):
            if self._intercept_steps[k] != 0.0:
                for i in range(self.n):
                    self._margins[k * self.n + i] += self._intercept_steps[k]
        return True

    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil:
        """The same at the touched records, which are all that the step's columns have."""
        cdef Py_ssize_t k, n_columns
        cdef const Py_ssize_t *columns
        cdef const double *step
        cdef double *margins
        for k in range(self.n_outputs):
            columns = &self._step_columns[0] + self._step_starts[k]
            step = &self._step[0] + self._step_starts[k]
            n_columns = self._step_starts[k + 1] - self._step_starts[k]
            margins = &self._margins[0] + k * self.n
            if n_columns == 1:
                dpcd_add_column(&self.records.columns, columns[0], step[0], margins)
            elif n_columns:
                dpcd_add_columns(&self.records.columns, n_columns, columns, step, &self._lanes[0])
                dpcd_join_lanes(self.n if n_touched == ALL else n_touched,
                                NULL if n_touched == ALL else &self._touched[0], &self._lanes[0],
                                margins)

    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *room,
                      double *out) noexcept nogil:
        """out[k * n + m] = weighted derivative of record where[m] in margin k; n <= DPCD_SLICE."""
        cdef Py_ssize_t k
        cdef double *targets = room
        cdef double *weights = targets + n
        cdef double *margins = weights + n
        for k in range(self.n_outputs):
            dpcd_gather_at(n, where, &self._margins[0] + k * self.n, margins + k * n)
        dpcd_gather_at(n, where, self.records.y, targets)
        if self.records.weights != NULL:
            dpcd_gather_at(n, where, self.records.weights, weights)
        self.loss.derivatives(n, self.n_outputs, margins, targets, out)
        for k in range(self.n_outputs):
            KERNELS.weigh(n, NULL if self.records.weights == NULL else weights, out + k * n)

    cdef void _make_derivatives(self, const Question *question,
                                Py_ssize_t n_touched) noexcept nogil:
        """Weighted and, where norms are clipped, clipped; of all records, or of the touched."""
        cdef Py_ssize_t K = self.n_outputs, k, q, at = 0, m
        cdef const Py_ssize_t *where
        cdef double *r = &self._room[0] + (2 + K) * DPCD_SLICE
        cdef double *norms = r + K * DPCD_SLICE
        cdef bint clips = question.joint and question.limit > 0
        if n_touched == ALL:
            r = &self._derivatives[0]
            self.loss.derivatives(self.n, K, &self._margins[0], self.records.y, r)
            for k in range(K):
                KERNELS.weigh(self.n, self.records.weights, r + k * self.n)
            if clips:
                KERNELS.clip_norms(self.n, K, &self._norms[0], self.n, question.clip, r)
            return
        while at < n_touched:
            m, where = min(<Py_ssize_t>DPCD_SLICE, n_touched - at), &self._touched[0] + at
            self._derive(m, where, &self._room[0], r)
            if clips:
                for k in range(K):
                    dpcd_gather_at(m, where, &self._norms[0] + k * self.n, norms + k * m)
                KERNELS.clip_norms(m, K, norms, m, question.clip, r)
            for k in range(K):
                for q in range(m):
                    self._derivatives[k * self.n + where[q]] = r[k * m + q]
            at += m

    cdef void _make_norms(self, const Question *question, Py_ssize_t n_touched) noexcept nogil:
        """Squared norms of blocks in the geometry of M^(-1/2)."""
        cdef Py_ssize_t i, k, q, m = self.n if n_touched == ALL else n_touched
        cdef const Py_ssize_t *where = NULL if n_touched == ALL else &self._touched[0]
        cdef const double *smoothness
        cdef double *norms
        for k in range(self.n_outputs):
            norms = &self._norms[0] + k * self.n
            smoothness = &self._smoothness[0] + k * self.n_coordinates
            for q in range(m):
                norms[q if where == NULL else where[q]] = 0.0
            dpcd_add_squares(&self.records.columns, self._widths[k], self._part(question, k),
                             smoothness, &self._lanes[0])
            dpcd_join_lanes(m, where, &self._lanes[0], norms)
            if self._has_ones(k):
                for i in range(self.n):
                    norms[i] += 1 / smoothness[self.p]

    # ---- greedy updates ----

    cdef bint _refresh(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t at = 0, n_touched, k, m, start
        cdef Py_ssize_t n_columns = self._step_starts[self.n_outputs]
        cdef Py_ssize_t most = <Py_ssize_t>(CHEAP * <double>self.records.n_entries)
        cdef const Py_ssize_t *columns = self._once(&self._step_columns[0], &n_columns)
        cdef const Py_ssize_t *where
        cdef double *now = &self._room[0] + (2 + self.n_outputs) * DPCD_SLICE
        if question.limit == 0 or self._moves_intercepts() or not self.records.holds(False):
            return False
        if dpcd_count(&self.records.columns, n_columns, columns, most) > most:
            return False
        n_touched = dpcd_touch(&self.records.columns, n_columns, columns, &self._marks[0],
                               &self._touched[0])
        if dpcd_count(&self.records.rows, n_touched, &self._touched[0], most) > most:
            return False
        self._move_margins_at(n_touched)
        while at < n_touched:
            m, where = min(<Py_ssize_t>DPCD_SLICE, n_touched - at), &self._touched[0] + at
            self._derive(m, where, &self._room[0], now)
            if self.fit_intercept:
                self._change_ones(question, m, where, now)
            for k in range(self.n_outputs):
                start = k * self.n_coordinates
                dpcd_change_rows(&self.records.rows, m, where, now + k * m,
                                 &self._scale[0] + start, question.limit,
                                 &self._derivatives[0] + k * self.n, &self._integers[0] + start)
            at += m
        return True

    cdef void _change_ones(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                           const double *now) noexcept nogil:
        """The intercepts' sums follow the derivatives of these records, which become `now`."""
        cdef Py_ssize_t k, m, at
        cdef double unit, before, after
        for k in range(self.n_outputs):
            at = k * self.n_coordinates + self.p
            unit = question.limit / (question.clip * self.roots[at])
            for m in range(n):
                before, after = self._derivatives[k * self.n + where[m]], now[k * n + m]
                self._integers[at] += <int64_t>(dpcd_units(after * unit, question.limit)
                                                - dpcd_units(before * unit, question.limit))
