"""Where the intercepts of a classifier start: at the classes' shares of the records, if affordable.

A rare class is otherwise found by the descent alone, which a short clip makes long: the model of
one positive in a hundred is still far from its intercept when its time is up.
"""

import math

import numpy as np

from ..privacy.mechanisms._counts import CountOracle, CountUnits
from ..privacy.sums._counts import N_LINEAR
from ._release import Release

# Share of μ² for the counts.
COUNT_SHARE = 0.02
# n times the μ of the counts, a class: one of average size is then known to about 5 %. What is less
# sure sends short descents off: with 10 for all classes, farm_ads at ε = 0.1 ended at .52 for .57.
_LEAST_EVIDENCE = 25.0


def counts_are_affordable(request):
    """Whether counts of the classes are worth their share of the budget, by public numbers.

    A warm start has intercepts already.
    """
    free_intercept = request.fit_intercept and not request.penalize_intercept
    if not (request.private and free_intercept and request.n_classes) or request.warm_start:
        return False
    mu = request.budget.mu * math.sqrt(COUNT_SHARE)
    evidence = request.budget.n * mu / request.n_classes
    return evidence >= _LEAST_EVIDENCE and request.n_classes <= N_LINEAR


class Counts(Release):
    """How many records each class has."""

    name = "counts"

    def share(self, plan):
        return COUNT_SHARE * plan.request.counts_classes

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
