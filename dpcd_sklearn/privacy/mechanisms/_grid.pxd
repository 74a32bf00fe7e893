cdef enum:
    MAX_NOISE_BITS = 48

cpdef double record_limit(int bits, double noise_multiplier, double neighbors, Py_ssize_t size,
                          double slack=*) noexcept nogil
cpdef int noise_bits(double noise_multiplier, double neighbors, double n_normalizer,
                     Py_ssize_t n_samples, Py_ssize_t size, double most=*) except -1
