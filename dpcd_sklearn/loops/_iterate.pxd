from ..penalties._penalty cimport Penalty
from ..privacy.mechanisms._oracle cimport SolverOracle
from ..utils._interrupts cimport Interrupts


cdef class Iterate:
    cdef readonly object coef
    cdef object _problem
    cdef double[::1] w
    cdef double[::1] _total, _since
    cdef const double[::1] _smoothness
    cdef Penalty _penalty
    cdef Interrupts interrupts
    cdef Py_ssize_t n_coordinates, _n_penalized, t, _tail_start
    cdef double _step_size, _step_decay, _weight
    cdef bint _weighted, _averages

    cdef double step_size(self) noexcept nogil
    cdef double moved(self, Py_ssize_t k, double direction, double step_size) noexcept nogil
    cdef void move_all(self, const double[::1] direction, double step_size) noexcept nogil
    cdef void set(self, Py_ssize_t k, double value) noexcept nogil
    cdef int tick(self) except -1 nogil


cdef class OracleIterate(Iterate):
    cdef SolverOracle oracle
