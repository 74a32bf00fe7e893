"""Searches that are one fit of all records, with the whole budget.

- Candidates differ in the penalty of the last step, or in steps before it that select or multiply
  columns, each of which is a product of columns that go in: what Newton steps release is enough to
  choose among them (``plan/_strengths.py``), at no further charge.
- Nothing could be compared, by public facts (a run would have too little, or scores have no
  bounds): the candidate that is nearest to the estimator as it was given is fitted.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._strengths import can_choose, keep_columns
from ..pipeline._budget_of_step import last_step
from ..pipeline._joint_plan import walked
from ..pipeline._public_facts import first_rows
from ..plan._shrinkage import ENTRIES
from ..utils._public import width_of
from ..utils._warnings import warn
from . import _candidates, _runs
from ._candidates import key_of
from ._search_plan import follows_defaults

# ---- Candidates whose columns are of one union: a fit of the union is enough to choose -----------


_PASSES_ON = (None, "passthrough")
_MOST = 2_000  # columns of all products that are made on the way to those of the union


@dataclass(frozen=True)
class Union:
    """All columns that several candidates have.

    Attributes
    ----------
    pipeline : Pipeline or None
        It chooses among them; None where they are more than are made.
    start : int
        Number of the first step in which they differ.
    designs : list of list of tuple
        For each candidate its columns: the numbers of those of which one is the product.
    """

    pipeline: object
    start: int
    designs: list


def union_of(models, differ, columns):
    """The union of the columns of candidates that differ in these parameters, or None."""
    model = models[0]
    if not isinstance(model, Pipeline) or issparse(columns):
        return None
    names, last = [name for name, _ in model.steps], model.steps[-1][1]
    heads = {name.partition("__")[0] for name in differ}
    if not heads <= set(names[:-1]) or not isinstance(last, PrivateLinearModel):
        return None
    bounds = np.ndim(last.feature_bounds) if last.feature_bounds is not None else 1
    if not can_choose(last, columns=True) or last.row_norm_bound is not None or bounds != 1:
        return None
    start = min(map(names.index, heads))
    try:
        rows = _rows_before(model, start, columns)
        designs = [_products(one.steps[start:-1], rows) for one in models]
    except (TypeError, ValueError, KeyError, IndexError):  # a step says what is wrong of it
        return None
    if None in designs or any(len(set(one)) < len(one) for one in designs):
        return None
    steps, found = _made_of(list(dict.fromkeys(chain(*designs))), width_of(rows))
    if steps is None:
        return Union(None, start, designs)
    union = clone(model)
    union.steps = [*union.steps[:start], *steps, union.steps[-1]]
    union.steps[-1][1]._designs = tuple(tuple(map(found.index, one)) for one in designs)
    return Union(union, start, designs)


def _rows_before(model, start, columns):
    """Made-up rows with the columns that go into a step: their numbers, by which they are known."""
    if start:
        made_up = np.zeros((2, columns)) if isinstance(columns, Integral) else columns
        steps = [*model.steps[:start], model.steps[-1]]
        steps = [(name, step) for name, step in steps if step not in _PASSES_ON]
        given = walked(steps, made_up, dict.fromkeys((n for n, _ in steps), 1.0))[-1].columns
        return np.arange(width_of(given))[np.newaxis]
    if hasattr(columns, "columns"):
        return _frame_like(columns, range(width_of(columns)))
    return np.arange(width_of(columns))[np.newaxis]


def _products(steps, rows):
    """For each column that steps put out the columns of which it is the product; None if it isn't.

    `rows` is one row of the numbers of columns.
    """
    found = [(j,) for j in range(width_of(rows))]
    for _, step in steps:
        if step in _PASSES_ON:
            continue
        if type(step) is ColumnTransformer:
            if not _selects(step):
                return None
            routed = clone(step).fit_transform(rows)
            found = [found[int(j)] for j in np.ravel(np.asarray(routed))]
        elif type(step) is PolynomialFeatures:
            powers = clone(step).fit(np.zeros((1, len(found)))).powers_
            found = [_product(found, one) for one in powers]
        else:
            return None
        rows = np.arange(len(found))[np.newaxis]
    return found


def _selects(step):
    """Whether a ColumnTransformer passes columns on by name or number, and does nothing else."""
    parts = [part for _, part, _ in step.transformers] + [step.remainder]
    known = all(isinstance(part, str) and part in ("passthrough", "drop") for part in parts)
    return known and not any(callable(columns) for *_, columns in step.transformers)


def _product(factors, powers):
    return tuple(sorted(chain(*(one * int(k) for one, k in zip(factors, powers, strict=True)))))


def _made_of(products, n_columns):
    """Steps of scikit-learn that make these products of columns, and their order then."""
    base = sorted(set(chain(*products)))
    if not base:  # nothing but a constant
        return None, None
    steps, made = [], [(j,) for j in base]
    if len(base) < n_columns:
        steps.append(("columns", _selection(base)))
    degree = max(map(len, products))
    if degree > 1 or () in products:
        only = all(len(set(one)) == len(one) for one in products)
        products_of = PolynomialFeatures(degree, interaction_only=only, include_bias=() in products)
        products_of.fit(np.zeros((1, len(base))))
        if products_of.n_output_features_ > _MOST:
            return None, None
        steps.append(("products", products_of))
        made = [_product(made, one) for one in products_of.powers_]
    if len(made) > len(products):
        kept = [j for j, one in enumerate(made) if one in set(products)]
        steps.append(("union", _selection(kept)))
        made = [made[j] for j in kept]
    return steps, made


def _selection(columns):
    return ColumnTransformer([("kept", "passthrough", columns)], sparse_threshold=0)


def take_columns(union, start, candidate, X):
    """Make a fitted pipeline of a union the candidate whose columns were chosen, in place.

    `start` is the first step in which candidates differ; two rows of X tell what columns reach it.
    """
    shared, last = union.steps[:start], union.steps[-1]
    rows = first_rows(X, whole=False)
    for _, step in shared:
        rows = rows if step in _PASSES_ON else step.transform(rows)
    zeros = np.zeros(width_of(rows))
    rows = _frame_like(rows, zeros) if hasattr(rows, "columns") else zeros[np.newaxis]
    own = clone(candidate).steps[start:-1]
    for _, step in own:
        rows = rows if step in _PASSES_ON else step.fit_transform(rows)
    names = np.asarray(rows.columns, dtype=object) if hasattr(rows, "columns") else None
    keep_columns(last[1], names)
    union.steps = [*shared, *own, last]


def _frame_like(rows, cells):
    """A data frame of one row with the same columns."""
    return type(rows)({name: [float(cell)] for name, cell in zip(rows.columns, cells, strict=True)})


# ---- The fit that is a search --------------------------------------------------------------------


# A run's n mu / sqrt(p + 1) below which its noise hides how good a candidate is, and the same as a
# multiple of p: below it the best of three solvers by noisy scores was worse than one of them drawn
# blindly, by up to .36 in R² (``benchmarks/search.py``, way "runs").
_LEAST_SIGNAL, _LEAST_OF_COLUMNS = 450.0, 3.5


@dataclass(frozen=True, eq=False)
class OneFit:
    """A fit that is a whole search.

    Attributes
    ----------
    asked : SearchRequest
    model : estimator
        What is fitted; it gets the whole budget, and charges the accountant of the search.
    candidates : list of dict
        Parameters of those among which it chooses; of the penalty a list each, or a value.
    models : list of estimators
        The same, where they differ in columns.
    start : int
        The first step in which they differ.
    why : str or None
        Why others were left out, if some were, and what has their place.
    """

    asked: object
    model: object
    candidates: list
    models: list = ()
    start: int = 0
    why: str | None = None

    def __post_init__(self):
        part, budget, tape = _runs.budgeted_part(self.model), self.asked.budget, self.asked.tape
        part.set_params(epsilon=budget.epsilon, delta=budget.delta)
        part.set_params(accountant=self.asked.search.accountant)
        if tape is not None:
            _candidates.put_on_tape(self.model, tape)

    @cached_property
    def event(self):
        """The FitEvent that is charged."""
        return _runs.planned_event(self.model, self.asked.sizes)

    @property
    def is_planned(self):
        """Whether the budget bears it."""
        try:
            return self.event is not None
        except (TypeError, ValueError):
            return False

    def run(self, X, y, ids):
        """Fit, which charges; the attributes that the search releases."""
        _runs.planned_event(self.model, self.asked.sizes)  # refuses leaks
        _warn_of_no_comparison(self)
        self.model.fit(X, y)
        model, params, results = _results_of(self, X)
        score = 0.0
        if self.why is not None and len(results["params"]) == 1:
            score = results["mean_test_score"][0] = math.nan
        part = _runs.budgeted_part(model)
        return {
            "best_estimator_": model,
            "best_params_": params,
            "best_score_": score,
            "cv_results_": results,
            "n_splits_": 0,
            "run_epsilon_": part.privacy_spent_.epsilon,
            "privacy_event_": part.privacy_event_,
            "privacy_spent_": part.privacy_spent_,
        }


def one_fit_of(asked):
    """The one fit that is the whole search; None if candidates are run.

    A score, a law or a number of runs that somebody asks for is carried out by runs.
    """
    by_id = asked.budget.max_contributions is None  # whose fits choose nothing
    if not follows_defaults(asked.search) or asked.law != "all" or by_id:
        return None
    candidates = _candidates.prototypes(asked.grids, asked.coins)
    models = [_candidates.candidate(asked.search.estimator, params) for params in candidates]
    if len(candidates) == 1:
        chooses = any(map(_candidates.is_of_penalty, candidates[0]))
        return OneFit(asked, models[0], candidates) if chooses else None
    if asked.search.distribution == "all":
        return None
    if (fit := _of_columns(asked, candidates, models)) is not None:
        return fit
    is_counted = "accountant" in asked.part.get_params(deep=False)
    if not is_counted or (why := _why_not_compared(asked)) is None:
        return None
    return _nearest(asked, candidates, models, why)


def _of_columns(asked, candidates, models):
    """The fit that chooses among candidates whose columns are of one union; None if none does.

    Where all columns are too many those of the longest products are left out, and the candidates
    that have some: products tell less than the columns of which they are made, mostly.
    """
    why, budget = None, asked.budget
    while True:
        if len(candidates) == 1:
            return OneFit(asked, models[0], candidates, why=why)
        names = set().union(*candidates)
        differ = {name for name in names if len({key_of(one.get(name)) for one in candidates}) > 1}
        if (union := union_of(models, differ, asked.shape[0])) is None:
            return None
        have_same_columns = len(set(map(frozenset, union.designs))) == 1
        if have_same_columns and why is not None:
            return OneFit(asked, models[0], candidates[:1], why=why)
        if union.pipeline is not None:
            fit = OneFit(asked, union.pipeline, candidates, models, union.start, why)
            if fit.is_planned:
                return fit
        # how many columns the longest product of each candidate has
        degrees = [max(map(len, one), default=0) for one in union.designs]
        longest = max(degrees)
        kept = [i for i, degree in enumerate(degrees) if degree < longest]
        if longest < 2 or not kept:
            return None
        why = (
            f"epsilon={budget.epsilon:g} and n={budget.n:,} are too few for products of {longest} "
            "columns. What has none of these"
        )
        candidates, models = ([listed[i] for i in kept] for listed in (candidates, models))


def _why_not_compared(asked):
    """Why candidates can't be compared, from public facts; None if they can."""
    bounds = getattr(last_step(asked.part), "target_bounds", ())
    if is_regressor(asked.part) and bounds is None and asked.scales_first is None:
        return "scores of a regressor need public target_bounds"
    columns, _, is_sparse = asked.shape
    width = width_of(columns)
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


def _nearest(asked, candidates, models, why):
    """The fit of the candidate that is nearest to the estimator as it was given, the first of some.

    It is one that would release the same, as a solver that "auto" stands for; then one that changes
    least.

    Raises
    ------
    TypeError, ValueError
        If a candidate could not be fitted.
    """
    why = f"{why}. The one that is nearest to the estimator as it was given (the first of several)"
    fits = [
        OneFit(asked, model, [params], why=why)
        for model, params in zip(models, candidates, strict=True)
    ]
    events = [fit.event for fit in fits]
    given = OneFit(asked, _candidates.candidate(asked.search.estimator, {}), [])
    own = given.event if given.is_planned else None  # it could be that only candidates are complete
    stated = asked.search.estimator.get_params()

    def distance(i):
        pairs = ((stated.get(name), value) for name, value in candidates[i].items())
        return events[i] != own, sum(repr(old) != repr(new) for old, new in pairs)

    return fits[min(range(len(fits)), key=distance)]


def _warn_of_no_comparison(fit):
    """Say before the charge which candidates are not compared, if there are such."""
    if fit.why is None:
        return
    named = fit.candidates[0] if len(fit.candidates) == 1 else f"{len(fit.candidates)} candidates"
    warn(
        f"{fit.why} has the whole budget: {named}. To run all candidates nevertheless pass "
        "scoring=, and state target_bounds of a regressor",
        UserWarning,
    )


def _results_of(fit, X):
    """The fitted model of a candidate, its parameters, and `cv_results_`.

    Estimated losses are compared with that of the best one, whose score is 0.
    """
    last = last_step(fit.model)
    path = getattr(last, "strength_path_", {"excess_loss": [0.0], "excess_loss_std": [0.0]})
    designs = path.get("design", [0] * len(path["excess_loss"]))
    params = [_candidates.as_chosen(last, fit.candidates[k], i) for i, k in enumerate(designs)]
    scores = 0.0 - np.array(path["excess_loss"])
    best = int(np.argmax(scores))
    results = _runs.ranked(params, scores, std_test_score=np.array(path["excess_loss_std"]))
    if fit.models:
        take_columns(fit.model, fit.start, fit.models[designs[best]], X)
    return _candidates.with_penalty(fit.model, params[best]), params[best], results
