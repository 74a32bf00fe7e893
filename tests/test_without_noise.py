"""Without noise "auto" is scikit-learn's own solver, where it has the objective; loops agree."""

import functools
import math

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn import linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_pinball_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version
from tables import table

from dpcd_sklearn import (
    DPGammaRegressor,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPPoissonRegressor,
    DPRidgeSkGD,
)
from dpcd_sklearn.inspection import plan
from dpcd_sklearn.losses import Huber, Quantile, Tweedie
from dpcd_sklearn.partitions import fit_partitions
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.solvers import CD

INF, N, P = math.inf, 240, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, P)) @ (np.eye(P) + 0.3 * RNG.normal(size=(P, P)))
X = (X * np.logspace(-1, 1, P) + np.linspace(-1, 1, P)) * (RNG.random((N, P)) < 0.7)
MARGIN = X @ np.array([1.0, -0.5, 0.0, 0.3, 0.0, 0.2]) - 0.4
Y = MARGIN + RNG.normal(size=N)
TARGETS = np.column_stack([Y, -2 * MARGIN + 3, X[:, 2]])
TWO = (MARGIN + RNG.logistic(size=N) > 0).astype(int)
THREE = np.argmax(MARGIN[:, np.newaxis] * [0.5, 0, -0.5] + RNG.gumbel(size=(N, 3)), axis=1)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 3.0], N)
STRENGTH, RATIO = 0.03, 0.4

LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": np.float32,
    "CSR": sparse.csr_array,
    "CSC of float32": lambda X: sparse.csc_matrix(X.astype(np.float32)),
}
# Coefficients are rounded to the dtype of X, 2^-24 of them, and what columns far from zero make of
# that is in the intercept.
TOLERANCES = {"C": 1e-6, "Fortran": 1e-6, "float32": 1e-5, "CSR": 1e-6, "CSC of float32": 1e-5}
# Left out are problems whose minimum is a limit, and those that scikit-learn has no solver for.
PENALTIES = {
    "squared": [None, "l2", "l1", "elasticnet"],
    "targets": [None, "l2", "l1"],
    "positive": ["l1"],
    "two": [None, "l2"],
    "three": [None, "l2"],
}
PROBLEMS = [(problem, penalty) for problem, of in PENALTIES.items() for penalty in of]
LOOPS = {"squared": "newton", "targets": "cd", "positive": "cd", "two": "newton", "three": "newton"}


def target_of(problem):
    return {"two": TWO, "three": THREE, "targets": TARGETS}.get(problem, Y)


def ours(problem, penalty, **params):
    """A generic estimator, but for `positive`, which presets alone have."""
    params = {"epsilon": INF, "tol": 1e-9} | params
    if problem == "positive":
        return DPLassoCD(STRENGTH, positive=True, **params)
    kind = DPLinearClassifier if problem in ("two", "three") else DPLinearRegressor
    alpha = {} if penalty is None else {"alpha": STRENGTH, "l1_ratio": RATIO}
    return kind(penalty=penalty, **alpha | params)


def theirs(problem, penalty, weight, **params):
    """scikit-learn's own estimator of the objective that a sum over N records has."""
    if problem in ("two", "three"):
        C = np.inf if penalty is None else 1 / (STRENGTH * N)
        exact = {"solver": "newton-cholesky", "tol": 1e-10}
        return linear_model.LogisticRegression(C=C, **exact, **params)
    if penalty is None:
        return linear_model.LinearRegression(**params)
    if penalty == "l2":
        return linear_model.Ridge(STRENGTH * N, **params)
    exact = {"alpha": STRENGTH * N / weight, "tol": 1e-13, "max_iter": 10**5}
    if penalty == "l1":
        return linear_model.Lasso(positive=problem == "positive", **exact, **params)
    return linear_model.ElasticNet(l1_ratio=RATIO, **exact, **params)


def assert_same(model, expected, tolerance):
    """Coefficients in the scales of columns; of a softmax the differences of intercepts."""
    scales = X.std(axis=0)
    found, known = model.coef_ * scales, expected.coef_ * scales
    assert found.shape == known.shape
    size = np.abs(known).max()
    assert_allclose(found, known, rtol=0, atol=tolerance * size)
    known = np.broadcast_to(expected.intercept_, len(np.atleast_2d(known)))
    intercept = np.ravel(model.intercept_)
    if len(known) > 2 and hasattr(model, "classes_"):
        intercept, known = intercept - intercept.mean(), known - known.mean()
    size = max(size, np.abs(known).max())
    assert_allclose(intercept, known, rtol=0, atol=tolerance * size)


# ---- the same minimum three times ----------------------------------------------------------------


@table("layout", LAYOUTS)
@table("weights", [None, WEIGHTS])
@table("fit_intercept", [True, False])
@table(("problem", "penalty"), PROBLEMS)
def test_auto_is_scikit_learns_estimator(problem, penalty, fit_intercept, weights, layout):
    rows, y = LAYOUTS[layout](X), target_of(problem)
    before = rows.copy(), y.copy()
    model = ours(problem, penalty, fit_intercept=fit_intercept).fit(rows, y, weights)
    has_own = not (
        sparse.issparse(rows) and problem in ("squared", "targets") and penalty in (None, "l2")
    )
    assert (model.solver_ == "scikit-learn") is has_own and model.n_iter_ >= 1
    assert model.coef_.dtype == rows.dtype
    weight = N if weights is None else weights.sum()
    expected = theirs(problem, penalty, weight, fit_intercept=fit_intercept)
    expected.fit(np.asarray((sparse.csr_array(rows)).toarray(), dtype=float), y, weights)
    assert_same(model, expected, TOLERANCES[layout] if has_own else 1e-5)
    assert_array_equal(y, before[1])
    assert (rows != before[0]).sum() == 0


@table("layout", ["C", "float32", "CSR"])
@table("fit_intercept", [True, False])
@table("weights", [None, WEIGHTS])
@table(("problem", "penalty"), PROBLEMS)
def test_a_named_solver_runs_its_own_loop_to_the_same_minimum(
    problem, penalty, weights, fit_intercept, layout
):
    rows, y = LAYOUTS[layout](X), target_of(problem)
    auto = ours(problem, penalty, fit_intercept=fit_intercept).fit(rows, y, weights)
    own = clone(auto).set_params(solver=LOOPS[problem], max_iter=1e5).fit(rows, y, weights)
    assert own.solver_ == LOOPS[problem]
    assert_same(own, auto, max(2e-5, TOLERANCES[layout]))


def test_presets_are_scikit_learns_with_their_own_parameters():
    logistic = DPLogisticGCD(0.2), linear_model.LogisticRegression(C=0.2, solver="newton-cholesky")
    for model, expected, y in (
        (DPLassoCD(0.05), linear_model.Lasso(0.05, tol=1e-12), Y),
        (DPRidgeSkGD(3.0), linear_model.Ridge(3.0), Y),
        (*logistic, TWO),
        (*logistic, THREE),
    ):
        assert model.set_params(epsilon=INF).fit(X, y).solver_ == "scikit-learn"
        assert_same(model, expected.fit(X, y), 1e-4)
        assert_allclose(model.to_sklearn().coef_, model.coef_)


def test_classes_have_weights_and_some_have_no_record():
    weights = {0: 1.0, 1: 0.2, 2: 2.0}
    model = ours("three", "l2", classes=[0, 1, 2], class_weight=weights).fit(X, THREE)
    expected = theirs("three", "l2", N, class_weight=weights).fit(X, THREE)
    assert_same(model, expected, 1e-6)
    for rows in (X, sparse.csr_array(X)):
        model = ours("three", "l2", classes=[0, 1, 2, 3], fit_intercept=False, tol=1e-7)
        assert model.fit(rows, THREE).solver_ == "scikit-learn"
        own = clone(model).set_params(solver="skgd").fit(rows, THREE)
        assert model.coef_.shape == (4, P)
        assert_allclose(model.predict_proba(X), own.predict_proba(X), atol=1e-4)
    for only in (0, 1):
        model = ours("two", "l2", classes=[0, 1], tol=1e-4).fit(X, np.full(N, only))
        assert (model.predict(X) == only).all()


def test_a_public_number_of_records_divides_the_sums():
    stated = {"neighboring": "add_remove", "n_public": 2 * N, "delta": 1e-6}
    for problem, penalty in (("squared", "l1"), ("squared", "l2"), ("two", "l2")):
        y = target_of(problem)
        found = ours(problem, penalty, **stated).fit(X, y, WEIGHTS)
        expected = ours(problem, penalty, alpha=2 * STRENGTH).fit(X, y, WEIGHTS)
        assert_same(found, expected, 1e-6)


def test_raw_columns_have_the_minimum_too():
    """Columns from 1e-2 to 1e3 and one that is constant: LBFGS would end far from the minimum."""
    raw = np.column_stack([X * np.logspace(-1.5, 2, P), np.full(N, 0.1)])
    for y in (TWO, THREE):
        model = DPLinearClassifier(penalty="l2", alpha=1e-4, epsilon=INF).fit(raw, y)
        own = clone(model).set_params(solver="newton", tol=1e-10, max_iter=1e5).fit(raw, y)
        assert model.solver_ == "scikit-learn"
        assert_allclose(model.predict_proba(raw), own.predict_proba(raw), atol=1e-5)
    model = DPLinearClassifier(epsilon=INF, tol=1e-5)  # no Newton equation has the constant one
    assert model.fit(raw, TWO).solver_ == "skgd"
    for penalty in (None, "l2", "l1"):
        alpha = {} if penalty is None else {"alpha": 1e-4}
        model = DPLinearRegressor(penalty=penalty, epsilon=INF, tol=1e-9, **alpha)
        expected = clone(model).set_params(solver="newton").fit(raw, Y).predict(raw)
        for rows in (raw, sparse.csr_array(raw)):
            assert_allclose(model.fit(rows, Y).predict(rows), expected, atol=1e-4)


RATES = np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])
COUNTS = np.random.default_rng(5).poisson(RATES) + 0.0
WITH_A_LOG_LINK = {
    "poisson": (COUNTS, linear_model.PoissonRegressor),
    "gamma": (COUNTS + RATES, linear_model.GammaRegressor),
    Tweedie(1.5): (COUNTS, functools.partial(linear_model.TweedieRegressor, power=1.5)),
}


@table("weighted", [False, True])
@table("alpha", [0.0, 0.1])
@table("loss", WITH_A_LOG_LINK)
def test_log_links_are_those_of_scikit_learn(loss, alpha, weighted):
    y, plain = WITH_A_LOG_LINK[loss]
    weights = np.random.default_rng(6).uniform(0.5, 2, N) if weighted else None
    strength = alpha * N / weights.sum() if weighted else alpha
    expected = plain(alpha=strength, solver="newton-cholesky", tol=1e-10).fit(X, y, weights)
    for solver in ("auto", "newton", "skgd", "cd"):
        model = DPLinearRegressor(loss, penalty="l2", alpha=alpha, epsilon=INF, solver=solver)
        model.set_params(tol=1e-8).fit(X, y, weights)
        assert (model.solver_ == "scikit-learn") == (solver == "auto")
        assert_allclose(model.coef_, expected.coef_, rtol=1e-5, atol=1e-5)
        assert_allclose(model.predict(X), expected.predict(X), rtol=1e-5)
        assert model.score(X, y, weights) == pytest.approx(expected.score(X, y, weights), abs=1e-5)
    assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)


@table(("model", "power"), [(DPPoissonRegressor, 1.0), (DPGammaRegressor, 2.0),
                            (functools.partial(DPLinearRegressor, "tweedie"), 1.5)])  # fmt: skip
def test_an_offset_is_added_to_the_margins(model, power):
    rng = np.random.default_rng(7)
    offset, y = rng.normal(size=N), COUNTS + (power == 2)
    Z = np.column_stack([X, np.ones(N)])

    def objective(w):  # half the mean unit deviance, as statsmodels and glum have it
        m = Z @ w + offset
        found = {1.0: np.exp(m) - y * m, 2.0: m + y * np.exp(-m)}
        return found.get(power, 2 * np.exp(m / 2) + 2 * y * np.exp(-m / 2)).mean()

    expected = minimize(objective, np.zeros(P + 1), tol=1e-12).x
    model = model(alpha=0.0, epsilon=INF, tol=1e-9).fit(X, y, offset=offset)
    assert_allclose(np.append(model.coef_, model.intercept_), expected, atol=1e-4)
    counts = np.exp(Z @ expected + offset)
    assert_allclose(model.predict(X, offset=offset), counts, rtol=1e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), clone(model).set_fit_request(offset=True))
        routed.fit(X, y, offset=offset)
    assert_allclose(routed.predict(X), model.predict(X), rtol=1e-3)


@table("model", [DPPoissonRegressor(), DPGammaRegressor(target_bounds=(0, 9))])
def test_a_plan_makes_up_targets_that_the_loss_has(model):
    assert "on made-up records" in str(plan(model.set_params(epsilon=5.0), 500, 2))


def test_a_quantile_is_that_of_scikit_learn_and_its_width_goes_to_zero():
    expected = linear_model.QuantileRegressor(quantile=0.8, alpha=0.01).fit(X, Y)
    stated = {"penalty": "l1", "alpha": 0.01, "epsilon": INF}
    model = DPLinearRegressor(Quantile(0.8), **stated).fit(X, Y)
    assert model.solver_ == "scikit-learn"
    assert_allclose(model.coef_, expected.coef_, atol=1e-9)

    def objective(model):
        loss = mean_pinball_loss(Y, model.predict(X), alpha=0.8)
        return loss + 0.01 * np.abs(model.coef_).sum()

    excess = []
    for width in (1.0, 0.1):
        model = DPLinearRegressor(Quantile(0.8, width), solver="cd", **stated).fit(X, Y)
        excess.append(objective(model) - objective(expected))
    assert 0 <= excess[1] < 0.2 * excess[0] and excess[1] < 0.05 * 0.1


# ---- what keeps the loops ------------------------------------------------------------------------

LASTING = {
    "a huber loss": DPLinearRegressor(Huber(1.0)),
    "a logistic loss with an l1 penalty": DPLinearClassifier(penalty="l1", alpha=0.01),
    "a lasso of classes": DPLogisticGCD(l1_ratio=0.5),
    "a ridge that is not negative": DPRidgeSkGD(positive=True),
    "a box": DPLinearRegressor(penalty=Box(-1, 1)),
    "bounds": DPLinearRegressor(penalty="nonnegative"),
    "a ball": DPLinearRegressor(constraint="l2_ball"),
    "a penalised intercept": DPLinearRegressor(penalty="l2", penalize_intercept=True),
    "passes": DPRidgeSkGD(max_iter=1e4),
    "a path": DPRidgeSkGD(coef_path=True),
    "a start": DPRidgeSkGD(warm_start=True),
    "an inference": DPLinearRegressor(inference=True),
    "a solver": DPRidgeSkGD(solver="cd"),
    "a solver with parameters": DPRidgeSkGD(solver=CD("importance")),
    "parameters of a preset": DPLassoCD(0.1, sampling="importance"),
}


@table(("why", "model"), LASTING.items())
def test_what_asks_for_more_has_a_loop(why, model):
    model = clone(model).set_params(epsilon=INF, tol=1e-4)
    y = TWO if hasattr(model, "classes") else Y
    assert model.fit(X, y).solver_ != "scikit-learn"
    assert model.privacy_event_ == model.planned_event(N, P)


def test_long_indices_are_made_short():
    for layout in (sparse.csr_array, sparse.csc_matrix):
        rows = layout(X)
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        for model, y in ((DPLassoCD(0.05), Y), (DPLogisticGCD(), TWO), (DPLogisticGCD(), THREE)):
            short = model.set_params(epsilon=INF).fit(layout(X), y).coef_
            assert_array_equal(model.fit(rows, y).coef_, short)
            assert model.solver_ == "scikit-learn" and rows.indices.dtype == np.int64


def test_columns_far_apart_have_a_loop():
    far = X * np.logspace(-5, 5, P)
    lasso, classifier = DPLassoCD(1e-9), DPLinearClassifier()
    for model, y, shape in (
        (lasso, Y, (P,)),
        (lasso, TARGETS, (3, P)),
        (classifier, TWO, (1, P)),
    ):
        model.set_params(epsilon=INF, tol=1e-4).fit(far, y)
        assert model.solver_ in ("newton", "skgd") and model.coef_.shape == shape


def test_noise_a_map_partitions_and_callbacks_have_a_loop(tmp_path):
    assert DPRidgeSkGD(epsilon=1e6, delta=0.1).fit(X, Y).solver_ != "scikit-learn"
    stored = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    stored[:] = X
    auto = DPRidgeSkGD(epsilon=INF, tol=1e-9).fit(X, Y)
    parts = [(0, X[:99], Y[:99]), (1, X[99:], Y[99:])]
    run = functools.partial(_called, parts)
    loops = [clone(auto).fit(stored, Y), clone(auto).fit(stored[1:], Y[1:])]
    loops.append(fit_partitions(clone(auto), run))
    if parse_version(sklearn.__version__) >= parse_version("1.9"):
        loops.append(clone(auto).set_callbacks(_Listener()).fit(X, Y))
    for model in loops:
        assert model.solver_ == "newton"
        assert model.privacy_event_ == auto.privacy_event_
    for model in (loops[0], *loops[2:]):
        assert_same(model, auto, 1e-6)


def _called(parts, task):
    return [task(*part) for part in parts]


class _Listener:
    """A callback that does nothing."""

    def _nothing(self, *args, **kwargs):
        return None

    setup = teardown = on_fit_task_begin = on_fit_task_end = _nothing


# ---- what a fit says -----------------------------------------------------------------------------


def test_it_says_what_it_is_and_that_nothing_is_protected(capsys):
    bounds = {"feature_bounds": (-1e-3, 1e-3), "target_bounds": (-1, 1)}
    model = DPRidgeSkGD(epsilon=INF, verbose=1, **bounds).fit(X, TARGETS)
    assert capsys.readouterr().out == f"DPRidgeSkGD: {model.privacy_event_}\n"
    assert model.feature_bounds_ is None and model.noise_multiplier_ == 0 and model.clip_ == INF
    assert model.privacy_spent_.epsilon == INF
    assert model.privacy_event_ == model.planned_event(N, P, 3)
    assert_array_equal(model.target_bounds_, [[-1] * 3, [1] * 3])
    assert_allclose(model.predict(X), linear_model.Ridge().fit(X, TARGETS).predict(X))


def test_a_fit_that_does_not_arrive_says_so():
    collinear = np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]])
    parted = (X[:, 5] > 1).astype(int)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        DPLassoCD(1e-12, epsilon=INF, tol=1e-9).fit(1e3 * collinear, RNG.normal(size=N))
    model = DPLinearClassifier(epsilon=INF).fit(X, parted)  # no minimum, and small derivatives
    assert model.score(X, parted) == 1
