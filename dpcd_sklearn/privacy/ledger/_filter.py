"""The privacy filter: what an event counts, and what is admitted. Arithmetic only.

A filter, not a composition: later charges may depend on earlier outputs, and so may the choice of
what to charge. It is valid (Feldman & Zrnic 2021, for the Rényi divergence at one order) because
the rule was fixed before the first of them: one currency, one order, one limit, all stored in the
ledger. The tight curves of ``_accounting`` calibrate single fits and make reports;
they admit in a ledger for a single fit only, which was asked for as such and admits nothing after
its first charge (``proofs/accountant.md``).

Rounding goes towards more loss. An amount is rounded upwards by one part in 10^12, more than all
errors of the operations behind it and behind the limit; sums and comparisons of amounts are exact.
"""

import dataclasses
import math
import platform
import uuid
from fractions import Fraction

from ...utils._public import check_count, check_real
from ..accounting._accounting import (
    MOST,
    best_order,
    checked_releases,
    conversion_gap,
    epsilon_of,
    gdp_squared,
    rdp,
    zcdp,
)
from ..accounting._events import NEIGHBORING, FitEvent, NonPrivateEvent
from ..accounting._gaussian_dp import gdp_delta, gdp_mu
from ._ledger_records import LedgerParameters, now, package_version

_UP = 1 + 1e-12


@dataclasses.dataclass(frozen=True)
class Price:
    """What one event counts in one ledger; rho and mu_squared are for information.

    `alone`: by itself it is within the budget; found out for a ledger for a single fit only.
    """

    amount: float
    rho: float | None
    mu_squared: float | None
    private: bool
    alone: bool = False


# ---- the rule -----------------------------------------------------------------------------------


def fixed_parameters(
    epsilon, delta, currency, neighboring, n_public, testing=False, single_fit=False
):
    """Check what a new ledger is asked to be, and fix its order and limit for good.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or the budget admits nothing.
    """
    advice = "a budget is finite" if epsilon == math.inf else ""
    epsilon = check_real(epsilon, "epsilon", low=0, high=1e301, advice=advice)
    delta = check_real(
        delta, "delta", low=0, high=0.5, closed="right", advice="take less than 1 / n_samples"
    )
    if currency not in ("rdp", "gdp"):
        raise ValueError(f"currency must be 'rdp' or 'gdp', got {currency!r}")
    if neighboring not in NEIGHBORING:
        raise ValueError(f"neighboring must be one of {NEIGHBORING}, got {neighboring!r}")
    if neighboring == "add_remove":
        if n_public is None:
            raise ValueError("neighboring='add_remove' needs n_public, a public number of records")
        n_public = check_count(n_public, "n_public", high=MOST)
    elif n_public is not None:
        raise ValueError("n_public belongs to neighboring='add_remove'; leave it out")
    for name, value in (("testing", testing), ("single_fit", single_fit)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")
    order, limit = _limit(epsilon, delta, currency)
    return LedgerParameters(
        ledger_id=uuid.uuid4().hex,
        created=now(),
        host=platform.node(),
        version=package_version(),
        epsilon=epsilon,
        delta=delta,
        currency=currency,
        neighboring=neighboring,
        n_public=n_public,
        testing=testing,
        single_fit=single_fit,
        order=order,
        limit=limit,
    )


def _limit(epsilon, delta, currency):
    """The order and the largest sum of amounts that is (epsilon, delta)-DP."""
    if currency == "rdp":
        order = best_order(epsilon, delta)[0]
        return order, epsilon - conversion_gap(order, delta)
    limit = gdp_mu(epsilon, delta) ** 2
    # gdp_mu rounds down by 1e-10. So much of this is given back that a budget for exactly k fits
    # admits k, although each amount was rounded upwards; the exact curve has the last word.
    generous = limit * (1 + 1e-11)
    return None, generous if gdp_delta(math.sqrt(generous), epsilon) <= delta else limit


def admits(parameters, balance, price):
    """The one rule of a ledger, by which anything is ever admitted.

    The sum of all amounts, exact, stays within the limit; or, where the ledger is for a single fit,
    that fit is the first entry and by itself within the budget.
    """
    if parameters.single_fit:
        return balance.entries == 0 and price.alone
    if not math.isfinite(price.amount):
        return False
    return balance.amount + Fraction(price.amount) <= Fraction(parameters.limit)


def price(parameters, event):
    """What an event counts in a ledger.

    Raises
    ------
    TypeError
        If the event is malformed, or no accounting is known for it.
    ValueError
        If it has another neighbouring relation, is not private, or is unknown to the currency.
    """
    releases = tuple(checked_releases(event))
    if event.neighboring != parameters.neighboring:
        raise ValueError(
            f"the fit is private under {event.neighboring!r} neighbours, the ledger protects under "
            f"{parameters.neighboring!r}; give the estimator "
            f"neighboring={parameters.neighboring!r}"
        )
    if NonPrivateEvent() in releases:
        if not parameters.testing:
            raise ValueError(
                "a fit without noise (epsilon=inf) is not private and can't be charged; give the "
                "estimator a finite epsilon, or fit without an accountant"
            )
        return Price(0.0, None, None, private=False, alone=True)
    rho, mu_squared = (
        _total(_loss(measure, release) for release in releases) for measure in (zcdp, gdp_squared)
    )
    if parameters.currency == "rdp":
        amount = _total(
            _loss(rdp, release, parameters.order, event.neighboring) for release in releases
        )
    elif mu_squared is None:
        raise ValueError(
            "the currency of this ledger is fixed to 'gdp', and this fit does not release "
            "Gaussians only; create the accountant with currency='rdp' for it"
        )
    else:
        amount = mu_squared
    amount *= _UP
    alone = parameters.single_fit and math.isfinite(amount) and within_budget(parameters, event)
    if rho == math.inf:
        rho = None  # no bound, and nothing that a sum can hold
    return Price(amount, rho, mu_squared, private=True, alone=alone)


def amount(parameters, event):
    """What an event counts in the ledger's currency."""
    return price(parameters, event).amount


def _total(losses):
    """The sum of losses rounded once; None where one of them is unknown."""
    losses = list(losses)
    if None in losses:
        return None
    try:
        return math.fsum(losses)
    except OverflowError:
        return math.inf


def within_budget(parameters, event):
    """Whether an event by itself is (epsilon, delta)-DP by the tightest curve known."""
    event = FitEvent(tuple(checked_releases(event)), event.neighboring)
    if (mu_squared := gdp_squared(event)) is not None:
        return bool(gdp_delta(math.sqrt(mu_squared), parameters.epsilon) <= parameters.delta)
    return epsilon_alone(event, parameters.delta) <= parameters.epsilon


def epsilon_alone(event, delta):
    """The loss of one event by itself; infinite where the exact curve leaves double precision."""
    try:
        return float(epsilon_of(event, delta))
    except ValueError:  # no root: noise below 1e-15 of the sensitivity
        return math.inf


def _loss(measure, release, *args):
    try:
        value = measure(release, *args)
    except ArithmeticError as error:
        raise ValueError(f"the loss of {release!r} is out of range") from error
    if value is not None and not value >= 0:
        raise ValueError(f"the loss of {release!r} is no number >= 0")
    return value
