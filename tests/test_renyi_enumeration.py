"""No event costs less than mechanisms that can be enumerated: thousands of random small cases each.

A case is a pair of laws on a few outcomes, so its divergences are finite sums. The bound must hold
for all of them, in both directions.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    GaussianEvent,
    SelectionEvent,
    epsilon_of,
    rdp,
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
    if isinstance(event, SelectionEvent):
        return chosen_pair(rng, event.eta)
    shift = rng.choice([1.0, rng.random()]) / event.noise_multiplier
    return binned_pair(rng, ndtr, lambda x: ndtr(x - shift))  # Gaussian


def some_event(rng, kind, count=1):
    size = math.exp(rng.uniform(-3, 1))
    if kind is SelectionEvent:
        return kind(size, count)
    return kind(1 / size, count)


@pytest.mark.parametrize("kind", [SelectionEvent, GaussianEvent])
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
    return event.eta if isinstance(event, SelectionEvent) else event.noise_multiplier


@pytest.mark.parametrize("kind", [SelectionEvent, GaussianEvent])
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
