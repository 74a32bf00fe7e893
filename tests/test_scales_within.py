"""Bounds that are stated and wide: scales are looked for inside of them, never outside."""

import numpy as np
import pytest
from flat import fits
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import normalize

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.losses import Quantile
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.plan import _scale_choices, _scales, _target
from dpcd_sklearn.plan._found_scales import FoundScales
from dpcd_sklearn.plan._geometry import public_geometry
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.privacy.accounting import SelectionEvent, choices_event
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import QuantileOracle, QuantileUnits
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 4000, 6


def table(seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) * spread + 3 * spread
    margins = (X / spread - 3) @ rng.standard_normal(P)
    return X, (margins + rng.standard_normal(N) > 0).astype(int), margins


def scores(models, X, y):
    return np.median([model.fit(X[:3000], y[:3000]).score(X[3000:], y[3000:]) for model in models])


def seeded(make, params, count=5):
    return [make(random_state=ReproducibleNoise(seed), **params) for seed in range(count)]


@pytest.mark.parametrize("width", [10.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["classes", "preset", "regression"])
def test_wide_bounds_of_columns_cost_next_to_nothing_beside_none_at_all(kind, width):
    X, y, margins = table()
    make, params = {
        "classes": (DPLinearClassifier, {"classes": [0, 1]}),
        "preset": (DPLogisticGCD, {"classes": [0, 1]}),
        "regression": (DPLinearRegressor, {}),
    }[kind]
    y = margins if kind == "regression" else y
    nothing = scores(seeded(make, params), X, y)
    wide = scores(seeded(make, params | {"feature_bounds": (-width, 2 * width)}), X, y)
    assert wide > nothing - 0.02


def test_wide_bounds_on_rows_cost_next_to_nothing_beside_none_at_all():
    """An intercept as loud as the bound says whole rows are would drown columns of them."""
    rng = np.random.default_rng(0)
    X = sparse.random(N, 400, density=0.05, random_state=0, format="csr", data_rvs=np.ones)
    weights = rng.standard_normal(400)
    X = normalize(X)
    y = (X @ weights + 0.1 * rng.standard_normal(N) > 0).astype(int)
    params = {"classes": [0, 1], "epsilon": 3.0}
    nothing = scores(seeded(DPLinearClassifier, params), X, y)
    for bound in (1.0, 30.0):
        stated = scores(seeded(DPLinearClassifier, params | {"row_norm_bound": bound}), X, y)
        assert stated > nothing - 0.02


def test_after_a_scaler_that_found_scales_they_are_not_looked_for_again():
    for scaler, count in ((DPStandardScaler(), 0), (BoundsScaler((-9, 9)), 5 * P)):
        pipeline = make_private_pipeline(scaler, DPLinearClassifier(classes=[0, 1]), epsilon=3.0)
        X, y, _ = table()
        model = pipeline.fit(X, y)[-1]
        choices = [r.count for r in model.privacy_event_.releases if isinstance(r, SelectionEvent)]
        assert sum(choices) == count


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 0.5), (100.0, 200.0), (2.9, 3.0)])
def test_what_is_found_lies_within_what_is_stated(bounds):
    X, y, _ = table()
    for make in (DPLinearClassifier, DPLogisticGCD):
        model = make(classes=[0, 1], feature_bounds=bounds, epsilon=3.0).fit(X, y)
        assert model.privacy_event_.releases[0].count == 5 * P
        lo, hi = model.feature_bounds_
        assert (bounds[0] <= lo).all() and (lo <= hi).all() and (hi <= bounds[1]).all()
        assert np.isfinite(model.coef_).all()


def test_a_bound_on_rows_is_never_raised():
    X, y, _ = table()
    model = DPLinearClassifier(classes=[0, 1], row_norm_bound=0.5, epsilon=3.0)
    assert model.fit(sparse.csr_array(X), y).row_norm_bound_ == 0.5
    model.set_params(row_norm_bound=1e4)
    assert model.fit(sparse.csr_array(X), y).row_norm_bound_ < 50


def request_of(**params):
    return DPRidgeSkGD(target_bounds=(-1, 1), **params)._plan(N, P, 1).request


def test_the_smoothness_holds_for_every_record_within_the_bounds_in_common():
    """M_j is no less than the square of the farthest number from the centre that was found."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        stated = np.sort(rng.normal(scale=10.0 ** rng.integers(-3, 4), size=(2, P)), axis=0)
        center, reach = rng.normal(size=P) * 10.0 ** rng.integers(-3, 4), rng.exponential(size=P)
        stated[1, 0] = stated[0, 0]  # a column without width
        request = request_of(feature_bounds=(stated[0], stated[1]))
        found = FoundScales(feature_bounds=(center - reach, center + reach))
        geometry = public_geometry(found.stated_in(request, request.loss))
        lo, hi = geometry.lo, geometry.hi
        assert (stated[0] <= lo).all() and (lo <= hi).all() and (hi <= stated[1]).all()
        assert (lo <= geometry.center + 1e-9).all() and (geometry.center <= hi + 1e-9).all()
        farthest = np.maximum(hi - geometry.center, geometry.center - lo)
        assert (geometry.smoothness[:P] * (1 + 1e-6) >= farthest**2)[1:].all()
        assert (farthest <= reach * (1 + 1e-6) + 1e-9).all()


def test_who_states_a_scale_or_asks_for_an_inference_has_the_bounds_that_he_stated():
    bounds = {"feature_bounds": (-50, 50)}
    for more in (
        {"feature_scale": 1.0},
        {"feature_scale": "private"},
        {"fit_intercept": False},
        {"epsilon": 1e-3},
    ):
        assert request_of(**bounds, **more).scales.features is None, more
    plan = DPLinearRegressor(target_bounds=(-1, 1), inference=True, **bounds)._plan(100 * N, P, 1)
    assert plan.request.scales.features is None and plan.request.inference
    for norm in ({}, {"row_norm_bound": 10.0}):  # that says nothing of single columns
        assert request_of(epsilon=10.0, **bounds, **norm).scales.features == "tails within"


SHARES = np.r_[0.01, np.arange(0.02, 1, 0.02), 0.99]


@pytest.mark.parametrize("how", ["within", "tails within", "all within"])
@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_no_column_of_zeros_and_ones_is_seen_in_a_part_of_its_bounds(how, neighboring):
    """With the least evidence that a search is begun with, in 10,000 columns of all shares.

    A scaler may have next to none: it sees everything then.
    """
    n, n_columns, evidence = 1000, 50 * len(SHARES), _scales._LEAST_OF_FEATURES.get(how, 20.0)
    event = choices_event(evidence / n, 5 * n_columns, neighboring)
    X = (np.random.default_rng(0).random((n, n_columns)) < np.repeat(SHARES, 50)).astype(float)
    for lo, hi in ((0.0, 1.0), (-3.0, 1.5)):
        oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X))
        bounds = np.full(n_columns, lo), np.full(n_columns, hi)
        center, half_width = _scale_choices.find_scales_within(oracle, how, *bounds, evidence)
        assert (center - half_width <= 0).all() and (1 <= center + half_width).all()


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("share", [0.005, 0.0])
def test_columns_keep_stated_bounds_where_a_noisy_count_says_that_many_records_are_far(
    share, epsilon
):
    """One value in 200 that is twenty times as far tells most of a slope: errors were .9."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((12_000, 5)) < share, 20.0, rng.random((12_000, 5)))
    y = X @ [0.5, -0.5, 0.25, 0.0, 1.0] + 0.5 * rng.normal(size=12_000)
    params = {"feature_bounds": (0, 20), "target_bounds": (-47, 47), "epsilon": epsilon}
    model = DPLinearRegressor(random_state=ReproducibleNoise(0), **params).fit(X, y)
    widths = np.subtract(*model.feature_bounds_[::-1])
    assert (widths == 20 if share else widths < 4).all()
    assert not share or np.abs(model.coef_ - [0.5, -0.5, 0.25, 0.0, 1.0]).max() < 0.45


def test_a_class_keeps_the_tails_that_evidence_tells_of():
    """Columns were cut at 97 % at every epsilon, where a class of 3 % lies beyond."""
    X = np.exp(np.random.default_rng(0).normal(size=(10_000, 4))).clip(0, 60)
    y = (X.sum(axis=1) > np.quantile(X.sum(axis=1), 0.97)).astype(int)
    params = {"classes": [0, 1], "feature_bounds": (0, 60), "random_state": ReproducibleNoise(0)}
    model = DPLogisticGCD(epsilon=3.0, **params).fit(X, y)
    assert (np.mean(X > model.feature_bounds_[1], axis=0) < 0.015).all()


@pytest.mark.parametrize("value", [0.0, 1.0, 2024.0])
@pytest.mark.parametrize(
    "model",
    [
        DPLinearRegressor(target_bounds=(-8, 10)),
        DPLinearClassifier(classes=[0, 1]),
        DPRidgeSkGD(target_bounds=(-8, 10)),
    ],
    ids=["regressor", "classifier", "ridge"],
)
def test_a_column_whose_bounds_are_one_point_has_the_coefficient_zero(model, value):
    """Noise alone would part it from the intercept: both were 1e8 and more."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5000, 2))
    y = 1 + Z[:, 0] + rng.standard_normal(5000)
    y = (y > 1).astype(int) if hasattr(model, "classes") else y
    model = clone(model).set_params(feature_bounds=[(-5, 5), (-5, 5), (value, value)])
    model.fit(np.column_stack([Z, np.full(5000, value)]), y)
    assert np.ravel(model.coef_)[2] == 0 and np.abs(model.intercept_) < 3


def test_slopes_of_rare_values_do_not_take_the_intercept():
    """From the middle of wide bounds of a target the error was .5 to 1.2, behind a fine R²."""
    rng, slopes = np.random.default_rng(0), np.array([0.5, -0.5, 0.25, 0.0, 1.0])
    X = (rng.random((20_000, 5)) < 0.99).astype(float)
    y = X @ slopes + 0.5 * rng.normal(size=len(X))
    stated = {"feature_bounds": (0, 1), "target_bounds": (-4.75, 4.75), "epsilon": 10.0}
    for model in fits(DPLinearRegressor(**stated), X, y, 4):
        np.testing.assert_allclose(model.coef_, slopes, atol=0.2)


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_one_choice_finds_how_loose_the_bounds_of_all_columns_are(neighboring):
    event = choices_event(_scales._LEAST_OF_FEATURES["share"] / 400, 6_400, neighboring)
    X = np.random.default_rng(0).uniform(-1, 1, (400, P))
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X))
    for loose, count in ((60.0, 200), (8.0, 200), (1.0, 6_000)):
        bounds = np.full(P, -loose), np.full(P, loose)
        found = [_scale_choices.find_share(oracle, *bounds) for _ in range(count)]
        assert np.mean(np.abs(np.log2(found) + np.log2(loose)) <= 1.1) > 0.97
    assert np.mean(np.less(found, 0.25)) < 0.0025  # .004 if all shares had the same odds


@pytest.mark.parametrize("n_columns", [1, 3, 6, 40])
def test_columns_whose_cells_lie_at_their_bounds_keep_them(n_columns):
    """Rows are then as long as bounds say, but for rounding: at the next octave all were lost."""
    event = choices_event(_scales._LEAST_OF_FEATURES["share"] / N, 200, "replace_one")
    X = (np.random.default_rng(0).random((N, n_columns)) < 0.2).astype(float)
    oracle = QuantileOracle(charge(None, event), QuantileUnits(event), LocalPlace(X))
    bounds = np.zeros(n_columns), np.ones(n_columns)
    assert np.mean([_scale_choices.find_share(oracle, *bounds) == 1 for _ in range(200)]) > 0.97


def test_slopes_of_few_ones_are_told_from_little_evidence():
    """From the middle of the target's bounds R² was -3, as with far too small a share."""
    rng = np.random.default_rng(0)
    X = (rng.random((2000, 6)) < 0.2).astype(float)
    y = X @ np.full(6, 0.5) + 0.5 * rng.normal(size=len(X))
    facts = {"feature_bounds": (0, 1), "target_bounds": (-2, 4), "epsilon": 0.3, "delta": 1e-6}
    models = [model.fit(X, y) for model in seeded(DPRidgeSkGD, facts, 9)]
    assert np.median([model.score(X, y) for model in models]) > 0.35
    assert np.median([np.abs(model.coef_ - 0.5).max() for model in models]) < 0.35


@pytest.mark.parametrize("loose", [1.0, 4.0, 8.0, 16.0])
def test_noisy_counts_find_the_part_that_holds_a_target_and_keep_what_is_filled(loose):
    rng, noise, found = np.random.default_rng(0), _target._MOST_NOISE, []
    for rarer in (0.35, 0.5) * 300:
        y = np.where(rng.random(300) < rarer, 1.0, -1.0) + rng.uniform(-1, 1) * (loose - 1)
        shares = np.histogram(y, 16, (-loose, loose))[0] / len(y) + noise * rng.normal(size=16)
        first, end, median = loose * (2 * np.array(_target.find_part(shares, noise, 0.3)) - 1)
        found.append((np.ptp(y.clip(first, end)) > 1.5 and first <= median <= end, end - first))
    assert np.mean(found, axis=0)[0] > 0.97 and (loose < 8 or np.median(found, axis=0)[1] < loose)


@pytest.mark.parametrize("n", [400, 2500])
def test_bounds_of_columns_and_target_that_are_eight_times_too_wide_cost_little(n):
    X, _, y = table()
    cells, scores = np.column_stack([X, y])[:n], []
    for spare in (0.0, 3.5):
        spare = spare * np.ptp(cells, axis=0)
        lo, hi = cells.min(axis=0) - spare, cells.max(axis=0) + spare
        facts = {"feature_bounds": (lo[:-1], hi[:-1]), "target_bounds": (lo[-1], hi[-1])}
        models = seeded(DPLinearRegressor, facts, 9)
        scores.append(np.median([m.fit(X[:n], y[:n]).score(X[3000:], y[3000:]) for m in models]))
    assert scores[1] > scores[0] - 0.05


def test_loose_bounds_of_a_target_cost_many_columns_little_and_move_no_quantile():
    """R² was .57 instead of .66, and 99.7 % lay below a quantile of .9."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40)).clip(-4, 4)
    y = X @ rng.normal(size=40) / np.sqrt(40) + 0.7 * rng.normal(size=len(X))
    facts = {"feature_bounds": (-4, 4), "target_bounds": (-48, 48), "epsilon": 1.0}
    assert np.median([m.fit(X, y).score(X, y) for m in seeded(DPRidgeSkGD, facts)]) > 0.63
    models = seeded(DPLinearRegressor, facts | {"loss": Quantile(0.9), "target_bounds": (-18, 18)})
    below = [np.mean(y <= model.fit(X[:, :8], y).predict(X[:, :8])) for model in models]
    assert 0.87 < np.median(below) < 0.95


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_quantiles_of_correlated_columns_in_loose_bounds_gain_with_epsilon(epsilon):
    """Descents were on their way still: slopes of .6 for 1, and more epsilon was worse."""
    rng = np.random.default_rng(0)
    X = 0.4 * rng.normal(size=(4_000, 6)) + rng.normal(size=(4_000, 1))
    y = X @ [1, -1, 1, -1, 1, -1] + 0.3 * rng.normal(size=len(X))
    facts = {"feature_bounds": (-16, 16), "target_bounds": (-16, 16), "epsilon": epsilon}
    for model in seeded(DPLinearRegressor, facts | {"loss": Quantile(0.9)}):
        coef = model.fit(X, y).coef_
        assert np.abs(coef - [1, -1, 1, -1, 1, -1]).max() < 0.05 + 0.2 / epsilon
        assert model.solver_ == "newton"
