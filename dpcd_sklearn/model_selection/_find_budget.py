"""How much privacy loss a score would take: simulated on made-up records, which cost nothing."""

import math
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.base import clone, is_regressor

from ..utils._public import MOST, MOST_COORDINATES, check_bounds, check_count, check_real
from . import _budget
from ._search import PrivateSearchCV

LEAST, MOST_EPSILON = 2.0**-7, 2.0**7
_N_TEST = 2000


def find_budget(
    estimator,
    n_samples: int,
    n_features: int,
    target: float,
    *,
    best: float | None = None,
    simulate: Callable | None = None,
    n_repeats: int = 9,
    random_state=None,
) -> float:
    """Find the smallest epsilon with which an estimator is expected to reach a score.

    Nothing is spent: the fits are of made-up records of the stated shape, and `target` is a score
    on others of their kind. Your records may be harder, or easier.

    Parameters
    ----------
    estimator : estimator
        PrivateSearchCV, or a private estimator or pipeline. Its `epsilon` is what is looked for;
        its accountant is not charged.
    n_samples : int, >= 10
        Number of records to fit.
    n_features : int, >= 1
    target : float
        Mean score of `estimator.score` to reach: accuracy, or R².
    best : float, default=None
        What a model without privacy would reach on the made-up records, about: accuracy in (0.5, 1]
        or R² in (0, 1]. None is 0.9 or 0.8. The answer depends on it.
    simulate : callable, default=None
        ``simulate(n_samples, n_features, rng)`` gives made-up X and y. None draws features
        uniformly within `feature_bounds` (or [-1, 1]) and a target that is linear in them, all
        alike important, with noise; classes are ``classes`` (or 0 and 1).
    n_repeats : int, >= 3, default=9
        Fits at each epsilon.
    random_state : int or None, default=None
        Of the made-up records; the noise of fits is new each time.

    Returns
    -------
    epsilon : float
        To about 10 %; ``inf`` if not even 128 reaches the target, 1/128 if that is enough.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or the estimator is not private.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.model_selection import find_budget
    >>> model = DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1))
    >>> find_budget(model, 1000, 3, target=0.5, n_repeats=3) < 20
    True
    """
    n_samples = check_count(n_samples, "n_samples", low=10, high=MOST)
    n_features = check_count(n_features, "n_features", high=MOST_COORDINATES)
    n_repeats = check_count(n_repeats, "n_repeats", low=3, high=10_000)
    model = clone(estimator)
    searched = isinstance(model, PrivateSearchCV)
    part = _budget.private_part(model.estimator if searched else model)
    regression = is_regressor(model)
    best = (0.8 if regression else 0.9) if best is None else best
    best = check_real(best, "best", low=0.0 if regression else 0.5, high=1.0, closed="right")
    target = check_real(target, "target", high=1.0, closed="right")
    owner = model if searched else part
    if "accountant" in owner.get_params(deep=False):
        owner.set_params(accountant=None)
    seeds = np.random.SeedSequence(random_state).spawn(n_repeats)

    draw = simulate or partial(_made_up, part, regression, best)

    def reached(epsilon):
        owner.set_params(epsilon=epsilon)
        scores = [_score(model, draw, n_samples, n_features, seed) for seed in seeds]
        return np.mean(scores) >= target

    if reached(LEAST):
        return LEAST
    if not reached(MOST_EPSILON):
        return math.inf
    low, high = math.log(LEAST), math.log(MOST_EPSILON)
    while high - low > 0.1:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _score(model, draw, n_samples, n_features, seed):
    """Of one fit, on other records of the same kind; a search without a model scores as nothing."""
    rng = np.random.default_rng(seed)
    X, y = draw(n_samples + _N_TEST, n_features, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).fit(X[:n_samples], y[:n_samples])
        if getattr(fitted, "best_estimator_", fitted) is None:
            return 0.0
        return float(np.clip(fitted.score(X[n_samples:], y[n_samples:]), -1.0, 1.0))


def _made_up(part, regression, best, n_samples, n_features, rng):
    """Uniform features, and a target to which all of them matter alike; weights of one draw."""
    bounds = getattr(part, "feature_bounds", None)
    columns = list(bounds) if isinstance(bounds, dict) else None
    low, high = check_bounds((-1, 1) if bounds is None else bounds, n_features, columns=columns)
    U = rng.uniform(-1, 1, (n_samples, n_features))
    X = (low + high) / 2 + U * (high - low) / 2
    signal = U @ rng.choice([-1.0, 1.0], n_features) / math.sqrt(n_features / 3)  # of variance 1
    if regression:
        y = math.sqrt(best) * signal + math.sqrt(1 - best) * rng.normal(size=n_samples)
        has_bounds = hasattr(part, "target_bounds")
        center, half_width = part._scaling_of_target(1) if has_bounds else (0, 1)
        return X, np.clip(center + half_width * y / 3, center - half_width, center + half_width)
    classes = getattr(part, "classes", None)
    labels = np.unique([0, 1] if classes is None else np.asarray(classes))
    edges = np.quantile(signal, np.linspace(0, 1, len(labels) + 1)[1:-1])
    codes = np.searchsorted(edges, signal)
    # a record keeps its label as often as the best model is right
    wrong = rng.random(n_samples) > best
    codes[wrong] = (codes[wrong] + rng.integers(1, len(labels), wrong.sum())) % len(labels)
    return X, labels[codes]
