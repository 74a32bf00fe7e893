"""The scores that have a private form: what they sum, and what is made of the noisy sums.

A row is one metric. All but the sums is public: the number of records that divides, the classes,
the bounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags

from ..leaks import full_name
from ..privacy.sums._score_sums import LEVELS, count_cells, sum_bounded, sum_pairs
from ..utils._cells import columns_of_words, is_frame, numbers_of
from ..utils._compat import safe_indexing
from ..utils._input import read_input, read_records, read_table
from ..utils._tiles import elementwise
from ..utils._warnings import silence

# ---- Answers of a public model for records, each by itself ---------------------------------------
#
# (a) An answer is a function of its record and of the model. Models of this package, alone or
#     behind steps that map cell by cell, answer a batch with the bits that each record has alone.
#     Of other models that is not known (BLAS takes another kernel for another number of rows), so
#     they are asked for one record at a time.
# (b) A record that a model can't answer for has no answer, which counts as a fixed one: records
#     raise no error after the charge. Before it, shape, dtype and finiteness are checked, and that
#     the model answers for records that are made up.

_OURS = "dpcd_sklearn."
_PIPELINES = {f"{_OURS}pipeline.PrivatePipeline", "sklearn.pipeline.Pipeline"}
_SEARCHES = {f"{_OURS}model_selection.PrivateSearchCV"}
# Sums, products, quotients, interpolations, comparisons and copies of cells, whose rounding is no
# one's choice; whether the output is sparse was settled in the fit.
_STEPS = {
    f"{room}.{name}"
    for room, names in {
        f"{_OURS}preprocessing": "BoundsScaler DPOneHotEncoder DPOrdinalEncoder "
        "DPQuantileTransformer DPRobustScaler DPSimpleImputer DPStandardScaler RowNormClipper",
        "sklearn.impute": "SimpleImputer",
        "sklearn.preprocessing": "Binarizer MaxAbsScaler MinMaxScaler OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures StandardScaler",
    }.items()
    for name in names.split()
}


def parts_of(estimator):
    """The steps that a record passes, the model last; of what is no pipeline itself alone."""
    if full_name(type(estimator)) in _SEARCHES:
        return parts_of(getattr(estimator, "best_estimator_", None))
    if full_name(type(estimator)) not in _PIPELINES:
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return steps[:-1] + parts_of(steps[-1]) if steps else [estimator]


def answers_in_batches(estimator):
    """Whether a batch is known to have the bits that each of its records has alone."""
    *steps, model = parts_of(estimator)
    is_own = full_name(type(model)).startswith(f"{_OURS}linear_model.")
    # what a model leaves as has scikit-learn's probabilities
    is_private = hasattr(type(model), "planned_event")
    return is_own and is_private and all(map(_maps_by_record, steps))


def _maps_by_record(step):
    """Whether a fitted step gives a batch the bits that each of its records has alone."""
    name = full_name(type(step))
    if step is None or isinstance(step, str):  # "passthrough" and "drop"
        return True
    if name in ("sklearn.compose.ColumnTransformer", f"{_OURS}compose.DPColumnTransformer"):
        return all(_maps_by_record(part) for _, part, _ in step.transformers_)
    if name == "sklearn.pipeline.FeatureUnion":
        return all(_maps_by_record(part) for _, part in step.transformer_list)
    if name == "sklearn.preprocessing.FunctionTransformer":
        return step.func is None
    if name in _PIPELINES:
        return all(_maps_by_record(part) for _, part in step.steps)
    return name in _STEPS


class Model:
    """A public model that is asked for one kind of answer.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    methods : dict
        Shape and dtype of an answer of each method; the first is called that the estimator has.
    """

    def __init__(self, estimator, methods):
        self._estimator = estimator
        self._method = next((name for name in methods if hasattr(estimator, name)), None)
        if self._method is None:
            raise TypeError(f"the model has no {' or '.join(methods)}, got {estimator!r}")
        self._shape, self._dtype = methods[self._method]

    # ---- before the charge ----

    def check(self, X):
        """Raise unless the model answers for records of X's container, columns and finiteness.

        Parameters
        ----------
        X : as `read` returns it

        Raises
        ------
        TypeError, ValueError
            In words that quote no cell of X.
        """
        first = parts_of(self._estimator)[0]
        # steps for columns of a table, and encoders, are given cells that are no numbers
        of_numbers = full_name(type(first)).startswith(_OURS) and not hasattr(first, "transformers")
        if of_numbers and not get_tags(first).input_tags.categorical:
            checks = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}
            if get_tags(first).input_tags.allow_nan:
                checks["ensure_all_finite"] = "allow-nan"
            X = read_records(first, X, reset=False, **checks)  # numbers, whatever they stood in
        numbers = _numbers_of(X)
        if numbers is not None:
            others = ((math.nan, np.isnan(numbers)), (math.inf, np.isinf(numbers)))
            for cell in (0.0, *(cell for cell, found in others if found.any())):
                if refused := self._refuses(X, cell):
                    raise refused
        elif (refused := self._refuses(X, "")) and len(X.shape) == 1:
            raise refused
        elif refused and self._refuses(X, None) and not self._refuses(X, 0.0):
            raise ValueError("X holds what is no number, and the model answers for numbers alone")

    def _refuses(self, X, cell):
        """The error of a model that does not answer for a record whose cells are all `cell`."""
        try:
            with silence():  # a warning would tell about the records
                found = np.asarray(self._ask(_made_up(X, cell)), dtype=self._dtype).shape
        except Exception as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            return kind(f"the model can't answer for a record of cells {cell!r}: {error}")
        if found == (1, *self._shape):
            return None
        return ValueError(
            f"{self._method} of one record must have the shape {(1, *self._shape)}, the model's "
            f"has {found}"
        )

    # ---- after it ----

    def answers(self, X):
        """An array of the answers for the records; NaN or None where there is no answer."""
        with silence():  # a warning would tell about the records
            if answers_in_batches(self._estimator):
                try:
                    return np.asarray(self._ask(X))
                except Exception:  # it is one record's; the others have the same bits alone
                    pass
            alone = [self._alone(X, i) for i in range(X.shape[0])]
        none = None if self._dtype is object else np.nan
        found = np.full((len(alone), *self._shape), none, dtype=self._dtype)
        for i, answer in enumerate(alone):
            if answer is not None:
                found[i] = answer
        return found

    def _alone(self, X, i):
        """The answer for one record, or None."""
        try:
            (found,) = np.asarray(self._ask(safe_indexing(X, [i])), dtype=self._dtype)
        except Exception:
            return None
        return found if np.shape(found) == self._shape else None

    def _ask(self, X):
        return getattr(self._estimator, self._method)(X)


# ---- containers ----------------------------------------------------------------------------------


def read(X):
    """X as `read_table` reads it, or a list of texts or dicts, and the number of records."""
    X, n_records = read_table(X, ndims=(1, 2))
    if len(X.shape) == 1 and _kind_of_texts(X) is None:
        read_table(X)
    return X.tocsr() if issparse(X) else X, n_records


def _kind_of_texts(X):
    """The class of what X lists, where that are texts or dicts; else None."""
    listed = np.asarray(X).tolist() if len(X.shape) == 1 else ()
    kinds = {str if isinstance(one, str) else type(one) for one in listed}  # NumPy has its own
    return kinds.pop() if kinds in ({str}, {dict}) else None


def _numbers_of(X):
    """The stored cells as numbers, or None if they are others."""
    array = X.data if issparse(X) else np.asarray(X)
    if len(X.shape) == 1 or array.dtype.kind not in "biufO":
        return None
    if array.dtype.kind != "O":
        return array
    try:
        return read_input(np.asarray, array.ravel(), dtype=np.float64, name="X")
    except (TypeError, ValueError):  # a cell is no number
        return None


def _made_up(X, cell):
    """A record of the columns of X in its container, every cell the same.

    None is a zero or an empty word, by the dtypes of a frame.
    """
    if len(X.shape) == 1:
        return np.array([_kind_of_texts(X)()], dtype=object)
    if cell is None and is_frame(X):
        words = {name for name, _ in columns_of_words(X)}
        columns = {name: ["" if name in words else 0.0] for name in X.columns}
        return type(X)(columns)
    cell = 0.0 if cell is None else cell
    row = np.full((1, X.shape[1]), cell, dtype=object if cell == "" else np.float64)
    if issparse(X):
        return type(X)(row)
    if hasattr(X, "iloc"):
        return type(X)(row, columns=X.columns)
    return type(X)(row, schema=list(X.columns)) if is_frame(X) else row


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
        lambda sums, f: f.clip * (sums[0] / LEVELS / f.n - 1) / 2,
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
        lambda sums, f: f.clip**2 * (sums[0] / LEVELS / f.n - 1) / 2,
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
