"""A user's own sampling: any object that draws blocks."""

import itertools
from numbers import Integral

import numpy as np

from ..utils._public import check_real


class CheckedSampling:
    """The blocks of a sampling, as ascending intp arrays within the coordinates.

    A fit is paid for when it draws. What turns to nonsense then, after a sound trial, is replaced
    by a fixed block: the blocks are public, and so is the replacement.

    Parameters
    ----------
    sampling : object with ``draw(generator, count)`` and ``block_size``
    n_coordinates : int

    Attributes
    ----------
    failure : str or None
        What went wrong in `draw`, for a warning once the fit is done.

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
        self.failure = None
        self.block_size = sampling.block_size
        is_integer = isinstance(self.block_size, Integral) and not isinstance(self.block_size, bool)
        if not is_integer or not 1 <= self.block_size <= n_coordinates:
            raise ValueError(
                f"sampling.block_size must be an integer in [1, {n_coordinates}], the number of "
                f"coordinates with the intercept; got {self.block_size!r}"
            )
        for _ in self._sound(np.random.default_rng(0), 10):
            pass

    def draw(self, generator, count):
        """`count` blocks, whatever the sampling does; its first `block_size` coordinates if not."""
        n_drawn = 0
        try:
            for block in self._sound(generator, count):
                yield block
                n_drawn += 1
                if n_drawn == count:
                    return
        except Exception as error:  # the user's code: of any kind
            self.failure = repr(error)
        fixed = np.arange(self.block_size, dtype=np.intp)
        yield from itertools.repeat(fixed, count - n_drawn)

    def _sound(self, generator, count):
        """`count` blocks, or the error that says what is wrong with them."""
        blocks = self._sampling.draw(generator, count)
        if not np.iterable(blocks):
            raise TypeError(f"sampling.draw must give an iterable of blocks, got {blocks!r}")
        n_drawn = 0
        for n_drawn, block in enumerate(itertools.islice(blocks, count + 1), start=1):
            if n_drawn > count:
                break
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
        if n_drawn != count:
            raise ValueError(
                f"sampling.draw(generator, {count}) must give {count} blocks, it gave "
                f"{'more' if n_drawn > count else n_drawn}"
            )

    def curvature(self, spread):
        """The sampling's own bound, or that of its largest block."""
        own = getattr(self._sampling, "curvature", None)
        if own is None:
            return spread(self.block_size)
        advice = "1 is a set that is no steeper than its coordinates"
        return check_real(own(spread), "sampling.curvature", low=1, closed="left", advice=advice)
