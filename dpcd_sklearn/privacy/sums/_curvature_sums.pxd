from ._gradient_sums cimport GradientSums
from ._kernels cimport dpcd_tile


cdef class CurvatureSums(GradientSums):
    cdef object _sparse, _bounds
    cdef double[::1] _per_unit, _per_square, _norms, _factors, _of_ones, _parts
    cdef Py_ssize_t _tile_rows, _ahead
    cdef double[:, ::1] _cells
    cdef double _one, _root_curvature
    cdef dpcd_tile _tile

    cdef Py_ssize_t _read(self, Py_ssize_t i0, const double *squares) except -1
    cdef void _fill(self, Py_ssize_t m, double magic, const double *of_columns,
                    double[:, ::1] out) noexcept nogil
    cdef void _rows_of_units(self, Py_ssize_t m, double units, const double *of_columns,
                             double[::1] lengths, double[:, ::1] out) noexcept nogil
    cdef object _image(self, Py_ssize_t m, transform, rows, double[::1] lengths)
    cdef int _check_norm(self, double row_norm) except -1
    cdef void _clip_rows(self, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                         double units) noexcept nogil
    cdef void _weigh_rows(self, Py_ssize_t i0, Py_ssize_t m, double row_norm,
                          double units) noexcept nogil
