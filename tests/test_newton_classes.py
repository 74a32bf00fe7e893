"""Newton steps of more than two classes: sums, norms and noise of all, and what they find."""

import math
import pickle

import numpy as np
import pytest
from flat import flat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from test_curvature import (
    LAYOUTS,
    ROOM,
    ClippedBefore,
    HalfTheNoise,
    Source,
    keys,
    lower,
    numbers,
    records,
    separation,
)

from dpcd_sklearn import DPLinearClassifier, DPLogisticGCD, PrivacyAccountant
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.privacy.accounting import Budget, Receipt, curvature_fit_event, epsilon_of
from dpcd_sklearn.privacy.mechanisms import CurvatureOracle, CurvatureUnits, _questions
from dpcd_sklearn.privacy.mechanisms._curvature import exact_image
from dpcd_sklearn.privacy.mechanisms._curvature_units import image_sensitivity
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.privacy.sums._integer_rows import joined, most_of_transform
from dpcd_sklearn.testing import ReproducibleNoise

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning"
)
K = 4
SOFTMAX = LOSSES["multinomial"]()


def labelled(rng, n=700, p=5):
    X, _, weights = records(rng, n, p)
    return X, rng.integers(0, K, n).astype(float), weights


def sums_of(X, y, weights=None, *, fit_intercept=True, n_outputs=K):
    return LocalPlace(X, y, weights).second_order(
        SOFTMAX, np.ones(X.shape[1] + fit_intercept), fit_intercept=fit_intercept,
        n_outputs=n_outputs,
    )  # fmt: skip


def contributions(X, y, weights, coef, transform, clip):
    """Gradients of each record, (n, K, d), clipped by the norm of all their images together."""
    wide = np.column_stack([X.astype(float), np.ones(len(X))])
    r = softmax(wide @ coef.reshape(K, -1).T, axis=1) - np.eye(K)[y.astype(int)]
    g = (r * weights[:, None])[:, :, None] * wide[:, None, :]
    norms = np.linalg.norm(g @ transform.T, axis=(1, 2))
    return g * np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None, None]


# ---- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients_of_all_classes_are_those_of_numpy_and_equal_in_every_layout(dtype):
    rng = np.random.default_rng(2)
    X, y, weights = labelled(rng)
    X, coef, limit, clip = X.astype(dtype), 0.3 * rng.normal(size=6 * K), 2.0**22, 0.5
    transform, largest, smallest = lower(rng, 6)
    found = []
    for make in LAYOUTS.values():
        sums = sums_of(make(X), y, weights)
        sums.measure(transform, largest, smallest)
        found.append(sums.gradient(coef, clip, limit))
    assert all((found[0] == other).all() for other in found[1:])
    twin = contributions(X, y, weights, coef, transform, clip * smallest).sum(axis=0)
    twin *= limit / clip
    np.testing.assert_allclose(found[0].reshape(K, -1), twin, rtol=1e-3, atol=limit * 0.07)
    # a softmax' derivatives add up to zero, and so do those that one factor clips
    assert np.abs(found[0].reshape(K, -1).sum(axis=0)).max() <= len(X) * K / 2
    plain = sums_of(X, y, weights).gradient(coef, 1.0, 0.0)
    twin = contributions(X, y, weights, coef, transform, np.inf).sum(axis=0)
    np.testing.assert_allclose(plain.reshape(K, -1), twin, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_record_adds_to_any_class_does_not_depend_on_its_place_or_on_others(layout):
    rng = np.random.default_rng(3)
    X, y, weights = labelled(rng, n=530, p=7)
    coef, (transform, largest, smallest) = rng.normal(size=8 * K), lower(rng, 8, 1e4)

    def gradient(rows):
        sums = sums_of(LAYOUTS[layout](X[rows]), y[rows], weights[rows])
        sums.measure(transform, largest, smallest)
        return sums.gradient(coef, 0.3, 2.0**24)

    whole = gradient(np.arange(530))
    assert (whole == gradient(rng.permutation(530))).all()
    parts = np.array_split(rng.permutation(530), [1, 4, 9, 200, 513])
    assert (whole == sum(gradient(rows) for rows in parts)).all()


def test_rows_and_their_curvature_are_those_of_one_output():
    X, y, weights = labelled(np.random.default_rng(4))
    one, all_classes = (sums_of(X, y, weights, n_outputs=n) for n in (1, K))
    assert (one.gram(2.0, 2.0**14) == all_classes.gram(2.0, 2.0**14)).all()
    asked = 2.0, 2.0**15, 2.0**15
    assert (one.row_sums(*asked) == all_classes.row_sums(*asked)).all()


def test_coefficients_of_another_number_of_classes_are_refused():
    with pytest.raises(ValueError, match="expected 24 coefficients, got 6"):
        sums_of(*labelled(np.random.default_rng(5))).gradient(np.zeros(6), 1.0, 0.0)
    with pytest.raises(ValueError, match="the squared loss has one output"):
        LocalPlace(np.ones((2, 1)), np.zeros(2)).second_order(
            LOSSES["squared"](), np.ones(1), fit_intercept=False, n_outputs=2
        )


@settings(max_examples=150, deadline=None)
@given(
    row=st.lists(numbers, min_size=3, max_size=3),
    weight=st.sampled_from([0.0, 1e-300, 0.5, 1.0, 3.0, 1e300]),
    label=st.sampled_from([0.0, 3.0]),
    condition=st.sampled_from([1.0, 10.0, 1e4]),
    steepness=st.sampled_from([0.0, 1.0, 1e200, np.inf]),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_a_record_stays_within_its_norm_in_all_classes_together(
    row, weight, label, condition, steepness, fit_intercept, seed
):
    rng, d = np.random.default_rng(seed), 3 + fit_intercept
    sums = sums_of(
        np.array([row]), np.array([label]), np.array([weight]), fit_intercept=fit_intercept
    )
    transform, largest, smallest = lower(rng, d, condition)
    sums.measure(transform, largest, smallest)
    limit, coef = 2**20, np.nan_to_num(rng.normal(size=K * d) * steepness, nan=0.0)
    integers = sums.gradient(coef, 0.1, float(limit))
    image = [exact_image(transform, part) for part in np.split(integers, K)]
    most = limit * smallest + 0.5001 * largest * math.sqrt(K * d)
    assert np.linalg.norm(np.array(image, dtype=float)) <= most * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    log_epsilon=st.floats(-6, 6),
    neighboring=st.sampled_from(["replace_one", "add_remove"]),
    n=st.sampled_from([2, 1_000, 10**6, 2**28]),
    d=st.sampled_from([1, 7, 101, 4001]),
    n_outputs=st.sampled_from([3, 10, 1000]),
    condition=st.floats(1.0, 1e3),
)
def test_noise_covers_the_sensitivity_of_all_classes(
    log_epsilon, neighboring, n, d, n_outputs, condition
):
    event = curvature_fit_event(Budget(10.0**log_epsilon, 1e-9, neighboring), 5, 0.2)
    sizes = {"n_samples": n, "smoothness": np.ones(d), "n_normalizer": n, "row_norm": 3.0}
    units = CurvatureUnits(event, n_outputs=n_outputs, **sizes)
    one = CurvatureUnits(event, **sizes)
    assert (units.curvature_bits, units.row_units) == (one.curvature_bits, one.row_units)
    z, size = event.releases[0].noise_multiplier, n_outputs * d
    smallest = most_of_transform(d) / condition / 10
    largest = smallest * condition
    bits, shift, limit = units.gradient_grid(largest, smallest)
    norm = (limit * smallest + 0.5 * largest * math.sqrt(size)) / 2.0**shift
    of_image = image_sensitivity(norm, size, units.neighbors)
    assert z * of_image <= 2.0**bits <= 1.1 * z * of_image
    assert n * limit <= 2.0**52 and limit < 2**50


# ---- noise, and mutants --------------------------------------------------------------------------


def class_oracle(X, y, key=None, *, neighboring="replace_one", n=2, epsilon=2.0, n_outputs=3):
    event = curvature_fit_event(Budget(epsilon, 1e-3, neighboring), 1, 0.5)
    units = CurvatureUnits(
        event, n_samples=len(y), smoothness=np.full(X.shape[1], 0.5), n_normalizer=n,
        row_norm=1.5, n_outputs=n_outputs,
    )  # fmt: skip
    return CurvatureOracle(
        Receipt(event, None), units, LocalPlace(X, y), loss=SOFTMAX, fit_intercept=False, key=key
    )


def class_separation(sums=None, neighboring="replace_one"):
    """Two records of one label that pull apart in all three classes, along a stretched axis.

    How far that is over the claim, in the direction that tells them apart best. Their sums may be
    those of a mutant.
    """
    root, pull, shown = np.diag([1.0, 8.0]), np.array([-2.0, 1.0, 1.0]) / math.sqrt(6), []
    for sign in (1, -1) if neighboring == "replace_one" else (1, 0):
        X, y = np.array([[0.0, sign * 1e3], [0.0, 0.0]]), np.zeros(2)
        shown.append([])
        for key in keys():
            oracle = class_oracle(X, y, key, neighboring=neighboring)
            if sums is not None:
                oracle._sums = sums(oracle._sums)
            oracle.fix_geometry(root)
            released = oracle.release_preconditioned(np.zeros(6), 1.0).reshape(3, 2)
            shown[-1].append(pull @ released[:, 1])
    event = curvature_fit_event(Budget(2.0, 1e-3, neighboring), 1, 0.5)
    return separation(*shown) * event.releases[0].noise_multiplier


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_records_that_pull_in_all_classes_are_no_farther_apart_than_claimed(neighboring):
    assert class_separation(neighboring=neighboring) == pytest.approx(1.0, abs=ROOM)


class ClippedByClass:
    """Sums in which the gradient of each class has a clip of its own: each class is at it."""

    def __init__(self, sums):
        self.measure, self._sums = sums.measure, sums

    def gradient(self, coef, clip, limit):
        found = self._sums.gradient(coef, clip, limit)  # of one record
        found = (found if found.ndim == 1 else joined(*found)).reshape(3, -1)
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        longer = np.linalg.norm(found) / np.maximum(norms, 1.0)
        return np.rint(found * longer).astype(np.int64).ravel()


def test_a_mutant_that_clips_each_class_by_itself_is_caught():
    assert class_separation(ClippedByClass) > 1 + 2 * ROOM  # 1.63


def test_a_mutant_that_clips_before_it_preconditions_is_caught():
    assert class_separation(ClippedBefore) > 1 + 2 * ROOM  # 8


def test_a_mutant_with_half_the_noise_is_caught(monkeypatch):
    monkeypatch.setattr(_questions, "NoiseSource", HalfTheNoise)
    assert class_separation() > 1 + 2 * ROOM  # 2


class NoiseOfOneClass(Source):
    """A source that draws for one class and adds the same to all of them."""

    def gaussians(self, size, bits):
        return np.tile(super().gaussians(size // 3, bits), 3)


def test_a_mutant_that_shares_its_noise_among_classes_is_caught(monkeypatch):
    """The pull that parts classes has no noise then."""
    monkeypatch.setattr(_questions, "NoiseSource", NoiseOfOneClass)
    assert class_separation() > 10


def test_releases_are_unbiased_in_every_class():
    rng = np.random.default_rng(6)
    X, y, coef = rng.uniform(-1, 1, (4000, 3)), rng.integers(0, 3, 4000), rng.normal(size=(3, 3))
    oracle = class_oracle(X, y.astype(float), bytes(32), n=4000, epsilon=1e4)
    root = oracle.fix_geometry(np.tril(rng.normal(size=(3, 3))) + 3 * np.eye(3))
    found = oracle.release_preconditioned(coef.ravel(), 100.0).reshape(3, 3)
    r = softmax(X @ coef.T, axis=1) - np.eye(3)[y]
    np.testing.assert_allclose(found, r.T @ X @ root.T / 4000 / 0.5**0.5, atol=2e-3)


# ---- fits ---------------------------------------------------------------------------------------

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
