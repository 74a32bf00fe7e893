"""The target of a transformer: numbers within stated bounds, or stated classes."""

import numpy as np

from ..privacy.mechanisms._tables import MOST_CLASSES
from ..utils._cells import as_array, numbers_of, read_labels, stated_labels
from ..utils._input import check_finite_target, read_input
from ..utils._public import check_interval


def read_target(estimator, y, n_samples):
    """The target of each record, before the charge; no error quotes one.

    Parameters
    ----------
    estimator : transformer with `classes` and `target_bounds`
    y : array-like of shape (n_samples,) or (n_samples, 1)
    n_samples : int

    Returns
    -------
    target : float64 or intp ndarray of shape (n_samples,)
        Within bounds; or numbers of classes, of which unknown ones have the first.
    bounds : tuple (lo, hi) or None
        None are classes.

    Raises
    ------
    TypeError, ValueError
        If a parameter or y is invalid.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None"
        )
    labels, bounds = stated_classes(estimator), None
    if labels is None:
        bounds = stated_bounds(estimator)
        if getattr(getattr(y, "dtype", None), "kind", "") == "c":
            raise ValueError("Complex data not supported: y must hold real numbers")
        y = read_input(np.asarray, y, dtype=np.float64, name="y")
    else:
        y = read_labels(y, labels)
    if y.shape not in ((n_samples,), (n_samples, 1)):
        raise ValueError(f"y must have the shape ({n_samples},), got {y.shape}")
    y = y.reshape(n_samples)
    if bounds is not None:
        check_finite_target(y)
        return np.clip(y, *bounds), bounds
    return numbers_of(y, labels, otherwise=0), None


def stated_bounds(estimator):
    """Bounds of a target of numbers.

    Raises
    ------
    TypeError, ValueError
    """
    bounds = check_interval(tuple(estimator.target_bounds), "target_bounds")
    if not np.isfinite(bounds).all():
        raise ValueError("target_bounds must be finite")
    return bounds


def stated_classes(estimator):
    """Labels of a target of classes in the order that they are stated in, or None.

    Raises
    ------
    TypeError, ValueError
    """
    if estimator.classes is None:
        return None
    labels = as_array(read_labels(estimator.classes).tolist())  # in the order of the encodings
    if not 2 <= len(stated_labels(labels)) == len(labels) <= MOST_CLASSES:
        raise ValueError(
            f"classes are 2 to {MOST_CLASSES} labels, each of them once; got {len(labels)}"
        )
    return labels
