"""Iterates: special cases of DP-SkGD, averages, paths, and how many updates a pass is."""

import itertools
import math

import numpy as np
import pytest
from flat import SOLVERS as STATED
from flat import fits, flat
from numpy.testing import assert_allclose, assert_array_equal
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.solvers import SGD, SVRG
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings(
    "ignore::dpcd_sklearn.PrivacyLeakWarning",
    "ignore:the fit without noise stopped:sklearn.exceptions.ConvergenceWarning",
)
N_SAMPLES, N_FEATURES = 200, 5
P = N_FEATURES + 1  # coordinates
INF = math.inf
SCALES = np.logspace(0, 0.5, N_FEATURES)

SOLVERS = {
    "cd": {},
    "gcd": {},
    "skgd": {},
    "compgd": {"penalty": "l2", "n_directions": 3},
    "sgd": {},
    "svrg": {},
    "frank-wolfe": {"penalty": None, "constraint": "l1_ball", "penalize_intercept": True},
}
# Not every solver has each of them.
OF_SOME = {"step_size": 0.5, "momentum": 0.0, "averaging": "last"}
every_solver = pytest.mark.parametrize("solver", SOLVERS)
with_and_without_noise = pytest.mark.parametrize("epsilon", [1.0, 1e4, INF])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N_SAMPLES, N_FEATURES)) * SCALES
    y = X @ [0.5, -0.2, 0.0, 0.1, 0.0] + 0.1 + 0.1 * rng.normal(size=N_SAMPLES)
    return X, np.clip(y, -1, 1)


def make_model(solver, **params):
    """A regressor whose path has every iterate of full updates, and one a pass of others."""
    defaults = {
        "penalty": "elasticnet",
        "alpha": 0.01,
        "random_state": ReproducibleNoise(3),
        "max_iter": 20,
        "clip": 0.5,
        "feature_scale": SCALES,
        "target_bounds": (-1.0, 1.0),
        "coef_path": True,
        "tol": 1e-300,  # no fit without noise ends before max_iter
    }
    has = STATED[solver]().get_params()
    defaults |= {name: value for name, value in OF_SOME.items() if name in has}
    return flat(DPLinearRegressor, solver=solver, **(defaults | SOLVERS[solver] | params))


# --- special cases -------------------------------------------------------------------------------

SAME = [
    # DP-SkGD of single coordinates is DP-CD, whatever their probabilities (Maranjyan et al. 2024).
    (("cd", {}), ("skgd", {"sampling": "uniform"})),
    (("cd", {"sampling": "importance"}), ("skgd", {"sampling": "importance"})),
    # With all coordinates it is DP gradient descent, whatever the sampling is called.
    (("skgd", {"sampling": "full"}), ("skgd", {"sampling": "block", "block_size": P})),
    (("skgd", {"sampling": "full"}), ("skgd", {"sampling": "nice", "block_size": P})),
    (("skgd", {"sampling": "uniform"}), ("skgd", {"sampling": "block", "block_size": 1})),
    (("skgd", {"sampling": "uniform"}), ("skgd", {"sampling": "nice", "block_size": 1})),
]
# Other oracles sum in another order: the last bit of a gradient differs.
ALIKE = [
    (("skgd", {"sampling": "full"}), ("sgd", {"sampling_rate": 1.0})),
    (("skgd", {"momentum": 0.8}), ("sgd", {"sampling_rate": 1.0, "momentum": 0.8})),
    # DP-CompGD in all dimensions is DP gradient descent; it has the ridge in the gradient, not in
    # a proximal step, hence none here.
    (
        ("sgd", {"penalty": None, "sampling_rate": 1.0}),
        ("compgd", {"penalty": None, "n_directions": P}),
    ),
]


def path_of(solver, params, data, **more):
    model = make_model(solver, **params, **more).fit(*data)
    return np.column_stack([model.coef_path_, model.intercept_path_])


@with_and_without_noise
@table(("first", "second"), SAME)
def test_special_cases_of_sketched_descent_have_the_same_iterates(data, first, second, epsilon):
    path = path_of(*first, data, epsilon=epsilon)
    assert len(path) == 21
    assert (np.abs(np.diff(path, axis=0)).max(axis=1) > 0).all()  # something moves in every pass
    assert_array_equal(path_of(*second, data, epsilon=epsilon), path)


@with_and_without_noise
@pytest.mark.parametrize(("first", "second"), ALIKE, ids=str)
def test_full_batch_solvers_have_the_same_iterates_up_to_rounding(data, first, second, epsilon):
    path = path_of(*first, data, epsilon=epsilon)
    assert_allclose(path_of(*second, data, epsilon=epsilon), path, rtol=0, atol=1e-14)


def test_greedy_steps_of_all_coordinates_are_full_gradient_steps_without_noise(data):
    greedy = path_of("gcd", {"block_size": P}, data, epsilon=INF)
    # one gradient for all: its step is divided by their number, as that of a full block is
    assert_allclose(greedy, path_of("skgd", {}, data, epsilon=INF), rtol=0, atol=1e-14)


def test_variance_reduction_without_inner_updates_is_gradient_descent(data):
    # every inner loop is one update from its own anchor, where the difference of gradients is zero
    svrg = path_of("svrg", {"max_iter": 40, "n_inner": 1}, data, epsilon=INF)
    assert_allclose(svrg, path_of("skgd", {}, data, epsilon=INF), rtol=0, atol=1e-14)


# --- averages ------------------------------------------------------------------------------------

FULL = {"skgd": {}, "sgd": {"sampling_rate": 1.0}, "compgd": {}, "gcd": {}}  # a pass an update


def single_updates(solver, data, n_updates=24, **params):
    """A fit whose path has every single iterate."""
    return make_model(solver, **FULL[solver], max_iter=n_updates, **params).fit(*data)


@with_and_without_noise
@table("solver", FULL)
@table("n_updates", [1, 2, 23, 24])
def test_a_tail_average_is_the_mean_of_the_last_half_of_the_path(data, solver, n_updates, epsilon):
    model = single_updates(solver, data, n_updates, averaging="tail", epsilon=epsilon)
    last = single_updates(solver, data, n_updates, averaging="last", epsilon=epsilon)
    assert_array_equal(model.coef_path_, last.coef_path_)  # averaging is for the end only
    half = math.ceil(n_updates / 2)
    assert_allclose(model.coef_, model.coef_path_[-half:].mean(axis=0), atol=1e-14)
    assert_allclose(model.intercept_, model.intercept_path_[-half:].mean(), atol=1e-14)


@with_and_without_noise
@table("solver", ["sgd", "compgd"])
@table("decay", [0.0, 0.5])
def test_a_weighted_average_is_weighted_by_the_steps(data, solver, decay, epsilon):
    model = single_updates(solver, data, averaging="weighted", step_decay=decay, epsilon=epsilon)
    weights = np.arange(1, 25.0) ** -decay
    expected = np.average(model.coef_path_[1:], axis=0, weights=weights)  # the start has no step
    assert_allclose(model.coef_, expected, atol=1e-14)


@pytest.mark.parametrize("n_inner", [1, 4, 7, 60, 1000])
def test_periodic_averaging_is_the_papers_recursion(data, n_inner):
    """T x K of Alg. 1 of Mangold et al. (2022), written in NumPy over the exact objective."""
    X, y = data
    averaged = make_model("cd", averaging="periodic", n_inner=n_inner, epsilon=INF, max_iter=10)
    periodic = averaged.fit(X, y)
    random_state = np.random.RandomState(3)  # the fit's: a key of the noise, then the coordinates
    random_state.bytes(32)
    generator = np.random.default_rng(list(random_state.bytes(16)))
    coordinates = generator.integers(P, size=60)
    assert periodic.n_iter_ == 60
    center = X.mean(axis=0)  # without noise features are centred, M_j is their variance
    A = np.column_stack([X - center, np.ones(N_SAMPLES)])
    M = np.mean(A**2, axis=0)
    l1, l2 = 0.01 * 0.15, 0.01 * 0.85
    w, iterates = np.zeros(P), []
    for t, j in enumerate(coordinates, start=1):
        step = 0.5 / M[j]
        w = w.copy()
        w[j] -= step * (A[:, j] @ (A @ w - y)) / N_SAMPLES
        if j < N_FEATURES:
            w[j] = np.sign(w[j]) * max(abs(w[j]) - step * l1, 0) / (1 + step * l2)
        iterates.append(w)
        if t % n_inner == 0 or t == len(coordinates):
            w, iterates = np.mean(iterates, axis=0), []
    assert_allclose(periodic.coef_, w[:-1], rtol=0, atol=1e-12)
    assert_allclose(periodic.intercept_, w[-1] - center @ w[:-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 100.0])
@pytest.mark.parametrize("n_inner", [3, 8, 24])
def test_periodic_averaging_with_noise_goes_on_from_the_mean(data, n_inner, epsilon):
    # Noise does not depend on the iterates: of a period the first K updates of a plain fit, begun
    # at zero, are the same, so its mean is theirs.
    periodic = single_updates("skgd", data, averaging="periodic", n_inner=n_inner, epsilon=epsilon)
    plain = single_updates("skgd", data, epsilon=epsilon)
    assert_array_equal(periodic.coef_path_[:n_inner], plain.coef_path_[:n_inner])
    mean = plain.coef_path_[1 : n_inner + 1].mean(axis=0)
    assert_allclose(periodic.coef_path_[n_inner], mean, rtol=0, atol=1e-14)
    if n_inner < 24:
        assert np.abs(periodic.coef_path_[n_inner + 1] - plain.coef_path_[n_inner + 1]).max() > 0


# --- paths ---------------------------------------------------------------------------------------


@table(
    ("solver", "averaging"),
    [*itertools.product(SOLVERS, ["last"]), *itertools.product(list(SOLVERS)[:-1], ["tail"])],
)
@table("epsilon", [1.0, INF])
def test_a_path_is_from_the_start_to_the_last_iterate_and_costs_nothing(
    data, solver, averaging, epsilon
):
    params = {"epsilon": epsilon, "max_iter": 6.5}
    params |= {} if solver == "frank-wolfe" else {"averaging": averaging}  # it has the last alone
    model = make_model(solver, **params).fit(*data)
    n_points = len(model.coef_path_)
    assert model.coef_path_.shape == (n_points, N_FEATURES)
    assert model.intercept_path_.shape == (n_points,)
    per_pass = make_model(solver, max_iter=1.0, epsilon=epsilon).fit(*data).n_iter_
    assert n_points == 1 + math.ceil(model.n_iter_ / per_pass)
    assert_array_equal(model.coef_path_[0], 0)
    assert model.intercept_path_[0] == 0
    if averaging == "last":
        assert_array_equal(model.coef_path_[-1], model.coef_)
        assert_allclose(model.intercept_path_[-1], model.intercept_, rtol=1e-14)
    without = make_model(solver, **params, coef_path=False).fit(*data)
    assert not hasattr(without, "coef_path_")
    assert without.privacy_event_ == model.privacy_event_
    assert_array_equal(without.coef_, model.coef_)
    assert without.intercept_ == model.intercept_


@every_solver
@table("seed", range(5))
def test_a_path_does_not_end_a_fit_without_noise_early(data, solver, seed):
    params = {"epsilon": INF, "max_iter": 500, "tol": 1e-3, "random_state": seed}
    model = make_model(solver, **params).fit(*data)
    without = make_model(solver, **params, coef_path=False).fit(*data)
    assert model.n_iter_ == without.n_iter_
    assert_array_equal(model.coef_, without.coef_)


def test_a_path_begins_at_the_point_of_the_box_that_is_nearest_to_zero(data):
    model = make_model("cd", penalty=Box(0.2, 0.4)).fit(*data)
    assert_array_equal(model.coef_path_[0], 0.2)
    assert ((model.coef_path_ >= 0.2) & (model.coef_path_ <= 0.4)).all()


def test_a_path_is_in_the_units_of_the_target(data):
    X, y = data
    model = make_model("skgd", target_bounds=(10.0, 30.0), clip="auto").fit(X, 20 + 10 * y)
    assert model.intercept_path_[0] == 20
    assert_array_equal(model.coef_path_[-1], model.coef_)


@pytest.mark.parametrize("solver", [SGD(averaging="last"), SVRG(averaging="last")])
def test_a_path_of_several_classes_has_their_axis(data, solver):
    y = np.digitize(data[1], [-0.2, 0.2])
    model = DPLinearClassifier("multinomial", solver=solver, coef_path=True, max_iter=4)
    model.fit(data[0], y)
    assert model.coef_path_.shape[1:] == (3, N_FEATURES)
    assert model.intercept_path_.shape == (len(model.coef_path_), 3)
    assert_array_equal(model.coef_path_[-1], model.coef_)
    assert_array_equal(model.intercept_path_[-1], model.intercept_)


# --- plans ---------------------------------------------------------------------------------------


UPDATES = [
    # solver, parameters, max_iter, T = max(1, ceil(max_iter p' / b)) and its kin
    ("cd", {}, 1.0, P),
    ("cd", {}, 2.5, 15),
    ("cd", {}, 1e-9, 1),
    ("cd", {"fit_intercept": False}, 3, 15),
    ("gcd", {}, 2.5, 3),
    ("gcd", {"block_size": 2}, 2.5, 3),
    ("skgd", {}, 2.5, 3),
    ("skgd", {"sampling": "uniform"}, 2.5, 15),
    ("skgd", {"sampling": "block", "block_size": 4}, 2.5, 4),
    ("skgd", {"sampling": "nice"}, 2.5, 5),
    ("compgd", {}, 2.5, 3),
    ("compgd", {"sampling_rate": 0.25}, 2.5, 10),
    ("sgd", {}, 2.5, 25),
    ("sgd", {"sampling_rate": 0.3}, 1.0, 4),
    ("sgd", {"sampling_rate": 1.0}, 2.5, 3),
    ("svrg", {}, 2.0, 10),
    ("svrg", {}, 5.0, 25),
    ("svrg", {"n_inner": 7}, 4.0, 14),
    ("svrg", {"sampling_rate": 0.25}, 6.0, 12),
    ("frank-wolfe", {}, 2.5, 3),
]


@table(("solver", "params", "max_iter", "n_updates"), UPDATES)
def test_max_iter_counts_passes(data, solver, params, max_iter, n_updates):
    model = make_model(solver, **params, max_iter=max_iter)
    assert not model._plan(N_SAMPLES, N_FEATURES, 1).request.scales.n_choices
    counts = [r.count for r in model.planned_event(N_SAMPLES, N_FEATURES).releases]
    assert model.fit(*data).n_iter_ == n_updates
    if solver == "svrg":
        n_inner = params.get("n_inner", math.ceil(1 / params.get("sampling_rate", 0.1)))
        assert sorted(counts) == sorted([n_updates, math.ceil(n_updates / n_inner)])
    else:
        assert set(counts) == {n_updates * (params.get("block_size", 1) if solver == "gcd" else 1)}


@table("solver", ["cd", "gcd", "compgd", "svrg"])
def test_little_evidence_ruins_no_regression(solver):
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(200, 10)), rng.normal(size=10)
    y = X @ coef / np.linalg.norm(coef) + 0.7 * rng.normal(size=len(X))
    stated = {"feature_bounds": (-4, 4), "target_bounds": (-4.5, 4.5), "epsilon": 0.2}
    models = fits(DPLinearRegressor(solver=solver, delta=1e-6, **stated), X, y, 7)
    assert np.median([model.score(X, y) for model in models]) > -0.2


def test_long_steps_of_classes_are_stable_with_any_ridge(data):
    ridge = DPLinearClassifier(penalty="l2", alpha=1e3, solver="compgd", feature_bounds=(-4, 4))
    models = fits(ridge.set_params(classes=[False, True]), data[0], data[1] > 0, 3)
    assert max(np.abs(model.coef_).max() for model in models) < 1e-3
