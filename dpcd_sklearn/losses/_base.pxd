cdef class Loss:
    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil
