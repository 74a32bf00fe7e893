"""The private imputer: what it fills with, what is charged, and what stays secret."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from tables import table

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.preprocessing import DPSimpleImputer
from dpcd_sklearn.privacy.accounting import FitEvent

N, P = 6000, 3


@pytest.fixture(name="X")
def records():
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, 1998.0, -1e6], [1.0, 5.0, 1e5], (N, P))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.fixture
def words():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "colour": rng.choice(["red", "red", "green", None], N),
            "size": rng.choice([1.0, 2.5, 2.5, np.nan], N),
        }
    )


@pytest.mark.parametrize("strategy", ["median", "mean"])
def test_fills_are_near_those_of_scikit_learn(X, strategy):
    expected = SimpleImputer(strategy=strategy).fit(X).statistics_
    spread = np.nanstd(X, axis=0)
    found = DPSimpleImputer(strategy, epsilon=2.0).fit(X).statistics_
    assert (np.abs(found - expected) < 0.3 * spread).all()
    bounds = [(0.0, 6.0), (1980.0, 2020.0), (-1.5e6, 0.0)]
    found = DPSimpleImputer(strategy, epsilon=1.0, feature_bounds=bounds).fit(X).statistics_
    assert (np.abs(found - expected) < 0.15 * spread).all()


def test_without_noise_means_and_the_most_frequent_are_scikit_learns(X, words):
    ours = DPSimpleImputer("mean", epsilon=math.inf).fit_transform(X)
    np.testing.assert_allclose(ours, SimpleImputer().fit_transform(X))
    ours = DPSimpleImputer("most_frequent", epsilon=math.inf).fit(words)
    assert ours.statistics_.tolist() == ["red", 2.5]
    median = DPSimpleImputer(epsilon=math.inf).fit(X).statistics_
    np.testing.assert_allclose(median, np.nanmedian(X, axis=0), rtol=2.0**-12)


def test_words_and_numbers_stay_what_they_are(words):
    imputer = DPSimpleImputer("most_frequent", epsilon=2.0).fit(words)
    Z = imputer.transform(words)
    assert Z.dtype == object and imputer.statistics_.tolist() == ["red", 2.5]
    missing = words.isna().to_numpy()
    assert (Z[~missing] == words.to_numpy()[~missing]).all()
    assert set(Z[missing[:, 0], 0]) == {"red"}
    numbers = DPSimpleImputer("most_frequent", epsilon=2.0).fit_transform(words[["size"]])
    assert numbers.dtype == np.float64 and not np.isnan(numbers).any()
    frame = imputer.set_output(transform="pandas").transform(words)
    assert list(frame.columns) == ["colour", "size"] and not frame.isna().any().any()


KINDS = {"Int64": np.int64, "boolean": np.float64, "Float64": np.float64}


@table("values, dtype", zip(([1, 2], [True, False], [0.5, 2.0]), KINDS, strict=True))
@table("library", ["pandas", "polars"])
def test_a_missing_cell_changes_no_dtype_of_what_comes_out(library, values, dtype):
    frames = pytest.importorskip(library)
    kind = dtype if library == "pandas" else getattr(frames, dtype.replace("b", "B"))
    outcomes = []
    for cell in (values[0], None):
        frame = frames.DataFrame({"a": frames.Series(values * 500 + [cell], dtype=kind)})
        imputer = DPSimpleImputer("most_frequent", epsilon=1e-3)  # finds nothing
        with warnings.catch_warnings(action="ignore"):
            Z = imputer.fit_transform(frame)
        outcomes.append((Z.dtype, imputer.statistics_.tolist()))
    assert outcomes[0] == outcomes[1] == (KINDS[dtype], [0.0])


def test_constants_are_free(X, words, uncharged):
    imputer = DPSimpleImputer("constant", accountant=uncharged, fill_value=7.0)
    expected = SimpleImputer(strategy="constant", fill_value=7.0).fit_transform(X)
    np.testing.assert_array_equal(imputer.fit_transform(X), expected)
    imputer.set_params(fill_value="none").fit(words)
    assert set(imputer.transform(words)[words["colour"].isna(), 0]) == {"none"}
    assert imputer.privacy_spent_ == (0.0, 0.0)
    assert imputer.planned_event(N, P) == FitEvent(())


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_records_stay_sparse_and_are_filled_alike(X, layout, dtype):
    X = np.where(np.abs(X) < 2.0, 0.0, X).astype(dtype)
    imputer = DPSimpleImputer(epsilon=2.0, add_indicator=True).fit(X)
    expected = imputer.transform(X)
    found = imputer.transform(layout(X))
    assert sparse.issparse(found) and found.format == layout(X).format
    assert found.dtype == dtype == expected.dtype
    np.testing.assert_array_equal(found.toarray(), expected)
    of_sparse = clone(imputer).fit(layout(X)).statistics_
    assert (np.abs(of_sparse - imputer.statistics_)[1:] < [3.0, 1e5]).all()


def test_bounds_hold_and_indicators_follow(X):
    before = X.copy()
    imputer = DPSimpleImputer(feature_bounds=(0.0, 10.0), add_indicator=True).fit(X)
    Z = imputer.transform(X)
    np.testing.assert_array_equal(X, before)
    assert Z[:, :P].min() >= 0 and Z[:, :P].max() <= 10
    np.testing.assert_array_equal(Z[:, P:], np.isnan(X))
    names = ["x0", "x1", "x2", *(f"missingindicator_x{j}" for j in range(P))]
    assert imputer.get_feature_names_out().tolist() == names


@table("strategy", ["most_frequent", "constant"])
@table("container", [np.asarray, pd.DataFrame])
def test_a_word_for_columns_of_numbers_is_refused_as_scikit_learn_does(X, container, strategy):
    accountant = PrivacyAccountant(1.0, 1e-6)
    imputer = DPSimpleImputer(strategy, fill_value="x", accountant=accountant)
    with pytest.raises(ValueError, match="fill_value='x' is a word, and all columns"):
        imputer.fit(container(X))
    assert not accountant.entries()
    mixed = pd.DataFrame({"a": X[:, 0], "word": "w"})
    assert len(imputer.fit(mixed).statistics_) == 2
