"""Searches that are one fit or share columns, steps and scales; slots that coins divide."""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from tables import table
from test_strengths import ABSURD, STATED, N, P, _data  # noqa: F401

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    linear_model,
)
from dpcd_sklearn.model_selection import PrivateSearchCV, _runs, _splits
from dpcd_sklearn.model_selection._search_plan import asked_of, planned
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.privacy.accounting import SelectionEvent

# ---- searches over what is not free, with too little for a comparison ----------------------------


def test_a_budget_too_small_for_a_comparison_is_that_of_one_fit(data):
    X, y, *_ = data
    accountant = PrivacyAccountant(0.3, 1e-6)
    given = DPLinearRegressor(solver="gcd", epsilon=0.3, delta=1e-6, **STATED)
    grid = {"solver": ["newton", "gcd", "cd"]}
    search = PrivateSearchCV(given, grid, epsilon=0.3, delta=1e-6, accountant=accountant)
    with (
        pytest.warns(UserWarning, match=r"too few to compare 3 candidates.*'gcd'.*scoring="),
        pytest.raises(BudgetExceededError),
    ):
        clone(search).set_params(accountant=PrivacyAccountant(0.1, 1e-6)).fit(X, y)
    with pytest.warns(UserWarning, match="too few to compare"):
        search.fit(X, y)
    event = given.planned_event(N, P)
    assert search.privacy_event_ == event == search.planned_event(N, P)
    assert [entry.event for entry in accountant.entries()] == [str(event)]
    assert search.best_params_ == {"solver": "gcd"}
    assert np.isnan(search.best_score_) and len(search.cv_results_["params"]) == 1


def test_without_bounds_of_the_target_nothing_is_scored_and_the_nearest_is_fitted(data):
    X, y, X_test, y_test = data
    model, name = make_pipeline(BoundsScaler((-1, 1)), DPLinearRegressor()), "dplinearregressor"
    search = PrivateSearchCV(model, {f"{name}__solver": ["skgd", "newton"]}, epsilon=3.0)
    with pytest.warns(UserWarning, match="need public target_bounds.*'newton'"):
        search.fit(X, y)
    assert search.best_params_ == {f"{name}__solver": "newton"}
    assert search.score(X_test, y_test) > 0.4
    assert search.privacy_event_ == DPLinearRegressor(epsilon=3.0).planned_event(N, P)


OF_ONE_STRENGTH = [linear_model.DPPoissonRegressor, linear_model.DPQuantileRegressor]
OF_ONE_STRENGTH += [partial(DPLinearRegressor, "poisson", penalty="l2")]


@table("kind", OF_ONE_STRENGTH)
def test_strengths_that_no_fit_chooses_among_are_run(data, kind):
    X, y, *_ = data
    model = kind(feature_bounds=(-1, 1), target_bounds=(0, 3))
    search = PrivateSearchCV(model, {"alpha": [1e-3, 1e-2]}, epsilon=30.0).fit(X, np.abs(y))
    assert search.n_splits_ == 1 and len(search.cv_results_["params"]) == 2
    assert search.best_estimator_.alpha == search.best_params_["alpha"]


LEAKY = make_pipeline(StandardScaler(), DPLassoCD())


@table(
    ("model", "grid", "match"),
    [
        (DPLinearRegressor(**STATED), {"max_iter": [5, -1]}, "max_iter"),
        (DPLinearRegressor(**STATED), {"solver": ["cd", "fast"]}, "solver"),
        (LEAKY, {"dplassocd__alpha": ABSURD}, "StandardScaler"),
        (LEAKY, {"dplassocd__max_iter": [2, 3]}, "StandardScaler"),
    ],
)
def test_what_one_fit_can_not_do_is_refused_before_the_charge(data, model, grid, match, uncharged):
    search = PrivateSearchCV(model, grid, epsilon=0.3, delta=1e-6, accountant=uncharged)
    with pytest.raises(ValueError, match=match):
        search.fit(*data[:2])


# ---- searches over columns -----------------------------------------------------------------------

KEPT = "columntransformer__transformers"


def selecting(*columns, model=None, first=None):
    """A pipeline that selects columns, and the grid of what it may select."""
    steps = [ColumnTransformer([("kept", "passthrough", columns[0])], sparse_threshold=0)]
    steps += [DPLinearRegressor(**STATED) if model is None else model]
    grid = {KEPT: [[("kept", "passthrough", chosen)] for chosen in columns]}
    return make_private_pipeline(*([first] if first else []), *steps), grid


def test_columns_of_one_union_are_chosen_within_one_fit(data):
    """The event is that of the union, and the winner is as if it alone had been fitted."""
    X, y, X_test, y_test = data
    model, grid = selecting([0, 1], [2, 3, 4], slice(0, 5), first=BoundsScaler((-1, 1)))
    grid["dplinearregressor__penalty"] = ["l1", "l2"]
    grid["dplinearregressor__alpha"] = [1e-4, 10.0]
    accountant = PrivacyAccountant(3.0, 1e-6)
    search = PrivateSearchCV(model, grid, epsilon=3.0, delta=1e-6, accountant=accountant).fit(X, y)
    union, _ = selecting(slice(0, 5), first=BoundsScaler((-1, 1)))
    event = union.set_params(epsilon=3.0, delta=1e-6).planned_event(N, P)
    assert search.privacy_event_ == event == search.planned_event(N, P)
    assert [entry.event for entry in accountant.entries()] == [str(event)]
    assert search.best_params_[KEPT] == grid[KEPT][2] and len(search.cv_results_["params"]) == 12
    assert search.best_params_["dplinearregressor__alpha"] == 1e-4
    assert search.score(X_test, y_test) > 0.6
    best = search.best_estimator_
    assert [name for name, _ in best.steps] == [name for name, _ in model.steps]
    assert best[-1].n_features_in_ == 5 and best[-1].coef_.shape == (5,)
    plain = best[-1].coef_ @ X_test[:, :5].T + best[-1].intercept_
    assert np.allclose(best.predict(X_test), np.clip(plain, -4, 4))
    assert best[-1].strength_path_["coef"].shape == (4, 5)
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict(X_test), search.predict(X_test))
    assert clone(best)[-1]._designs == () == best[-1]._designs


@table(
    ("steps", "grid", "kept"),
    [
        # the union has columns that no candidate has all of
        ([ColumnTransformer([("kept", "passthrough", [0])], sparse_threshold=0),
          PolynomialFeatures(include_bias=False)],
         {KEPT: [[("kept", "passthrough", one)] for one in ([0, 2], [1, 0], [3])],
          "polynomialfeatures__degree": [1, 2]}, {"0", "1", "0 0", "0 1", "1 1"}),
        ([DPStandardScaler(), PolynomialFeatures(2, include_bias=False)],
         {"polynomialfeatures__interaction_only": [True, False],
          "polynomialfeatures": ["passthrough", PolynomialFeatures(2, include_bias=False)]}, None),
    ],
)  # fmt: skip
def test_products_are_columns_too(steps, grid, kept):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60_000, 4))
    y = X[:, 0] * X[:, 1] + X[:, 1] ** 2 - 0.3 * X[:, 0] + 0.3 * rng.normal(size=len(X))
    model = make_private_pipeline(*steps, DPLinearRegressor(**STATED))
    if kept is None:
        model[-1].set_params(feature_bounds=None)
        grid = {"polynomialfeatures": grid["polynomialfeatures"]}
    search = PrivateSearchCV(model, grid, epsilon=3.0).fit(X, y)
    assert search.n_splits_ == 0 and search.score(X, y) > 0.7
    best = search.best_estimator_
    own = best[:-1].fit_transform(X) if kept else best[:-1].transform(X)
    assert own.shape[1] == best[-1].n_features_in_ == (5 if kept else 14)
    assert np.allclose(best[-1].predict(own), best.predict(X))


def test_products_that_are_too_many_are_left_out(data):
    """One of those that are left is chosen, and the estimator as it was given is not fitted."""
    X, y, X_test, y_test = data
    steps = [ColumnTransformer([("kept", "passthrough", [5])], sparse_threshold=0)]
    steps += [PolynomialFeatures(2, include_bias=False), DPLinearRegressor(**STATED)]
    grid = {KEPT: [[("kept", "passthrough", one)] for one in ([5, 6], slice(0, 4))]}
    grid["polynomialfeatures__degree"] = [1, 9]
    model = make_private_pipeline(*steps)
    search = PrivateSearchCV(model, grid, epsilon=1.0, delta=1e-6)
    with pytest.warns(UserWarning, match="products of 9 columns.*budget: 2 candidates"):
        search.fit(X, y)
    assert search.privacy_event_ == search.planned_event(N, P) and search.n_splits_ == 0
    assert search.best_params_ == {KEPT: grid[KEPT][1], "polynomialfeatures__degree": 1}
    assert search.score(X_test, y_test) > 0.5
    accountant = PrivacyAccountant(0.1, 1e-6)
    with (
        pytest.warns(UserWarning, match="products of 9 columns"),
        pytest.raises(BudgetExceededError),
    ):
        clone(search).set_params(accountant=accountant).fit(X, y)
    assert accountant.entries() == []


def test_steps_that_look_alike_are_told_apart():
    """Their text has thirty columns at most."""
    steps = [ColumnTransformer([("kept", "passthrough", [*range(k)])]) for k in (35, 40)]
    steps = [step.set_params(sparse_threshold=0) for step in steps]
    assert repr(steps[0]) == repr(steps[1])
    model = DPLinearRegressor(**STATED)
    search = PrivateSearchCV(
        make_private_pipeline(steps[0], model), {"columntransformer": steps}, epsilon=50.0
    )
    assert search.planned_event(N, 45) == model.set_params(epsilon=50.0).planned_event(N, 40)


def test_names_of_columns_and_classes(data):
    X, y = data[0], data[1] > 0
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)])
    classes = DPLogisticGCD(classes=[False, True], feature_bounds=(-1, 1))
    model, grid = selecting(["c3", "c4"], ["c1", "c0", "c2"], model=classes)
    model[0].set_output(transform="pandas")
    search = PrivateSearchCV(model, grid, epsilon=3.0).fit(frame, y)
    assert search.n_splits_ == 0 and search.score(frame, y) > 0.75
    (last,) = search.best_estimator_[-1:].named_steps.values()
    assert [*last.feature_names_in_] == ["kept__c1", "kept__c0", "kept__c2"]
    assert last.coef_.shape == (1, 3) and last.coef_[0, 0] < 0 < last.coef_[0, 1]
    with warnings.catch_warnings(action="error"):
        search.predict(frame)


def test_columns_that_are_of_no_union_or_too_many_are_compared_otherwise(data):
    """Splines are no products of columns; all products are too many for 8000 records."""
    X, y, *_ = data
    knots = [{"knots": np.linspace(-1, 1, k)[:, np.newaxis].repeat(P, axis=1)} for k in (3, 4)]
    splines = [SplineTransformer(extrapolation="constant", **one) for one in knots]
    products = [PolynomialFeatures(degree, include_bias=False) for degree in (1, 2)]
    for step, others in ((splines[0], splines), (products[0], products)):
        model = make_private_pipeline(step, DPLinearRegressor(**STATED))
        search = PrivateSearchCV(model, {model.steps[0][0]: others}, epsilon=1.0, delta=1e-6)
        why = "to compare 2 candidates" if step is splines[0] else "for products of 2 columns"
        with pytest.warns(UserWarning, match=f"too few {why}"):
            search.fit(X, y)
        assert search.best_params_ == {model.steps[0][0]: others[0]}
    model, grid = selecting([0, 1], [0, 1, 2], model=DPLinearRegressor(row_norm_bound=2, **STATED))
    search = PrivateSearchCV(model, grid, epsilon=10.0)  # a bound of each, and not of the union
    assert search.fit(X, y).n_splits_ == 1


def test_strengths_are_chosen_within_each_run(data):
    X, y, *_ = data
    grid = {"solver": ["newton", "skgd"], "alpha": [1e-3, 100.0], "penalty": ["l1", "l2"]}
    search = PrivateSearchCV(DPLinearRegressor(**STATED), grid, epsilon=10.0, refit=True)
    search.fit(X, y)
    shown = search.cv_results_["params"]
    assert [one["solver"] for one in shown] == ["newton"] + 4 * ["skgd"]
    assert shown[0]["alpha"] == 1e-3 and set(shown[0]) == set(grid)
    assert search.best_params_["alpha"] == 1e-3 == search.best_estimator_.alpha


def test_shared_steps_are_fitted_once(data, monkeypatch):
    X, y, X_test, y_test = data
    fits, honest = [], DPStandardScaler.fit
    monkeypatch.setattr(DPStandardScaler, "fit", lambda *a, **k: fits.append(1) or honest(*a, **k))
    accountant = PrivacyAccountant(3.0, 1e-6)
    model = make_private_pipeline(
        DPStandardScaler(),
        DPLinearRegressor(target_bounds=(-4, 4)),
        shares={"dpstandardscaler": 1, "dplinearregressor": 3},
    )
    prefix = "dplinearregressor__"
    grid = {f"{prefix}solver": ["skgd", "cd"], f"{prefix}alpha": [1e-4, 10.0]}
    grid[f"{prefix}penalty"] = ["l1"]
    search = PrivateSearchCV(
        model, grid, epsilon=3.0, delta=1e-6, scoring="r2", accountant=accountant
    ).fit(X, y)
    (entry,) = accountant.entries()
    assert entry.event == str(search.privacy_event_) == str(search.planned_event(N, P))
    assert entry.estimator == "PrivateSearchCV" and search.privacy_spent_ == (3.0, 1e-6)
    assert len(fits) == 1
    assert len(search.cv_results_["params"]) == 4 and search.n_splits_ == 1
    assert search.best_params_[f"{prefix}alpha"] == 1e-4 and set(search.best_params_) == set(grid)
    best = search.best_estimator_
    assert [name for name, _ in best.steps] == [name for name, _ in model.steps]
    assert best.score(X_test, y_test) > 0.4 and set(best.told_) == {"dplinearregressor"}
    assert best.shares_ == pytest.approx({"dpstandardscaler": 0.25, "dplinearregressor": 0.75})
    again = clone(best).set_params(accountant=None).fit(X, y)
    assert again[-1].alpha == 1e-4
    assert not hasattr(model[0], "scale_") and model[-1].epsilon == 1.0


# ---- scales that all candidates share ------------------------------------------------------------


@table(
    ("model", "grid", "of_classes"),
    [
        (DPLinearRegressor(), {"solver": ["skgd", "cd"]}, False),
        (DPLinearRegressor(target_bounds=(-4, 4)), {"solver": ["newton", "cd"]}, False),
        (DPLogisticGCD(classes=[False, True]), {"solver": ["newton", "skgd"]}, True),
        (DPLinearClassifier(classes=[*"abc"]), {"solver": ["newton", "skgd"]}, True),
    ],
)
def test_scales_are_found_once_before_all_runs(data, model, grid, of_classes):
    X, y, X_test, y_test = data
    spread = np.geomspace(1e-3, 1e3, P)
    X, X_test = 7 * spread + X * spread, 7 * spread + X_test * spread
    if of_classes:
        cuts = [0.0] if len(model.classes) == 2 else [-0.5, 0.5]
        labels = np.asarray(model.classes)
        y, y_test = (labels[np.digitize(one, cuts)] for one in (y, y_test))
    accountant = PrivacyAccountant(3.0, 1e-6)
    search = PrivateSearchCV(
        model, grid, epsilon=3.0, delta=1e-6, accountant=accountant, distribution="all"
    ).fit(X, y)
    (entry,) = accountant.entries()
    assert entry.event == str(search.privacy_event_) == str(search.planned_event(N, P))
    assert entry.estimator == "PrivateSearchCV" and search.privacy_spent_ == (3.0, 1e-6)
    assert 0 < choices_of(search) <= choices_of(clone(model).set_params(epsilon=3.0, delta=1e-6))
    assert len(search.cv_results_["params"]) == 2 and search.n_splits_ == 1
    plain = clone(model).set_params(epsilon=3.0, delta=1e-6).fit(X, y).score(X_test, y_test)
    assert search.score(X_test, y_test) > plain - 0.15
    best = search.best_estimator_
    lo, hi = best.feature_bounds_
    assert ((lo < 7 * spread) & (hi > 7 * spread)).all() and best.feature_bounds is None
    assert getattr(best, "target_bounds", None) == getattr(model, "target_bounds", None)
    assert clone(best).set_params(accountant=None).fit(X, y).score(X_test, y_test) > plain - 0.15
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict(X_test), search.predict(X_test))


def choices_of(model):
    """How many choices a fit makes."""
    releases = model.planned_event(N, P).releases
    return sum(one.count for one in releases if isinstance(one, SelectionEvent))


@table("n", [40, 48, 120, 300])
@table("epsilon", [2.0, 5.0])
def test_few_records_have_one_scale_that_is_found_once_or_none(n, epsilon):
    """A scale of all rows has a mean row beside it; a part of the least budgets finds none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 3))
    y = np.arange(n) % 2
    model = DPLinearClassifier(classes=[0, 1], solver="skgd")
    search = PrivateSearchCV(
        model, {"max_iter": [1, 2]}, epsilon=epsilon, delta=1e-9, distribution="all"
    )
    assert search.fit(X, y).privacy_event_ == search.planned_event(n, 3)


def test_a_refused_charge_finds_no_scales(data):
    X, y, *_ = data
    accountant = PrivacyAccountant(1.0, 1e-6)
    search = PrivateSearchCV(
        DPLinearRegressor(),
        {"solver": ["skgd", "cd"]},
        epsilon=3.0,
        delta=1e-6,
        accountant=accountant,
        distribution="all",
    )
    with pytest.raises(BudgetExceededError):
        search.fit(X, y)
    with pytest.raises(ValueError, match="infinity|NaN"):
        search.fit(np.where(X > 0.99, np.inf, X), y)
    assert accountant.entries() == [] and not hasattr(search, "best_estimator_")


def test_all_candidates_are_run_where_one_asks_for_it(data):
    X, y, *_ = data
    grid = {"solver": ["skgd", "cd"]}
    search = PrivateSearchCV(
        DPLinearRegressor(**STATED), grid, epsilon=0.1, delta=1e-6, distribution="all"
    )
    assert len(search.fit(X, y).cv_results_["params"]) == 2
    with pytest.raises(ValueError, match="48 candidates at most"):
        search.set_params(param_distributions={"max_iter": [*range(1, 60)]}).fit(X, y)


# ---- slots of records that coins divide ----------------------------------------------------------


N_RECORDS, N_PUBLIC = 600, 700
TOLD = {"neighboring": "add_remove", "n_public": N_PUBLIC}
SIZES = [1, 2, 30, 300, 523, 524, 525, 526, 598, 599]  # of a fit slot; 525 is expected
BOUNDS = {"feature_bounds": (-1, 1)}
TARGET = BOUNDS | {"target_bounds": (-2, 2)}
LABELS = BOUNDS | {"classes": [0, 1, 2]}
FEW = {"max_iter": 1}


def candidates():
    """Every solver of regressions and of three classes, presets and pipelines."""
    ball = {"penalty": None, "fit_intercept": False, "constraint": "l1_ball"}
    of_solver = {"compgd": {"penalty": None}, "frank-wolfe": ball}
    for solver in ("cd", "gcd", "skgd", "sgd", "svrg", "newton", "compgd", "frank-wolfe"):
        yield DPLinearRegressor(solver=solver, **TARGET, **FEW, **of_solver.get(solver, {}))
    for solver in ("cd", "gcd", "skgd", "sgd", "svrg", "newton"):
        yield DPLinearClassifier(solver=solver, **LABELS, **FEW)
    yield DPRidgeSkGD(target_bounds=(-2, 2), inference=True, **FEW)  # whose scales are found
    yield DPLassoCD(**TARGET, **FEW)
    yield DPLogisticGCD(**LABELS, **FEW)
    for last in (DPRidgeSkGD(target_bounds=(-2, 2)), DPLogisticGCD(classes=[0, 1, 2])):
        yield make_private_pipeline(DPStandardScaler(), last)


@pytest.fixture(scope="module")
def records():
    X = np.random.default_rng(0).uniform(-1, 1, size=(N_RECORDS, 3))
    y = X @ [1.0, -1.0, 0.0]
    order = np.argsort(y)  # so that a small slot has one class, and two far from all others
    return X[order], y[order], np.digitize(y[order], [-0.2, 0.2])


def search_over(candidate, **params):
    candidate = clone(candidate).set_params(**TOLD)
    name = "verbose" if hasattr(candidate, "steps") else "max_iter"
    grid = {name: [candidate.get_params()[name]]}
    return PrivateSearchCV(candidate, grid, epsilon=3.0, delta=1e-6, **params)


def unlike(records, candidates, sizes):
    """A run's words on the size of its fit slot: failures, and events that differ."""
    X, target, labels = records
    rows, found = np.arange(N_RECORDS), []
    for candidate in candidates:
        y = labels if is_classifier(candidate) else target
        search = search_over(candidate)
        plan, events = planned(asked_of(search, N_RECORDS, (3, 1, False))), set()
        for size in sizes:
            model = plan.budgeted({}, min(plan.asked.slots.n_train))
            splits = ((rows[:size], rows[size:]),)
            cost = plan.release, plan.asked.budget
            outcome = _runs.run(model, {}, plan.scorer, X, y, splits, *cost)
            if outcome.model is None or not math.isfinite(outcome.score):
                found.append(f"{candidate}: a slot of {size} failed")
            else:
                events.add(str(outcome.model.privacy_event_))
        if len(events) > 1:
            found.append(f"{candidate}: {len(events)} events")
    return found


def test_a_run_ends_alike_whatever_the_size_of_its_slot(records):
    dear = ("sgd", "svrg")  # to calibrate
    cheap = [one for one in candidates() if getattr(one, "solver", None) not in dear]
    found = unlike(records, cheap, [1, 300, 526, 599])
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_a_run_ends_alike_for_every_solver_and_more_sizes(records):
    found = unlike(records, candidates(), SIZES)
    assert not found, "\n".join(found)


class RefusesMore(DPRidgeSkGD):
    """Refuses more records than n_public, which a search sets to the expected size of a slot."""

    def _plan(self, n_samples, *shape, **facts):
        if n_samples > self.n_public:
            raise ValueError("too many records")
        return super()._plan(n_samples, *shape, **facts)


def test_a_model_that_refuses_large_slots_would_be_noticed(records):
    assert unlike(records, [RefusesMore(**TARGET, **FEW)], [524, 525]) == []
    assert unlike(records, [RefusesMore(**TARGET, **FEW)], [526, 599])


def test_a_table_that_breaks_the_promise_is_refused_before_any_coin(records, monkeypatch):
    X, y, _ = records
    monkeypatch.setattr(_splits.Slots, "rows", lambda *_: pytest.fail("coins were drawn"))
    model = DPRidgeSkGD(fit_intercept=False, **TARGET, **FEW)
    for search, n in (
        (search_over(model), 499),
        (search_over(model), N_PUBLIC + 1),
        (search_over(model).set_params(estimator__n_public=N_RECORDS - 1), N_RECORDS),
        (search_over(model).set_params(estimator__n_public=499), 499),
    ):
        accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
        rows = np.arange(n) % N_RECORDS
        with pytest.raises(ValueError, match="state an n_public"):
            search.set_params(accountant=accountant).fit(X[rows], y[rows])
        assert accountant.entries() == []


def test_coins_leave_no_slot_empty_of_the_records_that_are_promised():
    share = 0.9  # the largest that is taken, as the least
    assert 2 * share**_splits._LEAST_OF_COINS < 1e-22
