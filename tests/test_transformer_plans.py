"""Plans of transformers: what a fit refuses before its charge is refused by the plan as well."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tables import table

from dpcd_sklearn import DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.compose import DPColumnTransformer
from dpcd_sklearn.pipeline import make_private_pipeline
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


# ---- widths beyond what X has --------------------------------------------------------------------


def relations(n_samples):
    yield {}
    yield {"neighboring": "add_remove", "n_public": n_samples}


@table("step", [DPSelectKBest(P + 1), DPPCA(P + 1)])
@table("public", relations(N))
def test_more_columns_than_there_are_are_refused_before_the_charge(step, public):
    X = np.random.default_rng(0).uniform(-1, 1, (N, P))
    accountant = PrivacyAccountant(1.0, 1e-6, **public)
    paying = {"accountant": accountant, "delta": 1e-7, **public}
    columns = DPColumnTransformer([("first", DPOneHotEncoder([[0.0]] * 2), [0, 1])])
    encoder = DPOneHotEncoder(max_categories=2)  # its width is public, whatever it finds
    model = DPLinearRegressor(target_bounds=(-1, 1))

    def fit(X, *steps):
        make_private_pipeline(*map(clone, (*steps, step, model)), **paying).fit(X, y)

    y, frame = X[:, 0], pd.DataFrame(X, columns=list("abcd"))
    attempts = [
        (lambda: clone(step).set_params(**paying).fit(X, y), P),
        (lambda: clone(step).set_params(**paying).fit(frame, y), P),
        (lambda: clone(step).set_params(**public, delta=1e-7).planned_event(N, P), P),
        (lambda: fit(X), P),
        (lambda: fit(X, columns), 4),
        (lambda: fit(X[:, :1], encoder), 2),
    ]
    for attempt, width in attempts:
        said = refusal(attempt)
        assert said is not None and "=5 is more than X has columns" in said
        assert f"at most {width}" in said
    assert accountant.entries() == []


def test_more_components_than_records_are_refused_by_the_public_number_of_them():
    X = np.random.default_rng(0).uniform(-1, 1, (N, P))
    assert "more than X has records (3)" in refusal(lambda: DPPCA(P).fit(X[:3]))
    of_public = {"neighboring": "add_remove", "delta": 1e-7}
    for n_samples in (2, 3, N):  # how many there are is not told
        few = DPPCA(P, n_public=3, **of_public)
        assert "more than X has records (3)" in refusal(lambda: few.fit(X[:n_samples]))  # noqa: B023
        DPPCA(P, n_public=N, **of_public).fit(X[:n_samples])
