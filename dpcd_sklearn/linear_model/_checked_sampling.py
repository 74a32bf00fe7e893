"""A user's own sampling: any object that draws blocks."""

import numpy as np


class CheckedSampling:
    """The blocks of a sampling, as ascending intp arrays within the coordinates.

    Parameters
    ----------
    sampling : object with ``draw(generator, count)`` and ``block_size``
    n_coordinates : int

    Raises
    ------
    TypeError
        If it has not this face.
    ValueError
        If a trial draw, from a generator of its own, is no block of coordinates.
    """

    def __init__(self, sampling, n_coordinates):
        if not callable(getattr(sampling, "draw", None)) or not hasattr(sampling, "block_size"):
            raise TypeError(
                "sampling must be a word or an object with draw(generator, count) and block_size, "
                f"got {sampling!r}"
            )
        self._sampling, self._n_coordinates = sampling, n_coordinates
        self.block_size = sampling.block_size
        if not isinstance(self.block_size, int | np.integer) or not (
            1 <= self.block_size <= n_coordinates
        ):
            raise ValueError(
                f"sampling.block_size must be an integer in [1, {n_coordinates}], the number of "
                f"coordinates with the intercept; got {self.block_size!r}"
            )
        if sum(1 for _ in self.draw(np.random.default_rng(0), 10)) != 10:
            raise ValueError("sampling.draw(generator, count) must give `count` blocks")

    def draw(self, generator, count):
        """`count` blocks."""
        for block in self._sampling.draw(generator, count):
            found = np.unique(block)
            if (
                found.dtype.kind not in "iu"
                or not 1 <= len(found) <= self.block_size
                or found[0] < 0
                or found[-1] >= self._n_coordinates
            ):
                raise ValueError(
                    f"sampling drew {block!r}: a block holds 1 to block_size={self.block_size} of "
                    f"the coordinates 0, ..., {self._n_coordinates - 1} (the intercept is last)"
                )
            yield found.astype(np.intp, copy=False)

    def curvature(self, spread):
        """The sampling's own bound, or that of its largest block."""
        own = getattr(self._sampling, "curvature", None)
        return spread(self.block_size) if own is None else own(spread)
