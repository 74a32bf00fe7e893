"""Numbers of records of each class, or within bounds, with Gaussian noise.

Proofs: ``proofs/release_counts.md``, ``proofs/release_outside.md``.
"""

import math

import numpy as np

from ..sums._counts import N_LINEAR
from ._gaussian_sum import SumOracle, SumUnits, with_noise

# Class k is the k-th of the linear cells, which are one wide.
_EDGES = np.array([-0.5]), np.array([N_LINEAR - 0.5])


def count_sensitivity(n_classes, neighboring):
    """How far one record moves the counts, in the euclidean norm.

    Of two classes one count is released. A record that is replaced leaves one of several counts
    and enters another one.
    """
    return math.sqrt(2) if n_classes > 2 and neighboring == "replace_one" else 1.0


class CountUnits(SumUnits):
    """Units of counts.

    Parameters
    ----------
    event, n_samples, n_normalizer : as of SumUnits
    n_classes : int, from 2 to 256
    """

    what = "counts"

    def __init__(self, event, *, n_classes, n_samples, n_normalizer):
        if not 2 <= n_classes <= N_LINEAR:
            raise ValueError(f"counts are of 2 to {N_LINEAR} classes, got {n_classes}")
        self.n_classes = n_classes
        sensitivity = count_sensitivity(n_classes, event.neighboring)
        super().__init__(event, sensitivity, n_samples=n_samples, n_normalizer=n_normalizer)


class CountOracle(SumOracle):
    """Releases the counts of classes, once.

    Parameters
    ----------
    receipt, units, place, key : as of SumOracle
        CountUnits; targets are numbers of classes.
    """

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
        self._spend()
        units = self._units
        counts = self._counts()
        counts = counts[1:2] if units.n_classes == 2 else counts[: units.n_classes]
        return with_noise(self._noise, counts * units.units, units.bits) / units.units

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
