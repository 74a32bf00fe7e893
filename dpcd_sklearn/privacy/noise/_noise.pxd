cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t


@cython.final
cdef class NoiseSource:
    cdef uint32_t _key[8]
    cdef uint32_t _nonce[3]
    cdef uint32_t _counter
    cdef int _used
    cdef uint64_t _buffer[256]
    cdef readonly bint failed

    cdef uint64_t word(self) noexcept nogil
    cdef int64_t gaussian(self, int bits) noexcept nogil
    cdef void gaussians_into(self, Py_ssize_t n, int bits, int64_t *out) noexcept nogil
    cdef double log_exponential(self) noexcept nogil
    cdef void log_exponentials_into(self, Py_ssize_t n, double *out) noexcept nogil
    cdef void _refill(self) noexcept nogil
    cdef bint _accepts(self, int64_t j, uint64_t b) noexcept nogil
    cdef double _small_uniform(self) noexcept nogil
    cdef double _more_bits(self, double h) noexcept nogil
    cdef int64_t _exact_cell(self, uint64_t a) noexcept with gil
    cdef bint _exact_accept(self, int64_t j, uint64_t b, uint64_t c, uint64_t d) noexcept with gil
