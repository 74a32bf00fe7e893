"""Searches over nothing but the penalty of the last step: one fit, and a choice that costs nothing.

See ``plan/_strengths.py``: what Newton steps release is enough to choose among strengths and kinds
of the penalty, so the whole budget is that of one fit of all records.
"""

import numpy as np

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._strengths import can_choose
from ..pipeline._budget_of_step import last_step
from . import _budget_of_run, _candidates

_OF_PENALTIES = {"alpha", "C", "l1_ratio", "penalty"}


def model_of_strengths(search, asked):
    """The estimator that chooses among all candidates in one fit; None if they differ otherwise.

    A score, a law or a number of runs that somebody asks for is carried out by runs.
    """
    grids, runs = asked.grids, (search.scoring, search.distribution, search.n_iter)
    if runs != (None, "auto", "auto") or len(grids) > 1:
        return None
    if any(hasattr(values, "rvs") for values in grids[0].values()):
        return None
    if not {name.rpartition("__")[2] for name in grids[0]} <= _OF_PENALTIES:
        return None
    model, budget = _candidates.candidate(search.estimator, {}), asked.budget
    if not isinstance(last_step(model), PrivateLinearModel):
        return None
    model.set_params(**{name: list(values) for name, values in grids[0].items()})
    if not can_choose(last_step(model)):
        return None
    part = _budget_of_run.budgeted_part(model)
    part.set_params(epsilon=budget.epsilon, delta=budget.delta, accountant=search.accountant)
    if asked.tape is not None:
        _candidates.put_on_tape(model, asked.tape)
    return model


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
