"""Greedy choices: all Gumbels drawn, or lazily."""

import numpy as np
from kernels_timing import best
from scipy import sparse
from sklearn.base import clone
from unreleased import choices

from dpcd_sklearn import DPLogisticGCD
from dpcd_sklearn.privacy.mechanisms._lazy_choice import LazyChoice
from dpcd_sklearn.privacy.noise._noise import NoiseSource
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import ReproducibleNoise


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

            def seconds_of(count, scores=scores, size=size):
                return best(lambda: choices(lazy, scores, size, source, count), repeats)

            seconds = (seconds_of(20) - seconds_of(0)) / 20
            yield f"lazy, {name}, {size} at once", seconds, f"{full / seconds:.1f} times as fast"


def greedy_rows(X, name, repeats):
    """A whole update of DP-GCD: sums, scores, choice and step."""
    y, updates = np.arange(X.shape[0]) % 2.0, {}
    for selection in ("full", "lazy"):
        model = DPLogisticGCD(
            l1_ratio=1.0, random_state=ReproducibleNoise(0), solver=GCD(selection=selection)
        )
        model.set_params(feature_scale=1.0)
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
