from ._local_sums cimport LocalSums
from ._sums cimport Question


cdef enum State:
    SETTLED
    KEPT
    MOVED
    KEPT_MOVED


cdef inline Py_ssize_t first_at(const Py_ssize_t *block, Py_ssize_t size,
                                Py_ssize_t least) noexcept nogil:
    """Where an ascending block (NULL: all coordinates) reaches `least`."""
    cdef Py_ssize_t low = 0, middle
    if block == NULL:
        return min(least, size)
    while low < size:
        middle = (low + size) // 2
        if block[middle] < least:
            low = middle + 1
        else:
            size = middle
    return low


cdef class MovingSums(LocalSums):
    cdef double[::1] _margins, _norms, _step, _intercept_steps
    cdef const double[::1] _smoothness
    cdef Py_ssize_t[::1] _step_columns, _step_starts, _kept_sizes
    cdef Py_ssize_t[::1] _columns, _starts, _widths
    cdef Py_ssize_t _size, _n_columns
    cdef double _kept_limit, _kept_clip
    cdef State _state
    cdef bint _norms_known, _alike

    cdef bint _has_step(self) noexcept nogil
    cdef bint _moves_intercepts(self) noexcept nogil
    cdef void _split(self, const Question *question) noexcept nogil
    cdef const Py_ssize_t *_part(self, const Question *question, Py_ssize_t k) noexcept nogil
    cdef bint _has_ones(self, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _norms_apart(self, const Question *question) noexcept nogil
    cdef Py_ssize_t _count_kept(self, const Py_ssize_t *block, Py_ssize_t size,
                                const double *step) noexcept nogil
    cdef bint _has_steps(self, Py_ssize_t size) noexcept nogil
    cdef bint _keeps(self, const Question *question) noexcept nogil
    cdef void _check_refresh(self, const Question *question) noexcept with gil
    cdef bint _sum(self, const Question *question) noexcept nogil
    cdef bint _settle(self) noexcept nogil
    cdef bint _refresh(self, const Question *question) noexcept nogil
