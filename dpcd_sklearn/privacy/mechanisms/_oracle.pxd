from ...penalties._penalty cimport Penalty, Rule


cdef class SolverOracle:
    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil
    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil
    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil
    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil
    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil
