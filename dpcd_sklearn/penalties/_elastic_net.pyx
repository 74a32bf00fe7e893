"""Elastic net, l1 |w| + l2 w^2 / 2; with l2 = 0 it is l1, with l1 = 0 it is l2, with both none."""

import numpy as np
from libc.math cimport INFINITY, fabs

from ._penalty cimport Penalty


cdef class ElasticNet(Penalty):
    """Sum over coefficients of l1 |w_j| + l2 w_j^2 / 2.

    Parameters
    ----------
    l1, l2 : float, >= 0, finite
    positive : bool
        Infinite where a coefficient is negative.
    signs : sequence of -1, 0 and 1, or None
        Infinite where coefficient j has the other sign than this; 0 allows both.
    """

    name = "elasticnet"
    words = ("l1", "l2", "elasticnet")

    cdef readonly double l1
    cdef readonly double l2
    cdef readonly bint positive
    cdef readonly bint is_smooth
    cdef const double[::1] _signs
    cdef Py_ssize_t _stride  # 0 where all coefficients share one sign

    def __init__(self, double l1=0.0, double l2=0.0, bint positive=False, signs=None):
        if not (0.0 <= l1 < INFINITY and 0.0 <= l2 < INFINITY):
            raise ValueError(f"l1 and l2 must lie in [0, inf), got {l1:g} and {l2:g}")
        self.l1 = l1
        self.l2 = l2
        self.positive = positive
        self._stride = not positive and signs is not None
        self._signs = np.array(signs if self._stride else [positive], dtype=np.float64)
        self.is_smooth = l1 == 0.0 and not np.any(self._signs)

    @classmethod
    def of(cls, word, strength, parameters, target_half_width):
        l1_ratio = {"l1": 1.0, "l2": 0.0}.get(word, parameters.l1_ratio)
        l1 = strength * l1_ratio / target_half_width
        return cls(l1, strength * (1 - l1_ratio), parameters.positive, parameters.signs)

    cdef double prox(self, Py_ssize_t j, double v, double step) noexcept nogil:
        cdef double t = step * self.l1
        if self._signs[j * self._stride] * v < 0.0:
            return 0.0
        v = v - t if v > t else (v + t if v < -t else 0.0)
        return v / (1.0 + step * self.l2)

    cdef double slope(self, Py_ssize_t j, double w, int direction) noexcept nogil:
        if w == 0.0:
            return INFINITY if self._signs[j * self._stride] * direction < 0.0 else self.l1
        return direction * (self.l1 if w > 0.0 else -self.l1) + direction * self.l2 * w

    cdef double excess(self, double w, double v, double subgradient) noexcept nogil:
        cdef double sign = 1.0 if w > 0.0 else -1.0
        cdef double quadratic = 0.5 * self.l2 * (w - v) * (w - v)
        if w == 0.0 or w * v > 0.0:
            return quadratic
        if v == 0.0:  # a subgradient at zero lies within l1
            return quadratic + fabs(w) * (self.l1 - sign * subgradient)
        return quadratic + 2.0 * self.l1 * fabs(w)

    def value(self, coef):
        coef = np.asarray(coef)
        if not (np.asarray(self._signs) * coef >= 0.0).all():
            return np.inf
        return self.l1 * np.abs(coef).sum() + 0.5 * self.l2 * (coef * coef).sum()
