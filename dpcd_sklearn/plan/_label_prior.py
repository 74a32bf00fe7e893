"""Where intercepts start: at the classes' shares, or at the target's mean, if affordable.

A rare class is otherwise found by the descent alone, which a short clip makes long: the model of
one positive in a hundred is still far from its intercept when its time is up. The same holds for a
target whose mean is far from the middle of its stated bounds.
"""

import math

import numpy as np

from ..loops._oracle_iterate import partials
from ..losses import LOSSES
from ..privacy.mechanisms._counts import CountOracle, CountUnits
from ..privacy.mechanisms._oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ..privacy.sums._counts import N_LINEAR
from ._release import Release
from ._shrinkage import is_of_recipe, is_shrunk, lacks_scale

# Share of μ² for the counts, and of what scales leave where a fit can tell nothing but these.
_SHARE, _SHARE_ALONE = 0.02, 0.5
# n times the μ of the counts, a class: one of average size is then known to about 5 %. What is less
# sure sends short descents off: with 10 for all classes, farm_ads at ε = 0.1 ended at .52 for .57.
_LEAST_EVIDENCE = 25.0
# The same for counts that nothing starts from: a share that is known to .1 is better than none.
_LEAST_EVIDENCE_ALONE = 5.0
# The mean of a target: its least and largest share of μ², and the n μ of the mean alone that is
# aimed at. Below the least n μ of the budget descents find the middle better than a mean does, and
# from the largest signal on Newton steps find it in any case.
_SHARE_OF_MEAN, _AIM = (0.02, 0.15), 12.0
_LEAST_OF_MEAN, _LOUD = 15.0, 75.0
# Standard deviations of means within bounds of half-width 1: of bounds that are far too wide, whose
# middle is near, and of others.
_NEAR, _FAR = 0.1, 0.6
# Solvers that gain by it. Coordinate descents, which the l1 norm leads to, lost as often.
_DESCENTS = ("auto", "skgd", "sgd")


def counts_share(request):
    """Share of μ² for counts of the classes, by public numbers; 0 where they are not affordable.

    A warm start has intercepts already.
    """
    if not _could_count(request):
        return 0.0
    if _keeps_shares_alone(request):
        share = _SHARE_ALONE * request.share_left
        return share * (_evidence(request, share) >= _LEAST_EVIDENCE_ALONE)
    return _SHARE * (request.length_share > 0 or starts_at_shares(request))


def starts_at_shares(request):
    """Whether a fit that counts its classes starts at their shares, which are known well enough."""
    sure = _evidence(request, _SHARE) >= _LEAST_EVIDENCE
    return _could_count(request) and (sure or _keeps_shares_alone(request))


def _keeps_shares_alone(request):
    """Whether nothing else is kept of a fit, since nobody knows the scale of the features."""
    return is_shrunk(request) and lacks_scale(request)


def _could_count(request):
    free_intercept = request.fit_intercept and not request.penalize_intercept
    wanted = request.private and free_intercept and not request.warm_start
    return wanted and 0 < request.n_classes <= N_LINEAR


def _evidence(request, share):
    return request.budget.n * request.budget.mu * math.sqrt(share) / request.n_classes


class Counts(Release):
    """How many records each class has."""

    name = "counts"

    def share(self, plan):
        return plan.request.counts_share

    def units(self, plan, n_samples):
        return CountUnits(
            plan.part_of(self.name),
            n_classes=plan.request.n_classes,
            n_samples=n_samples,
            n_normalizer=plan.request.budget.n,
        )


COUNTS = Counts()


def found_intercepts(plan, receipt, place, class_weight, key):
    """The intercepts of a model that knows nothing but the released shares of the classes.

    Parameters
    ----------
    plan : SolverPlan
        Its request has one output for two classes, or one output for each of more.
    receipt : Receipt
        What pays for the counts is redeemed here.
    place : Place
        Records whose targets are numbers of classes; weights are not looked at.
    class_weight : ndarray of shape (n_classes,) or None
        Public weights, which the shares are multiplied by.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    request, units = plan.request, COUNTS.units(plan, place.n_samples)
    oracle = receipt.shown(CountOracle(receipt, units, place, key=COUNTS.key(key)), units)
    counts = oracle.release_counts()
    if request.n_classes == 2:
        counts = np.append(request.budget.n - counts, counts)
    # A class of fewer records than the noise is known to be rare, and not how rare.
    n = request.budget.n
    shares = np.clip(counts, max(1.0, min(units.noise_std, n / 2)), n)
    if class_weight is not None:
        shares *= np.maximum(class_weight / class_weight.max(), 1 / n)
    if request.n_outputs == 1:
        return np.log(shares[1:] / shares[:1])
    logs = np.log(shares)
    return logs - logs.mean()


# ---- the mean of a target -----------------------------------------------------------------------


def mean_share(request):
    """Share of μ² for the mean of a target whose bounds are stated; 0 where it is not released."""
    budget = request.budget
    free_intercept = request.fit_intercept and not request.penalize_intercept
    if not (request.private and request.n_targets == 1 and free_intercept):
        return 0.0
    looks = request.finds_target or request.target_search.n_choices
    if looks or request.inference or request.warm_start or not is_of_recipe(request):
        return 0.0
    is_descent = request.solver.word in _DESCENTS and request.has_smooth_penalty
    if not (is_descent and request.constraint is None):
        return 0.0
    evidence = budget.n * budget.mu
    if not (evidence >= _LEAST_OF_MEAN and evidence < _LOUD * math.sqrt(request.n_coordinates)):
        return 0.0
    least, most = _SHARE_OF_MEAN
    return min(max((_AIM / evidence) ** 2, least), most)


class TargetMean(Release):
    """The mean of a target within stated bounds: a derivative of the squared loss at zero."""

    name = "mean"

    def share(self, plan):
        return plan.request.mean_share

    def units(self, plan, n_samples):
        size = plan.request.n_coordinates
        return CoordinateUnits(
            plan.part_of(self.name),
            n_samples=n_samples,
            smoothness=np.ones(size),
            clip=math.sqrt(size),  # 1 of each coordinate, which no scaled target exceeds
            n_normalizer=plan.request.budget.n,
        )


MEAN = TargetMean()


def found_mean(plan, receipt, place, key):
    """The mean of a target, in its units; the more of it may be noise, the nearer to the middle.

    It is the posterior mean where true means follow a mixture of two normal laws.

    Parameters
    ----------
    plan : SolverPlan
    receipt : Receipt
        What pays for the mean is redeemed here.
    place : Place
        Records with scaled targets, whose weights multiply them before the clip.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    float
    """
    request, units = plan.request, MEAN.units(plan, place.n_samples)
    stated = {"loss": LOSSES["squared"](), "fit_intercept": True, "key": MEAN.key(key)}
    oracle = receipt.shown(RecordOracle(receipt, units, place, **stated), units)
    origin = np.zeros((1, request.n_coordinates))
    mean = -partials(oracle, origin, request.n_coordinates - 1)[0]
    noise = units.noise_multiplier * units.neighbors * units.coordinate_clip / request.budget.n
    kept = np.array([_NEAR, _FAR]) ** 2
    total = kept + noise**2
    logs = -0.5 * (mean**2 / total + np.log(total))
    odds = np.exp(logs - logs.max())
    mean *= odds @ (kept / total) / odds.sum()
    return float(np.clip(mean, -1.0, 1.0)) * request.target_half_width + request.target_center
