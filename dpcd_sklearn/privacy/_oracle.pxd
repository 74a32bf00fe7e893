from ..penalties._base cimport Penalty


cdef class Oracle:
    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil
    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil
    cdef Py_ssize_t release_argmax(self, Penalty penalty, const double *coef,
                                   int *direction) noexcept nogil
    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil
