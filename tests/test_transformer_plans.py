"""Plans of transformers: what a fit refuses before its charge is refused by the plan as well."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from tables import table

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
)

N, P = 500, 4
STEPS = {
    "scaler": DPStandardScaler(),
    "one hot": DPOneHotEncoder(),
    "ordinal": DPOrdinalEncoder(),
    "median": DPSimpleImputer(),
    "mean": DPSimpleImputer("mean"),
    "bounded mean": DPSimpleImputer("mean", feature_bounds=(-1, 1)),
    "most frequent": DPSimpleImputer("most_frequent"),
    "selection": DPSelectKBest(2),
    "components": DPPCA(2),
    "means of the target": DPTargetEncoder(),
    "robust": DPRobustScaler(),
    "quantiles": DPQuantileTransformer(),
}


def refusal(attempt):
    """The error of an attempt, in words; None if there is none."""
    try:
        attempt()
    except (TypeError, ValueError) as error:
        return str(error)
    return None


@table("name", STEPS)
@table("epsilon", [1e-13, 1e-6, 1e5, 1e12, 1e200])
@table("neighboring", ["replace_one", "add_remove"])
def test_a_plan_refuses_what_a_fit_refuses(name, epsilon, neighboring):
    X = np.random.default_rng(0).uniform(-1, 1, (N, P))
    n_public = N if neighboring == "add_remove" else None
    accountant = PrivacyAccountant(1e300, 1e-6, neighboring=neighboring, n_public=n_public)
    step = clone(STEPS[name]).set_params(epsilon=epsilon, delta=1e-7, accountant=accountant)
    step.set_params(neighboring=neighboring, n_public=n_public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few records
        planned = refusal(lambda: step.planned_event(N, P))
        fitted = refusal(lambda: step.fit(X, X[:, 0]))
    assert planned == fitted
    assert (planned is None) or epsilon >= 1e12
    assert epsilon != 1e200 or planned is not None
    assert len(accountant.entries()) == (planned is None)


@pytest.mark.parametrize("n_samples", [1, 10**9])
def test_under_add_remove_a_plan_looks_at_the_public_number_alone(n_samples):
    for step in map(clone, STEPS.values()):
        step.set_params(neighboring="add_remove", n_public=N, delta=1e-7, epsilon=1.0)
        assert step.planned_event(n_samples, P) == step.planned_event(N, P)


def test_bounds_by_name_are_planned_without_names():
    pca = DPPCA(feature_bounds={"a": (0, 1e6), "b": (0, 1)}, epsilon=1.0, delta=1e-6)
    assert pca.planned_event(N, 2) == DPPCA(epsilon=1.0, delta=1e-6).planned_event(N, 2)
    assert math.isfinite(pca.planned_event(N, 2).releases[0].noise_multiplier)
