"""Margins as large as they deserve: drawn to what is known without features, by public numbers."""

import warnings

import numpy as np
import pytest
from flat import fits
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.metrics import log_loss
from tables import table

from dpcd_sklearn import (
    DPLinearClassifier,
    DPLinearRegressor,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.linear_model import _private_linear_model
from dpcd_sklearn.loops._problem import Tail
from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.plan import _shrinkage, _solver_plan
from dpcd_sklearn.plan._margin_scale import margin_scale
from dpcd_sklearn.solvers import SkGD
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings("ignore::dpcd_sklearn.exceptions.UnknownScaleWarning")


def records(n, p=8, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 5
    noise = rng.gumbel(size=(n, classes)) * 2
    scores = (X - 5) / X.std(axis=0) @ rng.standard_normal((p, classes)) + noise
    return X, scores.argmax(axis=1)


def pair(model, X, y, monkeypatch):
    """The model, and what it would be if nothing were shrunk."""
    model.set_params(random_state=ReproducibleNoise(0))
    with monkeypatch.context() as patched:
        patched.setattr(_private_linear_model, "shrunk", lambda plan, solution, start: solution)
        patched.setattr(_private_linear_model, "with_length", lambda *args: args[-2])
        plain = clone(model).fit(X, y)
    return model.fit(X, y), plain


@pytest.mark.parametrize("solver", ["auto", "cd", "gcd", "skgd", "sgd"])
@pytest.mark.parametrize("classes", [2, 4])
def test_margins_are_smaller_and_probabilities_better_where_noise_is_loud(
    classes, solver, monkeypatch
):
    X, y = records(400, classes=classes)
    model = DPLinearClassifier(epsilon=0.5, solver=solver, classes=range(classes))
    ours, plain = pair(model, X, y, monkeypatch)
    assert np.abs(ours.coef_).max() < 0.7 * np.abs(plain.coef_).max()
    losses = [log_loss(y, one.predict_proba(X), labels=range(classes)) for one in (ours, plain)]
    # without counts of classes their shares are taken to be alike
    assert losses[0] < max(losses[1], 1.2 * np.log(classes))


def noisy_labels(n, slope, classes=2, p=6, seed=0):
    """Records whose classes follow a logistic model of this slope."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    margins = slope * X[:, :classes]
    y = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    return X, y, margins


@pytest.mark.parametrize(("classes", "fault"), [(2, 1.5), (3, 1.12)])
@pytest.mark.parametrize("slope", [0.3, 0.7])
def test_a_narrow_clip_does_not_make_probabilities_too_sure(classes, fault, slope, monkeypatch):
    X, y, margins = noisy_labels(6_000, slope, classes)
    model = DPLinearClassifier(
        epsilon=1.0, feature_bounds=(-4, 4), classes=range(classes), solver="newton"
    )
    ours, plain = pair(model, X, y, monkeypatch)
    truth = margins - margins.mean(axis=1, keepdims=True)

    def slope_of(one):
        found = one.decision_function(X)
        found = np.column_stack((-found / 2, found / 2)) if classes == 2 else found
        return np.vdot(found, truth) / np.vdot(truth, truth)

    assert slope_of(plain) > fault  # what is mended
    assert 0.6 < slope_of(ours) < 1.4
    losses = [log_loss(y, one.predict_proba(X)) for one in (ours, plain)]
    assert losses[0] <= losses[1]
    assert losses[0] < log_loss(y, np.tile(np.bincount(y) / len(y), (len(y), 1)))


@pytest.mark.parametrize("factor", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_scale_of_margins_follows_from_a_clipped_gradient(classes, factor):
    X, y, margins = noisy_labels(40_000, 1.0, classes)
    loss, clip = LOSSES["logistic" if classes == 2 else "multinomial"](), 0.1
    margins -= margins.mean(axis=1, keepdims=True)
    residual = softmax(factor * margins, axis=1) - np.eye(classes)[y]
    if classes == 2:  # of the second class alone
        margins, residual = 2 * margins[:, 1:], residual[:, 1:]
    length = np.linalg.norm(residual, axis=1, keepdims=True)
    residual *= np.minimum(1.0, clip / length)
    rows = np.column_stack((X, np.ones(len(X))))
    coef = np.linalg.lstsq(rows, margins, rcond=None)[0].T
    moments = loss.curvature * rows.T @ rows / len(rows)
    tail = Tail(factor * coef, residual.T @ rows / len(rows), moments)
    found = margin_scale(tail, loss, np.zeros(len(coef)), clip)
    assert_allclose(found, 1 / factor, rtol=0.1)
    # a fit is paid for by then: moments that noise made useless leave it as it is
    for useless in (np.zeros_like(moments), np.full_like(moments, np.inf)):
        tail = Tail(tail.point, tail.gradient, useless)
        assert margin_scale(tail, loss, np.zeros(len(coef)), clip) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"epsilon": np.inf, "max_iter": 20},
        {"clip": 0.5},
        {"max_iter": 5},
        {"solver": SkGD(step_size=1.0)},
        {"penalty": Box(-1, 1)},
        {"warm_start": True},
        {"inference": True, "epsilon": 500.0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_somebody_asked_for_is_given_as_it_is(params, monkeypatch):
    X, y = records(200)
    fixed = {"epsilon": 0.5, "feature_scale": X.std(axis=0) + 5, "target_bounds": (0, 1)}
    if "warm_start" in params:
        fixed["accountant"] = PrivacyAccountant(epsilon=1e3, delta=0.1, testing=True)
    for model in (DPLinearClassifier(classes=[0, 1]), DPLinearRegressor()):
        own = {name: value for name, value in fixed.items() if name in model.get_params()}
        ours, plain = pair(model.set_params(**own | params), X, y, monkeypatch)
        assert_array_equal(ours.coef_, plain.coef_)
        assert_array_equal(ours.intercept_, plain.intercept_)


def test_a_loud_signal_leaves_regressions_alone(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    ours, plain = pair(DPRidgeSkGD(epsilon=1.0), X, 9 + X @ [1, 2, 3], monkeypatch)
    assert_allclose(ours.coef_, plain.coef_, rtol=1e-3)


def test_intercepts_are_drawn_to_the_released_shares_of_classes(monkeypatch):
    """A rare class stays rare where nothing is told of it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9000, 50)), (rng.random(9000) < 0.05).astype(int)
    known = []
    recipe = _private_linear_model
    shrunk = recipe.shrunk
    monkeypatch.setattr(recipe, "shrunk", lambda *args: known.append(args[2]) or shrunk(*args))
    model = DPLinearClassifier(epsilon=0.2, solver="skgd", classes=[0, 1]).fit(X, y)
    assert known[0] is not None  # classes were counted
    share = expit(known[0][1][0])
    assert abs(model.predict_proba(X)[:, 1].mean() - share) < 0.05


def test_outputs_and_classes_are_shrunk_by_one_factor(monkeypatch):
    X, _ = records(2000)
    Y = np.column_stack([X[:, 0], 1e3 * X[:, 1]])
    ours, plain = pair(DPLinearRegressor(epsilon=0.5), X, Y, monkeypatch)
    assert (np.abs(ours.coef_) <= np.abs(plain.coef_)).all()
    X, y = records(2000, classes=3)
    model = DPLinearClassifier(epsilon=0.5, classes=range(3))
    ours, plain = pair(model, X, y, monkeypatch)
    ratio = ours.coef_ / plain.coef_
    assert_allclose(ratio, ratio[0, 0])
    assert ratio[0, 0] < 1


def test_errors_of_noise_are_those_of_shrunk_coefficients(monkeypatch):
    X, _ = records(1300)
    y = X @ (1 / X.std(axis=0))
    model = DPLinearRegressor(epsilon=0.25, solver="newton")
    ours, plain = pair(model, X, y, monkeypatch)
    factor = (ours.coef_ / plain.coef_)[0]
    assert 0 < factor < 1
    assert_allclose(ours.privacy_std_[:-1], factor * plain.privacy_std_[:-1])


@table("length", [0.0, 0.5, 1.0, 2.0, 1e9, np.inf])
@table("n", [10, 1000, 10**6])
def test_the_factor_lies_between_zero_and_one_and_follows_the_evidence(n, length):
    request = DPLinearClassifier(classes=[0, 1], feature_scale=1.0)._plan(n, 9, 1).request
    factor = _shrinkage.shrinkage(request, length)
    assert 0 <= factor <= 1
    assert factor <= _shrinkage.shrinkage(request, max(length, 1.5) * 2) or np.isinf(length)
    more = DPLinearClassifier(classes=[0, 1], feature_scale=1.0)._plan(10 * n, 9, 1).request
    assert factor <= _shrinkage.shrinkage(more, length)


# --- targets --------------------------------------------------------------------------------------


def test_a_target_at_one_end_of_its_stated_bounds_is_met_by_few_records():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 20))
    y = np.exp(X[:, 0] - 0.6 * X[:, 1] + X[:, 2] / 2)
    model = DPLinearRegressor(epsilon=0.3, feature_bounds=(-1, 1), target_bounds=(0, 8))
    # -4 from the middle of the bounds
    assert np.median([one.score(X, y) for one in fits(model, X, y, 60)]) > -0.3


@pytest.mark.slow
@pytest.mark.parametrize(("center", "least"), [(0, -0.1), (70, -0.1), (-2000, -0.5)])
def test_few_records_end_at_the_mean_and_never_far_below_it(center, least):
    """Raw columns, nothing stated: the middle is found, and features are let go.

    That of a target hundreds of its widths from zero is found to a cell, wider than the target is.
    """
    found = []
    for n, epsilon in ((200, 1.0), (600, 0.3), (400, 1.0), (1500, 1.0)):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            X = rng.lognormal(0, 1, (n, 6)) * [1, 10, 1e3, 1e-2, 1, 5] + [0, 50, 0, 0, -9, 1e3]
            y = center + 3 * (X[:, 0] / 2 + rng.standard_normal(n))
            model = DPLinearRegressor(epsilon=epsilon, random_state=ReproducibleNoise(seed))
            found.append(model.fit(X, y).score(X, y))
    assert (np.median(np.reshape(found, (4, 30)), axis=1) >= least).all() and min(found) >= -1.5


def test_where_only_a_mean_can_be_told_it_is_never_far_off():
    rng = np.random.default_rng(0)
    X, y = rng.normal(50, 9, (200, 5)), rng.exponential(1000.0, 200)
    found = np.array([m.predict(X) for m in fits(DPLinearRegressor(epsilon=1.0), X, y, 40)])
    assert (np.ptp(found, axis=1) == 0).all()  # features are let go
    assert (np.abs(found - y.mean()) < 0.7 * y.std()).all()


@pytest.mark.parametrize(("n", "least", "mean"), [(700, 0.2, 30), (700, 0.2, 300),
                         (1000, 0.3, 30), (1000, 0.3, 300), (1000, -0.15, 0.3)])  # fmt: skip
def test_rates_of_few_records_start_at_their_released_mean(mean, n, least):
    """Their D² was far below zero: an intercept from elsewhere never arrived, and slopes swung."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2 * n, 5))
        y = rng.poisson(mean * np.exp(X @ [0.2, -0.15, 0.1, 0.1, 0.0] - 0.04)).astype(float)
        model = DPPoissonRegressor(epsilon=0.3, random_state=ReproducibleNoise(seed))
        found.append(model.fit(X[:n], y[:n]).score(X[n:], y[n:]))
    assert np.median(found) > least


# --- the warning ----------------------------------------------------------------------------------


def messages(model, X, y):
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    return [one for one in caught if issubclass(one.category, FewRecordsWarning)]


def test_too_few_records_are_told_once_from_public_numbers_alone():
    X, y = records(300)
    # with so little the place of a target is not found: its mean is not promised
    models = {
        "shares of the classes;": DPLinearClassifier(epsilon=0.1, classes=[0, 1]),
        "near 0, since target_bounds are neither": DPLinearRegressor(epsilon=0.1),
        "near the middle of target_bounds": DPLinearRegressor(epsilon=0.1, target_bounds=(0, 9)),
    }
    for words, model in models.items():
        (told,) = messages(model, X, y)
        assert told.filename == __file__
        assert "expect no better than" in str(told.message) and "would do" in str(told.message)
        assert words in str(told.message)
        (again,) = messages(clone(model), 1e6 * X[::-1] ** 2, 1 - y)
        assert str(again.message) == str(told.message)


@pytest.mark.parametrize(("epsilon", "what"), [(0.1, "little but noise"), (1.0, "not where")])
def test_what_the_warning_asks_for_is_enough(epsilon, what):
    X, y = records(300)
    model = DPLinearClassifier(epsilon=epsilon, delta=1e-6, classes=[0, 1])
    (told,) = messages(model, X, y)
    assert what in str(told.message)
    words = str(told.message).replace(",", "").split()
    n = int(words[words.index("n") + 3])
    epsilon = float(words[words.index("epsilon") + 3])
    assert not messages(clone(model), *records(n))
    assert not messages(clone(model).set_params(epsilon=epsilon), X, y)
    assert messages(clone(model), *records(n // 2))


@pytest.mark.parametrize("params", [{"epsilon": np.inf, "max_iter": 5}, {"epsilon": 50.0}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_enough_records_and_fits_without_noise_are_not_warned_of(params):
    assert not messages(DPLinearClassifier(classes=[0, 1], **params), *records(300))


@pytest.mark.parametrize(
    ("solver", "penalty", "alpha", "counted_whole"),
    [
        ("newton", "l1", 0.5, 0.3),
        ("skgd", "l1", 0.3, 0.3),
        ("newton", "l2", 3.0, 0.7),
        (None, "l2", 0.3, 0.75),
    ],
)
def test_a_strong_penalty_counts_as_much_as_without_noise(
    solver, penalty, alpha, counted_whole, monkeypatch
):
    """Clips leave less of derivatives: a penalty that counts whole beside them takes too much."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 4))
    margins = X @ [1.0, -0.7, 0.5, 0.0]
    stated = {"penalty": penalty, "alpha": alpha, "feature_bounds": (-4, 4)}
    if solver is None:
        y = (margins + rng.logistic(size=3000) > 0).astype(int)
        model = DPLinearClassifier(classes=[0, 1], **stated)
    else:
        y = margins + 0.5 * rng.standard_normal(3000)
        model = DPLinearRegressor(solver=solver, target_bounds=(-5, 5), **stated)
    wanted = np.ravel(clone(model).set_params(epsilon=np.inf).fit(X, y).coef_)

    def length():
        found = [np.ravel(one.coef_) @ wanted for one in fits(model, X, y, 5)]
        return np.median(found) / (wanted @ wanted)

    assert 0.75 < length() < 1.25
    monkeypatch.setattr(_solver_plan, "penalty_share", lambda plan: 1.0)
    assert length() < counted_whole


@pytest.mark.parametrize(("mean", "least"), [(0.5, 0.45), (3, 0.9)])
def test_penalties_of_counts_leave_descents_what_they_leave_without_noise(mean, least):
    """Their clip cuts derivatives of rare counts: with a whole penalty .34 and .75 are left."""
    rng = np.random.default_rng(0)
    X = (rng.random((10_000, 10)) < 0.2).astype(float)
    y = rng.poisson(mean * np.exp((X - 0.2) @ rng.normal(size=10) / 2)).astype(float)
    stated = {"feature_bounds": (0, 1), "target_bounds": (0, 8 * mean), "alpha": 1.0}
    wanted = DPPoissonRegressor(epsilon=np.inf, **stated).fit(X, y).coef_
    found = fits(DPPoissonRegressor(solver="skgd", epsilon=2.0, **stated), X, y, 5)
    assert least < np.median([one.coef_ @ wanted for one in found]) / (wanted @ wanted) < 1.2


@pytest.mark.parametrize("most", [8, 99])
def test_predictions_of_counts_have_the_mean_of_the_target_whatever_is_stated(most):
    """Rows lie far from the middle of their bounds, and targets in a small part of theirs."""
    rng = np.random.default_rng(2)
    X = rng.exponential(size=(1000, 5)).clip(max=8)
    y = rng.poisson(np.exp(((X - 1) @ rng.normal(size=5) / 4).clip(-3, 3))).astype(float)
    model = DPPoissonRegressor(alpha=0, feature_bounds=(0, 8), target_bounds=(0, most))
    assert 0.7 < np.median([one.predict(X).mean() for one in fits(model, X, y, 7)]) / y.mean() < 1.3


@pytest.mark.parametrize(("mean", "most"), [(0.01, 3), (0.03, 30)])
def test_noise_of_rare_counts_carries_no_coefficient_away(mean, most):
    """Where steps had no longest length, coefficients of 40 were found for a truth of .5."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 6)).clip(-4, 4)
    y = rng.poisson(mean * np.exp(X[:, 0] / 2)).astype(float)
    model = DPPoissonRegressor(alpha=0, feature_bounds=(-4, 4), target_bounds=(0, most))
    for one in fits(model, X, y, 6):
        assert np.abs(one.coef_).max() < 1.5 and one.score(X, y) > -0.5


@pytest.mark.parametrize("stated", [{}, {"target_bounds": (-6, 6)}], ids=["nothing", "bounds"])
def test_a_quantile_has_its_share_of_targets_below_where_the_signal_is_loud(stated):
    """Smoothed over a tenth of the half-width it had .93 to .96, whatever epsilon was."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(10_000, 4)).clip(-4, 4)
    y = X @ [0.6, -0.4, 0.3, 0.5] + rng.normal(size=len(X)) / 2
    model = DPQuantileRegressor(quantile=0.9, alpha=0, epsilon=3.0, feature_bounds=(-4, 4))
    for one in fits(model.set_params(**stated), X, y, 3):
        assert np.mean(y <= one.predict(X)) == pytest.approx(0.9, abs=0.02)


def test_descents_of_a_loud_signal_keep_what_they_found():
    """A curved loss holds what noise alone would carry away."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((4000, 2))
    y = (2 * X[:, 0] - X[:, 1] + rng.logistic(size=4000) > 0).astype(int)
    model = DPLinearClassifier(classes=[0, 1], feature_bounds=(-4, 4), epsilon=np.inf)
    wanted = log_loss(y, clone(model).fit(X, y).predict_proba(X))
    for epsilon in (1.0, 3.0, 10.0):
        model.set_params(epsilon=epsilon, solver="skgd", random_state=ReproducibleNoise(0))
        assert log_loss(y, model.fit(X, y).predict_proba(X)) < wanted + 0.03
