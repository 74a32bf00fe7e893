"""Private principal components: the matrix that is released, and what is made of it."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from tables import table

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.preprocessing import DPPCA
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import _tables as mechanism
from dpcd_sklearn.privacy.sums import LocalPlace

N, P = 4000, 6
RELATIONS = ["replace_one", "add_remove"]


@pytest.fixture(name="X")
def records():
    rng = np.random.default_rng(0)
    scale = np.array([0.35, 0.3, 0.05, 0.05, 0.05, 0.05])
    turn = np.linalg.qr(rng.normal(size=(P, P)))[0]
    return (rng.normal(size=(N, P)) * scale) @ turn * 0.7 + 0.1


def oracle_of(X, z=2.0, neighboring="replace_one", n_normalizer=None, norm=1.0, constant=0.5):
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    units = mechanism.SecondMomentUnits(
        event, n_samples=len(X), n_normalizer=n_normalizer or len(X), n_features=X.shape[1],
        row_norm=math.hypot(norm, constant), constant=constant,
    )  # fmt: skip
    p = X.shape[1]
    bounds = -9 * np.ones(p), 9 * np.ones(p), np.zeros(p)
    place = LocalPlace(np.ascontiguousarray(X), np.zeros(len(X)), None, bounds)
    return mechanism.SecondMomentOracle(charge(None, event), units, place)


def sums_of(X, **options):
    """The integers of a release before their noise, with its units."""
    oracle = oracle_of(X, **options)
    units = oracle._units
    return oracle._place.gram(units.row_norm, float(units.row_units)), units


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_neighbours_are_told_apart_as_far_as_is_claimed(neighboring):
    others = np.full((5, 3), 0.1)
    ends = [s * 9.0 * np.eye(3)[j] for j in range(3) for s in (1, -1)] + [np.full(3, 2.0)]
    worst = 0.0
    for one in ends:
        first, units = sums_of(np.vstack([others, one]), neighboring=neighboring, n_normalizer=6)
        if neighboring == "add_remove":
            second, _ = sums_of(others, neighboring=neighboring, n_normalizer=6)
            worst = max(worst, float(np.linalg.norm(first - second)))
            continue
        for two in ends:
            second, _ = sums_of(np.vstack([others, two]), neighboring=neighboring, n_normalizer=6)
            worst = max(worst, float(np.linalg.norm(first - second)))
    assert 2.0 * worst <= 2.0**units.bits
    # rows share a constant, so no two of them are orthogonal: opposite ones come nearest
    assert 2.0 * worst >= 0.5 * 2.0**units.bits


@pytest.mark.parametrize("mutant", [False, True])
def test_the_matrix_has_the_noise_that_is_charged(monkeypatch, mutant):
    """Half the noise is noticed."""
    if mutant:
        kind = mechanism.SecondMomentUnits
        exact = kind.matrix_grid

        def half(*args):
            bits, units = exact(*args)
            return bits - 1, units

        monkeypatch.setattr(kind, "matrix_grid", half)
    X = np.random.default_rng(1).uniform(-0.4, 0.4, (50, 3))
    z, norm2 = 3.0, 1.25
    found = np.array([oracle_of(X, z).release_curvature() for _ in range(500)])
    rows = np.column_stack([X, np.full(50, 0.5)])
    expected = z * math.sqrt(2) * norm2 / 50
    np.testing.assert_allclose(found.mean(axis=0), rows.T @ rows / 50, atol=6 * expected / 500**0.5)
    diagonal = found[:, np.arange(4), np.arange(4)].std(axis=0).mean()
    beside = found[:, 0, 1:].std(axis=0).mean()
    near = [diagonal / expected, math.sqrt(2) * beside / expected]
    assert np.allclose(near, 1.0, atol=0.12) is not mutant


def test_moments_are_released_once():
    oracle = oracle_of(np.zeros((10, 2)))
    oracle.release_curvature()
    with pytest.raises(RuntimeError, match="were released: 0 are left"):
        oracle.release_curvature()
    with pytest.raises(ValueError, match="clipped"):
        oracle_of(np.zeros((10, 2)), norm=1e-12, constant=1e-12)


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
