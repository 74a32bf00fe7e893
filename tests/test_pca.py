"""Private principal components: the matrix that is released, and what is made of it."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from tables import table

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.preprocessing import DPPCA

N, P = 4000, 6
@pytest.fixture(name="X")
def records():
    rng = np.random.default_rng(0)
    scale = np.array([0.35, 0.3, 0.05, 0.05, 0.05, 0.05])
    turn = np.linalg.qr(rng.normal(size=(P, P)))[0]
    return (rng.normal(size=(N, P)) * scale) @ turn * 0.7 + 0.1


@table("dtype", [np.float32, np.float64])
@table("order", ["C", "F"])
def test_without_noise_and_clip_it_is_scikit_learns(dtype, order):
    rng = np.random.default_rng(2)
    X = np.asarray(rng.normal(size=(300, 4)) * [0.2, 0.1, 0.05, 0.02] + 0.1, dtype, order=order)
    ours = DPPCA(2, epsilon=math.inf).fit(X)
    theirs = PCA(2).fit(X)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))[:, np.newaxis]
    np.testing.assert_allclose(ours.components_, signs * theirs.components_, atol=1e-4)
    Z = ours.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, theirs.transform(X) * signs.T, atol=1e-5)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=0.01)


def test_the_largest_directions_are_found_and_named(X):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)])
    ours = DPPCA(2, epsilon=2.0, row_norm=1.0).fit(frame)
    theirs = PCA(2).fit(X)
    overlap = np.linalg.svd(ours.components_ @ theirs.components_.T, compute_uv=False)
    assert overlap.min() > 0.95
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), atol=0.05)
    Z = ours.set_output(transform="pandas").transform(frame)
    assert list(Z.columns) == ["dppca0", "dppca1"]


def test_bounds_by_name_are_planned_without_names():
    pca = DPPCA(feature_bounds={"a": (0, 1e6), "b": (0, 1)}, epsilon=1.0, delta=1e-6)
    assert pca.planned_event(N, 2) == DPPCA(epsilon=1.0, delta=1e-6).planned_event(N, 2)
    assert math.isfinite(pca.planned_event(N, 2).releases[0].noise_multiplier)


def test_more_columns_than_are_held_are_refused_before_the_charge():
    accountant = PrivacyAccountant(10.0, 1e-6)
    with pytest.raises(ValueError, match="4,001 columns"):
        DPPCA(accountant=accountant).fit(np.zeros((2, 4001)))
    assert accountant.entries() == []
