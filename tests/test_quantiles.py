"""Counts in public cells, and quantiles chosen from them: twins, neighbours, laws and a mutant."""

import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, special, stats
from tables import table
from twins import EVERY_LAYOUT

from dpcd_sklearn.plan import _scale_choices
from dpcd_sklearn.privacy.accounting import FitEvent, NonPrivateEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import QuantileOracle, QuantileUnits, _quantiles
from dpcd_sklearn.privacy.mechanisms._quantiles import (
    QuantileChoices,
    interval_scores,
    quantile_scores,
    ring_counts,
    score_sensitivity,
)
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.privacy.sums import LocalPlace, Place, _counts

MEDIAN, LOWER, UPPER, LARGEST = (Fraction(k, 4) for k in (2, 1, 3, 4))
QUANTILES = [MEDIAN, LOWER, UPPER, Fraction(7, 10), Fraction(1, 100), LARGEST]
RELATIONS = ["replace_one", "add_remove"]
N, P = 200, 6

# --- counts -------------------------------------------------------------------------------------

OCTAVE_EDGES = 2.0 ** np.arange(_counts.LOWEST, _counts.HIGHEST + 1)


def octaves_twin(X):
    cells = np.searchsorted(OCTAVE_EDGES, np.abs(X), side="right")
    return np.array([np.bincount(column, minlength=_counts.N_OCTAVES) for column in cells.T])


def linear_twin(X, lo, hi):
    with np.errstate(over="ignore"):
        cells = np.floor((X.astype(float) - lo) * (256 / (hi - lo)))
    cells = np.clip(cells, 0, 255).astype(int)
    return np.array([np.bincount(column, minlength=256) for column in cells.T])


def reaches_twin(X, center, unit):
    with np.errstate(over="ignore", invalid="ignore"):
        away = (X.astype(float) - center) * (1 / unit)
    halves = np.searchsorted(_quantiles.REACHES[:-1], np.abs(away), side="right")
    cells = np.where(away >= 0, 128 + halves, 127 - halves)
    return np.array([np.bincount(column, minlength=256) for column in cells.T])


def records(dtype):
    """Numbers of all sizes, edges of octaves among them, and many zeros."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * 2.0 ** rng.integers(-60, 80, (N, P))
    X[rng.random((N, P)) < 0.5] = 0
    X[:40] = np.exp2(rng.integers(-45, 65, (40, P))) * rng.choice([-1, 1], (40, P))
    X[40:60] = rng.integers(-20, 20, (20, P)) / 8  # edges of linear cells
    X[60] = np.finfo(dtype).max
    X[61], X[62] = -np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    return X.astype(dtype)


LAYOUTS = EVERY_LAYOUT | {
    "CSC matrix": sparse.csc_matrix,
    "CSR of long indices": lambda X: sparse.csr_array(
        (
            (S := sparse.csr_array(X)).data,
            S.indices.astype(np.int64),
            S.indptr.astype(np.int64),
        ),
        shape=X.shape,
    ),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def check_counts(X, place, edges, around):
    twins = [({}, octaves_twin(X)), ({"edges": edges}, linear_twin(X, *edges))]
    for cells, expected in [*twins, ({"around": around}, reaches_twin(X, *around))]:
        np.testing.assert_array_equal(place.counts("features", **cells), expected)


@every_dtype
@every_layout
def test_counts_are_the_twins_in_every_layout(layout, dtype):
    X = records(dtype)
    lo, hi = np.array([-2.0, 0, -8, -1e-3, 5, -1e6]), np.array([2.0, 4, 8, 1e-3, 7, 2e6])
    check_counts(X, LocalPlace(layout(X)), (lo, hi), (lo / 2, hi / 16))


@pytest.mark.parametrize("shape", [(3, 1300), (1300, 3), (1, 512), (513, 1), (99, 101)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_lines_that_are_counted_in_pieces_lose_no_record(shape, order):
    X = np.asarray(np.random.default_rng(0).standard_normal(shape), order=order)
    ends = np.full(shape[1], -0.5), np.full(shape[1], 0.25)
    check_counts(X, LocalPlace(X), ends, ends)


def test_nan_lies_in_the_first_cell_and_infinity_in_an_outer_one():
    X = np.array([[np.nan], [np.inf], [-np.inf]])
    octaves = LocalPlace(X).counts("features")[0]
    linear = LocalPlace(X).counts("features", edges=(np.array([-1.0]), np.array([1.0])))[0]
    assert (octaves[0], octaves[-1]) == (1, 2) and octaves.sum() == 3
    reaches = LocalPlace(X).counts("features", around=(np.zeros(1), np.ones(1)))[0]
    for cells in linear, reaches:
        assert (cells[0], cells[-1]) == (2, 1) and cells.sum() == 3


@every_dtype
@every_layout
def test_octaves_of_norms_are_the_twins_in_every_layout(layout, dtype):
    X = records(dtype)[63:]
    unit = np.array([1.0, 2, 0.5, 8, 1, 1])
    centers = [np.zeros(P), np.arange(-2.0, P - 2)]
    for given in (None, *((center, unit) for center in centers)):
        center, width = (0, 1) if given is None else given
        if sparse.issparse(layout(X)) and np.any(center):
            with pytest.raises(ValueError, match="zero if sparse"):
                LocalPlace(layout(X)).counts("row_norm", around=given)
            continue
        norms = np.linalg.norm((X.astype(float) - center) / width, axis=1)
        found = LocalPlace(layout(np.pad(X, ((0, N - len(X)), (0, 0))))).counts(
            "row_norm", around=given
        )
        of_zeros = np.full((N - len(X), 1), np.linalg.norm(np.full(P, center) / width))
        expected = octaves_twin(np.vstack([norms[:, np.newaxis], of_zeros]))
        np.testing.assert_array_equal(found, expected)


def test_norms_beyond_every_double_lie_in_the_last_octave():
    last = 2.0**_counts.HIGHEST
    X = np.array([[1e300, 1e300], [last, 0], [last / 2, 0], [0, 5e-324]])
    expected = np.zeros((1, _counts.N_OCTAVES), dtype=int)
    expected[0, [0, -2, -1]] = 1, 1, 2
    np.testing.assert_array_equal(LocalPlace(X).counts("row_norm"), expected)


def test_counts_that_are_kept_answer_the_same_question_only():
    X = np.random.default_rng(0).normal(size=(50, 1))
    place, unit, once = LocalPlace(X, X[:, 0] + 1), np.ones(1), ("features", X, 1)
    for of, column, times in [once, once, ("features", X, 2), ("target", X + 1, 1), once]:
        unit *= times  # the same array, and another question
        counts = place.counts(of, around=([0.5], unit))
        np.testing.assert_array_equal(counts, _counts.count_cells(column, around=([0.5], unit)))
        counts[:] = 0


def test_counts_of_a_target_are_those_of_a_column_and_no_weight_is_seen():
    X = records(np.float64)
    y = X[:, 2].copy()
    weights = np.random.default_rng(1).random(N)
    expected = LocalPlace(X).counts("features")
    place = LocalPlace(X, y, weights, (np.full(P, -1.0), np.ones(P), np.zeros(P)))
    np.testing.assert_array_equal(place.counts("target"), expected[2:3])
    np.testing.assert_array_equal(place.counts("features"), expected)
    edges = np.array([-2.0]), np.array([2.0])
    expected = linear_twin(y[:, np.newaxis], *edges)
    np.testing.assert_array_equal(place.counts("target", edges=edges), expected)


@table("hi", [[1.0, 1.0], [2.0, 0.5], [2.0, np.inf], [2.0, np.nan], [2.0]])
def test_edges_that_divide_nothing_are_refused(hi):
    for cells in {"edges": ([1.0, 1.0], hi)}, {"around": ([1.0, 1.0], np.subtract(hi, 1.0))}:
        with pytest.raises(ValueError, match="edges"):
            LocalPlace(np.zeros((3, 2))).counts("features", **cells)


# --- sensitivity --------------------------------------------------------------------------------


ZEROS = "counted", "apart", "left out"
SCORES = {
    "cells": quantile_scores,
    "octaves": functools.partial(quantile_scores, zeros="apart"),
    "octaves of others": functools.partial(quantile_scores, zeros="left out"),
    "intervals": lambda counts, quantile: interval_scores(around_centre(counts), quantile),
}


def around_centre(counts):
    """The same counts as those of the innermost reaches."""
    ahead = 128 - counts.shape[1] // 2
    return np.pad(counts, [(0, 0), (ahead, 256 - ahead - counts.shape[1])])


@table("quantile", QUANTILES)
@table("neighboring", RELATIONS)
@table("kind", list(SCORES))
def test_a_record_moves_scores_by_the_sensitivity_at_most_and_some_by_all_of_it(
    kind, neighboring, quantile
):
    rng = np.random.default_rng(0)
    moves, columns = [], np.arange(500)
    for n_cells in range(2, 9):
        means = rng.choice([0.3, 3, 30], (500, 1))
        counts = rng.poisson(means, (500, n_cells))
        other, (here, there) = counts.copy(), rng.integers(n_cells, size=(2, 500))
        other[columns, here] += 1
        if neighboring == "replace_one":
            counts[columns, there] += 1
        one, two = (SCORES[kind](c, quantile) for c in (counts, other))
        moves.append((np.abs(one - two).max(), np.ptp(one - two, axis=1).max() / 2))
    # all scores move the same way where the largest number is asked for
    (move, half_range), most = np.max(moves, axis=0), score_sensitivity(quantile, neighboring)
    assert half_range <= most == (half_range if quantile == 1 else move)


def test_the_best_interval_is_the_shortest_with_so_many_spread_records():
    x = np.random.default_rng(0).normal(50, 7, (4001, 1))
    counts = LocalPlace(x).counts("features", around=(np.array([50.0]), np.array([1e-6])))
    best = interval_scores(counts, Fraction(3, 8))[0].argmax()
    reach = _quantiles.REACHES[best] * 1e-6
    assert 0.3 < np.mean(np.abs(x - 50) < reach) < 0.75


@pytest.mark.parametrize("quantile", QUANTILES, ids=str)
def test_apart_from_zeros_a_cell_holds_the_quantile_of_the_others_if_zero_is_not_that_of_all(
    quantile,
):
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.integers(0, 9, rng.integers(1, 60)) * (rng.random() < rng.random(1))
        others = x[x > 0]
        counts = np.bincount(x, minlength=9)[np.newaxis]
        scores = quantile_scores(counts, quantile, zeros="apart")[0]
        assert scores[0] == quantile_scores(counts, quantile)[0, 0]
        for cell in range(1, 9):
            wanted = quantile * len(others)
            missing = max(wanted - (others <= cell).sum(), (others < cell).sum() - wanted, 0)
            too_many = (x == 0).sum() - quantile * len(x)
            assert Fraction(int(scores[cell]), quantile.denominator) == -max(missing, too_many)


def test_scores_are_cut_where_their_rounding_is_paid_for():
    counts = np.array([[2**45, 0]])
    assert quantile_scores(counts, MEDIAN).min() == -2 * _quantiles._DEEPEST


# --- the law ------------------------------------------------------------------------------------


class FixedCounts(Place):
    """The same counts for many columns: as many independent choices."""

    def __init__(self, counts, n_columns):
        self.n_features = n_columns
        self._counts = np.repeat(np.array(counts)[np.newaxis], n_columns, axis=0)

    def counts(self, of, **cells):
        return self._counts


def choices(counts, quantile, eta, neighboring, size, prior=None, cells=None):
    event = FitEvent((SelectionEvent(eta, size),), neighboring)
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), FixedCounts(counts, size))
    cells = {"edges": (-1, 1)} if cells is None else cells
    return oracle.release_quantiles("features", [quantile], prior=prior, **cells)[0]


def exact_law(counts, quantile, eta, neighboring, prior=1.0, zeros="counted"):
    """π exp(u/b) / Σ π exp(u/b), u in records, b = 2 s / η, π the prior."""

    def missing(counts):
        below = np.concatenate([[0], np.cumsum(counts)])
        wanted = float(quantile) * below[-1]
        return np.maximum(np.maximum(wanted - below[1:], below[:-1] - wanted), 0)

    u = -missing([0, *counts[1:]] if zeros == "left out" else counts)
    if zeros == "apart":
        too_many = counts[0] - float(quantile) * sum(counts)
        u[1:] = -np.maximum(missing([0, *counts[1:]]), too_many)[1:]
    q = float(quantile)
    s = 0.5 if q == 1 else 1.0 if neighboring == "replace_one" else max(q, 1 - q)
    return special.softmax(u * eta / (2 * s) + np.log(prior))


@pytest.mark.parametrize("quantile", [MEDIAN, LOWER, Fraction(7, 10), LARGEST], ids=str)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_the_law_of_a_choice_is_the_exact_one(eta, neighboring, quantile):
    counts = [3, 0, 2, 7, 0, 1, 4]
    octaves = {}, {"zeros": "left out"}  # they are counted without edges
    for cells, zeros in zip(({"edges": (-1, 1)}, *octaves), ZEROS, strict=True):
        chosen = choices(counts, quantile, eta, neighboring, 100_000, cells=cells)
        law = exact_law(counts, quantile, eta, neighboring, zeros=zeros)
        found = stats.chisquare(np.bincount(chosen, minlength=7), 100_000 * law)
        assert found.pvalue > 1e-9
    quantile = min(quantile, UPPER)  # no interval has the largest
    counts = around_centre(np.array([counts]))
    chosen = choices(
        counts[0], quantile, eta, neighboring, 20_000, cells={"around": 0, "intervals": True}
    )
    sensitivity = score_sensitivity(quantile, neighboring)
    law = special.softmax(interval_scores(counts, quantile)[0] * eta / (2 * sensitivity))
    found = stats.chisquare(np.bincount(chosen, minlength=128), 20_000 * law)
    assert found.pvalue > 1e-9


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("quantile", [MEDIAN, LOWER], ids=str)
def test_a_prior_multiplies_the_odds_of_a_choice(quantile, neighboring):
    counts, prior = [3, 0, 2, 7, 0, 1, 4], np.array([1.0, 5.0, 0.2, 0.5, 9.0, 3.0, 0.1])
    chosen = choices(counts, quantile, 0.5, neighboring, 100_000, prior)
    law = exact_law(counts, quantile, 0.5, neighboring, prior)
    found = stats.chisquare(np.bincount(chosen, minlength=7), 100_000 * law)
    assert found.pvalue > 1e-9
    plain = exact_law(counts, quantile, 0.5, neighboring)
    assert np.abs(np.log(law / plain)).max() > 1


@pytest.mark.parametrize("odds", [0.0, -1.0, math.exp(-16.1), math.exp(16.1), math.inf, math.nan])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_prior_out_of_range_is_refused_and_nothing_is_drawn(odds):
    event = FitEvent((SelectionEvent(0.5, 5),))
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), Watched([1, 2], 3))
    with pytest.raises(ValueError, match="prior"):
        oracle.release_quantiles("features", [MEDIAN], prior=np.array([1.0, odds]))
    oracle._place = FixedCounts([1, 2], 5)
    assert oracle.release_quantiles("features", [MEDIAN]).shape == (1, 5)  # all that was paid for


def low_choices(eta, neighboring):
    """Whether a cell below the quantile was chosen, in many runs on two neighbours."""
    # many cells on either side, so that both sides' chances move by all that they can
    few, many = 20, 400
    one = np.zeros(few + 1 + many, dtype=int)
    one[0], one[few], one[-1] = 40, 3, 40
    other = one.copy()
    other[0] -= 1
    if neighboring == "replace_one":
        other[-1] += 1
    return [choices(c, MEDIAN, eta, neighboring, 30_000) < few for c in (one, other)]


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_half_the_noise_is_caught_and_the_real_choice_is_not(neighboring, monkeypatch):
    eta, confidence = 1.0, 1 - 1e-7

    def shown():
        """A lower bound of the privacy loss, by Clopper-Pearson bounds on both probabilities."""
        bounds = []
        for sample in low_choices(eta, neighboring):
            interval = stats.binomtest(int(sample.sum()), sample.size).proportion_ci(confidence)
            bounds.append((interval.low, interval.high))
        pairs = [*zip(bounds, bounds[::-1], strict=True)]
        ratios = [(one[0] / other[1], (1 - one[1]) / (1 - other[0])) for one, other in pairs]
        return math.log(np.max(ratios))

    assert 0.3 * eta < shown() <= eta  # about .60, with a spread of .04
    scale = QuantileChoices.noise_scale
    monkeypatch.setattr(QuantileChoices, "noise_scale", lambda *args: scale(*args) / 2)
    assert shown() > eta


# --- receipts -----------------------------------------------------------------------------------


class Watched(FixedCounts):
    def counts(self, of, **cells):
        raise AssertionError("records were read")


def test_no_more_than_what_was_paid_for_is_released_and_nothing_else_is_read():
    event = FitEvent((SelectionEvent(0.5, 5),))
    receipt, units = charge(None, event), QuantileUnits(event)
    oracle = QuantileOracle(receipt, units, Watched([1, 2], 3))
    with pytest.raises(RuntimeError, match="or were released: 5 are left"):
        oracle.release_quantiles("features", [LOWER, UPPER])
    oracle._place = FixedCounts([1, 2], 3)
    assert oracle.release_quantiles("features", [MEDIAN]).shape == (1, 3)
    assert oracle.release_quantiles("row_norm", [MEDIAN]).shape[0] == 1
    with pytest.raises(RuntimeError, match="or were released: 1 are left"):
        oracle.release_quantiles("features", [MEDIAN])
    with pytest.raises(RuntimeError, match="redeemed before"):
        QuantileOracle(receipt, units, Watched([1, 2], 3))
    with pytest.raises(TypeError, match="never copied"):
        pickle.dumps(oracle)


@pytest.mark.parametrize("quantile", [0.5, Fraction(0), Fraction(5, 4), "1/2"])
def test_a_quantile_is_a_public_fraction(quantile):
    event = FitEvent((SelectionEvent(0.5, 5),))
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), Watched([1, 2], 3))
    with pytest.raises(TypeError, match="Fraction"):
        oracle.release_quantiles("features", [quantile])
    with pytest.raises(TypeError, match="of intervals"):
        oracle.release_quantiles("features", [LARGEST], around=(0.0, 1.0), intervals=True)


# --- scales -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rings", "first"), [(1, 0), (7, 0), (7, 3), (64, 0)])
def test_rings_around_a_centre_count_every_record_once(n_rings, first):
    rng = np.random.default_rng(0)
    x = rng.standard_t(1, 2000) * 10
    center, half_width = 3.0, 2.0
    around = np.array([center]), np.array([half_width])
    counts = LocalPlace(x[:, np.newaxis]).counts("features", around=around)
    numbers = first + 2 * np.arange(n_rings)[np.newaxis]
    assert ring_counts(counts, numbers + 128).tolist() == [[2000] + [0] * (n_rings - 1)]
    counts = ring_counts(counts, numbers)[0]
    distance = np.abs(x - center) / half_width
    ends = [0, *_quantiles.REACHES[numbers[0, :-1]], np.inf]
    np.testing.assert_array_equal(counts, np.histogram(distance, ends)[0])
    assert counts.sum() == 2000 and (counts[:8] > 0).all()


def scales_without_noise(X, how, of="features", y=None, evidence=math.inf):
    event = FitEvent((NonPrivateEvent(),))
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X, y))
    return _scale_choices.find_scales(oracle, of, how, evidence)


@pytest.mark.parametrize(("center", "width"), [*itertools.product([0, 5, -300], [0.5, 1.0, 30.0])])
def test_without_noise_scales_are_those_of_the_quartiles_to_a_cell(center, width):
    X = np.random.default_rng(0).normal(center, width, (4001, 1))
    middle, half_width = scales_without_noise(X, "quartiles")
    low, high = np.quantile(X, [0.25, 0.75])
    cell = 2 * np.median(np.abs(X)) / 32  # the octave's end is at most twice the median
    assert abs(middle[0] - (low + high) / 2) <= cell
    # of quartiles in one cell the octave stands for the width
    assert abs(half_width[0] - 2 * (high - low)) <= 4 * cell or high - low < cell
    _, half_width = scales_without_noise(X, "tails")
    assert abs(half_width[0] - 2 * (high - low)) <= 4 * cell
    middle, half_width = scales_without_noise(X, "octaves")
    assert middle[0] == 0
    assert 1 < half_width[0] / (2 * np.median(np.abs(X))) <= 2


SAMPLED = {
    "C": (np.ascontiguousarray, True),
    "F": (np.asfortranarray, True),
    "rows of a larger one": (lambda X: np.repeat(X, 2, axis=0)[::2], True),
    "CSR": (sparse.csr_array, False),
}


@pytest.mark.parametrize("layout", SAMPLED)
def test_choices_with_ample_evidence_count_the_rows_that_coins_draw(layout, monkeypatch):
    make, is_sampled = SAMPLED[layout]
    X = np.random.default_rng(0).normal(size=(2**18, 3))
    event, place, key = FitEvent((SelectionEvent(0.1, 9),)), LocalPlace(make(X)), bytes(32)
    seen, counts = [], LocalPlace.counts
    monkeypatch.setattr(
        LocalPlace, "counts", lambda *of, **cells: seen.append(counts(*of, **cells)) or seen[-1]
    )
    receipt, units = charge(None, event), QuantileUnits(event)
    oracle = QuantileOracle(receipt, units, place, key=key, n_public=2**18)
    for _ in range(2):  # of one sample
        oracle.release_quantiles("features", [MEDIAN])
    oracle.release_quantiles("features", [Fraction(9999, 10000)])  # of all
    rows = NoiseSource(key).sample(2**18, 4) if is_sampled else slice(None)
    for found, expected in zip(seen, (X[rows], X[rows], X), strict=True):
        np.testing.assert_array_equal(found, octaves_twin(expected))


def test_a_sample_leaves_ample_evidence_and_follows_public_numbers_alone():
    halvings = _quantiles.sampled_halvings
    for n, eta, share in itertools.product(10 ** np.arange(9), 10.0 ** np.arange(-5, 2), (2, 20)):
        for quantile in Fraction(1, share), 1 - Fraction(1, share):
            k = halvings(n, eta, [MEDIAN, quantile])
            left = n / 2**k
            assert k != 1 and (k == 0 or (left >= 2**14 and left * eta >= max(640, 32 * share)))
            assert left < 2**16 or left * eta < 4 * max(640, 32 * share)
    assert halvings(0, 1.0, [MEDIAN]) == 0  # where no public number is given


def test_columns_that_are_asked_about_are_those_that_are_paid_for():
    event = FitEvent((SelectionEvent(50.0, 5),))
    X = np.array([[0.1, 10, 1000]] * 99)
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X))
    (of_all,) = oracle.release_quantiles("features", [MEDIAN])
    some = np.array([False, True, True])
    (found,) = oracle.release_quantiles("features", [MEDIAN], columns=some)
    np.testing.assert_array_equal(found, of_all[some])
    assert oracle.release_quantiles("features", [MEDIAN], columns=~some & some).shape == (1, 0)
    with pytest.raises(RuntimeError, match="or were released: 0 are left"):
        oracle.release_quantiles("features", [MEDIAN], columns=~some)


@pytest.mark.parametrize("value", [0.0, 7.0, -1e9, 1e300, 5e-324])
def test_scales_of_a_constant_column_are_positive_and_finite(value):
    for how in ("tails", "quartiles", "octaves"):
        center, half_width = scales_without_noise(np.full((9, 2), value), how)
        assert np.isfinite(center).all() and np.isfinite(half_width).all()
        assert (half_width > 0).all()


def test_scales_of_the_target_and_of_the_row_norm():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2001, 4)), rng.normal(50, 10, 2001)
    center, half_width = scales_without_noise(X, "quartiles", "target", y)
    np.testing.assert_allclose([center[0], half_width[0]], [50, 27], rtol=0.1)
    _, norm = scales_without_noise(X, "octaves", "row_norm")
    assert norm == [2 * 2.0]  # the median norm of 1.8 lies in [1, 2)
