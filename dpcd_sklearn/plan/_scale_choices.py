"""Centres and half-widths of columns, from released quantiles: which ones, and how.

Choices for each column find them: the octave of the median of |x| says how large numbers are, the
quartiles among linear cells of that size say where they lie, and an interval around these whether
records are spread there. Quantiles stay between 1/4 and 3/4: one near 1 can't reject an absurd
scale, since no record contradicts it. Of a column that is mostly one number, as indicators are,
quartiles tell of that number alone or lie among empty cells, and narrow bounds make a coefficient
too large: they are as wide as numbers are, unless the others are found. Among many zeros one choice
tells the octave of small others, and two how often it doubles until few lie beyond: at worst one
column has no effect. Sparse columns need one choice. With evidence enough one more tells a tail.
"""

import math
from fractions import Fraction

import numpy as np

from ..privacy.mechanisms._cell_sums import edges_of_cells
from ..privacy.mechanisms._quantiles import N_DOUBLINGS, REACHES
from ..privacy.sums._counts import LOWEST, N_LINEAR, N_OCTAVES

MEDIAN = Fraction(1, 2)
QUARTILES = Fraction(1, 4), Fraction(3, 4)
# The last distance from a centre that bounds of heavy tails are to hold. Half as many records
# beyond say as little of an absurd scale, and twice as many are a clip that heavy tails feel.
TAIL = Fraction(19, 20)
# Quartiles are looked for within so many times the upper end of the median's octave: half of all
# records are within once, and an octave that was chosen too low by one is made good. Wider is too
# coarse for columns far from zero: 8 brings R² on California housing from .53 to .15 at ε = 0.1.
REACH = 2.0
# Bounds are so many inter-quartile ranges, or medians, from the centre: 2.7 standard deviations
# of a normal column, or 1.3 to 2.7 where an octave stands for them. 1.5 clips what regressions need
# (diamonds: R² falls from .91 to .88), 3 gains nothing.
WIDTH = 2.0
# Before any record is seen, odds of octaves fall with the square of the distance from the numbers
# 4 to 8, by a half over five octaves, and below by e over four, but no lower than to a tenth of
# that: with all odds alike, a hundred absurd octaves together would often outweigh the right one. A
# scale too wide fills a fit with noise, one too narrow clips; and seconds since 1970 are likelier
# than numbers of 1e-9. Zero is likelier than any octave: of a column of which nearly half are ones,
# and all others zero, few records speak against those that are empty (chess at ε = 1: .80 for .88).
_AWAY = np.arange(N_OCTAVES) + LOWEST - 3
_FAR = 1 / (1 + (_AWAY / 5) ** 2)
PRIOR = np.where(_AWAY > 0, _FAR, np.maximum(np.exp(_AWAY.clip(max=0) / 4), _FAR / 10))
PRIOR[0] = 4.0
# Numbers other than zero are mostly ones where they are few, and too few to speak for themselves.
# The smaller ones say whether all are far below one, and larger ones follow by doublings.
_OF_OTHERS = np.append(math.exp(-16), PRIOR[1:])
_OF_OTHERS[1 - LOWEST] = 1000.0
_SMALL_ONES, LARGEST = Fraction(1, 4), Fraction(1)


# Odds of doublings fall by e² with each, or by as much as evidence leaves of e^4.5: noise grows
# with the width, and a width that no record asks for must be rare.
def _tail_prior(evidence_beyond=math.inf):
    falls = max(2.0, 4.5 - evidence_beyond)
    return np.exp(-np.minimum(falls * np.arange(N_DOUBLINGS), 16.0))


# Odds of cells beyond the median's octave: with the least evidence an empty one would often be
# taken for a quartile; where a tenth of many records lies there they outweigh these odds.
_BEYOND = math.exp(-4)
LINEAR_PRIOR = np.where(
    np.abs(np.arange(N_LINEAR) - (N_LINEAR - 1) / 2) < N_LINEAR / 2 / REACH, 1.0, _BEYOND
)

# The evidence of a choice is records times its range η. Half of all records speak against an absurd
# octave (a quarter, where half are zero), and the prior of octaves weighs as much as sixteen of
# them do: one of these is chosen with odds 16 exp(-nη/4), 1 in 190 at the least evidence: it may
# ruin the whole fit. So may an empty one of a hundred cells beside a narrow target: odds of a
# hundred times exp(-nη/4) where its median is asked for, exp(-nη/8) where a quartile is. With ample
# evidence quartiles are right to 2 %, and a twentieth of all can tell of a tail.
LEAST_EVIDENCE, AMPLE_EVIDENCE = 32.0, 150.0
# An interval within stated bounds holds such a share of all records beside those of its fullest
# cell, and bounds are so many times as wide.
_SPREAD, _WIDTH_OF_INTERVAL = Fraction(3, 8), 4.0
# Odds of everything against any interval within. With evidence of 70 one that holds a single point
# is then chosen with odds of 32 exp(-4.5 - 70 · 3/16), one in a million; with less than 56 odds of
# everything are larger, so that it is one in a hundred thousand.
_OF_EVERYTHING, _OF_A_POINT = 4.5, 15.0

_N_CHOICES = {"tails": 5, "quartiles": 4, "octaves": 1}
_N_CHOICES |= {"within": 3, "all within": 4, "tails within": 5}

# Quartiles of a column far from zero beside its spread lie in one cell, or in neighbouring ones.
# Zooms look for its median in finer and finer cells there.
MOST_ZOOMS = 5
# The evidence that a first one leaves at least: without it columns that are 300 spreads from zero
# are lost (3,000 records of housing at ε = 1: R² .43 for .68).
_LEAST_OF_ZOOM = {"quartiles": 50.0, "tails": 140.0}
# Without bounds intervals begin at so many halvings of the size of a column. Odds fall by these
# factors with each doubling beyond that size, and with each halving: empty intervals are narrow,
# and to take one for what lies beside one number is a ruin. Everything is likelier than any.
_HALVINGS = 44


def _interval_prior(outwards, inwards, of_all):
    doublings = np.arange(len(REACHES)) / 2 - _HALVINGS
    away = np.maximum(outwards * doublings, -inwards * doublings)
    return np.append(np.exp(-away[:-1].clip(max=16)), of_all)


_SPREAD_PRIOR, _BESIDE_PRIOR = _interval_prior(0.7, 0.35, 20.0), _interval_prior(0.35, 2.0, 60.0)
# Bounds are at most seven doublings too wide, and hardly ever by so many. With equal odds one fit
# in 300 took far too small a share, and one in seven where columns are mostly zero (now in twenty).
_SHARE_PRIOR = np.full(N_OCTAVES, math.exp(-16))
_SHARE_PRIOR[-LOWEST - 7 : 1 - LOWEST] = np.exp(np.arange(-7, 1) / 4)


def _odds_among_zeros(evidence):
    """Odds of doublings to the largest number among many zeros."""
    # Only records beyond speak against a cell, and nothing against wider ones but these odds. A
    # bound too low makes a coefficient too large, one too high hides its column, so with little
    # evidence odds fall slowly: amounts in thousands are heard with evidence of 8 beyond.
    first, more = np.clip([evidence / 30, evidence / 100], [2.0, 1.0], [5.0, 2.0])
    k = np.arange(N_DOUBLINGS)
    return np.exp(16 - np.minimum(first * (k > 0) + more * (0.2 * k + 0.01 * k**2), 32.0))


def n_choices(n_columns, how, zooms=0, *, twice=False):
    """How many choices find the scales of so many columns."""
    return (_N_CHOICES[how] + len(QUARTILES) * twice + zooms) * n_columns


def most_zooms(evidence, n_columns, how, least, *, twice=False):
    """The zooms that leave to each choice the least evidence, if one alone would have so much.

    The first zoom gains more than others, so it needs less, unless quartiles are looked for twice.
    """
    for zooms in range(MOST_ZOOMS, 0, -1):
        enough = least if zooms > 1 or twice else min(least, _LEAST_OF_ZOOM[how])
        if evidence / math.sqrt(n_choices(n_columns, how, zooms, twice=twice)) >= enough:
            return zooms
    return 0


def zooms_of(units, n_columns):
    """The zooms that units pay for, beside quartiles of so many columns that are found twice."""
    return max(units.n_choices // n_columns - n_choices(1, "quartiles", twice=True), 0)


def find_scales(oracle, of, how, evidence, width=None, tail=TAIL, *, zooms=0, twice=False):
    """Centre and half-width of each column.

    Parameters
    ----------
    oracle : QuantileOracle
    of : {"features", "target", "row_norm"}
    how : {"tails", "quartiles", "octaves"}
        Centre and spread, with tails or without; or how large numbers are, around zero.
    evidence : float
        Records times the range of a choice, a public number; inf without noise.
    width : float, default=None
        Half-widths in inter-quartile ranges or upper ends of octaves; None is what suits features.
    tail : Fraction, default=TAIL
        The quantile of distances that bounds are to hold.
    zooms : int, default=0
        How many more choices a column has for its place, if it is far from zero.
    twice : bool, default=False
        Whether quartiles are looked for in finer cells too: of numbers far from zero beside their
        spread the first ones are a few cells apart.

    Returns
    -------
    center, half_width : float64 arrays of shape (n_columns,)
        Half-widths are positive; 1 if octaves alone are looked for and zero is the median.
    """
    mostly_zero, size = find_sizes(oracle, of)
    width, rest = width or WIDTH, ~mostly_zero
    center, half_width = np.zeros_like(size), np.where(rest, width * size, 1.0)
    if how == "octaves":
        return center, half_width
    edges, prior = (-REACH * size, REACH * size), LINEAR_PRIOR
    for _ in range(1 + twice):
        cell = (edges[1] - edges[0]) / N_LINEAR
        low, high = np.zeros((2, len(size)))
        quartiles = oracle.release_quantiles(of, QUARTILES, prior=prior, edges=edges, columns=rest)
        low[rest], high[rest] = np.sort(quartiles, axis=0)
        center = np.where(rest, edges[0] + (low + high + 1) / 2 * cell, 0.0)
        edges, prior = (edges[0] + (low - 1) * cell, edges[0] + (high + 2) * cell), None
    near = rest & (high - low <= 1)
    if zooms and near.any():
        # the last one is for what lies beside the one number of most cells
        times = max(zooms - (how == "tails"), 1)
        center = np.where(near, find_cells(oracle, of, *edges, times, columns=near)[0], center)
    # a reach of a power of two is to hold that power, of which indicators are made
    around = center, np.ldexp(size, -_HALVINGS) * (1 + 2.0**-20)
    reach, spread = find_intervals(oracle, of, *around, _SPREAD_PRIOR, columns=rest)
    # of a column of which a fifth are zeros quartiles may lie among empty cells
    of_quartiles = np.maximum(width * (high - low) * cell, reach)
    half_width = np.where(spread, np.where(near, 2 * width * reach, of_quartiles), half_width)
    if how == "quartiles":
        # The octave of a column that is mostly one number may be far too low, where nearly half of
        # all are zeros. At worst such a column has no effect.
        half_width = np.where(rest & ~spread, np.maximum(half_width, 1.0), half_width)
    beside = rest & ~spread & (how == "tails")
    share = Fraction(1, int(min(max(evidence / 7, 10), 200)))  # those beside have evidence of 7
    reach, found = find_intervals(oracle, of, *around, _BESIDE_PRIOR, share, beside)
    half_width = np.where(found, 2 * reach, half_width)
    beside &= found & (zooms > 1)
    asked = {"prior": _OF_OTHERS, "zeros": "left out", "columns": mostly_zero}
    (octave,) = oracle.release_quantiles(of, [_SMALL_ONES], **asked)
    half_width[mostly_zero] = np.ldexp(1 + 2.0**-20, octave + LOWEST - 1)
    tails = [(mostly_zero, [LARGEST, LARGEST], _odds_among_zeros(evidence))]
    if how == "tails":
        of_tail = _tail_prior(evidence * float(1 - tail))
        tails += [(spread, [tail], of_tail), (beside, [LARGEST], _tail_prior())]
    for columns, quantiles, prior in tails:
        asked = {"around": (center, half_width), "columns": columns, "prior": prior}
        doublings = oracle.release_quantiles(of, quantiles, **asked).min(axis=0)
        half_width[columns] = np.ldexp(half_width[columns], doublings)
    return center, half_width


def find_sizes(oracle, of):
    """How large the numbers of each column are, for one choice.

    Parameters
    ----------
    oracle : QuantileOracle
    of : {"features", "target", "row_norm"}

    Returns
    -------
    mostly_zero : bool ndarray of shape (n_columns,)
    size : float64 ndarray of shape (n_columns,)
        The upper end of the octave of the median of |x|; 1 where this is zero.
    """
    (octave,) = oracle.release_quantiles(of, [MEDIAN], prior=PRIOR)
    mostly_zero = octave == 0
    return mostly_zero, np.ldexp(1.0, np.where(mostly_zero, 0, octave + LOWEST))


def find_cells(oracle, of, first, last, times, prior=None, columns=None):
    """The cell that holds the median of each column, after so many choices, each in finer cells.

    Parameters
    ----------
    oracle : QuantileOracle
    of : {"features", "target"}
    first, last : float64 arrays of shape (n_columns,)
        Ends of the first cells.
    times : int
    prior : float64 ndarray of shape (n_cells,), default=None
        Odds of the first cells.
    columns : bool ndarray of shape (n_columns,), default=None
        Which of them are asked about; None is all.

    Returns
    -------
    middle, width : float64 arrays of shape (n_columns,)
    """
    cell, asked = np.zeros(first.shape, dtype=np.intp), slice(None) if columns is None else columns
    for _ in range(times):
        (cell[asked],) = oracle.release_quantiles(
            of, [MEDIAN], prior=prior, edges=(first, last), columns=columns
        )
        width = (last - first) / N_LINEAR
        middle = first + (cell + 0.5) * width
        first, last, prior = middle - 1.5 * width, middle + 1.5 * width, None
        # no finer than what double precision tells apart
        least = np.maximum(np.abs(first), np.abs(last)) * 2.0**-40
        first, last = np.minimum(first, middle - least), np.maximum(last, middle + least)
    return middle, width


def find_intervals(oracle, of, center, unit, prior, share=_SPREAD, columns=None):
    """Intervals in which records are spread.

    Parameters
    ----------
    oracle : QuantileOracle
    of : {"features", "target"}
    center, unit : float64 arrays of shape (n_columns,)
        The unit is the reach of the narrowest interval.
    prior : float64 ndarray of shape (len(REACHES),)
        Odds of intervals.
    share : Fraction, default=3/8
        Of all records, those that an interval holds beside its fullest cell.
    columns : bool ndarray of shape (n_columns,), default=None
        Which of them are asked about; None is all.

    Returns
    -------
    reach : float64 ndarray of shape (n_columns,)
    found : bool ndarray of shape (n_columns,)
        Whether there is one that is not everything.
    """
    everything, asked = len(REACHES) - 1, slice(None) if columns is None else columns
    chosen = np.full(unit.shape, everything)
    (chosen[asked],) = oracle.release_quantiles(
        of, [share], prior=prior, around=(center, unit), intervals=True, columns=columns
    )
    return REACHES[chosen] * unit, chosen < everything


def find_scales_within(oracle, how, lo, hi, evidence, tail=TAIL):
    """Centre and half-width of each column of features within stated bounds.

    A narrower interval is taken only if records are spread within it: however many lie on one
    point, they don't tell where others are, and a column of zeros and ones in a part of its bounds
    would have its coefficient many times too large.

    Parameters
    ----------
    oracle : QuantileOracle
    how : {"within", "all within", "tails within"}
    lo, hi : float64 arrays of shape (n_columns,)
    evidence, tail : as of `find_scales`
        The largest number in place of a tail with "all within".

    Returns
    -------
    center, half_width : float64 arrays of shape (n_columns,)
        As of `find_scales`. An interval that reaches both bounds is seen from their middle.
    """
    low, high = edges_of_cells(lo, hi)
    for _ in range(3 if how == "tails within" else 2):  # a 256th part of the last one each
        (at,) = oracle.release_quantiles("features", [MEDIAN], edges=(low, high))
        cell = (high - low) / N_LINEAR
        low, high = edges_of_cells(low + at * cell, low + (at + 1) * cell)
    center, unit = low / 2 + high / 2, high - low
    of_all = math.exp(max(_OF_EVERYTHING, _OF_A_POINT - evidence * float(_SPREAD) / 2))
    prior = np.append(np.ones(len(REACHES) - 1), of_all)
    reach, _ = find_intervals(oracle, "features", center, unit, prior)
    half_width = _WIDTH_OF_INTERVAL * reach
    if how != "within":
        farthest, beyond = (tail, 1 - tail) if how == "tails within" else (LARGEST, math.inf)
        # among the counts of intervals, from the reach of the half-width on
        first = np.searchsorted(REACHES, half_width / unit * (1 - 2.0**-20))
        asked = {"around": (center, unit), "first": first}
        asked["prior"] = _tail_prior(evidence * float(beyond))
        (doublings,) = oracle.release_quantiles("features", [farthest], **asked)
        half_width = np.ldexp(half_width, doublings)
    fills = (center - half_width <= lo) & (hi <= center + half_width)
    return np.where(fills, lo / 2 + hi / 2, center), np.where(fills, hi - lo, half_width)


def find_share(oracle, lo, hi):
    """The share of all stated half-widths that the median row fills, for one choice.

    It is the root mean square over columns, from the middle of their bounds. No column is cut to
    it, so one that fills its bounds beside loose ones keeps its coefficient.
    """
    half_width = hi / 2 - lo / 2
    unit = np.where(half_width > 0, half_width, 1.0) * math.sqrt(np.count_nonzero(half_width) or 1)
    unit *= 1 + 2.0**-20  # rows of which all cells are at an end of their bounds are within it
    asked = {"around": (lo / 2 + hi / 2, unit), "prior": _SHARE_PRIOR, "zeros": "counted"}
    (octave,) = oracle.release_quantiles("row_norm", [MEDIAN], **asked)
    return min(math.ldexp(1.0, int(octave[0]) + LOWEST), 1.0)


def find_medians(oracle, bounds=None):
    """The median of each column of features.

    Parameters
    ----------
    oracle : QuantileOracle
    bounds : pair (lo, hi) of float64 arrays of shape (n_columns,), default=None
        Public: then there is one choice a column, of a 256th part of them. Without bounds there
        are three: the octave, a cell of that size, and a 256th part of that cell and those beside.

    Returns
    -------
    float64 array of shape (n_columns,)
    """
    if bounds is not None:
        return find_cells(oracle, "features", *edges_of_cells(*bounds), 1)[0].clip(*bounds)
    mostly_zero, size = find_sizes(oracle, "features")
    found, _ = find_cells(oracle, "features", -REACH * size, REACH * size, 2, LINEAR_PRIOR)
    # of a column that is mostly zero the cell beside zero would be a fraction
    beside_zero = np.abs(found) < 2 * REACH * size / N_LINEAR
    return np.where(mostly_zero & beside_zero, 0.0, found)
