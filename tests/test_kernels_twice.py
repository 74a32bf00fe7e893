"""The two compilations of the kernels give the same bits, whatever the shape, layout and type.

Run as a program it prints what this process's compilation gives.
"""

import hashlib
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from dpcd_sklearn.losses import HuberLoss, LogisticLoss, SquaredLoss
from dpcd_sklearn.privacy.accounting._events import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger._accountant import charge
from dpcd_sklearn.privacy.mechanisms._oracle import RecordOracle
from dpcd_sklearn.privacy.sums import _kernels
from dpcd_sklearn.privacy.sums._place import LocalPlace

SHAPES = [(1, 1), (3, 5), (7, 4), (16, 8), (33, 12), (515, 9), (1030, 33), (20_011, 3), (70, 1037)]


def sums(n, p, dtype, order, bounded, joint):
    """Integer sums after steps of one, of some and of all coordinates, extremes included."""
    rng = np.random.default_rng([n, p])
    X = np.asarray(3 * rng.standard_normal((n, p)), dtype=dtype, order=order)
    X[:: max(1, n // 3), 0] = np.finfo(dtype).max
    bounds = (np.full(p, -2.0), np.full(p, 1.5), np.full(p, -0.25)) if bounded else None
    oracle = RecordOracle(
        charge(None, FitEvent((GaussianEvent(20.0, 9),), "replace_one")),
        LocalPlace(X, rng.integers(0, 2, n).astype(float), rng.exponential(size=n), bounds),
        loss=LogisticLoss(), clip=1.5, n_normalizer=n, smoothness=rng.uniform(0.2, 3.0, p + 1),
        fit_intercept=True,
    )  # fmt: skip
    everything, released = np.arange(p + 1), []
    for moved in (everything[:1], everything[::7], everything):
        step = np.zeros(p + 1)
        step[moved] = rng.standard_normal(len(moved)) / np.sqrt(p)
        for block in (everything, everything[p // 2 : p // 2 + 1], everything[::2]):
            block = np.ascontiguousarray(block)
            released.append(oracle._unreleased_sums(block, step, joint=joint)[0])
    return np.concatenate(released)


def digest():
    """One line for all sums and derivatives."""
    told = hashlib.sha256()
    options = (np.float32, np.float64), "CF", (False, True), (False, True)
    for (n, p), *how in itertools.product(SHAPES, *options):
        told.update(sums(n, p, *how).tobytes())
    rng = np.random.default_rng(0)
    margins = np.concatenate([rng.standard_normal(1001) * scale for scale in (1e-9, 1, 40, 1e4)])
    for loss in (SquaredLoss(), LogisticLoss(), HuberLoss()):
        told.update(loss.gradient(margins, (margins > 0.3).astype(float)).tobytes())
    return f"{_kernels.instruction_set()} {told.hexdigest()}"


@pytest.mark.skipif(
    _kernels.instruction_set() == "portable", reason="this processor runs the portable code alone"
)
def test_portable_kernels_give_the_same_bits():
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "DPCD_PORTABLE": "1", "PYTHONPATH": path}
    told = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["portable", digest().split()[1]]


def test_the_logistic_derivative_is_exact_to_a_few_roundings():
    margins = np.concatenate([np.linspace(-700, 700, 20_001), np.linspace(-2, 2, 20_001)])
    exact = 1 / (1 + np.exp(-margins.astype(np.longdouble)))
    sigmoid = LogisticLoss().gradient(margins, np.zeros_like(margins))
    assert np.abs(sigmoid / exact - 1).max() < 6e-16


@pytest.mark.parametrize("margin", [np.inf, -np.inf, np.nan, 1e308, -1e308])
def test_the_logistic_derivative_of_any_margin_is_finite(margin):
    derivative = LogisticLoss().gradient(np.full(7, margin), np.ones(7))
    assert (np.abs(derivative) <= 1).all()


if __name__ == "__main__":
    print(digest())
