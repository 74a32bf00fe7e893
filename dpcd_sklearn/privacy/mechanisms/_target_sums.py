"""Sums of the target over the records of each category, of all columns at once.

(a) Of numbers in [-1, 1] their sum and how many there are; of classes how many there are of each.
(b) A record lies in one group of each column, and in one fold by its row number: so sums of folds
    cost what sums of all cost.
(c) The sensitivity is written here, once. Proof: ``proofs/release_target_sums.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ._gaussian_sum import SumOracle, SumUnits
from ._questions import Question
from ._units import Units

_UP = 1 + 2.0**-40  # of a rounded root


def target_sensitivity(n_columns, n_classes, neighboring):
    """How far one record moves the sums, in the euclidean norm; 0 classes are numbers.

    A record of a number moves a sum by 2, from one end to the other, or leaves a sum and a number
    of records and enters another pair of them.
    """
    of_one = 1 if n_classes else 2
    return math.sqrt({"replace_one": 2, "add_remove": 1}[neighboring] * of_one * n_columns) * _UP


@dataclass(frozen=True, eq=False)
class GroupSums(Question):
    """Sums of the target of all groups of all columns, as one vector."""

    units: int

    def answer(self, place):
        return np.concatenate([sums.ravel() for sums in place.group_sums(self.units)])


class TargetUnits(SumUnits):
    """Units of sums of the target.

    Parameters
    ----------
    event, n_samples, n_normalizer : as of SumUnits
        Or one NonPrivateEvent.
    n_columns : int, >= 1
    n_classes : int
        0 for numbers.
    """

    what = "sums of the target"

    def __init__(self, event, *, n_columns, n_classes, n_samples, n_normalizer):
        if n_columns < 1:
            raise ValueError(f"{self.what} are of one column at least, got {n_columns}")
        sizes = {"n_samples": n_samples, "n_normalizer": n_normalizer}
        Units.__init__(self, event, width=n_columns, **sizes)
        if self.noiseless:
            self.bits, self.units = None, 2**20
            return
        sensitivity = target_sensitivity(n_columns, n_classes, event.neighboring)
        super().__init__(event, sensitivity, width=n_columns, **sizes)

    @property
    def noise_std(self):
        """Standard deviation of the noise of a sum."""
        return 0.0 if self.noiseless else super().noise_std


class TargetOracle(SumOracle):
    """Releases sums of the target, once.

    Parameters
    ----------
    receipt, units, key : as of SumOracle
        TargetUnits.
    place : GroupPlace
    """

    def release_target_sums(self):
        """Noisy sums of each fold and group.

        Returns
        -------
        list of float64 ndarrays
            As of `GroupPlace.group_sums`, in ones.

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        units, shapes = self._units.units, self._place.shapes
        noisy = self._release(GroupSums(units)) / units
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = np.split(noisy, ends)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
