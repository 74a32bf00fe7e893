from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef class NoiseSource:
    cdef uint32_t _key[8]
    cdef uint32_t _nonce[3]
    cdef uint32_t _counter
    cdef unsigned char _buffer[512]
    cdef int _used
    cdef readonly bint failed

    cdef uint64_t word(self) noexcept nogil
    cdef int64_t gaussian(self, int bits) noexcept nogil
    cdef double log_exponential(self) noexcept nogil
    cdef int _exact_cell(self, uint64_t a) noexcept with gil
    cdef bint _exact_accept(self, int k, uint64_t b, uint64_t c) noexcept with gil
