"""One coordinate at a time, uniformly or with given probabilities."""

import numpy as np

from ._base import Sampling
from ._probabilities import draw_indices


class SingleSampling(Sampling):
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
        """`count` coordinates as an intp array of shape (count, 1)."""
        return draw_indices(generator, self.n_coordinates, self.probabilities, count)[:, np.newaxis]
