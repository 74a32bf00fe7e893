"""Quantiles of columns among public cells, by the exponential mechanism.

(a) *Score.* The cell that holds the q-quantile has the score 0, any other one minus the number of
    records that would have to move for it to hold it. Scored are cells and not their edges: far
    beyond all records every edge is as good as the next, and a column between two edges makes them
    all alike.
(b) q is a fraction a/d, so that d times the score is an integer, and exact.
(c) Octaves say how large numbers are, so their quantile is one of numbers other than zero, unless
    zero itself is the quantile of all. Of a column that is half zeros and half ones every octave
    below one would hold the median of all.
(d) The sensitivity is written here, once. Proof: ``privacy/proofs/release_quantiles.md``.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..accounting._events import SelectionEvent
from ..sums._counts import N_LINEAR
from ._questions import Question, source_of
from ._units import GUMBEL_ROUNDING, Units

# Scores are cut here, and η is within these, so that the rounding of keys is paid for.
_DEEPEST = 2**36
_LONGEST_ODDS = 16.0
LEAST_RANGE, MOST_RANGE = 2.0**-26, 2.0**10
# How many times a half-width may double until linear cells end.
N_DOUBLINGS = N_LINEAR.bit_length() - 1


def score_sensitivity(quantile, neighboring):
    """By how much one record moves a score, in 1/d for the quantile a/d: an integer."""
    a, d = quantile.numerator, quantile.denominator
    return {"replace_one": d, "add_remove": max(a, d - a)}[neighboring]


def quantile_scores(counts, quantile, *, zero_apart=False):
    """d times the score of each cell, for the quantile a/d.

    Parameters
    ----------
    counts : int64 ndarray of shape (n_columns, n_cells)
    quantile : Fraction in (0, 1)
    zero_apart : bool, default=False
        Whether the first cell holds the quantile if its records are enough for it, and another one
        if it holds that of all other records and the first cell's are too few.

    Returns
    -------
    scores : int64 ndarray of shape (n_columns, n_cells)
    """
    a, d = quantile.numerator, quantile.denominator
    below_end = np.cumsum(counts, axis=1)
    n, below_start = below_end[:, -1:], below_end - counts
    missing = np.maximum(a * n - d * below_end, d * below_start - a * n)
    if zero_apart:
        zeros = counts[:, :1]
        others, too_many = n - zeros, d * zeros - a * n
        of_others = a * others - d * (below_end - zeros), d * (below_start - zeros) - a * others
        missing[:, 1:] = np.maximum(np.maximum(*of_others), too_many)[:, 1:]
    return -np.clip(missing, 0, d * _DEEPEST)


def reach_counts(counts):
    """From linear cells, each as wide as a half-width around the middle, to doublings of it.

    Parameters
    ----------
    counts : int64 ndarray of shape (n_columns, N_LINEAR)

    Returns
    -------
    counts : int64 ndarray of shape (n_columns, N_DOUBLINGS)
        Counts of records within 1, from 1 to 2, from 2 to 4, ... half-widths of the middle; the
        last one holds all that lies farther out.
    """
    half = N_LINEAR // 2
    outwards = counts[:, half:] + counts[:, half - 1 :: -1]
    return np.add.reduceat(outwards, [0, *(1 << np.arange(N_DOUBLINGS - 1))], axis=1)


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """Records in the cells of some columns; see `Place.counts`.

    Cells may be distances from a centre, as in `reach_counts`.
    """

    of: str
    edges: tuple | None = None
    divisor: np.ndarray | None = None
    by_distance: bool = False
    columns: np.ndarray | None = None  # None is all

    def answer(self, place):
        counts = place.counts(self.of, edges=self.edges, divisor=self.divisor)
        if self.by_distance:
            counts = reach_counts(counts)
        return counts if self.columns is None else counts[self.columns]


@dataclass(frozen=True, eq=False)
class QuantileChoices:
    """For each quantile and column chooses the cell that holds it.

    Parameters
    ----------
    quantiles : tuple of Fraction
    neighboring : str
    eta : float or None
        Bounded range of each choice; None chooses without noise.
    zero_apart : bool
        As of `quantile_scores`.
    prior : float64 ndarray of shape (n_cells,), or None
    """

    quantiles: tuple
    neighboring: str
    eta: float | None
    zero_apart: bool
    prior: np.ndarray | None

    def release(self, exact, noise):
        return np.array([self._chosen(exact, quantile, noise) for quantile in self.quantiles])

    def _chosen(self, counts, quantile, noise):
        scores = quantile_scores(counts, quantile, zero_apart=self.zero_apart)
        if self.eta is None:
            return scores.argmax(axis=1)
        keys = noise.log_exponentials(scores.size).reshape(scores.shape)
        if self.prior is not None:
            keys -= np.log(self.prior)
        keys -= scores / self.noise_scale(quantile)
        return keys.argmin(axis=1)

    def noise_scale(self, quantile):
        """b, the scale of the Gumbel noise on `quantile_scores`."""
        return 2 * score_sensitivity(quantile, self.neighboring) / self.eta * GUMBEL_ROUNDING

    def excess(self, exact, neighbour):
        """The range by which log odds differ, over that which is paid for."""
        largest = 0.0
        for quantile in () if self.eta is None else self.quantiles:
            of = {"quantile": quantile, "zero_apart": self.zero_apart}
            moved = quantile_scores(neighbour, **of) - quantile_scores(exact, **of)
            largest = max(largest, np.ptp(moved, axis=1).max() / self.noise_scale(quantile))
        return largest / self.eta if largest else 0.0


class QuantileUnits(Units):
    """Noise of choices of cells: from public numbers alone, with the plan.

    Parameters
    ----------
    event : FitEvent
        One SelectionEvent, whose count is of columns times quantiles; or a NonPrivateEvent, for
        choices without noise.

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or a range outside of what is proved.
    """

    def __init__(self, event):
        super().__init__(event)
        self.n_choices = self.eta = None
        if self.noiseless:
            return
        choices = self._only(SelectionEvent, "quantiles")
        self.n_choices, self.eta = choices.count, choices.eta
        if not LEAST_RANGE <= self.eta <= MOST_RANGE:
            raise ValueError(
                f"choices of quantiles have a bounded range between {LEAST_RANGE:.3g} and "
                f"{MOST_RANGE:g}, got {self.eta:.3g}; change epsilon"
            )


class QuantileOracle:
    """Releases quantiles of records, no more of them than are paid for.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : QuantileUnits
    place : Place
        Where the records lie.
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, place, *, key=None):
        units.redeem(receipt)
        self._units, self._place, self._source = units, place, source_of(key)
        self._left = units.n_choices

    def release_quantiles(self, of, quantiles, *, prior=None, around=None, columns=None, **cells):
        """The cells that hold the quantiles, nearly: a choice for each quantile and column.

        Octaves are of numbers other than zero, unless the quantile is zero.

        Parameters
        ----------
        of : {"features", "target", "row_norm"}
        quantiles : sequence of Fraction in (0, 1)
        prior : float64 ndarray of shape (n_cells,), default=None
            Public odds of the cells, before any record is seen, between e^-16 and e^16; None is
            all alike.
        around : pair (center, half_width) of float64 arrays of shape (n_columns,), default=None
            Public, or released before: cells are distances from the centre, as in `reach_counts`.
        columns : bool ndarray of shape (n_columns,), default=None
            Which columns are chosen for, and paid for; public, or released before. None is all.
        **cells
            As in `Place.counts`; public, or released before.

        Returns
        -------
        chosen : intp ndarray of shape (n_quantiles, n_columns), or of those asked for

        Raises
        ------
        RuntimeError
            If so many were not paid for; nothing is drawn.
        """
        if prior is not None and not (np.abs(np.log(prior)) <= _LONGEST_ODDS).all():
            raise ValueError("a prior lies between e^-16 and e^16")
        for quantile in quantiles:
            if not (isinstance(quantile, Fraction) and 0 < quantile < 1):
                raise TypeError("a quantile is a Fraction between 0 and 1")
        name = {"features": "n_features", "target": "n_targets"}.get(of)
        n_columns = getattr(self._place, name) if name else 1
        if columns is not None:
            n_columns = np.count_nonzero(columns)
        if not n_columns:
            return np.empty((len(quantiles), 0), dtype=np.intp)
        if not self._units.noiseless:
            if len(quantiles) * n_columns > self._left:
                raise RuntimeError(f"only {self._left} choices are left of those paid for")
            self._left -= len(quantiles) * n_columns
        if around is not None:
            center, reach = around[0], N_LINEAR / 2 * around[1]
            cells = {"edges": (center - reach, center + reach), "by_distance": True}
        question = CellCounts(of, columns=columns, **cells)
        relation, eta = self._units.event.neighboring, self._units.eta
        octaves = question.edges is None
        choices = QuantileChoices(tuple(quantiles), relation, eta, octaves, prior)
        return self._source.release(self._place, question, choices)

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")
