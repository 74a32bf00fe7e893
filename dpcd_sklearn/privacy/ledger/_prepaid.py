"""One charge for the fits of several estimators, each of which takes its part.

An estimator charges its accountant before it uses a record. Given a `Prepaid` for an accountant,
the first one to do so charges the whole; the others find their parts paid for. What was not
planned is refused: before the charge if it comes first, and without a release in any case.
"""

import threading

from ..accounting._events import FitEvent
from ..accounting._promise import Receipt


class NeverCopied:
    """Copies and clones of an object are the object itself."""

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Prepaid(NeverCopied):  # a copy would pay a second time with the same money
    """An accountant for the parts of one event, which is charged once.

    Parameters
    ----------
    accountant : PrivacyAccountant, Prepaid or None
        Who is charged; with None nothing is recorded.
    event : FitEvent
        All releases of all parts, fixed before a record is used.
    **facts
        Facts of the one entry, as in `PrivacyAccountant.charge`.
    """

    plan = None  # of an estimator whose steps share it, and that warned for all of them

    def __init__(self, accountant, event, **facts):
        self._accountant, self._event, self._facts = accountant, event, facts
        self._receipt, self._lock = None, threading.Lock()
        self._reproducible = facts.pop("reproducible", False)

    def charge(self, event, *, reproducible=False, **facts):
        """Take the receipt of a part; the first call charges the whole, whose facts the entry has.

        Raises
        ------
        BudgetExceededError, LedgerError, TypeError, ValueError
            As the accountant does, of the whole.
        RuntimeError
            If it is no part of what was planned, or was taken before; nothing may be released.
        """
        if not isinstance(event, FitEvent):
            raise TypeError(f"a FitEvent is charged, got {event!r}")
        with self._lock:
            if self._receipt is None:
                Receipt(self._event, None).redeem(event)  # a rehearsal: it raises if it can't be
                self._reproducible = self._reproducible or reproducible
                self._receipt = self._charge_all()
            elif reproducible and not self._reproducible and self._accountant is not None:
                raise ValueError(
                    "the noise of a later part can be drawn again by who knows a seed, and the "
                    "charge did not say so; leave random_state=None"
                )
            part = self._receipt.redeem(event)
        return Receipt(part, self._receipt.entry_id)

    def part(self, event):
        """A Prepaid for several parts of this one together."""
        return Prepaid(self, event, reproducible=self._reproducible)

    def charge_now(self):
        """Charge the whole before any of its parts asks.

        Raises
        ------
        BudgetExceededError, LedgerError, TypeError, ValueError
            As the accountant does, of the whole.
        """
        with self._lock:
            if self._receipt is None:
                self._receipt = self._charge_all()

    def refuse_leftovers(self):
        """Raise a RuntimeError if a part was not taken: what was fitted is not what was planned."""
        left = self._event.releases if self._receipt is None else self._receipt.left
        if left:
            raise RuntimeError(
                f"{' and '.join(map(str, left))} was planned and never released: a step charged "
                "nobody, or something else. The model was discarded"
            )

    def _charge_all(self):
        if self._accountant is None:
            return Receipt(self._event, None)
        return self._accountant.charge(self._event, reproducible=self._reproducible, **self._facts)

    @property
    def is_charged(self):
        """Whether the whole was charged already."""
        return self._receipt is not None

    @property
    def testing(self):
        """Whether what protects nobody is admitted: as without an accountant, if there is none."""
        return self._accountant is None or self._accountant.testing

    def __repr__(self):
        return f"Prepaid({self._accountant!r})"

    def __reduce_ex__(self, protocol):
        raise TypeError("parts of a charge are taken in the process that charged")
