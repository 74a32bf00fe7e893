"""Numbers beyond all sense are refused in time, with a ValueError, and before they are paid for."""

import math
import os
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from flat import SOLVERS as STATED
from flat import flat
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, L1Ball, L2Ball
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.solvers import CompGD, FrankWolfe

INF = math.inf
ALL = [DPLassoCD, DPLogisticGCD, DPRidgeSkGD, DPLinearRegressor, DPLinearClassifier]
NUMBERS = ["epsilon", "delta", "clip", "max_iter", "tol", "row_norm_bound", "n_public"]
NUMBERS += ["n_threads", "feature_scale", "alpha", "C", "l1_ratio", "block_size", "random_state"]
HUGE = [
    (estimator, name) for estimator in ALL for name in NUMBERS if name in estimator().get_params()
]


@pytest.fixture
def accountant():
    # for testing: what is refused below is refused by the numbers, not for want of noise
    with PrivacyAccountant(epsilon=1e9, delta=0.1, testing=True) as accountant:
        yield accountant


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, (X[:, 0] > 0).astype(int)


def refuse(model, X, y, match):
    start = time.monotonic()
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert time.monotonic() - start < 5
    assert model.accountant.entries() == []


@table(("estimator", "name"), HUGE)
@table("value", [10**400, -(10**400), 2**64])
def test_an_integer_beyond_every_double_is_a_value_error_by_name(
    accountant, data, estimator, name, value
):
    model = estimator(**{name: value}, accountant=accountant)
    refuse(model, *data, match=name)
    with pytest.raises(ValueError, match=name):
        model.planned_event(40, 3)


OBJECTS = [
    (where, kind, name)
    for where, kinds in {
        "solver": STATED.values(), "penalty": [Box], "constraint": [L1Ball, L2Ball], "loss": [Huber]
    }.items()
    for kind in kinds
    for name, value in kind().get_params().items()
    if value is None or not isinstance(value, str) or value == "auto"
]  # fmt: skip


@table(("where", "kind", "name"), OBJECTS)
@table("value", [10**400, -(10**400), Fraction(10**400)])
def test_so_is_one_within_an_object(accountant, data, where, kind, name, value):
    # what an object may not have is refused whether or not the problem suits it
    model = DPLinearRegressor(**{where: kind(**{name: value})}, accountant=accountant)
    refuse(model, *data, match=f"{name}'? (parameter )?of {kind.__name__}")
    with pytest.raises(ValueError, match=name):
        model.planned_event(40, 3)


@pytest.mark.parametrize("name", ["feature_bounds", "target_bounds"])
def test_so_is_one_among_bounds(accountant, data, name):
    model = DPLinearRegressor(accountant=accountant)
    model.set_params(**{name: (0, 10**400)})
    with pytest.raises((TypeError, ValueError), match=name):
        model.fit(*data)
    assert accountant.entries() == []
    with pytest.raises((TypeError, ValueError), match="bounds"):
        BoundsScaler((0, 10**400)).fit(data[0])


@pytest.mark.parametrize("sizes", [(10**400, 3), (40, 10**400), (40, 2**40), (2**54, 3)])
def test_sizes_that_no_data_has_are_refused(sizes):
    with pytest.raises(ValueError, match="n_samples|n_features"):
        DPLassoCD().planned_event(*sizes)
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="n_samples|n_features"):
        accountant.cost(DPLassoCD(), *sizes)


SOLVERS = {
    "cd": {},
    "gcd": {},
    "skgd": {},
    "compgd": {},
    "sgd": {},
    "svrg": {},
    "newton": {},
    "frank-wolfe": {"penalty": None, "constraint": "l1_ball", "fit_intercept": False},
}
WITH_STEPS = [word for word in SOLVERS if "step_size" in STATED[word]().get_params()]
every_solver = pytest.mark.parametrize("solver", SOLVERS)


@every_solver
@table("max_iter", [1.7e308, 1e300, 1e17])
def test_more_passes_than_can_be_counted_are_refused(accountant, data, solver, max_iter):
    params = SOLVERS[solver] | {"max_iter": max_iter, "accountant": accountant}
    refuse(DPLinearRegressor(solver=solver, **params), *data, match="max_iter=.*2\\^53 updates")


@every_solver
@table("scale", [1e-320, 1e-160, 1e160])
@table("epsilon", [1.0, INF])
def test_scales_whose_squares_leave_double_precision_are_refused(
    accountant, data, solver, scale, epsilon
):
    params = SOLVERS[solver] | {"epsilon": epsilon, "accountant": accountant}
    for more in ({"feature_scale": scale}, {"feature_scale": scale, "row_norm_bound": 1.0}):
        model = DPLinearRegressor(solver=solver, **params, **more)
        refuse(model, *data, match="feature_scale must give every feature a scale")
    model = DPLinearRegressor(solver=solver, **params, feature_bounds=(-scale, scale))
    refuse(model, *data, match="feature_bounds must give every feature a scale")


@table("solver", ["sgd", "svrg", "compgd"])
@table("epsilon", [1e-5, 2e-6, 1e-7, 1e-12, 1e-30, 1e-300])
@table("relation", [{}, {"neighboring": "add_remove", "n_public": 1000}])
def test_samples_are_calibrated_for_the_smallest_epsilon(solver, epsilon, relation):
    from dpcd_sklearn.privacy.accounting import epsilon_of

    start = time.monotonic()
    model = flat(
        DPLinearRegressor, solver=solver, sampling_rate=0.1, epsilon=epsilon, delta=1e-6, **relation
    )
    event = model.planned_event(1000, 5)
    assert time.monotonic() - start < 5
    assert epsilon_of(event, 1e-6) <= epsilon
    larger = model.set_params(epsilon=2 * epsilon).planned_event(1000, 5)
    assert larger.releases[0].noise_multiplier <= event.releases[0].noise_multiplier


def test_numbers_for_which_no_noise_is_enough_are_refused(accountant, data):
    model = DPRidgeSkGD(epsilon=1e-300, delta=1e-320, accountant=accountant)
    refuse(model, *data, match="epsilon=.* and delta=.* are so small")


@pytest.mark.parametrize("epsilon", [1.7e308, 10**400])
def test_a_budget_beyond_arithmetic_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivacyAccountant(epsilon, 1e-5)


def test_a_working_directory_that_is_gone_is_a_ledger_error(tmp_path):
    script = (
        "import os, sys; from dpcd_sklearn import PrivacyAccountant\n"
        "os.rmdir(os.getcwd())\n"
        "PrivacyAccountant(1.0, 1e-5)\n"  # a temporary one needs none
        "try: PrivacyAccountant(1.0, 1e-5, path='ledger.db')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    folder = tmp_path / "gone"
    folder.mkdir()
    path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), os.getcwd()) if p)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(LedgerError.__name__) and "absolute path" in done.stdout


@table("estimator", [DPLogisticGCD, DPLinearClassifier])
@table("classes", [[0, math.nan], [[0, 1]], [None, 1], [1, "a", None]])
def test_classes_that_are_no_labels_are_refused(accountant, data, estimator, classes):
    model = estimator(classes=classes, accountant=accountant)
    with pytest.raises((TypeError, ValueError), match="classes must be a list of labels"):
        model.fit(*data)
    assert accountant.entries() == []


# ---- charged, then refused ----------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1e15, 1e30, 1e300])
@pytest.mark.parametrize("selection", ["full", "lazy"])
def test_a_ball_too_wide_for_its_noise_is_refused_before_the_charge(
    accountant, data, radius, selection
):
    params = SOLVERS["frank-wolfe"] | {"constraint": L1Ball(radius), "accountant": accountant}
    model = DPLinearRegressor(solver=FrankWolfe(selection), **params)
    refuse(model, *data, match="radius")
    model.set_params(constraint__radius=1e6).fit(*data)
    assert len(accountant.entries()) == 1


@pytest.mark.parametrize("params", [{"alpha": 1e30}, {"step_size": 1e14}], ids=str)
@pytest.mark.parametrize("rule", ["gs-s", "gs-r", "gs-q"])
def test_penalties_and_steps_too_long_for_greedy_noise_are_refused_before_the_charge(
    accountant, data, params, rule
):
    stated = {"penalty": "l1", "rule": rule, "accountant": accountant}
    model = flat(DPLinearRegressor, solver="gcd", **stated | params)
    refuse(model, *data, match="alpha, radius or step_size")


@every_solver
@table("cell", [1e154, 1e300, 1e-12])
def test_cells_that_no_fit_without_noise_takes_are_refused_before_the_charge(
    accountant, data, solver, cell
):
    X, y = data
    model = DPLinearRegressor(
        solver=solver, epsilon=INF, tol=1e-2, accountant=accountant, **SOLVERS[solver]
    )
    refuse(model, X * cell, y, match="smoothness must lie in")


@pytest.mark.parametrize("solver", ["cd", "sgd"])
def test_a_clip_that_overflows_beside_the_target_is_not_replaced(accountant, data, solver):
    bounds = {"target_bounds": (-1e-10, 1e-10), "clip": 1e300}
    model = DPLinearRegressor(solver=solver, accountant=accountant, **bounds)
    refuse(model, *data, match="clip=1e\\+300|clip")


@every_solver
def test_coefficients_of_the_widest_target_are_finite(data, solver):
    params = SOLVERS[solver] | {"target_bounds": (-1.7e308, 1.7e308), "epsilon": 1e-3}
    model = DPLinearRegressor(solver=solver, **params).fit(*data)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


@every_solver
def test_steps_and_budgets_beyond_arithmetic_are_refused(accountant, data, solver):
    stated = SOLVERS[solver] | {"solver": solver, "accountant": accountant}
    for step_size in (1.7e308, 1e16) if solver in WITH_STEPS else ():
        model = flat(DPLinearRegressor, **stated, step_size=step_size)
        refuse(model, *data, match=r"step_size.* of .* must be .*1000000000000000\.0\]")
    refuse(DPLinearRegressor(**stated, epsilon=1e301), *data, match="epsilon must be at most")


@pytest.mark.parametrize("solver", WITH_STEPS)
@pytest.mark.parametrize("step_size", [3.0, 1e3, 1e15])
def test_long_steps_leave_finite_coefficients_or_are_refused(accountant, data, solver, step_size):
    params = SOLVERS[solver] | {"step_size": step_size, "accountant": accountant}
    model = flat(DPLinearRegressor, solver=solver, **{"penalty": "l2", "alpha": 0.1} | params)
    if (solver, step_size) in {("gcd", 1e15), ("compgd", 1e15), ("compgd", 1e3)}:
        return refuse(model, *data, match="step")
    model.fit(*data)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


def test_a_ridge_that_compressed_steps_would_overshoot_is_refused(accountant, data):
    model = DPLinearRegressor(
        solver=CompGD(step_size=1e6), penalty="l2", alpha=10.0, accountant=accountant
    )
    refuse(model, *data, match="step_size=.*at most .* for solver='compgd'")
