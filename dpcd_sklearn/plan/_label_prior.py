"""Where the intercepts of a classifier start: at the classes' shares of the records, if affordable.

A rare class is otherwise found by the descent alone, which a short clip makes long: the model of
one positive in a hundred is still far from its intercept when its time is up.
"""

import math

import numpy as np

from ..privacy.mechanisms._cell_sums import CountUnits
from ..privacy.sums._counts import N_LINEAR
from ._release import Release
from ._shrinkage import is_shrunk, lacks_scale

# Share of μ² for the counts, and of what scales leave where a fit can tell nothing but these.
_SHARE, _SHARE_ALONE = 0.02, 0.5
# n times the μ of the counts, a class: one of average size is then known to about 5 %. What is less
# sure sends short descents off: with 10 for all classes, farm_ads at ε = 0.1 ended at .52 for .57.
_LEAST_EVIDENCE = 25.0


def counts_share(request):
    """Share of μ² for counts of the classes, by public numbers; 0 where they are not affordable.

    A warm start has intercepts already.
    """
    if not could_count(request):
        return 0.0
    if _keeps_shares_alone(request):
        share = _SHARE_ALONE * request.share_left
        return share * (_evidence(request, share) >= 5)  # known to .1 is better than not at all
    # Three classes or more of few records do not start at their shares, but are drawn to them.
    # From n μ = 100 on margins tell more.
    if is_shrunk(request) and request.n_classes > 2 and request.evidence < 100:
        return 0.05 * (request.evidence >= _LEAST_EVIDENCE)
    return _SHARE * (request.length_share > 0 or starts_at_shares(request))


def starts_at_shares(request):
    """Whether a fit that counts its classes starts at their shares, which are known well enough."""
    return _evidence(request, _SHARE) >= _LEAST_EVIDENCE or _keeps_shares_alone(request)


def _keeps_shares_alone(request):
    """Whether nothing else is kept of a fit, since nobody knows the scale of the features."""
    return is_shrunk(request) and lacks_scale(request)


def could_count(request):
    free_intercept = request.fit_intercept and not request.penalize_intercept
    wanted = request.private and free_intercept and not request.warm_start
    return wanted and 0 < request.n_classes <= N_LINEAR


def _evidence(request, share):
    return request.evidence * math.sqrt(share) / request.n_classes


class Counts(Release):
    """How many records each class has."""

    name = "counts"

    def units(self, plan, n_samples):
        return CountUnits(**self.paid(plan, n_samples), n_classes=plan.request.n_classes)


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
    units, oracle = COUNTS.opened(plan, receipt, place, key)
    request, counts = plan.request, oracle.release()[:, 0]
    if request.n_classes == 2:
        counts = np.append(request.budget.n - counts, counts)
    # A class of fewer records than the noise is known to be rare, and not how rare.
    n, k = request.budget.n, request.n_classes
    if k > 2:
        moved = counts - n / k  # of which noise, and a half as much, is not kept
        counts = n / k + moved * max(1 - 1.5 * k * units.noise_std**2 / (moved @ moved), 0.0)
    shares = np.clip(counts, max(1.0, min(units.noise_std, n / k)), n)
    if class_weight is not None:
        shares *= np.maximum(class_weight / class_weight.max(), 1 / n)
    if request.n_outputs == 1:
        return np.log(shares[1:] / shares[:1])
    logs = np.log(shares)
    return logs - logs.mean()
