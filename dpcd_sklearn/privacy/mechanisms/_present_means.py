"""Means of columns over the records that have a value there, with Gaussian noise.

(a) A record adds its number, cut to the bounds, and a one to how many have a value; where its cell
    is missing it adds nothing. Both sums are released, and their quotient is what it is for.
(b) A number counts as the middle of the linear cell that it lies in, as in ``_mean_squares``.
(c) The sensitivity is written here, once. Proof: ``proofs/release_present_means.md``.
"""

import math

import numpy as np

from ._gaussian_sum import SumOracle, SumUnits
from ._mean_squares import MOST_COLUMNS, SumsOfCells, units_of_cells

_UP = 1 + 2.0**-40  # of a rounded root


def present_sensitivity(n_columns, neighboring):
    """How far one record moves sums of numbers in [-1, 1], and of ones, in the euclidean norm.

    Of one column by 2, from one end to the other, or by sqrt(2), from an end to a missing cell.
    """
    return math.sqrt({"replace_one": 4, "add_remove": 2}[neighboring] * n_columns) * _UP


class PresentUnits(SumUnits):
    """Units of such sums.

    Parameters
    ----------
    event, n_samples, n_normalizer : as of SumUnits
    n_columns : int, from 1 to MOST_COLUMNS
    """

    what = "means of what is present"

    def __init__(self, event, *, n_columns, n_samples, n_normalizer):
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"means are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        super().__init__(
            event, present_sensitivity(n_columns, event.neighboring), width=n_columns,
            n_samples=n_samples, n_normalizer=n_normalizer,
        )  # fmt: skip


class PresentOracle(SumOracle):
    """Releases means of what is present, once.

    Parameters
    ----------
    receipt, units, key : as of SumOracle
        PresentUnits.
    place : Place
        Whose counts leave out what is missing.
    """

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

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        units = self._units
        center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2
        # twice the halves
        _, numbers = units_of_cells(lo, hi, center, half_width, 2 * units.units)
        total, present = self._release(SumsOfCells(lo, hi, (numbers, units.units)))
        # of fewer than the noise nobody knows how few they are
        present = np.maximum(present, 2.0**units.bits)
        return np.clip(center + half_width * np.clip(total / present, -1.0, 1.0), lo, hi)
