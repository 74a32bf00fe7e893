"""From a target (ε, δ) to the noise of one fit, rounded towards more noise.

Everything that a fit will release is fixed here, before a record is used: this is what makes
the tight curves of ``_accounting`` valid (a ledger, whose charges depend on earlier outputs,
counts in its own currency instead).
"""

import math
from functools import lru_cache

from ._accounting import zcdp_rho
from ._events import FitEvent, GaussianEvent, HiddenStateEvent, NonPrivateEvent, SelectionEvent
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


def hidden_state_fit_event(epsilon, delta, count, contraction, neighboring):
    """The last of `count` steps that contract, (epsilon, delta)-DP, exactly calibrated."""
    mu = gdp_mu(epsilon, delta)
    noise_multiplier = math.sqrt(hidden_state_factor(count, contraction)) / mu * _UP
    return FitEvent((HiddenStateEvent(noise_multiplier, count, contraction),), neighboring)


@lru_cache(maxsize=1024)  # the curve takes up to a second
def greedy_fit_event(epsilon, delta, count, selection_share, neighboring):
    """`count` choices, each followed by a Gaussian release, together (epsilon, delta)-DP.

    A share `selection_share` of ρ goes to the choices: η = sqrt(8 share ρ / count) and
    z = sqrt(count / (2 (1 - share) ρ)). ρ is the largest that the tight curve admits, or zCDP for
    very many choices.
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    rho = zcdp_rho(epsilon, delta) / count

    def event(factor):
        choice, release = selection_share * factor * rho, (1 - selection_share) * factor * rho
        return math.sqrt(8 * choice) / _UP, math.sqrt(1 / (2 * release)) * _UP

    factor = 1.0
    if is_tractable(event(1.0)[0], count):
        factor = largest_factor(
            lambda factor: (event(factor)[0], count, math.sqrt(count) / event(factor)[1]),
            epsilon / (1 + 1e-9),  # so that accounting, rounded upwards, gives no more than epsilon
            delta,
        )
    eta, noise_multiplier = event(factor)
    return FitEvent(
        (SelectionEvent(eta, count), GaussianEvent(noise_multiplier, count)), neighboring
    )
