"""No event costs less than mechanisms that can be enumerated: thousands of random small cases each.

A case is a pair of laws on a few outcomes, so its divergences are finite sums. The bound must hold
for all of them, in both directions.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from dpcd_sklearn.privacy.accounting import _tuning
from dpcd_sklearn.privacy.accounting._accounting import epsilon_of, rdp
from dpcd_sklearn.privacy.accounting._events import (
    FitEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SelectionEvent,
    TuningEvent,
)

N_CASES = 3000
LEAST = 1e-12  # of a probability: sums stay far from the smallest doubles


def divergence(P, Q, order):
    """The larger of both directions."""
    P, Q = np.log(P), np.log(Q)
    terms = order * P + (1 - order) * Q, order * Q + (1 - order) * P
    moments = [t.max() + math.log(np.exp(t - t.max()).sum()) for t in terms]
    return max(0.0, *moments) / (order - 1)


def hockey_stick(P, Q, epsilon):
    excess = np.maximum(P - math.exp(epsilon) * Q, 0), np.maximum(Q - math.exp(epsilon) * P, 0)
    return float(max(excess[0].sum(), excess[1].sum()))


def some_order(rng):
    return 1 + math.exp(rng.uniform(-3, 5))


def normalised(P):
    P = np.maximum(P, LEAST)
    return P / P.sum()


# ---- pairs of laws -----------------------------------------------------------------------------


def any_pair(rng):
    """Two laws of any kind, near or far."""
    k = rng.integers(2, 7)
    P = normalised(rng.dirichlet(np.full(k, rng.choice([0.1, 0.3, 1.0, 5.0]))))
    if rng.random() < 0.5:
        return P, normalised(rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 5.0]))))
    return P, normalised(P * np.exp(rng.uniform(-1, 1, k) * rng.choice([0.01, 0.1, 1.0, 3.0])))


def pure_pair(rng, epsilon):
    """Two laws whose log ratio stays within ± epsilon, at its ends more often than not."""
    P = normalised(rng.dirichlet(np.full(rng.integers(2, 7), rng.choice([0.3, 1.0]))))
    # between randomised response on a set and any milder mechanism
    up = rng.random(len(P)) < 0.5
    share = P[up].sum()
    if not 0.01 < share < 0.99:
        return pure_pair(rng, epsilon)
    # raise the set by e^(aε), lower the rest by what is left, at most e^(-ε)
    most = min(math.exp(epsilon), (1 - math.exp(-epsilon) * (1 - share)) / share)
    factor = 1 + (most - 1) * rng.choice([1.0, rng.random()])
    return P, P * np.where(up, factor, (1 - share * factor) / (1 - share))


def laplace(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def binned_pair(rng, cdf, other):
    """A continuous pair that is seen through bins, whose order is shuffled."""
    cuts = np.sort(rng.normal(0, 2, rng.integers(1, 7)))
    shuffle = rng.permutation(len(cuts) + 1)
    laws = (np.diff(np.concatenate([[0.0], F(cuts), [1.0]]))[shuffle] for F in (cdf, other))
    P, Q = laws
    keep = (P > 1e-9) & (Q > 1e-9)
    rest = ~keep  # one bin for all that is rare
    if keep.all():
        return P, Q
    P, Q = (np.append(law[keep], law[rest].sum()) for law in (P, Q))
    return (P, Q) if min(P[-1], Q[-1]) > 1e-9 else (None, None)


def chosen_pair(rng, eta):
    """The exponential mechanism on scores whose changes have a range of at most eta."""
    scores = rng.normal(0, rng.choice([0.1, 1.0, 5.0]), rng.integers(2, 7))
    changed = scores + eta * rng.choice([0, 1, 0.5], len(scores))
    laws = [np.exp(s - s.max()) for s in (scores, changed)]
    return tuple(law / law.sum() for law in laws)


def pair_of(rng, event):
    """Laws of what a mechanism with this event, counted once, may release from neighbours."""
    if isinstance(event, PureEvent):
        return pure_pair(rng, event.epsilon)
    if isinstance(event, SelectionEvent):
        return chosen_pair(rng, event.eta)
    if isinstance(event, LaplaceEvent):
        shift = rng.choice([1.0, rng.random()]) / event.noise_multiplier
        return binned_pair(rng, laplace, lambda x: laplace(x - shift))
    shift = rng.choice([1.0, rng.random()]) / event.noise_multiplier
    return binned_pair(rng, ndtr, lambda x: ndtr(x - shift))  # Gaussian


def some_event(rng, kind, count=1):
    size = math.exp(rng.uniform(-3, 1))
    if kind in (PureEvent, SelectionEvent):
        return kind(size, count)
    return kind(1 / size, count)


@pytest.mark.parametrize("kind", [PureEvent, LaplaceEvent, SelectionEvent, GaussianEvent])
def test_no_mechanism_diverges_more_than_its_event(kind):
    rng = np.random.default_rng(0)
    closest, n_seen = 0.0, 0
    for _ in range(N_CASES):
        event = some_event(rng, kind)
        P, Q = pair_of(rng, event)
        if P is None:
            continue
        order, n_seen = some_order(rng), n_seen + 1
        bound, truth = rdp(FitEvent((event,)), order), divergence(P, Q, order)
        assert truth <= bound * (1 + 1e-9) + 1e-12
        closest = max(closest, truth / bound)
        # two of them are two outcomes, independently
        twice = rdp(FitEvent((type(event)(size_of(event), 2),)), order)
        assert divergence(np.outer(P, P).ravel(), np.outer(Q, Q).ravel(), order) <= twice + 1e-11
    assert n_seen > 0.8 * N_CASES
    assert 0.9 < closest <= 1 + 1e-9  # some case comes near: the bound can be broken


def size_of(event):
    return {
        PureEvent: lambda e: e.epsilon,
        SelectionEvent: lambda e: e.eta,
    }.get(type(event), lambda e: e.noise_multiplier)(event)


@pytest.mark.parametrize("kind", [PureEvent, LaplaceEvent])
def test_no_mechanism_exceeds_the_curve_of_its_event(kind):
    rng = np.random.default_rng(1)
    for _ in range(40):  # a curve takes long, the pairs below it don't
        event = some_event(rng, kind)
        delta = 10 ** rng.uniform(-8, -1)
        epsilon = epsilon_of(FitEvent((event,)), delta)
        for _ in range(N_CASES // 40):
            P, Q = pair_of(rng, event)
            if P is not None:
                assert hockey_stick(P, Q, epsilon) <= delta * (1 + 1e-9) + 1e-15


def curve_of(P, Q):
    """Points of the privacy curve of a pair: some δ at ε = 0, where it bends, and beyond."""
    bends = np.abs(np.log(P / Q))
    epsilons = np.unique(np.concatenate([[0.0], bends, np.linspace(0, bends.max(), 30)]))
    return epsilons, np.array([hockey_stick(P, Q, epsilon) for epsilon in epsilons])


# ---- tuning --------------------------------------------------------------------------------------


def best_of_runs(P, distribution, mean):
    """Law of the best of K runs of law P, the last outcome the best; for Poisson, none at first."""
    below = np.concatenate([[0.0], np.cumsum(P)[:-1]])  # of a run that is worse
    if distribution == "poisson":
        some = np.exp(mean * (below - 1)) * np.expm1(mean * P)
        return np.append(math.exp(-mean), some)
    gamma = _tuning.success_probability({"logarithmic": 0.0, "geometric": 1.0}[distribution], mean)
    left = 1 - (1 - gamma) * below
    if distribution == "geometric":
        return gamma * P / (left * (left - (1 - gamma) * P))
    return np.log1p(-(1 - gamma) * P / left) / math.log(gamma)


def some_mean(rng, distribution):
    return math.exp(rng.uniform(-4, 4)) + (distribution != "poisson")


@pytest.mark.parametrize("distribution", ["logarithmic", "geometric", "poisson"])
def test_the_enumerated_best_is_the_best_of_simulated_runs(distribution):
    rng, mean, P = np.random.default_rng(2), 2.5, np.array([0.5, 0.2, 0.3])
    law = best_of_runs(P, distribution, mean)
    assert law.sum() == pytest.approx(1.0)
    gamma = _tuning.success_probability(0.0, mean)
    counts = {
        "poisson": lambda n: rng.poisson(mean, n),
        "geometric": lambda n: rng.geometric(1 / mean, n),
        "logarithmic": lambda n: rng.logseries(1 - gamma, n),
    }[distribution](20_000)
    best = [rng.choice(3, k, p=P).max() if k else -1 for k in counts]
    seen = np.bincount(np.array(best) + 1, minlength=4)[-len(law) :]
    assert stats.chisquare(seen, 20_000 * law).pvalue > 1e-6


@pytest.mark.parametrize("distribution", ["logarithmic", "geometric", "poisson"])
def test_no_search_diverges_more_than_its_formula(distribution):
    rng, closest = np.random.default_rng(3), 0.0
    for _ in range(N_CASES):
        P, Q = any_pair(rng)
        mean, order = some_mean(rng, distribution), some_order(rng)
        bound = _tuning.tuning_divergence(
            lambda a, P=P, Q=Q: divergence(P, Q, a),
            curve_of(P, Q),
            distribution,
            mean,
            order,
        )
        truth = divergence(*(best_of_runs(L, distribution, mean) for L in (P, Q)), order)
        assert truth <= bound * (1 + 1e-9) + 1e-9
        closest = max(closest, truth / bound if bound > 1e-3 else 0.0)
    assert closest > 0.8


@pytest.mark.parametrize("kind", [PureEvent, LaplaceEvent, GaussianEvent, SelectionEvent])
@pytest.mark.parametrize("distribution", ["logarithmic", "geometric", "poisson"])
def test_no_search_over_a_mechanism_diverges_more_than_its_event(distribution, kind):
    rng = np.random.default_rng(4)
    for _ in range(4 if kind is GaussianEvent else 2):
        base = some_event(rng, kind)
        event = TuningEvent(FitEvent((base,)), distribution, some_mean(rng, distribution))
        order = some_order(rng)
        bound = rdp(FitEvent((event,)), order)
        for _ in range(250):
            P, Q = pair_of(rng, base)
            if P is None:
                continue
            laws = (best_of_runs(L, distribution, event.mean) for L in (P, Q))
            assert divergence(*laws, order) <= bound * (1 + 1e-9) + 1e-9


def test_a_poisson_search_pays_for_there_being_no_run():
    # 200 searches of 0.05 randomised responses each: that there was a run tells nothing, its
    # outcome tells all; without the outcome "none" the bound was zero
    search = TuningEvent(FitEvent((PureEvent(1.0),)), "poisson", 0.05)
    P = np.array([1.0, math.e]) / (1 + math.e)
    orders = [1.5, 3.0, 10.0, 40.0]
    for order in orders:
        laws = (best_of_runs(L, "poisson", 0.05) for L in (P, P[::-1]))
        truth = divergence(*laws, order)
        assert truth > 0.01
        assert truth <= rdp(FitEvent((search,)), order) <= 1.2 * truth
