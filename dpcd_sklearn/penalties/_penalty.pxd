cpdef enum Rule:
    GS_S
    GS_R
    GS_Q


cdef class Penalty:
    cdef double prox(self, Py_ssize_t j, double v, double step) noexcept nogil
    cdef void prox_all(self, double *w, const double *smoothness, double step,
                       Py_ssize_t n_penalized) noexcept nogil
    cdef double slope(self, Py_ssize_t j, double w, int direction) noexcept nogil
    cdef double excess(self, double w, double v, double subgradient) noexcept nogil
    cdef double signed_score(self, Rule rule, Py_ssize_t j, double w, double gradient,
                             double smoothness, int direction) noexcept nogil
