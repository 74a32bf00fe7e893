"""The mean of a target with a log link: where its intercept starts, and the unit of derivatives.

A descent with a narrow clip would be long on its way from another mean, and a clip that suits
counts of a mean of 100 is far too narrow for those of .1. So the mean is released first. It is the
partial derivative of the squared loss in the intercept, at half the public upper bound of the
target, which no record's derivative exceeds: ``proofs/release_partial.md``, ``log_link.md``.
"""

import math
from dataclasses import replace

import numpy as np

from ..loops._oracle_iterate import partials
from ..losses import SquaredLoss
from ..privacy.mechanisms._record_oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ._release import Release

# Share of μ² of each, and the least n μ of it. The noise of the mean is then a 25th of the upper
# bound at most, and that of a derivative at the end a tenth of a mean that is an eighth of that.
_SHARE, _LEAST_EVIDENCE, _LEAST_AT_END = 0.05, 25.0, 160.0
# No mean is taken to be off by more than a factor of about three.
_MOST = 0.7
# No mean weight is taken to be less.
_LEAST_WEIGHT = 0.01


def mean_share(request):
    """Share of μ² for the mean, by public numbers; 0 where it is not released."""
    if not (request.private and request.has_log_link and request.fit_intercept):
        return 0.0
    if request.warm_start:  # it has an intercept already
        return 0.0
    evidence = request.budget.n * request.budget.mu * math.sqrt(_SHARE)
    ends = not request.penalize_intercept and evidence >= _LEAST_AT_END
    return _SHARE * ((evidence >= _LEAST_EVIDENCE) + ends)


class OfIntercept(Release):
    """A partial derivative in the intercept that no record's derivative exceeds.

    The mean of the target is one, of the squared loss; that of the loss itself comes at the end.
    """

    def __init__(self, name, count):
        self.name, self.count, self._at_end = name, count, count == 1

    def share(self, plan):
        share = plan.request.mean_share
        return _SHARE * (share > _SHARE) if self._at_end else min(share, _SHARE)

    def units(self, plan, n_samples, largest=None):
        smoothness, loss = plan.geometry.smoothness, plan.request.loss
        if largest is None:
            largest = loss.reach if self._at_end else 2 * loss.high
        clip = largest * math.sqrt(float(smoothness.sum()) / float(smoothness[-1]))
        return CoordinateUnits(**self.paid(plan, n_samples), smoothness=smoothness, clip=clip)

    def released(self, plan, receipt, records, key, loss, points, largest=None):
        """The derivatives of a mean loss at coefficients, and their units."""
        place, request = plan.place(records), plan.request
        units = self.units(plan, place.n_samples, largest)
        stated = {"loss": loss, "fit_intercept": True, "key": self.key(key)}
        oracle = RecordOracle(receipt, units, place, **stated)
        return partials(oracle, points, request.n_coordinates - 1), units


OF_MEANS = TARGET_MEAN, MEAN_AT_END = OfIntercept("mean", 2), OfIntercept("mean at end", 1)


def found_mean(plan, receipt, records, key):
    """The released means of the target, no less than its noise, and of the weights.

    Without weights both derivatives are taken in the middle of the target's range. With weights w
    they are those at 0, the mean of -w y, and at the upper bound, of w (high - y): their difference
    is the mean weight. So a mean is right whatever the unit of exposures is, up to weights of 2.

    Parameters
    ----------
    plan : SolverPlan
        In the bounds that were found.
    receipt : Receipt
        What pays for the means is redeemed here.
    records : Arrays, or what has their methods
        Targets within the public bounds of the plan's loss.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    mean, weight : float
    """
    request = plan.request
    high, points = request.loss.high, np.zeros((2, request.n_coordinates))
    has_weights = getattr(records, "sample_weight", ()) is not None
    points[:, -1] = (0.0, high) if has_weights else high / 2
    largest = 2 * high if has_weights else high / 2
    found, units = TARGET_MEAN.released(
        plan, receipt, records, key, SquaredLoss(), points, largest
    )
    neighbors = {"replace_one": 2.0, "add_remove": 1.0}[request.budget.neighboring]
    noise = neighbors * largest * units.noise_multiplier / request.budget.n
    if not has_weights:
        return min(max(high / 2 - found.mean(), noise / math.sqrt(2)), high), 1.0
    weight = max((found[1] - found[0]) / high, _LEAST_WEIGHT, 2 * noise / high)
    return min(max(-found[0], noise) / weight, high), weight


def with_mean(plan, receipt, records, key, solution):
    """A solution whose predictions have the mean of the target, where a derivative is paid for.

    The clip of the updates cuts large targets more often than small ones, so their intercept is too
    low. With the derivative d at the end the mean of predictions is 1 + d times that of the target
    (power 1), and the mean ratio of the target to its prediction 1 - d (power 2).
    """
    if plan.part_of(MEAN_AT_END.name) is None:
        return solution
    loss, coef = plan.request.loss, solution.coef.copy()
    slopes, _ = MEAN_AT_END.released(plan, receipt, records, key, loss, coef[np.newaxis])
    slope = slopes[0] * loss.unit / (loss.weight * loss.mean ** (2 - loss.power))
    of_means, of_ratios = -math.log1p(max(slope, -_MOST)), math.log1p(-min(slope, _MOST))
    coef[-1] += (2 - loss.power) * of_means + (loss.power - 1) * of_ratios
    return replace(solution, coef=coef)
