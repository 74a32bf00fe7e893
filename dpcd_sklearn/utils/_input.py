"""Records as users hand them over: checked before SciPy follows an index, and quoted by no error.

(a) What a sparse matrix says of itself is not believed: an index out of range makes SciPy read
    and write where it must not.
(b) Messages of NumPy, pandas and scikit-learn about a cell that is no number show the cell. Only
    those that are known to show shapes, names and finiteness come through; all others are
    replaced, and leave no chain of exceptions behind.
(c) A list of rows declares no dtype, so its cells are objects. NumPy would choose one dtype by all
    of them: one word makes words of all numbers, and one float makes floats of all integers.
"""

import re
from contextlib import contextmanager

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.utils.validation import check_array, validate_data

from ._cells import (
    AS_DAYS,
    columns_of_kind,
    columns_of_words,
    is_frame,
    kind_of_dtype,
    on_host,
    read_labels,
    refusal_of_table,
)
from ._tiles import is_finite

_ENTRIES = 1 << 18  # of sparse matrices that are looked at in one go
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
_MISSING_TARGET = (
    "Private models take no missing targets. With known = np.isfinite(np.asarray(y, dtype=float)), "
    "drop the records by X[known], y[known], a rule that looks at each record alone (their number "
    "is public then), or state a public value by np.where(known, y, value). A median, or what a "
    "model predicts, depends on other records and is outside of the guarantee"
)
# Beginnings of messages that tell shapes, names of columns, dtypes and finiteness, no more.
_TELLS_NO_CELL = re.compile(
    r"Input( X| y| sample_weight)? contains|Found (array|input variables) with|X has \d+ feature|"
    r"The feature names should match|Feature names are only supported|np\.matrix is not|"
    r"Expected a 2-dimensional container|Expected 2D input|Expected sequence or array-like, got <|"
    r"y should be a 1d array|(This )?\w{1,80}( estimator)? requires y to be passed|"
    r"dtype='numeric' is not compatible|Sample weights must (be 1D|contain)|"
    r"sample_weight\.shape ==|y must be an array|X has a different|Negative values in data passed|"
    r"setting an array element with a sequence\. The requested array has an inhomogeneous shape"
)


def read_input(check, *args, name, **kwargs):
    """Return ``check(*args, **kwargs)``, or raise an error that quotes no cell of `name`.

    Raises
    ------
    TypeError, ValueError
        What `check` raised, in words that depend on shapes, dtypes, names and finiteness only.
    """
    if any(isinstance(arg, np.ma.MaskedArray) for arg in args):
        raise TypeError(f"{name} must not be a masked array: pass array.filled(np.nan), of floats")
    try:
        # A warning about a conversion would tell about records. Clips bound finite numbers only, so
        # all are checked, even where scikit-learn is told to assume that they are finite.
        with np.errstate(all="ignore"), config_context(assume_finite=False):
            if any(map(_has_complex_cells, args)):  # of which NumPy drops a part, with a warning
                raise ValueError("Complex data not supported")
            return check(*args, **kwargs)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        found = error
    message = str(found)
    if missing := re.match(r"Input( X| y)? contains NaN", message):
        # scikit-learn's goes on with what voids a guarantee, and names no target of objects
        message = f"{missing[0]}. {_MISSING}"
        if missing[1] == " y" or (missing[1] is None and name != "X"):
            message = f"Input y contains NaN. {_MISSING_TARGET}"
    elif not _TELLS_NO_CELL.match(message):
        message = _replaced(message, name)
    kind = TypeError if isinstance(found, TypeError) else ValueError
    raise kind(message) from None  # outside of `except`: the former error is not its context


def _has_complex_cells(column):
    """Whether a list or an array has a cell that is one of NumPy's complex numbers."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "c":
        return True
    of_objects = str(getattr(column, "dtype", "")) == "object" and column.ndim == 1
    kinds = set(map(type, column)) if of_objects or isinstance(column, (list, tuple)) else ()
    return any(issubclass(kind, np.complexfloating) for kind in kinds)


@contextmanager
def reworded(change):
    """Let a TypeError or ValueError of this block say ``change(message)``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.args = (change(str(error)),)
        raise


def by_name(message):
    """Say how to plan columns that are picked by name; scikit-learn's words stop at the symptom."""
    if not message.startswith(("Specifying the columns using strings", "Expected 2D array")):
        return message
    return (
        "Columns are picked by name here, so a number of features or a list of names is not enough:"
        " pass a data frame of made-up rows in its place, with the columns and dtypes of X, as in "
        "accountant.cost(pipeline, n_samples, pd.DataFrame({'age': [0.0, 1.0], 'ward': ['a', 'b']})"
        "). plan, which simulates fits, needs make_data(n_samples, rng) -> (X, y) too, which draws "
        "such frames"
    )


def read_target(y, n_samples, classes=None):
    """One number a record, as finite doubles, or with public classes one label a record.

    Its shape is (n_samples,) or (n_samples, 1). No error quotes a record.
    """
    y = one_column(read_numbers(y) if classes is None else read_labels(y, classes))
    if y.shape != (n_samples,):
        raise ValueError(f"y must have shape ({n_samples},), got {y.shape}")
    return y


def read_numbers(y):
    """Targets of a regression as finite doubles, read cell by cell."""
    kind = kind_of_dtype(getattr(y, "dtype", None))
    cells = read_input(read_labels, y, name="y")
    if kind not in ("numbers", "words", "objects"):
        raise TypeError(f"y holds {kind} by its dtype, and must hold real numbers")
    numbers = read_input(np.asarray, cells, dtype=np.float64, name="y")
    check_finite_target(numbers)
    return numbers


def one_column(y):
    """A table of one column as that column, everything else as it is."""
    return y[:, 0] if y.shape[1:] == (1,) else y


def check_finite_target(y):
    """Raise a ValueError if a target of floats holds NaN or infinity."""
    if y.dtype.kind != "f" or np.isfinite(y).all():
        return
    if np.isnan(y).any():
        raise ValueError(f"Input y contains NaN. {_MISSING_TARGET}")
    raise ValueError("Input y contains infinity or a value too large for dtype('float64').")


def _replaced(message, name):
    if message.startswith("Complex data not supported"):
        return f"Complex data not supported: {name} must hold real numbers"
    if shape := re.match(r"Expected 2D array, got (1D|scalar) array", message):
        return f"{shape[0]} instead. {_RESHAPE}"
    if message.startswith("at least one array or dtype is required"):  # of a frame
        return f"{name} has no columns: at least one is required"
    if message.startswith("Input should have at least 1 dimension"):
        return f"{name} must be an array, got a scalar"
    labels = ". If y holds labels, fit a classifier" if name in ("y", "X or y") else ""
    return (
        f"{name} could not be converted to numbers: every cell or argument must be a real number, "
        f"or a string that holds a number; convert it first{labels}"
    )


def read_records(estimator, X, *y, **checks):
    """``validate_data`` of scikit-learn for X, or X and y; a sparse X has one entry a cell then.

    Raises
    ------
    TypeError, ValueError
        If they are not as asked for; the message quotes no cell.
    """
    X, *y = map(on_host, (X, *y))
    for array in (X, *y):
        if isinstance(array, str):  # to `validate_data` it might be a word
            raise ValueError("Expected 2D array, got scalar array instead: X and y are arrays")
    refuse_repeated_names(X)
    _refuse_dates(X, type(estimator).__name__)
    X = without_duplicates(X)
    if checks.get("ensure_all_finite", True) is True and is_finite(X):
        checks["ensure_all_finite"] = False
    name = "X or y" if y else "X"
    try:
        return read_input(validate_data, estimator, X, *y, name=name, **checks)
    except (TypeError, ValueError) as error:
        of_cells = re.search("could not be converted|contains NaN", str(error))
        if not of_cells or not (words := columns_of_words(X)):
            raise
    raise ValueError(refusal_of_table(X, words, [], type(estimator).__name__))


def read_table(X, ndims=(2,)):
    """Return records whose rows and columns can be taken, and their number; see (c).

    Data frames and arrays stay as they are, and sparse X has one entry a cell.

    Raises
    ------
    TypeError, ValueError
        If it is no table, or empty, or two columns have one name; the message quotes no cell.
    """
    refuse_repeated_names(X)
    if sparse.issparse(X):
        X = without_duplicates(X)
    elif X is None or isinstance(X, dict) or np.isscalar(X):
        raise TypeError(f"X must be an array, a data frame or a list, got a {type(X).__name__}")
    elif not is_frame(X):
        X = read_input(np.asarray, X, dtype=None if hasattr(X, "dtype") else object, name="X")
    if len(X.shape) not in ndims:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead, or rows of several lengths. "
            f"{_RESHAPE}"
        )
    if 0 in X.shape:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[-1]} feature(s) "
            f"(shape={tuple(X.shape)}) while a minimum of 1 is required."
        )
    return X, X.shape[0]


def refuse_repeated_names(X):
    """Raise a ValueError that names the columns of a data frame that have one name."""
    is_of_pyarrow = hasattr(type(X), "column_names")  # whose `columns` are their cells
    names = list(X.column_names if is_of_pyarrow else getattr(X, "columns", ()))
    if len(set(names)) == len(names):
        return
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    raise ValueError(
        f"X has more than one column of each of the names {repeated}: rename or drop columns, so "
        "that every name is there once"
    )


def _refuse_dates(X, model):
    """Raise a ValueError if X, or a column of it, holds dates or durations by its dtype."""
    if dates := columns_of_kind(X, "dates"):
        raise ValueError(refusal_of_table(X, columns_of_words(X), dates, model))
    if kind_of_dtype(getattr(X, "dtype", None)) == "dates":
        raise ValueError(f"X holds dates or durations, which are no numbers. {AS_DAYS}")


def read_array(X, **checks):
    """``check_array`` of scikit-learn; a sparse X is checked beforehand.

    Raises
    ------
    TypeError, ValueError
        If it is not as asked for; the message quotes no cell.
    """
    X = on_host(X)
    _refuse_dates(X, "")
    return read_input(check_array, without_duplicates(X), name="X", **checks)


def refuse_broken(X):
    """Raise a ValueError if an index of a sparse X leads out of it."""
    if not sparse.issparse(X):
        return
    if len(X.shape) != 2:
        raise ValueError(f"sparse X must have 2 dimensions, got {len(X.shape)}")
    try:
        sound = _is_sound(X)
    except (AttributeError, TypeError, ValueError, IndexError, ArithmeticError):  # no such arrays
        sound = False
    if not sound:
        raise ValueError(f"an index of sparse X is out of range, or its {X.format} arrays broken")


def without_duplicates(X):
    """Sparse X with one entry a cell at most, as CSR or CSC; everything else as it is.

    Entries of one cell are added in double precision in the order that they are stored in. That
    order is the record's own: entries of other records lie between, and move none of its own past
    another. SciPy sorts by an algorithm that is not stable, and rows or columns that were in order
    only if others were not.

    Raises
    ------
    TypeError, ValueError
        If an index leads out of X, or an entry is no number.
    """
    if not sparse.issparse(X):
        return X
    refuse_broken(X)
    if X.format in ("csr", "csc") and _is_canonical(X):
        return X
    shape = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format in ("csr", "csc"):
        line = np.repeat(np.arange(shape[0]), np.diff(X.indptr))
        place, data = X.indices[: len(line)], X.data[: len(line)]
    else:
        entries = X.tocoo()  # which adds nothing
        line, place, data = entries.row, entries.col, entries.data
    dtype = data.dtype if data.dtype in (np.float32, np.float64) else np.float64
    data = read_input(np.asarray, data, dtype=np.float64, name="X")
    order = np.argsort(line, kind="stable")
    starts = np.searchsorted(line, np.arange(shape[0] + 1), sorter=order)
    # two transpositions count entries line by line, so they are stable, and faster than a sort
    order = sparse.csr_array((order, place[order], starts), shape=shape).tocsc().tocsr().data
    line, place, data = line[order], place[order], data[order]
    first = (np.diff(line, prepend=-1) != 0) | (np.diff(place, prepend=-1) != 0)
    cell = np.cumsum(first) - 1
    sums = np.bincount(cell, data)  # one after the other
    finite = np.bincount(cell, ~np.isfinite(data)) == 0
    largest = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        sums = np.where(finite, np.clip(sums, -largest, largest), sums).astype(dtype)
    starts = np.searchsorted(line[first], np.arange(shape[0] + 1))
    kind = "csc" if X.format == "csc" else "csr"
    kind += "_array" if isinstance(X, sparse.sparray) else "_matrix"
    return getattr(sparse, kind)((sums, place[first], starts), shape=X.shape)


def _is_canonical(X):
    """Whether indices of CSR or CSC grow within every line, whatever the matrix says of itself."""
    indices, indptr = np.asarray(X.indices), np.asarray(X.indptr)
    n_stored = int(indptr[-1])
    for start in range(0, n_stored - 1, _ENTRIES):
        stop = min(start + _ENTRIES, n_stored - 1)
        falls = np.flatnonzero(indices[start + 1 : stop + 1] <= indices[start:stop]) + start + 1
        if (indptr[np.searchsorted(indptr, falls)] != falls).any():
            return False
    return True


# Arrays of whole numbers that say where entries lie, in the order that SciPy takes them.
_PLACES = dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr"))
_PLACES |= {"coo": ("row", "col"), "dia": ("offsets",)}


def _is_sound(X):
    """Whether the parts of a sparse X fit its shape; SciPy's checks may raise a ValueError."""
    n_rows, n_columns = X.shape
    if X.format == "lil":
        pairs = list(zip(X.rows, X.data, strict=True))
        fits = all(len(at) == len(cells) and _are_within(at, n_columns) for at, cells in pairs)
        return len(pairs) == n_rows and fits
    if X.format == "dok":
        return all(0 <= i < n_rows and 0 <= j < n_columns for i, j in X.keys())
    places = tuple(np.asarray(getattr(X, name)) for name in _PLACES[X.format])
    if not all(map(_are_whole, places)):
        return False
    parts = (X.data, places) if X.format == "coo" else (X.data, *places)
    again = getattr(sparse, f"{X.format}_array")(parts, shape=X.shape)  # of the same arrays
    if not hasattr(again, "check_format"):
        return True
    again.check_format(full_check=True)
    # of no entries SciPy does not look at the pointers
    return not (again.indptr[1:] < again.indptr[:-1]).any()


def _are_whole(places):
    return not places.size or places.dtype.kind in "iu"


def _are_within(places, size):
    places = np.asarray(places)
    return _are_whole(places) and (not places.size or 0 <= places.min() <= places.max() < size)
