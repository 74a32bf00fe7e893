"""From events to privacy loss: δ(ε), ε(δ), and the currencies of a ledger.

``COSTS`` is the one table of what is known: a row for each kind of release. Whatever is said of a
fit is a sum over its releases by their rows, and what has no row is refused.

Accounting rounds towards more loss. Three languages are spoken here:

- *Gaussian DP* (Dong, Roth & Su 2022): ``count`` Gaussian releases of noise multiplier z are
  exactly μ-GDP with μ = sqrt(count) / z, and μ² adds over adaptive releases fixed beforehand.
- *zCDP* (Bun & Steinke 2016): ρ = μ²/2 for Gaussians, η²/8 for a selection of bounded range η
  (Cesar & Rogers 2021). Converted by Canonne, Kamath & Steinke (2020), Prop. 12.
- *Rényi DP at one order α*: α ρ for these, and a bound of its own for every other event
  (``_renyi``); the default currency of a ledger.

Proofs: ``proofs/accounting.md``, ``proofs/selections.md``, ``proofs/renyi.md``.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from ...utils._public import check_count, check_real
from ._events import (
    FitEvent,
    GaussianEvent,
    HiddenStateEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    PureEvent,
    SelectionEvent,
    TuningEvent,
    ZCDPEvent,
)
from ._gaussian_dp import gdp_delta, gdp_epsilon, hidden_state_factor
from ._renyi import (
    laplace_divergence,
    pure_divergence,
    sampled_gaussian_divergence,
)
from ._selections import is_tractable, selections_delta, selections_epsilon
from ._tuning import check_law, tuning_divergence

# Relative slack that swallows the rounding of the double-precision formulas below.
_ROUNDING = 1e-10
_WIDEST = 600.0  # of the ε of a curve: exponentials stay in double precision
MOST = 2**63 - 1  # counts are stored as integers of 64 bits


# ---- what each kind of release costs --------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cost:
    """What is known of one kind of release: functions of the event, None where there is no bound.

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
    curve : callable, optional
        (η, count, μ²): so many choices of bounded range η and Gaussians that are together μ-GDP,
        if the tight curve of ``_selections`` holds for it.
    """

    checked: Callable
    mu_squared: Callable | None = None
    rho: Callable | None = None
    renyi: Callable | None = None
    pure: Callable | None = None
    curve: Callable | None = None

    def __post_init__(self):
        if self.rho is None and self.renyi is None:
            raise TypeError("a row needs rho or renyi: a Rényi divergence is known of all")


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


def _gaussian_mu_squared(e):
    return e.count / e.noise_multiplier**2


def _hidden_mu_squared(e):
    return hidden_state_factor(e.count, e.contraction) / e.noise_multiplier**2


COSTS = {
    GaussianEvent: Cost(
        checked=checked_numbers(noise_multiplier=None),
        mu_squared=_gaussian_mu_squared,
        rho=lambda e: e.count / (2 * e.noise_multiplier**2),
        curve=lambda e: (0.0, 0, _gaussian_mu_squared(e)),
    ),
    HiddenStateEvent: Cost(
        checked=checked_numbers(noise_multiplier=None, contraction=1.0),
        mu_squared=_hidden_mu_squared,
        rho=lambda e: _hidden_mu_squared(e) / 2,
    ),
    SelectionEvent: Cost(
        checked=checked_numbers(eta=None),
        rho=lambda e: e.count * e.eta**2 / 8,
        pure=lambda e: e.count * e.eta,
        curve=lambda e: (e.eta, e.count, 0.0),
    ),
    LaplaceEvent: Cost(
        checked=checked_numbers(noise_multiplier=None),
        rho=lambda e: e.count / (2 * e.noise_multiplier**2),
        renyi=lambda e, order, _: e.count * laplace_divergence(e.noise_multiplier, order),
        pure=lambda e: e.count / e.noise_multiplier,
    ),
    PureEvent: Cost(
        checked=checked_numbers(epsilon=None),
        rho=lambda e: e.count * e.epsilon**2 / 2,
        renyi=lambda e, order, _: e.count * pure_divergence(e.epsilon, order),
        pure=lambda e: e.count * e.epsilon,
    ),
    ZCDPEvent: Cost(
        checked=checked_numbers(rho=None),
        rho=lambda e: e.count * e.rho,
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
        renyi=lambda e, order, _: tuning_divergence(
            lambda a: rdp(e.base, a), privacy_curve(e.base), e.distribution, e.mean, order
        ),
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
    for release in event.releases:
        if isinstance(release, FitEvent):
            if release.neighboring != event.neighboring:
                raise ValueError("the parts of a fit must have one neighbouring relation")
            yield from checked_releases(release)
        else:
            yield cost_of(release).checked(release, event.neighboring)


def _leaves(event):
    """The single releases of an event, however nested."""
    if isinstance(event, FitEvent):
        for release in event.releases:
            yield from _leaves(release)
    else:
        yield event


def _total(bounds):
    bounds = list(bounds)
    return None if None in bounds else math.fsum(bounds)


def _sum(event, bound, neighboring=None):
    """Add up ``bound(release, neighboring)`` over an event; None where one of them is unknown."""
    if isinstance(event, FitEvent):
        return _total(_sum(release, bound, event.neighboring) for release in event.releases)
    return bound(event, neighboring)


def _bound(name):
    def bound(release, neighboring=None):
        function = getattr(cost_of(release), name)
        return None if function is None else function(release)

    return bound


def gdp_squared(event):
    """μ² of an event in Gaussian DP, or None when the event is not μ-GDP for any useful μ."""
    return _sum(event, _bound("mu_squared"))


def zcdp(event):
    """ρ of an event in zero-concentrated DP; infinite without noise, None if there is no bound."""
    return _sum(event, _bound("rho"))


def rdp(event, order, neighboring=None):
    """Rényi divergence bound of an event at one order α > 1; a FitEvent names its neighbours."""

    def divergence(release, relation):
        cost = cost_of(release)
        if cost.renyi is None:
            return order * cost.rho(release)
        return cost.renyi(release, order, relation)

    return _sum(event, divergence, neighboring)


def epsilon_of(event, delta):
    """The smallest ε that this module can prove for an event at δ.

    Gaussians alone are exact (Gaussian DP); with selections it is the tight curve of as many
    selections of the largest range, or zCDP with the best conversion, whichever is less; with
    anything else, the best of many Rényi orders, zCDP's among them where it has a bound.
    """
    if (mu_squared := gdp_squared(event)) is not None:
        return gdp_epsilon(math.sqrt(mu_squared), delta)
    releases = list(_leaves(event))
    curves = [_bound("curve")(release) for release in releases]
    if None in curves:
        return _best_rdp_epsilon(event, releases, delta)
    epsilon = zcdp_epsilon(zcdp(event), delta)
    etas, counts, mus_squared = zip(*curves, strict=True)
    eta, count = max(etas), sum(counts)
    if epsilon in (0.0, math.inf) or not is_tractable(eta, count):
        return epsilon
    return selections_epsilon(eta, count, math.sqrt(math.fsum(mus_squared)), delta, high=epsilon)


def _best_rdp_epsilon(event, releases, delta):
    if NonPrivateEvent() in releases:
        return math.inf
    # any order is valid: a minimiser that is not exact costs tightness only
    found = minimize_scalar(
        lambda x: rdp(event, 1 + math.exp(x)) + conversion_gap(1 + math.exp(x), delta),
        bounds=(-3.0, 12.0),
        method="bounded",
        options={"xatol": 1e-4},
    )
    epsilon = found.fun * (1 + _ROUNDING)
    if (rho := zcdp(event)) is not None:  # at tiny ε the best order is beyond the bounds above
        epsilon = min(epsilon, zcdp_epsilon(rho, delta))
    pure = _total(map(_bound("pure"), releases))
    return float(max(0.0, epsilon if pure is None else min(epsilon, pure)))


def delta_of(event, epsilon):
    """A δ at which an event is (epsilon, δ)-DP: exact for Gaussians alone."""
    if (mu_squared := gdp_squared(event)) is not None:
        return float(gdp_delta(math.sqrt(mu_squared), epsilon))
    if epsilon_of(event, 1 - 1e-12) > epsilon:
        return 1.0
    # epsilon_of falls with δ: bisection in log δ from the safe side
    low, high = math.log(1e-300), math.log1p(-1e-12)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if epsilon_of(event, math.exp(middle)) <= epsilon else (middle, high)
        )
    return math.exp(high)


def privacy_curve(event):
    """Points (ε, δ(ε)) of an event, each of them valid by itself: two arrays, ε from 0 on."""
    # checked, so that what is cached was computed with Python's numbers
    return _curve(FitEvent(tuple(checked_releases(event)), event.neighboring))


@lru_cache(maxsize=256)
def _curve(event):
    if (mu_squared := gdp_squared(event)) is not None:
        mu = min(math.sqrt(mu_squared), 1e3)
        epsilons = np.minimum(mu * np.linspace(0.0, 10.0 + mu / 2, 513), _WIDEST)
        return epsilons, gdp_delta(math.sqrt(mu_squared), epsilons)
    orders = 1 + np.geomspace(1e-2, 1e6, 201)
    divergences = np.array([rdp(event, float(order)) for order in orders])
    top = min(map(rdp_epsilon, divergences, orders, [1e-20] * len(orders)))
    epsilons = np.linspace(0.0, min(top, _WIDEST), 257)
    # CKS 2020, Prop. 12, solved for δ; any order is valid
    logs = (orders - 1) * (divergences + np.log1p(-1 / orders) - epsilons[:, None])
    deltas = np.exp(np.minimum(0.0, np.min(logs - np.log(orders), axis=1) + _ROUNDING))
    releases = list(_leaves(event))
    curves = [_bound("curve")(release) for release in releases]
    if None not in curves:
        etas, counts, mus_squared = zip(*curves, strict=True)
        eta, count, mu = max(etas), sum(counts), math.sqrt(math.fsum(mus_squared))
        if is_tractable(eta, count):
            tight = [selections_delta(eta, count, mu, float(e), 1e-14) for e in epsilons]
            deltas = np.minimum(deltas, tight)
    pure = _total(map(_bound("pure"), releases))
    if pure is not None and pure <= epsilons[-1]:
        epsilons = np.append(epsilons[epsilons < pure], pure)
        deltas = np.append(deltas[: len(epsilons) - 1], 0.0)
    return epsilons, deltas


# ---- Rényi DP and zCDP ------------------------------------------------------------------------


def conversion_gap(order, delta):
    """ε minus the Rényi divergence at ``order``: CKS 2020, Prop. 12 (it may be negative)."""
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def rdp_epsilon(divergence, order, delta):
    """ε at δ of a mechanism with the given Rényi divergence at one order."""
    if divergence == 0:
        return 0.0
    return max(0.0, divergence + conversion_gap(order, delta))


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


def zcdp_epsilon(rho, delta):
    """ε at δ of a ρ-zCDP mechanism, minimised over the order (any order is valid)."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    found = minimize_scalar(
        lambda x: (1 + math.exp(x)) * rho + conversion_gap(1 + math.exp(x), delta),
        bounds=(-12.0, 25.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return max(0.0, found.fun * (1 + _ROUNDING))


def zcdp_rho(epsilon, delta):
    """The largest ρ whose mechanisms are (epsilon, delta)-DP, rounded downwards."""
    # ε moves by about half as much as ρ, relatively: ten times the rounding of `zcdp_epsilon`
    return best_order(epsilon, delta)[1] * (1 - 10 * _ROUNDING)
