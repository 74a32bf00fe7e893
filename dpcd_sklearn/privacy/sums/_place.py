"""Records in this process: arrays, sparse matrices and maps of files."""

import math

import numpy as np

from ._counts import count_cells, count_norms, count_outside
from ._dense_sums import DenseSums
from ._exact_moments import moments_of
from ._geometry_sums import GeometrySums, SparseWholeRows, WholeRows
from ._gradient_sums import GradientSums
from ._records import Records
from ._sparse_sums import SparseSums
from ._sums import Place


class LocalPlace(Place):
    """Where the arrays of one fit lie. Nothing is read before it is opened.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features), float32 or float64
        Read in place; rows or columns of an array must be contiguous. See Records.
    y : ndarray of shape (n_samples,), float64, or None
        None where nothing but counts of features and rows is asked for; of shape (n_samples,
        n_targets) where those of targets are.
    sample_weight : ndarray of shape (n_samples,), float64, or None
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred while they are read.
    n_threads : int
        Of passes over records; no sum depends on it.
    samples_rows : bool, default=True
        Whether dense records may be sampled by their row numbers.
    """

    def __init__(self, X, y=None, sample_weight=None, bounds=None, n_threads=1, samples_rows=True):
        self.n_samples, self.n_features = X.shape
        self.n_targets = 1 if y is None or y.ndim == 1 else y.shape[1]
        self._arrays, self._n_threads = (X, y, sample_weight, bounds), n_threads
        self.samples_rows = samples_rows and isinstance(X, np.ndarray)
        self._last = None, None  # what was counted around a centre last: a cache

    def of_rows(self, rows):
        """The place of a copy of these rows' features alone."""
        X = self._arrays[0]
        X = X.T[:, rows].T if X.flags.f_contiguous else X.take(rows, axis=0)
        return LocalPlace(X, n_threads=self._n_threads)

    def moving(self, loss, smoothness, *, fit_intercept, n_outputs=1, whole=False):
        records = Records(*self._arrays, n_threads=self._n_threads)
        kinds = (WholeRows, SparseWholeRows) if whole else (DenseSums, SparseSums)
        return kinds[records.is_sparse](records, loss, smoothness, fit_intercept, n_outputs)

    def stated(self, loss, smoothness, *, fit_intercept, n_outputs=1):
        records = Records(*self._arrays, n_threads=self._n_threads)
        return GradientSums(records, loss, smoothness, fit_intercept, n_outputs)

    def second_order(self, loss, smoothness, *, fit_intercept, n_outputs=1, max_weight=math.inf):
        X, y, weights, bounds = self._arrays
        if weights is not None and max_weight < math.inf:
            weights = np.clip(weights, 0.0, max_weight)
        records = Records(X, y, weights, bounds, n_threads=self._n_threads)
        return GeometrySums(records, loss, smoothness, fit_intercept, n_outputs)

    def counts(self, of, *, edges=None, around=None):
        X, y, *_ = self._arrays
        if of == "row_norm":
            return count_norms(X, around, self._n_threads)
        if of == "outside":
            return count_outside(X, y, edges, self._n_threads)
        asked = None
        if around is not None:
            asked = of, *(np.asarray(u, dtype=float).tobytes() for u in around)
        if asked is None or asked != self._last[0]:
            columns = X if of == "features" else y.reshape(len(y), -1)
            self._last = asked, count_cells(columns, edges, around, self._n_threads)
        return self._last[1].copy()

    def moments(self, *, centered):
        X, _, weights, _ = self._arrays
        return moments_of(X, weights, centered)
