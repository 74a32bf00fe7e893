"""Where the records of persons lie, each person's side by side."""

import math

import numpy as np
from scipy.sparse import issparse

from ._person_sums import PersonSums
from ._place import LocalPlace
from ._records import Records
from ._sums import Place


class PersonPlace(Place):
    """The arrays of one fit, and whose records they are. Nothing is read before it is opened.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_records, n_features)
        See LocalPlace; rows of an array are read in place, and columns are turned once.
    y : float64 ndarray of shape (n_records,)
    sample_weight : ndarray of shape (n_records,), or None
    order : intp ndarray of shape (n_records,)
        Row numbers, sorted by person.
    starts : ndarray of shape (n_persons + 1,)
        Where the records of each person start in this order, and where all end.
    draw : callable
        Gives the row of one record of each person, which follows from this person's records alone.
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred.

    Attributes
    ----------
    n_samples : int
        The number of persons: that of records is secret.
    n_features : int
    """

    def __init__(self, X, y, sample_weight, order, starts, draw, bounds=None):
        self.n_samples, self.n_features = len(starts) - 1, X.shape[1]
        self._arrays = X, y, sample_weight, order, starts, draw, bounds

    def stated(self, loss, smoothness, *, fit_intercept, n_outputs=1, max_weight=math.inf, **drawn):
        X, y, weights, order, starts, _, bounds = self._arrays
        if not issparse(X):
            X = np.ascontiguousarray(X)
        records = Records(X, None, None, bounds)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        sorted_ones = y[order], np.clip(weights, 0.0, max_weight)[order], order
        starts = np.asarray(starts, dtype=np.intp)
        stated = loss, smoothness, fit_intercept, n_outputs
        return PersonSums(records, *sorted_ones, starts, *stated, **drawn)

    def second_order(self, loss, smoothness, *, max_weight=math.inf, **options):
        X, y, weights, _, _, draw, bounds = self._arrays
        rows = draw()
        drawn = LocalPlace(X[rows], y[rows], None if weights is None else weights[rows], bounds)
        drawn = drawn.second_order(loss, smoothness, max_weight=max_weight, **options)
        return self.stated(loss, smoothness, max_weight=max_weight, drawn=drawn, **options)
