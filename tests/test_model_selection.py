"""Private models in scikit-learn's pipelines and searches: every fit is charged, once."""

import copy
import math
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline

import dpcd_sklearn
from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import (
    FewRecordsWarning,
    PrivacyLeakWarning,
    UnknownScaleWarning,
)
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.solvers._choice import SOLVERS

ALL = [DPLassoCD, DPLogisticGCD, DPRidgeSkGD]
N_SAMPLES = 90
DELTA = 1e-4  # stated: "auto" would follow the size of the training fold
CV = KFold(3)  # by row number: a stratified split follows the labels and voids the guarantee

every_estimator = pytest.mark.parametrize("estimator", ALL)
in_one_or_two_processes = pytest.mark.parametrize("n_jobs", [1, 2])

# Four candidates for each estimator.
GRIDS = {
    DPLassoCD: {"epsilon": [0.5, 1.0], "sampling": ["uniform", "importance"]},
    DPLogisticGCD: {"epsilon": [0.5, 1.0], "C": [0.1, 1.0]},
    DPRidgeSkGD: {"alpha": [0.1, 1.0], "sampling": ["full", "block"]},
}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (N_SAMPLES, 4))
    return X, (X[:, 0] > 5).astype(int)


@pytest.fixture
def accountant():
    with PrivacyAccountant(epsilon=100.0, delta=1e-3) as accountant:
        yield accountant


def pipeline(estimator, **params):
    # updates enough that some coefficient moves: the greedy solver may refuse a step
    model = estimator(delta=DELTA, feature_bounds=(-1, 1), max_iter=30, **params)
    if estimator is DPLassoCD:
        model.set_params(alpha=0.001, solver="cd")  # at 1.0 every coefficient is zero
    if estimator is DPLogisticGCD:
        model.set_params(classes=[0, 1])  # an absent class in a fold must be no error
    return Pipeline([("scale", BoundsScaler((0, 10))), ("model", model)])


def released(fitted):
    """The results of a fit, as bytes."""
    return np.append(fitted["model"].coef_, fitted["model"].intercept_).tobytes()


def in_model(grid):
    return {f"model__{name}": values for name, values in grid.items()}


def budget_for(fits, estimator, **params):
    """An accountant that admits exactly `fits` fits of this model."""
    low, high = 0.01, 1000.0
    for _ in range(60):
        accountant = PrivacyAccountant(epsilon=math.sqrt(low * high), delta=1e-3)
        model = pipeline(estimator, **params)["model"]
        left = accountant.cost(model, 2 * N_SAMPLES // 3, 4).fits_left  # a fold of three
        if left == fits:
            return accountant
        low, high = (accountant.epsilon, high) if left < fits else (low, accountant.epsilon)
    raise AssertionError("no such budget")


# --- searches -----------------------------------------------------------------------------------


@in_one_or_two_processes
@every_estimator
def test_four_candidates_three_folds_and_a_refit_are_thirteen_entries(
    data, accountant, estimator, n_jobs
):
    search = GridSearchCV(
        pipeline(estimator, accountant=accountant),
        in_model(GRIDS[estimator]),
        cv=CV,
        n_jobs=n_jobs,
        error_score="raise",
    ).fit(*data)
    entries = accountant.entries()
    assert len(entries) == 13
    assert [entry.id for entry in entries] == list(range(1, 14))
    assert {entry.estimator for entry in entries} == {estimator.__name__}
    # 12 fits on two thirds of the records, then the refit on all of them
    assert [entry.n_samples for entry in entries] == [60] * 12 + [90]
    tried = [tuple(entry.params[name] for name in GRIDS[estimator]) for entry in entries[:12]]
    assert len(set(tried)) == 4 and all(tried.count(candidate) == 3 for candidate in tried)
    best = {name.removeprefix("model__"): value for name, value in search.best_params_.items()}
    assert {name: entries[-1].params[name] for name in best} == best
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_["model"].accountant == accountant
    assert math.isclose(
        accountant.spent().epsilon, PrivacyAccountant.open(accountant.path).spent().epsilon
    )


@in_one_or_two_processes
@every_estimator
def test_a_budget_for_five_fits_stops_the_sixth(data, estimator, n_jobs):
    accountant = budget_for(5, estimator)
    search = GridSearchCV(
        pipeline(estimator, accountant=accountant),
        {"model__fit_intercept": [True], "scale__copy": [True, False]},
        cv=CV,
        n_jobs=n_jobs,
        error_score="raise",
    )
    with pytest.raises(BudgetExceededError, match="nothing was drawn or recorded"):
        search.fit(*data)
    assert len(accountant.entries()) == 5
    assert accountant.spent().epsilon <= accountant.epsilon
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(BudgetExceededError):
        pipeline(estimator, accountant=accountant).fit(*data)
    assert len(accountant.entries()) == 5


def test_without_error_score_raise_a_refused_fit_would_be_a_nan(data):
    # Why every example passes error_score="raise".
    accountant = budget_for(5, DPRidgeSkGD)
    search = GridSearchCV(
        pipeline(DPRidgeSkGD, accountant=accountant), {"scale__copy": [True, False]}, cv=CV
    )
    with (
        pytest.warns((FitFailedWarning, UserWarning)),
        pytest.raises(BudgetExceededError),  # by the refit, which nobody catches
    ):
        search.fit(*data)
    assert len(accountant.entries()) == 5


@in_one_or_two_processes
@every_estimator
def test_cross_validation_charges_every_fold(data, accountant, estimator, n_jobs):
    model = pipeline(estimator, accountant=accountant)
    scores = cross_val_score(model, *data, cv=CV, n_jobs=n_jobs, error_score="raise")
    assert scores.shape == (3,) and np.isfinite(scores).all()
    assert [entry.n_samples for entry in accountant.entries()] == [60, 60, 60]
    assert not hasattr(model["model"], "coef_")


@in_one_or_two_processes
@every_estimator
def test_no_two_fits_share_noise_in_whatever_process_they_run(data, estimator, n_jobs):
    X, y = data
    fits = Parallel(n_jobs=n_jobs)(
        delayed(clone(model).fit)(X, y) for model in [pipeline(estimator)] * 6
    )
    assert len({released(fit) for fit in fits}) == 6


@every_estimator
def test_parameters_of_all_kinds_can_be_searched(data, accountant, estimator):
    X, y = data
    grid = {"epsilon": [0.1, 1.0], "max_iter": [1, 4.5], "fit_intercept": [True, False]}
    grid |= {"clip": ["auto", 2.0]}
    search = GridSearchCV(
        pipeline(estimator, accountant=accountant),
        in_model(grid) | {"scale__with_centering": [True, False]},
        cv=KFold(2),
        error_score="raise",
    ).fit(X, y)
    assert len(accountant.entries()) == 2 * 32 + 1
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_a_search_can_choose_between_estimators_under_one_ledger(data, accountant):
    models = [DPLassoCD(delta=DELTA), DPRidgeSkGD(delta=DELTA)]
    search = GridSearchCV(
        Pipeline([("scale", BoundsScaler((0, 10))), ("model", models[0])]),
        {"model": [model.set_params(accountant=accountant) for model in models]},
        cv=CV,
        error_score="raise",
    ).fit(*data)
    names = [entry.estimator for entry in accountant.entries()]
    assert names.count("DPLassoCD") + names.count("DPRidgeSkGD") == len(names) == 7
    assert search.best_params_["model"].accountant == accountant


# --- pipelines ----------------------------------------------------------------------------------


@every_estimator
def test_a_pipeline_scales_fits_and_predicts(data, estimator):
    X, y = data
    model = pipeline(estimator).fit(X, y)
    scaled = BoundsScaler((0, 10)).fit_transform(X)
    assert_array_equal(model.predict(X), model["model"].predict(scaled))
    assert np.isfinite(model.score(X, y))
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.predict(X), model.predict(X))


@every_estimator
def test_names_of_columns_pass_through_a_pipeline(data, estimator):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abcd"))
    bounds = dict.fromkeys("abcd", (0, 10))
    model = pipeline(estimator).set_params(scale__bounds=bounds).set_output(transform="pandas")
    model.fit(frame, pandas.Series(y))
    assert_array_equal(model["model"].feature_names_in_, list("abcd"))


@every_estimator
def test_weights_reach_the_model_by_name_and_by_routing(data, accountant, estimator):
    X, y = data
    weights = np.linspace(0.5, 1.5, N_SAMPLES)
    model = pipeline(estimator, accountant=accountant)
    model.fit(X, y, model__sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        model["model"].set_fit_request(sample_weight=True)
        model["model"].set_score_request(sample_weight=True)
        cross_validate(model, X, y, cv=CV, params={"sample_weight": weights}, error_score="raise")
        # and what arrives is checked
        with pytest.raises(ValueError, match="[Nn]egative"):
            model.fit(X, y, sample_weight=-weights)
    assert len(accountant.entries()) == 4


def test_a_scaled_target_around_a_private_regressor_is_charged(data, accountant):
    X, y = data
    model = TransformedTargetRegressor(
        DPRidgeSkGD(delta=DELTA, accountant=accountant, target_bounds=(0, 1)),
        func=np.sqrt,
        inverse_func=np.square,
    ).fit(X, y.astype(float))
    assert model.regressor_.accountant == accountant
    assert len(accountant.entries()) == 1


# --- one ledger, whoever holds the handle -------------------------------------------------------


@every_estimator
def test_clones_copies_and_pickles_keep_the_ledger(data, accountant, estimator):
    model = pipeline(estimator, accountant=accountant)
    outer = make_pipeline("passthrough", model)  # nested
    for fits, same in enumerate(
        [
            model,
            clone(model),
            copy.copy(model),
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            clone(clone(outer)),
        ],
        start=1,
    ):
        same.fit(*data)
        assert len(accountant.entries()) == fits


@every_estimator
def test_set_params_changes_the_ledger_of_what_is_fitted_next(data, accountant, estimator):
    other = PrivacyAccountant(epsilon=10.0, delta=1e-3)
    model = pipeline(estimator, accountant=accountant).fit(*data)
    model.set_params(model__accountant=other, model__epsilon=0.25)
    assert model.get_params()["model__accountant"] is other
    model.fit(*data)
    assert len(accountant.entries()) == 1
    (entry,) = other.entries()
    assert entry.params["epsilon"] == 0.25
    model.set_params(model__accountant=None).fit(*data)
    assert len(accountant.entries()) == len(other.entries()) == 1


@every_estimator
def test_threads_charge_one_ledger(data, accountant, estimator):
    model = pipeline(estimator, accountant=accountant)
    barrier, fits, errors = threading.Barrier(8), [], []

    def fit():
        barrier.wait()
        try:
            for _ in range(3):
                fits.append(clone(model).fit(*data))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [entry.id for entry in accountant.entries()] == list(range(1, 25))
    assert len({released(fit) for fit in fits}) == 24


@every_estimator
def test_threads_can_not_overspend_together(data, estimator):
    accountant = budget_for(5, estimator)
    model = pipeline(estimator, accountant=accountant)

    def fit(model):
        try:
            model.fit(*data)
        except BudgetExceededError:
            return False
        return True

    admitted = Parallel(n_jobs=8, prefer="threads")(delayed(fit)(clone(model)) for _ in range(12))
    assert sum(admitted) == 5 == len(accountant.entries())


@every_estimator
def test_a_ledger_outlives_the_search(data, estimator, tmp_path):
    path = tmp_path / "ledger.db"
    with PrivacyAccountant(epsilon=50.0, delta=1e-3, path=path) as accountant:
        cross_val_score(pipeline(estimator, accountant=accountant), *data, cv=CV)
    again = PrivacyAccountant.open(path)
    assert len(again.entries()) == 3
    pipeline(estimator, accountant=again).fit(*data)
    assert len(again.entries()) == 4


# --- fits that do not end -----------------------------------------------------------------------


@every_estimator
def test_a_fit_that_fails_after_its_charge_stays_charged(data, accountant, estimator, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    for solver in SOLVERS.values():
        monkeypatch.setattr(solver.planned_by, "run", interrupted)
    model = pipeline(estimator, accountant=accountant)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert len(accountant.entries()) == 1
    assert not hasattr(model["model"], "coef_")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@every_estimator
def test_a_fit_killed_after_its_charge_leaves_one_entry(estimator, tmp_path):
    path = tmp_path / "ledger.db"
    script = f"""
        import os, signal
        import numpy as np
        from dpcd_sklearn import {estimator.__name__} as Estimator, PrivacyAccountant
        from dpcd_sklearn.solvers._choice import SOLVERS

        def killed(*args):
            os.kill(os.getpid(), signal.SIGKILL)

        for solver in SOLVERS.values():
            solver.planned_by.run = killed
        accountant = PrivacyAccountant(10.0, 1e-3, path={str(path)!r})
        Estimator(accountant=accountant).fit(np.eye(6), [0, 1, 0, 1, 0, 1])
        print("still alive")
    """
    checkout = str(Path(dpcd_sklearn.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": checkout},
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert result.stdout == ""
    accountant = PrivacyAccountant.open(path)
    (entry,) = accountant.entries()
    assert entry.estimator == estimator.__name__ and entry.n_samples == 6
    assert accountant.spent().epsilon > 0
    # and the ledger goes on
    estimator(accountant=accountant).fit(np.eye(6), [0, 1, 0, 1, 0, 1])
    assert len(accountant.entries()) == 2


@every_estimator
def test_no_warning_disturbs_a_private_search(data, accountant, estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # that scores are not counted is said where they are taken, and scales are not the matter
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", UnknownScaleWarning)
        warnings.simplefilter("ignore", FewRecordsWarning)
        GridSearchCV(
            pipeline(estimator, accountant=accountant),
            in_model(GRIDS[estimator]),
            cv=CV,
            error_score="raise",
        ).fit(*data)
