"""The plain scikit-learn estimator that a fitted model leaves as: free post-processing."""

from copy import deepcopy

import numpy as np
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer

_FITTED = ("coef_", "intercept_", "n_features_in_", "feature_names_in_", "classes_")


def exported(model, plain, clip):
    """`plain` with what `model` has fitted, behind a clip of features where that is asked for."""
    for name in _FITTED:
        if hasattr(model, name):
            setattr(plain, name, deepcopy(getattr(model, name)))
    if getattr(model, "multi_class", None) == "ovr" and len(model.classes_) > 2:
        plain = _one_vs_rest(plain)
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


def _one_vs_rest(plain):
    """A binary estimator for each row of coefficients of `plain`."""
    found = OneVsRestClassifier(clone(plain))
    found.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(plain.classes_)
    if not hasattr(type(found), "classes_"):  # from scikit-learn 1.9 on
        found.classes_ = plain.classes_
    found.estimators_ = []
    for coef, intercept in zip(plain.coef_, plain.intercept_, strict=True):
        one = clone(plain)
        one.coef_, one.intercept_ = coef[np.newaxis], np.array([intercept])
        one.classes_, one.n_iter_ = np.array([0, 1]), plain.n_iter_
        found.estimators_.append(one)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(plain, name):
            for one in (found, *found.estimators_):
                setattr(one, name, getattr(plain, name))
    return found
