"""The joint release of a pipeline's private steps, from public facts alone.

Copies of a few rows go through copies of the steps that learn nothing, and through a stand-in for
each private one. Only their width, their layout and what is public about them by then is used.
"""

import math
import re
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache

from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from ..leaks import tree_of
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joint_budgets
from ..privacy.accounting._promise import Budget
from ..privacy.ledger._rehearsal import event_of
from ..utils._cells import read_labels
from ..utils._compat import check_sample_weight
from ..utils._input import check_finite_target, one_column, read_input, read_numbers, reworded
from ..utils._public import check_real, width_of
from ._budget_of_step import as_params, is_private, last_step, stated_budget
from ._public_facts import PublicFacts, StandIn, facts_after, refuse_sparse

# Share of μ² that is left to the model at least, and that of steps which do not say what they need.
_LEAST_OF_MODEL, _SHARE_OF_OTHERS = 0.5, 0.15
_LEAST_OF_PARTS = 0.05  # of a step that holds several
_FAINT = 1e-9  # an n μ, at which all steps need the most that they may have


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A private step: public facts that steps before it give, and its share of μ².

    Attributes
    ----------
    name : str
        Where it is in the pipeline, as `set_params` takes it.
    step : estimator
    share : float or None
        None is what the step needs, by public numbers.
    facts : dict
        Public facts that it does not state, as its parameters.
    columns : int, or rows of them for the last step
    n_outputs : int
    sparse : bool
        Whether it is given sparse records, where columns are a number.
    parts : list of StepPlan or None
        Private steps of a DPColumnTransformer, which share what it gets, by their names in it.
    """

    name: str
    step: object
    share: float | None
    facts: dict = field(default_factory=dict)
    columns: object = None
    n_outputs: int = 1
    sparse: bool = False
    parts: list | None = None

    def planned(self, n_samples, relation):
        """From a Budget to the plan of this step."""
        if self.parts is not None:
            return joint_planner(self.parts, n_samples, relation)
        step = clone(self.step)
        step.set_params(**as_params(step, self.facts | relation))

        def plan(budget):
            step.set_params(epsilon=budget.epsilon, delta=budget.delta)
            event = event_of(step, n_samples, self.columns, self.n_outputs, self.sparse)
            return PipelinePlan([], budget, [], event)

        return plan


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """All private steps, with the budget of each and the event of all.

    Attributes
    ----------
    steps : list of StepPlan; empty in the plan of a step that holds no others
    budget : Budget of all steps together
    plans : list of PipelinePlan, one for each step
    event : FitEvent
    """

    steps: list
    budget: Budget
    plans: list
    event: FitEvent

    @property
    def shares(self):
        """Share of μ² of each step; they sum to one."""
        total = sum(step.share for step in self.steps)
        return {step.name: step.share / total for step in self.steps}

    def hand_out(self, account, relation):
        """Give each step its budget, its part of what a Prepaid charges, and public facts."""
        account.plan = self
        for part, plan in zip(self.steps, self.plans, strict=True):
            if part.parts is None:
                own = {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta}
                own["accountant"] = account
            else:
                own = {"accountant": account.part(plan.event)}
                plan.hand_out(own["accountant"], relation)
            part.step.set_params(**own, **as_params(part.step, part.facts | relation))


def joint_planner(steps, n_samples, relation):
    """From a Budget to its division over `steps`, as `walked` returns them."""
    planners = [cache(step.planned(n_samples, relation)) for step in steps]
    events = [lambda budget, plan=plan: plan(budget).event for plan in planners]

    def planned(budget):
        if not steps:  # the only private ones are given no columns
            nothing = FitEvent((), budget.neighboring, budget.max_contributions)
            return PipelinePlan([], budget._replace(epsilon=0.0, delta=0.0), [], nothing)
        shared = _with_shares(steps, budget)
        budgets, event = joint_budgets(events, [step.share for step in shared], budget)
        plans = [plan(own) for plan, own in zip(planners, budgets, strict=True)]
        return PipelinePlan(shared, budget, plans, event)

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
    if planned.parts is not None:
        return max(_LEAST_OF_PARTS, sum(needed_share(part, signal) for part in planned.parts))
    if not hasattr(step, "_needed_share"):
        return _SHARE_OF_OTHERS
    return step._needed_share(signal, width_of(columns))


# ---- which steps may be in it -------------------------------------------------------------------


_CONTAINERS = ("ColumnTransformer", "DPColumnTransformer", "FeatureUnion", "Pipeline")  # fit once


def private_parts(name, step):
    """The private steps in a step, by the names that `set_params` takes: itself, or within it."""
    return {name: step} if is_private(step) else parts_within(name, step)


def parts_within(name, step):
    """The private steps that a step holds, by the names that `set_params` takes."""
    params = step.get_params(deep=True) if hasattr(step, "get_params") else {}
    found = {f"{name}__{key}": value for key, value in params.items() if is_private(value)}
    within = tuple(f"{path}__" for path in found)  # those divide what they get by themselves
    return {path: part for path, part in found.items() if not path.startswith(within)}


def holds_steps(step):
    """Whether a private step divides what it gets over steps that are planned with all others."""
    return isinstance(step, ColumnTransformer) and is_private(step)


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
        planned = list(parts.items())
        for path, part in planned:
            if holds_steps(part):
                planned += parts_within(path, part).items()
            if stated := stated_budget(part):
                raise ValueError(
                    f"step {path!r} states {', '.join(stated)}, but the steps of a PrivatePipeline "
                    "share its budget. Leave them at their defaults, state them to the pipeline, "
                    "and divide epsilon by shares="
                )
        if name not in parts or holds_steps(step):
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
        parts, last = private_parts(name, step), step is steps[-1][1]
        told = {name: _missing_facts(step, facts)} if name in parts else {}
        if last and name in parts and not holds_steps(step):
            return [*found, StepPlan(name, step, shares[name], told[name], rows, n_outputs)]
        if holds_steps(step):
            refuse_sparse(name, step, rows)
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
        found += _planned_parts(parts, shares, stand_ins, told)
    return found


def _planned_parts(parts, shares, stand_ins, told, start=0):
    """A StepPlan of each part that was given columns; names begin at `start` of their paths."""
    found = []
    for path, part in parts.items():
        name, share = path[start:], shares[path[start:]]
        if holds_steps(part):
            inner, start_within = parts_within(path, part), len(path) + 2
            own = shares_of([one[start_within:] for one in inner], part.shares)
            within = _planned_parts(inner, own, stand_ins, {}, start_within)
            found.append(StepPlan(name, part, share, parts=within))
        elif (columns := stand_ins[path].n_features_in_) is not None:
            facts, sparse = told.get(path, {}), stand_ins[path].sparse
            found.append(StepPlan(name, part, share, facts, columns, sparse=sparse))
    return found


def refuse_what_steps_refuse(steps, X, y, params):
    """Refuse whatever a step would refuse of all records, before the first of them is charged.

    scikit-learn's own pipeline fits copies of the public steps, and stand-ins for the private ones.
    """
    copies, stand_ins, fitted = [], {}, []
    for name, step in steps:
        if step not in (None, "passthrough"):
            step, of_step = with_stand_ins(name, step, fitted)
            stand_ins |= of_step
        copies.append((name, step))
    if len(stand_ins) == 1 and isinstance(step, StandIn):  # nothing comes after its charge
        return
    unknown = {key.partition("__")[0] for key in params if "__" in key} - {n for n, _ in steps}
    if unknown:
        raise ValueError(f"parameters are given to {sorted(unknown)}, which is no step")
    first = next((step for _, step in copies if step not in (None, "passthrough")), None)
    if not isinstance(first, StandIn):  # it may map records in place
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
        if "has no callable" in text:
            text += ". Lists of rows are arrays of objects: pass an array of numbers"
        return text

    return reworded(with_hints)


def with_stand_ins(name, step, fitted=None):
    """A copy of a step with stand-ins in the place of private parts, and these by name."""
    if is_private(step) and not holds_steps(step):
        stand_in = StandIn(name, step, fitted)
        return stand_in, {name: stand_in}
    tried, params, stand_ins = clone(step), {}, {}
    for path, part in parts_within(name, step).items():
        params[path[len(name) + 2 :]], found = with_stand_ins(path, part, fitted)
        stand_ins |= found
    return tried.set_params(**params) if params else tried, stand_ins


def names_at_the_end(pipeline):
    """Names of the columns that reach the last step of a fitted pipeline; None if unknown."""
    try:
        return [str(name) for name in pipeline[:-1].get_feature_names_out()]
    except (AttributeError, TypeError, ValueError):  # of no step, or of one that has no names
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
    if is_regressor(step):
        return one_column(read_numbers(y))
    target = getattr(step, "_labels", read_labels)(y)
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    check_finite_target(target)
    return one_column(target)
