"""Sums of ``_moving_sums`` over dense records.

(a) In the geometry of M^(-1/2) a coordinate is clipped by itself, or a block by its norm. All
    integer contributions of one sum share one unit.
(b) One pass over X a sum: the margins are brought up to date with the last step while the rows
    are read. All outputs read a tile while it is in cache.
"""

import numpy as np
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cython

from ...losses._loss cimport Loss
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


# Buffers of one tile, for each output.
cdef struct Room:
    double *cells  # a copy of all columns, unless they are read in place
    double *some  # of some columns
    double *r  # derivatives
    double *margins  # side by side, as losses read those of several outputs
    double *norms  # of blocks
    dpcd_tile every
    dpcd_tile *tiles


@cython.final
cdef class DenseSums(MovingSums):
    """Sums over dense records; the parameters are those of MovingSums."""

    cdef double[::1] _scale, _block_inverses

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs)
        self._scale, self._block_inverses = (np.empty(self._size) for _ in range(2))

    cdef bint _sum(self, const Question *question) noexcept nogil:
        cdef Py_ssize_t b, c
        cdef bint clips = question.limit > 0
        self._split(question)
        for b in range(question.size):
            c = b if question.block == NULL else question.block[b]
            if clips:
                self._scale[b] = question.limit / (question.clip * self.roots[c])
                if question.joint:
                    self._block_inverses[b] = 1.0 / self._smoothness[c]
            self._totals[b] = 0.0
        if not self._pass(question):
            return False
        if clips and question.joint and question.block == NULL:
            self._norms_known = True
        return True

    cdef bint _settle(self) noexcept nogil:
        cdef Py_ssize_t nothing = 0
        cdef Question question = question_of(&nothing, 0, False, 1.0, 1.0)
        return self._sum(&question)

    cdef bint _pass(self, const Question *question) noexcept nogil:
        """Move the margins, and add up; False when out of memory."""
        cdef Py_ssize_t n_threads = 1, width = self._n_columns
        if self._has_step():
            width += self._step_starts[self.n_outputs]
        if question.limit > 0:  # sums of integers: their order is free
            n_threads = dpcd_paying_threads(self.records.n_threads, self.n * width)
        return self._add_in_threads(question, 0, self.n, n_threads, question.size)

    cdef bint _reads_again(self, const Question *question) noexcept nogil:
        """Whether cells of a tile are read more than once."""
        if (question.joint and question.limit > 0) or question.block != NULL:
            return True
        if self.n_outputs > 1:
            return True
        return self._has_step() and 8 * self._step_starts[1] > self._n_columns

    cdef bint _make_room(self, Py_ssize_t n_rows, Py_ssize_t n_cells, Room *room) noexcept nogil:
        """For tiles of so many rows, and copies of so many cells; False when out of memory."""
        cdef Py_ssize_t K = self.n_outputs
        room.cells = <double *>malloc(max(1, n_cells) * sizeof(double))
        room.r = <double *>malloc((3 if K > 1 else 2) * K * n_rows * sizeof(double))
        room.norms = room.r + K * n_rows
        room.margins = room.norms + K * n_rows
        room.tiles = <dpcd_tile *>malloc(K * sizeof(dpcd_tile))
        return room.cells != NULL and room.r != NULL and room.tiles != NULL

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i0, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        # all outputs share a tile of all columns; those of a block or a step lie side by side
        cdef Py_ssize_t some = 0 if question.block == NULL else self._n_columns
        cdef Py_ssize_t every, rows, n_rows, ahead, k, n
        cdef bint moves = self._has_step(), moves_all = False, reads_all = question.block == NULL
        cdef bint copies = self.n_outputs > 1 and self.records.X.bounds.lo != NULL  # once for all
        cdef bint is_column = (question.size == 1 and self._n_columns == 1 and not question.joint
                               and question.limit > 0)
        cdef bint halves, enough
        cdef Room room
        for k in range(self.n_outputs):
            n = self._step_starts[k + 1] - self._step_starts[k] if moves else 0
            moves_all = moves_all or n == self.p
            reads_all = reads_all or n == self.p or self._widths[k] == self.p
            some = max(some, n if n < self.p else 0)
        every = self.p if reads_all else 0
        rows = dpcd_tile_rows(&self.records.X, max(self.n_outputs, every, some),
                              DPCD_READ_AGAIN if self._reads_again(question) else DPCD_READ_ONCE)
        # margins and sums: each asks for half of the next tile
        halves = moves_all and self.records.X.c_order
        if self.records.X.c_order and self.p == 1:
            is_column = False  # read in place, by rows
        n_rows = max(1, min(rows, stop - i0))
        every = n_rows * every if copies else 0
        enough = self._make_room(n_rows, every + n_rows * some, &room)
        room.some = room.cells + every
        while enough and i0 < stop:
            n_rows = min(rows, stop - i0)
            ahead = dpcd_rows_ahead(rows, stop - i0 - n_rows)
            if reads_all:
                KERNELS.load(&self.records.X, i0, NULL, n_rows, NULL, self.p,
                             room.cells if copies else NULL, &room.every)
            if moves:
                self._move_margins(i0, n_rows, ahead if halves else 0, &room)
            if is_column:
                sums[0] += self._column_sum(question, i0, n_rows, ahead, &room)
            elif question.size:
                self._sum_tile(question, i0, n_rows, ahead, halves, &room, sums)
            i0 += n_rows
        free(room.cells)
        free(room.r)
        free(room.tiles)
        return enough

    cdef double _column_sum(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                            Py_ssize_t ahead, const Room *room) noexcept nogil:
        """The clipped sum of one column alone, over one tile: what is used once is not stored."""
        cdef const double *r = room.r
        cdef const double *weights = NULL
        if self.records.weights != NULL:
            weights = self.records.weights + i0
        if self.n_outputs > 1:
            r += question.block[0] // self.n_coordinates * n_rows
        self._derive(i0, n_rows, room)
        KERNELS.load(&self.records.X, i0, NULL, n_rows, self._part(question, 0), 1,
                     room.some, room.tiles)
        return KERNELS.clipped_column(room.tiles, r, weights, self._scale[0], question.limit,
                                      ahead)

    cdef void _sum_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, const Room *room,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t k
        cdef const double *weights = NULL
        if self.records.weights != NULL:
            weights = self.records.weights + i0
        self._derive(i0, n_rows, room)
        self._load(question, i0, n_rows, room)
        for k in range(self.n_outputs):
            KERNELS.weigh(n_rows, weights, room.r + k * n_rows)
        if question.joint and question.limit > 0:
            self._clip_tile(question, i0, n_rows, room)
        for k in range(self.n_outputs):
            self._sum_part(question, k, n_rows, ahead, halves, room, sums + self._starts[k])
            if self._widths[k]:
                ahead = 0  # asked for once

    cdef void _derive(self, Py_ssize_t i0, Py_ssize_t n_rows, const Room *room) noexcept nogil:
        """Derivatives at the margins, output by output."""
        cdef Py_ssize_t k
        cdef const double *margins = &self._margins[0] + i0
        if self.n_outputs == 1:  # in place
            self.loss.derivative(n_rows, margins, self.records.y + i0, room.r)
            return
        for k in range(self.n_outputs):
            memcpy(room.margins + k * n_rows, margins + k * self.n, n_rows * sizeof(double))
        self.loss.derivatives(n_rows, self.n_outputs, room.margins, self.records.y + i0, room.r)

    cdef void _load(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                    const Room *room) noexcept nogil:
        """The tiles that the outputs' parts of the question read: one for all, or each its own."""
        cdef Py_ssize_t k
        cdef double *cells = room.some
        for k in range(self.n_outputs):
            room.tiles[k] = room.every
            if question.block != NULL and self._widths[k] < self.p:
                KERNELS.load(&self.records.X, i0, NULL, n_rows, self._part(question, k),
                             self._widths[k], cells, &room.tiles[k])
                cells += n_rows * self._widths[k]

    cdef void _clip_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                         const Room *room) noexcept nogil:
        """Clip records' vectors by one norm over all outputs; norms of whole records are kept."""
        cdef Py_ssize_t i, k, start, apart = n_rows
        cdef double *norms = room.norms
        if question.block == NULL:
            norms, apart = &self._norms[0] + i0, self._norms_apart(question)
        if question.block != NULL or not self._norms_known:
            for k in range(self.n_outputs if apart else 1):
                start = self._starts[k]
                for i in range(n_rows):
                    norms[k * apart + i] = 0.0
                KERNELS.rows_dot(&room.tiles[k], &self._block_inverses[0] + start, True, 0,
                                 norms + k * apart)
                if self._has_ones(k):
                    for i in range(n_rows):
                        norms[k * apart + i] += self._block_inverses[self._starts[k + 1] - 1]
        KERNELS.clip_norms(n_rows, self.n_outputs, norms, apart, question.clip, room.r)

    cdef void _sum_part(self, const Question *question, Py_ssize_t k, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, const Room *room,
                        double *sums) noexcept nogil:
        """sums += of part k of the question."""
        cdef Py_ssize_t width = self._widths[k]
        cdef const double *scale = &self._scale[0] + self._starts[k]
        cdef const double *r = room.r + k * n_rows
        KERNELS.sums(&room.tiles[k], r, scale, question.limit, ahead, halves, sums)
        if self._has_ones(k):
            sums[width] += KERNELS.sum_of_ones(n_rows, r, scale[width], question.limit)

    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            const Room *room) noexcept nogil:
        """margins += X @ step for the rows of one tile."""
        cdef dpcd_tile tile
        cdef Py_ssize_t i, k, start, n_columns
        cdef double *margins
        for k in range(self.n_outputs):
            margins = &self._margins[0] + k * self.n + i0
            start = self._step_starts[k]
            n_columns = self._step_starts[k + 1] - start
            if n_columns == self.p:
                KERNELS.rows_dot(&room.every, &self._step[0] + start, False, ahead, margins)
                ahead = 0  # asked for once
            elif n_columns:
                KERNELS.load(&self.records.X, i0, NULL, n_rows, &self._step_columns[0] + start,
                             n_columns, room.some, &tile)
                KERNELS.rows_dot(&tile, &self._step[0] + start, False, 0, margins)
            if self._intercept_steps[k] != 0.0:
                for i in range(n_rows):
                    margins[i] += self._intercept_steps[k]
