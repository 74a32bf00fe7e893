"""The noise's part of coefficients without an inference: where it is known, and how well."""

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.loops._covariance import noise_of
from dpcd_sklearn.loops._newton import solve as newton
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.solvers import Newton
from dpcd_sklearn.testing import ReproducibleNoise

COEF = np.array([0.3, -0.2, 0.1])
SMOOTHNESS = np.array([1.0, 4.0, 0.5])
CENTERS, WIDTHS = np.array([50.0, 0.0, -3.0]), np.array([10.0, 1.0, 0.1])


def records(n=3000, seed=0):
    """A table of features in [-1, 1], and a target within it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ COEF + 0.05 + 0.15 * rng.standard_normal(n)


def fitted(X, y, kind=DPLinearRegressor, seed=0, **params):
    given = {"penalty": None, "solver": "newton", "target_bounds": (-1, 1)}
    given = given if kind is DPLinearRegressor else {}
    given |= {"epsilon": 3.0, "feature_bounds": (-1, 1), "random_state": ReproducibleNoise(seed)}
    return kind(**given | params).fit(X, y)


@pytest.mark.parametrize(
    "params", [{}, {"penalty": "l2", "alpha": 0.3, "solver": Newton(averaging="last")}]
)
def test_it_is_how_coefficients_scatter_over_noise(params):
    """100 fits of the same records, in units as they come: each standard deviation is right to .07,
    and the bounds are more than five times that away; seeded."""
    X, y = records()
    bounds = CENTERS - WIDTHS, CENTERS + WIDTHS
    fits = [
        fitted(CENTERS + WIDTHS * X, y, seed=seed, feature_bounds=bounds, **params)
        for seed in range(100)
    ]
    coefs = np.array([np.append(model.coef_, model.intercept_) for model in fits])
    stated = np.mean([model.privacy_std_ for model in fits], axis=0)
    ratio = stated / coefs.std(axis=0, ddof=1)
    assert ((ratio > 0.64) & (ratio < 1.5)).all(), ratio
    assert 0.8 < np.exp(np.mean(np.log(ratio))) < 1.25


class LinearOracle:
    """Gradients H w - b, in units of sqrt(M) and a geometry, with noise that is given, and H."""

    def __init__(self, hessian, target, noise, smoothness=1.0):
        self.roots = np.sqrt(np.broadcast_to(smoothness, len(target)))
        self.hessian = hessian / np.outer(self.roots, self.roots)
        self.target, self.noise = target / self.roots, list(noise)

    def release_curvature(self):
        return self.hessian

    def fix_geometry(self, root):
        self.root = np.tril(root)
        return self.root

    def release_preconditioned(self, coef, clip):
        gradient = self.hessian @ (self.roots * coef) - self.target
        return self.root @ gradient + clip * self.noise.pop(0)


def test_it_is_exact_for_linear_gradients_and_the_true_curvature():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(20, 3))
    hessian, target = half.T @ half / 20, rng.normal(size=3)
    problem = Problem(
        penalty=ElasticNet(0.0, 0.3), smoothness=SMOOTHNESS, n_penalized=2,
        n_updates=9, step_size=0.8, momentum=0.3, averaging="tail", unit_clips=(2.0, 1.0),
    )  # fmt: skip

    def end(noise, start=None):
        oracle = LinearOracle(hessian, target, noise, SMOOTHNESS)
        return newton(oracle, dataclasses.replace(problem, start=start))

    quiet = end(np.zeros((9, 3)))
    arrived = dataclasses.replace(problem, start=quiet.coef)
    known = {"curvature_noise": 0.0, "gradient_noise": 0.2, "is_fixed": np.zeros(2, dtype=bool)}
    known["before"] = quiet.coef
    found = noise_of(arrived, quiet.walk, quiet.coef, **known).privacy
    moved = [end(0.2 * np.eye(27)[k].reshape(9, 3)).coef - quiet.coef for k in range(27)]
    np.testing.assert_allclose(found, np.transpose(moved) @ moved, atol=1e-10)
    # not where the noise of the curvature may be half of it, nor far from where the steps lead
    noise = np.linalg.eigvalsh(quiet.walk.curvature)[-1] / 1.9 / 6**0.5
    unsafe = noise_of(arrived, quiet.walk, quiet.coef, **known | {"curvature_noise": noise})
    far = dataclasses.replace(problem, start=quiet.coef + 1e6)
    after = known | {"before": quiet.coef + 7 * np.sqrt(np.diag(found))}
    moving = noise_of(arrived, quiet.walk, quiet.coef, **after)
    for missing in (unsafe, moving, noise_of(far, quiet.walk, quiet.coef, **known)):
        assert np.isnan(missing.privacy).all() and not missing.valid


def test_it_has_the_shape_and_units_of_the_coefficients():
    X, y = records()
    five = {"target_bounds": (-5, 5), "n_threads": 2}
    one = fitted(X, y, feature_scale=1.0)
    assert one.privacy_std_.shape == (4,) and (one.privacy_std_ > 0).all()
    stated = {"feature_bounds": (-WIDTHS, WIDTHS), "feature_scale": WIDTHS}
    other = fitted(WIDTHS * X, 5 * y, **stated, **five)
    units = 5 / np.append(WIDTHS, 1)
    np.testing.assert_allclose(other.privacy_std_, units * one.privacy_std_, rtol=1e-6)
    # scales that are found are a little narrower or wider where columns lie elsewhere
    one = fitted(X, y)
    bounds = CENTERS - WIDTHS, CENTERS + WIDTHS
    other = fitted(CENTERS + WIDTHS * X, 5 * y, feature_bounds=bounds, **five)
    np.testing.assert_allclose(other.privacy_std_[:3], 5 * one.privacy_std_[:3] / WIDTHS, rtol=0.02)
    assert other.privacy_std_[3] > 10 * one.privacy_std_[3]  # an intercept far from all records
    assert fitted(X, y, fit_intercept=False).privacy_std_.shape == (3,)
    assert not hasattr(one, "coef_std_")  # sampling is not known
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).privacy_std_, one.privacy_std_)
    less = fitted(X, y, epsilon=10.0)
    assert (less.privacy_std_ < one.privacy_std_).all()


def test_presets_know_it_after_newton_steps_and_every_fit_without_noise():
    X, y = records()
    for kind, descent, alpha in ((DPRidgeSkGD, "skgd", 1e-3), (DPLassoCD, "cd", 0.0)):
        params = {"alpha": alpha, "target_bounds": (-1, 1)}
        model = fitted(X, y, kind, solver="newton", **params)
        assert (model.privacy_std_ > 0).all()
        assert not hasattr(fitted(X, y, kind, solver=descent, **params), "privacy_std_")
    for params in ({"solver": "cd"}, {"solver": "newton"}, {"penalty": "l1", "alpha": 0.01}):
        quiet = fitted(X, y, epsilon=np.inf, random_state=None, **params)
        np.testing.assert_array_equal(quiet.privacy_std_, np.zeros(4))


def test_where_the_curvature_is_not_safe_it_is_nan():
    X, y = records(n=300)
    model = fitted(X, y, epsilon=0.5)
    assert np.isnan(model.privacy_std_).all() and np.isfinite(model.coef_).all()


def test_where_the_steps_have_not_arrived_it_is_nan_and_more_steps_mend_it():
    """Records with a rare indicator are long rows, which the released curvature cuts short."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((20_000, 3)), rng.random((20_000, 2)) < [0.02, 0.1]])
    y = X @ [1.0, 0.5, -1.0, 2.0, 1.0] + rng.standard_normal(20_000)
    bounds = {"feature_bounds": (X.min(axis=0), X.max(axis=0)), "target_bounds": (-6.0, 7.0)}
    assert np.isnan(fitted(X, y, **bounds).privacy_std_).all()
    fits = [fitted(X, y, seed=seed, max_iter=25, **bounds) for seed in range(10)]
    design = [np.column_stack([np.clip(X, *m.feature_bounds_), np.ones(len(X))]) for m in fits]
    y = np.clip(y, -6.0, 7.0)
    truth = np.array([np.linalg.lstsq(one, y)[0] for one in design])
    gaps = np.array([np.append(model.coef_, model.intercept_) for model in fits]) - truth
    assert np.mean(np.abs(gaps / [model.privacy_std_ for model in fits]) < 2) > 0.8


def test_behind_indicators_what_is_identified_has_it():
    """Numbers scatter over 40 fits by what it says; indicators that add up to one have none."""
    rng = np.random.default_rng(3)
    numbers, kind = rng.uniform(-1, 1, (20_000, 2)), rng.integers(3, size=20_000)
    X = np.column_stack([numbers, kind[:, None] == np.arange(3)])
    y = X @ [0.3, -0.2, 0.1, 0.0, -0.1] + 0.1 * rng.standard_normal(20_000)
    fits = [fitted(X, y, seed=seed) for seed in range(40)]
    stated = np.array([model.privacy_std_ for model in fits])
    assert np.isfinite(stated[:, :2]).all() and np.isnan(stated[:, 2:]).all()
    coefs = np.array([model.coef_[:2] for model in fits])
    ratio = stated[:, :2].mean(axis=0) / coefs.std(axis=0, ddof=1)
    assert ((ratio > 0.7) & (ratio < 1.4)).all(), ratio


def test_where_it_is_not_known_an_error_says_how_to_know_it():
    X, y = records(n=300)
    match = "privacy_std_ is not known .* inference=True"
    with pytest.raises(NotFittedError):
        _ = DPLinearRegressor().privacy_std_
    model = fitted(X, y, inference=True)
    assert hasattr(model, "privacy_std_")
    model.set_params(inference=False, solver="cd").fit(X, y)
    with pytest.raises(AttributeError, match=match):  # nor is that of the earlier fit left
        _ = model.privacy_std_
    for params in ({"solver": "skgd"}, {"loss": "huber"}, {"penalty": "l1", "alpha": 0.01}):
        with pytest.raises(AttributeError, match=match):
            _ = fitted(X, y, **params).privacy_std_
    several = fitted(X, np.column_stack([y, y]), target_bounds=(-1, 1))
    labels = (y > 0).astype(int)
    logistic = DPLinearClassifier(solver="newton", classes=[0, 1], feature_bounds=(-1, 1))
    for model in (several, logistic.fit(X, labels)):
        with pytest.raises(AttributeError, match=match):
            _ = model.privacy_std_


def test_what_is_left_of_the_way_counts_from_a_warm_start():
    """Two short steps from where they lead, found by many: what is left is nothing."""
    X, y = records(n=50_000)
    ledger = PrivacyAccountant(epsilon=1e3, delta=0.1, testing=True)
    model = fitted(X, y, inference=True, epsilon=50.0, warm_start=True, accountant=ledger)
    slow = Newton(averaging="last", momentum=0.0, step_size=0.6)
    model.set_params(max_iter=2, solver=slow).fit(X, y)
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[0]
    assert model.inference_valid_
    gap = np.append(model.coef_, model.intercept_) - truth
    assert (np.abs(gap) < 5 * model.privacy_std_).all(), gap / model.privacy_std_
