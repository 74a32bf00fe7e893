"""Numbers of records of each class, or within bounds, with Gaussian noise.

Proof: ``proofs/release_counts.md``.
"""

import math

import numpy as np

from ._grid cimport noise_bits, record_limit

from ..accounting._events import GaussianEvent
from ..noise._noise import NoiseSource
from ..sums._counts import N_LINEAR

# Class k is the k-th of the linear cells, which are one wide.
_EDGES = np.array([-0.5]), np.array([N_LINEAR - 0.5])


class CountUnits:
    """Noise and units of released counts: from public numbers alone, with the plan.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent, of one release.
    n_classes : int, from 2 to 256
    n_samples : int
        Number of records. Nothing depends on it but the refusal of more than are promised.
    n_normalizer : int
        Public number of records: n, or n_public under add_remove.

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_classes, n_samples, n_normalizer):
        if len(event.releases) != 1 or not isinstance(event.releases[0], GaussianEvent):
            raise TypeError(f"counts are paid for by one GaussianEvent, not by {event}")
        if event.releases[0].count != 1:
            raise ValueError(f"counts are released once, not as {event}")
        if not 2 <= n_classes <= N_LINEAR:
            raise ValueError(f"counts are of 2 to {N_LINEAR} classes, got {n_classes}")
        self.event, self.n_classes, self.n_samples = event, n_classes, n_samples
        self.n_normalizer = n_normalizer
        z = event.releases[0].noise_multiplier
        self.sensitivity = count_sensitivity(n_classes, event.neighboring)
        self.bits = noise_bits(z, self.sensitivity, n_normalizer, n_samples, 1)
        self.units = int(record_limit(self.bits, z, self.sensitivity, 1))  # of one record

    @property
    def noise_std(self):
        """Standard deviation of a released count, in records."""
        return 2.0**self.bits / self.units


def count_sensitivity(n_classes, neighboring):
    """How far one record moves the counts, in the euclidean norm.

    Of two classes one count is released. A record that is replaced leaves one of several counts
    and enters another one.
    """
    return math.sqrt(2) if n_classes > 2 and neighboring == "replace_one" else 1.0


class CountOracle:
    """Releases the counts of classes, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : CountUnits
    place : Place
        Where the records lie. Targets are numbers of classes.
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, place, *, key=None):
        if place.n_samples != units.n_samples:
            raise ValueError(f"the units are of {units.n_samples} records, not {place.n_samples}")
        receipt.redeem(units.event)
        self._units, self._place, self._noise, self._left = units, place, NoiseSource(key), 1

    def release_counts(self):
        """Noisy numbers of records, whatever their weights.

        Returns
        -------
        counts : ndarray of shape (1,) or (n_classes,)
            That of class 1 alone if there are two; any real numbers.

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        if not self._left:
            raise RuntimeError("counts were paid for once")
        self._left = 0
        units = self._units
        counts = self._counts()
        counts = counts[1:2] if units.n_classes == 2 else counts[: units.n_classes]
        noisy = counts * units.units + self._noise.gaussians(len(counts), units.bits)
        return (noisy + 0.5) / units.units

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")

    def _counts(self):
        return self._place.counts("target", edges=_EDGES)[0]


class OutsideOracle(CountOracle):
    """Releases how many records lie outside of bounds, once: of two classes, within and outside.

    Parameters
    ----------
    receipt, units, place, key : as of CountOracle
        Units of two classes.
    bounds : pair (lo, hi) of arrays
        Public; see `count_outside`.
    """

    def __init__(self, receipt, units, place, *, bounds, key=None):
        if units.n_classes != 2:
            raise ValueError("a record lies within bounds or not: two classes")
        super().__init__(receipt, units, place, key=key)
        self._bounds = bounds

    def release_outside(self):
        """The noisy number of records outside.

        Returns
        -------
        count : float

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        (count,) = self.release_counts()
        return float(count)

    def _counts(self):
        return self._place.counts("outside", edges=self._bounds)[0]
