"""Accounting and calibration: known values, fifty digits, and rounding towards more loss.

"The truth" below is the same formula in 50 digits, and for zCDP a search over orders of its own.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tables import table

from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    SelectionEvent,
    _joint,
    epsilon_of,
    gaussian_fit_event,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    gdp_squared,
    greedy_fit_event,
    loss_of,
    rdp_epsilon,
    sampled_fit_event,
    zcdp,
    zcdp_epsilon,
    zcdp_rho,
)
from dpcd_sklearn.privacy.accounting._accounting import best_order
from dpcd_sklearn.privacy.accounting._calibration import joint_fit_event
from dpcd_sklearn.privacy.accounting._renyi import is_tractable

# A conversion there and back may lose so much, in the direction of more loss.
ROUND_TRIP = 1e-9


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


epsilons = powers_of_ten(-4, 2)
deltas = powers_of_ten(-15, math.log10(0.5))
mus = powers_of_ten(-3, 1.5)
counts = st.integers(1, 10**6)
shares = st.floats(0.01, 0.99)
relations = st.sampled_from(["replace_one", "add_remove"])
budgets = settings(max_examples=150, deadline=None, derandomize=True)
few_budgets = settings(max_examples=10, deadline=None)  # of which each takes a second


# ---- the truth ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(50):
        yield


def true_delta(mu, epsilon):
    """δ(ε) of μ-GDP, Dong, Roth & Su (2022), Corollary 2.13."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    with mpmath.extradps(60):  # for the cancellation of the two terms
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


def true_gap(order, delta):
    """Canonne, Kamath & Steinke (2020), Proposition 12."""
    order, delta = mpmath.mpf(order), mpmath.mpf(delta)
    return mpmath.log(1 - 1 / order) - (mpmath.log(delta) + mpmath.log(order)) / (order - 1)


def searched_epsilon(rho, delta):
    """The conversion at the best order of a fine grid: near its minimum from above."""
    excess = np.exp(np.linspace(-12, 25, 200_001))
    order = 1 + excess
    log_term = np.log(excess) - np.log(order)
    return np.min(order * rho + log_term - (np.log(delta) + np.log(order)) / excess)


# ---- noise that the papers add, exact noise, and noise by zCDP (proofs/accounting.md) ----------


@table(
    ("epsilon", "delta", "papers", "exact", "concentrated"),
    [
        (0.1, 1e-6, 64.38, 36.30, 39.46),
        (1, 1e-6, 6.438, 4.225, 4.531),
        (1, 1e-8, 7.434, 5.100, 5.391),
        (3, 1e-6, 2.146, 1.544, 1.644),
        (10, 1e-6, 0.644, 0.541, 0.570),
    ],
)
@table("count", [1, 50, 10_000])
def test_noise_of_gaussian_fits_is_that_of_the_table(
    epsilon, delta, papers, exact, concentrated, count
):
    (release,) = gaussian_fit_event(Budget(epsilon, delta), count).releases
    assert release.noise_multiplier / math.sqrt(count) == pytest.approx(exact, rel=0.005)
    by_zcdp = math.sqrt(1 / (2 * zcdp_rho(epsilon, delta)))
    assert by_zcdp == pytest.approx(concentrated, rel=0.005)
    assert math.sqrt(3 * math.log(1 / delta)) / epsilon == pytest.approx(papers, rel=0.005)


@pytest.mark.parametrize(("count", "scale"), [(1, 6.41), (5, 14.33), (10, 20.26), (50, 45.31)])
def test_zcdp_of_a_choice_and_a_release_is_that_of_the_table(count, scale):
    fit = FitEvent((SelectionEvent(2 / scale, count), GaussianEvent(scale, count)))
    assert zcdp_epsilon(zcdp(fit), 1e-6) == pytest.approx(1, rel=0.005)


# ---- δ of Gaussian DP --------------------------------------------------------------------------


@table("epsilon", [0.0, *np.logspace(-4, 2, 25)])
def test_gdp_delta_is_the_truth_to_nine_digits_and_never_below_it(epsilon):
    checked = 0
    for mu in np.logspace(-5, 2, 141):
        truth = true_delta(mu, epsilon)
        if truth < 1e-15:
            continue
        found = mpmath.mpf(gdp_delta(mu, epsilon))
        assert found >= truth, f"mu={mu!r}: below by {float((truth - found) / truth):.3g}"
        # the rounding of the first term counts where the second nearly cancels it, for μ near 0
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        assert found <= truth * (1 + mpmath.mpf(2e-10)) + first * mpmath.mpf(2.0**-48)
        checked += 1
    assert checked >= 20


@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [(1.4208308325339208e-07, 0.0), (2.0187602546790e-07, 0.0), (1.94149194574388e-05, 1e-4)],
)
def test_gdp_delta_is_not_below_the_truth_where_its_terms_nearly_cancel(mu, epsilon):
    assert gdp_delta(mu, epsilon) >= true_delta(mu, epsilon)


def test_gdp_delta_has_its_limits():
    assert gdp_delta(0, 1.0) == gdp_delta(0, 0.0) == 0
    assert gdp_delta(math.inf, 1.0) == 1
    assert gdp_delta(1e-3, 100.0) == 0  # 10^(-2e9): below every double
    assert gdp_delta(1e4, 1.0) == 1


# ---- inverses: round trips, direction of rounding, monotone ------------------------------------


@given(epsilons, deltas)
@example(1e-4, 1e-15)
@example(1e-4, 0.5)
@example(100.0, 1e-15)
@example(100.0, 0.5)
@budgets
def test_gdp_mu_is_the_largest_admitted_rounded_downwards(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu * (1 + ROUND_TRIP), epsilon) > delta
    assert gdp_epsilon(mu, delta) <= epsilon * (1 + ROUND_TRIP)


@table("epsilon", [1e-12, 1e-10, 1e-8, 1e-5, 1e3, 1e5])
@table("delta", [1e-30, 1e-15, 1e-9, 1e-3, 0.5, 0.99])
def test_gdp_mu_keeps_its_promise_beyond_useful_budgets(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert true_delta(mu, epsilon) <= delta
    assert epsilon < 1e-5 or true_delta(mu * (1 + 1e-6), epsilon) > delta


@given(mus, deltas)
@example(1e-3, 0.5)
@example(10**1.5, 1e-15)
@budgets
def test_gdp_epsilon_is_the_smallest_admitted_rounded_upwards(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    assert true_delta(mu, epsilon) <= delta
    if epsilon > 1e-9:
        # where δ(ε) is flat, its rounding by 1e-10 is many times that in ε
        assert true_delta(mu, epsilon) >= delta * (1 - 1e-6)


def test_no_noise_is_an_infinite_loss_and_little_loss_none():
    assert gdp_epsilon(math.inf, 1e-6) == math.inf
    assert gdp_epsilon(0.0, 1e-6) == 0.0
    assert gdp_epsilon(1e-7, 1e-6) == 0.0  # δ(0) = μ / sqrt(2 π) is below 1e-6


# ---- calibrations ------------------------------------------------------------------------------


@given(epsilons, deltas, counts, relations)
@example(1e-4, 1e-15, 10**6, "replace_one")
@example(100.0, 0.5, 1, "add_remove")
@budgets
def test_a_gaussian_calibration_stays_within_its_budget(epsilon, delta, count, neighboring):
    event = gaussian_fit_event(Budget(epsilon, delta, neighboring), count)
    assert event.neighboring == neighboring
    (release,) = event.releases
    mu = mpmath.sqrt(release.count) / mpmath.mpf(release.noise_multiplier)
    assert true_delta(mu, epsilon) <= delta
    assert epsilon_of(event, delta) <= epsilon * (1 + ROUND_TRIP)  # the report rounds upwards


@given(epsilons, deltas, counts, shares, relations)
@example(1e-4, 1e-15, 10**6, 0.01, "replace_one")
@example(100.0, 1e-15, 1, 0.99, "add_remove")
@example(1.0, 1e-15, 4500, 0.5, "replace_one")  # its table is longer than a product may be
@example(1e-3, 0.1, 1, 0.5, "replace_one")  # δ decides
@few_budgets
def test_a_greedy_calibration_stays_within_its_budget(epsilon, delta, count, share, neighboring):
    try:
        event = greedy_fit_event(Budget(epsilon, delta, neighboring), count, share)
    except ValueError:  # admits nothing, near ε = 0
        assume(False)
    assert event.neighboring == neighboring
    selection, gaussian = event.releases
    assert isinstance(selection, SelectionEvent) and isinstance(gaussian, GaussianEvent)
    assert selection.count == gaussian.count == count
    eta, z = mpmath.mpf(selection.eta), mpmath.mpf(gaussian.noise_multiplier)
    rho = count * (eta**2 / 8 + 1 / (2 * z**2))
    order = mpmath.mpf(best_order(epsilon, delta)[0])
    if not is_tractable(selection.eta, count):  # any order proves it
        assert order * rho + true_gap(order, delta) <= epsilon
    else:  # test_selections looks at the tight curve
        assert rho >= (epsilon - true_gap(order, delta)) / order * (1 - 1e-6)
    assert epsilon_of(event, delta) <= epsilon * (1 + ROUND_TRIP)  # the report rounds upwards
    # and nothing is wasted, neither of ε nor, where δ decides, of δ
    is_near = epsilon_of(event, delta) >= epsilon * (1 - 1e-4)
    assert is_near or loss_of(event, 1e-20).delta(epsilon) >= delta * (1 - 1e-6)


@given(epsilons, powers_of_ten(-15, -5), counts, shares)
@few_budgets
def test_the_share_of_a_greedy_fit_goes_to_the_choices(epsilon, delta, count, share):
    selection, gaussian = greedy_fit_event(Budget(epsilon, delta), count, share).releases
    paid = [zcdp(FitEvent((release,))) for release in (selection, gaussian)]
    assert paid[0] / sum(paid) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_an_infinite_budget_is_not_private(neighboring):
    expected = FitEvent((NonPrivateEvent(),), neighboring)
    assert gaussian_fit_event(Budget(math.inf, 1e-6, neighboring), 10) == expected
    assert greedy_fit_event(Budget(math.inf, 1e-6, neighboring), 10, 0.5) == expected


# ---- zCDP and Rényi DP -------------------------------------------------------------------------


@given(powers_of_ten(-9, 3), deltas)
@example(1e-9, 0.5)
@example(1e3, 1e-15)
@budgets
def test_the_conversion_of_zcdp_takes_the_best_order(rho, delta):
    found = zcdp_epsilon(rho, delta)
    best = searched_epsilon(rho, delta)
    assert found == pytest.approx(max(0.0, best), rel=1e-6, abs=1e-9)
    # a minimum over orders is never below that over all of them (the grid's is 1e-8 above)
    assert found >= best - 1e-7 * abs(best) - 1e-9


@given(epsilons, powers_of_ten(-15, -3))
@budgets
def test_zcdp_rho_is_admitted_and_rounded_downwards(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    order, admitted = best_order(epsilon, delta)
    assert rho < admitted
    assert order * mpmath.mpf(rho) + true_gap(order, delta) <= epsilon
    assert rdp_epsilon(order * rho, order, delta) <= epsilon
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    assert zcdp_epsilon(1.001 * rho, delta) > epsilon


def test_no_loss_costs_nothing_and_an_infinite_one_everything():
    assert zcdp_epsilon(0, 1e-6) == rdp_epsilon(0, 10.0, 1e-6) == 0
    assert zcdp_epsilon(math.inf, 1e-6) == math.inf


def test_a_budget_that_admits_nothing_says_so():
    # every order's gap is above ε: at δ near 0 with ε near 0
    with pytest.raises(ValueError, match="admits no release"):
        best_order(1e-13, 1e-15)


# ---- composition -------------------------------------------------------------------------------


@given(st.lists(st.tuples(powers_of_ten(-1, 3), st.integers(1, 100)), min_size=1, max_size=5))
@budgets
def test_losses_add_in_every_order(pairs):
    gaussians = tuple(GaussianEvent(z, count) for z, count in pairs)
    selections = tuple(SelectionEvent(1 / z, count) for z, count in pairs)
    both = gaussians + selections
    total = zcdp(FitEvent(both))
    assert total == pytest.approx(sum(zcdp(FitEvent((one,))) for one in both), rel=1e-12)
    assert zcdp(FitEvent(both[::-1])) == total
    mu_squared = gdp_squared(FitEvent(gaussians))
    assert mu_squared == pytest.approx(sum(count / z**2 for z, count in pairs), rel=1e-12)
    assert mu_squared / 2 == pytest.approx(zcdp(FitEvent(gaussians)), rel=1e-12)
    assert gdp_squared(FitEvent(both)) is None


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-8])
def test_samples_of_a_tiny_loss_are_calibrated_as_if_they_were_all_records(epsilon):
    # beyond the orders of the Rényi search: the noise once grew until it overflowed
    event = sampled_fit_event(Budget(epsilon, 1e-20, "add_remove"), 0.1, 3)
    assert epsilon_of(event, 1e-20) <= epsilon
    unsampled = math.sqrt(3 / (2 * zcdp_rho(epsilon, 1e-20)))
    assert event.releases[0].noise_multiplier <= unsampled * (1 + 1e-6)


def test_a_calibration_passes_events_that_cost_nothing_at_its_delta():
    event = sampled_fit_event(Budget(7.8, 0.0433), 0.0103, 13)  # whose first guess has epsilon 0
    assert 7.7 < epsilon_of(event, 0.0433) <= 7.8


def test_a_budget_below_double_precision_is_a_value_error():
    for fit in (
        lambda: gaussian_fit_event(Budget(1e-300, 1e-300), 1),
        lambda: greedy_fit_event(Budget(1e-300, 1e-300), 1, 0.5),
        lambda: sampled_fit_event(Budget(1e-300, 1e-300), 0.1, 1),
    ):
        with pytest.raises(ValueError, match="admits no release"):
            fit()


# ---- the one root finder -----------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(epsilons.filter(lambda e: 0.01 < e < 20), deltas, st.floats(0.01, 0.95), st.integers(1, 40))
def test_two_parts_take_all_of_a_budget_and_no_more(epsilon, delta, share, count):
    eta = math.sqrt(8 * share / (2 * count)) * gdp_mu(epsilon, delta) / 2
    first = FitEvent((SelectionEvent(eta, count),))
    alone = gaussian_fit_event(Budget(epsilon, delta), 5)
    both = joint_fit_event(Budget(epsilon, delta, first.neighboring), first, alone)
    event = _joint.joined(both)
    assert epsilon_of(event, delta) <= epsilon
    # one part in 10^5 less noise would be too little
    less = FitEvent((*first.releases, *[_less(r) for r in both[1].releases]))
    assert epsilon_of(less, delta) > epsilon


def _less(release):
    return GaussianEvent(release.noise_multiplier * (1 - 1e-5), release.count)
