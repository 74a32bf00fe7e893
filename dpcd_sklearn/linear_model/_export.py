"""The scikit-learn estimator that a fitted model leaves as: free post-processing."""

from copy import deepcopy

from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge

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
