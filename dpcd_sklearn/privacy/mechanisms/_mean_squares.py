"""Mean squares of columns, and their means, with Gaussian noise: the smoothness of a fit.

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

from ..sums._counts import N_LINEAR
from ._gaussian_sum import SumOracle, SumUnits, out_of_range
from ._questions import Question

# Two kilobytes of cells a column are held at once.
MOST_COLUMNS = 2**14
_UP = 1 + 2.0**-50  # of a rounded root


def squares_sensitivity(n_columns, with_means):
    """How far one record moves sums of squares in [0, 1], in the euclidean norm.

    And those of halves of numbers in [-1, 1]: max (x - y)² (1/4 + (x + y)²) is 1.28615.
    """
    return math.sqrt(n_columns * (1.2862 if with_means else 1.0)) * _UP


@dataclass(frozen=True, eq=False)
class SumsOfCells(Question):
    """For each column sums of the whole numbers that a record in a cell of `lo` to `hi` adds."""

    lo: np.ndarray
    hi: np.ndarray
    added: tuple  # arrays of shape (n_columns, 256), or a number: one for each sum

    def answer(self, place):
        counts = place.counts("features", edges=edges_of_cells(self.lo, self.hi))
        return np.array([(counts * one).sum(axis=1) for one in self.added])


class SmoothnessUnits(SumUnits):
    """Units of mean squares.

    Parameters
    ----------
    event, n_samples, n_normalizer : as of SumUnits
    n_columns : int, from 1 to MOST_COLUMNS
    with_means : bool
        Whether means are released too.
    """

    what = "mean squares"

    def __init__(self, event, *, n_columns, n_samples, n_normalizer, with_means):
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"mean squares are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        self.with_means = with_means
        # squares and halves are rounded: an entry of two records differs by one more at most
        slack = math.sqrt(2 * n_columns) * _UP if with_means else 0.0
        super().__init__(
            event, squares_sensitivity(n_columns, with_means), slack=slack, width=n_columns,
            n_samples=n_samples, n_normalizer=n_normalizer,
        )  # fmt: skip
        if self.units < 1:
            (release,) = event.releases
            of = f"that the integer grid of {n_columns:,} means supports"
            raise out_of_range(release.noise_multiplier, of)

    @property
    def noise_std(self):
        """Standard deviation of a released mean square, and half of that of a mean."""
        return super().noise_std / self.n_normalizer


class SmoothnessOracle(SumOracle):
    """Releases mean squares of all columns, once.

    Parameters
    ----------
    receipt, units, place, key : as of SumOracle
        SmoothnessUnits; records as they are.
    """

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

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
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
