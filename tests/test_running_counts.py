"""Running counts of all columns at once: their sensitivity, their noise, and what is counted."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import RunningOracle, RunningUnits
from dpcd_sklearn.privacy.mechanisms import _running_counts as mechanism
from dpcd_sklearn.privacy.mechanisms._mean_squares import MOST_COLUMNS
from dpcd_sklearn.privacy.sums import LocalPlace

RELATIONS = ["replace_one", "add_remove"]
N_CELLS = 256


def oracle_of(X, z=2.0, neighboring="replace_one", n_public=None):
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    n_public = n_public or len(X)
    units = RunningUnits(event, n_columns=X.shape[1], n_samples=len(X), n_normalizer=n_public)
    return RunningOracle(charge(None, event), units, LocalPlace(X))


def released(oracle, p, n_known=None):
    return oracle.release_running_counts(np.zeros(p), np.ones(p), n_known)


def sums_of(monkeypatch, X, **options):
    """The integers of a release before their noise, with its units."""
    kept = []
    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "with_noise", lambda noise, sums, bits: kept.append(sums) or sums)
        oracle = oracle_of(X, **options)
        released(oracle, X.shape[1])
    return kept[0], oracle._units


def test_the_constants_are_the_largest_of_all_pairs_of_cells():
    """In fractions: of columns i < j all that counts is how long each is, and their overlap."""
    lags = [Fraction(math.comb(2 * k, k), 4**k) for k in range(N_CELLS)]
    np.testing.assert_allclose(mechanism._LAGS, list(map(float, lags)), rtol=1e-13)
    squares = np.cumsum([float(lag * lag) for lag in lags])
    assert 0 < mechanism._LONGEST - math.sqrt(squares[-1]) < 1e-4
    worst = 0.0
    for apart in range(1, N_CELLS):
        overlap = np.cumsum(mechanism._LAGS[apart:] * mechanism._LAGS[: N_CELLS - apart])
        # cell i has 256 - i entries, cell i + apart that many fewer
        lengths = np.arange(1, N_CELLS - apart + 1)
        both = squares[lengths + apart - 1] + squares[lengths - 1] - 2 * overlap[lengths - 1]
        worst = max(worst, both.max())
    assert 0 < mechanism._APART - math.sqrt(worst) < 1e-4


def test_it_is_the_square_root_of_running_sums():
    ones = np.tril(np.ones((N_CELLS, N_CELLS)))
    np.testing.assert_allclose(mechanism._ROOT @ mechanism._ROOT, ones, atol=1e-12)


@pytest.mark.parametrize("mutant", [None, "half the noise", "no root of p"])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_neighbours_are_told_apart_as_far_as_is_claimed(monkeypatch, neighboring, mutant):
    p = 3
    exact = mechanism.running_sensitivity
    wrong = {
        "half the noise": lambda n_columns, of: exact(n_columns, of) / 2,
        "no root of p": lambda n_columns, of: exact(1, of),
    }
    if mutant:
        monkeypatch.setattr(mechanism, "running_sensitivity", wrong[mutant])
    others = np.full((4, p), 0.5)
    cells = [-5.0, 0.0, 0.4, 212.5 / N_CELLS, 0.999, 7.0]
    worst = 0.0
    for one, two in product(cells, cells):
        first, units = sums_of(
            monkeypatch, np.vstack([others, np.full(p, one)]), neighboring=neighboring
        )
        if neighboring == "add_remove":  # the same grid: the normaliser is public
            second, _ = sums_of(monkeypatch, others, neighboring=neighboring, n_public=5)
        else:
            second, _ = sums_of(monkeypatch, np.vstack([others, np.full(p, two)]))
        worst = max(worst, float(np.linalg.norm(first - second)))
    assert (2.0 * worst <= 2.0**units.bits) is (mutant is None)
    if mutant is None:  # and no farther
        assert 2.0 * worst >= 0.99 * 2.0**units.bits


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_counts_are_those_below_each_edge(layout):
    rng = np.random.default_rng(0)
    X = layout(rng.uniform(-0.2, 1.2, (3000, 2)))
    runs = np.array([released(oracle_of(X, 0.5), 2, len(X)) for _ in range(30)])
    edges = np.arange(1, N_CELLS) / N_CELLS
    expected = np.array([(X[:, [j]] < edges).sum(axis=0) for j in range(2)])
    assert np.abs(runs.mean(axis=0)[:, :-1] - expected).max() < 6
    np.testing.assert_allclose(runs[:, :, -1], len(X))


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_the_noise_is_what_was_charged(neighboring):
    z, p = 50.0, 4
    X = np.zeros((10_000, p))
    n_known = len(X) if neighboring == "replace_one" else None
    runs = [released(oracle_of(X, z, neighboring), p, n_known) for _ in range(40)]
    off = np.array(runs)[:, :, :-1] - len(X)  # all lie in the first cell
    per_unit = {"replace_one": 3.246, "add_remove": 2.669}[neighboring]
    assert math.sqrt((off**2).mean()) == pytest.approx(z * math.sqrt(p) * per_unit, rel=0.15)


def test_they_are_released_once_and_of_so_many_columns():
    oracle = oracle_of(np.zeros((10, 2)))
    released(oracle, 2)
    with pytest.raises(RuntimeError, match="once"):
        released(oracle, 2)
    event = FitEvent((GaussianEvent(1.0, 1),))
    with pytest.raises(ValueError, match="columns"):
        RunningUnits(event, n_columns=MOST_COLUMNS + 1, n_samples=9, n_normalizer=9)
