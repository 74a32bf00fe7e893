"""Columns and labels of any container, read cell by cell.

(a) How a cell is read depends on the cell and on the declared dtype of its container, never on the
    other cells. A list declares nothing, so its cells are objects: NumPy would make words of all
    numbers for one word among them.
(b) Integers are never rounded: a column of them that may have missing cells is a masked array,
    whatever is missing.
(c) A label is matched to the public classes by itself, and exactly: 2**53 + 1 is not 2.0**53.
"""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse

from ._other_arrays import on_host

_KINDS = dict.fromkeys("biuf", "numbers") | dict.fromkeys("UT", "words")
_KINDS |= {"M": "dates", "m": "dates", "S": "bytes", "c": "complex numbers"}
_WIDEST = {"b": bool, "i": np.int64, "u": np.uint64}


def kind_of_dtype(dtype):
    """Tell the kind of cells by a declared dtype: "numbers", "words", "dates", ... or "objects"."""
    if (categories := _categories(dtype)) is not None:
        return kind_of_values(categories)
    if (kind := getattr(dtype, "kind", None)) is not None:  # of NumPy and pandas
        return "words" if dtype.type is str else _KINDS.get(kind, "objects")
    if not hasattr(dtype, "is_numeric"):
        return "objects"
    name = str(dtype)  # of polars
    if name == "Boolean" or (dtype.is_numeric() and not dtype.is_decimal()):
        return "numbers"
    if dtype.is_temporal():
        return "dates"
    return "words" if name.startswith(("String", "Categorical", "Enum")) else "objects"


def kind_of_values(values):
    """The kind of public values: "numbers", "words", "bytes"; "objects" if they are of several."""
    values = [value for value in values if value is not None]
    for kind, types in (("numbers", (Real, np.bool_)), ("words", str), ("bytes", bytes)):
        if values and all(isinstance(value, types) for value in values):
            return kind
    return "objects"


def _categories(dtype):
    """The categories of a categorical dtype of pandas as a list; None for any other dtype."""
    if type(dtype).__name__ != "CategoricalDtype" or dtype.categories is None:
        return None
    return dtype.categories.astype(object).tolist()


def cells_of(column):
    """One column as an array; see (a) and (b).

    Parameters
    ----------
    column : array, list, or column of a data frame

    Returns
    -------
    ndarray
        Numbers and words as they are, everything else as objects, with None for missing cells.
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(column, np.ndarray):
        return _as_dates(column) if dtype.kind in "mM" else column
    if dtype is None:
        if hasattr(column, "to_pylist"):  # of pyarrow
            column = column.to_pylist()
        elif not isinstance(column, (list, tuple, range)):
            return cells_of(np.asarray(column))
        return _as_objects(column)
    if isinstance(dtype, np.dtype) and dtype.kind not in "mM":
        return np.asarray(column)
    if (categories := _categories(dtype)) is not None:
        codes = column.cat.codes if hasattr(column, "cat") else column.codes
        return _as_objects([*categories, None])[np.asarray(codes)]  # the code of no category is -1
    is_of_pandas = getattr(dtype, "kind", None) is not None
    if kind_of_dtype(dtype) != "numbers":
        if is_of_pandas:
            return column.to_numpy(dtype=object)
        return _as_objects(column.to_list())
    if is_of_pandas:
        if dtype.kind == "f":
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        cells = column.to_numpy(dtype=_WIDEST[dtype.kind], na_value=0)
        return np.ma.MaskedArray(cells, mask=np.asarray(column.isna(), dtype=bool))
    if dtype.is_float():
        return column.to_numpy()
    cells = column.fill_null(False if str(dtype) == "Boolean" else 0).to_numpy()
    return np.ma.MaskedArray(cells, mask=column.is_null().to_numpy())


def _as_objects(cells):
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):  # NumPy would make a table of cells that are sequences
        array[i] = cell
    return array


def _as_dates(cells):
    """Dates and times of NumPy as Python's."""
    unit = "datetime64[us]" if cells.dtype.kind == "M" else "timedelta64[us]"
    return cells.astype(unit).astype(object)


# ---- labels --------------------------------------------------------------------------------------


def read_labels(y, classes=None):
    """Labels as an array; see (a).

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
    classes : ndarray of labels, default=None
        Public ones, as of `stated_labels`.

    Returns
    -------
    ndarray
        Missing labels are None, but NaN in an array of floats.

    Raises
    ------
    TypeError
        If y is sparse.
    ValueError
        If the declared dtype of y and the classes are of two kinds, so that no label could match.
    """
    y = on_host(y)
    if issparse(y):
        raise TypeError("y must be an array, not a sparse matrix; pass y.toarray()")
    columns, is_table = getattr(y, "columns", None), len(getattr(y, "shape", ())) == 2
    if columns is not None and len(columns) == 1:
        y = y.iloc[:, 0] if hasattr(y, "iloc") else y[:, 0]
    if isinstance(y, (list, tuple)):  # of one label a row, perhaps
        y = [label[0] if isinstance(label, list) and len(label) == 1 else label for label in y]
    kind = kind_of_dtype(getattr(y, "dtype", None))
    if classes is not None:
        _refuse_another_kind(kind, kind_of_values(classes.tolist()))
    labels = cells_of(y)
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.astype(object).filled(None)
    elif labels.dtype.kind == "O":
        labels = _with_none(labels)
    return labels.reshape(-1, 1) if is_table and labels.ndim == 1 else labels


def _with_none(labels):
    """Objects, with None for each that is missing."""
    found = np.empty(labels.size, dtype=object)
    for i, label in enumerate(labels.ravel()):
        is_missing = type(label).__name__ in ("NAType", "NaTType") or (
            isinstance(label, (float, np.floating)) and label != label
        )
        found[i] = None if is_missing else label
    return found.reshape(labels.shape)


def _refuse_another_kind(kind, kind_of_classes):
    if "objects" in (kind, kind_of_classes) or kind == kind_of_classes:
        return
    decoded = ". Decode y, y.str.decode('utf-8')" if kind == "bytes" else ""
    raise ValueError(
        f"y holds {kind} by its dtype and classes holds {kind_of_classes}: no label of y could be "
        f"among classes; state them as they stand in y{decoded}. Meta-estimators that number the "
        "labels (VotingClassifier, BaggingClassifier, StackingClassifier) or give their members 0 "
        "and 1 in place of the labels (OneVsRestClassifier and its like) need members with "
        "classes=[0, 1], or as many numbers as there are labels"
    )


def stated_labels(classes):
    """The public labels of `classes`, each once, in order.

    Raises
    ------
    TypeError, ValueError
    """
    try:
        labels = read_labels(classes)
        if labels.ndim == 1 and labels.dtype.kind == "O":
            labels = as_array(sorted(set(labels.tolist())))
        else:
            labels = np.unique(labels) if labels.ndim == 1 else None
    except (TypeError, ValueError):  # ragged, or labels without an order
        raise TypeError(f"classes must be a list of labels of one kind, got {classes!r}") from None
    if labels is None or not all(label == label for label in labels.tolist()):
        raise ValueError(
            f"classes must be a list of labels, each equal to itself (NaN is not), got {classes!r}"
        )
    return labels


def as_array(labels):
    """Labels of one kind as an array of its dtype, if that holds them exactly; else of objects."""
    array = np.array(labels)
    rounds = array.dtype.kind == "f" and all(isinstance(label, Integral) for label in labels)
    if array.ndim == 1 and not rounds and array.tolist() == labels:
        return array
    return _as_objects(labels)


def numbers_of(labels, classes, otherwise=-1):
    """The number of each label among the classes, `otherwise` for a label that is none of them.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
    classes : ndarray of labels, each once
    otherwise : int, default=-1

    Returns
    -------
    ndarray of intp of shape (n_samples,)
    """
    if labels.dtype.kind not in "biufU":
        places = {label: k for k, label in enumerate(classes.tolist())}
        found = [_place_of(label, places, otherwise) for label in labels.tolist()]
        return np.array(found, dtype=np.intp)
    exact = ((_exactly(label, labels.dtype), k) for k, label in enumerate(classes.tolist()))
    exact = sorted((label, k) for label, k in exact if label is not None)
    if not exact:
        return np.full(len(labels), otherwise, dtype=np.intp)
    known, places = (np.array(part) for part in zip(*exact, strict=True))
    found = np.searchsorted(known, labels)
    # few arrays as long as labels are: beside records of few columns each of them counts
    found[known.take(found, mode="clip") != labels] = len(known)
    return np.append(places, otherwise).take(found)


def _place_of(label, places, otherwise):
    """The place of any object, by hash: no comparison of its own can raise."""
    try:
        return places.get(label, otherwise)
    except Exception:
        return otherwise


def _exactly(label, dtype):
    """A public label as one of a dtype, or None if no label of that dtype equals it."""
    is_word = isinstance(label, str)
    if is_word or dtype.kind == "U":
        return label if is_word and dtype.kind == "U" else None
    label = label.item() if isinstance(label, np.generic) else label
    try:
        found = dtype.type(label)
        return found if found.item() == label else None
    except (OverflowError, TypeError, ValueError):
        return None
