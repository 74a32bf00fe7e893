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
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cimport cython

from ...losses._loss cimport Loss
from ._kernels cimport DPCD_LANES, KERNELS, dpcd_paying_threads, dpcd_units
from ._moving_sums cimport SETTLED, MovingSums
from ._records cimport (
    DPCD_SLICE,
    Records,
    dpcd_add_column,
    dpcd_add_columns,
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
# Columns from which sums of all of them read columns, where there are fewer records: what has their
# size leaves the cache.
cdef Py_ssize_t WIDE = 2**18
# Instead of the number of touched records.
cdef Py_ssize_t ALL = -1


@cython.final
cdef class SparseSums(MovingSums):
    """Sums over sparse records; the parameters are those of MovingSums."""

    cdef double[::1] _derivatives, _lanes, _room, _scale, _inverses
    cdef Py_ssize_t[::1] _touched
    cdef char[::1] _marks
    cdef Py_ssize_t _slice_size
    cdef bint _reads_rows

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        self._derivatives = np.empty(n_outputs * self.n)
        self._lanes = np.zeros(self.n * DPCD_LANES)  # zeros between any two uses
        # of a slice of records: targets, weights; margins, norms and derivatives of all outputs
        self._slice_size = (2 + 3 * n_outputs) * DPCD_SLICE
        self._room, self._scale = np.empty(self._slice_size), np.empty(self._size)
        self._inverses = np.empty(0)  # of the smoothness, when norms of rows need them
        self._reads_rows = self.p <= max(self.n, WIDE)
        self._touched = np.empty(self.n + 1, dtype=np.intp)
        self._marks = np.zeros(self.n, dtype=np.int8)  # likewise

    cdef bint _sum(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t c, k
        cdef double root
        cdef bint clips = question.limit > 0
        cdef bint full = question.block == NULL and self._reads_rows
        if self._has_step() and not (full and self._moves_all()):
            if not self._settle():
                return False
            self._state = SETTLED
        if question.joint and clips and full and not self._has_inverses():
            return False
        self._split(question)
        if self._n_columns and not self.records.holds(full):  # the intercept alone reads neither
            return False
        for c in range(self._size if question.block == NULL else 0):
            self._scale[c] = question.limit / (question.clip * self.roots[c])
        if not (self._sum_all(question) if full else self._sum_columns(question)):
            return False
        if question.joint and clips:
            self._norms_known = question.block == NULL
        for k in range(self.n_outputs):
            if self._has_ones(k):
                root = self.roots[k * self.n_coordinates + self.p]
                self._totals[self._starts[k + 1] - 1] = KERNELS.sum_of_ones(
                    self.n, &self._derivatives[0] + k * self.n,
                    question.limit / (question.clip * root), question.limit)
        return True

    cdef bint _has_inverses(self) noexcept nogil:
        """Inverses of the smoothness, of the size of all coordinates; False when out of memory."""
        if self._inverses.shape[0]:
            return True
        with gil:
            try:
                self._inverses = 1 / np.asarray(self._smoothness)
            except MemoryError:
                return False
        return True

    # ---- all coordinates, by rows ----

    cdef bint _sum_all(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t c, n_threads = 1
        for c in range(self._size):
            self._totals[c] = 0.0
        if question.limit > 0:  # plain sums are added in order
            n_threads = dpcd_paying_threads(self.records.n_threads,
                                            self.n_outputs * self.records.n_entries)
        return self._add_in_threads(question, 0, self.n, n_threads, self._size)

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t[DPCD_SLICE] rows
        cdef Py_ssize_t k, start, n
        cdef double *room = <double *>malloc(self._slice_size * sizeof(double))
        cdef double *r
        cdef bint moves = self._moves_all()
        while room != NULL and i < stop:
            n = min(<Py_ssize_t>DPCD_SLICE, stop - i)
            for k in range(n):
                rows[k] = i + k
            for k in range(self.n_outputs if moves else 0):
                dpcd_dot_rows(&self.records.rows, n, rows, &self._step[0] + k * self.p, False,
                              &self._margins[0] + k * self.n + i)
                self._move_by_intercept(k, i, n)
            if question.size:
                if question.joint and question.limit > 0 and not self._norms_known:
                    self._make_norms_of_rows(question, n, rows)
                r = self._derive(question, n, rows, room)
                for k in range(self.n_outputs):
                    start = k * self.n_coordinates
                    dpcd_sum_rows(&self.records.rows, n, rows, r + k * n, &self._scale[0] + start,
                                  question.limit, sums + start)
            i += n
        free(room)
        return room != NULL

    cdef void _make_norms_of_rows(self, const Question *question, Py_ssize_t n,
                                  const Py_ssize_t *rows) noexcept nogil:
        """Squared norms in the geometry of M^(-1/2), output by output unless they are the same."""
        cdef Py_ssize_t i, k, start
        cdef double *norms
        for k in range(self.n_outputs if self._norms_apart(question) else 1):
            norms, start = &self._norms[0] + k * self.n + rows[0], k * self.n_coordinates
            memset(norms, 0, n * sizeof(double))
            dpcd_dot_rows(&self.records.rows, n, rows, &self._inverses[0] + start, True, norms)
            for i in range(n if self.fit_intercept else 0):
                norms[i] += self._inverses[start + self.p]

    # ---- a block, or all of very many, by columns ----

    cdef bint _sum_columns(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t k, start, n_touched = ALL
        # 1. derivatives: of all records, or of the few that have an entry in the block
        if question.block != NULL and self._n_columns == question.size:
            n_touched = self._touch(self._part(question, 0), question.size)
        if question.joint and question.limit > 0 and not (question.block == NULL
                                                          and self._norms_known):
            self._make_norms(question, n_touched)
        self._make_derivatives(question, n_touched)
        # 2. the sums
        for k in range(self.n_outputs):
            start = self._starts[k]
            dpcd_sum_columns(
                &self.records.columns, self._widths[k], self._part(question, k),
                &self._derivatives[0] + k * self.n, &self.roots[0] + k * self.n_coordinates,
                question.clip, question.limit, &self._totals[0] + start)
        return True

    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil:
        """Write the records of these columns to `_touched`, and how many; ALL unless they are few.
        """
        cdef Py_ssize_t few = <Py_ssize_t>(FEW * <double>self.n * <double>self.n_outputs)
        if dpcd_count(&self.records.columns, n_columns, columns, few) > few:
            return ALL
        return dpcd_touch(&self.records.columns, n_columns, columns, &self._marks[0],
                          &self._touched[0])

    cdef void _make_norms(self, const Question *question, Py_ssize_t n_touched) noexcept nogil:
        """The same of the records' blocks."""
        cdef Py_ssize_t i, k, q, m = self.n if n_touched == ALL else n_touched
        cdef const Py_ssize_t *where = NULL if n_touched == ALL else &self._touched[0]
        cdef const double *smoothness
        cdef double *norms
        for k in range(self.n_outputs if self._norms_apart(question) else 1):
            norms = &self._norms[0] + k * self.n
            smoothness = &self._smoothness[0] + k * self.n_coordinates
            for q in range(m):
                norms[q if where == NULL else where[q]] = 0.0
            dpcd_add_columns(&self.records.columns, self._widths[k], self._part(question, k),
                             smoothness, True, &self._lanes[0])
            dpcd_join_lanes(m, where, &self._lanes[0], norms)
            for i in range(self.n if self._has_ones(k) else 0):
                norms[i] += 1 / smoothness[self.p]

    cdef void _make_derivatives(self, const Question *question,
                                Py_ssize_t n_touched) noexcept nogil:
        cdef Py_ssize_t at = 0, k, n
        cdef double *r = &self._derivatives[0]
        if n_touched == ALL:  # in place
            self.loss.derivatives(self.n, self.n_outputs, &self._margins[0], self.records.y, r)
            for k in range(self.n_outputs):
                KERNELS.weigh(self.n, self.records.weights, r + k * self.n)
            if question.joint and question.limit > 0:
                KERNELS.clip_norms(self.n, self.n_outputs, &self._norms[0],
                                   self._norms_apart(question), question.clip, r)
        while at < n_touched:
            n = min(<Py_ssize_t>DPCD_SLICE, n_touched - at)
            self._derive(question, n, &self._touched[0] + at, &self._room[0])
            at += n

    # ---- margins and derivatives ----

    cdef bint _moves_all(self) noexcept nogil:
        """Whether a step waits that is one of all columns of all outputs, and reads rows."""
        return (self._reads_rows and self._has_step()
                and self._step_starts[self.n_outputs] == self.n_outputs * self.p)

    cdef bint _settle(self) noexcept nogil:
        """margins += X @ step"""
        cdef Py_ssize_t k, n_columns = self._step_starts[self.n_outputs]
        cdef Question nothing = question_of(NULL, 0, False, 1.0, 1.0)
        if self._moves_all():
            return self.records.holds(True) and self._add_rows(&nothing, 0, self.n, NULL)
        if n_columns and not self.records.holds(False):
            return False
        self._move_margins_at(ALL if n_columns == 1 else self._touch(&self._step_columns[0],
                                                                     n_columns))
        for k in range(self.n_outputs):
            self._move_by_intercept(k, 0, self.n)
        return True

    cdef void _move_by_intercept(self, Py_ssize_t k, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t i
        if self._intercept_steps[k] != 0.0:
            for i in range(start, start + n):
                self._margins[k * self.n + i] += self._intercept_steps[k]

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
                dpcd_add_columns(&self.records.columns, n_columns, columns, step, False,
                                 &self._lanes[0])
                dpcd_join_lanes(self.n if n_touched == ALL else n_touched,
                                NULL if n_touched == ALL else &self._touched[0], &self._lanes[0],
                                margins)

    cdef double *_weighed(self, Py_ssize_t n, const Py_ssize_t *where,
                          double *room) noexcept nogil:
        """Weighted derivatives of the records where[q], q < n, in margin k at k * n + q."""
        cdef Py_ssize_t k
        cdef double *weights = room + n
        cdef double *margins = weights + n
        cdef double *r = margins + 2 * self.n_outputs * n
        for k in range(self.n_outputs):
            dpcd_gather_at(n, where, &self._margins[0] + k * self.n, margins + k * n)
        dpcd_gather_at(n, where, self.records.y, room)
        if self.records.weights == NULL:
            weights = NULL
        else:
            dpcd_gather_at(n, where, self.records.weights, weights)
        self.loss.derivatives(n, self.n_outputs, margins, room, r)
        for k in range(self.n_outputs):
            KERNELS.weigh(n, weights, r + k * n)
        return r

    cdef double *_derive(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                         double *room) noexcept nogil:
        """The same, clipped where norms are; they are kept as well."""
        cdef Py_ssize_t k, q, apart = self._norms_apart(question)
        cdef double *norms = room + (2 + self.n_outputs) * n
        cdef double *r = self._weighed(n, where, room)
        if question.joint and question.limit > 0:
            for k in range(self.n_outputs if apart else 1):
                dpcd_gather_at(n, where, &self._norms[0] + k * self.n, norms + k * n)
            KERNELS.clip_norms(n, self.n_outputs, norms, n if apart else 0, question.clip, r)
        for k in range(self.n_outputs):
            for q in range(n):
                self._derivatives[k * self.n + where[q]] = r[k * n + q]
        return r

    # ---- greedy updates ----

    cdef bint _refresh(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t at = 0, n_touched, k, m, start
        cdef Py_ssize_t n_columns = self._step_starts[self.n_outputs]
        cdef Py_ssize_t most = <Py_ssize_t>(CHEAP * <double>self.records.n_entries)
        cdef const Py_ssize_t *where
        cdef const double *now
        if question.limit == 0 or self._moves_intercepts():
            return False
        if not self.records.holds(False) or not self.records.holds(True):
            return False
        if dpcd_count(&self.records.columns, n_columns, &self._step_columns[0], most) > most:
            return False
        n_touched = dpcd_touch(&self.records.columns, n_columns, &self._step_columns[0],
                               &self._marks[0], &self._touched[0])
        if dpcd_count(&self.records.rows, n_touched, &self._touched[0], most) > most:
            return False
        self._move_margins_at(n_touched)
        while at < n_touched:
            m, where = min(<Py_ssize_t>DPCD_SLICE, n_touched - at), &self._touched[0] + at
            now = self._weighed(m, where, &self._room[0])
            if self.fit_intercept:
                self._change_ones(question, m, where, now)
            for k in range(self.n_outputs):
                start = k * self.n_coordinates
                dpcd_change_rows(&self.records.rows, m, where, now + k * m,
                                 &self._scale[0] + start, question.limit,
                                 &self._derivatives[0] + k * self.n, &self._totals[0] + start)
            at += m
        return True

    cdef void _change_ones(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                           const double *now) noexcept nogil:
        """The intercepts' sums follow the derivatives of these records, which become `now`."""
        cdef Py_ssize_t k, m, at
        cdef double unit, before, after
        for k in range(self.n_outputs):
            at = k * self.n_coordinates + self.p
            unit = self._scale[at]
            for m in range(n):
                before, after = self._derivatives[k * self.n + where[m]], now[k * n + m]
                self._totals[at] += (dpcd_units(after * unit, question.limit)
                                     - dpcd_units(before * unit, question.limit))
