"""The joint release of a pipeline's private steps, from public facts alone.

Copies of a few rows go through copies of the steps that learn nothing, and through a stand-in for
each private one. Only their width, their layout and what is public about them by then is used.
"""

import math
import re
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from ..leaks import tree_of
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joint_budgets
from ..privacy.accounting._promise import Budget
from ..privacy.ledger._rehearsal import event_of, looks_at_rows
from ..utils._cells import read_labels
from ..utils._compat import check_sample_weight
from ..utils._input import check_finite_target, read_input, reworded
from ..utils._public import check_real
from ._budget_of_step import as_params, is_private, last_step, stated_budget
from ._public_facts import PublicFacts, StandIn, facts_after, width_of

# Share of μ² that is left to the model at least, and that of steps which do not say what they need.
_LEAST_OF_MODEL, _SHARE_OF_OTHERS = 0.5, 0.15
_FAINT = 1e-9  # an n μ, at which all steps need the most that they may have


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A private step: public facts that steps before it give, and its share of μ².

    Attributes
    ----------
    name : str
        Where it is in the pipeline, as `set_params` takes it.
    step : estimator
    facts : dict
        Public facts that it does not state, as its parameters.
    columns : int, or rows of them for a step that picks columns by name
    n_outputs : int
    sparse : bool
        Whether it is given sparse records.
    share : float or None
        None is what the step needs, by public numbers.
    """

    name: str
    step: object
    facts: dict
    columns: object
    n_outputs: int
    sparse: bool
    share: float | None

    def planned(self, n_samples, relation):
        """From a Budget to what this step would release."""
        step = clone(self.step)
        step.set_params(**as_params(step, self.facts | relation))
        if getattr(step, "shares_one_budget", False):  # its own steps are walked once
            plan = step._planner(n_samples, self.columns, self.n_outputs)
            return lambda budget: plan(budget).event

        def event(budget):
            step.set_params(epsilon=budget.epsilon, delta=budget.delta)
            return event_of(step, n_samples, self.columns, self.n_outputs, self.sparse)

        return event


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """All private steps, with the budget of each and the event of all.

    Attributes
    ----------
    steps : list of StepPlan
    budget : Budget of all steps together
    budgets : list of Budgets, one for each step
    event : FitEvent
    """

    steps: list
    budget: Budget
    budgets: list
    event: FitEvent

    @property
    def shares(self):
        """Share of μ² of each step; they sum to one."""
        total = sum(step.share for step in self.steps)
        return {step.name: step.share / total for step in self.steps}


def joint_planner(steps, n_samples, relation):
    """From a Budget to its division over `steps`, as `walked` returns them."""
    events = [step.planned(n_samples, relation) for step in steps]

    def planned(budget):
        if not steps:  # the only private ones are given no columns
            nothing = FitEvent((), budget.neighboring, budget.max_contributions)
            return PipelinePlan([], budget._replace(epsilon=0.0, delta=0.0), [], nothing)
        shared = _with_shares(steps, budget)
        division = joint_budgets(events, [step.share for step in shared], budget)
        return PipelinePlan(shared, budget, *division)

    return planned


def _with_shares(steps, budget):
    """The steps with the shares that they need where none are stated."""
    if steps[-1].share is not None:
        return steps
    if hasattr(steps[-1].step, "transform"):
        # no model: ratios that do not follow the budget, which a plan of all steps varies
        shares = [needed_share(step, _FAINT) for step in steps]
    else:
        signal = budget.n * budget.mu if budget.private else math.inf
        shares = [needed_share(step, max(signal, _FAINT)) for step in steps[:-1]]
        scale = min(1.0, (1 - _LEAST_OF_MODEL) / max(sum(shares), _FAINT))
        shares = [scale * share for share in shares]
        shares.append(1.0 - sum(shares))
    return [replace(step, share=share) for step, share in zip(steps, shares, strict=True)]


def needed_share(planned, signal):
    """Share of μ² that a step needs which is no model, from the n μ of all steps."""
    step, columns = planned.step, planned.columns
    if not hasattr(step, "_needed_share"):
        return _SHARE_OF_OTHERS
    return step._needed_share(signal, columns if looks_at_rows(step) else width_of(columns))


# ---- which steps may be in it -------------------------------------------------------------------


_CONTAINERS = ("ColumnTransformer", "DPColumnTransformer", "FeatureUnion", "Pipeline")  # fit once


def private_parts(name, step):
    """The private steps in a step, by the names that `set_params` takes: itself, or within it."""
    if is_private(step):
        return {name: step}
    params = step.get_params(deep=True) if hasattr(step, "get_params") else {}
    found = {f"{name}__{key}": value for key, value in params.items() if is_private(value)}
    within = tuple(f"{path}__" for path in found)  # those divide what they get by themselves
    return {path: part for path, part in found.items() if not path.startswith(within)}


def check_steps(steps, public_steps):
    """The private steps by name, in the order of their fits.

    Raises
    ------
    ValueError
        If one has a budget of its own, or would be fitted in another way.
    """
    names = [name for name, _ in steps]
    if unknown := [name for name in public_steps if name not in names]:
        raise ValueError(f"public_steps names {unknown}, but the steps are {names}")
    private = {}
    for name, step in steps:
        parts = private_parts(name, step)
        private |= parts
        if name in parts and name in public_steps:
            raise ValueError(
                f"step {name!r} is private, so it is charged; leave it out of public_steps"
            )
        for path, part in parts.items():
            if stated := stated_budget(part):
                raise ValueError(
                    f"step {path!r} states {', '.join(stated)}, but the steps of a PrivatePipeline "
                    "share its budget. Leave them at their defaults, state them to the pipeline, "
                    "and divide epsilon by shares="
                )
        if name not in parts:
            _check_private_within(name, step)
        if len(steps) > 1 and hasattr(step, "to_local"):  # of dpcd_sklearn.dask
            raise ValueError(
                f"step {name!r} reads the partitions of a cluster, and other steps make arrays of "
                "one machine: state its bounds, and transform records in Dask (X.map_blocks)"
            )
    if not private:
        raise ValueError(
            "no step is private, so there is nothing to spend a budget on; use scikit-learn's "
            "Pipeline, or add a step of dpcd_sklearn"
        )
    return private


def _check_private_within(name, step):
    for part in tree_of(step).inside():
        if part.kind != "private":
            continue
        if not all(outer.short in _CONTAINERS for outer in part.above()):
            raise ValueError(
                f"step {name!r} may fit its private {part.short} several times or otherwise "
                f"than planned; private steps may be in {', '.join(_CONTAINERS)} only"
            )
        if any(outer.get("n_jobs") not in (None, 1) for outer in part.above()):
            raise ValueError(
                f"step {name!r} may fit its private {part.short} in another process, but one "
                "charge is shared in one process; leave n_jobs=None"
            )
        if not hasattr(part.value, "transform"):
            raise ValueError(
                f"step {name!r} holds the private model {part.short}; make the model the last "
                "step of the PrivatePipeline itself"
            )


def shares_of(private, shares):
    """The share of μ² of each private step, by name, summing to one; None where none is stated.

    Raises
    ------
    TypeError, ValueError
        If `shares` is no dict with one positive number for every private step.
    """
    names = list(private)
    if isinstance(shares, str):
        return dict.fromkeys(names)
    if set(shares) != set(names):
        raise ValueError(
            f"shares must have a number for each private step, {names}, got {sorted(shares)}"
        )
    weights = {name: check_real(shares[name], f"shares[{name!r}]", low=0.0) for name in names}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


# ---- the walk -----------------------------------------------------------------------------------


def walked(steps, rows, shares, n_outputs=1):
    """A StepPlan of every private step, with what is public when its turn comes.

    `steps` are as `check_steps` passed them, and `rows` a few records, or made-up ones: copies of
    them go through copies of the steps. `n_outputs` is that of the last step.
    """
    rows = deepcopy(rows)
    found, facts, before = [], PublicFacts(width_of(rows)), {}
    for name, step in steps:
        last = step is steps[-1][1]
        if is_private(step):
            missing, n = _missing_facts(step, facts), n_outputs if last else 1
            columns = rows if looks_at_rows(step) else width_of(rows)
            found.append(StepPlan(name, step, missing, columns, n, issparse(rows), shares[name]))
            if last:
                break
        tried, stand_ins = with_stand_ins(name, step)
        before |= stand_ins
        with _naming_fills(before):
            both = getattr(tried, "fit_transform", None)
            rows = both(rows) if both else tried.fit(rows, None).transform(rows)
        if width_of(rows) == 0 and not last:
            raise ValueError(
                f"step {name!r} leaves no column to the steps behind it; give it columns, or pass "
                'the others on (remainder="passthrough")'
            )
        facts = facts_after(tried, facts, width_of(rows))
        for path, given in stand_ins.items():
            if path != name and given.columns is not None:  # within this step, and of some columns
                found.append(
                    StepPlan(path, given.of, {}, given.columns, 1, given.sparse, shares[path])
                )
    return found


def refuse_what_steps_refuse(steps, X, y, params, first_private):
    """Refuse whatever a step would refuse of all records, before the first of them is charged.

    scikit-learn's own pipeline fits copies of the public steps, and stand-ins for the private ones.
    The first private step is not tried: what it refuses, it refuses before it charges for all.
    """
    unknown = {key.partition("__")[0] for key in params if "__" in key} - {n for n, _ in steps}
    if unknown:
        raise ValueError(f"parameters are given to {sorted(unknown)}, which is no step")
    copies, stand_ins = [], {}
    for name, step in steps:
        if step not in (None, "passthrough"):
            step, of_step = with_stand_ins(name, step, lambda part: part is not first_private)
            stand_ins |= of_step
        copies.append((name, step))
    first = next((step for _, step in steps if step not in (None, "passthrough")), None)
    if not is_private(first):  # it may map records in place
        X = deepcopy(X)
    with _naming_fills(stand_ins):
        Pipeline(copies).fit(X, y, **params)


def _naming_fills(stand_ins):
    """Let an error that may be about constants of an imputer say what to state instead."""
    fills = {name: part.fills for name, part in stand_ins.items() if part.fills is not None}

    def with_hints(text):
        if re.search("unknown categories|could not be converted|contains (NaN|infinity)", text):
            for name, constants in fills.items():
                text = (
                    f"{text.rstrip('.')}. Step {name!r} fills with {[*dict.fromkeys(constants)]} "
                    "where no value is frequent: state a fill_value that the steps behind it take"
                )
        return text

    return reworded(with_hints)


def with_stand_ins(name, step, refuses=lambda part: False):
    """A copy of a step with stand-ins in the place of private parts, and these by name."""
    parts = private_parts(name, step).items()
    stand_ins = {path: StandIn(path, part, refuses(part)) for path, part in parts}
    if name in stand_ins:
        return stand_ins[name], stand_ins
    tried = clone(step)
    if stand_ins:
        start = len(name) + 2
        tried.set_params(**{path[start:]: stand_in for path, stand_in in stand_ins.items()})
    return tried, stand_ins


def names_at_the_end(pipeline):
    """Names of the columns that reach the last step of a fitted pipeline; None if unknown."""
    if len(pipeline.steps) < 2:
        return None
    try:
        return [str(name) for name in pipeline[:-1].get_feature_names_out()]
    except (AttributeError, ValueError):  # of a step that has no names
        return None


def _missing_facts(step, facts):
    """The public facts that a step takes as parameters and that its user did not state."""
    params = getattr(step, "estimator", step).get_params(deep=False)
    return {
        name: value
        for name, value in facts.stated().items()
        if name in params and params[name] is None
    }


# ---- the target ---------------------------------------------------------------------------------


def n_outputs_of(step, X, y, sample_weight=None):
    """How many outputs the last step has for this target, refused where its fit would refuse it.

    That fit comes after the charge; a target that it refuses must be refused before.
    """
    if y is None:
        return 1
    read_input(check_consistent_length, X, y, name="y")
    step = last_step(step)
    if not hasattr(step, "_encode_labels"):
        return 1
    target = target_of(step, y)
    weights = check_sample_weight(sample_weight, X)
    return clone(step)._encode_labels(target, weights)[1]


def target_of(estimator, y):
    """The target as an array, read and refused as the fit of the last step would."""
    step = last_step(estimator)
    target = getattr(step, "_labels", read_labels)(y)
    if is_regressor(step) and target.dtype.kind == "O":
        target = read_input(np.asarray, y, name="y")  # without a mask; dates stay dates
        if target.dtype.kind == "O":  # what is no number is no number for the fit either
            target = read_input(np.asarray, target, dtype=np.float64, name="y")
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    check_finite_target(target)
    return target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
