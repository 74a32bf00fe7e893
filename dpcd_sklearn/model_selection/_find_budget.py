"""How much privacy loss a score would take: simulated on made-up records, which cost nothing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from ..pipeline._budget_of_step import is_private, last_step, private_part
from ..preprocessing import BoundsScaler, DPStandardScaler, RowNormClipper
from ..utils._input import by_name, reworded
from ..utils._persons import Persons, PersonsOfRows
from ..utils._public import (
    MOST,
    MOST_COORDINATES,
    check_bounds,
    check_count,
    check_real,
    check_scales,
)
from ..utils._typing import Seed
from ..utils._warnings import silence
from . import _runs
from ._search import PrivateSearchCV

# ---- Simulated records of a public shape, and scores of fits to them -----------------------------


def simulated_records(estimator, n_features, n_outputs, signal):
    """A function that draws records as the public facts of an estimator describe them.

    Features fill their bounds evenly, or are normal with their scales. All of them count alike in a
    linear model that explains the share `signal` of the variance of the target, or of what decides
    between labels.

    Raises
    ------
    ValueError
        If what the first step takes is no table of numbers of a known range.
    """
    steps = _steps(estimator)
    draw_features = _features_of(steps[0], n_features)
    model, labels = steps[-1], None
    if is_classifier(model):
        stated = getattr(model, "classes", None)
        labels = np.arange(max(2, n_outputs)) if stated is None else np.unique(stated)
        n_outputs = len(labels)
    weights = _directions(n_outputs, n_features)

    def draw(n_samples, rng):
        X, unit = draw_features(n_samples, rng)
        noise = rng.standard_normal((n_samples, n_outputs))
        latent = np.sqrt(signal) * unit @ weights.T + np.sqrt(1 - signal) * noise
        if labels is None:
            return X, _target(model, latent)
        chosen = latent[:, 0] > 0 if n_outputs == 2 else latent.argmax(axis=1)
        return X, labels[chosen.astype(np.intp)]

    return draw


def by_persons(draw, sizes):
    """The same of persons, each with one of these numbers of records; then come their ids."""

    def draw_persons(n_persons, rng):
        ids = np.repeat(np.arange(n_persons), rng.choice(sizes, n_persons))
        return *draw(len(ids), rng)[:2], ids

    return draw_persons


def simulated_scores(model, draw, n_samples, n_repeats, rng):
    """Scores of fits on other made-up records, and which fits have standard errors.

    Each fit is that of a clone; a search without a model has the score 0.
    """
    X_test, y_test, *_ = draw(5_000, rng)
    scores, valid = np.zeros(n_repeats), np.zeros(n_repeats, dtype=bool)
    with silence():  # too few records is what is asked about
        for k in range(n_repeats):
            with reworded(by_name):
                X, y, *ids = draw(n_samples, rng)
                fitted = clone(model)
                if ids and isinstance((part := private_part(fitted)).neighboring, Persons):
                    part.set_params(neighboring=PersonsOfRows(part.neighboring.relation, *ids))
                fitted.fit(X, y)
            if getattr(fitted, "best_estimator_", fitted) is not None:
                scores[k] = fitted.score(X_test, y_test)
            valid[k] = getattr(last_step(fitted), "inference_valid_", False)
    return scores, valid


def _directions(n_outputs, n_features):
    """Unit vectors, orthogonal as far as there is room; the entries of the first are alike."""
    j, k = np.arange(n_features), np.arange(n_outputs) % n_features
    waves = np.cos(np.pi * np.outer(k, j + 0.5) / n_features) * np.resize([1.0, -1.0], n_features)
    return waves / np.linalg.norm(waves, axis=1, keepdims=True)


def _steps(estimator):
    if not hasattr(estimator, "steps"):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return steps[:-1] + _steps(steps[-1])


def _features_of(step, n_features):
    """A function that draws features: in their units, and of variance one."""
    params = step.get_params(deep=False)
    bounds = params.get("feature_bounds")
    if isinstance(step, BoundsScaler):
        bounds = step.bounds
    known = isinstance(step, (BoundsScaler, DPStandardScaler, RowNormClipper)) or is_private(step)
    if not known:
        raise ValueError(
            f"nothing is known here of the records that {type(step).__name__} takes; pass "
            "make_data, a function that draws made-up records: make_data(n_samples, rng) -> (X, y)"
        )
    if bounds is not None:
        columns = list(bounds) if isinstance(bounds, dict) else None
        lo, hi = check_bounds(bounds, n_features, columns=columns)
        middle, half = (lo + hi) / 2, (hi - lo) / 2

        def draw(n_samples, rng):
            unit = rng.uniform(-1.0, 1.0, (n_samples, n_features))
            return middle + half * unit, unit * 3**0.5

        return draw if columns is None else _named(draw, columns)
    scale = np.ones(n_features)
    if (norm := params.get("row_norm_bound", params.get("norm"))) is not None:
        scale = np.full(n_features, 0.7 * float(norm) / n_features**0.5)
    if (stated := params.get("feature_scale")) is not None:
        scale = check_scales(stated, n_features)

    def draw(n_samples, rng):
        unit = rng.standard_normal((n_samples, n_features))
        return scale * unit, unit

    return draw


def _named(draw, columns):
    import pandas as pd

    def named(n_samples, rng):
        X, unit = draw(n_samples, rng)
        return pd.DataFrame(X, columns=columns), unit

    return named


def _target(model, latent):
    bounds = getattr(model, "target_bounds", None)
    if isinstance(bounds, list):
        lo, hi = np.array(bounds, dtype=float).T
    else:
        lo, hi = (-1.0, 1.0) if bounds is None else bounds
    middle, half = (np.add(lo, hi)) / 2, np.subtract(hi, lo) / 2
    y = np.clip(middle + half * latent / 3, lo, hi)  # three standard deviations fill the bounds
    if getattr(model, "_log_link", None) is not None:
        y = np.maximum(y, 1e-3 * np.abs(hi))
    return y[:, 0] if y.shape[1] == 1 else y


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
    part = _runs.budgeted_part(model.estimator if searched else model)
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
