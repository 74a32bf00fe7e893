"""All coordinates at every step."""

import itertools

import numpy as np

from ..utils._public import MOST_COORDINATES, check_count
from ._sampling import Sampling


class FullSampling(Sampling):
    """All coordinates at every update: full-batch gradient descent.

    Parameters
    ----------
    n_coordinates : int
        p', the number of coordinates with the intercept, at least 1.

    Attributes
    ----------
    block_size : int
        p'.

    Raises
    ------
    TypeError
        If `n_coordinates` is no integer.
    ValueError
        If it is below 1.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.
    Assumption 3.7 and Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.samplings import FullSampling
    >>> [S.tolist() for S in FullSampling(3).draw(np.random.default_rng(0), 2)]
    [[0, 1, 2], [0, 1, 2]]
    """

    name = "full"
    words = ("full",)

    def __init__(self, n_coordinates: int):
        self.block_size = check_count(n_coordinates, "n_coordinates", high=MOST_COORDINATES)
        self.n_coordinates = self.block_size
        self._all = np.arange(self.block_size, dtype=np.intp)

    @classmethod
    def of(cls, word, n_coordinates, block_size, smoothness):
        """The sampling for a word of the estimators, a size of blocks, and public M_j."""
        return cls(n_coordinates)

    def draw(self, generator, count):
        """Give all coordinates `count` times.

        Parameters
        ----------
        generator : numpy.random.Generator
            Not used.
        count : int
            Number of updates.

        Returns
        -------
        iterator of `count` ascending intp arrays
        """
        return itertools.repeat(self._all, count)
