"""The best of a secret random number of runs, and the distribution of its privacy loss.

(a) *Laws.* A truncated negative binomial law of shape η > -1 has P(K ≥ 1) = 1; its shapes 0 and 1
    are the logarithmic and the geometric law. With f its generating function,
    f'(1 - u) = m (1 + κ u)^-(1+η), m the mean and κ = 1/γ - 1.
(b) *Bound.* E[H(e^(e-L))], L the loss of a run, H(s) = sup_u f'(1-u) - s f'(1-G(u)), G its
    trade-off curve in the same direction; and that there was no run.
(c) *A subset.* Each of n candidates has one run with the probability q, for itself, or none.
    (b) holds with H the most over all u_j, and a concave line above one factor is one above all.
(d) *H* is a mixture of hockey sticks, so the curve of a search is a mixture of shifted curves of
    a run. Every point of that curve is a line above G, and every line bounds H.

Proof: ``proofs/private_tuning.md``.
"""

import math
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from ...utils._public import check_real
from ._gaussian_dp import gdp_delta
from ._loss import WIDEST, of_points, on_grid

_UP = 1 + 1e-9
_FINENESS = 16  # steps of a grid for one standard deviation of a Gaussian run
_BLOCK, _MOST_BLOCKS = 64, 240
_NOTHING = 1e-100  # of the largest height; what is left of it counts as if it told everything
_MOST_COUNTED = 2000  # runs, where all are counted; more are as if nothing were private
_SHAPES = {"logarithmic": 0.0, "geometric": 1.0}
TUNING_DISTRIBUTIONS = (*_SHAPES, "poisson", "subset")
TRIED = 0.95  # probability that a candidate is in the subset
_MOST_OF_LOG = -math.log1p(-TRIED)
MOST_RUNS = 1e6  # on average


def check_law(distribution, mean):
    """The law of the number of runs in plain floats, or the error that says what is allowed.

    Raises
    ------
    TypeError, ValueError
        If `distribution` is neither a known word nor a shape in [-0.5, 100], or `mean` is out of
        range, or is not that of a subset of two candidates or more.
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
    mean = check_real(mean, "mean", low=least, high=MOST_RUNS, closed="right")
    if distribution == "subset" and not math.isclose(mean, TRIED * n_candidates_of(mean)):
        raise ValueError(f"the mean of a subset is {TRIED} times a whole number, got {mean!r}")
    return distribution, mean


def n_candidates_of(mean):
    """How many candidates a subset is drawn of, from its mean number of runs."""
    return round(mean / TRIED)


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


def missed(distribution, mean, n_candidates):
    """Probability that one of so many candidates is in no run; all but subsets may repeat one."""
    if distribution == "subset":
        return 1 - TRIED
    hit = 1 / n_candidates
    if distribution == "poisson":
        return math.exp(-mean * hit)
    shape = shape_of(distribution)
    gamma = success_probability(shape, mean)
    log = math.log1p((1 - gamma) * hit / gamma) + math.log(gamma)  # of 1 - (1 - γ)(1 - hit)
    if shape == 0:
        return log / math.log(gamma)
    return math.expm1(-shape * log) / math.expm1(-shape * math.log(gamma))


# ---- the distribution of loss -------------------------------------------------------------------


def tuning_loss(base, distribution, mean, covered=None):
    """Loss of the best of a random number of runs, in the directions of the loss of one run.

    Parameters
    ----------
    base : Loss
        Loss of one run; of one whose curves differ, call it for each direction.
    distribution : {"logarithmic", "geometric", "poisson", "subset"} or float > -1
        A number is the shape of a truncated negative binomial law.
    mean : float
        Expected number of runs.
    covered : tuple (μ, δ), default=None
        A cover of one run, in both directions: a tighter bound at small e.
    """
    base, half = _on_grid(base)
    if half is None:
        return _crude(base, distribution, mean)
    step, e = base.step, base.step * np.arange(-half, half + 1)
    heights, first = _heights(e, base.deltas(-half, 1, len(e)), step, distribution, mean)
    if heights[-1] > _NOTHING * mean:
        return _crude(base, distribution, mean)
    sticks = of_points(first, step, heights / mean)
    # A stick at log s makes of E[H] the curve of a run at e - log s.
    n = len(sticks.masses)
    reach = half + n
    run = base.deltas(-reach - first - (n - 1), 1, 2 * reach + n)
    deltas = mean * (np.convolve(run, sticks.masses, "valid") + sticks.infinite) * _UP
    e = step * np.arange(-reach, reach + 1)
    deltas += _no_run(distribution, mean) * np.maximum(-np.expm1(e), 0.0)
    if covered is not None:
        deltas = np.minimum(deltas, _by_all_runs(*covered, distribution, mean, e))
    return of_points(-reach, step, np.minimum(1.0, deltas))


def _no_run(distribution, mean):
    """P(K = 0)."""
    if distribution == "subset":
        return math.exp(-_MOST_OF_LOG * n_candidates_of(mean))
    return math.exp(-mean) if distribution == "poisson" else 0.0


def _by_all_runs(mu, spare, distribution, mean, e):
    """The curve if all runs left, given their number: better at small e, where ranks tell little.

    Covers compose: k runs are covered by k spares and a Gaussian of sqrt(k) times the μ of one.
    """
    if not math.isfinite(mu):
        return 1.0
    probabilities = _probabilities(distribution, mean, _MOST_COUNTED)
    more = max(0.0, 1.0 - math.fsum(probabilities)) + 1e-14
    deltas = np.full(len(e), more + mean * spare)
    last = 0
    while last < len(probabilities):  # numbers of runs in groups, each counted as its largest
        until = max(last + 1, math.floor(1.1 * last))
        share = math.fsum(probabilities[last:until])
        deltas += share * gdp_delta(math.sqrt(min(until, len(probabilities)) - 1) * mu, e)
        last = until
    return deltas * _UP


def _probabilities(distribution, mean, n):
    """P(K = k) for k < n; a subset counts as all of its candidates."""
    if distribution == "subset":
        return np.append(np.zeros(n_candidates_of(mean)), 1.0)[:n]
    k = np.arange(1, n)
    if distribution == "poisson":
        return np.exp(np.append(0.0, np.cumsum(np.log(mean / k))) - mean)
    shape = shape_of(distribution)
    gamma = success_probability(shape, mean)
    if shape == 0:
        first = (1 - gamma) / -math.log(gamma)
    else:
        first = shape * (1 - gamma) / math.expm1(-shape * math.log(gamma))
    ratios = (1 - gamma) * (k[:-1] + shape) / (k[:-1] + 1)
    return np.append(0.0, first * np.cumprod(np.append(1.0, ratios)))


def _on_grid(base):
    """The loss of a run on a grid that is fine enough, and how many steps its curve reaches."""
    # that of a Gaussian whose curve ends where this one does
    spread = base.epsilon(1e-14 + base.infinite * (1 + 1e-6)) / 7.5
    if not 0 < spread < math.inf:
        return base, None
    step = spread / _FINENESS
    base = on_grid(base, step if len(base.masses) == 1 else max(step, base.step))
    half = math.ceil(9.5 * spread / base.step)
    return base, half if half * base.step < WIDEST / 2 else None


def _crude(base, distribution, mean):
    """Ratio for runs whose loss makes exponentials overflow: f'(1-u) / f'(1-u') at its most."""
    if distribution in ("poisson", "subset"):
        most = _exponent(distribution, mean)
    else:
        shape = shape_of(distribution)
        most = -(1 + shape) * math.log(success_probability(shape, mean))
    first = base.first + math.ceil(most / base.step * _UP)
    masses, infinite = mean * base.masses * _UP, mean * base.infinite * _UP
    # that there was no run is a loss of zero, and the last one is not below
    masses[-1] += _no_run(distribution, mean)
    return replace(base, first=max(first, 1 - len(masses)), masses=masses, infinite=infinite)


def _heights(e, curve, step, distribution, mean):
    """H(s) = sup_u f'(1-u) - s f'(1-G(u)) at s = exp(k step), and the first k; rounded upwards."""
    lines = _lines(e, curve)
    if distribution in ("poisson", "subset"):
        height, law = _exponential_height, _exponent(distribution, mean)
        if distribution == "subset":
            lines = _lines_of_logs(*lines)
    else:
        shape = shape_of(distribution)
        height, law = _binomial_height, (shape, 1 / success_probability(shape, mean) - 1)
    first = -(len(e) // 3)
    found = []
    for start in range(first, first + _MOST_BLOCKS * _BLOCK, _BLOCK):
        s = np.exp(step * np.arange(start, start + _BLOCK))[:, None]
        found.append(height(s, *lines, law, mean))
        if found[-1][-1] <= _NOTHING * mean:
            break
    heights = np.minimum(np.maximum(np.concatenate(found), 0.0) * _UP, mean)
    return heights, first


def _lines(e, curve):
    """Every point of the curve is a line above G, u' <= a + b u: (b, a), rounded upwards.

    Where few runs in a million are the best, u' counts in parts of 1e-12 and less.
    """
    slopes = np.exp(-e) * (1 + 2.0**-50)
    above = (-np.expm1(-e) + slopes * curve) * (1 + 2.0**-50)  # for e >= 0: of positive terms
    below = np.maximum(0.0, 1.0 - slopes * (1.0 - curve)) + slopes * 2.0**-50
    return slopes, np.where(e >= 0, above, below)


def _lines_of_logs(slopes, intercepts):
    """Lines above -log(1 - q u') in -log(1 - q u), both over the most that they can be.

    They are the convex hull of two points for each cell of a grid of u. In a cell the log of one
    line is convex, and below its chord, or concave, and below a tangent; where the line reaches
    one, both points are at one.
    """
    ends = np.geomspace(1e-9, 0.5, 400), 1.0 - np.geomspace(0.5, 1e-7, 200)[1:]
    u = np.concatenate([[0.0], *ends, [1.0]])
    middle = (u[:-1] + u[1:]) / 2
    best = np.argmin(intercepts + slopes * middle[:, None], axis=1)
    a, b = intercepts[best], slopes[best]
    x = _log_of(u)
    left, at, right = (_log_of(np.minimum(a + b * v, 1.0)) for v in (u[:-1], middle, u[1:]))
    slope = b * (1 - TRIED * middle) / (1 - TRIED * np.minimum(a + b * middle, 1.0))
    tangent_left, tangent_right = (at + slope * (v - _log_of(middle)) for v in (x[:-1], x[1:]))
    left, right = np.maximum(left, tangent_left), np.maximum(right, tangent_right)
    is_full = a + b * u[1:] > 1.0
    left[is_full] = right[is_full] = 1.0
    y = np.maximum(np.append(left, 1.0), np.append(0.0, right))
    kept = []
    for k in range(len(x)):
        while len(kept) > 1:
            i, j = kept[-2:]
            if (y[j] - y[i]) * (x[k] - x[j]) > (y[k] - y[j]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    x, y = x[kept], y[kept]
    found = np.diff(y) / np.diff(x)
    return found, y[1:] + 2.0**-46 - found * x[1:]


def _log_of(u):
    return -np.log1p(-TRIED * u) / _MOST_OF_LOG


def _exponent(distribution, mean):
    """m in f'(1-u) = f'(1) e^(-m v): v = u of a Poisson law, else as in `_lines_of_logs`."""
    return mean if distribution == "poisson" else _MOST_OF_LOG * (n_candidates_of(mean) - 1)


def _highest(slope, intercept, u, s, derivative, slack):
    """For each s the least over lines of the largest value at u or at an end of [0, 1].

    The two terms cancel; each is good to `slack` of itself.
    """
    u = np.clip(np.where(np.isfinite(u), u, 0.0), 0.0, 1.0)
    values = [
        derivative(v) * (1 + slack) - s * (1 - slack) * derivative(intercept + slope * v)
        for v in (u, 0.0, 1.0)
    ]
    return np.min(np.maximum.reduce(values), axis=1)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _binomial_height(s, slope, intercept, law, mean):
    shape, kappa = law
    root = (s * slope) ** (1 / (2 + shape))
    # where the derivative in u is zero: (1 + κ u') / (1 + κ u) = root
    u = (root - 1 - kappa * intercept) / (kappa * (slope - root))

    def derivative(v):
        return mean * np.maximum(1 + kappa * v, 1e-300) ** -(1 + shape)

    return _highest(slope, intercept, u, s, derivative, (2 + shape) * 2.0**-48)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _exponential_height(s, slope, intercept, law, mean):
    u = (np.log(s * slope) / law - intercept) / (slope - 1)
    slack = (1 + law) * 2.0**-48
    return _highest(slope, intercept, u, s, lambda v: mean * np.exp(-law * v), slack)


# ---- drawing the number of runs -----------------------------------------------------------------


def draw_count(distribution, mean, words):
    """Draw K from the law, by inversion in whole numbers.

    The probabilities are those of the law but for rounding: all of them together are off by less
    than 2^-100.

    Parameters
    ----------
    distribution, mean
        As `check_law` returns them; no subset, whose members are drawn.
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
