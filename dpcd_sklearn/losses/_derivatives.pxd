cdef extern from "_derivatives.h":
    ctypedef struct dpcd_derivatives:
        void (*squared)(Py_ssize_t n, const double *margin, const double *target,
                        double *out) noexcept nogil
        void (*logistic)(Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil
        void (*multinomial)(Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                            const double *target, double *out) noexcept nogil
    const dpcd_derivatives *dpcd_choose_derivatives() noexcept nogil


# Derivatives that this processor can run; chosen when the module is imported.
cdef const dpcd_derivatives *DERIVATIVES
