"""Fits with feature_scale="private": moments of features, what they cost, and M_j from them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from tables import table
from twins import EVERY_LAYOUT

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import FewRecordsWarning, UnknownScaleWarning
from dpcd_sklearn.plan import _release
from dpcd_sklearn.plan._solver_plan import SolverPlan
from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    GaussianEvent,
    Receipt,
    epsilon_of,
    gdp_mu,
    gdp_squared,
)
from dpcd_sklearn.privacy.mechanisms import Oracle, SmoothnessUnits
from dpcd_sklearn.privacy.mechanisms import _cell_sums as of_mechanisms
from dpcd_sklearn.privacy.mechanisms._cell_sums import (
    MOST_COLUMNS,
    squares_sensitivity,
    units_of_cells,
)
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import SGD
from dpcd_sklearn.testing import Recording, ReproducibleNoise

RELATIONS = ["replace_one", "add_remove"]
N, P, DELTA = 4000, 3, 1e-6
RNG = np.random.default_rng(0)
X = RNG.normal([0.0, 5.0, -5.0], [1.0, 0.1, 2.0], (N, P)).clip(-20, 20)
MARGIN = (X - [0.0, 5.0, -5.0]) / [1.0, 0.1, 2.0] @ [0.5, -0.3, 0.2]
Y = np.clip(MARGIN / 3, -1, 1)
LABELS = (MARGIN > 0).astype(int)
THREE = np.digitize(MARGIN, [-0.5, 0.5])
LOOSE = {"feature_bounds": (-20, 20), "feature_scale": "private", "delta": DELTA}
TARGET = {"target_bounds": (-1, 1)}
BALL = {"constraint": "l1_ball", "penalty": None, "fit_intercept": False}
MODELS = {
    "cd": (DPLassoCD(alpha=1e-4, **TARGET), Y),
    "importance": (DPLassoCD(alpha=1e-4, sampling="importance", **TARGET), Y),
    "skgd": (DPRidgeSkGD(**TARGET), Y),
    "blocks": (DPRidgeSkGD(sampling="block", block_size=2, **TARGET), Y),
    "gcd": (DPLogisticGCD(classes=[0, 1]), LABELS),
    "sgd": (DPLinearRegressor(solver=SGD(sampling_rate=1.0), **TARGET), Y),
    "batches": (DPLinearRegressor(solver="sgd", **TARGET), Y),
    "svrg": (DPLinearRegressor(solver="svrg", **TARGET), Y),
    "compgd": (DPLinearRegressor(solver="compgd", penalty=None, **TARGET), Y),
    "frank-wolfe": (DPLinearRegressor(solver="frank-wolfe", **BALL, **TARGET), Y),
    "softmax": (DPLinearClassifier(solver="skgd", classes=[0, 1, 2]), THREE),
    "softmax in coordinates": (DPLinearClassifier(solver="cd", classes=[0, 1, 2]), THREE),
    "targets": (DPLinearRegressor(solver="cd", **TARGET), np.column_stack([Y, -Y])),
    "found target": (DPLinearRegressor(solver="skgd"), 100 * Y),
    "inference": (DPRidgeSkGD(inference=True, solver="skgd", **TARGET), Y),
}
every_model = pytest.mark.parametrize("name", MODELS)
RIDGE = DPRidgeSkGD(max_iter=3, **TARGET, **LOOSE)


def model_of(name, **params):
    model, y = MODELS[name]
    model = clone(model).set_params(**LOOSE | {"max_iter": 3} | params)
    return model, y


def plan_of(model, y):
    n_outputs = y.shape[1] if np.ndim(y) > 1 else getattr(model, "_stated_outputs", int)(1)
    return model._plan(len(y), P, n_outputs)


# ---- the price -----------------------------------------------------------------------------------


@every_model
@table("epsilon", [1.0, 8.0])
@table("neighboring", RELATIONS)
def test_mean_squares_have_a_share_of_a_budget_that_is_kept(name, epsilon, neighboring):
    params = {"n_public": N} if neighboring == "add_remove" else {}
    model, y = model_of(name, epsilon=epsilon, neighboring=neighboring, **params)
    plan = plan_of(model, y)
    share, mu = plan.request.smoothness_share, gdp_mu(epsilon, DELTA)
    assert 0.01 <= share <= 0.1
    (squares,) = plan.part_of("smoothness").releases
    assert squares.count == 1 and isinstance(squares, GaussianEvent)
    assert 1 / squares.noise_multiplier**2 == pytest.approx(share * mu**2, rel=1e-9)
    assert plan.event.releases.count(squares) == 1  # one for all outputs
    told = epsilon_of(plan.event, DELTA)
    assert 0.98 * epsilon < told <= epsilon
    if (squared := gdp_squared(plan.event)) is not None:  # Gaussians alone: exactly
        assert squared == pytest.approx(mu**2, rel=1e-5) and squared <= mu**2
    without = plan_of(clone(model).set_params(feature_scale=1.0), y)
    assert without.part_of("smoothness") is None
    left, left_without = plan.request.share_left, without.request.share_left
    assert left == pytest.approx(left_without - share)
    assert plan.request.mu**2 / left == pytest.approx(without.request.mu**2 / left_without)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "params",
    [
        {"epsilon": 0.01},  # n μ sqrt(0.1) is below 20 sqrt(p)
        {"epsilon": math.inf},
        {"neighboring": "add_remove", "n_public": 50},
    ],
    ids=str,
)
def test_nothing_is_released_where_it_has_no_use_or_is_not_affordable(params):
    model = clone(RIDGE).set_params(random_state=ReproducibleNoise(0), **params)
    plain = clone(model).set_params(feature_scale=None, solver="skgd")
    plan = plan_of(model, Y)
    assert plan.part_of("smoothness") is None and plan.event == plan_of(plain, Y).event
    assert_array_equal(model.fit(X, Y).coef_, plain.fit(X, Y).coef_)


def test_more_columns_than_are_held_are_not_looked_at():
    model = DPRidgeSkGD(epsilon=50.0, **LOOSE, **TARGET)
    shares = [
        model._plan(10**7, p, 1).request.smoothness_share for p in (MOST_COLUMNS, MOST_COLUMNS + 1)
    ]
    assert shares[0] > 0 == shares[1]


# ---- M_j -----------------------------------------------------------------------------------------


def plan_of_fit(model, X, y, **fit):
    """The plan in found scales."""
    tape = Recording(0)
    model.set_params(random_state=tape).fit(X, y, **fit)
    return tape.plan


@every_model
def test_smoothness_follows_from_what_was_released_and_from_nothing_else(name, monkeypatch):
    released = np.array([0.4, -1.0, 7.0]), np.array([0.6, 0.0, -2.0])  # some are but noise

    class Told(Oracle):
        def release(self, *ends):
            if not isinstance(self._units, SmoothnessUnits):
                return super().release(*ends)
            return released[0], released[1] if self._units.with_means else None

    monkeypatch.setattr(_release, "Oracle", Told)
    found, centers = [], []
    for records in (X, np.full_like(X, 20.0)):
        model, y = model_of(name)
        plan = plan_of_fit(model, records, y)
        found.append(plan.geometry.smoothness[:P])
        centers.append(plan.geometry.center)
    assert_array_equal(*found)
    assert_array_equal(*centers)
    means = np.array([0.6, 0.0, -1.0]) if plan.request.fit_intercept else np.zeros(P)
    assert_allclose(centers[0], 20 * means)
    z = plan.part_of("smoothness").releases[0].noise_multiplier
    noise = z * squares_sensitivity(P, plan.request.fit_intercept) / N * np.sqrt(1 + 16 * means**2)
    used = np.clip(released[0] - means**2 + 2 * noise, noise, 1.0)
    loss = plan.request.loss[0] if name == "targets" else plan.request.loss
    expected = loss.curvature * 400 * used
    if name == "frank-wolfe":  # which has one M
        expected = np.full(P, expected.max())
    assert_allclose(found[0], expected, rtol=1e-3)


def test_released_smoothness_is_that_of_the_records_and_rather_larger():
    model = DPLassoCD(epsilon=50.0, random_state=ReproducibleNoise(0), **LOOSE, **TARGET)
    plan = plan_of_fit(model, X, Y)
    center = plan.geometry.center
    found, true = plan.geometry.smoothness[:P], ((X - center) ** 2).mean(axis=0)
    noise = 400 * plan.part_of("smoothness").releases[0].noise_multiplier * math.sqrt(2 * P) / N
    assert (found >= true).all() and (found <= true + 5 * noise).all()
    assert_allclose(center, X.mean(axis=0), atol=10 * noise / 20)
    weights = np.linspace(0.5, 1.5, N)
    assert_array_equal(
        plan_of_fit(clone(model), X, Y, sample_weight=weights).geometry.smoothness[:P], found
    )


@pytest.mark.parametrize(
    "params",
    [{"row_norm_bound": 30.0}, {"penalize_intercept": True}, {"fit_intercept": False}],
    ids=str,
)
def test_records_are_not_moved_where_no_free_intercept_makes_it_good(params):
    model = clone(RIDGE)
    if "penalize_intercept" in params:  # DPRidgeSkGD penalizes none
        model = DPLinearRegressor(penalty="l2", solver="skgd", max_iter=3, **LOOSE, **TARGET)
    plan = plan_of_fit(model.set_params(epsilon=50.0, **params), X, Y)
    geometry = plan.geometry
    assert plan.request.means is None and not geometry.center.any()
    assert (geometry.smoothness[:P] < 50).all()  # of 400
    if "row_norm_bound" in params:
        assert geometry.largest_square == pytest.approx(900 / geometry.smoothness[:P].min() + 1)


def test_loose_bounds_cost_descents_little():
    """R² of loose bounds is far below that of M_j from released mean squares."""
    wide = {"feature_bounds": (-100, 100), "epsilon": 5.0, "solver": "cd"}
    model = DPLassoCD(alpha=1e-5, delta=DELTA, **wide, **TARGET)
    Z = (X - [0.0, 5.0, -5.0]) / [1.0, 0.1, 2.0]
    plain = clone(model).set_params(feature_scale=100.0).fit(Z, Y).score(Z, Y)
    ours = model.set_params(feature_scale="private").fit(Z, Y).score(Z, Y)
    assert ours > plain + 0.4


def test_what_does_not_go_with_other_parameters_leaves_the_bounds(monkeypatch):
    """Paid for is carried out: greedy scores of M_j that the plan did not know may be too large."""
    nothing = np.full(P, -1.0), np.zeros(P)
    monkeypatch.setattr(SmoothnessUnits, "decode", lambda *_: nothing)
    accountant = PrivacyAccountant(1000.0, DELTA)
    model = DPLinearRegressor(
        solver="gcd", penalty="l1", epsilon=1000.0, accountant=accountant, **LOOSE, **TARGET
    )
    model.set_params(alpha=_most_alpha(model))
    with pytest.warns(UnknownScaleWarning, match="stated bounds"):
        model.fit(X, Y)
    assert len(accountant.entries()) == 1
    with pytest.warns(UnknownScaleWarning, match="stated bounds"):
        plan = plan_of_fit(clone(model).set_params(accountant=None), X, Y)
    assert_allclose(plan.geometry.smoothness[:P], 400.0)


def _most_alpha(model):
    """The largest power of two that a plan takes."""
    alpha = 1.0
    while True:
        try:
            clone(model).set_params(alpha=2 * alpha, accountant=None).planned_event(N, P)
        except ValueError:
            return alpha
        alpha *= 2


@table(
    ("model", "message"),
    [
        (DPRidgeSkGD(feature_scale="private"), "needs feature_bounds"),
        (DPRidgeSkGD(feature_scale="private", epsilon=math.inf), "needs feature_bounds"),
        (DPRidgeSkGD(feature_scale="private", row_norm_bound=3.0), "needs feature_bounds"),
        (DPRidgeSkGD(feature_scale="public", feature_bounds=(-1, 1)), "feature_scale"),
        (DPRidgeSkGD(feature_scale=["private"] * P, feature_bounds=(-1, 1)), "feature_scale"),
        (DPLinearRegressor(solver="newton", **LOOSE), "needs a descent"),
        (DPLinearRegressor(inference=True, **LOOSE), "needs a descent"),
        (DPRidgeSkGD(solver="newton", **LOOSE), "needs a descent"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_charge(model, message):
    accountant = PrivacyAccountant(10.0, 1e-3, testing=True)
    model = clone(model).set_params(accountant=accountant)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X, Y)
    assert accountant.entries() == [] and not hasattr(model, "coef_")


def test_auto_takes_a_descent():
    for model in (DPLinearRegressor(**LOOSE), DPRidgeSkGD(**LOOSE), DPLassoCD(**LOOSE)):
        plain = clone(model).set_params(feature_scale=None)._plan(10**6, P, 1)
        assert type(plain).__name__ == "NewtonPlan"
        assert type(model._plan(10**6, P, 1)).__name__ != "NewtonPlan"


# --- the mean row of classifiers whose features have one scale ------------------------------------


def sizes(n=500, p=20, seed=0):
    """Positive columns of which the classes have other sizes: all act as an intercept together."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0, 0.3, (n, 1))
    X = size * rng.lognormal(0, 0.1, (n, p)) * 10.0 ** rng.uniform(-2, 3, p)
    return X, (size[:, 0] < 1).astype(int)


@pytest.fixture
def centers(monkeypatch):
    """Scales of the columns, as fits saw them."""
    found, located = [], SolverPlan.located

    def watch(self, *args):
        plan = located(self, *args)
        found.append(plan.geometry.center)
        return plan

    monkeypatch.setattr(SolverPlan, "located", watch)
    return found


def test_one_scale_has_a_centre_that_is_paid_for_in_the_same_event(centers):
    X, y = sizes(p=30)
    model = DPLinearClassifier(epsilon=1.0, classes=[0, 1])
    plan = model._plan(*X.shape, 1)
    assert plan.request.scales.features == "rows"
    share = plan.request.smoothness_share
    assert share > 0 and plan.part_of("smoothness").releases[0].count == 1
    assert epsilon_of(plan.event, 1 / len(X) ** 2) <= 1.0
    means = X.mean(axis=0)
    for _ in range(9):
        model.fit(X, y)
        assert model.privacy_event_ == plan.event == model.planned_event(*X.shape)
        lo, hi = model.feature_bounds_
        assert (hi == 2 * model.row_norm_bound_).all() and (lo == -hi).all()
    assert 0.3 < np.median(centers, axis=0)[means.argmax()] / means.max() < 2
    for params in ({"fit_intercept": False}, {"feature_scale": 1.0}, {"row_norm_bound": 1.0}):
        other = clone(model).set_params(**params)._plan(*X.shape, 1)
        assert other.part_of("smoothness") is None
    assert clone(model)._plan(*X.shape, 1, sparse=True).part_of("smoothness") is None


def test_rare_amounts_ruin_no_model_of_one_scale():
    # a median row holds none of them: uncut, they sent predictions to either end of the target
    rng, model = np.random.default_rng(0), DPLinearRegressor(epsilon=0.3)
    X = rng.normal(size=(1_000, 10))
    X[:, 0] = np.where(rng.random(1_000) < 0.75, 0.0, 1e4 * np.exp(rng.normal(size=1_000)))
    y = X[:, 1:].sum(axis=1) + rng.normal(size=1_000)
    scores = [model.fit(X, y).score(X, y) for _ in range(30)]
    assert model.row_norm_bound_ is not None and np.quantile(scores, 0.1) > 0


@pytest.mark.slow
def test_rankings_are_not_inverted_where_columns_are_positive():
    found = []
    for seed in range(20):
        X, y = sizes(seed=seed)
        model = DPLinearClassifier(epsilon=1.0, classes=[0, 1]).fit(X, y)
        found.append(roc_auc_score(y, model.decision_function(X)))
    assert np.median(found) > 0.8 and np.mean(np.less(found, 0.45)) <= 0.05


def test_without_a_mean_row_one_scale_tells_of_nothing():
    X, y = sizes(150, 60)
    model = DPLinearClassifier(epsilon=0.8, classes=[0, 1])
    request = model._plan(*X.shape, 1).request
    assert request.scales.features == "rows" and not request.smoothness_share
    with pytest.warns(FewRecordsWarning, match="no better than"):
        model.fit(X, y)
    assert not model.coef_.any()


def units_of(p, n, z=2.0, neighboring="replace_one", n_normalizer=None, with_means=True):
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    return SmoothnessUnits(
        event,
        n_columns=p,
        n_samples=n,
        n_normalizer=n_normalizer or n,
        with_means=with_means,
    )


def oracle_of(X, key=None, **options):
    units = units_of(X.shape[1], X.shape[0], **options)
    return Oracle(Receipt(units.event, None), units, LocalPlace(X), key=key)


both_ways = pytest.mark.parametrize("with_means", [True, False])


@both_ways
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_numpy_and_equal_in_every_layout(dtype, with_means):
    rng, key = np.random.default_rng(0), bytes(range(32))
    X = rng.normal(size=(700, 4)).astype(dtype) * (rng.random((700, 4)) < 0.5)
    X[0] = 1e30  # far outside
    lo, hi = np.array([-3.0, -1.0, -0.5, 0.0]), np.array([3.0, 5.0, 0.25, 0.0])
    center, half_width = np.array([0.0, 2.0, 0.0, 0.0]), np.array([3.0, 3.0, 0.5, 1.0])
    units = units_of(4, 700, with_means=with_means)
    width = np.where(hi > lo, hi - lo, 1.0)
    cells = np.clip(np.floor((X - lo) / width * 256), 0, 255)
    numbers = np.clip((lo + (cells + 0.5) / 256 * (hi - lo) - center) / half_width, -1, 1)
    sums = [np.rint(units.units * numbers**2).sum(axis=0)]
    sums += [np.rint(units.units * numbers / 2).sum(axis=0)] if with_means else []
    noise = NoiseSource(key).gaussians(4 * len(sums), units.bits).reshape(len(sums), 4)
    expected = (np.array(sums) + noise + 0.5) / units.units / 700
    for make in EVERY_LAYOUT.values():
        oracle = oracle_of(make(X), key, with_means=with_means)
        squares, means = oracle.release(lo, hi, center, half_width)
        assert_array_equal(squares, expected[0])
        if with_means:
            assert_array_equal(means, 2 * expected[1])
        else:
            assert means is None
    plain = (np.clip(X, lo, hi) - center) / half_width
    assert_allclose(sums[0] / units.units / 700, (plain**2).mean(axis=0), atol=0.01)
    if with_means:
        assert_allclose(2 * sums[1] / units.units / 700, plain.mean(axis=0), atol=0.01)


@settings(max_examples=100, deadline=None)
@given(
    ends=st.tuples(*2 * [st.floats(-1e9, 1e9)]).map(sorted),
    center=st.floats(-1e9, 1e9),
    half_width=st.floats(0.0, 1e9),
    x=st.floats(allow_nan=False, allow_infinity=False),
    most=st.integers(1, 2**24),
)
def test_no_record_counts_for_more_than_it_may(ends, center, half_width, x, most):
    lo, hi, center, half_width = (np.array([float(v)]) for v in (*ends, center, half_width))
    squares, halves = units_of_cells(lo, hi, center, half_width, most)
    assert squares.shape == halves.shape == (1, 256) and squares.dtype == halves.dtype == np.int64
    assert squares.min() >= 0 and squares.max() <= most and np.abs(halves).max() <= (most + 1) / 2
    apart = squares - squares.T, halves - halves.T  # of any two records
    assert np.abs(apart[0]).max() <= most * squares_sensitivity(1, False)
    longest = most * squares_sensitivity(1, True) + math.sqrt(2)
    assert (apart[0] ** 2 + apart[1] ** 2).max() <= longest**2
    edges = of_mechanisms.edges_of_cells(lo, hi)
    counts = LocalPlace(np.array([[x]])).counts("features", edges=edges)
    assert counts.sum() == counts.max() == 1  # in one cell, also of a column without width


@table("neighboring", RELATIONS)
@table("p", [1, 3, 122, MOST_COLUMNS])
@table("n", [2, 10**4, 2**28, 2**40])
@table("z", [0.05, 3.0, 1e4])
@both_ways
def test_noise_covers_the_sensitivity_of_integers(neighboring, p, n, z, with_means):
    units = units_of(p, min(n, 2**28), z, neighboring, n_normalizer=n, with_means=with_means)
    most = math.sqrt(1.28615 * p) * units.units + math.sqrt(2 * p)
    most = most if with_means else math.sqrt(p) * units.units
    assert 2.0**units.bits >= z * most
    assert min(n, 2**28) * units.units <= 2.0**52
    assert units.noise_std == pytest.approx(z * most / units.units / n, rel=0.01 + 1 / units.units)
