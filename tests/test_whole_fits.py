"""Costs of a whole fit beside its kernels: little memory, and no calibration twice.

Allocations are those of NumPy, which reports them to tracemalloc; kernels' scratch is a few tiles.
"""

import functools
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.solvers import SkGD

N_SAMPLES, N_FEATURES = 40_000, 100
PER_RECORD = N_SAMPLES * 8  # bytes of one double for each record
BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
CLASSIFIERS = {
    "DPLogisticGCD": DPLogisticGCD(max_iter=2),
    "DPLogisticGCD, classes": DPLogisticGCD(max_iter=2, classes=[0, 1]),
    "cd, logistic": DPLinearClassifier(solver="cd", max_iter=0.02),
    "sgd, logistic": DPLinearClassifier(solver="sgd", max_iter=0.2),
    "sgd, multinomial": DPLinearClassifier(
        "multinomial", classes=[0, 1, 2], solver="sgd", max_iter=0.2
    ),
}
REGRESSORS = {
    "DPRidgeSkGD": DPRidgeSkGD(max_iter=2),
    "DPRidgeSkGD, bounds": DPRidgeSkGD(max_iter=2, target_bounds=(0, 2), feature_bounds=(-1, 1)),
    "DPLassoCD": DPLassoCD(max_iter=0.02),
    "gcd": DPLinearRegressor(solver="gcd", penalty="l1", max_iter=2),
    "skgd, nice": DPLinearRegressor(solver=SkGD(sampling="nice"), max_iter=0.2),
    "svrg": DPLinearRegressor(solver="svrg", max_iter=0.2),
    "compgd": DPLinearRegressor(solver="compgd", penalty=None, max_iter=0.2),
    "newton": DPLinearRegressor(solver="newton", max_iter=2),
    "frank-wolfe": DPLinearRegressor(solver="frank-wolfe", max_iter=2, **BALL),
}
MODELS = CLASSIFIERS | REGRESSORS
KEPT_ROWS = 2 * N_SAMPLES * (N_FEATURES + 16)  # 16 bits a cell, and up to a block more
# Memory that choices among 256 cells a column need for a moment: counts, scores and keys.
CELLS = 8 * 256 * 8 * N_FEATURES


def in_unit_scale(model):
    facts = {"feature_scale": 1.0}
    if "target_bounds" in model.get_params() and model.target_bounds is None:
        facts["target_bounds"] = (-1, 1)
    return clone(model).set_params(delta=1e-6, **facts)


@functools.lru_cache(maxsize=1)  # of 32 MB
def records(dtype, order):
    X = np.random.default_rng(0).standard_normal((N_SAMPLES, N_FEATURES), dtype=np.float32)
    return np.asarray(X, dtype=dtype, order=order)


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Doubles in both orders are in the next test, too.
@pytest.mark.parametrize(("order", "dtype", "target"), [("C", "f8", "f8"), ("F", "f4", "i8")])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_fit_needs_three_doubles_a_record_and_so_does_a_prediction(model, order, dtype, target):
    # margins, norms and the target as the kernels take it: three per cent of a hundred doubles;
    # Newton steps keep rows of 16 bits too
    X = records(dtype, order)
    y = (np.arange(N_SAMPLES) % 2).astype(target)
    model = in_unit_scale(model)
    model.fit(X[:2000], y[:2000])  # what is imported and kept by a first fit is not counted
    # of Newton steps: a tile of rows, and matrices of features squared
    more = 2**21 + KEPT_ROWS if model.solver == "newton" else 0
    assert 3.3 * PER_RECORD < 0.05 * N_FEATURES * PER_RECORD
    assert peak_of(lambda: model.fit(X, y)) < 3.3 * PER_RECORD + more
    # margins, their sign or largest, and the labels; tiles of one size, whatever X is
    outputs = len(np.atleast_2d(model.coef_))
    assert peak_of(lambda: model.predict(X)) < (outputs + 2.3) * PER_RECORD + 2**21


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_search_of_scales_needs_some_vectors_of_cells_and_nothing_a_record(model, order):
    X, y = records("f8", order), np.arange(N_SAMPLES) % 2
    model = clone(model).set_params(delta=1e-6)
    event = model.fit(X, y).privacy_event_  # what a calibration needs is not counted
    assert event.releases[0].count >= N_FEATURES
    peak = peak_of(lambda: model.fit(X, y))
    assert peak < 3.3 * PER_RECORD + CELLS + (KEPT_ROWS if model.solver == "newton" else 0)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticGCD(solver="gcd", classes=[0, 1]),
        DPLinearRegressor(solver="gcd", penalty="l1"),
    ],
)
def test_a_greedy_fit_of_wide_sparse_records_needs_both_formats_and_six_vectors(
    model, kind, intercept
):
    # M_j, its root, a scale, sums in doubles, which threads share, and integers, and coef_ have an
    # entry for each column, which has seven of X
    n, p = 1000, 68_000
    rng = np.random.default_rng(0)
    columns = (p ** rng.random(740_000)).astype(np.int32)  # popular ones first
    rows = rng.integers(0, n, len(columns), dtype=np.int32)
    X = kind(sparse.coo_array((np.ones(len(columns)), (rows, columns)), shape=(n, p)))
    assert X.indices.dtype == np.int32 and 6.5 * p < X.nnz < 7.5 * p
    y = np.arange(n) % 2 * 1.0
    model = in_unit_scale(model).set_params(max_iter=20, fit_intercept=intercept)
    model.fit(X[:, :100], y)
    convert = X.tocsc if X.format == "csr" else X.tocsr
    own, other = (
        sum(array.nbytes for array in (A.data, A.indices, A.indptr)) for A in (X, convert())
    )
    peak = peak_of(lambda: model.fit(X, y))
    assert np.count_nonzero(model.coef_) > 1  # steps of one column at a time were made
    # half a vector is what has the length of records; an old SciPy needs more while it converts
    converting = peak_of(convert)
    assert peak < max(other, converting) + 6.5 * 8 * p
    assert own + peak < 2.65 * own + max(converting - 1.01 * other, 0)
