"""One run of a search: fit, score, and nothing that leaves but the two of the winner."""

import math
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from ..pipeline._budget_of_step import last_step
from ..privacy.accounting._events import FitEvent, GaussianEvent
from ..privacy.ledger._accountant import charge
from ..utils._compat import safe_indexing
from ..utils._persons import Persons, PersonsOfRows, relation_of
from ..utils._warnings import silence
from ._budget_of_run import budgeted_part, excess
from ._candidates import as_chosen

_TRIES = 5


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
    for _ in range(_TRIES):
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
    best = Outcome()
    for outcome in outcomes:
        if outcome.score > best.score:
            best = outcome
    return best
