cpdef enum Rule:
    GS_S
    GS_R
    GS_Q


cdef class Penalty:
    cdef double prox(self, double v, double step) noexcept nogil
    cdef double slope(self, double w, int direction) noexcept nogil
    cdef double excess(self, double w, double v, double subgradient) noexcept nogil
    cdef double signed_score(self, Rule rule, double w, double gradient, double smoothness,
                             int direction) noexcept nogil
