"""Records as users hand them over: checked before SciPy follows an index, and quoted by no error.

(a) What a sparse matrix says of itself is not believed: an index out of range makes SciPy read
    and write where it must not.
(b) Messages of NumPy, pandas and scikit-learn about a cell that is no number show the cell. Only
    those that are known to show shapes, names and finiteness come through; all others are
    replaced, and leave no chain of exceptions behind.
"""

import re

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from ._other_arrays import on_host
from ._tiles import is_finite

_RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
    "array.reshape(1, -1) if it contains a single sample."
)
_MISSING = (
    "Private models take no missing values: fill them with dpcd_sklearn.preprocessing."
    "DPSimpleImputer(), which pays for what it learns, or with public constants by "
    "DPSimpleImputer(strategy='constant'), or leave out the columns. What other imputers learn "
    "from the records, a mean or a median, is outside of the guarantee"
)
# Beginnings of messages that tell shapes, names of columns, dtypes and finiteness, no more.
_TELLS_NO_CELL = re.compile(
    r"Input( X| y| sample_weight)? contains|Found (array|input variables) with|X has \d+ feature|"
    r"The feature names should match|Feature names are only supported|np\.matrix is not|"
    r"Expected a 2-dimensional container|Expected 2D input|Expected sequence or array-like, got <|"
    r"y should be a 1d array|(This )?\w{1,80}( estimator)? requires y to be passed|"
    r"dtype='numeric' is not compatible|Sample weights must (be 1D|contain)|"
    r"sample_weight\.shape ==|Negative values in data passed|"
    r"setting an array element with a sequence\. The requested array has an inhomogeneous shape"
)


def read_input(check, *args, name, **kwargs):
    """Return ``check(*args, **kwargs)``, or raise an error that quotes no cell of `name`.

    Raises
    ------
    TypeError, ValueError
        What `check` raised, in words that depend on shapes, dtypes, names and finiteness only.
    """
    try:
        with np.errstate(all="ignore"):  # a warning about a conversion would tell about records
            return check(*args, **kwargs)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        found = error
    message = str(found)
    if missing := re.match(r"Input( X| y)? contains NaN", message):
        message = f"{missing[0]}. {_MISSING}"  # scikit-learn's goes on with what voids a guarantee
    elif not _TELLS_NO_CELL.match(message):
        message = _replaced(message, name)
    kind = TypeError if isinstance(found, TypeError) else ValueError
    raise kind(message) from None  # outside of `except`: the former error is not its context


def _replaced(message, name):
    if message.startswith("Complex data not supported"):
        return f"Complex data not supported: {name} must hold real numbers"
    if shape := re.match(r"Expected 2D array, got (1D|scalar) array", message):
        return f"{shape[0]} instead. {_RESHAPE}"
    if message.startswith("Input should have at least 1 dimension"):
        return f"{name} must be an array, got a scalar"
    return (
        f"{name} could not be converted to numbers: every cell or argument must be a real number, "
        "or a string that holds a number; convert it first"
    )


def read_records(estimator, X, *y, **checks):
    """``validate_data`` of scikit-learn for X, or X and y; sparse ones are checked beforehand.

    Raises
    ------
    TypeError, ValueError
        If they are not as asked for; the message quotes no cell.
    """
    X, *y = map(on_host, (X, *y))
    for array in (X, *y):
        if isinstance(array, str):  # to `validate_data` it might be a word
            raise ValueError("Expected 2D array, got scalar array instead: X and y are arrays")
    refuse_broken(X)
    if checks.get("ensure_all_finite", True) is True and is_finite(X):
        checks["ensure_all_finite"] = False
    name = "X or y" if y else "X"
    try:
        return read_input(validate_data, estimator, X, *y, name=name, **checks)
    except (TypeError, ValueError) as error:
        of_cells = re.search("could not be converted|contains NaN", str(error))
        if not of_cells or not (words := columns_of_words(X)):
            raise
    raise ValueError(_refusal_of_table(X, words, type(estimator).__name__))


def columns_of_words(X):
    """Name and dtype of the columns of a data frame that hold no numbers by their dtypes."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    return [
        (name, dtype)
        for name, dtype in zip(X.columns, X.dtypes, strict=True)
        if not (dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "biuf")
    ]


def _refusal_of_table(X, words, model):
    """All that is wrong with a table of numbers and words, and the pipeline to write for it."""
    names = [name for name, _ in words]
    told = ", ".join(f"{name!r} ({dtype})" for name, dtype in words)
    others = [name for name in X.columns if name not in names]
    numbers = f"            (make_pipeline(DPSimpleImputer(), DPStandardScaler()), {others!r}),\n"
    text = (
        f"X holds {len(words)} of {len(X.columns)} columns that are no numbers: {told}. Encode "
        "them, and fill what is missing, by steps that share the budget:\n\n"
        "    make_private_pipeline(\n        make_private_column_transformer(\n"
        f"            (DPOneHotEncoder(), {names!r}),\n{numbers if others else ''}"
        f"        ),\n        {model}(),\n    )\n\n"
    )
    return text + (
        "Categories and bounds that are public may be stated to them, and cost nothing then: "
        "DPOneHotEncoder(categories=[...]), BoundsScaler. What other steps learn from the records, "
        "levels, means or medians, is outside of the guarantee"
    )


def read_array(X, **checks):
    """``check_array`` of scikit-learn; a sparse X is checked beforehand.

    Raises
    ------
    TypeError, ValueError
        If it is not as asked for; the message quotes no cell.
    """
    X = on_host(X)
    refuse_broken(X)
    return read_input(check_array, X, name="X", **checks)


def refuse_broken(X):
    """Raise a ValueError if an index of a sparse X leads out of it."""
    if not sparse.issparse(X):
        return
    if len(X.shape) != 2:
        raise ValueError(f"sparse X must have 2 dimensions, got {len(X.shape)}")
    check = _CHECKS_OF_FORMATS.get(X.format)
    try:
        sound = check is None or check(X)
    except (AttributeError, TypeError, ValueError, IndexError):  # not even arrays
        sound = False
    if not sound:
        raise ValueError(f"an index of sparse X is out of range, or its {X.format} arrays broken")


def _whole(indices):
    array = np.asarray(indices)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("indices are one-dimensional arrays of integers")
    return array


def _within(indices, size):
    return not indices.size or (indices.min() >= 0 and indices.max() < size)


def _compressed(X):
    data, indices, indptr = np.asarray(X.data), _whole(X.indices), _whole(X.indptr)
    shape, dimensions = X.shape, 1
    if X.format == "bsr":
        blocks, dimensions = data.shape[1:], 3
        if 0 in blocks or any(n % b for n, b in zip(shape, blocks, strict=True)):
            return False
        shape = tuple(n // b for n, b in zip(shape, blocks, strict=True))
    n_lines, size = shape[::-1] if X.format == "csc" else shape
    if data.ndim != dimensions or len(indptr) != n_lines + 1 or indptr[0] != 0:
        return False
    n_stored = int(indptr[-1])
    if n_stored > min(len(indices), len(data)) or (indptr[1:] < indptr[:-1]).any():
        return False
    return _within(indices[:n_stored], size)


def _coordinates(X):
    row, col = _whole(X.row), _whole(X.col)
    same = len(row) == len(col) and np.shape(X.data) == row.shape
    return same and _within(row, X.shape[0]) and _within(col, X.shape[1])


def _diagonals(X):
    return np.ndim(X.data) == 2 and len(_whole(X.offsets)) == len(X.data)


def _lists(X):
    lines = list(zip(X.rows, X.data, strict=True))
    if len(lines) != X.shape[0]:
        return False
    return all(len(at) == len(cells) and _within(_whole(at), X.shape[1]) for at, cells in lines)


def _keys(X):
    return all(
        len(key) == 2 and all(0 <= i < n for i, n in zip(key, X.shape, strict=True))
        for key in X.keys()
    )


_CHECKS_OF_FORMATS = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _compressed,
    "coo": _coordinates,
    "dia": _diagonals,
    "lil": _lists,
    "dok": _keys,
}
