"""One run of a search: fit, score, and nothing that leaves but the two of the winner."""

import math
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from ..leaks import may_be_sparse, refuse_leaks
from ..pipeline._budget_of_step import last_step, private_part
from ..pipeline._private_pipeline import PrivatePipeline
from ..pipeline._public_facts import first_rows
from ..privacy.accounting._accounting import mu_of
from ..privacy.accounting._events import FitEvent, GaussianEvent
from ..privacy.accounting._gaussian_dp import gdp_epsilon, largest_within
from ..privacy.ledger._accountant import charge
from ..privacy.ledger._rehearsal import event_of
from ..utils._cells import kind_of_dtype
from ..utils._compat import safe_indexing
from ..utils._persons import Persons, PersonsOfRows, relation_of
from ..utils._public import width_of
from ..utils._warnings import silence
from ._candidates import as_chosen

# ---- Where a candidate of a search keeps its budget, and how to bring it below that of a run -----

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
    """Set epsilon and delta of an estimator so that its fit costs at most a release; returns μ.

    `sizes` is (n_samples, columns, n_outputs, is_sparse), with columns as of `columns_of`; `start`
    is the μ at which another candidate ended: those that differ in their penalty end alike.

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
    """Columns as a plan is told of them: a few rows where a PrivatePipeline may take words."""
    part = budgeted_part(estimator)
    if isinstance(part, PrivatePipeline) and kind_of_dtype(getattr(X, "dtype", None)) != "numbers":
        return first_rows(X, whole=bool(part.public_steps))
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


@dataclass(frozen=True)
class Outcome:
    """The result of a run: a failed one has no model and the lowest of all scores.

    `shown` are its parameters with the strength of a penalty that the fit chose.
    """

    params: dict | None = None
    score: float = -math.inf
    model: object = None
    shown: dict | None = None


def score_event(release, budget):
    """The score of a run as an event of records: Gaussian, and a person's tell no more than this.

    `release` is of persons.
    """
    noise_multiplier = (budget.max_contributions or 1) * release.noise_multiplier
    return FitEvent((GaussianEvent(noise_multiplier),), budget.neighboring)


def with_ids(model, ids):
    """Give a candidate the ids of its records as its neighbours; None takes them away again."""
    part = budgeted_part(model)
    if relation_of(neighboring := getattr(part, "neighboring", "replace_one"))[1] is None:
        relation = neighboring.relation
        given = Persons(relation=relation) if ids is None else PersonsOfRows(relation, ids)
        part.set_params(neighboring=given)
    return model


def fitted(model, X, y, release, ids=None):
    """Fit a candidate so that it releases no more than it may, and return it.

    Where the plan did not know a public fact (the size of a fold, columns that a step makes) a fit
    may have released a little more: nobody sees it, and it is made again with less. Steps before
    the model may map records in place, so they are given copies.
    """
    part = budgeted_part(with_ids(model, ids))
    for _ in range(5):
        model.fit(deepcopy(X) if hasattr(model, "steps") else X, y)
        if (over := excess(part.privacy_event_, release)) <= 1:
            return with_ids(model, None)
        part.set_params(epsilon=part.epsilon / over**2)
    raise RuntimeError("a fit released more than was planned")


def run(candidate, params, scorer, X, y, splits, release, budget, key=None, ids=None):
    """Fit and score a candidate on each split; a failure of any kind is an outcome like others.

    Parameters
    ----------
    candidate : estimator or None
        Its budget is set; None is one that could not be planned.
    key : Recording or None
        A tape, which noise of scores comes from.
    ids : ndarray of shape (n_records,), or None
        Ids of persons, where these are the unit.
    """
    if candidate is None:
        return Outcome()
    try:
        with silence():  # a warning would tell of a run that did not win
            scores, model = [], None
            event = score_event(release, budget)
            for split in splits:
                (X_fit, X_score), (y_fit, y_score) = (
                    [safe_indexing(array, rows) for rows in split] for array in (X, y)
                )
                own, scored = (None, None) if ids is None else (ids[rows] for rows in split)
                model = fitted(clone(candidate), X_fit, y_fit, release, own)
                if scored is not None:
                    X_score, y_score, scored = scorer.of_persons(model, X_score, y_score, scored)
                score = scorer.prepared(model, X_score, y_score, event, scored)
                scores.append(score(charge(None, event), key))
            mean = float(np.mean(scores))
    except Exception:  # whatever it was: an error would tell of a run that did not win
        return Outcome()
    if math.isnan(mean):
        return Outcome()
    shown = as_chosen(last_step(model), params)
    return Outcome(params, mean, model if len(splits) == 1 else None, shown)


def made(tasks, n_jobs):
    """Outcomes of all runs, whose arguments `tasks` are.

    A run that was lost is not made again: its noise would be another, and a search that goes on
    until all runs end well is not the one that was paid for, where what kills follows the records.

    Raises
    ------
    RuntimeError
        If a worker process was killed.
    """
    try:
        # verbose, as a context of joblib's may ask for, would count the runs
        return Parallel(n_jobs=n_jobs, verbose=0)(delayed(run)(*task) for task in tasks)
    except BrokenExecutor as lost:
        how = type(lost).__name__
    raise RuntimeError(
        f"a worker process of the search was killed ({how}), for want of memory perhaps. Nothing "
        "was released; the ledger holds the charge of the whole search, and another search is "
        "another charge. Use fewer jobs (n_jobs=1 has no worker to lose) or more memory"
    )


def best_of(outcomes):
    """The best outcome; the first of equals. Of none, or of failures only, a failure."""
    return max([Outcome(), *outcomes], key=lambda outcome: outcome.score)


def ranked(params, scores, limits=(-math.inf, math.inf), **others):
    """`cv_results_` of candidates; failures keep -inf when scores are clipped."""
    ranks = 1 + (scores[None] > scores[:, None]).sum(axis=1, dtype=np.int32)
    scores = np.where(np.isneginf(scores), scores, np.clip(scores, *limits))
    return {"params": params, "mean_test_score": scores, **others, "rank_test_score": ranks}
