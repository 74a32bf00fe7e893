"""What a ledger says about itself, in epsilon: spent, left, refused. Nothing here admits."""

import dataclasses
import math
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

from ..accounting._accounting import gdp_squared, rdp_epsilon, zcdp_epsilon
from ..accounting._calibration import gaussian_fit_event
from ..accounting._gaussian_dp import gdp_epsilon
from ..accounting._spent import PrivacyCost, PrivacySpent
from ._filter import Price, admits, epsilon_alone, price, within_budget
from ._ledger_records import Balance


def _upwards(total):
    """A sum in double precision, not below it."""
    rounded = float(total)
    return rounded if Fraction(rounded) >= total else math.nextafter(rounded, math.inf)


def spent(parameters, balance):
    """What the entries of a ledger cost together, at the ledger's delta."""
    if not balance.all_private:
        return PrivacySpent(math.inf, parameters.delta)
    # What was admitted is within the budget, though conversions round upwards.
    return PrivacySpent(min(_epsilon(parameters, balance), parameters.epsilon), parameters.delta)


def _epsilon(parameters, balance):
    """The loss of a sum of entries, whether or not it was admitted."""
    total, delta = _upwards(balance.amount), parameters.delta
    if parameters.currency == "gdp":
        return float(gdp_epsilon(math.sqrt(total), delta))
    epsilon = rdp_epsilon(total, parameters.order, delta)
    if balance.rho is not None:  # then every order has a bound, not only the ledger's
        epsilon = min(epsilon, zcdp_epsilon(_upwards(balance.rho) * (1 + 1e-12), delta))
    return float(epsilon)


def cost(parameters, balance, fits):
    """What fits would cost together, each a pair of an event and its number of records."""
    found = [(price(parameters, event), event, n) for event, n in fits]
    alone = Balance()
    for each, _, _ in found:
        alone = alone.after(dataclasses.asdict(each))
    sizes = {}
    for _, event, n in found:
        sizes.setdefault(n, []).append(event)
    dearest = {n: max(_alone_of_each(parameters, events)) for n, events in sizes.items()}
    together = _upwards(alone.amount)
    if len(found) == 1:
        (epsilon,), (whole, _, _) = dearest.values(), found[0]
    else:
        epsilon = _epsilon(parameters, alone) if alone.all_private else math.inf
        whole = Price(together, None, None, private=alone.all_private)
    return PrivacyCost(
        epsilon=epsilon,
        delta=parameters.delta,
        amount=together,
        currency=parameters.currency,
        fits_left=fits_left(parameters, balance, whole),
        n_fits=len(found),
        sizes=tuple((len(sizes[n]), n, dearest[n]) for n in sorted(sizes)),
    )


def _alone_of_each(parameters, events):
    """The loss of each different event by itself."""
    return {epsilon_alone(event, parameters.delta) for event in set(events)}


def remaining(parameters, balance):
    """The largest epsilon of one more Gaussian fit that is admitted, rounded downwards."""
    if parameters.single_fit:
        return 0.0 if balance.entries else parameters.epsilon
    left = float(Fraction(parameters.limit) - balance.amount)
    if left <= 0:
        return 0.0
    mu = math.sqrt(left if parameters.currency == "gdp" else 2 * left / parameters.order)
    target = gdp_epsilon(mu, parameters.delta)

    def admitted(epsilon):
        fit = gaussian_fit_event(epsilon, parameters.delta, 1, parameters.neighboring)
        # A fit of more than one release differs by its rounding.
        amount = price(parameters, fit).amount * (1 + 1e-14)
        return admits(parameters, balance, Price(amount, None, None, private=True))

    # The conversions there and back round by 1e-10; near epsilon = 0 they are ill-conditioned.
    for step in (-1e-9, 0.0, *(10.0**k for k in range(-11, 0))):
        epsilon = min(target * (1 - step), parameters.epsilon)
        if epsilon > 0 and admitted(epsilon):
            return float(epsilon)
    return 0.0


def fits_left(parameters, balance, price):
    """How many events of one price are admitted in a row; infinitely many if they count 0."""
    if not admits(parameters, balance, price):
        return 0
    if parameters.single_fit:
        return 1
    if price.amount == 0:
        return math.inf
    return int((Fraction(parameters.limit) - balance.amount) / Fraction(price.amount))


def refusal(parameters, balance, event):
    """Why an event was refused, and what to do; from public facts only."""
    delta = parameters.delta
    entries = "1 entry" if balance.entries == 1 else f"{balance.entries:,} entries"
    text = (
        f"this fit would cost epsilon={epsilon_alone(event, delta):.6g} at delta={delta:g} by "
        "itself and does not fit into the budget; nothing was drawn or recorded. Spent so far: "
        f"epsilon={spent(parameters, balance).epsilon:.6g} of {parameters.epsilon:g} in {entries}. "
    )
    if parameters.single_fit and balance.entries:
        return text + (
            "The ledger was made for a single fit (single_fit=True): no other fit may use these "
            "records under it"
        )
    left = remaining(parameters, balance)
    # cut, not rounded: what is read here must be admitted when it is typed in
    shown = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left).normalize()
    text += f"Left for one more Gaussian fit: remaining() = {shown}. "
    if left == 0:
        return text + "The budget is spent: no other fit may use these records under it"
    gaussian = gdp_squared(event) is not None
    if not balance.entries and not parameters.single_fit and within_budget(parameters, event):
        exact = ", or currency='gdp', which admits Gaussian fits only" if gaussian else ""
        return text + (
            "By itself it is within the budget: a ledger that adds up fits counts it a little "
            "higher than it was calibrated. For this fit and no other make the accountant with "
            f"single_fit=True{exact}; for several fits lower the estimator's epsilon to at most "
            "remaining()"
        )
    other = "" if gaussian else " (to less, since this one makes private choices too)"
    return text + (
        f"Lower the estimator's epsilon to at most remaining(){other}, or fit less often; cost() "
        "tells the price beforehand"
    )
