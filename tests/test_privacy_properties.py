"""The guarantee rests on these, for adversarial records: bounded contributions, sensitivities,
and no release that was not paid for.

Laws are judged by statistics whose false alarms are rarer than 1e-7 each.
"""

import itertools
import math
import os
import threading

import numpy as np
import pytest
from forks import forked
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import stats
from tables import table
from unreleased import MovingSums

from dpcd_sklearn.loops import _cd, _gcd, _skgd
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.losses import LogisticLoss, SquaredLoss
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import BatchOracle, CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.samplings import BlockSampling, FullSampling, SingleSampling

P_VALUE = 1e-8
RELATIONS = {"replace_one": 2, "add_remove": 1}
properties = settings(max_examples=300, deadline=None, derandomize=True)


def parts_of(
    X, y, weights=None, *, event=None, M=None, clip=1.0, loss=None, n=None, bounds=None, **options
):
    """Units, a place and options: noise of multiplier 10 unless `event` says more."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    options = {"fit_intercept": True, **options}
    weights = None if weights is None else np.atleast_1d(np.asarray(weights, dtype=float))
    event = event or FitEvent((GaussianEvent(10.0, 1000),))
    units = CoordinateUnits(
        event,
        n_samples=len(X),
        smoothness=np.ones(X.shape[1] + options["fit_intercept"]) if M is None else M,
        clip=clip,
        n_normalizer=len(X) if n is None else n,
    )
    place = LocalPlace(X, np.atleast_1d(np.asarray(y, dtype=float)), weights, bounds)
    return (units, place), {"loss": loss or SquaredLoss(), **options}


def oracle_of(*args, **options):
    """An oracle that nobody was charged for."""
    (units, place), options = parts_of(*args, **options)
    return RecordOracle(charge(None, units.event), units, place, **options)


def sums_of(*args, **options):
    parts, options = parts_of(*args, **options)
    return MovingSums(*parts, **options)


# ---- a formula twin of the unit ------------------------------------------------------------------


def twin_of_bits(z, neighbors, n):
    """2^bits units are the standard deviation of the noise (test_the_noise_is_... looks at it)."""
    return min(48, math.floor(math.log2(z * neighbors * min(2.0**24, 2.0**50 / n))))


def norm_of(limit, size):
    """The largest norm of one record's integers."""
    return limit if size == 1 else limit * (1 + (size + 16) * 2.0**-52) + math.sqrt(size) / 2


@table("neighboring", RELATIONS)
@table("z", [1e-6, 0.02, 0.7, 33.0, 1e5, 1e9])
@table("size", [1, 4])
def test_the_noise_is_at_least_the_multiplier_times_the_sensitivity_as_realised(
    neighboring, z, size
):
    # bits as seen from outside: released units are integers plus noise of 2^bits
    event, n, draws = FitEvent((GaussianEvent(z, 1),), neighboring), 3, 400
    X, M = np.zeros((n, 3)), np.array([1.0, 4.0, 0.25, 1.0])
    block = np.arange(size)
    sampling = BlockSampling(4, size) if size > 1 else OnlyFirst()
    problem, units = Problem(ElasticNet(), M, 3, 1), []
    for _ in range(draws):
        oracle = oracle_of(X, np.zeros(n), event=event, M=M)
        coef = _skgd.solve(oracle, problem, sampling, np.random.default_rng(0)).coef[block]
        _, limit = sums_of(X, np.zeros(n), event=event, M=M).of(block, joint=True)
        unit = math.sqrt(size / M.sum()) * np.sqrt(M[block]) / limit / n
        units.append(-coef * M[block] / unit - 0.5)
    units = np.concatenate(units)
    bits = twin_of_bits(z, RELATIONS[neighboring], n)
    if bits < 40:
        assert np.max(np.abs(units - np.rint(units))) < 1e-3
    # chi-square of the variance: the next power of two is 4 times as far
    chi_square = np.sum((units + 0.5) ** 2) / 4.0**bits
    assert stats.chi2.sf(chi_square, len(units)) > P_VALUE
    assert stats.chi2.cdf(chi_square, len(units)) > P_VALUE
    # one unit in the last place of z, which the calibration has paid for
    sensitivity = RELATIONS[neighboring] * norm_of(limit, size)
    assert 2.0**bits >= z * sensitivity * (1 - 2.0**-52)
    assert limit >= 1


class OnlyFirst:
    """A sampling of the first coordinate, as a block."""

    block = np.arange(1)
    block_size = 1

    def draw(self, generator, count):
        return itertools.repeat(self.block, count)


@given(
    st.floats(-9, 15).map(lambda x: 10.0**x),
    st.sampled_from(list(RELATIONS)),
    st.integers(1, 40),
    st.integers(1, 10**12),
)
@example(1.0, "replace_one", 1, 2**26)
@example(2.0**-24, "replace_one", 1, 1)
@example(2.0**47, "add_remove", 2, 1)
@properties
def test_the_limit_keeps_the_noise_above_the_sensitivity_for_every_multiplier(
    z, neighboring, size, n
):
    bits = twin_of_bits(z, RELATIONS[neighboring], n)

    def build():
        event = FitEvent((GaussianEvent(z, 1),), neighboring)
        M = np.ones(40)
        return sums_of(np.ones((1, 40)), [0.0], event=event, M=M, fit_intercept=False, n=n)

    if bits < 1 or 2.0**bits < z * RELATIONS[neighboring] * norm_of(1, 40):
        with pytest.raises(ValueError, match="out of the range"):
            build()
        return
    _, limit = build().of(np.arange(size), joint=True)
    sensitivity = RELATIONS[neighboring] * norm_of(limit, size)
    assert bits <= 48 and limit >= 1 and limit == int(limit)
    assert 2.0**bits >= z * sensitivity * (1 - 2.0**-52)
    assert n * limit <= 2.0**51  # sums of n records stay exact


# ---- a record's contribution ---------------------------------------------------------------------

MAGNITUDES = [0.0, 5e-324, 1e-310, 1e-200, 1e-160, 1e-154, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e100]
MAGNITUDES += [1e153, 1e154, 1e160, 1e300, 1.7e308]
extreme = st.one_of(
    st.sampled_from(MAGNITUDES + [-m for m in MAGNITUDES]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
)
weight = st.one_of(st.sampled_from(MAGNITUDES), st.floats(0, 10), st.floats(0, 1.7e308))
positive = st.floats(-19.0, 19.0).map(lambda x: 10.0**x)


@st.composite
def records(draw, n=1):
    """n records of p extreme features, with targets, weights, a step, M and C from their ranges."""
    p = draw(st.sampled_from([1, 2, 3, 8, 11]))
    shape = (n, p)
    scale = positive if draw(st.booleans()) else st.floats(0.1, 10)
    return {
        "X": draw(hnp.arrays(float, shape, elements=extreme)),
        "y": draw(hnp.arrays(float, n, elements=extreme)),
        "weights": draw(hnp.arrays(float, n, elements=weight)),
        "step": draw(hnp.arrays(float, p + 1, elements=extreme)),
        "M": draw(hnp.arrays(float, p + 1, elements=scale)),
        "clip": draw(scale),
        "loss": draw(st.sampled_from([SquaredLoss(), LogisticLoss()])),
    }


@given(records(), st.booleans())
@properties
def test_a_record_never_contributes_more_than_the_limit(record, joint):
    step, everything = record.pop("step"), np.arange(len(record["M"]))
    sums, limit = sums_of(**record).of(everything, step, joint=joint)
    assert_array_equal(sums, np.rint(sums))  # finite, and integer
    assert np.max(np.abs(sums)) <= limit
    if joint:
        assert np.linalg.norm(sums) <= norm_of(limit, len(sums)) * (1 + 1e-12)


MUCH_NOISE = FitEvent((GaussianEvent(1e4, 1),))


@pytest.mark.parametrize("r", [1.0, 1e30, 1e300], ids=lambda r: f"r={r:g}")
@pytest.mark.parametrize(
    ("small", "large", "clip"),
    [(1.0, 1.0, 1.0), (1e-20, 1e20, 1.01e-20), (1e-20, 1e-20, 1e19), (1e20, 1, 1)],
    ids=str,
)
def test_a_norm_is_clipped_at_every_magnitude_of_a_record(r, small, large, clip):
    # 199 equal entries: none of them is large, together they are
    M = np.full(200, small)
    M[-1] = large
    for x in np.geomspace(1e-170, 1e-150, 2001) if r > 1 else np.geomspace(1e-20, 1e20, 201):
        X = np.full((1, 200), x)
        X[0, -1] = 0
        asked = sums_of(X, [-r], M=M, clip=clip, fit_intercept=False, event=MUCH_NOISE)
        sums, limit = asked.of(np.arange(200), joint=True)
        assert np.linalg.norm(sums) <= norm_of(limit, 200) * (1 + 1e-12), f"x={x!r}"


def test_scales_that_move_during_a_fit_move_no_clip():
    M = np.ones(10)
    asked = sums_of(np.ones((1, 10)), [1e9], M=M, fit_intercept=False)
    for factor in (1.0, 1e6, 1e-12):
        M *= factor
        sums, limit = asked.of(np.arange(9), joint=True)
        assert np.linalg.norm(sums) <= norm_of(limit, 9)


@pytest.mark.parametrize("block", [[2, 0], [2, 1, 0], [2, 0, 1], [1, 0]], ids=str)
def test_a_block_in_another_order_is_refused_or_clipped_all_the_same(block):
    # Unequal M: reading one coordinate by another's M would let this record pass the clip.
    class Unsorted(OnlyFirst):
        block_size = len(block)

    Unsorted.block = np.array(block, dtype=np.intp)

    M, z = np.array([1e-4, 1.0, 1e4]), 0.01
    oracle = oracle_of([1.0, 1.0], [-1e9], M=M, event=FitEvent((GaussianEvent(z, 1),)))
    problem = Problem(ElasticNet(), M, 2, 1)
    try:
        coef = _skgd.solve(oracle, problem, Unsorted(), np.random.default_rng(0)).coef
    except (RuntimeError, ValueError):
        return
    released = coef[block] * np.sqrt(M[block])  # in the geometry of M, where the noise is isotropic
    longest = math.sqrt(len(block) / M.sum())
    # noise of 2 z = 0.02 of the clip in each coordinate: 0.15 is beyond 7 standard deviations
    assert np.linalg.norm(released) <= longest * (1 + 0.15)


# ---- neighbours ----------------------------------------------------------------------------------


@st.composite
def neighbours(draw):
    """Two data sets that differ in record i, and a public path of steps and blocks."""
    n = draw(st.integers(1, 5))
    one, i = draw(records(n=n)), draw(st.integers(0, n - 1))
    other = {**one, "X": one["X"].copy(), "y": one["y"].copy(), "weights": one["weights"].copy()}
    other["X"][i] = draw(hnp.arrays(float, one["X"].shape[1], elements=extreme))
    other["y"][i], other["weights"][i] = draw(extreme), draw(weight)
    p = len(one.pop("step"))
    other.pop("step")
    steps = draw(st.lists(hnp.arrays(float, p, elements=extreme), min_size=1, max_size=3))
    block = draw(st.lists(st.integers(0, p - 1), min_size=1, unique=True).map(sorted))
    return one, other, i, steps, np.array(block)


def moved(one, other, steps, block, joint, neighboring, z=10.0, n=None):
    """How far the sums of a block lie apart after each step; and the noise."""
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    both = [sums_of(**records, event=event) for records in (one, other)]
    apart = []
    for step in steps:
        sums = [asked.of(block, step, joint=joint)[0] for asked in both]
        apart.append(sums[0] - sums[1])
    noise = 2.0 ** twin_of_bits(z, RELATIONS[neighboring], n or len(one["y"]))
    return np.array(apart), noise


@given(neighbours(), st.floats(0.01, 1e4))
@properties
def test_replacing_a_record_moves_every_sum_by_at_most_the_sensitivity(pair, z):
    one, other, _, steps, block = pair
    apart, noise = moved(one, other, steps, block, False, "replace_one", z)
    assert np.max(np.abs(apart)) * z <= noise * (1 + 1e-12)
    apart, noise = moved(one, other, steps, block, True, "replace_one", z)
    assert np.max(np.linalg.norm(apart, axis=1)) * z <= noise * (1 + 1e-12)


@given(neighbours(), st.floats(0.01, 1e4))
@properties
def test_removing_a_record_moves_every_sum_by_at_most_half_as_much(pair, z):
    one, _, i, steps, block = pair
    assume(len(one["y"]) > 1)
    fewer = {**one, **{name: np.delete(one[name], i, axis=0) for name in ("X", "y", "weights")}}
    one["n"] = fewer["n"] = n_public = 100
    apart, noise = moved(one, fewer, steps, block, False, "add_remove", z, n_public)
    assert np.max(np.abs(apart)) * z <= noise * (1 + 1e-12)
    apart, noise = moved(one, fewer, steps, block, True, "add_remove", z, n_public)
    assert np.max(np.linalg.norm(apart, axis=1)) * z <= noise * (1 + 1e-12)


@given(neighbours())
@properties
def test_a_record_of_weight_zero_contributes_nothing(pair):
    one, other, i, steps, block = pair
    one["weights"][i] = other["weights"][i] = 0.0
    # infinite derivatives times zero are NaN: bounded, but not zero
    assume(np.abs(np.concatenate([*steps, one["y"], other["y"]])).max() < 1e100)
    assume(np.abs(np.concatenate([one["X"], other["X"]])).max() < 1e100)
    for joint in (False, True):
        apart, _ = moved(one, other, steps, block, joint, "add_remove")
        assert not apart.any()


@pytest.mark.parametrize("joint", [False, True], ids=["coordinates", "joint"])
def test_the_sensitivity_is_reached_so_no_noise_is_wasted(joint):
    block = np.arange(4)
    X, M = np.ones((3, 3)), np.ones(4)
    one = {"X": X, "y": np.array([1e9, 0.0, 0.0]), "M": M}
    other = {"X": X, "y": np.array([-1e9, 0.0, 0.0]), "M": M}
    apart, noise = moved(one, other, [np.zeros(4)], block, joint, "replace_one", z=1.0)
    reached = np.linalg.norm(apart) if joint else np.max(np.abs(apart))
    assert 0.999 * noise <= reached <= noise


# ---- what was paid for ---------------------------------------------------------------------------


def solve(solver, oracle, n_updates, p=3):
    problem = Problem(ElasticNet(), np.ones(p + 1), p, n_updates)
    sampling = FullSampling(p + 1) if solver is _skgd else SingleSampling(p + 1)
    return solver.solve(oracle, problem, sampling, np.random.default_rng(0))


def three(*releases, **options):
    rng = np.random.default_rng(0)
    event = FitEvent(tuple(releases))
    return oracle_of(rng.standard_normal((9, 3)), np.arange(9.0), event=event, **options)


@table(
    ("solver", "releases"),
    [
        (_cd, [GaussianEvent(5.0, 4)]),
        (_skgd, [GaussianEvent(5.0, 4)]),
        (_gcd, [SelectionEvent(0.1, 4), GaussianEvent(5.0, 4)]),
        (_gcd, [SelectionEvent(0.1, 9), GaussianEvent(5.0, 4)]),
        (_gcd, [SelectionEvent(0.1, 4), GaussianEvent(5.0, 9)]),
    ],
)
def test_one_more_release_than_was_paid_for_is_refused(solver, releases):
    assert solve(solver, three(*releases), 4).n_updates == 4
    with pytest.raises(RuntimeError, match="refused a release"):
        solve(solver, three(*releases), 5)
    # and whatever else is tried on the same oracle
    oracle = three(*releases)
    solve(solver, oracle, 4)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="refused a release"):
            solve(solver, oracle, 1)


def test_choices_that_were_not_paid_for_are_refused():
    with pytest.raises(RuntimeError, match="refused a release"):
        solve(_gcd, three(GaussianEvent(5.0, 4)), 1)


@table(
    "releases",
    [
        [GaussianEvent(0.0, 4)],
        [GaussianEvent(math.nan, 4)],
        [GaussianEvent(-1.0, 4)],
        [GaussianEvent(1.0, 0)],
        [GaussianEvent(1.0, -1)],
        [GaussianEvent(1.0, 1), GaussianEvent(1.0, 1)],
        [FitEvent((GaussianEvent(1.0, 4),))],
        [SelectionEvent(0.0, 4), GaussianEvent(1.0, 4)],
        [SelectionEvent(math.nan, 4), GaussianEvent(1.0, 4)],
        [SelectionEvent(math.inf, 4), GaussianEvent(1.0, 4)],
        [SelectionEvent(1.0, -1), GaussianEvent(1.0, 4)],
        [SelectionEvent(1.0, 4)],
        [],
    ],
)
def test_an_event_that_means_no_noise_or_no_end_releases_nothing(releases):
    solver = _gcd if any(isinstance(r, SelectionEvent) for r in releases) else _cd
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        solve(solver, three(*releases), 1000)


def test_an_unknown_relation_is_refused():
    with pytest.raises(KeyError):
        oracle_of([1.0], [1.0], event=FitEvent((GaussianEvent(1.0, 1),), "bounded"))


PUBLIC = {"n_samples": 1, "smoothness": np.ones(2), "clip": 1.0, "n_normalizer": 1}
ONE_RECORD = np.ones((1, 1)), np.ones(1)


def oracle_with(receipt):
    units = CoordinateUnits(receipt.event, **PUBLIC)
    return RecordOracle(receipt, units, LocalPlace(*ONE_RECORD), loss=SquaredLoss())


def test_a_receipt_is_redeemed_once():
    receipt = charge(None, FitEvent((GaussianEvent(1.0, 1),)))
    oracle_with(receipt)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="redeemed before"):
            oracle_with(receipt)


def test_of_many_threads_one_redeems_a_receipt():
    for _ in range(20):
        receipt = charge(None, FitEvent((GaussianEvent(1.0, 1),)))
        barrier, made = threading.Barrier(8), []

        def redeem(receipt=receipt, barrier=barrier, made=made):
            barrier.wait()
            try:
                made.append(oracle_with(receipt))
            except RuntimeError:
                pass

        threads = [threading.Thread(target=redeem) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_a_receipt_is_not_redeemed_in_another_process():
    receipt = charge(None, FitEvent((GaussianEvent(1.0, 1),)))

    def refused():
        with pytest.raises(RuntimeError):
            oracle_with(receipt)
        return True

    assert forked(refused)()
    oracle_with(receipt)


@pytest.mark.parametrize("kind", [RecordOracle, BatchOracle])
def test_an_oracle_has_nothing_to_call_from_python(kind):
    # scores are of integers that are handed to it, for a test's tape
    assert {name for name in dir(kind) if not name.startswith("__")} <= {"_scores_on_tape"}


def test_an_oracle_is_never_made_anew_over_other_records():
    event = FitEvent((GaussianEvent(1e4, 1),))
    options = {"loss": SquaredLoss(), "fit_intercept": False}
    units = CoordinateUnits(event, n_samples=4, smoothness=np.ones(3), clip=1.0, n_normalizer=4)
    y = np.full(4, -1e6)
    oracle = RecordOracle(charge(None, event), units, LocalPlace(np.ones((4, 3)), y), **options)
    _skgd.solve(
        oracle, Problem(ElasticNet(), np.ones(3), 3, 1), FullSampling(3), np.random.default_rng(0)
    )
    place = LocalPlace(np.full((4, 3), 1e3), y)
    with pytest.raises(RuntimeError, match="made once"):
        oracle.__init__(charge(None, event), units, place, **options)
