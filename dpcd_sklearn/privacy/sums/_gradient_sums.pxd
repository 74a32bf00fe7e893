from ._kernels cimport dpcd_tile
from ._local_sums cimport LocalSums
from ._sums cimport Question


# Some records: dense cells, or rows of sparse ones.
cdef struct Tile:
    bint is_sparse
    dpcd_tile dense
    const Py_ssize_t *rows
    Py_ssize_t n_rows
    Py_ssize_t next_rows  # how far on the next ones begin


cdef class GradientSums(LocalSums):
    cdef double[::1] _inverses, _ones

    cdef void _add_tile(self, const Question *question, const Py_ssize_t *rows, Py_ssize_t n_rows,
                        Py_ssize_t tile_rows, const double *scale, double *room,
                        double *sums) noexcept nogil
    cdef void _products(self, const Tile *tile, const double *w, double *out) noexcept nogil
    cdef void _derivatives(self, const Tile *tile, const double *coef,
                           const double *target, double *out,
                           double *margins) noexcept nogil
    cdef void _row_sums(self, const Tile *tile, const double *v, int square,
                        double *out) noexcept nogil
    cdef void _column_sums(self, const Tile *tile, const double *r, const double *scale,
                           double limit, double *sums) noexcept nogil
