"""The mean of a target: where its intercept starts and, with a log link, the unit of derivatives.

A descent with a narrow clip would be long on its way from another mean, and a clip that suits
counts of a mean of 100 is far too narrow for those of .1. So the mean is released first: of a log
link, and of stated bounds where records are too few to look for the target within them. It is the
partial derivative of the squared loss in the intercept, in the middle of the public bounds of the
target, which no record's derivative exceeds: ``proofs/release_partial.md``, ``log_link.md``.
"""

import math
from dataclasses import replace

import numpy as np

from ..loops._iterate import partials
from ..losses import SquaredLoss
from ..privacy.mechanisms._record_oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ._release import Release
from ._shrinkage import is_shrunk, size_of_margins

# Share of μ² of each, at least. The noise of the mean is then a 25th of the upper bound, and that
# of a derivative at the end a tenth of a mean that is an eighth of that. With fewer records the
# mean has more, up to a part of what choices leave, if its noise is below a fifth: slopes are noise
# there, and an intercept that starts elsewhere never arrives.
_SHARE, _EVIDENCE, _LEAST_AT_END = 0.05, 25.0, 160.0
_PART_LEFT, _LEAST_EVIDENCE = 0.3, 5.0
# Within stated bounds: from this n μ on bounds are searched, or scales are stated that suit. The
# noise of a mean, in half-widths, that is aimed at and at most; and shares of μ²: what slopes can
# spare, and the most where their signal is so low that they are noise in any case. With .3 for a
# mean at n μ = 11 R² fell from .34 to .22 in true bounds of three features.
_ENOUGH, _AIMED_NOISE, _MOST_NOISE = 50.0, 0.2, 0.25
_SPARE, _MOST_SHARE, _SIGNAL = 0.1, 0.9, 5.0
# No mean is taken to be off by more than a factor of about three.
_MOST = 0.7


def mean_share(request):
    """Share of μ² for the mean, by public numbers; 0 where it is not released."""
    # a warm start has an intercept already
    if not (request.private and request.fit_intercept) or request.warm_start:
        return 0.0
    if not request.has_log_link:
        return _share_within(request)
    share = min(max((_EVIDENCE / request.evidence) ** 2, _SHARE), _PART_LEFT * request.share_left)
    has_range = request.target_search.n_choices or not request.finds_target
    if not has_range or request.evidence * math.sqrt(share) < _LEAST_EVIDENCE:
        return 0.0
    return share + _SHARE * _has_end(request)


def _has_end(request):
    """Whether a derivative at the end tells more than its noise."""
    is_free = request.has_log_link and not request.penalize_intercept
    return is_free and request.evidence * math.sqrt(_SHARE) >= _LEAST_AT_END


def _share_within(request):
    """The share for one target's mean, in bounds that are not searched or tell nothing else."""
    if request.target_search.is_all and request.n_targets == 1:
        # where nothing else can be told, choices of bounds leave it the rest, if it is worth it:
        # a median that is far off, or a skewed target's, is moved to the mean
        rest = 0.9 - request.target_search.share
        return rest * (rest >= 0.1)
    is_searched = request.finds_target or request.target_search.n_choices
    if is_searched or request.inference or request.n_targets != 1 or request.evidence >= _ENOUGH:
        return 0.0
    most = min(max(_SPARE, _SIGNAL / request.signal**2), _MOST_SHARE)
    share = min((request.least_noise / _AIMED_NOISE) ** 2, most)
    return share if request.least_noise <= _MOST_NOISE * math.sqrt(share) else 0.0


class OfIntercept(Release):
    """Partial derivatives in the intercept, with a clip that no record's derivative exceeds."""

    def __init__(self, name, count, share_of, largest_of):
        self.name, self.count = name, count
        self._share_of, self._largest_of = share_of, largest_of

    def share(self, plan):
        return self._share_of(plan)

    def units(self, plan, n_samples, largest=None):
        smoothness, largest = plan.geometry.smoothness, largest or self._largest_of(plan.request)
        clip = largest * math.sqrt(float(smoothness.sum()) / float(smoothness[-1]))
        return CoordinateUnits(**self.paid(plan, n_samples), smoothness=smoothness, clip=clip)

    def released(self, plan, receipt, records, key, loss, points, largest=None):
        """The derivatives of a mean loss at coefficients, and their units."""
        place, request = plan.place(records), plan.request
        units = self.units(plan, place.n_samples, largest)
        stated = {"loss": loss, "fit_intercept": True, "key": self.key(key)}
        oracle = RecordOracle(receipt, units, place, **stated)
        last = np.full(len(points), request.n_coordinates - 1)
        return partials(oracle, points, last), units


def reach(request):
    return request.loss.reach


def _largest(request):
    return 2 * _range(request)[1]  # of weights up to 2


def _share_at_end(plan):
    return _SHARE * (plan.request.mean_share > 0 and _has_end(plan.request))


TARGET_MEAN = OfIntercept(
    "mean", 2, lambda plan: plan.request.mean_share - _share_at_end(plan), _largest
)
MEAN_AT_END = OfIntercept("mean at end", 1, _share_at_end, reach)


def _range(request):
    # of a scaled target: the lower end, from which it is counted, and the length
    return (0.0, request.loss.high) if request.has_log_link else (-1.0, 2.0)


def found_mean(plan, receipt, records, key):
    """The released means of the target, no less than its noise, and of the weights; the noise.

    Without weights both derivatives are taken in the middle of the target's range. With weights w
    they are those at its ends, 0, the mean of -w y, and high, of w (high - y): their difference is
    the mean weight. So a mean is right whatever the unit of exposures is, up to weights of 2.

    Parameters
    ----------
    plan : SolverPlan
        In the bounds that were found.
    receipt : Receipt
        What pays for the means is redeemed here.
    records : Arrays, or what has their methods
        Targets within their public bounds.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    mean, weight, noise : float
    """
    request = plan.request
    (low, high), points = _range(request), np.zeros((2, request.n_coordinates))
    has_weights = getattr(records, "sample_weight", ()) is not None
    points[:, -1] = (low, low + high) if has_weights else low + high / 2
    largest = 2 * high if has_weights else high / 2
    found, units = TARGET_MEAN.released(plan, receipt, records, key, SquaredLoss(), points, largest)
    noise = units.neighbors * largest * units.noise_multiplier / request.budget.n
    if not has_weights:
        noise /= math.sqrt(2)
        return min(max(high / 2 - found.mean(), noise), high), 1.0, noise
    weight = max((found[1] - found[0]) / high, 0.01, 2 * noise / high)  # rather too large
    return min(max(-found[0], noise) / weight, high), weight, noise


def start_within(request, mean, noise):
    """Where a fit within bounds starts, in the units of the target."""
    mean -= 1.0  # from the middle of the bounds, in half-widths
    # within two deviations of its noise it tells nothing, and a little farther it tells little: a
    # start that noise placed is hardly left again
    told = mean**2 - (2 * noise) ** 2
    mean = told / mean if told > 0 else 0.0
    intercept = request.target_center + request.target_half_width * mean
    return np.zeros((1, request.n_features)), np.full(1, intercept)


def with_mean(plan, receipt, records, key, solution):
    """A solution whose predictions have the mean of the target, with a log link.

    Clips cut large targets more often, so the intercept is too low. With the derivative d at the
    end predictions have 1 + d times the mean of the target (power 1), and the mean ratio of target
    to prediction is 1 - d (power 2). Without it rare counts have the released mean at least, by
    what moments of rows tell of their predictions. Descents release none, and rows may lie far from
    the middle of their bounds: predictions are taken to be larger by the spread of margins.
    """
    request, loss, coef = plan.request, plan.request.loss, solution.coef.copy()
    if not (request.has_log_link and request.mean_share):
        return solution
    if plan.part_of(MEAN_AT_END.name) is None:
        # rare from a quarter of the upper bound down to a seventh: descents tell others better
        trust = min(max((loss.reach - 4) / 3, 0), 1) * is_shrunk(request)
        trust *= request.evidence >= _ENOUGH
        predicted = solution.log_of_mean
        if predicted is None:
            predicted = coef[-1] + size_of_margins(plan, coef[:-1])
        coef[-1] += trust * max(math.log(loss.mean) - predicted, 0)
        return replace(solution, coef=coef)
    slopes, _ = MEAN_AT_END.released(plan, receipt, records, key, loss, coef[np.newaxis])
    slope = slopes[0] * loss.unit / (loss.weight * loss.mean ** (2 - loss.power))
    of_means, of_ratios = -math.log1p(max(slope, -_MOST)), math.log1p(-min(slope, _MOST))
    coef[-1] += (2 - loss.power) * of_means + (loss.power - 1) * of_ratios
    return replace(solution, coef=coef)
