"""The linter: each rule has an object that it finds and a clean twin; nothing makes it raise."""

import copy
import warnings
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    HistGradientBoostingRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators
from tables import table

import dpcd_sklearn
from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLogisticGCD,
    DPRidgeSkGD,
    Persons,
    PrivacyAccountant,
)
from dpcd_sklearn.inspection import Leak, find_leaks
from dpcd_sklearn.leaks import RULES, SEVERITIES, full_name
from dpcd_sklearn.leaks._classes import LEARNS_NOTHING, META_ESTIMATORS, class_of
from dpcd_sklearn.leaks._object_tree import MOST_PARTS
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PersonKFold, PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import ReproducibleNoise

LEDGER = PrivacyAccountant(5.0, 1e-6)
OTHER_LEDGER = PrivacyAccountant(5.0, 1e-6)
TEST_LEDGER = PrivacyAccountant(5.0, 1e-6, testing=True)
LASSO = DPLassoCD(accountant=LEDGER)
RIDGE = DPRidgeSkGD(accountant=LEDGER)
LOGISTIC = DPLogisticGCD(accountant=LEDGER, classes=[0, 1])
TEN = DPLinearClassifier(accountant=LEDGER, classes=range(10))
WITHOUT_N = DPLassoCD(accountant=LEDGER, neighboring="add_remove", n_public=100, delta=1e-6)
BY_ID = DPLassoCD(accountant=LEDGER, neighboring=Persons(), delta=1e-6)
VISITS = pd.DataFrame({"age": [41.0], "patient_id": [7]})
LEVELS = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore")
TWO = [("a", LASSO), ("b", RIDGE)]
NOISE = ReproducibleNoise(0)


class Resampler(BaseEstimator):
    def fit_resample(self, X, y):
        return X, y


class TransformsAtOnce(BaseEstimator):
    """A step without `fit`, which a Pipeline takes."""

    def fit_transform(self, X, y=None):
        return X

    def transform(self, X):
        return X


class OwnSplit:
    def split(self, X, y=None, groups=None):
        return iter(())

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2


class OwnModel(DPLassoCD):
    pass


class Unreadable(DPLassoCD):
    def get_params(self, deep=True):
        raise RuntimeError("broken")


def row_wise(X):
    return X


def chooser(X):
    return [0]


def grid(model, **params):
    given = {"param_grid": {}, "cv": KFold(3), "error_score": "raise"}
    return GridSearchCV(model, **given | params)


def columns(step, which=(0,), **params):
    return ColumnTransformer([("step", step, which)], **params)


def layouts(threshold, step):
    return {
        "columntransformer__sparse_threshold": [0, threshold],
        "columntransformer": [columns(step)],
    }


# For each rule what it finds, and a twin that it does not.
CASES = {
    "steps that learn from the records for free": [
        (make_pipeline(StandardScaler(), LASSO), make_pipeline(BoundsScaler(), LASSO)),
        (StandardScaler(), Normalizer()),
        (OneHotEncoder(), LEVELS),
        (OneHotEncoder(categories=[["a"]], min_frequency=2), LEVELS),
        (OrdinalEncoder(), OrdinalEncoder(categories=[["a"]])),
        (SimpleImputer(), SimpleImputer(strategy="constant", keep_empty_features=True)),
        (
            SimpleImputer(strategy="constant"),  # drops a column that is empty
            SimpleImputer(strategy="constant", keep_empty_features=True),
        ),
        (MissingIndicator(), MissingIndicator(features="all")),
        (SplineTransformer(), SplineTransformer(knots=np.eye(3), extrapolation="constant")),
        (
            SplineTransformer(knots=np.eye(3), extrapolation="error"),
            SplineTransformer(knots=np.eye(3), extrapolation="linear"),
        ),
        (CountVectorizer(), CountVectorizer(vocabulary=["a"])),
        (TfidfVectorizer(vocabulary=["a"]), TfidfVectorizer(vocabulary=["a"], use_idf=False)),
        (TfidfTransformer(), TfidfTransformer(use_idf=False)),
        (SparseRandomProjection(), SparseRandomProjection(n_components=2)),
        # products of all rows at once
        (GaussianRandomProjection(n_components=2), SparseRandomProjection(n_components=2)),
        (RBFSampler(gamma=0.5), PolynomialCountSketch()),
        (SkewedChi2Sampler(), AdditiveChi2Sampler()),
        # a row that is alone is summed in another order
        (make_pipeline(Normalizer(), WITHOUT_N), make_pipeline(Normalizer(), LASSO)),
        (make_pipeline(Normalizer("l1"), WITHOUT_N), make_pipeline(Normalizer("max"), WITHOUT_N)),
        (FrozenEstimator(PCA()), FrozenEstimator(BoundsScaler())),
        (FrozenEstimator(StandardScaler()), FrozenEstimator(DPStandardScaler())),
        (make_pipeline(TransformsAtOnce(), LASSO), make_pipeline(BoundsScaler(), LASSO)),
        (columns(LEVELS, remainder=StandardScaler()), columns(LEVELS, remainder="drop")),
        (FeatureUnion([("a", StandardScaler())]), FeatureUnion([("a", BoundsScaler())])),
        (
            TransformedTargetRegressor(LASSO, transformer=StandardScaler()),
            TransformedTargetRegressor(LASSO, transformer=BoundsScaler((0, 9))),
        ),
        (
            GridSearchCV(make_pipeline(LASSO), {"x": [BoundsScaler(), StandardScaler()]}),
            GridSearchCV(make_pipeline(LASSO), {"x": [BoundsScaler(), "passthrough"]}),
        ),
    ],
    "models that are not known to be private": [
        (HistGradientBoostingRegressor(), LASSO),
        (StackingRegressor(TWO), StackingRegressor(TWO, RIDGE)),
        (TransformedTargetRegressor(), TransformedTargetRegressor(LASSO)),
        (RegressorChain(HistGradientBoostingRegressor()), RegressorChain(LASSO)),
        (BaggingRegressor(LASSO), BaggingRegressor(LASSO, bootstrap=False)),
        (
            grid(BaggingRegressor(LASSO, bootstrap=False)).set_params(
                param_grid={"bootstrap": [False, True]}
            ),
            grid(BaggingRegressor(LASSO, bootstrap=False)),
        ),
        (AdaBoostRegressor(LASSO), VotingRegressor(TWO)),
        (OneVsRestClassifier(LOGISTIC), LOGISTIC),
        (OneVsOneClassifier(LOGISTIC), MultiOutputRegressor(LASSO)),
        (OutputCodeClassifier(TEN), TEN),
        (CalibratedClassifierCV(LOGISTIC), FixedThresholdClassifier(LOGISTIC)),
        (TunedThresholdClassifierCV(LOGISTIC), FixedThresholdClassifier(LOGISTIC)),
    ],
    "functions of your own": [
        (FunctionTransformer(row_wise), FunctionTransformer(np.log1p)),
        (FunctionTransformer(np.frompyfunc(abs, 1, 1)), FunctionTransformer(np.sqrt)),
        (FunctionTransformer(np.log1p, kw_args={"where": [True]}), FunctionTransformer(np.log1p)),
        (FunctionTransformer(lambda X: X - X.mean(0)), FunctionTransformer()),
        (SelectFromModel(LASSO, max_features=len), SelectFromModel(LASSO, max_features=1)),
        (
            TransformedTargetRegressor(LASSO, func=row_wise),
            TransformedTargetRegressor(LASSO, func=np.log1p, inverse_func=np.expm1),
        ),
        (
            TransformedTargetRegressor(LASSO, func=np.log1p, inverse_func=row_wise),
            TransformedTargetRegressor(LASSO, func=np.log1p, inverse_func=np.expm1),
        ),
    ],
    "steps that repeat or drop rows": [(make_pipeline(Resampler()), make_pipeline(LASSO))],
    "columns chosen by looking at the records": [
        (columns(Normalizer(), chooser), columns(Normalizer(), make_column_selector("a")))
    ],
    "splits that depend on the records": [
        (grid(LOGISTIC, cv=StratifiedKFold()), grid(LOGISTIC)),
        (grid(LOGISTIC, cv=3), grid(LASSO, cv=3)),
        (grid(make_pipeline(BoundsScaler(), LOGISTIC), cv=None), grid(LASSO, cv=None)),
        (CalibratedClassifierCV(LOGISTIC), CalibratedClassifierCV(LOGISTIC, cv=KFold(3))),
        (StratifiedKFold(), KFold()),
        (grid(LASSO, cv=GroupKFold()), grid(LASSO)),
        (grid(LASSO, cv=OwnSplit()), grid(LASSO)),
    ],
    "folds by row number under add_remove, or of persons": [
        (grid(WITHOUT_N), grid(WITHOUT_N, cv=PredefinedSplit([0, 1]))),
        (grid(make_pipeline(WITHOUT_N), cv=3), grid(make_pipeline(LASSO), cv=3)),
        (grid(BY_ID, cv=KFold(3)), grid(BY_ID, cv=PersonKFold(3))),
        (grid(make_pipeline(BY_ID), cv=3), grid(make_pipeline(LASSO), cv=3)),
    ],
    "reproducible noise": [
        (DPLassoCD(random_state=NOISE), DPLassoCD(random_state=0)),
        (
            GridSearchCV(make_pipeline(LASSO), {"dplassocd__random_state": [None, NOISE]}),
            GridSearchCV(make_pipeline(LASSO), {"dplassocd__random_state": [None, 0]}),
        ),
        (
            grid(LASSO).set_params(param_grid=[{"random_state": [NOISE]}]),
            grid(LASSO).set_params(param_grid=[{"random_state": np.arange(2)}]),
        ),
    ],
    "epsilon=inf": [
        (DPLassoCD(epsilon=float("inf")), DPLassoCD(epsilon=1)),
        (DPLassoCD(epsilon=np.float32("inf")), DPLassoCD(epsilon=np.float32(1))),
        (
            RandomizedSearchCV(LASSO, {"epsilon": [1.0, float("inf")]}),
            RandomizedSearchCV(LASSO, {"epsilon": [1.0, 2.0]}),
        ),
    ],
    "scores of a search": [
        (grid(LASSO), LASSO),
        (grid(LASSO, scoring="r2"), grid(LASSO, scoring=make_private_scorer("r2", 0.1, LEDGER))),
        (grid(LASSO, scoring=make_private_scorer("r2")), PrivateSearchCV(LASSO, {"alpha": [1.0]})),
    ],
    "labels read from y (classes=None)": [
        (DPLogisticGCD(), LOGISTIC),
        (DPLinearClassifier(), DPLinearClassifier(classes=["a", "b"])),
    ],
    "labels encoded by an ensemble": [(VotingClassifier([("a", LOGISTIC)]), VotingRegressor(TWO))],
    "several fits without an accountant": [
        (grid(DPLassoCD()), grid(LASSO)),
        (VotingRegressor([("a", DPLassoCD()), ("b", LASSO)]), VotingRegressor(TWO)),
        (MultiOutputRegressor(DPLassoCD()), DPLassoCD()),
    ],
    "several accountants about the same records": [
        (
            VotingRegressor([("a", LASSO), ("b", DPLassoCD(accountant=OTHER_LEDGER))]),
            VotingRegressor([("a", LASSO), ("b", clone(LASSO)), ("c", copy.deepcopy(RIDGE))]),
        )
    ],
    "a layout that depends on the records": [
        (columns(LEVELS), columns(LEVELS, sparse_threshold=0)),
        (
            columns(make_pipeline(HashingVectorizer())),
            columns(clone(LEVELS).set_params(sparse_output=False)),
        ),
        (columns(CountVectorizer(vocabulary=["a"])), columns(BoundsScaler())),
        (columns(MissingIndicator(features="all", sparse=True)), columns("passthrough")),
        (columns(columns(LEVELS)), columns(columns(LEVELS, sparse_threshold=0))),
        (
            make_pipeline(TfidfTransformer(use_idf=False), columns(Normalizer())),
            make_pipeline(Normalizer(), columns(Normalizer())),
        ),
        (
            GridSearchCV(make_pipeline(columns(Normalizer()), LASSO), layouts(0.3, LEVELS)),
            GridSearchCV(make_pipeline(columns(Normalizer()), LASSO), layouts(0.3, Normalizer())),
        ),
        (columns(OwnModel(), remainder="passthrough"), columns(Normalizer())),
    ],
    "parameters that can't be read": [(Unreadable(), LASSO)],
    "objects too large to look through": [
        (VotingRegressor([(str(i), LASSO) for i in range(MOST_PARTS)]), VotingRegressor(TWO))
    ],
    "a layout that depends on the records of a sparse X": [
        (columns(BoundsScaler()), columns(BoundsScaler(), sparse_threshold=0)),
        (columns("passthrough"), columns(clone(LEVELS).set_params(sparse_output=False))),
    ],
    "fits that fail and are passed over": [
        (GridSearchCV(LASSO, {}, cv=KFold()), GridSearchCV(LASSO, {}, error_score="raise"))
    ],
    "fits of a halving search": [
        (HalvingGridSearchCV(LASSO, {}), GridSearchCV(LASSO, {})),
    ],
    "a fit without an accountant": [(DPLassoCD(), LASSO), (make_pipeline(DPLassoCD()), RIDGE)],
    "rows of persons": [
        ((LASSO, VISITS), (BY_ID, VISITS)),
        ((make_pipeline(LASSO), VISITS), (make_pipeline(LASSO), VISITS.drop(columns="patient_id"))),
    ],
    "a ledger for tests": [(DPLassoCD(accountant=TEST_LEDGER), LASSO)],
    "time that depends on the records": [
        (clone(LOGISTIC).set_params(solver=GCD(selection="lazy")), LOGISTIC),
        *(
            (
                grid(clone(LOGISTIC).set_params(solver=GCD()), param_grid={name: [lazy]}),
                grid(LOGISTIC),
            )
            for name, lazy in (("solver__selection", "lazy"), ("solver", GCD(selection="lazy")))
        ),
    ],
    "steps that you vouch for": [
        (
            make_private_pipeline(Normalizer(), DPLassoCD(), public_steps=["normalizer"]),
            make_private_pipeline(Normalizer(), DPLassoCD()),
        ),
    ],
    "private models of your own": [(OwnModel(accountant=LEDGER), LASSO)],
    "folds of your own": [
        (grid(LASSO, cv=[([0], [1])]), grid(LASSO, cv=3)),
        (grid(LASSO, cv=iter([([0], [1])])), grid(LASSO, cv=None)),
        (grid(LASSO, cv=PredefinedSplit([0, 1])), grid(LASSO)),
        (StackingRegressor(TWO, LASSO, cv="prefit"), StackingRegressor(TWO, LASSO)),
    ],
    "parts that were fitted before": [(FrozenEstimator(StandardScaler()), BoundsScaler())],
    "messages about single records": [
        (
            TransformedTargetRegressor(LASSO, transformer=BoundsScaler((0, 9))),
            TransformedTargetRegressor(
                LASSO, transformer=BoundsScaler((0, 9)), check_inverse=False
            ),
        ),
        (
            FunctionTransformer(np.log1p, np.expm1),
            FunctionTransformer(np.log1p, np.expm1, check_inverse=False),
        ),
        (OneHotEncoder(categories=[["a"]]), LEVELS),
        (clone(LEVELS).set_params(drop="first"), LEVELS),
        (
            OrdinalEncoder(categories=[["a"]]),
            OrdinalEncoder(
                categories=[["a"]], handle_unknown="use_encoded_value", unknown_value=-1
            ),
        ),
    ],
    "records cached on the disk": [
        (Pipeline([("a", LASSO)], memory="folder"), Pipeline([("a", LASSO)]))
    ],
    "objects of an unknown kind": [(object(), LASSO), (DPLassoCD, LASSO), (None, KFold())],
}
PAIRS = [
    pytest.param(rule, *pair, id=f"{rule} {i}")
    for rule, pairs in CASES.items()
    for i, pair in enumerate(pairs)
]


def found_in(case):
    return find_leaks(*case) if isinstance(case, tuple) else find_leaks(case)


def rules_of(case):
    return {leak.rule for leak in found_in(case)}


def places(estimator, rule="steps that learn from the records for free"):
    return [leak.where for leak in find_leaks(estimator) if leak.rule == rule]


# ---- the rules ----------------------------------------------------------------------------------


@table(("rule", "leaking", "clean"), PAIRS)
def test_a_rule_finds_what_leaks_and_not_its_twin(rule, leaking, clean):
    assert rule in rules_of(leaking)
    assert rule not in rules_of(clean)


def test_every_rule_has_a_case_and_says_what_to_do():
    assert list(CASES) == [rule.name for rule in RULES]
    assert [rule.severity for rule in RULES] == sorted(
        (rule.severity for rule in RULES), key=SEVERITIES.index
    )
    for rule in RULES:
        for leak in found_in(CASES[rule.name][0][0]):
            assert isinstance(leak, Leak)
            assert all([leak.where, leak.what, leak.why, leak.instead])
            assert leak.severity in SEVERITIES


@table(
    "clean",
    [
        LASSO,
        LOGISTIC,
        make_pipeline(columns(LEVELS, sparse_threshold=0, remainder="drop"), LOGISTIC),
        BaggingRegressor(LASSO, bootstrap=False, max_samples=0.5),
        StackingRegressor(TWO, LASSO, cv=KFold(3)),
        MultiOutputRegressor(LASSO),
        KFold(3, shuffle=True, random_state=0),
    ],
)
def test_nothing_is_found_in_what_is_clean(clean):
    assert not find_leaks(clean), str(find_leaks(clean))


def test_only_the_scores_remain_of_a_careful_search():
    assert rules_of(grid(make_pipeline(BoundsScaler(), LOGISTIC))) == {"scores of a search"}


def test_classes_of_more_than_two_labels_are_named_where_members_are_given_zero_and_one():
    for kind in (OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier):
        for model in (TEN, make_pipeline(BoundsScaler(), TEN)):
            (leak,) = find_leaks(kind(model))
            assert "three or more classes" in leak.what and "error about shapes" in leak.what
            assert "one model of all classes" in leak.instead


def test_a_subclass_of_a_known_step_or_meta_estimator_is_not_known():
    class Sly(Normalizer):
        pass

    class SlyPipeline(Pipeline):
        pass

    assert "steps that learn from the records for free" in rules_of(Sly())
    assert "models that are not known to be private" in rules_of(SlyPipeline([("a", LASSO)])) or (
        "steps that learn from the records for free" in rules_of(SlyPipeline([("a", LASSO)]))
    )


def test_a_candidate_is_told_from_the_estimator_as_it_stands():
    search = grid(DPLassoCD(accountant=LEDGER, random_state=NOISE))
    search.set_params(param_grid={"random_state": [NOISE, 1], "epsilon": [1.0, float("inf")]})
    assert places(search, "reproducible noise") == [
        "gridsearchcv.estimator"
    ]  # once, not for each candidate
    assert places(search, "epsilon=inf") == ["gridsearchcv.param_grid['epsilon'][1]"]


# ---- paths and depth ----------------------------------------------------------------------------


def test_paths_name_the_steps():
    inner = columns(make_pipeline(StandardScaler(), Normalizer()))
    union = FeatureUnion([("left", StandardScaler()), ("right", "passthrough")])
    search = grid(make_pipeline(inner, union, LASSO))
    assert places(search) == [
        "gridsearchcv.estimator.columntransformer.step.standardscaler",
        "gridsearchcv.estimator.featureunion.left",
    ]


@pytest.mark.parametrize("depth", [5, 300])
def test_nesting_of_any_depth(depth):
    model = make_pipeline(StandardScaler(), LASSO)
    for _ in range(depth):
        model = Pipeline([("in", model)])
    assert places(model) == ["pipeline" + ".in" * depth + ".standardscaler"]


# ---- strangers ----------------------------------------------------------------------------------


class Broken:
    """Has the names of an estimator, and each of them raises."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError("==")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("repr")

    def fit(self, X, y=None):
        raise AssertionError("nothing is fitted")

    def get_params(self, deep=True):
        raise RuntimeError("get_params")


class Proxy:
    """Passes every name on, as wrappers do: its class has no fit."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Answers(BaseEstimator):
    """get_params says whatever it was given."""

    def __init__(self, params=None):
        self.params = params

    def fit(self, X, y=None):
        raise AssertionError("nothing is fitted")

    def get_params(self, deep=True):
        return self.params


class Endless(BaseEstimator):
    def fit(self, X, y=None):
        raise AssertionError("nothing is fitted")

    def get_params(self, deep=True):
        return {"a": Endless(), "b": [Endless()]}


class BadList(list):
    def __iter__(self):
        raise RuntimeError("iter")


STRANGERS = [
        5, "pipeline", None, print, np.eye(2), object(), Broken(), Broken, Answers(None),
        Answers(7), Answers({1: 2}), Answers({"a": Broken()}), Answers({"a": BadList([1])}),
        Answers({"cv": Broken(), "bootstrap": Broken(), "early_stopping": np.eye(2)}),
        make_pipeline(Broken()), make_pipeline(Proxy(StandardScaler())), GridSearchCV(None, None),
        GridSearchCV(LASSO, {"alpha": 3, 5: [1], "a__b__c": [1]}), GridSearchCV(Broken(), [5]),
        DPLassoCD(epsilon="much", accountant=Broken()),
    ]  # fmt: skip


@table("number", range(len(STRANGERS)))  # broken objects can't be named
def test_no_stranger_makes_it_raise(number):
    stranger = STRANGERS[number]
    with warnings.catch_warnings(action="error"):
        report = find_leaks(stranger)
        assert str(report)
        assert report._repr_html_()
    # what nothing is known of is never passed over in silence
    assert report


@table(
    "malformed",
    [
        Pipeline("steps"), Pipeline([("a",)]), Pipeline(None), ColumnTransformer(None),
        ColumnTransformer([(1, 2, 3)]), VotingRegressor([("a", None)]),
    ],
)  # fmt: skip
def test_what_could_not_be_fitted_anyway_does_not_make_it_raise(malformed):
    assert str(find_leaks(malformed))


def test_circles_end():
    pipeline = make_pipeline(StandardScaler(), LASSO)
    pipeline.steps.append(("again", pipeline))
    steps = [("scaler", StandardScaler())]
    steps.append(steps)
    assert places(pipeline) == ["pipeline.standardscaler"]
    assert places(Answers({"steps": steps}))[0].endswith("scaler")


def test_an_endless_object_ends():
    assert "objects too large to look through" in rules_of(Endless())


def test_nothing_is_fitted_charged_changed_or_read(monkeypatch, uncharged):
    def never(*args, **kwargs):
        raise AssertionError("nothing is fitted")

    for kind in (StandardScaler, DPLassoCD, GridSearchCV):
        monkeypatch.setattr(kind, "fit", never)
    folds = iter([([0], [1])])
    search = grid(make_pipeline(StandardScaler(), DPLassoCD(accountant=uncharged)), cv=folds)
    before = repr(search.get_params())
    assert find_leaks(search)
    assert repr(search.get_params()) == before
    assert next(folds) == ([0], [1])


def test_no_cell_is_quoted():
    secret = 5.0721985
    table = np.full((3, 3), secret)
    for each in (
        GridSearchCV(LASSO, {"alpha": table}, cv=PredefinedSplit(table[0])),
        Answers({"init": table, "cv": table.tolist(), "X": [table]}),
    ):
        assert "5.07" not in str(find_leaks(each))


# ---- the report ---------------------------------------------------------------------------------


def test_the_report_is_a_list_and_reads_as_text_and_html():
    report = find_leaks(make_pipeline(StandardScaler(), DPLassoCD()))
    assert len(report) == 2 and list(report) == [report[0], report[1]]
    assert [leak.severity for leak in report] == ["void", "note"]
    assert str(report).splitlines()[0] == "Pipeline: 1 void, 1 note"
    assert "pipeline.standardscaler" in str(report) and "instead: dpcd_sklearn" in str(report)
    assert ">pipeline.standardscaler</td>" in report._repr_html_()


def test_an_empty_report_is_false_and_says_that_it_proves_nothing():
    report = find_leaks(LASSO)
    assert not report and len(report) == 0
    assert "no proof" in str(report) and "no proof" in report._repr_html_()


def test_html_is_escaped():
    model = Pipeline([("<b>", StandardScaler())])
    assert "&lt;b&gt;" in find_leaks(model)._repr_html_()
    assert "<b>" not in find_leaks(model)._repr_html_()


def test_the_report_of_a_ledger_names_what_it_does_not_count():
    text = " ".join(str(LEDGER.report()).split())
    html = unescape(LEDGER.report()._repr_html_())
    assert "find_leaks" in text
    for rule in RULES:
        assert (rule.name in text) == (rule.severity != "note")
        assert (rule.name in html) == (rule.severity != "note")


# ---- the table of scikit-learn's classes ---------------------------------------------------------


def transformers():
    """Those that need no arguments; the others are meta-estimators, whose parts are looked at."""
    found = []
    for _, kind in all_estimators(type_filter="transformer"):
        try:
            found.append(pytest.param(kind(), id=kind.__name__))
        except TypeError:
            continue
    return found


@table("step", transformers())
def test_every_transformer_is_found_or_is_one_that_learns_nothing(step):
    """The latter are fitted in test_functions_of_a_record.py."""
    name = full_name(type(step))
    if class_of(name).learns(step.get_params(deep=False)) is None:
        assert name in LEARNS_NOTHING
    else:
        assert places(step) or name in META_ESTIMATORS


def test_the_names_of_meta_estimators_exist():
    """A misspelt or moved name would only be reported in vain, but tell that a rule is stale."""
    assert set(META_ESTIMATORS) <= {full_name(kind) for _, kind in all_estimators()}


def test_our_own_public_objects_are_known():
    for name in dpcd_sklearn.linear_model.__all__:
        model = getattr(dpcd_sklearn, name)(accountant=LEDGER)
        assert rules_of(model) <= {"labels read from y (classes=None)"}


def test_steps_that_share_a_budget_are_looked_at_and_charged_as_one():
    def piped(*steps, **params):
        return make_private_pipeline(*steps, DPLassoCD(), **params)

    assert rules_of(piped(DPStandardScaler(), accountant=LEDGER)) == set()
    assert rules_of(piped(DPStandardScaler())) == {"a fit without an accountant"}
    assert places(piped(StandardScaler(), accountant=LEDGER)) == ["privatepipeline.standardscaler"]
    unions = piped(FeatureUnion([("a", StandardScaler())]), public_steps=["featureunion"])
    assert rules_of(unions) == {"steps that you vouch for", "a fit without an accountant"}
    without_noise = piped(DPStandardScaler(), accountant=LEDGER, epsilon=np.inf)
    assert rules_of(without_noise) == {"epsilon=inf"}
