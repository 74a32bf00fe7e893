"""Smoothed quantile loss: linear with the slopes -q and 1 - q but near the target."""

import numpy as np

from ._loss cimport Loss


cdef class QuantileLoss(Loss):
    """The pinball loss of the quantile q, averaged over targets within `width`, over `unit`.

    Parameters
    ----------
    quantile : float in (0, 1)
    width : float, > 0
        How far from the target the loss is curved, in its units.
    target_half_width : float, > 0
        By which the target was divided.
    """

    name = "quantile"
    task = "regression"
    twin = "pinball"
    curvature = 1.0
    has_known_errors = False

    cdef readonly double quantile, width, unit, steepest

    def __init__(self, double quantile=0.5, double width=0.1, double target_half_width=1.0):
        self.quantile, self.width = quantile, width
        self.steepest = 2 * width * max(quantile, 1 - quantile)
        self.unit = 1 / (2 * width * target_half_width)

    @classmethod
    def of(cls, stated, target_half_width):
        return cls(stated.quantile, stated.width / target_half_width, target_half_width)

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double r
        for i in range(n):
            r = margin[i] - target[i]
            r = r if r < self.width else self.width
            r = r if r > -self.width else -self.width
            out[i] = r + self.width * (1 - 2 * self.quantile)

    def value(self, margin, target):
        residual = np.asarray(margin) - np.asarray(target)
        near = np.clip(residual, -self.width, self.width)
        curved = near * residual - near**2 / 2 + self.width**2 / 2
        return curved + self.width * (1 - 2 * self.quantile) * residual
