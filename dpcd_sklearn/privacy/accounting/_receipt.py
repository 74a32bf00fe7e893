"""Receipts: no record is read without one."""

import os
import threading


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
