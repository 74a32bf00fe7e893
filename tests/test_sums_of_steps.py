"""Gaussian sums of preprocessing steps: what is summed; test_neighbours.py has their bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from tables import table

from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import (
    Oracle,
    PresentUnits,
    RunningUnits,
    TargetUnits,
    _cell_sums,
)
from dpcd_sklearn.privacy.sums import GroupPlace, LocalPlace, PresentPlace

NAN = math.nan
N_CELLS = 256
N_GROUPS, P = 3, 2


def once(Units, place, n, z=2.0, **facts):
    """An oracle of one release of n records."""
    event = FitEvent((GaussianEvent(z, 1),))
    units = Units(event, n_samples=n, n_normalizer=n, **facts)
    return Oracle(charge(None, event), units, place)


def present_oracle(X, z=2.0):
    return once(PresentUnits, PresentPlace(X), len(X), z, n_columns=X.shape[1])


def target_oracle(codes, target, n_classes=0, z=2.0, cv=1):
    """An oracle of codes of shape (n_samples, n_columns)."""
    n, p = codes.shape
    place = GroupPlace(list(codes.T), [N_GROUPS] * p, target, n_classes, np.arange(n) % cv, cv)
    return once(TargetUnits, place, n, z, n_columns=p, n_classes=n_classes)


# ---- means of what is present --------------------------------------------------------------------


@table("layout", ["C", "F", "csr", "csc"])
@table("dtype", [np.float32, np.float64])
def test_what_is_missing_is_counted_nowhere(layout, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 5)) * (rng.random((200, 5)) < 0.6)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = NAN
    X[:, 4] = NAN
    makes = {"C": np.ascontiguousarray, "F": np.asfortranarray}
    makes |= {"csr": sparse.csr_array, "csc": sparse.csc_matrix}
    place = PresentPlace(makes[layout](X))
    edges = np.full(5, -2.0), np.full(5, 2.0)
    for kind in ({}, {"edges": edges}):
        found = place.counts("features", **kind)
        for j in range(5):
            kept = X[~np.isnan(X[:, j]), j : j + 1]
            own = {name: (e[0][j : j + 1], e[1][j : j + 1]) for name, e in kind.items()}
            expected = LocalPlace(kept).counts("features", **own)[0] if len(kept) else 0
            np.testing.assert_array_equal(found[j], expected)
    with pytest.raises(ValueError, match="columns are counted"):
        place.counts("row_norm")


def test_means_are_those_of_the_present_with_the_noise_that_is_charged():
    X = np.array([[0.5, NAN], [-0.25, 0.5], [0.5, 0.5], [9.0, NAN]] * 500)
    z, n = 2.0, len(X)
    lo, hi = np.array([-1.0, -1.0]), np.array([1.0, 3.0])
    found = np.array([present_oracle(X, z).release(lo, hi) for _ in range(400)])
    # cells are a 256th wide; clipped to 1
    np.testing.assert_allclose(found.mean(axis=0), [0.4375, 0.5], atol=0.01)
    # the deviation of a quotient, in half-widths: both sums have the noise
    noise, share = z * 2 * math.sqrt(2) / n, np.array([1.0, 0.5])
    mean = (np.array([0.4375, 0.5]) - [0.0, 1.0]) / [1.0, 2.0]
    expected = noise / share * np.sqrt(1 + mean**2) * [1.0, 2.0]
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.15)


def test_an_empty_column_has_the_middle_nearly_and_bounds_hold():
    X = np.full((1000, 3), NAN)
    X[:, 1] = 1e300
    lo, hi = np.array([0.0, 0.0, 5.0]), np.array([10.0, 10.0, 5.0])
    found = present_oracle(X).release(lo, hi)
    assert (lo <= found).all() and (found <= hi).all() and found[2] == 5.0 and found[1] > 9.5


# ---- running counts ------------------------------------------------------------------------------


def test_the_constants_are_the_largest_of_all_pairs_of_cells():
    """In fractions: of columns i < j all that counts is how long each is, and their overlap."""
    lags = [Fraction(math.comb(2 * k, k), 4**k) for k in range(N_CELLS)]
    np.testing.assert_allclose(_cell_sums._LAGS, list(map(float, lags)), rtol=1e-13)
    squares = np.cumsum([float(lag * lag) for lag in lags])
    assert 0 < _cell_sums._LONGEST - math.sqrt(squares[-1]) < 1e-4
    worst = 0.0
    for apart in range(1, N_CELLS):
        overlap = np.cumsum(_cell_sums._LAGS[apart:] * _cell_sums._LAGS[: N_CELLS - apart])
        # cell i has 256 - i entries, cell i + apart that many fewer
        lengths = np.arange(1, N_CELLS - apart + 1)
        both = squares[lengths + apart - 1] + squares[lengths - 1] - 2 * overlap[lengths - 1]
        worst = max(worst, both.max())
    assert 0 < _cell_sums._APART - math.sqrt(worst) < 1e-4


def test_it_is_the_square_root_of_running_sums():
    ones = np.tril(np.ones((N_CELLS, N_CELLS)))
    np.testing.assert_allclose(_cell_sums._ROOT @ _cell_sums._ROOT, ones, atol=1e-12)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_counts_are_those_below_each_edge(layout):
    rng = np.random.default_rng(0)
    X = layout(rng.uniform(-0.2, 1.2, (3000, 2)))
    oracles = (once(RunningUnits, LocalPlace(X), len(X), 0.5, n_columns=2) for _ in range(30))
    runs = np.array([one.release(np.zeros(2), np.ones(2), len(X)) for one in oracles])
    edges = np.arange(1, N_CELLS) / N_CELLS
    expected = np.array([(X[:, [j]] < edges).sum(axis=0) for j in range(2)])
    assert np.abs(runs.mean(axis=0)[:, :-1] - expected).max() < 6
    np.testing.assert_allclose(runs[:, :, -1], len(X))


# ---- sums of the target --------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 2])
def test_sums_are_those_of_folds_and_groups_with_the_noise_that_is_charged(n_classes):
    rng = np.random.default_rng(0)
    n, z, cv = 600, 5.0, 3
    codes = rng.integers(0, N_GROUPS, (n, P))
    target = rng.integers(0, 2, n) if n_classes else rng.uniform(-1, 1, n)
    oracles = (target_oracle(codes, target, n_classes, z, cv=cv) for _ in range(200))
    runs = [one.release(one._place.shapes) for one in oracles]
    for j in range(P):
        found = np.array([run[j] for run in runs])
        expected = np.zeros((cv, N_GROUPS, 2))
        for i in range(n):
            expected[i % cv, codes[i, j]] += np.eye(2)[target[i]] if n_classes else [target[i], 1]
        std = z * math.sqrt((2 if n_classes else 4) * P)
        assert np.abs(found.mean(axis=0) - expected).max() < 5 * std / math.sqrt(200)
        assert (found - expected).std() == pytest.approx(std, rel=0.06)
