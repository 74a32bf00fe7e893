"""Sums of products of each column and the target, as integers that are exact in any order."""

import numpy as np
from scipy.sparse import issparse

from ._records import canonical

ONE = 2**13  # units of a product of one


class TargetPlace:
    """Where records and their targets lie. Nothing is read before it is asked for.

    Parameters
    ----------
    X : ndarray, CSR or CSC of shape (n_samples, n_features)
    target : float64 ndarray of shape (n_samples, n_targets)
    center, half_width : float64 arrays of shape (n_features,)
        Public: numbers are in half-widths from the centre, cut to [-1, 1]. The centre of sparse
        records is zero.
    """

    def __init__(self, X, target, center, half_width):
        self.n_samples, self.n_features = X.shape
        self._X, self.target, self._of_columns = X, target, (center, half_width)

    def by_class(self):
        """Sums of each column over the records of each target, whose targets are zeros and ones.

        Returns
        -------
        float64 ndarray of shape (n_targets, n_features)
            Integers: a record adds its numbers in units, rounded.
        """
        return self._sums(lambda numbers, target: target.T @ np.rint(ONE * numbers))

    def products(self, center, half_width):
        """Sums over records of each column times the one target, both cut to [-1, 1].

        Parameters
        ----------
        center, half_width : float
            Of the target; released before, or public.

        Returns
        -------
        float64 ndarray of shape (1, n_features)
            Integers, as of `by_class`.
        """

        def one(numbers, target):
            scaled = np.clip((target[:, :1] - center) / half_width, -1.0, 1.0)
            return np.rint(ONE * numbers * scaled).sum(axis=0)[np.newaxis]

        return self._sums(one)

    def _sums(self, function):
        """Add up over tiles of rows; NaN, which validation refuses, counts as zero."""
        center, half_width = self._of_columns
        X = canonical(self._X).tocsr() if issparse(self._X) else self._X
        n_rows = max(1, 2**20 // self.n_features)
        total = 0.0
        with np.errstate(all="ignore"):
            for start in range(0, self.n_samples, n_rows):
                rows = slice(start, start + n_rows)
                tile = X[rows].toarray() if issparse(X) else np.asarray(X[rows], np.float64)
                numbers = np.nan_to_num(np.clip((tile - center) / half_width, -1.0, 1.0))
                total = total + function(numbers, self.target[rows])
        return total
