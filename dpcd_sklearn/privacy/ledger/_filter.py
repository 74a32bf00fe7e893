"""The privacy filter: what an event counts, what is admitted, what was spent. Arithmetic only.

A filter, not a composition: later charges may depend on earlier outputs, and so may the choice of
what to charge. It is valid (Feldman & Zrnic 2021, for the Rényi divergence at one order) because
the rule was fixed before the first of them: one currency, one order, one limit, all stored in the
ledger (PRIVACY.md §3). The tight curves of ``_accounting`` calibrate single fits and make reports.
They admit in one case only: the first charge of an empty ledger, chosen before any output, may
take the whole budget, and nothing else is admitted after it (``proofs/accountant.md``).

Rounding goes towards more loss. An amount is rounded upwards by one part in 10^12, more than all
errors of the operations behind it and behind the limit; the sum of the stored amounts is exact.
"""

import dataclasses
import math
import platform
import uuid
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

from ...utils._public import check_count, check_real
from ..accounting._accounting import (
    best_order,
    conversion_gap,
    epsilon_of,
    gdp_squared,
    rdp,
    rdp_epsilon,
    zcdp,
    zcdp_epsilon,
)
from ..accounting._calibration import gaussian_fit_event
from ..accounting._events import (
    NEIGHBORING,
    TUNING_DISTRIBUTIONS,
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
from ..accounting._gaussian_dp import gdp_delta, gdp_epsilon, gdp_mu
from ._ledger_records import LedgerParameters, PrivacySpent, now, package_version

_UP = 1 + 1e-12
MOST = 2**63 - 1  # what an integer of SQLite can hold


@dataclasses.dataclass(frozen=True)
class Price:
    """What one event counts in one ledger; rho and mu_squared are for information.

    `whole`: it exceeds the limit in the ledger's currency, but by itself is within the budget.
    """

    amount: float
    rho: float | None
    mu_squared: float | None
    private: bool
    whole: bool = False


# ---- the rule -----------------------------------------------------------------------------------


def fixed_parameters(epsilon, delta, currency, neighboring, n_public, testing):
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
    if not isinstance(testing, bool):
        raise TypeError(f"testing must be True or False, got {testing!r}")
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


def admits(parameters, amounts, amount, whole=False):
    """The one rule by which anything is ever admitted; ``fsum`` is the rounded exact sum."""
    return math.fsum([*amounts, amount]) <= parameters.limit or (whole and not amounts)


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
        return Price(0.0, None, None, private=False)
    rho, mu_squared = (
        None if None in parts else math.fsum(parts)
        for parts in ([_loss(measure, r) for r in releases] for measure in (zcdp, gdp_squared))
    )
    if parameters.currency == "rdp":
        amount = math.fsum(
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
    checked = FitEvent(releases, event.neighboring)
    whole = amount > parameters.limit and _within_budget(parameters, checked)
    return Price(amount, rho, mu_squared, private=True, whole=whole)


def _within_budget(parameters, event):
    """Whether an event by itself is (epsilon, delta)-DP by the tightest curve known."""
    if (mu_squared := gdp_squared(event)) is not None:
        return bool(gdp_delta(math.sqrt(mu_squared), parameters.epsilon) <= parameters.delta)
    return epsilon_alone(event, parameters.delta) <= parameters.epsilon


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
        elif type(release) is TuningEvent:
            yield _checked_tuning(release, event.neighboring)
        elif type(release) in _NUMBERS:
            yield _checked_numbers(release)
        elif release == NonPrivateEvent():
            yield release
        else:  # an heir of an event, too: nobody checks its numbers
            raise TypeError(f"no accounting is known for {release!r}, so it is refused")


# The numbers of each event and their upper limits; all are positive.
_NUMBERS = {
    GaussianEvent: {"noise_multiplier": None},
    LaplaceEvent: {"noise_multiplier": None},
    SelectionEvent: {"eta": None},
    PureEvent: {"epsilon": None},
    PoissonSampledEvent: {"noise_multiplier": None, "sampling_rate": 1.0},
    HiddenStateEvent: {"noise_multiplier": None, "contraction": 1.0},
}


def _checked_numbers(release):
    """The release in double precision and whole numbers, whatever types it came in."""
    values = {"count": check_count(release.count, "count", high=MOST)}
    for name, high in _NUMBERS[type(release)].items():
        value = getattr(release, name)
        if high is None:
            values[name] = check_real(value, name, low=0)
        else:
            values[name] = check_real(value, name, low=0, high=high, closed="right")
    return dataclasses.replace(release, **values)


def _checked_tuning(release, neighboring):
    if not isinstance(release.base, FitEvent) or release.base.neighboring != neighboring:
        raise ValueError("the runs of a tuning are a FitEvent with the neighbours of the whole")
    if release.distribution not in TUNING_DISTRIBUTIONS:
        raise ValueError(
            f"distribution must be one of {TUNING_DISTRIBUTIONS}, got {release.distribution!r}"
        )
    least = 0 if release.distribution == "poisson" else 1
    mean = check_real(release.mean, "mean", low=least)
    base = dataclasses.replace(release.base, releases=tuple(checked_releases(release.base)))
    if NonPrivateEvent() in base.releases:
        raise ValueError("a tuning over fits without noise is not private; give them an epsilon")
    return dataclasses.replace(release, base=base, mean=mean)


def _loss(measure, release, *args):
    try:
        value = measure(release, *args)
    except ArithmeticError as error:
        raise ValueError(f"the loss of {release!r} is out of range") from error
    if value is not None and not value >= 0:
        raise ValueError(f"the loss of {release!r} is no number >= 0")
    return value


# ---- reports ----------------------------------------------------------------------------------


def spent(parameters, rows):
    """What the entries of a ledger cost together, at the ledger's delta."""
    delta = parameters.delta
    if not all(row["private"] for row in rows):
        return PrivacySpent(math.inf, delta)
    total = math.fsum(amounts_of(rows))
    if parameters.currency == "gdp":
        epsilon = gdp_epsilon(math.sqrt(total), delta)
    else:
        epsilon = rdp_epsilon(total, parameters.order, delta)
        rhos = [row["rho"] for row in rows]
        if None not in rhos:  # then every order has a bound, not only the ledger's
            epsilon = min(epsilon, zcdp_epsilon(math.fsum(rhos) * _UP, delta))
    # What was admitted is within the budget, though conversions round upwards.
    return PrivacySpent(float(min(epsilon, parameters.epsilon)), delta)


def remaining(parameters, amounts):
    """The largest epsilon of one more Gaussian fit that is admitted, rounded downwards."""
    if not amounts:
        return parameters.epsilon
    left = parameters.limit - math.fsum(amounts)
    if left <= 0:
        return 0.0
    mu = math.sqrt(left if parameters.currency == "gdp" else 2 * left / parameters.order)
    target = gdp_epsilon(mu, parameters.delta)

    def admitted(epsilon):
        fit = gaussian_fit_event(epsilon, parameters.delta, 1, parameters.neighboring)
        # A fit of more than one release differs by its rounding.
        return admits(parameters, amounts, price(parameters, fit).amount * (1 + 1e-14))

    # The conversions there and back round by 1e-10; near epsilon = 0 they are ill-conditioned.
    for step in (-1e-9, 0.0, *(10.0**k for k in range(-11, 0))):
        epsilon = min(target * (1 - step), parameters.epsilon)
        if epsilon > 0 and admitted(epsilon):
            return float(epsilon)
    return 0.0


def fits_left(parameters, amounts, price):
    """How many events of one price are admitted in a row; infinitely many if they count 0."""
    if price.amount == 0:
        return math.inf
    if price.whole:
        return int(not amounts)
    # In exact arithmetic, as the sum of `admits`, which is rounded once: so is float(Fraction).
    total, step = sum(map(Fraction, amounts)), Fraction(price.amount)
    fits = max(0, int((Fraction(parameters.limit) - total) / step))
    return fits + (float(total + (fits + 1) * step) <= parameters.limit)


def refusal(parameters, rows, event):
    """Why an event was refused, and what to do; from public facts only."""
    amounts = amounts_of(rows)
    left, delta = remaining(parameters, amounts), parameters.delta
    entries = "1 entry" if len(rows) == 1 else f"{len(rows):,} entries"
    # cut, not rounded: what is read here must be admitted when it is typed in
    shown = Context(prec=6, rounding=ROUND_FLOOR).create_decimal(left).normalize()
    text = (
        f"this fit would cost epsilon={epsilon_alone(event, delta):.6g} at delta={delta:g} by "
        "itself and does not fit into the budget; nothing was drawn or recorded. Spent so far: "
        f"epsilon={spent(parameters, rows).epsilon:.6g} of {parameters.epsilon:g} in {entries}. "
        f"Left for one more Gaussian fit: remaining() = {shown}. "
    )
    if left == 0:
        return text + "The budget is spent: no other fit may use these records under it"
    gaussian = gdp_squared(event) is not None
    other = "" if gaussian else " (to less, since this one makes private choices too)"
    return text + (
        f"Lower the estimator's epsilon to at most remaining(){other}, or fit less often; cost() "
        "tells the price beforehand"
    )


def epsilon_alone(event, delta):
    """The loss of one event by itself; infinite where the exact curve leaves double precision."""
    try:
        return float(epsilon_of(event, delta))
    except ValueError:  # no root: noise below 1e-15 of the sensitivity
        return math.inf


def amounts_of(rows):
    """The column that the filter adds up."""
    return [row["amount"] for row in rows]
