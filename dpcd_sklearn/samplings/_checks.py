"""Checks of the samplings' parameters."""

import numpy as np


def check_probabilities(probabilities, size, name="probabilities"):
    """Return weights of `size` choices as a float array of sum 1, or None for uniform ones.

    Raises
    ------
    TypeError
        If they are no numbers.
    ValueError
        If their shape is not (size,), one is negative, infinite or NaN, or their sum is not a
        positive finite number.
    """
    if probabilities is None:
        return None
    given = np.asarray(probabilities)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got an array of dtype {given.dtype}")
    if given.shape != (size,):
        raise ValueError(f"{name} must be an array of shape ({size},), got shape {given.shape}")
    given = given.astype(np.float64)  # a copy: what the caller does with theirs changes nothing
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got {probabilities!r}")
    with np.errstate(over="ignore"):
        total = given.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"{name} must have a positive, finite sum, got {total:g}")
    return given / total


def check_partition(blocks, n_coordinates):
    """Return a partition of the coordinates as a list of ascending intp arrays.

    Raises
    ------
    TypeError
        If it is no iterable of blocks of integers.
    ValueError
        If a coordinate is missing, or in two blocks, or a block is empty.
    """
    if isinstance(blocks, str) or not hasattr(blocks, "__iter__"):
        raise TypeError(
            "block_size must be an integer, or a partition: a list of arrays of coordinates; "
            f"got {blocks!r}"
        )
    blocks = [np.atleast_1d(np.asarray(block)) for block in blocks]
    kinds = {block.dtype.kind for block in blocks if block.size}
    if not kinds <= set("iu"):
        raise TypeError("the blocks of a partition must be arrays of integers")
    together = np.concatenate([block.ravel() for block in blocks]) if blocks else np.empty(0)
    complete = np.array_equal(np.sort(together), np.arange(n_coordinates))
    if not complete or not all(block.ndim == 1 and block.size for block in blocks):
        raise ValueError(
            f"a partition has every one of the coordinates 0, ..., {n_coordinates - 1} in "
            f"exactly one block, and no empty block; got {len(blocks)} blocks with "
            f"{len(together)} coordinates"
        )
    return [np.sort(block).astype(np.intp) for block in blocks]


def draw_indices(generator, n, probabilities, count):
    """`count` independent indices below n as an intp array; None is uniform."""
    if probabilities is None:
        return generator.integers(n, size=count, dtype=np.intp)
    edges = np.cumsum(probabilities)
    # searchsorted on a cumulative sum draws in O(log n) an index, whatever count is.
    index = np.searchsorted(edges, generator.random(count) * edges[-1], side="right")
    return np.minimum(index, n - 1).astype(np.intp)
