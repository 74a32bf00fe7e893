"""The exact trade-off bound of a search: never below enumerated searches, and near them."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from test_renyi_enumeration import any_pair, curve_of, divergence, some_order

from dpcd_sklearn.privacy.accounting import _tuning
from dpcd_sklearn.privacy.accounting._accounting import epsilon_of, privacy_curve, rdp
from dpcd_sklearn.privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from dpcd_sklearn.privacy.accounting._events import (
    FitEvent,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PureEvent,
    TuningEvent,
    ZCDPEvent,
)
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_mu

LAWS = ["logarithmic", "geometric", -0.5, 0.3, 4.0]
N_CASES = 700


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
    """Law of the best of K runs of law P, the last outcome the best."""
    return np.diff(generating(law, mean)(np.append(0.0, np.minimum(np.cumsum(P), 1.0))))


def some_mean(rng):
    return 1 + math.exp(rng.uniform(-4, 4))


def penalty_free(monkeypatch):
    """The trade-off bound alone, without the published one beside it."""
    monkeypatch.setattr(_tuning, "_published_penalty", lambda *args: math.inf)


# ---- never below the truth ----------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_enumerated_search_diverges_more_than_its_trade_off_bound(law, monkeypatch):
    penalty_free(monkeypatch)
    rng, closest = np.random.default_rng(5), 0.0
    for _ in range(N_CASES):
        P, Q = any_pair(rng)
        mean, order = some_mean(rng), some_order(rng)
        laws = [best_of(L, law, mean) for L in (P, Q)]
        if min(map(np.min, laws)) < 1e-11:  # differences of doubles lose too much
            continue
        bound = _tuning.tuning_divergence(
            lambda a, P=P, Q=Q: divergence(P, Q, a), curve_of(P, Q), law, mean, order
        )
        truth = divergence(*laws, order)
        assert truth <= bound * (1 + 1e-6) + 1e-6
        closest = max(closest, truth / bound if bound > 1e-2 else 0.0)
    assert closest > 0.95  # it comes near: a bound a little lower would be broken


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_a_mutant_that_takes_every_run_for_the_best_is_broken_by_enumeration(law, monkeypatch):
    """Without the factor of the runs that are worse, f'(1-u)^α f'(1-u')^(1-α) = m."""
    penalty_free(monkeypatch)
    monkeypatch.setattr(_tuning, "_curve_penalty", lambda *args: 0.0)
    rng, broken = np.random.default_rng(5), 0
    for _ in range(200):
        P, Q = any_pair(rng)
        mean, order = some_mean(rng), some_order(rng)
        bound = _tuning.tuning_divergence(
            lambda a, P=P, Q=Q: divergence(P, Q, a), None, law, mean, order
        )
        broken += divergence(*(best_of(L, law, mean) for L in (P, Q)), order) > 1.01 * bound
    assert broken > 5


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("order", [2.0, 15.0])
def test_lines_above_a_curve_lose_nothing_of_its_supremum(law, order):
    mu, shape = gdp_mu(1.0, 1e-6), _tuning.shape_of(law)
    gamma = _tuning.success_probability(shape, 10.0)
    kappa, c = 1 / gamma - 1, order / (order - 1)
    x = np.linspace(-12, 12, 400_001)
    exact = np.max(np.log1p(kappa * ndtr(x + mu)) - c * np.log1p(kappa * ndtr(x)))
    found = _tuning._curve_penalty(privacy_curve(FitEvent((GaussianEvent(1 / mu),))), gamma, order)
    assert exact <= found <= exact * (1 + 5e-3)


@pytest.mark.parametrize("law", ["logarithmic", "geometric", "poisson", 0.5], ids=str)
@pytest.mark.parametrize("order", [1.5, 6.0, 30.0])
def test_gaussian_runs_ranked_either_way_stay_below(law, order):
    """Scores that rise or fall with the likelihood ratio, by quadrature of the densities."""
    mu, mean, x = 0.3, 8.0, np.linspace(-12, 12, 24_001)
    bound = rdp(FitEvent((TuningEvent(FitEvent((GaussianEvent(1 / mu),)), law, mean),)), order)

    def log_density(sign, shift):
        log_f = -mean * ndtr(-x + shift * sign) + math.log(mean)
        if law != "poisson":
            shape = _tuning.shape_of(law)
            kappa = 1 / _tuning.success_probability(shape, mean) - 1
            log_f = math.log(mean) - (1 + shape) * np.log1p(kappa * ndtr(-x + shift * sign))
        return log_f - (x - sign * shift) ** 2 / 2 - math.log(2 * math.pi) / 2

    for sign in (1, -1):
        P, Q = log_density(sign, 0.0), log_density(sign, mu)
        none = math.exp(-mean) if law == "poisson" else 0.0
        assert np.exp(P).sum() * 1e-3 + none == pytest.approx(1.0)
        for one, other in ((P, Q), (Q, P)):
            moment = none + np.exp(order * one + (1 - order) * other).sum() * 1e-3
            assert math.log(moment) / (order - 1) <= bound


# ---- what it is worth ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "published", "total"),
    [("logarithmic", 1.798, 1.4634), ("geometric", 2.148, 1.5404), (0.5, None, 1.5062)],
)
def test_totals_of_a_gaussian_base(law, published, total, monkeypatch):
    base = gaussian_fit_event(1.0, 1e-6, 1, "replace_one")
    search = FitEvent((TuningEvent(base, law, 10.0),))
    assert epsilon_of(search, 1e-6) == pytest.approx(total, abs=2e-3)
    if published is not None:
        monkeypatch.setattr(_tuning, "_curve_penalty", lambda *args: math.inf)
        assert epsilon_of(search, 1e-6) == pytest.approx(published, abs=2e-3)


@pytest.mark.parametrize(
    "base",
    [
        greedy_fit_event(0.5, 1e-6, 20, 0.5, "replace_one"),
        FitEvent((ZCDPEvent(0.005),)),
        FitEvent((LaplaceEvent(10.0, 3),)),
        FitEvent((PureEvent(0.2),)),
        FitEvent((PoissonSampledEvent(0.1, 2.0, 10),)),
    ],
    ids=lambda e: type(e.releases[0]).__name__,
)
@pytest.mark.parametrize("law", ["logarithmic", "poisson", 0.5], ids=str)
def test_every_base_has_a_curve_and_a_search_costs_more_than_a_run(base, law):
    alone = epsilon_of(base, 1e-6)
    assert alone < epsilon_of(FitEvent((TuningEvent(base, law, 10.0),)), 1e-6) < 12 * alone
    epsilons, deltas = privacy_curve(base)
    assert (np.diff(epsilons) > 0).all() and (np.diff(deltas) <= 1e-15).all()
    for epsilon, delta in list(zip(epsilons, deltas, strict=True))[1::40]:
        if 1e-12 < delta < 0.5:
            assert epsilon_of(base, delta) <= epsilon * (1 + 1e-3) + 1e-9


# ---- drawing the number of runs -----------------------------------------------------------------


def words_of(seed):
    rng = np.random.default_rng(seed)
    return lambda size: [int(word) for word in rng.integers(0, 2**64, size, dtype=np.uint64)]


@pytest.mark.parametrize("law", [*LAWS, "poisson"], ids=str)
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


def test_a_law_in_fixed_point_is_whole():
    for law in [*LAWS, "poisson"]:
        k, term, ratio = _tuning._law(law, 3.0)
        total = term
        for _ in range(6000):
            top, bottom = ratio(k)
            term, k = term * top // bottom, k + 1
            total += term
        assert abs(total - 2**320) < 2**330 / 2**200


@pytest.mark.parametrize(
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
        (0.5, "10", TypeError),
    ],
)
def test_a_law_that_makes_no_sense_is_refused(law, mean, error):
    with pytest.raises(error, match="distribution|mean"):
        _tuning.check_law(law, mean)
