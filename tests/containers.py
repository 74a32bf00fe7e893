"""Containers of columns, labels and tables, and changes of one record in them.

A fit must read all other records alike, whatever the changed one holds: see test_containers.py.
Functions here make the container from Python's own cells, or raise `UnfitError` where it can't hold
them: an integer array holds no word. The declared dtype of a container is its name's.
"""

import datetime
import os
import tempfile

import numpy as np
import pandas as pd
from scipy import sparse

try:
    import polars
except ImportError:
    polars = None
try:
    import pyarrow
except ImportError:
    pyarrow = None

BIG = 2**53 + 1  # which no double holds


class UnfitError(Exception):
    """A container that does not hold such a cell."""


def _array(dtype):
    def make(cells):
        if np.dtype(dtype).kind in "iu" and not all(isinstance(cell, int) for cell in cells):
            raise UnfitError
        if any(isinstance(cell, (str, bytes)) for cell in cells):  # which NumPy would convert
            raise UnfitError
        array = np.array(cells, dtype=dtype)
        if np.dtype(dtype).kind in "iu" and array.tolist() != cells:
            raise UnfitError
        return array

    return make


def _objects(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def _strided(cells):
    found = np.repeat(_array(np.int64)(cells), 3)
    return found[::3]


def _mapped(cells):
    array = _array(np.int64)(cells)
    handle, path = tempfile.mkstemp()
    os.close(handle)
    mapped = np.memmap(path, dtype=np.int64, mode="w+", shape=array.shape)
    mapped[:] = array
    mapped.flush()
    os.unlink(path)  # the map keeps its cells; no name of it is left behind
    return mapped


def _series(dtype):
    def make(cells):
        if str(dtype).lower().startswith(("int", "uint")):
            if not all(cell is None or (isinstance(cell, int) and 0 <= cell) for cell in cells):
                raise UnfitError
            if None not in cells:
                return pd.Series(np.array(cells, dtype=np.int64)).astype(dtype)
            present = [0 if cell is None else cell for cell in cells]
            found = pd.Series(np.array(present, dtype=np.int64)).astype(dtype)
            found[[cell is None for cell in cells]] = None
            return found
        return pd.Series(cells, dtype=dtype)

    return make


def _categorical(kinds):
    """Categories that are stated as part of the dtype are the same for both neighbours."""

    def make(cells):
        categories = [2, 1, BIG, BIG - 1, 7] if kinds == "numbers" else ["b", "a", "odd", "1", "2"]
        if not all(cell is None or cell in categories for cell in cells):
            raise UnfitError
        codes = [-1 if cell is None else categories.index(cell) for cell in cells]
        index = pd.Index(np.array(categories, dtype=np.int64 if kinds == "numbers" else object))
        return pd.Series(pd.Categorical.from_codes(codes, categories=index))

    return make


def _polars(dtype):
    def make(cells):
        return polars.Series("c", cells, dtype=getattr(polars, dtype), strict=True)

    return make


# One column of cells, by the declared dtype; whatever else they raise means that a cell is unfit.
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "object": _objects,
    "int64": _array(np.int64),
    "int32": _array(np.int32),
    "uint64": _array(np.uint64),
    "float64": _array(np.float64),
    "float32": _array(np.float32),
    "big-endian": _array(">i8"),
    "strided": _strided,
    "memory map": _mapped,
    "words": lambda cells: np.array(cells, dtype="U9") if _are_words(cells) else _unfit(),
    "Series of int64": lambda cells: pd.Series(_array(np.int64)(cells)),
    "Series of objects": lambda cells: pd.Series(_objects(cells), dtype=object),
    "Series of strings": lambda cells: (
        pd.Series(cells, dtype="string") if _are_words(cells, missing=True) else _unfit()
    ),
    "Index": lambda cells: pd.Index(_objects(cells), dtype=object),
    "Int64": _series("Int64"),
    "UInt64": _series("UInt64"),
    "Float64": lambda cells: (
        pd.Series(cells, dtype="Float64") if not _are_words(cells[:1]) else _unfit()
    ),
    "categorical of numbers": _categorical("numbers"),
    "categorical of words": _categorical("words"),
    "categorical of the cells": lambda cells: (
        pd.Series(_objects(cells), dtype=object).astype("category")
    ),
}
if pyarrow is not None:
    COLUMNS |= {
        "int64[pyarrow]": _series("int64[pyarrow]"),
        "string[pyarrow]": lambda cells: (
            pd.Series(cells, dtype="string[pyarrow]")
            if _are_words(cells, missing=True)
            else _unfit()
        ),
        "pyarrow.Array of int64": lambda cells: pyarrow.array(cells, type=pyarrow.int64()),
        "pyarrow.Array of strings": lambda cells: pyarrow.array(cells, type=pyarrow.string()),
    }
if polars is not None:
    COLUMNS |= {f"polars {name}": _polars(name) for name in ("Int64", "UInt64", "String")}


def _are_words(cells, missing=False):
    return all(isinstance(cell, str) or (missing and cell is None) for cell in cells)


def _unfit():
    raise UnfitError


def column_in(container, cells):
    """One column of cells in a container.

    Raises
    ------
    UnfitError
        If the container holds no such cells.
    """
    try:
        return COLUMNS[container](list(cells))
    except (TypeError, ValueError, OverflowError, UnfitError) as error:
        raise UnfitError(container) from error
    except Exception as error:  # of pyarrow and polars
        if type(error).__module__.partition(".")[0] in ("pyarrow", "polars"):
            raise UnfitError(container) from error
        raise


# Changes of the one record: extreme, missing, of another kind, of another label.
CHANGES = {
    "another label": 2,
    "unknown": 7,
    "2^53 + 1": BIG,
    "2^53": BIG - 1,
    "beyond 2^63": 2**63 + 1,
    "beyond all": 10**30,
    "negative": -1,
    "fraction": 0.5,
    "infinite": float("inf"),
    "missing": None,
    "NaN": float("nan"),
    "a truth": True,
    "a word": "odd",
    "digits": "1",
    "empty": "",
    "bytes": b"odd",
    "a date": datetime.datetime(2020, 1, 1),
    "NaT": pd.NaT,
    "a pair": (1, 2),
    "NumPy's float": np.float32(0.1),
}


def changed(cells, change, at=0):
    """The cells with one record changed, by its name in CHANGES."""
    cells = list(cells)
    cells[at] = CHANGES[change]
    return cells


# ---- tables of numbers ---------------------------------------------------------------------------


def _stored(kind, with_duplicates=True):
    """Sparse tables; each cell is stored as three entries, whose sum depends on their order."""

    def make(X, extra=()):
        X = np.asarray(X, dtype=np.float64)
        row, column = (part.ravel() for part in np.indices(X.shape))
        parts = [1e16, X.ravel(), -1e16] if with_duplicates else [X.ravel()]
        data = np.concatenate([np.broadcast_to(part, row.shape) for part in parts])
        row, column = (np.tile(part, len(parts)) for part in (row, column))
        for i, j, value in extra:  # before all others
            row, column, data = np.append(i, row), np.append(j, column), np.append(value, data)
        if kind == "coo":
            return sparse.coo_array((data, (row, column)), shape=X.shape)
        line, place = (row, column) if kind == "csr" else (column, row)
        order = np.argsort(line, kind="stable")
        n_lines = X.shape[0] if kind == "csr" else X.shape[1]
        starts = np.searchsorted(line[order], np.arange(n_lines + 1))
        form = {"csr": sparse.csr_array, "csc": sparse.csc_array}[kind]
        return form((data[order], place[order], starts), shape=X.shape)

    return make


# Tables of finite numbers, from an array of doubles.
TABLES = {
    "list": lambda X: X.tolist(),
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "Fortran": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "objects": lambda X: X.astype(object),
    "frame": pd.DataFrame,
    "frame of objects": lambda X: pd.DataFrame(X).astype(object),
    "frame of Float64": lambda X: pd.DataFrame(X).astype("Float64"),
    "csr": _stored("csr", with_duplicates=False),
    "csc": _stored("csc", with_duplicates=False),
    "coo": _stored("coo", with_duplicates=False),
    "csr with duplicates": _stored("csr"),
    "csc with duplicates": _stored("csc"),
    "coo with duplicates": _stored("coo"),
}
if polars is not None:
    TABLES["polars"] = lambda X: polars.DataFrame(X)
if pyarrow is not None:
    TABLES["pyarrow"] = lambda X: pyarrow.table({f"x{j}": column for j, column in enumerate(X.T)})

EXTREMES = {"large": 3e38, "largest": 1e308, "tiny": 5e-324, "negative": -1e300, "whole": 7.0}


def table_in(container, X):
    """A table of numbers in a container."""
    return TABLES[container](np.asarray(X, dtype=np.float64))
