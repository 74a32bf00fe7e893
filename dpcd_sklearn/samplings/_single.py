"""One coordinate at a time, uniformly or with given probabilities."""

import numpy as np


class SingleSampling:
    """Draw S = {j} with probability p_j (Alg. 1 of Mangold et al. 2022 has p_j = 1/p).

    Parameters
    ----------
    n_coordinates : int
    probabilities : array of shape (n_coordinates,), or None for uniform
        Importance sampling has p_j proportional to M_j.
    """

    name = "single"

    def __init__(self, n_coordinates, probabilities=None):
        self.n_coordinates = n_coordinates
        self.probabilities = probabilities
        self.block_size = 1

    def draw(self, generator, count):
        """`count` coordinates as an intp array."""
        if self.probabilities is None:
            return generator.integers(self.n_coordinates, size=count, dtype=np.intp)
        edges = np.cumsum(self.probabilities)
        # searchsorted on a cumulative sum draws in O(log p) a coordinate, whatever count is.
        j = np.searchsorted(edges, generator.random(count) * edges[-1], side="right")
        return np.minimum(j, self.n_coordinates - 1).astype(np.intp)
