"""Newton fits: what they find, what they refuse before a charge, and the models inside."""

import math
from dataclasses import replace

import numpy as np
import pytest
from flat import fits, flat
from scipy.special import softmax
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.loops import _newton
from dpcd_sklearn.loops._newton import solve
from dpcd_sklearn.loops._problem import Problem, shares_of_bound
from dpcd_sklearn.loops._quadratic import minimise
from dpcd_sklearn.penalties import Box, BoxPenalty
from dpcd_sklearn.penalties import ElasticNet as ElasticNetPenalty
from dpcd_sklearn.privacy.accounting import epsilon_of, gdp_squared
from dpcd_sklearn.solvers import Newton
from dpcd_sklearn.solvers import _newton as _newton_plan
from dpcd_sklearn.testing import ReproducibleNoise

BOUNDS = {"feature_bounds": (-1, 1)}


def records(n=20_000, p=6, correlation=0.0, seed=0):
    """Correlated features within [-1, 1], a sparse target within it, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    X = (1 - correlation) * X + correlation * X[:, :1]
    coef = np.zeros(p)
    coef[:3] = 0.3, -0.2, 0.1
    margins = X @ coef + 0.1
    y = np.clip(margins + 0.1 * rng.standard_normal(n), -1, 1)
    return X, y, (rng.random(n) < 1 / (1 + np.exp(-6 * margins))).astype(int)


def seeded(estimator=DPLinearRegressor, **params):
    seed = ReproducibleNoise(0)
    return flat(estimator, solver="newton", random_state=seed, **BOUNDS | params)


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_fits_of_many_records_are_near_those_without_noise(neighboring, correlation):
    X, y, labels = records(correlation=correlation)
    params = {"epsilon": 10.0, "delta": 1e-8, "neighboring": neighboring}
    if neighboring == "add_remove":
        params["n_public"] = 21_000  # not the true number
    ours = seeded(alpha=0.0, **params).fit(X, y)
    np.testing.assert_allclose(ours.coef_, Ridge(1e-9).fit(X, y).coef_, atol=0.04)
    assert ours.intercept_ == pytest.approx(0.1, abs=0.02)
    found = seeded(DPLinearClassifier, penalty="l2", alpha=1e-3, classes=[0, 1], **params).fit(
        X, labels
    )
    plain = LogisticRegression(C=1 / (1e-3 * len(X)), tol=1e-8).fit(X, labels)
    assert found.score(X, labels) > plain.score(X, labels) - 0.01


@pytest.mark.parametrize("averaging", ["last", "tail"])
def test_an_l1_penalty_leaves_exact_zeros_with_either_averaging(averaging):
    X, y, _ = records()
    model = seeded(penalty="l1", alpha=0.01, epsilon=5.0, averaging=averaging).fit(X, y)
    assert (model.coef_[3:] == 0).all() and (model.coef_[:3] != 0).all()
    np.testing.assert_allclose(model.coef_, Lasso(0.01).fit(X, y).coef_, atol=0.02)


def test_weights_above_two_count_as_two_but_not_without_noise():
    X, y, _ = records(2000)
    weights = np.where(X[:, 0] > 0, 2.0, 0.5)
    coefs = [
        seeded(epsilon=epsilon, alpha=0.0).fit(X, y, sample_weight=found).coef_
        for epsilon in (1.0, np.inf)
        for found in (weights, np.where(weights == 2.0, 1500.0, 0.5))
    ]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    assert not np.allclose(coefs[2], coefs[3])


@table("weigh", ["half", "a twentieth", "one in five", "any below one", "many"])
@table("target_bounds", [(-1.5, 1.5), None])
def test_whatever_records_weigh_steps_do_not_diverge(weigh, target_bounds):
    """1 was once subtracted for the intercept's constant, whatever its weight: R² of -.2."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = X @ [1.0, -0.5, 0.0]
    weights = {
        "half": np.full(1000, 0.5),
        "a twentieth": np.full(1000, 0.05),
        "one in five": (rng.uniform(size=1000) < 0.2).astype(float),
        "any below one": rng.uniform(size=1000),
        "many": np.full(1000, 1500.0),
    }[weigh]
    model = seeded(alpha=0.0, epsilon=20.0, target_bounds=target_bounds)
    model.fit(X, y, sample_weight=weights)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("share", [0.05, 0.5, "auto"])
def test_the_event_is_the_whole_budget_and_the_curvature_has_its_share(share):
    event = DPLinearRegressor(
        solver=Newton(curvature_share=share), epsilon=1.5, delta=1e-6,
        feature_scale=1.0, target_bounds=(-1, 1)).planned_event(1000, 5)  # fmt: skip
    _, curvature, _ = event.releases
    assert epsilon_of(event, 1e-6) == pytest.approx(1.5, rel=1e-9)
    part = 1 / curvature.noise_multiplier**2 / gdp_squared(event)
    assert part == pytest.approx(0.2 if share == "auto" else share, rel=1e-9)


def test_too_many_features_and_wrong_words_are_refused_before_a_charge(uncharged):
    X, y = np.zeros((3, 4001)), np.zeros(3)
    for params, match in (
        ({}, r"4,002 coordinates is more than the 4,001"),
        ({"solver": Newton(averaging="periodic")}, "'averaging' parameter of Newton must be"),
    ):
        stated = {"solver": "newton", "accountant": uncharged, "delta": 1e-4}
        model = DPLinearRegressor(**stated | params)
        with pytest.raises(ValueError, match=match):
            model.fit(X, y)
    model = newton_of_classes(accountant=uncharged, delta=1e-4, random_state=None)
    with pytest.raises(ValueError, match="one target or two classes"):
        model.set_params(inference=True).fit(*classes_of(100))


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_quadratic_models_have_scikit_learns_minimum(ratio):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    P, b = np.ascontiguousarray(X.T @ X / 50), X.T @ y / 50
    penalty = ElasticNetPenalty(0.1 * ratio, 0.1 * (1 - ratio))
    found = minimise(P, b, penalty, 8, np.zeros(8))
    plain = ElasticNet(0.1, l1_ratio=ratio, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(found, plain.coef_, atol=1e-8)
    free = minimise(P, b, penalty, 0, np.zeros(8))
    np.testing.assert_allclose(free, np.linalg.solve(P, b), atol=1e-7)
    box = minimise(P, b, BoxPenalty(-0.05, 0.05), 7, np.zeros(8))
    gradient = P @ box - b  # the conditions of Karush, Kuhn and Tucker
    assert (np.abs(box[:7]) <= 0.05).all() and abs(gradient[7]) < 1e-8
    inside = np.abs(box[:7]) < 0.05
    assert np.abs(gradient[:7][inside]).max(initial=0) < 1e-8
    assert (gradient[:7][~inside] * np.sign(box[:7][~inside]) <= 1e-12).all()


class LinearGradients:
    """An oracle of H w - b, with noise of one standard deviation in one entry of one gradient."""

    def __init__(self, H, entry=None):
        self._H, self._entry, self._t = H, entry, 0

    def release_curvature(self):
        return 1.3 * self._H + 0.1 * np.eye(len(self._H))  # not the true one

    def fix_geometry(self, root):
        self.root = root
        return root

    def release_preconditioned(self, coef, clip):
        gradient = self.root @ (self._H @ coef - 1.0)
        if self._entry is not None and self._entry[0] == self._t:
            gradient[self._entry[1]] += clip
        self._t += 1
        return gradient


def test_columns_without_correlation_in_loose_bounds_are_fitted_as_well_as_by_a_descent():
    rng = np.random.default_rng(1)
    X, coef = rng.uniform(-1, 1, (40_000, 80)), rng.normal(size=80) / 9
    y = np.clip(X @ coef / 2 + 0.03 * rng.standard_normal(len(X)), -1, 1)
    params = {"epsilon": 1.5, "feature_bounds": (-3, 3), "target_bounds": (-3, 3)}
    errors = {
        solver: 1 - DPLinearRegressor(solver=solver, random_state=0, **params).fit(X, y).score(X, y)
        for solver in ("newton", "skgd")
    }
    # .021 and .019; with steps too long it was .11
    assert errors["newton"] < min(1.5 * errors["skgd"], 0.04)


@pytest.mark.parametrize("clip", [5e-324, 1e-40, 1e40])
def test_a_clip_without_integers_is_refused_before_the_charge(clip, uncharged):
    model = DPLinearRegressor(solver="newton", clip=clip, target_bounds=(-1, 1), **BOUNDS)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    with pytest.raises(ValueError, match="clip="):
        model.set_params(accountant=uncharged).fit(X, X[:, 0])


@pytest.mark.parametrize(("averaging", "head"), [("last", 0.5), ("tail", 0.5), ("tail", 0.2)])
@pytest.mark.parametrize("steepness", [[1.0] * 5, [1.0, 1.7, 1.0, 0.6, 1.2]], ids=str)
def test_the_covariance_of_noise_follows_steps_of_any_length(
    averaging, head, steepness, monkeypatch
):
    H = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.5]])

    def curvatures(path, point, gradient):
        path._steepness.append(steepness[path._t])
        return np.full(1, steepness[path._t]), np.eye(1)

    monkeypatch.setattr(_newton._Path, "_curvatures", curvatures)
    problem = Problem(
        penalty=ElasticNetPenalty(0.0, 0.1), smoothness=np.ones(3), n_penalized=2, n_updates=5,
        step_size=0.8, momentum=0.4, averaging=averaging, head=head, unit_clips=(2.0, 1.0),
    )  # fmt: skip
    plain = solve(LinearGradients(H), problem)
    moved = [
        solve(LinearGradients(H, (t, j)), problem).coef - plain.coef
        for t in range(5)
        for j in range(3)
    ]
    root = plain.walk.root
    ridge = root @ np.diag([0.1, 0.1, 0.0]) @ root.T
    found, kept = plain.walk.propagated(problem, root @ H @ root.T, ridge)
    np.testing.assert_allclose(root.T @ found @ root, np.transpose(moved) @ moved, rtol=1e-8)
    later = solve(LinearGradients(H), replace(problem, start=np.ones(3))).coef - plain.coef
    np.testing.assert_allclose(root.T @ kept @ np.linalg.inv(root.T) @ np.ones(3), later)


@pytest.mark.parametrize("gradient_noise", [0.0, math.inf])
def test_steps_by_a_curvature_that_is_too_small_find_out_on_their_way(gradient_noise):
    H = np.diag([3.0, 1.0, 0.5])

    class Short(LinearGradients):
        def release_curvature(self):
            return 0.4 * self._H

    problem = Problem(
        penalty=ElasticNetPenalty(0.0, 0.0), smoothness=np.ones(3), n_penalized=3, n_updates=30,
        momentum=0.3, averaging="tail", unit_clips=(2.0, 1.0), gradient_noise=gradient_noise,
    )  # fmt: skip
    found = solve(Short(H), problem)
    far = np.abs(found.coef - 1 / np.diag(H)).max()
    assert far < 1e-3 if gradient_noise == 0 else far > 100
    assert (found.walk.steepness > 1).any() == (gradient_noise == 0)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("size", [0.0, 1.0, 4.0])
def test_margins_tell_how_far_a_softmax_is_from_its_bound(n_outputs, size):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50_000, 4)) @ rng.normal(size=(4, 4))
    rows = np.column_stack([features, np.ones(len(features))])
    coef = size * rng.normal(size=(n_outputs, 5)) / 2
    bound = 0.25 if n_outputs == 1 else 0.5
    shares, axes = shares_of_bound(bound * rows.T @ rows / len(rows), coef, True)
    margins = rows @ coef.T
    margins = np.column_stack([np.zeros(len(rows)), margins]) if n_outputs == 1 else margins
    chances = softmax(margins, axis=1)
    truth = np.diag(chances.mean(axis=0)) - chances.T @ chances / len(rows)
    found = 2 * np.linalg.eigvalsh(truth)[-n_outputs:]
    expected = np.maximum(found, max(0.1, 0.33 * found[-1]))
    np.testing.assert_allclose(shares, expected, rtol=0.1)
    np.testing.assert_allclose(axes @ axes.T, np.eye(n_outputs), atol=1e-12)


def test_bounds_of_coefficients_without_a_strength_are_fitted():
    # they leave no normal law, so the noise of such coefficients is not followed
    model = DPLinearRegressor(
        penalty=Box(-1, 1), alpha=0.0, solver="newton", epsilon=10.0, feature_bounds=(-1, 1),
        target_bounds=(-4, 4),
    )  # fmt: skip
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 3))
    model.fit(X, X @ [0.5, 2.0, -0.5])
    assert np.abs(model.coef_ - [0.5, 1.0, -0.5]).max() < 0.2
    with pytest.raises(AttributeError):
        _ = model.privacy_std_


# ---- what means of rows and of squared norms are for ---------------------------------------------


@pytest.mark.parametrize(("loose", "least"), [(1, 0.1), (3, 0.4), (30, -0.05)])
def test_bounds_that_are_far_from_the_records_are_no_trap(loose, least):
    """R² without noise is .56. Rows cut short once had a curvature far too small: steps diverged.

    Medians of eight fits were .22, -.02 and -.44 then, and are .5, .5 and .05.
    """
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(20_000, 5)))
    y = np.log(X) @ np.linspace(0.1, 0.5, 5) + 0.1 * rng.normal(size=20_000)
    model = DPLinearRegressor(
        solver="newton", epsilon=2.0, feature_bounds=(0, loose * 60), target_bounds=(-3, 3),
        random_state=ReproducibleNoise(0),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="ReproducibleNoise"):
        model.fit(X, np.clip(y, -3, 3))
    assert model.score(X, np.clip(y, -3, 3)) > least


def test_rows_at_one_end_of_wide_bounds_are_taken_for_no_longer_than_they_are():
    """Their squares are small differences of large numbers: one fit in six was left half way."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(20_000, 5)))
    y = 0.01 * rng.normal(size=len(X))
    bounds = {"feature_bounds": (0, 5 * X.max(axis=0)), "target_bounds": (-0.1, 1.9)}
    model = DPLinearRegressor(solver="newton", alpha=0.0, epsilon=10.0, **bounds)
    with pytest.warns(UserWarning, match="ReproducibleNoise"):
        found = fits(model, X, y, 12)
    # -8 to -60 then; noise alone costs -2.7 at worst, since many records are far in each column,
    # and such columns keep their bounds
    assert min(one.score(X, y) for one in found) > -4


def test_a_curvature_of_rows_cut_short_is_made_whole():
    """One row in a hundred is ten times as long: a curvature of rows cut to the others' norm."""

    class Oracle:
        def release_curvature(self):
            return np.diag([0.5, 0.25, 1.0])

        def fix_geometry(self, root):
            self.root = root
            raise StopIteration

    def steepness(mean_square, floor=1e-3):
        problem = Problem(
            penalty=ElasticNetPenalty(), smoothness=np.ones(3), n_penalized=2, n_updates=1,
            curvature_floor=floor, mean_square=mean_square,
        )  # fmt: skip
        oracle = Oracle()
        with pytest.raises(StopIteration):
            solve(oracle, problem)
        return 1 / np.diag(oracle.root) ** 2

    np.testing.assert_allclose(steepness(0.0), [0.5, 0.25, 1.0])  # unknown
    np.testing.assert_allclose(steepness(0.7), [0.5, 0.25, 1.0])  # nothing was cut
    np.testing.assert_allclose(steepness(1.5), [1.0, 0.5, 1.0])
    np.testing.assert_allclose(steepness(1e9), [5.0, 2.5, 1.0])  # or noise
    # the noise was made larger too, and with it the floor that it asks for
    np.testing.assert_allclose(steepness(0.0, 0.3), [0.5, 0.3, 1.0])
    np.testing.assert_allclose(steepness(1.5, 0.3), [1.0, 0.6, 1.0])


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_what_rows_cost_is_in_the_event(intercept):
    model = DPLinearRegressor(
        solver="newton", epsilon=1.5, delta=1e-6, feature_scale=1.0, target_bounds=(-1, 1),
        fit_intercept=intercept != "none", penalize_intercept=intercept == "penalized",
    )  # fmt: skip
    event = model.planned_event(500, 5)
    assert epsilon_of(event, 1e-6) == pytest.approx(1.5, rel=1e-9)
    count = 2 if intercept == "free" else 1
    assert [release.count for release in event.releases[1:]] == [1, count]
    share = 1 / event.releases[2].noise_multiplier ** 2 / gdp_squared(event)
    assert share == pytest.approx(0.8 * _newton_plan._SHARE_OF_ROWS, rel=1e-9)
    many = model.planned_event(100_000, 5).releases[2]  # louder: in proportion to 1 / sqrt(s)
    found = DPLinearRegressor(solver="newton", epsilon=1.5, delta=1e-6).planned_event(10_000, 5)
    assert [release.count for release in found.releases[3:]] == [1]  # quartiles tell it already
    ratio = (event.releases[2].noise_multiplier / many.noise_multiplier) ** 2
    assert 0.05 < ratio < 0.2


def test_centres_change_nothing_but_noise():
    """Coefficients, intercept, start and path come back in the units of the records."""
    rng = np.random.default_rng(2)
    X = rng.uniform(2, 3, (4000, 3))
    y = X @ [0.3, -0.2, 0.1] + 0.05 * rng.uniform(-1, 1, 4000)
    accountant = PrivacyAccountant(epsilon=1e4, delta=1e-3)
    model = DPLinearRegressor(
        solver="newton", alpha=0.0, coef_path=True, max_iter=60, epsilon=1e2, delta=1e-6,
        feature_bounds=(0, 10), row_norm_bound=20.0, target_bounds=(-1, 3), accountant=accountant,
    ).fit(X, y)  # fmt: skip
    plain = DPLinearRegressor(epsilon=np.inf).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=5e-3)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=0.02)
    assert (model.coef_path_[-1] == model.coef_).all()
    coef = model.coef_
    again = model.set_params(warm_start=True, max_iter=1).fit(X, y)
    np.testing.assert_allclose(again.coef_path_[0], coef, atol=1e-9)  # where it started
    np.testing.assert_allclose(again.coef_, plain.coef_, atol=5e-3)


def test_steps_of_a_rare_class_do_not_swing():
    """Flat where few are likely of it, they went too far: of coefficients 3 % or less were left."""
    rng = np.random.default_rng(1)
    X = (rng.random((20_000, 6)) < 0.2).astype(float)
    margins = X @ rng.normal(size=6)
    margins = (margins - margins.mean()) / margins.std()
    y = (rng.random(len(X)) < 0.04 * np.exp(margins - 0.5)).astype(int)
    model = DPLinearClassifier(classes=[0, 1], epsilon=8.0, delta=1e-6, feature_bounds=(0, 1))
    wanted = LogisticRegression(C=1e6).fit(X, y).coef_[0]
    for one in fits(model, X, y, 4):
        assert 0.8 < one.coef_[0] @ wanted / (wanted @ wanted) < 1.2


# ---- more than two classes; their sums are in test_curvature.py ---------------------------------

N = 6000


def classes_of(n=N, p=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    coef = np.random.default_rng(1).normal(size=(p, n_classes))
    return X, (2 * X @ coef + rng.gumbel(size=(n, n_classes))).argmax(axis=1)


def newton_of_classes(**params):
    stated = {"solver": "newton", "classes": [0, 1, 2], "feature_bounds": (-1, 1)}
    stated |= {"feature_scale": 1.0, "random_state": ReproducibleNoise(0)}
    return flat(DPLinearClassifier, **stated | params)


@pytest.mark.parametrize(
    ("penalty", "lo", "hi"), [(Box(-0.3, 0.8), -0.3, 0.8), ("nonnegative", 0, 99)]
)
def test_noise_moves_no_coefficient_beyond_its_bounds(penalty, lo, hi):
    coef = newton_of_classes(penalty=penalty).fit(*classes_of(1000)).coef_
    assert lo <= coef.min() and coef.max() <= hi


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_fits_of_several_classes_are_near_those_without_noise(neighboring):
    X, y = classes_of()
    params = {"neighboring": neighboring, "epsilon": 5.0, "delta": 1e-8}
    if neighboring == "add_remove":
        params["n_public"] = N + 100
    model = newton_of_classes(**params).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    assert model.score(X, y) > plain.score(X, y) - 0.01
    assert np.abs(model.predict_proba(X) - plain.predict_proba(X)).mean() < 0.02
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)  # as scikit-learn's
    event = model.privacy_event_
    assert epsilon_of(event, 1e-8) == pytest.approx(5.0, rel=1e-6)
    # numbers of the classes before gradients, a curvature, and moments of rows: as of two classes
    counts = [release.count for release in event.releases[-3:]]
    assert 16 <= counts[0] <= 26 and counts[1:] == [1, 2]


def test_a_path_has_an_iterate_a_step_with_rows_of_all_classes():
    model = newton_of_classes(coef_path=True, max_iter=5, averaging="last").fit(*classes_of(1000))
    assert model.coef_path_.shape == (6, 3, 4) and model.n_iter_ == 5
    np.testing.assert_array_equal(model.coef_path_[-1], model.coef_)


def is_newton(model, n, p, n_classes):
    counts = [release.count for release in model.planned_event(n, p, n_classes).releases[-3:]]
    return len(counts) == 3 and counts[1:] == [1, 2]


def test_auto_takes_newton_steps_from_a_signal_of_twenty_on_however_many_the_classes():
    def model(n_classes=3, **params):
        return DPLinearClassifier(
            classes=range(n_classes), feature_bounds=(-1, 1), feature_scale=1.0, **params
        )

    assert is_newton(model(), N, 4, 3)
    assert not is_newton(model(), 100, 4, 3)
    for n_classes in (3, 30):  # s = 45 and 17, whatever the classes
        assert is_newton(model(n_classes), 600, 10, n_classes)
        assert not is_newton(model(n_classes), 200, 10, n_classes)
    assert not is_newton(model(), N, 900, 3)  # more features than the signal
    assert not is_newton(model(max_iter=12), N, 4, 3)
    assert not is_newton(model(coef_path=True), N, 4, 3)
