"""Sums over records that are released once, with Gaussian noise.

Counts, squares and scores are such sums: they differ in what a record adds and in the sensitivity,
which each of them writes once. Sums are of integers, so they are exact in any order; one exact draw
floor(2^bits N) is added to each entry, and the public unit is applied last.
"""

import numpy as np

from ..accounting._events import GaussianEvent
from ._grid import noise_bits, record_limit
from ._questions import GaussianNoise, NoNoise, source_of
from ._units import Units


class SumUnits(Units):
    """Noise and units of such sums: from public numbers alone, with the plan.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent, of one release.
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

    def __init__(self, event, sensitivity, *, slack=0.0, **numbers):
        super().__init__(event, **numbers)
        release = self._only(self.paid_by, self.what)
        if release.count != 1:
            raise ValueError(f"{self.what} are released once, not as {event}")
        self.sensitivity = sensitivity
        self.bits, self.units = self._grid(release.noise_multiplier, slack)

    def _grid(self, noise_multiplier, slack):
        """Bits of the noise, and units of a one."""
        bits = noise_bits(
            noise_multiplier, self.sensitivity, self.n_normalizer, self.n_samples, 1
        )  # fmt: skip
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
        return 2.0**self.bits / self.units


class SumOracle:
    """Releases such sums, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : SumUnits
    place : Place, default=None
        Where the records lie; None where they are summed elsewhere.
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, place=None, *, key=None):
        units.redeem(receipt, place)
        self._units, self._place, self._source, self._left = units, place, source_of(key), 1

    def _release(self, question):
        """The answer with noise, the first time."""
        noise = self._spent()
        noisy = self._source.release(self._place, question, noise)
        return middles(noisy) if isinstance(noise, GaussianNoise) else noisy

    def _spent(self):
        """The mechanism, the first time."""
        if not self._left:
            raise RuntimeError(f"{self._units.what} were paid for once")
        self._left = 0
        return self._units.noise

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")


def middles(noisy):
    """Noisy integers as the middles of the cells that floors leave."""
    return noisy.astype(np.float64) + 0.5


def out_of_range(noise_multiplier, of):
    """The error where no integer grid suits the noise."""
    return ValueError(
        f"noise multiplier {noise_multiplier:g} is out of the range {of}; change epsilon"
    )
