"""Numbers of records of each class, or within bounds, with Gaussian noise.

Proofs: ``proofs/release_counts.md``, ``proofs/release_outside.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..sums._counts import N_LINEAR
from ._gaussian_sum import SumOracle, SumUnits
from ._questions import Question

# Class k is the k-th of the linear cells, which are one wide.
_EDGES = np.array([-0.5]), np.array([N_LINEAR - 0.5])


def count_sensitivity(n_classes, neighboring):
    """How far one record moves the counts, in the euclidean norm.

    With two classes, one count is released. With more, a record that is replaced leaves one count
    and enters another one.
    """
    return math.sqrt(2) if n_classes > 2 and neighboring == "replace_one" else 1.0


@dataclass(frozen=True, eq=False)
class ClassCounts(Question):
    """Records of each class, or within bounds and outside: of two, those of the second."""

    of: str
    edges: tuple
    n_classes: int
    units: int

    def answer(self, place):
        counts = place.counts(self.of, edges=self.edges)[0]
        counts = counts[1:2] if self.n_classes == 2 else counts[: self.n_classes]
        return counts * self.units


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
        return self._counts("target", _EDGES)

    def _counts(self, of, edges):
        n_classes, units = self._units.n_classes, self._units.units
        return self._release(ClassCounts(of, edges, n_classes, units)) / units


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
        (count,) = self._counts("outside", self._bounds)
        return float(count)
