"""Records in this process, as a plan is given them after the charge."""

from mmap import mmap
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from ..privacy.sums._margins import products
from ..privacy.sums._place import LocalPlace
from ..utils._threads import call_in_threads, effective_n_threads


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
        by_row = isinstance(self.X, np.ndarray) and self.X.strides[0] > self.X.itemsize
        turned = by_row and not is_mapped(self.X)
        return self._replace(X=np.asfortranarray(self.X)) if turned else self

    def labels(self):
        """Where numbers of classes lie, to be counted."""
        return LocalPlace(self.X, self.target)

    def slopes(self, loss, known, moved, lengths, largest, bounds, n_threads):
        """Derivatives of a record's loss of the margins `known + f * D` in f, in place of features.

        D are margins of the coefficients and intercepts `moved`, cut where they overflow; each of
        `lengths` has a column. They are weighted as if D were no larger than `largest`. With
        targets of -1 the numbers are slopes of a squared loss at zero.
        """
        coef, offset = moved[:, :-1], moved[:, -1]
        if bounds is not None:
            *bounds, center = bounds
            offset = offset - coef @ center
        X = self.X.tocsr() if issparse(self.X) else self.X
        columns = np.empty((X.shape[0], len(lengths)), dtype=np.float32, order="F")

        @np.errstate(all="ignore")  # a thread has its own, and a warning would tell about records
        def fill(rows):
            margins = products(X[rows], coef, bounds) + offset
            # weights are tiny long before
            moves = np.clip(np.where(np.isnan(margins), 0.0, margins), -1e6, 1e6).T
            size = np.ptp(moves, axis=0) if len(moves) > 1 else np.abs(moves[0])
            weighted = largest / np.maximum(size, largest) * moves
            for column, length in zip(columns.T, lengths, strict=True):
                slopes = loss.gradient((known[:, None] + length * moves).T, self.target[rows]).T
                column[rows] = sum(slopes * weighted)  # output by output

        batches = list(gen_batches(len(columns), 2**13))  # in cache
        call_in_threads(fill, batches, min(effective_n_threads(n_threads), len(batches)))
        return self._replace(X=columns, target=np.full(len(columns), -1.0))

    def of_output(self, k):
        """The same records with target k of several."""
        return self._replace(target=np.ascontiguousarray(self.target[:, k]))


def is_mapped(X):
    """Whether X is an array of which a file holds the numbers, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return isinstance(X, mmap)
