"""From a target (ε, δ) to the noise of one fit, rounded towards more noise.

Everything that a fit will release is fixed here, before a record is used: this is what makes
the tight curves of ``_accounting`` valid (a ledger, whose charges depend on earlier outputs,
counts in its own currency instead).
"""

import math

from ._accounting import gdp_mu, zcdp_rho
from ._events import FitEvent, GaussianEvent, NonPrivateEvent, SelectionEvent

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


def greedy_fit_event(epsilon, delta, count, selection_share, neighboring):
    """`count` choices, each followed by a Gaussian release, together (epsilon, delta)-DP by zCDP.

    A share `selection_share` of ρ goes to the choices: η = sqrt(8 share ρ / count) and
    z = sqrt(count / (2 (1 - share) ρ)).
    """
    if math.isinf(epsilon):
        return FitEvent((NonPrivateEvent(),), neighboring)
    rho = zcdp_rho(epsilon, delta) / count
    eta = math.sqrt(8 * selection_share * rho) / _UP
    noise_multiplier = math.sqrt(1 / (2 * (1 - selection_share) * rho)) * _UP
    return FitEvent(
        (SelectionEvent(eta, count), GaussianEvent(noise_multiplier, count)), neighboring
    )
