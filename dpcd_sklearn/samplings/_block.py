"""One block of a fixed partition at a time (section 4.2.1 of Maranjyan et al. 2024)."""

from numbers import Integral

import numpy as np

from ..utils._public import MOST_COORDINATES, check_count
from ..utils._typing import ArrayLike
from ._checks import check_partition, check_probabilities
from ._probabilities import draw_indices
from ._sampling import Sampling


class BlockSampling(Sampling):
    """One block of a fixed partition at a time: S = A_i with probability q_i.

    Parameters
    ----------
    n_coordinates : int
        p', the number of coordinates with the intercept, at least 1.
    block_size : int, or list of arrays of coordinates
        Size of blocks of consecutive coordinates, at least 1, the last of which may be smaller
        (more than `n_coordinates` is one block of all); or the partition itself, with every
        coordinate in exactly one block and no block empty.
    probabilities : array-like of shape (n_blocks,), default=None
        q_i up to a common factor: finite and not negative, with a positive sum. Public, never from
        the records. None is uniform.

    Attributes
    ----------
    blocks : list of ndarray
        The A_i, ascending, of dtype intp.
    probabilities : ndarray of shape (n_blocks,) or None
        q_i, of sum 1; None is uniform.
    block_size : int
        Number of coordinates in the largest block.

    Raises
    ------
    TypeError
        If a size is no integer, a block holds no integers, or `probabilities` are no numbers.
    ValueError
        If a parameter is out of its range or of a wrong shape, or the blocks are no partition.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.
    Section 4.2.1.

    Examples
    --------
    >>> from dpcd_sklearn.samplings import BlockSampling
    >>> [A.tolist() for A in BlockSampling(5, 2).blocks]
    [[0, 1], [2, 3], [4]]
    >>> BlockSampling(5, [[0, 3], [1, 2, 4]]).block_size
    3
    """

    name = "block"
    words = ("block", "block-importance")

    def __init__(
        self,
        n_coordinates: int,
        block_size: int | list[ArrayLike],
        probabilities: ArrayLike | None = None,
    ):
        n_coordinates = check_count(n_coordinates, "n_coordinates", high=MOST_COORDINATES)
        if isinstance(block_size, Integral):
            coordinates = np.arange(n_coordinates, dtype=np.intp)
            step = min(check_count(block_size, "block_size"), n_coordinates)
            self.blocks = np.split(coordinates, range(step, n_coordinates, step))
        else:
            self.blocks = check_partition(block_size, n_coordinates)
        self.n_coordinates = n_coordinates
        self.block_size = max(map(len, self.blocks))
        self.probabilities = check_probabilities(probabilities, len(self.blocks))

    @classmethod
    def of(cls, word, n_coordinates, block_size, smoothness):
        """The sampling for a word of the estimators, a size of blocks, and public M_j."""
        blocks = cls(n_coordinates, block_size)
        return blocks.importance(smoothness) if word == "block-importance" else blocks

    def draw(self, generator, count):
        """Draw blocks, independently of each other.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public randomness.
        count : int
            Number of blocks.

        Returns
        -------
        iterator of `count` ascending intp arrays
        """
        chosen = draw_indices(generator, len(self.blocks), self.probabilities, count)
        return (self.blocks[i] for i in chosen)

    def importance(self, smoothness):
        """Draw each block with a probability proportional to its largest M_j from now on.

        Parameters
        ----------
        smoothness : array-like of shape (n_coordinates,)
            M_j, finite and not negative, not all zero; public.

        Returns
        -------
        self : BlockSampling

        Raises
        ------
        TypeError, ValueError
            If the M_j are not as they should be; the probabilities are then as before.

        Examples
        --------
        >>> from dpcd_sklearn.samplings import BlockSampling
        >>> BlockSampling(4, 2).importance([9.0, 1.0, 1.0, 1.0]).probabilities
        array([0.9, 0.1])
        """
        size = sum(map(len, self.blocks))
        smoothness = check_probabilities(smoothness, size, "smoothness")
        if smoothness is None:
            raise TypeError("smoothness must be an array of numbers, got None")
        largest = [smoothness[block].max() for block in self.blocks]
        self.probabilities = check_probabilities(largest, len(self.blocks))
        return self
