"""One oracle for releases that a receipt pays for, and Gaussian sums that are released once.

(a) A kind of release is a class of units: what pays for it, its sensitivity, the question that is
    asked of records, and what is made of a noisy answer. All of it follows from public numbers.
(b) The ``Oracle`` redeems the receipt, counts down, asks, and adds noise. It refuses a release that
    is not paid for, and nothing is drawn then.
(c) Sums are of integers, so they are exact in any order; one exact draw floor(2^bits N) is added to
    each entry, and the public unit is applied last.
"""

import numpy as np

from ..accounting._events import GaussianEvent
from ._questions import GaussianNoise, NoNoise, source_of
from ._units import Units, noise_bits, record_limit

UP = 1 + 2.0**-40  # rounds a root, or a quantile of the normal law, upwards


class SumUnits(Units):
    """Units of sums that are released once: from public numbers alone, with the plan.

    A kind of sum states its sensitivity, its `question`, and how a noisy answer is decoded.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent, of one release; or a NonPrivateEvent, where that may be.
    sensitivity : float
        How far neighbours move the sums, in the euclidean norm, before they are in units.
    slack : float, default=0
        How many units farther rounding may move them.
    n_samples, n_normalizer, width : as of Units

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or the numbers are outside of what is proved.
    """

    what = "sums"
    paid_by = GaussianEvent
    exact_units = 0  # of a one in a NonPrivateEvent; 0 refuses it

    def __init__(self, event, sensitivity, *, slack=0.0, **numbers):
        super().__init__(event, **numbers)
        if self.noiseless and self.exact_units:
            self.bits, self.units = None, self.exact_units
            return
        self.sensitivity = sensitivity
        z = self._only(self.paid_by, count=1).noise_multiplier
        self.bits, self.units = self._grid(z, slack)

    def _grid(self, noise_multiplier, slack):
        """Bits of the noise, and units of a one."""
        bits = noise_bits(noise_multiplier, self.sensitivity, self.n_normalizer, self.n_samples, 1)
        return bits, int(record_limit(bits, noise_multiplier, self.sensitivity, 1, slack))

    @property
    def noise(self):
        """The mechanism that makes a released answer of an exact one."""
        if self.noiseless:
            return NoNoise()
        return GaussianNoise(self.bits, self.event.releases[0].noise_multiplier)

    @property
    def noise_std(self):
        """Standard deviation of the noise of a sum."""
        return 0.0 if self.noiseless else 2.0**self.bits / self.units

    def question(self, *public):
        """The question about records, from numbers that are public or were released before."""
        raise NotImplementedError

    def decode(self, noisy, *public):
        """Turn the noisy answer to that question into what is released: by default sums in ones."""
        return (noisy if self.noiseless else middles(noisy)) / self.units


class Oracle:
    """Redeems a receipt, and counts down the releases that it pays for.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : Units
    place : Place, default=None
        Where the records lie; None where they are summed elsewhere.
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    fit_intercept : bool, default=False
        Whether the units have a column more than the place.
    """

    def __init__(self, receipt, units, place=None, *, key=None, fit_intercept=False):
        self._place = units.redeem(receipt, place, fit_intercept)
        self._units, self._source = units, source_of(key)
        self._left = units.counts  # releases that are paid for and not made, by their names

    def release(self, *public):
        """The one release of such units; see their `question` and `decode`.

        Raises
        ------
        RuntimeError
            If it was made before; nothing is drawn then.
        """
        units = self._units
        question = units.question(*public)
        self._count_down(units.what)
        return units.decode(self._source.release(self._place, question, units.noise), *public)

    def _count_down(self, what, count=1):
        """Raise a RuntimeError if fewer releases are left; nothing is drawn then."""
        if count > self._left[what]:
            raise RuntimeError(
                f"{what} are not paid for, or were released: {self._left[what]} are left, and "
                f"{count} asked for"
            )
        self._left[what] -= count

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")


def middles(noisy):
    """Noisy integers as the middles of the cells that floors leave."""
    return noisy.astype(np.float64) + 0.5


def out_of_range(noise_multiplier, of="that the integer grid supports", remedy="change epsilon"):
    """The error where no integer grid suits the noise."""
    return ValueError(f"noise multiplier {noise_multiplier:g} is out of the range {of}; {remedy}")
