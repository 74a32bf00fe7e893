"""What a fitted model predicts with: margins of records that are clipped as in the fit."""

import numpy as np
from scipy.sparse import issparse

from ..privacy.sums._records import canonical
from ..utils._tiles import row_tiles, stored_tiles

# Above half of all exponents of double precision: the product of two scaled down by it is finite.
_HALF = 540


@np.errstate(all="ignore")  # a floating point warning would tell about the records
def margins_of(X, coef, intercept, bounds=None):
    """clip(X) @ coef.T + intercept in double precision, clamped to finite numbers.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    coef : ndarray of shape (n_outputs, n_features), float64
    intercept : float or ndarray of shape (n_outputs,)
    bounds : tuple (lo, hi) of arrays of shape (n_features,), or None
        What features are clipped to; None is no clip.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)
    """
    margins = products(X, coef, bounds)
    margins += intercept
    overflown = ~np.isfinite(margins).all(axis=1)
    if overflown.any():  # on the way to them, perhaps, and not they themselves
        down = 2.0**-_HALF  # a clip commutes with it
        rows = X[overflown].astype(np.float64) * down
        bounds = None if bounds is None else tuple(bound * down for bound in bounds)
        scaled = products(rows, coef * down, bounds)
        scaled += np.asarray(intercept) * down * down
        largest = np.finfo(np.float64).max
        margins[overflown] = np.clip(np.ldexp(scaled, 2 * _HALF), -largest, largest)
    return margins


def products(X, coef, bounds=None):
    """clip(X) @ coef.T in double precision, of an array without a temporary of the size of X.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    coef : ndarray of shape (n_outputs, n_features), float64
    bounds : tuple (lo, hi) of arrays of shape (n_features,), or None
    """
    if issparse(X):
        return X @ coef.T if bounds is None else _clipped_sparse_products(X, coef, *bounds)
    if X.dtype == coef.dtype and bounds is None:
        return X @ coef.T
    out = np.empty((X.shape[0], coef.shape[0]))
    for rows in row_tiles(X):
        tile = X[rows] if bounds is None else np.clip(X[rows], *bounds)
        np.matmul(tile, coef.T, out=out[rows])  # float32 is converted as a whole
    return out


def _clipped_sparse_products(X, coef, lo, hi):
    """What is not stored is zero: its clip, the same in every row, is added as a constant."""
    zero = np.clip(0.0, lo, hi)  # is zero for a model that was fitted on sparse records
    X = canonical(X).astype(np.float64)  # a copy; a clip is not linear: one entry a cell
    for values, features in stored_tiles(X):
        np.clip(values, lo[features], hi[features], out=values)
        values -= zero[features]
    return X @ coef.T + coef @ zero
