"""Where the records of persons lie, each person's side by side."""

import math

import numpy as np

from ._person_sums import PersonSums
from ._place import LocalPlace
from ._sums import Place


class PersonPlace(Place):
    """The arrays of one fit, sorted by person. Nothing is read before it is opened.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_features)
    y : float64 ndarray of shape (n_records,)
    sample_weight : ndarray of shape (n_records,), or None
    starts : ndarray of shape (n_persons + 1,)
        Where the records of each person start, and where all end.
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

    def __init__(self, X, y, sample_weight, starts, draw, bounds=None):
        self.n_samples, self.n_features = len(starts) - 1, X.shape[1]
        self._arrays = X, y, sample_weight, starts, draw, bounds

    def stated(self, loss, smoothness, *, fit_intercept, n_outputs=1, **options):
        X, y, weights, starts, _, bounds = self._arrays
        lo, hi, center = (-np.inf, np.inf, 0.0) if bounds is None else bounds
        bounds = np.array([np.broadcast_to(one, X.shape[1]) for one in (lo, hi, center)])
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        weights = np.clip(weights, 0.0, options.pop("max_weight", np.inf))
        X, starts = np.ascontiguousarray(X, dtype=np.float64), np.asarray(starts, dtype=np.intp)
        stated = bounds.astype(np.float64), loss, smoothness, fit_intercept
        return PersonSums(X, y, np.ascontiguousarray(weights), starts, *stated, **options)

    def second_order(self, loss, smoothness, *, max_weight=math.inf, **options):
        X, y, weights, starts, draw, bounds = self._arrays
        rows = draw()
        drawn = LocalPlace(X[rows], y[rows], None if weights is None else weights[rows], bounds)
        drawn = drawn.second_order(loss, smoothness, max_weight=max_weight, **options)
        return self.stated(loss, smoothness, max_weight=max_weight, drawn=drawn, **options)
