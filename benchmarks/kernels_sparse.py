"""Sums over sparse records beside SciPy's product, and the fit that they are made for."""

import multiprocessing
import tempfile
from pathlib import Path

import numpy as np
from kernels_timing import best, gradient_times, sums_of
from scipy import sparse

from dpcd_sklearn import DPLogisticGCD
from dpcd_sklearn.losses import LogisticLoss


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
    reader, everything = sums_of(A, y, LogisticLoss()), np.arange(A.shape[1])

    def in_full():  # nothing is kept without greedy choices
        reader.of(everything, joint=False)

    seconds = best(in_full, repeats)
    yield f"full clipped gradient, {words}", seconds, f"{seconds / product:.2f} products"
    for name, seconds in gradient_times(A, y, LogisticLoss(), repeats):
        yield f"{name}, after a step", seconds, f"{seconds / product:.2f} products"


def _update_rows(A, y, repeats):
    """Sums of all coordinates after a step of one, as greedy solvers need them."""
    reader = sums_of(A, y, LogisticLoss(), greedy=True)
    everything, step = np.arange(A.shape[1]), np.zeros(A.shape[1])
    reader.of(everything, joint=False)
    probe = best(lambda: reader.of(everything, step, joint=False), repeats)
    lengths = np.diff(A.indptr)
    for size in (1, 30, 300, 3000):
        j = int(np.argmin(np.abs(lengths - size)))

        def update(j=j):
            step[j] = 1e-3
            reader.of(everything, step, joint=False)
            step[j] = 0.0

        seconds = max(0.0, best(update, repeats) - probe)
        yield f"update after a column of {lengths[j]:,} records", seconds, ""
    rng = np.random.default_rng(2)
    for words, chances in (("any columns", None), ("columns by their entries", lengths / A.nnz)):
        chosen = rng.choice(A.shape[1], 19, replace=False, p=chances)

        def updates(chosen=chosen):
            fresh = sums_of(A, y, LogisticLoss(), greedy=True)
            for j in (None, *chosen):
                step[j or 0] = 1e-3 if j is not None else 0.0
                fresh.of(everything, step, joint=False)
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
    model = DPLogisticGCD(max_iter=20, solver="gcd", classes=[0, 1], feature_scale=1.0)
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
