"""Under add_remove the sizes of a search's secret slots decide nothing: what fails, or costs."""

import math

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.model_selection import PrivateSearchCV, _runs, _splits
from dpcd_sklearn.model_selection._search_plan import asked_of, planned
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPStandardScaler

N, N_PUBLIC = 600, 700
TOLD = {"neighboring": "add_remove", "n_public": N_PUBLIC}
SIZES = [1, 2, 30, 300, 523, 524, 525, 526, 598, 599]  # of a fit slot; 525 is expected
BOUNDS = {"feature_bounds": (-1, 1)}
TARGET = BOUNDS | {"target_bounds": (-2, 2)}
LABELS = BOUNDS | {"classes": [0, 1, 2]}
FEW = {"max_iter": 1}


def candidates():
    """Every solver of regressions and of three classes, presets and pipelines."""
    ball = {"penalty": None, "fit_intercept": False, "constraint": "l1_ball"}
    of_solver = {"compgd": {"penalty": None}, "frank-wolfe": ball}
    for solver in ("cd", "gcd", "skgd", "sgd", "svrg", "newton", "compgd", "frank-wolfe"):
        yield DPLinearRegressor(solver=solver, **TARGET, **FEW, **of_solver.get(solver, {}))
    for solver in ("cd", "gcd", "skgd", "sgd", "svrg", "newton"):
        yield DPLinearClassifier(solver=solver, **LABELS, **FEW)
    yield DPRidgeSkGD(target_bounds=(-2, 2), inference=True, **FEW)  # whose scales are found
    yield DPLassoCD(**TARGET, **FEW)
    yield DPLogisticGCD(**LABELS, **FEW)
    for last in (DPRidgeSkGD(target_bounds=(-2, 2)), DPLogisticGCD(classes=[0, 1, 2])):
        yield make_private_pipeline(DPStandardScaler(), last)


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(-1, 1, size=(N, 3))
    y = X @ [1.0, -1.0, 0.0]
    order = np.argsort(y)  # so that a small slot has one class, and two far from all others
    return X[order], y[order], np.digitize(y[order], [-0.2, 0.2])


def search_over(candidate, **params):
    candidate = clone(candidate).set_params(**TOLD)
    name = "verbose" if hasattr(candidate, "steps") else "max_iter"
    grid = {name: [candidate.get_params()[name]]}
    return PrivateSearchCV(candidate, grid, epsilon=3.0, delta=1e-6, **params)


def unlike(data, candidates, sizes):
    """A run's words on the size of its fit slot: failures, and events that differ."""
    X, target, labels = data
    rows, found = np.arange(N), []
    for candidate in candidates:
        y = labels if is_classifier(candidate) else target
        search = search_over(candidate)
        plan, events = planned(search, asked_of(search, N), (3, 1, False)), set()
        for size in sizes:
            model = search._budgeted(plan, {}, min(plan.slots.n_train))
            scorer, splits = search._scorer_of(plan), ((rows[:size], rows[size:]),)
            cost = plan.release, plan.budget
            outcome = _runs.run(model, {}, scorer, X, y, splits, *cost)
            if outcome.model is None or not math.isfinite(outcome.score):
                found.append(f"{candidate}: a slot of {size} failed")
            else:
                events.add(str(outcome.model.privacy_event_))
        if len(events) > 1:
            found.append(f"{candidate}: {len(events)} events")
    return found


def test_a_run_ends_alike_whatever_the_size_of_its_slot(data):
    dear = ("sgd", "svrg")  # to calibrate
    cheap = [one for one in candidates() if getattr(one, "solver", None) not in dear]
    found = unlike(data, cheap, [1, 300, 526, 599])
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_a_run_ends_alike_for_every_solver_and_more_sizes(data):
    found = unlike(data, candidates(), SIZES)
    assert not found, "\n".join(found)


class RefusesMore(DPRidgeSkGD):
    """Refuses more records than n_public, which a search sets to the expected size of a slot."""

    def _plan(self, n_samples, *shape, **facts):
        if n_samples > self.n_public:
            raise ValueError("too many records")
        return super()._plan(n_samples, *shape, **facts)


def test_a_model_that_refuses_large_slots_would_be_noticed(data):
    assert unlike(data, [RefusesMore(**TARGET, **FEW)], [524, 525]) == []
    assert unlike(data, [RefusesMore(**TARGET, **FEW)], [526, 599])


def test_a_table_that_breaks_the_promise_is_refused_before_any_coin(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(_splits.Slots, "rows", lambda *_: pytest.fail("coins were drawn"))
    model = DPRidgeSkGD(fit_intercept=False, **TARGET, **FEW)
    for search, n in (
        (search_over(model), 499),
        (search_over(model), N_PUBLIC + 1),
        (search_over(model).set_params(estimator__n_public=N - 1), N),
        (search_over(model).set_params(estimator__n_public=499), 499),
    ):
        accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
        rows = np.arange(n) % N
        with pytest.raises(ValueError, match="state an n_public"):
            search.set_params(accountant=accountant).fit(X[rows], y[rows])
        assert accountant.entries() == []


def test_coins_leave_no_slot_empty_of_the_records_that_are_promised():
    share = 0.9  # the largest that is taken, as the least
    assert 2 * share**_splits._LEAST_OF_COINS < 1e-22
