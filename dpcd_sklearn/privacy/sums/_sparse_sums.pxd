from ...losses._base cimport Loss
from ._coordinate_sums cimport CoordinateSums
from ._records cimport Records


cdef class SparseSums(CoordinateSums):
    cdef double[::1] _derivatives, _lanes, _gathered
    cdef Py_ssize_t[::1] _touched
    cdef char[::1] _marks
    cdef bint _kept
    cdef double _kept_limit

    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil
    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *out) noexcept nogil
    cdef void _make_derivatives(self, Py_ssize_t n_touched) noexcept nogil
    cdef void _make_norms(self, const Py_ssize_t *block, Py_ssize_t size, Py_ssize_t n_columns,
                          Py_ssize_t n_touched) noexcept nogil
    cdef void _clip(self, double clip, Py_ssize_t n_touched) noexcept nogil
    cdef void _move_all_margins(self) noexcept nogil
    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil


cdef CoordinateSums coordinate_sums(Records records, Loss loss, smoothness,
                                    double coordinate_clip, bint fit_intercept, bint exact)
