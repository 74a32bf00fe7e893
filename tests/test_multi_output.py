"""Several targets: one fit each, shares of one budget, one charge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from tables import table

from dpcd_sklearn import DPLassoCD, DPLinearRegressor, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.exceptions import ReproducibleNoiseWarning, UnknownScaleWarning
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPStandardScaler
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.testing import ReproducibleNoise

RNG = np.random.default_rng(0)
N, CENTERS = 3000, np.array([0.0, 5.0, 100.0])
X = RNG.uniform(-1, 1, (N, 4))
COEF = RNG.uniform(-0.5, 0.5, (3, 4))
Y = X @ COEF.T + CENTERS + 0.05 * RNG.standard_normal((N, 3))
BOUNDS = [(-2, 2), (3, 7), (98, 102)]
IN_UNITS = {"feature_bounds": (-1, 1), "feature_scale": 1.0}  # so that no scale is looked for
MODELS = {
    "ridge": DPRidgeSkGD(1.0, **IN_UNITS),
    "lasso": DPLassoCD(1e-4, **IN_UNITS),
    "gcd": DPLinearRegressor(solver="gcd", penalty="l1", alpha=1e-4, **IN_UNITS),
    "huber": DPLinearRegressor("huber", **IN_UNITS),
    "sgd": DPLinearRegressor(solver="sgd", **IN_UNITS),
}
UNIT = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_several_targets_are_one_charge_of_a_part_for_each(name):
    accountant = PrivacyAccountant(8.0, 1e-6)  # not one bit more
    model = clone(MODELS[name]).set_params(
        epsilon=8.0, delta=1e-6, target_bounds=BOUNDS, accountant=accountant
    )
    model.fit(X, Y)
    (entry,) = accountant.entries()
    assert entry.event == str(model.privacy_event_)
    assert model.privacy_event_ == model.planned_event(N, 4, 3)
    assert 7.8 < epsilon_of(model.privacy_event_, 1e-6) <= 8 * (1 + 1e-6)
    releases = model.privacy_event_.releases
    assert releases == 3 * releases[: len(releases) // 3]
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    assert model.predict(X).shape == (N, 3) and model.sparse_coef_.shape == (3, 4)
    assert model.score(X, Y) > 0.5
    assert_array_equal(model.to_sklearn().predict(X), model.predict(X))


@pytest.mark.parametrize("shape", ["list", "tuple", "one for all"])
def test_bounds_of_targets_are_of_each_or_of_all(shape):
    bounds = {
        "list": BOUNDS,
        "tuple": (np.array([-2.0, 3, 98]), np.array([2.0, 7, 102])),
        "one for all": (-2.0, 102.0),
    }[shape]
    plan = MODELS["ridge"].__class__(target_bounds=bounds)._plan(N, 4, 3)
    centers = [plan.request.target_center for plan in plan._plans]
    assert centers == ([50.0] * 3 if shape == "one for all" else [0.0, 5.0, 100.0])


def test_a_clip_is_in_the_units_of_each_target():
    wide = [(-2, 2), (3, 7), (0, 200)]
    model = DPRidgeSkGD(target_bounds=wide, feature_bounds=(-1, 1), feature_scale=1.0).fit(X, Y)
    assert_allclose(model.clip_ / model.clip_[0], [1, 1, 50])
    same = DPRidgeSkGD(target_bounds=(-2, 102), feature_bounds=(-1, 1), feature_scale=1.0).fit(X, Y)
    assert isinstance(same.clip_, float)


def test_one_target_is_one_target_in_any_shape():
    model = DPRidgeSkGD(target_bounds=(-2, 2), solver="skgd", **IN_UNITS)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model.fit(X, Y[:, :1])
    assert model.coef_.shape == (4,) and isinstance(model.intercept_, float)
    assert len(model.privacy_event_.releases) == 1


def test_no_two_targets_share_their_noise():
    X, Y = np.zeros((50, 4)), np.zeros((50, 3))
    model = DPRidgeSkGD(fit_intercept=False, max_iter=5, **UNIT)
    assert len(np.unique(model.fit(X, Y).coef_)) == 12
    with pytest.warns(ReproducibleNoiseWarning):
        model.set_params(random_state=ReproducibleNoise(0)).fit(X, Y)
    assert len(np.unique(model.coef_)) == 12


# ---- scales that are found -----------------------------------------------------------------------


def test_bounds_of_each_target_are_found_and_those_of_features_once():
    accountant = PrivacyAccountant(8.0, 1e-6)
    Z = Y * [1.0, 1.0, 20.0]
    model = DPRidgeSkGD(epsilon=8.0, delta=1e-6, accountant=accountant, solver="skgd")
    model.fit(X * [1, 2, 5, 9], Z)
    choices, of_targets, *updates = model.privacy_event_.releases
    assert choices.count == (5 + 5) * 4 and of_targets.count % 3 == 0  # with zooms
    assert updates == 3 * updates[:1]
    assert model.privacy_event_ == model.planned_event(N, 4, 3)
    assert 7.8 < epsilon_of(model.privacy_event_, 1e-6) <= 8 * (1 + 1e-6)
    lo, hi = model.target_bounds_
    # as far as the tail of each target goes, in doublings
    assert_allclose((lo + hi) / 2, np.median(Z, axis=0), atol=np.ptp(Z, axis=0).max() * 0.2)
    spread = np.subtract(*np.quantile(Z, [0.75, 0.25], axis=0))
    assert (hi - lo > 3 * spread).all() and (hi - lo < 8 * np.ptp(Z, axis=0)).all()
    lo, hi = model.feature_bounds_
    assert lo.shape == (4,) and (np.diff(hi - lo) > 0).all()
    assert r2_score(Z, model.predict(X * [1, 2, 5, 9]), multioutput="raw_values").min() > 0.5
    assert model.clip_.shape == (3,) and model.clip_[2] > 5 * model.clip_[1]


@pytest.mark.parametrize("name", [*MODELS, "newton", "svrg", "compgd", "skgd"])
def test_every_solver_plans_one_event_for_all_targets(name):
    model = clone(MODELS[name]) if name in MODELS else DPLinearRegressor(solver=name, penalty=None)
    model.set_params(epsilon=8.0, feature_bounds=None, feature_scale=None)
    for facts in ({}, {"target_bounds": BOUNDS}, {"target_bounds": [(0, 1), (3, 7e5), (-9, 9)]}):
        plan = model.set_params(**facts)._plan(N, 4, 3)
        first, *others = plan._plans
        assert len(others) == 2 and plan.parts[0].releases[0].count == (4 + 2 * 3) * 4
        assert len(plan.parts) == 3  # the targets pay for their own bounds, narrower ones too
        for other in others:
            assert other.alone == first.alone and other.n_updates == first.n_updates
            assert other.parts is plan.parts
    fitted = model.set_params(target_bounds=None).fit(X, Y)
    assert fitted.privacy_event_ == model.planned_event(N, 4, 3)
    assert np.isfinite(fitted.coef_).all() and (np.abs(fitted.intercept_ - CENTERS) < 20).all()


def test_targets_of_few_records_have_unit_scale():
    with pytest.warns(UnknownScaleWarning, match="too small to find scales"):
        model = DPRidgeSkGD(epsilon=0.1).fit(X[:50], Y[:50])
    assert model.target_bounds_ is None and model.feature_bounds_ is None


def test_a_pipeline_shares_its_budget_with_all_targets():
    ledger = PrivacyAccountant(8.0, 1e-6)
    steps = DPStandardScaler(), DPRidgeSkGD()
    model = make_private_pipeline(*steps, epsilon=8.0, delta=1e-6, accountant=ledger).fit(X, Y)
    (entry,) = ledger.entries()
    assert entry.event == str(model.privacy_event_) == str(model.planned_event(N, 4, 3))
    assert model.predict(X).shape == (N, 3) and model.score(X, Y) > 0.3


def test_a_search_is_of_one_target():
    search = PrivateSearchCV(DPRidgeSkGD(**UNIT), {"alpha": [0.1, 1.0]}, epsilon=8.0)
    with pytest.raises(ValueError, match="y must have shape"):
        search.fit(X, Y)


@table(
    ("y", "params", "match"),
    [
        (Y, {"target_bounds": [(0, 1), (0, 1)]}, "target_bounds"),
        (Y, {"target_bounds": [(0, 1), (1, 1), (0, 1)]}, "no width"),
        (Y[:, :0], {}, "minimum of 1"),
        (Y[:, :, None], {}, "dim"),
        (sparse.csr_array(Y), {}, "not a sparse matrix"),
        (np.where(Y > 0, "a", "b"), {}, "real numbers"),
        (np.where(Y > 100, np.nan, Y), {}, "NaN"),
    ],
)
def test_targets_that_no_model_has_are_refused_before_the_charge(y, params, match):
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = DPRidgeSkGD(row_norm_bound=2.0, accountant=accountant).set_params(**params)
    with pytest.raises((TypeError, ValueError), match=match):
        model.fit(X, y)
    assert not accountant.entries()
