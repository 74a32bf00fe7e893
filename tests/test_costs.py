"""The table of costs: every event has a row, one row is enough, without one it is refused."""

import dataclasses
import inspect
import math

import pytest
from tables import table

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.privacy.accounting import (
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
    _events,
    _spent,
    delta_of,
    epsilon_of,
    gdp_epsilon,
    gdp_squared,
    rdp,
    with_noise,
    zcdp,
)
from dpcd_sklearn.privacy.accounting._accounting import (
    COSTS,
    Cost,
    checked_numbers,
    checked_releases,
)

KINDS = {
    kind
    for name, kind in inspect.getmembers(_events, inspect.isclass)
    if name.endswith("Event") and kind is not FitEvent
}


@dataclasses.dataclass(frozen=True)
class BlurredEvent:
    """Made up: `count` releases, each of which is amount-GDP."""

    amount: float
    count: int = 1

    def __str__(self):
        return f"{self.count} blurred releases of {self.amount}"


class HeirEvent(GaussianEvent):
    """Looks like a Gaussian, but nobody has checked what it adds."""


def mu_squared(event):
    return event.count * event.amount**2


GAUSSIAN_ROW = Cost(
    checked=checked_numbers(amount=None),
    mu_squared=mu_squared,
    rho=lambda e: mu_squared(e) / 2,
)
PURE_ROW = Cost(
    checked=checked_numbers(amount=None),
    renyi=lambda e, order, neighboring: e.count * e.amount,
    pure=lambda e: e.count * e.amount,
)
FIT = FitEvent((BlurredEvent(0.2, 4),))


class Estimator:
    def __init__(self, event):
        self.event = event

    def planned_event(self, n_samples, n_features, n_outputs=1):
        return self.event


def ledger(epsilon=5.0):
    return PrivacyAccountant(epsilon=epsilon, delta=1e-5)


def test_every_event_has_a_row_in_both_tables():
    assert len(KINDS) >= 6
    assert set(COSTS) == KINDS
    assert set(_spent._TRANSLATIONS) == {kind.__name__ for kind in KINDS} | {"FitEvent"}


def test_a_row_without_a_bound_is_refused():
    with pytest.raises(TypeError, match="rho, renyi or loss"):
        Cost(checked=checked_numbers(amount=None), pure=lambda e: e.amount)


GAUSSIAN = GaussianEvent(2.0, 3)
WITH_NOISE = [
    *(GAUSSIAN, SelectionEvent(0.5), CoveredEvent(2.0, 1e-12), PoissonSampledEvent(0.1, 2.0)),
    *(TuningEvent(FitEvent((GAUSSIAN,)), "geometric", 3.0), FitEvent((GAUSSIAN,))),
]


def test_the_noise_of_every_event_is_known_to_change_and_half_of_it_costs_more():
    """A budget is divided by what events with more noise or less would cost."""
    assert {type(event) for event in WITH_NOISE} == KINDS - {NonPrivateEvent} | {FitEvent}
    for release in WITH_NOISE:
        event = FitEvent((release,), "add_remove" if release is WITH_NOISE[0] else "replace_one")
        half = with_noise(event, 0.5)
        assert with_noise(half, 2.0) == event, release
        assert epsilon_of(half, 1e-6) > 1.5 * epsilon_of(event, 1e-6), release
    with pytest.raises(TypeError, match="no noise is known to change"):
        with_noise(FIT, 2.0)


# ---- one row is enough --------------------------------------------------------------------------


def test_one_row_makes_an_event_that_every_measure_takes(monkeypatch):
    monkeypatch.setitem(COSTS, BlurredEvent, GAUSSIAN_ROW)
    assert gdp_squared(FIT) == gdp_squared(FIT.releases[0]) == mu_squared(FIT.releases[0])
    assert zcdp(FIT) == mu_squared(FIT.releases[0]) / 2
    assert rdp(FIT, 3.0) == 3.0 * zcdp(FIT)
    assert epsilon_of(FIT, 1e-5) == gdp_epsilon(0.4, 1e-5)
    assert delta_of(FIT, epsilon_of(FIT, 1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert "4 blurred releases of 0.2, under replace-one neighbours" in str(FIT)


def test_one_row_makes_an_event_that_the_ledger_counts(monkeypatch):
    monkeypatch.setitem(COSTS, BlurredEvent, GAUSSIAN_ROW)
    accountant = ledger()
    cost = accountant.cost(Estimator(FIT), 100, 3)
    assert gdp_squared(FIT) < cost.amount <= gdp_squared(FIT) * (1 + 2e-12)
    assert cost.epsilon == gdp_epsilon(0.4, 1e-5) and cost.fits_left >= 1
    assert accountant.charge(FIT).redeem() == FIT
    (entry,) = accountant.entries()
    assert entry.amount == cost.amount and entry.delta == 0.0
    assert entry.releases == ({"release": "BlurredEvent", "amount": 0.2, "count": 4},)
    assert cost.epsilon <= accountant.spent().epsilon * (1 + 1e-9)
    assert "blurred releases of 0.2" in entry.event
    assert "amount=0.2" in str(accountant.report())


def test_a_pure_loss_is_enough_for_a_first_charge_and_for_a_later_one(monkeypatch):
    monkeypatch.setitem(COSTS, BlurredEvent, PURE_ROW)
    accountant = ledger()
    for _ in range(2):
        accountant.charge(FitEvent((BlurredEvent(0.15, 4),)))  # prices are kept by event
    first, later = accountant.entries()
    assert 0 < first.amount < later.amount and first.delta == 0 < later.delta


# ---- and without one it is refused everywhere ---------------------------------------------------


MEASURES = [
    gdp_squared,
    zcdp,
    lambda event: rdp(event, 2.0),
    lambda event: epsilon_of(event, 1e-6),
    lambda event: delta_of(event, 1.0),
    lambda event: list(checked_releases(event)),
    lambda event: ledger().charge(event),
    lambda event: ledger().cost(Estimator(event), 100, 3),
]


@table("stranger", [BlurredEvent(0.2, 4), HeirEvent(5.0), None, 1.0])
@table(
    "measure",
    MEASURES,
)
def test_an_event_without_a_row_is_refused(measure, stranger):
    known = GaussianEvent(9.0)
    for event in (FitEvent((stranger,)), FitEvent((known, FitEvent((known, stranger))))):
        with pytest.raises(TypeError, match="no accounting is known for .* refused"):
            measure(event)
    tuned = FitEvent((TuningEvent(FitEvent((stranger,)), "poisson", 5.0),))
    if measure not in MEASURES[:3]:  # which have no bound of any tuning
        with pytest.raises(TypeError, match="no accounting is known for .* refused"):
            measure(tuned)


def test_no_noise_is_an_infinite_loss_in_every_column_that_is_stated():
    row, event = COSTS[NonPrivateEvent], NonPrivateEvent()
    assert row.mu_squared(event) == row.rho(event) == math.inf
    assert row.pure is row.choices is row.loss is None
    assert epsilon_of(FitEvent((SelectionEvent(1.0), event)), 0.1) == math.inf
