"""How fast records are read: kernels against the memory's bandwidth, fits against scikit-learn's.

    python benchmarks/kernels.py [--quick]

Everything is measured in one run, on one thread; only ratios say something about other machines.
The kernels are timed with the rounding to the integer grid, without noise. A time is the least of
several, because other work on a machine can only add to it.
"""

import argparse
import platform
import time
import warnings

import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression
from threadpoolctl import threadpool_limits

import dpcd_sklearn
from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyLeakWarning,
)
from dpcd_sklearn.losses import LogisticLoss
from dpcd_sklearn.privacy._accountant import charge
from dpcd_sklearn.privacy._events import FitEvent, GaussianEvent
from dpcd_sklearn.privacy._lazy_choice import LazyChoice
from dpcd_sklearn.privacy._noise import NoiseSource
from dpcd_sklearn.privacy._oracle import RecordOracle


def best(call, repeats):
    """The least of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def oracle(X, y, loss):
    event = FitEvent((GaussianEvent(10.0, 1),), "replace_one")
    return RecordOracle(
        charge(None, event), X, y, loss=loss, smoothness=np.ones(X.shape[1]), clip=3.0,
        n_normalizer=len(y), fit_intercept=False,
    )  # fmt: skip


def problem(n, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(float)


# ---- dense kernels ------------------------------------------------------------------------------


def read_bandwidth(X, repeats):
    """Bytes a second of the fastest way to read X that we know of."""
    flat = X.ravel(order="K")
    fastest = min(best(lambda: flat @ flat, repeats), best(flat.sum, repeats))
    return X.nbytes / fastest


def gradient_times(X, y, repeats):
    """Name and seconds of the two sums of all coordinates, after a step of all of them."""
    reader, everything = oracle(X, y, LogisticLoss()), np.arange(X.shape[1])
    step = np.full(X.shape[1], 1e-9)
    for name, joint in (("coordinate-clipped", False), ("norm-clipped", True)):
        yield (
            name,
            best(lambda j=joint: reader._unreleased_sums(everything, step, joint=j), repeats),
        )


def kernel_rows(n, p, repeats):
    X, y = problem(n, p)
    for dtype in (np.float64, np.float32):
        for order in "CF":
            A = np.asarray(X, dtype=dtype, order=order)
            bandwidth = read_bandwidth(A, repeats)
            for name, seconds in gradient_times(A, y, repeats):
                share = A.nbytes / seconds / bandwidth
                yield f"{name} gradient, {dtype.__name__} {order}", seconds, f"{share:.0%} of read"
            w = np.ones(p, dtype=dtype)
            twice = best(lambda A=A, w=w: A.T @ (A @ w), repeats)
            yield (
                f"two products in NumPy, {dtype.__name__} {order}",
                twice,
                (f"{A.nbytes / twice / bandwidth:.0%} of read"),
            )


def coordinate_rows(n, p, repeats):
    X, y = problem(n, p)
    A = np.asfortranarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lasso = Lasso(1e-9, selection="random", max_iter=20, tol=0, precompute=False, copy_X=False,
                      fit_intercept=False)  # fmt: skip
        epoch = best(lambda: lasso.fit(A, y), repeats) / 20
    yield "Lasso of scikit-learn, an epoch", epoch, f"{epoch / (n * p) * 1e9:.2f} ns an element"
    settings = {"solver": "cd", "random_state": 0, "fit_intercept": False}
    for model in (DPLinearRegressor(**settings), DPLinearClassifier(**settings)):
        fits = [clone(model).set_params(max_iter=passes) for passes in (1, 11)]
        once, more = (best(lambda m=m: m.fit(A, y), repeats) for m in fits)
        seconds = (more - once) / 10
        yield (
            f"a pass of coordinate steps, {model.loss}",
            seconds,
            (f"{seconds / (n * p) * 1e9:.2f} ns an element, {seconds / epoch:.2f} epochs"),
        )


# ---- noise, sparse records, whole fits ----------------------------------------------------------


def noise_rows(repeats):
    source, count = NoiseSource(None), 200_000
    seconds = best(lambda: source.gaussians(count, 30), repeats)
    yield "Gaussian, cryptographic and exact", seconds, f"{seconds / count * 1e9:.0f} ns each"


def score_shapes(p):
    """Scores over b of 2 p candidates: what is easy and what is hard for a draw by rejection."""
    rng = np.random.default_rng(0)
    near = np.full(2 * p, -0.999 * np.log(2))  # accepted every other time
    near[0] = 0.0
    peaked = np.zeros(2 * p)
    peaked[rng.integers(0, 2 * p, 5)] = 20.0
    return {
        "flat": np.zeros(2 * p),
        "within one octave": rng.uniform(0, 0.7, 2 * p),
        "below an octave": near,
        "five peaks": peaked,
        "geometric": -0.01 * np.arange(2 * p),
        "far apart": rng.uniform(0, 40_000, 2 * p),
    }


def choice_rows(p, repeats):
    """One choice among 2 p candidates by scores that are known."""
    source, lazy = NoiseSource(None), LazyChoice(p)
    full = best(lambda: source.log_exponentials(2 * p), repeats)
    yield f"2p Gumbels, p = {p:,}", full, f"{full / (2 * p) * 1e9:.0f} ns each"
    for name, scores in score_shapes(p).items():
        for size in (1, 8):

            def choices(count, scores=scores, size=size):
                return best(lambda: lazy._choices(scores, size, source, count), repeats)

            seconds = (choices(20) - choices(0)) / 20
            yield f"lazy, {name}, {size} at once", seconds, f"{full / seconds:.1f} times as fast"


def greedy_rows(X, name, repeats):
    """A whole update of DP-GCD: sums, scores, choice and step."""
    y, updates = np.arange(X.shape[0]) % 2.0, {}
    for selection in ("full", "lazy"):
        model = DPLogisticGCD(l1_ratio=1.0, random_state=0, selection=selection)
        times = []
        for max_iter in (1, 21):
            fit = clone(model).set_params(max_iter=max_iter).fit
            times.append(best(lambda fit=fit: fit(X, y), repeats))
        updates[selection] = seconds = (times[1] - times[0]) / 20
        ratio = updates["full"] / seconds
        yield f"update, {selection}, {name}", seconds, f"{ratio:.1f} times as fast"


def selection_rows(n, p, repeats):
    yield from choice_rows(p, repeats)
    X = sparse.random_array((n, p), density=1e-4, format="csr", rng=np.random.default_rng(0))
    yield from greedy_rows(X, f"{X.nnz:,} entries", repeats)
    if p <= 100_000:
        dense = np.random.default_rng(0).standard_normal((50, p))
        yield from greedy_rows(dense, "50 dense records", repeats)


def sparse_rows(n, p, n_entries, repeats):
    rng = np.random.default_rng(0)
    columns = np.minimum(rng.zipf(1.3, n_entries) - 1, p - 1)
    rare = columns == p - 1
    columns[rare] = rng.integers(0, p, rare.sum())
    X = sparse.csr_array(
        (np.ones(n_entries), (rng.integers(0, n, n_entries), columns)), shape=(n, p)
    )
    X.sum_duplicates()
    A, r, y = X.tocsc(), rng.standard_normal(n), rng.integers(0, 2, n).astype(float)
    product = best(lambda: A.T @ r, repeats)
    yield f"A.T @ r in SciPy, {X.nnz:,} entries", product, f"{product / X.nnz * 1e9:.1f} ns each"
    for name, seconds in gradient_times(A, y, repeats):
        yield f"{name} gradient, sparse", seconds, f"{seconds / product:.1f} products"


def fit_rows(n, p, repeats):
    X, y = problem(n, p)
    fits = {
        "LogisticRegression of scikit-learn": LogisticRegression(),
        "DPLogisticGCD, 50 updates": DPLogisticGCD(max_iter=50, random_state=0),
        "DPRidgeSkGD, 50 full updates": DPRidgeSkGD(max_iter=50, random_state=0),
        "DPLassoCD, one pass": DPLassoCD(0.01, max_iter=1, random_state=0),
    }
    small, times = (X[:1000], y[:1000]), {}
    for name, model in fits.items():
        model.fit(*small)  # the calibration is kept
        times[name] = best(lambda m=model: m.fit(X, y), repeats)
        ratio = times[name] / times["LogisticRegression of scikit-learn"]
        yield name, times[name], f"{ratio:.2f} of scikit-learn's logistic fit"
    model = fits["DPLogisticGCD, 50 updates"]
    narrow = X.astype(np.float32)
    seconds = best(lambda: model.fit(narrow, y), repeats)
    ratio = times["DPLogisticGCD, 50 updates"] / seconds
    yield "DPLogisticGCD, 50 updates, float32", seconds, f"{ratio:.2f} times as fast as float64"
    seconds = best(lambda: model.fit(*small), 20)
    yield "DPLogisticGCD on 1,000 records", seconds, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    quick = parser.parse_args().quick
    n, repeats = (10_000, 3) if quick else (100_000, 7)
    versions = {m.__name__: m.__version__ for m in (dpcd_sklearn, np, scipy, sklearn)}
    print(platform.platform(), platform.python_version(), versions, f"n={n:,} p=100, one thread")
    tables = (
        kernel_rows(n, 100, repeats),
        coordinate_rows(n, 100, max(2, repeats // 3)),
        noise_rows(repeats),
        sparse_rows(n // 5, n * 10, n * 50, repeats),
        selection_rows(n // 50, 100_000, repeats),
        selection_rows(n // 50, 1_000_000, max(2, repeats // 2)),
        fit_rows(n, 100, max(2, repeats // 3)),
    )
    with threadpool_limits(1):
        for table in tables:
            for name, seconds, remark in table:
                print(f"{name:48s} {seconds * 1e3:10.2f} ms   {remark}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    main()
