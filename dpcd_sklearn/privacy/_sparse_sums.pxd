from ..losses._base cimport Loss
from ._coordinate_sums cimport CoordinateSums
from ._records cimport Records, dpcd_sparse


cdef class SparseSums(CoordinateSums):
    cdef double[::1] _derivatives, _lanes, _values, _gathered
    cdef Py_ssize_t[::1] _where
    cdef bint _kept
    cdef double _kept_limit

    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *out) noexcept nogil
    cdef void _all_derivatives(self) noexcept nogil
    cdef void _move_all_margins(self) noexcept nogil
    cdef void _add_line(self, Py_ssize_t j, double a, int square, Py_ssize_t lane) noexcept nogil
    cdef double _column_sum(self, Py_ssize_t j, double scale, double limit,
                            bint derived) noexcept nogil
    cdef bint _is_cheap(self, Py_ssize_t j) noexcept nogil


cdef CoordinateSums coordinate_sums(Records records, Loss loss, smoothness,
                                    double coordinate_clip, bint fit_intercept, bint exact)
