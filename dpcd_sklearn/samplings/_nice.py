"""τ-nice sampling: all blocks of one size alike."""

import numpy as np

from ._base import Sampling


class NiceSampling(Sampling):
    """Draw S uniformly among all sets of `block_size` coordinates.

    Parameters
    ----------
    n_coordinates : int
    block_size : int
        τ, at most n_coordinates.
    """

    name = "nice"

    def __init__(self, n_coordinates, block_size):
        self.n_coordinates = n_coordinates
        self.block_size = min(block_size, n_coordinates)

    def draw(self, generator, count):
        """`count` sets."""
        for _ in range(count):
            chosen = generator.choice(
                self.n_coordinates, self.block_size, replace=False, shuffle=False
            )
            chosen.sort()
            yield chosen.astype(np.intp, copy=False)

    def curvature(self, spread):
        """1 + (τ - 1)(λ - 1)/(p - 1) in expectation over S, λ of all coordinates (ESO)."""
        if self.n_coordinates == 1:
            return 1.0
        share = (self.block_size - 1) / (self.n_coordinates - 1)
        return 1.0 + share * (spread(self.n_coordinates) - 1.0)
