"""Costs of events: the table, Rényi divergences, and mechanisms that can be enumerated.

An enumerated case is a pair of laws on a few outcomes, so its divergences are finite sums. The
bound must hold for all of them, in both directions.
"""

import dataclasses
import inspect
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tables import table
from test_accountant_ledger import PlannedEstimator

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
    _events,
    _renyi,
    _spent,
    epsilon_of,
    gaussian_fit_event,
    gdp_epsilon,
    gdp_squared,
    loss_of,
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
    TuningEvent(FitEvent((GAUSSIAN,)), "geometric", 3.0),
]


def test_the_noise_of_every_event_is_known_to_change_and_half_of_it_costs_more():
    """A budget is divided by what events with more noise or less would cost."""
    assert {type(event) for event in WITH_NOISE} == KINDS - {NonPrivateEvent}
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
    assert gdp_squared(FIT) == mu_squared(FIT.releases[0])
    assert zcdp(FIT) == mu_squared(FIT.releases[0]) / 2
    assert rdp(FIT, 3.0) == 3.0 * zcdp(FIT)
    assert epsilon_of(FIT, 1e-5) == gdp_epsilon(0.4, 1e-5)
    assert loss_of(FIT, 1e-15).delta(epsilon_of(FIT, 1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert "4 blurred releases of 0.2, under replace-one neighbours" in str(FIT)


def test_one_row_makes_an_event_that_the_ledger_counts(monkeypatch):
    monkeypatch.setitem(COSTS, BlurredEvent, GAUSSIAN_ROW)
    accountant = ledger()
    cost = accountant.cost(PlannedEstimator(FIT), 100, 3)
    assert gdp_squared(FIT) < cost.amount <= gdp_squared(FIT) * (1 + 2e-12)
    assert cost.epsilon == gdp_epsilon(0.4, 1e-5) and cost.fits_left >= 1
    assert accountant.charge(FIT).redeem() == FIT
    (entry,) = accountant.entries()
    assert entry.amount == cost.amount and entry.delta == 0.0
    assert entry.releases == ({"release": "BlurredEvent", "amount": 0.2, "count": 4},)
    assert cost.epsilon <= accountant.spent().epsilon * (1 + 1e-9)
    assert "blurred releases of 0.2" in entry.event
    assert "blurred releases of 0.2" in str(accountant.report())


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
    lambda event: loss_of(event, 1e-15),
    lambda event: list(checked_releases(event)),
    lambda event: ledger().charge(event),
    lambda event: ledger().cost(PlannedEstimator(event), 100, 3),
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


RELATIONS = ["replace_one", "add_remove"]
orders = st.floats(0.05, 200.0).map(lambda excess: 1 + excess)
BASE = gaussian_fit_event(Budget(1.0, 1e-6), 1)
EVENTS = [
    GaussianEvent(2.0, 3),
    SelectionEvent(0.4, 3),
    PoissonSampledEvent(0.1, 1.5, 3),
]


def quadrature(p, q, order, reach):
    """The divergence of two densities on a line, by adaptive quadrature in 20 digits.

    Densities are relative to that of a standard normal variable.
    """
    with mpmath.workdps(20):
        points = [-reach, -reach / 2, -5, 0, 5, reach / 2, reach]
        total = mpmath.quad(
            lambda x: p(x) ** order * q(x) ** (1 - order) * mpmath.npdf(x), points
        )
        return mpmath.log(total) / (order - 1)


def mixture(rate, mean):
    return lambda x: 1 - rate + rate * mpmath.exp(mean * x - mpmath.mpf(mean) ** 2 / 2)


# ---- each event ---------------------------------------------------------------------------------


@table(
    ("rate", "z", "order"),
    [
        *((0.01, 0.8, 1.3), (0.2, 1.5, 7.5), (0.6, 0.5, 40.0)),
        *((1e-4, 3.0, 7.5), (0.2, 1.5, 40.0), (0.6, 0.5, 1.3)),
    ],
)
@table("neighboring", RELATIONS)
def test_a_sampled_gaussian_is_its_pair_of_mixtures(neighboring, rate, z, order):
    if neighboring == "add_remove":
        p, q, shift = mixture(rate, 1 / z), mixture(0, 0), 1 / z
    else:
        p, q, shift = mixture(rate, 0.5 / z), mixture(rate, -0.5 / z), 0.5 / z
    found = _renyi.sampled_gaussian_divergence(rate, z, order, neighboring)
    reach = 14 + 2 * order * shift
    truth = quadrature(p, q, order, reach)
    assert found >= truth * (1 - 1e-12)
    if neighboring == "add_remove":  # p and q of "replace_one" are mirror images
        assert found >= quadrature(q, p, order, reach) * (1 - 1e-12)
    if found < order / (2 * z**2):  # otherwise it is the bound without sampling
        assert found == pytest.approx(float(truth), rel=1e-6)


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
    assert rdp(FitEvent((event, event), neighboring), order) == pytest.approx(2 * rdp(one, order))
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


def test_choices_alone_never_cost_more_than_the_sum_of_their_ranges():
    assert epsilon_of(FitEvent((SelectionEvent(0.2, 3), SelectionEvent(0.5))), 1e-12) <= 1.1
    assert epsilon_of(FitEvent((SelectionEvent(0.2), NonPrivateEvent())), 1e-6) == math.inf


def test_samples_need_the_relation_of_their_fit():
    with pytest.raises(ValueError, match="neighbours"):
        rdp(FitEvent((PoissonSampledEvent(0.1, 1.0),), "persons"), 3.0)
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
        order, n_seen = 1 + math.exp(rng.uniform(-3, 5)), n_seen + 1
        bound, truth = rdp(FitEvent((event,)), order), divergence(P, Q, order)
        assert truth <= bound * (1 + 1e-9) + 1e-12
        closest = max(closest, truth / bound)
        # two of them are two outcomes, independently
        twice = rdp(FitEvent((dataclasses.replace(event, count=2),)), order)
        assert divergence(np.outer(P, P).ravel(), np.outer(Q, Q).ravel(), order) <= twice + 1e-11
    assert n_seen > 0.8 * N_CASES
    assert 0.9 < closest <= 1 + 1e-9  # some case comes near: the bound can be broken


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
