"""Predictions of a fitted model: margins of records that are clipped as in the fit.

What is predicted for a record is a function of that record and of the model: the same bits
whatever else is in the batch. See ``privacy/sums/_margins.pyx``.
"""

import math

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..losses import LOSSES
from ..privacy.sums._margins import products
from ..privacy.sums._records import canonical, is_read_in_place
from ..utils._input import read_records
from ..utils._threads import effective_n_threads
from ..utils._tiles import elementwise, row_tiles

# Above half of all exponents of double precision: the product of two scaled down by it is finite.
_HALF = 540
# Above the least number that the losses' exponential gives, exp(-708): below lies zero.
_LEAST = 3.4e-308
_LARGEST_EXPONENT = 709.78


def margins_of_model(model, X):
    """`margins_of` records X that a fitted linear model validates; of one output a vector."""
    check_is_fitted(model, "coef_")  # a refused fit leaves n_features_in_
    X = read_records(
        model, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False
    )
    coef = model.coef_.toarray() if issparse(model.coef_) else np.atleast_2d(model.coef_)
    coef = coef.astype(np.float64, copy=False)
    bounds, n_threads = getattr(model, "feature_bounds_", None), getattr(model, "n_threads", None)
    margins = margins_of(X, coef, model.intercept_, bounds, n_threads)
    return margins[:, 0] if margins.shape[1] == 1 else margins


@np.errstate(all="ignore")  # a floating point warning would tell about the records
def exponential(margins):
    """exp(margin), the same bits whatever else is in the batch; no more than the largest number."""
    found = elementwise(math.exp, np.minimum(margins, _LARGEST_EXPONENT))
    return np.where(np.isnan(margins), np.nan, found)


def within(predictions, bounds):
    """Predictions of a regressor clipped to public bounds (lo, hi) of its target; None: as is."""
    return predictions if bounds is None else np.clip(predictions, *bounds)


@np.errstate(all="ignore")  # a floating point warning would tell about the records
def margins_of(X, coef, intercept, bounds=None, n_threads=1):
    """clip(X) @ coef.T + intercept in double precision, clamped to finite numbers.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    coef : ndarray of shape (n_outputs, n_features), float64
    intercept : float or ndarray of shape (n_outputs,)
    bounds : tuple (lo, hi) of arrays of shape (n_features,), or None
        What features are clipped to; None is no clip.
    n_threads : int, default=1

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)
    """
    X = canonical(X) if issparse(X) else X  # a clip is not linear: one entry a cell
    margins = _products(X, coef, bounds, effective_n_threads(n_threads))
    margins += intercept
    overflown = ~np.isfinite(margins)  # on the way to them, perhaps, and not they themselves
    if overflown.any():
        for rows in row_tiles(X):
            at = rows.start + np.flatnonzero(overflown[rows].any(axis=1))
            if at.size:
                large = _margins_of_large(X[at], coef, intercept, bounds)
                margins[at] = np.where(overflown[at], large, margins[at])
    return margins


def _margins_of_large(X, coef, intercept, bounds):
    """The margins of rows whose products overflow, each by itself as all others are."""
    down = 2.0**-_HALF  # a clip commutes with it
    bounds = None if bounds is None else tuple(bound * down for bound in bounds)
    scaled = _products(X.astype(np.float64) * down, coef * down, bounds)
    scaled += np.asarray(intercept) * down * down
    largest = np.finfo(np.float64).max
    return np.clip(np.ldexp(scaled, 2 * _HALF), -largest, largest)


def _products(X, coef, bounds, n_threads=1):
    """clip(X) @ coef.T, without a temporary of the size of X."""
    if not issparse(X) and is_read_in_place(X):
        return products(X, coef, bounds, n_threads=n_threads)
    if issparse(X):
        if bounds is None or ((bounds[0] <= 0) & (0 <= bounds[1])).all():
            return products(X, coef, bounds)
        X = X.tocsr()  # what is not stored is clipped, too: no row of such a model is sparse
    out = np.empty((len(coef), X.shape[0])).T
    for rows in row_tiles(X):
        tile = X[rows].toarray() if issparse(X) else np.array(X[rows], order="C")
        out[rows] = products(tile, coef, bounds)
    return out


# ---- probabilities -------------------------------------------------------------------------------


@np.errstate(all="ignore")  # a warning would tell about the records
def probabilities_of(margins):
    """Probabilities of the classes, by the exponentials that the fit has.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,) or (n_samples, n_classes)

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    if margins.ndim == 1:
        found = np.column_stack([_sigmoid(-margins), _sigmoid(margins)])
    else:
        found = _shares(margins)
    found[found < _LEAST] = 0.0
    return found


@np.errstate(all="ignore")  # a warning would tell about the records
def log_probabilities_of(margins):
    """Logarithms of `probabilities_of`, exact where those are too small to be numbers."""
    if margins.ndim == 1:
        return np.column_stack([_log_sigmoid(-margins), _log_sigmoid(margins)])
    largest = margins.max(axis=1, keepdims=True)
    of_largest = _shares(margins).max(axis=1, keepdims=True)
    return (margins - largest) + elementwise(math.log, of_largest)


def _sigmoid(margins):
    return LOSSES["logistic"]().gradient(margins, np.zeros(len(margins)))


def _shares(margins):
    """Softmax: the derivative of a loss whose target is none of the classes."""
    return LOSSES["multinomial"]().gradient(margins, np.full(len(margins), -1.0))


def _log_sigmoid(margins):
    smaller = _sigmoid(-np.abs(margins.ravel())).reshape(margins.shape)
    return elementwise(math.log1p, -smaller) + np.minimum(margins, 0.0)
