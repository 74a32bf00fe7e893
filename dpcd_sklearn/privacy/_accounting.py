"""From events to privacy loss: δ(ε), ε(δ), and the currencies of a ledger.

Accounting rounds towards more loss. Three languages are spoken here:

- *Gaussian DP* (Dong, Roth & Su 2022): ``count`` Gaussian releases of noise multiplier z are
  exactly μ-GDP with μ = sqrt(count) / z, and μ² adds over adaptive releases fixed beforehand.
- *zCDP* (Bun & Steinke 2016): ρ = μ²/2 for Gaussians, η²/8 for a selection of bounded range η
  (Cesar & Rogers 2021). Converted by Canonne, Kamath & Steinke (2020), Prop. 12.
- *Rényi DP at one order α*: α ρ for everything above; the default currency of a ledger.

Proofs: ``proofs/accounting.md``.
"""

import math

from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, ndtr

from ._events import FitEvent, GaussianEvent, NonPrivateEvent, SelectionEvent

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
        case SelectionEvent():
            return None
        case NonPrivateEvent():
            return math.inf
    raise TypeError(f"no accounting is known for {event!r}, so it is refused")


def zcdp(event):
    """ρ of an event in zero-concentrated DP (infinite for a release without noise)."""
    match event:
        case FitEvent(releases=releases):
            return math.fsum(zcdp(release) for release in releases)
        case GaussianEvent(noise_multiplier=z, count=count):
            return count / (2 * z**2)
        case SelectionEvent(eta=eta, count=count):
            return count * eta**2 / 8
        case NonPrivateEvent():
            return math.inf
    raise TypeError(f"no accounting is known for {event!r}, so it is refused")


def rdp(event, order):
    """Rényi divergence bound of an event at one order α > 1."""
    return order * zcdp(event)


def epsilon_of(event, delta):
    """The smallest ε that this module can prove for an event at δ.

    Gaussians alone are exact (Gaussian DP); with selections it is zCDP with the best conversion.
    """
    if (mu_squared := gdp_squared(event)) is not None:
        return gdp_epsilon(math.sqrt(mu_squared), delta)
    return zcdp_epsilon(zcdp(event), delta)


# ---- Gaussian DP ------------------------------------------------------------------------------


def gdp_delta(mu, epsilon):
    """δ(ε) of a μ-GDP mechanism: Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2), without cancellation.

    With a = ε/μ - μ/2 and b = ε/μ + μ/2, e^ε φ(b) = φ(a), so both terms share the factor
    exp(-a²/2) / 2 and only the scaled complementary error functions are subtracted.
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    scale = 0.5 * math.exp(-a * a / 2)
    # Φ(-a), and e^ε Φ(-b)
    first = scale * erfcx(a / math.sqrt(2)) if a > 0 else ndtr(-a)
    second = scale * erfcx(b / math.sqrt(2))
    delta = first - second
    # The terms nearly cancel for tiny mu: each is good to a few 2^-53.
    return min(1.0, delta * (1 + _ROUNDING) + first * 2.0**-50)


def gdp_epsilon(mu, delta):
    """The smallest ε ≥ 0 with δ(ε) ≤ delta for a μ-GDP mechanism, rounded upwards."""
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    if mu > 1e8:  # no noise to speak of; the formula would only lose digits
        return math.inf
    # δ(ε) ≤ Φ(-a) ≤ exp(-a²/2) / 2, so a = sqrt(2 ln 1/δ) is always enough.
    high = mu * (math.sqrt(2 * math.log(1 / delta)) + mu / 2) + 1e-12
    root = brentq(
        lambda e: gdp_delta(mu, e) - delta, 0.0, high, xtol=1e-300, rtol=1e-13, maxiter=500
    )
    return root * (1 + _ROUNDING)


def gdp_mu(epsilon, delta):
    """The largest μ whose mechanisms are (epsilon, delta)-DP, rounded downwards."""
    low, high = 0.0, 1.0
    while gdp_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    root = brentq(
        lambda mu: gdp_delta(mu, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13, maxiter=500
    )
    mu = root * (1 - _ROUNDING)
    while gdp_delta(mu, epsilon) > delta:  # a root found on the far side of the crossing
        mu *= 1 - 1e-9
    return mu


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
    if rho <= 0:
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
