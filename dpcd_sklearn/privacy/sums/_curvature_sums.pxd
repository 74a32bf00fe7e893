from libc.stdint cimport int16_t, int32_t, int64_t

from ...utils._threads cimport Work
from ._gradient_sums cimport GradientSums
from ._kernels cimport dpcd_tile


# Where one thread reads a tile: its features, one number a row each of squared norms, of factors
# of features and of the constant, and of lengths; rows in units of their columns, `apart` from each
# other, or whole ones of 16 bits there (else NULL); and integers that kernels need.
cdef struct Bench:
    dpcd_tile tile
    Py_ssize_t ahead, apart
    double *cells
    double *norms
    double *factors
    double *of_ones
    double *parts
    double *rows
    int16_t *whole
    int32_t *room


cdef class Room:
    cdef Bench bench
    cdef double[:, ::1] rows


cdef class CurvatureSums(GradientSums):
    cdef double[::1] _per_unit, _per_square
    cdef Py_ssize_t _tile_rows
    cdef double _one, _root_curvature
    # what threads are asked for, and integers of each share
    cdef double _row_norm, _units, _units_of_squares
    cdef Py_ssize_t _at_once
    # whole rows, so many numbers apart, if they are kept, and whether they are made; units of
    # their norms, and every record's length over them
    cdef int16_t[:, ::1] _whole
    cdef Py_ssize_t _row_apart
    cdef bint _are_made
    cdef double _row_units
    cdef double[::1] _lengths
    cdef int64_t[:, ::1] _of_shares

    cdef Bench _bench(self, Py_ssize_t apart, bint whole, Py_ssize_t n_integers) noexcept nogil
    cdef int _over_tiles(self, Work work, Py_ssize_t n_integers) except -1
    cdef Py_ssize_t _read(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop) noexcept nogil
    cdef void _fill(self, Bench *bench, Py_ssize_t m, double magic) noexcept nogil
    cdef Py_ssize_t _rows_of_units(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop,
                                   double units) noexcept nogil
    cdef Py_ssize_t _whole_rows(self, Bench *bench, Py_ssize_t i0, Py_ssize_t stop) noexcept nogil
    cdef int _keep_rows(self) except -1
    cdef object _image(self, Room room, Py_ssize_t i0, transform)
    cdef bint _add_gram(self, Py_ssize_t i, Py_ssize_t stop, int64_t *total) noexcept nogil
    cdef bint _add_row_sums(self, Py_ssize_t i, Py_ssize_t stop, int64_t *total) noexcept nogil
    cdef void _weights(self, Py_ssize_t i0, Py_ssize_t m, double *weights) noexcept nogil
    cdef void _weigh_rows(self, Bench *bench, Py_ssize_t i0, Py_ssize_t m) noexcept nogil
