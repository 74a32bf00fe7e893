"""From Dask collections to partitions: blocks of rows of X, y and weights that belong together."""

import math

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from distributed import default_client
from scipy.sparse import issparse, vstack

from ..utils._compat import num_samples, safe_indexing
from ..utils._persons import hashes_of_ids, persons_of

_MOST_PARTS = 64  # into which records are divided by id: each block is cut into as many pieces


def client_of(model):
    """The client to fit with: the stated one, or the default.

    Raises
    ------
    ValueError
        If there is none, or it is closed.
    """
    client = model.client
    if client is None:
        try:
            client = default_client()
        except ValueError:
            raise ValueError(
                "no Dask client: make one with distributed.Client(...), or pass client=..."
            ) from None
    if client.asynchronous:
        raise ValueError("client must be synchronous: make it with asynchronous=False")
    if client.status != "running":
        raise ValueError(f"the client is {client.status}: connect a new one, nothing was charged")
    return client


def is_dask(X):
    """Whether X is a Dask array or data frame."""
    return isinstance(X, (da.Array, dd.DataFrame))


def partitions_of(X, y, sample_weight, groups=None):
    """Delayed tuples (X, y, sample_weight), one a block of rows; with ids, one a set of persons.

    Raises
    ------
    TypeError, ValueError
        If they are no Dask collections, or are not divided alike along rows, and only there.
    """
    if not is_dask(X):
        raise TypeError(
            f"X must be a Dask array or data frame, got {type(X).__name__}: use "
            "dask.array.from_array(X, chunks=(n_rows, -1)), or to_local() for arrays in memory"
        )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, X has {X.ndim} dimensions")
        if X.numblocks[1] != 1:
            raise ValueError(
                f"X is chunked along columns ({X.numblocks[1]} chunks): use X.rechunk({{1: -1}}), "
                "rows alone may be divided"
            )
    blocks = [blocks_of(X)]
    for name, other in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if other is None and name == "y":
            raise ValueError("this estimator requires y to be passed, but the target y is None")
        if other is None:
            blocks.append([None] * len(blocks[0]))
            continue
        if not is_dask_collection(other):
            raise TypeError(
                f"{name} must be a Dask collection as X is, got {type(other).__name__}: use "
                f"dask.array.from_array({name}, chunks=X.chunks[0])"
            )
        _refuse_other_rows(X, other, name)
        blocks.append(blocks_of(other))
    if groups is None:
        return [delayed(_tuple)(*rows[:3]) for rows in zip(*blocks, strict=True)]
    n_parts = min(len(blocks[0]), _MOST_PARTS)
    cut = [delayed(_cut_by_id, nout=n_parts)(n_parts, *rows) for rows in zip(*blocks, strict=True)]
    return [delayed(_joined)(pieces) for pieces in zip(*cut, strict=True)]


def _tuple(*arrays):
    return arrays


def _cut_by_id(n_parts, *arrays):
    """Pieces of a block, each with all records of some persons, whom a hash of the id names.

    What is not valid stays in the first piece, which whoever validates it refuses by name.
    """
    try:
        ids, persons = persons_of(arrays[-1], num_samples(arrays[0]))
        parts = (hashes_of_ids(ids) % np.uint64(n_parts))[persons] if len(ids) else persons
    except (TypeError, ValueError):
        parts = None
    return [tuple(_piece(array, parts, k) for array in arrays) for k in range(n_parts)]


def _piece(array, parts, k):
    if array is None:
        return None
    size = num_samples(array)
    if parts is None or size != len(parts):
        rows = np.arange(size if k == 0 else 0)
    else:
        rows = np.flatnonzero(parts == k)
    return safe_indexing(array, rows)


def _joined(pieces):
    """One partition of all pieces, in the order of the blocks."""
    return tuple(map(_join, zip(*pieces, strict=True)))


def _join(arrays):
    if arrays[0] is None:
        return None
    if hasattr(arrays[0], "iloc"):
        import pandas as pd

        return pd.concat(arrays)
    return vstack(arrays, format="csr") if issparse(arrays[0]) else np.concatenate(arrays)


def blocks_of(collection):
    """Delayed blocks of rows."""
    if isinstance(collection, da.Array):
        return list(collection.to_delayed().ravel())
    # optimized one by one, X and y of one parquet folder may be read in other numbers of partitions
    return list(collection.to_delayed(optimize_graph=False))


def _refuse_other_rows(X, other, name):
    """Unknown sizes are compared by the workers, once the blocks are made."""
    sizes = [_sizes(X), _sizes(other)]
    if None not in sizes and sizes[0] != sizes[1]:
        if sum(sizes[0]) != sum(sizes[1]):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has "
                f"{sum(sizes[0])} rows, {name} has {sum(sizes[1])}"
            )
        raise ValueError(f"X and {name} are not chunked alike: use {name}.rechunk((X.chunks[0],))")
    counts = [_count(X), _count(other)]
    if counts[0] != counts[1]:
        raise ValueError(
            f"X has {counts[0]} partitions and {name} {counts[1]}, of unknown sizes: use "
            "compute_chunk_sizes() on arrays, to_dask_array(lengths=True) on data frames, and then "
            f"{name}.rechunk((X.chunks[0],))"
        )
    if not any(isinstance(one, da.Array) for one in (X, other)):
        known = X.known_divisions and other.known_divisions
        if known and X.divisions != other.divisions:
            raise ValueError(
                f"X and {name} have other divisions: use {name}.repartition(divisions=X.divisions)"
            )


def _sizes(collection):
    if not isinstance(collection, da.Array) or any(map(math.isnan, collection.chunks[0])):
        return None
    return collection.chunks[0]


def _count(collection):
    return collection.numblocks[0] if isinstance(collection, da.Array) else collection.npartitions
