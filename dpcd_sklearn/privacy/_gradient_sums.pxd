from ..losses._base cimport Loss
from ._noise cimport NoiseSource
from ._records cimport Records, dpcd_tile


cdef class GradientSums:
    cdef readonly Py_ssize_t n_coordinates
    cdef Records records
    cdef Loss loss
    cdef bint fit_intercept
    cdef double row_norm
    cdef double[::1] roots, _inverses

    cdef bint add(self, const double *coef, double clip, double limit,
                  double *sums) noexcept nogil
    cdef void _add_tile(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t tile_rows,
                        const double *coef, double clip, double limit, const double *scale,
                        double *room, double *sums) noexcept nogil
