"""The search of a fit for scales of its columns: which one, for which share of its budget."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..privacy.accounting._calibration import choices_event
from ..privacy.mechanisms._cell_sums import CountUnits
from ..privacy.mechanisms._quantiles import LEAST_RANGE, MOST_RANGE, QuantileOracle, QuantileUnits
from ..utils._warnings import warn
from ._found_scales import ROW_SHARE, FoundScales, stated_bounds
from ._records_outside import FAR, NOTHING_CUT, Cut, are_many
from ._release import Release
from ._scale_choices import (
    AMPLE_EVIDENCE,
    LEAST_EVIDENCE,
    TAIL,
    WIDTH,
    find_scales,
    find_scales_within,
    find_share,
    find_sizes,
    most_zooms,
    n_choices,
)

# Farther tails, in thousandths, with the least signal, where the noise of a width that is several
# times as large costs less than what a cut tail tells, and the evidence. Bounds of features leave
# the clip of residuals as it is, so they need less than those of a target. The last needs little,
# since odds fall with the width: when it needed 500, regressions at a signal of 400 with lognormal,
# exponential or Student columns lost .02 to .05 of R².
_FAR_TAILS = (999, 4e3, 5000), (995, 600, 1000), (990, 300, 500), (990, 150, 100)
_SHARE_OF_FAR_TAIL = 0.2  # of ρ, at most
_LEAST_OF_FEATURES = {"quartiles": 35, "tails": 134, "within": 70, "tails within": 80, "share": 28}
# Shares of ρ: more than the least only until the evidence is ample, and the last for what would
# otherwise be unit scale.
_LEAST_SHARE, _MOST_SHARE, _LAST_SHARE = 0.05, 0.3, 0.5
# Limits of an estimator: M_j, the square of a half-width, is proved for 1e-60 to 1e60.
_NARROWEST, _WIDEST = 2.0**-95, 2.0**95

# Ways within stated bounds, the finest first, the most of ρ and the evidence that is aimed at. They
# gain nothing where columns fill their bounds, so their share raises no error by more than a tenth.
_WITHIN = dict.fromkeys(("tails within", "within"), (0.14, AMPLE_EVIDENCE)) | {"share": (0.1, 40.0)}
# A record of a regression is far if it lies so many found half-widths from some column's centre.
# Where a noisy count is sure that more than such a share of records is far, narrow bounds would cut
# what tells most of slopes, so all columns get wider ones within the stated bounds: as much wider
# as leaves such a signal. Rare values that lie much farther are worth more noise, and solvers whose
# errors are not known have more of it.
_FAR, _MOST_FAR, _LEAST_SIGNAL = 2.0, 0.005, 90.0
_FARTHER, _MOST_FARTHER, _LEAST_OF_FARTHER, _NOISE_OF_OTHERS = 8.0, 0.01, 20.0, 2.5
N_CELLS = 16  # of stated bounds, which are counted


@dataclass(frozen=True)
class ScaleSearch:
    """The search of a fit for scales, beside its updates.

    Parameters
    ----------
    features : {"tails", "quartiles", "octaves", "within", "tails within", "rows", "share", None}
        Search for centre and width of each column, or its octave, or for both within stated bounds;
        or for one width, from norms of rows; or for one share of all stated half-widths.
    n_choices : int
        How many choices find them.
    share : float
        Share of ρ, for all of them.
    eta : float
        Bounded range of a choice.
    tail : Fraction
        The quantile of distances that bounds are to hold.
    zooms : int
        As of `find_scales`.
    """

    features: str | None = None
    n_choices: int = 0
    share: float = 0.0
    eta: float = 0.0
    tail: Fraction = TAIL
    zooms: int = 0

    @property
    def is_within(self):
        """Whether columns are looked for within stated bounds."""
        return self.features in ("within", "tails within")


NOTHING = ScaleSearch()


def wanted_scales(request):
    """The search that a request leaves to be done, from public facts.

    Facts that are stated are not looked for. Of the ways to look for the others it is the finest
    one whose choices have evidence enough; without any, features have unit scale.
    """
    if not request.private:
        return NOTHING
    _ = request.budget.mu  # which says what is too small for any noise
    rho = request.budget.rho
    for features, most in _ways(request):
        if features is None:
            break
        count = 1 if features in ("rows", "share") else n_choices(request.n_features, features)
        most, aim = _WITHIN.get(features, (most, AMPLE_EVIDENCE))
        if features == "tails":  # so that one zoom leaves as much
            aim *= math.sqrt(n_choices(1, "tails", 1) / n_choices(1, "tails"))
        # η = sqrt(8 share ρ / count), so the evidence n η costs
        share = count / (8 * rho) * (aim / request.budget.n) ** 2
        share = min(max(share, _LEAST_SHARE), most)
        eta = min(math.sqrt(8 * share * rho / count), MOST_RANGE)
        least = _LEAST_OF_FEATURES.get(features, LEAST_EVIDENCE)
        if eta >= max(least / request.budget.n, LEAST_RANGE):
            tail, zooms = TAIL, 0
            if features in ("tails", "quartiles"):  # at the same price
                is_ample = features == "tails" and share == _LEAST_SHARE
                least = 2 * AMPLE_EVIDENCE if is_ample else math.inf
                alone = request.budget.n * eta * math.sqrt(count)
                zooms = most_zooms(alone, request.n_features, features, least)
                more = n_choices(request.n_features, features, zooms)
                count, eta = more, eta * math.sqrt(count / more)
            # what is beyond farther tails is too little to be counted, and ruins intervals; within
            # bounds regressions count what is far
            has_tail = features == "tails" or (features == "tails within" and request.n_classes)
            if has_tail and not request.inference:
                tail, eta = _farthest_tail(request, count, eta)
            spent = count * eta**2 / (8 * rho)
            return ScaleSearch(features, count, spent, eta, tail, zooms)
    return NOTHING


def signal_at_most(request):
    """The signal of a fit that has the whole budget."""
    return request.budget.n * request.budget.mu / math.sqrt(request.n_coordinates)


def _farthest_tail(request, count, eta):
    """The farthest quantile of distances that is worth its price, and the range of each choice."""
    signal, budget = signal_at_most(request), request.budget
    most = min(math.sqrt(8 * _SHARE_OF_FAR_TAIL * budget.rho / count), MOST_RANGE)
    for tail, least, evidence in _FAR_TAILS:
        needed = evidence / budget.n
        if signal >= least and needed <= max(eta, most):
            return Fraction(tail, 1000), max(eta, needed)
    return TAIL, eta


def _ways(request):
    """Searches for features, and the most of ρ for each, the finest first.

    Of a target that is not found, or takes nearly all, nothing is told by features.
    """
    target = request.target_search
    if target.is_all or (request.finds_target and not target.n_choices):
        return
    *finer, last = _ways_of_features(request)
    yield from ((features, _MOST_SHARE) for features in finer)
    if request.n_classes == 2 and "octaves" in finer:  # one scale ranks far worse
        yield "octaves", _LAST_SHARE
    yield last, _MOST_SHARE
    yield last, _LAST_SHARE


def _ways_of_features(request):
    """Searches for features, the finest first; within stated bounds it may be none."""
    if request.looks_within:
        if request.sparse:
            return ["rows", None]
        # one share of all bounds says less of rows than a stated norm
        ways = [way for way in _WITHIN if way != "share" or request.row_norm_bound is None]
        has_centre = request.fit_intercept and request.feature_bounds is not None
        return [*ways, None] if has_centre else [None]
    if not request.looks_for_features:
        return [None]
    if request.sparse:
        return ["rows"]  # of as many units as entries, and never centred
    return ["tails", "quartiles", "octaves", "rows"][2 * (not request.fit_intercept) :]


class SearchRelease(Release):
    """The choices of a search that a request holds, or its counts of cells.

    Parameters
    ----------
    name : str
    search : str
        Attribute of the request: a search with `share`, `n_choices` and `eta`, 0 for counts.
    """

    def __init__(self, name, search):
        self.name, self._search = name, search

    def search(self, plan):
        return getattr(plan.request, self._search)

    def share(self, plan):
        return self.search(plan).share

    def event(self, plan):
        search = self.search(plan)
        choices = search.eta, search.n_choices, plan.request.budget.neighboring
        return choices_event(*choices) if search.eta else super().event(plan)

    def units(self, plan, n_samples):
        search = self.search(plan)
        if search.eta:
            return QuantileUnits(plan.part_of(self.name))
        numbers = {"n_classes": N_CELLS, "n_columns": search.n_choices}
        return CountUnits(**self.paid(plan, n_samples), **numbers)


SCALES = SearchRelease("scales", "scales")


def _within_limits(half_width, request):
    """Half-widths that a model can have; of what is cut, which was released, it warns."""
    cut = (half_width > _WIDEST) | (half_width < _NARROWEST)
    if cut.any():
        first = int(np.flatnonzero(cut)[0])
        name = first if request.columns is None else repr(request.columns[first])
        others = f" and {cut.sum() - 1} others have" if cut.sum() > 1 else " has"
        warn(
            f"feature {name}{others} numbers of a size about {half_width[first]:.2g}, and a "
            f"model takes {_NARROWEST:.2g} to {_WIDEST:.2g}: what is beyond is cut or hardly seen. "
            "Divide it by a public number, or put a DPStandardScaler before the model",
            UserWarning,
        )
    return np.clip(half_width, _NARROWEST, _WIDEST)


def _wider_if_many_are_far(plan, receipt, place, key, center, half_width):
    """Scales within stated bounds: what was found, or wider ones where too many records are far.

    With them come the share of records that are far, and the columns that are cut nevertheless.
    """
    lo, hi = stated_bounds(plan.request)

    def within(times):
        reach = times * half_width
        return np.maximum(center - reach, lo), np.minimum(center + reach, hi)

    bounds = within(np.array([[_FAR], [_FARTHER]]))
    (share, farther), noise_std = FAR.found(plan, receipt, place, bounds, key)
    if not are_many(share, noise_std, _MOST_FAR):
        return center, half_width, NOTHING_CUT
    least, most = _LEAST_SIGNAL, _FARTHER
    if are_many(farther, noise_std, _MOST_FARTHER):
        least, most = _LEAST_OF_FARTHER, math.inf
    noise = 1.0 if plan.has_inference else _NOISE_OF_OTHERS
    room = max(min(signal_at_most(plan.request) / least, most) / noise, 1.0)
    low, high = within(room)
    narrowed, width = (lo < low) | (high < hi), high / 2 - low / 2
    columns = np.flatnonzero(narrowed & (room < 4))  # wider bounds cut hardly anybody
    cut = Cut(share, noise_std, columns[np.argsort(width[columns] / (hi / 2 - lo / 2)[columns])])
    return low / 2 + high / 2, np.where(narrowed, width, hi - lo), cut


def found_scales(plan, receipt, place, key):
    """Carry out the search of a plan.

    Parameters
    ----------
    plan : SolverPlan
    receipt : Receipt
        What pays for the choices is redeemed here.
    place : Place
        Records as they are.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    """
    search, n = plan.request.scales, plan.request.budget.n
    _, oracle = SCALES.opened(plan, receipt, place, key, QuantileOracle, n_public=n)
    features, row_norm, cut, evidence = None, None, NOTHING_CUT, n * search.eta
    if search.features == "share":
        share = find_share(oracle, *stated_bounds(plan.request))
        return FoundScales(mean_squares=np.full(place.n_features, share**2))
    if search.features == "rows":
        _, (row_norm,) = find_sizes(oracle, "row_norm")
        row_norm = float(np.clip(row_norm, _NARROWEST / ROW_SHARE, _WIDEST))
        if not plan.request.sparse:  # a median row need not hold numbers that are rare and large
            reach = np.full(place.n_features, WIDTH * row_norm)
            features = -reach, reach
    elif search.features is not None:
        if search.is_within:
            bounds = stated_bounds(plan.request)
            found = find_scales_within(oracle, search.features, *bounds, evidence, search.tail)
            if plan.part_of(FAR.name) is not None:
                *found, cut = _wider_if_many_are_far(plan, receipt, place, key, *found)
            center, half_width = found
        else:
            center, half_width = find_scales(
                oracle, "features", search.features, evidence, tail=search.tail, zooms=search.zooms
            )
            # an inference is not about records without their tails
            half_width = _within_limits((1 + plan.request.inference) * half_width, plan.request)
        features = center - half_width, center + half_width
    return FoundScales(features, row_norm, cut=cut)
