"""Shared by solvers and the objective: public units, margins, and the model without privacy."""

import numpy as np


def to_units(X, y, feature_bounds, target_bounds):
    """Records in [-1, 1] by public bounds, and the way back for coefficients of them.

    Labels become -1 and 1.
    """
    lo, hi = feature_bounds
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    units = (np.clip(X, lo, hi) - middle) / half
    if target_bounds is None:
        center, width, target = 0.0, 1.0, np.where(y == 1, 1.0, -1.0)
    else:
        center, width = np.mean(target_bounds), (target_bounds[1] - target_bounds[0]) / 2
        target = (np.clip(y, *target_bounds) - center) / width

    def back(coef, intercept):
        slope = width * np.ravel(coef) / half
        return slope, float(center + width * intercept - slope @ middle)

    return units, target, back


def margins(X, coef=None, intercept=0.0, cuts=None, steps=None):
    """Margins of a linear model, or of a sum of step functions of single features.

    ``steps[j, k]`` is the value of feature j from its k-th cut on; unused cuts are infinite.
    """
    if coef is not None:
        return X @ np.ravel(coef) + float(intercept)
    found = np.full(len(X), float(intercept))
    for x, edges, values in zip(np.asarray(X).T, cuts, steps, strict=True):
        found += np.asarray(values)[np.searchsorted(edges, x, side="right")]
    return found


def plain_fit(X, y, classify):
    """Coefficients and intercept of the model without privacy."""
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not classify:
        model = LinearRegression().fit(X, y)
        return model.coef_, model.intercept_
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    scaler, model = pipeline[0], pipeline[1]
    coef = model.coef_[0] / scaler.scale_
    return coef, float(model.intercept_[0] - coef @ scaler.mean_)
