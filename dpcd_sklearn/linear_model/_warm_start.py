"""A warm start: free where the earlier fit is in the ledger that this one is charged to.

An adaptive composition may start anywhere that earlier releases of the same ledger lead to. What
another ledger counts, or nobody, would be a release beside the budget.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from ._prediction import coefficients_of


@dataclass(frozen=True)
class EarlierFit:
    """Who was charged for the coefficients of a model, and what they were."""

    accountant: object
    digest: str
    labels: tuple

    @classmethod
    def of(cls, model):
        # what stands in for a ledger in one fit only is no ledger to come back to
        accountant = model.accountant if hasattr(model.accountant, "entries") else None
        return cls(accountant, _digest(model), _labels(model))


def start_of(model, n_features, n_outputs):
    """Coefficients and intercept that a fit starts from, in the units of X and y, or None.

    Raises
    ------
    ValueError
        If the model asks for a warm start that its accountant can't vouch for.
    """
    if not model.warm_start:
        return None
    unprotected = math.isinf(model.epsilon)
    if model.accountant is None and not unprotected:
        raise ValueError(
            "warm_start=True needs an accountant: two fits together are private only as one budget "
            "counts both. Pass accountant=PrivacyAccountant(epsilon, delta), or warm_start=False"
        )
    if not hasattr(model, "coef_"):
        return None
    earlier = getattr(model, "_earlier_fit", None)
    if not unprotected and (earlier is None or earlier.accountant != model.accountant):
        raise ValueError(
            "warm_start=True needs the earlier fit in the same ledger: it was charged to another "
            "one, or to none. Fit a clone, which starts anew, or use the accountant of that fit"
        )
    if earlier is not None and earlier.labels != _labels(model):
        raise ValueError(
            f"warm_start=True needs the labels of the earlier fit, {list(earlier.labels)}, and now "
            f"they are {list(_labels(model))}: state classes=[...], all labels that may occur, in "
            "both fits, or fit a clone, which starts anew"
        )
    if earlier is None or earlier.digest != _digest(model):
        raise ValueError(
            "warm_start=True needs coef_ and intercept_ as the earlier fit left them; they were "
            "changed since. Fit a clone, which starts anew"
        )
    coef = coefficients_of(model).copy()
    if len(coef) != n_outputs:
        raise ValueError(
            f"warm_start=True needs the {len(coef)} targets of the earlier fit, y has {n_outputs}"
        )
    if coef.shape[1] != n_features:
        raise ValueError(
            f"warm_start=True needs the {coef.shape[1]} features of the earlier fit, X has "
            f"{n_features}"
        )
    return coef, np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))


def _labels(model):
    """The labels of a classifier, which a fit sets before it asks for a start."""
    return tuple(np.asarray(getattr(model, "classes_", ())).tolist())


def _digest(model):
    coef = model.coef_.toarray() if issparse(model.coef_) else np.asarray(model.coef_)
    digest = hashlib.sha256()
    for part in (coef, np.asarray(model.intercept_)):
        digest.update(repr((part.shape, part.dtype.str)).encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
