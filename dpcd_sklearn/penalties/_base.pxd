cdef class Penalty:
    cdef double prox(self, double v, double step) noexcept nogil
    cdef double signed_score(self, double w, double gradient, double smoothness,
                             int direction) noexcept nogil
