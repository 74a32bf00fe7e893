"""Warnings where an estimator itself can know that something gets out beside the budget."""

import copy
import math
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import dpcd_sklearn
from dpcd_sklearn import (
    DPGammaRegressor,
    DPLassoCD,
    DPLogisticGCD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.utils import _warnings

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 3))
UNIT = {"feature_bounds": (-1, 1)}
MODELS = {
    "regressor": (DPLassoCD(target_bounds=(-1, 1), **UNIT), X[:, 0]),
    "classifier": (DPLogisticGCD(classes=[0, 1], **UNIT), (X[:, 0] > 0).astype(int)),
}
every_model = pytest.mark.parametrize(("model", "y"), MODELS.values(), ids=MODELS)
SECOND = "is fitted a second time, at the full price again.*PrivateSearchCV"


@pytest.fixture
def ledger():
    with PrivacyAccountant(50.0, 1e-3) as ledger:
        yield ledger


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    monkeypatch.setattr(_warnings, "said", set())


def silent(call, *args):
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        return call(*args)


# ---- scores -------------------------------------------------------------------------------------


@every_model
def test_a_score_of_a_model_with_an_accountant_warns_and_is_the_same(ledger, model, y):
    model = clone(model).set_params(accountant=ledger).fit(X, y)
    with pytest.warns(
        PrivacyLeakWarning, match="no ledger counts it.*dpcd_sklearn.metrics"
    ) as shown:
        score = model.score(X, y)
    assert [warning.filename for warning in shown] == [__file__]
    assert score == silent(model.set_params(accountant=None).score, X, y)
    assert len(ledger.entries()) == 1


def test_scores_warn_once_a_process_and_not_once_a_fold(ledger):
    model, y = MODELS["regressor"]
    with warnings.catch_warnings(record=True, action="always") as shown:
        cross_val_score(clone(model).set_params(accountant=ledger), X, y, cv=KFold(4))
    scores = [w for w in shown if "no ledger counts it" in str(w.message)]
    assert len(scores) == 1 and len(ledger.entries()) == 4


@every_model
def test_predictions_do_not_warn(ledger, model, y):
    silent(clone(model).set_params(accountant=ledger).fit(X, y).predict, X)


def test_a_ledger_for_tests_is_not_warned_of():
    model, y = MODELS["regressor"]
    accountant = PrivacyAccountant(5.0, 1e-3, testing=True)
    silent(clone(model).set_params(accountant=accountant).fit(X, y).score, X, y)


# ---- promises that are weak, and fits that nobody counts -----------------------------------------


def test_a_large_epsilon_and_a_large_delta_are_named_once_and_before_a_charge(ledger):
    model, y = MODELS["regressor"]
    weak = {
        "epsilon=20 promises little": {"epsilon": 20.0, "delta": 1e-6},
        "delta=0.005 is no less than 1/n for n=200": {"delta": 0.005},
    }
    for words, params in weak.items():
        with pytest.raises(PrivacyLeakWarning, match=words):
            silent(clone(model).set_params(accountant=ledger, **params).fit, X, y)
        silent(clone(model).set_params(**params).fit, X, y)
    assert ledger.entries() == []
    _warnings.said.clear()
    silent(clone(model).set_params(epsilon=10.0, delta=0.0049).fit, X, y)
    silent(clone(model).set_params(epsilon=math.inf).fit, X, y)
    with pytest.raises(PrivacyLeakWarning, match="delta"):
        silent(DPStandardScaler(epsilon=1.0, delta=0.1).fit, X)


def test_a_search_of_scikit_learn_without_an_accountant_is_told_so_once(ledger):
    model, y = MODELS["regressor"]
    grid = {"alpha": [0.1, 0.2]}
    pipeline = make_pipeline(BoundsScaler((-1, 1)), model)
    for search in (
        GridSearchCV(model, grid, cv=KFold(3), error_score="raise"),
        GridSearchCV(pipeline, {"dplassocd__alpha": [0.1]}, cv=KFold(3), error_score="raise"),
    ):
        _warnings.said.clear()
        with warnings.catch_warnings(record=True, action="always") as shown:
            search.fit(X, y)
        told = [w for w in shown if "search without an accountant" in str(w.message)]
        assert len(told) == 1 and told[0].category is PrivacyLeakWarning
    _warnings.said.clear()
    counted = clone(model).set_params(accountant=ledger)
    with warnings.catch_warnings(record=True, action="always") as shown:
        GridSearchCV(counted, grid, cv=KFold(3), error_score="raise").fit(X, y)
    assert not any("without an accountant" in str(w.message) for w in shown)
    silent(clone(model).fit, X, y)  # alone


# ---- the second charge --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [MODELS["regressor"][0], DPStandardScaler(epsilon=1.0)], ids=["model", "scaler"]
)
def test_the_second_charge_of_one_object_warns_once_a_process(ledger, model):
    model = clone(model).set_params(accountant=ledger)
    silent(model.fit, X, X[:, 0])
    with pytest.warns(PrivacyLeakWarning, match=SECOND) as shown:
        model.fit(X, X[:, 0])
    assert [warning.filename for warning in shown] == [__file__]
    silent(model.fit, X, X[:, 0])
    other = clone(model)
    silent(other.fit, X, X[:, 0])
    silent(other.fit, X, X[:, 0])
    assert len(ledger.entries()) == 5


def test_copies_of_a_charged_object_are_the_same_object(ledger):
    model, y = MODELS["regressor"]
    model = silent(clone(model).set_params(accountant=ledger).fit, X, y)
    with pytest.warns(PrivacyLeakWarning, match=SECOND):
        copy.deepcopy(model).fit(X, y)


def test_clones_and_fits_that_nobody_counts_do_not_warn(ledger):
    model, y = MODELS["regressor"]
    model = clone(model)
    silent(model.fit, X, y)
    silent(model.fit, X, y)
    model.set_params(accountant=ledger)
    silent(model.fit, X, y)  # the first that is charged
    for _ in range(3):
        silent(clone(model).fit, X, y)


def test_a_warning_that_is_made_an_error_costs_nothing(ledger):
    model, y = MODELS["regressor"]
    model = silent(clone(model).set_params(accountant=ledger).fit, X, y)
    with pytest.raises(PrivacyLeakWarning, match=SECOND):
        silent(model.fit, X, y)
    assert len(ledger.entries()) == 1


def test_a_warm_start_is_meant_to_be_a_second_charge(ledger):
    model, y = MODELS["regressor"]
    model = clone(model).set_params(accountant=ledger, warm_start=True)
    silent(model.fit, X, y)
    silent(model.fit, X, y)
    assert len(ledger.entries()) == 2


# ---- uncounted beside counted -------------------------------------------------------------------

LASSO = MODELS["regressor"][0]


def charged_pipeline(ledger):
    steps = DPStandardScaler(), clone(LASSO)
    return make_private_pipeline(*steps, accountant=ledger).fit(X, X[:, 0])


def charged_model_without_its_ledger(ledger):
    return counted(ledger).fit(X, X[:, 0]).set_params(accountant=None)


def counted(ledger):
    return clone(LASSO).set_params(accountant=ledger)


def search(model, **params):
    return GridSearchCV(model, {"alpha": [0.1]}, cv=KFold(2), error_score="raise", **params)


SCORE = "no ledger counts it: publish none"
SEVERAL = "several fits without an accountant"
# Each object of a ledger, the words of its only leak warning, and the rule of `find_leaks`.
MIXTURES = {
    "search by r2": (lambda a: search(counted(a), scoring="r2"), SCORE, "scores of a search"),
    "search by two metrics": (
        lambda a: search(counted(a), scoring=["r2", "neg_mean_squared_error"], refit="r2"),
        SCORE,
        "scores of a search",
    ),
    "search by a private scorer": (
        lambda a: search(counted(a), scoring=make_private_scorer("r2")),
        "private score of DPLassoCD has accountant=None",
        "scores of a search",
    ),
    "pipeline": (
        lambda a: make_pipeline(DPStandardScaler(epsilon=5.0), counted(a)),
        "Pipeline fits pipeline.dplassocd.* and pipeline.dpstandardscaler, which has accountant=N",
        SEVERAL,
    ),
    "votes": (
        lambda a: VotingRegressor([("a", counted(a)), ("b", clone(LASSO))]),
        "VotingRegressor fits votingregressor.a.* and votingregressor.b, which has accountant=None",
        SEVERAL,
    ),
    "a search around votes": (
        lambda a: GridSearchCV(
            VotingRegressor([("a", counted(a)), ("b", clone(LASSO))]),
            {"a__alpha": [0.1]},
            cv=KFold(2),
            scoring=make_private_scorer("r2", accountant=a, target_bounds=(-1, 1)),
            error_score="raise",
        ),
        "GridSearchCV fits gridsearchcv.estimator.a",
        SEVERAL,
    ),
    "accountant=None after a charge": (
        charged_model_without_its_ledger,
        "this DPLassoCD was charged before, and has accountant=None now",
        SEVERAL,
    ),
    "steps of a charged pipeline": (
        lambda a: charged_pipeline(a)[:-1],
        "this DPStandardScaler was charged before, and has accountant=None now",
        SEVERAL,
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_what_is_not_counted_beside_what_is_warns_once_and_is_found(ledger, name):
    make, words, rule = MIXTURES[name]
    model = make(ledger)
    found = [leak for leak in find_leaks(model) if leak.rule == rule]
    assert found and found[0].severity == "leak"
    before = len(ledger.entries())
    with warnings.catch_warnings(record=True, action="always") as shown:
        model.fit(X, X[:, 0])
        clone(model).fit(X, X[:, 0])
    told = [str(w.message) for w in shown if re.search(words, str(w.message))]
    assert len(told) == 1
    assert len([w for w in shown if w.category is PrivacyLeakWarning]) <= 2  # uncounted search
    charges = len(ledger.entries()) - before
    _warnings.said.clear()
    model = make(ledger)
    before = len(ledger.entries())
    with pytest.raises(PrivacyLeakWarning):
        silent(model.fit, X, X[:, 0])
    assert len(ledger.entries()) - before <= ("private scorer" in name) <= charges


def test_a_slice_before_the_fit_is_uncounted_and_a_slice_after_it_is_not_fitted(ledger):
    pipeline = make_private_pipeline(DPStandardScaler(), LASSO, accountant=ledger)
    with pytest.warns(PrivacyLeakWarning, match="not fitted are a plain Pipeline"):
        pipeline[:-1]
    _warnings.said.clear()
    silent(pipeline.fit, X, X[:, 0])
    silent(pipeline[:-1].transform, X)


def test_what_one_ledger_counts_altogether_and_what_none_counts_does_not_warn(ledger):
    tests = PrivacyAccountant(50.0, 1e-3, testing=True)
    scorer = make_private_scorer("r2", accountant=ledger)
    for model in (
        make_pipeline(DPStandardScaler(accountant=ledger), counted(ledger)),
        make_pipeline(DPStandardScaler(accountant=tests), clone(LASSO)),
        make_pipeline(DPStandardScaler(), clone(LASSO)),
        VotingRegressor([("a", counted(ledger)), ("b", counted(ledger))]),
        search(counted(ledger), scoring=scorer),
        search(counted(ledger), scoring={"a": scorer}, refit="a"),
        make_private_pipeline(DPStandardScaler(), clone(LASSO), accountant=ledger),
    ):
        silent(model.fit, X, X[:, 0])
    uncounted = make_private_pipeline(DPStandardScaler(), clone(LASSO))
    silent(silent(uncounted.fit, X, X[:, 0])[:-1].fit, X)


# ---- before the charge --------------------------------------------------------------------------

FEW = X[:30]
ROOMS = dpcd_sklearn, dpcd_sklearn.preprocessing
ALONE = [getattr(room, name) for room in ROOMS for name in room.__all__]
ALONE = [kind() for kind in ALONE if hasattr(kind, "planned_event")]
TOGETHER = {
    "a model behind a scaler": make_private_pipeline(DPStandardScaler(), DPLassoCD()),
    "an encoder behind an imputer": make_private_pipeline(
        DPSimpleImputer("mean", feature_bounds=(-1, 1)), DPOneHotEncoder()
    ),
    "columns": make_private_column_transformer(
        (DPSimpleImputer("mean", feature_bounds=(-1, 1)), [0]), (DPOneHotEncoder(), [1])
    ),
}
WITH_FEW = ["DPStandardScaler", "DPRobustScaler", "DPQuantileTransformer", "DPOneHotEncoder"]
WITH_FEW += ["DPSimpleImputer", "DPTargetEncoder", "DPOrdinalEncoder", "DPLassoCD", *TOGETHER]


@pytest.mark.parametrize(
    ("name", "model"), [*((type(model).__name__, model) for model in ALONE), *TOGETHER.items()]
)
@pytest.mark.parametrize("epsilon", [0.05, 15.0])
def test_of_every_estimator_a_warning_that_is_made_an_error_costs_nothing(name, model, epsilon):
    y = (FEW[:, 0] > 0).astype(int) + isinstance(model, DPGammaRegressor)
    with PrivacyAccountant(50.0, 1e-2) as told, PrivacyAccountant(50.0, 1e-2) as ledger:
        model = clone(model).set_params(epsilon=epsilon)
        with warnings.catch_warnings(record=True, action="always") as shown:
            clone(model).set_params(accountant=told).fit(FEW, y)
        assert len(told.entries()) == 1
        assert shown or (epsilon > 1.0 and name in TOGETHER) or name not in WITH_FEW
        _warnings.said.clear()
        if shown:
            again = clone(model).set_params(accountant=ledger)
            with warnings.catch_warnings(action="error"), pytest.raises(Warning):
                again.fit(FEW, y)
            assert ledger.entries() == []


def test_warnings_that_are_said_once_a_process_are_said_by_a_pipeline_too():
    model = make_private_pipeline(DPQuantileTransformer(), DPLassoCD(), epsilon=15.0)
    with pytest.warns(PrivacyLeakWarning, match="promises little"):
        model.fit(X, X[:, 0])
