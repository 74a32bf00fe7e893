"""Means of what is present: their sensitivity, their noise, and counts without the missing."""

import math

import numpy as np
import pytest
from scipy import sparse
from tables import table

from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import PresentOracle, PresentUnits
from dpcd_sklearn.privacy.mechanisms import _present_means as mechanism
from dpcd_sklearn.privacy.mechanisms._mean_squares import MOST_COLUMNS
from dpcd_sklearn.privacy.sums import LocalPlace, PresentPlace

RELATIONS = ["replace_one", "add_remove"]
NAN = math.nan


def oracle_of(X, z=2.0, neighboring="replace_one"):
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    units = PresentUnits(event, n_columns=X.shape[1], n_samples=len(X), n_normalizer=len(X))
    return PresentOracle(charge(None, event), units, PresentPlace(X))


def sums_of(monkeypatch, X, **options):
    """The integers of a release before their noise, with its units."""
    kept = []
    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "with_noise", lambda noise, sums, bits: kept.append(sums) or sums)
        oracle = oracle_of(X, **options)
        oracle.release_present_means(-np.ones(X.shape[1]), np.ones(X.shape[1]))
    return kept[0], oracle._units


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_neighbours_are_told_apart_as_far_as_is_claimed(monkeypatch, neighboring, p, forgets):
    """Half the noise is noticed, and under add_remove how many are present, if forgotten."""
    if forgets:
        half = {"replace_one": 1.0, "add_remove": 1.0}[neighboring]
        monkeypatch.setattr(
            mechanism, "present_sensitivity", lambda n_columns, of: half * n_columns**0.5
        )
    records = [np.full(p, x) for x in (-5.0, -1.0, 0.3, 1.0, 7.0, NAN)]
    records.append(np.where(np.arange(p) % 2, NAN, 1.0))
    others = np.full((4, p), 0.5)
    worst = 0.0
    for one in records:
        first, units = sums_of(monkeypatch, np.vstack([others, one]), neighboring=neighboring)
        pairs = records if neighboring == "replace_one" else [None]
        for two in pairs:
            rows = [others] if two is None else [others, two]
            X = np.vstack(rows) if two is not None else others
            if two is None:  # the same grid: the normaliser is public
                event = FitEvent((GaussianEvent(2.0, 1),), neighboring)
                same = PresentUnits(event, n_columns=p, n_samples=4, n_normalizer=5)
                assert (same.bits, same.units) == (units.bits, units.units)
                oracle = PresentOracle(charge(None, event), same, PresentPlace(X))
                kept = []
                with monkeypatch.context() as patch:
                    patch.setattr(
                        mechanism, "with_noise", lambda n, s, b, kept=kept: kept.append(s) or s
                    )
                    oracle.release_present_means(-np.ones(p), np.ones(p))
                second = kept[0]
            else:
                second, _ = sums_of(monkeypatch, X, neighboring=neighboring)
            worst = max(worst, float(np.linalg.norm(first - second)))
    held = 2.0 * worst <= 2.0**units.bits * (1 + 1e-12)
    assert held is not forgets
    if not forgets:  # and no farther: cells have a width
        assert 2.0 * worst >= 0.98 * 2.0**units.bits


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
    found = np.array([oracle_of(X, z).release_present_means(lo, hi) for _ in range(400)])
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
    found = oracle_of(X).release_present_means(lo, hi)
    assert (lo <= found).all() and (found <= hi).all() and found[2] == 5.0 and found[1] > 9.5


def test_means_are_released_once_and_of_so_many_columns():
    oracle = oracle_of(np.zeros((10, 2)))
    oracle.release_present_means(-np.ones(2), np.ones(2))
    with pytest.raises(RuntimeError, match="once"):
        oracle.release_present_means(-np.ones(2), np.ones(2))
    event = FitEvent((GaussianEvent(1.0, 1),))
    with pytest.raises(ValueError, match="columns"):
        PresentUnits(event, n_columns=MOST_COLUMNS + 1, n_samples=9, n_normalizer=9)
