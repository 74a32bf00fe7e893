"""A prediction for a record follows from that record and the model: the same bits always."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.linear_model import _prediction
from dpcd_sklearn.linear_model._prediction import margins_of

SIZES = [1, 2, 3, 7, 8, 399, 400, 401, 1000]
WIDTHS = [1, 3, 32, 33, 100, 500]
N_OUTPUTS = {"one target": 1, "targets": 3, "binary": 1, "classes": 4, "one-vs-rest": 3}
MODELS = {
    "one target": [
        DPLassoCD(),
        DPRidgeSkGD(),
        DPLinearRegressor("huber", solver="sgd"),
        DPLinearRegressor(solver="newton", penalty="l2"),
    ],
    "targets": [DPRidgeSkGD()],
    "binary": [DPLogisticGCD(classes=[0, 1]), DPLinearClassifier(classes=[0, 1])],
    "classes": [DPLinearClassifier(classes=range(4)), DPLogisticGCD(classes=range(4))],
    "one-vs-rest": [DPLinearClassifier(classes=range(3))],
}
BOUNDS = {"none": None, "with zero": (-1.5, 2.0), "without zero": (0.25, 2.0)}
METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


def every_other_row(X):
    return np.repeat(X, 2, axis=0)[::2]


def columns_of_more(X):
    return np.hstack([X, X])[:, : X.shape[1]]


def every_other_column(X):
    return np.repeat(X, 2, axis=1)[:, ::2]


def backwards(X):
    return X[::-1].copy()[::-1]


def unsorted(X):
    X = sparse.csr_array(X)
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        for array in (X.indices, X.data):
            array[start:end] = array[start:end][::-1].copy()
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.uint64), X.indptr.astype(np.uint64)
    return X


DENSE = [
    np.ascontiguousarray,
    np.asfortranarray,
    every_other_row,
    columns_of_more,
    every_other_column,
    backwards,
]
SPARSE = [sparse.csr_array, sparse.csc_matrix, unsorted, long_indices]


def records(n_features, n_samples=1003):
    """Numbers that single precision has, many of them zero, at scales that are far apart."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n_samples, n_features)) * 2.0 ** rng.integers(-9, 9, n_features)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    return X.astype(np.float32).astype(np.float64)


def model_of(kind, number, n_features, bounds):
    """A model that was fitted, with coefficients of its kind's shape."""
    model, rng = clone(MODELS[kind][number]), np.random.default_rng(n_features)
    X = rng.standard_normal((60, n_features))
    y = rng.integers(0, max(2, N_OUTPUTS[kind]), 60)
    if kind == "targets":
        y = np.column_stack([y, y, y])
    stated = {"feature_bounds": BOUNDS["with zero"], "delta": 1e-5, "max_iter": 1}
    model.set_params(**stated).fit(X, y)
    coef = rng.standard_normal((N_OUTPUTS[kind], n_features)) / 8
    model.coef_ = coef[0] if kind == "one target" else coef
    if bounds is None:
        model.feature_bounds_ = None
    else:
        model.feature_bounds_ = tuple(np.full(n_features, bound) for bound in bounds)
    return model


def twin(X, coef, intercept, bounds):
    """Eight lanes by position, joined in one order: every operation is one number's own."""
    if bounds is not None:
        X = np.clip(X, *bounds)
    lanes = np.zeros((len(coef), 8, len(X)))
    for j in range(X.shape[1]):
        for k, row in enumerate(coef):
            lanes[k, j % 8] += row[j] * X[:, j]
    a, b, c, d, e, f, g, h = np.moveaxis(lanes, 1, 0)
    return (((a + e) + (c + g)) + ((b + f) + (d + h))).T + intercept


def with_neighbour(X, n, rng):
    """n rows in some order; one of them may overflow, and which that is is returned."""
    rows = rng.permutation(len(X))[:n]
    part, replaced = X[rows], rng.integers(n)
    part[replaced] = np.finfo(np.float32).max * rng.choice([-1.0, 0.0, 1.0], X.shape[1])
    return rows, part, replaced


CASES = [(kind, number) for kind, models in MODELS.items() for number in range(len(models))]


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_what_is_predicted_follows_from_the_record_alone(kind, number):
    wrong, rng, n_checked = [], np.random.default_rng(0), 0
    for n_features in WIDTHS:
        X = records(n_features)
        for words, bounds in BOUNDS.items():
            model = model_of(kind, number, n_features, bounds)
            methods = [name for name in METHODS if hasattr(model, name)]
            alone = {name: getattr(model, name)(X) for name in methods}
            margins = twin(X, np.atleast_2d(model.coef_), model.intercept_, model.feature_bounds_)
            of_margins = alone["decision_function" if len(methods) > 1 else "predict"]
            assert np.array_equal(of_margins.reshape(margins.shape), margins)
            for n in SIZES:
                rows, part, replaced = with_neighbour(X, n, rng)
                others = np.arange(n) != replaced
                layout = rng.choice(DENSE + SPARSE)
                dtype = rng.choice([np.float32, np.float64])
                for name in methods:
                    found = getattr(model, name)(layout(part.astype(dtype)))
                    n_checked += 1
                    if not np.array_equal(found[others], alone[name][rows][others]):
                        wrong.append((words, n_features, n, layout.__name__, dtype, name))
    assert not wrong
    assert n_checked >= 100


@table("layout", DENSE + SPARSE)
@table("bounds", BOUNDS.values())
def test_every_layout_and_number_of_threads_has_the_bits_of_the_twin(layout, bounds):
    for n_features in WIDTHS:
        X = records(n_features)
        coef = np.random.default_rng(1).standard_normal((3, n_features))
        lo_hi = bounds and tuple(np.full(n_features, bound) for bound in bounds)
        expected = twin(X, coef, 0.5, lo_hi)
        inside = X if bounds is None else np.clip(X, *bounds)
        largest = n_features * np.abs(inside).max()
        assert_allclose(expected, inside @ coef.T + 0.5, atol=1e-13 * largest)
        for dtype in (np.float32, np.float64):
            for n_threads in (1, 2):
                found = margins_of(layout(X.astype(dtype)), coef, 0.5, lo_hi, n_threads)
                assert np.array_equal(found, expected)


def test_a_map_of_a_file_has_the_bits_of_its_records(tmp_path):
    X, coef = records(33), np.random.default_rng(1).standard_normal((2, 33))
    for dtype in (np.float32, np.float64):
        X.astype(dtype).tofile(tmp_path / "X")
        for rows in (slice(None), slice(3, 401), slice(1, None, 7)):
            found = np.memmap(tmp_path / "X", dtype=dtype, mode="r", shape=X.shape)[rows]
            expected = twin(X, coef, 0.5, None)[rows]
            assert np.array_equal(margins_of(found, coef, 0.5), expected)


@pytest.mark.parametrize("layout", DENSE + SPARSE, ids=lambda f: f.__name__)
def test_rows_that_overflow_have_their_own_bits_too(layout):
    rng = np.random.default_rng(0)
    for n_features in WIDTHS:
        values, shares = [-1.7e308, -3.0, 0.0, 2.5, 1.7e308], [0.02, 0.3, 0.36, 0.3, 0.02]
        X = rng.choice(values, (1000, n_features), p=shares)
        coef = rng.choice([-40.0, 0.5, 3.0], (3, n_features))
        alone = np.vstack([margins_of(row[np.newaxis], coef, [1.0, 0.0, -1e308]) for row in X])
        assert np.isfinite(alone).all() and (np.abs(alone) > 1e308).any()
        for n in SIZES:
            rows = rng.permutation(len(X))[:n]
            found = margins_of(layout(X[rows]), coef, [1.0, 0.0, -1e308])
            assert np.array_equal(found, alone[rows])


def test_an_order_that_follows_the_number_of_rows_is_noticed(monkeypatch):
    right = _prediction.products

    def by_number(X, coef, bounds=None, **threads):
        if X.shape[0] <= 400:
            return right(X, coef, bounds, **threads)
        turned = bounds and tuple(bound[::-1] for bound in bounds)
        return right(np.ascontiguousarray(X[:, ::-1]), coef[:, ::-1], turned, **threads)

    X, coef = records(33), np.random.default_rng(1).standard_normal((3, 33))
    assert np.array_equal(margins_of(X[:400], coef, 0.5), margins_of(X[:401], coef, 0.5)[:400])
    monkeypatch.setattr(_prediction, "products", by_number)
    assert not np.array_equal(margins_of(X[:400], coef, 0.5), margins_of(X[:401], coef, 0.5)[:400])


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_array])
def test_what_can_be_fitted_can_be_predicted_whatever_type_its_indices_have(layout):
    X = records(3, 60)
    for kind in ("one target", "targets", "binary", "classes", "one-vs-rest"):
        model = model_of(kind, 0, 3, None)
        y = np.arange(60) % max(2, N_OUTPUTS[kind])
        for letters in ("b", "B", "h", "H", "i", "I", "l", "L"):
            S, expected = layout(X), model.predict(X)
            S.indices, S.indptr = S.indices.astype(letters), S.indptr.astype("h")
            assert np.array_equal(model.predict(S), expected)
            targets = np.column_stack([y, y, y]) if kind == "targets" else y
            assert clone(model).fit(S, targets).predict(S).shape == expected.shape
