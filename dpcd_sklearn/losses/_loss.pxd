cdef class Loss:
    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil
    cdef void derivatives(self, Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                          const double *target, double *out) noexcept nogil
