"""Records in this process, as a plan is given them after the charge."""

from mmap import mmap
from typing import NamedTuple

import numpy as np

from ..privacy.sums._margins import products
from ..privacy.sums._place import LocalPlace
from ..utils._threads import effective_n_threads

_FARTHEST = 1e6  # of a margin: its derivative is clipped long before


class Arrays(NamedTuple):
    """X, y and weights in memory; nothing is read before a plan opens `place()`.

    Records that lie elsewhere have the same methods.
    """

    X: object
    target: np.ndarray
    sample_weight: np.ndarray | None

    def place(self, bounds, n_threads):
        """Where they lie, with bounds as of LocalPlace."""
        return LocalPlace(*self, bounds, n_threads=effective_n_threads(n_threads))

    def in_columns(self):
        """The same records for reading single columns: an array in rows is turned, a map is not.

        In rows a column costs a cache line for every record, update for update.
        """
        return self._replace(X=np.asfortranarray(self.X)) if _is_in_rows(self.X) else self

    def labels(self):
        """Where numbers of classes lie, to be counted."""
        return LocalPlace(self.X, self.target)

    def along(self, coef, offset, bounds, n_threads):
        """One column in place of the features: their products with `coef`, and `offset`.

        Each number is a function of its own row; one that overflows is cut.
        """
        if bounds is not None:
            *bounds, center = bounds
            offset = offset - center @ coef
        n_threads = effective_n_threads(n_threads)
        column = products(self.X, coef[np.newaxis], bounds, n_threads=n_threads) + offset
        cut = np.clip(np.nan_to_num(column), -_FARTHEST, _FARTHEST)
        return self._replace(X=np.ascontiguousarray(cut))

    def of_output(self, k):
        """The same records with target k of several."""
        return self._replace(target=np.ascontiguousarray(self.target[:, k]))


def _is_in_rows(X):
    """Whether X is an array in memory whose rows lie side by side."""
    return isinstance(X, np.ndarray) and X.strides[0] > X.itemsize and not is_mapped(X)


def is_mapped(X):
    """Whether X is an array of which a file holds the numbers, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap)
