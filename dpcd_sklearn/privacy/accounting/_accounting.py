"""From events to privacy loss: δ(ε), ε(δ), and the currencies of a ledger.

Accounting rounds towards more loss. Three languages are spoken here:

- *Gaussian DP* (Dong, Roth & Su 2022): ``count`` Gaussian releases of noise multiplier z are
  exactly μ-GDP with μ = sqrt(count) / z, and μ² adds over adaptive releases fixed beforehand.
- *zCDP* (Bun & Steinke 2016): ρ = μ²/2 for Gaussians, η²/8 for a selection of bounded range η
  (Cesar & Rogers 2021). Converted by Canonne, Kamath & Steinke (2020), Prop. 12.
- *Rényi DP at one order α*: α ρ for these, and a bound of its own for every other event
  (``_renyi``); the default currency of a ledger.

Proofs: ``proofs/accounting.md``, ``proofs/selections.md``, ``proofs/renyi.md``.
"""

import math

from scipy.optimize import minimize_scalar

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
)
from ._gaussian_dp import gdp_delta, gdp_epsilon, hidden_state_factor
from ._renyi import (
    laplace_divergence,
    pure_divergence,
    sampled_gaussian_divergence,
    tuning_divergence,
)
from ._selections import is_tractable, selections_epsilon

# Relative slack that swallows the rounding of the double-precision formulas below.
_ROUNDING = 1e-10


# ---- what an event costs --------------------------------------------------------------------


def gdp_squared(event):
    """μ² of an event in Gaussian DP, or None when the event is not μ-GDP for any useful μ."""
    match event:
        case FitEvent(releases=releases):
            parts = [gdp_squared(release) for release in releases]
            return None if None in parts else math.fsum(parts)
        case GaussianEvent(noise_multiplier=z, count=count):
            return count / z**2
        case HiddenStateEvent(noise_multiplier=z, count=count, contraction=c):
            return hidden_state_factor(count, c) / z**2
        case NonPrivateEvent():
            return math.inf
        case (
            SelectionEvent() | LaplaceEvent() | PureEvent() | PoissonSampledEvent() | TuningEvent()
        ):
            return None
    raise TypeError(f"no accounting is known for {event!r}, so it is refused")


def zcdp(event):
    """ρ of an event in zero-concentrated DP; infinite without noise, None if there is no bound."""
    match event:
        case FitEvent(releases=releases):
            parts = [zcdp(release) for release in releases]
            return None if None in parts else math.fsum(parts)
        case GaussianEvent(noise_multiplier=z, count=count):
            return count / (2 * z**2)
        case HiddenStateEvent():
            return gdp_squared(event) / 2
        case PoissonSampledEvent(noise_multiplier=z, count=count):
            return count / (2 * z**2)  # sampling gains nothing at large orders
        case SelectionEvent(eta=eta, count=count):
            return count * eta**2 / 8
        case LaplaceEvent(noise_multiplier=b, count=count):
            return count / (2 * b**2)
        case PureEvent(epsilon=epsilon, count=count):
            return count * epsilon**2 / 2
        case NonPrivateEvent():
            return math.inf
        case TuningEvent():
            return None
    raise TypeError(f"no accounting is known for {event!r}, so it is refused")


def rdp(event, order, neighboring=None):
    """Rényi divergence bound of an event at one order α > 1; a FitEvent names its neighbours."""
    match event:
        case FitEvent(releases=releases, neighboring=relation):
            return math.fsum(rdp(release, order, relation) for release in releases)
        case LaplaceEvent(noise_multiplier=b, count=count):
            return count * laplace_divergence(b, order)
        case PureEvent(epsilon=epsilon, count=count):
            return count * pure_divergence(epsilon, order)
        case PoissonSampledEvent(sampling_rate=rate, noise_multiplier=z, count=count):
            return count * sampled_gaussian_divergence(rate, z, order, neighboring)
        case TuningEvent(base=base, distribution=distribution, mean=mean):
            return tuning_divergence(
                lambda a: rdp(base, a), lambda e: delta_of(base, e), distribution, mean, order
            )
    return order * zcdp(event)


def epsilon_of(event, delta):
    """The smallest ε that this module can prove for an event at δ.

    Gaussians alone are exact (Gaussian DP); with selections it is the tight curve of as many
    selections of the largest range, or zCDP with the best conversion, whichever is less; with
    anything else, the best of many Rényi orders, zCDP's among them where it has a bound.
    """
    if (mu_squared := gdp_squared(event)) is not None:
        return gdp_epsilon(math.sqrt(mu_squared), delta)
    parts = list(_leaves(event))
    if not all(isinstance(part, (GaussianEvent, SelectionEvent)) for part in parts):
        return _best_rdp_epsilon(event, parts, delta)
    epsilon = zcdp_epsilon(zcdp(event), delta)
    selections = [part for part in parts if isinstance(part, SelectionEvent)]
    others = [gdp_squared(part) for part in parts if not isinstance(part, SelectionEvent)]
    count = sum(part.count for part in selections)
    eta = max((part.eta for part in selections), default=0.0)
    if epsilon in (0.0, math.inf) or not is_tractable(eta, count):
        return epsilon
    return selections_epsilon(eta, count, math.sqrt(math.fsum(others)), delta, high=epsilon)


def _best_rdp_epsilon(event, parts, delta):
    if any(isinstance(part, NonPrivateEvent) for part in parts):
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
    pure = [_pure_epsilon(part) for part in parts]
    return float(max(0.0, epsilon if None in pure else min(epsilon, math.fsum(pure))))


def _pure_epsilon(release):
    """ε of a release at δ = 0, or None."""
    match release:
        case SelectionEvent(eta=eta, count=count):
            return count * eta
        case PureEvent(epsilon=epsilon, count=count):
            return count * epsilon
        case LaplaceEvent(noise_multiplier=b, count=count):
            return count / b
    return None


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


def _leaves(event):
    """The single releases of an event, however nested."""
    if isinstance(event, FitEvent):
        for release in event.releases:
            yield from _leaves(release)
    else:
        yield event


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
