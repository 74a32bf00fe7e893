"""Tables of any cells, read column by column; no error quotes one."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_array, validate_data

from ..privacy.sums._categories import NO_CATEGORY, category_of, may_be_category
from ..utils._input import read_input


def columns_of(estimator, X, *, reset):
    """The columns of a table as arrays, and the number of its records.

    Parameters
    ----------
    estimator : estimator
        Told the number and the names of columns, or compared with them.
    X : {array-like, data frame} of shape (n_samples, n_features)
    reset : bool
        Whether it is told.

    Returns
    -------
    columns : list of ndarrays of shape (n_samples,)
        None of them is a copy that was not needed; nobody writes to them.
    n_samples : int

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
        columns = list(X.T if X.dtype.kind not in "mM" else _times(X).T)
    else:
        columns = [X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(X.shape[1])]
        columns = [_cells(column) for column in columns]
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
    found = read_input(check_array, X, name="X", **checks)
    if found.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers or categories")
    return found


def _cells(column):
    """A column of a frame, with missing cells as None or NaN.

    What it becomes follows from the dtype of the column: a missing cell does not turn numbers or
    truths into objects, which would be seen in what comes out.
    """
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biufUO":
        return column.to_numpy()
    if _is_numeric(dtype):
        cells = column.to_numpy(dtype=object) if hasattr(column, "iloc") else column.to_list()
        missing = [category_of(cell) is None for cell in cells]
        return np.where(missing, np.nan, np.where(missing, 0, cells).astype(np.float64))
    if hasattr(column, "iloc"):
        return column.to_numpy(dtype=object)
    cells = column.to_numpy()
    return _times(cells) if cells.dtype.kind in "mM" else cells.astype(object)


def _is_numeric(dtype):
    """Whether a dtype of a frame is one of numbers or truths, which may have missing cells."""
    kind = getattr(dtype, "kind", None)  # polars' have none
    if kind is not None:
        return kind in "biuf"
    return str(dtype) == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal())


def _times(cells):
    """Dates and times of NumPy as Python's."""
    kind = "datetime64[us]" if cells.dtype.kind == "M" else "timedelta64[us]"
    return cells.astype(kind).astype(object)


def kept_cells(column):
    """A column of cells that `category_of` takes, each of them."""
    if column.dtype.kind == "U":
        column = column.astype(object)
    _refuse_other_cells(column)
    return column


def _refuse_other_cells(column):
    """A promise about the domain, kept before a charge: `category_of` takes each cell."""
    kinds = {type(cell) for cell in column.tolist()} if column.dtype.kind == "O" else ()
    if column.dtype.kind not in "biufUO" or not all(map(may_be_category, kinds)):
        raise TypeError(NO_CATEGORY)


def names_of(estimator, input_features=None):
    """Names of the columns that an estimator takes; see `get_feature_names_out`."""
    return OneToOneFeatureMixin.get_feature_names_out(estimator, input_features)
