"""The smallest error of a guess between two neighbours that a claim allows.

A guess that is told one of two neighbours, each with probability 1/2, errs at least with

    (1 - δ(0)) / 2                   where δ(0) bounds the total variation,
    Φ(-μ/2)                          for μ-GDP,
    (1 - δ) / (1 + e^ε)              for (ε, δ)-DP: add P(S) <= e^ε Q(S) + δ to its mirror image.

Each is a floor, so the largest of those that a claim gives is one.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from ..privacy.accounting._accounting import epsilon_of, gdp_squared
from ..privacy.accounting._events import GaussianEvent, PoissonSampledEvent, SelectionEvent
from ..privacy.accounting._gaussian_dp import gdp_delta
from ..privacy.accounting._selections import choices_loss, is_tractable
from ..utils._public import check_real

_CELL = 0.005  # of the table of losses of samples
_MOST_RELEASES = 20_000  # whose table of losses is made


@dataclass(frozen=True)
class Claim:
    """Attributes: epsilon, delta; mu or None; error, the floor that all of it gives."""

    epsilon: float
    delta: float
    mu: float | None
    error: float

    @classmethod
    def stated(cls, claim):
        """The claim of a tuple (epsilon, delta) or (epsilon, delta, mu)."""
        if not isinstance(claim, tuple) or len(claim) not in (2, 3):
            raise ValueError(
                f"claim must be (epsilon, delta) or (epsilon, delta, mu), got {claim!r}"
            )
        epsilon = check_real(claim[0], "the claimed epsilon", low=0.0)
        delta = check_real(claim[1], "the claimed delta", low=0, high=1, closed="left")
        mu = check_real(claim[2], "the claimed mu", low=0.0) if len(claim) == 3 else None
        floor = _error_of_pair(epsilon, delta)
        return cls(epsilon, delta, mu, floor if mu is None else max(floor, float(ndtr(-mu / 2))))

    @classmethod
    def of(cls, fitted):
        """The claim of a fitted model that says what it released."""
        if not hasattr(fitted, "privacy_spent_"):
            raise ValueError(
                f"{type(fitted).__name__} does not say what it spends; give claim=(epsilon, delta)"
            )
        epsilon, delta = fitted.privacy_spent_
        epsilon = check_real(epsilon, "the claimed epsilon", low=0.0, high=math.inf, closed="both")
        delta = check_real(delta, "the claimed delta", low=0, high=1, closed="left")
        if math.isinf(epsilon):
            raise ValueError(
                "a fit without noise (epsilon=inf) claims nothing that could be audited"
            )
        squared = gdp_squared(fitted.privacy_event_)
        floor = max(_error_of_pair(epsilon, delta), least_error(fitted.privacy_event_))
        return cls(epsilon, delta, None if squared is None else math.sqrt(squared), floor)


def _error_of_pair(epsilon, delta):
    return (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))


def mu_shown(error):
    """The largest μ whose mechanisms can't have so small an error."""
    return float(max(0.0, -2 * ndtri(error)))


def epsilon_shown(error, delta):
    """The largest ε whose (ε, delta)-DP mechanisms can't have so small an error."""
    return float(max(0.0, math.log(max((1 - delta) / error - 1, 1e-300))))


def least_error(event):
    """The floor that an event gives.

    Gaussians are exact; Gaussians and choices have the tight curve of ``_selections``. Of Poisson
    samples it is that of the pair of records at the clip in opposite directions (in one direction
    under add_remove), the worst there is as far as is known: under replace_one that is checked,
    not proved.
    """
    squared = gdp_squared(event)
    if squared is not None:
        return float(ndtr(-math.sqrt(squared) / 2))
    of = {
        kind: [r for r in event.releases if isinstance(r, kind)]
        for kind in (GaussianEvent, SelectionEvent, PoissonSampledEvent)
    }
    mu = math.sqrt(sum(gdp_squared(release) for release in of[GaussianEvent]))
    n_known, floors = sum(map(len, of.values())), [0.0]
    if n_known == len(event.releases) and not of[PoissonSampledEvent]:
        eta, count = (
            max(r.eta for r in of[SelectionEvent]),
            sum(r.count for r in of[SelectionEvent]),
        )
        if is_tractable(eta, count):
            floors.append((1 - choices_loss(eta, count, 1e-7).with_gaussian(mu).delta(0.0)) / 2)
    elif n_known == len(event.releases) and len(of[PoissonSampledEvent]) == 1:
        (release,) = of[PoissonSampledEvent]
        if release.count <= _MOST_RELEASES and not of[SelectionEvent]:
            floors.append((1 - sampled_distance(release, event.neighboring, mu)) / 2)
    floors += [_error_of_pair(epsilon_of(event, d), d) for d in (0.3, 0.1, 0.03, 0.01)]
    return max(floors)


def sampled_distance(release, neighboring, mu, group=1):
    """Total variation of samples' means and releases that are together mu-GDP.

    Of a group of records each is in a sample by itself, and all pull one way.

    The likelihood ratio of one mean is split between the ends of its cell, on the chord, which
    keeps both distributions and tells more than the truth; the losses are added by an FFT.
    """
    rate, count = release.sampling_rate, release.count
    shift = 1 / release.noise_multiplier / (2 if neighboring == "replace_one" else 1)
    there = np.arange(group + 1)
    odds = binom.pmf(there, group, rate)
    there, odds = there[odds > 1e-15], odds[odds > 1e-15]
    reach = 9.0 + shift * there[-1]
    edges = np.linspace(-reach, reach, 20_001)
    masses = [
        np.diff(sum(share * ndtr(edges - j * a) for j, share in zip(there, odds, strict=True)))
        for a in (shift, -shift if neighboring == "replace_one" else 0.0)
    ]
    masses = [np.maximum(m, 1e-300) for m in masses]
    p, ratio = masses[0], masses[1] / masses[0]
    losses = -np.log(ratio)
    mean, spread = p @ losses, math.sqrt(p @ losses**2)
    reach = count * abs(mean) + 12 * spread * math.sqrt(count) + np.abs(losses).max()
    size = 2 ** math.ceil(math.log2(2 * reach / _CELL + 4))
    cell = np.floor(losses / _CELL).astype(int)
    low, high = np.exp(-cell * _CELL), np.exp(-(cell + 1) * _CELL)
    upper = p * (low - ratio) / (low - high)
    table = np.zeros(size)
    np.add.at(table, cell % size, p - upper)
    np.add.at(table, (cell + 1) % size, upper)
    table = np.fft.irfft(np.fft.rfft(table) ** count, size)
    positions = np.fft.fftfreq(size, 1 / size) * _CELL
    distance = (
        float(np.maximum(table, 0.0) @ gdp_delta(mu, -positions))
        if mu
        else float(np.maximum(table, 0.0) @ -np.expm1(-np.maximum(positions, 0.0)))
    )
    return min(1.0, distance + 1e-6)
