"""From one target (ε, δ) to the budgets of several fits that are charged together.

All of them are planned beforehand, so the tight curves of ``_accounting`` hold for their union as
they hold for one fit. A budget is divided by μ², which adds up; where choices or samples make the
union dearer or cheaper than that, all parts are scaled by one factor, until the union costs what
was asked for. The factor is looked for among curves: of what a part releases with its share, with
more noise or less. No part is planned more often than it takes to see that it follows.
"""

import math
from functools import lru_cache

from ...utils._persons import as_stated
from ._calibration import with_noise
from ._events import CoveredEvent, FitEvent, GaussianEvent, NonPrivateEvent, TuningEvent
from ._gaussian_dp import TOLERANCE, gdp_epsilon, gdp_mu, largest_within

_UP = 1 + 1e-12
# Share of δ that names categories of one record: several fits have it each, and a later charge of
# a ledger takes it from a reserve of a hundredth of δ. A 32nd would lower thresholds by a sixth.
_NAMED_ALONE = 2.0**-14


def partition_event(budget):
    """Counts of categories, of which a small part of δ names what one record alone has."""
    epsilon, delta, neighboring = budget[:3]
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), neighboring)
    spare = _NAMED_ALONE * delta
    # accounting, rounded upwards, gives no more than epsilon
    mu = gdp_mu(epsilon / (1 + 1e-9), (delta - spare) / (1 - spare) * (1 - 1e-9))
    return FitEvent((CoveredEvent(_UP / mu, spare),), neighboring)


_SPARE = 1e-3  # share of a search's δ that may tell everything, where runs are not Gaussian


@lru_cache(maxsize=256)
def search_fit_event(budget, law, mean, count, gaussian, n_refits):
    """Runs of all candidates or of a random number, and refits of the best, in a Budget together.

    Every fit and every score tells at most as much as one release, the largest that the budget
    admits: a Gaussian one if all are Gaussian, else one that covers them.

    Parameters
    ----------
    budget : Budget
    law, mean : as of TuningEvent
        The law "all" is no secret: there are `mean` runs, and all scores are released.
    count : int
        How many fits and scores of one run one record meets, at most.
    gaussian : bool
        Whether all fits are Gaussian.
    n_refits : int

    Returns
    -------
    event : FitEvent
    release : GaussianEvent or CoveredEvent
        What each fit and each score may tell.
    """
    epsilon, delta = budget[:2]
    unit = budget.neighboring, budget.max_contributions
    spare = _SPARE * delta / (mean * count + n_refits)

    def event(z, n_runs_see):
        if gaussian:
            return GaussianEvent(z, n_runs_see)
        return CoveredEvent(z, spare, n_runs_see)

    def search(log_mu):
        z = math.exp(-log_mu)
        if law == "all":
            return FitEvent((event(z, int(mean) * count + n_refits),), *unit)
        runs = TuningEvent(FitEvent((event(z, count),), *unit), law, mean)
        return FitEvent((runs, *[event(z, n_refits)][:n_refits]), *unit)

    highest = math.log(gdp_mu(epsilon, delta) / math.sqrt(count))
    log_mu = largest_within(lambda log_mu: budget.excess(search(log_mu)), highest, highest)
    if log_mu is None or log_mu < -30:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} admit no search of {mean:g} runs; raise "
            "epsilon, lower n_iter or search fewer candidates"
        )
    return search(log_mu), event(math.exp(-log_mu), 1)


_NEARLY = 5e-3
_LOOKS = 3


def joined(events):
    """All releases of several fits under one neighbouring relation, as one event.

    Raises
    ------
    ValueError
        If they have several relations, or units.
    """
    relations = {event.neighbours for event in events}
    if len(relations) != 1:
        got = sorted(as_stated(*relation) for relation in relations)
        raise ValueError(f"the parts of one charge must have one neighbouring relation, got {got}")
    return FitEvent(tuple(r for event in events for r in event.releases), *relations.pop())


def joint_budgets(planned, shares, budget):
    """Budgets whose fits take one together, and hardly less.

    Parameters
    ----------
    planned : list of callables
        Function of each part, from its own Budget to its FitEvent.
    shares : list of float, > 0
        Their shares of μ²; normalised here.
    budget : Budget
        Budget of all parts together.

    Returns
    -------
    budgets : list of Budgets
        One for each part; they do not add up, the event says what they are together.
    event : FitEvent
        The releases of all parts.

    Raises
    ------
    ValueError
        If a part can't be planned, or does not follow its budget.
    """
    if len(planned) == 1 or not budget.private:
        return [budget] * len(planned), joined([part(budget) for part in planned])
    total = math.fsum(shares)
    parts = [
        _Part(plan, budget, gdp_mu(*budget[:2]) * math.sqrt(share / total))
        for plan, share in zip(planned, shares, strict=True)
    ]

    others = _scale_of_all(tuple(part.event(0.0) for part in parts), budget)
    # When one factor of all parts is nearly right, the last part alone, which is mostly the model
    # and has most, makes up for what is missing: the others are planned no more.
    last = None
    if others is not None:
        *first, part = parts
        last = _followed(tuple(part.event(others) for part in first), part, others, budget)
    if last is None:
        raise ValueError(
            f"no division of epsilon={budget.epsilon:g} was found: what a part releases must "
            "follow the epsilon and the delta that it is given"
        )
    logs = [others] * (len(parts) - 1) + [last]
    budgets = [part.budget(log) for part, log in zip(parts, logs, strict=True)]
    return budgets, joined([part.event(log) for part, log in zip(parts, logs, strict=True)])


class _Part:
    """A fit among others, planned at e^log times its share of μ."""

    def __init__(self, planned, whole, mu):
        self._planned, self._whole, self._mu = planned, whole, mu
        self._events = {}  # a plan may calibrate for seconds

    def budget(self, log):
        epsilon, delta = _pair(math.exp(log) * self._mu, self._whole.delta)
        return self._whole._replace(epsilon=epsilon, delta=delta)

    def event(self, log):
        if log not in self._events:
            self._events[log] = self._planned(self.budget(log))
        return self._events[log]


def _followed(first, part, start, budget):
    """The largest log at which a part takes no more than the first leave; None if there is none.

    It is foreseen from the plan before, which is exact for Gaussians. A part that does not follow
    its budget, as where it releases more once it can afford it, is planned at every step.
    """

    def excess(log):
        return budget.excess(joined([*first, part.event(log)]))

    log = 0.0
    for _ in range(_LOOKS):
        log = _scale_of_last(first, part.event(log), log, start, budget)
        if log is None:  # nothing can be foreseen
            break
        if -TOLERANCE <= excess(log) <= 0:
            return log
    return largest_within(excess, start)


# ---- among curves: candidates of a search that release the same are divided once ----------------


@lru_cache(maxsize=256)
def _scale_of_all(events, budget):
    """The log of the factor at which these events nearly take a budget, by less noise or more."""

    def excess(log):
        scaled = [with_noise(event, math.exp(-log)) for event in events]
        return budget.excess(joined(scaled))

    return largest_within(excess, 0.0, tolerance=_NEARLY)


@lru_cache(maxsize=256)
def _scale_of_last(first, event, at, start, budget):
    """The log at which an event, as it was planned at another, takes all that the first leave."""

    def excess(log):
        scaled = with_noise(event, math.exp(at - log))
        return budget.excess(joined([*first, scaled]))

    return largest_within(excess, start)


@lru_cache(maxsize=1024)
def _pair(mu, delta):
    """(ε, δ) of a μ-GDP fit, at the δ of the whole or at one so small that ε is positive."""
    while (epsilon := gdp_epsilon(mu, delta)) == 0.0:
        delta /= 10.0
    return epsilon, delta
