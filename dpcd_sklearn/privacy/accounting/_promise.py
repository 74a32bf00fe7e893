"""The promise of a budget to a data set, and receipts: no record is read without one."""

import math
import os
import threading
from typing import NamedTuple

from ...utils._persons import relation_of
from ...utils._public import MOST, check_count, check_real
from ._accounting import log_excess, zcdp_rho
from ._gaussian_dp import gdp_mu
from ._persons import of_persons


class Budget(NamedTuple):
    """The price of all releases of a fit together, and its public number of records.

    Budgets of one price are equal: a calibration that is cached serves every number of records.
    The price is that of a person; what one of its records may cost is told by `mu` and `rho`, and
    `excess` says whether what is released of records is within the price.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Infinite without noise.
    delta : float in (0, 1)
    neighboring : {"replace_one", "add_remove"}, default="replace_one"
    n : int, default=None
        Public number of records, by which sums are divided; what is released costs the same
        whatever it is.
    max_contributions : int or None, default=1
        How many records a person has, at most. None is any number: what is released is of persons,
        by their ids, and so is `n`.
    """

    epsilon: float
    delta: float
    neighboring: str = "replace_one"
    n: int | None = None
    max_contributions: int | None = 1

    @property
    def price(self):
        """All but the number of records."""
        return self._replace(n=None)[:]

    def __eq__(self, other):
        return isinstance(other, Budget) and self.price == other.price

    def __hash__(self):
        return hash(self.price)

    @property
    def private(self):
        """Whether there is noise."""
        return math.isfinite(self.epsilon)

    @property
    def mu(self):
        """The largest μ of one record: that of all of a person's is (epsilon, delta)-DP."""
        return gdp_mu(self.epsilon, self.delta) / (self.max_contributions or 1)

    @property
    def rho(self):
        """The largest ρ of one record in zero-concentrated DP, likewise."""
        return zcdp_rho(self.epsilon, self.delta) / (self.max_contributions or 1) ** 2

    def of_persons(self, event):
        """The event that is charged, if this is what one of records is planned by.

        Raises
        ------
        ValueError
            If it is not known what the event tells of all records of a person.
        """
        k = self.max_contributions
        return event if event.max_contributions == k else of_persons(event, k)

    def excess(self, event):
        """About the logarithm of μ of an event over that of this price; see `log_excess`."""
        return log_excess(self.of_persons(event), self.epsilon, self.delta)


def promised(epsilon, delta, neighboring, n_public, n_samples):
    """The Budget of a fit of so many records, or persons by their ids, as its parameters say.

    Raises
    ------
    TypeError, ValueError
        If the relation is unknown, `n_public` does not belong to it, or delta is no number.
    """
    relation, max_contributions = relation_of(neighboring)
    n_public = public_number(relation, n_public)
    delta = resolved_delta(delta, n_samples, n_public)
    n = int(n_samples) if n_public is None else n_public
    return Budget(float(epsilon), delta, relation, n, max_contributions)


def public_number(neighboring, n_public):
    """The public number of records under add_remove; None where their true number is public.

    Raises
    ------
    TypeError, ValueError
        If the relation is unknown, or `n_public` does not belong to it.
    """
    relation, _ = relation_of(neighboring)
    if n_public is not None:
        n_public = check_count(n_public, "n_public", high=MOST)
    if relation == "add_remove" and n_public is None:
        raise ValueError(
            'neighboring="add_remove" needs n_public, a public number of records: the true '
            "number is not public under this relation"
        )
    if relation == "replace_one" and n_public is not None:
        raise ValueError(
            'n_public is for neighboring="add_remove"; leave it out under replace_one, where '
            "n_samples is public"
        )
    return n_public


def resolved_delta(delta, n_samples, n_public):
    """δ as a number: "auto" is 1/n² of a public n.

    Raises
    ------
    TypeError, ValueError
        If it is neither a number in (0, 1) nor "auto", or n is not public.
    """
    if not isinstance(delta, str):
        return check_real(delta, "delta", low=0, high=1)
    if delta != "auto":
        raise ValueError(f'delta must be "auto" or a number in (0, 1), got {delta!r}')
    if n_public is not None:
        raise ValueError('delta="auto" is 1/n², which is not public under add_remove: state it')
    if n_samples < 2:
        raise ValueError('delta="auto" is 1/n², which is no guarantee for n_samples=1: state it')
    return 1.0 / int(n_samples) ** 2  # small integers of numpy would wrap around


# ---- Receipts, without which no record is read ---------------------------------------------------


class Receipt:
    """Proof that one event was charged; whoever releases records redeems it, each part once.

    Made by `charge` only, and by a `Prepaid` from a part of one that was. It can't be copied or
    pickled: a second one would be a release that nobody paid.
    """

    __slots__ = ("_entry_id", "_event", "_left", "_lock", "_pid")

    def __init__(self, event, entry_id):
        self._event, self._entry_id = event, entry_id
        self._left = list(event.releases)  # not redeemed yet
        self._lock = threading.Lock()  # of two threads one gets a part
        self._pid = os.getpid()

    @property
    def event(self):
        """The event that was charged."""
        return self._event

    @property
    def entry_id(self):
        """Number of the ledger's entry; None when there is no ledger."""
        return self._entry_id

    @property
    def left(self):
        """The releases that were not redeemed yet."""
        return tuple(self._left)

    def redeem(self, part=None):
        """Take what pays for the releases of a part of the event, the first time.

        Parameters
        ----------
        part : FitEvent, default=None
            Some of the event's releases, under its neighbouring relation; None is all of them.

        Returns
        -------
        part : FitEvent

        Raises
        ------
        RuntimeError
            If one of them was redeemed before or never charged, and in another process than the
            one that charged.
        """
        if os.getpid() != self._pid:
            raise RuntimeError("a receipt is redeemed in the process that charged; charge here")
        part = self._event if part is None else part
        with self._lock:
            left = list(self._left)
            for release in part.releases:
                if release not in left or part.neighbours != self._event.neighbours:
                    raise RuntimeError(
                        f"{release} was redeemed before, or is no part of what was charged; charge "
                        "again for another release"
                    )
                left.remove(release)
            self._left = left
        return part

    def __repr__(self):
        left = " and ".join(map(str, self.left)) or "nothing"
        return f"Receipt(entry_id={self._entry_id}, left to redeem: {left})"

    def __reduce_ex__(self, protocol):
        raise TypeError("a receipt pays for one release: it can't be copied or pickled")

    def __copy__(self):
        return self.__reduce_ex__(4)

    def __deepcopy__(self, memo):
        return self.__reduce_ex__(4)
