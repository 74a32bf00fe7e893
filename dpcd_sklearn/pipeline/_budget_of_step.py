"""Where an estimator keeps its budget, and how to give it another one."""

import inspect

from sklearn.pipeline import Pipeline

# Parameters of a private estimator about its budget and what it protects.
BUDGET = ("epsilon", "delta", "accountant", "neighboring", "n_public")


def is_private(estimator):
    """Whether an object says what it would release; a wrapper of one does not vouch for it.

    One that is told all that it would learn releases nothing.
    """
    if isinstance(estimator, type) or not hasattr(type(estimator), "planned_event"):
        return False
    return not getattr(estimator, "charges_nothing", False)


def set_budget(estimator, epsilon, delta="auto", accountant=None):
    """Give an estimator a budget, wherever in it the budget is kept.

    Parameters
    ----------
    estimator : estimator
        A private estimator, a PrivatePipeline among them, or scikit-learn's Pipeline of one
        private step and others. It is changed in place; `clone` it before.
    epsilon : float in (0, inf]
    delta : "auto" or float in (0, 1), default="auto"
    accountant : PrivacyAccountant or Prepaid, default=None

    Returns
    -------
    estimator : estimator
        The same.

    Raises
    ------
    TypeError
        If nothing in it is private.
    ValueError
        If several steps are: only a PrivatePipeline divides a budget.
    """
    private_part(estimator).set_params(epsilon=epsilon, delta=delta, accountant=accountant)
    return estimator


def private_part(estimator):
    """The one part of an estimator that has a budget, as `set_budget` finds it."""
    if is_private(estimator):
        return estimator
    found = []
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps]
        found = [step for step in steps if is_private(step) or isinstance(step, Pipeline)]
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


def stated_budget(step):
    """Names of the parameters of its budget that a step does not leave at their defaults."""
    defaults = inspect.signature(type(step).__init__).parameters
    params = step.get_params(deep=False)
    return [
        name
        for name in BUDGET
        if name in params
        and name in defaults
        and params[name] is not defaults[name].default
        and params[name] != defaults[name].default
    ]
