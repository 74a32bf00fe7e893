"""Quantiles of columns among public cells, by the exponential mechanism.

(a) *Score.* The cell that holds the q-quantile has the score 0, any other one minus the number of
    records that would have to move for it to hold it. Scored are cells and not their edges: far
    beyond all records every edge is as good as the next, and a column between two edges makes them
    all alike.
(b) q is a fraction a/d, so that d times the score is an integer, and exact; 1 for the largest.
(c) Octaves say how large numbers are, so their quantile is one of numbers other than zero, unless
    zero itself is the quantile of all. Of a column that is half zeros and half ones every octave
    below one would hold the median of all.
(d) Intervals around a centre hold a quantile of the *spread* records: of those within, less those
    of the fullest cell. One that leaves out all but one of the points that records lie on holds no
    spread record, however many lie on this point. The last interval stands for everything, and
    holds every quantile.
(e) Where many records give far more evidence than choices need, a secret sample of them is counted.
    Each record is in it by a coin of its own, whose probability is public. A release is at least as
    private as that of all records, and is charged as that one: no amplification is claimed.
(f) The sensitivity is written here, once. Proof: ``privacy/proofs/release_quantiles.md``.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..accounting._events import SelectionEvent
from ..sums._counts import N_REACHES
from ._gaussian_sum import Oracle
from ._questions import Choices, Question
from ._units import GUMBEL_ROUNDING, Units

# Scores are cut here, and η is within these, so that the rounding of keys is paid for.
_DEEPEST = 2**36
_LONGEST_ODDS = 16.0
LEAST_RANGE, MOST_RANGE = 2.0**-26, 2.0**10
_HALF = N_REACHES // 2
# The evidence that a sample leaves to choices, and to each side of a quantile: n times the range η,
# times the share of records on that side. And how many records it has at least.
_AMPLE_EVIDENCE, _EVIDENCE_BEYOND, _LEAST_SAMPLE = 640.0, 32.0, 2**14
_MOST_CELLS = 2**25  # of a sample, which is copied
# Outer ends of half octaves around a centre, in units: 1, 1.5, 2, 3, 4, 6, ...
REACHES = np.ldexp(np.where(np.arange(_HALF) % 2, 1.5, 1.0), np.arange(_HALF) // 2)
# How many times a unit may double until half octaves end: the last cell holds all that is beyond.
N_DOUBLINGS = _HALF // 2 + 1


def score_sensitivity(quantile, neighboring):
    """By how much one record moves a score, in 1/d for the quantile a/d."""
    a, d = quantile.numerator, quantile.denominator
    both_ways = {"replace_one": d, "add_remove": max(a, d - a)}[neighboring]
    # the largest number: records lie beyond a cell or not, so all scores move the same way, by 1
    # at most, and their range is that of moves by 1/2 both ways
    return both_ways / 2 if a == d else both_ways


def sampled_halvings(n_public, eta, quantiles):
    """How often the probability of a record to be counted is halved: from public numbers."""
    share = min(min(quantile, 1 - quantile) or 1 for quantile in quantiles)
    evidence = max(_AMPLE_EVIDENCE, _EVIDENCE_BEYOND / share)
    halvings = int(math.log2(max(n_public / max(_LEAST_SAMPLE, evidence / eta), 1.0)))
    return halvings if halvings > 1 else 0  # to copy a half takes as long as to count all


def quantile_scores(counts, quantile, *, zeros="counted"):
    """d times the score of each cell, for the quantile a/d.

    Parameters
    ----------
    counts : int64 ndarray of shape (n_columns, n_cells)
    quantile : Fraction in (0, 1)
    zeros : {"counted", "apart", "left out"}, default="counted"
        Records of the first cell. If they are apart, it holds the quantile if they are enough for
        it, and another cell if it holds that of all others and they are too few. If they are left
        out, the quantile is that of the others.

    Returns
    -------
    scores : int64 ndarray of shape (n_columns, n_cells)
    """
    a, d = quantile.numerator, quantile.denominator
    if zeros == "left out":
        counts = np.pad(counts[:, 1:], [(0, 0), (1, 0)])
    below_end = np.cumsum(counts, axis=1)
    n, below_start = below_end[:, -1:], below_end - counts
    missing = np.maximum(a * n - d * below_end, d * below_start - a * n)
    if zeros == "apart":
        first = counts[:, :1]
        others, too_many = n - first, d * first - a * n
        of_others = a * others - d * (below_end - first), d * (below_start - first) - a * others
        missing[:, 1:] = np.maximum(np.maximum(*of_others), too_many)[:, 1:]
    return -np.clip(missing, 0, d * _DEEPEST)


def interval_scores(counts, quantile):
    """d times the score of each interval around a centre, for the quantile a/d of spread records.

    Parameters
    ----------
    counts : int64 ndarray of shape (n_columns, N_REACHES)

    Returns
    -------
    scores : int64 ndarray of shape (n_columns, len(REACHES))
        The last one is that of everything, which is never too short.
    """
    a, d = quantile.numerator, quantile.denominator
    sides = np.stack([counts[:, _HALF:], counts[:, _HALF - 1 :: -1]])
    within = sides.sum(axis=0).cumsum(axis=1)
    spread = within - np.maximum.accumulate(sides.max(axis=0), axis=1)
    too_few = a * within[:, -1:] - d * spread
    too_few[:, -1] = 0
    too_many = np.pad(-too_few[:, :-1], [(0, 0), (1, 0)])
    return -np.clip(np.maximum(too_few, too_many), 0, d * _DEEPEST)


def ring_counts(counts, ends):
    """From cells around a centre to rings, each of which ends where a reach does.

    Parameters
    ----------
    counts : int64 ndarray of shape (n_columns, N_REACHES)
    ends : intp ndarray of shape (n_columns, n_rings) or (1, n_rings), ascending
        Numbers of reaches in REACHES; the last ring holds all that lies farther out.

    Returns
    -------
    counts : int64 ndarray of shape (n_columns, n_rings)
    """
    within = (counts[:, _HALF:] + counts[:, _HALF - 1 :: -1]).cumsum(axis=1)
    inner = np.minimum(ends[:, :-1], _HALF - 1)
    return np.diff(np.take_along_axis(within, inner, axis=1), prepend=0, append=within[:, -1:])


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """Records in the cells of some columns; see `Place.counts`.

    With `ends`, those around a centre are added up to rings; see `ring_counts`.
    """

    of: str
    edges: tuple | None = None
    around: tuple | None = None
    ends: np.ndarray | None = None
    columns: np.ndarray | None = None  # None is all

    def answer(self, place):
        counts = place.counts(self.of, edges=self.edges, around=self.around)
        counts = counts if self.ends is None else ring_counts(counts, self.ends)
        return counts if self.columns is None else counts[self.columns]


@dataclass(frozen=True, eq=False)
class QuantileChoices(Choices):
    """For each quantile and column chooses the cell that holds it: rows are columns.

    Parameters
    ----------
    quantiles : tuple of Fraction
    neighboring : str
    eta, prior : as of Choices
        Options are cells.
    zeros : str
        As of `quantile_scores`.
    intervals : bool
        Whether scores are `interval_scores`.
    """

    quantiles: tuple
    neighboring: str
    eta: float | None
    prior: np.ndarray | None
    zeros: str = "counted"
    intervals: bool = False

    def tables(self, counts):
        for quantile in self.quantiles:
            if self.intervals:
                scores = interval_scores(counts, quantile)
            else:
                scores = quantile_scores(counts, quantile, zeros=self.zeros)
            yield scores / self.noise_scale(quantile)

    def noise_scale(self, quantile):
        """b, the scale of the Gumbel noise on scores; without noise scores are in 1/d."""
        sensitivity = score_sensitivity(quantile, self.neighboring)
        return 1.0 if self.eta is None else 2 * sensitivity / self.eta * GUMBEL_ROUNDING


def checked_range(choices):
    """The bounded range of each of so many choices.

    Raises
    ------
    ValueError
        If it is outside of what is proved.
    """
    if not LEAST_RANGE <= choices.eta <= MOST_RANGE:
        raise ValueError(
            f"choices have a bounded range between {LEAST_RANGE:.3g} and {MOST_RANGE:g}, got "
            f"{choices.eta:.3g}; change epsilon"
        )
    return choices.eta


class QuantileUnits(Units):
    """Noise of choices of cells: from public numbers alone, with the plan.

    Parameters
    ----------
    event : FitEvent
        One SelectionEvent, whose count is of columns times quantiles; or a NonPrivateEvent, for
        choices without noise.
    """

    what = "quantiles"

    def __init__(self, event, **numbers):
        super().__init__(event, **numbers)
        self.n_choices, self.eta = math.inf, None
        if not self.noiseless:
            choices = self._only(SelectionEvent)
            self.n_choices, self.eta = choices.count, checked_range(choices)

    @property
    def counts(self):
        return {self.what: self.n_choices}


class QuantileOracle(Oracle):
    """Releases quantiles of records, no more of them than are paid for by QuantileUnits.

    Parameters
    ----------
    receipt, units, place, key : as of Oracle
    n_public : int, default=0
        Public number of records; where it is ample, a sample of features is counted.
    """

    def __init__(self, receipt, units, place, *, key=None, n_public=0):
        super().__init__(receipt, units, key=key)
        self._place, self._n_public, self._samples = place, n_public, {}

    def release_quantiles(
        self,
        of,
        quantiles,
        *,
        prior=None,
        around=None,
        first=0,
        intervals=False,
        columns=None,
        zeros="apart",
        **cells,
    ):
        """The cells that hold the quantiles, nearly: a choice for each quantile and column.

        Parameters
        ----------
        of : {"features", "target", "row_norm"}
        quantiles : sequence of Fraction in (0, 1)
        prior : float64 ndarray of shape (n_cells,), default=None
            Public odds of the cells, before any record is seen, between e^-16 and e^16; None is
            all alike.
        around : pair (center, half_width) of float64 arrays of shape (n_columns,), default=None
            Public, or released before: cells are rings around the centre, each of twice the reach
            of the one before, and as many as there are odds in `prior`. Norms of rows have octaves.
        first : intp ndarray of shape (n_columns,), default=0
            Released before: the number in REACHES of the reach of the first ring, in half-widths.
        intervals : bool, default=False
            Whether intervals around the centre are chosen between, as in `interval_scores`.
        columns : bool ndarray of shape (n_columns,), default=None
            Which columns are chosen for, and paid for; public, or released before. None is all.
        zeros : {"apart", "left out", "counted"}, default="apart"
            Of octaves, as in `quantile_scores`; in other cells they are counted.
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
            if not isinstance(quantile, Fraction) or not 0 < quantile <= 1 - intervals / 4:
                raise TypeError("a quantile is a Fraction above 0, at most 1, or 3/4 of intervals")
        name = {"features": "n_features", "target": "n_targets"}.get(of)
        n_columns = getattr(self._place, name) if name else 1
        n_columns = n_columns if columns is None else np.count_nonzero(columns)
        if not n_columns:
            return np.empty((len(quantiles), 0), dtype=np.intp)
        self._count_down("quantiles", len(quantiles) * n_columns)
        octaves = of == "row_norm" or (around is None and not cells)
        if around is not None:
            cells = {"around": around}
            if not (intervals or octaves):
                cells["ends"] = np.reshape(first, (-1, 1)) + 2 * np.arange(len(prior))
        question = CellCounts(of, columns=columns, **cells)
        relation, eta = self._units.event.neighboring, self._units.eta
        kind = zeros if octaves else "counted", intervals
        choices = QuantileChoices(tuple(quantiles), relation, eta, prior, *kind)
        chosen = self._source.release(self._counted(of, quantiles), question, choices)
        return chosen.reshape(len(quantiles), -1)

    def _counted(self, of, quantiles):
        """The place of the records that are counted: all, or a sample for all choices alike."""
        if of == "target" or not self._place.samples_rows or self._units.noiseless:
            return self._place
        halvings = sampled_halvings(self._n_public, self._units.eta, quantiles)
        if (self._n_public * self._place.n_features) >> halvings > _MOST_CELLS:
            return self._place
        if halvings and halvings not in self._samples:
            rows = self._source.sample(self._place.n_samples, halvings)
            self._samples[halvings] = self._place.of_rows(rows)
        return self._samples[halvings] if halvings else self._place
