"""Mean squares of columns, with Gaussian noise: the coordinate-wise smoothness of a fit.

(a) *Squares* are of public cells: a number counts as the middle of the linear cell that it lies in,
    so sums follow from numbers of records in cells, which every layout has.
(b) No row is scaled down. The squares of a record within its bounds lie in [0, 1]^p, and neighbours
    differ by sqrt(p) at most, under both relations: squares are never negative. A shorter norm
    would pay only below sqrt(p / 2), where it cuts heavy rows, and M_j that are too small make
    steps too long.
(c) The sensitivity is written here, once. Proof: ``proofs/release_mean_squares.md``.
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


def squares_sensitivity(n_columns):
    """How far one record moves sums of squares in [0, 1], in the euclidean norm."""
    return math.sqrt(n_columns) * _UP


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

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_columns, n_samples, n_normalizer):
        if len(event.releases) != 1 or not isinstance(event.releases[0], GaussianEvent):
            raise TypeError(f"mean squares are paid for by one GaussianEvent, not by {event}")
        if event.releases[0].count != 1:
            raise ValueError(f"mean squares are released once, not as {event}")
        if not 1 <= n_columns <= MOST_COLUMNS:
            raise ValueError(f"mean squares are of 1 to {MOST_COLUMNS:,} columns, got {n_columns}")
        self.event, self.n_columns, self.n_samples = event, n_columns, n_samples
        self.n_normalizer = n_normalizer
        z = event.releases[0].noise_multiplier
        self.sensitivity = squares_sensitivity(n_columns)
        self.bits = noise_bits(z, self.sensitivity, n_normalizer, n_samples, 1)
        self.units = int(record_limit(self.bits, z, self.sensitivity, 1))  # of a square of one

    @property
    def noise_std(self):
        """Standard deviation of a released mean square."""
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
        """Noisy mean squares of columns around a centre, whatever the weights of records.

        Parameters
        ----------
        lo, hi : float64 arrays of shape (n_columns,)
            Public: what lies outside counts as if it lay there, and all that is between as the
            middle of the 256th part that it lies in.
        center, half_width : float64 arrays of shape (n_columns,)
            Public. Squares are in units of that of the half-width, and at most 1.

        Returns
        -------
        mean_squares : ndarray of shape (n_columns,)
            Any real numbers.

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        if not self._left:
            raise RuntimeError("mean squares were paid for once")
        self._left = 0
        units = self._units
        squares = units_of_squares(lo, hi, center, half_width, units.units)
        sums = (self._place.counts("features", edges=_edges(lo, hi)) * squares).sum(axis=1)
        noisy = sums + self._noise.gaussians(units.n_columns, units.bits)
        return (noisy + 0.5) / units.units / units.n_normalizer

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")


def units_of_squares(lo, hi, center, half_width, most):
    """What a record in a cell counts for: an integer from 0 to `most`, a column a row."""
    parts = (np.arange(N_LINEAR) + 0.5) / N_LINEAR
    with np.errstate(all="ignore"):
        middles = lo[:, np.newaxis] + (hi - lo)[:, np.newaxis] * parts - center[:, np.newaxis]
        squares = np.nan_to_num((middles / half_width[:, np.newaxis]) ** 2)
    return np.rint(most * squares.clip(0.0, 1.0)).astype(np.int64)


def _edges(lo, hi):
    """Ends of cells; of a column without width they are somewhere, since all cells are alike."""
    with np.errstate(all="ignore"):
        has_width = np.isfinite(N_LINEAR / (hi - lo))
    return lo, np.where(has_width, hi, lo + np.maximum(np.abs(lo), 1.0))
