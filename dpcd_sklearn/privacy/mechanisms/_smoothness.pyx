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

import numpy as np

from ._grid cimport noise_bits, record_limit

from ..accounting._events import GaussianEvent
from ..noise._noise import NoiseSource
from ..sums._counts import N_LINEAR

# Two kilobytes of cells a column are held at once.
MOST_COLUMNS = 2**14
_UP = 1 + 2.0**-50  # of a rounded root


def squares_sensitivity(n_columns, with_means):
    """How far one record moves sums of squares in [0, 1], in the euclidean norm.

    And those of halves of numbers in [-1, 1]: max (x - y)² (1/4 + (x + y)²) is 1.28615.
    """
    return math.sqrt(n_columns * (1.2862 if with_means else 1.0)) * _UP


class SmoothnessUnits:
    """Noise and units of released mean squares: from public numbers alone, with the plan.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent, of one release.
    n_columns : int, from 1 to MOST_COLUMNS
    n_samples : int
        Number of records. Nothing depends on it but the refusal of more than are promised.
    n_normalizer : int
        Public number of records: n, or n_public under add_remove.
    with_means : bool
        Whether means are released too.

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_columns, n_samples, n_normalizer, with_means):
        if len(event.releases) != 1 or not isinstance(event.releases[0], GaussianEvent):
            raise TypeError(f"mean squares are paid for by one GaussianEvent, not by {event}")
        if event.releases[0].count != 1:
            raise ValueError(f"mean squares are released once, not as {event}")
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"mean squares are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        self.event, self.n_columns, self.n_samples = event, n_columns, n_samples
        self.n_normalizer, self.with_means = n_normalizer, with_means
        z = event.releases[0].noise_multiplier
        self.sensitivity = squares_sensitivity(n_columns, with_means)
        self.bits = noise_bits(z, self.sensitivity, n_normalizer, n_samples, 1)
        # squares and halves are rounded: an entry of two records differs by one more at most
        slack = math.sqrt(2 * n_columns) * _UP if with_means else 0.0
        self.units = int(record_limit(self.bits, z, self.sensitivity, 1, slack))  # of a one
        if self.units < 1:
            raise ValueError(
                f"noise multiplier {z:g} is out of the range that the integer grid of "
                f"{n_columns:,} means supports; change epsilon"
            )

    @property
    def noise_std(self):
        """Standard deviation of a released mean square, and half of that of a mean."""
        return 2.0**self.bits / self.units / self.n_normalizer


class SmoothnessOracle:
    """Releases mean squares of all columns, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : SmoothnessUnits
    place : Place
        Where the records lie, as they are.
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, place, *, key=None):
        if (place.n_samples, place.n_features) != (units.n_samples, units.n_columns):
            raise ValueError(
                f"the units are of {units.n_samples} records of {units.n_columns} columns, not "
                f"{place.n_samples} of {place.n_features}"
            )
        receipt.redeem(units.event)
        self._units, self._place, self._noise, self._left = units, place, NoiseSource(key), 1

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
        if not self._left:
            raise RuntimeError("mean squares were paid for once")
        self._left = 0
        units = self._units
        counts = self._place.counts("features", edges=_edges(lo, hi))
        counted = units_of_cells(lo, hi, center, half_width, units.units)[: 1 + units.with_means]
        sums = np.array([(counts * one).sum(axis=1) for one in counted])
        noisy = sums + self._noise.gaussians(sums.size, units.bits).reshape(sums.shape)
        squares, *halves = (noisy + 0.5) / units.units / units.n_normalizer
        return squares, 2 * halves[0] if halves else None

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")


def units_of_cells(lo, hi, center, half_width, most):
    """What a record in a cell counts for, a column a row: its square, and half of itself.

    In units, of which `most` are a one.
    """
    parts = (np.arange(N_LINEAR) + 0.5) / N_LINEAR
    with np.errstate(all="ignore"):
        middles = lo[:, np.newaxis] + (hi - lo)[:, np.newaxis] * parts - center[:, np.newaxis]
        numbers = np.nan_to_num(middles / half_width[:, np.newaxis]).clip(-1.0, 1.0)
    return [np.rint(most * of).astype(np.int64) for of in (numbers**2, numbers / 2)]


def _edges(lo, hi):
    """Ends of cells; of a column without width they are somewhere, since all cells are alike."""
    with np.errstate(all="ignore"):
        has_width = np.isfinite(N_LINEAR / (hi - lo))
    return lo, np.where(has_width, hi, lo + np.maximum(np.abs(lo), 1.0))
