"""Where an estimator keeps its budget, and copies that are given another one."""

import inspect

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

# Parameters of a private estimator about its budget and what it protects.
BUDGET = ("epsilon", "delta", "accountant", "neighboring", "n_public")
# Parameters that state public facts about records, which another step may have made public.
FACTS = ("feature_bounds", "row_norm_bound", "feature_scale", "target_bounds")


def is_private(estimator):
    """Whether an object says what it would release; a wrapper of one does not vouch for it.

    One that is told all that it would learn releases nothing.
    """
    if isinstance(estimator, type) or not hasattr(type(estimator), "planned_event"):
        return False
    return not getattr(estimator, "charges_nothing", False)


def private_part(estimator):
    """The one part of an estimator that has a budget.

    Raises
    ------
    TypeError
        If nothing in it is private.
    ValueError
        If several steps are: only a PrivatePipeline divides a budget.
    """
    if is_private(estimator):
        return estimator
    steps = estimator.steps if isinstance(estimator, Pipeline) else []
    found = [step for _, step in steps if is_private(step) or isinstance(step, Pipeline)]
    if not found:
        raise TypeError(
            f"{type(estimator).__name__} is not private: it has no budget and says nothing about "
            "what it would release (planned_event). Pass a private estimator or a PrivatePipeline"
        )
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} steps of this Pipeline have a budget each; make it a PrivatePipeline, "
            "whose steps share one"
        )
    return private_part(found[0])


def last_step(estimator):
    """The model at the end of a pipeline, of a pipeline in it too; or the estimator itself."""
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return estimator


def as_params(step, facts):
    """Budgets and facts under the names that a step has for them, a search those of its model."""
    own = step.get_params(deep=False)
    return {name if name in own else f"estimator__{name}": value for name, value in facts.items()}


def stated_budget(step):
    """Names of the parameters of its budget that a step does not leave at their defaults."""
    defaults = inspect.signature(type(step).__init__).parameters
    params = step.get_params(deep=False)
    return [
        name
        for name in BUDGET
        if name in params and name in defaults and params[name] != defaults[name].default
    ]


# ---- copies --------------------------------------------------------------------------------------


def copy_of(step):
    """A clone, with the fitted state that a warm start begins at."""
    if step in (None, "passthrough"):
        return step
    copy = clone(step)
    if getattr(step, "warm_start", False):
        vars(copy).update(vars(step) | vars(copy))
    return copy


def tell_target_bounds(copies):
    """Tell encoders and selectors without `target_bounds` those that the last step states."""
    last = last_step(copies[-1][1])
    bounds = getattr(getattr(last, "estimator", last), "target_bounds", None)
    if not isinstance(bounds, tuple) or any(map(np.ndim, bounds)):  # arrays are of several outputs
        return
    for _, step in copies:
        params = step.get_params() if hasattr(step, "get_params") else {}
        unset = [name for name in params if name.rpartition("__")[2] == "target_bounds"]
        if told := {name: bounds for name in unset if params[name] is None}:
            step.set_params(**told)


def give_back(copy, stated):
    """Put budgets and facts that a fitted copy was given back to what its user stated."""
    if is_private(stated):
        params, given = stated.get_params(), as_params(stated, dict.fromkeys((*BUDGET, *FACTS)))
        copy.set_params(**{name: params[name] for name in given if name in params})
    for attribute in ("steps", "transformer_list", "transformers", "transformers_"):
        by_name = dict(item[:2] for item in getattr(stated, attribute.removesuffix("_"), ()))
        by_name["remainder"] = getattr(stated, "remainder", None)
        for name, part, *_ in getattr(copy, attribute, ()):
            if hasattr(by_name[name], "get_params"):
                give_back(part, by_name[name])
    if hasattr(getattr(stated, "remainder", None), "get_params"):
        give_back(copy.remainder, stated.remainder)
