"""Released moments of features: exact sums, bounded contributions, released once."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tables import table

from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, Receipt
from dpcd_sklearn.privacy.mechanisms import SmoothnessOracle, SmoothnessUnits
from dpcd_sklearn.privacy.mechanisms import _cell_sums as of_mechanisms
from dpcd_sklearn.privacy.mechanisms._cell_sums import (
    MOST_COLUMNS,
    squares_sensitivity,
    units_of_cells,
)
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.privacy.sums import LocalPlace

RELATIONS = ["replace_one", "add_remove"]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


def units_of(p, n, z=2.0, neighboring="replace_one", n_normalizer=None, with_means=True):
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    return SmoothnessUnits(
        event,
        n_columns=p,
        n_samples=n,
        n_normalizer=n_normalizer or n,
        with_means=with_means,
    )


def oracle_of(X, key=None, **options):
    units = units_of(X.shape[1], X.shape[0], **options)
    return SmoothnessOracle(Receipt(units.event, None), units, LocalPlace(X), key=key)


both_ways = pytest.mark.parametrize("with_means", [True, False])


@both_ways
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_numpy_and_equal_in_every_layout(dtype, with_means):
    rng, key = np.random.default_rng(0), bytes(range(32))
    X = rng.normal(size=(700, 4)).astype(dtype) * (rng.random((700, 4)) < 0.5)
    X[0] = 1e30  # far outside
    lo, hi = np.array([-3.0, -1.0, -0.5, 0.0]), np.array([3.0, 5.0, 0.25, 0.0])
    center, half_width = np.array([0.0, 2.0, 0.0, 0.0]), np.array([3.0, 3.0, 0.5, 1.0])
    units = units_of(4, 700, with_means=with_means)
    width = np.where(hi > lo, hi - lo, 1.0)
    cells = np.clip(np.floor((X - lo) / width * 256), 0, 255)
    numbers = np.clip((lo + (cells + 0.5) / 256 * (hi - lo) - center) / half_width, -1, 1)
    sums = [np.rint(units.units * numbers**2).sum(axis=0)]
    sums += [np.rint(units.units * numbers / 2).sum(axis=0)] if with_means else []
    noise = NoiseSource(key).gaussians(4 * len(sums), units.bits).reshape(len(sums), 4)
    expected = (np.array(sums) + noise + 0.5) / units.units / 700
    for make in LAYOUTS.values():
        oracle = oracle_of(make(X), key, with_means=with_means)
        squares, means = oracle.release_mean_squares(lo, hi, center, half_width)
        assert_array_equal(squares, expected[0])
        if with_means:
            assert_array_equal(means, 2 * expected[1])
        else:
            assert means is None
    plain = (np.clip(X, lo, hi) - center) / half_width
    assert_allclose(sums[0] / units.units / 700, (plain**2).mean(axis=0), atol=0.01)
    if with_means:
        assert_allclose(2 * sums[1] / units.units / 700, plain.mean(axis=0), atol=0.01)


@settings(max_examples=100, deadline=None)
@given(
    ends=st.tuples(*2 * [st.floats(-1e9, 1e9)]).map(sorted),
    center=st.floats(-1e9, 1e9),
    half_width=st.floats(0.0, 1e9),
    x=st.floats(allow_nan=False, allow_infinity=False),
    most=st.integers(1, 2**24),
)
def test_no_record_counts_for_more_than_it_may(ends, center, half_width, x, most):
    lo, hi, center, half_width = (np.array([float(v)]) for v in (*ends, center, half_width))
    squares, halves = units_of_cells(lo, hi, center, half_width, most)
    assert squares.shape == halves.shape == (1, 256) and squares.dtype == halves.dtype == np.int64
    assert squares.min() >= 0 and squares.max() <= most and np.abs(halves).max() <= (most + 1) / 2
    apart = squares - squares.T, halves - halves.T  # of any two records
    assert np.abs(apart[0]).max() <= most * squares_sensitivity(1, False)
    longest = most * squares_sensitivity(1, True) + math.sqrt(2)
    assert (apart[0] ** 2 + apart[1] ** 2).max() <= longest**2
    edges = of_mechanisms.edges_of_cells(lo, hi)
    counts = LocalPlace(np.array([[x]])).counts("features", edges=edges)
    assert counts.sum() == counts.max() == 1  # in one cell, also of a column without width


@table("neighboring", RELATIONS)
@table("p", [1, 3, 122, MOST_COLUMNS])
@table("n", [2, 10**4, 2**28, 2**40])
@table("z", [0.05, 3.0, 1e4])
@both_ways
def test_noise_covers_the_sensitivity_of_integers(neighboring, p, n, z, with_means):
    units = units_of(p, min(n, 2**28), z, neighboring, n_normalizer=n, with_means=with_means)
    most = math.sqrt(1.28615 * p) * units.units + math.sqrt(2 * p)
    most = most if with_means else math.sqrt(p) * units.units
    assert 2.0**units.bits >= z * most
    assert min(n, 2**28) * units.units <= 2.0**52
    assert units.noise_std == pytest.approx(z * most / units.units / n, rel=0.01 + 1 / units.units)
