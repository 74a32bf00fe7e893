"""Families of neighbours among which the worst for a linear model is searched.

One record, the canary, pulls with all its clip, or the other way, or is not there. What a flaw
needs to show differs: a noise that coordinates share shows where they are pulled in opposite
directions, a weight after the clip where a weight is large, an intercept without a clip where it
is pulled alone. Another label changes the derivatives of two classes only; features of the other
sign turn those of all classes around. Differences of one record's gradients point along the step
(losses are convex), so two records pull them apart along two axes.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from ..utils._public import check_bounds

_FAR = 1e9  # a target whose record reaches every clip
N_SAMPLES = 6  # delta="auto" is then large, and so is what there is to see


@dataclass(frozen=True)
class Family:
    """A kind of pair: how its canary looks, and how the others do.

    Parameters
    ----------
    n_features : int
        0 for as many as balance the intercept.
    alternate : bool
        Whether its features have alternating signs.
    reach : float
        Its features, where they have no bounds; they are at their bounds otherwise, or, for a
        reach of zero, in the middle.
    weight : float
    others : float
        The others' weight; next to nothing, or one, so that they hold the iterate near zero.
    last : bool
        Whether it is the last record, not the first.
    neighbor : {"target", "signs", "axis"}
        What its neighbour has: another target, features of the other sign, or along another axis
        (then each has one feature only).
    """

    n_features: int = 1
    alternate: bool = False
    reach: float = 1.0
    weight: float = 1.0
    others: float = 1e-300  # weights of exactly zero are refused when all are
    last: bool = False
    neighbor: str = "target"


FAMILIES = {
    "one feature": Family(),
    "opposite signs": Family(0, alternate=True),
    "several features": Family(5, weight=64.0, last=True),
    "intercept alone": Family(reach=0.0, weight=64.0),
    "heavy record": Family(2, weight=64.0, last=True),
    "pulling others": Family(weight=64.0, others=1.0),
    "many features": Family(20, weight=1e4),
    "other signs": Family(2, alternate=True, neighbor="signs"),
    "other axis": Family(2, reach=1e4, neighbor="axis"),
    "turned record": Family(20, weight=1e4, neighbor="signs"),
}


def worst_pairs(model, names):
    """Neighbours of the named families that suit the model.

    Parameters
    ----------
    model : linear model of this package
    names : iterable of str

    Returns
    -------
    pairs : dict of str to (data, neighbor), each a tuple (X, y, sample_weight)
    """
    intercept = bool(getattr(model, "fit_intercept", True))
    unfit = set()
    if not intercept:
        unfit.add("intercept alone")
    if stated_width(model) == 1:
        unfit.add("other axis")
    if len(_labels(model)) < 3:  # of two classes another label does as much
        unfit.add("turned record")
    return {name: _pair(model, FAMILIES[name], intercept) for name in names if name not in unfit}


def stated_width(model):
    """The number of features that a parameter fixes, or None."""
    bounds, scale = getattr(model, "feature_bounds", None), getattr(model, "feature_scale", None)
    if isinstance(bounds, (list, dict)):  # a pair a feature
        return len(bounds)
    for part in (*(() if bounds is None else bounds), scale):
        if part is not None and np.ndim(part) > 0:
            return len(part)
    return None


def _pair(model, family, intercept):
    p = stated_width(model) or family.n_features or (3 if intercept else 4)
    n = min(N_SAMPLES, getattr(model, "n_public", None) or N_SAMPLES)
    # the intercept's 1 comes last: signs that balance it begin with the other one
    signs = (-1.0) ** np.arange(1, p + 1) if family.alternate else np.ones(p)
    axes = np.eye(2, p) if family.neighbor == "axis" else np.outer([1, -1], signs)
    rows = [_features(model, p, axis * family.reach) for axis in axes]
    X = np.tile(rows[0], (n, 1))
    at = n - 1 if family.last else 0
    weights = np.full(n, family.others)
    weights[at] = family.weight
    y, other_y = _targets(model, n, at)
    other_X = X.copy()
    if family.neighbor != "target":
        other_X[at], other_y = rows[1], y
    if getattr(model, "neighboring", "replace_one") == "add_remove":
        rest = np.arange(n) != at
        return (X, y, weights), (X[rest], y[rest], weights[rest])
    return (X, y, weights), (other_X, other_y, weights)


def _features(model, p, multiples):
    """Features at so many times their bounds, from the middle (or zero) on."""
    if getattr(model, "feature_bounds", None) is None:
        return multiples
    lo, hi = check_bounds(model.feature_bounds, p)
    middle = (lo + hi) / 2
    return np.where(multiples > 0, hi, np.where(multiples < 0, lo, middle))


def _labels(model):
    labels = getattr(model, "classes", None)
    return np.unique([0, 1] if labels is None else labels)


def _targets(model, n, at):
    if is_classifier(model):
        labels = _labels(model)
        y = labels[np.arange(n) % 2]
        other = y.copy()
        y[at], other[at] = labels[1], labels[0]
        return y, other
    y, other = np.zeros(n), np.zeros(n)
    y[at], other[at] = _FAR, -_FAR
    return y, other
