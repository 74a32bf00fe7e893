"""Residues and covers: the rest that an event leaves, and the Gaussian that stands for it.

Arithmetic on distributions of loss, rounded towards more loss. Each function takes the losses of
one event in both directions, or one that holds for both. Proof: ``proofs/accountant.md``.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from ._gaussian_dp import gdp_delta_below, gdp_mu, inverse
from ._loss import WIDEST, on_grid

_DOWN = 1 - 1e-10
_FINENESS = 64  # cells of the check below for one standard deviation
_PRECISION = 1e-6  # of a cover
_MOST_POINTS = 4000


def residue(losses, epsilon, delta):
    """The largest m² such that the event, then what is m-GDP, is (epsilon, delta)-DP; else zero.

    Rounded downwards.
    """
    whole = gdp_mu(epsilon, delta) ** 2
    return min(_residue(loss, epsilon, delta, whole) for loss in losses)


def _residue(loss, epsilon, delta, whole):
    def excess(squared):
        found = loss.with_gaussian(math.sqrt(squared)).delta(epsilon)
        return math.log(max(found, 1e-300) / delta)

    if loss.is_gaussian:
        return max(0.0, (whole - loss.mu**2) * _DOWN)
    if excess(0.0) >= 0:
        return 0.0
    if excess(whole) <= 0:  # an event that costs next to nothing
        return whole * _DOWN
    squared = inverse(excess, 0.0, whole, precision=1e-11)
    while squared > 0 and excess(squared) > 0:
        squared = squared * _DOWN if squared > 1e-9 * whole else 0.0
    return squared


def cover(losses, spare):
    """The least μ such that δ_event(e) ≤ spare + (1 - spare) δ_μ(e) for all e, rounded upwards.

    Infinite where there is none.
    """
    return max(_cover(loss, spare) for loss in losses)


@lru_cache(maxsize=64)  # of a loss that is cached itself
def _cover(loss, spare):
    """The check on every cell of a grid that ends where the event's curve is below `spare`.

    In x = e^e the event's curve is below its chord over the cell, and that of the Gaussian above
    its tangent in the middle: between lines an inequality at both ends holds between them. For
    e < 0 both curves are reflected, which the check in the other direction answers for.
    """
    if loss.is_gaussian:
        return loss.mu
    points = _points(loss, spare)
    if points is None:
        return math.inf
    e, needed = points
    middle = (e[1:] + e[:-1]) / 2
    # of the ends of a cell, seen from its middle
    ends = [np.expm1(end - middle) * np.exp(middle) for end in (e[:-1], e[1:])]

    def covers(mu):
        height, slope = gdp_delta_below(mu, middle)
        return all(
            np.all(height + slope * end >= need)
            for end, need in zip(ends, (needed[:-1], needed[1:]), strict=True)
        )

    # at e = 0 the Gaussian's is 2 Φ(μ/2) - 1
    low = high = max(2 * float(ndtri((1 + min(needed[0], 1 - 1e-15)) / 2)), 1e-9 * e[1])
    while not covers(high):
        low, high = high, 1.2 * high
        if high > 1e4:
            return math.inf
    while high - low > _PRECISION * high:
        middle_mu = (low + high) / 2
        low, high = (low, middle_mu) if covers(middle_mu) else (middle_mu, high)
    return high


def _points(loss, spare):
    """A grid from 0 to where δ ≤ spare, and what a Gaussian needs at each point; None if not so."""
    end = loss.epsilon(spare)
    if end == 0.0:
        return np.array([0.0, 1.0]), np.zeros(2)
    if end > WIDEST:
        return None
    # the curve of a Gaussian of the same reach would end at about five standard deviations
    stride = max(1, round(end / 5 / _FINENESS / loss.step))
    if stride > _FINENESS:  # a grid that is finer than anybody needs is a long one
        loss = on_grid(loss, loss.step * (stride // _FINENESS))
        stride = _FINENESS
    n = min(math.ceil(end / (stride * loss.step)) + 2, _MOST_POINTS)
    e = stride * loss.step * np.arange(n)
    deltas = loss.deltas(0, stride, n)
    if e[-1] > 1.1 * WIDEST or deltas[-1] > spare:
        return None
    return e, np.maximum(0.0, deltas - spare) / (1 - spare)
