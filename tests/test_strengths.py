"""Strengths of a penalty that one fit chooses among: what it costs, finds and refuses."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from tables import table

from dpcd_sklearn import (
    BudgetExceededError,
    DPElasticNetCV,
    DPLassoCD,
    DPLassoCV,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticCV,
    DPLogisticGCD,
    DPRidgeCV,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings("ignore:ReproducibleNoise")
STATED = {"feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
N, P = 8000, 20
ABSURD = [1e-6, 1e-3, 1e-2, 0.1, 1.0, 1e3]
LEAKY = make_pipeline(StandardScaler(), DPLassoCD())


@pytest.fixture(scope="module")
def data():
    """Three relevant columns of twenty."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2 * N, P))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + 0.7 * rng.normal(size=2 * N)
    return X[:N], y[:N], X[N:], y[N:]


def fixed(cls, *args, seed=0, **params):
    return cls(*args, random_state=ReproducibleNoise(seed), **params)


# ---- what it costs: one fit ----------------------------------------------------------------------


@table(
    ("model", "plain"),
    [
        (DPLassoCD("auto"), DPLinearRegressor()),
        (DPLassoCV(), DPLinearRegressor()),
        (DPRidgeSkGD([1.0, 10.0], **STATED), DPLinearRegressor(**STATED)),
        (DPElasticNetCV(l1_ratio=[0.1, 0.9]), DPLinearRegressor()),
        (DPLinearRegressor(Huber(1.0), penalty=["l1", "l2"], alpha=ABSURD),
         DPLinearRegressor(Huber(1.0))),
        (DPLogisticGCD("auto", classes=[0, 1]), DPLinearClassifier(classes=[0, 1])),
        (DPLogisticCV(classes=[*"abc"]), DPLinearClassifier(classes=[*"abc"])),
    ],
)  # fmt: skip
def test_the_event_is_that_of_one_fit_without_a_penalty(model, plain):
    assert model.planned_event(N, P) == plain.planned_event(N, P)


def test_a_search_over_strengths_is_one_fit_and_one_entry(data):
    X, y, *_ = data
    accountant = PrivacyAccountant(1.0, 1e-6)
    grid = {"alpha": ABSURD}
    search = PrivateSearchCV(DPLassoCD(**STATED), grid, delta=1e-6, accountant=accountant)
    search.fit(X, y)
    (entry,) = accountant.entries()
    assert str(search.privacy_event_) == entry.event
    plain = DPLinearRegressor(delta=1e-6, **STATED)
    assert search.privacy_event_ == plain.planned_event(N, P) == search.planned_event(N, P)
    results = search.cv_results_
    assert [one["alpha"] for one in results["params"]] == ABSURD
    assert search.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    assert results["rank_test_score"][ABSURD.index(search.best_params_["alpha"])] == 1
    assert search.best_estimator_.alpha == search.best_params_["alpha"]


def test_a_search_over_strengths_needs_no_bounds_and_takes_pipelines(data):
    """Nothing is scored, so no score needs bounds of the target."""
    X, y, X_test, y_test = data
    model = make_private_pipeline(DPStandardScaler(), DPLinearRegressor())
    prefix = "dplinearregressor__"
    grid = {f"{prefix}alpha": ABSURD, f"{prefix}penalty": ["l2", "l1"]}
    search = PrivateSearchCV(model, grid, epsilon=3.0).fit(X, y)
    assert search.score(X_test, y_test) > 0.3
    assert set(search.best_params_) == set(grid)
    assert len(search.cv_results_["params"]) == 12
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict(X_test), search.predict(X_test))


@table(
    ("params", "grid"),
    [
        ({"scoring": "r2"}, {"alpha": [0.1, 1.0]}),
        ({"distribution": "geometric"}, {"alpha": [0.1, 1.0]}),
        ({}, {"alpha": [0.1, 1.0], "max_iter": [2, 3]}),
        ({}, {"alpha": [0.1, 1.0], "solver": ["newton", "cd"]}),
        ({}, [{"alpha": [0.1]}, {"alpha": [1.0]}]),
    ],
)
def test_other_searches_make_runs(params, grid):
    search = PrivateSearchCV(DPLassoCD(**STATED), grid, epsilon=3.0, delta=1e-6, **params)
    fit = DPLinearRegressor(epsilon=3.0, delta=1e-6, **STATED).planned_event(N, P)
    assert search.planned_event(N, P) != fit


# ---- what it finds -------------------------------------------------------------------------------


def scores_of_candidates(model, X, y):
    """R² of every candidate of the same releases."""
    lo, hi = model.feature_bounds_
    path = model.strength_path_
    found = np.clip(X, lo, hi) @ path["coef"].T + path["intercept"]
    found = np.clip(found, *model.target_bounds_)
    return 1 - np.mean((found - y[:, None]) ** 2, axis=0) / y.var()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_is_nearly_the_best_of_the_same_releases(data, epsilon, seed):
    X, y, X_test, y_test = data
    model = fixed(DPLassoCD, ABSURD, seed=seed, epsilon=epsilon, delta=1e-6, **STATED).fit(X, y)
    scores = scores_of_candidates(model, X_test, y_test)
    own = model.score(X_test, y_test)
    chosen = model.strength_path_["alpha"].tolist().index(model.alpha_)
    assert own == pytest.approx(scores[chosen], abs=1e-9)
    assert own > scores.max() - 0.02
    assert scores.min() < 0.05  # the grid has what ruins


def test_irrelevant_columns_get_zero_and_the_fit_gains(data):
    X, y, X_test, y_test = data
    budget = {"epsilon": 1.0, "delta": 1e-6}
    gains = [
        fixed(DPLassoCV, seed=seed, **budget, **STATED).fit(X, y).score(X_test, y_test)
        - fixed(DPLinearRegressor, seed=seed, **budget, **STATED).fit(X, y).score(X_test, y_test)
        for seed in range(5)
    ]
    assert np.mean(gains) > 0.0
    model = fixed(DPLassoCV, **budget, **STATED).fit(X, y)
    assert np.count_nonzero(model.coef_) < P and np.all(model.coef_[:3] != 0)


def test_estimated_losses_follow_true_ones(data):
    """Within what their standard deviations say, where candidates are near to each other."""
    X, y, X_test, y_test = data
    model = fixed(DPRidgeCV, epsilon=3.0, delta=1e-6, **STATED).fit(X, y)
    path = model.strength_path_
    losses = y_test.var() * (1 - scores_of_candidates(model, X_test, y_test)) / 2
    best = path["alpha"].tolist().index(model.alpha_)
    true = losses - losses[best]
    far = path["excess_loss"] > 0.02
    assert far.any() and np.allclose(path["excess_loss"][far], true[far], rtol=0.25)
    assert np.all(path["excess_loss"] >= 0) and path["excess_loss_std"][best] == 0


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(data, classes):
    X, y, X_test, y_test = data
    cuts = np.quantile(y, np.arange(1, classes) / classes)
    z, z_test = np.searchsorted(cuts, y), np.searchsorted(cuts, y_test)
    stated = {"classes": range(classes), "feature_bounds": (-1, 1), "delta": 1e-6}
    model = fixed(DPLogisticCV, l1_ratios=[0.0, 1.0], epsilon=3.0, **stated).fit(X, z)
    plain = fixed(DPLogisticGCD, epsilon=3.0, **stated).fit(X, z)
    assert model.score(X_test, z_test) > plain.score(X_test, z_test) - 0.02
    assert model.strength_path_["coef"].shape == (45, *model.coef_.shape[classes == 2 :])


def test_nonnegative_coefficients_stay_so(data):
    X, y, *_ = data
    model = DPLassoCV(positive=True, epsilon=3.0, **STATED).fit(X, y)
    assert model.coef_.min() == 0.0 and model.strength_path_["coef"].min() == 0.0


@pytest.mark.filterwarnings("error:.*too few")
def test_each_target_has_a_strength_of_its_own(data):
    X, y, *_ = data
    targets = np.column_stack([y, X[:, 5] + 0.01 * y])
    model = DPLassoCV(epsilon=5.0, **STATED).fit(X, targets)
    assert model.alpha_.shape == (2,) and len(model.strength_path_) == 2
    for k, path in enumerate(model.strength_path_):
        best = path["alpha"].tolist().index(model.alpha_[k])
        np.testing.assert_array_equal(path["coef"][best], model.coef_[k])
    assert model.to_sklearn().predict(X).shape == targets.shape


# ---- where there is no choice --------------------------------------------------------------------


def test_small_budgets_fit_one_strength_and_say_so_before_the_charge(data):
    X, y, *_ = data
    accountant = PrivacyAccountant(1e-3, 1e-9)
    model = DPRidgeSkGD([1e-3, 2.0, 1e6], epsilon=0.05, delta=1e-6, accountant=accountant, **STATED)
    with (
        pytest.warns(UserWarning, match="One is fitted, alpha=2"),
        pytest.raises(BudgetExceededError),
    ):
        model.fit(X, y)
    assert accountant.entries() == []
    with pytest.warns(UserWarning, match="alpha=2"):
        model.set_params(accountant=None).fit(X, y)
    assert model.alpha_ == 2.0 and not hasattr(model, "strength_path_")
    one = clone(model).set_params(alpha=2.0)
    assert one.planned_event(N, P) == model.privacy_event_


def test_a_later_fit_of_one_strength_forgets_the_choice(data):
    X, y, *_ = data
    model = DPLassoCD("auto", **STATED).fit(X, y)
    assert model.to_sklearn().alpha == model.alpha_
    model.set_params(alpha=0.01).fit(X, y)
    assert not hasattr(model, "alpha_") and not hasattr(model, "strength_path_")


# ---- without noise: scikit-learn's own choice ----------------------------------------------------


@table(
    ("ours", "theirs"),
    [
        (DPLassoCV(cv=3), LassoCV(cv=3)),
        (DPRidgeCV([0.1, 10.0, 1e4]), RidgeCV([0.1, 10.0, 1e4])),
        (DPRidgeCV(cv=4), RidgeCV(cv=4)),
        (DPElasticNetCV(l1_ratio=[0.1, 0.9]), ElasticNetCV(l1_ratio=[0.1, 0.9])),
        (DPLinearRegressor(penalty="l2", alpha=[1e-4, 1.0]), RidgeCV([0.2, 2000.0])),
    ],
)
def test_without_noise_it_is_scikit_learns_estimator(data, ours, theirs):
    X, y = (array[:2000] for array in data[:2])
    ours, theirs = clone(ours).set_params(epsilon=np.inf).fit(X, y), clone(theirs).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    name = type(ours).__name__
    scale = 2000 if name == "DPLinearRegressor" else 1
    assert ours.alpha_ * scale == pytest.approx(theirs.alpha_)


def test_without_noise_classes_are_scikit_learns_too(data):
    X, z = data[0][:2000], data[1][:2000] > 0
    ours = DPLogisticCV([1e-3, 0.1, 10.0], epsilon=np.inf).fit(X, z)
    theirs = LogisticRegressionCV(
        Cs=[1e-3, 0.1, 10.0], l1_ratios=[0.0], scoring="neg_log_loss", tol=1e-8, max_iter=1000,
        use_legacy_attributes=False,
    ).fit(X, z)  # fmt: skip
    assert ours.C_ == theirs.C_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


# ---- bad input: a clear error, nothing charged ---------------------------------------------------


@table(
    ("model", "error", "match"),
    [
        (DPLassoCD([]), ValueError, "alpha is an empty list"),
        (DPLassoCD([0.1, -1.0]), ValueError, r"alpha\[1\] must be in"),
        (DPLassoCD([0.1, float("nan")]), ValueError, r"alpha\[1\] must be in"),
        (DPLassoCD([0.1, "auto"]), TypeError, r"alpha\[1\] must be a number"),
        (DPLassoCD([0.1, 0.1]), ValueError, "lists a value twice"),
        (DPLassoCD(["auto"]), TypeError, "alpha must be a number"),
        (DPLassoCD(np.eye(2)), TypeError, r"alpha\[0\] must be a number"),
        (DPLassoCD("some"), ValueError, "'alpha' parameter"),
        (DPLassoCD("auto", solver="cd"), ValueError, "solver='auto' or 'newton', not 'cd'"),
        (DPLassoCD("auto", sampling="uniform"), ValueError, "not 'cd'"),
        (DPLassoCD("auto", max_iter=3), ValueError, "max_iter='auto'"),
        (DPLassoCD("auto", coef_path=True), ValueError, "coef_path=False"),
        (DPRidgeSkGD("auto", inference=True), ValueError, "inference=False"),
        (DPLinearRegressor(alpha="auto"), ValueError, "which have a strength"),
        (DPLinearRegressor(penalty=["l1", "box"], alpha=0.1), ValueError, "got 'box'"),
        (DPLinearRegressor(penalty="l2", alpha="auto", constraint="l2_ball"), ValueError,
         "constraint=None"),
        (DPLinearRegressor(penalty="elasticnet", l1_ratio=[0.1, 1.5]), ValueError,
         r"l1_ratio\[1\]"),
        (DPLinearRegressor(penalty="l1", alpha=np.geomspace(1e-9, 1, 20_000)), ValueError,
         "too many"),
        (DPLassoCV(100), ValueError, "'alphas' parameter"),
    ],
)  # fmt: skip
def test_what_can_not_be_chosen_is_refused_before_the_charge(data, model, error, match):
    accountant = PrivacyAccountant(10.0, 1e-6)
    with pytest.raises(error, match=match):
        clone(model).set_params(accountant=accountant).fit(*data[:2])
    assert accountant.entries() == []


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
    search = PrivateSearchCV(DPLinearRegressor(), {"solver": ["skgd", "newton"]}, epsilon=3.0)
    with pytest.warns(UserWarning, match="need public target_bounds.*'newton'"):
        search.fit(X, y)
    assert search.best_params_ == {"solver": "newton"} and search.score(X_test, y_test) > 0.4
    assert search.privacy_event_ == DPLinearRegressor(epsilon=3.0).planned_event(N, P)


def test_of_candidates_that_change_as_much_the_first_is_fitted(data):
    X, y, *_ = data
    grid = {"solver": ["cd", "newton"], "max_iter": [5, 6]}
    search = PrivateSearchCV(DPLinearRegressor(**STATED), grid, epsilon=0.3, delta=1e-6)
    with pytest.warns(UserWarning, match="too few to compare 4"):
        assert search.fit(X, y).best_params_ == {"solver": "cd", "max_iter": 5}


@table(
    ("model", "grid", "match"),
    [
        (DPLinearRegressor(**STATED), {"max_iter": [5, -1]}, "max_iter"),
        (DPLinearRegressor(**STATED), {"solver": ["cd", "fast"]}, "solver"),
        (LEAKY, {"dplassocd__alpha": ABSURD}, "StandardScaler"),
        (LEAKY, {"dplassocd__max_iter": [2, 3]}, "StandardScaler"),
    ],
)
def test_what_one_fit_can_not_do_is_refused_before_the_charge(data, model, grid, match):
    accountant = PrivacyAccountant(0.3, 1e-6)
    search = PrivateSearchCV(model, grid, epsilon=0.3, delta=1e-6, accountant=accountant)
    with pytest.raises(ValueError, match=match):
        search.fit(*data[:2])
    assert accountant.entries() == []


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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
        with pytest.warns(UserWarning, match="too few to compare 2 candidates"):
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
    assert len(fits) == 2  # up to the charge, and once
    assert len(search.cv_results_["params"]) == 4 and search.n_splits_ == 1
    assert search.best_params_[f"{prefix}alpha"] == 1e-4 and set(search.best_params_) == set(grid)
    best = search.best_estimator_
    assert [name for name, _ in best.steps] == [name for name, _ in model.steps]
    assert best.score(X_test, y_test) > 0.4 and set(best.told_) == {"dplinearregressor"}
    assert best.shares_ == pytest.approx({"dpstandardscaler": 0.25, "dplinearregressor": 0.75})
    again = clone(best).set_params(accountant=None).fit(X, y)
    assert again[-1].alpha == 1e-4
    assert not hasattr(model[0], "scale_") and model[-1].epsilon == 1.0
