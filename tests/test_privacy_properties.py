"""The guarantee rests on these, for adversarial records: bounded contributions, sensitivities,
and no release that was not paid for.

Laws are judged by statistics whose false alarms are rarer than 1e-7 each.
"""

import functools
import math
import os

import numpy as np
import pytest
from forks import at_once, forked
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import table
from twins import bits_of, norm_of
from unreleased import MovingSums

from dpcd_sklearn.loops import _cd, _gcd, _skgd
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.losses import SquaredLoss
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import BatchOracle, CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.samplings import FullSampling, SingleSampling

RELATIONS = {"replace_one": 2, "add_remove": 1}
properties = settings(max_examples=300, deadline=None, derandomize=True)


def parts_of(X, y, *, event=None, M=None, clip=1.0, n=None, fit_intercept=True):
    """Units, a place and options: noise of multiplier 10 unless `event` says more."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    units = CoordinateUnits(
        event or FitEvent((GaussianEvent(10.0, 1000),)),
        n_samples=len(X),
        smoothness=np.ones(X.shape[1] + fit_intercept) if M is None else M,
        clip=clip,
        n_normalizer=len(X) if n is None else n,
    )
    place = LocalPlace(X, np.atleast_1d(np.asarray(y, dtype=float)))
    return (units, place), {"loss": SquaredLoss(), "fit_intercept": fit_intercept}


def oracle_of(*args, **options):
    """An oracle that nobody was charged for."""
    (units, place), options = parts_of(*args, **options)
    return RecordOracle(charge(None, units.event), units, place, **options)


def sums_of(*args, **options):
    parts, options = parts_of(*args, **options)
    return MovingSums(*parts, **options)


# ---- the unit ------------------------------------------------------------------------------------


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
    bits = bits_of(z, RELATIONS[neighboring], n)

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

MUCH_NOISE = FitEvent((GaussianEvent(1e4, 1),))


@pytest.mark.parametrize("r", [1.0, 1e30, 1e300], ids=lambda r: f"r={r:g}")
@pytest.mark.parametrize(
    ("small", "large", "clip"),
    [(1.0, 1.0, 1.0), (1e-60, 1e60, 1.01e-10), (1e-60, 1e-60, 1e9), (1e60, 1, 1)],
    ids=str,
)
def test_a_norm_is_clipped_at_every_magnitude_of_a_record(r, small, large, clip):
    # 199 equal entries: none of them is large, together they are
    M = np.full(200, small)
    M[-1] = large
    for x in np.geomspace(1e-170, 1e-150, 2001) if r > 1 else np.geomspace(1e-60, 1e60, 201):
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
    class Unsorted:
        block_size = len(block)

        def draw(self, generator, count):
            return [np.array(block, dtype=np.intp)] * count

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


def test_an_unknown_relation_is_refused():
    with pytest.raises(KeyError):
        oracle_of([1.0], [1.0], event=FitEvent((GaussianEvent(1.0, 1),), "bounded"))


PUBLIC = {"n_samples": 1, "smoothness": np.ones(2), "clip": 1.0, "n_normalizer": 1}
ONE_RECORD = np.ones((1, 1)), np.ones(1)


def oracle_with(receipt):
    units = CoordinateUnits(receipt.event, **PUBLIC)
    return RecordOracle(receipt, units, LocalPlace(*ONE_RECORD), loss=SquaredLoss())


def test_of_many_threads_one_redeems_a_receipt():
    for _ in range(20):
        receipt = charge(None, FitEvent((GaussianEvent(1.0, 1),)))
        refusals = at_once(*8 * [functools.partial(oracle_with, receipt)])
        assert [type(error) for error in refusals] == 7 * [RuntimeError]


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
