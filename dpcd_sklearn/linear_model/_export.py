"""The scikit-learn estimator that a fitted model leaves as: free post-processing."""

from copy import deepcopy

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer

from ._prediction import margins_of_model, within

_FITTED = ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_")


def exported(model, plain, clip):
    """`plain` with what `model` has fitted; with what its predictions are clipped to, if asked."""
    for name in _FITTED:
        if hasattr(model, name):
            setattr(plain, name, deepcopy(getattr(model, name)))
    clips = {"feature_bounds_": model.feature_bounds_}
    clips["prediction_bounds_"] = getattr(model, "_prediction_bounds", None)
    if clip and any(bounds is not None for bounds in clips.values()):
        fitted = vars(plain) | deepcopy(clips)
        plain = _CLIPPED[type(plain)](**plain.get_params())
        vars(plain).update(fitted)
    if getattr(model, "multi_class", None) == "ovr" and len(model.classes_) > 2:
        plain = _one_vs_rest(plain)
    return plain


def _one_vs_rest(plain):
    """A binary estimator for each row of coefficients of `plain`."""
    found = OneVsRestClassifier(clone(plain))
    found.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(plain.classes_)
    if not hasattr(type(found), "classes_"):  # from scikit-learn 1.9 on
        found.classes_ = plain.classes_
    found.estimators_ = []
    for coef, intercept in zip(plain.coef_, plain.intercept_, strict=True):
        one = clone(plain)
        vars(one).update(vars(plain))
        one.coef_, one.intercept_ = coef[np.newaxis], np.array([intercept])
        one.classes_ = np.array([0, 1])
        found.estimators_.append(one)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(plain, name):
            setattr(found, name, getattr(plain, name))
    return found


# ---- estimators that clip as the private ones do -------------------------------------------------


class _Clipped:
    """What a private model's own predictions do, in front of scikit-learn's estimator.

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


class ClippedElasticNet(_ClippedRegressor, ElasticNet):
    """ElasticNet whose predictions are clipped as those of the private model that it is of."""


class ClippedLasso(_ClippedRegressor, Lasso):
    """Lasso whose predictions are clipped as those of the private model that it is of."""


class ClippedLinearRegression(_ClippedRegressor, LinearRegression):
    """LinearRegression whose predictions are clipped as those of the private model it is of."""


class ClippedRidge(_ClippedRegressor, Ridge):
    """Ridge whose predictions are clipped as those of the private model that it is of."""


class ClippedLogisticRegression(_Clipped, LogisticRegression):
    """LogisticRegression whose features are clipped as those of the private model it is of."""

    def decision_function(self, X):  # of which all predictions are made
        return margins_of_model(self, X)


_CLIPPED = {
    ElasticNet: ClippedElasticNet,
    Lasso: ClippedLasso,
    LinearRegression: ClippedLinearRegression,
    LogisticRegression: ClippedLogisticRegression,
    Ridge: ClippedRidge,
}
