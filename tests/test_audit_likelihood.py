"""The statistic of an audit is the log likelihood ratio, and what it makes up are neighbours."""

import numpy as np
import pytest

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.inspection._fits import Subject, separation
from dpcd_sklearn.inspection._pairs import FAMILIES, worst_pairs
from dpcd_sklearn.privacy.accounting import gdp_squared
from dpcd_sklearn.solvers import SGD

MODELS = {
    "cd": DPLassoCD(epsilon=2.0, delta=1e-2),
    "skgd": DPRidgeSkGD(epsilon=2.0, delta=1e-2),
    "blocks": DPRidgeSkGD(epsilon=2.0, delta=1e-2, sampling="block"),
    "compgd": DPLinearRegressor(epsilon=2.0, delta=1e-2, solver="compgd"),
    "multinomial": DPLinearClassifier(
        epsilon=2.0, delta=1e-2, loss="multinomial", solver=SGD(sampling_rate=1.0)
    ),
    "softmax": DPLinearClassifier(epsilon=2.0, delta=1e-2, classes=[0, 1, 2]),
    "softmax cd": DPLinearClassifier(epsilon=2.0, delta=1e-2, classes=[0, 1, 2], solver="cd"),
    "softmax gcd": DPLogisticGCD(epsilon=2.0, delta=1e-2, classes=[0, 1, 2]),
    "sgd": DPLinearRegressor(epsilon=2.0, delta=1e-2, solver="sgd"),
    "gcd": DPLogisticGCD(epsilon=2.0, delta=1e-2),
    "newton": DPLinearRegressor(epsilon=2.0, delta=1e-2, solver="newton"),
    "softmax newton": DPLinearClassifier(
        epsilon=2.0, delta=1e-2, classes=[0, 1, 2], solver="newton"
    ),
    "svrg": DPLinearRegressor(epsilon=2.0, delta=1e-2, solver="svrg"),
}


@pytest.mark.parametrize("name", MODELS)
def test_likelihood_ratios_have_mean_one_under_the_other_data(name):
    """E[exp(-log ratio)] = 1 under the first data set; it fails for a wrong formula or noise."""
    (pair,) = worst_pairs(MODELS[name], ["pulling others"]).values()
    subject = Subject(MODELS[name], pair, None)
    one, other = (subject.shows(side, 400)[:, 0] for side in (0, 1))
    # a standard deviation of sqrt(exp(μ²) - 1) / 20, 0.06 for μ = 0.9
    assert np.exp(-one).mean() == pytest.approx(1.0, abs=0.35)
    assert np.exp(other).mean() == pytest.approx(1.0, abs=0.35)
    squared = gdp_squared(subject.fitted.privacy_event_)
    # another label moves a softmax of three by 1.7 clips, not by 2
    if squared is not None and name != "multinomial" and "softmax" not in name:
        assert separation(one, other) == pytest.approx(squared**0.5, abs=0.35)


PLACES = {
    "plain": DPRidgeSkGD(delta=0.1),
    "scalar bounds": DPRidgeSkGD(delta=0.1, feature_bounds=(-2.0, 1.0)),
    "bounds of two": DPRidgeSkGD(delta=0.1, feature_bounds=([-1, 0], [1, 3])),
    "a list of three": DPRidgeSkGD(delta=0.1, feature_bounds=[(-1, 1), (0, 1), (-1, 0)]),
    "scales of four": DPRidgeSkGD(delta=0.1, feature_scale=[1, 2, 3, 4]),
    "no intercept": DPRidgeSkGD(delta=0.1, fit_intercept=False),
    "few": DPRidgeSkGD(delta=0.1, neighboring="add_remove", n_public=3),
    "classes": DPLogisticGCD(delta=0.1, classes=["a", "b"]),
}


@pytest.mark.parametrize("place", PLACES)
def test_families_suit_the_model_and_are_neighbours(place):
    model = PLACES[place]
    pairs = worst_pairs(model, FAMILIES)
    assert len(pairs) >= len(FAMILIES) - 2
    for one, other in pairs.values():
        model.fit(*one), model.fit(*other)
        if model.neighboring == "add_remove":
            assert len(one[1]) == len(other[1]) + 1 <= 3
            continue
        changed = (one[0] != other[0]).any(axis=1) | (one[1] != other[1])
        assert changed.sum() == 1 and (one[2] == other[2]).all()
