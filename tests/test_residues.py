"""Residues and covers: never below numerical composition, and what an adaptive adversary gains."""

import math

import numpy as np
import pytest
from test_costs import any_pair, chosen_pair, pure_pair
from test_private_tuning import curve, loss_of_pair

from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    Loss,
    SelectionEvent,
    _loss,
    choices_event,
    composed,
    cover,
    gaussian_fit_event,
    gdp_delta,
    gdp_mu,
    greedy_fit_event,
    loss_of,
    of_points,
    on_grid,
    residue,
)

ONE = "replace_one"
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def losses_of(P, Q):
    """Both directions."""
    return [loss_of_pair(P, Q), loss_of_pair(Q, P)]


def with_gaussian(P, Q, mu, e):
    """δ(e) of a pair of laws and a Gaussian, by their sum over outcomes: exact."""
    with np.errstate(divide="ignore"):
        losses = np.log(P) - np.log(Q)
    shown = np.isfinite(losses)
    finite = sum(
        p * gdp_delta(mu, np.asarray(e) - loss)
        for p, loss in zip(P[shown], losses[shown], strict=True)
    )
    return finite + P[losses == np.inf].sum()


def some_pair(rng):
    kind = rng.integers(4)
    if kind == 0:
        return any_pair(rng)
    if kind == 1:
        return pure_pair(rng, math.exp(rng.uniform(-3, 1)))
    if kind == 2:
        return chosen_pair(rng, math.exp(rng.uniform(-3, 1)))
    P, Q = any_pair(rng)  # an outcome that tells all, rarely
    rare = 10 ** rng.uniform(-9, -3)
    return np.append(P * (1 - rare), rare), np.append(Q, 0.0)


# ---- distributions of loss ----------------------------------------------------------------------


def test_a_loss_of_points_is_never_below_a_pair_and_near_it():
    rng, furthest = np.random.default_rng(0), 0.0
    for _ in range(200):
        P, Q = some_pair(rng)
        loss = loss_of_pair(P, Q)
        e = rng.uniform(-1.3, 1.3, 20) * 200 * loss.step
        told = np.array([loss.delta(x) for x in e])
        assert (curve(P, Q, e) <= told + 1e-14).all()
        furthest = max(furthest, float(np.max(told - curve(P, Q, e))))
    assert furthest < 0.02


def test_losses_compose_as_pairs_do_on_whatever_grids():
    rng = np.random.default_rng(1)
    for _ in range(30):
        pairs = [some_pair(rng) for _ in range(rng.integers(2, 4))]
        whole = composed([loss_of_pair(*pair).with_gaussian(0.3) for pair in pairs])
        P, Q = np.ones(1), np.ones(1)
        for one, other in pairs:
            P, Q = np.outer(P, one).ravel(), np.outer(Q, other).ravel()
        e = rng.uniform(-2, 2, 20)
        truth = with_gaussian(P, Q, 0.3 * math.sqrt(len(pairs)), e)
        told = np.array([whole.delta(x) for x in e])
        assert (truth <= told * (1 + 1e-9) + 1e-13).all()
        again = on_grid(whole, 1.7 * whole.step)
        assert (told <= np.array([again.delta(x) for x in e]) * (1 + 1e-9) + 1e-13).all()


def test_points_above_chords_do_not_make_a_curve_less_convex():
    e = 0.02 * np.arange(-300, 301)
    bumpy = gdp_delta(0.7, e) * (1 + 0.2 * (np.arange(601) % 7 == 0))
    loss = of_points(-300, 0.02, np.minimum(bumpy, 1.0))
    assert (loss.masses >= 0).all()
    told = np.array([loss.delta(x) for x in e])
    assert (gdp_delta(0.7, e) <= told * (1 + 1e-9)).all()
    assert (told <= np.minimum(bumpy, 1.0) * (1 + 1e-9)).all()


# ---- covers -------------------------------------------------------------------------------------


def excess_over_cover(P, Q, mu, spare):
    """The largest δ_event(e) - spare - δ_μ(e) over both directions and all real e."""
    e = np.concatenate([np.linspace(-25, 25, 2001), np.linspace(-1, 1, 2001)])
    gaussian = gdp_delta(mu, e)
    return max(float(np.max(curve(*pair, e) - spare - gaussian)) for pair in ((P, Q), (Q, P)))


def covers_of(rng, find, n_cases=200):
    """The largest excess over covers, and the smallest μ that was enough over the μ found."""
    worst, tightest = -1.0, math.inf
    for _ in range(n_cases):
        P, Q = some_pair(rng)
        spare = 10 ** rng.uniform(-9, -4)
        mu = find(losses_of(P, Q), spare)
        if not math.isfinite(mu):
            continue
        worst = max(worst, excess_over_cover(P, Q, mu, spare))
        if worst > 1e-2:  # a mutant: no further case is needed
            break
        if mu > 0.1:
            tightest = min(tightest, -excess_over_cover(P, Q, 0.99 * mu, spare))
    return worst, tightest


def larger_cover(losses, spare):
    return max(cover(loss, spare) for loss in losses)


def test_no_pair_exceeds_its_cover_anywhere_in_either_direction():
    worst, tightest = covers_of(np.random.default_rng(2), larger_cover)
    assert worst <= 1e-12
    assert tightest < -1e-4  # and a hundredth less would not do


def test_a_mutant_that_covers_one_direction_only_is_exceeded():
    worst, _ = covers_of(np.random.default_rng(2), lambda both, spare: cover(both[0], spare))
    assert worst > 1e-2


def test_a_mutant_whose_grid_ends_early_is_exceeded(monkeypatch):
    honest = _loss._points

    def early(loss, spare):
        points = honest(loss, spare)
        return points and tuple(array[: max(2, len(array) // 4)] for array in points)

    monkeypatch.setattr(_loss, "_points", early)
    worst, _ = covers_of(np.random.default_rng(2), larger_cover)
    assert worst > 1e-3


def test_a_mutant_that_forgets_what_a_last_point_leaves_has_a_cover_where_there_is_none():
    """An outcome that tells all, more often than is spared: no Gaussian covers it."""
    P, Q = np.array([0.5, 0.5 - 1e-5, 1e-5]), np.array([0.5, 0.5, 0.0])
    assert larger_cover(losses_of(P, Q), 1e-6) == math.inf
    assert larger_cover(losses_of(P, Q), 1.1e-5) < math.inf


def test_one_choice_has_the_cover_of_its_closed_form():
    from scipy.special import ndtri

    for eta in (0.01, 0.3, 1.0, 3.0):
        found = cover(loss_of(choices_event(eta, 1, ONE), 1e-18), 1e-15)
        exact = 2 * ndtri(1 / (1 + math.exp(-eta / 2)))
        assert exact * (1 - 1e-9) <= found <= exact * 1.001


# ---- residues -----------------------------------------------------------------------------------


def residues_of(rng, find, n_cases=200):
    """The largest δ over what was asked for, of a pair and then a Gaussian that is its residue."""
    worst, nearest = 0.0, 0.0
    for _ in range(n_cases):
        P, Q = some_pair(rng)
        epsilon, delta = rng.uniform(0.05, 6), 10 ** rng.uniform(-8, -2)
        left = find(losses_of(P, Q), P, Q, epsilon, delta)
        if left == 0:
            continue
        of = [float(with_gaussian(*pair, math.sqrt(left), epsilon)) for pair in ((P, Q), (Q, P))]
        worst, nearest = max(worst, max(of) / delta), max(nearest, max(of) / delta)
        if worst > 2:  # a mutant: no further case is needed
            break
    return worst, nearest


def test_a_pair_and_a_gaussian_of_its_residue_are_within_the_budget():
    worst, nearest = residues_of(
        np.random.default_rng(3),
        lambda losses, P, Q, e, d: min(residue(loss, e, d) for loss in losses),
    )
    assert worst <= 1 + 1e-8 and nearest > 0.999


def test_a_mutant_that_looks_in_one_direction_overspends():
    worst, _ = residues_of(
        np.random.default_rng(3), lambda losses, P, Q, e, d: residue(losses[0], e, d)
    )
    assert worst > 2


def test_a_mutant_whose_residue_is_by_variance_overspends():
    def by_variance(losses, P, Q, epsilon, delta):
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(P / Q)
        mean = float(P @ np.where(np.isfinite(loss), loss, 0.0))
        variance = float(P @ np.where(np.isfinite(loss), loss - mean, 0.0) ** 2)
        return max(0.0, gdp_mu(epsilon, delta) ** 2 - variance)

    assert residues_of(np.random.default_rng(3), by_variance)[0] > 2


def test_the_residue_of_a_gaussian_is_the_difference_of_squares():
    whole = gdp_mu(1.0, 1e-6) ** 2
    for share in (0.0, 0.3, 0.99):
        loss = Loss(mu=math.sqrt(share * whole))
        assert residue(loss, 1.0, 1e-6) == pytest.approx((1 - share) * whole, rel=1e-8)
    assert residue(Loss(mu=1.0), 1.0, 1e-6) == 0.0


# ---- adaptive adversaries -----------------------------------------------------------------------


LATER = {
    "gaussian": FitEvent((GaussianEvent(12.0),)),
    "choices": FitEvent((SelectionEvent(0.08, 4), GaussianEvent(20.0))),
    "one choice": FitEvent((SelectionEvent(0.12),)),
    "greedy": greedy_fit_event(Budget(0.2, 1e-6, ONE), 5, 0.8),
}


def value(losses_left, e, spent, events, limit, reserve, depth):
    """The largest δ that an adversary attains from here, on a grid of e: exact but for quadrature.

    It picks the next event by the loss so far, e less what is left to tell; so its value is a
    maximum inside of every expectation.
    """
    best = np.maximum(-np.expm1(e), 0.0)
    left = limit - spent[0]
    if left > 0:
        best = np.maximum(best, gdp_delta(math.sqrt(left), e))  # all that is left, as a Gaussian
    if depth == 0:
        return best
    for loss, amount, spare in events.values():
        if spent[0] + amount > limit or spent[1] + spare > reserve:
            continue
        after = (spent[0] + amount, spent[1] + spare)
        following = value(losses_left, e, after, events, limit, reserve, depth - 1)
        best = np.maximum(best, through(loss, e, following))
    return best


def through(loss, e, following):
    """E[following(e - L)] for a loss in front."""
    keep = loss.masses > 1e-13
    masses, losses = loss.masses[keep], loss.losses[keep]
    shifts = loss.mu**2 / 2 + loss.mu * NODES if loss.mu else np.zeros(1)
    weights = WEIGHTS if loss.mu else np.ones(1)
    found = np.zeros_like(e)
    for shift, weight in zip(shifts, weights, strict=True):
        if weight > 1e-13:
            at = e[:, None] - losses - shift
            found += weight * (np.interp(at, e, following, left=1.0, right=0.0) @ masses)
    return found + loss.infinite


@pytest.mark.slow
@pytest.mark.parametrize("first", ["gaussian", "greedy", "one choice"])
def test_no_adversary_that_picks_by_outcomes_exceeds_the_budget(first):
    """Three later events of any kind, then a Gaussian of what is left, all picked by losses."""
    epsilon, delta = 1.0, 1e-4
    reserve = 0.01 * delta
    event = {
        "gaussian": gaussian_fit_event(Budget(0.5, delta, ONE), 1),
        "greedy": greedy_fit_event(Budget(0.5, delta, ONE), 5, 0.8),
        "one choice": FitEvent((SelectionEvent(0.4),)),
    }[first]
    loss = loss_of(event, 1e-16)
    limit = residue(loss, epsilon, 0.99 * delta)
    events = {}
    for name, later in LATER.items():
        spare = 0.0 if name == "gaussian" else 1e-3 * reserve
        of = loss_of(later, 1e-18)
        events[name] = of, cover(of, spare) ** 2, spare
    e = np.linspace(-3, 3, 1001)
    attained = {}
    for depth in (0, 2):
        following = value(None, e, (0.0, 0.0), events, limit, reserve, depth)
        attained[depth] = float(np.interp(epsilon, e, through(loss, e, following)))
    assert attained[0] == pytest.approx(0.99 * delta, rel=2e-3)
    assert attained[2] <= delta * (1 + 1e-3)  # of the quadrature


def randomised_response(loss, e):
    return curve(np.array([1.0, math.exp(-loss)]) / (1 + math.exp(-loss)),
                 np.array([math.exp(-loss), 1.0]) / (1 + math.exp(-loss)), e)  # fmt: skip


def test_a_mutant_that_admits_second_events_by_the_point_too_overspends():
    """Each of two second events composes with the first to δ; the choice between them does not."""
    epsilon, delta, first = 1.0, 1e-6, 0.12
    losses = first**2 / 2 + first * np.linspace(-10, 10, 20001)
    weights = np.exp(-0.5 * np.linspace(-10, 10, 20001) ** 2)
    weights /= weights.sum()
    gaussian = math.sqrt(gdp_mu(epsilon, delta) ** 2 - first**2)
    low, high = 0.0, 1.0
    for _ in range(60):
        pure = (low + high) / 2
        composed_delta = weights @ randomised_response(pure, epsilon - losses)
        low, high = (pure, high) if composed_delta < delta else (low, pure)
    branches = [gdp_delta(gaussian, epsilon - losses), randomised_response(low, epsilon - losses)]
    for branch in branches:
        assert weights @ branch == pytest.approx(delta, rel=1e-3)
    assert weights @ np.maximum(*branches) > 1.3 * delta
    # by covers one of them is refused
    cover_of_pure = 2 * (1 + math.exp(-low)) ** -1  # P of its likelier outcome
    from scipy.special import ndtri

    left = residue(Loss(mu=first), epsilon, 0.99 * delta)
    assert (2 * ndtri(cover_of_pure / 2)) ** 2 > left or gaussian**2 > left
