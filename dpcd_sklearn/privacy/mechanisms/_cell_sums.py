"""Sums over records in public cells, with Gaussian noise: squares, counts, means, running counts.

(a) Each of them is one question: for each column, sums of the whole numbers that a record in a cell
    adds. They follow from numbers of records in cells, which every layout has.
(b) A number counts as the middle of the linear cell that it lies in.
(c) The sensitivities are written here, once, each beside its units.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import toeplitz

from ..sums._counts import N_LINEAR
from ._gaussian_sum import UP, SumUnits, out_of_range
from ._questions import Question

# Two kilobytes of cells a column are held at once.
MOST_COLUMNS = 2**14
_UP_OF_SQUARES = 1 + 2.0**-50  # of a rounded root


@dataclass(frozen=True, eq=False)
class CellSums(Question):
    """Sums over each column of the whole numbers that a record in a cell adds.

    Parameters
    ----------
    name : str
    of, edges
        As of `Place.counts`.
    added : int64 ndarray of shape (n_sums, n_columns or 1, n_cells)
        Cells beyond these add nothing. The answer has the shape (n_sums, n_columns).
    """

    name: str
    of: str
    edges: tuple
    added: np.ndarray

    def answer(self, place):
        counts = place.counts(self.of, edges=self.edges)[:, : self.added.shape[-1]]
        return np.einsum("...c,...c->...", self.added, counts)


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

    def of_columns(self, lo, hi, added):
        """The question about the cells of `lo` to `hi`."""
        return CellSums(self.what, "features", edges_of_cells(lo, hi), added)


def edges_of_cells(lo, hi):
    """Ends of cells; of a column without width they are somewhere, since all cells are alike."""
    with np.errstate(all="ignore"):
        has_width = np.isfinite(N_LINEAR / (hi - lo))
    return lo, np.where(has_width, hi, lo + np.maximum(np.abs(lo), 1.0))


def units_of_cells(lo, hi, center, half_width, most):
    """The units that a record in a cell counts for, a column a row: its square, and half of itself.

    In units, of which `most` are a one.
    """
    parts = (np.arange(N_LINEAR) + 0.5) / N_LINEAR
    with np.errstate(all="ignore"):
        middles = lo[:, np.newaxis] + (hi - lo)[:, np.newaxis] * parts - center[:, np.newaxis]
        numbers = np.nan_to_num(middles / half_width[:, np.newaxis]).clip(-1.0, 1.0)
    return [np.rint(most * of).astype(np.int64) for of in (numbers**2, numbers / 2)]


# ---- Mean squares of columns, and their means: the smoothness of a fit ---------------------------
#
# (a) No row is scaled down. The squares of a record within its bounds lie in [0, 1]^p, and
#     neighbours differ by sqrt(p) at most, under both relations: squares are never negative. A
#     shorter norm would pay only below sqrt(p / 2), where it cuts heavy rows, and M_j that are too
#     small make steps too long.
# (b) *Means* are released beside them as halves, x / 2: so they cost an eighth more noise.
#
# Proof: ``proofs/release_mean_squares.md``.


def squares_sensitivity(n_columns, with_means):
    """How far one record moves sums of squares in [0, 1], in the euclidean norm.

    And those of halves of numbers in [-1, 1]: max (x - y)² (1/4 + (x + y)²) is 1.28615.
    """
    return math.sqrt(n_columns * (1.2862 if with_means else 1.0)) * _UP_OF_SQUARES


class SmoothnessUnits(ColumnSumUnits):
    """Units of mean squares of all columns, and of means if `with_means`."""

    what = "moments of features"

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

    def question(self, lo, hi, center, half_width):
        """About records as they are, around a centre, whatever their weights.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public: what lies outside counts as if it lay there, and all that is between as the
            middle of the 256th part that it lies in.
        center, half_width : float64 arrays of shape (n_columns,)
            Public. Numbers are in half-widths, and cut to [-1, 1].
        """
        added = units_of_cells(lo, hi, center, half_width, self.units)[: 1 + self.with_means]
        return self.of_columns(lo, hi, np.stack(added))

    def decode(self, noisy, *public):
        """Mean squares, any real numbers; and the means that they are of, or None."""
        squares, *halves = super().decode(noisy) / self.n_normalizer
        return squares, 2 * halves[0] if halves else None


# ---- Numbers of records of each class, or within bounds ------------------------------------------
#
# Proofs: ``proofs/release_counts.md``, ``proofs/release_outside.md``.

# Class k is the k-th of the linear cells, which are one wide.
_EDGES = np.array([-0.5]), np.array([N_LINEAR - 0.5])


def count_sensitivity(n_classes, neighboring, n_columns=1):
    """How far one record moves the counts, in the euclidean norm.

    With two classes, one count is released. With more, a record that is replaced leaves one count
    and enters another one, in each column.
    """
    moved = 2 if n_classes > 2 and neighboring == "replace_one" else 1
    return math.sqrt(moved * n_columns) * UP


class CountUnits(SumUnits):
    """Units of counts of 2 to 256 classes, of each of so many columns."""

    what = "counts of classes"

    def __init__(self, event, *, n_classes, n_samples, n_normalizer, n_columns=1):
        if not 2 <= n_classes <= N_LINEAR:
            raise ValueError(f"counts are of 2 to {N_LINEAR} classes, got {n_classes}")
        self.n_classes, self.n_columns = n_classes, n_columns
        sensitivity = count_sensitivity(n_classes, event.neighboring, n_columns)
        super().__init__(event, sensitivity, n_samples=n_samples, n_normalizer=n_normalizer)

    def question(self, of="target", edges=_EDGES, n_cells=1):
        """Ask for the records of each class, whatever their weights; of two, of the second.

        A class has so many linear cells between `edges`, which are public or released before, as
        of `Place.counts`. By default targets are numbers of classes; records outside of bounds and
        within are two classes, of each of so many bounds.
        """
        if len(edges[0]) != self.n_columns:  # sensitivity is that of so many
            raise ValueError(f"counts are of {self.n_columns} columns, not {len(edges[0])}")
        ones = self.units * np.eye(self.n_classes, dtype=np.int64).repeat(n_cells, axis=1)
        ones = ones[1:] if self.n_classes == 2 else ones
        name = self.what if n_cells == 1 else "counts of cells"
        name = "records outside of bounds" if of == "outside" else name
        return CellSums(name, of, edges, ones[:, np.newaxis])


# ---- Means of columns over the records that have a value there -----------------------------------
#
# A record adds its number, cut to the bounds, and a one to how many have a value; where its cell is
# missing it adds nothing. Both sums are released, for their quotient.
# Proof: ``proofs/release_present_means.md``.


def present_sensitivity(n_columns, neighboring):
    """How far one record moves sums of numbers in [-1, 1], and of ones, in the euclidean norm.

    Of one column by 2, from one end to the other, or by sqrt(2), from an end to a missing cell.
    """
    return math.sqrt({"replace_one": 4, "add_remove": 2}[neighboring] * n_columns) * UP


class PresentUnits(ColumnSumUnits):
    """Units of sums of what is present, and of how many are.

    Counts of the place leave out what is missing.
    """

    what = "means of what is present"

    def __init__(self, event, *, n_columns, **numbers):
        sensitivity = present_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, n_columns=n_columns, **numbers)

    def question(self, lo, hi):
        """About numbers within bounds, public or released before: what lies outside is cut."""
        # twice the halves
        _, numbers = units_of_cells(lo, hi, *_middle_and_half(lo, hi), 2 * self.units)
        return self.of_columns(lo, hi, np.stack([numbers, np.full_like(numbers, self.units)]))

    def decode(self, noisy, lo, hi):
        """Means within the bounds, of each column; the middle where hardly anything is present."""
        total, present = super().decode(noisy)
        # of fewer than the noise nobody knows how few they are
        present = np.maximum(present, self.noise_std)
        center, half_width = _middle_and_half(lo, hi)
        return np.clip(center + half_width * np.clip(total / present, -1.0, 1.0), lo, hi)


def _middle_and_half(lo, hi):
    return lo / 2 + hi / 2, hi / 2 - lo / 2


# ---- Running counts of cells of all columns at once: how many records lie below each edge --------
#
# (a) What is counted is not the cells, whose noise would add up, nor the running counts, which one
#     record moves all of: it is their half-way point. With R the matrix of running sums, lower
#     triangular ones, and A its square root, A A = R, noise is added to A h, h the counts of cells,
#     and A maps the result on.
# (b) A is Toeplitz: lag k has c_k = binomial(2k, k) / 4^k, so a record adds c_0, c_1, ... to the
#     entries from its cell on, rounded to units.
#
# Proof: ``proofs/release_running_counts.md``.

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


class RunningUnits(ColumnSumUnits):
    """Units of running counts of cells of records as they are."""

    what = "running counts"

    def __init__(self, event, *, n_columns, **numbers):
        # an entry is rounded by a half, that of two records by one more
        slack = math.sqrt(N_LINEAR * n_columns) * UP
        sensitivity = running_sensitivity(n_columns, event.neighboring)
        super().__init__(event, sensitivity, slack=slack, n_columns=n_columns, **numbers)

    def question(self, lo, hi, n_known=None):
        """How many records lie below the upper edge of each cell.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public, or released before; between them lie 256 equal cells, the first and the last
            one of which hold all that is farther out.
        n_known : int, default=None
            How many records there are, where that is public.
        """
        halfway = np.rint(self.units * _ROOT).astype(np.int64)
        return self.of_columns(lo, hi, halfway[:, np.newaxis])

    def decode(self, noisy, lo, hi, n_known=None):
        """Counts of shape (n_columns, 256), any real numbers, in any order.

        The last one of a column is how many records there are.
        """
        running = super().decode(noisy).T @ _ROOT.T
        if n_known is not None:  # what the last one is off by, the others are likely off by too
            running -= np.outer(running[:, -1] - n_known, _WITH_ALL)
        return running
