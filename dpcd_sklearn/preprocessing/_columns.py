"""Tables of any cells, read column by column; no error quotes one."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import validate_data

from ..privacy.mechanisms._tables import MOST_CLASSES
from ..privacy.sums._tables import NO_CATEGORY, may_be_category
from ..utils import _cells
from ..utils._input import read_input, read_table, read_target, reworded
from ..utils._public import check_interval


def columns_of(estimator, X, *, reset):
    """The columns of a table as arrays, which nobody writes to.

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
    X, _ = read_table(X)
    read_input(validate_data, estimator, X, reset=reset, skip_check_array=True, name="X")
    columns = _cells.columns_in(X)
    kinds = [_cells.kind_of_dtype(getattr(column, "dtype", None)) for column in columns]
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
    return columns


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


def read_bounded_target(estimator, y, n_samples):
    """The target of each record before the charge, and its bounds; no error quotes one.

    Numbers are clipped to `target_bounds`. Of `classes` they are the numbers, of unknown labels
    that of the first one, and there are no bounds.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None"
        )
    labels, bounds = stated_target(estimator)
    with reworded(lambda text: text.replace("fit a classifier", "state them as classes=[...]")):
        y = read_target(y, n_samples, labels)
    if bounds is not None:
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
