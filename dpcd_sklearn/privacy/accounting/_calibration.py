"""From a target (ε, δ) to the noise of one fit, rounded towards more noise.

Everything that a fit will release is fixed here, before a record is used: this is what makes
the tight curves of ``_accounting`` valid (a ledger, whose charges depend on earlier outputs,
counts by residues and covers instead).
"""

import math
from dataclasses import replace
from functools import lru_cache

from ._events import (
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
)
from ._gaussian_dp import largest_within
from ._renyi import is_tractable

# One part in 10^12: more than the rounding of the few operations below.
_UP = 1 + 1e-12
_MOST_GAIN = 64.0  # of a tight curve, in ρ


def gaussian_fit_event(budget, count):
    """`count` Gaussian releases that take a Budget together, exactly calibrated.

    The composition of count releases of noise multiplier z is sqrt(count)/z-GDP, no slack.
    """
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), budget.neighboring)
    noise_multiplier = math.sqrt(count) / budget.mu * _UP
    return FitEvent((GaussianEvent(noise_multiplier, count),), budget.neighboring)


def choices_event(eta, count, neighboring):
    """`count` choices of bounded range `eta`."""
    return FitEvent((SelectionEvent(eta, count),), neighboring)


def share_event(budget, share, count):
    """So many Gaussian releases that have a share of the μ² of a Budget."""
    whole = gaussian_fit_event(budget, count)
    return whole if not budget.private else with_noise(whole, share**-0.5)


def moments_event(budget, share):
    """Gaussian releases that have a share of the μ² of a Budget.

    Two of one noise, and one number with twice as much.
    """
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), budget.neighboring)
    z = math.sqrt((2 + 1 / 4) / share) / budget.mu * _UP
    return FitEvent((GaussianEvent(z, 2), GaussianEvent(2 * z)), budget.neighboring)


@lru_cache(maxsize=1024)
def joint_fit_event(budget, first, alone):
    """Two parts that take a Budget together: one that is given, and one with more noise.

    Without noise both are as they are.

    Parameters
    ----------
    budget : Budget
    first : FitEvent
        It keeps its noise.
    alone : FitEvent
        It takes the whole budget by itself. Its noise multipliers grow by one factor f and the
        ranges of its choices shrink by it; f is the least that this package's accounting proves,
        up to one part in a million.

    Returns
    -------
    first, second : FitEvents

    Raises
    ------
    ValueError
        If the first part alone costs more.
    """
    if not budget.private:
        return first, alone
    epsilon, delta = budget[:2]
    if (of_first := budget.excess(first)) >= 0:
        raise ValueError(f"{first} leaves nothing of epsilon={epsilon:g} at delta={delta:g}")

    def second(log_mu):
        return with_noise(alone, math.exp(-log_mu))

    def excess(log_mu):
        return budget.excess(replace(alone, releases=first.releases + second(log_mu).releases))

    # μ² that the first part leaves; it is the answer where all are Gaussian
    log_mu = largest_within(excess, math.log(-math.expm1(2 * of_first)) / 2, 0.0)
    if log_mu is None or log_mu < -50:
        raise ValueError(f"{first} leaves too little of epsilon={epsilon:g}")
    return first, second(log_mu)


def with_noise(event, factor):
    """The same releases with `factor` times the noise: multipliers times it, losses over it.

    Raises
    ------
    TypeError
        If an event has no noise that is known to change.
    """

    def changed(release):
        match release:
            case TuningEvent():
                return replace(release, base=with_noise(release.base, factor))
            case SelectionEvent():
                return replace(release, eta=release.eta / factor)
        if not hasattr(release, "noise_multiplier"):
            raise TypeError(f"no noise is known to change in {release!r}")
        return replace(release, noise_multiplier=release.noise_multiplier * factor)

    return replace(event, releases=tuple(map(changed, event.releases)))


def curvature_fit_event(budget, count, share, n_matrices=1, of_rows=0.0, n_of_rows=1):
    """Gaussian releases of gradients, of matrices and of moments of rows, exactly calibrated.

    `count` gradients; matrices have a share of μ², and so have `n_of_rows` sums of rows a matrix.
    """
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), budget.neighboring)
    mu = budget.mu

    def releases(number, of_square):
        return GaussianEvent(math.sqrt(number / of_square) / mu * _UP, number)

    found = [releases(count, 1 - share - of_rows), releases(n_matrices, share)]
    if of_rows:
        found.append(releases(n_of_rows * n_matrices, of_rows))
    return FitEvent(tuple(found), budget.neighboring)


@lru_cache(maxsize=1024)  # the curve takes up to a second
def greedy_fit_event(budget, count, selection_share):
    """`count` choices, each paired with a Gaussian release, that take a Budget together.

    A share `selection_share` of ρ goes to the choices: η = sqrt(8 share ρ / count) and
    z = sqrt(count / (2 (1 - share) ρ)). ρ is the largest that the tight curve admits, or zCDP for
    very many choices. With a share of 1 nothing but choices is released.
    """
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), budget.neighboring)
    rho = budget.rho / count

    def event(log_mu):
        of_one = rho * math.exp(2 * log_mu)
        eta = math.sqrt(8 * selection_share * of_one) / _UP
        releases = (SelectionEvent(eta, count),)
        if selection_share < 1:
            z = math.sqrt(1 / (2 * (1 - selection_share) * of_one)) * _UP
            releases += (GaussianEvent(z, count),)
        return FitEvent(releases, budget.neighboring)

    eta, most = event(0.0).releases[0].eta, 1.0
    eta *= budget.max_contributions or 1  # of a person
    while most < _MOST_GAIN and is_tractable(eta * math.sqrt(2 * most), count):
        most *= 1.25
    log_mu = None
    if most > 1:
        highest = math.log(most) / 2
        start = min(highest, math.log(budget.mu / math.sqrt(2 * budget.rho)))  # if all are Gaussian
        log_mu = largest_within(lambda x: budget.excess(event(x)), start, highest)
    # zCDP proves 0, where a table may round up by more than there is to gain
    return event(max(log_mu or 0.0, 0.0))


@lru_cache(maxsize=1024)  # every point of the curve is a quadrature
def sampled_fit_event(budget, sampling_rate, count, n_full=0, full_ratio=1.0):
    """`count` Gaussian releases of Poisson samples, and `n_full` of all records.

    The noise multiplier of the former is the least that the Rényi bound proves to keep a Budget,
    up to one part in a million; that of the latter is `full_ratio` times it.
    """
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), budget.neighboring)

    def event(noise_multiplier):
        releases = [PoissonSampledEvent(sampling_rate, noise_multiplier, count)]
        if n_full:
            releases.append(GaussianEvent(full_ratio * noise_multiplier, n_full))
        return FitEvent(tuple(releases), budget.neighboring)

    total = count + n_full / full_ratio**2
    least = -math.log(math.sqrt(total / (2 * budget.rho)))
    log_mu = largest_within(lambda x: budget.excess(event(math.exp(-x))), least, 30.0)
    return event(math.exp(-log_mu))
