"""Costs of fits and scores beforehand: forecasts are what a real run charges, entry by entry."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.model_selection import PrivateSearchCV, _find_budget, find_budget
from dpcd_sklearn.model_selection._find_budget import simulated_records, simulated_scores
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler

N = 60
X = np.random.default_rng(0).uniform(0, 1, size=(N, 2))
Y = X @ [1.0, -1.0]
LABELS = (Y > 0).astype(int)
RIDGE = DPRidgeSkGD(feature_bounds=(0, 1), max_iter=2, delta=1e-6)
LOGISTIC = DPLogisticGCD(feature_bounds=(0, 1), max_iter=2, delta=1e-6, classes=[0, 1])
ALPHA = loguniform(0.1, 1.0)
FOLDS = KFold(2)
PIPED = make_private_pipeline(DPStandardScaler(), DPRidgeSkGD(max_iter=2), delta=1e-6)

SEARCHES = {
    # prices that differ: without a refit, which follows the scores
    "grid": GridSearchCV(RIDGE, {"alpha": [1, 2], "epsilon": [0.2, 1]}, cv=FOLDS, refit=False),
    "two grids": GridSearchCV(RIDGE, [{"alpha": [0.1, 1.0]}, {"max_iter": [3]}], cv=3),
    "randomised": RandomizedSearchCV(
        RIDGE, {"alpha": ALPHA}, n_iter=3, cv=ShuffleSplit(2, test_size=0.3), refit=False
    ),
    "randomised, seed": RandomizedSearchCV(
        RIDGE, {"epsilon": ALPHA}, n_iter=3, cv=FOLDS, random_state=0, refit=False
    ),
    "halving": HalvingGridSearchCV(RIDGE, {"alpha": [0.1, 0.2, 0.5, 1.0]}, cv=FOLDS),
    "halving, random": HalvingRandomSearchCV(RIDGE, {"alpha": ALPHA}, cv=FOLDS, factor=4),
    "halving, classes": HalvingRandomSearchCV(LOGISTIC, {"C": ALPHA}, cv=FOLDS, factor=4),
    "halving, resource": HalvingGridSearchCV(
        RIDGE, {"alpha": [0.1, 0.2, 0.5]}, cv=FOLDS, resource="max_iter", max_resources=9
    ),
    "pipeline": GridSearchCV(
        make_pipeline(BoundsScaler((0, 1)), RIDGE), {"dpridgeskgd__alpha": [1.0]}, cv=FOLDS
    ),
    "two prices": GridSearchCV(
        make_pipeline(DPStandardScaler(delta=1e-6), RIDGE), {"dpridgeskgd__alpha": [1]}, cv=FOLDS
    ),
    "step in place of another": GridSearchCV(
        make_pipeline(BoundsScaler((0, 1)), RIDGE),
        {"dpridgeskgd": [RIDGE, clone(RIDGE).set_params(epsilon=2.0)]},
        cv=RepeatedKFold(n_splits=2, n_repeats=2),
        refit=False,
    ),
    "pipeline of a search": make_pipeline(
        BoundsScaler((0, 1)), GridSearchCV(RIDGE, {"alpha": [1.0, 2.0]}, cv=FOLDS)
    ),
    "private pipeline": GridSearchCV(PIPED, {"epsilon": [0.5, 1.0]}, cv=FOLDS, refit=False),
    "private pipeline, refit": GridSearchCV(PIPED, {"dpridgeskgd__alpha": [1, 2]}, cv=FOLDS),
}


def charged_to(accountant, search):
    """A copy of a search whose private parts have this accountant."""
    search = clone(search)
    whole = "estimator__accountant"  # of a private model or pipeline
    names = [name for name in search.get_params() if name.endswith("__accountant")]
    search.set_params(**dict.fromkeys([whole] if whole in names else names, accountant))
    grid = getattr(search, "param_grid", {})
    for model in grid.get("dpridgeskgd", []) if isinstance(grid, dict) else []:
        model.set_params(accountant=accountant)
    return search


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_charges_what_was_forecast(name):
    accountant = PrivacyAccountant(1e4, 1e-6)
    search = charged_to(accountant, SEARCHES[name])
    cost = accountant.cost(search, N, 2)
    assert not accountant.entries()  # nothing was charged
    search.fit(X, LABELS if "classes" in name else Y)
    entries = accountant.entries()
    assert cost.n_fits == len(entries)
    assert Counter({n: count for count, n, _ in cost.sizes}) == Counter(
        entry.n_samples for entry in entries
    )
    assert cost.amount == pytest.approx(sum(entry.amount for entry in entries), rel=1e-12)
    assert cost.epsilon == pytest.approx(accountant.spent().epsilon, rel=1e-9)


def test_the_surprise_of_a_random_halving_search_is_told_beforehand():
    accountant = PrivacyAccountant(5.0, 1e-6)
    model = clone(RIDGE).set_params(accountant=accountant)
    search = HalvingRandomSearchCV(model, {"alpha": ALPHA}, cv=KFold(3))
    cost = accountant.cost(search, N, 2)
    assert [size[:2] for size in cost.sizes] == [(30, 4), (12, 12), (6, 36), (1, 60)]
    assert cost.n_fits == 49
    assert cost.epsilon > accountant.epsilon
    assert cost.fits_left == 0
    assert str(cost).startswith("49 fits (30 of 4 records at epsilon=1, 12 of 12 records")


def test_cross_validation_is_a_fit_for_each_fold():
    accountant = PrivacyAccountant(100.0, 1e-6)
    model = clone(RIDGE).set_params(accountant=accountant)
    cost = accountant.cost(model, N, 2, cv=KFold(3))
    cross_val_score(model, X, Y, cv=KFold(3))
    assert cost.n_fits == len(accountant.entries()) == 3
    assert cost.epsilon == pytest.approx(accountant.spent().epsilon, rel=1e-9)
    assert accountant.cost(model, N, 2).n_fits == 1


def test_what_no_forecast_is_possible_for_is_refused():
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(TypeError, match="Ridge can't say what it would release"):
        accountant.cost(GridSearchCV(Ridge(), {}), N, 2)
    with pytest.raises(TypeError, match="no step of this pipeline"):
        accountant.cost(make_pipeline(BoundsScaler()), N, 2)
    with pytest.raises(ValueError, match="groups of the records"):
        accountant.cost(GridSearchCV(RIDGE, {}, cv=GroupKFold(2)), N, 2)
    with pytest.raises(ValueError, match="alpha"):
        accountant.cost(GridSearchCV(RIDGE, {"alpha": [-1.0]}, cv=FOLDS), N, 2)


def test_the_winner_of_a_grid_is_counted_at_the_dearest():
    accountant = PrivacyAccountant(1e3, 1e-6)
    cost = accountant.cost(GridSearchCV(RIDGE, {"epsilon": [0.1, 3.0]}, cv=FOLDS), N, 2)
    assert [size[:2] for size in cost.sizes] == [(4, 30), (1, 60)]
    assert cost.sizes[1][2] == pytest.approx(3.0)


def test_candidates_that_may_survive_are_counted_at_the_dearest():
    accountant = PrivacyAccountant(1e3, 1e-6)
    grid = {"epsilon": [0.1, 0.2, 3.0]}
    model = clone(RIDGE).set_params(accountant=accountant)
    search = HalvingGridSearchCV(model, grid, cv=FOLDS, min_resources=20)
    cost = accountant.cost(search, N, 2)
    assert max(epsilon for _, n, epsilon in cost.sizes if n == N) == pytest.approx(3.0)
    search.fit(X, Y)
    assert cost.n_fits == len(accountant.entries())
    assert accountant.spent().epsilon <= cost.epsilon * (1 + 1e-12)  # sums in two orders


def test_costs_and_plans_take_rows_layouts_and_outputs_of_pipelines_too():
    """Only width, names and layout of rows are looked at: NaN in them changes nothing."""
    frame = pd.DataFrame(np.full((2, 4), np.nan), columns=list("abcd"))
    layouts = [(4, False), (frame, False), (frame.to_numpy(), False), (csr_matrix((2, 4)), True)]
    for model in (DPRidgeSkGD(), DPLogisticGCD(), DPStandardScaler()):
        for n_outputs in (1, 3):
            for columns, sparse in layouts:
                event = model.planned_event(1000, columns, n_outputs)
                assert event == model.planned_event(1000, 4, n_outputs, sparse=sparse)
    named = DPRidgeSkGD(feature_bounds=dict.fromkeys("abce", (0, 1)))
    with pytest.raises(ValueError, match="no bounds for column"):
        named.planned_event(1000, frame)
    for model in (DPRidgeSkGD(epsilon=0.1), DPLogisticGCD(epsilon=0.1)):
        with PrivacyAccountant(epsilon=5.0, delta=1e-6) as accountant:
            for columns in (4, np.zeros((2, 4)), csr_matrix((2, 4))):
                pipeline = make_pipeline(DPStandardScaler(epsilon=0.1), model)
                cost = accountant.cost(pipeline, 1000, columns, 3)
                assert cost.n_fits == 2
            assert accountant.entries() == []


# ---- how much a score would cost: simulated, monotone, and free ----------------------------------


BOUNDED = DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=30)


def test_more_records_need_less_and_a_higher_score_more():
    few, many = (find_budget(BOUNDED, n, 3, 0.5, n_repeats=3) for n in (300, 30_000))
    assert many < 0.5 * few
    assert find_budget(BOUNDED, 3000, 3, 0.2, n_repeats=3) < find_budget(
        BOUNDED, 3000, 3, 0.75, n_repeats=3
    )


def test_the_budget_that_is_found_reaches_the_score():
    epsilon = find_budget(BOUNDED, 1000, 3, 0.6, n_repeats=9)
    assert _find_budget.LEAST < epsilon < 128
    draw, rng = simulated_records(BOUNDED, 3, 1, 0.8), np.random.default_rng(0)
    scores, _ = simulated_scores(BOUNDED.set_params(epsilon=2 * epsilon), draw, 1000, 15, rng)
    assert np.mean(scores) > 0.5


def test_scores_out_of_reach_and_scores_for_nothing():
    assert find_budget(BOUNDED, 1000, 3, 0.9, signal=0.5, n_repeats=3) == math.inf
    assert find_budget(BOUNDED, 1000, 3, -2.0, n_repeats=3) == _find_budget.LEAST


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


def test_nothing_is_charged_and_the_estimator_stays_as_it_was(uncharged):
    model = DPRidgeSkGD(epsilon=7.0, accountant=uncharged, target_bounds=(-1, 1), max_iter=5)
    find_budget(model, 100, 2, -2.0, n_repeats=3)
    assert model.epsilon == 7.0 and model.accountant is uncharged
    search = PrivateSearchCV(BOUNDED, {"alpha": [0.1]}, n_iter=1.5, accountant=uncharged)
    assert find_budget(search, 200, 2, -2.0, n_repeats=3) == _find_budget.LEAST


def test_records_of_your_own():
    seen = []

    def made_up(n, rng):
        seen.append(n)
        X = rng.uniform(-1, 1, (n, 2))
        return X, X[:, 0]

    assert find_budget(BOUNDED, 400, 2, 0.5, make_data=made_up, n_repeats=3) < math.inf
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
    arguments = {"estimator": BOUNDED, "n_samples": 100, "n_features": 2, "target": 0.5} | change
    with pytest.raises(error, match=match):
        find_budget(**arguments)
