"""Huber loss: squared near the target, linear beyond a threshold."""

import numpy as np

from ._loss cimport Loss


# "auto" is this share of half the range of the target.
_SHARE = 0.2


cdef class HuberLoss(Loss):
    """(margin - target)^2 / 2 up to `threshold`, threshold (|margin - target| - threshold / 2) on.

    Parameters
    ----------
    threshold : float, > 0
        Residual from which the loss is linear, in the units of the target.
    """

    name = "huber"
    task = "regression"
    curvature = 1.0

    cdef readonly double threshold

    def __init__(self, double threshold=1.35):
        self.threshold = threshold

    @classmethod
    def of(cls, stated, target_half_width):
        return cls(_SHARE if stated.threshold == "auto" else stated.threshold / target_half_width)

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double r
        for i in range(n):
            r = margin[i] - target[i]
            r = r if r < self.threshold else self.threshold
            out[i] = r if r > -self.threshold else -self.threshold

    def second_derivative(self, derivative, target):
        return (np.abs(derivative) < self.threshold) * 1.0

    def value(self, margin, target):
        residual = np.abs(np.asarray(margin) - np.asarray(target))
        near = np.minimum(residual, self.threshold)
        return near * (residual - near / 2)
