"""Where whole tables lie: categories, missing cells, and sums of the target by group or column.

A category is a function of its cell alone. Whole numbers are one category whatever their type, and
so is everything that is missing: else the first record of them would choose the words for all. For
that reason cells are never looked up by what they are equal to: an instant in two time zones is two
equal cells, with words of their own.
"""

from collections import Counter
from datetime import date, timedelta
from numbers import Integral

import numpy as np
from scipy.sparse import issparse

from ._place import LocalPlace
from ._records import canonical

ONE = 2**13  # units of a product of one

_MISSING = {"NAType", "NaTType"}  # of pandas
_TIMES = date, timedelta
_FRACTIONS = float, np.floating
NO_CATEGORY = "categories are strings, numbers, booleans, dates, or missing (None, NaN)"


def may_be_category(kind):
    """Whether `category_of` takes cells of a type."""
    known = issubclass(kind, (str, Integral, np.bool_, type(None), *_FRACTIONS, *_TIMES))
    return known or kind.__name__ in _MISSING


def category_of(cell):
    """The category of a cell: a str, an int, a float that is no integer, or None if it is missing.

    Raises
    ------
    TypeError
        If it is something else; the message quotes nothing.
    """
    if isinstance(cell, str):
        return str(cell)
    if cell is None or type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, _TIMES):
        return str(cell)
    if isinstance(cell, (bool, np.bool_, Integral)):
        return int(cell)
    if isinstance(cell, _FRACTIONS):
        number = float(cell)
        if number != number:
            return None
        return int(number) if number.is_integer() else number
    raise TypeError(NO_CATEGORY)


def order_of(category):
    """The key that sorts categories: numbers, then words, then what is missing."""
    return category is None, isinstance(category, str), 0 if category is None else category


def counted(column):
    """How many records have each category of a column, in the order of `order_of`.

    Parameters
    ----------
    column : ndarray of shape (n_samples,)
        Numbers, of which masked ones are missing, words or objects.

    Returns
    -------
    list of (category, int)
    """
    if column.dtype.kind in "biuf":
        present = np.ma.compressed(column)
        cells, numbers = np.unique(present, return_counts=True)
        counts = Counter({None: len(column) - len(present)} if len(present) < len(column) else {})
        for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True):
            counts[category_of(cell)] += number
    else:
        counts = Counter(keys_of(column))
    pairs = [(int(k, 16) if isinstance(k, bytes) else k, number) for k, number in counts.items()]
    return sorted(pairs, key=lambda pair: order_of(pair[0]))


def _key(category):
    """Return the key to hash a category by: large integers as bytes, whose hashes are seeded.

    Anyone can write down any number of integers of one hash, and a dict of them takes quadratic
    time. Of 64 bits there are a few.
    """
    is_large = isinstance(category, int) and category.bit_length() > 64
    return hex(category).encode() if is_large else category


def keys_of(column):
    """The key of each cell's category; a string is one by itself, and None is what is missing."""
    return [cell if type(cell) is str else _key(category_of(cell)) for cell in column.tolist()]


def coded(column, categories):
    """The place of each cell's category in a list, or the length of the list if it is in none.

    Parameters
    ----------
    column : ndarray of shape (n_samples,)
    categories : sequence of categories

    Returns
    -------
    ndarray of intp of shape (n_samples,)
    """
    places, others = {_key(category): i for i, category in enumerate(categories)}, len(categories)
    cells, inverse = column, slice(None)
    if column.dtype.kind in "biuf":
        cells, inverse = np.unique(np.ma.getdata(column), return_inverse=True)
    of_cells = [places.get(key, others) for key in keys_of(cells)]
    found = np.array(of_cells, dtype=np.intp)[inverse]
    found[np.ma.getmaskarray(column)] = places.get(None, others)
    return found


class CategoryPlace:
    """Where columns of categories lie. Nothing is counted before it is asked for.

    Parameters
    ----------
    columns : list of ndarrays of shape (n_samples,)
    n_samples : int
    """

    def __init__(self, columns, n_samples):
        self.n_samples, self.n_features = n_samples, len(columns)
        self._columns = columns

    def category_counts(self):
        """Count the categories of each column; a record has one in each."""
        return [counted(column) for column in self._columns]


class PresentPlace(LocalPlace):
    """Where records lie of which NaN is missing. It lies in no cell of a column.

    Parameters
    ----------
    X : as of LocalPlace
    """

    def counts(self, of, *, edges=None, around=None):
        if of != "features":
            raise ValueError("of what may be missing columns are counted, and nothing else")
        counts = super().counts(of, edges=edges, around=around)
        counts[:, 0] -= _n_missing(self._arrays[0])  # `count_cells` has NaN in the first cell
        return counts


def _n_missing(X):
    """How many records have no number in each column."""
    if not issparse(X):
        return np.array([np.count_nonzero(np.isnan(X[:, j])) for j in range(X.shape[1])])
    stored = canonical(X).tocsc()
    columns = np.repeat(np.arange(X.shape[1]), np.diff(stored.indptr))
    return np.bincount(columns[np.isnan(stored.data)], minlength=X.shape[1])


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
