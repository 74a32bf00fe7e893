"""Columns, labels and tables of any container, read cell by cell.

(a) How a cell is read depends on the cell and on the declared dtype of its container, never on the
    other cells. A list declares nothing, so its cells are objects: NumPy would make words of all
    numbers for one word among them.
(b) Integers are never rounded: a column of them that may have missing cells is a masked array,
    whatever is missing.
(c) A label is matched to the public classes by itself, and exactly: 2**53 + 1 is not 2.0**53.
"""

import itertools
import re
import sys
import textwrap
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config

from ._warnings import warn

_KINDS = dict.fromkeys("biuf", "numbers") | dict.fromkeys("UT", "words")
_KINDS |= {"M": "dates", "m": "dates", "S": "bytes", "c": "complex numbers"}
_WIDEST = {"b": bool, "i": np.int64, "u": np.uint64}


def kind_of_dtype(dtype):
    """Tell the kind of cells by a declared dtype: "numbers", "words", "dates", ... or "objects"."""
    # Categoricals of pandas hold objects: ``astype("category")`` finds their categories in the
    # records, so one record would decide of what kind they all are.
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
        if dtype.kind not in "mM":
            return column
        unit = "datetime64[us]" if dtype.kind == "M" else "timedelta64[us]"
        return column.astype(unit).astype(object)  # of Python
    if dtype is None:
        if hasattr(column, "to_pylist"):  # of pyarrow
            column = column.to_pylist()
        elif not isinstance(column, (list, tuple, range)):
            return cells_of(np.asarray(column))
        return _as_objects(column)
    if isinstance(dtype, np.dtype) and dtype.kind not in "mM":
        return np.asarray(column)
    if type(dtype).__name__ == "CategoricalDtype":  # of pandas; the code of no category is -1
        codes = column.cat.codes if hasattr(column, "cat") else column.codes
        return _as_objects([*dtype.categories.astype(object), None])[np.asarray(codes)]
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
        "labels (VotingClassifier, BaggingClassifier, StackingClassifier, and cross_val_predict of "
        "probabilities) or give their members 0 and 1 in place of the labels "
        "(OneVsRestClassifier and its like) need members with classes=[0, 1], or as many numbers "
        "as there are labels"
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


# ---- Tables: columns judged by name and dtype ----------------------------------------------------


AS_DAYS = (
    "Write dates as numbers of days from a day that is public, such as (X['date'] - "
    "pd.Timestamp('2020-01-01')) / pd.Timedelta('1D'); missing ones are NaN then. Or as years, "
    "months and weekdays, by dpcd_sklearn.compose.date_parts(X)"
)
_IDENTIFIERS = "id ids uuid guid name names surname firstname lastname fullname email mail phone "
_IDENTIFIERS += "telephone mobile ssn mrn iban passport ticket address url username"
_DATES = "date dates datetime timestamp birthday birthdate dob"


def _tokens(name):
    """Words of a name, in lower case: PassengerId and passenger_id have two."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name if isinstance(name, str) else "")
    return {part.lower() for part in parts}


def is_identifier(name):
    """Whether a column seems to name a person or a record, by its own name."""
    return not _tokens(name).isdisjoint(_IDENTIFIERS.split())


def is_frame(X):
    """Whether X is a table whose columns have names and dtypes of their own."""
    return hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2


def columns_in(X):
    """The columns of an array or a data frame, as its library has them."""
    if hasattr(X, "column_names"):  # of pyarrow
        return X.columns
    take = getattr(X, "iloc", X)
    return [take[:, j] for j in range(X.shape[1])]


def columns_of_kind(X, *kinds):
    """Name and dtype of the columns of a data frame that hold cells of these kinds."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    columns = zip(X.columns, X.dtypes, strict=True)
    return [(name, dtype) for name, dtype in columns if kind_of_dtype(dtype) in kinds]


def columns_of_words(X):
    """Name and dtype of the columns of a data frame that hold neither numbers nor dates."""
    return columns_of_kind(X, "words", "bytes", "objects")


def is_date(name):
    """Whether a column seems to hold dates, by its name."""
    return not _tokens(name).isdisjoint(_DATES.split())


def as_dates(names):
    """Say how to convert columns of words that are dates by their names."""
    return f"{names!r} seem to hold dates as words: write pd.to_datetime(X[{names[0]!r}]) first"


def written(groups, model, options=""):
    """The code of a pipeline for a table, as `black` would wrap it: steps by columns, a model."""
    lines = "".join(wrapped(f"({step}, {names!r}),", 12) for step, names in groups)
    return (
        "    make_private_pipeline(\n        make_private_column_transformer(\n"
        f"{lines}        ),\n{wrapped(f'{model},', 8)}{options}    )\n"
    )


_WHOLE = {"break_long_words": False, "break_on_hyphens": False}


def wrapped(code, indent, width=88):
    """Break the code of a call, list or tuple at its outermost commas until lines are short."""
    plain = re.sub(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"", lambda m: "_" * len(m[0]), code)
    bracket = re.search(r"[(\[{].", plain)
    if len(line := " " * indent + code) <= width or not bracket:
        return f"{line}\n"
    depth, starts = 0, [bracket.start() + 1]
    for i in range(starts[0], len(code)):
        depth += (plain[i] in "([{") - (plain[i] in ")]}")
        if depth < 0 or (depth == 0 and plain[i] == ","):
            starts.append(i + 1)
        if depth < 0:
            break
    parts = [code[i : j - 1].strip() for i, j in itertools.pairwise(starts)]
    if re.search(r"[=(\[{]", plain[starts[0] : starts[-1] - 1]):
        inner = "".join(wrapped(f"{part},", indent + 4, width) for part in parts if part)
    else:  # words or numbers
        words = " ".join(f"{part},".replace(" ", "\0") for part in parts if part)
        margin = " " * (indent + 4)
        inner = textwrap.indent(textwrap.fill(words, width - len(margin), **_WHOLE), margin)
        inner = inner.replace("\0", " ") + "\n"
    return f"{line[: indent + starts[0]]}\n{inner}{' ' * indent}{code[starts[-1] - 1 :]}\n"


def refusal_of_table(X, words, dates, model):
    """All that is wrong with a table of numbers and words, and the pipeline to write for it."""
    told = ", ".join(f"{name!r} ({dtype})" for name, dtype in [*words, *dates])
    n_others = len(words) + len(dates)
    text = f"X holds {n_others} of {len(X.columns)} columns that are no numbers: {told}. "
    if dates:
        text += f"{AS_DAYS}. "
    if not words:
        return text.rstrip()
    if objects := columns_of_kind(X, "objects"):
        name = objects[0][0]
        text += f"If cells of {name!r} are dates, pd.to_datetime(X[{name!r}]) makes them so. "
    if days := [name for name, _ in words if is_date(name)]:
        text += f"{as_dates(days)}. "
    names = [name for name, _ in words if name not in days]
    others = [name for name in X.columns if name not in dict(words)]
    groups = [("DPOneHotEncoder()", names)] if names else []
    if others:
        groups.append(("make_pipeline(DPSimpleImputer(), DPStandardScaler())", others))
    text += (
        "State the categories that are public, DPOneHotEncoder(categories={column: [...]}), and "
        "bounds, DPStandardScaler(feature_bounds=[(lo, hi), ...]): they cost nothing, and gain "
        "most where records are few. "
        f"Encode {'words' if dates or days else 'them'}, and fill what is missing, by steps that "
        "share the budget, as dpcd_sklearn.compose.private_table_model(X) writes them:\n\n"
        f"{written(groups, f'{model}()')}\n"
    )
    return text + (
        "What other steps learn from the records, levels, means or medians, is outside of the "
        "guarantee"
    )


# ---- Arrays of other libraries, such as tensors --------------------------------------------------
#
# Fits read them on the host, as NumPy arrays, because sums must be exact and noise must be ours. It
# is said once that records are moved; predictions are given back as arrays of X's library where
# scikit-learn's ``array_api_dispatch`` asks for it.


def is_of_another_library(array):
    """Whether it is an array with a shape that is exchanged by DLPack, and none of NumPy's."""
    if isinstance(array, (np.ndarray, np.generic)):
        return False
    return hasattr(array, "__dlpack__") and hasattr(array, "shape")


def on_host(array):
    """The array, or if it is of another library its values as a NumPy array in this memory.

    Raises
    ------
    TypeError
        If its values can't be had; the message quotes none.
    """
    if not is_of_another_library(array):
        return array
    library = _library(array)
    warn(
        f"arrays of {library} are read on the host, as NumPy arrays: fits and predictions run "
        "there. Under sklearn.config_context(array_api_dispatch=True) predictions are given back "
        "as arrays of X's library. Said once a process",
        topic="arrays are moved",
    )
    try:
        for move in ("detach", "cpu", "get"):  # the first two of torch, the last of CuPy
            if callable(getattr(array, move, None)):
                array = getattr(array, move)()
        return _values(array)
    except Exception as error:
        kind = type(error).__name__
    raise TypeError(
        f"an array of {library} can't be read on the host ({kind}); pass it as a NumPy array"
    )


def refuse_collections(model, **arrays):
    """Raise a TypeError if an array is a Dask collection or a lazy frame, with the way out."""
    for name, array in arrays.items():
        if type(array).__name__ == "LazyFrame":  # of polars
            raise TypeError(f"{name} is a LazyFrame: pass {name}.collect()")
        if hasattr(array, "__dask_graph__") and not hasattr(model, "to_local"):
            kind = type(model).__name__
            raise TypeError(
                f"{name} is a Dask collection, and {kind} reads records in memory: "
                f"dpcd_sklearn.dask.{kind} fits them where they are, or pass {name}.compute()"
            )


def _values(array):
    try:
        return np.asarray(array)
    except (RuntimeError, TypeError, ValueError):  # on a device that NumPy does not know of
        return np.from_dlpack(array)


def given_back(found, X):
    """Numbers that were found of X: as an array of its library, where scikit-learn is asked to.

    Labels that are no numbers stay a NumPy array; other libraries have none.
    """
    if not get_config()["array_api_dispatch"] or not is_of_another_library(X):
        return found
    if found.dtype.kind not in "biuf":
        return found
    namespace = getattr(X, "__array_namespace__", lambda: sys.modules[_library(X)])()
    try:
        return namespace.asarray(found, device=X.device)
    except TypeError:  # CuPy's has no such parameter
        return namespace.asarray(found)


def _library(array):
    return type(array).__module__.partition(".")[0]
