"""Half the unit deviance of Tweedie's family with a log link: Poisson, gamma and between.

With μ = exp(margin) clipped to a public range [low, high] that holds the targets, the derivative

    (μ^(2 - power) - target μ^(1 - power)) / unit

never decreases in the margin, so the loss is convex, and beyond the range it is linear. No
exponential is taken outside of it. Proof: ``privacy/proofs/log_link.md``.
"""

import math

import numpy as np

from ._loss cimport Loss


cdef extern from "_derivatives.h":
    double dpcd_exp(double x) noexcept nogil


# Without a stated lower bound a power above 1, whose derivatives grow as means fall, has this share
# of the upper one; and this share of it is the mean where none is known.
_LEAST, _MEAN = 1e-3, 0.125


cdef class TweedieLoss(Loss):
    """Half the unit deviance of exp(margin), over `unit`.

    Parameters
    ----------
    power : float, from 1 to 2
        The variance is proportional to the mean to this power.
    mean : float, > 0
        A public or released mean of the target.
    low, high : floats, 0 <= low < high
        Public range of the mean.
    unit : float or None
        The curvature that counts as 1: None is the expected one at `mean`. It is no bound. At the
        minimum of a fit with an intercept it is the mean curvature of all records (power 1).
    weight : float
        The mean weight of the records, which descents feel in their curvature.
    """

    name = "tweedie"
    task = "regression"
    twin = "tweedie"
    curvature = 1.0
    has_log_link = True
    has_known_errors = False

    cdef readonly double power, mean, low, high, unit, reach, weight
    cdef double _least, _most

    def __init__(self, double power=1.0, double mean=1.0, double low=0.0, double high=math.inf,
                 unit=None, double weight=1.0):
        self.power, self.mean, self.low, self.high = power, mean, low, high
        self.unit = mean ** (2 - power) if unit is None else unit
        self.weight = weight
        self.reach = high / mean if high < math.inf else 1.0
        self._least = math.log(low) if low > 0 else -700.0
        self._most = math.log(high) if high < math.inf else 700.0

    @classmethod
    def of(cls, stated, target_range):
        low, high = target_range
        if high == math.inf:
            return cls(stated.power)
        low = max(low, _LEAST * high) if stated.power > 1 else low
        return cls(stated.power, max(_MEAN * high, low), low, high)

    def around(self, mean, weight, knows_weights):
        """The loss at another mean of the target and of the weights; Newton steps know these."""
        mean = min(max(mean, self.low), self.high)
        unit = mean ** (2 - self.power) * (1 if knows_weights else weight)
        return type(self)(self.power, mean, self.low, self.high, unit, weight)

    def bounded(self):
        """The loss whose unit is its largest second derivative, the target's term at the mean."""
        steepest = self.high ** (2 - self.power) * (2 - self.power)
        if self.power > 1:
            steepest += (self.power - 1) * self.high * self.mean ** (1 - self.power)
        return type(self)(self.power, self.mean, self.low, self.high, steepest)

    cdef void derivative(self, Py_ssize_t n, const double *margin, const double *target,
                         double *out) noexcept nogil:
        cdef Py_ssize_t i
        cdef double m, p = self.power
        for i in range(n):
            m = margin[i] if margin[i] < self._most else self._most
            m = m if m > self._least else self._least
            out[i] = (dpcd_exp((2 - p) * m) - target[i] * dpcd_exp((1 - p) * m)) / self.unit

    def value(self, margin, target):
        m, y, p = np.asarray(margin), np.asarray(target), self.power
        within = np.clip(m, self._least, self._most)
        mean = np.exp(within)
        slope = mean ** (2 - p) - y * mean ** (1 - p)
        if p == 1:
            found = mean - y * within
        elif p == 2:
            found = within + y / mean
        else:
            found = mean ** (2 - p) / (2 - p) - y * mean ** (1 - p) / (1 - p)
        return (found + slope * (m - within)) / self.unit
