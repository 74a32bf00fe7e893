"""One coordinate at a time, uniformly or with given probabilities."""

import numpy as np

from ..utils._public import MOST_COORDINATES, check_count
from ..utils._typing import ArrayLike
from ._checks import check_probabilities
from ._probabilities import draw_indices
from ._sampling import Sampling


class SingleSampling(Sampling):
    """One coordinate at a time: S = {j} with probability p_j.

    Parameters
    ----------
    n_coordinates : int
        p', the number of coordinates with the intercept, at least 1.
    probabilities : array-like of shape (n_coordinates,), default=None
        p_j up to a common factor: finite and not negative, with a positive sum. Public, never from
        the records. None is uniform; importance sampling has them proportional to M_j. A
        coordinate of probability zero is never moved.

    Attributes
    ----------
    n_coordinates : int
    probabilities : ndarray of shape (n_coordinates,) or None
        p_j, of sum 1; None is uniform.
    block_size : int
        1.

    Raises
    ------
    TypeError
        If `n_coordinates` is no integer, or `probabilities` are no numbers.
    ValueError
        If a parameter is out of its range or of a wrong shape.

    References
    ----------
    Uniform: Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML. Algorithm 1.

    With probabilities: Maranjyan, Sadiev & Richtárik (2024). Differentially private random block
    coordinate descent. Section 4.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.samplings import SingleSampling
    >>> sampling = SingleSampling(3, [1, 0, 3])
    >>> sampling.probabilities
    array([0.25, 0.  , 0.75])
    >>> [S.tolist() for S in sampling.draw(np.random.default_rng(0), 4)]
    [[2], [2], [0], [0]]
    """

    name = "single"
    words = ("uniform", "importance")

    def __init__(self, n_coordinates: int, probabilities: ArrayLike | None = None):
        self.n_coordinates = check_count(n_coordinates, "n_coordinates", high=MOST_COORDINATES)
        self.probabilities = check_probabilities(probabilities, self.n_coordinates)
        self.block_size = 1

    @classmethod
    def of(cls, word, n_coordinates, block_size, smoothness):
        """The sampling for a word of the estimators, a size of blocks, and public M_j."""
        weights = None
        if word == "importance":
            weights = check_probabilities(smoothness, n_coordinates, "smoothness")
        return cls(n_coordinates, weights)

    def draw(self, generator, count):
        """Draw coordinates, independently of each other.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public randomness.
        count : int
            Number of coordinates.

        Returns
        -------
        ndarray of shape (count, 1)
            Of dtype intp; each row is a set.
        """
        return draw_indices(generator, self.n_coordinates, self.probabilities, count)[:, np.newaxis]
