"""Running counts of cells of all columns at once: how many records lie below each edge.

(a) What is counted is not the cells, whose noise would add up, nor the running counts, which one
    record moves all of: it is their half-way point. With R the matrix of running sums, lower
    triangular ones, and A its square root, A A = R, noise is added to A h, h the counts of cells,
    and A maps the result on.
(b) A is Toeplitz: lag k has c_k = binomial(2k, k) / 4^k, so a record adds c_0, c_1, ... to the
    entries from its cell on, rounded to units.
(c) The sensitivity is written here, once. Proof: ``proofs/release_running_counts.md``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from ..sums._counts import N_LINEAR
from ._gaussian_sum import SumOracle, SumUnits, out_of_range
from ._mean_squares import MOST_COLUMNS, edges_of_cells
from ._questions import Question

_UP = 1 + 2.0**-40  # of a rounded root
_LAGS = np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, N_LINEAR)))
_ROOT = np.tril(toeplitz(_LAGS))  # A
# Largest distance of two columns of A, and the largest norm of one, rounded upwards.
_APART, _LONGEST = 2.1308, 1.6826
# How much of the noise of the last running count, which is of all records, others have.
_WITH_ALL = _ROOT @ _ROOT[-1] / (_ROOT[-1] @ _ROOT[-1])


def running_sensitivity(n_columns, neighboring):
    """How far one record moves A h, h the counts of cells, in the euclidean norm."""
    of_one = {"replace_one": _APART, "add_remove": _LONGEST}[neighboring]
    return of_one * math.sqrt(n_columns) * _UP


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


class RunningUnits(SumUnits):
    """Units of running counts.

    Parameters
    ----------
    event, n_samples, n_normalizer : as of SumUnits
    n_columns : int, from 1 to MOST_COLUMNS
    """

    what = "running counts"

    def __init__(self, event, *, n_columns, n_samples, n_normalizer):
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"quantiles are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        # an entry is rounded by a half, that of two records by one more
        slack = math.sqrt(N_LINEAR * n_columns) * _UP
        super().__init__(
            event, running_sensitivity(n_columns, event.neighboring), slack=slack,
            width=n_columns, n_samples=n_samples, n_normalizer=n_normalizer,
        )  # fmt: skip
        if self.units < 1:
            (release,) = event.releases
            raise out_of_range(release.noise_multiplier, f"of quantiles of {n_columns:,} columns")


class RunningOracle(SumOracle):
    """Releases running counts of cells, once.

    Parameters
    ----------
    receipt, units, place, key : as of SumOracle
        RunningUnits; records as they are.
    """

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

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        units = self._units.units
        running = self._release(HalfwayCounts(lo, hi, units)) / units @ _ROOT.T
        if n_known is not None:  # what the last one is off by, the others are likely off by too
            running -= np.outer(running[:, -1] - n_known, _WITH_ALL)
        return running
