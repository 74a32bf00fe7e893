"""Logistic loss, log(1 + exp(margin)) - target * margin, for targets 0 and 1."""

import numpy as np
from libc.math cimport exp

from ._base cimport Loss


cdef class LogisticLoss(Loss):
    """log(1 + exp(margin)) - target * margin, for targets 0 and 1."""

    name = "logistic"
    task = "classification"
    curvature = 0.25

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(n):
            # exp overflows to infinity for margins below -709: the quotient is 0, as it should be
            out[i] = 1.0 / (1.0 + exp(-margin[i])) - target[i]

    def value(self, margin, target):
        return np.logaddexp(0.0, margin) - np.asarray(target) * margin
