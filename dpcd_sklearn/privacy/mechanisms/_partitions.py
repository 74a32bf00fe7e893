"""Categories that enough records have, of all columns at once: with their noisy numbers of records.

(a) The numbers get Gaussian noise. What no record has is never looked at, and what has noise below
    a threshold is never named: the threshold is such that a category of one record alone is named
    with a small probability, which is charged.
(b) A record has one category in each column, so it moves as many counts as there are columns.
(c) The sensitivity and the threshold are written here, once. Proof:
    ``proofs/release_categories.md``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..accounting._events import CoveredEvent, NonPrivateEvent
from ._gaussian_sum import SumOracle, SumUnits
from ._questions import GaussianNoise, NoNoise, Question
from ._units import Units

_UP = 1 + 2.0**-40  # of a rounded root, and of a quantile of the normal law


def partition_sensitivity(n_columns, neighboring):
    """How far one record moves the counts that both neighbours have, in the euclidean norm.

    A record that is replaced leaves one count of a column and enters another one.
    """
    return math.sqrt({"replace_one": 2, "add_remove": 1}[neighboring] * n_columns) * _UP


@dataclass(frozen=True, eq=False)
class CategoryCounts(Question):
    """Records of each category: for each column pairs, in the order of categories."""

    def answer(self, place):
        return place.category_counts()


@dataclass(frozen=True, eq=False)
class NamedCounts:
    """Names the categories whose count with noise passes a threshold, with that count."""

    noise: GaussianNoise | NoNoise
    units: int
    least: int
    count = 1

    def release(self, exact, noise):
        return [self._named(counts, noise) for counts in exact]

    def _named(self, counts, noise):
        categories = [category for category, _ in counts]
        exact = np.array([number for _, number in counts], dtype=np.int64) * self.units
        noisy = self.noise.release(exact, noise).astype(np.float64)
        if isinstance(self.noise, NoNoise):
            return tuple(categories), noisy / self.units
        noisy += 0.5  # the middle of what a floor leaves
        named = np.flatnonzero(noisy > self.least)  # of floors, which have a half more: >=
        return tuple(categories[i] for i in named), noisy[named] / self.units

    def excess(self, exact, neighbour):
        """As of GaussianNoise, where both have a category; infinite where one has two records."""
        before, after = [], []
        for one, other in zip(map(dict, exact), map(dict, neighbour), strict=True):
            if any((one | other)[lone] > 1 for lone in set(one) ^ set(other)):
                return math.inf
            both = [category for category in one if category in other]
            before += [self.units * one[category] for category in both]
            after += [self.units * other[category] for category in both]
        return self.noise.excess(np.array(before), np.array(after))


class PartitionUnits(SumUnits):
    """Units of counts of categories, and the threshold.

    Parameters
    ----------
    event : FitEvent
        One CoveredEvent, of one release; or a NonPrivateEvent, where all categories are named.
    n_columns : int, >= 1
    n_samples, n_normalizer : as of SumUnits
    """

    what = "categories"
    paid_by = CoveredEvent

    def __init__(self, event, *, n_columns, n_samples, n_normalizer):
        self.n_columns = n_columns
        if event.releases == (NonPrivateEvent(),):
            Units.__init__(self, event, n_samples=n_samples, n_normalizer=n_normalizer)
            self.bits, self.units, self.least = None, 1, 0
            return
        if n_columns < 1:
            raise ValueError(f"categories are of one column at least, got {n_columns}")
        sensitivity = partition_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, n_samples=n_samples, n_normalizer=n_normalizer)
        # a count of one, with noise, is at least this with a probability of spare / n_columns
        spare = event.releases[0].spare
        if not (1e-300 < spare / n_columns and spare <= 1):
            raise ValueError(f"a probability above 1e-300 may name one record, got {spare!r}")
        reach = -float(ndtri(min(spare / n_columns, 0.5))) * _UP
        self.least = self.units + math.ceil(2.0**self.bits * reach)

    @property
    def noise(self):
        return NamedCounts(super().noise, self.units, self.least)

    @property
    def threshold(self):
        """The noisy count that a category is named from."""
        return self.least / self.units


class PartitionOracle(SumOracle):
    """Names categories and their numbers of records, once.

    Parameters
    ----------
    receipt, units, key : as of SumOracle
        PartitionUnits.
    place : CategoryPlace
    """

    def release_categories(self):
        """Categories of enough records, with noisy numbers of them.

        Returns
        -------
        list of (tuple of categories, float64 ndarray of counts)
            One for each column, in the order of categories.

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        return self._release(CategoryCounts())
