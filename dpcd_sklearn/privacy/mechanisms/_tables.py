"""Releases about whole tables: categories, sums of the target, best columns, second moments.

Categories that enough records have are named, in all columns at once, with noisy counts.

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

from ...losses import SquaredLoss
from ..accounting._events import CoveredEvent, GaussianEvent, SelectionEvent
from ..sums._tables import ONE
from ._curvature_units import SquareUnits
from ._gaussian_sum import UP, SumUnits
from ._quantiles import checked_range
from ._questions import Choices, GaussianNoise, Gram, NoNoise, Question
from ._units import GUMBEL_ROUNDING, Units


def partition_sensitivity(n_columns, neighboring):
    """How far one record moves the counts that both neighbours have, in the euclidean norm.

    A record that is replaced leaves one count of a column and enters another one.
    """
    return math.sqrt({"replace_one": 2, "add_remove": 1}[neighboring] * n_columns) * UP


@dataclass(frozen=True, eq=False)
class CategoryCounts(Question):
    """Records of each category: for each column pairs, in the order of categories."""

    name = "counts of categories"

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
    exact_units, least = 1, 0

    def __init__(self, event, *, n_columns, **numbers):
        self.n_columns = n_columns
        if n_columns < 1:
            raise ValueError(f"categories are of one column at least, got {n_columns}")
        sensitivity = partition_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, **numbers)
        if self.noiseless:
            return
        # a count of one, with noise, is at least this with a probability of spare / n_columns
        spare = event.releases[0].spare
        if not (1e-300 < spare / n_columns and spare <= 1):
            raise ValueError(f"a probability above 1e-300 may name one record, got {spare!r}")
        reach = -float(ndtri(min(spare / n_columns, 0.5))) * UP
        self.least = self.units + math.ceil(2.0**self.bits * reach)

    @property
    def noise(self):
        return NamedCounts(super().noise, self.units, self.least)

    @property
    def threshold(self):
        """The noisy count that a category is named from."""
        return self.least / self.units

    def question(self):
        """About a CategoryPlace."""
        return CategoryCounts()

    def decode(self, named):
        """For each column categories of enough records and noisy numbers of them, in order."""
        return named


# ---- Sums of the target over the records of each category, of all columns at once ----------------
#
# (a) Of numbers in [-1, 1] their sum and how many there are; of classes how many there are of each.
# (b) A record lies in one group of each column, and in one fold by its row number: so sums of folds
#     cost what sums of all cost.
# (c) The sensitivity is written here, once. Proof: ``proofs/release_target_sums.md``.


def target_sensitivity(n_columns, n_classes, neighboring):
    """How far one record moves the sums, in the euclidean norm; 0 classes are numbers.

    A record of a number moves a sum by 2, from one end to the other, or leaves a sum and a number
    of records and enters another pair of them.
    """
    of_one = 1 if n_classes else 2
    return math.sqrt({"replace_one": 2, "add_remove": 1}[neighboring] * of_one * n_columns) * UP


@dataclass(frozen=True, eq=False)
class GroupSums(Question):
    """Sums of the target of all groups of all columns, as one vector."""

    units: int
    name = "sums of the target"

    def answer(self, place):
        return np.concatenate([sums.ravel() for sums in place.group_sums(self.units)])


class TargetUnits(SumUnits):
    """Units of sums of the target, or of a NonPrivateEvent; `n_classes` is 0 for numbers."""

    what = "sums of the target"
    exact_units = 2**20

    def __init__(self, event, *, n_columns, n_classes, **numbers):
        if n_columns < 1:
            raise ValueError(f"{self.what} are of one column at least, got {n_columns}")
        sensitivity = target_sensitivity(n_columns, n_classes, event.neighboring)
        super().__init__(event, sensitivity, width=n_columns, **numbers)

    def question(self, shapes):
        """About the sums of each fold and group of a GroupPlace, of these shapes."""
        return GroupSums(self.units)

    def decode(self, noisy, shapes):
        """A list of float64 arrays, as of `GroupPlace.group_sums`, in ones."""
        parts = np.split(super().decode(noisy), np.cumsum([math.prod(s) for s in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


# ---- The columns that go best with the target: k choices by one draw of Gumbel noise -------------
#
# (a) The score of a column is the length of its sum of products with the target, less the target's
#     mean, which was released before: |Σ x (y - m)| of numbers, Σ_k |Σ x ([y = k] - m_k)| of
#     classes.
# (b) The k largest noisy scores are k choices without replacement (Luce's axiom), as in
#     ``release_argmax``; the scores do not leave.
# (c) The sensitivity is written here, once. Proof: ``proofs/release_columns.md``.

MOST_CLASSES = 256


def columns_sensitivity(n_classes, neighboring):
    """How far one record moves the score of a column, in units; 0 classes are a number."""
    of_one = 2 * ONE if n_classes else ONE
    return {"replace_one": 2, "add_remove": 1}[neighboring] * of_one + 2  # for rounding


@dataclass(frozen=True, eq=False)
class ColumnScores(Question):
    """For each column the length of its sum of products with the target, less the target's mean."""

    means: np.ndarray
    target_bounds: tuple | None
    name = "choices of columns"

    def answer(self, place):
        if self.target_bounds is None:
            shares = np.maximum(self.means, 0.0)
            whole = math.fsum(shares)
            shares = shares / whole if whole > 0 else np.full(len(shares), 1 / len(shares))
            sums = place.by_class()
            sums = sums - shares[:, np.newaxis] * sums.sum(axis=0)
        else:
            lo, hi = self.target_bounds
            mean = float(np.clip(self.means[0], lo, hi))
            sums = place.products(mean, max(hi - mean, mean - lo))
        return np.rint(np.abs(sums).sum(axis=0)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ColumnChoices(Choices):
    """Chooses the columns of the largest scores: options are columns, of one row."""

    eta: float | None
    noise_scale: float
    count: int

    def tables(self, exact):
        return [exact[np.newaxis] / self.noise_scale]


class ColumnUnits(Units):
    """Noise of choices of columns.

    Parameters
    ----------
    event : FitEvent
        One SelectionEvent of as many choices as columns are chosen, or a NonPrivateEvent.
    n_samples, n_normalizer, width : as of Units
    n_chosen : int
        At most the width.
    n_classes : int
        Of the target; 0 is a number.
    """

    what = "choices of columns"

    def __init__(self, event, *, n_chosen, n_classes, width, **numbers):
        super().__init__(event, width=width, **numbers)
        self.n_classes = n_classes
        if not 1 <= n_chosen <= width:
            raise ValueError(f"k={n_chosen} columns can't be chosen of {width}; lower k")
        self.refuse_more_than(2**28)
        if not 0 <= n_classes <= MOST_CLASSES:
            raise ValueError(f"columns are chosen by {MOST_CLASSES} classes at most")
        self.noise = ColumnChoices(None, 1.0, n_chosen)
        if not self.noiseless:
            eta = checked_range(self._only(SelectionEvent, count=n_chosen))
            sensitivity = columns_sensitivity(n_classes, event.neighboring)
            self.noise = ColumnChoices(eta, 2 * sensitivity / eta * GUMBEL_ROUNDING, n_chosen)

    def question(self, means, target_bounds=None):
        """About the columns of a TargetPlace.

        Parameters
        ----------
        means : float64 ndarray of shape (n_targets,)
            Public, or released before: of the number, or shares of the classes.
        target_bounds : pair (lo, hi) of float, default=None
            Public bounds of a number; None is classes.
        """
        if self.n_classes != (len(means) if target_bounds is None else 0):
            raise ValueError(f"the units are of {self.n_classes} classes, not {len(means)}")
        return ColumnScores(means, target_bounds)

    def decode(self, chosen, *public):
        """The columns of the largest noisy scores, the best first."""
        return chosen[0]


# ---- Second moments of rows alone, with Gaussian noise -------------------------------------------
#
# They are a curvature of the squared loss, and no more. Sensitivities are in ``_curvature_units``.
# Proof: ``proofs/release_curvature.md``.


class SecondMomentUnits(SquareUnits):
    """Units of one matrix of second moments.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent of one release, or a NonPrivateEvent.
    n_samples, n_normalizer : as of Units
    n_features : int
    row_norm : float
        Rows are clipped to it, their constant included.
    constant : float, > 0
        What stands behind the features of each row; below `row_norm`.
    """

    what = "second moments"

    def __init__(self, event, *, n_samples, n_normalizer, n_features, row_norm, constant):
        if not 1e-9 < constant < row_norm < 1e9:
            raise ValueError(f"rows are clipped to a norm above {constant:g} and below 1e9")
        smoothness = np.append(np.ones(n_features), constant**-2.0)
        super().__init__(
            event, n_samples=n_samples, smoothness=smoothness, n_normalizer=n_normalizer
        )
        self.row_norm, self.constant = row_norm, constant
        self.noise, self.row_units = NoNoise(), 0
        if self.noiseless:
            return
        release = self._only(GaussianEvent, count=1)
        self.noise, self.row_units = self.matrix_grid(release.noise_multiplier)

    def redeem(self, receipt, place, fit_intercept=True):
        """As of Units; the place has bounds and a centre."""
        super().redeem(receipt, place, fit_intercept=True)
        return place.second_order(SquaredLoss(), self.smoothness, fit_intercept=True)

    def question(self):
        """About rows that are clipped to the norm."""
        return Gram(self.row_norm, float(self.row_units))

    def decode(self, noisy):
        """Noisy means of products of features, and of features times the constant: a matrix."""
        return self.noisy_mean(noisy, self.row_norm, self.row_units)
