"""The mean of a target with a log link: where its intercept starts, and the unit of derivatives.

A descent with a narrow clip would be long on its way from another mean, and a clip that suits
counts of a mean of 100 is far too narrow for those of .1. So the mean is released first. It is the
partial derivative of the squared loss in the intercept, at half the public upper bound of the
target, which no record's derivative exceeds: ``proofs/release_partial.md``, ``log_link.md``.
"""

import math

import numpy as np

from ..loops._oracle_iterate import partials
from ..losses import SquaredLoss
from ..privacy.mechanisms._oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ._release import Release

# Share of μ², and the least n μ of the mean: its noise is then a 25th of the upper bound at most.
_SHARE, _LEAST_EVIDENCE = 0.05, 25.0


def mean_share(request):
    """Share of μ² for the mean, by public numbers; 0 where it is not released."""
    if not (request.private and request.has_log_link and request.fit_intercept):
        return 0.0
    if request.warm_start:  # it has an intercept already
        return 0.0
    evidence = request.budget.n * request.budget.mu * math.sqrt(_SHARE)
    return _SHARE * (evidence >= _LEAST_EVIDENCE)


class TargetMean(Release):
    """The mean of a target with a public upper bound."""

    name = "mean"

    def share(self, plan):
        return plan.request.mean_share

    def units(self, plan, n_samples):
        smoothness = plan.geometry.smoothness
        largest = plan.request.loss.high / 2  # of a derivative at half the upper bound
        return CoordinateUnits(
            plan.part_of(self.name),
            n_samples=n_samples,
            smoothness=smoothness,
            clip=largest * math.sqrt(float(smoothness.sum()) / float(smoothness[-1])),
            n_normalizer=plan.request.budget.n,
        )


TARGET_MEAN = TargetMean()


def found_mean(plan, receipt, records, key):
    """The released mean, no less than its noise.

    Parameters
    ----------
    plan : SolverPlan
        In the bounds that were found.
    receipt : Receipt
        What pays for the mean is redeemed here.
    records : Arrays, or what has their methods
        Targets within the public bounds of the plan's loss.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    """
    place, request = plan.place(records), plan.request
    units, key = TARGET_MEAN.units(plan, place.n_samples), TARGET_MEAN.key(key)
    stated = {"loss": SquaredLoss(), "fit_intercept": True, "key": key}
    oracle = receipt.shown(RecordOracle(receipt, units, place, **stated), units)
    middle = request.loss.high / 2
    at = np.zeros((1, request.n_coordinates))
    at[0, -1] = middle
    slope = float(partials(oracle, at, request.n_coordinates - 1)[0])
    neighbors = {"replace_one": 2.0, "add_remove": 1.0}[request.budget.neighboring]
    noise = neighbors * middle * units.noise_multiplier / request.budget.n
    return min(max(middle - slope, noise), 2 * middle)
