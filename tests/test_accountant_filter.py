"""The privacy filter: limits, amounts, what is admitted, and what is refused with which words."""

import contextlib
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting._accounting import (
    best_order,
    conversion_gap,
    epsilon_of,
    gdp_squared,
    rdp,
    zcdp,
    zcdp_epsilon,
    zcdp_rho,
)
from dpcd_sklearn.privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from dpcd_sklearn.privacy.accounting._events import (
    FitEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    PureEvent,
    SelectionEvent,
    TuningEvent,
)
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_delta, gdp_epsilon, gdp_mu
from dpcd_sklearn.privacy.ledger import _filter, _forecast
from dpcd_sklearn.privacy.ledger._accountant import PrivacyAccountant
from dpcd_sklearn.privacy.ledger._ledger_records import Balance

ONE = "replace_one"
INFINITE = FitEvent((NonPrivateEvent(),))


def gaussian(mu_squared, count=1):
    """A fit of `count` Gaussian releases that are sqrt(mu_squared)-GDP together."""
    return FitEvent((GaussianEvent(math.sqrt(count / mu_squared), count),))


def selections(rho, count=1):
    return FitEvent((SelectionEvent(math.sqrt(8 * rho / count), count),))


def stated(epsilon, delta, currency="rdp", neighboring=ONE, n_public=None, **flags):
    """The parameters of a ledger without the ledger, for many cases in little time."""
    return _filter.fixed_parameters(epsilon, delta, currency, neighboring, n_public, **flags)


def priced(amount):
    """What a private event counts, stated instead of computed."""
    return _filter.Price(amount, None, None, private=True)


def balance_of(amounts):
    """The sums of a ledger that holds these amounts."""
    balance = Balance()
    for amount in amounts:
        balance = balance.after({"amount": amount, "rho": None, "private": 1})
    return balance


def admits(ledger, amounts, amount):
    return _filter.admits(ledger, balance_of(amounts), priced(amount))


@pytest.fixture(params=["rdp", "gdp"])
def currency(request):
    return request.param


# ---- the filter -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.5])
def test_limits_are_those_of_the_privacy_page(epsilon, delta):
    order = best_order(epsilon, delta)[0]
    rdp_ledger = stated(epsilon, delta)
    assert rdp_ledger.order == order
    assert rdp_ledger.limit == epsilon - conversion_gap(order, delta)
    gdp_ledger = stated(epsilon, delta, "gdp")
    assert gdp_ledger.order is None
    # the rounding that is given back stays within what gdp_mu rounded down
    assert gdp_ledger.limit == pytest.approx(gdp_mu(epsilon, delta) ** 2, rel=2e-11)
    assert gdp_delta(math.sqrt(gdp_ledger.limit), epsilon) <= delta


def test_an_amount_is_the_currency_of_the_event_rounded_up():
    event = FitEvent((GaussianEvent(7.0, 3), SelectionEvent(0.1, 4)))
    ledger = stated(1.0, 1e-5)
    price = _filter.price(ledger, event)
    assert rdp(event, ledger.order) < price.amount <= rdp(event, ledger.order) * (1 + 2e-12)
    assert price.rho == zcdp(event)
    assert price.mu_squared is None and price.private
    assert _filter.price(ledger, gaussian(0.01)).mu_squared == pytest.approx(0.01)


@pytest.mark.parametrize("fits", [*range(1, 31), 1000])
def test_a_budget_for_exactly_k_fits_admits_exactly_k(fits, currency):
    ledger = stated(1.0, 1e-6, currency)
    if currency == "gdp":
        event = gaussian(gdp_mu(1.0, 1e-6) ** 2 / fits, count=17)
    else:
        event = selections(zcdp_rho(1.0, 1e-6) / fits, count=17)
    amount = _filter.price(ledger, event).amount
    assert admits(ledger, [amount] * (fits - 1), amount)
    assert not admits(ledger, [amount] * fits, amount)


def test_a_later_fit_is_never_admitted_by_its_own_curve():
    whole = gaussian_fit_event(1.0, 1e-6, 100, ONE)
    accountant = PrivacyAccountant(1.0, 1e-6)
    accountant.charge(FitEvent((GaussianEvent(1e9),)))  # as good as nothing
    with pytest.raises(BudgetExceededError):
        accountant.charge(whole)
    assert 0 < accountant.remaining() < 1.0


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0.01, 50.0),
    log_delta=st.floats(-14.0, -0.31),
    currency=st.sampled_from(["rdp", "gdp"]),
    shares=st.lists(st.floats(0.0, 0.5), max_size=4),
    count=st.sampled_from([1, 3, 7, 1000, 12345]),
)
def test_a_fit_of_what_remains_is_admitted_and_no_larger_one(
    epsilon, log_delta, currency, shares, count
):
    ledger = stated(epsilon, 10**log_delta, currency)
    amounts = []
    for share in shares:
        amounts.append(share * (ledger.limit - math.fsum(amounts)))
    remaining = _forecast.remaining(ledger, balance_of(amounts))
    assert 0.0 <= remaining <= epsilon

    def admitted(target):
        event = gaussian_fit_event(target, ledger.delta, count, ONE)
        return admits(ledger, amounts, _filter.price(ledger, event).amount)

    if remaining > 0:
        assert admitted(remaining)
    if remaining < epsilon:
        assert not admitted(1.001 * remaining + 1e-6)


def test_all_of_a_fresh_gdp_budget_remains():
    for epsilon in (0.1, 1.0, 3.0, 10.0):
        assert _forecast.remaining(stated(epsilon, 1e-6, "gdp"), Balance()) == epsilon


def test_nothing_remains_when_delta_alone_is_not_enough():
    ledger = stated(1.0, 0.1, "gdp")
    # a loss below the one of epsilon = 0 at this delta is left, but no positive epsilon
    left = 0.5 * gdp_mu(1e-12, 0.1) ** 2
    assert _forecast.remaining(ledger, balance_of([ledger.limit - left])) == 0.0
    assert _forecast.remaining(ledger, balance_of([2 * ledger.limit])) == 0.0


def test_budget_for_five_fits_stops_the_sixth(currency):
    epsilon, delta = 5.0, 1e-5
    accountant = PrivacyAccountant(epsilon, delta, currency=currency)
    fit = gaussian(_filter.price(accountant._ledger.parameters, gaussian(1.0)).mu_squared)
    per_unit = _filter.price(accountant._ledger.parameters, fit).amount
    fit = gaussian(accountant._ledger.parameters.limit / per_unit / 5.0001, count=20)
    for number in range(1, 6):
        assert accountant.charge(fit).entry_id == number
    spent = accountant.spent()
    with pytest.raises(BudgetExceededError, match=r"in 5 entries"):
        accountant.charge(fit)
    assert len(accountant.entries()) == 5
    assert accountant.spent() == spent and spent.epsilon <= epsilon


# ---- adaptive choices (proofs/accountant.md) ----------------------------------------------------


@pytest.mark.parametrize("outcome", ["gaussian", "greedy"])
def test_two_fits_that_each_compose_to_the_budget_cannot_be_chosen_between(outcome, currency):
    """A rule by tight curves would admit whichever of two second fits the first outcome picks.

    Each pair is (1, 1e-6)-DP by its own tightest curve, the choice between them is not: a ledger
    has one currency, and the second fit that is tight in the other one is refused.
    """
    epsilon, delta = 1.0, 1e-6
    accountant = PrivacyAccountant(epsilon, delta, currency=currency)
    first = gaussian_fit_event(0.2, delta, 10, ONE)
    second = {
        "gaussian": gaussian(gdp_mu(epsilon, delta) ** 2 - 2 * zcdp(first), count=10),
        "greedy": selections(zcdp_rho(epsilon, delta) - zcdp(first), count=10),
    }
    pair = FitEvent(first.releases + second["gaussian"].releases)
    assert epsilon_of(pair, delta) == pytest.approx(epsilon, rel=1e-8)
    pair = FitEvent(first.releases + second["greedy"].releases)
    assert zcdp_epsilon(zcdp(pair), delta) == pytest.approx(epsilon, rel=1e-8)

    accountant.charge(first)
    if (currency, outcome) in {("gdp", "gaussian"), ("rdp", "greedy")}:
        accountant.charge(second[outcome])
    elif currency == "rdp":
        with pytest.raises(BudgetExceededError):
            accountant.charge(second[outcome])
    else:
        with pytest.raises(ValueError, match="fixed to 'gdp'"):
            accountant.charge(second[outcome])
    total = math.fsum(entry.amount for entry in accountant.entries())
    assert total <= accountant._ledger.parameters.limit


@pytest.mark.parametrize("seed", range(5))
def test_switching_between_sums_of_rho_and_of_mu_squared_gains_nothing(seed, currency):
    """An adversary may hope for the currency in which the next fit still has room."""
    adversary = random.Random(seed)
    epsilon, delta = 1.0, 1e-6
    ledger = stated(epsilon, delta, currency)
    rho_limit, mu_limit = zcdp_rho(epsilon, delta), gdp_mu(epsilon, delta) ** 2
    assert 2 * rho_limit < mu_limit  # the room between the two rules
    amounts, rho, mu_squared, refused = [], 0.0, 0.0, 0
    for _ in range(200):
        if adversary.random() < 0.5:
            # what the other rule would still have room for, exactly
            event = gaussian(max(mu_limit - mu_squared, 1e-3) * adversary.choice([1, 0.3]))
        else:
            event = selections(max(rho_limit - rho, 1e-4) * adversary.choice([1, 0.3]))
        try:
            price = _filter.price(ledger, event)
        except ValueError:
            assert currency == "gdp"
            refused += 1
            continue
        if admits(ledger, amounts, price.amount):
            amounts.append(price.amount)
            rho += price.rho
            mu_squared += price.mu_squared or 0.0
        else:
            refused += 1
    assert refused
    if currency == "rdp":
        assert rho <= best_order(epsilon, delta)[1] * (1 + 1e-12)
        assert zcdp_epsilon(rho, delta) <= epsilon * (1 + 1e-9)
    else:
        assert gdp_delta(math.sqrt(mu_squared), epsilon) <= delta
        assert rho == pytest.approx(mu_squared / 2)


def adaptive_delta(first, branches, epsilon):
    """The true δ when the loss of a Gaussian first event picks the worse of two branches."""
    losses = first**2 / 2 + first * np.linspace(-10, 10, 20001)
    weights = np.exp(-0.5 * np.linspace(-10, 10, 20001) ** 2)
    weights /= weights.sum()
    worst = np.max([branch(epsilon - losses) for branch in branches], axis=0)
    return float(weights @ worst)


def randomised_response(loss):
    def delta(epsilon):
        return np.clip(-np.expm1(epsilon - loss), 0, None) / (1 + np.exp(-loss)) + np.where(
            epsilon < -loss, -np.expm1(epsilon + loss) / (1 + np.exp(loss)), 0.0
        )

    return delta


def by_tight_curve(mu_squared, delta):
    """A mutant: admits what the tight curve of everything so far allows."""
    return gdp_epsilon(math.sqrt(mu_squared), delta)


def test_mutant_that_admits_by_tight_curves_overspends_and_the_filter_does_not():
    epsilon, delta, first = 1.0, 1e-6, 0.12
    # each second event composes with the first to exactly (1, 1e-6)
    gaussian_branch = math.sqrt(gdp_mu(epsilon, delta) ** 2 - first**2)
    low, high = 0.0, 1.0
    for _ in range(60):
        pure = (low + high) / 2
        composed = adaptive_delta(first, [randomised_response(pure)], epsilon)
        low, high = (pure, high) if composed < delta else (low, pure)
    branches = [lambda e: gdp_delta(gaussian_branch, e), randomised_response(pure)]
    for branch in branches:
        assert adaptive_delta(first, [branch], epsilon) == pytest.approx(delta, rel=1e-3)
    assert by_tight_curve(first**2 + gaussian_branch**2, delta) <= epsilon * (1 + 1e-9)
    # chosen between by the outcome of the first they are not
    assert adaptive_delta(first, branches, epsilon) > 1.3 * delta

    ledger = stated(epsilon, delta)
    events = [gaussian(first**2), gaussian(gaussian_branch**2), FitEvent((PureEvent(pure),))]
    amounts = [_filter.price(ledger, event).amount for event in events]
    admitted = [admits(ledger, amounts[:1], amount) for amount in amounts[1:]]
    assert admitted != [True, True]


def test_mutant_that_switches_currency_overspends_and_the_filter_does_not():
    """A mutant admits when either sum has room; an adversary fills one, then the other."""
    epsilon, delta = 1.0, 1e-6
    rho_limit, mu_limit = zcdp_rho(epsilon, delta), gdp_mu(epsilon, delta) ** 2
    # the Gaussians fill their currency; choices count nothing there
    events = [gaussian(mu_limit * (1 - 1e-9)), selections(0.3 * rho_limit)]

    def mutant(charged, event):
        everything = FitEvent(tuple(r for e in (*charged, event) for r in e.releases))
        gaussians = tuple(r for r in everything.releases if isinstance(r, GaussianEvent))
        by_rho = zcdp(everything) <= rho_limit
        by_mu = gdp_squared(FitEvent(gaussians)) <= mu_limit
        return by_rho or by_mu

    charged = []
    for event in events:
        assert mutant(charged, event)
        charged.append(event)
    both = FitEvent(charged[0].releases + charged[1].releases)
    assert epsilon_of(both, delta) > 1.1 * epsilon
    for currency in ("rdp", "gdp"):
        accountant = PrivacyAccountant(epsilon, delta, currency=currency)
        for event in events:
            with contextlib.suppress(BudgetExceededError, ValueError):
                accountant.charge(event)
        assert len(accountant.entries()) == 1


# ---- what is refused ----------------------------------------------------------------------------


def test_later_refusals_say_what_was_spent_and_what_remains(currency):
    accountant = PrivacyAccountant(1.0, 1e-5, currency=currency)
    accountant.charge(gaussian_fit_event(0.9, 1e-5, 50, ONE))
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(gaussian_fit_event(0.9, 1e-5, 50, ONE))
    text = str(caught.value)
    assert f"epsilon={accountant.spent().epsilon:.6g} of 1 in 1 entry" in text
    assert "Lower the estimator's epsilon" in text and "currency='gdp'" not in text
    accountant.charge(gaussian_fit_event(accountant.remaining(), 1e-5, 50, ONE))
    with pytest.raises(BudgetExceededError, match="The budget is spent"):
        accountant.charge(gaussian_fit_event(0.9, 1e-5, 50, ONE))


def test_a_refusal_of_choices_does_not_advise_a_ledger_that_refuses_them_for_good():
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(greedy_fit_event(1.1, 1e-5, 50, 0.8, ONE))
    assert "gdp" not in str(caught.value)
    assert "makes private choices" in str(caught.value)


@pytest.mark.parametrize("single_fit", [False, True])
def test_enormous_losses_are_refused_as_any_other(currency, single_fit):
    accountant = PrivacyAccountant(1.0, 1e-5, currency=currency, single_fit=single_fit)
    for noise_multiplier in (1e-3, 1e-8, 1e-150, 1.1e-154):
        for count in (1, 2):  # their sum may leave double precision
            with pytest.raises(BudgetExceededError):
                accountant.charge(FitEvent((GaussianEvent(noise_multiplier),) * count))
    assert accountant.entries() == []


TUNED = FitEvent((GaussianEvent(50.0),))


class UnknownEvent:
    """A release that no accounting knows."""


@pytest.mark.parametrize(
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
        (FitEvent((FitEvent((GaussianEvent(5.0),), "add_remove"),)), ValueError),
        (FitEvent((GaussianEvent(5.0),), "add_remove"), ValueError),
        (INFINITE, ValueError),
        (FitEvent((GaussianEvent(5.0), NonPrivateEvent())), ValueError),
        (FitEvent((LaplaceEvent(-1.0),)), ValueError),
        (FitEvent((LaplaceEvent(float("nan")),)), ValueError),
        (FitEvent((LaplaceEvent(5.0, -3),)), ValueError),
        (FitEvent((PureEvent(0.0),)), ValueError),
        (FitEvent((PureEvent("0.1"),)), TypeError),
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
def test_what_cannot_be_counted_is_refused(event, error, currency):
    accountant = PrivacyAccountant(100.0, 1e-5, currency=currency)
    with pytest.raises(error):
        accountant.charge(event)
    assert accountant.entries() == []


@pytest.mark.parametrize(
    "release",
    [
        LaplaceEvent(20.0),
        PureEvent(0.05, 2),
        PoissonSampledEvent(0.01, 2.0, 100),
        TuningEvent(TUNED, "logarithmic", 5.0),
        TuningEvent(FitEvent((PoissonSampledEvent(0.01, 2.0, 10), PureEvent(0.01))), "poisson", 3),
    ],
    ids=lambda release: type(release).__name__,
)
def test_every_private_event_is_admitted_by_rdp_at_its_order_and_refused_by_gdp(release):
    event = FitEvent((release, GaussianEvent(30.0)))
    accountant = PrivacyAccountant(3.0, 1e-5)
    accountant.charge(event)
    (entry,) = accountant.entries()
    assert entry.amount == pytest.approx(rdp(event, accountant.order), rel=1e-11)
    assert entry.amount >= rdp(event, accountant.order)
    assert accountant.spent().epsilon >= epsilon_of(event, 1e-5)
    gaussians_only = PrivacyAccountant(3.0, 1e-5, currency="gdp")
    with pytest.raises(ValueError, match="create the accountant with currency='rdp'"):
        gaussians_only.charge(event)
    assert gaussians_only.entries() == []


def test_samples_are_counted_under_the_relation_of_the_ledger():
    release = PoissonSampledEvent(0.05, 1.0, 50)
    amounts = {
        relation: _filter.price(
            stated(5.0, 1e-5, neighboring=relation, n_public=n), FitEvent((release,), relation)
        ).amount
        for relation, n in ((ONE, None), ("add_remove", 100))
    }
    assert amounts[ONE] < amounts["add_remove"]


def test_choices_are_refused_by_a_gdp_ledger_for_good():
    accountant = PrivacyAccountant(100.0, 1e-5, currency="gdp")
    with pytest.raises(ValueError, match="create the accountant with currency='rdp'"):
        accountant.charge(FitEvent((GaussianEvent(50.0), SelectionEvent(0.01))))
    assert accountant.entries() == []


def test_single_precision_noise_multipliers_are_counted_in_double():
    ledger = stated(5.0, 1e-5)
    noise = np.float32(3.3)
    single = _filter.price(ledger, FitEvent((GaussianEvent(noise, np.int64(3)),)))
    double = _filter.price(ledger, FitEvent((GaussianEvent(float(noise), 3),)))
    assert single == double and type(single.amount) is float


def test_parts_of_a_fit_may_be_fits():
    ledger = stated(5.0, 1e-5)
    flat = FitEvent((GaussianEvent(5.0), SelectionEvent(0.1)))
    nested = FitEvent((FitEvent((GaussianEvent(5.0),)), SelectionEvent(0.1)))
    assert _filter.price(ledger, flat) == _filter.price(ledger, nested)


def test_another_neighbouring_relation_is_refused_with_advice():
    accountant = PrivacyAccountant(5.0, 1e-5, neighboring="add_remove", n_public=100)
    with pytest.raises(ValueError, match="neighboring='add_remove'"):
        accountant.charge(gaussian(0.1))
    accountant.charge(FitEvent((GaussianEvent(9.0),), "add_remove"))
    assert len(accountant.entries()) == 1


def test_add_remove_ledgers_store_the_public_number_of_records_never_n():
    accountant = PrivacyAccountant(5.0, 1e-5, neighboring="add_remove", n_public=100)
    accountant.charge(FitEvent((GaussianEvent(9.0),), "add_remove"), n_samples=98, n_features=2)
    (entry,) = accountant.entries()
    assert (entry.n_samples, entry.n_features, accountant.n_public) == (100, 2, 100)


@settings(max_examples=200, deadline=None)
@given(
    spent=st.lists(st.floats(0.0, 0.3), max_size=5),
    parts=st.integers(1, 60),
    nudge=st.sampled_from([-1, 0, 1]),
)
def test_fits_left_agrees_with_the_filter_to_the_last_bit(spent, parts, nudge):
    ledger = stated(1.0, 1e-6)
    amounts = [share * ledger.limit for share in spent]
    amount = max(ledger.limit - math.fsum(amounts), ledger.limit / 7) / parts
    amount = math.nextafter(amount, math.inf * nudge) if nudge else amount
    left = _forecast.fits_left(ledger, balance_of(amounts), priced(amount))
    assert left == 0 or admits(ledger, amounts + [amount] * (left - 1), amount)
    assert not admits(ledger, amounts + [amount] * left, amount)
