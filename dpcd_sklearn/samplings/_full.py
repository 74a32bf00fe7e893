"""All coordinates at every step."""

import numpy as np


class FullSampling:
    """S = [p] with probability one: full-batch gradient descent.

    Parameters
    ----------
    n_coordinates : int
    """

    name = "full"

    def __init__(self, n_coordinates):
        self.blocks = [np.arange(n_coordinates, dtype=np.intp)]
        self.block_size = n_coordinates

    def draw(self, generator, count):
        """`count` times the only block, as indices into ``blocks``."""
        return np.zeros(count, dtype=np.intp)
