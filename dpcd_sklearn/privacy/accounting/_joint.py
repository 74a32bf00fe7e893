"""From one target (ε, δ) to the budgets of several fits that are charged together.

All of them are planned beforehand, so the tight curves of ``_accounting`` hold for their union as
they hold for one fit. A budget is divided by μ², which adds up; where choices or samples make the
union dearer or cheaper than that, all parts are scaled by one factor, until the union costs what
was asked for.
"""

import math
from functools import cache

from scipy.optimize import brentq

from ._accounting import epsilon_of
from ._events import FitEvent
from ._gaussian_dp import gdp_epsilon, gdp_mu

# The union costs between (1 - 1e-6) ε and ε, unless a part has a jump there.
_MIDDLE, _REACH = 1 - 5e-7, 4.9e-7
_NEARLY = 5e-3
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
    plans = [cache(part) for part in planned]  # each may calibrate for seconds
    within = {}  # by the logarithms of the factors

    def excess(of_last, of_others, reach=_REACH):
        logs = [of_others] * (len(plans) - 1) + [of_last]
        factors = zip(logs, parts_of_mu, strict=True)
        budgets = [_budget(math.exp(log) * part, delta) for log, part in factors]
        event = joined([plan(*own) for plan, own in zip(plans, budgets, strict=True)])
        loss = epsilon_of(event, delta) / epsilon
        if loss <= 1.0:
            within[of_others, of_last] = budgets, event
        loss /= _MIDDLE
        return 0.0 if abs(loss - 1.0) <= reach else math.log(min(max(loss, 0.1), 10.0))

    # When one factor of all parts is nearly right, the last part alone, which is mostly the model
    # and has most, makes up for what is missing: the others are planned no more.
    others = _root(lambda log: excess(log, log, _NEARLY), 0.0, 1.0)
    last = _root(lambda log: excess(log, others), others, shares[-1] / total)
    found = [logs for logs in within if logs[0] == others]
    if last is None or not found:
        raise ValueError(
            f"no division of epsilon={epsilon:g} was found: what a part releases must follow the "
            "epsilon and the delta that it is given"
        )
    return within[max(found)]


def _root(excess, low, slope):
    """A root of a function that grows about as `slope` says; None if there is none nearby."""
    at_low = None if low is None else excess(low)
    for _ in range(_MOST_STEPS if low is not None else 0):
        if at_low == 0.0:
            return low
        high = low - 1.04 * at_low / slope
        at_high = excess(high)
        if at_low * at_high < 0:
            return brentq(excess, low, high, xtol=1e-9, rtol=1e-9)
        low, at_low = high, at_high
    return None


def _budget(mu, delta):
    """(ε, δ) of a μ-GDP fit, at the δ of the whole or at one so small that ε is positive."""
    while (epsilon := gdp_epsilon(mu, delta)) == 0.0:
        delta /= 10.0
    return epsilon, delta
