"""How much privacy loss a score would take: simulated on made-up records, which cost nothing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..utils._public import MOST, MOST_COORDINATES, check_count, check_real
from ..utils._typing import Seed
from . import _budget_of_run
from ._search import PrivateSearchCV
from ._simulated_data import simulated_records, simulated_scores

LEAST, MOST_EPSILON = 2.0**-7, 2.0**7


def find_budget(
    estimator: BaseEstimator,
    n_samples: int,
    n_features: int,
    target: float,
    *,
    signal: float = 0.8,
    make_data: Callable[..., Any] | None = None,
    n_repeats: int = 9,
    random_state: Seed | None = None,
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
    signal : float in (0, 1), default=0.8
        As for `inspection.plan`: the R² of the best model on the made-up records; for labels, of
        the number whose sign (or largest) decides. The answer depends on it.
    make_data : callable, default=None
        ``make_data(n_samples, rng) -> (X, y)``, made-up or public records in place of ours, which
        fill the bounds that the estimator states.
    n_repeats : int, >= 3, default=9
        Fits at each epsilon.
    random_state : int or None, default=None
        Seed of the made-up records; the noise of fits is new each time.

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
    part = _budget_of_run.budgeted_part(model.estimator if searched else model)
    signal = check_real(signal, "signal", low=0.0, high=1.0)
    target = check_real(target, "target", high=1.0, closed="right")
    owner = model if searched else part
    if "accountant" in owner.get_params(deep=False):
        owner.set_params(accountant=None)
    seed = np.random.SeedSequence(random_state)  # of the same records at every epsilon
    inner = model.estimator if searched else model
    draw = make_data or simulated_records(inner, n_features, 1, signal)

    def reached(epsilon):
        owner.set_params(epsilon=epsilon)
        rng = np.random.default_rng(seed)
        scores, _ = simulated_scores(model, draw, n_samples, n_repeats, rng)
        return np.mean(np.clip(scores, -1.0, 1.0)) >= target

    if reached(LEAST):
        return LEAST
    if not reached(MOST_EPSILON):
        return math.inf
    low, high = math.log(LEAST), math.log(MOST_EPSILON)
    while high - low > 0.1:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)
