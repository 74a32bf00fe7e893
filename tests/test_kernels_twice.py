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
from unreleased import MovingSums, answers, move

from dpcd_sklearn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits
from dpcd_sklearn.privacy.sums import LocalPlace, _kernels
from dpcd_sklearn.privacy.sums._integer_rows import short_transform

SHAPES = [(1, 1), (3, 5), (7, 4), (16, 8), (33, 12), (515, 9), (1030, 33), (20_011, 3), (70, 1037)]


def sums(n, p, dtype, order, bounded, joint):
    """Integer sums after steps of one, of some and of all coordinates, extremes included."""
    rng = np.random.default_rng([n, p])
    X = np.asarray(3 * rng.standard_normal((n, p)), dtype=dtype, order=order)
    X[:: max(1, n // 3), 0] = np.finfo(dtype).max
    bounds = (np.full(p, -2.0), np.full(p, 1.5), np.full(p, -0.25)) if bounded else None
    event, y = FitEvent((GaussianEvent(20.0, 9),)), rng.integers(0, 2, n).astype(float)
    smoothness = rng.uniform(0.2, 3.0, p + 1)
    units = CoordinateUnits(event, n_samples=n, smoothness=smoothness, clip=1.5, n_normalizer=n)
    place = LocalPlace(X, y, rng.exponential(size=n), bounds)
    asked = MovingSums(units, place, loss=LogisticLoss())
    everything, released = np.arange(p + 1), []
    for moved in (everything[:1], everything[::7], everything):
        step = np.zeros(p + 1)
        step[moved] = rng.standard_normal(len(moved)) / np.sqrt(p)
        for block in (everything, everything[p // 2 : p // 2 + 1], everything[::2]):
            block = np.ascontiguousarray(block)
            released.append(asked.of(block, step, joint=joint)[0])
    return np.concatenate(released)


def sums_of_classes(n, p, dtype, order, alike):
    """The same of three classes, whose norms are the same or not."""
    rng = np.random.default_rng([n, p])
    X = np.asarray(3 * rng.standard_normal((n, p)), dtype=dtype, order=order)
    X[:: max(1, n // 3), 0] = np.finfo(dtype).max
    M = rng.uniform(0.2, 3.0, (3, p + 1))
    place = LocalPlace(X, rng.integers(0, 3, n).astype(float), rng.exponential(size=n))
    M, how = np.where(alike, M[:1], M).ravel(), {"fit_intercept": True, "n_outputs": 3}
    step, question = rng.standard_normal(M.size) / np.sqrt(p), {"clip": 0.1, "limit": 2.0**20}
    released = []
    for whole in (False, True):
        sums = place.moving(MultinomialLoss(), M, **how, whole=whole)
        move(sums, np.arange(M.size), step)
        asked = [(None, 1)] if whole else itertools.product((None, np.arange(M.size)[::2]), (0, 1))
        released += [answers(sums, block, joint=joint, **question) for block, joint in asked]
    return np.concatenate(released)


def second_order(n, p, dtype, order, bounded):
    """Second moments, gradients clipped by bounds of images, and numbers of records in cells."""
    rng = np.random.default_rng([n, p])
    X = np.asarray(3 * rng.standard_normal((n, p)), dtype=dtype, order=order)
    bounds = (np.full(p, -2.0), np.full(p, 1.5), np.full(p, -0.25)) if bounded else None
    place = LocalPlace(X, rng.standard_normal(n), None, bounds)
    sums = place.second_order(SquaredLoss(), np.ones(p + 1), fit_intercept=True)
    transform = np.tril(rng.integers(0, 2**20, (p + 1, p + 1)), -1) / 2.0**5 // (p + 1)
    transform = np.asfortranarray(transform + 2.0**20 * np.eye(p + 1))
    values = np.linalg.svd(transform, compute_uv=False)
    sums.measure(transform, values[0] * (1 + 1e-9), values[-1] * (1 - 1e-9))
    released = [sums.gram(2.0, 2.0**11), sums.gradient(np.ones(p + 1), 1.0, 2.0**20)]
    sums.measure(transform, values[0] * 1.001, values[-1] * 0.999, short_transform(transform))
    released.append(sums.gradient(np.ones(p + 1), 1.0, 2.0**36).astype(float))
    edges = np.full(p, -3.0), np.full(p, 5.0)
    released += [place.counts("features"), place.counts("features", edges=edges)]
    return np.concatenate([found.ravel() for found in released])


def digest():
    """One line for all sums and derivatives."""
    told = hashlib.sha256()
    options = (np.float32, np.float64), "CF", (False, True), (False, True)
    for (n, p), *how in itertools.product(SHAPES, *options):
        told.update(sums(n, p, *how).tobytes())
        told.update(sums_of_classes(n, p, *how[:3]).tobytes())
        if p < 100:
            told.update(second_order(n, p, *how[:3]).tobytes())
    rng = np.random.default_rng(0)
    margins = np.concatenate([rng.standard_normal(1001) * scale for scale in (1e-9, 1, 40, 1e4)])
    for loss in (SquaredLoss(), LogisticLoss(), HuberLoss()):
        told.update(loss.gradient(margins, (margins > 0.3).astype(float)).tobytes())
    for n_classes in (2, 3, 7):  # and numbers of records that are no multiple of a vector
        rows = margins[: len(margins) // n_classes * n_classes].reshape(-1, n_classes)
        told.update(MultinomialLoss().gradient(rows, np.arange(len(rows)) % n_classes).tobytes())
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


def exponential(x):
    """The same operations as dpcd_exp, each of them exact or correctly rounded by IEEE 754."""
    magic = 1.5 * 2.0**52
    x = np.where(x < 708, x, 708.0)
    x = np.where(x > -708, x, -708.0)
    k = x * 1.4426950408889634074 + magic
    power = ((k.view(np.int64) + 1023) << 52).view(float)
    k -= magic
    r = (x - k * float.fromhex("0x1.62e42fefa0000p-1")) - k * float.fromhex("0x1.cf79abc9e3b3ap-40")
    r2 = r * r
    r4 = r2 * r2
    low = (1 + r) + (0.5 + r * (1 / 6)) * r2
    middle = ((1 / 24) + r * (1 / 120)) + ((1 / 720) + r * (1 / 5040)) * r2
    high = ((1 / 40320) + r * (1 / 362880)) + ((1 / 3628800) + r * (1 / 39916800)) * r2
    return ((low + middle * r4) + (high + r4 * (1 / 479001600)) * (r4 * r4)) * power


def test_derivatives_have_the_bits_of_their_formula_on_every_machine():
    margins = np.random.default_rng(0).integers(-(2**26), 2**26, size=(1003, 5)) / 2.0**20
    margins[::7] *= 20.0  # beyond the range of exp
    target = np.arange(len(margins)) % 5
    powers = exponential(margins - margins.max(axis=1, keepdims=True))
    total = np.zeros(len(margins))
    for column in powers.T:
        total += column
    expected = powers / total[:, None] - (target[:, None] == np.arange(5))
    np.testing.assert_array_equal(MultinomialLoss().gradient(margins, target), expected)
    margin = margins[:, 0].copy()
    expected = 1 / (1 + exponential(-margin)) - (target > 2)
    np.testing.assert_array_equal(LogisticLoss().gradient(margin, target > 2), expected)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_multinomial_derivative_is_exact_to_a_few_roundings(n_classes):
    margins = np.random.default_rng(n_classes).uniform(-300, 300, (20_001, n_classes))
    margins[::2] /= 100.0
    long = margins.astype(np.longdouble)
    powers = np.exp(long - long.max(axis=1, keepdims=True))
    exact = powers / powers.sum(axis=1, keepdims=True)
    # nothing is the target, so that probabilities are seen with all their bits
    probabilities = MultinomialLoss().gradient(margins, np.full(len(margins), -1.0))
    # margins less their maximum are rounded before the exponential: 2^-53 of up to 600 each
    assert np.abs(probabilities / exact - 1).max() < 600 * 2.0**-53 + 2e-15
    near = np.abs(margins).max(axis=1) < 3.5
    assert np.abs(probabilities[near] / exact[near] - 1).max() < 3e-15


@pytest.mark.parametrize("margin", [np.inf, -np.inf, np.nan, 1e308, -1e308])
def test_the_derivative_of_any_margin_is_finite(margin):
    margins = np.zeros((7, 9))
    margins[:, 0], margins[3] = margin, margin
    assert (np.abs(MultinomialLoss().gradient(margins, np.zeros(7))) <= 1).all()
    assert (np.abs(LogisticLoss().gradient(np.full(7, margin), np.ones(7))) <= 1).all()


if __name__ == "__main__":
    print(digest())
