from ...losses._base cimport Loss
from ._records cimport Records


# How the records are read for one sum.
cdef struct Pass:
    bint all_columns
    bint again  # a tile more than once
    double limit
    double joint_clip  # 0: each coordinate is clipped by itself


cdef class CoordinateSums:
    cdef readonly Py_ssize_t n, p, n_coordinates
    cdef double[::1] roots, sums
    cdef bint exact, has_step
    cdef Records records
    cdef Loss loss
    cdef bint _fit_intercept, _norms_known
    cdef double _coordinate_clip, _intercept_step
    cdef const double[::1] _smoothness
    cdef double[::1] _margins, _scale, _norms, _block_inverses, _step
    cdef Py_ssize_t[::1] _columns, _step_columns
    cdef Py_ssize_t _n_columns, _n_step_columns, _intercept_at

    cdef bint sum(self, const Py_ssize_t *block, Py_ssize_t size, double limit,
                  bint joint) noexcept nogil
    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil
    cdef bint _has_norms(self) noexcept nogil
    cdef bint _has_steps(self, Py_ssize_t size) noexcept nogil
    cdef bint _refresh(self, double limit) noexcept nogil
    cdef bint _pass(self, bint all_columns, double limit, double joint_clip) noexcept nogil
    cdef bint _pass_rows(self, const Pass *read, Py_ssize_t i0, Py_ssize_t stop,
                         double *sums) noexcept nogil
    cdef void _sum_tile(self, const Pass *read, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, double *scratch, double *r,
                        double *sums) noexcept nogil
    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            double *scratch) noexcept nogil
