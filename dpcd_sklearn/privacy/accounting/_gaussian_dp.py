"""Gaussian DP (Dong, Roth & Su 2022): no easier to attack than telling N(0, 1) from N(μ, 1).

Accounting rounds towards more loss, calibration towards more noise: ``proofs/accounting.md``.
"""

import math
from functools import cache, lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

# Relative slack that swallows the rounding of the double-precision formulas below.
_ROUNDING = 1e-10


def inverse(function, low, high, *, precision=1e-13, within=1e-300):
    """Where a function is zero between two numbers at which it has two signs: all roots are here.

    Exact to a share `precision` or an amount `within`; rounding is up to whoever asks.
    """
    return brentq(function, low, high, xtol=within, rtol=precision, maxiter=500)


@np.errstate(over="ignore", under="ignore")
def gdp_delta(mu, epsilon):
    """δ(ε) of a μ-GDP mechanism: Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2), without cancellation.

    With a = ε/μ - μ/2 and b = ε/μ + μ/2, e^ε φ(b) = φ(a), so both terms share the factor
    exp(-a²/2) / 2 and only the scaled complementary error functions are subtracted. For ε < 0 the
    symmetry of Gaussians gives δ(ε) = 1 - e^ε + e^ε δ(-ε). `epsilon` may be an array.
    """
    size = np.abs(epsilon)
    if mu == 0:
        delta = np.zeros_like(size)
    elif math.isinf(mu):
        delta = np.ones_like(size)
    else:
        a, b = size / mu - mu / 2, size / mu + mu / 2
        scale = 0.5 * np.exp(-a * a / 2)
        # Φ(-a), and e^ε Φ(-b)
        first = np.where(a > 0, scale * erfcx(np.maximum(a, 0) / math.sqrt(2)), ndtr(-a))
        second = scale * erfcx(b / math.sqrt(2))
        # The terms nearly cancel for tiny mu: each is good to a few 2^-53.
        delta = np.minimum(1.0, (first - second) * (1 + _ROUNDING) + first * 2.0**-50)
    exponent = np.minimum(epsilon, 0.0)
    return (np.exp(exponent) * delta - np.expm1(exponent))[()]


def gdp_delta_below(mu, epsilon):
    """δ(ε) of a μ-GDP mechanism, ε ≥ 0, and its derivative in x = e^ε: both rounded downwards."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    scale = 0.5 * np.exp(-a * a / 2)
    first = np.where(a > 0, scale * erfcx(np.maximum(a, 0) / math.sqrt(2)), ndtr(-a))
    second = scale * erfcx(b / math.sqrt(2))
    delta = (first - second) * (1 - _ROUNDING) - first * 2.0**-50
    return delta, -ndtr(-b) * (1 + _ROUNDING)


def gdp_epsilon(mu, delta):
    """The smallest ε ≥ 0 with δ(ε) ≤ delta for a μ-GDP mechanism, rounded upwards."""
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    if mu > 1e8:  # no noise to speak of; the formula would only lose digits
        return math.inf
    # δ(ε) ≤ Φ(-a) ≤ exp(-a²/2) / 2, so a = sqrt(2 ln 1/δ) is always enough.
    high = mu * (math.sqrt(-2 * math.log(delta)) + mu / 2) + 1e-12
    root = inverse(lambda e: gdp_delta(mu, e) - delta, 0.0, high)
    return float(root * (1 + _ROUNDING))


@lru_cache(maxsize=1024)  # a root: much of the time of a small fit
def gdp_mu(epsilon, delta):
    """The largest μ whose mechanisms are (epsilon, delta)-DP, rounded downwards."""
    low, high = 1e-100, 1.0  # squares of a smaller μ leave double precision
    while gdp_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    mu = 0.0
    if gdp_delta(low, epsilon) <= delta:
        mu = inverse(lambda mu: gdp_delta(mu, epsilon) - delta, low, high) * (1 - _ROUNDING)
    while gdp_delta(mu, epsilon) > delta:  # a root found on the far side of the crossing
        mu *= 1 - 1e-9
    if not mu > 1e-100:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} are so small that the budget admits no "
            "release at all; raise one of them"
        )
    return mu


TOLERANCE = 2e-7  # of a logarithm: noise above its least by less is nobody's loss
_MOST_STEPS = 100  # towards a change of sign; a few are enough
_WIDEST_STEP = 2.0


def largest_within(excess, start, highest=math.inf, tolerance=TOLERANCE):
    """The largest x with excess(x) ≤ 0, rounded downwards; None if there is none nearby.

    Parameters
    ----------
    excess : callable
        It grows with x, about as fast; a jump is no harm.
    start, highest : float
        The search begins at `start` and goes no farther than `highest`.
    tolerance : float, > 0
        An excess between -tolerance and 0 is near enough.
    """
    within = []

    @cache  # `inverse` asks for its ends again
    def aimed(x):
        value = excess(x)
        if value <= 0:
            within.append(x)
        return 0.0 if -tolerance <= value <= 0 else value + tolerance / 2

    here, at, step = start, aimed(start), tolerance
    for _ in range(_MOST_STEPS):
        if at == 0.0 or (at < 0 and here >= highest):
            break
        step = min(max(1.04 * abs(at), 1.5 * step), _WIDEST_STEP)
        there = min(here - math.copysign(step, at), highest)
        if at * (value := aimed(there)) < 0:
            inverse(aimed, here, there, within=tolerance / 4)
            break
        here, at = there, value
    return max(within, default=None)
