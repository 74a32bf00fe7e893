"""positive=True: coefficients that are never negative, as in scikit-learn's Lasso and Ridge."""

import numpy as np
import pytest
from flat import flat
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso, Ridge

from dpcd_sklearn import DPLassoCD, DPRidgeSkGD, PrivacyAccountant

PAIRS = [(DPLassoCD, Lasso, 0.05), (DPRidgeSkGD, Ridge, 3.0)]
each = pytest.mark.parametrize(("ours", "theirs", "alpha"), PAIRS)


def records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 5))
    return X, X @ [1.0, -2.0, 0.5, -0.1, 0.0] - 3 + 0.1 * rng.standard_normal(200)


@each
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_scikit_learns(ours, theirs, alpha, fit_intercept):
    X, y = records()
    params = {"positive": True, "fit_intercept": fit_intercept}
    model = ours(alpha, epsilon=np.inf, tol=1e-9, **params).fit(X, y)
    expected = theirs(alpha, tol=1e-12, max_iter=10**5, **params).fit(X, y)
    assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    assert_allclose(model.intercept_, expected.intercept_, atol=1e-5)
    assert (model.coef_ >= 0).all() and (model.coef_ == 0).any() and (model.coef_ > 0).any()
    free = ours(alpha, epsilon=np.inf, tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    assert (free.coef_ < 0).any()
    assert model.to_sklearn().get_params()["positive"] and not free.to_sklearn().positive


@each
@pytest.mark.parametrize("averaging", ["last", "tail", "periodic"])
def test_noise_makes_nothing_negative(ours, theirs, alpha, averaging):
    X, y = records()
    X = np.tile(X, 20)  # of 100 coefficients some have a noise that would make them negative
    params = {"averaging": averaging, "coef_path": True, "epsilon": 0.1, "max_iter": 5}
    solver = {DPLassoCD: "cd", DPRidgeSkGD: "skgd"}[ours]
    model = flat(ours, alpha, positive=True, target_bounds=(-6, 6), solver=solver, **params).fit(
        X, y
    )
    assert (model.coef_ >= 0).all() and (model.coef_path_ >= 0).all()
    assert (model.coef_path_ > 0).any()
    free = flat(ours, alpha, solver=solver, **params).fit(X, y)
    assert (free.coef_path_ < 0).any()
    assert str(model.privacy_event_) == str(free.privacy_event_)  # at the same price


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"positive": "yes"}, "'positive' parameter"),
    ],
)
def test_what_does_not_go_with_it_is_refused_and_not_charged(params, message):
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-3)
    model = DPRidgeSkGD(10.0, accountant=accountant, **{"positive": True} | params)
    with pytest.raises(ValueError, match=message):
        model.fit(*records())
    assert not accountant.entries()
