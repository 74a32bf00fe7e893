"""Sums over records of clipped partial derivatives at an iterate that moves by steps; no noise.

(a) In the geometry of M^(-1/2) a block S of gradient entries is clipped to the norm
    C sqrt(|S| / tr M): one coordinate to C sqrt(M_j / tr M), all of them to C sqrt(p / tr M).
    All integer contributions of one sum share one unit.
(b) One pass over X a sum: the margins are brought up to date with the last step while the rows
    are read.
(c) Dense and sparse records have one face, and give the same integers.
Made and held by an oracle only: what it sums is not released.
"""

import numpy as np
from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.stdlib cimport calloc, free, malloc

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
from ._records cimport Records


cdef class CoordinateSums:
    """Sums over dense records.

    Parameters
    ----------
    records : Records
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public; the intercept comes last.
    coordinate_clip : float
        C / sqrt(tr M).
    fit_intercept : bool
    exact : bool
        Plain sums, for fits without noise; in one thread, because their order matters.
    """

    def __init__(self, Records records, Loss loss, smoothness, double coordinate_clip,
                 bint fit_intercept, bint exact):
        self.records, self.loss, self.exact = records, loss, exact
        self._fit_intercept, self._coordinate_clip = fit_intercept, coordinate_clip
        self.n, self.p = records.n, records.p
        self.n_coordinates = self.p + fit_intercept
        self._smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        self.roots = np.sqrt(smoothness)
        self.sums = np.empty(self.n_coordinates)
        self._margins = np.zeros(self.n)
        if not records.is_sparse:  # whose passes need none, and they may be as long as X
            self._scale, self._block_inverses = (np.empty(self.n_coordinates) for _ in range(2))
            self._columns = np.empty(self.n_coordinates, dtype=np.intp)
        # made when they are needed: see _has_norms and _has_steps
        self._norms = None
        self._step, self._step_columns = np.empty(0), np.empty(0, dtype=np.intp)

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")

    cdef bint sum(self, const Py_ssize_t *block, Py_ssize_t size, double limit,
                  bint joint) noexcept nogil:
        """Fill sums[k] for coordinate block[k] (ascending; NULL: all) at the current iterate.

        Clipped integer units of at most `limit`, each coordinate by itself or, when `joint`, the
        block's vector by its norm; plain sums when the fit is not private. False when out of
        memory.
        """
        cdef Py_ssize_t k, j
        cdef double clip = self._coordinate_clip * (sqrt(<double>size) if joint else 1.0)
        if block == NULL and not joint and self._refresh(limit):
            return True
        if joint and not self.exact and not self._has_norms():
            return False
        self._n_columns, self._intercept_at = 0, -1
        for k in range(size):
            j = k if block == NULL else block[k]
            self._scale[k] = limit / (clip * self.roots[j])
            if joint and not self.exact:
                self._block_inverses[k] = 1.0 / self._smoothness[j]
            self.sums[k] = 0.0
            if j == self.p:
                self._intercept_at = k
            else:
                self._columns[self._n_columns] = j
                self._n_columns += 1
        if not self._pass(block == NULL, limit, clip if joint else 0.0):
            return False
        self.has_step = False
        if joint and block == NULL:
            self._norms_known = True
        return True

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        """The iterate moved by step[k] in coordinate block[k]; False when out of memory."""
        cdef Py_ssize_t k, n_moved = 0
        cdef bint few
        for k in range(size):
            n_moved += step[k] != 0.0
        if n_moved == 0:
            return True
        # two steps without a sum between them
        if self.has_step and not self.sum(&self._step_columns[0], 0, 1.0, False):
            return False
        few = 8 * n_moved <= size  # then only their columns are read
        if not self._has_steps(n_moved if few else size):
            return False
        self._n_step_columns = 0
        self._intercept_step = 0.0
        for k in range(size):
            if block[k] == self.p:
                self._intercept_step = step[k]
            elif not few or step[k] != 0.0:
                self._step_columns[self._n_step_columns] = block[k]
                self._step[self._n_step_columns] = step[k]
                self._n_step_columns += 1
        self.has_step = True
        return True

    cdef bint _has_norms(self) noexcept nogil:
        """Room for norms of records, which joint sums alone need; False when out of memory."""
        if self._norms is not None:
            return True
        with gil:
            try:
                self._norms = np.empty(self.n)
            except MemoryError:
                return False
        return True

    cdef bint _has_steps(self, Py_ssize_t size) noexcept nogil:
        """Room for a step of so many coordinates; False when out of memory."""
        if self._step.shape[0] >= size:
            return True
        with gil:
            try:
                self._step, self._step_columns = np.empty(size), np.empty(size, dtype=np.intp)
            except MemoryError:
                return False
        return True

    cdef bint _refresh(self, double limit) noexcept nogil:
        """Bring sums of all coordinates up to date in less than a pass, or return False."""
        return False

    cdef bint _pass(self, bint all_columns, double limit, double joint_clip) noexcept nogil:
        """Move the margins, and add up; False when out of memory."""
        cdef bint again = (joint_clip > 0 and not self.exact) or not all_columns
        cdef Py_ssize_t width = self._n_columns + (self._n_step_columns if self.has_step else 0)
        cdef Py_ssize_t n_threads = 1, size = self._n_columns + (self._intercept_at >= 0)
        cdef Py_ssize_t share, t, k
        cdef int n_failed = 0
        if self.has_step:
            again = again or 8 * self._n_step_columns > self._n_columns
        cdef Pass read = Pass(all_columns, again, limit, joint_clip)
        if not self.exact:  # sums of integers: their order is free
            n_threads = dpcd_paying_threads(self.records.n_threads, self.n * width)
        if n_threads == 1:
            return self._pass_rows(&read, 0, self.n, &self.sums[0])
        cdef double *parts = <double *>calloc(max(1, n_threads * size), sizeof(double))
        if parts == NULL:
            return False
        share = (self.n // n_threads + 16) // 16 * 16
        for t in prange(n_threads, num_threads=n_threads, schedule="static", chunksize=1):
            n_failed += not self._pass_rows(&read, min(t * share, self.n),
                                            min((t + 1) * share, self.n), parts + t * size)
        for t in range(n_threads):
            for k in range(size):
                self.sums[k] += parts[t * size + k]
        free(parts)
        return n_failed == 0

    cdef bint _pass_rows(self, const Pass *read, Py_ssize_t i0, Py_ssize_t stop,
                         double *sums) noexcept nogil:
        """The share of the records i0, ..., stop - 1."""
        cdef Py_ssize_t copied = 0 if read.all_columns else self._n_columns, rows, n_rows, ahead
        cdef Py_ssize_t widest = max(1, self._n_columns)
        cdef bint halves
        if self.has_step:
            widest = max(widest, self._n_step_columns)
            copied = max(copied, self._n_step_columns if self._n_step_columns < self.p else 0)
        if self.records.X.lo != NULL:
            copied = widest
        rows = dpcd_tile_rows(&self.records.X, widest,
                              DPCD_READ_AGAIN if read.again else DPCD_READ_ONCE)
        # two passes over a tile: each asks for half of the next one
        halves = self.records.X.c_order and self.has_step and self._n_step_columns == self.p
        n_rows = max(1, min(rows, stop - i0))
        cdef double *scratch = <double *>malloc(max(1, n_rows * copied) * sizeof(double))
        cdef double *r = <double *>malloc(2 * n_rows * sizeof(double))
        cdef bint enough = scratch != NULL and r != NULL
        while enough and i0 < stop:
            n_rows = min(rows, stop - i0)
            ahead = dpcd_rows_ahead(rows, stop - i0 - n_rows)
            self._move_margins(i0, n_rows, ahead if halves else 0, scratch)
            self._sum_tile(read, i0, n_rows, ahead, halves, scratch, r, sums)
            i0 += n_rows
        free(scratch)
        free(r)
        return enough

    cdef void _sum_tile(self, const Pass *read, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, double *scratch, double *r,
                        double *sums) noexcept nogil:
        cdef dpcd_tile tile
        cdef Py_ssize_t i
        cdef double *norms
        cdef const double *weights = NULL
        if self.records.weights != NULL:
            weights = self.records.weights + i0
        self.loss.derivative(n_rows, &self._margins[i0], self.records.y + i0, r)
        KERNELS.load(&self.records.X, i0, n_rows, NULL if read.all_columns else &self._columns[0],
                     self._n_columns, scratch, &tile)
        if self._n_columns == 1 and not tile.c_order and self._intercept_at < 0 \
                and read.joint_clip == 0 and not self.exact:
            sums[0] += KERNELS.clipped_column(&tile, r, weights, self._scale[0], read.limit,
                                              ahead)
            return
        KERNELS.weigh(n_rows, weights, r)
        if self.exact:
            KERNELS.plain_sums(&tile, r, sums)
            if self._intercept_at >= 0:
                sums[self._intercept_at] += KERNELS.plain_sum_of_ones(n_rows, r)
            return
        if read.joint_clip > 0:
            norms = &self._norms[i0] if read.all_columns else r + n_rows
            if not (read.all_columns and self._norms_known):
                for i in range(n_rows):
                    norms[i] = 0.0
                KERNELS.rows_dot(&tile, &self._block_inverses[0], True, 0, norms)
                if self._intercept_at >= 0:
                    for i in range(n_rows):
                        norms[i] += self._block_inverses[self._intercept_at]
            KERNELS.clip_norms(n_rows, norms, read.joint_clip, r)
        KERNELS.clipped_sums(&tile, r, &self._scale[0], read.limit, ahead, halves, sums)
        if self._intercept_at >= 0:
            sums[self._intercept_at] += KERNELS.clipped_sum_of_ones(
                n_rows, r, self._scale[self._intercept_at], read.limit)

    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            double *scratch) noexcept nogil:
        """margins += X @ step for the rows of one tile."""
        cdef dpcd_tile tile
        cdef Py_ssize_t i
        if not self.has_step:
            return
        if self._n_step_columns:
            KERNELS.load(&self.records.X, i0, n_rows,
                         NULL if self._n_step_columns == self.p else &self._step_columns[0],
                         self._n_step_columns, scratch, &tile)
            KERNELS.rows_dot(&tile, &self._step[0], False, ahead, &self._margins[i0])
        if self._intercept_step != 0.0:
            for i in range(n_rows):
                self._margins[i0 + i] += self._intercept_step
