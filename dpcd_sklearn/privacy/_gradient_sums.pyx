"""Sums over records of clipped gradients at a stated iterate, in integer units; no noise here.

(a) A contribution is a function of the record and of the stated iterate only: margins are made
    anew each time, which costs nothing when every coordinate moves.
(b) One record's vector is v_i = r_i f_i, r_i the derivative of its loss in the margin times its
    weight, f_i its features. It is clipped by its norm, rounded to integers and summed.
(c) With a row norm, longer feature vectors are first scaled down to it.
Made and held by an oracle only: what it sums is not released.
"""

import numpy as np
from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport free, malloc

from ..losses._base cimport Loss
from ._records cimport (
    DPCD_LANES,
    DPCD_TILE_CELLS,
    DPCD_TILE_ROWS,
    Records,
    dpcd_clip_norms,
    dpcd_clipped_sum_of_ones,
    dpcd_clipped_sums,
    dpcd_load,
    dpcd_margins,
    dpcd_square_norms,
    dpcd_tile,
    dpcd_weigh,
)

# More than the rounding of a computed norm: no row counts longer than stated.
cdef double SHORTER = 1 - 2.0**-30


cdef class GradientSums:
    """Integer sums of clipped gradients over dense records.

    Parameters
    ----------
    records : Records
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public: norms are in the geometry of M^(-1/2). The intercept comes last.
    fit_intercept : bool
    row_norm : float, default=inf
        Features of a record (without the intercept's 1) are scaled down to this euclidean norm;
        for a smoothness of one only.
    """

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 double row_norm=INFINITY):
        self.records, self.loss = records, loss
        self.n_coordinates = records.p + fit_intercept
        smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        if smoothness.shape != (self.n_coordinates,):
            raise ValueError(f"smoothness has shape {smoothness.shape}, "
                             f"expected ({self.n_coordinates},)")
        if row_norm < INFINITY and not (smoothness == 1).all():
            raise ValueError("a row norm is euclidean: it needs a smoothness of one")
        self.fit_intercept, self.row_norm = fit_intercept, row_norm
        self.roots = np.sqrt(smoothness)
        self._inverses = 1 / smoothness

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")

    cdef bint add(self, const double *coef, double clip, double limit,
                  double *sums) noexcept nogil:
        """sums[j] += integer units of every record, `limit` units being `clip`.

        False when out of memory; sums are then worthless.
        """
        cdef Py_ssize_t tile_rows = max(
            2 * DPCD_LANES, min(<Py_ssize_t>DPCD_TILE_ROWS, DPCD_TILE_CELLS // self.n_coordinates)
        )
        # the tile; derivatives, norms, factors, margins
        cdef double *room = <double *>malloc(
            tile_rows * (self.n_coordinates + 4) * sizeof(double))
        cdef double *scale = <double *>malloc(self.n_coordinates * sizeof(double))
        cdef Py_ssize_t i = 0, j
        cdef bint enough = room != NULL and scale != NULL
        if enough:
            for j in range(self.n_coordinates):
                scale[j] = limit / (clip * self.roots[j])
            while i < self.records.n:
                self._add_tile(i, min(tile_rows, self.records.n - i), tile_rows, coef, clip,
                               limit, scale, room, sums)
                i += tile_rows
        free(room)
        free(scale)
        return enough

    cdef void _add_tile(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t tile_rows,
                        const double *coef, double clip, double limit, const double *scale,
                        double *room, double *sums) noexcept nogil:
        cdef dpcd_tile tile
        cdef Py_ssize_t i, p = self.records.p
        cdef double *r = room + tile_rows * self.n_coordinates
        cdef double *norms = r + tile_rows
        cdef double *factors = norms + tile_rows
        cdef double *margins = factors + tile_rows
        dpcd_load(&self.records.X, i0, n_rows, NULL, p, room, &tile)
        # 1. how much each row is scaled down, and its norm in the geometry of M^(-1/2)
        for i in range(n_rows):
            norms[i] = margins[i] = 0.0
        dpcd_square_norms(&tile, &self._inverses[0], norms)
        for i in range(n_rows):
            factors[i] = self.row_norm / sqrt(norms[i]) * SHORTER
            factors[i] = factors[i] if factors[i] < 1.0 else 1.0
            norms[i] *= factors[i] * factors[i]
        if self.fit_intercept:
            for i in range(n_rows):
                norms[i] += self._inverses[p]
        # 2. derivatives in the margins, times the weight
        dpcd_margins(&tile, coef, margins)
        for i in range(n_rows):
            margins[i] = margins[i] * factors[i] + (coef[p] if self.fit_intercept else 0.0)
        self.loss.derivative(n_rows, margins, self.records.y + i0, r)
        dpcd_weigh(n_rows, NULL if self.records.weights == NULL else self.records.weights + i0, r)
        # 3. clip the whole vector, and add up
        dpcd_clip_norms(n_rows, norms, clip, r)
        if self.fit_intercept:
            sums[p] += dpcd_clipped_sum_of_ones(n_rows, r, scale[p], limit)
        for i in range(n_rows):
            r[i] *= factors[i]
        dpcd_clipped_sums(&tile, r, scale, limit, sums)
