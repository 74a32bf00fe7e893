"""From a target (ε, δ) to the noise of one fit, rounded towards more noise.

Everything that a fit will release is fixed here, before a record is used: this is what makes
the tight curves of ``_accounting`` valid (a ledger, whose charges depend on earlier outputs,
counts by residues and covers instead).
"""

import math
from dataclasses import replace
from functools import lru_cache

from ._accounting import log_excess, zcdp_rho
from ._events import (
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    HiddenStateEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
)
from ._gaussian_dp import gdp_mu, hidden_state_factor
from ._roots import largest_within
from ._selections import is_tractable, largest_factor

# One part in 10^12: more than the rounding of the few operations below.
_UP = 1 + 1e-12
_SPARE = 1e-3  # share of a search's δ that may tell everything, where runs are not Gaussian


def gaussian_fit_event(epsilon, delta, count, neighboring):
    """`count` Gaussian releases that are together (epsilon, delta)-DP, exactly calibrated.

    The composition of count releases of noise multiplier z is sqrt(count)/z-GDP, no slack.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    noise_multiplier = math.sqrt(count) / gdp_mu(epsilon, delta) * _UP
    return FitEvent((GaussianEvent(noise_multiplier, count),), neighboring)


def choices_event(eta, count, neighboring):
    """`count` choices of bounded range `eta`."""
    return FitEvent((SelectionEvent(eta, count),), neighboring)


def share_event(epsilon, delta, share, count, neighboring):
    """So many Gaussian releases that have a share of the μ² of an (epsilon, delta)-DP fit."""
    whole = gaussian_fit_event(epsilon, delta, count, neighboring)
    return whole if math.isinf(epsilon) else with_noise(whole, share**-0.5)


def moments_event(epsilon, delta, share, neighboring):
    """Gaussian releases that have a share of the μ² of an (epsilon, delta)-DP fit.

    Two of one noise, and one number with five times as much.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    z = math.sqrt((2 + 1 / 25) / share) / gdp_mu(epsilon, delta) * _UP
    return FitEvent((GaussianEvent(z, 2), GaussianEvent(5 * z)), neighboring)


@lru_cache(maxsize=1024)
def joint_fit_event(epsilon, delta, first, alone):
    """Two parts that are together (epsilon, delta)-DP: one that is given, and one with more noise.

    Without noise both are as they are.

    Parameters
    ----------
    epsilon, delta : float
    first : FitEvent
        It keeps its noise.
    alone : FitEvent
        (epsilon, delta)-DP by itself. Its noise multipliers grow by one factor f and the ranges of
        its choices shrink by it; f is the least that this package's accounting proves, up to one
        part in a million.

    Returns
    -------
    first, second : FitEvents

    Raises
    ------
    ValueError
        If the first part alone costs more.
    """
    if math.isinf(epsilon):
        return first, alone
    if log_excess(first, epsilon, delta) >= 0:
        raise ValueError(f"{first} leaves nothing of epsilon={epsilon:g} at delta={delta:g}")

    def second(log_mu):
        return with_noise(alone, math.exp(-log_mu))

    def excess(log_mu):
        both = FitEvent(first.releases + second(log_mu).releases, alone.neighboring)
        return log_excess(both, epsilon, delta)

    log_mu = largest_within(excess, 0.0, 0.0)
    if log_mu is None or log_mu < -50:
        raise ValueError(f"{first} leaves too little of epsilon={epsilon:g}")
    return first, second(log_mu)


def with_noise(event, factor):
    """The same releases with `factor` times the noise: multipliers times it, ranges over it.

    Raises
    ------
    TypeError
        If an event has no noise that is known to change.
    """

    def changed(release):
        match release:
            case GaussianEvent() | PoissonSampledEvent() | HiddenStateEvent() | CoveredEvent():
                return replace(release, noise_multiplier=release.noise_multiplier * factor)
            case SelectionEvent():
                return replace(release, eta=release.eta / factor)
        raise TypeError(f"no noise is known to change in {release!r}")

    return FitEvent(tuple(map(changed, event.releases)), event.neighboring)


def curvature_fit_event(
    epsilon, delta, count, share, neighboring, n_matrices=1, of_rows=0.0, n_of_rows=1
):
    """Gaussian releases of gradients, of matrices and of moments of rows, exactly calibrated.

    `count` gradients; matrices have a share of μ², and so have `n_of_rows` sums of rows a matrix.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    mu = gdp_mu(epsilon, delta)

    def releases(number, of_square):
        return GaussianEvent(math.sqrt(number / of_square) / mu * _UP, number)

    found = [releases(count, 1 - share - of_rows), releases(n_matrices, share)]
    if of_rows:
        found.append(releases(n_of_rows * n_matrices, of_rows))
    return FitEvent(tuple(found), neighboring)


def hidden_state_fit_event(epsilon, delta, count, contraction, neighboring):
    """The last of `count` steps that contract, (epsilon, delta)-DP, exactly calibrated."""
    mu = gdp_mu(epsilon, delta)
    noise_multiplier = math.sqrt(hidden_state_factor(count, contraction)) / mu * _UP
    return FitEvent((HiddenStateEvent(noise_multiplier, count, contraction),), neighboring)


@lru_cache(maxsize=1024)  # the curve takes up to a second
def greedy_fit_event(epsilon, delta, count, selection_share, neighboring):
    """`count` choices, each paired with a Gaussian release, together (epsilon, delta)-DP.

    A share `selection_share` of ρ goes to the choices: η = sqrt(8 share ρ / count) and
    z = sqrt(count / (2 (1 - share) ρ)). ρ is the largest that the tight curve admits, or zCDP for
    very many choices. With a share of 1 nothing but choices is released.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    rho = zcdp_rho(epsilon, delta) / count

    def event(factor):
        choice, release = selection_share * factor * rho, (1 - selection_share) * factor * rho
        z = math.sqrt(1 / (2 * release)) * _UP if release else math.inf
        return math.sqrt(8 * choice) / _UP, z

    factor = 1.0
    if is_tractable(event(1.0)[0], count):
        factor = largest_factor(
            lambda factor: (event(factor)[0], count, math.sqrt(count) / event(factor)[1]),
            epsilon / (1 + 1e-9),  # so that accounting, rounded upwards, gives no more than epsilon
            delta,
        )
    eta, noise_multiplier = event(factor)
    releases = [SelectionEvent(eta, count), GaussianEvent(noise_multiplier, count)]
    return FitEvent(tuple(releases[: 2 if selection_share < 1 else 1]), neighboring)


@lru_cache(maxsize=1024)  # every point of the curve is a quadrature
def sampled_fit_event(epsilon, delta, sampling_rate, count, neighboring, n_full=0, full_ratio=1.0):
    """`count` Gaussian releases of Poisson samples, and `n_full` of all records.

    The noise multiplier of the former is the least that the Rényi bound proves (epsilon,
    delta)-DP, up to one part in a million; that of the latter is `full_ratio` times it.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)

    def event(noise_multiplier):
        releases = [PoissonSampledEvent(sampling_rate, noise_multiplier, count)]
        if n_full:
            releases.append(GaussianEvent(full_ratio * noise_multiplier, n_full))
        return FitEvent(tuple(releases), neighboring)

    total = count + n_full / full_ratio**2
    least = -math.log(math.sqrt(total / (2 * zcdp_rho(epsilon, delta))))
    log_mu = largest_within(
        lambda log_mu: log_excess(event(math.exp(-log_mu)), epsilon, delta), least, 30.0
    )
    return event(math.exp(-log_mu))


@lru_cache(maxsize=256)
def search_fit_event(epsilon, delta, law, mean, count, gaussian, n_refits, neighboring):
    """The best of a random number of runs, and refits of it, together (epsilon, delta)-DP.

    Every fit and every score tells at most as much as one release, the largest that the budget
    admits: a Gaussian one if all are Gaussian, else one that covers them.

    Parameters
    ----------
    epsilon, delta : float
    law, mean : as of TuningEvent
    count : int
        How many fits and scores of one run one record meets, at most.
    gaussian : bool
        Whether all fits are Gaussian.
    n_refits : int
    neighboring : {"replace_one", "add_remove"}

    Returns
    -------
    event : FitEvent
    release : GaussianEvent or CoveredEvent
        What each fit and each score may tell.
    """
    spare = _SPARE * delta / (mean * count + n_refits)

    def event(z, n_runs_see):
        if gaussian:
            return GaussianEvent(z, n_runs_see)
        return CoveredEvent(z, spare, n_runs_see)

    def search(log_mu):
        z = math.exp(-log_mu)
        runs = TuningEvent(FitEvent((event(z, count),), neighboring), law, mean)
        return FitEvent((runs, *[event(z, n_refits)][:n_refits]), neighboring)

    highest = math.log(gdp_mu(epsilon, delta) / math.sqrt(count))
    log_mu = largest_within(
        lambda log_mu: log_excess(search(log_mu), epsilon, delta), highest, highest
    )
    if log_mu is None or log_mu < -30:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} admit no search of {mean:g} runs on "
            "average; raise epsilon or lower n_iter"
        )
    return search(log_mu), event(math.exp(-log_mu), 1)
