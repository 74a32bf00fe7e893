"""Scalers by released quantiles: what they find, what is charged, and what stays secret."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import QuantileTransformer, RobustScaler

from dpcd_sklearn import DPLinearClassifier
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPQuantileTransformer, DPRobustScaler
from dpcd_sklearn.privacy.accounting import FitEvent

N, P = 6000, 3


@pytest.fixture(name="X")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, 1998.0, -1e6], [1.0, 5.0, 1e5], (N, P))
    X[:, 1] = np.floor(X[:, 1])
    return X


@pytest.mark.parametrize("bounds", [None, [(-3, 9), (1960, 2040), (-2e6, 0)]])
def test_centres_and_scales_are_near_scikit_learns(X, bounds):
    theirs = RobustScaler(quantile_range=(10, 90), unit_variance=True).fit(X)
    ours = DPRobustScaler(
        epsilon=2.0, quantile_range=(10, 90), unit_variance=True, feature_bounds=bounds
    ).fit(X)
    assert (np.abs(ours.center_ - theirs.center_) < 0.1 * theirs.scale_).all()
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=0.1)


def test_without_noise_it_is_scikit_learns(X):
    ours, theirs = DPRobustScaler(epsilon=math.inf).fit(X), RobustScaler().fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-10, atol=1e-10)
    options = {"n_quantiles": 50, "output_distribution": "normal"}
    ours = DPQuantileTransformer(epsilon=math.inf, **options).fit(X)
    theirs = QuantileTransformer(subsample=None, **options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-6)


@pytest.mark.parametrize("law", ["uniform", "normal"])
def test_columns_get_the_law_that_was_asked_for(X, law):
    X = np.column_stack([X, np.exp(X[:, 0])])
    step = DPQuantileTransformer(epsilon=2.0, output_distribution=law).fit(X)
    Z = step.transform(X)
    shares = np.linspace(0.05, 0.95, 19)
    wanted = np.quantile(QuantileTransformer(output_distribution=law).fit_transform(X), shares, 0)
    assert np.abs(np.quantile(Z, shares, axis=0) - wanted)[:, [0, 2, 3]].max() < 0.2
    assert (np.diff(step.quantiles_, axis=0) >= 0).all() and np.isfinite(Z).all()
    inner = (Z > -1.5) & (Z < 1.5) & (Z > 0.02) & (Z < 0.98) & ([[True, False, True, False]])
    spread = X.std(axis=0)
    assert (np.abs(step.inverse_transform(Z) - X) / spread)[inner].max() < 0.2


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_records_stay_sparse_without_centring(X, layout, dtype):
    X = np.where(np.abs(X) < 2.0, 0.0, X).astype(dtype)
    step = DPRobustScaler(with_centering=False, epsilon=2.0, feature_bounds=(-1e6, 1e6)).fit(X)
    assert (step.center_ == 0).all()
    found = step.transform(layout(X))
    assert found.format == layout(X).format and found.dtype == dtype
    np.testing.assert_array_equal(found.toarray(), step.transform(X))
    np.testing.assert_allclose(step.inverse_transform(found).toarray(), X, rtol=1e-5)
    clone(step).fit(layout(X))
    for refused in (DPRobustScaler(), DPQuantileTransformer()):
        with pytest.raises(TypeError, match="sparse"):
            refused.fit(layout(X))


def test_a_column_of_one_number_is_scaled_by_its_range():
    X = np.zeros((N, 2))
    X[:, 1] = 7.0
    scaler = DPRobustScaler(epsilon=1.0, feature_bounds=(0, 10)).fit(X)
    np.testing.assert_allclose(scaler.scale_, 5.0)
    assert np.abs(scaler.center_ - [0, 7]).max() < 0.1
    found = DPRobustScaler(epsilon=1.0).fit(X)
    assert (found.scale_ >= 1.0).all() and np.isfinite(found.transform(X)).all()


# ---- what is charged -----------------------------------------------------------------------------


def test_neither_centred_nor_scaled_is_free(X, uncharged):
    step = DPRobustScaler(with_centering=False, with_scaling=False, accountant=uncharged)
    np.testing.assert_array_equal(step.fit_transform(X), X)
    assert step.planned_event(N, P) == FitEvent(())


# ---- in a pipeline -------------------------------------------------------------------------------


def test_bounds_of_normal_columns_are_told(X):
    step = DPQuantileTransformer(output_distribution="normal")
    pipeline = make_private_pipeline(step, DPLinearClassifier(classes=[0, 1]), epsilon=3.0)
    (told,) = pipeline.fit(X, (X[:, 0] > 3.2).astype(int)).told_.values()
    assert told.keys() == {"feature_bounds"}
    np.testing.assert_allclose(told["feature_bounds"], (-5.2, 5.2), atol=1e-3)
