"""All coordinates at every step."""

import itertools

import numpy as np

from ._base import Sampling


class FullSampling(Sampling):
    """S = [p] with probability one: full-batch gradient descent.

    Parameters
    ----------
    n_coordinates : int
    """

    name = "full"

    def __init__(self, n_coordinates):
        self._all = np.arange(n_coordinates, dtype=np.intp)
        self.block_size = n_coordinates

    def draw(self, generator, count):
        """`count` times all coordinates."""
        return itertools.repeat(self._all, count)
