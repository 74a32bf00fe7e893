"""Where a target lies and how wide it is, from released quantiles that it pays for itself.

The octave of the median of |y| says how large numbers are, and cells of that size where the median
is; of a target far from zero finer cells are looked at around the one that was found. Distances
from the median say how far its tail goes: the farther a quantile, the fewer records contradict what
is wider, so the evidence decides which one is looked for.

Stated bounds may be many times too wide. A small share pays for a look at how much of them is
filled, by choices or, where evidence is short, by counts of cells. Narrower ones are used only
where the noise of stated ones would cost more than what a cut tail tells: a public factor.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..privacy.mechanisms._cell_sums import count_sensitivity
from ..privacy.mechanisms._gaussian_sum import Oracle
from ..privacy.mechanisms._quantiles import LEAST_RANGE, MOST_RANGE, QuantileOracle
from ..privacy.sums._counts import LOWEST, N_LINEAR, N_OCTAVES
from ._scale_choices import LARGEST, LINEAR_PRIOR, MEDIAN, PRIOR, REACH, find_cells
from ._scales import N_CELLS, SearchRelease, signal_at_most

# Shares of ρ, and the evidence n η of a choice that is aimed at, and the least that is worth it:
# of bounds, of bounds that cost as much as features do, and of a mean, where nothing else is told.
_WAYS = (0.1, 600.0, 40.0), (0.3, 44.0, 40.0), (0.9, 44.0, 24.0)
# Quantiles of distances, the farthest first, and half-widths over the upper end of the octave of
# distances that holds them. So much evidence is beyond: odds of a width that none reaches are
# exp(-_BEYOND).
_TAILS = {
    Fraction(k, 1000): 1.5 if k >= 950 else 2.25 if k >= 700 else 3.5
    for k in (999, 995, 980, 950, 900, 800, 700, 500)
}
# The least signal of the farthest.
_FAR_TAILS = {Fraction(999, 1000): 4000.0, Fraction(199, 200): 1500.0}
# The same quantiles with the share beyond each, and the least signal that it is for.
_SHARES_BEYOND = [(tail, float(1 - tail), _FAR_TAILS.get(tail, 0.0)) for tail in _TAILS]
_BEYOND = 5.0
# Each time finer cells are looked at they are so many times finer, at three cells' width.
_MOST_ZOOMS, _LEAST_OF_ZOOMS = 4, 60.0
# Within stated bounds: zooms, choices, the most of ρ, the evidence aimed at, and the least of it.
_WITHIN = 1, 3, 0.06, 600.0, 75.0
# With less evidence noisy counts of cells find the part of the bounds that holds a target,
# and its median: the most of μ², and the noise of a count over the number of records, aimed at and
# at most. With more of it true bounds lost a part, or the budget: R² .37 -> .34 at n μ = 47.
_MOST_OF_COUNTS, _AIMED_NOISE, _MOST_NOISE = 0.1, 0.06, 0.09
# A part is taken if no more than the first share of records seems to lie beside it, and that is so
# many deviations of its noise below the second share: a quarter may have the rarer of two values.
_MOST_BESIDE, _TOO_LARGE, _DEVIATIONS = 0.1, 0.25, 1.75
# With a log link one choice finds the octave of the largest target. Prior odds fall by e³ from one
# octave to the next larger one, and by no more than e^10 below the stated end and above it. Where
# few targets are not zero these odds outweigh them, and an octave far too low is likely to be
# chosen: none below a 256th of the stated end is used. Neither is one above half of it, or above
# 300 times it over the signal: a loud signal needs no narrower bounds, and loses by them where rare
# large targets are a good part of the mean.
_OF_LARGEST, _MOST_ODDS, _WORTH_OF_LARGEST = (0, 1, 0.1, 1000.0, 40.0), 10.0, 300.0
# Noise costs a share of R² that grows with the square of width over signal, about 750 over that of
# the found share of the stated half-width times the signal: found ones below so many times the
# stated one over the signal are used, and none above a share of it. With 40 instead of 200 a ridge
# of 40 columns lost .19 of R² in target bounds 8 times too wide. Targets of which a few are very
# large lose .01 by the 200 in true bounds, since found ones cut them.
# The quantile loss is smoothed over a share of the width, and a cut target is as steep as before:
# up to a larger share, if a far tail is found. With bounds three times too wide 99.7 % of the
# targets lay below predictions of the quantile .9.
_WORTH, _MOST_OF_STATED, _MOST_OF_BOUNDED, _FAR = 200.0, 0.3, 0.6, Fraction(9, 10)
# Cells of bounds beyond these leave double precision.
_LEAST_WIDTH, _FARTHEST = 1e-290, 1e300
# Odds of octaves of distances fall outwards, from the width of a cell or the median of distances,
# down to the least odds that a prior may have: with e^-8 one fit in a few hundred took octaves that
# no record reaches. So did odds that rose up to half the size of numbers: for targets hundreds of
# widths from zero R² fell below -1 in 3 to 12 of 80 fits. And how many octaves lie beyond a size.
_MOST_AWAY, _OUTWARDS = 16.0, 5
# Octaves of numbers other than zero are chosen between, or none of them if they are few: the odds
# of that one, which their number speaks against.
_OF_OTHERS = np.append(math.exp(4), PRIOR[1:])


@dataclass(frozen=True)
class TargetSearch:
    """The search for bounds of a target.

    Parameters
    ----------
    zooms : int
        How often finer cells are looked at.
    tail : Fraction
        The quantile of distances from the median.
    size_tail : Fraction
        That of distances from zero, whose octave nothing else is known of: twice the evidence.
    n_choices : int
    share : float
        Share of ρ.
    eta : float
        Bounded range of a choice; without it, cells of stated bounds are counted.
    is_all : bool
        Whether nothing else can be told than a mean.
    """

    zooms: int = 0
    tail: Fraction = MEDIAN
    size_tail: Fraction = MEDIAN
    n_choices: int = 0
    share: float = 0.0
    eta: float = 0.0
    is_all: bool = False


NO_TARGET = TargetSearch()


def wanted_target(request):
    """The search for a target's bounds that a request leaves to be done, from public facts."""
    if not (request.private and request.n_targets):
        return NO_TARGET
    if not request.finds_target:
        return _wanted_within(request)
    _ = request.budget.mu  # refuses what is too small for any noise, and says so
    signal = signal_at_most(request)
    able = [of_tail for of_tail in _SHARES_BEYOND if signal >= of_tail[-1]]
    _, share_beyond, least_signal = able[0]
    farthest = 2 * _BEYOND / share_beyond  # the evidence that its quantile asks for
    for zooms, (most, aim, least) in _ways(request):
        # without an intercept, or of counts and the like, nothing but the size is looked for
        of_one = 1 + (2 + zooms) * request.centres_target
        of_one += zooms > 0  # the median of distances
        count = of_one * request.n_targets
        aim = max(aim, farthest) if least_signal else aim
        eta, evidence, spent = _range_of(request, count, most, aim)
        if evidence >= least * (1 - 1e-9) and eta >= LEAST_RANGE:
            tails = [_tail(evidence, beyond, able) for beyond in (_BEYOND, 2 * _BEYOND)]
            is_all = most == _WAYS[-1][0]
            return TargetSearch(zooms, *tails, count, spent, eta, is_all)
    return NO_TARGET


def _wanted_within(request):
    """The search for narrower bounds than the stated ones."""
    # whoever states scales has them; a norm beside bounds comes from encoders, which know no target
    looks = request.looks_within or request.row_norm_bound is not None
    looks = request.looks_for_features or (looks and request.feature_bounds is not None)
    if request.inference or not (request.has_log_link or (looks and request.centres_target)):
        return NO_TARGET
    half_width = np.min(request.target_half_width)
    farthest = np.max(np.abs(request.target_center) + request.target_half_width)
    if not (half_width > _LEAST_WIDTH and farthest < _FARTHEST):
        return NO_TARGET
    n_targets, budget = request.n_targets, request.budget
    zooms, of_one, most, aim, least = _OF_LARGEST if request.has_log_link else _WITHIN
    eta, evidence, spent = _range_of(request, of_one * n_targets, most, aim)
    if evidence >= least and eta >= LEAST_RANGE:
        tail = _tail(evidence, _BEYOND, _SHARES_BEYOND[len(_FAR_TAILS) :])
        return TargetSearch(zooms, tail, tail, of_one * n_targets, spent, eta)
    moved = count_sensitivity(N_CELLS, budget.neighboring, n_targets)
    noise = moved / (budget.n * budget.mu * math.sqrt(_MOST_OF_COUNTS))
    share = _MOST_OF_COUNTS * min(noise / _AIMED_NOISE, 1.0) ** 2
    able = noise <= _MOST_NOISE and not request.has_log_link
    return TargetSearch(n_choices=n_targets, share=share) if able else NO_TARGET


def _range_of(request, count, most, aim):
    """The range η of so many choices with a share of ρ at most, their evidence, and their share."""
    rho = request.budget.rho  # η = sqrt(8 share ρ / count)
    eta = min(aim / request.budget.n, math.sqrt(8 * most * rho / count), MOST_RANGE)
    return eta, request.budget.n * eta, count * eta**2 / (8 * rho)


def _tail(evidence, beyond, able):
    """The farthest quantile for which odds of a width that no record reaches are e^-beyond."""
    return next((tail for tail, share, _ in able if share * evidence >= 2 * beyond), MEDIAN)


def _ways(request):
    """Zooms, and one of `_WAYS`, of each search, the finest first."""
    cheap, dear, of_a_mean = _WAYS
    zooms = range(_MOST_ZOOMS, 0, -1) if request.centres_target else ()
    ways = [(k, (*cheap[:2], _LEAST_OF_ZOOMS)) for k in zooms] + [(0, cheap), (0, dear)]
    # of a mean alone there are no intervals, and nothing pays for them
    return ways if request.inference else [*ways, (0, of_a_mean)]


TARGET = SearchRelease("target", "target_search")


def found_target(plan, receipt, place, key):
    """Carry out the search of a plan; fields of FoundScales.

    Parameters
    ----------
    plan, receipt, place, key : as of `found_scales`
    """
    request, middle = plan.request, None
    search = request.target_search
    kind = QuantileOracle if search.eta else Oracle
    units, oracle = TARGET.opened(plan, receipt, place, key, kind)
    if request.finds_target:
        lo, hi = find_target(oracle, search, centred=request.centres_target)
    elif request.has_log_link:
        hi = find_largest(oracle, request.loss, request.signal)
        lo = -hi  # as without stated bounds: half the width is the upper end
    else:
        center, half_width = map(np.atleast_1d, (request.target_center, request.target_half_width))
        most = min(_WORTH / request.signal, _MOST_OF_STATED)
        losses = request.loss if isinstance(request.loss, tuple) else (request.loss,)
        if search.tail >= _FAR and math.isfinite(losses[0].steepest):
            most = _MOST_OF_BOUNDED
        stated, n = (center - half_width, center + half_width), request.budget.n
        if search.eta:
            lo, hi, middle = find_target_within(oracle, search, *stated, most)
        else:
            shares = oracle.release("target", stated, N_LINEAR // N_CELLS).T / n
            parts = [find_part(own, units.noise_std / n, most) for own in shares]
            lo, hi, middle = stated[0] + 2 * half_width * np.transpose(parts)
    bounds = (float(lo[0]), float(hi[0])) if place.n_targets == 1 else (lo, hi)
    return {"target_bounds": bounds, "medians": middle}


def find_target(oracle, search, *, centred):
    """Bounds (lo, hi) of each target.

    Parameters
    ----------
    oracle : QuantileOracle
    search : TargetSearch
    centred : bool
        Whether a target has another middle than zero.
    """
    if not centred:
        half_width = _size(oracle, search.size_tail)
        return -half_width, half_width
    (octave,) = oracle.release_quantiles("target", [MEDIAN], prior=_OF_OTHERS, zeros="left out")
    zero = octave == 0
    size = np.ldexp(1.0, np.where(zero, 0, octave + LOWEST))
    first, last, times = -REACH * size, REACH * size, 1 + search.zooms
    middle, width = find_cells(oracle, "target", first, last, times, LINEAR_PRIOR)
    at_zero = zero | (np.abs(middle) <= width)
    # distances from the middle of a cell that holds all records are no more than half its width
    width = np.maximum(width / 2, np.abs(middle) * 2.0**-40)
    middle, width = np.where(at_zero, 0.0, middle), np.where(at_zero, size, width)
    half_width = np.empty_like(size)
    if (~zero).any():
        n_inner = math.ceil(math.log2((size / width)[~zero].max()))
        away = np.arange(n_inner + 1 + _OUTWARDS)
        prior = np.exp(-np.minimum(away, _MOST_AWAY))
        asked = {"columns": ~zero}
        if search.zooms:
            # among so many octaves few records contradict those that no tail reaches
            (ring,) = oracle.release_quantiles(
                "target", [MEDIAN], prior=np.ones(len(away)), around=(middle, width), **asked
            )
            width[~zero] = np.ldexp(width[~zero], ring)
        (ring,) = oracle.release_quantiles(
            "target", [search.tail], prior=prior, around=(middle, width), **asked
        )
        farthest = np.ldexp(size[~zero], _OUTWARDS)
        distance = np.minimum(np.ldexp(width[~zero], ring), farthest)
        half_width[~zero] = _TAILS[search.tail] * distance
    if zero.any():
        half_width[zero] = _size(oracle, search.size_tail, columns=zero)
    return middle - half_width, middle + half_width


def find_largest(oracle, loss, signal):
    """The end of the octave that holds all of a target with a log link, within stated bounds.

    One many times too large hides the mean and the slopes in noise.
    """
    away = np.arange(N_OCTAVES) + LOWEST - math.frexp(loss.high)[1]
    prior = np.exp(-(3.0 * away).clip(-_MOST_ODDS, _MOST_ODDS))
    (octave,) = oracle.release_quantiles("target", [LARGEST], prior=prior, zeros="counted")
    found = np.ldexp(1.0, octave + LOWEST)
    worth = min(_WORTH_OF_LARGEST / signal, 0.5)
    is_used = (found >= 2.0**-8 * loss.high) & (found <= worth * loss.high)
    return np.where(is_used, found.clip(min(2 * loss.low, loss.high)), loss.high)


def find_target_within(oracle, search, lo, hi, most):
    """Bounds (lo, hi) of each target within stated ones, and its median.

    They are as wide as the stated ones where found ones are above the share `most` of them.
    """
    stated = (hi - lo) / 2
    middle, width = find_cells(oracle, "target", lo, hi, 1 + search.zooms)
    # all widths that would leave bounds as they are stand for one
    widest = math.log2(max((most * stated / width).max() / _TAILS[search.tail], 1.0))
    n_rings = 2 + math.floor(widest)
    (ring,) = oracle.release_quantiles(
        "target", [search.tail], prior=np.ones(n_rings), around=(middle, width)
    )
    half_width = _TAILS[search.tail] * np.ldexp(width, ring)
    half_width = np.where(half_width <= most * stated, half_width, hi - lo)
    return np.maximum(middle - half_width, lo), np.minimum(middle + half_width, hi), middle


def find_part(shares, noise, most):
    """The ends of the part that holds a target, and its median, as shares of the stated width.

    `shares` of records in cells have noise of one standard deviation; together they are made 1. The
    shortest part that may hold all is taken, and everything if it is longer than `most`.
    """
    n_cells = len(shares)
    below = np.append(0.0, np.cumsum(shares + (1 - shares.sum()) / n_cells))
    part = 0, n_cells
    for length in range(int(most * n_cells), 0, -1):
        beside = 1 - (below[length:] - below[:-length])
        deviation = noise * math.sqrt(length * (1 - length / n_cells))
        first = int(beside.argmin())
        if beside[first] <= min(_MOST_BESIDE, _TOO_LARGE - _DEVIATIONS * deviation):
            part = first, first + length
    ends = np.arange(part[0], part[1] + 1)
    within = np.maximum.accumulate(below[ends])  # a noisy count may be negative
    median = np.interp((within[0] + within[-1]) / 2, within, ends)
    return ends[0] / n_cells, ends[-1] / n_cells, median / n_cells


def _size(oracle, tail, columns=None):
    """A half-width from the octave that holds a quantile of |y|, zeros among them."""
    (octave,) = oracle.release_quantiles(
        "target", [tail], prior=PRIOR, columns=columns, zeros="counted"
    )
    return _TAILS[tail] * np.where(octave == 0, 1.0, np.ldexp(1.0, octave + LOWEST))
