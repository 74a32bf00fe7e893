"""Common ground of all kernels' benchmarks: times, problems, and sums without noise."""

import sys
import time
from pathlib import Path

import numpy as np

from dpcd_sklearn.privacy.accounting._events import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy.mechanisms._units import CoordinateUnits
from dpcd_sklearn.privacy.sums._place import LocalPlace

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from unreleased import MovingSums  # noqa: E402


def best(call, repeats):
    """The least of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def sums_of(X, y, loss, greedy=False, n_threads=1):
    releases = (GaussianEvent(10.0, 1),) + greedy * (SelectionEvent(0.5, 1),)
    event = FitEvent(releases, "replace_one")
    units = CoordinateUnits(
        event, n_samples=len(y), smoothness=np.ones(X.shape[1]), clip=3.0, n_normalizer=len(y)
    )
    place = LocalPlace(X, y, n_threads=n_threads)
    return MovingSums(units, place, loss=loss, fit_intercept=False)


def problem(n, p):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(float)


def gradient_times(X, y, loss, repeats, n_threads=1):
    """Name and seconds of the two sums of all coordinates, after the steps that come before them.

    Greedy updates move one coordinate before each coordinate-clipped sum, full updates all of them
    before each norm-clipped one.
    """
    reader = sums_of(X, y, loss, n_threads=n_threads)
    everything, step = np.arange(X.shape[1]), np.zeros(X.shape[1])
    step[0] = 1e-9
    for name, joint in (("coordinate-clipped", False), ("norm-clipped", True)):

        def sums(joint=joint, step=step):
            reader.of(everything, step, joint=joint)

        yield name, best(sums, repeats)
        step = np.full(X.shape[1], 1e-9)
