"""Records on disk: fits read a memory map in place, never write it, and stay small."""

import hashlib
import sys
import tracemalloc

import numpy as np
import pytest
from forks import in_a_new_process

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.privacy.sums._records import is_read_in_place
from dpcd_sklearn.solvers import SkGD
from dpcd_sklearn.testing import ReproducibleNoise

N_SAMPLES, N_FEATURES = 500, 7
BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
MODELS = {
    "DPLogisticGCD": DPLogisticGCD(max_iter=5),
    "DPRidgeSkGD": DPRidgeSkGD(max_iter=5, target_bounds=(0, 1)),
    "DPLassoCD": DPLassoCD(0.01, epsilon=5.0, max_iter=2),
    "DPLassoCD, bounds": DPLassoCD(0.01, epsilon=5.0, max_iter=2, feature_bounds=(-1, 2)),
    "without noise": DPRidgeSkGD(epsilon=float("inf"), max_iter=50),
    "cd": DPLinearClassifier(solver="cd", max_iter=2),
    "gcd": DPLinearRegressor(solver="gcd", penalty="l1", max_iter=5),
    "skgd, blocks": DPLinearRegressor(solver=SkGD(sampling="block"), max_iter=2),
    "sgd": DPLinearClassifier(solver="sgd", max_iter=1),
    "sgd, multinomial": DPLinearClassifier("multinomial", classes=[0, 1, 2], solver="sgd"),
    "svrg": DPLinearRegressor(solver="svrg", penalty="l2", max_iter=2),
    "compgd": DPLinearRegressor(solver="compgd", penalty=None, max_iter=2),
    "newton": DPLinearRegressor(solver="newton", feature_bounds=(-1, 2), max_iter=2),
    "frank-wolfe": DPLinearClassifier(solver="frank-wolfe", **BALL, max_iter=5),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def records(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES)).astype(dtype)
    return X, (X[:, 0] + rng.standard_normal(N_SAMPLES) > 0).astype(float), rng.random(N_SAMPLES)


def mapped(path, X, order):
    """A read-only map of X."""
    on_disk = np.memmap(path, X.dtype, "w+", shape=X.shape, order=order)
    on_disk[:] = X
    on_disk.flush()
    return np.memmap(path, X.dtype, "r", shape=X.shape, order=order)


def fitted(model, X, y, sample_weight=None):
    model = model.__class__(**model.get_params(deep=False))
    model.set_params(random_state=ReproducibleNoise(0))
    return model.fit(X, y, sample_weight)


@every_model
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_map_gives_the_bits_of_the_array_and_is_not_written(model, order, dtype, tmp_path):
    X, y, weights = records(dtype)
    path = tmp_path / "X"
    on_disk = mapped(path, X, order)
    before = hashlib.sha256(path.read_bytes()).digest()
    in_memory = np.asarray(X, order=order)
    assert not on_disk.flags.writeable
    for sample_weight in (None, weights):
        expected = fitted(model, in_memory, y, sample_weight)
        found = fitted(model, on_disk, y, sample_weight)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.intercept_, expected.intercept_)
        np.testing.assert_array_equal(found.predict(on_disk), expected.predict(in_memory))
        assert np.any(found.coef_ != 0)
    assert type(found.coef_) is type(found.predict(on_disk)) is np.ndarray
    assert hashlib.sha256(path.read_bytes()).digest() == before


@every_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_slices_of_a_map_are_read_in_place_and_give_the_bits_of_their_copy(model, tmp_path):
    """Target and records in one file, or a part of the rows: the usual ways to hold them."""
    X, y, _ = records(np.float64)
    together = np.column_stack([X, y])
    rows = mapped(tmp_path / "C", together, "C")
    columns = mapped(tmp_path / "F", together, "F")
    for part in (rows[:, :-1], columns[100:, 1:-1], rows[100:, 1:-1], rows[:, :1]):
        assert not part.flags.c_contiguous
        assert is_read_in_place(part)
        found = fitted(model, part, rows[-len(part) :, -1])
        expected = fitted(model, np.array(part), y[-len(part) :])
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("kind", "copies"),
    [("C", 1), ("F", 0), ("map", 0), ("a view of a map", 0), ("a few updates", 0)],
)
def test_single_columns_are_read_from_a_copy_of_an_array_in_rows(kind, copies, tmp_path):
    X = np.random.default_rng(0).standard_normal((20_000, 20))
    if "map" in kind:
        X = mapped(tmp_path / "X", X, "C")
        X = np.asarray(X) if "view" in kind else X
    elif kind == "F":
        X = np.asfortranarray(X)
    y, max_iter = np.arange(20_000.0) % 2, 0.1 if "few" in kind else 1
    bounds = {"feature_bounds": (-1, 1), "target_bounds": (0, 1)}
    model = DPLassoCD(solver="cd", max_iter=max_iter, **bounds)
    tracemalloc.start()
    try:
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert copies <= peak / X.nbytes < copies + 0.6


SCRIPT = """
import resource, sys, warnings
import numpy as np
from dpcd_sklearn import DPLassoCD, DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn import DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.solvers import CompGD, SkGD

path, dtype, n, p = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
few, share = {"max_iter": 2}, {"max_iter": 0.2}
ball = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
models = [
    DPLogisticGCD(max_iter=9), DPLogisticGCD(**few), DPRidgeSkGD(**few),
    DPRidgeSkGD(**few, target_bounds=(0, 1)), DPLassoCD(max_iter=0.02),
    DPLassoCD(max_iter=0.02, feature_bounds=(-1, 1)),
    DPLinearClassifier(solver="cd", max_iter=0.02),
    DPLinearRegressor(solver="gcd", penalty="l1", **few),
    DPLinearRegressor(solver=SkGD("block"), max_iter=0.02),
    DPLinearClassifier(solver="sgd", **share),
    DPLinearClassifier("multinomial", classes=[0, 1, 2], solver="sgd", **share),
    DPLinearRegressor(solver="svrg", **share),
    DPLinearRegressor(solver=CompGD(sampling_rate=0.1), penalty=None, **share),
    DPLinearRegressor(solver="frank-wolfe", **ball, **few),
    DPLinearRegressor(solver="skgd", epsilon=float("inf"), **few),
]
models = models[:: int(sys.argv[5])]
warnings.simplefilter("ignore")
X = {order: np.memmap(path, dtype, "r", shape=(n, p), order=order) for order in "CF"}
y = (np.arange(n) % 3 == 0).astype(float)
weights = np.ones(n)
for model in models:  # what is imported and kept by a first fit does not count
    model.fit(X["C"][:2000], y[:2000], weights[:2000]).predict(X["C"][:2000])
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
most = used * 1024 + X["C"].nbytes // 20
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
for order in "CF":
    for model in models:
        model.fit(X[order], y, weights).predict(X[order])
try:  # the limit is one: this very process has no room for a tenth of X
    np.ones(X["C"].nbytes // 80)
except MemoryError:
    print("no room")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of private memory is Linux's")
@pytest.mark.parametrize(
    ("dtype", "every"),  # of how many models one; all take half a minute
    [
        ("float64", 4),
        pytest.param("float64", 1, marks=pytest.mark.slow),
        pytest.param("float32", 1, marks=pytest.mark.slow),
    ],
)
def test_fits_and_predictions_need_a_twentieth_of_the_map_at_most(dtype, every, tmp_path):
    """Under a limit of private memory, which the pages of a read-only map are not counted in."""
    n, p = 100_000, 200_000_000 // 100_000 // np.dtype(dtype).itemsize
    path, rng = tmp_path / "X", np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(0, n, 1000):
            file.write(rng.standard_normal((1000, p), dtype=dtype).tobytes())
    args = path, dtype, str(n), str(p), str(every)
    assert in_a_new_process(SCRIPT, *args, OPENBLAS_NUM_THREADS="1") == "no room\n"
    path.unlink()
