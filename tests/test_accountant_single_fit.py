"""Ledgers for a single fit, and that no other ledger makes an exception for its first one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting._accounting import epsilon_of
from dpcd_sklearn.privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from dpcd_sklearn.privacy.accounting._events import FitEvent, GaussianEvent, NonPrivateEvent
from dpcd_sklearn.privacy.ledger import _filter, _forecast
from dpcd_sklearn.privacy.ledger._accountant import PrivacyAccountant
from dpcd_sklearn.privacy.ledger._ledger_records import Balance

ONE = "replace_one"
LITTLE = FitEvent((GaussianEvent(1e5),))


@pytest.fixture(params=["rdp", "gdp"])
def currency(request):
    return request.param


def test_a_ledger_for_a_single_fit_admits_one_of_the_whole_budget_and_nothing_after(currency):
    for epsilon in (1e-3, 0.1, 1.0, 10.0):
        fits = [gaussian_fit_event(epsilon, 1e-6, 100, ONE), LITTLE]
        if currency == "rdp":
            fits.append(greedy_fit_event(epsilon, 1e-6, 100, 0.8, ONE))
        for fit in fits:
            accountant = PrivacyAccountant(epsilon, 1e-6, currency=currency, single_fit=True)
            assert accountant.remaining() == epsilon
            accountant.charge(fit)
            assert epsilon_of(fit, 1e-6) * (1 - 1e-9) <= accountant.spent().epsilon <= epsilon
            assert accountant.remaining() == 0.0
            for least in (fit, FitEvent((GaussianEvent(1e3),))):
                with pytest.raises(BudgetExceededError, match="made for a single fit"):
                    accountant.charge(least)
            assert len(accountant.entries()) == 1


def test_a_single_fit_beyond_the_budget_is_refused_by_however_little(currency):
    fit = gaussian_fit_event(1.0, 1e-6, 100, ONE)
    accountant = PrivacyAccountant(1.0 - 1e-7, 1e-6, currency=currency, single_fit=True)
    with pytest.raises(BudgetExceededError, match=r"remaining\(\) = 0\.99999"):
        accountant.charge(fit)
    assert accountant.entries() == []
    accountant.charge(gaussian_fit_event(accountant.remaining(), 1e-6, 100, ONE))


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-3, 50.0),
    log_delta=st.floats(-14.0, -0.31),
    currency=st.sampled_from(["rdp", "gdp"]),
    count=st.sampled_from([1, 3, 1000, 12345]),
)
def test_a_single_fit_of_exactly_the_budget_is_admitted(epsilon, log_delta, currency, count):
    """What `remaining` of an empty ledger for a single fit promises."""
    ledger = _filter.fixed_parameters(epsilon, 10**log_delta, currency, ONE, None, single_fit=True)
    assert _forecast.remaining(ledger, Balance()) == epsilon
    price = _filter.price(ledger, gaussian_fit_event(epsilon, ledger.delta, count, ONE))
    assert _filter.admits(ledger, Balance(), price)
    assert _forecast.fits_left(ledger, Balance(), price) == 1
    assert not _filter.admits(ledger, Balance(1), price)


def test_a_ledger_of_several_fits_has_one_rule_for_the_first_one_too():
    """The curve that calibrated a fit admits nothing, however empty the ledger is."""
    for fit in (gaussian_fit_event(1.0, 1e-6, 9, ONE), greedy_fit_event(1.0, 1e-6, 9, 0.8, ONE)):
        accountant = PrivacyAccountant(1.0, 1e-6)
        assert 0.8 < accountant.remaining() < 1.0
        with pytest.raises(BudgetExceededError):
            accountant.charge(fit)
        assert accountant.entries() == []
        accountant.charge(gaussian_fit_event(accountant.remaining(), 1e-6, 9, ONE))


def test_a_refused_first_fit_that_would_have_fitted_alone_names_the_ways_out():
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(gaussian_fit_event(1.0, 1e-6, 9, ONE))
    text = str(caught.value)
    assert "single_fit=True" in text and "currency='gdp'" in text and "remaining() = 0." in text
    # each of them is a way out
    for kind in ({"single_fit": True}, {"currency": "gdp"}):
        PrivacyAccountant(1.0, 1e-6, **kind).charge(gaussian_fit_event(1.0, 1e-6, 9, ONE))
    with pytest.raises(BudgetExceededError, match="single_fit=True") as caught:
        accountant.charge(greedy_fit_event(1.0, 1e-6, 9, 0.8, ONE))
    assert "gdp" not in str(caught.value)  # it would refuse this one for good
    # neither beyond the budget nor later is it advised
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(gaussian_fit_event(1.1, 1e-6, 9, ONE))
    assert "single_fit" not in str(caught.value)
    accountant.charge(LITTLE)
    with pytest.raises(BudgetExceededError) as caught:
        accountant.charge(gaussian_fit_event(1.0, 1e-6, 9, ONE))
    assert "single_fit" not in str(caught.value)


def test_a_release_without_noise_is_the_single_one_too():
    accountant = PrivacyAccountant(1.0, 1e-6, single_fit=True, testing=True)
    accountant.charge(FitEvent((NonPrivateEvent(),)))
    for event in (FitEvent((NonPrivateEvent(),)), LITTLE):
        with pytest.raises(BudgetExceededError, match="made for a single fit"):
            accountant.charge(event)
    assert len(accountant.entries()) == 1


def test_copies_of_a_ledger_for_a_single_fit_admit_one_fit_together(tmp_path):
    accountant = PrivacyAccountant(1.0, 1e-6, single_fit=True, path=tmp_path / "a.ledger")
    other = PrivacyAccountant.open(accountant.path)
    assert other.single_fit and repr(other).endswith("single_fit=True)")
    other.charge(gaussian_fit_event(1.0, 1e-6, 9, ONE))
    with pytest.raises(BudgetExceededError, match="made for a single fit"):
        accountant.charge(LITTLE)
    assert accountant.report().remaining == 0.0
