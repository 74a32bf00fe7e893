"""Means of rows and of their squared norms: exact sums, noise as claimed, and what they are for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_curvature import (
    LAYOUTS,
    ROOM,
    SQUARED,
    HalfTheNoise,
    cut_rows,
    records,
    separation,
    sums_of,
)

from dpcd_sklearn import DPLinearRegressor, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.loops._newton import solve
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy.accounting import (
    Budget,
    Receipt,
    curvature_fit_event,
    epsilon_of,
    gdp_squared,
)
from dpcd_sklearn.privacy.mechanisms import (
    CurvatureOracle,
    CurvatureUnits,
    _curvature_units,
    _questions,
)
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import _newton
from dpcd_sklearn.testing import ReproducibleNoise

# ---- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sums_are_those_of_numpy_and_equal_in_every_layout(dtype, fit_intercept):
    X, y, weights = records(np.random.default_rng(0))
    X, norm, units = X.astype(dtype), 2.0, 2.0**15
    found = [
        sums_of(make(X), y, weights, fit_intercept=fit_intercept).row_sums(norm, units, units)
        for make in LAYOUTS.values()
    ]
    assert all((found[0] == other).all() for other in found[1:])
    rows, norms = cut_rows(X.astype(float), weights, norm, fit_intercept)
    counted = np.minimum(weights, norm / norms)[:, None]
    # a computed norm may differ in its last bits, and an entry by one unit
    means = np.rint(rows * counted * units / norm).sum(axis=0)
    np.testing.assert_allclose(found[0][:-1], means, atol=len(X) / 10)
    squares = (counted * rows[:, : X.shape[1]] ** 2).sum() * (units / norm) ** 2
    assert found[0][-1] == pytest.approx(squares, rel=1e-4)
    plain = sums_of(X, y, fit_intercept=fit_intercept)  # of rows without weights as the curvature
    trace = np.trace(plain.gram(norm, units / 4)[: X.shape[1], : X.shape[1]]) * 16
    assert plain.row_sums(norm, units, units)[-1] == pytest.approx(trace, rel=1e-3)
    coarse = sums_of(X, y, weights, fit_intercept=fit_intercept).row_sums(norm, units, 2.0**10)
    np.testing.assert_array_equal(coarse[:-1], found[0][:-1])
    assert coarse[-1] == pytest.approx(found[0][-1] / 2.0**10, rel=1e-2)
    if fit_intercept:  # without weights its constant is the same in every row
        sums = sums_of(X, y)
        constant = np.rint(units / norm * (1 - 2.0**-30))
        assert sums.row_sums(norm, units, units)[-2] == len(X) * constant


@settings(max_examples=60, deadline=None)
@given(
    log_size=st.floats(-160, 160),
    units=st.integers(2, 2**17),
    weight=st.sampled_from([0.0, 1e-9, 1.0, 1e9]),
    fit_intercept=st.booleans(),
)
def test_no_record_adds_more_than_its_norm(log_size, units, weight, fit_intercept):
    X = 10.0**log_size * np.array([[1.0, -1.0, 0.5]])
    sums = sums_of(X, np.zeros(1), np.array([weight]), fit_intercept=fit_intercept)
    found = sums.row_sums(2.0, float(units), float(units))
    longest = units + 0.5 * math.sqrt(len(found) - 1)
    assert found[-1] <= units**2
    assert (found[:-1].astype(float) ** 2).sum() <= longest**2


def test_sums_of_all_are_the_sums_of_each():
    X, y, weights = records(np.random.default_rng(3), n=1100)
    asked = 3.0, 2.0**16, 2.0**16
    whole = sums_of(X, y, weights).row_sums(*asked)
    parts = [sums_of(X[[i]], y[[i]], weights[[i]]).row_sums(*asked) for i in range(len(X))]
    assert (whole == np.sum(parts, axis=0)).all()


# ---- noise, and mutants --------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    log_epsilon=st.floats(-6, 6),
    neighboring=st.sampled_from(["replace_one", "add_remove"]),
    n=st.sampled_from([2, 1_000, 10**6, 2**28]),
    d=st.sampled_from([1, 7, 101, 4001]),
)
def test_noise_covers_the_sensitivity_of_integers(log_epsilon, neighboring, n, d):
    event = curvature_fit_event(Budget(10.0**log_epsilon, 1e-9, neighboring), 5, 0.2, 1, 0.05, 2)
    units = CurvatureUnits(event, n_samples=n, smoothness=np.ones(d), n_normalizer=n, row_norm=3.0)
    z = event.releases[2].noise_multiplier
    longest = units.mean_units + 0.5 * math.sqrt(d)
    of_mean = {"replace_one": 2.0, "add_remove": 1.0}[neighboring] * longest
    assert z * of_mean <= 2.0**units.mean_bits <= 1.01 * z * of_mean
    assert longest <= 2**16 * 1.01
    assert 2.0**units.square_bits >= z * units.square_units**2
    assert n * units.square_units**2 <= 2.0**62


def oracle_of(X, key=None, *, neighboring="replace_one", of_rows=0.5, n_of_rows=2, row_norm=2.0):
    event = curvature_fit_event(Budget(2.0, 1e-3, neighboring), 2, 0.3, 1, of_rows, n_of_rows)
    units = CurvatureUnits(
        event, n_samples=len(X), smoothness=np.ones(X.shape[1]), n_normalizer=2, row_norm=row_norm
    )
    return CurvatureOracle(
        Receipt(event, None), units, LocalPlace(X, np.zeros(len(X))), loss=SQUARED,
        fit_intercept=False, key=key,
    )  # fmt: skip


def apart(release, one, other, neighboring):
    """How far neighbours are apart, over the claim."""
    shown = [
        [
            np.ravel(release(oracle_of(X, k.to_bytes(32, "little"), neighboring=neighboring)))[0]
            for k in range(500)
        ]
        for X in (np.array(one), np.array(other))
    ]
    z = (
        curvature_fit_event(Budget(2.0, 1e-3, neighboring), 2, 0.3, 1, 0.5, 2)
        .releases[2]
        .noise_multiplier
    )
    return separation(*shown) * z


LONG, BACK, NONE = [5.0, 0.0], [-5.0, 0.0], [0.0, 0.0]


@pytest.mark.parametrize(
    ("one", "other", "neighboring"),
    [([LONG, NONE], [BACK, NONE], "replace_one"), ([LONG], [NONE], "add_remove")],
)
def test_mean_rows_are_told_apart_as_far_as_is_claimed_and_no_farther(
    one, other, neighboring, monkeypatch
):
    release = CurvatureOracle.release_mean_row
    assert apart(release, one, other, neighboring) == pytest.approx(1.0, abs=ROOM)
    if neighboring == "replace_one":  # a mutant that forgets that both records may pull
        monkeypatch.setattr(_curvature_units, "row_sensitivity", lambda norm, neighbors: norm)
        assert apart(release, one, other, neighboring) > 1 + 2 * ROOM


def test_mean_squares_are_told_apart_as_far_as_is_claimed_and_no_farther(monkeypatch):
    release = CurvatureOracle.release_mean_square
    one, other = [LONG, NONE], [NONE, NONE]
    # the grid is that of a matrix, which leaves 1 / sqrt(2) unused under replace-one
    found = apart(release, one, other, "replace_one") * math.sqrt(2)
    assert found == pytest.approx(1.0, abs=ROOM)
    assert apart(release, [LONG], [NONE], "add_remove") == pytest.approx(1.0, abs=ROOM)


@pytest.mark.parametrize("name", ["release_mean_row", "release_mean_square"])
def test_a_mutant_with_half_the_noise_is_caught(name, monkeypatch):
    monkeypatch.setattr(_questions, "NoiseSource", HalfTheNoise)
    assert apart(getattr(CurvatureOracle, name), [LONG], [NONE], "add_remove") > 1 + 2 * ROOM


def test_no_more_is_released_than_was_paid_for():
    oracle = oracle_of(np.eye(2))
    oracle.release_mean_square(), oracle.release_mean_row()
    for release in (oracle.release_mean_square, oracle.release_mean_row):
        with pytest.raises(RuntimeError, match="not paid for, or was released"):
            release()
    one = oracle_of(np.eye(2), n_of_rows=1)
    one.release_mean_square()
    with pytest.raises(RuntimeError, match="a mean row is not paid for"):
        one.release_mean_row()
    with pytest.raises(RuntimeError, match="a mean square of rows is not paid for"):
        oracle_of(np.eye(2), of_rows=0.0).release_mean_square()


def test_how_rows_are_seen_is_fixed_before_the_curvature():
    X = np.eye(2)
    oracle, place = oracle_of(X), LocalPlace(X, np.zeros(2))
    for other, norm in ((LocalPlace(np.eye(3), np.zeros(3)), 1.0), (place, 0.0), (place, np.nan)):
        with pytest.raises(ValueError, match="the same records|row_norm"):
            oracle.see(other, norm)
    oracle.see(place, 1.0)
    oracle.release_curvature()
    with pytest.raises(RuntimeError, match="before their curvature"):
        oracle.see(place, 1.0)


def test_releases_are_of_the_rows():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 3)) + [0.5, 0.0, -0.2]
    event = curvature_fit_event(Budget(1e3, 1e-3), 2, 0.3, 1, 0.5, 2)
    sizes = {"n_samples": 3000, "n_normalizer": 3000, "smoothness": np.ones(3)}
    units = CurvatureUnits(event, row_norm=9.0, **sizes)
    oracle = CurvatureOracle(
        Receipt(event, None), units, LocalPlace(X, np.zeros(3000)), loss=SQUARED,
        fit_intercept=False, key=bytes(32),
    )  # fmt: skip
    np.testing.assert_allclose(oracle.release_mean_row(), X.mean(axis=0), atol=1e-3)
    assert oracle.release_mean_square() == pytest.approx((X**2).sum(axis=1).mean(), abs=1e-2)
    assert units.mean_std < 1e-3 and units.mean_square_std < 1e-2


# ---- what they are for --------------------------------------------------------------------------


def skewed(n=20_000, p=5):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(n, p)))
    return X, np.clip(np.log(X) @ np.linspace(0.1, 0.5, p) + 0.1 * rng.normal(size=n), -3, 3)


@pytest.mark.parametrize(("loose", "least"), [(1, 0.1), (3, 0.4), (30, -0.05)])
def test_bounds_that_are_far_from_the_records_are_no_trap(loose, least):
    """R² without noise is .56. Rows cut short once had a curvature far too small: steps diverged.

    Medians of eight fits were .22, -.02 and -.44 then, and are .5, .5 and .05.
    """
    X, y = skewed()
    model = DPLinearRegressor(
        solver="newton", epsilon=2.0, feature_bounds=(0, loose * 60), target_bounds=(-3, 3),
        random_state=ReproducibleNoise(0),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="ReproducibleNoise"):
        model.fit(X, y)
    assert model.score(X, y) > least


def test_rows_at_one_end_of_wide_bounds_are_taken_for_no_longer_than_they_are():
    """Their squares are small differences of large numbers: one fit in six was left half way."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(20_000, 5)))
    y = 0.01 * rng.normal(size=len(X))
    for seed in range(12):
        model = DPLinearRegressor(
            solver="newton", alpha=0.0, epsilon=10.0, feature_bounds=(0, 5 * X.max(axis=0)),
            target_bounds=(-0.1, 1.9), random_state=ReproducibleNoise(seed),
        )  # fmt: skip
        with pytest.warns(UserWarning, match="ReproducibleNoise"):
            model.fit(X, y)
        assert model.score(X, y) > -0.5  # -8 to -60 then


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
            penalty=ElasticNet(), smoothness=np.ones(3), n_penalized=2, n_updates=1,
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
    assert share == pytest.approx(0.8 * _newton._SHARE_OF_ROWS, rel=1e-9)
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
        solver="newton", alpha=0.0, coef_path=True, max_iter=60, epsilon=1e3, delta=1e-6,
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


def test_regressions_in_stated_bounds_take_newton_steps_from_the_same_signal_as_others():
    for epsilon, few in ((0.1, True), (0.01, False)):
        model = DPRidgeSkGD(epsilon=epsilon, feature_scale=1.0, target_bounds=(-1, 1))
        event = model.planned_event(100_000, 100)
        assert (sum(release.count for release in event.releases) < 20) == few
