"""Sums over records in public cells, with Gaussian noise: squares, counts, means, running counts.

Mean squares of columns, and their means, are the smoothness of a fit.

(a) *Squares* are of public cells: a number counts as the middle of the linear cell that it lies in,
    so sums follow from numbers of records in cells, which every layout has.
(b) No row is scaled down. The squares of a record within its bounds lie in [0, 1]^p, and neighbours
    differ by sqrt(p) at most, under both relations: squares are never negative. A shorter norm
    would pay only below sqrt(p / 2), where it cuts heavy rows, and M_j that are too small make
    steps too long.
(c) *Means* are released beside them as halves, x / 2: so they cost an eighth more noise.
(d) The sensitivity is written here, once. Proof: ``proofs/release_mean_squares.md``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from ..sums._counts import N_LINEAR
from ._gaussian_sum import UP, SumOracle, SumUnits, out_of_range
from ._questions import Question

# Two kilobytes of cells a column are held at once.
MOST_COLUMNS = 2**14
_UP_OF_SQUARES = 1 + 2.0**-50  # of a rounded root


def squares_sensitivity(n_columns, with_means):
    """How far one record moves sums of squares in [0, 1], in the euclidean norm.

    And those of halves of numbers in [-1, 1]: max (x - y)² (1/4 + (x + y)²) is 1.28615.
    """
    return math.sqrt(n_columns * (1.2862 if with_means else 1.0)) * _UP_OF_SQUARES


@dataclass(frozen=True, eq=False)
class SumsOfCells(Question):
    """For each column sums of the whole numbers that a record in a cell of `lo` to `hi` adds."""

    lo: np.ndarray
    hi: np.ndarray
    added: tuple  # arrays of shape (n_columns, 256), or a number: one for each sum

    def answer(self, place):
        counts = place.counts("features", edges=edges_of_cells(self.lo, self.hi))
        return np.array([(counts * one).sum(axis=1) for one in self.added])


class ColumnSumUnits(SumUnits):
    """Units of sums of each of so many columns: from 1 to MOST_COLUMNS."""

    def __init__(self, event, sensitivity, *, n_columns, **numbers):
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"{self.what} are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        super().__init__(event, sensitivity, width=n_columns, **numbers)
        if self.units < 1:
            (release,) = event.releases
            of = f"of {self.what} of {n_columns:,} columns"
            raise out_of_range(release.noise_multiplier, of)


class SmoothnessUnits(ColumnSumUnits):
    """Units of mean squares, and of means if `with_means`."""

    what = "mean squares"

    def __init__(self, event, *, n_columns, with_means, **numbers):
        self.with_means = with_means
        # squares and halves are rounded: an entry of two records differs by one more at most
        slack = math.sqrt(2 * n_columns) * _UP_OF_SQUARES if with_means else 0.0
        sensitivity = squares_sensitivity(n_columns, with_means)
        super().__init__(event, sensitivity, slack=slack, n_columns=n_columns, **numbers)

    @property
    def noise_std(self):
        """Standard deviation of a released mean square, and half of that of a mean."""
        return super().noise_std / self.n_normalizer


class SmoothnessOracle(SumOracle):
    """Releases mean squares of all columns of records as they are, once."""

    def release_mean_squares(self, lo, hi, center, half_width):
        """Noisy moments of columns around a centre, whatever the weights of records.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public: what lies outside counts as if it lay there, and all that is between as the
            middle of the 256th part that it lies in.
        center, half_width : float64 arrays of shape (n_columns,)
            Public. Numbers are in half-widths, and cut to [-1, 1].

        Returns
        -------
        mean_squares : ndarray of shape (n_columns,)
            Any real numbers.
        means : ndarray of shape (n_columns,) or None
            If they are paid for; of the numbers that the squares are of.
        """
        units = self._units
        added = units_of_cells(lo, hi, center, half_width, units.units)[: 1 + units.with_means]
        noisy = self._release(SumsOfCells(lo, hi, tuple(added)))
        squares, *halves = noisy / units.units / units.n_normalizer
        return squares, 2 * halves[0] if halves else None


def units_of_cells(lo, hi, center, half_width, most):
    """The units that a record in a cell counts for, a column a row: its square, and half of itself.

    In units, of which `most` are a one.
    """
    parts = (np.arange(N_LINEAR) + 0.5) / N_LINEAR
    with np.errstate(all="ignore"):
        middles = lo[:, np.newaxis] + (hi - lo)[:, np.newaxis] * parts - center[:, np.newaxis]
        numbers = np.nan_to_num(middles / half_width[:, np.newaxis]).clip(-1.0, 1.0)
    return [np.rint(most * of).astype(np.int64) for of in (numbers**2, numbers / 2)]


def edges_of_cells(lo, hi):
    """Ends of cells; of a column without width they are somewhere, since all cells are alike."""
    with np.errstate(all="ignore"):
        has_width = np.isfinite(N_LINEAR / (hi - lo))
    return lo, np.where(has_width, hi, lo + np.maximum(np.abs(lo), 1.0))


# ---- Numbers of records of each class, or within bounds, with Gaussian noise ---------------------
#
# Proofs: ``proofs/release_counts.md``, ``proofs/release_outside.md``.

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
    """Units of counts of 2 to 256 classes."""

    what = "counts"

    def __init__(self, event, *, n_classes, n_samples, n_normalizer):
        if not 2 <= n_classes <= N_LINEAR:
            raise ValueError(f"counts are of 2 to {N_LINEAR} classes, got {n_classes}")
        self.n_classes = n_classes
        sensitivity = count_sensitivity(n_classes, event.neighboring)
        super().__init__(event, sensitivity, n_samples=n_samples, n_normalizer=n_normalizer)


class CountOracle(SumOracle):
    """Releases the counts of classes, once; targets are numbers of classes."""

    def release_counts(self):
        """Noisy numbers of records, whatever their weights.

        Returns
        -------
        counts : ndarray of shape (1,) or (n_classes,)
            That of class 1 alone if there are two; any real numbers.
        """
        return self._counts("target", _EDGES)

    def _counts(self, of, edges):
        n_classes, units = self._units.n_classes, self._units.units
        return self._release(ClassCounts(of, edges, n_classes, units)) / units


class OutsideOracle(CountOracle):
    """Releases how many records lie outside of public bounds, once: the second of two classes.

    The bounds are a pair (lo, hi) of arrays, as of `count_outside`.
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
        """
        (count,) = self._counts("outside", self._bounds)
        return float(count)


# ---- Means of columns over the records that have a value there, with Gaussian noise --------------
#
# (a) A record adds its number, cut to the bounds, and a one to how many have a value; where its
#     cell is missing it adds nothing. Both sums are released, for their quotient.
# (b) A number counts as the middle of the linear cell that it lies in, as for mean squares.
# (c) The sensitivity is written here, once. Proof: ``proofs/release_present_means.md``.


def present_sensitivity(n_columns, neighboring):
    """How far one record moves sums of numbers in [-1, 1], and of ones, in the euclidean norm.

    Of one column by 2, from one end to the other, or by sqrt(2), from an end to a missing cell.
    """
    return math.sqrt({"replace_one": 4, "add_remove": 2}[neighboring] * n_columns) * UP


class PresentSums(SumsOfCells):
    """Sums of what is present, and how many are."""


class PresentUnits(ColumnSumUnits):
    """Units of sums of what is present, and of how many are."""

    what = "means of what is present"

    def __init__(self, event, *, n_columns, **numbers):
        sensitivity = present_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, n_columns=n_columns, **numbers)


class PresentOracle(SumOracle):
    """Releases means of what is present, once; counts of the place leave out what is missing."""

    def release_present_means(self, lo, hi):
        """Noisy means within bounds, of all columns.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public, or released before: what lies outside counts as if it lay there.

        Returns
        -------
        means : ndarray of shape (n_columns,)
            Within the bounds; the middle where hardly anything is present.
        """
        units = self._units
        center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2
        # twice the halves
        _, numbers = units_of_cells(lo, hi, center, half_width, 2 * units.units)
        total, present = self._release(PresentSums(lo, hi, (numbers, units.units)))
        # of fewer than the noise nobody knows how few they are
        present = np.maximum(present, 2.0**units.bits)
        return np.clip(center + half_width * np.clip(total / present, -1.0, 1.0), lo, hi)


# ---- Running counts of cells of all columns at once: how many records lie below each edge --------
#
# (a) What is counted is not the cells, whose noise would add up, nor the running counts, which one
#     record moves all of: it is their half-way point. With R the matrix of running sums, lower
#     triangular ones, and A its square root, A A = R, noise is added to A h, h the counts of cells,
#     and A maps the result on.
# (b) A is Toeplitz: lag k has c_k = binomial(2k, k) / 4^k, so a record adds c_0, c_1, ... to the
#     entries from its cell on, rounded to units.
# (c) The sensitivity is written here, once. Proof: ``proofs/release_running_counts.md``.

_LAGS = np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, N_LINEAR)))
_ROOT = np.tril(toeplitz(_LAGS))  # A
# Largest distance of two columns of A, and the largest norm of one, rounded upwards.
_APART, _LONGEST = 2.1308, 1.6826
# How much of the noise of the last running count, which is of all records, others have.
_WITH_ALL = _ROOT @ _ROOT[-1] / (_ROOT[-1] @ _ROOT[-1])


def running_sensitivity(n_columns, neighboring):
    """How far one record moves A h, h the counts of cells, in the euclidean norm."""
    of_one = {"replace_one": _APART, "add_remove": _LONGEST}[neighboring]
    return of_one * math.sqrt(n_columns) * UP


def halfway(running):
    """A h with its noise, which running counts of some columns were made of."""
    return solve_triangular(_ROOT, np.transpose(running), lower=True).T


@dataclass(frozen=True, eq=False)
class HalfwayCounts(Question):
    """A h in units, h the counts of the cells of `lo` to `hi`, for each column."""

    lo: np.ndarray
    hi: np.ndarray
    units: int

    def answer(self, place):
        counts = place.counts("features", edges=edges_of_cells(self.lo, self.hi))
        return counts @ np.rint(self.units * _ROOT).astype(np.int64).T


class RunningUnits(ColumnSumUnits):
    """Units of running counts."""

    what = "running counts"

    def __init__(self, event, *, n_columns, **numbers):
        # an entry is rounded by a half, that of two records by one more
        slack = math.sqrt(N_LINEAR * n_columns) * UP
        sensitivity = running_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, slack=slack, n_columns=n_columns, **numbers)


class RunningOracle(SumOracle):
    """Releases running counts of cells of records as they are, once."""

    def release_running_counts(self, lo, hi, n_known=None):
        """How many records lie below the upper edge of each cell, with noise.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public, or released before; between them lie 256 equal cells, the first and the last
            one of which hold all that is farther out.
        n_known : int, default=None
            How many records there are, where that is public.

        Returns
        -------
        counts : ndarray of shape (n_columns, 256)
            Any real numbers, in any order. The last one of a column is how many records there are.
        """
        units = self._units.units
        running = self._release(HalfwayCounts(lo, hi, units)) / units @ _ROOT.T
        if n_known is not None:  # what the last one is off by, the others are likely off by too
            running -= np.outer(running[:, -1] - n_known, _WITH_ALL)
        return running
