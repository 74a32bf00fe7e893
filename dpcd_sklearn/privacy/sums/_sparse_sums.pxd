cimport cython

from ._moving_sums cimport MovingSums
from ._sums cimport Question


@cython.final
cdef class SparseSums(MovingSums):
    cdef double[::1] _derivatives, _lanes, _room, _scale, _inverses
    cdef Py_ssize_t _slice_size
    cdef Py_ssize_t[::1] _touched, _distinct
    cdef char[::1] _marks, _column_marks

    cdef const Py_ssize_t *_once(self, const Py_ssize_t *columns,
                                 Py_ssize_t *n_columns) noexcept nogil
    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil
    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *room,
                      double *out) noexcept nogil
    cdef bint _sum_all(self, const Question *question) noexcept nogil
    cdef bint _moves_all(self) noexcept nogil
    cdef Py_ssize_t _threads(self) noexcept nogil
    cdef void _move_rows(self, Py_ssize_t n, const Py_ssize_t *rows) noexcept nogil
    cdef void _sum_rows(self, const Question *question, Py_ssize_t n, const Py_ssize_t *rows,
                        double *room, double *sums) noexcept nogil
    cdef void _make_norms_of_rows(self, const Question *question, Py_ssize_t n,
                                  const Py_ssize_t *rows) noexcept nogil
    cdef void _make_derivatives(self, const Question *question,
                                Py_ssize_t n_touched) noexcept nogil
    cdef void _make_norms(self, const Question *question, Py_ssize_t n_touched) noexcept nogil
    cdef void _sum_columns(self, const Question *question) noexcept nogil
    cdef void _sum_ones(self, const Question *question, Py_ssize_t k) noexcept nogil
    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil
    cdef void _change_ones(self, const Question *question, Py_ssize_t n, const Py_ssize_t *where,
                           const double *now) noexcept nogil
