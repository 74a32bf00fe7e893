"""Where the intercepts of a classifier start: at the classes' shares of the records, if affordable.

A rare class is otherwise found by the descent alone, which a short clip makes long: the model of
one positive in a hundred is still far from its intercept when its time is up.
"""

import hashlib
import math

import numpy as np

from ..privacy.accounting._calibration import share_event
from ..privacy.accounting._gaussian_dp import gdp_mu
from ..privacy.mechanisms._label_counts import CountOracle, CountUnits
from ..privacy.sums._counts import N_LINEAR

# What counts take of μ².
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
    mu = gdp_mu(request.epsilon, request.delta) * math.sqrt(COUNT_SHARE)
    evidence = request.n_normalizer * mu / request.n_classes
    return evidence >= _LEAST_EVIDENCE and request.n_classes <= N_LINEAR


def counts_event(request):
    """What pays for the counts."""
    return share_event(request.epsilon, request.delta, COUNT_SHARE, 1, request.neighboring)


def count_units(request, part, n_samples):
    """Units of the counts, which this part of the event pays for."""
    return CountUnits(
        part,
        n_classes=request.n_classes,
        n_samples=n_samples,
        n_normalizer=request.n_normalizer,
    )


def found_intercepts(request, receipt, part, place, class_weight, key):
    """The intercepts of a model that knows nothing but the released shares of the classes.

    Parameters
    ----------
    request : Request
        Of one output for two classes, or one output for each of more.
    receipt : Receipt
    part : FitEvent
        What pays for the counts; it is redeemed here.
    place : Place
        Of records whose targets are numbers of classes; weights are not looked at.
    class_weight : ndarray of shape (n_classes,) or None
        Public weights, which the shares are multiplied by.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if key is not None:
        key = hashlib.blake2b(key, digest_size=32, person=b"counts").digest()
    units = count_units(request, part, place.n_samples)
    oracle = receipt.shown(CountOracle(receipt, units, place, key=key), units)
    counts = oracle.release_counts()
    if request.n_classes == 2:
        counts = np.append(request.n_normalizer - counts, counts)
    # A class of fewer records than the noise is known to be rare, and not how rare.
    n = request.n_normalizer
    shares = np.clip(counts, max(1.0, min(units.noise_std, n / 2)), n)
    if class_weight is not None:
        shares *= np.maximum(class_weight / class_weight.max(), 1 / n)
    if request.n_outputs == 1:
        return np.log(shares[1:] / shares[:1])
    if not request.loss.multi_output:  # one class against the others
        return np.log(shares / (shares.sum() - shares))
    logs = np.log(shares)
    return logs - logs.mean()
