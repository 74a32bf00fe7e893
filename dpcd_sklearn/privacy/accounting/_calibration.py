"""From a target (ε, δ) to the noise of one fit, rounded towards more noise.

Everything that a fit will release is fixed here, before a record is used: this is what makes
the tight curves of ``_accounting`` valid (a ledger, whose charges depend on earlier outputs,
counts in its own currency instead).
"""

import math
from functools import lru_cache

from scipy.optimize import brentq

from ._accounting import epsilon_of, zcdp_rho
from ._events import (
    FitEvent,
    GaussianEvent,
    HiddenStateEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
)
from ._gaussian_dp import gdp_mu, hidden_state_factor
from ._selections import is_tractable, largest_factor

# One part in 10^12: more than the rounding of the few operations below.
_UP = 1 + 1e-12


def gaussian_fit_event(epsilon, delta, count, neighboring):
    """`count` Gaussian releases that are together (epsilon, delta)-DP, exactly calibrated.

    The composition of count releases of noise multiplier z is sqrt(count)/z-GDP, no slack.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    noise_multiplier = math.sqrt(count) / gdp_mu(epsilon, delta) * _UP
    return FitEvent((GaussianEvent(noise_multiplier, count),), neighboring)


def curvature_fit_event(epsilon, delta, count, share, neighboring, moments_share=0.0):
    """`count` Gaussian releases and another one, which gets a share of μ², exactly calibrated.

    With a `moments_share` there are two more, which have this share before the others divide.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    mu = gdp_mu(epsilon, delta)
    rest = mu * math.sqrt(1 - moments_share)
    gradients = GaussianEvent(math.sqrt(count / (1 - share)) / rest * _UP, count)
    releases = [gradients, GaussianEvent(_UP / (rest * math.sqrt(share)))]
    if moments_share:
        releases.append(GaussianEvent(_UP * math.sqrt(2 / moments_share) / mu, 2))
    return FitEvent(tuple(releases), neighboring)


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

    def excess(log_noise):
        return epsilon_of(event(math.exp(log_noise)), delta) / epsilon - 1

    total = count + n_full / full_ratio**2
    high = math.log(math.sqrt(total / (2 * zcdp_rho(epsilon, delta))))
    while excess(high) > 0:
        high += 0.5
    low = high
    while excess(low) <= 0 and low > -30:
        low, high = low - 1.0, low
    log_noise = brentq(excess, low, high, xtol=1e-7) if excess(low) > 0 else low
    while excess(log_noise) > 0:
        log_noise += 5e-7
    return event(math.exp(log_noise))
