"""The privacy filter: limits, prices, what is admitted, and what is refused with which words."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table
from test_accountant_ledger import INFINITE, ONE, gaussian

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
    choices_event,
    gaussian_fit_event,
    gdp_delta,
    gdp_mu,
    greedy_fit_event,
    sampled_fit_event,
    search_fit_event,
    with_noise,
)
from dpcd_sklearn.privacy.ledger import Balance, PrivacyAccountant, _filter, _ledger_report


def stated(epsilon, delta, neighboring=ONE, n_public=None, **flags):
    """The parameters of a ledger without the ledger, for many cases in little time."""
    return _filter.fixed_parameters(epsilon, delta, neighboring, n_public, **flags)


def balance_of(amounts):
    return Balance(len(amounts), sum(map(Fraction, amounts), Fraction(0)))


def admits(ledger, amounts, amount, first=False):
    price = _filter.Price(amount, 0.0, private=True, first=first)
    return _filter.admits(ledger, balance_of(amounts), price)


WHOLE = {
    "gaussian": lambda epsilon: gaussian_fit_event(Budget(epsilon, 1e-6, ONE), 100),
    "greedy": lambda epsilon: greedy_fit_event(Budget(epsilon, 1e-6, ONE), 40, 0.8),
    "choices": lambda epsilon: greedy_fit_event(Budget(epsilon, 1e-6, ONE), 5, 1.0),
    "search": lambda epsilon: search_fit_event(
        Budget(epsilon, 1e-6, ONE), "logarithmic", 10.0, 1, True, 1
    )[0],
    "poisson search": lambda epsilon: search_fit_event(
        Budget(epsilon, 1e-6, ONE), "poisson", 5.0, 2, True, 0
    )[0],
    "samples": lambda epsilon: sampled_fit_event(Budget(epsilon, 1e-6, ONE), 0.05, 100),
}


# ---- one event of the whole budget --------------------------------------------------------------


@pytest.mark.parametrize("kind", WHOLE)
def test_a_budget_admits_exactly_one_event_calibrated_to_it_whatever_its_kind(kind):
    for epsilon in (0.1, 1.0, 10.0):
        accountant = PrivacyAccountant(epsilon, 1e-6)
        assert accountant.remaining() == epsilon
        with pytest.raises(BudgetExceededError):
            accountant.charge(WHOLE[kind](1.001 * epsilon))
        accountant.charge(WHOLE[kind](epsilon))
        assert 0.99 * epsilon < accountant.spent().epsilon <= epsilon
        assert accountant.remaining() < 0.05 * epsilon
        for event in (WHOLE[kind](epsilon), gaussian(0.02 * epsilon**2)):
            with pytest.raises(BudgetExceededError):
                accountant.charge(event)
        assert len(accountant.entries()) == 1


def any_event(rng, epsilon, delta, most):
    """An event of any kind that is calibrated to a budget, of up to `most` releases."""
    kind, count = rng.integers(7), int(10 ** rng.uniform(0, math.log10(most)))
    n, p = int(10 ** rng.uniform(2, 6)), int(10 ** rng.uniform(0, 2))
    law = ["logarithmic", "geometric", -0.5, 2.0, "poisson"][rng.integers(5)]
    if kind == 0:
        return gaussian_fit_event(Budget(epsilon, delta, ONE), count)
    if kind == 1:
        return greedy_fit_event(Budget(epsilon, delta, ONE), count, float(rng.uniform(0.1, 1)))
    if kind == 2:
        return DPLinearRegressor(epsilon=epsilon, delta=delta).planned_event(n, p)
    if kind == 3:
        model = DPLinearClassifier(epsilon=epsilon, delta=delta, classes=[0, 1])
        return model.set_params(solver="gcd", max_iter=min(most, 30)).planned_event(n, p)
    if kind == 4:
        return sampled_fit_event(
            Budget(epsilon, delta, ONE), float(10 ** rng.uniform(-3, 0)), count
        )
    runs = law, float(1.5 + 10 ** rng.uniform(-1, 2)), int(rng.integers(1, 6))
    return search_fit_event(Budget(epsilon, delta, ONE), *runs, kind == 5, int(rng.integers(2)))[0]


def told_otherwise(rng, event):
    """The same releases in another order, one of them in two parts."""
    releases = [event.releases[i] for i in rng.permutation(len(event.releases))]
    first = releases[0]
    if getattr(first, "count", 1) > 1:
        releases[:1] = [replace(first, count=1), replace(first, count=first.count - 1)]
    return FitEvent(tuple(releases))


def whole_budgets(seed, cases, most):
    """Faults in words, over random budgets and events of all of each."""
    rng, wrong = np.random.default_rng(seed), []
    for case in range(cases):
        epsilon, delta = float(10 ** rng.uniform(-4, 1.5)), float(10 ** rng.uniform(-15, -0.4))
        event, ledger = any_event(rng, epsilon, delta, most), stated(epsilon, delta)
        found = f"{case}: epsilon={epsilon:.4g}, delta={delta:.3g}, {event}"
        prices = [_filter.price(ledger, event, first) for first in (True, False)]
        if not admits(ledger, [], prices[0].amount, first=True):
            wrong.append(f"refused {found}")
        if math.isfinite(_filter.price(ledger, with_noise(event, 1 - 3e-6), True).amount):
            wrong.append(f"admitted less noise than {found}")
        other = told_otherwise(rng, event)
        for first, price in zip((True, False), prices, strict=True):
            amount = _filter.price(ledger, other, first).amount
            if not amount == pytest.approx(price.amount, rel=2e-6):
                wrong.append(f"told otherwise it costs {amount / price.amount:.8f} of {found}")
    return wrong


def test_a_fresh_budget_admits_what_is_calibrated_to_it_and_nothing_with_noise():
    assert whole_budgets(seed=0, cases=25, most=100) == []


@pytest.mark.slow
def test_the_same_of_ten_thousand_releases():
    assert whole_budgets(seed=0, cases=60, most=100) == []
    assert whole_budgets(seed=1, cases=30, most=10_000) == []


def test_a_later_event_is_never_admitted_by_its_own_curve():
    for whole in WHOLE.values():
        accountant = PrivacyAccountant(1.0, 1e-6)
        accountant.charge(FitEvent((GaussianEvent(1e5),)))
        with pytest.raises(BudgetExceededError):
            accountant.charge(whole(1.0))
        assert 0.99 < accountant.remaining() < 1.0


# ---- the rule -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.5])
def test_limits_are_those_of_the_proof(epsilon, delta):
    ledger = stated(epsilon, delta)
    assert ledger.reserve == 0.01 * delta
    # the rounding that is given back stays within what gdp_mu rounded down
    assert ledger.limit == pytest.approx(gdp_mu(epsilon, 0.99 * delta) ** 2, rel=1e-9)
    assert gdp_delta(math.sqrt(ledger.limit), epsilon) + ledger.reserve <= delta


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0.01, 50.0),
    log_delta=st.floats(-14.0, -0.31),
    shares=st.lists(st.floats(0.0, 0.5), max_size=4),
    count=st.sampled_from([1, 3, 7, 1000, 12345]),
)
def test_a_fit_of_what_remains_is_admitted_and_one_of_a_billionth_more_is_not(
    epsilon, log_delta, shares, count
):
    ledger = stated(epsilon, 10**log_delta)
    amounts = []
    for share in shares:
        amounts.append(share * (ledger.limit - math.fsum(amounts)))
    balance = balance_of(amounts)
    remaining = _ledger_report.remaining(ledger, balance)
    assert 0.0 <= remaining <= epsilon
    if balance.fresh:
        assert remaining == epsilon

    def admitted(target):
        event = gaussian_fit_event(Budget(target, ledger.delta, ONE), count)
        return _filter.admits(ledger, balance, _filter.price(ledger, event, balance.fresh))

    if remaining > 0:
        assert admitted(remaining)
    # or of the largest μ, whose rounding is more than that where epsilon is far below it
    assert not admitted(remaining * (1 + 1e-9) + 1e-9 * max(epsilon, math.sqrt(ledger.limit)))


def test_the_reserve_is_a_limit_of_its_own():
    ledger = stated(1.0, 1e-6)
    price = _filter.Price(ledger.limit / 100, ledger.reserve / 3, private=True, first=False)
    for n, admitted in ((2, True), (3, False)):
        balance = Balance(n, n * Fraction(price.amount), n * Fraction(price.delta))
        assert _filter.admits(ledger, balance, price) == admitted


def test_the_price_of_a_first_event_is_that_of_the_first_only():
    ledger = stated(1.0, 1e-6)
    assert admits(ledger, [], ledger.limit, first=True)
    assert not admits(ledger, [1e-9], ledger.limit / 2, first=True)
    assert not admits(ledger, [], ledger.limit / 2, first=False)


def late_events(seed, cases):
    """Faults in words: events of at most half of a budget that has spent a tenth already."""
    rng, wrong = np.random.default_rng(seed), []
    for _ in range(cases):
        epsilon, delta = float(10 ** rng.uniform(-0.5, 2)), float(10 ** rng.uniform(-8, -4))
        ledger = stated(epsilon, delta)
        own = min(delta, float(10 ** rng.uniform(-9, -4)))
        event = any_event(rng, epsilon * float(10 ** rng.uniform(-3, -0.2)), own, 40)
        alone = _filter.price(ledger, event, True).amount
        if not alone <= ledger.limit / 2:
            continue
        price = _filter.price(ledger, event, False)
        found = f"{event} of {alone / ledger.limit:.3g} in ({epsilon:.4g}, {delta:.3g})"
        if not math.isfinite(price.amount):
            wrong.append(f"no price of {found}")
        spent = Balance(1, Fraction(ledger.limit) / 10)
        room = price.amount <= 0.9 * ledger.limit * (1 - 1e-9)
        if _filter.admits(ledger, spent, price) != room:
            wrong.append(f"refused {found}")
    return wrong


def test_an_event_that_a_fresh_budget_admits_is_admitted_later():
    """Searches over fits with choices, and encoders, leave a probability of their own uncovered."""
    assert not late_events(0, 25)


# ---- prices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "most"),
    [
        (gaussian(0.003, 17), 1.0 + 1e-11),
        (FitEvent((SelectionEvent(0.002, 36), GaussianEvent(60.0, 9))), 1.005),
        (FitEvent((SelectionEvent(0.005, 5), GaussianEvent(60.0, 9))), 1.005),
        (greedy_fit_event(Budget(0.3, 1e-6, ONE), 40, 0.8), 1.03),
        (choices_event(0.05, 1, ONE), 1.26),
    ],
    ids=["gaussians", "raw", "raw of five choices", "greedy", "one choice"],
)
def test_a_cover_is_near_the_rule_of_variances(event, most):
    price = _filter.price(stated(1.0, 1e-6), event, False)
    squared = sum(
        r.count * (r.eta**2 / 4 if isinstance(r, SelectionEvent) else r.noise_multiplier**-2)
        for r in event.releases
    )
    assert squared <= price.amount <= squared * most**2


STRANGE = [
    SelectionEvent(1e-9),
    SelectionEvent(1e-12, 10**9),
    SelectionEvent(50.0, 3),
    SelectionEvent(700.0),
    SelectionEvent(0.1, 10**6),
    CoveredEvent(30.0, 1e-12),
    CoveredEvent(1e-3, 1e-12),
    CoveredEvent(1e3, 1.0),
    TuningEvent(FitEvent((CoveredEvent(20.0, 1e-12, 3), SelectionEvent(0.1))), "geometric", 3.0),
    PoissonSampledEvent(1e-6, 1.0),
    *(GaussianEvent(z, 2) for z in (1e-3, 1e-8, 1.1e-154)),
    TuningEvent(FitEvent((GaussianEvent(1e5),)), "logarithmic", 10.0),
    TuningEvent(FitEvent((GaussianEvent(1e-2),)), "poisson", 0.01),
    TuningEvent(FitEvent((GaussianEvent(5.0),)), "logarithmic", 1e6),
    TuningEvent(FitEvent((SelectionEvent(0.1),)), "poisson", 1e6),
    TuningEvent(
        FitEvent((TuningEvent(FitEvent((GaussianEvent(20.0),)), "geometric", 3.0),)), -0.5, 3.0
    ),
]


@pytest.mark.filterwarnings("error")
def test_strange_events_have_a_price_or_none_without_a_sound():
    for release in STRANGE:
        for budget in ((1.0, 1e-6), (100.0, 1e-5), (1e-3, 1e-12)):
            ledger = stated(*budget)
            for first in (True, False):
                price = _filter.price(ledger, FitEvent((release,)), first)
                assert price.amount > 0 and 0 <= price.delta <= ledger.reserve, release


# ---- what is refused ----------------------------------------------------------------------------


def test_later_refusals_say_what_was_spent_and_what_remains():
    accountant = PrivacyAccountant(1.0, 1e-5)
    accountant.charge(gaussian_fit_event(Budget(0.9, 1e-5, ONE), 50))
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(gaussian_fit_event(Budget(0.9, 1e-5, ONE), 50))
    text = str(caught.value)
    assert f"epsilon={accountant.spent().epsilon:.6g} of 1 in 1 entry" in text
    assert "Lower the estimator's epsilon" in text and "counts as" not in text
    accountant.charge(gaussian_fit_event(Budget(accountant.remaining(), 1e-5, ONE), 50))
    with pytest.raises(BudgetExceededError, match="The budget is spent"):
        accountant.charge(gaussian_fit_event(Budget(0.9, 1e-5, ONE), 50))


def test_a_refusal_says_that_delta_is_short_where_epsilon_is_not():
    def search(delta):
        return search_fit_event(Budget(0.1, delta, ONE), "logarithmic", 10.0, 1, False, 0)[0]

    accountant = PrivacyAccountant(20.0, 1e-6)
    accountant.charge(gaussian(0.01))
    for _ in range(9):
        accountant.charge(search(1e-6))
    with pytest.raises(BudgetExceededError, match=r"not epsilon that is short.*smaller delta"):
        accountant.charge(search(1e-6))
    assert accountant.spent().epsilon < 2
    accountant.charge(search(1e-8))


TUNED = FitEvent((GaussianEvent(50.0),))


class UnknownEvent:
    """A release that no accounting knows."""


@table(
    ("event", "error"),
    [
        (FitEvent((UnknownEvent(),)), TypeError),
        (FitEvent((GaussianEvent(5.0), UnknownEvent())), TypeError),
        (GaussianEvent(5.0), TypeError),
        ("a fit", TypeError),
        (None, TypeError),
        (FitEvent(()), TypeError),
        (FitEvent(iter((GaussianEvent(5.0),))), TypeError),
        (FitEvent([GaussianEvent(5.0)]), TypeError),
        (FitEvent((GaussianEvent(float("nan")),)), ValueError),
        (FitEvent((GaussianEvent(0.0),)), ValueError),
        (FitEvent((GaussianEvent(-5.0),)), ValueError),
        (FitEvent((GaussianEvent("5"),)), TypeError),
        (FitEvent((GaussianEvent(5.0, 0),)), ValueError),
        (FitEvent((GaussianEvent(5.0, -1),)), ValueError),
        (FitEvent((GaussianEvent(5.0, 5), GaussianEvent(5.0, -4))), ValueError),
        (FitEvent((GaussianEvent(5.0, 0.5),)), TypeError),
        (FitEvent((GaussianEvent(5.0, True),)), TypeError),
        (FitEvent((GaussianEvent(1e-200),)), ValueError),
        (FitEvent((GaussianEvent(1e200),)), ValueError),
        (FitEvent((SelectionEvent(-1.0),)), ValueError),
        (FitEvent((SelectionEvent(1e200),)), ValueError),
        (FitEvent((FitEvent((GaussianEvent(5.0),)),)), TypeError),
        (FitEvent((GaussianEvent(5.0),), "add_remove"), ValueError),
        (INFINITE, ValueError),
        (FitEvent((GaussianEvent(5.0), NonPrivateEvent())), ValueError),
        (FitEvent((SelectionEvent(0.0),)), ValueError),
        (FitEvent((SelectionEvent(float("nan")),)), ValueError),
        (FitEvent((SelectionEvent(0.1, -3),)), ValueError),
        (FitEvent((SelectionEvent("0.1"),)), TypeError),
        (FitEvent((PoissonSampledEvent(1.5, 5.0),)), ValueError),
        (FitEvent((PoissonSampledEvent(0.0, 5.0),)), ValueError),
        (FitEvent((PoissonSampledEvent(-0.1, 5.0),)), ValueError),
        (FitEvent((PoissonSampledEvent(float("nan"), 5.0),)), ValueError),
        (FitEvent((PoissonSampledEvent(0.1, -5.0),)), ValueError),
        (FitEvent((PoissonSampledEvent(0.1, 5.0, 0),)), ValueError),
        (FitEvent((TuningEvent(TUNED, "uniform", 10.0),)), ValueError),
        (FitEvent((TuningEvent(TUNED, "geometric", 1.0),)), ValueError),
        (FitEvent((TuningEvent(TUNED, "geometric", float("inf")),)), ValueError),
        (FitEvent((TuningEvent(TUNED, "poisson", -1.0),)), ValueError),
        (FitEvent((TuningEvent(GaussianEvent(5.0), "geometric", 2.0),)), ValueError),
        (FitEvent((TuningEvent(INFINITE, "geometric", 2.0),)), ValueError),
        (FitEvent((TuningEvent(FitEvent((GaussianEvent(-5.0),)), "poisson", 2.0),)), ValueError),
        (FitEvent((TuningEvent(TUNED, "geometric", 2.0),), "add_remove"), ValueError),
    ],
)
def test_what_cannot_be_counted_is_refused(event, error, uncharged):
    with pytest.raises(error):
        uncharged.charge(event)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-100, 1e-12, 0.1, 10.0, 1e4, 1e300])
@pytest.mark.parametrize("delta", [1e-6, 1e-200, 1e-300, 1e-310, 5e-324])
def test_a_tiny_delta_is_refused_by_name_or_works(epsilon, delta):
    refusal = parameters = None
    try:
        parameters = _filter.fixed_parameters(epsilon, delta, ONE, None)
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert epsilon <= 1e-100 and "delta=" in refusal
        return
    half = Balance(1, Fraction(parameters.limit) / 2)
    for noise in (1e-3, 1.0, 1e3):
        event = FitEvent((GaussianEvent(noise),))
        for balance in (Balance(), half):
            assert "does not fit into the budget" in _ledger_report.refusal(
                parameters, balance, event
            )
    assert 0 <= _ledger_report.remaining(parameters, half) <= epsilon
    assert 0 <= _ledger_report.spent(parameters, half).epsilon <= epsilon


def test_add_remove_ledgers_store_the_public_number_of_records_never_n():
    """Whatever an estimator says: those of this package say the public number themselves."""
    accountant = PrivacyAccountant(5.0, 1e-5, neighboring="add_remove", n_public=100)
    accountant.charge(FitEvent((GaussianEvent(9.0),), "add_remove"), n_samples=98, n_features=2)
    (entry,) = accountant.entries()
    assert (entry.n_samples, entry.n_features, accountant.n_public) == (100, 2, 100)
