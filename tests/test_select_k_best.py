"""Columns that are kept, and principal components: choices, sensitivities, what is charged."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from tables import table

from dpcd_sklearn import DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPPCA, DPSelectKBest
from dpcd_sklearn.privacy.accounting import FitEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import ColumnUnits, Oracle
from dpcd_sklearn.privacy.mechanisms import _tables as mechanism
from dpcd_sklearn.privacy.sums import TargetPlace

N, P = 4000, 30
RELATIONS = ["replace_one", "add_remove"]


@pytest.fixture(name="X")
def records():
    return np.random.default_rng(0).uniform(-1, 1, (N, P))


def oracle_of(X, target, k=1, eta=1.0, neighboring="replace_one", n_classes=0):
    event = FitEvent((SelectionEvent(eta, k),), neighboring)
    facts = {"n_chosen": k, "n_classes": n_classes, "width": X.shape[1]}
    units = ColumnUnits(event, **facts, n_samples=len(X), n_normalizer=len(X))
    place = TargetPlace(X, target, np.zeros(X.shape[1]), np.ones(X.shape[1]))
    return Oracle(charge(None, event), units, place)


# ---- the mechanism -------------------------------------------------------------------------------


def scores_of(monkeypatch, X, target, means, bounds, neighboring):
    with monkeypatch.context() as patch:
        patch.setattr(mechanism.ColumnChoices, "release", lambda self, exact, noise: [exact])
        n_classes = 0 if bounds is not None else len(means)
        oracle = oracle_of(X, target, neighboring=neighboring, n_classes=n_classes)
        return oracle.release(means, bounds)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_no_record_moves_a_score_by_more_than_the_sensitivity(monkeypatch, neighboring, n_classes):
    rng = np.random.default_rng(1)
    others = rng.uniform(-1, 1, (6, 2))
    means = np.array([0.01, 0.0, 0.99][: n_classes or 1]) if n_classes != 2 else np.array([0.0, 1])
    bounds = None if n_classes else (-1.0, 1.0)

    def target_of(y):
        return np.eye(n_classes)[y] if n_classes else y[:, np.newaxis]

    labels = rng.integers(0, max(n_classes, 1), 6) if n_classes else rng.uniform(-1, 1, 6)
    means = means if n_classes else np.array([0.0])
    worst = 0.0
    edges = range(n_classes) if n_classes else (-1.0, 1.0)
    records = [(x, y) for x in (-9.0, -1.0, 1.0, math.nan, 1e300) for y in edges]
    for x, y in records:
        X = np.vstack([others, np.full(2, x)])
        first = scores_of(
            monkeypatch, X, target_of(np.append(labels, y)), means, bounds, neighboring
        )
        if neighboring == "add_remove":
            second = scores_of(monkeypatch, others, target_of(labels), means, bounds, neighboring)
            worst = max(worst, float(np.abs(first - second).max()))
            continue
        for x2, y2 in records:
            X2 = np.vstack([others, np.full(2, x2)])
            second = scores_of(
                monkeypatch, X2, target_of(np.append(labels, y2)), means, bounds, neighboring
            )
            worst = max(worst, float(np.abs(first - second).max()))
    sensitivity = mechanism.columns_sensitivity(n_classes, neighboring)
    assert worst <= sensitivity - 1 + 1e-6
    assert worst >= 0.45 * sensitivity  # the worst records are near it


@pytest.mark.parametrize("mutant", [False, True])
def test_choices_have_the_law_that_is_charged(monkeypatch, mutant):
    """Half the noise is noticed."""
    if mutant:
        exact = mechanism.columns_sensitivity
        monkeypatch.setattr(mechanism, "columns_sensitivity", lambda k, of: exact(k, of) / 2)
    eta, n = 0.5, 40
    X = np.column_stack([np.ones(n), np.zeros(n)])
    target = np.full((n, 1), 0.5)
    runs = 3000
    chosen = [
        oracle_of(X, target, eta=eta).release(np.zeros(1), (-1.0, 1.0))[0] for _ in range(runs)
    ]
    # the score of the first is n/2 in units of one, whose sensitivity is 2
    odds = math.exp(-eta * (n / 2) / (2 * 2))
    expected = odds / (1 + odds)
    off = abs(np.mean(chosen) - expected) / math.sqrt(expected / runs)
    assert (off < 4.5) is not mutant


def test_choices_are_made_once_and_of_what_is_there(X):
    oracle = oracle_of(X, X[:, :1], k=2)
    oracle.release(np.zeros(1), (-1.0, 1.0))
    with pytest.raises(RuntimeError, match="were released: 0 are left"):
        oracle.release(np.zeros(1), (-1.0, 1.0))
    with pytest.raises(ValueError, match="lower k"):
        oracle_of(X[:, :1], X[:, :1], k=2)
    for n_classes, bounds in ((0, None), (1, (-1.0, 1.0)), (2, None)):  # another sensitivity
        with pytest.raises(ValueError, match="the units are of"):
            oracle_of(X, X[:, :1], n_classes=n_classes).release(np.zeros(1), bounds)


# ---- the estimator -------------------------------------------------------------------------------


@table("layout", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
@table("dtype", [np.float32, np.float64])
def test_the_best_columns_are_kept_in_every_layout(layout, dtype):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (N, P)) * (rng.random((N, P)) < 0.7)
    y = X[:, 3] - X[:, 11] + 0.1 * rng.normal(size=N)
    X = layout(X.astype(dtype))
    selector = DPSelectKBest(2, epsilon=2.0, target_bounds=(-2, 2)).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [3, 11]
    Z = selector.transform(X)
    assert Z.shape == (N, 2) and Z.dtype == dtype and sparse.issparse(Z) == sparse.issparse(X)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1, 2]])
def test_columns_are_chosen_for_classes_however_rare(X, labels):
    X = X + 0.5  # no column is centred
    y = np.array(labels)[np.digitize(X[:, 5], np.linspace(-0.5, 1.5, len(labels) + 1)[1:-1])]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(P)])
    selector = DPSelectKBest(1, epsilon=2.0, classes=labels, feature_bounds=(-0.5, 1.5))
    assert selector.fit(frame, y).get_feature_names_out().tolist() == ["c5"]
    named = selector.set_output(transform="pandas").transform(frame)
    assert list(named.columns) == ["c5"]


def test_without_noise_it_ranks_as_scikit_learn_does(X):
    y = X @ np.linspace(0.0, 1.0, P)
    ours = DPSelectKBest(5, epsilon=math.inf, target_bounds=(-20, 20)).fit(X, y)

    def products(X, y):
        return np.abs(np.rint(2**13 * X * ((y - y.mean()) / 40)[:, None]).sum(axis=0))

    theirs = SelectKBest(products, k=5).fit(X, y)
    assert len(set(ours.get_support(True)) & set(theirs.get_support(True))) >= 4


def test_of_few_columns_all_are_kept_unless_a_number_is_stated(X):
    selector = DPSelectKBest().fit(X[:, :7], X[:, 0])
    assert selector.transform(X[:, :7]).shape == (N, 7)
    assert selector.privacy_event_.releases[1].count == 7
    assert DPSelectKBest().fit(X, X[:, 0]).get_support().sum() == 10


def test_a_target_of_numbers_has_no_labels_to_leak():
    columns = DPSelectKBest(2, target_bounds=(-1, 1)), DPLinearRegressor(target_bounds=(-1, 1))
    pipeline = make_private_pipeline(*columns, accountant=PrivacyAccountant(1.0, 1e-6))
    assert len(find_leaks(pipeline)) == 0


def test_columns_that_are_looked_at_are_free():
    selector = DPSelectKBest(4, epsilon=0.5, delta=1e-6)
    assert selector.planned_event(N, P) == selector.planned_event(N, 10 * P)


# ---- principal components ------------------------------------------------------------------------


ROWS, WIDTH = 4000, 6


@pytest.fixture(name="rotated")
def turned():
    rng = np.random.default_rng(0)
    scale = np.array([0.35, 0.3, 0.05, 0.05, 0.05, 0.05])
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    return (rng.normal(size=(ROWS, WIDTH)) * scale) @ turn * 0.7 + 0.1


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


def test_the_largest_directions_are_found_and_named(rotated):
    frame = pd.DataFrame(rotated, columns=[f"c{j}" for j in range(WIDTH)])
    ours = DPPCA(2, epsilon=2.0, row_norm=1.0).fit(frame)
    theirs = PCA(2).fit(rotated)
    overlap = np.linalg.svd(ours.components_ @ theirs.components_.T, compute_uv=False)
    assert overlap.min() > 0.95
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(ours.mean_, rotated.mean(axis=0), atol=0.05)
    Z = ours.set_output(transform="pandas").transform(frame)
    assert list(Z.columns) == ["dppca0", "dppca1"]


def test_bounds_by_name_are_planned_without_names():
    pca = DPPCA(feature_bounds={"a": (0, 1e6), "b": (0, 1)}, epsilon=1.0, delta=1e-6)
    assert pca.planned_event(ROWS, 2) == DPPCA(epsilon=1.0, delta=1e-6).planned_event(ROWS, 2)
    assert math.isfinite(pca.planned_event(ROWS, 2).releases[0].noise_multiplier)


def test_more_columns_than_are_held_are_refused_before_the_charge(uncharged):
    with pytest.raises(ValueError, match="4,001 columns"):
        DPPCA(accountant=uncharged).fit(np.zeros((2, 4001)))
