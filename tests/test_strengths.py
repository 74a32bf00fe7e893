"""Strengths of a penalty that one fit chooses among: what it costs, finds and refuses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
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
from dpcd_sklearn.testing import ReproducibleNoise

STATED = {"feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
N, P = 8000, 20
ABSURD = [1e-6, 1e-3, 1e-2, 0.1, 1.0, 1e3]


@pytest.fixture(name="data", scope="module")
def _data():
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


def test_a_choice_within_bounds_of_any_width_is_carried_out(data):
    bounds = {"feature_bounds": (-1, 1), "target_bounds": (-1e308, 1e308)}
    assert DPLassoCD([0.1, 10.0], epsilon=3.0, **bounds).fit(*data[:2]).alpha_ in (0.1, 10.0)


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
def test_what_can_not_be_chosen_is_refused_before_the_charge(data, model, error, match, uncharged):
    with pytest.raises(error, match=match):
        clone(model).set_params(accountant=uncharged).fit(*data[:2])
