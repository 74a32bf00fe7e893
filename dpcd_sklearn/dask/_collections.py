"""From Dask collections to partitions: blocks of rows of X, y and weights that belong together."""

import math

import dask.array as da
import dask.dataframe as dd
from dask import delayed
from dask.base import is_dask_collection
from distributed import default_client


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


def partitions_of(X, y, sample_weight):
    """Delayed tuples (X, y, sample_weight), one a block of rows.

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
    for name, other in (("y", y), ("sample_weight", sample_weight)):
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
    return [delayed(_tuple)(*rows) for rows in zip(*blocks, strict=True)]


def _tuple(*arrays):
    return arrays


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
