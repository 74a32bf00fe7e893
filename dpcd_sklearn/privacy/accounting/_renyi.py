"""Rényi divergence of a Gaussian over a sample of the records, at one order.

It is bounded from above for every real order α > 1, and rounded upwards. Proof:
``proofs/renyi.md``.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from ._loss import Loss, composed, repeated
from ._selection_curve import loss_distribution

_UP = 1 + 1e-9
_STEP = 0.02  # of the quadrature below, in standard deviations
_REACH = 12.0  # standard deviations of a normal whose tail counts for nothing
_MAX_POINTS = 200_000


def sampled_gaussian_divergence(rate, noise_multiplier, order, neighboring):
    """Divergence of one Gaussian release over a Poisson sample of the records.

    Under "add_remove" the worst pair is (1 - q) N(0, z²) + q N(1, z²) against N(0, z²), in this
    order (Mironov, Talwar & Zhang 2019). Under "replace_one" it is taken to be the same mixture
    against its mirror image, the record moving the sum by half the sensitivity one way or the
    other; that no other pair is worse is not proved, only checked in two dimensions.
    """
    if neighboring not in ("add_remove", "replace_one"):
        raise ValueError(f"no accounting of samples is known for neighbours {neighboring!r}")
    z = noise_multiplier
    unsampled = order / (2 * z * z)
    # the quadrature's error is below e^(-2 π² z / step)
    if rate == 1.0 or z < 0.05 or order * 2 / z > _STEP * _MAX_POINTS / 4:
        return unsampled
    shift = 1 / z if neighboring == "add_remove" else 0.5 / z
    # in standard deviations: Q on its grid, where Q, P and P^α Q^(1-α) have all their mass
    reach = _REACH + shift + order * 2 * shift
    x = np.arange(-reach, reach + _STEP, _STEP)
    normal = -0.5 * x * x - 0.5 * math.log(2 * math.pi)
    up = np.log1p(-rate) + np.logaddexp(0, math.log(rate / (1 - rate)) + _ratio(x, shift))
    if neighboring == "add_remove":
        log_q, log_ratio = normal, up
        excess = rate * np.expm1(np.minimum(_ratio(x, shift), 700.0))
    else:
        down = np.log1p(-rate) + np.logaddexp(0, math.log(rate / (1 - rate)) + _ratio(x, -shift))
        log_q, log_ratio = normal + down, up - down
        excess = np.expm1(np.minimum(log_ratio, 700.0))
    return min(unsampled, _divergence(log_q + math.log(_STEP), log_ratio, excess, order) * _UP)


def _ratio(x, shift):
    """log N(x; shift, 1) / N(x; 0, 1)."""
    return shift * x - shift * shift / 2


def _divergence(log_weight, log_ratio, excess, order):
    """log(E_Q (P/Q)^α) / (α - 1) from the moment's excess over one, term by term not negative."""
    power = order * log_ratio
    small = np.abs(power) < 0.5
    # E_Q[P/Q - 1] = 0, so α times it is subtracted: no term loses digits
    terms = np.where(
        small,
        np.exp(log_weight) * (np.expm1(np.where(small, power, 0.0)) - order * excess),
        0.0,
    ).sum()
    large = ~small
    log_moment = logsumexp((log_weight + power)[large]) if large.any() else -math.inf
    if log_moment > 50:  # everything else is dust beside it
        return (log_moment + 1e-12) / (order - 1)
    terms += math.exp(log_moment) if large.any() else 0.0
    terms -= (np.exp(log_weight) * (1 + order * excess))[large].sum()
    return math.log1p(max(terms, 0.0) + 1e-16) / (order - 1)


# ---- δ(ε) of one fit that makes Gaussian releases and choices of one bounded range, in any order.
#
# The choices are dominated by one distribution of loss (``_selection_curve``), the Gaussians by
# their own; both orders and all interleavings are covered. Proof: ``proofs/selections.md``.

# Tables of about so many operations, and at least so fine: the noise multiplier is then above its
# least value by 0.02 % for 50 choices, 0.1 % for 200 and 0.5 % for more, which are several tables.
_TABLE = 2e7
_LONGEST = 512  # choices of one table
# Tables are made of ranges whose products with sqrt(count) lie so far apart, or by a sixteenth.
_RANGES = 2.0**-8
_FINEST, _COARSEST = 64, 8
# Beyond so many operations (half a second, a dozen times), or losses whose exponential leaves
# double precision, zCDP is used instead.
_MOST = 1e9
_WIDEST = 500.0
TAIL = 1e-12  # share of a delta that may be moved to an infinite loss


def _cells(eta, count):
    cells = int((_TABLE / (7 * count**1.5)) ** 0.5)
    cells = min(max(cells, _COARSEST), _FINEST)
    # a range of many units of ε needs cells by their absolute width
    return max(cells, min(int(eta * 20), 1000))


def _widest(eta, count):
    """The largest loss of a table, in ranges."""
    return min(2 * count, 7 * count**0.5 + count * eta / 8)


def is_tractable(eta, count):
    """Whether the tables of so many choices of this range are made in a few seconds."""
    if not 0 < eta <= _WIDEST or (_widest(eta, count) + 2) * eta > _WIDEST:
        return False
    longest = min(count, _LONGEST)
    return _widest(eta, longest) * _cells(eta, longest) ** 2 * longest <= _MOST


def choices_loss(eta, count, tail):
    """The loss of `count` choices of range `eta`; a probability of up to `tail` may be infinite.

    It is that of a range that is hardly wider, every loss of it times eta over that range: so a
    calibration makes few tables. ε is then above its least value by 0.03 % at most.
    """
    root = math.sqrt(count)
    step = min(_RANGES, 2.0 ** (math.frexp(eta * root)[1] - 5))
    wider = max(eta, step * math.ceil(eta * root / step) / root)
    found = _choices_loss(wider, count, tail)
    return replace(found, step=found.step * (eta / wider))


@lru_cache(maxsize=64)
def _choices_loss(eta, count, tail):
    """The same of this very range.

    Many choices are groups of `_LONGEST`, whose losses compose as those of several ranges do.
    """
    cells = _cells(eta, min(count, _LONGEST))
    groups, rest = divmod(count, _LONGEST)
    share = tail / (2 * (groups + 1)) if groups else tail
    losses = []
    if groups:
        losses.append(repeated(_table(eta, _LONGEST, cells, share), groups, tail / 2))
    if rest:
        losses.append(_table(eta, rest, cells, share))
    return composed(losses)


def _table(eta, count, cells, tail):
    losses, masses, infinite = loss_distribution(eta, count, cells, tail)
    return Loss(round(losses[0] / (eta / cells)), eta / cells, masses, infinite)
