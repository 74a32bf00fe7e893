"""Bounds on every coefficient; a lower bound of zero alone is non-negativity."""

import numpy as np
from libc.math cimport INFINITY

from ._penalty cimport Penalty

cdef class BoxPenalty(Penalty):
    """Zero within [lo, hi], infinite outside.

    Parameters
    ----------
    lo, hi : float, lo < hi
        May be infinite.
    """

    name = "box"
    words = ("nonnegative", "box")

    cdef readonly double lo
    cdef readonly double hi

    def __init__(self, double lo=0.0, double hi=INFINITY):
        if not lo < hi:
            raise ValueError(f"a box needs lo < hi, got [{lo:g}, {hi:g}]")
        self.lo = lo
        self.hi = hi

    @classmethod
    def of(cls, word, strength, parameters, target_half_width):
        if word == "nonnegative":
            return cls()
        lo, hi = parameters.coef_bounds
        return cls(lo / target_half_width, hi / target_half_width)

    cdef double prox(self, Py_ssize_t j, double v, double step) noexcept nogil:
        v = v if v < self.hi else self.hi
        return v if v > self.lo else self.lo

    cdef double slope(self, Py_ssize_t j, double w, int direction) noexcept nogil:
        # a mean of coefficients may lie beyond a wall by a rounding
        return INFINITY if (w >= self.hi if direction > 0 else w <= self.lo) else 0.0

    cdef double excess(self, double w, double v, double subgradient) noexcept nogil:
        # zero inside; at a wall the subgradient points outwards, and w lies inwards
        return subgradient * (v - w) if v == self.lo or v == self.hi else 0.0

    def value(self, coef):
        coef = np.asarray(coef)
        return 0.0 if ((coef >= self.lo) & (coef <= self.hi)).all() else np.inf
