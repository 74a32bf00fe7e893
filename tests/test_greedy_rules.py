"""Greedy choices: what a score is, how it moves, and the law of the coordinates that are chosen.

Laws are judged by statistics whose false alarms are rarer than 1e-7 each.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import softmax
from tables import table
from twins import follows, law_of_orders, oracle_of

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.loops import _gcd
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.losses import LogisticLoss
from dpcd_sklearn.penalties import BoxPenalty, ElasticNet, GroupLassoPenalty, Rule
from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    GaussianEvent,
    SelectionEvent,
    greedy_fit_event,
)
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.solvers._gcd import GCDPlan

P_VALUE = 1e-8
RELATIONS = {"replace_one": 2, "add_remove": 1}
RULES = [Rule.GS_S, Rule.GS_R, Rule.GS_Q]
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: Rule(rule).name)
properties = settings(max_examples=500, deadline=None, derandomize=True)


# ---- scores --------------------------------------------------------------------------------------

coefficient = st.one_of(st.just(0.0), st.floats(-1e3, 1e3), st.floats(-1e-3, 1e-3))
gradient = st.one_of(st.just(0.0), st.floats(-1e3, 1e3), st.floats(-1e-3, 1e-3))
strength = st.one_of(st.just(0.0), st.floats(0, 10), st.floats(0, 1e-3), st.floats(0, 1e6))
smooth = st.floats(-6, 6).map(lambda x: 10.0**x)
direction = st.sampled_from([-1, 1])
nets = st.builds(ElasticNet, strength, strength)


@st.composite
def walled(draw):
    """A box, and a coefficient in it, often on a wall."""
    lo = draw(st.sampled_from([-math.inf, -2.0, -1e-3, 0.0]))
    hi = draw(st.sampled_from([math.inf, 3.0, 1e-3]))
    w = draw(st.one_of(st.sampled_from([lo, hi]), coefficient))
    return BoxPenalty(lo, hi), min(max(w, lo, -1e3), hi, 1e3)


def halved(strengths, coefficients):
    """An elastic net of coefficients of one sign, and one of them."""

    def signed(l1, l2, w, sign):
        return ElasticNet(l1, l2, sign > 0, [sign]), sign * abs(w)

    return st.builds(signed, strengths, strengths, coefficients, direction)


netted = st.tuples(nets, coefficient) | halved(strength, coefficient)
domains = st.one_of(netted, walled())


@every_rule
@given(domains, gradient, gradient, smooth, direction)
@example((ElasticNet(1.0), 0.0), 1.0, -1.0, 1.0, 1)
@example((ElasticNet(0.5), 1.0), 2.0, 2.5, 1.0, -1)
@example((ElasticNet(0.5), 1.0), 2.0, 1.0, 1.0, -1)
@example((ElasticNet(1e6, 1e6), 1e3), 1e3, -1e3, 1e-6, -1)
@properties
def test_a_score_is_lipschitz_in_the_gradient(rule, where, one, other, M, direction):
    penalty, w = where
    scores = [penalty.greedy_score(rule, w, g, M, direction) for g in (one, other)]
    if -math.inf in scores:
        assert scores == [-math.inf, -math.inf]  # whatever the records say
        return
    # the proof's bound of 2^-48 of the public part and the gradient; products may be subnormal
    public = (abs(penalty.greedy_score(rule, w, 0.0, M, d)) for d in (1, -1))
    public = abs(w) * math.sqrt(M) + max((p for p in public if p < math.inf), default=0.0)
    rounding = 1e-150 + 2.0**-48 * (2 * public + (abs(one) + abs(other)) / math.sqrt(M))
    assert abs(scores[0] - scores[1]) <= abs(one - other) / math.sqrt(M) * (1 + 1e-14) + rounding


def objective(penalty, w, g, M, move):
    """g α + M α² / 2 + ψ(w + α) - ψ(w)."""
    if isinstance(penalty, BoxPenalty):
        inside = penalty.lo <= w + move <= penalty.hi
        return g * move + M * move * move / 2 if inside else math.inf
    if penalty.value(np.array([w + move])) == math.inf:
        return math.inf
    change = penalty.l1 * (abs(w + move) - abs(w)) + penalty.l2 * (w * move + move * move / 2)
    return g * move + M * move * move / 2 + change


def best_move(penalty, w, g, M, direction):
    """The minimiser of a convex function on a half line, by thirds."""
    low, high = 0.0, 2 * (abs(g) + abs(w) * M) / M
    if isinstance(penalty, BoxPenalty):
        high = min(high, (penalty.hi - w) if direction > 0 else (w - penalty.lo))
    elif penalty.value(np.array([direction])) == math.inf:
        high = min(high, abs(w))
    for _ in range(300):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        values = [objective(penalty, w, g, M, direction * m) for m in (a, b)]
        low, high = (low, b) if values[0] <= values[1] else (a, high)
    return direction * low


@given(
    st.one_of(
        st.tuples(st.builds(ElasticNet, st.floats(0, 3), st.floats(0, 3)), st.floats(-3, 3)),
        halved(st.floats(0, 3), st.floats(0, 3)),
        walled(),
    ),
    st.floats(-5, 5),
    st.floats(0.1, 10),
    direction,
)
@example((ElasticNet(1.0, 0.5), 0.0), 3.0, 1.0, -1)
@example((ElasticNet(1.0, 0.5), 0.5), 3.0, 1.0, -1)
@example((ElasticNet(1.0, 0.5), 2.0), 3.0, 1.0, -1)
@example((ElasticNet(1.0, 0.5), 0.1), 1.0, 1.0, -1)
@properties
def test_scores_are_what_brute_force_minimisation_promises(where, g, M, direction):
    penalty, w = where
    w = min(max(w, -3.0), 3.0)
    slope, length, decrease = (penalty.greedy_score(r, w, g, M, direction) for r in RULES)
    if slope == -math.inf:
        assert length == decrease == -math.inf
        assert penalty.value(np.array([w + direction * 1e-9])) == math.inf
        return
    h = 1e-7 * (1 + abs(w))
    numeric = objective(penalty, w, g, M, direction * h) / h
    if numeric < math.inf and (w == 0 or abs(w) > h):
        assert slope == pytest.approx(-numeric / math.sqrt(M), abs=1e-5)
    if slope <= 0:
        assert slope == length == decrease  # continued below zero
        return
    move = best_move(penalty, w, g, M, direction)
    least = objective(penalty, w, g, M, move)
    assert length == pytest.approx(math.sqrt(M) * abs(move), abs=1e-5)
    assert decrease**2 / 2 == pytest.approx(-least, abs=1e-9)
    assert decrease >= length * (1 - 1e-12) - 1e-150  # strong convexity: q >= M α² / 2


@pytest.mark.parametrize("lo_hi", [(0.0, math.inf), (-1.0, 1.0)], ids=str)
@every_rule
def test_a_coefficient_beyond_a_wall_by_a_rounding_does_not_move_further_out(rule, lo_hi):
    box = BoxPenalty(*lo_hi)
    beyond = np.nextafter(box.lo, -math.inf)
    assert box.greedy_score(rule, beyond, 1e3, 1.0, -1) == -math.inf
    assert box.greedy_score(rule, beyond, -1e3, 1.0, 1) > 0


@pytest.mark.parametrize("bad", [(-1.0, 0.0), (0.0, -1.0), (math.nan, 0.0), (0.0, math.inf)])
def test_a_strength_that_is_no_strength_is_refused(bad):
    with pytest.raises(ValueError, match="l1 and l2"):
        ElasticNet(*bad)


# ---- the law of a choice -------------------------------------------------------------------------


# Records at zero: the logistic derivative is -1/2, nothing is clipped, and the gradient is g.
N = 30
M, CLIP = np.array([1.0, 4.0, 0.5, 1.0]), 3.0
X, Y = np.tile([0.4, -0.9, 0.2], (N, 1)), np.ones(N)
G = np.array([-0.2, 0.45, -0.1, -0.5])


def moved_coordinates(draws, rule, size, eta, penalty, neighboring, lazy):
    """The coordinates that the first update of DP-GCD moved, as a frozenset, and how often."""
    # With little noise in the partial derivatives a step is taken just when the sign is right.
    event = FitEvent((SelectionEvent(eta, size), GaussianEvent(1e-5, size)), neighboring)
    problem = Problem(penalty, M, 3, 1, rule=rule, n_chosen=size)
    seen = Counter()
    for _ in range(draws):
        oracle = oracle_of(X, Y, event, M, clip=CLIP, loss=LogisticLoss(), lazy=lazy)
        seen[frozenset(np.flatnonzero(_gcd.solve(oracle, problem).coef).tolist())] += 1
    return seen


@table("size", [1, 3])
@every_rule
@table(
    ("neighboring", "l1", "l2", "lazy"),
    [
        ("replace_one", 0.05, 0.3, False),
        ("replace_one", 0.05, 0.3, True),
        ("add_remove", 0.0, 0.0, False),
    ],
)
def test_the_best_of_one_draw_have_the_law_of_successive_choices(
    neighboring, l1, l2, lazy, rule, size
):
    eta, penalty = 0.4, ElasticNet(l1, l2)
    s = RELATIONS[neighboring] * CLIP / math.sqrt(M.sum()) / N
    scores = [
        (penalty if j < 3 else ElasticNet()).greedy_score(rule, 0.0, G[j], M[j], d)
        for j, d in itertools.product(range(4), (-1, 1))
    ]
    # only a move against g, where |g| exceeds l1, is taken
    law = Counter()
    for order, probability in law_of_orders(np.array(scores) * eta / (2 * s), size).items():
        shows = frozenset(c // 2 for c in order if (c % 2 == 1) == (G[c // 2] < 0))
        law[shows] += probability
    assert follows(moved_coordinates(4_000, rule, size, eta, penalty, neighboring, lazy), law)


@every_rule
def test_moves_out_of_the_domain_are_no_candidates(rule):
    # everything pulls downwards, where a wall stands, but for the noise
    event = FitEvent((SelectionEvent(1.0, 400), GaussianEvent(9.0, 400)))
    oracle = oracle_of(np.ones((9, 3)), -np.ones(9), event, np.ones(3))
    problem = Problem(BoxPenalty(0.0, 0.5), np.ones(3), 3, 200, rule=rule, n_chosen=2, path_every=1)
    path = _gcd.solve(oracle, problem).path
    assert path.min() == 0.0 and path.max() <= 0.5 and path.any()
    # one candidate for one choice: no coordinate has another way to go
    single = Problem(BoxPenalty(-1e-9, 0.0), np.ones(3), 3, 1, rule=rule, n_chosen=3)
    oracle = oracle_of(np.ones((9, 3)), -np.ones(9), event, np.ones(3))
    assert (_gcd.solve(oracle, single).coef <= 0).all()


# ---- what floating point leaves proved -----------------------------------------------------------


def test_a_huge_penalty_does_not_drown_the_noise_of_a_choice():
    # l1 as large as the oracle admits: scores are 2^34 times as large as what neighbours change
    n, eta, draws, M = 10, 1.0, 12_000, np.ones(2)
    clip = 1 / math.sqrt(2)  # of each coordinate
    s = 2 * clip / n
    X, y = np.tile([clip, 0.2 * clip], (n, 1)), np.ones(n)  # logistic derivative -1/2 at zero
    law = softmax(np.array([0.5, 0.1, -0.5, -0.1]) * clip * eta / (2 * s))
    # A choice shows when the noise of its partial derivative outgrows l1, in the right direction:
    # equally often for each, since that noise is 10^12 times as large as what records contribute.
    event = FitEvent((SelectionEvent(eta, 1), GaussianEvent(1e12, 1)))
    problem = Problem(ElasticNet(0.99 * 2.0**34 * s), M, 2, 1)
    counts = np.zeros(2)
    for _ in range(draws):
        oracle = oracle_of(X, y, event, M, loss=LogisticLoss())
        counts += _gcd.solve(oracle, problem).coef != 0
    assert draws / 3 < counts.sum() < 2 * draws / 3
    expected = counts.sum() * np.array([law[0] + law[2], law[1] + law[3]])
    assert stats.chisquare(counts, expected).pvalue > P_VALUE


@every_rule
@table("l1", [1e13, 1e17, 1e300, math.inf, math.nan])
def test_a_penalty_that_would_drown_the_noise_of_a_choice_is_refused(l1, rule):
    event = FitEvent((SelectionEvent(1.0, 1), GaussianEvent(1.0, 1)))
    oracle = oracle_of(np.ones((10, 2)), np.ones(10), event, np.ones(3))
    with pytest.raises((RuntimeError, ValueError)):
        _gcd.solve(oracle, Problem(ElasticNet(l1), np.ones(3), 2, 1, rule=rule))


def test_many_choices_of_one_draw_admit_smaller_scores_only():
    # the error of a key counts k² times: the same l1 passes for one choice and not for sixteen
    event = FitEvent((SelectionEvent(1.0, 16), GaussianEvent(1.0, 16)))
    l1 = 2.0**32 * 2 * (1 / math.sqrt(17)) / 10
    for size, refused in ((1, False), (16, True)):
        oracle = oracle_of(np.ones((10, 17)), np.ones(10), event, np.ones(17))
        problem = Problem(ElasticNet(l1), np.ones(17), 17, 1, n_chosen=size)
        if refused:
            with pytest.raises(RuntimeError, match="refused"):
                _gcd.solve(oracle, problem)
        else:
            _gcd.solve(oracle, problem)


@table(
    ("eta", "n", "n_chosen", "proved"),
    [
        (2.0**-28, 100, 1, True),
        (2.0**-30, 100, 1, False),
        (1.0, 2.0**33, 1, True),
        (1.0, 2.0**35, 1, False),
        (0.01, 10_000, 30, True),
        (0.01, 10_000, 3000, False),
        (2.0**11, 100, 1, False),
        (math.nan, 100, 1, False),
    ],
)
def test_ranges_outside_of_the_proof_are_refused_before_anything_is_charged(
    eta, n, n_chosen, proved
):
    public = {"n_samples": 10, "smoothness": np.ones(9), "clip": 1.0}
    public |= {"n_normalizer": n, "n_chosen": n_chosen}
    event = FitEvent((SelectionEvent(eta, 9), GaussianEvent(1.0, 9)))
    if proved:
        CoordinateUnits(event, **public)
    else:
        with pytest.raises(ValueError, match="outside what is proved"):
            CoordinateUnits(event, **public)


@pytest.mark.parametrize("lazy", [False, True])
def test_more_records_than_n_public_weigh_on_a_score_as_n_public_do(lazy):
    # so that its public bound holds: 1,000 records promise no more than the 10 that are public
    n_public, draws, eta, M = 10, 20_000, 0.4, np.ones(2)
    clip = 1 / math.sqrt(2)  # of each coordinate
    X, y = np.tile([1e3, 0.0], (1000, 1)), np.ones(1000)
    event = FitEvent((SelectionEvent(eta, 1), GaussianEvent(1e-5, 1)), "add_remove")
    top = n_public * eta / 2  # of the score, in scales of its noise, if all records are clipped
    law = np.exp([top, -top, 0, 0])
    law /= law.sum()
    counts = 0
    for _ in range(draws // 10):
        units = CoordinateUnits(
            event, n_samples=len(X), smoothness=M, clip=clip * math.sqrt(2), n_normalizer=n_public
        )
        oracle = RecordOracle(
            charge(None, event), units, LocalPlace(X, y), loss=LogisticLoss(), fit_intercept=False,
            lazy=lazy,
        )  # fmt: skip
        counts += _gcd.solve(oracle, Problem(ElasticNet(), M, 2, 1)).coef[0] != 0
    # a step is taken in the first coordinate unless the noise pointed uphill
    assert stats.binomtest(int(counts), draws // 10, law[0]).pvalue > P_VALUE
    assert 0.1 < law[0] < 0.9


@every_rule
@given(domains, gradient, st.integers(0, 2**24), st.integers(0, 2**24), smooth, direction)
@properties
def test_neighbours_move_a_rounded_score_by_the_units_that_are_paid_for(
    rule, where, g, one, other, M, direction
):
    # in units of 2^-13 of the sensitivity, whatever the score and however it was rounded before
    penalty, w = where
    low, high = sorted((one, other))
    sensitivity = 2.0**-24 * (1 + abs(g)) * (high - low) / math.sqrt(M)
    scores = [
        penalty.greedy_score(rule, w, g + 2.0**-24 * (1 + abs(g)) * k, M, direction)
        for k in (low, high)
    ]
    if -math.inf in scores or sensitivity == 0:
        return
    public = max(
        abs(penalty.greedy_score(rule, w, 0.0, M, d))
        for d in (1, -1)
        if penalty.greedy_score(rule, w, 0.0, M, d) > -math.inf
    )
    if public + abs(w) * math.sqrt(M) + 2 * (abs(g) + 1) / math.sqrt(M) > 2.0**34 * sensitivity:
        return
    units = [np.rint(score * (2.0**13 / sensitivity)) for score in scores]
    assert abs(units[0] - units[1]) <= 2**13 + 1


# ---- what was paid for ---------------------------------------------------------------------------


UNIT = {"feature_scale": 1.0, "target_bounds": (-1, 1)}


def test_a_mutant_that_pays_one_choice_for_many_is_refused_by_its_oracle(monkeypatch):
    def event(self):
        ask, share = self.request, self.request.solver.selection_share
        return greedy_fit_event(ask.budget, self.n_updates, share)

    model = DPLinearRegressor(solver=GCD(block_size=3), penalty="l1", max_iter=4, **UNIT)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 5)), rng.uniform(-1, 1, 50)
    model.fit(X, y)
    monkeypatch.setattr(GCDPlan, "alone", property(event))
    with pytest.raises(RuntimeError, match="refused a release"):
        model.fit(X, y)


# ---- all coefficients at once --------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(-1e300, 1e300) | coefficient, smooth), min_size=3, max_size=5),
    strength, smooth,
)  # fmt: skip
@properties
def test_a_group_moves_to_the_point_that_its_length_and_the_distance_weigh_least(rows, l1, step):
    v, M = (np.array(column) for column in zip(*rows, strict=True))
    u = GroupLassoPenalty([[0, 2]], l1).proximal_all(v, M, step)
    assert np.isfinite(u).all() and (u[1::2] == v[1::2]).all() and (u[4:] == v[4:]).all()
    top = float(np.abs(v[[0, 2]]).max()) or 1.0  # in units of which nothing overflows
    v, u, M = v[[0, 2]] / top, u[[0, 2]] / top, M[[0, 2]] / step
    weight = l1 * 2**0.5 / top
    slack = 1e-7 * (weight + np.abs(M * v).max())
    if (u == 0).all():
        assert np.linalg.norm(M * v) <= weight + slack
    else:
        assert np.abs(M * (u - v) + weight * u / np.linalg.norm(u)).max() <= slack
