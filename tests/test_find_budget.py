"""How much a score would cost: simulated, monotone, and free."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.model_selection import PrivateSearchCV, _find_budget, find_budget
from dpcd_sklearn.model_selection._find_budget import simulated_records, simulated_scores
from dpcd_sklearn.preprocessing import BoundsScaler

RIDGE = DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=30)


def test_more_records_need_less_and_a_higher_score_more():
    few, many = (find_budget(RIDGE, n, 3, 0.5, n_repeats=3) for n in (300, 30_000))
    assert many < 0.5 * few
    assert find_budget(RIDGE, 3000, 3, 0.2, n_repeats=3) < find_budget(
        RIDGE, 3000, 3, 0.75, n_repeats=3
    )


def test_the_budget_that_is_found_reaches_the_score():
    epsilon = find_budget(RIDGE, 1000, 3, 0.6, n_repeats=9)
    assert _find_budget.LEAST < epsilon < 128
    draw, rng = simulated_records(RIDGE, 3, 1, 0.8), np.random.default_rng(0)
    scores, _ = simulated_scores(RIDGE.set_params(epsilon=2 * epsilon), draw, 1000, 15, rng)
    assert np.mean(scores) > 0.5


def test_scores_out_of_reach_and_scores_for_nothing():
    assert find_budget(RIDGE, 1000, 3, 0.9, signal=0.5, n_repeats=3) == math.inf
    assert find_budget(RIDGE, 1000, 3, -2.0, n_repeats=3) == _find_budget.LEAST


@pytest.mark.parametrize(
    "model",
    [
        DPLogisticGCD(classes=["a", "b"], feature_bounds=(0, 5), max_iter=3, delta=1e-6),
        DPLinearClassifier("multinomial", classes=[1, 2, 3], feature_bounds=[(0, 1)] * 3),
        make_pipeline(BoundsScaler((-1, 1)), DPRidgeSkGD(target_bounds=(-5, 2), max_iter=9)),
    ],
    ids=["words", "several classes", "pipeline"],
)
def test_all_kinds_of_models(model):
    assert find_budget(model, 500, 3, 0.05, n_repeats=3) < math.inf


def test_nothing_is_charged_and_the_estimator_stays_as_it_was():
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    model = DPRidgeSkGD(epsilon=7.0, accountant=accountant, target_bounds=(-1, 1), max_iter=5)
    find_budget(model, 100, 2, -2.0, n_repeats=3)
    assert model.epsilon == 7.0 and model.accountant is accountant
    search = PrivateSearchCV(RIDGE, {"alpha": [0.1]}, n_iter=1.5, accountant=accountant)
    assert find_budget(search, 200, 2, -2.0, n_repeats=3) == _find_budget.LEAST
    assert accountant.entries() == []


def test_records_of_your_own():
    seen = []

    def made_up(n, rng):
        seen.append(n)
        X = rng.uniform(-1, 1, (n, 2))
        return X, X[:, 0]

    assert find_budget(RIDGE, 400, 2, 0.5, make_data=made_up, n_repeats=3) < math.inf
    assert set(seen) == {400, 5000}


@table(
    ("change", "error", "match"),
    [
        ({"estimator": Ridge()}, TypeError, "not private"),
        ({"n_samples": 3}, ValueError, "n_samples"),
        ({"n_features": 0}, ValueError, "n_features"),
        ({"target": 1.5}, ValueError, "target"),
        ({"target": "high"}, TypeError, "target"),
        ({"signal": 0.0}, ValueError, "signal"),
        ({"n_repeats": 1}, ValueError, "n_repeats"),
    ],
)
def test_what_makes_no_sense_is_refused(change, error, match):
    arguments = {"estimator": RIDGE, "n_samples": 100, "n_features": 2, "target": 0.5} | change
    with pytest.raises(error, match=match):
        find_budget(**arguments)
