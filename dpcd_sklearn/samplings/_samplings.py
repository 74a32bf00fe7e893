"""Samplings: random sets of coordinates, drawn with public randomness."""

import itertools
from abc import ABCMeta, abstractmethod
from numbers import Integral

import numpy as np

from ..utils._public import MOST_COORDINATES, check_count
from ..utils._texts import ReadableRepr
from ..utils._typing import ArrayLike


class Sampling(ReadableRepr, metaclass=ABCMeta):
    """A source of the coordinates that an update moves: random sets S of them.

    Estimators take any object with `block_size` and `draw` as ``sampling=``; this class only gives
    it a `curvature`. The coordinates are 0, ..., p' - 1: the features in their order, and the
    intercept last, if there is one.

    A sampling is public. It may depend on the number of features and on public facts, never on
    the records: the sets show in the iterates, which are released, so that drawing them amplifies
    no privacy and needs no secret randomness.

    Attributes
    ----------
    block_size : int
        Largest number of coordinates in a set, at least 1. A pass over p' coordinates is
        p' / block_size updates.

    Notes
    -----
    A fit converges to the optimum only if every coordinate has a positive probability to be drawn.

    Ten draws are tried before a fit is charged. One that fails later is replaced by the first
    `block_size` coordinates, with a UserWarning: what was paid for is not thrown away.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.samplings import Sampling
    >>> class Neighbours(Sampling):
    ...     '''Two coordinates side by side: of pixels, of moments in time.'''
    ...     block_size = 2
    ...     def __init__(self, n_coordinates):
    ...         self.n_coordinates = n_coordinates
    ...     def draw(self, generator, count):
    ...         for j in generator.integers(self.n_coordinates - 1, size=count):
    ...             yield np.array([j, j + 1])
    >>> [S.tolist() for S in Neighbours(5).draw(np.random.default_rng(0), 3)]
    [[3, 4], [2, 3], [2, 3]]
    """

    block_size = None

    @abstractmethod
    def draw(self, generator, count):
        """Draw sets of coordinates, independently of each other.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public randomness, the only source of chance.
        count : int
            Number of sets.

        Returns
        -------
        iterable of `count` ascending intp arrays
            Each holds 1 to `block_size` distinct coordinates.
        """

    def curvature(self, spread):
        """How much steeper than its coordinates a set of them may be: steps are divided by it.

        Parameters
        ----------
        spread : callable
            From a size s to a public bound on the largest eigenvalue of
            M_S^(-1/2) H_S M_S^(-1/2) over all sets S of s coordinates, H being any Hessian of the
            mean loss and M_j its bound on coordinate j.

        Returns
        -------
        float
            At least 1: the spread of `block_size` coordinates, unless a subclass knows better.
        """
        return spread(self.block_size)


# ---- One coordinate at a time, uniformly or with given probabilities -----------------------------


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
        """Draw coordinates, independently of each other."""
        return draw_indices(generator, self.n_coordinates, self.probabilities, count)[:, np.newaxis]


# ---- One block of a fixed partition at a time (section 4.2.1 of Maranjyan et al. 2024) -----------


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
        """Draw blocks, independently of each other."""
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


# ---- τ-nice sampling: all sets of one size alike -------------------------------------------------


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
        """Draw sets, independently of each other."""
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


# ---- All coordinates at every step ---------------------------------------------------------------


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
        """Give all coordinates `count` times."""
        return itertools.repeat(self._all, count)


# ---- Checks of parameters ------------------------------------------------------------------------


def check_probabilities(probabilities, size, name="probabilities"):
    """Return weights of `size` choices as a float array of sum 1, or None for uniform ones.

    Raises
    ------
    TypeError
        If they are no numbers.
    ValueError
        If their shape is not (size,), one is negative, infinite or NaN, or their sum is not a
        positive finite number.
    """
    if probabilities is None:
        return None
    given = np.asarray(probabilities)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got an array of dtype {given.dtype}")
    if given.shape != (size,):
        raise ValueError(f"{name} must be an array of shape ({size},), got shape {given.shape}")
    given = given.astype(np.float64)  # a copy: what the caller does with theirs changes nothing
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got {probabilities!r}")
    with np.errstate(over="ignore"):
        total = given.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"{name} must have a positive, finite sum, got {total:g}")
    return given / total


def check_partition(blocks, n_coordinates):
    """Return a partition of the coordinates as a list of ascending intp arrays.

    Raises
    ------
    TypeError
        If it is no iterable of blocks of integers.
    ValueError
        If a coordinate is missing, or in two blocks, or a block is empty.
    """
    if isinstance(blocks, str) or not hasattr(blocks, "__iter__"):
        raise TypeError(
            "block_size must be an integer, or a partition: a list of arrays of coordinates; "
            f"got {blocks!r}"
        )
    blocks = [np.atleast_1d(np.asarray(block)) for block in blocks]
    kinds = {block.dtype.kind for block in blocks if block.size}
    if not kinds <= set("iu"):
        raise TypeError("the blocks of a partition must be arrays of integers")
    together = np.concatenate([block.ravel() for block in blocks]) if blocks else np.empty(0)
    complete = np.array_equal(np.sort(together), np.arange(n_coordinates))
    if not complete or not all(block.ndim == 1 and block.size for block in blocks):
        raise ValueError(
            f"a partition has every one of the coordinates 0, ..., {n_coordinates - 1} in "
            f"exactly one block, and no empty block; got {len(blocks)} blocks with "
            f"{len(together)} coordinates"
        )
    return [np.sort(block).astype(np.intp) for block in blocks]


# ---- Draws of indices with given probabilities ---------------------------------------------------


def draw_indices(generator, n, probabilities, count):
    """`count` independent indices below n as an intp array; None is uniform."""
    if probabilities is None:
        return generator.integers(n, size=count, dtype=np.intp)
    edges = np.cumsum(probabilities)
    # searchsorted on a cumulative sum draws in O(log n) an index, whatever count is.
    index = np.searchsorted(edges, generator.random(count) * edges[-1], side="right")
    return np.minimum(index, n - 1).astype(np.intp)
