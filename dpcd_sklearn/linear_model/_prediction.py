"""Predictions of a fitted model, and the scikit-learn estimator that it leaves as.

A record's prediction is a function of that record and of the model: the same bits whatever else is
in the batch. See ``privacy/sums/_margins.pyx``.
"""

import math
from copy import deepcopy

import numpy as np
from scipy.sparse import issparse
from sklearn import linear_model
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..losses import LOSSES
from ..privacy.sums._margins import products
from ..privacy.sums._records import canonical, is_read_in_place
from ..utils._input import read_records
from ..utils._public import check_bounds
from ..utils._threads import effective_n_threads
from ..utils._tiles import elementwise, row_tiles
from ..utils._typing import Bounds

# Above half of all exponents of double precision: the product of two scaled down by it is finite.
_HALF = 540
# Above the least number that the losses' exponential gives, exp(-708): below lies zero.
_LEAST = 3.4e-308


def coefficients_of(model):
    """Coefficients of shape (n_outputs, n_features), dense and in double precision."""
    coef = model.coef_.toarray() if issparse(model.coef_) else np.atleast_2d(model.coef_)
    return coef.astype(np.float64, copy=False)


def margins_of_model(model, X):
    """`margins_of` records X that a fitted linear model validates; of one output a vector."""
    check_is_fitted(model, "coef_")  # a refused fit leaves n_features_in_
    X = read_records(
        model, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False
    )
    bounds, n_threads = getattr(model, "feature_bounds_", None), getattr(model, "n_threads", None)
    margins = margins_of(X, coefficients_of(model), model.intercept_, bounds, n_threads)
    return margins[:, 0] if margins.shape[1] == 1 else margins


@np.errstate(all="ignore")  # a floating point warning would tell about the records
def exponential(margins):
    """exp(margin), the same bits whatever else is in the batch; no more than the largest number."""
    found = elementwise(math.exp, np.minimum(margins, 709.78))
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


# ---- The scikit-learn estimator that a fitted model leaves as: free post-processing --------------


_FITTED = ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_")


class Exported:
    """How a linear model leaves the package."""

    def to_sklearn(self, *, clip: bool = True) -> BaseEstimator:
        """Return this model as a fitted scikit-learn estimator.

        It is for tools that ask for scikit-learn's own classes. It is made of what was released,
        so it costs nothing; a new fit of it is not private, and clips nothing.

        Parameters
        ----------
        clip : bool, default=True
            Whether it predicts as this model does, which clips features to `feature_bounds_` and
            predictions of a regressor to `target_bounds_`. It is an instance of scikit-learn's
            class then, of a subclass in this package, which must be there where it is unpickled.
            False gives that class itself: X is taken as it is, and predictions differ, and explode,
            where it lies outside the bounds. Tools that look up the exact class (skl2onnx,
            sklearn2pmml, m2cgen) need it, and so do places without this package; what reads
            `coef_` and `intercept_` (SHAP's LinearExplainer) sees the linear model in both.
            `clip_reach` says how far predictions may move.

        Returns
        -------
        estimator : object
            Fitted. A preset gives Lasso, Ridge or LogisticRegression with its `alpha`, or `C` and
            `l1_ratio`. DPLinearClassifier gives LogisticRegression, DPLinearRegressor ElasticNet
            for squared loss with an "l1", "l2" or "elasticnet" penalty, TweedieRegressor for
            "poisson", "gamma" and "tweedie", QuantileRegressor for "quantile", else
            LinearRegression.
            Parameters that have no counterpart stand at scikit-learn's defaults.
        """
        check_is_fitted(self, "coef_")
        if not isinstance(clip, (bool, np.bool_)):
            raise TypeError(f"clip must be True or False, got {clip!r}")
        return exported(self, self._plain(), clip)

    def clip_reach(self, bounds: Bounds | None = None) -> float | np.ndarray:
        """How far ``to_sklearn(clip=False)`` may move a prediction of a record within bounds.

        It follows from the bounds and the coefficients alone: no record is read.

        Parameters
        ----------
        bounds : tuple (lo, hi), list of pairs or dict by column name, default=None
            Public bounds of the records, as of `feature_bounds`. None takes those that were stated,
            and where none were `feature_bounds_`. Beyond them there is no limit.

        Returns
        -------
        reach : float, or ndarray of shape (n_outputs,)
            In the units of the target, or of the decision function: an upper bound of what the
            clips of features move together, and the clip of predictions on top. Infinite where
            nothing bounds the records.

        Raises
        ------
        TypeError, ValueError
            If the bounds are invalid.
        """
        check_is_fitted(self, "coef_")
        bounds = self.feature_bounds if bounds is None else bounds
        if bounds is None:
            return self._reach(self.feature_bounds_)
        columns = getattr(self, "feature_names_in_", None)
        return self._reach(check_bounds(bounds, self.n_features_in_, columns=columns))

    def _reach(self, ends):
        """The reach of records within arrays (lo, hi); None is no bound."""
        clips, coef = self.feature_bounds_, coefficients_of(self)
        if ends is None:
            reach = np.where(coef.any(axis=1), np.inf, 0.0)
            return float(reach[0]) if len(reach) == 1 else reach
        clipped = ends if clips is None else [np.clip(end, *clips) for end in ends]
        moved = [coef * (end - at) for end, at in zip(ends, clipped, strict=True)]
        reach = np.maximum(np.maximum(*moved).sum(axis=1), np.abs(np.minimum(*moved).sum(axis=1)))
        if (limits := getattr(self, "_prediction_bounds", None)) is not None:
            at = [coef * end for end in clipped]
            top = np.maximum(*at).sum(axis=1) + self.intercept_ - limits[1]
            bottom = limits[0] - np.minimum(*at).sum(axis=1) - self.intercept_
            reach = reach + np.maximum(np.maximum(top, bottom), 0.0)
        return float(reach[0]) if len(reach) == 1 else reach


def exported(model, plain, clip):
    """`plain` with what `model` has fitted; with what its predictions are clipped to, if asked."""
    for name in _FITTED:
        if hasattr(model, name):
            setattr(plain, name, deepcopy(getattr(model, name)))
    clips = {"feature_bounds_": model.feature_bounds_}
    clips["prediction_bounds_"] = getattr(model, "_prediction_bounds", None)
    if clip and any(bounds is not None for bounds in clips.values()):
        fitted = vars(plain) | deepcopy(clips)
        # a class below with its name, since pickles look classes up in modules
        plain = globals()[f"Clipped{type(plain).__name__}"](**plain.get_params())
        vars(plain).update(fitted)
    return plain


# ---- estimators that clip as the private ones do -------------------------------------------------


class _Clipped:
    """The clipping of a private model's own predictions, in front of scikit-learn's estimator.

    Attributes
    ----------
    feature_bounds_ : tuple (lo, hi) of arrays of shape (n_features,), or None
        What features are clipped to.
    prediction_bounds_ : tuple (lo, hi), or None
        What predictions of a regressor are clipped to.
    """

    def fit(self, X, y, sample_weight=None):
        """Fit scikit-learn's own estimator: not private, and nothing is clipped from then on."""
        for name in ("feature_bounds_", "prediction_bounds_"):
            vars(self).pop(name, None)
        return super().fit(X, y, sample_weight=sample_weight)


class _ClippedRegressor(_Clipped):
    def predict(self, X):
        return within(margins_of_model(self, X), getattr(self, "prediction_bounds_", None))


class ClippedElasticNet(_ClippedRegressor, linear_model.ElasticNet):
    """ElasticNet whose predictions are clipped like those of its private model."""


class ClippedLasso(_ClippedRegressor, linear_model.Lasso):
    """Lasso whose predictions are clipped like those of its private model."""


class ClippedLinearRegression(_ClippedRegressor, linear_model.LinearRegression):
    """LinearRegression whose predictions are clipped like those of its private model."""


class ClippedQuantileRegressor(_ClippedRegressor, linear_model.QuantileRegressor):
    """QuantileRegressor whose predictions are clipped like those of its private model."""


class _ClippedMean(_Clipped):
    def predict(self, X):
        found = exponential(margins_of_model(self, X))
        return within(found, getattr(self, "prediction_bounds_", None))


class ClippedTweedieRegressor(_ClippedMean, linear_model.TweedieRegressor):
    """TweedieRegressor whose predictions are clipped like those of its private model."""


class ClippedPoissonRegressor(_ClippedMean, linear_model.PoissonRegressor):
    """PoissonRegressor whose predictions are clipped like those of its private model."""


class ClippedGammaRegressor(_ClippedMean, linear_model.GammaRegressor):
    """GammaRegressor whose predictions are clipped like those of its private model."""


class ClippedRidge(_ClippedRegressor, linear_model.Ridge):
    """Ridge whose predictions are clipped like those of its private model."""


class ClippedLogisticRegression(_Clipped, linear_model.LogisticRegression):
    """LogisticRegression whose features are clipped like those of its private model."""

    def decision_function(self, X):  # of which all predictions are made
        return margins_of_model(self, X)
