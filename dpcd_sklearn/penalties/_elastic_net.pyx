"""Elastic net, l1 |w| + l2 w^2 / 2; with l2 = 0 it is l1, with l1 = 0 it is l2."""

import numpy as np
from libc.math cimport sqrt

from ._base cimport Penalty


cdef class ElasticNet(Penalty):
    """Sum over coefficients of l1 |w_j| + l2 w_j^2 / 2.

    Parameters
    ----------
    l1, l2 : float, >= 0
    """

    name = "elasticnet"

    cdef readonly double l1
    cdef readonly double l2

    def __init__(self, double l1=0.0, double l2=0.0):
        self.l1 = l1
        self.l2 = l2

    cdef double prox(self, double v, double step) noexcept nogil:
        cdef double t = step * self.l1
        v = v - t if v > t else (v + t if v < -t else 0.0)
        return v / (1.0 + step * self.l2)

    cdef double signed_score(self, double w, double gradient, double smoothness,
                             int direction) noexcept nogil:
        # GS-r: sqrt(M) |prox(w - g / M) - w|, signed by the direction of the move. At w = 0 it is
        # not cut at zero:
        # useless rare coordinates then score far below the others.
        cdef double root = sqrt(smoothness)
        if w == 0.0:
            return (-direction * gradient - self.l1) * root / (smoothness + self.l2)
        return direction * root * (self.prox(w - gradient / smoothness, 1.0 / smoothness) - w)

    def value(self, coef):
        coef = np.asarray(coef)
        return self.l1 * np.abs(coef).sum() + 0.5 * self.l2 * (coef @ coef)
