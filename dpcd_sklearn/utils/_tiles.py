"""Pieces of X small enough that what is computed of one stays in the cache; cells by themselves."""

import numpy as np
from scipy.sparse import issparse

_STORED_CELLS = 1 << 16


def row_tiles(X):
    """Slices of the rows of X, so that no temporary has its size."""
    n_samples, n_features = X.shape
    n_rows = min(max(2**17 // n_features, 16), 1024)
    return (slice(start, start + n_rows) for start in range(0, n_samples, n_rows))


def is_finite(X):
    """Whether a large array of floats is known to be finite: a tile at a time, so that Ctrl-C ends
    a look at gigabytes; False where nobody knows, and of what milliseconds are enough for.
    """
    is_large = type(X) in (np.ndarray, np.memmap) and X.ndim == 2 and X.size >= 2**20
    if not is_large or X.dtype not in (np.float32, np.float64):
        return False
    with np.errstate(all="ignore"):
        return all(np.isfinite(tile.sum()) for tile, _ in stored_tiles(X))


def stored_tiles(X):
    """Yield views of the stored values of X, each with the features that they belong to."""
    if issparse(X):
        for start in range(0, X.nnz, _STORED_CELLS):
            entries = slice(start, min(start + _STORED_CELLS, X.nnz))
            if X.format == "csr":
                features = X.indices[entries]
            else:  # the column j with indptr[j] <= k < indptr[j + 1]
                k = np.arange(entries.start, entries.stop, dtype=X.indptr.dtype)
                features = np.searchsorted(X.indptr, k, side="right") - 1
            yield X.data[entries], features
        return
    n_samples, n_features = X.shape
    if X.flags.f_contiguous:
        rows, columns = _STORED_CELLS, max(1, _STORED_CELLS // n_samples)
    else:
        rows, columns = max(1, _STORED_CELLS // n_features), n_features
    for j in range(0, n_features, columns):
        features = slice(j, j + columns)
        for i in range(0, n_samples, rows):
            yield X[i : i + rows, features], features


def within_range(values, dtype):
    """Numbers cut to the finite ones of a dtype; NaN, which no finite record has, becomes zero."""
    largest = np.finfo(dtype).max
    return np.nan_to_num(np.clip(values, -largest, largest), copy=False)


def map_cells(X, function, *per_feature):
    """Replace the stored values of X by function(values, *per_feature), tile by tile.

    Temporaries are in double precision, so float32 data is rounded once, and all stays finite: what
    a transformer makes of one record must not decide an error of the next step.
    """
    with np.errstate(all="ignore"):  # a floating point warning would depend on the records
        for values, features in stored_tiles(X):
            cells = values.astype(np.float64, copy=False)
            found = function(cells, *(array[features] for array in per_feature))
            values[...] = within_range(found, X.dtype)
    return X


def elementwise(function, values):
    """function(value) of each value of an array, as an array of its shape.

    NumPy's vectorised exp and log may round other in the tail of an array, or where it is not
    contiguous: a number would follow from its place. A function of ``math`` sees the number alone.
    """
    found = np.fromiter(map(function, values.flat), dtype=np.float64, count=values.size)
    return found.reshape(values.shape)
