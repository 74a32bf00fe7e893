"""How fast records are read: kernels against the memory's bandwidth, fits against scikit-learn's.

    python benchmarks/kernels.py [--quick]

Everything is measured in one run, on one thread; only ratios say something about other machines.
The kernels are timed with the rounding to the integer grid, without noise. A time is the least of
several, because other work on a machine can only add to it.
"""

import argparse
import warnings

import numpy as np
from kernels_choices import selection_rows
from kernels_sparse import sparse_rows
from kernels_timing import best, gradient_times, problem
from reproduce_papers import print_environment
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression
from threadpoolctl import threadpool_limits
from unreleased import answers, move

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyLeakWarning,
)
from dpcd_sklearn.losses import LogisticLoss, MultinomialLoss
from dpcd_sklearn.privacy.noise._noise import NoiseSource
from dpcd_sklearn.privacy.sums._kernels import instruction_set
from dpcd_sklearn.privacy.sums._place import LocalPlace
from dpcd_sklearn.testing import ReproducibleNoise

UNIT_SCALE = {"feature_scale": 1.0, "random_state": ReproducibleNoise(0)}
UNIT_TARGET = {"target_bounds": (-1, 1)}

# ---- dense kernels ------------------------------------------------------------------------------


def read_bandwidth(X, repeats):
    """Bytes a second of the fastest way to read X that we know of."""
    flat = X.ravel(order="K")
    fastest = min(best(lambda: flat @ flat, repeats), best(flat.sum, repeats))
    return X.nbytes / fastest


def kernel_rows(n, p, repeats):
    """Each sum against what reading the records takes."""
    X, y = problem(n, p)
    for dtype in (np.float64, np.float32):
        for order in "CF":
            A = np.asarray(X, dtype=dtype, order=order)
            bandwidth = read_bandwidth(A, repeats)
            yield (
                f"reading n = {n:,}, {dtype.__name__} {order}",
                A.nbytes / bandwidth,
                f"{bandwidth / 1e9:.1f} GB/s",
            )
            for name, seconds in gradient_times(A, y, LogisticLoss(), repeats):
                share = A.nbytes / seconds / bandwidth
                yield f"{name} gradient, {dtype.__name__} {order}", seconds, f"{share:.0%} of read"
            w = np.ones(p, dtype=dtype)
            twice = best(lambda A=A, w=w: A.T @ (A @ w), repeats)
            yield (
                f"two products in NumPy, {dtype.__name__} {order}",
                twice,
                (f"{A.nbytes / twice / bandwidth:.0%} of read"),
            )


def thread_rows(n, p, repeats):
    """The same sums by two threads."""
    X, y = problem(n, p)
    for order in "CF":
        A, times = np.asarray(X, order=order), []
        for n_threads in (1, 2):
            with threadpool_limits(n_threads, user_api="openmp"):
                times.append(dict(gradient_times(A, y, LogisticLoss(), repeats, n_threads)))
        for name, seconds in times[1].items():
            words = f"{times[0][name] / seconds:.2f} times as fast as one"
            yield f"{name} gradient, {order}, two threads", seconds, words


def class_rows(n, p, repeats, K=10):
    """Norm-clipped sums of all classes after a step of all, and at a stated iterate."""
    X, _ = problem(n, p)
    question, everything = {"joint": True, "clip": 1.0, "limit": 2.0**22}, np.arange(K * p)
    y, step = np.random.default_rng(0).integers(0, K, n).astype(float), np.full(K * p, 1e-9)
    for order in "CF":
        place, times = LocalPlace(np.asarray(X, order=order), y), []
        for n_outputs, loss in ((1, LogisticLoss()), (K, MultinomialLoss())):
            size = n_outputs * p
            sums = place.moving(loss, np.ones(size), fit_intercept=False, n_outputs=n_outputs)

            def after_a_step(sums=sums, size=size):
                move(sums, everything[:size], step[:size])
                answers(sums, **question)

            times.append(best(after_a_step, repeats))
        words = f"{times[1] / times[0]:.1f} times as long as one output"
        yield f"gradient of {K} classes, {order}", times[1], words
        sums = place.stated(loss, np.ones(p), fit_intercept=False, n_outputs=K)
        seconds = best(lambda sums=sums: answers(sums, coef=step, **question), repeats)
        words = f"{seconds / times[1]:.2f} times as long as after a step"
        yield f"the same at a stated iterate, {order}", seconds, words


def coordinate_rows(n, p, repeats):
    X, y = problem(n, p)
    A = np.asfortranarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lasso = Lasso(1e-9, selection="random", max_iter=20, tol=0, precompute=False, copy_X=False,
                      fit_intercept=False)  # fmt: skip
        epoch = best(lambda: lasso.fit(A, y), repeats) / 20
    yield "Lasso of scikit-learn, an epoch", epoch, f"{epoch / (n * p) * 1e9:.2f} ns an element"
    settings = {"solver": "cd", "fit_intercept": False, **UNIT_SCALE}
    for model in (DPLinearRegressor(**settings, **UNIT_TARGET), DPLinearClassifier(**settings)):
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


def fit_rows(n, p, repeats):
    X, y = problem(n, p)
    fits = {
        "LogisticRegression of scikit-learn": LogisticRegression(),
        "DPLogisticGCD, 50 updates": DPLogisticGCD(max_iter=50, solver="gcd", **UNIT_SCALE),
        "DPRidgeSkGD, 50 full updates": DPRidgeSkGD(max_iter=50, **UNIT_SCALE, **UNIT_TARGET),
        "the same, scales are found": DPRidgeSkGD(max_iter=50, random_state=ReproducibleNoise(0)),
        "DPLassoCD, one pass": DPLassoCD(max_iter=1, solver="cd", **UNIT_SCALE, **UNIT_TARGET),
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
    print_environment()
    print(f"n = {n:,}, p = 100, one thread but where stated, kernels: {instruction_set()}")
    tables = (
        kernel_rows(n, 100, repeats),
        kernel_rows(4 * n, 100, max(2, repeats // 2)),  # beyond any cache
        thread_rows(n, 100, repeats),
        class_rows(n, 100, max(2, repeats - 2)),
        coordinate_rows(n, 100, max(2, repeats - 2)),
        noise_rows(repeats),
        sparse_rows(n // 5, n * 68 // 5, n * 118, repeats),  # 9 million entries
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
