"""The tight curve of choices and Gaussian releases: above the truth, and not far above it."""

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from tables import table

from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    Loss,
    SelectionEvent,
    _loss,
    _renyi,
    epsilon_of,
    gdp_delta,
    greedy_fit_event,
    loss_of,
    zcdp,
    zcdp_epsilon,
)
from dpcd_sklearn.privacy.accounting._loss import repeated, trimmed
from dpcd_sklearn.privacy.accounting._selection_curve import loss_distribution


def delta_of_choices(eta, count, mu, epsilon, tail):
    return _renyi.choices_loss(eta, count, tail).with_gaussian(mu).delta(epsilon)


def scale_of(delta_of, count):
    """The c at which delta_of(eta, mu) is 1e-6, for equal shares of the loss."""
    start = 6.407 * math.sqrt(count)
    return brentq(
        lambda c: math.log(delta_of(2 / c, math.sqrt(count) / c) / 1e-6),
        0.7 * start,
        1.05 * start,
        rtol=1e-6,
    )


def delta_from_below(eta, mu, count, cells, epsilon=1.0):
    """A lower bound on the true δ: only intervals between grid points, V from below beyond them.

    At grid points these chords are values of V itself. In the mean over the Gaussian loss a cell
    counts with its lowest value.
    """
    h = eta / cells
    reach = min(count * cells, int(cells * math.sqrt(count) * 4.5)) + cells
    grid = h * np.arange(-reach, reach + 1)
    value = np.maximum(-np.expm1(grid), 0)
    offsets = h * np.arange(cells + 1)
    low = np.exp(offsets) * np.expm1(eta - offsets) / math.expm1(eta)
    high = np.expm1(offsets) / math.expm1(eta)
    left = -np.expm1(h * np.arange(-reach - cells, -reach))
    for _ in range(count):
        wide = np.concatenate([left, value, np.zeros(cells)])
        windows = np.lib.stride_tricks.sliding_window_view(wide, len(grid))
        value = np.max(
            [
                low[k] * windows[cells - k] + high[k] * windows[2 * cells - k]
                for k in range(cells + 1)
            ],
            axis=0,
        )
    tail = ndtr((epsilon - grid - mu**2 / 2) / mu)
    return (tail[:-1] - tail[1:]) @ value[1:]


def delta_from_above(eta, mu, count, cells, epsilon=1.0):
    losses, masses, infinite = loss_distribution(eta, count, cells, 1e-13)
    return masses @ gdp_delta(mu, epsilon - losses) + infinite


# ---- the values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "cells"), [(1, 400), (5, 200), (10, 200), (50, 64)])
def test_noise_is_bracketed(count, cells):
    above = 2 / greedy_fit_event(Budget(1.0, 1e-6), count, 0.5).releases[0].eta
    below = scale_of(lambda eta, mu: delta_from_below(eta, mu, count, cells), count)
    assert below < above < below * 1.001


@table("cells", [2, 3, 8, 64])
@table("count", [1, 4, 30])
@table("eta", [0.02, 0.3, 3.0])
def test_curve_is_never_below_the_truth_however_coarse_the_grid(cells, count, eta):
    mu = eta * math.sqrt(count) / 2
    for epsilon in (0.0, mu, 3 * mu + 0.5 * mu**2):
        below = delta_from_below(eta, mu, count, 96, epsilon)
        assert delta_from_above(eta, mu, count, cells, epsilon) >= below
        assert delta_from_above(eta, mu, count, 64, epsilon) < below * 1.2 + 1e-9


@given(st.floats(0.01, 8.0), st.floats(0.0, 1.0))
def test_one_choice_is_its_closed_form(eta, share):
    # the supremum over t is attained at t = (ε + η) / 2
    epsilon = share * eta
    exact = (math.exp(eta / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(eta)
    found = delta_of_choices(eta, 1, 0.0, epsilon, 1e-20)
    assert exact <= found <= exact * 1.002 + eta / 64**2


# ---- what the curve must cover ------------------------------------------------------------------


def exact_delta(ratios, epsilon):
    """δ(ε) of a finite mechanism from (probability under P, log ratio) pairs."""
    return sum(p * max(0.0, -math.expm1(epsilon - loss)) for p, loss in ratios)


@settings(max_examples=100)
@given(st.data(), st.floats(0.05, 2.0), st.integers(1, 6), st.floats(0, 3))
def test_every_adaptive_sequence_of_choices_is_covered(data, eta, count, epsilon):
    # choices with many outcomes, whose t depends on what was chosen before
    outcomes = [(1.0, 0.0)]
    for _ in range(count):
        longer = []
        for probability, loss in outcomes[:16]:
            t = data.draw(st.floats(0, 1)) * eta
            alpha = math.expm1(eta - t) * math.exp(t) / math.expm1(eta)
            longer += [(probability * alpha, loss + t), (probability * (1 - alpha), loss + t - eta)]
        outcomes = longer + outcomes[16:]
    assert (
        exact_delta(outcomes, epsilon) <= delta_of_choices(eta, count, 0.0, epsilon, 1e-12) + 1e-15
    )


def test_every_interleaving_with_gaussians_is_covered():
    # one choice after a release whose outcome decides on its t: the order that the proof bounds
    eta, mu, epsilon = 0.7, 0.5, 0.8
    nodes = np.linspace(-9, 9, 2001)
    weights = np.exp(-(nodes**2) / 2)
    losses = mu**2 / 2 + mu * nodes
    worst = 0.0
    for loss, weight in zip(losses, weights / weights.sum(), strict=True):
        best = 0.0
        for t in np.linspace(0, eta, 71):
            alpha = math.expm1(eta - t) * math.exp(t) / math.expm1(eta)
            best = max(best, exact_delta([(alpha, loss + t), (1 - alpha, loss + t - eta)], epsilon))
        worst += weight * best
    found = delta_of_choices(eta, 1, mu, epsilon, 1e-12)
    assert 0.998 * found < worst < 1.0001 * found  # the mean by 2,001 points


@given(st.floats(0.001, 2.0), st.integers(1, 60), st.floats(0.0, 3.0), st.floats(0.0, 5.0))
@settings(max_examples=60)
def test_more_loss_never_counts_less(eta, count, mu, epsilon):
    delta = partial(delta_of_choices, tail=1e-12)
    here = delta(eta, count, mu, epsilon)
    slack = 1e-9 + 1e-3 * here  # grids differ
    assert 0 <= here <= 1
    assert delta(eta, count + 1, mu, epsilon) >= here - slack
    assert delta(eta * 1.1, count, mu, epsilon) >= here - slack
    assert delta(eta, count, mu + 0.1, epsilon) >= here - slack
    assert delta(eta, count, mu, epsilon + 0.1) <= here


# ---- through the room's doors -------------------------------------------------------------------


def test_a_hundred_thousand_choices_are_counted_by_their_tables():
    event = greedy_fit_event(Budget(1.0, 1e-6), 200_000, 0.5)
    assert epsilon_of(event, 1e-6) <= 1.0 < zcdp_epsilon(zcdp(event), 1e-6) / 1.05


def test_choices_of_wide_ranges_are_counted_by_zcdp():
    assert not _renyi.is_tractable(30.0, 100)
    event = FitEvent((SelectionEvent(30.0, 100),))
    assert epsilon_of(event, 1e-6) == pytest.approx(min(3000.0, zcdp_epsilon(zcdp(event), 1e-6)))


@table("count", [16, 17, 40])
@table("eta", [0.02, 0.3])
def test_choices_of_several_tables_are_never_below_the_truth_and_near_it(count, eta):
    mu = eta * math.sqrt(count) / 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_renyi, "_LONGEST", 16)
        found = _renyi._choices_loss.__wrapped__(eta, count, 1e-13).with_gaussian(mu)
    for epsilon in (0.0, mu, 3 * mu + 0.5 * mu**2):
        below = delta_from_below(eta, mu, count, 48, epsilon)
        one_table = delta_from_above(eta, mu, count, 64, epsilon)
        assert below <= found.delta(epsilon) < one_table * 1.1


@table("factor", [0.8, 1.25])
def test_the_losses_of_a_wider_range_are_above_the_truth_and_those_of_a_narrower_below(factor):
    eta, count, mu, epsilon = 0.2, 30, 0.1, 2.0
    other = _renyi._choices_loss(eta / factor, count, 1e-20)
    found = replace(other, step=other.step * factor).with_gaussian(mu).delta(epsilon)
    assert (found < delta_from_below(eta, mu, count, 96, epsilon)) == (factor > 1)


# Randomised response of pure loss 0.1, whose curve is exact however often it is repeated.
RESPONSE = Loss(-1, 0.1, np.array([1, 0, math.exp(0.1)]) / (1 + math.exp(0.1)))


def test_the_ends_of_a_repeated_loss_are_cut_upwards():
    exact, cut = repeated(RESPONSE, 60), repeated(RESPONSE, 60, 1e-3)
    assert len(cut.masses) < len(exact.masses)
    assert exact.infinite == 0 < cut.infinite <= 1e-3
    for epsilon in np.linspace(-6, 6, 61):
        assert exact.delta(epsilon) <= cut.delta(epsilon) <= exact.delta(epsilon) + 1e-3


def test_a_mutant_that_forgets_what_it_cuts_is_below_the_truth(monkeypatch):
    def forgetful(loss, tail):
        return replace(trimmed(loss, tail), infinite=loss.infinite)

    monkeypatch.setattr(_loss, "trimmed", forgetful)
    exact, mutant = repeated(RESPONSE, 60), repeated(RESPONSE, 60, 1e-3)
    assert mutant.delta(4.0) < exact.delta(4.0)


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e30])
@pytest.mark.parametrize("count", [1, 1000])
def test_budgets_that_protect_nobody_are_calibrated_all_the_same(epsilon, count):
    event = greedy_fit_event(Budget(epsilon, 1e-6), count, 0.8)
    assert epsilon_of(event, 1e-6) <= epsilon * (1 + 1e-9)


STEP = 0.1  # of the losses below; ranges are so many of it


def interleaved(cells, counts):
    """The δ of an adversary who picks the range of every choice by what was seen, at k STEP.

    Exact but that it knows losses on the grid only: a bound from below.
    """

    @cache
    def value(left, k):
        best = max(0.0, -math.expm1(k * STEP))
        for i, width in enumerate(cells):
            if left[i]:
                after = tuple(n - (i == group) for group, n in enumerate(left))
                for t in range(width + 1):
                    share = math.expm1((t - width) * STEP) / math.expm1(-width * STEP)
                    rest = value(after, k - t + width) if share < 1 else 0.0
                    best = max(best, share * value(after, k - t) + (1 - share) * rest)
        return best

    return lambda k: value(counts, k)


def of_ranges(cells, counts):
    choices = zip(cells, counts, strict=True)
    return FitEvent(tuple(SelectionEvent(width * STEP, count) for width, count in choices))


@pytest.mark.parametrize(
    ("cells", "counts"),
    [((4, 10), (3, 2)), ((4, 5), (3, 3)), ((1, 12), (6, 1)), ((2, 4, 6), (2, 2, 1))],
)
def test_choices_of_several_ranges_in_any_order_are_never_above_their_curve(cells, counts):
    truth, loss = interleaved(cells, counts), loss_of(of_ranges(cells, counts), 1e-15)
    shares = np.array([truth(k) / loss.delta(k * STEP) for k in range(-10, 12)])
    assert shares.max() <= 1.0
    assert shares[:15].min() > 0.85
    fewer = (*counts[:-1], counts[-1] - 1)  # a mutant that forgets one of the widest
    kept = [pair for pair in zip(cells, fewer, strict=True) if pair[1]]
    mutant = loss_of(of_ranges(*zip(*kept, strict=True)), 1e-15)
    assert any(truth(k) > 1.001 * mutant.delta(k * STEP) for k in range(-10, 12))


def test_ranges_that_differ_by_little_cost_little_more_than_one_range_and_less_than_by_zcdp():
    def fit(*etas):
        choices = tuple(SelectionEvent(eta, 10) for eta in etas)
        return FitEvent((*choices, GaussianEvent(20.0, 10)))

    equal = epsilon_of(FitEvent((SelectionEvent(0.1, 20), GaussianEvent(20.0, 10))), 1e-6)
    assert epsilon_of(fit(0.1, 0.0999), 1e-6) == pytest.approx(equal, rel=1e-2)
    for other in (0.1, 0.05, 0.001):
        mixed = fit(0.1, other)
        assert epsilon_of(mixed, 1e-6) < 0.96 * zcdp_epsilon(zcdp(mixed), 1e-6)
    many = fit(*np.linspace(0.05, 0.1, 9).tolist())
    assert epsilon_of(many, 1e-6) == zcdp_epsilon(zcdp(many), 1e-6)


def test_accounting_halves_the_mistake_of_a_mutant_with_half_the_noise():
    choice, release = greedy_fit_event(Budget(1.0, 1e-6), 20, 0.5).releases
    mutant = FitEvent(
        (SelectionEvent(2 * choice.eta, 20), GaussianEvent(release.noise_multiplier / 2, 20))
    )
    assert epsilon_of(mutant, 1e-6) > 2.0
