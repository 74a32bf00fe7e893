"""Searches that are one fit of all records, with the whole budget.

- Candidates differ in nothing but the penalty of the last step: what Newton steps release is enough
  to choose among strengths and kinds of it (``plan/_strengths.py``), at no further charge.
- Nothing could be compared, by public facts (a run would have too little, or scores have no
  bounds): the candidate that is nearest to the estimator as it was given is fitted.
"""

import math
from numbers import Integral

import numpy as np
from sklearn.base import is_regressor

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._strengths import can_choose
from ..pipeline._budget_of_step import last_step
from ..pipeline._joint_plan import width_of
from ..plan._shrinkage import ENTRIES
from ..utils._warnings import warn
from . import _budget_of_run, _candidates

_OF_PENALTIES = {"alpha", "C", "l1_ratio", "penalty"}
# A run's n mu / sqrt(p + 1) below which its noise hides how good a candidate is, and the same as a
# multiple of p: below it the best of three solvers by noisy scores was worse than one of them drawn
# blindly, by up to .36 in R² (``benchmarks/search.py``, way "runs").
_LEAST_SIGNAL, _LEAST_OF_COLUMNS = 450.0, 3.5


def model_of_one_fit(search, asked, shape):
    """The estimator whose one fit is the whole search, its parameters, and why nothing is compared.

    All are None if candidates are run, and the last two where the fit is to choose. A score, a law
    or a number of runs that somebody asks for is carried out by runs.
    `shape` is (columns, n_outputs, is_sparse).
    """
    if (search.scoring, search.distribution, search.n_iter) != (None, "auto", "auto"):
        return None, None, None
    params, why, model = None, None, _of_strengths(search, asked)
    if model is None:
        is_counted = "accountant" in asked.part.get_params(deep=False)
        if not (asked.law == "all" and asked.mean > 1 and is_counted):
            return None, None, None
        if (why := _why_not_compared(search, asked, shape)) is None:
            return None, None, None
        candidates = _candidates.prototypes(asked.grids, asked.coins)
        models = [_candidates.candidate(search.estimator, params) for params in candidates]
        nearest = _nearest(search, asked, candidates, models, (asked.budget.n, *shape))
        params, model = candidates[nearest], models[nearest]
    return _charged(search, asked, model), params, why


def _charged(search, asked, model):
    """A model with the whole budget, which charges the accountant of the search."""
    part, budget = _budget_of_run.budgeted_part(model), asked.budget
    part.set_params(epsilon=budget.epsilon, delta=budget.delta, accountant=search.accountant)
    if asked.tape is not None:
        _candidates.put_on_tape(model, asked.tape)
    return model


def _of_strengths(search, asked):
    """The estimator that chooses among all candidates in one fit; None if they differ otherwise."""
    grid, *others = asked.grids
    if others or any(hasattr(values, "rvs") for values in grid.values()):
        return None
    if not {name.rpartition("__")[2] for name in grid} <= _OF_PENALTIES:
        return None
    model = _candidates.candidate(search.estimator, {})
    if not isinstance(last_step(model), PrivateLinearModel):
        return None
    model.set_params(**{name: list(values) for name, values in grid.items()})
    return model if can_choose(last_step(model)) else None


def _why_not_compared(search, asked, shape):
    """Why candidates can't be compared, from public facts; None if they can."""
    bounds = getattr(last_step(asked.part), "target_bounds", ())
    if is_regressor(search.estimator) and bounds is None:
        return "scores of a regressor need public target_bounds"
    columns, _, is_sparse = shape
    width = columns if isinstance(columns, Integral) else width_of(columns)
    if is_sparse:
        width = min(width, ENTRIES)
    mu = asked.budget.mu / math.sqrt(asked.mean)
    least = max(_LEAST_SIGNAL, _LEAST_OF_COLUMNS * width)
    if asked.budget.n * mu / math.sqrt(width + 1) >= least:
        return None
    return (
        f"epsilon={asked.budget.epsilon:g} and n={asked.budget.n:,} are too few to compare "
        f"{asked.mean:.0f} candidates: noise would choose"
    )


def _nearest(search, asked, candidates, models, sizes):
    """Which candidate is nearest to the estimator as it was given, the first of several.

    It is one that would release the same, as a solver that "auto" stands for; then one that changes
    least.

    Raises
    ------
    TypeError, ValueError
        If a candidate could not be fitted.
    """
    events = [_budget_of_run.planned_event(_charged(search, asked, one), sizes) for one in models]
    try:
        given = _candidates.candidate(search.estimator, {})
        own = _budget_of_run.planned_event(_charged(search, asked, given), sizes)
    except (TypeError, ValueError):  # it could be that only candidates are complete
        own = None
    stated = search.estimator.get_params()

    def distance(i):
        pairs = ((stated.get(name), value) for name, value in candidates[i].items())
        return events[i] != own, sum(repr(old) != repr(new) for old, new in pairs)

    return min(range(len(candidates)), key=distance)


def warn_of_no_comparison(params, why):
    """Say before the charge that candidates are not compared."""
    warn(
        f"{why}. {params}, which is nearest to the estimator as it was given (the first listed of "
        "several), has the whole budget. Pass scoring= to run all candidates nevertheless",
        UserWarning,
    )


def results_of(model, grid):
    """Parameters of the best candidate, and `cv_results_`, of a model that was fitted.

    Estimated losses are compared with that of the best one, whose score is 0.
    """
    last = last_step(model)
    name, path = last._strength_name, getattr(last, "strength_path_", None)
    if path is None:  # one strength was fitted
        path = {key: [getattr(last, f"{key}_", None)] for key in ("penalty", name, "l1_ratio")}
        path |= {"excess_loss": [0.0], "excess_loss_std": [0.0]}
    params = [
        {key: _listed(values, path, key.rpartition("__")[2], i) for key, values in grid.items()}
        for i in range(len(path["excess_loss"]))
    ]
    scores = 0.0 - np.array(path["excess_loss"])
    best = int(np.argmax(scores))
    results = {
        "params": params,
        "mean_test_score": scores,
        "std_test_score": np.array(path["excess_loss_std"]),
        "rank_test_score": 1 + (scores[None] > scores[:, None]).sum(axis=1, dtype=np.int32),
    }
    return params[best], results


def _listed(values, path, name, i):
    """The value of a grid that a candidate has, as it was listed."""
    if (found := path[name][i]) is None or len(values) == 1:
        return list(values)[0]
    if isinstance(found, str):
        return found
    return min(values, key=lambda value: abs(value - found))
