from libc.stdint cimport uint64_t

from ...losses._base cimport Loss
from ._kernels cimport dpcd_tile
from ..noise._noise cimport NoiseSource
from ._records cimport Records


# At which iterates, in which directions and of whom gradients are summed.
cdef struct Query:
    const double *coef  # n_outputs x n_coordinates
    const double *anchor  # another iterate, whose gradients are subtracted; or NULL
    const double *directions  # n_directions x n_coordinates: products with these; or NULL
    Py_ssize_t n_directions
    uint64_t threshold  # a record is in the sample when a word is below it; 0: all records
    double clip
    double limit  # integer units that are `clip`; 0: plain sums (epsilon = inf)


# Some records: dense cells, or rows of sparse ones.
cdef struct Tile:
    bint is_sparse
    dpcd_tile dense
    const Py_ssize_t *rows
    Py_ssize_t n_rows
    Py_ssize_t next_rows  # how far on the next ones begin


cdef class GradientSums:
    cdef readonly Py_ssize_t n_coordinates, n_outputs
    cdef Records records
    cdef Loss loss
    cdef bint fit_intercept
    cdef double row_norm
    cdef double[::1] roots, _inverses, _ones

    cdef bint add(self, const Query *query, NoiseSource sampler, double *sums) noexcept nogil
    cdef bint _add_rows(self, const Query *query, NoiseSource sampler, Py_ssize_t i,
                        Py_ssize_t stop, double *sums) noexcept nogil
    cdef void _add_tile(self, const Query *query, const Py_ssize_t *rows, Py_ssize_t n_rows,
                        Py_ssize_t tile_rows, const double *scale, double *room,
                        double *sums) noexcept nogil
    cdef void _shrink(self, const Tile *tile, double *norms, double *factors) noexcept nogil
    cdef void _products(self, const Tile *tile, const double *w, const double *factors,
                        double *out) noexcept nogil
    cdef void _derivatives(self, const Tile *tile, const double *coef,
                           const double *target, const double *factors, double *out,
                           double *margins) noexcept nogil
    cdef void _row_sums(self, const Tile *tile, const double *v, int square,
                        double *out) noexcept nogil
    cdef void _column_sums(self, const Tile *tile, const double *r, const double *scale,
                           double limit, double *sums) noexcept nogil
    cdef void _clip(self, Py_ssize_t n_rows, const double *square_norms, double clip,
                    double *r) noexcept nogil
