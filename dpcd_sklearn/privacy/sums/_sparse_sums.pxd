from ._moving_sums cimport MovingSums


cdef class SparseSums(MovingSums):
    cdef double[::1] _derivatives, _lanes, _gathered
    cdef Py_ssize_t[::1] _touched
    cdef char[::1] _marks

    cdef Py_ssize_t _touch(self, const Py_ssize_t *columns, Py_ssize_t n_columns) noexcept nogil
    cdef void _derive(self, Py_ssize_t n, const Py_ssize_t *where, double *out) noexcept nogil
    cdef void _make_derivatives(self, Py_ssize_t n_touched) noexcept nogil
    cdef void _make_norms(self, const Py_ssize_t *block, Py_ssize_t size, Py_ssize_t n_columns,
                          Py_ssize_t n_touched) noexcept nogil
    cdef void _clip(self, double clip, Py_ssize_t n_touched) noexcept nogil
    cdef void _move_margins_at(self, Py_ssize_t n_touched) noexcept nogil
