"""Presets in the geometry of a released curvature: when, what it releases, and what it finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.privacy.accounting._accounting import epsilon_of
from dpcd_sklearn.samplings import FullSampling
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning"
)
N, P = 20_000, 5
UNIT = {"feature_bounds": (-1, 1)}
TARGET = UNIT | {"target_bounds": (-1, 1)}
PRESETS = {
    "lasso": lambda **params: DPLassoCD(**{"alpha": 0.01} | TARGET | params),
    "ridge": lambda **params: DPRidgeSkGD(**TARGET | params),
    "logistic": lambda **params: DPLogisticGCD(**UNIT | {"classes": [0, 1]} | params),
}
every_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)


def records(n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    margins = X @ np.r_[0.4, -0.3, np.zeros(p - 2)] + 0.1
    y = np.clip(margins + 0.1 * rng.standard_normal(n), -1, 1)
    return X, y, (rng.random(n) < 1 / (1 + np.exp(-6 * margins))).astype(int)


def is_newton(event):
    """One matrix, and fewer gradients than any descent; the numbers of the classes stand before."""
    counts = [release.count for release in event.releases[-3:-1]]  # and moments of rows
    return len(counts) == 2 and counts[1] == 1 and 8 <= counts[0] <= 24


@every_preset
@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_default_fits_of_many_records_release_a_curvature_and_a_few_gradients(preset, neighboring):
    X, y, labels = records()
    public = {"n_public": N + 7, "delta": 1e-9} if neighboring == "add_remove" else {}
    model = preset(neighboring=neighboring, random_state=ReproducibleNoise(0), **public)
    model.fit(X, labels if hasattr(model, "classes") else y)
    event = model.planned_event(N, P)
    assert is_newton(event) and event == model.privacy_event_
    assert epsilon_of(event, model.privacy_spent_.delta) == pytest.approx(1.0, rel=1e-6)


@every_preset
def test_few_records_and_sparse_ones_keep_the_descent_of_the_name(preset):
    assert not is_newton(preset().planned_event(300, P))
    assert not is_newton(preset().planned_event(N, P, sparse=True))
    assert not is_newton(preset().planned_event(10_000, 900))  # more features than the signal
    model = preset(epsilon=10.0, random_state=ReproducibleNoise(0), max_iter=1)
    X, _, labels = records(500)
    assert not is_newton(model.fit(csr_matrix(X), labels).privacy_event_)


ASKED = [
    ("lasso", {"sampling": "importance"}),
    ("lasso", {"n_inner": 5}),
    ("lasso", {"averaging": "last"}),
    ("ridge", {"sampling": "nice"}),
    ("ridge", {"sampling": FullSampling(P + 1)}),
    ("ridge", {"block_size": 2}),
    ("ridge", {"momentum": 0.5}),
    ("ridge", {"accounting": "hidden_state", "penalize_intercept": True, "alpha": 1e3}),
    ("logistic", {"rule": "gs-q"}),
    ("logistic", {"block_size": 2}),
    ("logistic", {"selection_share": 0.5}),
    ("logistic", {"selection": "lazy"}),
]
ASKED += [(name, asked) for name in PRESETS for asked in (
    {"max_iter": 12}, {"step_size": 0.5}, {"coef_path": True}, {"precompute": False},
)]  # fmt: skip


@pytest.mark.parametrize(("name", "asked"), ASKED)
def test_what_is_asked_of_the_descent_is_done_by_it(name, asked):
    event = PRESETS[name](**asked).planned_event(N, P)
    assert not is_newton(event)


@pytest.mark.parametrize(("name", "asked"), [pair for pair in ASKED if {
    "sampling", "n_inner", "block_size", "accounting", "rule", "selection_share", "selection",
} & set(pair[1])])  # fmt: skip
def test_a_geometry_and_draws_of_coordinates_are_refused_together(name, asked):
    X, y, labels = records(100)
    with PrivacyAccountant(epsilon=2.0, delta=1e-3) as accountant:
        model = PRESETS[name](precompute=True, accountant=accountant, **asked)
        (first, *_) = asked
        with pytest.raises(ValueError, match=f"precompute=True needs {first}="):
            model.fit(X, labels if name == "logistic" else y)
        assert accountant.entries() == []


@every_preset
def test_true_takes_newton_steps_of_whatever_length(preset):
    event = preset(precompute=True, max_iter=5, step_size=0.5).planned_event(200, P)
    assert [release.count for release in event.releases[-3:]] == [5, 1, 2]
    assert is_newton(preset(precompute=True).planned_event(200, P, sparse=True))


def test_many_classes_share_a_curvature_or_have_fits_of_their_own():
    model = DPLogisticGCD(classes=[0, 1, 2], precompute=True, **UNIT)
    counts = [release.count for release in model.planned_event(N, P, 3).releases[-3:]]
    assert 24 <= counts[0] <= 40 and counts[1:] == [1, 2]
    event = model.set_params(multi_class="ovr").planned_event(N, P, 3)
    assert [release.count for release in event.releases[-9:]] == 3 * [24, 1, 2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_default_fits_are_near_those_without_noise(dtype):
    X, y, labels = records()
    X = X.astype(dtype)
    noise = {"random_state": ReproducibleNoise(0), "epsilon": 5.0}
    lasso = PRESETS["lasso"](**noise).fit(X, y)
    assert_allclose(lasso.coef_, Lasso(0.01).fit(X, y).coef_, atol=0.02)
    assert (lasso.coef_[2:] == 0).all() and lasso.coef_.dtype == dtype
    ridge = PRESETS["ridge"](**noise).fit(X, y)
    assert_allclose(ridge.coef_, Ridge().fit(X, y).coef_, atol=0.02)
    positive = PRESETS["ridge"](positive=True, **noise).fit(X, y)
    assert positive.coef_.min() == 0
    logistic = PRESETS["logistic"](**noise).fit(X, labels)
    plain = LogisticRegression().fit(X, labels)
    assert_allclose(logistic.coef_, plain.coef_, atol=0.25)


@every_preset
def test_records_without_weight_do_not_count(preset):
    X, y, labels = records()
    # without an intercept, whose start counts records
    model = preset(epsilon=10.0, random_state=ReproducibleNoise(0), fit_intercept=False)
    target = labels if hasattr(model, "classes") else y
    weights = np.r_[np.ones(N // 2), np.zeros(N // 2)]
    other = np.where(weights > 0, target, 1 - target)
    first, second = (model.fit(X, each, sample_weight=weights).coef_ for each in (target, other))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("generic", [DPLinearRegressor, DPLinearClassifier])
def test_auto_takes_newton_steps_from_the_same_signal_on(generic):
    more = TARGET if generic is DPLinearRegressor else UNIT | {"classes": [0, 1]}
    model = generic(**more)
    assert is_newton(model.planned_event(N, P))
    assert not is_newton(model.planned_event(300, P))
    assert not is_newton(model.set_params(sampling="full").planned_event(N, P))


def test_momentum_looks_ahead():
    """By hand, without noise: gradients are taken where half of the last move would lead again."""
    X, y, _ = records(50, 3)
    X = X - X.mean(axis=0)
    model = DPLinearRegressor(
        solver="newton", alpha=0.0, epsilon=np.inf, fit_intercept=False, momentum=0.5,
        step_size=0.3, max_iter=4, averaging="last", tol=1e-12, coef_path=True,
    )  # fmt: skip
    with pytest.warns(match="stopped after 4 updates"):
        path = model.fit(X, y).coef_path_
    least = np.linalg.lstsq(X, y)[0]
    before = at = np.zeros(3)
    for point in path[1:]:
        ahead = at + 0.5 * (at - before)
        before, at = at, ahead + 0.3 * (least - ahead)
        assert_allclose(point, at, rtol=1e-9)


def test_momentum_makes_good_a_curvature_that_is_far_too_large():
    """Of labels that are nearly a function of the features, 24 steps by the bound are too few."""
    X, y, _ = records()
    labels = (y > 0).astype(int)
    model = DPLinearClassifier(
        solver="newton", epsilon=20.0, random_state=ReproducibleNoise(0), classes=[0, 1], **UNIT
    )
    slow = np.linalg.norm(model.set_params(momentum=0.0).fit(X, labels).coef_)
    assert np.linalg.norm(model.set_params(momentum="auto").fit(X, labels).coef_) > 1.5 * slow
