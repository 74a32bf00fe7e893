"""The loss of a search: never below enumerated searches, near them, and what mistakes would do."""

import math

import numpy as np
import pytest
from scipy import stats
from tables import table
from test_costs import any_pair

from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    TuningEvent,
    _tuning,
    cover,
    epsilon_of,
    gaussian_fit_event,
    loss_of,
    of_points,
    search_fit_event,
)

LAWS = ["logarithmic", "geometric", -0.5, 0.3, 4.0, "poisson"]
N_CASES = 150
BROKEN = 1.01  # of the truth over its bound: no further case is needed


def generating(law, mean):
    """f of the law, in a form that keeps digits; f(0) is the probability of no run."""
    if law == "poisson":
        return lambda x: np.exp(mean * (x - 1))
    shape = _tuning.shape_of(law)
    gamma = _tuning.success_probability(shape, mean)
    if shape == 0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    bottom = math.expm1(-shape * math.log(gamma))
    return lambda x: np.expm1(-shape * np.log1p(-(1 - gamma) * x)) / bottom


def best_of(P, law, mean):
    """Law of the best of K runs of law P, the last outcome the best; first that there was none."""
    below = generating(law, mean)(np.append(0.0, np.minimum(np.cumsum(P), 1.0)))
    return np.append(below[0], np.diff(below))


def curve(P, Q, e):
    """δ(e) of a pair in one direction."""
    return np.maximum(P - np.exp(np.asarray(e))[..., None] * Q, 0.0).sum(axis=-1)


def loss_of_pair(P, Q):
    """The loss of a pair in one direction, on a grid that holds its losses."""
    with np.errstate(divide="ignore"):
        losses = np.log(P / Q)
    step = max(1e-3, np.abs(losses[np.isfinite(losses)]).max(initial=0.0)) / 200
    return of_points(-230, step, curve(P, Q, step * np.arange(-230, 231)))


def some_case(rng):
    """A pair, a third of them with outcomes that tell everything, and a law of runs."""
    P, Q = any_pair(rng)
    if rng.random() < 0.3:
        Q = Q.copy()
        Q[rng.integers(len(Q))] = 0.0
        Q /= Q.sum()
    law = LAWS[rng.integers(len(LAWS))]
    return P, Q, law, (law != "poisson") + math.exp(rng.uniform(-3, 6))


def most_broken(rng, bound_of, n_cases=N_CASES):
    """The largest truth over bound of many cases, for e of either sign; and the nearest, e > 0."""
    worst, nearest = 0.0, 0.0
    for _ in range(n_cases):
        P, Q, law, mean = some_case(rng)
        found = bound_of(P, Q, law, mean)
        reach = found.step * 230
        e = rng.uniform(-2 * reach, 2 * reach, 30)
        truth = curve(best_of(P, law, mean), best_of(Q, law, mean), e)
        told = np.array([found.delta(x) for x in e])
        # differences of doubles lose what is below 1e-13
        told = np.maximum(told, 1e-300)
        worst = max(worst, float(np.max((truth - 1e-12) / told)))
        seen = (e > 0) & (truth > 1e-8)
        nearest = max(nearest, float(np.max(truth[seen] / told[seen], initial=0.0)))
        if worst > BROKEN:
            break
    return worst, nearest


# ---- never below the truth ----------------------------------------------------------------------


def bound_of(P, Q, law, mean):
    return _tuning.tuning_loss(loss_of_pair(P, Q), law, mean)


def test_no_enumerated_search_exceeds_its_bound_in_either_direction():
    worst, nearest = most_broken(np.random.default_rng(5), bound_of)
    assert worst <= 1 + 1e-8
    assert nearest > 0.999  # it comes near: a bound a little lower would be broken


def covered(P, Q, both):
    losses = [loss_of_pair(P, Q), loss_of_pair(Q, P)]
    spare = 1e-13 + 1.01 * max(loss.infinite for loss in losses)
    return max(cover(loss, spare) for loss in losses[: 1 + both]), spare


@pytest.mark.parametrize("both", [True, False])
def test_covers_of_runs_in_both_directions_hold_and_a_mutant_of_one_is_broken(both):
    worst, _ = most_broken(
        np.random.default_rng(6),
        lambda P, Q, law, mean: _tuning.tuning_loss(
            loss_of_pair(P, Q), law, mean, covered(P, Q, both)
        ),
    )
    assert worst <= 1 + 1e-8 if both else worst > BROKEN


def candidates_of(rng):
    """Up to three pairs of laws, and those of a run that draws one of them, in any order."""
    pairs = [some_case(rng)[:2] for _ in range(rng.integers(1, 4))]
    shares = rng.dirichlet(np.ones(len(pairs)))
    P, Q = (
        np.concatenate([share * pair[k] for share, pair in zip(shares, pairs, strict=True)])
        for k in (0, 1)
    )
    order = rng.permutation(len(P))
    return pairs, P[order], Q[order]


def most_over_covers(rng, mu_of, spare_of=lambda spare: spare, n_cases=N_CASES):
    """The largest truth over what is charged for runs that one Gaussian covers but for a spare."""
    worst = 0.0
    for _ in range(n_cases):
        pairs, P, Q = candidates_of(rng)
        _, _, law, mean = some_case(rng)
        losses = [[loss_of_pair(*pair), loss_of_pair(*pair[::-1])] for pair in pairs]
        infinite = max(loss.infinite for both in losses for loss in both)
        spare = 1.01 * infinite + 10 ** rng.uniform(-6, -2)
        mu = mu_of(losses, spare)
        if spare > 0.5 or not 0 < mu < 20:
            continue
        run = FitEvent((CoveredEvent(1 / mu, spare_of(spare)),))
        found = loss_of(FitEvent((TuningEvent(run, law, mean),)), 1e-20)
        e = rng.uniform(-4, 4, 30) * mu
        told = np.maximum([found.delta(x) for x in e], 1e-300)
        for pair in ((P, Q), (Q, P)):
            truth = curve(*(best_of(one, law, mean) for one in pair), e)
            worst = max(worst, float(np.max((truth - 1e-12) / told)))
        if worst > BROKEN:
            break
    return worst


def of_dearest(losses, spare):
    return max(cover(loss, spare) for both in losses for loss in both)


def test_no_search_over_candidates_of_any_kind_exceeds_what_is_charged_for_their_covers():
    assert most_over_covers(np.random.default_rng(8), of_dearest) <= 1 + 1e-8


# ---- mutants ------------------------------------------------------------------------------------


def test_a_mutant_that_covers_the_first_candidate_only_is_broken():
    worst = most_over_covers(
        np.random.default_rng(8), lambda losses, spare: of_dearest(losses[:1], spare)
    )
    assert worst > BROKEN


def test_a_mutant_that_charges_a_cover_without_its_spare_is_broken():
    worst = most_over_covers(np.random.default_rng(8), of_dearest, lambda spare: 1e-3 * spare)
    assert worst > BROKEN


def test_a_mutant_that_takes_the_trade_off_of_the_other_direction_is_broken(monkeypatch):
    heights = _tuning._heights
    other = []
    monkeypatch.setattr(
        _tuning, "_heights", lambda e, d, *rest: heights(e, reversed_curve(other, e), *rest)
    )

    def bound(P, Q, *law):
        other[:] = [P, Q]
        return bound_of(P, Q, *law)

    assert most_broken(np.random.default_rng(5), bound)[0] > BROKEN


def reversed_curve(pair, e):
    return curve(*reversed(pair), e)


HEIGHTS = _tuning._heights


def flat(e, curve, step, law, mean):
    """Without the factor of the runs that are worse: H(s) = m (1 - s)_+."""
    found, first = HEIGHTS(e, curve, step, law, mean)
    s = np.exp(step * (first + np.arange(len(found))))
    return mean * np.maximum(1 - s, 0.0), first


@table(("name", "mutant", "seed"), [("_heights", flat, 5), ("_no_run", lambda *law: 0.0, 7)])
def test_mutants_are_broken_by_enumeration(name, mutant, seed):
    """Every run counts as the best, or there always is one, which shows at negative e."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tuning, name, mutant)
        assert most_broken(np.random.default_rng(seed), bound_of)[0] > BROKEN


# ---- subsets of candidates that differ -----------------------------------------------------------


def some_subset(rng):
    """Pairs of laws of all candidates, and a common order of their outcomes.

    Half of them are alike and ordered by likelihood, which is near the worst.
    """
    if rng.random() < 0.5:
        pairs = [any_pair(rng)] * rng.integers(2, 20)
        likelihood = np.tile(np.arange(len(pairs[0][0])), len(pairs))
        return pairs, np.argsort(likelihood, kind="stable")
    pairs = [any_pair(rng) for _ in range(rng.integers(2, 7))]
    return pairs, rng.permutation(sum(len(P) for P, _ in pairs))


def most_broken_subset(seed, n_cases=40):
    """The largest truth over bound of subsets of candidates, and the nearest below .9."""
    rng, worst, nearest = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(n_cases):
        pairs, order = some_subset(rng)
        step = max(loss_of_pair(*pair).step for pair in pairs)
        e = step * np.arange(-230, 231)
        run = of_points(-230, step, np.max([curve(*pair, e) for pair in pairs], axis=0))
        found = _tuning.tuning_loss(run, "subset", _tuning.TRIED * len(pairs))
        laws = [subset_law([pair[k] for pair in pairs], order) for k in (0, 1)]
        e = rng.uniform(-2 * 230 * step, 2 * 230 * step, 30)
        truth = curve(*laws, e)
        told = np.array([max(found.delta(x), 1e-300) for x in e])
        worst = max(worst, float(np.max((truth - 1e-12) / told)))
        seen = (e > 0) & (truth > 1e-8) & (truth < 0.9)
        nearest = max(nearest, float(np.max(truth[seen] / told[seen], initial=0.0)))
        if worst > BROKEN:
            break
    return worst, nearest


def subset_law(runs, order):
    """Law of the best outcome of those that are tried; first that there was none."""
    ranks = np.empty(len(order), int)
    ranks[order] = np.arange(len(order))
    below, start = np.ones(len(order) + 1), 0
    for P in runs:
        mine = np.zeros(len(order))
        mine[ranks[start : start + len(P)]] = P
        below *= 1 - _tuning.TRIED * np.append(1.0, np.clip(1 - np.cumsum(mine), 0.0, 1.0))
        start += len(P)
    return np.append(below[0], np.diff(below))


_LINES_OF_LOGS = _tuning._lines_of_logs


def test_no_enumerated_subset_exceeds_its_bound_in_either_direction():
    worst, nearest = most_broken_subset(5)
    assert worst <= 1 + 1e-8
    assert nearest > 0.85


@table(
    ("name", "mutant"),
    [
        ("_lines_of_logs", lambda *lines: 0.97 * np.array(_LINES_OF_LOGS(*lines))),
        ("_exponent", lambda law, mean: _tuning._MOST_OF_LOG * (round(mean / 0.95) - 2)),
        ("_no_run", lambda law, mean: 0.0),
    ],
)
def test_mutants_of_subsets_are_broken_by_enumeration(monkeypatch, name, mutant):
    monkeypatch.setattr(_tuning, name, mutant)
    assert most_broken_subset(5)[0] > BROKEN


@pytest.mark.parametrize(("n", "noise"), [(20, 15.72), (49, 21.14)])
def test_subsets_cost_less_than_draws_that_miss_as_seldom(n, noise):
    """Noise multipliers at (1, 1e-6), of which the page tells."""
    least = {
        law: _least_noise(law, mean) for law, mean in (("subset", 0.95 * n), ("poisson", 3 * n))
    }
    assert least["subset"] == pytest.approx(noise, rel=1e-3)
    assert 1.18 < least["poisson"] / least["subset"] < 1.32


def _least_noise(law, mean):
    event, release = search_fit_event(Budget(1.0, 1e-6), law, float(mean), 1, True, 1)
    assert 0.999 < epsilon_of(event, 1e-6) <= 1.0
    return release.noise_multiplier


# ---- what it is worth ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "forwards", "base"),
    [
        ("logarithmic", 1.394, 0.711),
        ("geometric", 1.475, 0.670),
        (-0.5, 1.336, 0.745),
        ("poisson", 1.87, 0.527),
    ],
)
def test_a_gaussian_run_and_its_search_are_as_near_as_the_page_says(law, forwards, base):
    def total(epsilon):
        run = gaussian_fit_event(Budget(epsilon, 1e-6), 1)
        return epsilon_of(FitEvent((TuningEvent(run, law, 10.0),)), 1e-6)

    assert forwards * 0.99 < total(1.0) <= forwards
    assert 0.99 < total(base) <= 1.0


def test_probabilities_are_those_of_the_generating_function():
    for law in LAWS:
        f = generating(law, 5.0)
        circle = f(np.exp(2j * np.pi * np.arange(4096) / 4096))
        found = _tuning._probabilities(law, 5.0, 50)
        np.testing.assert_allclose(found, np.fft.fft(circle).real[:50] / 4096, atol=1e-12)


# ---- drawing the number of runs -----------------------------------------------------------------


def words_of(seed):
    rng = np.random.default_rng(seed)
    return lambda size: [int(word) for word in rng.integers(0, 2**64, size, dtype=np.uint64)]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_number_of_runs_has_its_law(law):
    mean, n, words = 5.0, 2000, words_of(0)
    drawn = np.array([_tuning.draw_count(law, mean, words) for _ in range(n)])
    f = generating(law, mean)
    # probabilities from the generating function on a circle
    size = 4096
    circle = f(np.exp(2j * np.pi * np.arange(size) / size))
    p = np.maximum(np.fft.fft(circle).real / size, 0)
    assert p[0] == pytest.approx(math.exp(-mean) if law == "poisson" else 0.0, abs=1e-9)
    edges = [k for k in range(1, 40) if n * p[k] > 5]
    seen = np.array([np.sum(drawn == k) for k in edges])
    expected = n * p[edges]
    rest = n - seen.sum(), n - expected.sum()
    found = stats.chisquare([*seen, rest[0]], [*expected, rest[1]])
    assert found.pvalue > 1e-6
    least = 0 if law == "poisson" else 1
    assert drawn.min() >= least and (law == "poisson" or p[0] < 1e-9)


def test_the_ends_of_the_uniform_number_give_the_ends_of_the_law():
    assert _tuning.draw_count("geometric", 4.0, lambda size: [0] * size) == 1
    assert _tuning.draw_count("poisson", 4.0, lambda size: [0] * size) == 0
    assert _tuning.draw_count("geometric", 4.0, lambda size: [2**64 - 1] * size) > 500


@table(
    ("law", "mean", "error"),
    [
        ("binomial", 10, ValueError),
        (None, 10, ValueError),
        (True, 10, TypeError),
        (-0.6, 10, ValueError),
        (math.nan, 10, ValueError),
        ("logarithmic", 1, ValueError),
        ("logarithmic", math.inf, ValueError),
        ("poisson", 0, ValueError),
        ("subset", 0.95, ValueError),
        ("subset", 2.0, ValueError),
        (0.5, "10", TypeError),
    ],
)
def test_a_law_that_makes_no_sense_is_refused(law, mean, error):
    with pytest.raises(error, match="distribution|mean"):
        _tuning.check_law(law, mean)
