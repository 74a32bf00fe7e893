"""Distributions of privacy loss: of choices, of searches, of anything with a known curve.

For neighbours D, D' the curve of a mechanism is δ(e) = sup_S P(S) - e^e Q(S), for every real e; P
and Q are the laws of its output in one of both directions. A `Loss` is a distribution whose curve

    δ(e) = infinite + Σ_i mass_i δ_mu(e - loss_i)

is nowhere below that of a mechanism: losses on a grid, and a Gaussian apart, which stays exact.
Curves are convex in x = e^e and δ(-∞) = 1, so a bound at points bounds all between by chords, and
its bends are the masses. Rounding goes towards more loss. Proof: ``proofs/loss.md``.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg.blas import dtbsv
from scipy.special import ndtri

from ._gaussian_dp import gdp_delta, gdp_delta_below, gdp_mu, inverse
from ._selection_curve import lower_hull

_UP = 1 + 1e-10
WIDEST = 600.0  # of losses: exponentials stay in double precision
_MOST_CELLS = 2e7  # of a product of two grids at once
_MOST_STEPS = 6000  # of a grid


@dataclass(frozen=True, eq=False)
class Loss:
    """A distribution of privacy loss in one direction, or in both if their curves are equal.

    Parameters
    ----------
    first, step : int, float
        Losses are (first + i) step.
    masses : ndarray of shape (n,)
        Their probabilities.
    infinite : float
        Probability of an infinite loss.
    mu : float
        μ of a Gaussian part beside them.
    """

    first: int = 0
    step: float = 1.0
    masses: np.ndarray = field(default_factory=lambda: np.ones(1))
    infinite: float = 0.0
    mu: float = 0.0

    @property
    def is_point(self):
        """Whether the only finite loss beside the Gaussian part is zero, which is on any grid."""
        return len(self.masses) == 1 and self.first == 0

    @property
    def is_gaussian(self):
        """Whether there is nothing beside the Gaussian part."""
        return self.is_point and self.infinite == 0.0

    @property
    def losses(self):
        """The finite losses."""
        return self.step * (self.first + np.arange(len(self.masses)))

    def with_gaussian(self, mu):
        """The loss together with that of a mu-GDP mechanism."""
        return replace(self, mu=math.hypot(self.mu, mu))

    def delta(self, epsilon):
        """δ at one e, any real number."""
        finite = float(self.masses @ gdp_delta(self.mu, epsilon - self.losses))
        return min(1.0, (finite + self.infinite) * _UP)

    def deltas(self, start, stride, n):
        """δ at e = (start + i stride) step for i < n; all of them are integers."""
        size = len(self.masses)
        offsets = start - self.first + 1 - size + np.arange((n - 1) * stride + size)
        windows = sliding_window_view(gdp_delta(self.mu, offsets * self.step), size)[::stride]
        block = max(1, int(_MOST_CELLS / size))
        backwards = self.masses[::-1].copy()
        parts = [windows[i : i + block] @ backwards for i in range(0, n, block)]
        return np.minimum(1.0, (np.concatenate(parts) + self.infinite) * _UP)

    def epsilon(self, delta):
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, rounded upwards; infinite if there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        if self.infinite * _UP >= delta:
            return math.inf
        high = max(self.mu, self.step)
        while self.delta(high) > delta:
            high *= 2
            if not high < 1e300:
                return math.inf
        root = inverse(lambda e: self.delta(e) - delta, 0.0, high, precision=1e-12)
        while self.delta(root) > delta:
            root *= _UP
        return float(root)


def of_points(first, step, deltas):
    """The loss whose curve goes through points, one for each e = (first + i) step, or below them.

    Parameters
    ----------
    deltas : ndarray of shape (n,)
        Each of them a bound on δ(e) by itself.
    """
    kept, intercepts = lower_hull(np.ascontiguousarray(deltas, dtype=np.float64), step, WIDEST)
    masses, last = np.zeros(len(deltas)), float(deltas[kept[-1]])
    # of the chord that ends at each kept point; δ is one at x = 0, and the last chord is level
    ends = np.concatenate([[1.0], intercepts[1:], [last]])
    masses[kept] = np.maximum(0.0, ends[:-1] - ends[1:])
    return Loss(first, step, masses, last)


def repeated(loss, count, tail=0.0):
    """The loss of `count` mechanisms of one loss; about `tail` may become infinite in all."""
    found = Loss(step=loss.step)
    share = tail / (2 * max(count, 1) * max(count, 1).bit_length())
    while count:
        if count & 1:
            found = trimmed(composed([found, loss]), share)
        if count := count >> 1:
            share *= 2.0
            loss = trimmed(composed([loss, loss]), share)
    return found


def trimmed(loss, tail):
    """The same loss without its ends, each of probability `tail` at most, rounded upwards."""
    below = int(np.searchsorted(np.cumsum(loss.masses), tail, side="right"))
    above = int(np.searchsorted(np.cumsum(loss.masses[::-1]), tail, side="right"))
    kept = loss.masses[below : len(loss.masses) - above].copy()
    if not len(kept):
        return loss
    kept[0] += math.fsum(loss.masses[:below]) * _UP
    infinite = loss.infinite + math.fsum(loss.masses[len(loss.masses) - above :]) * _UP
    return replace(loss, first=loss.first + below, masses=kept, infinite=infinite)


def covered_loss(mu, spare, count):
    """Loss of `count` adaptive mechanisms, mu-GDP each but for the probability spare."""
    log_none = count * math.log1p(-spare) if spare < 1 else -math.inf
    none, some = (min(1.0, x * _UP) for x in (math.exp(log_none), -math.expm1(log_none)))
    mu *= math.sqrt(count) * _UP
    return Loss(0, mu / 64, np.array([none]), some, mu)


def composed(losses):
    """The loss of several mechanisms together, on the finest of their grids if it is not long."""
    mu = math.sqrt(math.fsum(loss.mu**2 for loss in losses))
    grids = [replace(loss, mu=0.0) for loss in losses if not loss.is_point]
    points = [loss for loss in losses if loss.is_point]
    if not grids:
        grids.append(points.pop() if points else Loss())
    finite = math.prod(float(loss.masses[0]) for loss in points)
    infinite = math.fsum(loss.infinite for loss in points)
    step = grids[0].step
    if len(grids) > 1:  # one is as fine as it is: a calibration and the ledger see the same curve
        length = math.fsum(loss.step * len(loss.masses) for loss in grids)
        step = max(min(loss.step for loss in grids), length / _MOST_STEPS)
        grids = [on_grid(loss, step) for loss in grids]
    found = grids[0]
    for loss in grids[1:]:
        found = Loss(
            found.first + loss.first,
            step,
            np.convolve(found.masses, loss.masses) * _UP,
            (found.infinite + loss.infinite) * _UP,
        )
    if points:
        found = replace(found, masses=found.masses * finite, infinite=found.infinite + infinite)
    return replace(found, mu=mu)


def on_grid(loss, step):
    """The same loss on another grid, rounded upwards; chords keep it near."""
    if loss.step == step or loss.is_point:
        return replace(loss, step=step)

    losses = loss.losses
    start = math.floor(losses[0] / step)
    at = np.arange(start, math.ceil(losses[-1] / step) + 2)
    # of the losses from i on: how probable they are, and that times e^-(loss - loss_i)
    tails = np.append(np.cumsum(loss.masses[::-1])[::-1], 0.0)
    band = np.full((2, len(losses)), -math.exp(-loss.step), order="F")  # beside a diagonal of ones
    faded = dtbsv(1, band, loss.masses[::-1], lower=1, diag=1)[::-1]
    i = np.clip(np.ceil(step * at / loss.step).astype(np.int64) - loss.first, 0, len(losses))
    gap = np.minimum(step * at - loss.step * (i + loss.first), 0.0)
    deltas = tails[i] - np.exp(gap) * np.append(faded, 0.0)[i] + 2.0**-44 * tails[i]
    deltas = np.minimum(1.0, (np.maximum(deltas, 0.0) + loss.infinite) * _UP)
    return replace(of_points(start, step, deltas), mu=loss.mu)


# ---- Residues and covers: the rest that an event leaves, and the Gaussian that stands for it -----
#
# Arithmetic on distributions of loss, rounded towards more loss. Each function takes a loss that
# holds in both directions; of an event with two, take the smaller residue and the larger cover.
# Proof: ``proofs/accountant.md``.

_DOWN = 1 - 1e-10
_FINENESS = 64  # cells of the check below for one standard deviation
_PRECISION = 1e-6  # of a cover
_MOST_POINTS = 4000


def residue(loss, epsilon, delta):
    """The largest m² such that the event, then what is m-GDP, is (epsilon, delta)-DP; else zero.

    Rounded downwards.
    """
    whole = gdp_mu(epsilon, delta) ** 2

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


@lru_cache(maxsize=64)  # of a loss that is cached itself
def cover(loss, spare):
    """The least μ such that δ_event(e) ≤ spare + (1 - spare) δ_μ(e) for all e, rounded upwards.

    Infinite where there is none. The check is on every cell of a grid that ends where the event's
    curve is below `spare`. In x = e^e the event's curve is below its chord over the cell, and that
    of the Gaussian above its tangent in the middle: between lines an inequality at both ends holds
    between them. For e < 0 both curves are reflected, as the other direction checks.
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
