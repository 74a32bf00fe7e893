"""The three estimators: what they say without noise, and what a private fit promises."""

import math
import re

import numpy as np
import pytest
from flat import flat
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from tables import table

from dpcd_sklearn import DPLassoCD, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.privacy.accounting import epsilon_of, gdp_mu, zcdp_epsilon
from dpcd_sklearn.solvers import SkGD
from dpcd_sklearn.testing import ReproducibleNoise

INF = math.inf
NAMED = {DPLassoCD: "cd", DPLogisticGCD: "gcd", DPRidgeSkGD: "skgd"}  # after their algorithms
ALL = list(NAMED)

every_estimator = pytest.mark.parametrize("estimator", ALL)
with_and_without_intercept = pytest.mark.parametrize(
    "fit_intercept", [True, False], ids=["intercept", "no intercept"]
)


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] > 0).astype(float)


def unit_scale(estimator):
    """The facts that leave nothing to be found: unit scale."""
    facts = {"feature_scale": 1.0}
    return facts if estimator is DPLogisticGCD else facts | {"target_bounds": (-1, 1)}


# --- without noise ------------------------------------------------------------------------------

PUBLIC = {"feature_bounds": (-1e-3, 1e-3), "feature_scale": 100.0, "row_norm_bound": 0.5}
PUBLIC["clip"] = 1e-3


@table("facts", [{name: value} for name, value in PUBLIC.items()])
@table("solver", ["auto", "cd"])
@every_estimator
def test_a_fit_without_noise_ignores_bounds_and_clip(small, estimator, solver, facts):
    if estimator is not DPLogisticGCD:
        facts = facts | {"target_bounds": (0.4, 0.6)}
    model = estimator(0.1, solver=solver, epsilon=INF, tol=1e-8)
    expected = clone(model).fit(*small).coef_
    assert_allclose(model.set_params(**facts).fit(*small).coef_, expected, atol=1e-4)


# --- positive=True ------------------------------------------------------------------------------

POSITIVE = [(DPLassoCD, Lasso, 0.05), (DPRidgeSkGD, Ridge, 3.0)]
of_regressors = pytest.mark.parametrize(("ours", "theirs", "alpha"), POSITIVE)


def signed_records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 5))
    return X, X @ [1.0, -2.0, 0.5, -0.1, 0.0] - 3 + 0.1 * rng.standard_normal(200)


@of_regressors
@with_and_without_intercept
def test_positive_without_noise_is_scikit_learns(ours, theirs, alpha, fit_intercept):
    X, y = signed_records()
    params = {"positive": True, "fit_intercept": fit_intercept}
    model = ours(alpha, epsilon=INF, tol=1e-9, **params).fit(X, y)
    expected = theirs(alpha, tol=1e-12, max_iter=10**5, **params).fit(X, y)
    assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    assert_allclose(model.intercept_, expected.intercept_, atol=1e-5)
    assert (model.coef_ >= 0).all() and (model.coef_ == 0).any() and (model.coef_ > 0).any()
    free = ours(alpha, epsilon=INF, tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    assert (free.coef_ < 0).any()
    assert model.to_sklearn().get_params()["positive"] and not free.to_sklearn().positive


@of_regressors
@pytest.mark.parametrize("averaging", ["last", "tail", "periodic"])
def test_noise_makes_nothing_negative(ours, theirs, alpha, averaging):
    X, y = signed_records()
    X = np.tile(X, 20)  # of 100 coefficients some have a noise that would make them negative
    params = {"averaging": averaging, "coef_path": True, "epsilon": 0.1, "max_iter": 5}
    params["solver"] = NAMED[ours]
    model = flat(ours, alpha, positive=True, target_bounds=(-6, 6), **params).fit(X, y)
    assert (model.coef_ >= 0).all() and (model.coef_path_ >= 0).all()
    assert (model.coef_path_ > 0).any()
    free = flat(ours, alpha, **params).fit(X, y)
    assert (free.coef_path_ < 0).any()
    assert str(model.privacy_event_) == str(free.privacy_event_)  # at the same price


# --- without noise: what else it says -----------------------------------------------------------


@every_estimator
def test_constant_features_get_no_coefficient_without_noise(small, estimator):
    X, y = small
    constant = np.full_like(X, 0.1)  # whose mean is not exactly 0.1 in double precision
    model = estimator(0.1, epsilon=INF).fit(np.column_stack([X, constant]), y)
    assert_allclose(model.coef_.ravel()[4:], 0, atol=1e-6)
    model = estimator(0.1, epsilon=INF).fit(constant, y)
    assert_allclose(model.coef_, 0, atol=1e-6)


@every_estimator
def test_views_integers_and_read_only_records_are_taken(small, estimator):
    X, y = small
    X = np.rint(4 * X)
    expected = estimator(0.1, random_state=ReproducibleNoise(0)).fit(X, y).coef_
    wide = np.repeat(X, 2, axis=1)[:, ::2]  # a view with gaps
    tall = np.repeat(np.asfortranarray(X), 2, axis=0)[::2]
    reverse = X[::-1][::-1]
    frozen = X.copy()
    frozen.flags.writeable = False
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)[1:].view()
    unaligned = np.ndarray(X.shape, dtype=np.float64, buffer=raw)
    unaligned[:] = X
    odd = np.zeros(X.shape, dtype=[("pad", "u1"), ("value", "f8")])  # 9 bytes from cell to cell
    odd["value"] = X
    others = odd["value"], X[::-1].copy()[::-1], X.astype(">f8"), X.astype(int), X.tolist()
    for same in (wide, tall, reverse, frozen, unaligned, *others):
        assert_array_equal(
            estimator(0.1, random_state=ReproducibleNoise(0)).fit(same, y).coef_, expected
        )


# --- what a private fit releases ----------------------------------------------------------------


@every_estimator
def test_privacy_spent_is_what_was_asked_for(small, estimator):
    model = estimator(epsilon=0.7, delta=1e-5).fit(*small)
    assert tuple(model.privacy_spent_) == (0.7, 1e-5)
    assert (model.privacy_spent_.epsilon, model.privacy_spent_.delta) == (0.7, 1e-5)
    assert estimator().fit(*small).privacy_spent_ == (1.0, 1 / 80**2)


@table(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (10.0, 1e-8)])
@every_estimator
def test_the_noise_of_the_event_pays_for_what_was_spent(small, estimator, epsilon, delta):
    params = {"epsilon": epsilon, "delta": delta, "solver": NAMED[estimator]}
    if estimator is DPLogisticGCD:
        # so that nothing is released beside the updates
        params |= {"class_weight": {0: 1.0, 1: 1.0}, "classes": [0, 1]}
    model = estimator(**params, **unit_scale(estimator)).fit(*small)
    z, count = model.noise_multiplier_, model.n_iter_
    if estimator is DPLogisticGCD:
        selection, gaussian = model.privacy_event_.releases
        rho = count * (selection.eta**2 / 8 + 1 / (2 * z**2))
        assert gaussian.noise_multiplier == z
        # a share of 0.8 of the loss goes to the choices
        assert_allclose(count * selection.eta**2 / 8, 0.8 * rho, rtol=1e-6)
        assert 0.999 * epsilon < epsilon_of(model.privacy_event_, delta) <= epsilon
        assert zcdp_epsilon(rho, delta) > 1.03 * epsilon  # zCDP would ask for more noise
    else:
        (gaussian,) = model.privacy_event_.releases
        assert gaussian.noise_multiplier == z
        exact = math.sqrt(count) / gdp_mu(epsilon, delta)
        assert exact <= z <= 1.01 * exact


# --- the noise itself ---------------------------------------------------------------------------

# With features of unit scale, a target of zero and no penalty, one step of size 1 from zero is
# minus the noise over M_j = 1: coefficients show it.


def noise_of_ridge(n_features, n_samples, **params):
    model = DPRidgeSkGD(
        0.0,
        max_iter=1,
        fit_intercept=False,
        solver=SkGD(step_size=float(n_features), momentum=0.0, averaging="last"),
        **unit_scale(DPRidgeSkGD),
        **params,
    )
    X = np.zeros((n_samples, n_features))
    return model.fit(X, np.zeros(n_samples))


def test_the_noise_of_a_full_gradient_is_as_the_event_says():
    n, p = 40, 20_000
    model = noise_of_ridge(p, n, clip=3.0)
    assert model.clip_ == 3.0
    # sensitivity: a norm of at most C, twice for a replaced record, over n
    expected = model.noise_multiplier_ * 2 * 3.0 / n
    # the standard deviation of 20,000 draws is within 2.5 % of its own (5 of its sigmas)
    assert_allclose(model.coef_.std(), expected, rtol=0.025)
    assert abs(model.coef_.mean()) < 5 * expected / math.sqrt(p)


def test_add_remove_halves_the_noise_and_never_uses_the_true_number():
    params = {"delta": 1e-4, "clip": 3.0}
    replace_one = noise_of_ridge(20_000, 40, **params)
    add_remove = noise_of_ridge(20_000, 40, neighboring="add_remove", n_public=40, **params)
    assert add_remove.noise_multiplier_ == replace_one.noise_multiplier_
    assert_allclose(add_remove.coef_.std(), replace_one.coef_.std() / 2, rtol=0.04)
    assert add_remove.privacy_event_.neighboring == "add_remove"
    assert str(add_remove.privacy_event_).endswith("under add-remove neighbours")
    for n_samples in (20, 80):  # the noise follows n_public alone
        other = noise_of_ridge(20_000, n_samples, neighboring="add_remove", n_public=400, **params)
        assert_allclose(other.coef_.std(), add_remove.coef_.std() / 10, rtol=0.04)


# --- what a fitted model holds ------------------------------------------------------------------


@every_estimator
def test_fitted_attributes_are_the_documented_ones(small, estimator):
    model = estimator(0.1).fit(*small)
    expected = {"coef_", "intercept_", "n_iter_", "n_features_in_", "privacy_spent_"}
    expected |= {"privacy_event_", "noise_multiplier_", "clip_", "feature_bounds_"}
    expected |= {"row_norm_bound_", "solver_"}
    expected |= {"classes_"} if estimator is DPLogisticGCD else {"target_bounds_"}
    assert {name for name in vars(model) if name.endswith("_")} == expected
    for name in expected:
        assert re.search(rf"^ *{name} : ", model.__doc__, re.MULTILINE)


# --- how good it is -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50_000, 5))
    signal = X @ [0.5, -0.3, 0.2, 0.0, 0.1] + 0.1
    y = np.clip(signal + 0.1 * rng.standard_normal(50_000), -2, 2)
    return X, y, (rng.random(50_000) < 1 / (1 + np.exp(-4 * signal))).astype(int)


# Errors of five seeds each were at most: lasso 0.013, ridge 0.008; thresholds are 5 times that.
CLOSE = [
    (DPLassoCD(0.001), Lasso(0.001)),
    (DPLassoCD(0.001, sampling="importance"), Lasso(0.001)),
    (DPRidgeSkGD(1.0), Ridge(1.0)),
    (DPRidgeSkGD(1.0, sampling="block", block_size=3, max_iter=50), Ridge(1.0)),
]


@pytest.mark.parametrize(("model", "reference"), CLOSE, ids=str)
def test_a_private_regression_on_many_records_is_close_to_the_exact_one(large, model, reference):
    X, y, _ = large
    model = clone(model).set_params(feature_bounds=(-1, 1), target_bounds=(-2, 2)).fit(X, y)
    reference = reference.fit(X, y)
    error = np.linalg.norm(np.ravel(model.coef_) - np.ravel(reference.coef_))
    assert error < 0.06 * np.linalg.norm(reference.coef_)
    assert abs(model.intercept_ - reference.intercept_) < 0.02
    assert model.score(X, y) > reference.score(X, y) - 0.01


def test_a_private_classification_on_many_records_is_close_to_the_exact_one(large):
    X, _, y = large
    reference = LogisticRegression().fit(X, y)
    model = DPLogisticGCD(feature_bounds=(-1, 1)).fit(X, y)
    assert model.score(X, y) > reference.score(X, y) - 0.02


@pytest.mark.parametrize("name", ["lasso", "ridge"])
def test_the_target_may_be_in_any_units(large, name):
    # 1000 (y + 5) with its bounds is the same problem: the same seed gives 1000 times the model.
    X, y, _ = large
    X, y = X[:2000], y[:2000]
    estimator = DPLassoCD if name == "lasso" else DPRidgeSkGD
    params = {"feature_bounds": (-1, 1), "random_state": ReproducibleNoise(0)}
    plain = estimator(0.01, target_bounds=(-2, 2), **params).fit(X, y)
    alpha = 10.0 if name == "lasso" else 0.01  # alpha |w| is in units of y², over those of w
    other = estimator(alpha, target_bounds=(3000, 7000), **params).fit(X, 1000 * (y + 5))
    assert_allclose(other.coef_, 1000 * plain.coef_, rtol=1e-6, atol=1e-6)
    assert_allclose(other.intercept_, 1000 * (plain.intercept_ + 5), rtol=1e-6)
    assert_allclose(other.clip_, 1000 * plain.clip_)
