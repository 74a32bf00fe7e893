"""Reports of a ledger about itself, in epsilon: spent, left, refused. Nothing here admits."""

import dataclasses
import math
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

from ..accounting._accounting import gdp_squared
from ..accounting._calibration import gaussian_fit_event
from ..accounting._gaussian_dp import gdp_epsilon
from ..accounting._promise import Budget
from ..accounting._spent import PrivacyCost, PrivacySpent
from ._filter import Price, admits, epsilon_alone, price


def _upwards(total):
    """A sum in double precision, not below it."""
    rounded = float(total)
    return rounded if Fraction(rounded) >= total else math.nextafter(rounded, math.inf)


def spent(parameters, balance):
    """Share of a ledger that its entries took, as the loss of a Gaussian fit."""
    if not balance.all_private:
        return PrivacySpent(math.inf, parameters.delta)
    return PrivacySpent(_equivalent(parameters, balance.amount), parameters.delta)


def _equivalent(parameters, amount):
    """The loss of a Gaussian fit that takes so much; of all that there is, the budget's."""
    if amount >= Fraction(parameters.limit):
        return parameters.epsilon
    epsilon = float(gdp_epsilon(math.sqrt(_upwards(amount)), parameters.delta))
    return min(epsilon, parameters.epsilon)


def amount(parameters, event):
    """Price of an event as a later entry."""
    return price(parameters, event, False).amount


def cost(parameters, balance, fits):
    """Cost of fits together, each a pair of an event and its number of records."""
    first, found = balance.fresh, []
    for event, _ in fits:
        found.append(price(parameters, event, first))
        first = first and found[-1].amount == 0
    sizes = {}
    for event, n in fits:
        sizes.setdefault(n, []).append(event)
    dearest = {n: max(_alone_of_each(parameters, events)) for n, events in sizes.items()}
    private = all(each.private for each in found)
    together = math.fsum(each.amount for each in found)
    counted = _counted(parameters, together) if private else math.inf
    left, later = _times_left(parameters, balance, [event for event, _ in fits], found), balance
    if left:
        for each in found:
            later = later.after(dataclasses.asdict(each))
    return PrivacyCost(
        epsilon=next(iter(dearest.values())) if len(fits) == 1 else counted,
        delta=parameters.delta,
        counted=counted,
        amount=together,
        fits_left=left,
        n_fits=len(found),
        sizes=tuple((len(sizes[n]), n, dearest[n]) for n in sorted(sizes)),
        remaining=remaining(parameters, later) if left else None,
    )


def _counted(parameters, amount):
    """As `_equivalent`, also of more than there is."""
    if amount == parameters.limit:
        return parameters.epsilon
    return float(gdp_epsilon(math.sqrt(amount), parameters.delta)) if amount < 1e16 else math.inf


def _alone_of_each(parameters, events):
    """The loss of each different event by itself."""
    return {epsilon_alone(event, parameters.delta) for event in set(events)}


def remaining(parameters, balance):
    """The largest epsilon of one more Gaussian fit that is admitted, rounded downwards."""
    if balance.fresh:
        return parameters.epsilon
    left = float(Fraction(parameters.limit) - balance.amount)
    if left <= 0:
        return 0.0
    target = min(gdp_epsilon(math.sqrt(left), parameters.delta), parameters.epsilon)

    def admitted(epsilon):
        relation, max_contributions = parameters.neighbours
        budget = Budget(epsilon, parameters.delta, relation, None, max_contributions)
        fit = budget.of_persons(gaussian_fit_event(budget, 1))
        # A fit of more than one release differs by its rounding.
        amount = price(parameters, fit, False).amount * (1 + 1e-14)
        return admits(parameters, balance, Price(amount, 0.0, private=True, first=False))

    # The conversions there and back round by 1e-10; near epsilon = 0 they are ill-conditioned.
    low, step = 0.0, 1e-9
    while step < 1 and target > 0:
        if admitted(target * (1 - step)):
            low = target * (1 - step)
            break
        step *= 4
    if low == 0.0:
        return 0.0
    high = min(target * (1 + 1e-8), parameters.epsilon)
    if admitted(high):
        return high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return float(low)


def _times_left(parameters, balance, events, prices):
    """How often in a row some events are admitted together; infinitely if they take nothing."""
    amount = sum((Fraction(p.amount) for p in prices if math.isfinite(p.amount)), Fraction(0))
    if not all(math.isfinite(p.amount) for p in prices):
        return 0
    if amount == 0:
        return math.inf
    left = Fraction(parameters.limit) - balance.amount
    spare = Fraction(parameters.reserve) - balance.delta
    delta = sum((Fraction(p.delta) for p in prices), Fraction(0))
    if amount > left or delta > spare:
        return 0
    # the first time may have another price than the following
    later = [price(parameters, event, False) for event in events]
    if not all(math.isfinite(p.amount) for p in later):
        return 1
    times = (left - amount) / sum(Fraction(p.amount) for p in later)
    if any(p.delta for p in later):
        times = min(times, (spare - delta) / sum(Fraction(p.delta) for p in later))
    return 1 + int(times)


def refusal(parameters, balance, event):
    """Why an event was refused, and what to do; from public facts only."""
    delta = parameters.delta
    entries = "1 entry" if balance.entries == 1 else f"{balance.entries:,} entries"
    alone = epsilon_alone(event, delta)
    text = f"this fit would cost epsilon={alone:.6g} at delta={delta:g} by itself"
    later = None if balance.fresh else price(parameters, event, False)
    if later is not None:
        counted = _counted(parameters, later.amount)
        if counted > 1.001 * alone:
            text += f", counts as epsilon={counted:.6g} after other charges"
    text += (
        " and does not fit into the budget; nothing was drawn or recorded. Spent so far: "
        f"epsilon={spent(parameters, balance).epsilon:.6g} of {parameters.epsilon:g} in {entries}. "
    )
    left = remaining(parameters, balance)
    # cut, not rounded: what is read here must be admitted when it is typed in
    shown = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left).normalize()
    text += f"Left for one more Gaussian fit: remaining() = {shown}. "
    if left == 0:
        return text + "The budget is spent: no other fit may use these records under it"
    if later is not None and math.isfinite(later.amount):
        spare = float(Fraction(parameters.reserve) - balance.delta)
        if balance.amount + Fraction(later.amount) <= Fraction(parameters.limit):
            return text + (
                "It is not epsilon that is short: such a fit takes a part of delta for what no "
                f"Gaussian covers, {later.delta:.2g} of the {spare:.2g} that this ledger still has "
                "for it. State a smaller delta for this fit; or charge such fits first, or "
                "together by reserve()"
            )
    gaussian = gdp_squared(event) is not None
    other = "" if gaussian or balance.fresh else " (or less: this fit makes other releases too)"
    return text + (
        f"Lower the estimator's epsilon to at most remaining(){other}, or fit less often; cost() "
        "tells the price beforehand, and what is charged first, or by reserve(), counts by its own "
        "curve"
    )
