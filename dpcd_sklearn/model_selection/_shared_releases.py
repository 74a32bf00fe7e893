"""Releases that all candidates of a search need, which are made once, before the runs.

- Candidates that differ in the last step of a PrivatePipeline share the steps before it: the search
  is a pipeline of these, whose last step is the search over the rest.
- Where nothing is stated of scales they are found once, and each candidate is told.
"""

from functools import cached_property

from sklearn.base import clone, is_regressor

from ..linear_model._private_linear_model import PrivateLinearModel
from ..pipeline._budget_of_step import give_back, is_private
from ..pipeline._joint_plan import private_parts
from ..pipeline._private_pipeline import PrivatePipeline
from ..plan._found_scales import FoundScales
from ..privacy.accounting._joint import joined, joint_budgets
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.ledger._accountant import charge
from ..privacy.ledger._prepaid import Prepaid
from ..privacy.ledger._rehearsal import fit_up_to_charge
from ..utils._public import width_of
from ..utils._warnings import held_back, repeat, silence
from ._candidates import candidate, put_on_tape
from ._runs import planned_event

_RELEASED = (
    *("best_estimator_", "best_params_", "best_score_"),
    *("cv_results_", "n_splits_", "run_epsilon_"),
)
# Facts that candidates must not differ in, and what decides how scales are looked for.
_FACTS = {"feature_bounds", "row_norm_bound", "feature_scale", "target_bounds", "fit_intercept"}


def _inner(asked, model, **params):
    """The search over a model that has what was shared; its candidates are run in any case."""
    if asked.law == "all":
        params["distribution"] = "all"
    inner = clone(asked.search).set_params(
        estimator=model, epsilon=1.0, delta="auto", accountant=None, **params
    )
    inner.random_state = asked.search.random_state
    return inner


def _released(asked, inner, event):
    """The attributes of a search that is another one behind what was shared."""
    found = {name: getattr(inner, name) for name in _RELEASED}
    return found | {"privacy_event_": event, "privacy_spent_": PrivacySpent(*asked.budget[:2])}


def _names(asked):
    return {name for grid in asked.grids for name in grid}


# ---- steps of a pipeline -------------------------------------------------------------------------


class SharedSteps:
    """A search over the last step of a pipeline, behind private steps that are fitted once.

    Parameters
    ----------
    asked : SearchRequest
    pipeline : PrivatePipeline
        Its last step is the search over the one that had its name.
    """

    def __init__(self, asked, pipeline):
        self._asked, self._pipeline = asked, pipeline

    @classmethod
    def of(cls, asked):
        """Make one for a search whose candidates share private steps; None for another search."""
        search = asked.search
        model, given = search.estimator, search.param_distributions
        if not isinstance(model, PrivatePipeline):
            return None
        *shared, (name, last) = model.steps
        prefix = f"{name}__"
        if not (is_private(last) and all(one.startswith(prefix) for one in _names(asked))):
            return None
        copies, private = [], {}
        for path, step in shared:
            copies.append((path, clone(step, safe=False)))
            if step not in (None, "passthrough"):
                private |= private_parts(path, step)
                if asked.tape is not None:
                    put_on_tape(copies[-1][1], asked.tape)
        if not private:
            return None
        grids = [given] if isinstance(given, dict) else given
        own = [{key.removeprefix(prefix): grid[key] for key in grid} for grid in grids]
        pipeline = clone(model).set_params(
            steps=[*copies, (name, _inner(asked, last, param_distributions=own))],
            epsilon=search.epsilon,
            delta=search.delta,
            accountant=search.accountant,
        )
        pipeline.entry_name = type(search).__name__
        return cls(asked, pipeline)

    @property
    def event(self):
        """The event of everything together."""
        return planned_event(self._pipeline, self._asked.sizes)

    def run(self, X, y, ids):
        """Fit the pipeline, which charges; the attributes that the search releases."""
        pipeline, stated = self._pipeline.fit(X, y, groups=ids), self._asked.search.estimator
        del pipeline.entry_name  # a later fit is its own
        name, inner = pipeline.steps[-1]

        def named(params):
            return params and {f"{name}__{key}": value for key, value in params.items()}

        found = _released(self._asked, inner, pipeline.privacy_event_)
        found["best_params_"] = named(inner.best_params_)
        params = [named(one) for one in inner.cv_results_["params"]]
        found["cv_results_"] = inner.cv_results_ | {"params": params}
        if inner.best_estimator_ is not None:
            give_back(inner.best_estimator_, candidate(stated.steps[-1][1], inner.best_params_))
            pipeline.steps = [*pipeline.steps[:-1], (name, inner.best_estimator_)]
            found["best_estimator_"] = pipeline
        return found


# ---- scales --------------------------------------------------------------------------------------


class ScalesFirst:
    """A search over a model that looks for scales: they are released once, before its runs.

    Parameters
    ----------
    asked : SearchRequest
    """

    def __init__(self, asked):
        self._asked = asked
        self._finder, model = (candidate(asked.search.estimator, {}) for _ in range(2))
        if asked.tape is not None:
            put_on_tape(self._finder, asked.tape)
        columns, n_outputs, is_sparse = asked.shape
        self._shape, self._layout = (width_of(columns), n_outputs), {"sparse": is_sparse}
        model._known_scales = FoundScales()
        if is_regressor(model) and model.target_bounds is None:
            model.target_bounds = (-1.0, 1.0)  # what is charged follows from no bounds
        self._inner = _inner(asked, model)

    @classmethod
    def of(cls, asked):
        """Make one for a search whose candidates look for scales alike; None for another search."""
        model = asked.search.estimator
        if not isinstance(model, PrivateLinearModel) or _names(asked) & _FACTS:
            return None
        if model.inference or (model.feature_scale, model.row_norm_bound) != (None, None):
            return None
        found = cls(asked)
        request = found._plan(asked.budget).request
        features, target = request.scales, request.target_search
        if target.is_all or (request.finds_target and not target.n_choices):
            return None  # there is too little to find scales
        looks = (request.looks_for_features and features.n_choices) or request.finds_target
        try:
            return found if looks and found._division else None
        except ValueError:  # with its part of the budget it finds none
            return None

    def _plan(self, budget, **facts):
        self._finder.set_params(epsilon=budget.epsilon, delta=budget.delta)
        width, n_outputs = self._shape
        n_outputs = self._finder._stated_outputs(n_outputs)
        return self._finder._plan(budget.n, width, n_outputs, **self._layout | facts)

    def _price_of_scales(self, budget):
        return self._asked.budget.of_persons(_event_of_scales(self._plan(budget)))

    def _event_of_runs(self, budget):
        self._inner.set_params(epsilon=budget.epsilon, delta=budget.delta)
        return self._inner.planned_event(budget.n, *self._shape, **self._layout)

    @cached_property
    def _division(self):
        """Budgets of scales and of runs, and the event of both."""
        # of the half for scales a fit would spend most on updates: they have a seventh in the end
        planned = [self._price_of_scales, self._event_of_runs]
        return joint_budgets(planned, [1, 1], self._asked.budget)

    @property
    def event(self):
        """The event of everything together."""
        return self._division[1]

    def run(self, X, y, ids):
        """Charge, find scales and run the search; the attributes that it releases."""
        (of_scales, of_runs), event = self._division
        asked, inner = self._asked, self._inner
        inner.set_params(epsilon=of_runs.epsilon, delta=of_runs.delta)
        with held_back() as warned:
            tried = clone(inner)
            fit_up_to_charge(tried, tried, X, y, groups=ids)
        account = Prepaid(asked.search.accountant, event, **asked.entry)
        finder = self._finder
        records = finder._checked(X, y, None, ids)
        facts = {"columns": getattr(finder, "feature_names_in_", None)}
        plan = self._plan(of_scales, in_arrays=records.in_arrays, **facts)
        key, _ = finder._randomness()
        with repeat(warned):
            receipt = charge(account, _event_of_scales(plan), budget=of_scales)
        found = finder._found(plan, receipt, records, key)
        model = inner.set_params(accountant=account).estimator
        model._known_scales = found
        if found.target_bounds is not None:
            model.target_bounds = tuple(map(float, found.target_bounds))
        with silence():  # all was said before the charge
            inner.fit(X, y, ids)
        account.refuse_leftovers()
        if (best := inner.best_estimator_) is not None:
            del best._known_scales
            give_back(best, asked.search.estimator)
        return _released(asked, inner, event)


def _event_of_scales(plan):
    """The event of records that finds scales, of a plan that makes updates too."""
    parts = [plan.part_of(name) for name in ("scales", "far", "target", "smoothness")]
    return joined([part for part in parts if part is not None])
