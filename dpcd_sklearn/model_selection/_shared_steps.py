"""Candidates that differ in their last step: what comes before it is fitted once, on all records.

Such a search is a PrivatePipeline of the shared steps, whose last step is the search over the rest.
"""

from sklearn.base import clone

from ..pipeline._budget_of_step import give_back, is_private
from ..pipeline._joint_plan import private_parts
from ..pipeline._private_pipeline import PrivatePipeline
from ._candidates import put_on_tape

_NAME = "search"  # of the step that is one


def with_shared_steps(search, tape=None):
    """The pipeline of a search whose candidates share private steps; None of another one.

    A `tape` stands in the place of the noise of all of them.
    """
    model, given = search.estimator, search.param_distributions
    if not isinstance(model, PrivatePipeline):
        return None
    (*shared, (name, last)), prefix = model.steps, f"{model.steps[-1][0]}__"
    grids = [given] if isinstance(given, dict) else given
    if not all(key.startswith(prefix) for grid in grids for key in grid) or not is_private(last):
        return None
    private = {}
    for path, step in shared:
        private |= {} if step in (None, "passthrough") else private_parts(path, step)
    if not private or _NAME in dict(model.steps):
        return None
    own = [{key.removeprefix(prefix): values for key, values in grid.items()} for grid in grids]
    inner = clone(search).set_params(
        estimator=last, param_distributions=own, epsilon=1.0, delta="auto", accountant=None
    )
    inner.random_state, copies = search.random_state, []
    for path, step in shared:
        copies.append((path, clone(step, safe=False)))
        if tape is not None and step not in (None, "passthrough"):
            put_on_tape(copies[-1][1], tape)
    shares = model.shares
    if isinstance(shares, dict):
        shares = {_NAME if key == name else key: share for key, share in shares.items()}
    pipeline = clone(model).set_params(
        steps=[*copies, (_NAME, inner)],
        epsilon=search.epsilon,
        delta=search.delta,
        accountant=search.accountant,
        shares=shares,
    )
    pipeline.entry_name = type(search).__name__
    return pipeline


def released(search, pipeline):
    """The winner, and the attributes of the search over last steps in the words of the whole."""
    (name, stated), inner = search.estimator.steps[-1], pipeline.steps[-1][1]
    found = {key: getattr(inner, key) for key in ("best_score_", "n_splits_", "run_epsilon_")}
    results = inner.cv_results_
    found["cv_results_"] = results | {"params": [_of(name, one) for one in results["params"]]}
    found["best_params_"] = _of(name, inner.best_params_)
    found["best_estimator_"] = None
    if inner.best_estimator_ is not None:
        give_back(inner.best_estimator_, stated)
        pipeline.steps = [*pipeline.steps[:-1], (name, inner.best_estimator_)]
        pipeline.shares = search.estimator.shares
        for named in (pipeline.shares_, pipeline.told_):
            if _NAME in named:
                named[name] = named.pop(_NAME)
        found["best_estimator_"] = pipeline
    return found


def _of(name, params):
    return None if params is None else {f"{name}__{key}": value for key, value in params.items()}
