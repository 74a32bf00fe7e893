"""The plain scikit-learn estimator that a fitted model leaves as: free post-processing."""

from copy import deepcopy

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

_FITTED = ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_")


def exported(model, plain, clip):
    """`plain` with what `model` has fitted, behind a clip of features where that is asked for."""
    for name in _FITTED:
        if hasattr(model, name):
            setattr(plain, name, deepcopy(getattr(model, name)))
    if not clip or model.feature_bounds_ is None:
        return plain
    lo, hi = deepcopy(model.feature_bounds_)
    clipper = FunctionTransformer(
        np.clip, kw_args={"a_min": lo, "a_max": hi}, validate=True, feature_names_out="one-to-one"
    )
    clipper.n_features_in_ = plain.n_features_in_
    if hasattr(plain, "feature_names_in_"):  # the first step compares them, and hands on an array
        clipper.feature_names_in_ = plain.feature_names_in_
        del plain.feature_names_in_
    return make_pipeline(clipper, plain)
