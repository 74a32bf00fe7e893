"""δ(ε) of one fit that makes Gaussian releases and choices of one bounded range, in any order.

The choices are dominated by one distribution of loss (``_selection_curve``), the Gaussians by
their own; both orders and all interleavings are covered. Proof: ``proofs/selections.md``.
"""

import math
from functools import lru_cache

from scipy.optimize import brentq

from ._gaussian_dp import gdp_delta
from ._selection_curve import loss_distribution

# Tables of about so many operations, and at least so fine: the noise multiplier is then above its
# least value by 0.02 % for 50 choices, 0.1 % for 200, and 0.6 % for 1,000 and more.
_TABLE = 2e7
_FINEST, _COARSEST = 64, 8
# Beyond so many operations (half a second, a dozen times), or losses whose exponential leaves
# double precision, zCDP is used instead.
_MOST = 1e9
_WIDEST = 500.0
# Share of delta that may be moved to an infinite loss.
_TAIL = 1e-7
_UP = 1 + 1e-10


def _cells(eta, count):
    cells = int((_TABLE / (7 * count**1.5)) ** 0.5)
    cells = min(max(cells, _COARSEST), _FINEST)
    # a range of many units of ε needs cells by their absolute width
    return max(cells, min(int(eta * 20), 1000))


def is_tractable(eta, count):
    """Whether the table of so many choices of this range is made in a few seconds."""
    if not 0 < eta <= _WIDEST:
        return False
    cells = _cells(eta, count)
    widest = min(2 * count, 7 * count**0.5 + count * eta / 8)  # in ranges
    return widest * cells * cells * count <= _MOST and (widest + 2) * eta <= _WIDEST


@lru_cache(maxsize=64)
def _distribution(eta, count, tail):
    return loss_distribution(eta, count, _cells(eta, count), tail)


def selections_delta(eta, count, mu, epsilon, tail):
    """δ(epsilon) of `count` choices of range `eta` and releases that are together mu-GDP.

    A probability of up to `tail` may count as an infinite loss.
    """
    losses, masses, infinite = _distribution(eta, count, tail)
    delta = float(masses @ gdp_delta(mu, epsilon - losses)) + infinite
    return min(1.0, delta * _UP)


def selections_epsilon(eta, count, mu, delta, high):
    """The smallest ε ≤ high with δ(ε) ≤ delta; `high` is a valid ε by another argument."""

    def excess(epsilon):
        return selections_delta(eta, count, mu, epsilon, _TAIL * delta) - delta

    if excess(0.0) <= 0:
        return 0.0
    if excess(high) >= 0:
        return high
    return min(high, float(brentq(excess, 0.0, high, xtol=1e-300, rtol=1e-12)) * _UP)


def largest_factor(event, epsilon, delta):
    """The largest factor ≥ 1 whose event has δ(epsilon) ≤ delta, rounded downwards.

    Parameters
    ----------
    event : callable
        From a factor to (eta, count, mu), which grow with it; that of 1 is valid by another
        argument.
    epsilon, delta : float
    """

    def excess(factor):
        found = selections_delta(*event(factor), epsilon, _TAIL * delta)
        return math.log(max(found, 1e-300) / delta)

    low = high = 1.0
    while excess(high) <= 0 and is_tractable(*event(2 * high)[:2]) and high < 64:
        low, high = high, 1.25 * high
    if excess(high) <= 0:
        return high
    if low == high:  # the table rounds up by more than there is to gain
        return 1.0
    # each step may make a table of half a second; a millionth of the noise is nobody's loss
    factor = brentq(excess, low, high, xtol=1e-6, rtol=1e-6)
    while factor > low and excess(factor) > 0:
        factor = max(low, factor * (1 - 1e-6))
    return factor
