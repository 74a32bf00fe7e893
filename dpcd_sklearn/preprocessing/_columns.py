"""Tables of any cells, read column by column; no error quotes one."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_array, validate_data

from ..privacy.mechanisms._tables import MOST_CLASSES
from ..privacy.sums._tables import NO_CATEGORY, may_be_category
from ..utils import _cells
from ..utils._input import check_finite_target, read_input, refuse_repeated_names, reworded
from ..utils._public import check_interval


def columns_of(estimator, X, *, reset):
    """The columns of a table as arrays, which nobody writes to, and their length.

    With `reset` the estimator is told the number and names of columns, else they are compared.

    Raises
    ------
    TypeError, ValueError
        If it is no table, empty or sparse, or has other columns than before.
    """
    if issparse(X):
        raise TypeError(
            f"{type(estimator).__name__} takes no sparse X: categories are dense columns. Pass "
            "X.toarray(), or select the columns of categories"
        )
    refuse_repeated_names(X)
    if not _is_frame(X):
        X = _as_array(estimator, X)
    read_input(validate_data, estimator, X, reset=reset, skip_check_array=True, name="X")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) "
            f"(shape={tuple(X.shape)}) while a minimum of 1 is required by "
            f"{type(estimator).__name__}."
        )
    if not _is_frame(X):
        columns = list(X.T)
    else:
        columns = [X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(X.shape[1])]
    kinds = [_cells.kind_of_dtype(column.dtype) for column in columns]
    if reset:
        estimator._kinds = kinds
    else:
        of_fit = getattr(estimator, "_kinds", ())
        for name, kind, before in zip(names_of(estimator), kinds, of_fit, strict=False):
            if {kind, before} == {"numbers", "words"}:
                raise ValueError(
                    f"column {name!r} of X holds {kind} by its dtype, and held {before} in the "
                    "fit: no cell could be one of its categories; convert it to what the fit saw"
                )
    columns = [_cells.cells_of(column) for column in columns]
    for column in columns:
        _refuse_other_cells(column)
    return columns, X.shape[0]


def _is_frame(X):
    return hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2


def _as_array(estimator, X):
    """An array of numbers, or of objects: lists are objects, whatever a record has in them."""
    checks = {
        "dtype": None if hasattr(X, "dtype") else object,
        "ensure_all_finite": False, "ensure_min_samples": 0, "ensure_min_features": 0,
        "estimator": estimator,
    }  # fmt: skip
    return read_input(check_array, X, name="X", **checks)


def refuse_another_kind(categories, kind, name):
    """Refuse stated categories that are words of a column of numbers, or numbers of another one.

    Raises
    ------
    ValueError
    """
    stated = _cells.kind_of_values(categories)
    if (stated, kind) in (("words", "numbers"), ("numbers", "words"), ("numbers", "dates")):
        raise ValueError(
            f"column {name!r} of X holds {kind} by its dtype, and its stated categories are "
            f"{stated}: no cell could be one of them; state them as they stand in X"
        )


def _refuse_other_cells(column):
    """A promise about the domain, kept before a charge: `category_of` takes each cell."""
    kinds = {type(cell) for cell in column.tolist()} if column.dtype.kind == "O" else ()
    if column.dtype.kind == "S" or bytes in kinds:
        raise TypeError(
            f"{NO_CATEGORY}; X holds bytes: decode them, X['column'].str.decode('utf-8')"
        )
    if column.dtype.kind not in "biufUO" or not all(map(may_be_category, kinds)):
        raise TypeError(NO_CATEGORY)


def each_once(names):
    """Names of columns that come out, with underscores behind those that are there already."""
    found = {}
    for name in names:
        while name in found:
            name += "_"
        found[name] = None
    return np.array(list(found), dtype=object)


def names_of(estimator, input_features=None):
    """Names of the columns that an estimator takes; see `get_feature_names_out`."""
    return OneToOneFeatureMixin.get_feature_names_out(estimator, input_features)


# ---- The target of a transformer: numbers within stated bounds, or stated classes ----------------


def read_target(estimator, y, n_samples):
    """The target of each record before the charge, and its bounds; no error quotes one.

    Numbers are clipped to `target_bounds`. Of `classes` they are the numbers, of unknown labels
    that of the first one, and there are no bounds.

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
    labels, bounds = stated_target(estimator)
    if labels is None:
        with reworded(lambda text: text.replace("fit a classifier", "state them as classes=[...]")):
            y = read_input(np.asarray, y, dtype=np.float64, name="y")
    else:
        y = _cells.read_labels(y, labels)
    if y.shape not in ((n_samples,), (n_samples, 1)):
        raise ValueError(f"y must have the shape ({n_samples},), got {y.shape}")
    y = y.reshape(n_samples)
    if bounds is not None:
        check_finite_target(y)
        return np.clip(y, *bounds), bounds
    return _cells.numbers_of(y, labels, otherwise=0), None


def stated_target(estimator):
    """Labels of a target of classes, in the order that they are stated in, or bounds of numbers.

    Returns
    -------
    labels, bounds : one of them is None

    Raises
    ------
    TypeError, ValueError
    """
    if estimator.classes is None:
        stated = (-1.0, 1.0) if estimator.target_bounds is None else estimator.target_bounds
        bounds = check_interval(tuple(stated), "target_bounds")
        if not np.isfinite(bounds).all():
            raise ValueError("target_bounds must be finite")
        return None, bounds
    # in the order of the encodings
    labels = _cells.as_array(_cells.read_labels(estimator.classes).tolist())
    if not 2 <= len(_cells.stated_labels(labels)) == len(labels) <= MOST_CLASSES:
        raise ValueError(
            f"classes are 2 to {MOST_CLASSES} labels, each of them once; got {len(labels)}"
        )
    return labels, None
