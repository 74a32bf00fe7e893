"""From one target (ε, δ) to the budgets of several fits that are charged together.

All of them are planned beforehand, so the tight curves of ``_accounting`` hold for their union as
they hold for one fit. A budget is divided by μ², which adds up; where choices or samples make the
union dearer or cheaper than that, all parts are scaled by one factor, until the union costs what
was asked for.
"""

import math

from scipy.optimize import brentq

from ._accounting import epsilon_of
from ._events import FitEvent
from ._gaussian_dp import gdp_epsilon, gdp_mu

# The union costs between (1 - 5e-7) ε and ε, unless a part has a jump there.
_MIDDLE, _REACH = 1 - 2.5e-7, 2.5e-7
_MOST_STEPS = 50  # towards a root; a few are enough


def joined(events):
    """All releases of several fits under one neighbouring relation, as one event.

    Raises
    ------
    ValueError
        If they have several relations.
    """
    relations = {event.neighboring for event in events}
    if len(relations) != 1:
        raise ValueError(
            f"the parts of one charge must have one neighbouring relation, got {sorted(relations)}"
        )
    return FitEvent(tuple(r for event in events for r in event.releases), *relations)


def joint_budgets(planned, shares, epsilon, delta):
    """Budgets whose fits are together (epsilon, delta)-DP, and hardly less.

    Parameters
    ----------
    planned : list of callables
        Of each part, from its own (epsilon, delta) to its FitEvent.
    shares : list of float, > 0
        Their shares of μ²; normalised here.
    epsilon, delta : float
        Of all parts together.

    Returns
    -------
    budgets : list of (epsilon, delta)
        One for each part; they do not add up, the event says what they are together.
    event : FitEvent
        The releases of all parts.

    Raises
    ------
    ValueError
        If a part can't be planned, or does not follow its budget.
    """
    if len(planned) == 1 or math.isinf(epsilon):
        budgets = [(epsilon, delta)] * len(planned)
        return budgets, joined([part(*own) for part, own in zip(planned, budgets, strict=True)])
    mu, total = gdp_mu(epsilon, delta), math.fsum(shares)
    parts_of_mu = [mu * math.sqrt(share / total) for share in shares]
    tried = {}  # by the logarithm of the factor: what is within the target

    def excess(log_factor):
        factor = math.exp(log_factor)
        budgets = [_budget(factor * part, delta) for part in parts_of_mu]
        event = joined([part(*own) for part, own in zip(planned, budgets, strict=True)])
        loss = epsilon_of(event, delta) / epsilon
        if loss <= 1.0:
            tried[log_factor] = budgets, event
        return 0.0 if abs(loss - _MIDDLE) <= _REACH else math.log(min(max(loss, 0.1), 10.0))

    # The loss grows about as the factor: a root lies between one and a step a little too long.
    low, at_low = 0.0, excess(0.0)
    for _ in range(_MOST_STEPS):
        if at_low == 0.0:
            return tried[max(tried)]
        high = low - 1.2 * at_low
        at_high = excess(high)
        if at_low * at_high < 0:
            brentq(excess, low, high, xtol=1e-9, rtol=1e-9)
            return tried[max(tried)]
        low, at_low = high, at_high
    raise ValueError(
        f"no division of epsilon={epsilon:g} was found: what a part releases must follow the "
        "epsilon and the delta that it is given"
    )


def _budget(mu, delta):
    """(ε, δ) of a μ-GDP fit, at the δ of the whole or at one so small that ε is positive."""
    while (epsilon := gdp_epsilon(mu, delta)) == 0.0:
        delta /= 10.0
    return epsilon, delta
