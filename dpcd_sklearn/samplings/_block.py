"""One block of a fixed partition at a time (section 4.2.1 of Maranjyan et al. 2024)."""

import numpy as np

from ._base import Sampling
from ._probabilities import draw_indices


class BlockSampling(Sampling):
    """Draw S = A_i with probability q_i, the A_i being a partition of the coordinates.

    Parameters
    ----------
    n_coordinates : int
    block_size : int >= 1, or list of arrays of coordinates
        Size of blocks of consecutive coordinates, the last of which may be smaller; or the
        partition itself.
    probabilities : array of shape (n_blocks,), or None for uniform
        q_i; importance sampling has them proportional to the largest M_j of a block.
    """

    name = "block"

    def __init__(self, n_coordinates, block_size, probabilities=None):
        if isinstance(block_size, int | np.integer):
            coordinates = np.arange(n_coordinates, dtype=np.intp)
            step = min(int(block_size), n_coordinates)
            self.blocks = np.split(coordinates, range(step, n_coordinates, step))
        else:
            self.blocks = [np.sort(np.asarray(block)).astype(np.intp) for block in block_size]
            together = np.concatenate(self.blocks) if self.blocks else np.empty(0)
            if not np.array_equal(np.sort(together), np.arange(n_coordinates)) or not all(
                map(len, self.blocks)
            ):
                raise ValueError(
                    f"a partition has every one of the coordinates 0, ..., {n_coordinates - 1} in "
                    f"exactly one block, and no empty block; got {len(self.blocks)} blocks with "
                    f"{len(together)} coordinates"
                )
        self.block_size = max(map(len, self.blocks))
        self.probabilities = probabilities

    def draw(self, generator, count):
        """`count` blocks."""
        chosen = draw_indices(generator, len(self.blocks), self.probabilities, count)
        return (self.blocks[i] for i in chosen)

    def importance(self, smoothness):
        """The same blocks, block i with a probability proportional to its largest M_j."""
        self.probabilities = np.array([np.max(smoothness[block]) for block in self.blocks])
        self.probabilities /= self.probabilities.sum()
        return self
