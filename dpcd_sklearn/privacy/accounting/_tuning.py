"""The best of a secret random number of runs, and what it costs at one Rényi order.

(a) *Laws.* A truncated negative binomial law of shape η > -1 has P(K ≥ 1) = 1; its shapes 0 and 1
    are the logarithmic and the geometric law. With f its generating function,
    f'(1 - u) = m (1 + κ u)^-(1+η), m the mean and κ = 1/γ - 1.
(b) *Bounds.* That of the trade-off curve of one run, that of Papernot & Steinke (2022), or the less
    of both: each is valid by itself.
(c) A curve is given by points (ε, δ(ε)). Every point is a line above the trade-off curve, and
    every line gives a bound, so that nothing rests on how fine the points are.

Proof: ``proofs/private_tuning.md``.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar

from ...utils._public import check_real

_UP = 1 + 1e-9
_SHAPES = {"logarithmic": 0.0, "geometric": 1.0}
TUNING_DISTRIBUTIONS = (*_SHAPES, "poisson")
MOST_RUNS = 1e6  # on average


def check_law(distribution, mean):
    """The law of the number of runs in plain floats, or the error that says what is allowed.

    Raises
    ------
    TypeError, ValueError
        If `distribution` is neither a known word nor a shape in [-0.5, 100], or `mean` is out of
        range.
    """
    if isinstance(distribution, str) or distribution is None:
        if distribution not in TUNING_DISTRIBUTIONS:
            raise ValueError(
                f"distribution must be one of {TUNING_DISTRIBUTIONS} or a number >= -0.5, the "
                f"shape of a truncated negative binomial law, got {distribution!r}"
            )
    else:
        distribution = check_real(distribution, "distribution", low=-0.5, high=100, closed="both")
    least = 0 if distribution == "poisson" else 1
    return distribution, check_real(mean, "mean", low=least, high=MOST_RUNS, closed="right")


def shape_of(distribution):
    """η of a truncated negative binomial law."""
    return _SHAPES[distribution] if isinstance(distribution, str) else float(distribution)


def success_probability(shape, mean):
    """γ of the truncated negative binomial law of a shape with the given mean, rounded down."""
    if shape == 1.0:
        return 1 / mean

    def expected(log_gamma):  # η (1/γ - 1) / (1 - γ^η), decreasing in γ
        if log_gamma == 0:
            return 1.0
        per = -log_gamma if shape == 0 else -math.expm1(shape * log_gamma) / shape
        return math.expm1(-log_gamma) / per

    low, high = -700.0, 0.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return math.exp(low) * (1 - 2.0**-50)
        low, high = (middle, high) if expected(middle) > mean else (low, middle)


# ---- the Rényi divergence ---------------------------------------------------------------------


def tuning_divergence(divergence, curve, distribution, mean, order):
    """Of the best of a random number of runs, at one order.

    Parameters
    ----------
    divergence : callable
        From an order to the divergence of one run.
    curve : tuple (epsilons, deltas) of ndarrays
        Points of which each is a valid δ(ε), ε ≥ 0, of one run, epsilons increasing.
    distribution : {"logarithmic", "geometric", "poisson"} or float > -1
        A number is the shape of a truncated negative binomial law.
    mean : float
        Expected number of runs.
    order : float, > 1
    """
    if distribution == "poisson":
        return _poisson_divergence(divergence(order), curve, mean, order)
    shape = shape_of(distribution)
    gamma = success_probability(shape, mean)
    base = divergence(order) + (math.log(mean) + 1e-12) / (order - 1)
    penalty = min(_curve_penalty(curve, gamma, order), _published_penalty(divergence, gamma))
    return (base + (1 + shape) * penalty) * _UP


def _curve_penalty(curve, gamma, order):
    """The least over lines e^ε u + δ of sup_u log(1 + κ (e^ε u + δ)) - c log(1 + κ u)."""
    epsilons, deltas = curve
    kappa, c = (1 - gamma) / gamma, order / (order - 1)
    slopes, top = np.exp(epsilons), 1 + kappa * deltas
    # unimodal in u; where its derivative is zero, within [0, 1]
    u = np.clip((slopes - c * top) / ((c - 1) * kappa * slopes), 0.0, 1.0)
    gain = np.log(top + kappa * slopes * u)
    return float(np.min(gain - c * np.log1p(kappa * u) + 2.0**-48 * (1 + c) * (1 + gain)))


def _published_penalty(divergence, gamma):
    """(1 - 1/α̂) R(α̂) + log(1/γ)/α̂ at the best α̂: Papernot & Steinke (2022), Theorem 2."""

    def penalty(log_excess):
        other = 1 + math.exp(log_excess)
        return (1 - 1 / other) * divergence(other) - math.log(gamma) / other

    return minimize_scalar(penalty, bounds=(-3.0, 14.0), method="bounded").fun


def _poisson_divergence(base, curve, mean, order):
    """log(e^-m + m e^((α-1)(R + m δ̂))) / (α-1): the runs, and the outcome that there was none."""
    delta = _delta_at(curve, math.log1p(1 / (order - 1)))
    some = (order - 1) * (base + mean * delta) + math.log(mean)
    log_moment = np.logaddexp(-mean, some)
    rounding = 2.0**-50 * (1 + mean + abs(some))
    return float(max(0.0, log_moment + rounding) / (order - 1) * _UP)


def _delta_at(curve, epsilon):
    """δ at some ε ≥ 0 between points: on a chord in e^ε, in which a curve is convex."""
    epsilons, deltas = curve
    if epsilon < epsilons[0]:
        return 1.0
    i = int(np.searchsorted(epsilons, epsilon, side="right"))
    if i == len(epsilons):
        return float(deltas[-1])
    low, high = epsilons[i - 1], epsilons[i]
    share = math.expm1(epsilon - low) / math.expm1(high - low)
    return float(min(deltas[i - 1], (1 - share) * deltas[i - 1] + share * deltas[i]) + 1e-300)


# ---- drawing the number of runs -----------------------------------------------------------------


def draw_count(distribution, mean, words):
    """Draw K from the law, by inversion in whole numbers.

    The probabilities are those of the law but for rounding: all of them together are off by less
    than 2^-100.

    Parameters
    ----------
    distribution, mean
        As `check_law` returns them.
    words : callable
        From a number to a list of so many secret random words of 64 bits.
    """
    uniform = 0
    for word in words(4):
        uniform = uniform << 64 | word
    first = _law(distribution, mean)
    # 320 bits of fixed point: a term is below the truth by at most a few units for each step
    uniform <<= 64
    k, term, ratio = first
    total = term
    while uniform >= total and (term or k <= mean):
        top, bottom = ratio(k)
        term = term * top // bottom
        total, k = total + term, k + 1
    return k


def _law(distribution, mean):
    """The first k, 2^320 times its probability, and the ratio of P(k + 1) to P(k) as integers."""
    digits = Context(prec=120)
    if distribution == "poisson":
        m = Fraction(mean)
        first = digits.exp(_decimal(-m, digits))
        return 0, int(Fraction(first) * 2**320), lambda k: (m.numerator, m.denominator * (k + 1))
    shape = Fraction(shape_of(distribution))
    gamma = Fraction(success_probability(float(shape), mean))
    log_gamma = digits.ln(_decimal(gamma, digits))
    if shape == 0:
        first = (1 - gamma) / -Fraction(log_gamma)
    else:
        power = digits.exp(digits.multiply(_decimal(-shape, digits), log_gamma))
        first = shape * (1 - gamma) / (Fraction(power) - 1)

    def ratio(k):
        step = (1 - gamma) * (k + shape) / (k + 1)
        return step.numerator, step.denominator

    return 1, int(first * 2**320), ratio


def _decimal(x, context):
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))
