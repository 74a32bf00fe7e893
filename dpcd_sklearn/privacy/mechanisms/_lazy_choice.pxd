from libc.stdint cimport int64_t, uint16_t

from ...penalties._penalty cimport Penalty, Rule
from ..noise._noise cimport NoiseSource


cdef class LazyChoice:
    cdef double *scores
    cdef Py_ssize_t _n
    cdef int _window, _last, _base
    cdef double _top
    cdef Py_ssize_t _n_left
    cdef double[::1] _scores
    cdef uint16_t[::1] _levels
    cdef int64_t[::1] _counts
    # what the scores were made of
    cdef double[::1] _sums, _coef
    cdef Penalty _penalty
    cdef Rule _rule
    cdef Py_ssize_t _n_penalized, _size

    cdef void begin(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                    Py_ssize_t size) noexcept nogil
    cdef bint knows(self, Py_ssize_t j, double total, double w) noexcept nogil
    cdef void learn(self, Py_ssize_t j, double total, double w) noexcept nogil
    cdef void forget(self, Py_ssize_t j) noexcept nogil
    cdef bint choose(self, NoiseSource noise, Py_ssize_t size, Py_ssize_t *chosen,
                     int *directions) noexcept nogil
    cdef bint _sort_into_levels(self) noexcept nogil
    cdef Py_ssize_t _draw(self, NoiseSource noise) noexcept nogil
    cdef Py_ssize_t _find(self, int64_t rank, int low, int high) noexcept nogil
    cdef bint _accept(self, NoiseSource noise, Py_ssize_t c, int level) noexcept nogil
    cdef void _remove(self, Py_ssize_t c) noexcept nogil


cdef bint is_worth_it(Py_ssize_t size) noexcept nogil
