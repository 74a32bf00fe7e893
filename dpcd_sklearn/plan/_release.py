"""A release beside the updates: whether it is made, what pays for it, and its units."""

import hashlib
from abc import ABCMeta, abstractmethod

from ..privacy.accounting._calibration import share_event
from ..privacy.mechanisms._gaussian_sum import Oracle
from ..privacy.mechanisms._questions import is_tape


class Release(metaclass=ABCMeta):
    """One kind of release that a fit may make beside its updates, bound to no plan.

    Attributes
    ----------
    name : str
        What a plan calls it, and what its noise has a key of its own by.
    count : int
        How many Gaussian releases it is.
    """

    name = None
    count = 1

    def share(self, plan):
        """Its share of a plan's μ², by the request's field of its name; 0 where it is not made."""
        return getattr(plan.request, f"{self.name}_share")

    def event(self, plan):
        """The event that pays for it."""
        request, share = plan.request, self.share(plan)
        return share_event(request.budget, share, self.count)

    @abstractmethod
    def units(self, plan, n_samples):
        """Units of its mechanism, which its part of the plan's event pays for.

        Raises
        ------
        ValueError
            If the mechanism can't carry it out.
        """

    def paid(self, plan, n_samples):
        """Arguments of all units: the event that pays for them, and numbers of records."""
        n = plan.request.budget.n
        return {"event": plan.part_of(self.name), "n_samples": n_samples, "n_normalizer": n}

    def key(self, key):
        return own_key(self.name, key)

    def opened(self, plan, receipt, place, key, kind=None, **stated):
        """Its units, and their oracle over the records at a place, which redeems the receipt."""
        units = self.units(plan, place.n_samples)
        return units, (kind or Oracle)(receipt, units, place, key=self.key(key), **stated)


# ---- keys of reproducible noise: all that are derived from that of a fit ------------------------


def own_key(name, key):
    """A key of its own: no two releases of a fit share a stream of noise."""
    if is_tape(key):
        return key
    return key and hashlib.blake2b(key, digest_size=32, person=name.encode()).digest()


def key_of_output(k, key):
    """A key of its own for each output, of which each release has one of its own again."""
    if is_tape(key):
        return key
    return key and hashlib.sha256(key + b"output %d" % k).digest()
