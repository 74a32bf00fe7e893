"""Samplings: random sets of coordinates, drawn with public randomness."""

from abc import ABCMeta, abstractmethod

from ..utils._shown import Shown


class Sampling(Shown, metaclass=ABCMeta):
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
