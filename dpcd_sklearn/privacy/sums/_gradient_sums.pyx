"""Sums over records of clipped gradients at a stated iterate, in integer units; no noise here.

(a) A contribution is a function of the record and of the question only: margins are made anew each
    time, which costs nothing when every coordinate moves.
(b) One record's vector is v_i = r_i f_i: r_i the derivatives of its loss in its margins (or how
    they differ from those at an anchor) times its weight, f_i its features, or their products with
    public directions. It is clipped by its norm, rounded to integers and summed.
"""

import numpy as np
from libc.stdlib cimport free, malloc

from ...losses._loss cimport Loss
from ._kernels cimport (
    DPCD_READ_AGAIN,
    KERNELS,
    dpcd_paying_threads,
    dpcd_rows_ahead,
    dpcd_tile_of,
    dpcd_tile_rows,
)
from ._local_sums cimport LocalSums
from ._records cimport (
    Records,
    dpcd_dot_rows,
    dpcd_gather_at,
    dpcd_sum_rows,
)
from ._sums cimport Question

cdef inline double _bounded(double v) noexcept nogil:
    v = v if v < 1e140 else 1e140
    return v if v > -1e140 else -1e140


cdef class GradientSums(LocalSums):
    """Integer sums of clipped gradients over records.

    Parameters
    ----------
    records : Records
        Sparse ones are read by row.
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public: norms are in the geometry of M^(-1/2), those of products with directions are
        euclidean. The intercept comes last.
    fit_intercept : bool
    n_outputs : int, default=1
        Margins of a record; its vector is the outer product of their derivatives and features.
    """

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs, False)
        self._inverses = np.divide(1, smoothness, dtype=np.float64)
        self._ones = np.ones(self.n_coordinates)

    cdef const double *answer(self, const Question *question) noexcept nogil:
        # n_outputs rows of n_directions or n_coordinates
        cdef Py_ssize_t k, n_threads = 1, size = self.n_outputs * (
            self.n_coordinates if question.directions == NULL else question.n_directions)
        if question.coef == NULL or question.block != NULL:
            return NULL
        if question.directions == NULL and question.n_directions != 0:
            return NULL
        # products are as many as coordinates at most: sums and vectors of ones are no longer
        if not 0 <= question.n_directions <= self.n_coordinates:
            return NULL
        if self.records.is_sparse and not self.records.holds(True):
            return NULL
        for k in range(size):
            self._totals[k] = 0.0
        # plain sums are added in order
        if question.rows == NULL and question.limit > 0:
            n_threads = dpcd_paying_threads(self.records.n_threads, self.records.n_entries)
        if not self._add_in_threads(question, 0, self.n, n_threads, size):
            return NULL
        return &self._totals[0]

    cdef bint _add_rows(self, const Question *question, Py_ssize_t i, Py_ssize_t stop,
                        double *sums) noexcept nogil:
        cdef Py_ssize_t K = self.n_outputs, m = question.n_directions
        cdef Py_ssize_t n_cells = 0 if self.records.is_sparse else self.n_coordinates
        cdef Py_ssize_t widest = max(n_cells, K + m), n_rows, j, k
        cdef Py_ssize_t tile_rows = dpcd_tile_rows(&self.records.X, widest, DPCD_READ_AGAIN)
        # the tile; margins and derivatives of two iterates; norms, targets, weights,
        # products with the directions
        cdef double *room = <double *>malloc(
            tile_rows * (n_cells + 3 * K + 3 + m) * sizeof(double))
        cdef Py_ssize_t *rows = <Py_ssize_t *>malloc(tile_rows * sizeof(Py_ssize_t))
        cdef double *scale = <double *>malloc(max(self.n_coordinates, m) * sizeof(double))
        cdef bint enough = room != NULL and rows != NULL and scale != NULL
        if question.rows != NULL:
            stop = question.n_rows
        if enough:
            for j in range(m if m else self.n_coordinates):
                scale[j] = question.limit / (question.clip * (1.0 if m else self.roots[j]))
            while i < stop:
                n_rows = min(tile_rows, stop - i)
                for k in range(n_rows):
                    rows[k] = i + k if question.rows == NULL else question.rows[i + k]
                self._add_tile(question, rows, n_rows, tile_rows, scale, room, sums)
                i += n_rows
        free(room)
        free(rows)
        free(scale)
        return enough

    cdef void _add_tile(self, const Question *question, const Py_ssize_t *rows, Py_ssize_t n_rows,
                        Py_ssize_t tile_rows, const double *scale, double *room,
                        double *sums) noexcept nogil:
        cdef Tile tile
        cdef Py_ssize_t i, j, k, p = self.records.p, K = self.n_outputs, m = question.n_directions
        cdef Py_ssize_t size = m if m else self.n_coordinates
        cdef double *r = room + (0 if self.records.is_sparse else tile_rows * self.n_coordinates)
        cdef double *other = r + tile_rows * K
        cdef double *margins = other + tile_rows * K
        cdef double *norms = margins + tile_rows * K
        cdef double *target = norms + tile_rows
        cdef double *weights = target + tile_rows
        cdef double *products = weights + tile_rows
        cdef bint ones = self.fit_intercept and m == 0
        cdef const Py_ssize_t *chosen = NULL
        cdef double *copy = NULL
        if question.rows != NULL:
            chosen = rows
        if question.rows != NULL or K > 1 or m:  # read often: copied once
            copy = room
        # 1. the records and their norms
        tile.is_sparse, tile.rows, tile.n_rows = self.records.is_sparse, rows, n_rows
        tile.next_rows = dpcd_rows_ahead(tile_rows, self.records.n - rows[n_rows - 1] - 1)
        if not tile.is_sparse:
            KERNELS.load(&self.records.X, rows[0], chosen, n_rows, NULL, p, copy, &tile.dense)
        dpcd_gather_at(n_rows, rows, self.records.y, target)
        if self.records.weights == NULL:
            weights = NULL
        else:
            dpcd_gather_at(n_rows, rows, self.records.weights, weights)
        for i in range(n_rows):
            norms[i] = 0.0
        self._row_sums(&tile, &self._inverses[0], 1, norms)
        # 2. derivatives in the margins, times the weight
        self._derivatives(&tile, question.coef, target, r, margins)
        if question.anchor != NULL:
            self._derivatives(&tile, question.anchor, target, other, margins)
            for i in range(n_rows * K):
                r[i] -= other[i]
        for k in range(K):
            KERNELS.weigh(n_rows, weights, r + k * n_rows)
        # 3. features, or their products with the directions
        if m:
            for j in range(m):
                self._products(&tile, question.directions + j * self.n_coordinates,
                               products + j * n_rows)
            for i in range(n_rows * m):  # finite, so that the norm is a number
                products[i] = _bounded(products[i])
            for i in range(n_rows):
                norms[i] = 0.0
            tile.is_sparse = False
            tile.dense = dpcd_tile_of(products, n_rows, n_rows, m, False)
            KERNELS.rows_dot(&tile.dense, &self._ones[0], True, 0, norms)
        elif ones:
            for i in range(n_rows):
                norms[i] += self._inverses[p]
        # 4. clip the whole vector, and add up
        if question.limit > 0:
            KERNELS.clip_norms(n_rows, K, norms, 0, question.clip, r)
        for k in range(K):
            if ones:
                sums[k * size + p] += KERNELS.sum_of_ones(
                    n_rows, r + k * n_rows, scale[p], question.limit)
            self._column_sums(&tile, r + k * n_rows, scale, question.limit, sums + k * size)

    cdef void _row_sums(self, const Tile *tile, const double *v, int square,
                        double *out) noexcept nogil:
        """out[i] += sum over columns of v[j] f(X[i, j]), f the identity or the square."""
        if tile.is_sparse:
            dpcd_dot_rows(&self.records.rows, tile.n_rows, tile.rows, v, square, out)
        else:
            KERNELS.rows_dot(&tile.dense, v, square, 0 if square else tile.next_rows, out)

    cdef void _column_sums(self, const Tile *tile, const double *r, const double *scale,
                           double limit, double *sums) noexcept nogil:
        """sums[j] += sum over rows of r[i] X[i, j], in clipped units unless limit is zero."""
        if tile.is_sparse:
            dpcd_sum_rows(&self.records.rows, tile.n_rows, tile.rows, r, scale, limit, sums)
        else:
            KERNELS.sums(&tile.dense, r, scale, limit, tile.next_rows, True, sums)

    cdef void _products(self, const Tile *tile, const double *w, double *out) noexcept nogil:
        """out = X @ w, the intercept included."""
        cdef Py_ssize_t i
        cdef double intercept = w[self.records.p] if self.fit_intercept else 0.0
        for i in range(tile.n_rows):
            out[i] = 0.0
        self._row_sums(tile, w, 0, out)
        for i in range(tile.n_rows):
            out[i] += intercept

    cdef void _derivatives(self, const Tile *tile, const double *coef,
                           const double *target, double *out,
                           double *margins) noexcept nogil:
        """out[k, i] = derivative of the loss of record i in its margin k."""
        cdef Py_ssize_t k
        for k in range(self.n_outputs):
            self._products(tile, coef + k * self.n_coordinates, margins + k * tile.n_rows)
        self.loss.derivatives(tile.n_rows, self.n_outputs, margins, target, out)
