"""Promises of every private transformer, each once; one's own are in its file."""

import math
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
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from tables import table

import dpcd_sklearn.preprocessing as preprocessing
from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.compose import DPColumnTransformer
from dpcd_sklearn.exceptions import ReproducibleNoiseWarning
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
REFUSED = (TypeError, ValueError)
RELATIONS = ["replace_one", "add_remove"]
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


@dataclass
class Case:
    """A transformer with the records that it is for.

    Attributes
    ----------
    step : transformer
    what : str
        The kind of records.
    found : tuple of str
        Attributes that records and noise decide.
    bad : list of dict
        Parameters that are refused.
    variants : list of dict
        Parameters under which the charge is looked at.
    """

    step: object
    what: str
    found: tuple
    bad: list
    variants: list = field(default_factory=lambda: [{}])

    def fresh(self, **params):
        return clone(self.step).set_params(**params)

    @property
    def records(self):
        return records_of(self.what).copy()


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


def imputer(strategy, bad=(), variants=QUANTILES):
    step = DPSimpleImputer(strategy, add_indicator=True)
    return Case(step, "gaps", ("statistics_",), [*bad, *BOUNDS], variants)


OF_TARGET = ("categories_", "encodings_", "category_counts_", "target_mean_")
FOLDS = {"cv": 2, "neighboring": "add_remove", "n_public": N, "delta": 1e-6}
CASES = {
    "scaler": Case(
        DPStandardScaler(), "numbers", ("center_", "scale_", "feature_bounds_"),
        [{"with_centering": 1.5}, {"copy": "no"}, {"epsilon": 1e-12, "delta": 1e-18}],
        [{}, {"with_centering": False}],
    ),
    "one hot": Case(DPOneHotEncoder(), "words", ("categories_", "category_counts_"), CATEGORIES),
    "ordinal": Case(DPOrdinalEncoder(), "words", ("categories_", "category_counts_"), CATEGORIES),
    "median": imputer("median", bad=[{"strategy": "modes"}]),
    "mean": imputer("mean"),
    "most frequent": imputer(
        "most_frequent", variants=[{}],
        bad=[{"feature_bounds": (0, 1)},
             {"strategy": "constant", "fill_value": "a", "feature_bounds": (0, 1)}],
    ),
    "means of the target": Case(
        DPTargetEncoder(cv=2), "words", OF_TARGET,
        [
            *CATEGORIES, *CLASSES, {"cv": 1}, {"smooth": -1.0}, FOLDS,
            {"max_categories": 2**20, "cv": 100},
            {"max_categories": 2**20, "classes": list(range(256))},
        ],
        [{"cv": None}, {"cv": None, "categories": [["red"], "auto", [1, 2.5]]},
         {"cv": None, "categories": [["red"], ["a", "b"], [1, 2.5]]}],
    ),
    "selection": Case(
        DPSelectKBest(2, feature_bounds=(-1, 1)), "unit", ("ranking_",),
        [{"k": 0}, {"target_bounds": 1.0}, *CLASSES, *BOUNDS],
        [{}, {"k": "auto"}, {"classes": [0, 1]}],
    ),
    "components": Case(
        DPPCA(2, feature_bounds=(-1, 1)), "unit", ("components_", "explained_variance_", "mean_"),
        [{"n_components": 0}, {"row_norm": 0.0}, *BOUNDS],
    ),
    "robust": Case(
        DPRobustScaler(), "numbers", ("center_", "scale_"),
        [*({"quantile_range": wrong} for wrong in RANGES), *BOUNDS], QUANTILES,
    ),
    "quantiles": Case(
        DPQuantileTransformer(), "numbers", ("quantiles_",),
        [{"n_quantiles": 1}, {"n_quantiles": 1001}, {"output_distribution": "cauchy"}, *BOUNDS],
        QUANTILES,
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


EXTREME = zip([1e-13, 1e-6, 1e5, 1e12, 1e12, 1e200], 3 * RELATIONS, strict=True)


@quiet
@table("name", NAMES)
@table("epsilon, neighboring", EXTREME)
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


@quiet
@table("name", NAMES)
def test_no_noise_and_known_noise_repeat_themselves_and_no_other_does(name):
    case = CASES[name]
    plan = case.fresh(epsilon=math.inf).planned_event(N, P)
    assert set(plan.releases) == {NonPrivateEvent()}
    for params in ({"epsilon": math.inf}, {"random_state": ReproducibleNoise(0)}):
        with warnings.catch_warnings(record=True, action="always") as shown:
            same_finds(case, *(case.fresh(**params).fit(case.records, target()) for _ in "ab"))
        leaks = [w for w in shown if w.category is ReproducibleNoiseWarning]
        assert [w.filename for w in leaks] == [__file__] * 2 * ("random_state" in params)
    if name not in ("selection", "most frequent"):  # choices are often the same
        seeded = case.fresh(epsilon=0.2, random_state=0)  # an int seeds no noise
        with pytest.raises(AssertionError):
            same_finds(case, *(clone(seeded).fit(case.records, target()) for _ in "ab"))


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
        for sizes in [(0, 1), (10, 0), (1.5, 1), (10, 2**40)]:
            said = refusal(lambda: case.fresh(delta=1e-6).planned_event(*sizes))  # noqa: B023
            if said is None or not ("n_samples" in said or "n_features" in said):
                failed.append((sizes, said))
        assert not failed, failed
        assert accountant.entries() == []


@table("step", [DPSelectKBest(target_bounds=(-1, 1)), DPPCA()])
@table("public", [{}, {"neighboring": "add_remove", "n_public": N}])
def test_more_columns_than_there_are_are_refused_before_the_charge(step, public):
    plain, y = records_of("unit"), target()
    accountant = PrivacyAccountant(1.0, 1e-6, **public)
    width = "k" if isinstance(step, DPSelectKBest) else "n_components"
    columns = DPColumnTransformer([("first", DPOneHotEncoder([[0.0], [0.0, 1.0]]), [0, 1])])
    encoder = DPOneHotEncoder(max_categories=2)  # its width is public, whatever it finds
    model = DPLinearRegressor(target_bounds=(-1, 1))
    for X, before, widest in (
        (plain, (), P),
        (pd.DataFrame(plain, columns=[*"abc"]), (), P),
        (plain, (columns,), 5),
        (plain[:, :1], (encoder,), 2),
    ):
        alone = clone(step).set_params(**{width: widest + 1})
        steps = [clone(one) for one in (*before, alone, model)]
        alone.set_params(**public)
        paying = {"accountant": accountant, "delta": 1e-7}
        pipeline = make_private_pipeline(*steps, **paying, **public)
        attempts = [lambda: pipeline.fit(X, y)]  # noqa: B023
        if not before:
            alone.set_params(**paying)
            attempts += [lambda: alone.fit(X, y), lambda: alone.planned_event(N, P)]  # noqa: B023
        for attempt in attempts:
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
def test_docstrings_list_all_parameters(kind):
    listed = [line.split()[0] for line in kind.__doc__.split("\n") if " default=" in line]
    assert sorted(listed) == sorted(kind._get_param_names())


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
    "one hot": {"feature_bounds": (0.0, 1.0), "feature_scale": 1.0, "row_norm_bound": 3**0.5},
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


@table("step", [DPPCA(2), DPSelectKBest(2, classes=[0, 1])])
def test_a_scaler_tells_the_next_step_its_bounds(step):
    X, model = records_of("numbers"), DPLinearClassifier(classes=[0, 1])
    pipeline = make_private_pipeline(DPStandardScaler(), step, model, epsilon=3.0)
    pipeline.fit(X, (X[:, 0] > 3).astype(int))
    assert pipeline.told_[type(step).__name__.lower()] == {"feature_bounds": (-1.0, 1.0)}


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
