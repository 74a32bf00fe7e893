"""τ-nice sampling: all sets of one size alike."""

import numpy as np

from ..utils._public import MOST_COORDINATES, check_count
from ._sampling import Sampling


class NiceSampling(Sampling):
    """τ-nice sampling: S is uniform among all sets of τ coordinates.

    Parameters
    ----------
    n_coordinates : int
        p', the number of coordinates with the intercept, at least 1.
    block_size : int
        τ, at least 1; more than `n_coordinates` counts as `n_coordinates`.

    Attributes
    ----------
    n_coordinates : int
    block_size : int
        τ, at most `n_coordinates`.

    Raises
    ------
    TypeError
        If a parameter is no integer.
    ValueError
        If a parameter is below 1.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.
    Assumption 3.7; its theorems hold for every sampling.

    Its `curvature`: Qu & Richtárik (2016). Coordinate descent with arbitrary sampling II: expected
    separable overapproximation. Optimization Methods and Software.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.samplings import NiceSampling
    >>> [S.tolist() for S in NiceSampling(5, 2).draw(np.random.default_rng(0), 3)]
    [[3, 4], [1, 2], [0, 1]]
    """

    name = "nice"
    words = ("nice",)

    def __init__(self, n_coordinates: int, block_size: int):
        self.n_coordinates = check_count(n_coordinates, "n_coordinates", high=MOST_COORDINATES)
        self.block_size = min(check_count(block_size, "block_size"), self.n_coordinates)

    @classmethod
    def of(cls, word, n_coordinates, block_size, smoothness):
        """The sampling for a word of the estimators, a size of blocks, and public M_j."""
        return cls(n_coordinates, block_size)

    def draw(self, generator, count):
        """Draw sets, independently of each other.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public randomness.
        count : int
            Number of sets.

        Yields
        ------
        ndarray of shape (block_size,)
            Ascending, of dtype intp.
        """
        for _ in range(count):
            chosen = generator.choice(
                self.n_coordinates, self.block_size, replace=False, shuffle=False
            )
            chosen.sort()
            yield chosen.astype(np.intp, copy=False)

    def curvature(self, spread):
        """How much steeper than its coordinates a set is in expectation over S.

        Parameters
        ----------
        spread : callable
            From a size s to a public bound on the largest eigenvalue of
            M_S^(-1/2) H_S M_S^(-1/2) over all sets S of s coordinates.

        Returns
        -------
        float
            1 + (τ - 1)(λ - 1)/(p' - 1), λ being the spread of all p' coordinates (expected
            separable overapproximation): at least 1, and less than what holds for every S.
        """
        if self.n_coordinates == 1:
            return 1.0
        share = (self.block_size - 1) / (self.n_coordinates - 1)
        return 1.0 + share * (spread(self.n_coordinates) - 1.0)
