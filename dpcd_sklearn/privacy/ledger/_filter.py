"""The privacy filter: what an event takes of a budget, and what is admitted. Arithmetic only.

A filter, not a composition: later charges may depend on earlier outputs, and so may the choice of
what to charge. A budget (ε, δ) admits one event of any kind by its own tight curve. What is left
then is its *residue*, the μ² of Gaussians that may follow it whatever they are; every later event
pays the square of its *cover*, a Gaussian that tells as much, and the small probability by which it
exceeds that from a reserve of δ. A Gaussian event is its own cover, so nothing is lost.

The first event is entered as what it takes away: the limit (the residue of nothing) less its
residue. So a ledger has one rule, two sums that stay within two limits (``proofs/accountant.md``).

Rounding goes towards more loss: an amount is rounded upwards by one part in 10^12, more than all
errors of the operations behind it and behind the limit; sums and comparisons of amounts are exact.
"""

import dataclasses
import math
import platform
import uuid
from fractions import Fraction
from functools import lru_cache

from ...utils._persons import as_stated, relation_of
from ...utils._public import check_real
from ..accounting._accounting import checked_releases, epsilon_of, gdp_squared, loss_of
from ..accounting._events import NonPrivateEvent
from ..accounting._gaussian_dp import gdp_delta, gdp_mu
from ..accounting._loss import cover, residue
from ..accounting._promise import public_number
from ..accounting._renyi import TAIL
from ._ledger_entries import LedgerParameters, now, package_version

_UP = 1 + 1e-12
_RESERVE = 0.01  # share of δ that pays for what covers leave out


@dataclasses.dataclass(frozen=True)
class Price:
    """Price of one event: its part of a budget.

    Parameters
    ----------
    amount : float
        Part of the μ² that the budget admits; infinite for an event that it never admits.
    delta : float
        Part of the reserve.
    private : bool
        Whether it protects anybody; what does not, in a ledger made for tests, takes nothing.
    first : bool
        Whether this is the price of a first event, by its own curve.
    """

    amount: float
    delta: float
    private: bool
    first: bool


# ---- the rule -----------------------------------------------------------------------------------


def fixed_parameters(epsilon, delta, neighboring, n_public, testing=False):
    """Check what a new ledger is asked to be, and fix its limits for good.

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
    relation, max_contributions = relation_of(neighboring)
    n_public = public_number(relation, n_public)
    if not isinstance(testing, bool):
        raise TypeError(f"testing must be True or False, got {testing!r}")
    return LedgerParameters(
        ledger_id=uuid.uuid4().hex,
        created=now(),
        host=platform.node(),
        version=package_version(),
        epsilon=epsilon,
        delta=delta,
        neighboring=relation,
        n_public=n_public,
        testing=testing,
        limit=_limit(epsilon, delta),
        reserve=_RESERVE * delta,
        max_contributions=max_contributions,
    )


def _limit(epsilon, delta):
    """The largest sum of squares that is (epsilon, delta less the reserve)-DP."""
    delta = (1 - _RESERVE) * delta * (1 - 1e-12)
    limit = gdp_mu(epsilon, delta) ** 2
    # gdp_mu rounds down by 1e-10. So much of this is given back that a limit for exactly k fits
    # admits k, although each amount was rounded upwards; the exact curve has the last word.
    generous = limit * (1 + 1e-11)
    return generous if gdp_delta(math.sqrt(generous), epsilon) <= delta else limit


def admits(parameters, balance, price):
    """The one rule of a ledger, by which anything is ever admitted.

    Both sums, exact, stay within their limits; and the price of a first event is that of the first.
    """
    if not price.private and price.amount == 0:
        return True
    if price.first != balance.fresh or not math.isfinite(price.amount):
        return False
    return balance.amount + Fraction(price.amount) <= Fraction(
        parameters.limit
    ) and balance.delta + Fraction(price.delta) <= Fraction(parameters.reserve)


# ---- prices -------------------------------------------------------------------------------------


def price(parameters, event, first):
    """Price of an event in a ledger's budget, as its first one or later.

    Raises
    ------
    TypeError
        If the event is malformed, or no accounting is known for it.
    ValueError
        If it has another neighbouring relation or unit, or is not private.
    """
    releases = tuple(checked_releases(event))
    if event.neighbours != parameters.neighbours:
        raise ValueError(
            f"the fit is private under {as_stated(*event.neighbours)} neighbours, the ledger "
            f"protects under {as_stated(*parameters.neighbours)}, and has one relation and one "
            f"unit; give the estimator neighboring={as_stated(*parameters.neighbours)}"
        )
    if NonPrivateEvent() in releases:
        if not parameters.testing:
            raise ValueError(
                "a fit without noise (epsilon=inf) is not private and can't be charged; give the "
                "estimator a finite epsilon, or fit without an accountant"
            )
        return Price(0.0, 0.0, private=False, first=first)
    priced = _first_price if first else _later_price
    event = dataclasses.replace(event, releases=releases)
    try:
        amount, delta = priced(event, *(getattr(parameters, name) for name in _STATED))
    except ArithmeticError as error:
        raise ValueError(f"the loss of {event} is out of range") from error
    if not amount > 0:
        raise ValueError(f"the loss of {event} is no positive number")
    return Price(amount, delta, private=True, first=first)


_STATED = ("epsilon", "delta", "limit", "reserve")


@lru_cache(maxsize=1024)
def _first_price(event, epsilon, delta, limit, reserve):
    """The limit less the residue of an event that is by itself within the budget."""
    squared = gdp_squared(event)
    if squared is not None:
        if not gdp_delta(math.sqrt(squared), epsilon) <= delta:
            return math.inf, 0.0
        return min(squared * _UP, limit), 0.0
    if epsilon_alone(event, delta) > epsilon:
        return math.inf, 0.0
    spare = (1 - _RESERVE) * delta
    left = residue(loss_of(event, TAIL * delta), epsilon, spare * (1 - 1e-12))
    taken = Fraction(limit) - Fraction(left)
    amount = max(float(taken) * _UP, limit * 2.0**-50)
    return min(amount, limit), 0.0


@lru_cache(maxsize=1024)
def _later_price(event, epsilon, delta, limit, reserve):
    """The square of a cover, and what it leaves out.

    That is no less than what the event itself leaves uncovered, whatever the Gaussian: an infinite
    loss. Of the rest of the reserve the event takes half the share that it takes of the limit.
    """
    squared = gdp_squared(event)
    if squared is not None:
        return squared * _UP, 0.0
    loss = loss_of(event, TAIL * reserve)
    uncovered = loss.infinite * (1 + 1e-9)
    rest = reserve - uncovered
    if not rest > 0:
        return math.inf, 0.0
    about = cover(loss, uncovered + rest / 4) ** 2
    if not math.isfinite(about):
        return math.inf, 0.0
    spare = uncovered + rest * max(min(1.0, about / limit) / 2, 1e-9)
    return max(cover(loss, spare) ** 2 * _UP, limit * 2.0**-50), spare


def epsilon_alone(event, delta):
    """The loss of one event by itself; infinite where the exact curve leaves double precision."""
    try:
        return float(epsilon_of(event, delta))
    except ValueError:  # no root: noise below 1e-15 of the sensitivity
        return math.inf
