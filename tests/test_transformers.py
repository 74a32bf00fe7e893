"""Promises of every private transformer, each once; one's own are in its file."""

import math
import pickle
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn import preprocessing as theirs
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from tables import table

import dpcd_sklearn.preprocessing as preprocessing
from dpcd_sklearn import (
    BudgetExceededError,
    DPLinearClassifier,
    DPLinearRegressor,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.compose import DPColumnTransformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
)
from dpcd_sklearn.privacy.accounting import NonPrivateEvent, epsilon_of
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 4000, 3
SECRET = "SECRET271828"  # stands in records, and in no message
REFUSED = (TypeError, ValueError)
RELATIONS = ["replace_one", "add_remove"]
seeded = pytest.mark.filterwarnings("ignore::dpcd_sklearn.PrivacyLeakWarning")
quiet = pytest.mark.filterwarnings("ignore")  # few records
KINDS = [getattr(preprocessing, name) for name in preprocessing.__all__]
PRIVATE = [kind for kind in KINDS if hasattr(kind, "planned_event")]
every_kind = pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: kind.__name__)


# ---- the tables --------------------------------------------------------------------------------


@cache
def records_of(what):
    rng = np.random.default_rng(0)
    if what == "words":
        cells = [rng.choice(words, N) for words in (["red", "green"], ["a", "b", "c"])]
        cells.append(rng.choice(np.array([1.0, 2.5, None], dtype=object), N))
        return np.column_stack([column.astype(object) for column in cells])
    X = rng.normal([3.0, 1998.0, -1e6], [1.0, 5.0, 1e5], (N, P))
    X[:, 1] = np.floor(X[:, 1])
    if what == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    return rng.uniform(-1, 1, (N, P)) if what == "unit" else X


def target():
    return np.random.default_rng(1).uniform(-1, 1, N)


def with_record(X, record):
    X = X.copy()
    X[3] = record
    return X


OF_NUMBERS = {
    "an outlier": lambda X: with_record(X, 1e308),
    "the largest double": lambda X: with_record(X, np.finfo(float).max),
    "a record of zeros": lambda X: with_record(X, 0.0),
    "huge": lambda X: np.sign(X) * 1e300,
    "denormals": lambda X: X * 1e-310,
    "constant columns": lambda X: np.full_like(X, 0.5),
    "zeros": np.zeros_like,
    "equal records": lambda X: np.repeat(X[:1], len(X), axis=0),
}
OF_GAPS = OF_NUMBERS | {
    "nothing missing": np.nan_to_num,
    "all missing": lambda X: np.full_like(X, np.nan),
    "a column missing": lambda X: np.where([False, True, False], np.nan, X),
}
OF_WORDS = {
    "a record of its own": lambda X: with_record(X, "never seen before"),
    "a missing one": lambda X: with_record(X, None),
    "all missing": lambda X: np.full_like(X, None),
    "all alike": lambda X: np.full_like(X, "same"),
    "all their own": lambda X: np.arange(X.size).astype(str).astype(object).reshape(X.shape),
}  # fmt: skip


@dataclass
class Case:
    """A transformer with the records that it is for.

    Attributes
    ----------
    step : transformer
    what : str
        The kind of records.
    found : tuple of str
        Attributes that records and noise decide; their shapes and dtypes are public.
    alike : dict
        Changes of the records that change nothing public.
    bad : dict
        Parameters that are refused.
    cells : list
        Cells that are refused.
    variants : list of dict
        Parameters under which the charge is looked at.
    few : dict
        Parameters under which so few records are warned about.
    within : tuple
        Between which all cells come out.
    """

    step: object
    what: str
    found: tuple
    alike: dict
    bad: list
    cells: list
    variants: list = field(default_factory=lambda: [{}])
    few: dict | None = field(default_factory=dict)
    within: tuple = (-math.inf, math.inf)

    def fresh(self, **params):
        return clone(self.step).set_params(**params)

    @property
    def records(self):
        return records_of(self.what).copy()


NO_NUMBERS = [math.nan, math.inf, SECRET]
NO_CATEGORIES = [SECRET.encode(), (SECRET,), {SECRET}, 1j, object()]
CLASSES = [
    {"classes": [0]}, {"classes": [0, 0.0]}, {"target_bounds": (1, 0)},
    {"target_bounds": (0, math.inf)},
]  # fmt: skip
CATEGORIES = [
    {"categories": [["a"]]}, {"categories": [[1, 1.0], "auto", "auto"]},
    {"categories": [[], "auto", "auto"]}, {"categories": ["red", "auto", "auto"]},
    {"max_categories": 1}, {"min_frequency": 1.5},
]  # fmt: skip
QUANTILES = [{"feature_bounds": None}, {"feature_bounds": (-2e6, 2e6)}]
RANGES = [(75, 25), (0, 50), ("a", 50), (25, math.nan), (25, 50, 75)]
BOUNDS = [{"feature_bounds": (1, 0)}, {"feature_bounds": [(0, 1)]}]


def imputer(strategy, **options):
    options = {"bad": BOUNDS, "cells": [math.inf, SECRET], "variants": QUANTILES} | options
    step = DPSimpleImputer(strategy, add_indicator=True)
    return Case(step, "gaps", ("statistics_",), OF_GAPS, **options)


OF_TARGET = ("categories_", "encodings_", "category_counts_", "target_mean_")
CASES = {
    "scaler": Case(
        DPStandardScaler(), "numbers", ("center_", "scale_", "feature_bounds_"), OF_NUMBERS,
        [{"with_centering": 1.5}, {"copy": "no"}, {"epsilon": 1e-12, "delta": 1e-18}], NO_NUMBERS,
        [{}, {"with_centering": False}], within=(-1, 1),
    ),
    "one hot": Case(
        DPOneHotEncoder(), "words", ("categories_", "category_counts_"), OF_WORDS, CATEGORIES,
        NO_CATEGORIES, within=(0, 1),
    ),
    "ordinal": Case(
        DPOrdinalEncoder(), "words", ("categories_", "category_counts_"), OF_WORDS, CATEGORIES,
        NO_CATEGORIES, within=(0, 15),
    ),
    "median": imputer("median", bad=[{"strategy": "modes"}, *BOUNDS]),
    "mean": imputer("mean"),
    "most frequent": imputer(
        "most_frequent", cells=[], variants=[{}],
        bad=[{"feature_bounds": (0, 1)},
             {"strategy": "constant", "fill_value": "a", "feature_bounds": (0, 1)}],
    ),
    "means of the target": Case(
        DPTargetEncoder(cv=2), "words", OF_TARGET, OF_WORDS,
        [
            *CATEGORIES, *CLASSES, {"cv": 1}, {"smooth": -1.0},
            {"cv": 2, "neighboring": "add_remove", "n_public": N, "delta": 1e-6},
            {"max_categories": 2**20, "cv": 100},
            {"max_categories": 2**20, "classes": list(range(256))},
        ],
        NO_CATEGORIES,
        [{"cv": None}, {"cv": None, "categories": [["red"], "auto", [1, 2.5]]},
         {"cv": None, "categories": [["red"], ["a", "b"], [1, 2.5]]}],
        within=(-1, 1),
    ),
    "selection": Case(
        DPSelectKBest(2, feature_bounds=(-1, 1)), "unit", ("ranking_",), OF_NUMBERS,
        [{"k": 0}, {"target_bounds": None}, *CLASSES, *BOUNDS], NO_NUMBERS, few=None,
        variants=[{}, {"k": "auto"}, {"classes": [0, 1]}],
    ),
    "components": Case(
        DPPCA(2, feature_bounds=(-1, 1)), "unit",
        ("components_", "explained_variance_", "mean_"), OF_NUMBERS,
        [{"n_components": 0}, {"row_norm": 0.0}, *BOUNDS], NO_NUMBERS, few=None,
    ),
    "robust": Case(
        DPRobustScaler(), "numbers", ("center_", "scale_"), OF_NUMBERS,
        [*({"quantile_range": wrong} for wrong in RANGES), *BOUNDS], NO_NUMBERS, QUANTILES,
    ),
    "quantiles": Case(
        DPQuantileTransformer(), "numbers", ("quantiles_",), OF_NUMBERS,
        [{"n_quantiles": 1}, {"n_quantiles": 1001}, {"output_distribution": "cauchy"}, *BOUNDS],
        NO_NUMBERS, QUANTILES, within=(0, 1),
    ),
}  # fmt: skip
NAMES = list(CASES)
every_case = pytest.mark.parametrize("name", NAMES)


def test_all_private_transformers_are_here():
    assert len(PRIVATE) == 9
    assert {type(case.step) for case in CASES.values()} == set(PRIVATE)


# ---- what is charged ---------------------------------------------------------------------------


@quiet
@every_case
@table("neighboring", RELATIONS)
def test_what_was_planned_is_charged_once_and_is_worth_its_epsilon(name, neighboring):
    case, n_public = CASES[name], N - 500 if neighboring == "add_remove" else None
    for variant in case.variants:
        accountant = PrivacyAccountant(2.0, 1e-5, neighboring=neighboring, n_public=n_public)
        if n_public and "cv" in case.step.get_params():
            variant = variant | {"cv": None}
        step = case.fresh(
            epsilon=0.5, delta=1e-6, neighboring=neighboring, n_public=n_public,
            accountant=accountant, **variant,
        )  # fmt: skip
        planned = step.planned_event(N, P)
        assert planned.neighboring == neighboring and accountant.entries() == []
        assert 0.5 * (1 - 2e-3) < epsilon_of(planned, 1e-6) <= 0.5
        step.fit(case.records, (target() > 0) * 1.0)
        (entry,) = accountant.entries()
        assert entry.event == str(planned) and step.privacy_event_ == planned
        assert entry.estimator == type(step).__name__ and step.privacy_spent_ == (0.5, 1e-6)
        assert entry.n_samples == (n_public or N) and entry.n_features == P


@quiet
@table("name", NAMES)
@table("epsilon", [1e-13, 1e-6, 1e5, 1e12, 1e200])
@table("neighboring", RELATIONS)
def test_a_plan_refuses_what_a_fit_refuses(name, epsilon, neighboring):
    X, y = CASES[name].records[:500], target()[:500]
    n_public = 500 if neighboring == "add_remove" else None
    accountant = PrivacyAccountant(1e300, 1e-6, neighboring=neighboring, n_public=n_public)
    step = CASES[name].fresh(epsilon=epsilon, delta=1e-7, accountant=accountant)
    step.set_params(neighboring=neighboring, n_public=n_public)
    if "cv" in step.get_params():
        step.set_params(cv=None)
    planned = refusal(lambda: step.planned_event(500, P))
    fitted = refusal(lambda: step.fit(X, y))
    assert planned == fitted
    assert (planned is None) or epsilon >= 1e12
    assert epsilon != 1e200 or planned is not None
    assert len(accountant.entries()) == (planned is None)


@table("n_samples", [1, 10**9])
@table("name", NAMES)
def test_under_add_remove_a_plan_looks_at_the_public_number_alone(n_samples, name):
    step = CASES[name].fresh(neighboring="add_remove", n_public=N, delta=1e-7, epsilon=1.0)
    if "cv" in step.get_params():
        step.set_params(cv=None)
    assert step.planned_event(n_samples, P) == step.planned_event(N, P)


@table("name", NAMES)
def test_a_refused_fit_releases_nothing(name):
    case = CASES[name]
    step = case.fresh(accountant=PrivacyAccountant(0.01, 1e-6))
    with pytest.raises(BudgetExceededError):
        step.fit(case.records, target())
    fitted = {attribute for attribute in vars(step) if attribute.endswith("_")}
    assert fitted <= {"n_features_in_", "feature_names_in_"}
    for method in {"transform", "inverse_transform"} & set(dir(step)):
        with pytest.raises(NotFittedError):
            getattr(step, method)(case.records)


@quiet
@table("name", NAMES)
def test_without_noise_it_repeats_itself_and_a_ledger_refuses(name):
    case = CASES[name]
    step = case.fresh(epsilon=math.inf)
    assert set(step.planned_event(N, P).releases) == {NonPrivateEvent()}
    same_finds(case, *(clone(step).fit(case.records, target()) for _ in range(2)))
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(ValueError, match="epsilon=inf"):
        step.set_params(accountant=accountant).fit(case.records, target())
    assert accountant.entries() == []


@quiet
@table("name", NAMES)
def test_a_seed_is_warned_about_and_refused_by_a_ledger(name):
    case = CASES[name]
    step = case.fresh(random_state=ReproducibleNoise(0))
    with pytest.warns(PrivacyLeakWarning) as shown:
        first = clone(step).fit(case.records, target())
    assert shown[0].filename == __file__
    with pytest.warns(PrivacyLeakWarning):
        same_finds(case, first, clone(step).fit(case.records, target()))
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(ValueError, match="random_state"):
        step.set_params(accountant=accountant).fit(case.records, target())
    assert accountant.entries() == []
    step.set_params(random_state=0).fit(case.records, target())  # an int seeds no noise
    assert len(accountant.entries()) == 1
    if name not in ("selection", "most frequent"):  # choices are often the same
        with pytest.raises(AssertionError):
            same_finds(case, first, step)


def finds(case, step):
    """The numbers that noise and records decide, as lists of arrays."""
    found = [getattr(step, attribute) for attribute in case.found]
    return [list(map(np.asarray, f)) if isinstance(f, (list, tuple)) else [f] for f in found]


def same_finds(case, one, other):
    for of_one, of_other in zip(finds(case, one), finds(case, other), strict=True):
        for a, b in zip(of_one, of_other, strict=True):
            if a.dtype == object:  # a missing category is NaN
                a, b = a.astype(str), b.astype(str)
            np.testing.assert_array_equal(a, b)


# ---- what is refused ---------------------------------------------------------------------------


def refusal(attempt):
    """The error of an attempt, in words; None if there is none."""
    try:
        attempt()
    except REFUSED as error:
        return str(error)
    return None


BUDGETS = [
    {"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": "1"}, {"epsilon": True},
    {"epsilon": 1e299}, {"delta": 0.0}, {"delta": 1.0},
    {"neighboring": "swap"}, {"neighboring": "add_remove", "delta": 1e-6}, {"n_public": 10},
    {"neighboring": "add_remove", "n_public": 10},
]  # fmt: skip


@every_case
def test_bad_parameters_are_refused_before_the_charge_by_fit_and_plan(name):
    case, failed = CASES[name], []
    with PrivacyAccountant(1e3, 1e-6, testing=True) as accountant:
        for params in BUDGETS + case.bad:
            step = case.fresh(accountant=accountant, **params)
            attempts = {
                "fit": lambda: step.fit(case.records, target()),  # noqa: B023
                "plan": lambda: step.planned_event(N, P),  # noqa: B023
            }
            failed += [(params, by) for by, attempt in attempts.items() if refusal(attempt) is None]
        assert not failed, failed
        assert accountant.entries() == []


@every_case
def test_bad_cells_targets_and_sizes_are_refused_before_the_charge_and_not_quoted(name):
    case, failed = CASES[name], []
    takes_target = "target_bounds" in case.step.get_params()
    wrong_targets = [None, target()[:5], np.full(N, math.nan), np.full(N, SECRET)]
    with PrivacyAccountant(10.0, 1e-6) as accountant:
        step = case.fresh(accountant=accountant)
        for cell in case.cells:
            X = with_record(case.records.astype(object), 271828.0)
            X[5, 1] = cell
            said = refusal(lambda: step.fit(X, target()))  # noqa: B023
            if said is None or "271828" in said or "SECRET" in said:
                failed.append((cell, said))
        for y in wrong_targets if takes_target else []:
            said = refusal(lambda: step.fit(case.records, y))  # noqa: B023
            if said is None or SECRET in said:
                failed.append((y, said))
        for sizes in [(0, 1), (10, 0), (1.5, 1), (10, 2**40)]:
            said = refusal(lambda: step.set_params(delta=1e-6).planned_event(*sizes))  # noqa: B023
            if said is None or not ("n_samples" in said or "n_features" in said):
                failed.append((sizes, said))
        assert failed == [] and accountant.entries() == []


def relations(n_samples):
    yield {}
    yield {"neighboring": "add_remove", "n_public": n_samples}


@table("step", [DPSelectKBest(P + 1), DPPCA(P + 1)])
@table("public", relations(N))
def test_more_columns_than_there_are_are_refused_before_the_charge(step, public):
    X, y = records_of("unit"), target()
    accountant = PrivacyAccountant(1.0, 1e-6, **public)
    paying = {"accountant": accountant, "delta": 1e-7, **public}
    columns = DPColumnTransformer([("first", DPOneHotEncoder([[0.0], [0.0, 1.0]]), [0, 1])])
    encoder = DPOneHotEncoder(max_categories=2)  # its width is public, whatever it finds

    def fit(X, *steps):
        model = DPLinearRegressor(target_bounds=(-1, 1))
        steps = map(clone, (*steps, step.set_params(**{width: widest + 1}), model))
        make_private_pipeline(*steps, **paying).fit(X, y)

    width = "k" if isinstance(step, DPSelectKBest) else "n_components"
    attempts = [
        (lambda: clone(step).set_params(**paying).fit(X, y), P),
        (lambda: clone(step).set_params(**paying).fit(pd.DataFrame(X, columns=[*"abc"]), y), P),
        (lambda: clone(step).set_params(**public, delta=1e-7).planned_event(N, P), P),
        (lambda: fit(X), P),
        (lambda: fit(X, columns), 5),
        (lambda: fit(X[:, :1], encoder), 2),
    ]
    for attempt, widest in attempts:
        step.set_params(**{width: widest + 1})
        said = refusal(attempt)
        assert said is not None and f"{width}={widest + 1} is more than X has columns" in said
        assert f"at most {widest}" in said
    assert accountant.entries() == []


def test_more_components_than_records_are_refused_by_the_public_number_of_them():
    X = records_of("unit")
    assert "more than X has records (2)" in refusal(lambda: DPPCA(P).fit(X[:2]))
    of_public = {"neighboring": "add_remove", "delta": 1e-7}
    for n_samples in (1, 2, N):  # how many there are is not told
        few = DPPCA(P, n_public=2, **of_public)
        assert "more than X has records (2)" in refusal(lambda: few.fit(X[:n_samples]))  # noqa: B023
        DPPCA(P, n_public=N, **of_public).fit(X[:n_samples])


# ---- what does not leak ------------------------------------------------------------------------


def public_outcome(case, step, X, y):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        step.fit(X, y)
        Z = step.transform(X)
        told = list(shown)
        if "cv" in step.get_params():  # records of a fit are mapped otherwise
            assert clone(step).fit_transform(X, y).shape == Z.shape
    numbers = Z[np.isfinite(Z)]
    assert numbers.size == Z.size and numbers.min() >= case.within[0]
    assert numbers.max() <= case.within[1]
    public = [(w.category, str(w.message), w.filename, w.lineno) for w in told]
    for attribute, value in sorted(vars(step).items()):
        if attribute.endswith("_") and attribute not in case.found:
            public.append((attribute, value))
    if case.what != "words":  # how many categories are found is released
        for (value,) in (f if len(f) == 1 else [np.array(f)] for f in finds(case, step)):
            size = None if value.dtype == object else len(pickle.dumps(value))
            public.append((value.shape, value.dtype, size))
            public.append((value.shape, value.dtype, bool(np.isfinite(value.astype(float)).all())))
    return [(w.category, w.filename) for w in told], (Z.shape, Z.dtype, public, repr(step))


@every_case
def test_what_is_public_is_the_same_for_all_records_of_one_shape(name):
    case = CASES[name]
    for n in (60, N):
        X, y = case.records[:n], target()[:n]
        shown, expected = public_outcome(case, case.fresh(), X, y)
        warned = n == 60 and case.few is not None
        assert shown == [(UserWarning, __file__)] * warned
        failed = {}
        for what, change in case.alike.items():
            for of_target in (y, np.zeros(n), 1e308 * np.sign(y)):
                _, found = public_outcome(case, case.fresh(), change(X), of_target)
                if repr(found) != repr(expected):
                    failed[what] = found
        assert not failed, (expected, failed)


@every_case
def test_under_add_remove_the_number_of_records_is_told_nowhere(name):
    """The warning about few follows the public number, and far fewer than promised are no error."""
    case = CASES[name]
    for n_public, few in ((60, True), (N, False)):
        step = case.fresh(neighboring="add_remove", n_public=n_public, delta=1e-4)
        if "cv" in step.get_params():
            step.set_params(cv=None)
        outcomes = [public_outcome(case, step, case.records[:n], target()[:n]) for n in (1, 20, N)]
        outcomes = [(shown, repr(found[2])) for shown, found in outcomes]
        assert outcomes[0] == outcomes[1] == outcomes[2]
        assert outcomes[0][0] == [(UserWarning, __file__)] * (few and case.few is not None)
        assert not few or case.few is None or "60 records" in outcomes[0][1]


@seeded
@quiet
@every_case
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_value_of_a_record_is_used_before_the_charge(name, order):
    class Swapping(PrivacyAccountant):
        def charge(self, event, **facts):
            receipt = super().charge(event, **facts)
            data[...] = replacement
            return receipt

    case, y = CASES[name], target()
    data = np.asarray(case.records, order=order)
    replacement = np.where(data == "red", "other", data) if case.what == "words" else 3 * data + 1
    if name == "selection":
        replacement = data[:, ::-1] + y[:, np.newaxis] * [0.0, 2.0, 1.0]
    replacement = np.asarray(replacement, order=order)
    step = case.fresh(epsilon=20.0, delta=1e-6, random_state=ReproducibleNoise(0))
    expected = clone(step).fit(replacement.copy(order="K"), y)
    with pytest.raises(AssertionError):
        same_finds(case, clone(step).fit(data.copy(order="K"), y), expected)
    accountant = Swapping(100.0, 1e-3, testing=True)
    same_finds(case, step.set_params(accountant=accountant).fit(data, y), expected)


@quiet
@table("name", [name for name in NAMES if name not in ("selection", "most frequent")])
def test_two_fits_share_no_noise(name):
    case = CASES[name]
    one, other = (case.fresh(epsilon=0.2).fit(case.records, target()) for _ in range(2))
    with pytest.raises(AssertionError):
        same_finds(case, one, other)


@quiet
@table("name", NAMES)
def test_a_record_is_mapped_with_the_same_bits_in_every_batch(name):
    case = CASES[name]
    X, step = case.records, case.fresh(epsilon=2.0).fit(case.records, target())
    kept, whole = X.copy(), step.transform(X)
    for n in (1, 2, 7, 99, 101, 401):
        np.testing.assert_array_equal(step.transform(X[:n]), whole[:n])
    np.testing.assert_array_equal(step.transform(np.asfortranarray(X)), whole)
    np.testing.assert_array_equal(pd.DataFrame(X), pd.DataFrame(kept))  # nothing was written


# ---- where scikit-learn's objects put them -----------------------------------------------------


SPARSE = {"DPSelectKBest": {}, "DPStandardScaler": {"with_centering": False}}
SPARSE |= {"DPSimpleImputer": {}, "DPRobustScaler": {"with_centering": False}}


@pytest.fixture(name="frame")
def small_frame():
    return pd.DataFrame(np.random.default_rng(0).integers(0, 3, (400, 3)) * 1.0, columns=[*"abc"])


@quiet
@every_kind
def test_frames_come_out_with_the_names_that_are_told(kind, frame):
    step = kind(epsilon=5.0).set_output(transform="pandas")
    found = step.fit_transform(frame, np.zeros(len(frame)))
    assert isinstance(found, pd.DataFrame) and found.index.equals(frame.index)
    assert list(found.columns) == list(step.get_feature_names_out())
    assert list(step.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="names"):
        step.transform(frame.rename(columns={"a": "other"}))


@quiet
@every_kind
def test_a_clone_has_the_parameters_and_charges_the_same_ledger(kind, frame):
    accountant, y = PrivacyAccountant(1.0, 1e-3), np.zeros(len(frame))
    step = kind(epsilon=0.25, accountant=accountant).fit(frame, y)
    copy = clone(step)
    assert repr(copy.get_params()) == repr(step.get_params())
    assert not [name for name in vars(copy) if name.endswith("_")]
    copy.set_params(epsilon=0.125).fit(frame, y)
    assert [entry.estimator for entry in accountant.entries()] == [kind.__name__] * 2
    stored = pickle.loads(pickle.dumps(step.set_params(accountant=None)))
    np.testing.assert_array_equal(stored.transform(frame), step.transform(frame))


@quiet
@every_kind
def test_a_search_reaches_its_parameters_within_columns(kind, frame):
    columns = make_column_transformer((kind(), ["a", "b"]), remainder="passthrough")
    model = make_pipeline(columns, DPLinearClassifier(classes=[0, 1]))
    name = f"columntransformer__{kind.__name__.lower()}__epsilon"
    search = GridSearchCV(model, {name: [0.5, 2.0]}, cv=KFold(2), error_score="raise")
    search.fit(frame, (frame["a"] > 0).astype(int))
    assert search.best_params_[name] in (0.5, 2.0)
    assert search.best_estimator_[0].transformers_[0][1].privacy_spent_.epsilon in (0.5, 2.0)


@quiet
@every_kind
def test_routing_asks_nothing_of_it(kind, frame):
    y = (frame["a"] > 0).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLinearClassifier(classes=[0, 1]).set_fit_request(sample_weight=True)
        make_pipeline(kind(), model).fit(frame, y, sample_weight=np.ones(len(frame)))


@quiet
@every_kind
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_records_are_taken_or_refused_before_the_charge(kind, frame, layout):
    accountant = PrivacyAccountant(1.0, 1e-3)
    X, params = layout(frame.to_numpy()), SPARSE.get(kind.__name__)
    step = kind(accountant=accountant).set_params(**params or {})
    if params is None:
        with pytest.raises(REFUSED, match="sparse"):
            step.fit(X, np.zeros(X.shape[0]))
        assert accountant.entries() == []
    else:
        assert sparse.issparse(step.fit(X, np.zeros(X.shape[0])).transform(X))


TOLD = {
    "scaler": {"feature_bounds": (-1.0, 1.0), "feature_scale": 1.0},
    "one hot": {"feature_bounds": (0.0, 1.0)},
    "ordinal": {"feature_bounds": (0.0, 15.0)},
    "means of the target": {"feature_bounds": (-1.0, 1.0)},
    "quantiles": {"feature_bounds": (0.0, 1.0), "feature_scale": 1.0},
}


@quiet
@every_case
def test_in_a_pipeline_it_pays_its_part_and_tells_what_is_known(name):
    case, X = CASES[name], records_of(CASES[name].what)
    y = (X[:, 0] == "red" if case.what == "words" else X[:, 0] > np.nanmedian(X[:, 0])) * 1
    accountant, classes = PrivacyAccountant(5.0, 1e-6), {"classes": [0, 1]}
    frame = pd.DataFrame(X, columns=[*"abc"])
    step = case.fresh().set_output(transform="pandas")
    if name in ("selection", "means of the target"):
        step.set_params(target_bounds=(-1, 1))
    pipeline = make_private_pipeline(
        step, DPLinearClassifier(**classes), epsilon=5.0, delta=1e-6, accountant=accountant
    )
    planned = pipeline.planned_event(N, frame[:3], 2)
    pipeline.fit(frame, y)
    (entry,) = accountant.entries()
    assert entry.event == str(planned) and pipeline.privacy_event_ == planned
    assert 5.0 * (1 - 1e-3) < epsilon_of(planned, 1e-6) <= 5.0
    found = pipeline.told_.get("dplinearclassifier", {})
    assert found.keys() == TOLD.get(name, {}).keys()
    for parameter, value in TOLD.get(name, {}).items():
        np.testing.assert_allclose(found[parameter], value, rtol=1e-12)
    floor = 0.55 if case.what == "gaps" else 0.8
    assert pipeline.score(frame, y) > (0.6 if name == "ordinal" else floor)
    assert len(find_leaks(pipeline)) == 0
    assert list(pipeline[0].transform(frame).columns) == list(pipeline[0].get_feature_names_out())


@table(
    "kind, ours",
    [
        (PCA, "DPPCA"),
        (SelectKBest, "DPSelectKBest"),
        (SimpleImputer, "DPSimpleImputer"),
        (theirs.OneHotEncoder, "DPOneHotEncoder"),
        (theirs.OrdinalEncoder, "DPOrdinalEncoder"),
        (theirs.PowerTransformer, "DPQuantileTransformer"),
        (theirs.QuantileTransformer, "DPQuantileTransformer"),
        (theirs.RobustScaler, "DPRobustScaler"),
        (theirs.StandardScaler, "DPStandardScaler"),
        (theirs.TargetEncoder, "DPTargetEncoder"),
    ],
)
def test_the_linter_knows_what_to_use_instead(kind, ours):
    for model in (DPLinearClassifier(classes=[0, 1]), DPLinearRegressor()):
        report = find_leaks(make_private_pipeline(kind(), model))
        (void,) = [leak for leak in report if leak.severity == "void"]
        assert f"preprocessing.{ours}," in void.instead
