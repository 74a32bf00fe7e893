"""The scores that have a private form: what they sum, and what is made of the noisy sums.

A row is one metric. All but the sums is public: the number of records that divides, the classes,
the bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..privacy.sums._score_sums import (
    LEVELS,
    count_cells,
    sum_bounded,
    sum_pairs,
)
from ..utils._cells import numbers_of
from ..utils._elementwise import elementwise


@dataclass(frozen=True)
class ScoreFacts:
    """Public facts about one score.

    Attributes
    ----------
    n : int
        Divides; n_public under add_remove.
    classes : ndarray or None
        Labels, sorted (classification).
    center, half_width : float
        Middle and half of the bounds of the target (regression).
    clip : float
        Largest log-loss of a record, or largest absolute residual.
    unit : int
        Of counts: 1 of records, LEVELS of persons' shares.
    noise_std : list of float
        Standard deviation of the noise of each sum.
    """

    n: int
    classes: object = None
    center: float = 0.0
    half_width: float = 1.0
    clip: float = 1.0
    unit: int = 1
    noise_std: tuple = ()


@dataclass(frozen=True)
class Metric:
    """A metric: greater is better.

    Attributes
    ----------
    kind : str
        Key of `score_sensitivity`.
    size : callable
        From the facts to the number of sums.
    methods : callable
        From the facts to what a model is asked: methods, each with shape and dtype of an answer.
    sums : callable
        From (answers, y, facts, persons) to whole sums: the only reader of records. Persons are the
        numbers of those whose records they are, or None.
    score : callable
        From (noisy sums, facts) to the score.
    task : {"classification", "regression"}
    default_clip : callable or None
        From the facts without a clip; None where nothing is clipped.
    """

    kind: str
    size: Callable
    methods: Callable
    sums: Callable
    score: Callable
    task: str
    default_clip: Callable | None = None
    relations: tuple = ("replace_one", "add_remove")


def codes_of(labels, classes, otherwise=0):
    """Numbers of labels among the classes; a label outside them counts as the first one."""
    return numbers_of(np.asarray(labels), classes, otherwise)


# ---- what models are asked -----------------------------------------------------------------------


def _label(facts):
    return {"predict": ((), object)}


def _number(facts):
    return {"predict": ((), np.float64)}


def _probabilities(facts):
    return {"predict_proba": ((len(facts.classes),), np.float64)}


def _margin(facts):
    return {"decision_function": ((), np.float64), "predict_proba": ((2,), np.float64)}


# ---- classification -----------------------------------------------------------------------------


def _codes(answers, y, facts):
    return codes_of(y, facts.classes), codes_of(answers, facts.classes, otherwise=-1)


def _sums_right(answers, y, facts, persons):
    codes, found = _codes(answers, y, facts)
    return count_cells((codes == found).astype(int), 2, persons)[1:]


def _sums_cells(answers, y, facts, persons):
    codes, found = _codes(answers, y, facts)
    return count_cells(2 * codes + (codes == found), 2 * len(facts.classes), persons)


def _balanced(sums, facts):
    cells = np.maximum(np.reshape(sums, (-1, 2)) / facts.unit, 0.0)  # wrong, right
    # a class of fewer records than the noise has no recall that could be told: half
    floor = max(1.0, facts.noise_std[0] / facts.unit)
    right, total = cells[:, 1], cells.sum(axis=1)
    recalls = (right + np.maximum(floor - total, 0) / 2) / np.maximum(total, floor)
    return float(recalls.mean())


def _sums_log_loss(answers, y, facts, persons):
    codes = codes_of(y, facts.classes)
    found = np.asarray(answers, dtype=np.float64)[np.arange(len(codes)), codes]
    found = np.clip(np.nan_to_num(found, nan=0.0), 1e-300, 1.0)
    values = (1 + 2 * elementwise(math.log, found) / facts.clip)[:, np.newaxis]
    return sum_bounded(values, persons)


def _log_loss(sums, facts):
    return facts.clip * (sums[0] / LEVELS / facts.n - 1) / 2


def _sums_auc(answers, y, facts, persons):
    margins = np.asarray(answers, dtype=np.float64)
    margins = margins if margins.ndim == 1 else margins[:, 1]
    return sum_pairs(codes_of(y, facts.classes), margins)


def _auc(sums, facts):
    pairs, ones = sums
    least = min(max(1.0, facts.noise_std[1]), facts.n / 2)
    ones = min(max(ones, least), facts.n - least)
    return float(np.clip((1 + pairs / max(ones * (facts.n - ones), 0.5)) / 2, 0.0, 1.0))


# ---- regression ---------------------------------------------------------------------------------


def _residuals(answers, y, facts):
    """Target in [-1, 1] by its bounds, and squared residuals in [0, 1] by the clip."""
    half_width = facts.half_width
    y = np.clip((np.asarray(y, dtype=np.float64) - facts.center) / half_width, -1, 1)
    found = np.nan_to_num(np.asarray(answers, dtype=np.float64))
    found = np.clip((found - facts.center) / half_width, -1, 1)
    return y, np.minimum(((y - found) * half_width / facts.clip) ** 2, 1.0)


def _sums_squared(answers, y, facts, persons):
    _, squares = _residuals(answers, y, facts)
    return sum_bounded((1 - 2 * squares)[:, np.newaxis], persons)


def _squared(sums, facts):
    return facts.clip**2 * (sums[0] / LEVELS / facts.n - 1) / 2


def _sums_r2(answers, y, facts, persons):
    y, squares = _residuals(answers, y, facts)
    return sum_bounded(np.column_stack([1 - 2 * squares, 2 * y**2 - 1, y]), persons)


def _r2(sums, facts):
    minus, second, mean = (total / LEVELS / facts.n for total in sums)
    error = facts.clip**2 * (1 - minus) / 2
    variance = (second + 1) / 2 - mean**2
    floor = min(1.0, facts.noise_std[1] / LEVELS / facts.n)  # what noise could make of none
    return float(1 - error / (facts.half_width**2 * max(variance, floor, 1e-12)))


# ---- the table ----------------------------------------------------------------------------------

METRICS = {
    "accuracy": Metric(
        "right",
        lambda f: 1,
        _label,
        _sums_right,
        lambda sums, f: sums[0] / f.unit / f.n,
        "classification",
    ),
    "balanced_accuracy": Metric(
        "cells", lambda f: 2 * len(f.classes), _label, _sums_cells, _balanced, "classification"
    ),
    "neg_log_loss": Metric(
        "bounded",
        lambda f: 1,
        _probabilities,
        _sums_log_loss,
        _log_loss,
        "classification",
        default_clip=lambda f: 2 * math.log(len(f.classes)),
    ),
    "roc_auc": Metric(
        "pairs", lambda f: 2, _margin, _sums_auc, _auc, "classification", relations=("replace_one",)
    ),
    "neg_mean_squared_error": Metric(
        "bounded",
        lambda f: 1,
        _number,
        _sums_squared,
        _squared,
        "regression",
        default_clip=lambda f: f.half_width,
    ),
    "r2": Metric(
        "bounded",
        lambda f: 3,
        _number,
        _sums_r2,
        _r2,
        "regression",
        default_clip=lambda f: f.half_width,
    ),
}
