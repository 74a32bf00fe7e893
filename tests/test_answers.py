"""A private score asks of a model: for each record an answer that follows from it alone."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from dpcd_sklearn import DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.metrics import _metrics, make_private_scorer
from dpcd_sklearn.metrics._metrics import METRICS, Model, ScoreFacts, answers_in_batches, read
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    RowNormClipper,
)

SIZES = [1, 2, 3, 7, 8, 399, 400, 401]
CLASSES = np.array([0, 1])
STEPS = [
    BoundsScaler((-2, 2)),
    DPOneHotEncoder(epsilon=np.inf, max_categories=4),
    DPOrdinalEncoder(epsilon=np.inf),
    DPSimpleImputer("constant"),
    DPQuantileTransformer(output_distribution="normal", epsilon=1.0, delta=1e-6),
    DPRobustScaler(epsilon=1.0, delta=1e-6),
    DPStandardScaler(epsilon=1.0, delta=1e-6),
    RowNormClipper(1.0),
    Binarizer(),
    MaxAbsScaler(),
    MinMaxScaler(),
    OneHotEncoder(handle_unknown="ignore"),
    OrdinalEncoder(),
    PolynomialFeatures(2),
    SimpleImputer(),
    StandardScaler(),
]


def table(n_samples=403, n_features=40):
    return np.random.default_rng(0).standard_normal((n_samples, n_features)) * 3


def facts_of(name):
    clip = 1.4 if "log" in name else 1.0
    return ScoreFacts(n=9, classes=CLASSES, clip=clip)


def answers(name, model, X):
    return Model(model, METRICS[name].methods(facts_of(name))).answers(read(X)[0])


def private(name):
    if METRICS[name].task == "regression":
        return DPRidgeSkGD(delta=1e-5, feature_bounds=(-2, 2), target_bounds=(-1, 1))
    return DPLogisticGCD(classes=[0, 1], delta=1e-5, feature_bounds=(-2, 2))


def foreign(name):
    regression = METRICS[name].task == "regression"
    return LinearRegression() if regression else LogisticRegression()


class OfTheBatch(ClassifierMixin, BaseEstimator):
    """It follows the whole batch, and does not answer for records that begin with 7."""

    def fit(self, X, y):
        self.classes_ = CLASSES
        return self

    def predict(self, X):
        if (X[:, 0] == 7).any():
            raise RuntimeError("SECRET")
        return (X[:, 0] > X[:, 0].mean() - len(X) / 1000).astype(int)

    def predict_proba(self, X):
        right = 1 / (2 + self.predict(X) + len(X) / 1000)
        return np.column_stack([1 - right, right])

    decision_function = predict


@pytest.mark.parametrize("kind", [private, foreign, lambda name: OfTheBatch()])
@pytest.mark.parametrize("name", METRICS)
def test_an_answer_follows_from_its_record(name, kind):
    X, rng = table(), np.random.default_rng(0)
    model = kind(name).fit(X, X[:, 0] > 0)
    alone = answers(name, model, X)
    for n in SIZES:
        rows = rng.permutation(len(X))[:n]
        part, replaced = X[rows], rng.integers(n)
        part[replaced] = 7.0
        for container in (np.ascontiguousarray, np.asfortranarray, sparse.csr_array):
            if container is sparse.csr_array and isinstance(model, OfTheBatch):
                continue  # a mean of its own
            found = answers(name, model, container(part))
            others = np.arange(n) != replaced
            if container is sparse.csr_array and kind is foreign:
                np.testing.assert_allclose(  # scikit-learn's own sums differ between containers
                    found[others].astype(float), alone[rows][others].astype(float), rtol=1e-9
                )
            else:
                assert np.array_equal(found[others], alone[rows][others])


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_listed_steps_give_a_batch_the_bits_of_its_records(step, dtype):
    X = np.round(table(402, 6), 1).astype(dtype)
    model = make_pipeline(step, DPRidgeSkGD(delta=1e-5)).fit(X, X[:, 0])
    assert answers_in_batches(model)
    alone = np.concatenate([model.predict(row[np.newaxis]) for row in X[-8:]])
    for n in SIZES:
        for layout in (np.ascontiguousarray, np.asfortranarray):
            assert np.array_equal(model.predict(layout(X[-n:]))[-8:], alone[-n:])


def test_steps_that_are_made_of_listed_ones_answer_in_batches():
    pd = pytest.importorskip("pandas")
    X, y = table(402, 3), np.arange(402) % 2
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(y, "one", "two"))
    parts = [
        ("copied", "passthrough", ["a"]),
        ("left", "drop", ["b"]),
        ("both", FeatureUnion([("s", StandardScaler()), ("m", MinMaxScaler())]), ["b", "c"]),
        ("words", make_pipeline(OneHotEncoder()), ["d"]),
    ]
    for threshold in (0.0, 1.0):
        columns = ColumnTransformer(parts, sparse_threshold=threshold)
        model = make_pipeline(columns, private("accuracy")).fit(frame, y)
        assert answers_in_batches(model)
        alone = np.concatenate([model.predict_proba(frame[i : i + 1]) for i in range(394, 402)])
        for n in SIZES:
            assert np.array_equal(model.predict_proba(frame[-n:])[-8:], alone[-n:])
    own = ColumnTransformer([("own", FunctionTransformer(np.sinh), ["a"])])
    assert not answers_in_batches(make_pipeline(own, private("r2")).fit(frame, y))


def test_every_step_of_the_list_is_tested():
    tested = {_metrics.full_name(type(step)) for step in STEPS}
    assert tested == _metrics._STEPS


def test_what_is_not_known_is_asked_for_one_record_at_a_time():
    X, seen = table(30), []

    def look(X):
        seen.append(len(X))
        return X

    step = FunctionTransformer(look)
    model = make_pipeline(step, private("r2")).fit(X, X[:, 0])
    assert not answers_in_batches(model)
    seen.clear()
    answers("r2", model, X)
    assert seen == [1] * 30

    class Mine(DPRidgeSkGD):
        pass

    assert answers_in_batches(private("r2")) and not answers_in_batches(Mine())
    steps = make_private_pipeline(BoundsScaler((-2, 2)), DPRidgeSkGD(), epsilon=1.0)
    assert answers_in_batches(steps)


def test_a_record_without_an_answer_is_never_right_and_no_error():
    X, y = table(50), np.ones(50)  # which is what it says of a record that is alone
    X[:20, 0] = 7.0
    model = OfTheBatch().fit(X, y)
    for name in ("accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc"):
        scorer = make_private_scorer(name, 1e6, delta=1e-6)
        score = scorer(model, X, y)
        assert math.isfinite(score)
        if name == "accuracy":
            assert score == pytest.approx(0.6, abs=0.01)
    scorer = make_private_scorer("r2", 1e6, delta=1e-6, target_bounds=(-1, 1))
    assert math.isfinite(scorer(model, X, y))


def test_records_that_are_no_numbers_are_asked_for_one_by_one():
    pd = pytest.importorskip("pandas")
    y = np.arange(40) % 2
    words = np.array(["one word", "two words"])[y]
    text = make_pipeline(CountVectorizer(), LogisticRegression()).fit(words, y)
    frame = pd.DataFrame({"colour": words, "size": y})
    encoded = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(frame, y)
    gaps = np.where(y[:, None] > 0, np.nan, 1.0)
    trees = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1).fit(gaps, y)
    for model, X in ((text, words), (text, list(words)), (encoded, frame), (trees, gaps)):
        scorer = make_private_scorer("accuracy", 1e6, delta=1e-6)
        assert scorer(model, X, y) == pytest.approx(1.0, abs=0.01)
    frame.loc[3, "colour"] = "a colour that was never seen"
    scorer = make_private_scorer("accuracy", 1e6, delta=1e-6)
    assert scorer(encoded, frame, y) == pytest.approx(39 / 40, abs=0.01)


# ---- what is refused, and what is charged --------------------------------------------------------

GOOD_X, GOOD_Y = table(20, 3), np.arange(20) % 2
ABSURD = [
    *[{"target_bounds": bounds} for bounds in [(-1e308, 1e308), (0, 1e-320), (1e200, 1e201)]],
    *[{"target_bounds": bounds} for bounds in [(0, math.nan), (0, math.inf), (3, 3), (2, 1)]],
    *[{"target_bounds": bounds} for bounds in ["ab", (0, 1, 2), 5, (None, 1), (0, 10**400)]],
    *[{"clip": clip} for clip in [0.0, -1.0, 1e-320, 1e308, math.inf, math.nan, "1", 10**400]],
    {"target_bounds": (-1e100, 1e100)},
    {"target_bounds": (-1e-100, 1e-100)},
    {"target_bounds": (1e16, 1e16 + 4)},
    {"clip": 1e100},
    {"clip": 1e-100},
    {"target_bounds": (-1e100, 1e100), "clip": 1e-100},
    {"target_bounds": (-1e-100, 1e-100), "clip": 1e100},
]


@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error", "neg_log_loss"])
def test_absurd_bounds_are_scored_or_refused_uncharged(name):
    model, outcomes = private(name).fit(GOOD_X, GOOD_Y), []
    for facts in ABSURD:
        regression = METRICS[name].task == "regression"
        facts = {"target_bounds": (-1, 2)} | facts if regression else facts
        accountant = PrivacyAccountant(epsilon=1e4, delta=1e-3)
        try:
            score = make_private_scorer(name, 1.0, accountant, delta=1e-6, **facts)(
                model, GOOD_X, GOOD_Y
            )
        except (TypeError, ValueError):
            outcomes.append(len(accountant.entries()) == 0)
        else:
            outcomes.append(len(accountant.entries()) == 1 and math.isfinite(score))
    assert all(outcomes), [ABSURD[k] for k, fine in enumerate(outcomes) if not fine]
