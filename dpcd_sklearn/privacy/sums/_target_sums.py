"""Sums of the target over the records of each category, of all columns, as exact integers."""

import numpy as np


class GroupPlace:
    """Where the groups of records lie. Nothing is summed before it is asked for.

    Parameters
    ----------
    codes : list of intp ndarrays of shape (n_samples,)
        Of each column the number of each record's group, from 0 on.
    sizes : list of int
        How many groups each column has; public, or released before.
    target : float64 ndarray of shape (n_samples,) within [-1, 1], or intp ndarray of classes
    n_classes : int
        0 for numbers.
    folds : intp ndarray of shape (n_samples,)
        Of each row number its fold, from 0 on.
    n_folds : int
    """

    def __init__(self, codes, sizes, target, n_classes, folds, n_folds):
        self.n_samples, self.n_features = len(target), len(codes)
        self._codes, self._sizes, self._target = codes, sizes, target
        self._n_classes, self._folds, self._n_folds = n_classes, folds, n_folds

    @property
    def shapes(self):
        """Shapes of the sums; public."""
        return [(self._n_folds, size, self._n_classes or 2) for size in self._sizes]

    def group_sums(self, one):
        """Sums over the records of each fold and group.

        Parameters
        ----------
        one : int
            Units of a one.

        Returns
        -------
        list of int64 ndarrays of shape (n_folds, n_groups, n_classes)
            One for each column: numbers of records of each class; or, of shape (n_folds, n_groups,
            2), the sum of targets, each rounded to units, and the number of records.
        """
        cells = self._n_classes or 1
        found = []
        for codes, size in zip(self._codes, self._sizes, strict=True):
            shape, places = (self._n_folds, size, cells), self._folds * size + codes
            if self._n_classes:
                places = places * cells + self._target
            counts = np.bincount(places, minlength=np.prod(shape)).reshape(shape) * one
            if not self._n_classes:
                units = np.rint(one * np.clip(np.nan_to_num(self._target), -1.0, 1.0))
                sums = np.bincount(places, units, minlength=np.prod(shape)).reshape(shape)
                counts = np.concatenate([sums.astype(np.int64), counts], axis=2)
            found.append(counts)
        return found
