"""Squared loss, (margin - target)^2 / 2."""

import numpy as np

from ._base cimport Loss


cdef class SquaredLoss(Loss):
    """(margin - target)^2 / 2, for real targets."""

    name = "squared"
    task = "regression"
    curvature = 1.0

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(n):
            out[i] = margin[i] - target[i]

    def value(self, margin, target):
        return 0.5 * (np.asarray(margin) - np.asarray(target)) ** 2
