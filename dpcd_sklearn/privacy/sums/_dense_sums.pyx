"""Sums of ``_moving_sums`` over dense records.

(a) In the geometry of M^(-1/2) a coordinate is clipped by itself, or a block by its norm. All
    integer contributions of one sum share one unit.
(b) One pass over X a sum: the margins are brought up to date with the last step while the rows
    are read.
"""

import numpy as np
from libc.stdlib cimport free, malloc

from ...losses._base cimport Loss
from ._kernels cimport (
    DPCD_READ_AGAIN,
    DPCD_READ_ONCE,
    KERNELS,
    dpcd_paying_threads,
    dpcd_rows_ahead,
    dpcd_tile,
    dpcd_tile_rows,
)
from ._moving_sums cimport MovingSums
from ._records cimport Records
from ._sums cimport Question, question_of


cdef class DenseSums(MovingSums):
    """Sums over dense records; the parameters are those of MovingSums."""

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept):
        super().__init__(records, loss, smoothness, fit_intercept)
        self._scale, self._block_inverses = (np.empty(self.n_coordinates) for _ in range(2))
        self._columns = np.empty(self.n_coordinates, dtype=np.intp)

    cdef bint _sum(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t k, j
        cdef bint clips = question.limit > 0
        if question.joint and clips and not self._has_norms():
            return False
        if not self._has_room(self.n_coordinates, True, clips):
            return False
        self._n_columns, self._intercept_at = 0, -1
        for k in range(question.size):
            j = k if question.block == NULL else question.block[k]
            if clips:
                self._scale[k] = question.limit / (question.clip * self.roots[j])
                if question.joint:
                    self._block_inverses[k] = 1.0 / self._smoothness[j]
            self._totals[k] = 0.0
            if j == self.p:
                self._intercept_at = k
            else:
                self._columns[self._n_columns] = j
                self._n_columns += 1
        if not self._pass(question):
            return False
        if question.joint and question.block == NULL:
            self._norms_known = True
        if clips:
            self._round(question.size)
        return True

    cdef bint _settle(self) noexcept nogil:
        cdef Py_ssize_t nothing = 0
        cdef Question question = question_of(&nothing, 0, False, 1.0, 1.0)
        return self._sum(&question)

    cdef bint _pass(self, const Question *question) noexcept nogil:
        """Move the margins, and add up; False when out of memory."""
        cdef Py_ssize_t n_threads = 1, width = self._n_columns
        if self._has_step():
            width += self._n_step_columns
        if question.limit > 0:  # sums of integers: their order is free
            n_threads = dpcd_paying_threads(self.records.n_threads, self.n * width)
        return self._add_in_threads(question, n_threads,
                                    self._n_columns + (self._intercept_at >= 0))

    cdef bint _reads_again(self, const Question *question) noexcept nogil:
        """Whether cells of a tile are read more than once."""
        if (question.joint and question.limit > 0) or question.block != NULL:
            return True
        return self._has_step() and 8 * self._n_step_columns > self._n_columns

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i0, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t copied = 0 if question.block == NULL else self._n_columns
        cdef Py_ssize_t rows, n_rows, ahead
        cdef Py_ssize_t widest = max(1, self._n_columns)
        cdef bint halves
        if self._has_step():
            widest = max(widest, self._n_step_columns)
            copied = max(copied, self._n_step_columns if self._n_step_columns < self.p else 0)
        if self.records.X.lo != NULL:
            copied = widest
        rows = dpcd_tile_rows(&self.records.X, widest,
                              DPCD_READ_AGAIN if self._reads_again(question) else DPCD_READ_ONCE)
        # two passes over a tile: each asks for half of the next one
        halves = self.records.X.c_order and self._has_step() and self._n_step_columns == self.p
        n_rows = max(1, min(rows, stop - i0))
        cdef double *scratch = <double *>malloc(max(1, n_rows * copied) * sizeof(double))
        cdef double *r = <double *>malloc(2 * n_rows * sizeof(double))
        cdef bint enough = scratch != NULL and r != NULL
        while enough and i0 < stop:
            n_rows = min(rows, stop - i0)
            ahead = dpcd_rows_ahead(rows, stop - i0 - n_rows)
            self._move_margins(i0, n_rows, ahead if halves else 0, scratch)
            self._sum_tile(question, i0, n_rows, ahead, halves, scratch, r, sums)
            i0 += n_rows
        free(scratch)
        free(r)
        return enough

    cdef void _sum_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, double *scratch, double *r,
                        double *sums) noexcept nogil:
        cdef dpcd_tile tile
        cdef Py_ssize_t i
        cdef double *norms
        cdef const double *weights = NULL
        if self.records.weights != NULL:
            weights = self.records.weights + i0
        self.loss.derivative(n_rows, &self._margins[i0], self.records.y + i0, r)
        KERNELS.load(&self.records.X, i0, n_rows,
                     NULL if question.block == NULL else &self._columns[0], self._n_columns,
                     scratch, &tile)
        if self._n_columns == 1 and not tile.c_order and self._intercept_at < 0 \
                and not question.joint and question.limit > 0:
            sums[0] += KERNELS.clipped_column(&tile, r, weights, self._scale[0], question.limit,
                                              ahead)
            return
        KERNELS.weigh(n_rows, weights, r)
        if question.limit == 0:
            KERNELS.plain_sums(&tile, r, sums)
            if self._intercept_at >= 0:
                sums[self._intercept_at] += KERNELS.plain_sum_of_ones(n_rows, r)
            return
        if question.joint:
            norms = &self._norms[i0] if question.block == NULL else r + n_rows
            if not (question.block == NULL and self._norms_known):
                for i in range(n_rows):
                    norms[i] = 0.0
                KERNELS.rows_dot(&tile, &self._block_inverses[0], True, 0, norms)
                if self._intercept_at >= 0:
                    for i in range(n_rows):
                        norms[i] += self._block_inverses[self._intercept_at]
            KERNELS.clip_norms(n_rows, norms, question.clip, r)
        KERNELS.clipped_sums(&tile, r, &self._scale[0], question.limit, ahead, halves, sums)
        if self._intercept_at >= 0:
            sums[self._intercept_at] += KERNELS.clipped_sum_of_ones(
                n_rows, r, self._scale[self._intercept_at], question.limit)

    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            double *scratch) noexcept nogil:
        """margins += X @ step for the rows of one tile."""
        cdef dpcd_tile tile
        cdef Py_ssize_t i
        if not self._has_step():
            return
        if self._n_step_columns:
            KERNELS.load(&self.records.X, i0, n_rows,
                         NULL if self._n_step_columns == self.p else &self._step_columns[0],
                         self._n_step_columns, scratch, &tile)
            KERNELS.rows_dot(&tile, &self._step[0], False, ahead, &self._margins[i0])
        if self._intercept_step != 0.0:
            for i in range(n_rows):
                self._margins[i0 + i] += self._intercept_step
