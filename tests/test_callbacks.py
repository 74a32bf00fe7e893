"""scikit-learn's callbacks: they see how far a fit is, and nothing that is not public."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.testing import ReproducibleNoise

callback = pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 3))
y = X[:, 0]
UNIT = {"feature_bounds": (-1, 1)}
MODELS = {
    "lasso": DPLassoCD(0.01, **UNIT),
    "logistic": DPLogisticGCD(classes=[0, 1], **UNIT),
    "ridge": DPRidgeSkGD(**UNIT),
    "sgd": DPLinearRegressor(solver="sgd", **UNIT),
    "found scales": DPLassoCD(0.01),
    "softmax": DPLogisticGCD(classes=[0, 1, 2], **UNIT),
    "several targets": DPLinearRegressor(solver="cd", **UNIT),
    "newton": DPLinearRegressor(solver="newton", **UNIT),
    "no noise": DPLassoCD(0.01, epsilon=math.inf, max_iter=1e5),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


class Spy:
    """Records every call and all that it is given."""

    def __init__(self, answer=None):
        self.calls, self.answer = [], answer

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name, {}))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name, {}))

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        given = {"X": X, "y": y, "metadata": metadata, "fitted_estimator": fitted_estimator}
        self.calls.append(("begin", context.task_name, given | {"tasks": context.max_subtasks}))
        self.attributes = {**vars(estimator)}

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        given = {"X": X, "y": y, "metadata": metadata, "fitted_estimator": fitted_estimator}
        self.calls.append(("end", context.task_name, given))
        return self.answer

    def named(self, *names):
        return [given for hook, task, given in self.calls if (hook, task) == names]


def target_of(model):
    if model is MODELS["several targets"]:
        return np.column_stack([y, -y])
    return (y > 0).astype(int) if hasattr(model, "classes") else y


@every_model
def test_a_callback_sees_and_reaches_steps_and_no_record(model):
    spy = Spy()
    model = clone(model).set_callbacks(spy).fit(X, target_of(model))
    hooks = [(hook, task) for hook, task, _ in spy.calls]
    assert hooks[:2] == [("setup", "fit"), ("begin", "fit")]
    assert hooks[-2:] == [("end", "fit"), ("teardown", "fit")]
    for _, _, given in spy.calls:
        assert all(given.get(name) is None for name in ("X", "y", "metadata", "fitted_estimator"))
    (whole,) = spy.named("begin", "fit")
    steps = len(spy.named("end", "updates"))
    if math.isinf(model.epsilon):
        assert 0 <= steps <= whole["tasks"] <= 100  # it may end before the first step
    else:
        assert steps == whole["tasks"] > 1 and steps <= 100
    for value in spy.attributes.values():
        for own in value if isinstance(value, (list, tuple)) else [value]:
            assert not (isinstance(own, np.ndarray) and len(X) in own.shape)
            assert own is not X and own is not y


@every_model
@pytest.mark.parametrize("answer", [None, True])
def test_a_callback_changes_no_bit_and_stops_nothing(model, answer):
    model = clone(model).set_params(random_state=ReproducibleNoise(0))
    expected = clone(model).fit(X, target_of(model))
    found = clone(model).set_callbacks(Spy(answer)).fit(X, target_of(model))
    assert_array_equal(found.coef_, expected.coef_)
    assert found.n_iter_ == expected.n_iter_


def test_what_is_told_does_not_follow_the_records():
    told = []
    for records in ((X, y), (100 * X, -y), (np.zeros_like(X), y)):
        spy = Spy()
        DPLassoCD(0.01, **UNIT).set_callbacks(spy).fit(*records)
        told.append(spy.calls)
    assert told[0] == told[1] == told[2]


def test_a_fit_that_is_refused_tells_nothing():
    spy = Spy()
    model = DPLassoCD(accountant=PrivacyAccountant(0.5, 1e-6), **UNIT).set_callbacks(spy)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert spy.calls == []


def test_a_callback_that_fails_ends_a_fit_that_stays_charged():
    class Broken(Spy):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("broken")

    accountant = PrivacyAccountant(5.0, 1e-3)
    model = DPLassoCD(accountant=accountant, **UNIT).set_callbacks(Broken())
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X, y)
    assert len(accountant.entries()) == 1 and not hasattr(model, "coef_")


def test_a_progress_bar_of_a_search_shows_its_fits():
    pytest.importorskip("rich")
    bar = callback.ProgressBar(max_propagation_depth=None)
    search = GridSearchCV(DPLassoCD(**UNIT), {"alpha": [0.1, 1.0]}, cv=KFold(2))
    search.set_callbacks(bar).fit(X, y)
    assert search.best_estimator_.coef_.shape == (3,)


def test_a_scoring_monitor_is_silenced_with_a_warning_and_before_the_charge():
    """Scores of each step on the records would be releases that nobody pays for."""
    accountant = PrivacyAccountant(5.0, 1e-3)
    alone = DPRidgeSkGD(accountant=accountant, **UNIT)
    for model in (alone, make_private_pipeline(DPRidgeSkGD(**UNIT), epsilon=1.0)):
        monitor = callback.ScoringMonitor(scoring="r2")
        with pytest.warns(UserWarning, match="ScoringMonitor is silenced"):
            model.set_callbacks(monitor).fit(X, y)
        with pytest.raises(ValueError, match="No logs"):
            monitor.get_logs()
    assert len(accountant.entries()) == 1
    model = DPRidgeSkGD(accountant=accountant, **UNIT)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="ScoringMonitor")
        model.set_callbacks(Spy()).fit(X, y)  # nothing is said of others
        with pytest.raises(UserWarning):
            model.set_callbacks(callback.ScoringMonitor(scoring="r2")).fit(X, y)
    assert len(accountant.entries()) == 2, "a warning that is made an error is not charged"
