"""Parameters that scikit-learn's estimators have too: class_weight, warm_start and verbose."""

import copy
import io
import math
import pickle

import numpy as np
import pytest
from flat import SOLVERS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.penalties import Box, L2Ball
from dpcd_sklearn.solvers import SGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

INF = math.inf
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 4))
REAL = X @ [1.0, -0.5, 0.0, 0.2]
LABELS = (REAL + 0.3 * rng.standard_normal(300) > 0.4).astype(int)
UNIT = {"feature_bounds": (-1, 1)}
EXACT = {"epsilon": INF, "tol": 1e-9, "max_iter": 1e5}


def test_losses_have_scikit_learns_names_where_they_are_here():
    pairs = [(DPLinearRegressor, "squared_error", "squared", REAL)]
    pairs += [(DPLinearClassifier, "log_loss", "auto", np.arange(300) % k) for k in (2, 3)]
    for estimator, theirs, ours, y in pairs:
        seeded = {"random_state": ReproducibleNoise(0), "feature_bounds": (-1, 1)}
        found = [estimator(word, **seeded).fit(X, y) for word in (theirs, ours)]
        assert_array_equal(found[0].coef_, found[1].coef_)
        assert type(found[0].to_sklearn()) is type(found[1].to_sklearn())
        assert found[0].privacy_event_ == found[1].privacy_event_


# ---- class_weight -------------------------------------------------------------------------------


@pytest.mark.parametrize("use", [None, rng.uniform(0, 1, 300)], ids=["alone", "beside others"])
def test_class_weights_are_weights_of_records(use):
    # with an intercept public weights say where it starts, too: test_label_prior.py
    own = {"classes": [0, 1], "fit_intercept": False, **UNIT}
    params = {"random_state": ReproducibleNoise(0), **own}
    stated = DPLogisticGCD(class_weight={0: 0.25}, **params).fit(X, LABELS, use)
    by_record = np.where(LABELS == 0, 0.25, 1.0) * (1.0 if use is None else use)
    expected = DPLogisticGCD(**params).fit(X, LABELS, by_record)
    assert_array_equal(stated.coef_, expected.coef_)
    assert (
        stated.privacy_event_
        == expected.privacy_event_
        == DPLogisticGCD(**own).planned_event(*X.shape)
    )


def test_a_label_outside_weighs_what_the_first_class_weighs():
    params = {"classes": [0, 1], "random_state": ReproducibleNoise(0), **UNIT}
    model = DPLogisticGCD(class_weight={0: 0.25}, **params)
    assert_array_equal(
        clone(model).fit(X, np.where(LABELS == 0, 7, 1)).coef_, model.fit(X, LABELS).coef_
    )


def test_class_weights_above_one_are_refused_with_what_to_write():
    """The dict that the message has gives the same model without noise, by the stated factor."""
    for model, name in (
        (DPLogisticGCD(2.0), "C"),
        (DPLinearClassifier(penalty="l2", alpha=0.02), "alpha"),
    ):
        model.set_params(classes=[0, 1], class_weight={1: 4.0}, **UNIT)
        with PrivacyAccountant(epsilon=2.0, delta=1e-3) as accountant:
            model.set_params(accountant=accountant)
            with pytest.raises(ValueError, match="class_weight must be at most 1") as refused:
                model.fit(X, LABELS)
            assert accountant.entries() == []
        written = "class_weight={0: 0.25, 1: 1.0}"
        assert written in str(refused.value) and f"{name} by 4" in str(refused.value)
        exact = model.set_params(accountant=None, epsilon=INF, tol=1e-9)
        heavy = exact.fit(X, LABELS).coef_
        scaled = getattr(model, name) * (4 if name == "C" else 1 / 4)
        exact.set_params(class_weight={0: 0.25, 1: 1.0}, **{name: scaled})
        assert_allclose(exact.fit(X, LABELS).coef_, heavy, rtol=1e-3)
        private = clone(exact).set_params(epsilon=1.0).fit(X, LABELS)
        assert np.isfinite(private.coef_).all()


# ---- warm_start ---------------------------------------------------------------------------------

WARM = {
    "lasso": DPLassoCD(0.001, target_bounds=(-2, 3), **UNIT),
    "logistic": DPLogisticGCD(C=10.0, classes=[0, 1], **UNIT),
    "ridge": DPRidgeSkGD(0.1, target_bounds=(-2, 3), feature_bounds=(-1, 3)),
    "blocks": DPRidgeSkGD(0.1, solver=SkGD("block"), target_bounds=(-2, 2), **UNIT),
    "svrg": DPLinearRegressor(solver="svrg", target_bounds=(-2, 2), **UNIT),
    "sgd": DPLinearRegressor(solver="sgd", feature_scale=0.5, target_bounds=(-2, 2)),
    "compgd": DPLinearRegressor(solver="compgd", constraint=L2Ball(9), **UNIT),
    "softmax": DPLinearClassifier("multinomial", classes=[0, 1, 2], **UNIT),
    "several targets": DPLinearRegressor(solver="cd", target_bounds=(-2, 3), **UNIT),
    "softmax in batches": DPLinearClassifier(
        solver=SGD(sampling_rate=1.0), classes=[0, 1, 2], **UNIT
    ),
    "softmax in coordinates": DPLogisticGCD(C=10.0, classes=[0, 1, 2], **UNIT),
    "newton": DPLinearRegressor(solver="newton", target_bounds=(-2, 2), **UNIT),
    "softmax in Newton steps": DPLinearClassifier(solver="newton", classes=[0, 1, 2], **UNIT),
    "found scales": DPRidgeSkGD(0.1),
}
every_warm = pytest.mark.parametrize("model", WARM.values(), ids=WARM)


def target_of(model):
    if model is WARM["several targets"]:
        return np.column_stack([1.0 + REAL, -REAL])
    if not hasattr(model, "classes"):
        return 1.0 + REAL
    return LABELS if len(model.classes) == 2 else np.digitize(REAL, [-0.3, 0.3])


def ledger():
    return PrivacyAccountant(1e4, 1e-2)


def without_steps(model):
    """The solver that it has, or one that fits such models."""
    solver = model.solver
    if isinstance(solver, str):
        auto = {DPLassoCD: "cd", DPLogisticGCD: "gcd"}.get(type(model), "skgd")
        solver = SOLVERS[auto if solver == "auto" else solver]()
    solver = clone(solver).set_params(step_size=1e-12, averaging="last")
    return solver.set_params(sampling_rate=1.0) if hasattr(solver, "sampling_rate") else solver


@every_warm
def test_a_warm_fit_starts_where_the_earlier_one_ended(model):
    # one update of nearly no length: it ends where it starts
    y = target_of(model)
    model = clone(model).set_params(accountant=ledger(), epsilon=50.0).fit(X, y)
    coef, intercept = model.coef_.copy(), np.copy(model.intercept_)
    assert np.abs(coef).max() > 0.05
    model.set_params(max_iter=1e-9, warm_start=True, solver=without_steps(model)).fit(X, y)
    assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-6)
    assert_allclose(model.intercept_, intercept, rtol=1e-6, atol=1e-6)
    assert len(model.accountant.entries()) == 2


def test_the_oracle_follows_a_warm_start():
    # without noise both reach the optimum, and a start at the optimum stays there
    for model in (DPLassoCD(0.01, **EXACT), DPRidgeSkGD(0.1, **EXACT)):
        model.fit(X, 1 + REAL)
        coef, n_cold = model.coef_.copy(), model.n_iter_
        model.set_params(warm_start=True).fit(X, 1 + REAL)
        assert_allclose(model.coef_, coef, rtol=1e-5, atol=1e-6)
        assert model.n_iter_ < n_cold


@every_warm
def test_a_warm_start_needs_the_ledger_of_the_earlier_fit(model):
    y = target_of(model)
    model = clone(model).set_params(warm_start=True)
    with pytest.raises(ValueError, match="warm_start=True needs an accountant"):
        model.fit(X, y)
    free = clone(model).set_params(warm_start=False).fit(X, y)
    uncounted = copy.deepcopy(free).set_params(warm_start=True, accountant=ledger())
    with pytest.raises(ValueError, match="the earlier fit in the same ledger"):
        uncounted.fit(X, y)
    assert uncounted.accountant.entries() == []
    model.set_params(accountant=ledger()).fit(X, y)  # the first one starts at zero
    other = copy.deepcopy(model).set_params(accountant=ledger())
    with pytest.raises(ValueError, match="the earlier fit in the same ledger"):
        other.fit(X, y)
    assert other.accountant.entries() == []
    same = pickle.loads(pickle.dumps(model)).fit(X, y)
    assert len(same.accountant.entries()) == 2


BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}


@table(
    ("change", "features", "match"),
    [
        (lambda model: model.coef_.fill(1.0), X, "they were changed since"),
        (lambda model: model.intercept_.fill(1.0), X, "they were changed since"),
        (lambda model: model.set_params(classes=[1, 2]), X, "the labels of the earlier fit"),
        (lambda model: None, X[:, :3], "needs the 4 features of the earlier fit, X has 3"),
    ],
)
def test_what_is_no_start_is_refused_before_the_charge(change, features, match):
    model = DPLogisticGCD(classes=[0, 1], warm_start=True, accountant=ledger(), **UNIT)
    change(model.fit(X, LABELS))
    with pytest.raises(ValueError, match=match):
        model.fit(features, LABELS)
    assert len(model.accountant.entries()) == 1
    model = DPLinearClassifier(solver="frank-wolfe", warm_start=True, accountant=ledger(), **BALL)
    with pytest.raises(ValueError, match="leave it False"):  # it forgets its start
        model.fit(X, LABELS)
    assert model.accountant.entries() == []


def test_a_fit_without_noise_warms_no_private_one():
    model = DPLassoCD(epsilon=INF, warm_start=True, max_iter=1e5, **UNIT).fit(X, REAL)
    with pytest.raises(ValueError, match="the earlier fit in the same ledger"):
        model.set_params(epsilon=1.0, accountant=ledger()).fit(X, REAL)


def test_sparse_coefficients_are_a_start_too():
    model = DPLogisticGCD(classes=[0, 1], warm_start=True, accountant=ledger(), **UNIT)
    model.fit(X, LABELS).sparsify().fit(X, LABELS)
    assert len(model.accountant.entries()) == 2


@pytest.mark.filterwarnings("ignore:the fit without noise stopped")
def test_a_start_beyond_all_bounds_is_finite():
    model = DPLassoCD(epsilon=INF, warm_start=True, max_iter=1e4).fit(X, REAL)
    model.coef_[:] = 1e308
    model._earlier_fit = type(model._earlier_fit).of(model)
    assert np.isfinite(model.set_params(max_iter=1).fit(X, REAL).coef_).all()


# ---- zeros --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DPLassoCD(0.03),
        DPLinearRegressor(penalty="l1", alpha=0.03, solver=SGD(averaging="weighted")),
    ],
    ids=["tail", "weighted"],
)
def test_a_mean_of_iterates_has_the_zeros_of_the_last_one(model):
    wide = np.random.default_rng(1).uniform(-1, 1, (2000, 12))
    params = {"epsilon": 10.0, "target_bounds": (-1, 1), "random_state": ReproducibleNoise(0)}
    model = clone(model).set_params(coef_path=True, **UNIT, **params).fit(wide, 0.8 * wide[:, 0])
    last = model.coef_path_[-1]
    assert_array_equal(model.coef_ == 0, last == 0)
    assert 4 < (model.coef_ == 0).sum() < 12 and model.sparse_coef_.nnz < 8
    moved = model.coef_ != 0
    assert (model.coef_[moved] != last[moved]).any()  # a mean for all that


# ---- penalty -------------------------------------------------------------------------------------


def test_a_strength_that_no_penalty_uses_is_said():
    for model in (DPLinearRegressor(alpha=0.1), DPLinearRegressor(penalty=Box(-1, 1), alpha=2.0)):
        with pytest.warns(UserWarning, match="alpha=.* is not used: penalty="):
            model.fit(X, REAL)


# ---- verbose ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verbose", "n_lines"), [(0, 0), (False, 0), (True, 11), (1, 11), (2, 101)]
)
def test_verbose_prints_public_numbers(capsys, verbose, n_lines):
    seeded = {"random_state": ReproducibleNoise(0), **UNIT}
    model = DPLassoCD(verbose=verbose, max_iter=200, solver="cd", **seeded)
    noisy = model.fit(X, REAL).coef_
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_lines
    assert_array_equal(noisy, model.set_params(verbose=0).fit(X, REAL).coef_)
    model.set_params(verbose=verbose).fit(10 * X, -REAL)
    assert capsys.readouterr().out.splitlines() == lines  # nothing follows the records
    if lines:
        assert lines[0] == f"DPLassoCD: 1000 updates, {model.privacy_event_}"
        assert lines[-1] == "DPLassoCD: 1000 of 1000 updates"


@pytest.mark.parametrize("kind", ["terminal", "notebook"])
def test_progress_stays_in_one_line_where_lines_can_be_written_again(monkeypatch, kind):
    module = "ipykernel.iostream" if kind == "notebook" else __name__
    stream = type("Stream", (io.StringIO,), {"__module__": module})()
    monkeypatch.setattr(stream, "isatty", lambda: kind == "terminal", raising=False)
    monkeypatch.setattr("sys.stdout", stream)
    DPLassoCD(verbose=2, max_iter=200, solver="cd", **UNIT).fit(X, REAL)
    first, second, rest = stream.getvalue().split("\n")
    assert first.startswith("DPLassoCD: 1000 updates, ") and not rest
    steps = second.split("\r")
    assert len(steps) == 100 and steps[-1] == "DPLassoCD: 1000 of 1000 updates"
