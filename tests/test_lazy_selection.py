"""The lazy draw of greedy choices has the law of the full draw, and differs in nothing but time.

Laws are judged by statistics whose false alarms are rarer than 1e-7 each; keys are fixed.
"""

import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import clone
from tables import table
from twins import follows, law_of_orders, oracle_of
from unreleased import choices

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPLogisticGCD
from dpcd_sklearn.loops import _gcd
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.penalties import Box, BoxPenalty, ElasticNet
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy.mechanisms import LazyChoice
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.solvers import GCD, FrankWolfe
from dpcd_sklearn.testing import ReproducibleNoise

P_VALUE = 1e-8
DRAWS = 30_000
NONE = -math.inf
OCTAVE = math.log(2)


def source(number=0):
    return NoiseSource(number.to_bytes(32, "little"))


# ---- the law, by enumeration ---------------------------------------------------------------------


def fits(drawn, law):
    """Whether orders were drawn by a law."""
    return follows(Counter(map(tuple, drawn.tolist())), law)


SHAPES = {
    "flat": [0.0] * 6,
    "ties and a shift": [700.25, 700.25, 701.0, 701.0, 700.25, 699.0],
    "octaves": [-k * OCTAVE for k in range(6)],
    "just above and below octaves": [0, -0.999 * OCTAVE, -1.001 * OCTAVE, -2.999 * OCTAVE, -3, -4],
    "far apart": [0.0, -1.0, -900.0, -900.5, -9000.0, -8999.0],
    "a coordinate above all": [60.0, 61.0, 0.0, 0.3, -0.5, 1.0],
    "no candidates among them": [0.0, NONE, 0.5, -0.25, NONE, 1.0],
    "a peak": [-3.0, -3.0, 2.0, -3.0, -3.0, -3.0],
    "an underflow below": [0.0, -0.5, -2000.0, -2000.2, NONE, -5000.0],
}
every_shape = pytest.mark.parametrize("scores", SHAPES.values(), ids=SHAPES)


WINDOWS = [{"window": w, "n_levels": n} for w, n in [(1, 1), (1, 2), (2, 2), (1, 9), (3, 1000)]]


@table("octaves", [{}, *WINDOWS])
@table("size", [1, 3])
@every_shape
def test_choices_have_the_law_of_the_exponential_mechanism_by_any_window(scores, size, octaves):
    drawn = choices(LazyChoice(3, **octaves), scores, size, source(), DRAWS)
    assert fits(drawn, law_of_orders(scores, size))


@pytest.mark.parametrize("scale", [0.9, 1.1])
@pytest.mark.parametrize("shape", ["flat", "octaves", "ties and a shift"])
def test_a_mutant_whose_acceptance_is_off_by_a_tenth_is_noticed(shape, scale):
    # a candidate accepted 0.9 times as often has a score that is lower by log 0.9
    scores = np.array(SHAPES[shape])
    scores[1] += math.log(scale)
    drawn = choices(LazyChoice(3), scores, 1, source(), 4 * DRAWS)
    assert not fits(drawn, law_of_orders(SHAPES[shape], 1))


@pytest.mark.parametrize("forgotten", range(6))
def test_a_mutant_that_forgets_an_octave_is_noticed(forgotten):
    scores = list(SHAPES["octaves"])
    scores[forgotten] = NONE
    drawn = choices(LazyChoice(3), scores, 1, source(), DRAWS)
    assert not fits(drawn, law_of_orders(SHAPES["octaves"], 1))


def test_a_mutant_that_accepts_whatever_is_below_its_window_is_noticed():
    # all below a window of one octave with its bound, one half, as their weight
    flattened = [max(v, -OCTAVE) for v in SHAPES["octaves"]]
    drawn = choices(LazyChoice(3, window=1), flattened, 1, source(), DRAWS)
    assert not fits(drawn, law_of_orders(SHAPES["octaves"], 1))


def test_many_candidates_in_many_blocks_have_their_law():
    # coordinates far apart in memory, in octaves of 1 to 10,000 candidates
    p = 10_000
    scores = np.full(2 * p, -math.log(2 * p))
    scores[[1, 4097, 8192, 19_999]] = [-0.5, 0.0, 0.5, -1.2]
    scores[5000:7000] = NONE
    drawn = choices(LazyChoice(p), scores, 1, source(), DRAWS)[:, 0]
    weight = np.exp(scores)
    expected = DRAWS * weight / weight.sum()
    groups = [[1], [4097], [8192], [19_999]]
    rest = np.delete(np.arange(2 * p), [1, 4097, 8192, 19_999])
    groups += np.array_split(rest, 20)
    table = np.array([(np.isin(drawn, g).sum(), expected[g].sum()) for g in groups])
    table = table[table[:, 1] > 0]
    statistic = np.sum((table[:, 0] - table[:, 1]) ** 2 / table[:, 1])
    assert stats.chi2.sf(statistic, len(table) - 1) > P_VALUE
    assert not np.isin(drawn, np.arange(5000, 7000)).any()


# ---- how it draws --------------------------------------------------------------------------------


def words_of(scores, size, draws, **settings):
    """Random words that a choice took, on average."""
    words = {word: i for i, word in enumerate(source().words(100_000))}
    used = source()
    assert choices(LazyChoice(len(scores) // 2, **settings), scores, size, used, draws) is not None
    return words[used.words(1)[0]] / draws


P = 3000
STEEP = {
    "flat": np.zeros(2 * P),
    "one peak": np.r_[1e4, np.zeros(2 * P - 1)],
    "geometric": -0.7 * np.arange(2 * P),
    "just above an octave": np.r_[0.0, np.full(2 * P - 1, -0.999 * OCTAVE)],
    "a cliff at the last octave": np.r_[0, 0, -5990 * OCTAVE, np.full(2 * P - 3, -1e6)],
    "a cliff at the window": np.r_[0, 0, np.full(2 * P - 2, -49.5 * OCTAVE)],
    "all far apart": -1e4 * np.arange(2 * P),
}


@table("size", [1, 2, 5])
@table("scores", STEEP.values())
def test_a_choice_takes_few_words_whatever_the_scores(scores, size):
    # at most 2.5 tries, of less than 2 words for the place and one for the acceptance
    assert 1 <= words_of(scores, size, 300) / size < 2.5 * 3 * 1.3


@given(
    st.lists(st.one_of(st.floats(-1e300, 1e6), st.just(NONE)), min_size=2, max_size=40), st.data()
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_choices_are_candidates_of_different_coordinates(scores, data):
    scores = scores[: len(scores) // 2 * 2]
    p = len(scores) // 2
    able = sum(max(scores[2 * j], scores[2 * j + 1]) > NONE for j in range(p))
    size = data.draw(st.integers(1, p))
    drawn = choices(LazyChoice(p), scores, size, source(), 3)
    if size > able:
        assert drawn is None
        return
    for order in drawn:
        assert len(set(order // 2)) == size
        assert all(scores[c] > NONE for c in order)


@pytest.mark.parametrize("bad", [[NONE] * 4, [math.nan] * 4, [math.inf, 0.0, 0.0, 0.0]])
def test_scores_without_a_finite_maximum_are_refused(bad):
    assert choices(LazyChoice(2), bad, 1, source(), 1) is None


@pytest.mark.parametrize("settings", [{"window": 0}, {"window": 61}, {"window": 9, "n_levels": 8}])
def test_a_window_without_room_is_refused(settings):
    with pytest.raises(ValueError, match="window"):
        LazyChoice(3, **settings)
    with pytest.raises(ValueError, match="coordinates"):
        LazyChoice(0)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_depths_are_as_exact_as_the_proof_says(top, below):
    v = top - below
    bound = max(abs(top), abs(v))
    depth = (top - v) * 1.4426950408889634
    with mpmath.workdps(60):
        exact = (mpmath.mpf(top) - mpmath.mpf(v)) / mpmath.log(2)
        error = abs(mpmath.mpf(depth) - exact) * mpmath.log(2)
        fraction = mpmath.mpf(2) ** (-(mpmath.mpf(depth) % 1))
        assert error <= 6.02 * 2.0**-53 * bound + 2.0**-1070  # subnormal numbers
        computed = np.exp2(math.floor(depth) - depth)
        assert abs(mpmath.mpf(float(computed)) - fraction) <= 2.0**-48 * fraction


# ---- through the oracle --------------------------------------------------------------------------


@table("n_chosen", [1, 3])
@table("form", [np.asarray, sparse.csr_array, sparse.csc_array])
@table("penalty", [ElasticNet(0.02, 0.1), BoxPenalty(-0.2, 0.3)])
def test_without_noise_to_speak_of_the_paths_are_those_of_the_full_draw(penalty, form, n_chosen):
    # scores that were kept from earlier updates would show here if they were not true any more
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 12)) * (rng.random((200, 12)) < 0.2)
    y = np.clip(A @ np.r_[1.0, -0.7, 0.4, np.zeros(9)], -1, 1)
    count = 40 * n_chosen
    paths = []
    for lazy in (False, True):
        event = FitEvent((SelectionEvent(1000.0, count), GaussianEvent(1e-7, count)))
        problem = Problem(penalty, np.ones(13), 12, 40, n_chosen=n_chosen, path_every=1)
        oracle = oracle_of(form(A), y, event, np.ones(13), lazy=lazy, clip=20.0, key=bytes(32))
        paths.append(_gcd.solve(oracle, problem).path)
    assert np.count_nonzero(paths[0][-1]) >= 3
    # beyond this the scores of what is left are level, and noise decides
    assert np.abs(paths[0][:6] - paths[1][:6]).max() < 1e-4
    assert np.abs(paths[0][-1] - paths[1][-1]).max() < 0.02


@pytest.mark.parametrize("lazy", [True, False])
def test_more_choices_than_coordinates_are_refused(lazy):
    event = FitEvent((SelectionEvent(1.0, 9), GaussianEvent(1.0, 9)))
    for n_chosen in (3, 4):
        oracle = oracle_of(np.ones((9, 2)), np.ones(9), event, np.ones(3), lazy=lazy)
        problem = Problem(BoxPenalty(-1.0, 0.0), np.ones(3), 2, 2, n_chosen=n_chosen)
        if n_chosen == 4:
            with pytest.raises(RuntimeError, match="refused a release"):
                _gcd.solve(oracle, problem)
        else:  # though there is one direction left for each that has a penalty
            assert _gcd.solve(oracle, problem).n_updates == 2


@pytest.mark.parametrize("lazy", [True, False])
def test_each_choice_is_paid_for(lazy):
    event = FitEvent((SelectionEvent(0.1, 5), GaussianEvent(1.0, 9)))
    for n_updates, refused in ((2, False), (3, True)):
        oracle = oracle_of(np.ones((9, 3)), np.ones(9), event, np.ones(3), lazy=lazy)
        problem = Problem(ElasticNet(), np.ones(3), 3, n_updates, n_chosen=2)
        if refused:
            with pytest.raises(RuntimeError, match="refused a release"):
                _gcd.solve(oracle, problem)
        else:
            assert _gcd.solve(oracle, problem).n_updates == n_updates


def test_more_choices_at_once_than_the_lazy_draw_is_for_are_drawn_in_full():
    A = np.random.default_rng(0).standard_normal((50, 70))
    event = FitEvent((SelectionEvent(0.1, 34), GaussianEvent(1.0, 34)))
    problem = Problem(ElasticNet(), np.ones(70), 70, 2, n_chosen=17)
    paths = []
    for lazy in (True, False):
        oracle = oracle_of(A, A[:, 0].copy(), event, np.ones(70), lazy=lazy, key=bytes(32))
        paths.append(_gcd.solve(oracle, problem).coef)
    assert (paths[0] == paths[1]).all()


def test_nobody_copies_scores_of_records():
    with pytest.raises(TypeError, match="never copied"):
        LazyChoice(2).__reduce__()


# ---- estimators ----------------------------------------------------------------------------------

GREEDY = [
    DPLogisticGCD(solver=GCD()),
    DPLinearClassifier(penalty="l1", solver=GCD(block_size=2)),
    DPLinearRegressor(penalty=Box(-1, 1), solver=GCD()),
    DPLinearRegressor(penalty=None, constraint="l1_ball", solver=FrankWolfe(), fit_intercept=False),
]
every_greedy = pytest.mark.parametrize("model", GREEDY, ids=str)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 8))
    return A, (A[:, 0] > 0).astype(float)


def both(model, **parameters):
    return [
        clone(model).set_params(solver__selection=selection, **parameters)
        for selection in ("full", "lazy")
    ]


@every_greedy
def test_the_draw_is_full_unless_asked_for_and_the_event_is_the_same(model):
    assert model.solver.selection == "full"
    full, lazy = (m.planned_event(300, 8) for m in both(model))
    assert full == lazy


@every_greedy
def test_the_option_reaches_the_oracle_and_the_released_law_stays_close(model, data):
    full, lazy = (
        m.fit(*data) for m in both(model, epsilon=500.0, random_state=ReproducibleNoise(0))
    )
    assert (full.coef_ != lazy.coef_).any()  # another use of the same random words
    assert full.privacy_event_ == lazy.privacy_event_
    assert np.argmax(full.coef_) == np.argmax(lazy.coef_) == 0


@every_greedy
def test_without_noise_the_option_changes_nothing(model, data):
    full, lazy = (m.fit(*data) for m in both(model, epsilon=math.inf, max_iter=9000, tol=1e-2))
    assert (full.coef_ == lazy.coef_).all()


@table("bad", ["race", "Lazy", True, 1])
@every_greedy
def test_a_selection_that_is_none_is_refused(model, bad, data):
    with pytest.raises((ValueError, TypeError), match="selection"):
        clone(model).set_params(solver__selection=bad).fit(*data)
