"""Answers of accountants: what was spent, and what a fit would cost."""

import dataclasses
import math
from typing import NamedTuple

from ...utils._texts import ReadableRepr, counted
from ._tuning import shape_of

_POOR = 1.05  # times the own loss of an event, from which on its cover is called poor


class PrivacySpent(NamedTuple):
    """A spent budget: (epsilon, delta)-DP, delta being the ledger's."""

    epsilon: float
    delta: float

    def __str__(self):
        return f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g}"

    def _repr_html_(self):  # mypy takes an assignment for a field
        return ReadableRepr._repr_html_(self)


@dataclasses.dataclass(frozen=True)
class PrivacyCost(ReadableRepr):
    """Cost of a fit, or of a search of many.

    Attributes
    ----------
    epsilon, delta : float
        The loss at the ledger's delta: of one fit by the tightest curve known, of several as they
        would count in the ledger.
    counted : float
        The epsilon of a Gaussian fit that would take as much of the ledger's budget.
    amount : float
        What it would take of the ledger's limit, as entries state it.
    fits_left : int
        How many times what is left of the budget admits it (``inf`` when it counts nothing).
    n_fits : int
        How many fits it is, each an entry of the ledger.
    sizes : tuple of (n_fits, n_samples, epsilon)
        How many of them are of how many records, and the loss of the dearest of these by itself;
        the smallest first.
    remaining : float or None
        What `PrivacyAccountant.remaining` would report after it; None if it would be refused.
    """

    epsilon: float
    delta: float
    counted: float
    amount: float
    fits_left: int
    n_fits: int = 1
    sizes: tuple = ()
    remaining: float | None = None

    def __str__(self):
        several = self.n_fits > 1
        left = counted(self.fits_left, "time" if several else "such fit")
        text = f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g}"
        if not several and self.counted > _POOR * self.epsilon:
            text += (
                f", counted as epsilon={self.counted:.4g}, since no Gaussian is near it (the first "
                "charge of a ledger counts as it is: make it this one)"
            )
        if self.remaining is not None:
            text += f", after which remaining() is {self.remaining:.4g}"
        text += f"; {left} {'is' if self.fits_left == 1 else 'are'} left"
        if not several:
            return text
        sizes = ", ".join(
            f"{count} of {n:,} records at epsilon={epsilon:.4g}" for count, n, epsilon in self.sizes
        )
        return f"{self.n_fits} fits ({sizes}): {text}"


# ---- Translation of events for the `dp_accounting` library (an extra), for checks only -----------
#
# Its accountants assume, for a plain Gaussian, that replacing a record doubles the sensitivity
# (PLD) or not (RDP). Here z is over the sensitivity under the event's own relation, which is what
# they call the multiplier under adding or removing a record: use that relation with what this
# returns.
#
# Events are known by the names of their classes, because they import this file and not the reverse.


def _tuning(peer, event, _):
    if event.distribution == "subset":
        raise TypeError("dp_accounting has no search that tries each candidate or not")
    poisson = event.distribution == "poisson"
    shape = math.inf if poisson else shape_of(event.distribution)
    return peer.RepeatAndSelectDpEvent(_translated(peer, event.base), event.mean, shape)


def _repeated(peer, single, count):
    return single if count == 1 else peer.SelfComposedDpEvent(single, count)


def _poisson_sampled(peer, event, neighboring):
    if neighboring != "add_remove":
        raise TypeError(
            "dp_accounting has no samples under replace_one whose multiplier is over the "
            "sensitivity; only add_remove can be translated"
        )
    one = peer.GaussianDpEvent(event.noise_multiplier)
    return _repeated(peer, peer.PoissonSampledDpEvent(event.sampling_rate, one), event.count)


def _covered(peer, event, neighboring):
    raise TypeError("dp_accounting has no release that tells everything with a small probability")


# A row for each kind of release.
_TRANSLATIONS = {
    "FitEvent": lambda peer, e, _: peer.ComposedDpEvent(
        [_translated(peer, release, e.neighboring) for release in e.releases]
    ),
    "GaussianEvent": lambda peer, e, _: _repeated(
        peer, peer.GaussianDpEvent(e.noise_multiplier), e.count
    ),
    "SelectionEvent": lambda peer, e, _: _repeated(peer, peer.ZCDpEvent(e.eta**2 / 8), e.count),
    "CoveredEvent": _covered,
    "PoissonSampledEvent": _poisson_sampled,
    "TuningEvent": _tuning,
    "NonPrivateEvent": lambda peer, e, _: peer.NonPrivateDpEvent(),
}


def _translated(peer, event, neighboring=None):
    row = _TRANSLATIONS.get(type(event).__name__)
    if row is None:
        raise TypeError(f"dp_accounting has no event like {event!r}")
    return row(peer, event, neighboring)


def translated(event):
    """The `dp_accounting` event of an event of ours."""
    try:
        from dp_accounting import dp_event as peer
    except ImportError as error:
        raise ImportError(
            "to_dp_event needs dp_accounting: pip install 'dpcd_sklearn[accounting]'"
        ) from error
    return _translated(peer, event)
