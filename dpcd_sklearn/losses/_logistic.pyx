"""Logistic loss, log(1 + exp(margin)) - target * margin, for targets 0 and 1."""

import numpy as np

from ._loss cimport Loss
from ._derivatives cimport DERIVATIVES


cdef class LogisticLoss(Loss):
    """log(1 + exp(margin)) - target * margin, for targets 0 and 1."""

    name = "logistic"
    task = "classification"
    twin = "logistic"
    curvature = 0.25

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        DERIVATIVES.logistic(n, margin, target, out)

    def second_derivative(self, derivative, target):
        probability = derivative + target
        return np.clip(probability * (1.0 - probability), 0.0, self.curvature)

    def value(self, margin, target):
        return np.logaddexp(0.0, margin) - np.asarray(target) * margin
