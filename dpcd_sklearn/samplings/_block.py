"""One block of a fixed partition at a time (section 4.2.1 of Maranjyan et al. 2024)."""

import numpy as np


class BlockSampling:
    """Draw one of the blocks of consecutive coordinates, uniformly.

    Every coordinate lies in exactly one block, so p_j = 1 / number of blocks for all of them.

    Parameters
    ----------
    n_coordinates : int
    block_size : int, >= 1
        Size of all blocks but the last, which may be smaller.
    """

    name = "block"

    def __init__(self, n_coordinates, block_size):
        coordinates = np.arange(n_coordinates, dtype=np.intp)
        self.block_size = min(block_size, n_coordinates)
        self.blocks = np.split(coordinates, range(self.block_size, n_coordinates, self.block_size))

    def draw(self, generator, count):
        """`count` indices into ``blocks`` as an intp array."""
        return generator.integers(len(self.blocks), size=count, dtype=np.intp)
