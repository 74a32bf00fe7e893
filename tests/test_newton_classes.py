"""Newton fits of more than two classes; their sums are in test_curvature.py."""

import pickle

import numpy as np
import pytest
from flat import flat
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from dpcd_sklearn import DPLinearClassifier, DPLogisticGCD, PrivacyAccountant
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning"
)
N = 6000


def classes_of(n=N, p=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    coef = np.random.default_rng(1).normal(size=(p, n_classes))
    return X, (2 * X @ coef + rng.gumbel(size=(n, n_classes))).argmax(axis=1)


def newton(**params):
    stated = {"solver": "newton", "classes": [0, 1, 2], "feature_bounds": (-1, 1)}
    stated |= {"feature_scale": 1.0, "random_state": ReproducibleNoise(0)}
    return flat(DPLinearClassifier, **stated | params)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, csr_matrix], ids="CFS")
def test_without_noise_it_is_scikit_learns_model(make):
    X, y = classes_of(1000)
    ridge = {"epsilon": np.inf, "penalty": "l2", "alpha": 1e-2}
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    found = newton(**ridge, tol=1e-10).fit(make(X), y, weights)
    plain = LogisticRegression(C=1 / (1e-2 * len(X)), tol=1e-10, max_iter=1000).fit(X, y, weights)
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    short = newton(**ridge, tol=1e-8).fit(make(X.astype("f4")), y, weights)
    assert short.coef_.dtype == np.float32
    np.testing.assert_allclose(short.coef_, plain.coef_, atol=1e-5)


PENALTIES = [
    {"penalty": "l1", "alpha": 0.02},
    {"penalty": "elasticnet", "alpha": 0.02, "l1_ratio": 0.5},
    {"penalty": Box(-0.3, 0.8)},
    {"penalty": "nonnegative"},
    {"penalize_intercept": True, "alpha": 0.1},
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: next(iter(penalty.values())))
def test_every_penalty_has_the_minimum_of_the_descent(penalty):
    X, y = classes_of(1000)
    params = penalty | {"epsilon": np.inf, "tol": 1e-9, "random_state": None}
    found, descent = newton(**params).fit(X, y), newton(solver="skgd", **params).fit(X, y)
    # bounds leave the same probabilities to other coefficients
    np.testing.assert_allclose(found.predict_proba(X), descent.predict_proba(X), atol=1e-5)
    noisy = newton(**penalty).fit(X, y)
    word = str(penalty.get("penalty"))
    lo, hi = {"Box(": (-0.3, 0.8), "nonn": (0, 99)}.get(word[:4], (-99, 99))
    assert lo <= noisy.coef_.min() and noisy.coef_.max() <= hi


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_fits_of_many_records_are_near_those_without_noise(neighboring):
    X, y = classes_of()
    params = {"neighboring": neighboring, "epsilon": 5.0, "delta": 1e-8}
    if neighboring == "add_remove":
        params["n_public"] = N + 100
    model = newton(**params).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    assert model.score(X, y) > plain.score(X, y) - 0.01
    assert np.abs(model.predict_proba(X) - plain.predict_proba(X)).mean() < 0.02
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-9)  # as scikit-learn's
    event = model.privacy_event_
    assert epsilon_of(event, 1e-8) == pytest.approx(5.0, rel=1e-6)
    # numbers of the classes before gradients, a curvature, and moments of rows: as of two classes
    counts = [release.count for release in event.releases[-3:]]
    assert 16 <= counts[0] <= 26 and counts[1:] == [1, 2]


def test_a_path_a_warm_start_and_a_pickle_have_rows_of_all_classes():
    X, y = classes_of(1000)
    model = newton(coef_path=True, max_iter=5, averaging="last").fit(X, y)
    assert model.coef_path_.shape == (6, 3, 4) and model.n_iter_ == 5
    np.testing.assert_array_equal(model.coef_path_[-1], model.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-3, testing=True)
    again = newton(coef_path=True, max_iter=1, warm_start=True, accountant=accountant, delta=1e-4)
    first = again.fit(X, y).coef_
    np.testing.assert_array_equal(again.fit(X, y).coef_path_[0], first)


def test_an_inference_and_a_constraint_are_refused_before_a_charge():
    X, y = classes_of(100)
    with PrivacyAccountant(epsilon=1.0, delta=1e-3) as accountant:
        for params, match in (
            ({"inference": True}, "one target or two classes"),
            ({"constraint": "l2_ball"}, "solver='newton' needs constraint"),
            ({"averaging": "periodic"}, "'averaging' parameter of Newton must be"),
        ):
            model = newton(accountant=accountant, delta=1e-4, random_state=None, **params)
            with pytest.raises(ValueError, match=match):
                model.fit(X, y)
        assert accountant.entries() == []


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


def test_a_preset_takes_newton_steps_of_all_classes_when_it_is_told_to():
    preset = DPLogisticGCD(classes=[0, 1, 2], feature_bounds=(-1, 1), feature_scale=1.0)
    assert is_newton(preset, N, 4, 3) and not is_newton(preset, 100, 4, 3)
    assert is_newton(preset.set_params(solver="newton"), 100, 4, 3)
    assert not is_newton(preset.set_params(solver="gcd"), N, 4, 3)
    X, y = classes_of()
    preset.set_params(solver="newton", random_state=ReproducibleNoise(0), epsilon=5.0)
    assert preset.fit(X, y).score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.02
