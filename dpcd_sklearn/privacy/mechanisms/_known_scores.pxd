from ...penalties._penalty cimport Penalty, Rule


cdef class KnownScores:
    cdef double[::1] _sums, _coef
    cdef Penalty _penalty
    cdef Rule _rule
    cdef Py_ssize_t _n_penalized, _size

    cdef void be_for(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                     Py_ssize_t size) noexcept nogil
    cdef bint has(self, Py_ssize_t j, double total, double w) noexcept nogil
    cdef void learn(self, Py_ssize_t j, double total, double w) noexcept nogil
    cdef void forget(self, Py_ssize_t j) noexcept nogil
    cdef void forget_all(self) noexcept nogil
