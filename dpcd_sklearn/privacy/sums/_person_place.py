"""Where the records of persons lie, each person's side by side."""

import numpy as np

from ._person_sums import PersonSums
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
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred.

    Attributes
    ----------
    n_samples : int
        The number of persons: that of records is secret.
    n_features : int
    """

    def __init__(self, X, y, sample_weight, starts, bounds=None):
        self.n_samples, self.n_features = len(starts) - 1, X.shape[1]
        self._arrays = X, y, sample_weight, starts, bounds

    def stated(self, loss, smoothness, *, fit_intercept, n_outputs=1):
        X, y, weights, starts, bounds = self._arrays
        X = np.array(X, dtype=np.float64, order="C")
        if bounds is not None:
            lo, hi, center = bounds
            np.subtract(np.clip(X, lo, hi, out=X), center, out=X)
        weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        starts = np.asarray(starts, dtype=np.intp)
        stated = loss, smoothness, fit_intercept
        return PersonSums(X, y, np.ascontiguousarray(weights), starts, *stated)
