"""Squared loss, (margin - target)^2 / 2."""

import numpy as np

from ._loss cimport Loss
from ._derivatives cimport DERIVATIVES


cdef class SquaredLoss(Loss):
    """(margin - target)^2 / 2, for real targets."""

    name = "squared"
    task = "regression"
    twin = "squared"
    curvature = 1.0

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        DERIVATIVES.squared(n, margin, target, out)

    def second_derivative(self, derivative, target):
        return np.ones_like(derivative)

    def value(self, margin, target):
        return 0.5 * (np.asarray(margin) - np.asarray(target)) ** 2
