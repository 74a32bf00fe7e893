"""Without noise every solver, loss and penalty ends at the optimum of an independent solver.

The whole product of solvers, losses, penalties and constraints is run: what makes sense by the
table here converges, what does not is refused with the names of the solvers that work.
"""

import functools
import itertools
import math
import re

import numpy as np
import pytest
from flat import flat
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.linear_model import HuberRegressor, Ridge
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, GroupLasso, L1Ball, L2Ball, Monotonic
from dpcd_sklearn.testing import ReproducibleNoise

N_SAMPLES, N_FEATURES, N_CLASSES = 120, 5, 3
THRESHOLD = 1.0  # of the Huber loss: a third of the residuals at the optimum are longer

SOLVERS = ["cd", "gcd", "skgd", "compgd", "sgd", "svrg", "frank-wolfe", "newton"]
RIDGE_SOLVERS = [solver for solver in SOLVERS if solver != "frank-wolfe"]
LOSSES = ["squared", "huber", "logistic", "multinomial"]
PENALTIES = {
    None: {},
    "l1": {"alpha": 0.05},
    "l2": {"alpha": 0.05},
    "elasticnet": {"alpha": 0.1, "l1_ratio": 0.5},
    "nonnegative": {},
    "box": {},
    "monotonic": {"alpha": 0.1, "l1_ratio": 0.5},
    "group_lasso": {"alpha": 0.1},
}
BOX, SIGNS, GROUPS = Box(-0.3, 0.4), [1, -1, 1, -1, 0], [[0, 3], [4, 2]]
OBJECTS = {"box": BOX, "monotonic": Monotonic(SIGNS), "group_lasso": GroupLasso(GROUPS)}
# Radii inside which no optimum lies, so that every constraint is felt.
CONSTRAINTS = {None: None, "l1_ball": L1Ball(0.7), "l2_ball": L2Ball(0.4)}


class Pairs:
    """A user's sampling: neighbouring coordinates."""

    block_size = 2

    def draw(self, generator, count):
        for first in generator.integers(N_FEATURES, size=count):
            yield np.array([first, first + 1])


VARIANTS = {
    "cd": [{"sampling": "uniform"}, {"sampling": "importance"}],
    "gcd": [{"rule": rule} for rule in ("gs-s", "gs-r", "gs-q")] + [{"block_size": 2}],
    "skgd": [
        {"sampling": sampling}
        for sampling in ("full", "uniform", "importance", "block", "block-importance", "nice")
    ]
    + [{"sampling": "block", "block_size": 4}, {"sampling": Pairs()}],
    "compgd": [{}, {"n_directions": 2}],
    "sgd": [{}, {"sampling_rate": 0.5}],
    "svrg": [{}, {"n_inner": 7}],
    "frank-wolfe": [{}],
    "newton": [{}],
}


def is_sensible(solver, loss, penalty, constraint):
    """The solvers' promise by itself: constraints need a projection or a vertex."""
    if loss == "multinomial" and solver in ("compgd", "frank-wolfe"):
        return False
    if penalty == "group_lasso" and solver not in ("sgd", "svrg"):
        return False
    if solver == "compgd":
        return penalty in (None, "l2")
    if solver == "frank-wolfe":
        return penalty is None and constraint == "l1_ball"
    return constraint is None


PRODUCT = [
    case
    for case in itertools.product(SOLVERS, LOSSES, PENALTIES, CONSTRAINTS)
    if case[1:3] != ("multinomial", "monotonic")  # no coefficient of several classes has a sign
]
# Further variants of a solver are run with every third pair of a loss and a penalty.
SENSIBLE = [
    (*case, variant)
    for case in PRODUCT
    if is_sensible(*case)
    for number, variant in enumerate(VARIANTS[case[0]])
    if number == 0 or (LOSSES.index(case[1]) + list(PENALTIES).index(case[2]) + number) % 3 == 0
]
SENSELESS = [case for case in PRODUCT if not is_sensible(*case)]

# A fit stops when a sweep moves no coefficient by more than tol = 1e-6 of the largest one. At a
# linear rate 1 - 1/k a sweep it is then within 1e-6 k of the optimum, relative to its size, and
# the objective, which is flat there, within (1e-6 k)^2 times a moderate condition number; k is
# below 1,000 for these problems (the slowest fits take 3,000 updates).
GAP = 1e-6
N_STEPS = 1000  # of the reference for groups, which reach its minimum to rounding


# --- the independent solver ----------------------------------------------------------------------


def make_problem():
    rng = np.random.default_rng(0)
    shape = np.eye(N_FEATURES) + 0.3 * rng.normal(size=(N_FEATURES, N_FEATURES))
    X = rng.normal(size=(N_SAMPLES, N_FEATURES)) @ shape
    X = X * np.logspace(-0.5, 0.5, N_FEATURES) + np.linspace(-1, 1, N_FEATURES)
    margin = X @ [1.0, -0.5, 0.0, 0.3, 0.0]
    classes = 0.5 * X @ rng.normal(size=(N_FEATURES, N_CLASSES))
    y = margin + 0.5 + 0.5 * rng.standard_t(2, size=N_SAMPLES)
    return X, {
        "squared": y,
        "huber": y,
        "logistic": (margin + rng.logistic(size=N_SAMPLES) > 0.3).astype(int),
        "multinomial": np.argmax(classes + rng.gumbel(size=classes.shape), axis=1),
    }


X, TARGETS = make_problem()


def loss_and_derivatives(loss, margins, y):
    """Mean loss of margins (n_samples, n_outputs), and its derivatives times n_samples."""
    if loss == "multinomial":
        chosen = np.eye(N_CLASSES)[y]
        return -(log_softmax(margins, axis=1) * chosen).sum(1).mean(), softmax(margins, 1) - chosen
    r = margins[:, 0] - y
    if loss == "squared":
        value, derivative = r**2 / 2, r
    elif loss == "huber":
        derivative = np.clip(r, -THRESHOLD, THRESHOLD)
        value = derivative * (r - derivative / 2)
    else:
        value, derivative = np.logaddexp(0, margins[:, 0]) - y * margins[:, 0], expit(margins[:, 0])
        derivative = derivative - y
    return value.mean(), derivative[:, np.newaxis]


class Reference:
    """The objective over (n_outputs, n_coordinates), the intercept last, and its minimum."""

    def __init__(self, loss, penalty, constraint=None, intercept="free"):
        self.loss, self.y = loss, TARGETS[loss]
        self.columns = X if intercept == "none" else np.column_stack([X, np.ones(N_SAMPLES)])
        n_outputs = N_CLASSES if loss == "multinomial" else 1
        self.shape = n_outputs, self.columns.shape[1]
        self.penalised = np.ones(self.shape)
        if intercept == "free":
            self.penalised[:, -1] = 0.0
        params = PENALTIES[penalty]
        alpha = params.get("alpha", 0.0)
        l1_ratio = {"l1": 1.0, "l2": 0.0}.get(penalty, params.get("l1_ratio", 0.0))
        self.l1, self.l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
        self.groups, self.between = [], alpha
        if penalty == "group_lasso":
            self.groups, self.l2 = GROUPS, 0.0
        signs = np.append(SIGNS, [0] * (self.shape[1] - N_FEATURES))
        walls = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        bounds = {"nonnegative": (0.0, np.inf), "box": (BOX.lo, BOX.hi), "monotonic": walls}
        bounds = bounds.get(penalty, (-np.inf, np.inf))
        self.lo, self.hi = (
            np.where(self.penalised > 0, b, s * np.inf)
            for b, s in zip(bounds, (-1, 1), strict=True)
        )
        self.constraint = constraint
        self.radius = getattr(CONSTRAINTS[constraint], "radius", None)
        self.start = self(np.zeros(self.shape))
        self.minimum = self(self.solve())

    def smooth(self, w):
        value, derivatives = loss_and_derivatives(self.loss, self.columns @ w.T, self.y)
        slope = self.l2 * self.penalised * w
        value += (slope * w).sum() / 2
        return value, derivatives.T @ self.columns / N_SAMPLES + slope

    def __call__(self, w):
        value = self.smooth(w)[0] + self.l1 * (self.penalised * np.abs(w)).sum()
        lengths = (self.lengths(w, group) * len(group) ** 0.5 for group in self.groups)
        return value + self.between * sum(map(np.sum, lengths))

    def is_feasible(self, w):
        """Up to rounding."""
        order = {"l1_ball": 1, "l2_ball": 2}.get(self.constraint)
        if order and np.linalg.norm((w * self.penalised).ravel(), order) > self.radius + 1e-12:
            return False
        return bool(((w >= self.lo - 1e-12) & (w <= self.hi + 1e-12)).all())

    def solve(self):
        """Split w = u - v with u, v >= 0 where |w| occurs: then everything is smooth."""
        if self.groups:
            return self.solve_grouped()
        split = self.l1 > 0 or self.constraint == "l1_ball"
        signs = [1.0, -1.0] if split else [1.0]
        weights = self.penalised.ravel()

        def joined(z):
            return np.tensordot(signs, z.reshape(-1, *self.shape), axes=1)

        def function(z):
            value, gradient = self.smooth(joined(z))
            l1 = np.tile(self.l1 * weights, len(signs)) if split else np.zeros_like(z)
            return value + l1 @ z, np.multiply.outer(signs, gradient).ravel() + l1

        size = len(signs) * weights.size
        bounds = list(zip(self.lo.ravel(), self.hi.ravel(), strict=True))
        if split:
            lo, hi = np.array(bounds).T
            bounds = list(itertools.product([0.0], [*np.fmax(hi, 0.0), *np.fmax(-lo, 0.0)]))
        start = np.zeros(size)
        if self.constraint is None:
            options = {"maxiter": 10**5, "maxfun": 10**6, "ftol": 0.0, "gtol": 1e-10}
            return joined(minimize(function, start, jac=True, bounds=bounds, options=options).x)
        sizes = np.tile(weights, len(signs))
        room = {
            "l1_ball": lambda z: self.radius - sizes @ z,
            "l2_ball": lambda z: self.radius**2 - np.sum(sizes * z * z),
        }[self.constraint]
        slope = {"l1_ball": lambda z: -sizes, "l2_ball": lambda z: -2 * sizes * z}
        inside = {"type": "ineq", "fun": room, "jac": slope[self.constraint]}
        options = {"maxiter": 1000, "ftol": 1e-14}
        found = minimize(
            function, start, jac=True, bounds=bounds, constraints=inside, method="SLSQP",
            options=options,
        )  # fmt: skip
        return joined(found.x)

    def solve_grouped(self):
        """Accelerated proximal gradient steps: each group is shortened, to zero where it is short.

        No loss is more curved than the squared one, whose curvature gives the step.
        """
        w = before = np.zeros(self.shape)
        step = N_SAMPLES / np.linalg.norm(self.columns, 2) ** 2
        for _ in range(N_STEPS):
            ahead = w + 0.95 * (w - before)
            before, w = w, ahead - step * self.smooth(ahead)[1]
            for group in self.groups:
                lengths = self.lengths(w, group)
                shorter = lengths - step * self.between * len(group) ** 0.5
                w[:, group] *= np.maximum(shorter, 0.0) / np.maximum(lengths, 1e-300)
        return w

    @staticmethod
    def lengths(w, group):
        return np.linalg.norm(w[:, group], axis=1, keepdims=True)

    def gap(self, model):
        """How far a fitted model is from the minimum, in shares of where the fit started."""
        w = np.atleast_2d(model.coef_)
        if self.shape[1] > N_FEATURES:
            w = np.column_stack([w, np.atleast_1d(model.intercept_)])
        assert self.is_feasible(w)
        return (self(w) - self.minimum) / (self.start - self.minimum)


reference = functools.cache(Reference)


def make_model(loss, penalty, constraint=None, **params):
    kind = DPLinearClassifier if loss in ("logistic", "multinomial") else DPLinearRegressor
    stated = {"loss": Huber(THRESHOLD) if loss == "huber" else loss}
    stated |= {"penalty": OBJECTS.get(penalty, penalty)}
    stated |= {"constraint": CONSTRAINTS[constraint], "epsilon": math.inf, "random_state": 0}
    return flat(kind, **stated | PENALTIES[penalty] | params)


def frank_wolfe_bound(problem, n_updates):
    """2 C_f / (T + 2) (Jaggi 2013), C_f <= the largest curvature times the squared diameter.

    What is measured is far below, 1e-5 at most: the optimum is inside a face of the ball.
    """
    curvature = {"squared": 1.0, "huber": 1.0, "logistic": 0.25}[problem.loss]
    widest = curvature * np.mean(problem.columns**2, axis=0).max()
    bound = 2 * widest * (2 * problem.radius) ** 2 / (n_updates + 2)
    return bound / (problem.start - problem.minimum)


# --- every combination that makes sense converges ------------------------------------------------


@table(("solver", "loss", "penalty", "constraint", "variant"), SENSIBLE)
def test_every_sensible_combination_reaches_the_optimum(
    solver, loss, penalty, constraint, variant, global_random_seed
):
    intercept = "none" if solver == "frank-wolfe" else "free"
    problem = reference(loss, penalty, constraint, intercept)
    seeded = {"random_state": ReproducibleNoise(global_random_seed), **variant}
    model = make_model(loss, penalty, constraint, solver=solver, **seeded)
    model.set_params(fit_intercept=intercept == "free")
    if solver == "frank-wolfe":
        with pytest.warns(match="raise max_iter or tol"):  # it is slow, and says so
            model.fit(X, problem.y)
        assert -1e-9 < problem.gap(model) < frank_wolfe_bound(problem, model.n_iter_) < 0.05
    else:
        model.fit(X, problem.y)
        assert -1e-9 < problem.gap(model) < GAP


@table("intercept", ["penalised", "none"])
@table(
    ("solver", "loss"), [case for case in itertools.product(SOLVERS, LOSSES) if
                         is_sensible(*case, None, None) or is_sensible(*case, None, "l1_ball")]
)  # fmt: skip
def test_penalised_and_absent_intercepts_reach_their_optimum(solver, loss, intercept):
    penalty, constraint = {
        "compgd": ("l2", "l2_ball"),
        "frank-wolfe": (None, "l1_ball"),
    }.get(solver, ("elasticnet", None))
    problem = reference(loss, penalty, constraint, intercept)
    model = make_model(loss, penalty, constraint, solver=solver)
    if solver == "frank-wolfe":
        model.set_params(tol=1e-3)
    model.set_params(fit_intercept=intercept != "none", penalize_intercept=True).fit(X, problem.y)
    bound = frank_wolfe_bound(problem, model.n_iter_) if solver == "frank-wolfe" else GAP
    assert -1e-9 < problem.gap(model) < bound


@pytest.mark.parametrize("solver", ["compgd", "frank-wolfe"])
def test_a_ball_that_holds_the_optimum_changes_nothing(solver):
    problem = reference("squared", None, None, "none")
    model = make_model("squared", None, "l1_ball", solver=solver, fit_intercept=False)
    model.set_params(constraint__radius=20.0)
    if solver == "frank-wolfe":  # its steps to far vertices fade slowly
        model.set_params(max_iter=1e6, tol=1e-4)
    gap = problem.gap(model.fit(X, problem.y))
    assert -1e-9 < gap < (1e-2 if solver == "frank-wolfe" else GAP)


@pytest.mark.parametrize("solver", RIDGE_SOLVERS)
def test_weights_are_repeated_records(solver):
    weights = np.arange(N_SAMPLES) % 3
    y = TARGETS["squared"]
    repeated = np.repeat(np.arange(N_SAMPLES), weights)
    model = make_model("squared", "l2", solver=solver, tol=1e-8)
    # sums are normalised by n, so weights are 1 on average where objectives are to be equal
    coef = model.fit(X, y, weights / weights.mean()).coef_
    assert_allclose(coef, model.fit(X[repeated], y[repeated]).coef_, rtol=1e-4, atol=1e-5)


# --- scikit-learn's solutions --------------------------------------------------------------------


def assert_same(model, expected):
    # ten times the movement of a last sweep, times the condition number of about 100
    scale = np.abs(expected.coef_).max()
    assert_allclose(np.ravel(model.coef_), np.ravel(expected.coef_), rtol=0, atol=1e-3 * scale)
    scale = max(scale, np.abs(expected.intercept_).max())
    assert_allclose(model.intercept_, expected.intercept_, rtol=0, atol=1e-3 * scale)


@table("alpha", [1e-6, 10.0, 1e4])
@table("solver", RIDGE_SOLVERS)
def test_a_ridge_of_any_strength_is_scikit_learns(solver, alpha):
    y = TARGETS["squared"]
    model = make_model("squared", "l2", solver=solver, alpha=alpha)
    assert_same(model.fit(X, y), Ridge(alpha * N_SAMPLES).fit(X, y))


@pytest.mark.parametrize("solver", RIDGE_SOLVERS)
def test_huber_regression_is_scikit_learns_at_the_scale_that_it_finds(solver):
    y = TARGETS["huber"]
    expected = HuberRegressor(epsilon=1.2, alpha=5.0, tol=1e-9, max_iter=1000).fit(X, y)
    # its loss is 2 / scale times ours at the threshold epsilon * scale
    model = make_model("huber", "l2", solver=solver)
    model.set_params(loss__threshold=1.2 * expected.scale_)
    assert_same(model.set_params(alpha=5.0 * expected.scale_ / N_SAMPLES).fit(X, y), expected)


@pytest.mark.parametrize("solver", RIDGE_SOLVERS)
def test_multinomial_regression_of_two_classes_is_logistic_for_every_solver(solver):
    y = TARGETS["logistic"]
    multinomial = make_model("multinomial", "l2", solver=solver).fit(X, y)
    assert_allclose(
        multinomial.coef_, make_model("logistic", "l2", solver=solver).fit(X, y).coef_, rtol=1e-12
    )


# --- every combination that does not make sense is refused ---------------------------------------


@table(("solver", "loss", "penalty", "constraint"), SENSELESS)
def test_every_senseless_combination_is_refused_and_names_the_solvers_that_work(
    solver, loss, penalty, constraint
):
    model = make_model(loss, penalty, constraint, solver=solver, epsilon=1.0)
    works = [name for name in SOLVERS if is_sensible(name, loss, penalty, constraint)]
    for intercept in (True, False):
        model.set_params(fit_intercept=intercept)
        with pytest.raises(ValueError, match=f"solver='{solver}' needs") as raised:
            model.planned_event(N_SAMPLES, N_FEATURES, N_CLASSES if loss == "multinomial" else 1)
        named = works
        if intercept and "frank-wolfe" in works and len(works) > 1:
            named = [name for name in works if name != "frank-wolfe"]  # which has no free intercept
        ending = f"work as it stands: {', '.join(named)}" if works else "change one of them"
        assert re.search(re.escape(ending) + "$", str(raised.value))


def test_the_tables_cover_the_product():
    assert len(PRODUCT) == 8 * (4 * 8 - 1) * 3
    assert len({case[:4] for case in SENSIBLE}) + len(SENSELESS) == len(PRODUCT)
    allowed = DPLinearRegressor._parameter_constraints
    assert set(SOLVERS) | {"auto"} == set(allowed["solver"][0].options)
    assert set(PENALTIES) == {None, *OBJECTS, *allowed["penalty"][1].options}
    assert set(CONSTRAINTS) == {None, *allowed["constraint"][1].options}


@table(("loss", "penalty", "constraint"), sorted({c[1:] for c in PRODUCT}, key=str))
def test_auto_solves_whatever_any_solver_can(loss, penalty, constraint):
    model = make_model(loss, penalty, constraint, epsilon=1.0, fit_intercept=False)
    sizes = N_SAMPLES, N_FEATURES, N_CLASSES if loss == "multinomial" else 1
    if any(is_sensible(solver, loss, penalty, constraint) for solver in SOLVERS):
        for epsilon in (0.01, 100.0, math.inf):  # the choice follows the signal
            model.set_params(epsilon=epsilon).planned_event(*sizes)
    else:
        with pytest.raises(ValueError, match="change one of them"):
            model.planned_event(*sizes)
