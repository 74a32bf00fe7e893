"""Scalers by released quantiles: what they find, what is charged, and what stays secret."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, RobustScaler
from tables import table

from dpcd_sklearn import BudgetExceededError, DPLinearClassifier, PrivacyAccountant
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPQuantileTransformer, DPRobustScaler
from dpcd_sklearn.privacy.accounting import FitEvent, epsilon_of

N, P = 6000, 3
STEPS = [DPRobustScaler(), DPQuantileTransformer()]
IDS = ["robust", "quantiles"]


@pytest.fixture(name="X")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, 1998.0, -1e6], [1.0, 5.0, 1e5], (N, P))
    X[:, 1] = np.floor(X[:, 1])
    return X


@pytest.mark.parametrize("bounds", [None, [(-3, 9), (1960, 2040), (-2e6, 0)]])
def test_centres_and_scales_are_near_scikit_learns(X, bounds):
    theirs = RobustScaler(quantile_range=(10, 90), unit_variance=True).fit(X)
    ours = DPRobustScaler(
        epsilon=2.0, quantile_range=(10, 90), unit_variance=True, feature_bounds=bounds
    ).fit(X)
    assert (np.abs(ours.center_ - theirs.center_) < 0.1 * theirs.scale_).all()
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=0.1)


def test_without_noise_it_is_scikit_learns(X):
    ours, theirs = DPRobustScaler(epsilon=math.inf).fit(X), RobustScaler().fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-10, atol=1e-10)
    options = {"n_quantiles": 50, "output_distribution": "normal"}
    ours = DPQuantileTransformer(epsilon=math.inf, **options).fit(X)
    theirs = QuantileTransformer(subsample=None, **options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-6)


@pytest.mark.parametrize("law", ["uniform", "normal"])
def test_columns_get_the_law_that_was_asked_for(X, law):
    X = np.column_stack([X, np.exp(X[:, 0])])
    step = DPQuantileTransformer(epsilon=2.0, output_distribution=law).fit(X)
    Z = step.transform(X)
    shares = np.linspace(0.05, 0.95, 19)
    wanted = np.quantile(QuantileTransformer(output_distribution=law).fit_transform(X), shares, 0)
    assert np.abs(np.quantile(Z, shares, axis=0) - wanted)[:, [0, 2, 3]].max() < 0.2
    assert (np.diff(step.quantiles_, axis=0) >= 0).all() and np.isfinite(Z).all()
    inner = (Z > -1.5) & (Z < 1.5) & (Z > 0.02) & (Z < 0.98) & ([[True, False, True, False]])
    spread = X.std(axis=0)
    assert (np.abs(step.inverse_transform(Z) - X) / spread)[inner].max() < 0.2


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_records_stay_sparse_without_centring(X, layout, dtype):
    X = np.where(np.abs(X) < 2.0, 0.0, X).astype(dtype)
    step = DPRobustScaler(with_centering=False, epsilon=2.0, feature_bounds=(-1e6, 1e6)).fit(X)
    assert (step.center_ == 0).all()
    found = step.transform(layout(X))
    assert found.format == layout(X).format and found.dtype == dtype
    np.testing.assert_array_equal(found.toarray(), step.transform(X))
    np.testing.assert_allclose(step.inverse_transform(found).toarray(), X, rtol=1e-5)
    clone(step).fit(layout(X))
    for refused in (DPRobustScaler(), DPQuantileTransformer()):
        with pytest.raises(TypeError, match="sparse"):
            refused.fit(layout(X))


@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_a_record_is_mapped_with_the_same_bits_in_every_batch(X, step):
    step = clone(step).set_params(epsilon=2.0).fit(X)
    whole = step.transform(X)
    for n in (1, 2, 7, 99, 101, 401):
        np.testing.assert_array_equal(step.transform(X[:n]), whole[:n])
    np.testing.assert_array_equal(step.transform(np.asfortranarray(X)), whole)


def test_a_column_of_one_number_is_scaled_by_its_range():
    X = np.zeros((N, 2))
    X[:, 1] = 7.0
    scaler = DPRobustScaler(epsilon=1.0, feature_bounds=(0, 10)).fit(X)
    np.testing.assert_allclose(scaler.scale_, 5.0)
    assert np.abs(scaler.center_ - [0, 7]).max() < 0.1
    found = DPRobustScaler(epsilon=1.0).fit(X)
    assert (found.scale_ >= 1.0).all() and np.isfinite(found.transform(X)).all()


# ---- what is charged -----------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, (-2e6, 2e6)])
@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_what_was_planned_is_charged_once_and_is_worth_its_epsilon(X, step, bounds, neighboring):
    n_public = 7000 if neighboring == "add_remove" else None
    accountant = PrivacyAccountant(2.0, 1e-5, neighboring=neighboring, n_public=n_public)
    step = clone(step).set_params(
        epsilon=0.5, delta=1e-6, feature_bounds=bounds,
        neighboring=neighboring, n_public=n_public, accountant=accountant,
    )  # fmt: skip
    planned = step.planned_event(N, P)
    assert 0.5 * (1 - 1e-3) < epsilon_of(planned, 1e-6) <= 0.5
    step.fit(X)
    (entry,) = accountant.entries()
    assert entry.event == str(planned) and step.privacy_event_ == planned
    assert entry.n_samples == (n_public or N) and entry.n_features == P


def test_neither_centred_nor_scaled_is_free(X):
    accountant = PrivacyAccountant(1.0, 1e-6)
    step = DPRobustScaler(with_centering=False, with_scaling=False, accountant=accountant)
    np.testing.assert_array_equal(step.fit_transform(X), X)
    assert accountant.entries() == [] and step.planned_event(N, P) == FitEvent(())


@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_a_refused_fit_releases_nothing(X, step):
    step = clone(step).set_params(accountant=PrivacyAccountant(0.01, 1e-6))
    with pytest.raises(BudgetExceededError):
        step.fit(X)
    with pytest.raises(NotFittedError):
        step.transform(X)


@table(
    "step, params",
    [
        (0, {"quantile_range": (75, 25)}),
        (0, {"quantile_range": (0, 50)}),
        (0, {"quantile_range": ("a", 50)}),
        (0, {"quantile_range": (25, math.nan)}),
        (0, {"quantile_range": (25, 50, 75)}),
        (1, {"n_quantiles": 1}),
        (1, {"n_quantiles": 1001}),
        (1, {"output_distribution": "cauchy"}),
        (1, {"feature_bounds": (1, 0)}),
        (0, {"feature_bounds": [(0, 1)]}),
        (1, {"epsilon": 0.0}),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(step, params):
    accountant = PrivacyAccountant(10.0, 1e-6)
    step = clone(STEPS[step]).set_params(accountant=accountant, **params)
    with pytest.raises((TypeError, ValueError)):
        step.fit(np.random.default_rng(0).normal(size=(50, P)))
    assert accountant.entries() == []


@table("spoil", [math.nan, math.inf, "secret"])
@table("step", STEPS)
def test_bad_cells_are_refused_before_the_charge_and_not_quoted(X, step, spoil):
    accountant = PrivacyAccountant(10.0, 1e-6)
    data = X.astype(object)
    data[3, 1] = spoil
    with pytest.raises(ValueError, match=".") as raised:
        clone(step).set_params(accountant=accountant).fit(data)
    assert "secret" not in str(raised.value) and accountant.entries() == []


# ---- what does not leak --------------------------------------------------------------------------


ALIKE = {
    "an outlier": lambda X: np.where(np.arange(len(X))[:, None] == 3, 1e308, X),
    "zeros": np.zeros_like,
    "denormals": lambda X: X * 1e-310,
    "huge": lambda X: X * 1e290,
}


def public_outcome(step, X):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        step.fit(X)
        Z = step.transform(X)
    assert np.isfinite(Z).all()
    told = [(w.category, str(w.message), w.filename) for w in shown]
    return Z.shape, Z.dtype, step.privacy_event_, step.privacy_spent_, told


@table("n", [50, N])
@table("step", STEPS)
@table("alike", ALIKE.values())
def test_what_is_public_is_the_same_for_all_data_of_one_shape(X, step, alike, n):
    expected = public_outcome(clone(step), X[:n])
    assert bool(expected[-1]) is (n == 50)
    if n == 50:
        assert expected[-1][0][2] == __file__
    assert public_outcome(clone(step), alike(X[:n])) == expected


def test_under_add_remove_far_fewer_records_than_promised_are_no_error(X):
    for step in map(clone, STEPS):
        step.set_params(neighboring="add_remove", n_public=N, delta=1e-6, epsilon=1.0)
        for n in (1, 20, N):
            assert np.isfinite(step.fit(X[:n]).transform(X)).all()


@pytest.mark.parametrize("step", STEPS, ids=IDS)
def test_no_cell_is_used_before_the_charge(X, step):
    class Swapping(PrivacyAccountant):
        def charge(self, event, **facts):
            receipt = super().charge(event, **facts)
            data[...] = np.random.default_rng(0).normal(64.0, 1.0, data.shape)
            return receipt

    data = X.copy()
    step = clone(step).set_params(epsilon=5.0, accountant=Swapping(10.0, 1e-3)).fit(data)
    middle = step.center_ if hasattr(step, "center_") else step.quantiles_[50]
    np.testing.assert_allclose(middle, 64.0, rtol=0.1)


# ---- in a pipeline -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (DPRobustScaler(), {}),
        (DPQuantileTransformer(), {"feature_bounds": (0.0, 1.0), "feature_scale": 1.0}),
        (DPQuantileTransformer(output_distribution="normal"), {"feature_bounds": (-5.2, 5.2)}),
    ],
)
def test_in_a_pipeline_it_pays_its_part_and_tells_what_is_known(X, step, told):
    frame = pd.DataFrame(X, columns=list("abc"))
    y = (X[:, 0] > 3.2).astype(int)
    accountant = PrivacyAccountant(3.0, 1e-6)
    pipeline = make_private_pipeline(
        clone(step).set_output(transform="pandas"), DPLinearClassifier(classes=[0, 1]),
        epsilon=3.0, delta=1e-6, accountant=accountant,
    )  # fmt: skip
    planned = pipeline.planned_event(N, frame[:2], 2)
    pipeline.fit(frame, y)
    (entry,) = accountant.entries()
    assert entry.event == str(planned)
    found = pipeline.told_.get("dplinearclassifier", {})
    assert found.keys() == told.keys()
    for name, value in told.items():
        np.testing.assert_allclose(found[name], value, atol=1e-3)
    assert pipeline.score(frame, y) > 0.8 and len(find_leaks(pipeline)) == 0
    assert list(pipeline[0].transform(frame).columns) == list("abc")


@table(
    "kind, ours",
    [
        (RobustScaler, "DPRobustScaler,"),
        (QuantileTransformer, "DPQuantileTransformer,"),
        (PowerTransformer, "DPQuantileTransformer,"),
    ],
)
def test_the_linter_knows_what_to_use_instead(kind, ours):
    report = find_leaks(make_private_pipeline(kind(), DPLinearClassifier(classes=[0, 1])))
    (void,) = [leak for leak in report if leak.severity == "void"]
    assert f"preprocessing.{ours}" in void.instead
