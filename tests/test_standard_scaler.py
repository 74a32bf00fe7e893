"""DPStandardScaler finds scales, charged once, and RowNormClipper clips for free."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from tables import table

from dpcd_sklearn import DPRidgeSkGD
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler, RowNormClipper
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 3000, 4
CENTERS, WIDTHS = np.array([0.0, 30.0, -1e6, 1e-5]), np.array([1.0, 10.0, 2e5, 1e-5])


@pytest.fixture(name="X")
def _normal_columns():
    return np.random.default_rng(0).normal(CENTERS, WIDTHS, (N, P))


@pytest.fixture(name="S")
def _sparse_columns():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, P))
    return sparse.coo_array(np.where(rng.random((N, P)) < 0.7, X, 0.0))


# --- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_centres_and_scales_are_those_of_the_columns(X, epsilon):
    scaler = DPStandardScaler(epsilon=epsilon).fit(X)
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    size = np.median(np.abs(X), axis=0)
    assert (np.abs(scaler.center_ - (low + high) / 2) < 0.2 * size).all()
    assert (np.abs(scaler.scale_ - 2 * (high - low)) < 0.6 * size).all()
    lo, hi = scaler.feature_bounds_
    np.testing.assert_array_equal(lo, scaler.center_ - scaler.scale_)
    np.testing.assert_array_equal(hi, scaler.center_ + scaler.scale_)
    Z = scaler.transform(X)
    np.testing.assert_allclose(
        Z, np.clip((X - scaler.center_) / scaler.scale_, -1, 1), atol=1e-12
    )  # fmt: skip
    assert (np.quantile(np.abs(Z), 0.9, axis=0) > 0.3).all()


@pytest.mark.parametrize("with_centering", [True, False])
def test_a_column_that_is_mostly_zero_becomes_the_indicator_of_not_zero(with_centering):
    X = np.zeros((2000, 50))
    X[::50], X[1::100] = 1.0, -1.0  # few records tell of these, so a few columns err
    found = DPStandardScaler(epsilon=5.0, with_centering=with_centering).fit_transform(X)
    assert np.isclose(found, X, atol=1e-5).all(axis=0).mean() > 0.8


# --- layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("with_centering", [True, False])
def test_equal_records_in_other_layouts_give_equal_scales_and_images(S, with_centering, dtype):
    dense = S.toarray().astype(dtype)
    scaler = DPStandardScaler(with_centering=with_centering, random_state=ReproducibleNoise(0))
    expected = clone(scaler).fit(dense)
    layouts = [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], pd.DataFrame]
    if not with_centering:
        layouts += [sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
    for layout in layouts:
        data = layout(dense)
        found = clone(scaler).fit(data)
        for name in ("center_", "scale_", "feature_bounds_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        Z = found.transform(data)
        if sparse.issparse(Z):
            assert Z.nnz == np.count_nonzero(dense)
            Z = Z.toarray()
        np.testing.assert_array_equal(Z, expected.transform(dense))
        assert Z.dtype == dtype and np.abs(Z).max() <= 1


def test_what_is_within_bounds_comes_back(X):
    scaler = DPStandardScaler(epsilon=1.0).fit(X)
    Z = scaler.transform(X)
    inside = np.abs(Z) < 1
    np.testing.assert_allclose(scaler.inverse_transform(Z)[inside], X[inside], rtol=1e-9, atol=1e-9)


def test_records_are_not_written_unless_asked_to(X):
    kept = X.copy()
    Z = DPStandardScaler().fit(X).transform(X)
    np.testing.assert_array_equal(X, kept)
    scaler = DPStandardScaler(copy=False).fit(X)
    assert scaler.transform(X) is X and np.abs(X).max() <= 1 and Z.shape == X.shape


# --- RowNormClipper -----------------------------------------------------------------------------


@table("dtype", [np.float32, np.float64])
@table(
    "layout", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
)
def test_long_rows_are_scaled_down_and_short_ones_stay(S, layout, dtype):
    dense = S.toarray().astype(dtype)
    dense[0] = 0
    dense[1] = np.finfo(dtype).max
    dense[2] = [np.finfo(dtype).smallest_subnormal, 0, 0, 0]
    dense[3] = [3e3, -4e3, 0, 0]
    Z = RowNormClipper(norm=2.0).fit_transform(layout(dense))
    if sparse.issparse(Z):
        Z = Z.toarray()
    assert Z.dtype == dtype
    norms = np.linalg.norm(Z.astype(float), axis=1)
    assert norms.max() <= 2 * (1 + 1e-6)
    short = np.linalg.norm(np.float64(dense[2:]), axis=1) <= 2
    np.testing.assert_array_equal(Z[2:][short], dense[2:][short])
    assert not Z[0].any()
    np.testing.assert_allclose(Z[1], np.ones(4), rtol=1e-6)
    np.testing.assert_allclose(Z[3], [1.2, -1.6, 0, 0], rtol=1e-6)


def test_the_clipper_needs_no_fit_and_writes_only_where_it_is_asked_to(X):
    kept = X.copy()
    clipped = RowNormClipper(0.5).transform(X)
    np.testing.assert_array_equal(X, kept)
    assert RowNormClipper(0.5, copy=False).transform(X) is X
    np.testing.assert_array_equal(X, clipped)


def test_repeated_sparse_entries_count_as_their_sum():
    S = sparse.csr_array(([3.0, 3.0, 8.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    np.testing.assert_allclose(RowNormClipper(5.0).transform(S).toarray(), [[3, 4]])


@table("norm", [0.0, -1.0, math.inf, math.nan, "1", None])
def test_a_norm_that_bounds_nothing_is_refused(X, norm):
    for method in ("fit", "transform"):
        with pytest.raises((TypeError, ValueError), match="norm"):
            getattr(RowNormClipper(norm), method)(X)


# --- tails --------------------------------------------------------------------------------------


def delays():
    """A column of which a tenth are large, one that is nearly normal, and one of a number."""
    rng = np.random.default_rng(0)
    late = np.where(rng.random(N) < 0.12, rng.exponential(60.0, N), rng.normal(0.0, 5.0, N))
    return np.column_stack([late, rng.normal(50.0, 2.0, N), np.full(N, 7.0)])


@pytest.mark.parametrize("epsilon", [3.0, math.inf])
def test_with_tails_nineteen_of_twenty_records_are_within_the_bounds(epsilon):
    X = delays()
    narrow = DPStandardScaler(epsilon=epsilon).fit(X)
    wide = DPStandardScaler(epsilon=epsilon, with_tails=True).fit(X)
    outside = [(np.abs(s.transform(X)) >= 1.0).mean(axis=0) for s in (narrow, wide)]
    assert outside[0][0] > 0.08 and (outside[1] < 0.06).all()
    assert wide.scale_[0] >= 2 * narrow.scale_[0]
    assert 0.5 < wide.scale_[1] / narrow.scale_[1] < 2.5  # no tail, no doubling


@pytest.mark.parametrize("relation", [{}, {"neighboring": "add_remove", "delta": 1e-6}])
def test_tails_are_paid_for_where_public_numbers_say_that_they_can_be_told(relation):
    scaler = DPStandardScaler(epsilon=1.0, with_tails=True, **relation)
    for n, n_choices in ((10**6, 5 + 5), (100, 4)):  # with five zooms
        if relation:
            scaler.set_params(n_public=n)
        planned = scaler.planned_event(n, 3)
        assert planned.releases[0].count == 3 * n_choices
        assert epsilon_of(planned, 1e-6 if relation else n**-2) <= 1.0
    few = DPStandardScaler(epsilon=0.5, with_tails=True)
    with pytest.warns(UserWarning, match="are few for the scales"):
        few.fit(delays()[:100])
    assert few.privacy_event_.releases[0].count == 12


def test_tails_without_a_centre_and_bounds_without_zero_are_refused_before_the_charge(S, uncharged):
    scaler = DPStandardScaler(with_tails=True, with_centering=False, accountant=uncharged)
    with pytest.raises(ValueError, match="with_tails=True needs with_centering=True"):
        scaler.fit(delays())
    with pytest.raises(ValueError, match="X is sparse, but .* bounds that hold zero"):
        scaler.set_params(with_tails=False, feature_bounds=(1, 5)).fit(S)


# --- within stated bounds -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_columns_are_scaled_to_the_part_of_stated_bounds_that_they_fill(epsilon):
    """One fills a small part, one a part but for a tail, two fill all, and one is a point."""
    rng, n = np.random.default_rng(0), 20_000
    X = np.column_stack([rng.normal(40.0, 0.3, n), rng.lognormal(size=n), np.full(n, 5.0)])
    X = np.column_stack([X, rng.random(n) < 0.2, rng.uniform(0, 9, n)])
    lo, hi = np.array([-100.0, 0.0, 5.0, 0.0, 0.0]), np.array([100.0, 1000.0, 5.0, 1.0, 9.0])
    scaler = DPStandardScaler(epsilon=epsilon, feature_bounds=(lo, hi)).fit(X)
    assert abs(scaler.center_[0] - 40.0) < 0.3 and 0.6 < scaler.scale_[0] < 5.0
    assert scaler.scale_[1] < 200 and (scaler.transform(X)[:, 1] >= 1.0).mean() < 0.01
    np.testing.assert_array_equal(scaler.center_[2:], [5.0, 0.5, 4.5])
    np.testing.assert_array_equal(scaler.scale_[2:], [0.0, 0.5, 4.5])
    assert (scaler.feature_bounds_[0] >= lo).all() and (scaler.feature_bounds_[1] <= hi).all()
    assert np.abs(scaler.transform(X)).max() <= 1.0


@pytest.mark.parametrize("relation", [{}, {"neighboring": "add_remove", "n_public": 60}])
def test_few_records_leave_stated_bounds_as_they_are(relation, recwarn):
    """Whatever is chosen with next to no evidence: it is a part in one column of many thousands."""
    scaler = DPStandardScaler(epsilon=0.1, feature_bounds=(-1, 1), delta=1e-6, **relation)
    X = np.random.default_rng(0).normal(0.0, 0.01, (60, 40))
    assert (scaler.fit(X).scale_ == 1.0).all() and not recwarn.list


def test_a_pipeline_tells_bounds_that_a_step_before_has():
    X = np.random.default_rng(0).exponential(0.1, (4000, 2)).clip(0, 50)  # at an end of its bounds
    steps = BoundsScaler((0, 50)), DPStandardScaler(), DPRidgeSkGD(target_bounds=(-1, 1))
    pipeline = make_private_pipeline(*steps, epsilon=2.0).fit(X, X[:, 0])
    assert np.abs(pipeline.to_sklearn().predict(X) - pipeline.predict(X)).max() < 1e-9
    assert pipeline.privacy_event_.releases[0].count == 2 * 4  # of the largest numbers too
    assert (pipeline[1].scale_ < 0.02).all() and pipeline[1].feature_bounds is None
