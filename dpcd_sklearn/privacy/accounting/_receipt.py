"""Receipts: no record is read without one (``proofs/accountant.md``)."""

import os


class Receipt:
    """Proof that one event was charged; whoever releases records redeems it, once.

    Made by `charge` only. It can't be copied or pickled: a second one would be a release that
    nobody paid.
    """

    __slots__ = ("_event", "_entry_id", "_unused", "_pid")

    def __init__(self, event, entry_id):
        self._event, self._entry_id = event, entry_id
        self._unused = [event]  # list.pop is atomic: of two threads one gets it
        self._pid = os.getpid()

    @property
    def event(self):
        """What was charged."""
        return self._event

    @property
    def entry_id(self):
        """Number of the ledger's entry; None when there is no ledger."""
        return self._entry_id

    def redeem(self):
        """Return the event, the first time.

        Raises
        ------
        RuntimeError
            At every later time, and in another process than the one that charged.
        """
        if os.getpid() != self._pid:
            raise RuntimeError("a receipt is redeemed in the process that charged; charge here")
        try:
            return self._unused.pop()
        except IndexError:
            raise RuntimeError(
                "this receipt was redeemed before; charge again for another release"
            ) from None

    def __repr__(self):
        return f"Receipt(entry_id={self._entry_id}, redeemed={not self._unused})"

    def __reduce_ex__(self, protocol):
        raise TypeError("a receipt pays for one release: it can't be copied or pickled")

    def __copy__(self):
        return self.__reduce_ex__(4)

    def __deepcopy__(self, memo):
        return self.__reduce_ex__(4)
