"""Where a candidate of a search keeps its budget, and how to bring it below what a run may cost."""

import math
from functools import cache

from ..leaks import may_be_sparse, refuse_leaks
from ..pipeline._budget_of_step import private_part
from ..pipeline._joint_plan import width_of
from ..pipeline._private_pipeline import PrivatePipeline
from ..pipeline._public_facts import first_rows
from ..privacy.accounting._accounting import mu_of
from ..privacy.accounting._gaussian_dp import gdp_epsilon, largest_within
from ..privacy.ledger._rehearsal import event_of

_NEARLY = 4e-6  # what may be left of a run


class OfSeveralKindsError(ValueError):
    """A candidate makes releases that are not Gaussian, and the search counts on Gaussian ones."""


def budgeted_part(estimator):
    """The one part of an estimator that has a budget.

    Raises
    ------
    TypeError
        If nothing in it is private, or what is has no settable budget.
    ValueError
        If several steps of a Pipeline are.
    """
    part = private_part(estimator)
    if missing := {"epsilon", "delta"} - set(part.get_params(deep=False)):
        raise TypeError(
            f"{type(part).__name__} has no parameter {' and '.join(sorted(missing))}: the "
            "search sets the budget of every run"
        )
    return part


def excess(event, release):
    """The μ of a Gaussian that covers an event, over that of a release: up to 1 it costs no more.

    Raises
    ------
    OfSeveralKindsError
        If the release is Gaussian, and the event is not.
    """
    mu = mu_of(event, getattr(release, "spare", 0.0))
    if mu is None:
        raise OfSeveralKindsError(
            "candidates of several kinds: the search is calibrated for Gaussian releases, and a "
            "candidate makes others"
        )
    return mu * release.noise_multiplier


def give_budget(estimator, release, budget, sizes, start=math.inf):
    """Set epsilon and delta of an estimator so that its fit costs no more than a release.

    Parameters
    ----------
    estimator : estimator
        Changed in place.
    release : GaussianEvent or CoveredEvent
    budget : Budget
        Budget of the search; a fit has its delta and its neighbours.
    sizes : tuple (n_samples, columns, n_outputs, is_sparse)
        Columns as `columns_of` returns them.
    start : float
        The μ at which another candidate ended: those that differ in their penalty end alike.

    Returns
    -------
    mu : float
        μ of the budget.

    Raises
    ------
    ValueError
        If there is no such budget: a fact that no record decides.
    """
    part, delta = budgeted_part(estimator), budget.delta

    @cache
    def over(log_mu, delta):
        part.set_params(epsilon=gdp_epsilon(math.exp(log_mu), delta) * (1 - 1e-9), delta=delta)
        event = planned_event(estimator, sizes)
        if event.neighbours != (budget.neighboring, budget.max_contributions):
            raise ValueError("a candidate has other neighbours than the search")
        return math.log(max(excess(event, release), math.ulp(0.0)))

    highest = -math.log(release.noise_multiplier)
    start = min(math.log(start), highest)
    if math.isinf(above := over(start, delta)):
        # a fit that names categories takes its part of the spare
        delta = min(delta, getattr(release, "spare", delta))
    elif above > 0:
        start -= above + _NEARLY / 2  # covers grow as μ does, nearly
    found = largest_within(lambda log: over(log, delta), start, highest, _NEARLY)
    if found is None:
        raise ValueError("no budget of this candidate is small enough for a run")
    mu = math.exp(found)
    part.set_params(epsilon=gdp_epsilon(mu, delta) * (1 - 1e-9), delta=delta)
    return mu


def columns_of(estimator, X):
    """Columns as a plan is told of them: a few rows if a PrivatePipeline takes them by name."""
    part = budgeted_part(estimator)
    if isinstance(part, PrivatePipeline) and hasattr(X, "columns"):
        return first_rows(X, whole=bool(part.public_steps))[0]
    return width_of(X)


def planned_event(estimator, sizes):
    """The event that a fit would release, of several outputs only where the estimator has them.

    Raises
    ------
    TypeError, ValueError
        If it is not private, or a part of it is not covered by the guarantee.
    """
    n_samples, columns, n_outputs, is_sparse = sizes
    part = budgeted_part(estimator)
    # of every candidate, those that are drawn later too
    refuse_leaks(estimator, dense=not (is_sparse or may_be_sparse(columns)))
    return event_of(part, n_samples, columns, n_outputs, is_sparse)
