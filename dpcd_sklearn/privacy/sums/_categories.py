"""Columns of categories: what the category of a cell is, and how many records have it.

A category is a function of its cell alone. Whole numbers are one category whatever their type, and
so is everything that is missing: else the first record of them would choose the words for all. For
that reason cells are never looked up by what they are equal to: an instant in two time zones is two
equal cells, with words of their own.
"""

from collections import Counter
from datetime import date, timedelta
from numbers import Integral

import numpy as np

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
