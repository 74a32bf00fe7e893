"""Tools for tests: reproducible noise, and a tape that shows what a fit depends on.

A private fit is a function of three things: the records, the answers that the privacy room
releases, and secret coins (who is in a batch, how many runs a search makes). A `Recording` of a
fit keeps the questions, answers and coins. A `Replay` on a neighbouring data set forces the same
answers and coins. What is asked and what is visible must then be the same to the bit: anything else
depended on a record by another way than through a release. And the exact answers, which are whole
numbers, may differ by no more than the sensitivity that the noise was scaled to.

A tape tests control flow, sensitivity, and what follows from answers. It holds coins fixed, so it
says nothing of amplification by sampling, and nothing of the law of the noise. It does not see
time, memory, files, or what C code prints.
"""

import math

from ..utils._stated import ReproducibleNoise
from ._tape import LeakError, Recording, Replay, replay, unpaid
from ._visible import fingerprint

__all__ = ["LeakError", "Recording", "Replay", "ReproducibleNoise", "expected_failed_checks"]
__all__ += ["fingerprint", "replay", "unpaid"]

# ---- Checks of scikit-learn that a private estimator fails by design, each with its reason -------

_LABELS = "class_weight needs classes, which the check does not state: y is not asked"
# A record of weight 2 is one record: its contribution is doubled and then clipped, n counts it
# once, and delta = 1/n² and the noise of a sum over n follow n. Repeated, it would be two records
# that count, are clipped and are protected one by one: another private fit.
_WEIGHTS = dict.fromkeys(
    [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "clip, n, delta and noise are per record, whatever its weight",
)
# They compare two fits with one seed, which the noise of a private fit does not follow.
TWO_FITS_ARE_EQUAL = dict.fromkeys(
    [
        "check_classifier_data_not_an_array",
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_supervised_y_2d",
    ],
    "noise is drawn afresh for each fit, whatever the seed",
)


def expected_failed_checks(estimator) -> dict:
    """Checks of scikit-learn's that differential privacy does not let an estimator pass.

    For the parameter of this name of ``check_estimator`` and ``parametrize_with_checks``. Checks
    that need luck, since they compare two noisy fits, are among them, and may pass too.

    Parameters
    ----------
    estimator : object
        An estimator of this package.

    Returns
    -------
    dict of str
        From the name of a check to the reason.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.testing import expected_failed_checks
    >>> sorted(expected_failed_checks(DPRidgeSkGD(epsilon=float("inf"))))
    []
    >>> expected_failed_checks(DPRidgeSkGD())["check_fit_idempotent"]
    'noise is drawn afresh for each fit, whatever the seed'
    """
    labels = {"check_class_weight_classifiers": _LABELS}
    found = labels if hasattr(estimator, "classes") else {}
    if math.isinf(getattr(estimator, "epsilon", math.inf)):
        return found
    return found | _WEIGHTS | TWO_FITS_ARE_EQUAL
