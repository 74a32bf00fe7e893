cdef class IterateOracle:
    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil
