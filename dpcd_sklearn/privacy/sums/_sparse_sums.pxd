cimport cython

from ._moving_sums cimport MovingSums
from ._sums cimport Question


@cython.final
cdef class SparseSums(MovingSums):
    cdef double[::1] _derivatives, _lanes, _room, _scale, _inverses
    cdef Py_ssize_t[::1] _touched
    cdef char[::1] _marks
    cdef Py_ssize_t _slice_size
    cdef bint _reads_rows

    cdef bint _sum_all(self, const Question *question) noexcept nogil
    cdef bint _sum_columns(self, const Question *question) noexcept nogil
    cdef bint _has_inverses(self) noexcept nogil
    cdef void _sum_ones(self, const Question *question, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil
    cdef bint _moves_all(self) noexcept nogil
    cdef void _move_by_intercept(self, Py_ssize_t k, Py_ssize_t start, Py_ssize_t n) noexcept nogil
    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil
    cdef double *_weighed(self, Py_ssize_t n, const Py_ssize_t *where, double *room) noexcept nogil
    cdef double *_derive(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                         double *room) noexcept nogil
    cdef void _make_derivatives(self, const Question *question,
                                Py_ssize_t n_touched) noexcept nogil
    cdef void _make_norms(self, const Question *question, Py_ssize_t n_touched) noexcept nogil
    cdef void _make_norms_of_rows(self, const Question *question, Py_ssize_t n,
                                  const Py_ssize_t *rows) noexcept nogil
    cdef void _change_ones(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                           const double *now) noexcept nogil
