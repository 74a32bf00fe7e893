from libc.stdint cimport int64_t

from ._local_sums cimport LocalSums
from ._sums cimport Question


cdef enum State:
    SETTLED
    KEPT
    MOVED
    KEPT_MOVED


cdef class MovingSums(LocalSums):
    cdef double[::1] _margins, _norms, _step
    cdef const double[::1] _smoothness
    cdef Py_ssize_t[::1] _step_columns
    cdef Py_ssize_t _n_step_columns
    cdef double _intercept_step, _kept_limit, _kept_clip
    cdef State _state
    cdef bint _norms_known

    cdef bint _has_step(self) noexcept nogil
    cdef Py_ssize_t _answer_at(self, const Question *question) noexcept nogil
    cdef bint _keeps(self, const Question *question) noexcept nogil
    cdef void _check_refresh(self, const Question *question) noexcept with gil
    cdef bint _has_norms(self) noexcept nogil
    cdef bint _has_steps(self, Py_ssize_t size) noexcept nogil
    cdef bint _sum(self, const Question *question) noexcept nogil
    cdef bint _settle(self) noexcept nogil
    cdef bint _refresh(self, const Question *question) noexcept nogil
