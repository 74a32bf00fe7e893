from ._moving_sums cimport MovingSums
from ._sums cimport Question


cdef class DenseSums(MovingSums):
    cdef double[::1] _scale, _block_inverses
    cdef Py_ssize_t[::1] _columns
    cdef Py_ssize_t _n_columns, _intercept_at

    cdef bint _pass(self, const Question *question) noexcept nogil
    cdef bint _reads_again(self, const Question *question) noexcept nogil
    cdef void _sum_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, double *scratch, double *r,
                        double *sums) noexcept nogil
    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            double *scratch) noexcept nogil
