"""The laws of the papers' synthetic problems: what each generator says that it draws.

Statistical bounds are five or more standard errors wide, or a Kolmogorov-Smirnov test at 1e-6, so
that they hold for every seed; sizes are such that a scale that is wrong by a tenth is noticed.
"""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.linear_model import Lasso

from .generators import make_log1, make_log2, make_square
from .scaled_generators import (
    make_dominated_regression,
    make_scaled_classification,
    make_scaled_regression,
)

LOGS = [(make_log1, 1.0), (make_log2, 2.0)]
CLASSIFICATIONS = [make_log1, make_log2, make_scaled_classification]
REGRESSIONS = [make_square, make_scaled_regression, make_dominated_regression]
SCALED = [make_scaled_regression, make_scaled_classification]
WITH_SCALE = [*SCALED, make_dominated_regression]
GENERATORS = [*CLASSIFICATIONS, *REGRESSIONS]
SMALL = {"n_samples": 30, "n_features": 12}


def follows(sample, law):
    """Whether a sample could come from a continuous law; no seed fails that by chance."""
    return stats.kstest(sample, law).pvalue > 1e-6


def standard_normal(sample):
    return follows(sample, stats.norm.cdf)


# --- conventions of scikit-learn's generators --------------------------------------------------


@pytest.mark.parametrize("make", GENERATORS)
def test_shapes_and_dtypes(make):
    X, y = make(**SMALL, random_state=0)
    assert X.shape == (30, 12) and X.dtype == np.float64 and X.flags.c_contiguous
    assert y.shape == (30,) and y.dtype == (np.int64 if make in CLASSIFICATIONS else np.float64)
    assert np.isfinite(X).all() and np.isfinite(y).all()


@pytest.mark.parametrize("make", GENERATORS)
def test_smallest_sizes(make):
    n_features = 2 if make is make_dominated_regression else 1
    few = {"n_informative": 1} if "n_informative" in inspect.signature(make).parameters else {}
    X, y, coef = make(1, n_features, **few, coef=True, random_state=0)
    assert X.shape == (1, n_features) and y.shape == (1,) and coef.shape == (n_features,)


@pytest.mark.parametrize("make", GENERATORS)
def test_only_the_sizes_are_positional(make):
    kinds = {name: p.kind for name, p in inspect.signature(make).parameters.items()}
    positional = [
        name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    assert positional == ["n_samples", "n_features"]


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (make_log1, (1000, 100)),
        (make_log2, (1000, 100)),
        (make_square, (1000, 1000)),
        (make_scaled_regression, (10_000, 100)),
        (make_scaled_classification, (10_000, 100)),
        (make_dominated_regression, (10_000, 100)),
    ],
)
def test_default_sizes_are_the_papers(make, sizes):
    X, y = make(random_state=0)
    assert X.shape == sizes and y.shape == sizes[:1]


@pytest.mark.parametrize("make", WITH_SCALE)
def test_extras_come_in_order_and_only_if_wanted(make):
    full = SMALL | {"random_state": 0}
    X, y, coef, scale = make(**full, coef=True, feature_scale=True)
    for wanted, extras in (
        ({}, []),
        ({"coef": True}, [coef]),
        ({"feature_scale": True}, [scale]),
    ):
        returned = make(**full, **wanted)
        assert len(returned) == 2 + len(extras)
        for one, other in zip(returned, [X, y, *extras], strict=True):
            assert_array_equal(one, other)
    assert (scale > 0).all() and not np.array_equal(coef, scale)


@pytest.mark.parametrize("make", GENERATORS)
def test_a_seed_makes_the_same_data(make):
    def draw(seed):
        return make(**SMALL, coef=True, random_state=seed)

    global_state = np.random.get_state()[1].copy()  # noqa: NPY002
    for one, same, other in zip(draw(7), draw(7), draw(8), strict=True):
        assert_array_equal(one, same)
        assert not np.array_equal(one, other)
    assert_array_equal(np.random.get_state()[1], global_state)  # noqa: NPY002

    rng = np.random.RandomState(7)  # noqa: NPY002
    assert_array_equal(draw(rng)[0], draw(7)[0])
    assert not np.array_equal(draw(rng)[0], draw(7)[0])  # an instance moves on


# --- features ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", GENERATORS)
def test_features_are_independent_standard_normals_up_to_scale(make, global_random_seed):
    extra = {"feature_scale": True} if make in WITH_SCALE else {}
    X, _, *scale = make(4000, 20, **extra, random_state=global_random_seed)
    Z = X / scale[0] if scale else X
    assert standard_normal(Z.ravel())
    covariance = Z.T @ Z / len(Z)  # standard errors: 1 / sqrt(n), on the diagonal sqrt(2 / n)
    assert np.abs(covariance - np.eye(20)).max() < 6 * np.sqrt(2 / len(Z))


@pytest.mark.parametrize("make", SCALED)
@pytest.mark.parametrize("log_std", [0.5, 2.0])
def test_smoothness_is_log_normal(make, log_std, global_random_seed):
    X, _, scale = make(
        500,
        2000,
        smoothness_log_std=log_std,
        feature_scale=True,
        random_state=global_random_seed,
    )
    assert standard_normal(np.log(scale**2) / log_std)
    assert not standard_normal(np.log(scale) / log_std)
    smoothness = (X**2).mean(axis=0)
    assert_allclose(smoothness, scale**2, rtol=7 * np.sqrt(2 / len(X)))


@pytest.mark.parametrize("make", SCALED)
def test_spread_of_smoothness(make, global_random_seed):
    def spread(**parameters):
        X, _ = make(**parameters, random_state=global_random_seed)
        smoothness = (X**2).mean(axis=0)
        return smoothness.max() / smoothness.min()

    assert spread(smoothness_log_std=0.0) < 1.15  # 100 constants within 5 sqrt(2 / n) of 1
    # log M is N(0, 2²), and 100 standard normals span less than 2.5 with probability < 1e-20
    assert spread() > np.exp(2 * 2.5)


@pytest.mark.parametrize("make", SCALED)
def test_scaling_changes_units_only(make):
    X, y, coef = make(**SMALL, smoothness_log_std=0.0, coef=True, random_state=3)
    scaled = make(**SMALL, coef=True, feature_scale=True, random_state=3)
    Xs, ys, coefs, scale = scaled
    assert_array_equal(ys, y)
    assert_allclose(Xs, X * scale)
    assert_allclose(coefs * scale, coef)
    assert len(np.unique(scale)) == len(scale)


def test_regression_and_classification_share_their_records():
    X, _, coef = make_scaled_regression(**SMALL, smoothness_log_std=0.0, coef=True, random_state=5)
    Xc, _, coef_c = make_scaled_classification(
        **SMALL, smoothness_log_std=0.0, coef=True, random_state=5
    )
    assert_array_equal(Xc, X)
    assert_array_equal(coef_c, coef)


# --- coefficients ------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "log_std"), LOGS)
def test_coefficients_of_log1_and_log2(make, log_std, global_random_seed):
    coef = make(1, 5000, coef=True, random_state=global_random_seed)[2]
    assert standard_normal(np.log(coef) / log_std)
    assert not standard_normal(np.log(coef) / (3.0 - log_std))  # the other one's law


def test_log2_is_log1_with_squared_coefficients():
    X1, _, coef1 = make_log1(**SMALL, coef=True, random_state=1)
    X2, _, coef2 = make_log2(**SMALL, coef=True, random_state=1)
    assert_array_equal(X1, X2)
    assert_allclose(coef2, coef1**2)


@pytest.mark.parametrize("make", [make_square, *SCALED])
@pytest.mark.parametrize("n_informative", [1, 10, 40])
def test_number_of_informative_features(make, n_informative, global_random_seed):
    coef = make(5, 40, n_informative=n_informative, coef=True, random_state=global_random_seed)[2]
    assert np.count_nonzero(coef) == n_informative


@pytest.mark.parametrize("make", [make_square, *SCALED])
def test_ten_features_matter_by_default(make):
    assert np.count_nonzero(make(coef=True, random_state=0)[2]) == 10


@pytest.mark.parametrize("make", [make_square, *SCALED])
def test_informative_features_stand_anywhere(make):
    counts = np.zeros(4)
    for seed in range(400):  # 100 expected at each place, standard error sqrt(75) = 8.7
        counts += make(1, 4, n_informative=1, coef=True, random_state=seed)[2] != 0
    assert np.abs(counts - 100).max() < 45


@pytest.mark.parametrize("log_std", [None, 1.0])
def test_coefficients_of_square(log_std, global_random_seed):
    parameters = {} if log_std is None else {"coef_log_std": log_std}
    coef = make_square(
        1, 25_000, n_informative=20_000, **parameters, coef=True, random_state=global_random_seed
    )[2]
    assert standard_normal(np.log(coef[coef != 0]) / (log_std or 2.0))


@pytest.mark.parametrize("make", SCALED)
def test_scaled_coefficients_are_normal_in_units_of_scale(make, global_random_seed):
    _, _, coef, scale = make(
        1, 2000, n_informative=2000, coef=True, feature_scale=True, random_state=global_random_seed
    )
    assert standard_normal(coef * scale)


# --- targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", REGRESSIONS)
def test_targets_are_linear_with_normal_noise(make, global_random_seed):
    def residuals(noise):
        X, y, coef = make(40_000, 15, noise=noise, coef=True, random_state=global_random_seed)
        return y - X @ coef, np.abs(y).max()

    exact, size = residuals(0.0)
    assert_allclose(exact, 0.0, atol=1e-11 * size)
    noisy, _ = residuals(0.5)
    assert standard_normal(noisy / 0.5)
    assert not standard_normal(noisy)


@pytest.mark.parametrize(
    ("make", "noise"),
    [(make_square, 1.0), (make_scaled_regression, 0.1), (make_dominated_regression, 0.1)],
)
def test_default_noise(make, noise, global_random_seed):
    X, y, coef = make(40_000, 15, coef=True, random_state=global_random_seed)
    assert standard_normal((y - X @ coef) / noise)


@pytest.mark.parametrize("make", CLASSIFICATIONS)
def test_labels_are_two_balanced_classes(make, global_random_seed):
    _, y = make(10_000, 20, random_state=global_random_seed)
    assert_array_equal(np.unique(y), [-1, 1])
    assert abs(y.mean()) < 5 / np.sqrt(len(y))


@pytest.mark.parametrize("make", [make_log1, make_log2])
def test_labels_of_logs_are_signs(make, global_random_seed):
    X, y, coef = make(noise=0.0, coef=True, random_state=global_random_seed)
    assert_array_equal(y, np.sign(X @ coef))


@pytest.mark.parametrize("make", [make_log1, make_log2])
@pytest.mark.parametrize("relative_noise", [None, 1.0, 3.0])
def test_noise_of_logs(make, relative_noise, global_random_seed):
    """A noise of r times the signal turns a share of arctan(r) / π of the signs."""
    n, p = 40_000, 10
    same_seed = {"coef": True, "random_state": global_random_seed}
    norm = np.linalg.norm(make(n, p, **same_seed)[2])
    noise = {} if relative_noise is None else {"noise": relative_noise * norm}
    X, y, coef = make(n, p, **noise, **same_seed)
    share = np.arctan(noise.get("noise", 1.0) / norm) / np.pi
    turned = (y != np.sign(X @ coef)).mean()
    assert abs(turned - share) < 6 * np.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("probability", [None, 0.0, 0.4, 1.0])
def test_flips_have_their_probability_at_every_margin(probability, global_random_seed):
    flips = {} if probability is None else {"flip_probability": probability}
    X, y, coef = make_scaled_classification(
        20_000, 20, **flips, coef=True, random_state=global_random_seed
    )
    probability = 0.2 if probability is None else probability
    margins = X @ coef
    flipped = y != np.sign(margins)
    far = np.abs(margins) > np.median(np.abs(margins))
    for group in (far, ~far, margins > 0, margins < 0):
        bound = 5.5 * np.sqrt(probability * (1 - probability) / group.sum())
        assert abs(flipped[group].mean() - probability) <= bound


@pytest.mark.parametrize("threshold", [-1.0, 2.0])
def test_threshold_parts_the_classes(threshold, global_random_seed):
    X, y, coef = make_scaled_classification(
        threshold=threshold, flip_probability=0.0, coef=True, random_state=global_random_seed
    )
    assert_array_equal(y == 1, X @ coef > threshold)
    assert 0 < (y == 1).sum() < len(y)


def test_lasso_recovers_the_support():
    """With alpha = 0.05, errors of the gradient of about 0.002 bring in no other feature."""
    X, y, coef = make_scaled_regression(smoothness_log_std=0.0, coef=True, random_state=0)
    found = Lasso(alpha=0.05, fit_intercept=False).fit(X, y).coef_ != 0
    assert_array_equal(found, np.abs(coef) > 0.05)


# --- one or some dominating features -----------------------------------------------------------


@pytest.mark.parametrize("ratio", [None, 1.0, 1e4])
@pytest.mark.parametrize("n_dominating", [None, 3, 19])
def test_dominating_features(ratio, n_dominating, global_random_seed):
    given = {"smoothness_ratio": ratio, "n_dominating": n_dominating}
    given = {name: value for name, value in given.items() if value is not None}
    X, y, coef, scale = make_dominated_regression(
        10_000, 20, **given, coef=True, feature_scale=True, random_state=global_random_seed
    )
    law = np.ones(20)
    law[: n_dominating or 1] = ratio or 100.0
    assert_allclose(scale**2, law)
    assert_allclose((X**2).mean(axis=0), law, rtol=6 * np.sqrt(2 / len(X)))
    assert_allclose(y, X @ coef, atol=0.1 * 6)


def test_ratio_changes_units_only(global_random_seed):
    def draw(ratio):
        return make_dominated_regression(
            **SMALL,
            smoothness_ratio=ratio,
            coef=True,
            feature_scale=True,
            random_state=global_random_seed,
        )

    X, y, coef, _ = draw(1.0)
    Xs, ys, coefs, scale = draw(400.0)
    assert_array_equal(ys, y)
    assert_allclose(Xs, X * scale)
    assert_allclose(coefs * scale, coef)
    assert scale[0] == 20.0


def test_coefficients_are_dense_normals(global_random_seed):
    _, _, coef, scale = make_dominated_regression(
        1, 3000, coef=True, feature_scale=True, random_state=global_random_seed
    )
    assert standard_normal(coef * scale)


# --- wide laws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", SCALED)
def test_widest_law_stays_finite(make, global_random_seed):
    X, y, coef, scale = make(
        50,
        1000,
        smoothness_log_std=100.0,
        coef=True,
        feature_scale=True,
        random_state=global_random_seed,
    )
    assert all(np.isfinite(array).all() for array in (X, X**2, y, coef, scale))
