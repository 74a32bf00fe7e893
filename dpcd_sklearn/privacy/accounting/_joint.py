"""From one target (ε, δ) to the budgets of several fits that are charged together.

All of them are planned beforehand, so the tight curves of ``_accounting`` hold for their union as
they hold for one fit. A budget is divided by μ², which adds up; where choices or samples make the
union dearer or cheaper than that, all parts are scaled by one factor, until the union costs what
was asked for.
"""

import math
from functools import cache

from ._accounting import log_excess
from ._events import FitEvent
from ._gaussian_dp import gdp_epsilon, gdp_mu
from ._roots import largest_within

_NEARLY = 5e-3


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
    plans = [cache(part) for part in planned]  # each may calibrate for seconds
    within = {}  # by the logarithms of the factors

    def excess(of_last, of_others):
        logs = [of_others] * (len(plans) - 1) + [of_last]
        factors = zip(logs, parts_of_mu, strict=True)
        budgets = [_budget(math.exp(log) * part, delta) for log, part in factors]
        event = joined([plan(*own) for plan, own in zip(plans, budgets, strict=True)])
        over = log_excess(event, epsilon, delta)
        if over <= 0:
            within[of_others, of_last] = budgets, event
        return over

    # When one factor of all parts is nearly right, the last part alone, which is mostly the model
    # and has most, makes up for what is missing: the others are planned no more.
    others = largest_within(lambda log: excess(log, log), 0.0, tolerance=_NEARLY)
    last = None
    if others is not None:
        last = largest_within(lambda log: excess(log, others), others)
    if last is None:
        raise ValueError(
            f"no division of epsilon={epsilon:g} was found: what a part releases must follow the "
            "epsilon and the delta that it is given"
        )
    return within[others, last]


def _budget(mu, delta):
    """(ε, δ) of a μ-GDP fit, at the δ of the whole or at one so small that ε is positive."""
    while (epsilon := gdp_epsilon(mu, delta)) == 0.0:
        delta /= 10.0
    return epsilon, delta
