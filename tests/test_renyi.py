"""Rényi divergences of every event: never below the truth, close to it, and added correctly."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
    _renyi,
    delta_of,
    epsilon_of,
    gaussian_fit_event,
    gdp_squared,
    rdp,
    zcdp,
)

RELATIONS = ["replace_one", "add_remove"]
orders = st.floats(0.05, 200.0).map(lambda excess: 1 + excess)
BASE = gaussian_fit_event(Budget(1.0, 1e-6), 1)
EVENTS = [
    GaussianEvent(2.0, 3),
    SelectionEvent(0.4, 3),
    PoissonSampledEvent(0.1, 1.5, 3),
]


def quadrature(p, q, order, reach):
    """The divergence of two densities on a line, by adaptive quadrature in 20 digits."""
    with mpmath.workdps(20):
        points = [-reach, -reach / 2, -5, 0, 5, reach / 2, reach]
        total = mpmath.quad(lambda x: p(x) ** order * q(x) ** (1 - order), points)
        return mpmath.log(total) / (order - 1)


def normal(mean):
    return lambda x: mpmath.npdf(x, mean, 1)


def mixture(rate, mean):
    return lambda x: (1 - rate) * mpmath.npdf(x) + rate * mpmath.npdf(x, mean, 1)


# ---- each event ---------------------------------------------------------------------------------


@table("order", [1.3, 7.5, 40.0])
@table(("rate", "z"), [(0.01, 0.8), (0.2, 1.5), (0.6, 0.5), (1e-4, 3.0)])
@table("neighboring", RELATIONS)
def test_a_sampled_gaussian_is_its_pair_of_mixtures(neighboring, rate, z, order):
    if neighboring == "add_remove":
        p, q, shift = mixture(rate, 1 / z), normal(0), 1 / z
    else:
        p, q, shift = mixture(rate, 0.5 / z), mixture(rate, -0.5 / z), 0.5 / z
    found = _renyi.sampled_gaussian_divergence(rate, z, order, neighboring)
    reach = 14 + 2 * order * shift
    truths = [quadrature(*pair, order, reach) for pair in ((p, q), (q, p))]
    assert found >= max(truths) * (1 - 1e-12)
    if found < order / (2 * z**2):  # otherwise it is the bound without sampling
        assert found == pytest.approx(float(truths[0]), rel=1e-6)


@given(st.floats(1e-6, 1.0), st.floats(0.1, 1e4), st.floats(1.001, 1e6), st.sampled_from(RELATIONS))
@settings(max_examples=150, deadline=None)
def test_sampling_gains_and_a_larger_sample_costs_more(rate, z, order, neighboring):
    found = _renyi.sampled_gaussian_divergence(rate, z, order, neighboring)
    assert 0 <= found <= order / (2 * z**2)
    half = _renyi.sampled_gaussian_divergence(rate / 2, z, order, neighboring)
    assert half <= found * (1 + 1e-6) + 1e-15
    more = _renyi.sampled_gaussian_divergence(rate, 1.1 * z, order, neighboring)
    assert more <= found * (1 + 1e-6) + 1e-15


# ---- sums ---------------------------------------------------------------------------------------


@table("neighboring", RELATIONS)
@table("event", EVENTS)
@table("order", [1.5, 12.0])
def test_a_count_is_that_many_events(event, neighboring, order):
    from dataclasses import replace

    many = FitEvent((replace(event, count=1),) * 3, neighboring)
    one = FitEvent((event,), neighboring)
    assert rdp(one, order) == pytest.approx(rdp(many, order), rel=1e-12)
    assert rdp(FitEvent((one, one), neighboring), order) == pytest.approx(2 * rdp(one, order))
    assert zcdp(one) == pytest.approx(zcdp(many), rel=1e-12)
    assert epsilon_of(one, 1e-6) == pytest.approx(epsilon_of(many, 1e-6), rel=1e-6)


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@given(order=orders)
@settings(max_examples=20, deadline=None)
def test_zcdp_bounds_every_order(event, order):
    fit = FitEvent((event,))
    assert rdp(fit, order) <= order * zcdp(fit) * (1 + 1e-8)


def test_only_gaussians_are_gaussian_private():
    assert gdp_squared(FitEvent((EVENTS[0],))) == pytest.approx(3 / 4)
    for event in (*EVENTS[1:], TuningEvent(BASE, "geometric", 3.0)):
        assert gdp_squared(FitEvent((event,))) is None
        assert gdp_squared(FitEvent((EVENTS[0], event))) is None
    assert zcdp(FitEvent((TuningEvent(BASE, "geometric", 3.0),))) is None


@pytest.mark.parametrize("event", [*EVENTS, TuningEvent(BASE, "logarithmic", 5.0)], ids=str)
def test_delta_falls_with_epsilon_and_inverts_it_safely(event):
    fit = FitEvent((event,))
    deltas = []
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = epsilon_of(fit, delta)
        deltas.append(delta_of(fit, epsilon * (1 + 1e-6)))
        assert deltas[-1] <= delta * 1.01
    assert (np.diff(deltas) <= 0).all()


def test_choices_alone_never_cost_more_than_the_sum_of_their_ranges():
    assert epsilon_of(FitEvent((SelectionEvent(0.2, 3), SelectionEvent(0.5))), 1e-12) <= 1.1
    assert epsilon_of(FitEvent((SelectionEvent(0.2), NonPrivateEvent())), 1e-6) == math.inf


def test_samples_need_the_relation_of_their_fit():
    with pytest.raises(ValueError, match="neighbours"):
        rdp(PoissonSampledEvent(0.1, 1.0), 3.0)
    event = PoissonSampledEvent(0.1, 1.0, 10)
    costs = [epsilon_of(FitEvent((event,), relation), 1e-6) for relation in RELATIONS]
    assert costs[0] < costs[1]  # at equal z the replaced record has two halves of the sensitivity


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (SelectionEvent(0.5, 3), "3 choices of bounded range 0.5"),
        (PoissonSampledEvent(0.1, 2.0, 1000), "1,000 Gaussian releases of samples of rate 0.1"),
        (TuningEvent(BASE, "geometric", 4.0), "the best of geometric many runs, 4 on average, of"),
    ],
)
def test_events_read_like_sentences(event, text):
    assert str(event).startswith(text)
