"""Cross-check against `dp_accounting`, where its answers are right; its traps are pinned down too.

Where a peer's answer changes, a test here fails: then look who is right.
"""

import math

import pytest

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
    epsilon_of,
    gaussian_fit_event,
    greedy_fit_event,
)

dp_accounting = pytest.importorskip(
    "dp_accounting", reason="dp_accounting, an extra, is not installed: no peer to compare with"
)
pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

ADD_OR_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE
DELTA = 1e-6


def by_pld(event, relation=ADD_OR_REMOVE, interval=1e-4):
    accountant = pld.PLDAccountant(relation, value_discretization_interval=interval)
    return accountant.compose(event).get_epsilon(DELTA)


def by_rdp(event, relation=ADD_OR_REMOVE):
    orders = [1 + x / 20 for x in range(1, 200)] + list(range(11, 400))
    return rdp.RdpAccountant(orders, relation).compose(event).get_epsilon(DELTA)


# ---- where it is right --------------------------------------------------------------------------


@pytest.mark.parametrize(("z", "count"), [(4.2, 1), (20.0, 25), (50.0, 1000), (0.8, 3)])
def test_gaussians_cost_what_the_peer_finds(z, count):
    fit = FitEvent((GaussianEvent(z, count),))
    ours = epsilon_of(fit, DELTA)
    assert ours == pytest.approx(by_pld(fit.to_dp_event()), rel=3e-3)
    assert ours <= by_rdp(fit.to_dp_event())


@pytest.mark.parametrize(
    ("rate", "z", "count"), [(0.01, 1.0, 1000), (0.05, 2.0, 500), (0.5, 20.0, 100), (0.2, 0.7, 5)]
)
def test_sampled_gaussians_are_those_of_the_peer(rate, z, count):
    fit = FitEvent((PoissonSampledEvent(rate, z, count),), "add_remove")
    ours, event = epsilon_of(fit, DELTA), fit.to_dp_event()
    assert by_pld(event, interval=1e-3) <= ours
    assert ours == pytest.approx(by_rdp(event), rel=5e-3)


@pytest.mark.parametrize(("rate", "z", "count"), [(0.01, 1.0, 1000), (0.5, 20.0, 100)])
def test_replaced_records_of_samples_cost_at_least_the_peers_pld(rate, z, count):
    fit = FitEvent((PoissonSampledEvent(rate, z, count),), "replace_one")
    # in its convention the multiplier is over C, ours is over 2 C
    single = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(2 * z))
    peer = by_pld(dp_accounting.SelfComposedDpEvent(single, count), REPLACE, 1e-3)
    ours = epsilon_of(fit, DELTA)
    assert peer <= ours <= 1.12 * peer  # Rényi against the privacy loss distribution
    with pytest.raises(TypeError, match="replace_one"):
        fit.to_dp_event()


@pytest.mark.parametrize("count", [1, 20, 200])
def test_choices_are_tighter_than_the_peers_zcdp(count):
    fit = greedy_fit_event(Budget(1.0, DELTA), count, 0.5)
    ours = epsilon_of(fit, DELTA)
    assert ours <= 1.0 < by_rdp(fit.to_dp_event())


@pytest.mark.parametrize("distribution", ["logarithmic", "geometric"])
def test_tuning_is_tighter_than_the_peers_renyi_bound(distribution):
    base = gaussian_fit_event(Budget(0.5, DELTA), 10)
    fit = FitEvent((TuningEvent(base, distribution, 10.0),))
    assert epsilon_of(base, DELTA) < epsilon_of(fit, DELTA) < 0.8 * by_rdp(fit.to_dp_event())


def test_a_mixed_fit_is_translated_whole():
    fit = FitEvent(
        (GaussianEvent(3.0, 5), SelectionEvent(0.2, 5), PoissonSampledEvent(0.1, 2.0, 5)),
        "add_remove",
    )
    assert epsilon_of(fit, DELTA) == pytest.approx(by_rdp(fit.to_dp_event()), rel=5e-3)


def test_a_fit_without_noise_is_not_private_there_either():
    assert by_rdp(FitEvent((NonPrivateEvent(),)).to_dp_event()) == math.inf


def test_every_event_has_a_translation():
    """They are told apart by the names of their classes: a new or renamed one is noticed here."""
    base = FitEvent((GaussianEvent(3.0),), "add_remove")
    refused = CoveredEvent(3.0, 1e-9)
    releases = [
        GaussianEvent(3.0),
        SelectionEvent(0.2),
        PoissonSampledEvent(0.1, 3.0),
        TuningEvent(base, "logarithmic", 5.0),
        NonPrivateEvent(),
    ]
    known = {name for name in vars(_events) if name.endswith("Event")}
    assert {type(event).__name__ for event in (base, refused, *releases)} == known
    translated = FitEvent(tuple(releases), "add_remove").to_dp_event()
    assert len(translated.events) == len(releases)
    with pytest.raises(TypeError, match="no event like"):
        FitEvent((object(),)).to_dp_event()
    with pytest.raises(TypeError, match="small probability"):
        FitEvent((refused,)).to_dp_event()
