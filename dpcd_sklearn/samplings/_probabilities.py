"""Draws of indices with given probabilities."""

import numpy as np


def draw_indices(generator, n, probabilities, count):
    """`count` independent indices below n as an intp array; None is uniform."""
    if probabilities is None:
        return generator.integers(n, size=count, dtype=np.intp)
    edges = np.cumsum(probabilities)
    # searchsorted on a cumulative sum draws in O(log n) an index, whatever count is.
    index = np.searchsorted(edges, generator.random(count) * edges[-1], side="right")
    return np.minimum(index, n - 1).astype(np.intp)
