"""How fast records are read: kernels against the memory's bandwidth, fits against scikit-learn's.

    python benchmarks/kernels.py [--quick]

Everything is measured in one run, on one thread; only ratios say something about other machines.
The kernels are timed with the rounding to the integer grid, without noise. A time is the least of
several, because other work on a machine can only add to it.
"""

import argparse
import multiprocessing
import platform
import tempfile
import time
import warnings
from pathlib import Path

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
from dpcd_sklearn.privacy._events import FitEvent, GaussianEvent, SelectionEvent
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


def oracle(X, y, loss, greedy=False):
    releases = (GaussianEvent(10.0, 1),) + greedy * (SelectionEvent(0.5, 1),)
    event = FitEvent(releases, "replace_one")
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
    source, rng, count = NoiseSource(None), np.random.Generator(np.random.PCG64()), 200_000
    rows = (
        ("Gaussian, cryptographic and exact", lambda: source.gaussians(count, 30)),
        ("Gaussian of NumPy", lambda: rng.standard_normal(count)),
        ("Gumbel, cryptographic", lambda: source.log_exponentials(count)),
        ("Gumbel of NumPy", lambda: rng.gumbel(size=count)),
    )
    for name, draw in rows:
        seconds = best(draw, 3 * repeats)
        yield name, seconds, f"{seconds / count * 1e9:.1f} ns each"


def zipf_records(n, p, n_draws):
    """Sparse records by column: the k-th has about 1 / k of the entries, and many have none."""
    rng = np.random.default_rng(0)
    columns = (float(p) ** rng.random(n_draws)).astype(np.int64) - 1
    cells = np.unique(columns * n + rng.integers(0, n, n_draws))
    columns, rows = np.divmod(cells, n)
    starts = np.searchsorted(columns, np.arange(p + 1))
    return sparse.csc_array((rng.standard_normal(len(rows)), rows, starts), shape=(n, p))


def sparse_rows(n, p, n_draws, repeats):
    A = zipf_records(n, p, n_draws)
    rng = np.random.default_rng(1)
    y, r = rng.integers(0, 2, n).astype(float), rng.standard_normal(n)
    for dtype, index in ((np.float64, np.int32), (np.float64, np.int64), (np.float32, np.int32)):
        X = A.astype(dtype)
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
        yield from _pass_rows(X, y, r.astype(dtype), repeats)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    yield from _update_rows(A, y, repeats)
    yield from _sparse_fit_rows(A.tocsr(), y)


def _pass_rows(A, y, r, repeats):
    """Sums of all coordinates in full, beside SciPy's product."""
    words = f"{A.dtype.name}, {A.indices.dtype.name}"
    product = best(lambda: A.T @ r, repeats)
    yield f"A.T @ r, {words}", product, f"{product / A.nnz * 1e9:.1f} ns for each of {A.nnz:,}"
    reader, everything = oracle(A, y, LogisticLoss()), np.arange(A.shape[1])

    def in_full():  # nothing is kept without greedy choices
        reader._unreleased_sums(everything, joint=False)

    seconds = best(in_full, repeats)
    yield f"full clipped gradient, {words}", seconds, f"{seconds / product:.2f} products"
    for name, seconds in gradient_times(A, y, repeats):
        yield f"{name} after a step of all", seconds, f"{seconds / product:.2f} products"


def _update_rows(A, y, repeats):
    """Sums of all coordinates after a step of one, as greedy solvers need them."""
    reader = oracle(A, y, LogisticLoss(), greedy=True)
    everything, step = np.arange(A.shape[1]), np.zeros(A.shape[1])
    reader._unreleased_sums(everything, joint=False)
    probe = best(lambda: reader._unreleased_sums(everything, step, joint=False), repeats)
    lengths = np.diff(A.indptr)
    for size in (1, 30, 300, 3000):
        j = int(np.argmin(np.abs(lengths - size)))

        def update(j=j):
            step[j] = 1e-3
            reader._unreleased_sums(everything, step, joint=False)
            step[j] = 0.0

        seconds = max(0.0, best(update, repeats) - probe)
        yield f"update after a column of {lengths[j]:,} records", seconds, ""
    rng = np.random.default_rng(2)
    for words, chances in (("any columns", None), ("columns by their entries", lengths / A.nnz)):
        chosen = rng.choice(A.shape[1], 19, replace=False, p=chances)

        def updates(chosen=chosen):
            fresh = oracle(A, y, LogisticLoss(), greedy=True)
            for j in (None, *chosen):
                step[j or 0] = 1e-3 if j is not None else 0.0
                fresh._unreleased_sums(everything, step, joint=False)
                step[j or 0] = 0.0

        seconds = best(updates, 2)
        yield f"20 greedy sums, of {words}", seconds, "with both formats, without noise"


def _sparse_fit_rows(X, y):
    """A greedy fit in a process of its own, for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "records.npz")
        sparse.save_npz(path, X, compressed=False)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, above = pool.apply(_fit_and_peak, (path, y))
    matrix = sum(array.nbytes for array in (X.data, X.indices, X.indptr))
    yield (
        "DPLogisticGCD, 20 updates, sparse",
        seconds,
        f"with noise; peak of {above / matrix:.2f} matrices beside the matrix" if above else "",
    )


def _fit_and_peak(path, y):
    """Seconds of a fit, and bytes of its peak above what was there before (0: not on Linux)."""
    X = sparse.load_npz(path)
    model = DPLogisticGCD(max_iter=20, classes=[0, 1])
    model.fit(X[: len(y) // 10, :100], y[: len(y) // 10])  # imports
    before = _peak()
    seconds = best(lambda: model.fit(X, y), 1)
    return seconds, _peak() - before


def _peak():
    """The largest resident memory of this process; getrusage would count its parent's too."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0
    fields = (line.split() for line in status.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in fields if words[0] == "VmHWM:")


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
        sparse_rows(n // 5, n * 68 // 5, n * 118, repeats),  # 9 million entries
        fit_rows(n, 100, max(2, repeats // 3)),
    )
    with threadpool_limits(1):
        for table in tables:
            for name, seconds, remark in table:
                print(f"{name:48s} {seconds * 1e3:10.2f} ms   {remark}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    main()
