"""From events to privacy loss: δ(ε), ε(δ), and the distribution of loss behind them.

``COSTS`` is the one table of what is known: a row for each kind of release. Whatever is said of a
fit is a sum over its releases by their rows, and what has no row is refused.

Accounting rounds towards more loss. Four languages are spoken here:

- *Gaussian DP* (Dong, Roth & Su 2022): ``count`` Gaussian releases of noise multiplier z are
  exactly μ-GDP with μ = sqrt(count) / z, and μ² adds over adaptive releases fixed beforehand.
- *Losses* (``_loss``): the curve at every real e, of choices, searches and all of them together.
- *zCDP* (Bun & Steinke 2016): ρ = μ²/2 for Gaussians, η²/8 for a selection of bounded range η
  (Cesar & Rogers 2021). Converted by Canonne, Kamath & Steinke (2020), Prop. 12.
- *Rényi DP at many orders*: for samples (``_renyi``).

Proofs: ``proofs/accounting.md``, ``proofs/loss.md``, ``proofs/selections.md``, ``proofs/renyi.md``.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from ...utils._public import check_count, check_real
from ._events import (
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
)
from ._gaussian_dp import gdp_delta, gdp_epsilon, gdp_mu
from ._loss import WIDEST, Loss, composed, cover, covered_loss, of_points
from ._renyi import TAIL, choices_loss, is_tractable, sampled_gaussian_divergence
from ._tuning import check_law, tuning_loss

# Relative slack that swallows the rounding of the double-precision formulas below.
_ROUNDING = 1e-10
_SPARE = 1e-14  # of the cover of a run
_MOST_RANGES = 8  # of choices, each with a curve of its own
MOST = 2**63 - 1  # counts are stored as integers of 64 bits


# ---- what each kind of release costs --------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cost:
    """Knowledge of one kind of release: functions of the event, None where there is no bound.

    Parameters
    ----------
    checked : callable
        From the event and its neighbouring relation to the event in plain floats and integers; it
        raises TypeError or ValueError where a number is not one that the bounds hold for.
    mu_squared : callable, optional
        μ² in Gaussian DP.
    rho : callable, optional
        ρ in zero-concentrated DP.
    renyi : callable, optional
        From the event, an order α > 1 and the relation to the Rényi divergence; α ρ if left out.
    pure : callable, optional
        ε at δ = 0.
    choices : callable, optional
        (η, count): so many choices of bounded range η, if the tight curve of ``_selections`` holds.
    loss : callable, optional
        From the event and a probability that may count as an infinite loss to a `Loss` that holds
        in both directions, where one is known that is tighter than what orders give.
    """

    checked: Callable
    mu_squared: Callable | None = None
    rho: Callable | None = None
    renyi: Callable | None = None
    pure: Callable | None = None
    choices: Callable | None = None
    loss: Callable | None = None

    def __post_init__(self):
        if self.rho is None and self.renyi is None and self.loss is None:
            raise TypeError("a row needs rho, renyi or loss: without one nothing bounds the event")


def checked_numbers(**highest):
    """Make the check of events with a count and positive numbers, at most `highest` if not None."""

    def checked(release, neighboring):
        values = {"count": check_count(release.count, "count", high=MOST)}
        for name, high in highest.items():
            value = getattr(release, name)
            if high is None:
                values[name] = check_real(value, name, low=0)
            else:
                values[name] = check_real(value, name, low=0, high=high, closed="right")
        return dataclasses.replace(release, **values)

    return checked


def _checked_tuning(release, neighboring):
    if not isinstance(release.base, FitEvent) or release.base.neighboring != neighboring:
        raise ValueError("the runs of a tuning are a FitEvent with the neighbours of the whole")
    distribution, mean = check_law(release.distribution, release.mean)
    base = dataclasses.replace(release.base, releases=tuple(checked_releases(release.base)))
    if NonPrivateEvent() in base.releases:
        raise ValueError("a tuning over fits without noise is not private; give them an epsilon")
    return dataclasses.replace(release, base=base, distribution=distribution, mean=mean)


def _loss_of_tuning(release, tail):
    base = loss_of(release.base, tail)
    spare = _SPARE + 1.01 * base.infinite
    return tuning_loss(base, release.distribution, release.mean, (cover(base, spare), spare))


COSTS = {
    GaussianEvent: Cost(
        checked=checked_numbers(noise_multiplier=None),
        mu_squared=lambda e: e.count / e.noise_multiplier**2,
        rho=lambda e: e.count / (2 * e.noise_multiplier**2),
    ),
    SelectionEvent: Cost(
        checked=checked_numbers(eta=None),
        rho=lambda e: e.count * e.eta**2 / 8,
        pure=lambda e: e.count * e.eta,
        choices=lambda e: (e.eta, e.count),
    ),
    CoveredEvent: Cost(
        checked=checked_numbers(noise_multiplier=None, spare=1.0),
        loss=lambda e, tail: covered_loss(1 / e.noise_multiplier, e.spare, e.count),
    ),
    PoissonSampledEvent: Cost(
        checked=checked_numbers(noise_multiplier=None, sampling_rate=1.0),
        rho=lambda e: e.count / (2 * e.noise_multiplier**2),  # no gain at large orders
        renyi=lambda e, order, neighboring: (
            e.count
            * sampled_gaussian_divergence(e.sampling_rate, e.noise_multiplier, order, neighboring)
        ),
    ),
    TuningEvent: Cost(
        checked=_checked_tuning,
        loss=lambda e, tail: _loss_of_tuning(e, tail),
    ),
    NonPrivateEvent: Cost(
        checked=lambda e, _: e,
        mu_squared=lambda e: math.inf,
        rho=lambda e: math.inf,
    ),
}


def cost_of(release):
    """The row of a release; an heir of an event has none, since nobody checks its numbers.

    Raises
    ------
    TypeError
        If there is none.
    """
    try:
        return COSTS[type(release)]
    except KeyError:
        raise TypeError(f"no accounting is known for {release!r}, so it is refused") from None


# ---- what a fit costs: sums over its releases -------------------------------------------------


def checked_releases(event):
    """Every single release of an event; a malformed one must not count too little, or negative."""
    if not isinstance(event, FitEvent):
        raise TypeError(f"a FitEvent is charged, got {event!r}")
    if not isinstance(event.releases, tuple) or not event.releases:
        raise TypeError(f"the releases of a fit are a tuple, not empty, got {event.releases!r}")
    if event.max_contributions is not None:
        check_count(event.max_contributions, "max_contributions", high=MOST)
    for release in event.releases:
        base = getattr(release, "base", None)
        if isinstance(base, FitEvent) and base.max_contributions != event.max_contributions:
            raise ValueError("the runs of a tuning have the unit of the whole")
        yield cost_of(release).checked(release, event.neighboring)


def _total(event, bound):
    """Add up bounds of the releases of an event; None where one of them is unknown."""
    bounds = [bound(release) for release in event.releases]
    if None in bounds:
        return None
    try:
        return math.fsum(bounds)
    except OverflowError:
        return math.inf


def _bound(name):
    def bound(release):
        function = getattr(cost_of(release), name)
        return None if function is None else function(release)

    return bound


def gdp_squared(event):
    """μ² of an event in Gaussian DP, or None when the event is not μ-GDP for any useful μ."""
    return _total(event, _bound("mu_squared"))


def mu_of(event, spare):
    """The least μ of a Gaussian that covers an event but for a probability; see `cover`.

    Without spare there is one for Gaussians only; else None.
    """
    squared = gdp_squared(event)
    if squared is not None:
        return math.sqrt(squared)
    return cover(loss_of(event, TAIL * spare), spare) if spare else None


def zcdp(event):
    """ρ of an event in zero-concentrated DP; infinite without noise, None if there is no bound."""
    return _total(event, _bound("rho"))


def rdp(event, order):
    """Rényi divergence bound of an event at one order α > 1, None where there is none."""

    def divergence(release):
        cost = cost_of(release)
        if cost.renyi is not None:
            return cost.renyi(release, order, event.neighboring)
        return None if cost.rho is None else order * cost.rho(release)

    return _total(event, divergence)


# ---- the curve of a fit -----------------------------------------------------------------------


def epsilon_of(event, delta):
    """The smallest ε that this module can prove for an event at δ.

    Gaussians alone are exact (Gaussian DP); with choices and searches it is the curve of
    `loss_of`; what is known by its orders only takes the best of many. Where all of an event has a
    bound in zCDP or a pure one, the least of them all.
    """
    if (mu_squared := gdp_squared(event)) is not None:
        return gdp_epsilon(math.sqrt(mu_squared), delta)
    if NonPrivateEvent() in event.releases:
        return math.inf
    bounds = []
    if (rho := zcdp(event)) is not None:  # at tiny ε the best order is beyond those below
        bounds.append(zcdp_epsilon(rho, delta))
    if (pure := _total(event, _bound("pure"))) is not None:
        bounds.append(pure)
    if _has_orders(event):
        bounds.append(_least_epsilon(lambda order: rdp(event, order), delta, (-3.0, 12.0), 1e-4))
    else:
        bounds.append(loss_of(event, TAIL * delta).epsilon(delta))
    return float(max(0.0, min(bounds)))


def log_excess(event, epsilon, delta):
    """About the logarithm of an event's μ over the one that (epsilon, delta) admits.

    At most zero only if `epsilon_of` finds no more than epsilon. A calibration asks for this: one
    value of a curve, where `epsilon_of` looks for a root of it.
    """
    epsilon /= 1 + 1e-9  # so that accounting, rounded upwards, gives no more
    mu = gdp_mu(epsilon, delta)
    if (mu_squared := gdp_squared(event)) is not None:
        return math.log(math.sqrt(mu_squared) / mu)
    if _has_orders(event):
        return math.log(max(epsilon_of(event, delta), math.ulp(0.0))) - math.log(epsilon)
    found = max(loss_of(event, TAIL * delta).delta(epsilon), math.ulp(0.0))
    # δ of a Gaussian grows as this power of its μ
    power = math.log(gdp_delta(1.001 * mu, epsilon) / gdp_delta(mu, epsilon)) / math.log(1.001)
    bounds = [math.log(found / delta) / max(power, 1.0)]
    if (pure := _total(event, _bound("pure"))) is not None:
        bounds.append(math.log(pure / epsilon))
    if bounds[0] > 0 and (rho := zcdp(event)) is not None:
        bounds.append(math.log(rho / zcdp_rho(epsilon, delta)) / 2)
    return min(bounds)


def _parts(event):
    """Releases with a loss of their own, and whether others are known by orders only."""
    found = [r for r in event.releases if cost_of(r).loss is not None]
    choices = _choices(event.releases)
    known = len(choices) <= _MOST_RANGES and all(is_tractable(*group) for group in choices)
    by_orders = any(
        (cost := cost_of(r)).loss is None
        and cost.mu_squared is None
        and (cost.choices is None or not known)
        for r in event.releases
    )
    return found, by_orders


def _has_orders(event):
    """Whether a part of an event is known by its Rényi divergences only, and all have one."""
    return _parts(event)[1] and rdp(event, 2.0) is not None


def _choices(releases):
    """(η, count) of choices of each range."""
    counts = {}
    for release in releases:
        if (choices := cost_of(release).choices) is not None:
            eta, count = choices(release)
            counts[eta] = counts.get(eta, 0) + count
    return sorted(counts.items())


def loss_of(event, tail):
    """The distribution of loss of a fit, in both directions; a tail may count as infinite.

    Gaussians are exact beside choices on their tight curve, and whatever has a loss of its own.
    What is known by its Rényi divergences only is converted together with all Gaussians and choices
    beside it.
    """
    # checked, so that what is cached was computed with Python's numbers
    event = dataclasses.replace(event, releases=tuple(checked_releases(event)))
    return _loss_of(event, 10.0 ** math.floor(math.log10(max(tail, 1e-300))))


@lru_cache(maxsize=512)
def _loss_of(event, tail):
    releases = event.releases
    if NonPrivateEvent() in releases:
        return Loss(infinite=1.0)
    own, by_orders = _parts(event)
    losses = [cost_of(release).loss(release, tail) for release in own]
    others = tuple(release for release in releases if release not in own)
    if by_orders:
        losses.append(_loss_of_orders(dataclasses.replace(event, releases=others), tail))
        return composed(losses)
    losses += [choices_loss(eta, count, tail) for eta, count in _choices(others)]
    squares = map(_bound("mu_squared"), others)
    mu_squared = math.fsum(squared for squared in squares if squared is not None)
    return composed(losses).with_gaussian(math.sqrt(mu_squared))


def _loss_of_orders(event, tail):
    """CKS 2020, Prop. 12, solved for δ at many ε; at e < 0 by reflection."""
    orders = 1 + np.geomspace(1e-2, 1e6, 201)
    divergences = np.array([rdp(event, float(order)) for order in orders])
    top = min(map(rdp_epsilon, divergences, orders, [tail] * len(orders)))
    n = 256
    epsilons = np.linspace(0.0, min(max(top, 1e-9), WIDEST), n + 1)
    logs = (orders - 1) * (divergences + np.log1p(-1 / orders) - epsilons[:, None])
    deltas = np.exp(np.minimum(0.0, np.min(logs - np.log(orders), axis=1) + _ROUNDING))
    x = np.exp(-epsilons[:0:-1])
    below = np.minimum(1.0, 1.0 - x + x * deltas[:0:-1])
    return of_points(-n, float(epsilons[1]), np.concatenate([below, deltas]))


# ---- Rényi DP and zCDP ------------------------------------------------------------------------


def conversion_gap(order, delta):
    """ε minus the Rényi divergence at ``order``: CKS 2020, Prop. 12 (it may be negative)."""
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def rdp_epsilon(divergence, order, delta):
    """ε at δ of a mechanism with the given Rényi divergence at one order."""
    if divergence == 0:
        return 0.0
    return max(0.0, divergence + conversion_gap(order, delta))


@lru_cache(maxsize=256)
def best_order(epsilon, delta):
    """The public order at which a budget (epsilon, delta) admits the largest ρ; returns (α, ρ)."""

    def admitted(log_excess):
        order = 1 + math.exp(log_excess)
        return (epsilon - conversion_gap(order, delta)) / order

    found = minimize_scalar(
        lambda x: -admitted(x), bounds=(-12.0, 25.0), method="bounded", options={"xatol": 1e-10}
    )
    order, rho = 1 + math.exp(found.x), admitted(found.x)
    if not rho > 1e-200:  # squares of such noise leave double precision
        raise ValueError(
            f"a budget of epsilon={epsilon}, delta={delta} admits no release at all in zCDP; "
            "raise epsilon or delta"
        )
    return order, rho


def _least_epsilon(divergence, delta, bounds, precision):
    """ε at δ, minimised over the order, whose log(α - 1) is within bounds; any order is valid."""

    def epsilon(x):
        order = 1 + math.exp(x)
        return divergence(order) + conversion_gap(order, delta)

    found = minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": precision})
    return found.fun * (1 + _ROUNDING)


def zcdp_epsilon(rho, delta):
    """ε at δ of a ρ-zCDP mechanism."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    return max(0.0, _least_epsilon(lambda order: order * rho, delta, (-12.0, 25.0), 1e-10))


def zcdp_rho(epsilon, delta):
    """The largest ρ whose mechanisms are (epsilon, delta)-DP, rounded downwards."""
    # ε moves by about half as much as ρ, relatively: ten times the rounding of `zcdp_epsilon`
    return best_order(epsilon, delta)[1] * (1 - 10 * _ROUNDING)
