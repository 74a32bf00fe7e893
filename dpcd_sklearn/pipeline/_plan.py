"""What the private steps of a pipeline will release together, from public facts alone.

A few rows go through copies of the steps that learn nothing, and through a stand-in for each
private one: what is taken from them is their width, what is public about them by then, and whether
they are sparse. Nothing of their values is.
"""

import inspect
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.utils.validation import check_consistent_length

from ..preprocessing import BoundsScaler
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joint_budgets
from ..utils._compat import check_sample_weight
from ..utils._input import read_input
from ..utils._leak_rules import leaks_of
from ..utils._public import check_real
from ._budget import is_private, stated_budget
from ._public_facts import PublicFacts, facts_after

# Share of μ² of each private step that scales, beside what the model behind it has.
_SCALING_SHARE = 0.15


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A private step: what it is told, and its share of μ².

    Attributes
    ----------
    name : str
    step : estimator
    told : dict
        Public facts that it does not state, as its parameters.
    n_features, n_outputs : int
    sparse : bool
        Whether it is given sparse records.
    share : float
    """

    name: str
    step: object
    told: dict
    n_features: int
    n_outputs: int
    sparse: bool
    share: float

    def planned(self, n_samples, relation):
        """From an (epsilon, delta) to what this step would release."""
        step = clone(self.step).set_params(**self.told, **relation)
        sizes = {"n_outputs": self.n_outputs} if self.n_outputs != 1 else {}
        if "sparse" in inspect.signature(step.planned_event).parameters:
            sizes["sparse"] = self.sparse

        def event(epsilon, delta):
            step.set_params(epsilon=epsilon, delta=delta)
            return step.planned_event(n_samples, self.n_features, **sizes)

        return event


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """All private steps, with the budget of each and the event of all.

    Attributes
    ----------
    steps : list of StepPlan
    budgets : list of (epsilon, delta)
    event : FitEvent
    """

    steps: list
    budgets: list
    event: FitEvent


def planned(steps, n_samples, epsilon, delta, relation):
    """Divide a budget over `steps`, as `walked` returns them."""
    planners = [step.planned(n_samples, relation) for step in steps]
    budgets, event = joint_budgets(planners, [step.share for step in steps], epsilon, delta)
    return PipelinePlan(steps, budgets, event)


# ---- which steps may be in it -------------------------------------------------------------------


def check_steps(steps, public_steps):
    """Refuse what learns for free, and private steps with budgets of their own.

    Parameters
    ----------
    steps : list of (name, estimator)
        Without those that pass records through.
    public_steps : list of str
        Names of steps that the user vouches for.

    Raises
    ------
    ValueError
        It says what to use instead.
    """
    names = [name for name, _ in steps]
    if unknown := [name for name in public_steps if name not in names]:
        raise ValueError(f"public_steps names {unknown}, but the steps are {names}")
    for name, step in steps:
        if is_private(step):
            if name in public_steps:
                raise ValueError(
                    f"step {name!r} is private, so it is charged; leave it out of public_steps"
                )
            if stated := stated_budget(step):
                raise ValueError(
                    f"step {name!r} states {', '.join(stated)}, but the steps of a PrivatePipeline "
                    "share its budget. Leave them at their defaults, state them to the pipeline, "
                    "and divide epsilon by shares="
                )
        elif name not in public_steps:
            _refuse_leaks(name, step)
    if not any(is_private(step) for _, step in steps):
        raise ValueError(
            "no step is private, so there is nothing to spend a budget on; use scikit-learn's "
            "Pipeline, or add a step of dpcd_sklearn"
        )


def _refuse_leaks(name, step):
    leaks = [leak for leak in leaks_of(step) if leak.severity != "note"]
    if leaks:
        leak = leaks[0]
        raise ValueError(
            f"step {name!r} is not covered by the guarantee: {leak.what}. {leak.why} Instead: "
            f"{leak.instead}. If you know that it learns nothing from these records, name it in "
            "public_steps"
        )


def shares_of(steps, shares):
    """The share of μ² of each private step, by name; they sum to one.

    Raises
    ------
    TypeError, ValueError
        If `shares` is no dict with one positive number for every private step.
    """
    names = [name for name, step in steps if is_private(step)]
    if isinstance(shares, str):
        if steps[-1][0] not in names or hasattr(steps[-1][1], "transform"):
            return dict.fromkeys(names, 1 / len(names))  # nothing but scalers
        weights = dict.fromkeys(names, _SCALING_SHARE)
        weights[names[-1]] = max(1.0 - _SCALING_SHARE * (len(names) - 1), 0.5)
    else:
        if set(shares) != set(names):
            raise ValueError(
                f"shares must have a number for each private step, {names}, got {sorted(shares)}"
            )
        weights = {name: check_real(shares[name], f"shares[{name!r}]", low=0.0) for name in names}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


# ---- the walk -----------------------------------------------------------------------------------


def walked(steps, rows, shares, n_outputs=1):
    """Every private step with what is public when its turn comes.

    Parameters
    ----------
    steps : list of (name, estimator)
        As `check_steps` passed them.
    rows : array-like of shape (n_rows, n_features)
        A few records, or made-up ones. The steps themselves are not fitted, copies are.
    shares : dict
        As `shares_of` returns them.
    n_outputs : int
        Of the last step.

    Returns
    -------
    list of StepPlan
    """
    found, facts = [], PublicFacts(width_of(rows))
    for name, step in steps:
        if not is_private(step):
            rows, fitted = _through(step, rows)
            facts = facts_after(fitted, facts, width_of(rows))
            continue
        told = _untold(step, facts)
        last = step is steps[-1][1]
        found.append(
            StepPlan(
                name, step, told, width_of(rows), n_outputs if last else 1, issparse(rows),
                shares[name],
            )
        )  # fmt: skip
        if not last:
            rows = _stand_in(name, step, rows)
            facts = facts_after(step, facts, width_of(rows))
    return found


def width_of(rows):
    """Number of columns of an array, a data frame or a list of rows."""
    if hasattr(rows, "shape"):
        return rows.shape[1]
    if not hasattr(rows[0], "__len__"):
        raise ValueError("Expected 2D array, got a list of single cells instead")
    return len(rows[0])


def _through(step, rows):
    fitted = clone(step)
    if hasattr(fitted, "fit_transform"):
        return fitted.fit_transform(rows), fitted
    return fitted.fit(rows, None).transform(rows), fitted


def _stand_in(name, step, rows):
    """Rows as a private step would put them out: of its width, layout and column names."""
    if not isinstance(step, OneToOneFeatureMixin):
        raise ValueError(
            f"step {name!r} does not say how many features it puts out before it is fitted, so "
            "what comes after it can't be planned; only private steps that keep the number of "
            "features (OneToOneFeatureMixin) may stand before others"
        )
    scaler = BoundsScaler((-1.0, 1.0))
    if hasattr(step, "_sklearn_output_config"):
        scaler.set_output(transform=step._sklearn_output_config["transform"])
    return scaler.fit_transform(rows)


def _untold(step, facts):
    """The public facts that a step takes as parameters and that its user did not state."""
    params = step.get_params(deep=False)
    return {
        name: value
        for name, value in facts.stated().items()
        if name in params and params[name] is None
    }


# ---- the target ---------------------------------------------------------------------------------


def n_outputs_of(step, X, y, sample_weight=None):
    """How many outputs the last step has for this target, which is checked as its fit would.

    That fit comes after the charge; a target that it refuses must be refused before.

    Raises
    ------
    TypeError, ValueError
        If the step would.
    """
    if y is None:
        return 1
    read_input(check_consistent_length, X, y, name="y")
    while hasattr(step, "steps"):  # a pipeline
        step = step.steps[-1][1]
    if not hasattr(step, "_encode_labels"):
        return 1
    # what is no number is no number for the fit either; all else is left as it stands
    kind = np.float64 if step._target_is_numeric and _is_object(y) else None
    target = read_input(np.asarray, y, dtype=kind, name="y")
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise ValueError("Input y contains NaN or infinity; drop these records beforehand")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    weights = check_sample_weight(sample_weight, X)
    return clone(step)._encode_labels(target, weights)[1]


def _is_object(y):
    return read_input(np.asarray, y, name="y").dtype.kind == "O"
