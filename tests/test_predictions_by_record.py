"""A prediction or a score's answer for a record follows from that record and the model."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import preprocessing
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from tables import table
from twins import LAYOUTS

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    linear_model,
)
from dpcd_sklearn.linear_model import _prediction
from dpcd_sklearn.linear_model._prediction import margins_of
from dpcd_sklearn.metrics import _metrics, make_private_scorer
from dpcd_sklearn.metrics._metrics import METRICS, Model, ScoreFacts, answers_in_batches, read
from dpcd_sklearn.model_selection import PrivateSearchCV
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

SIZES = [1, 2, 3, 7, 8, 399, 400, 401, 1000]
WIDTHS = [1, 3, 32, 33, 100, 500]
N_OUTPUTS = {"one target": 1, "targets": 3, "binary": 1, "classes": 4, "one-vs-rest": 3}
MODELS = {
    "one target": [
        DPLassoCD(),
        DPRidgeSkGD(),
        DPLinearRegressor("huber", solver="sgd"),
        DPLinearRegressor(solver="newton", penalty="l2"),
        linear_model.DPQuantileRegressor(),
        linear_model.DPLassoCV([1.0, 10.0]),
        linear_model.DPPoissonRegressor(),
    ],
    "targets": [DPRidgeSkGD()],
    "binary": [DPLogisticGCD(classes=[0, 1]), DPLinearClassifier(classes=[0, 1])],
    "classes": [DPLinearClassifier(classes=range(4)), DPLogisticGCD(classes=range(4))],
    "one-vs-rest": [DPLinearClassifier(classes=range(3))],
}
BOUNDS = {"none": None, "with zero": (-1.5, 2.0), "without zero": (0.25, 2.0)}
METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


def backwards(X):
    return X[::-1].copy()[::-1]


def unsorted(X):
    X = sparse.csr_array(X)
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        for array in (X.indices, X.data):
            array[start:end] = array[start:end][::-1].copy()
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def long_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.uint64), X.indptr.astype(np.uint64)
    return X


DENSE = [*LAYOUTS, backwards]
SPARSE = [sparse.csr_array, sparse.csc_matrix, unsorted, long_indices]


def records(n_features, n_samples=1003):
    """Numbers that single precision has, many of them zero, at scales that are far apart."""
    rng = np.random.default_rng(n_features)
    X = rng.standard_normal((n_samples, n_features)) * 2.0 ** rng.integers(-9, 9, n_features)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    return X.astype(np.float32).astype(np.float64)


def model_of(kind, number, n_features, bounds):
    """A model that was fitted, with coefficients of its kind's shape."""
    model, rng = clone(MODELS[kind][number]), np.random.default_rng(n_features)
    X = rng.standard_normal((60, n_features))
    y = rng.integers(0, max(2, N_OUTPUTS[kind]), 60)
    if kind == "targets":
        y = np.column_stack([y, y, y])
    stated = {"feature_bounds": BOUNDS["with zero"], "delta": 1e-5, "max_iter": 1}
    stated = {name: value for name, value in stated.items() if name in model.get_params()}
    model.set_params(**stated).fit(X, y)
    if kind == "one target":
        model.target_bounds_ = None
    coef = rng.standard_normal((N_OUTPUTS[kind], n_features)) / 8
    model.coef_ = coef[0] if kind == "one target" else coef
    if bounds is None:
        model.feature_bounds_ = None
    else:
        model.feature_bounds_ = tuple(np.full(n_features, bound) for bound in bounds)
    return model


def twin(X, coef, intercept, bounds):
    """Eight lanes by position, joined in one order: every operation is one number's own."""
    if bounds is not None:
        X = np.clip(X, *bounds)
    lanes = np.zeros((len(coef), 8, len(X)))
    for j in range(X.shape[1]):
        for k, row in enumerate(coef):
            lanes[k, j % 8] += row[j] * X[:, j]
    a, b, c, d, e, f, g, h = np.moveaxis(lanes, 1, 0)
    return (((a + e) + (c + g)) + ((b + f) + (d + h))).T + intercept


def with_neighbour(X, n, rng):
    """n rows in some order; one of them may overflow, and which that is is returned."""
    rows = rng.permutation(len(X))[:n]
    part, replaced = X[rows], rng.integers(n)
    part[replaced] = np.finfo(np.float32).max * rng.choice([-1.0, 0.0, 1.0], X.shape[1])
    return rows, part, replaced


CASES = [(kind, number) for kind, models in MODELS.items() for number in range(len(models))]


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_what_is_predicted_follows_from_the_record_alone(kind, number):
    wrong, rng, n_checked = [], np.random.default_rng(0), 0
    for n_features in WIDTHS:
        X = records(n_features)
        for words, bounds in BOUNDS.items():
            model = model_of(kind, number, n_features, bounds)
            methods = [name for name in METHODS if hasattr(model, name)]
            alone = {name: getattr(model, name)(X) for name in methods}
            margins = twin(X, np.atleast_2d(model.coef_), model.intercept_, model.feature_bounds_)
            of_margins = alone["decision_function" if len(methods) > 1 else "predict"]
            if isinstance(model, linear_model.DPPoissonRegressor):
                margins = np.vectorize(math.exp)(margins)
            assert np.array_equal(of_margins.reshape(margins.shape), margins)
            for n in SIZES:
                rows, part, replaced = with_neighbour(X, n, rng)
                others = np.arange(n) != replaced
                layout = rng.choice(DENSE + SPARSE)
                dtype = rng.choice([np.float32, np.float64])
                for name in methods:
                    found = getattr(model, name)(layout(part.astype(dtype)))
                    n_checked += 1
                    if not np.array_equal(found[others], alone[name][rows][others]):
                        wrong.append((words, n_features, n, layout.__name__, dtype, name))
    assert not wrong
    assert n_checked >= 100


@table("layout", DENSE + SPARSE)
@table("bounds", BOUNDS.values())
def test_every_layout_and_number_of_threads_has_the_bits_of_the_twin(layout, bounds):
    for n_features in WIDTHS:
        X = records(n_features)
        coef = np.random.default_rng(1).standard_normal((3, n_features))
        lo_hi = bounds and tuple(np.full(n_features, bound) for bound in bounds)
        expected = twin(X, coef, 0.5, lo_hi)
        inside = X if bounds is None else np.clip(X, *bounds)
        largest = n_features * np.abs(inside).max()
        assert_allclose(expected, inside @ coef.T + 0.5, atol=1e-13 * largest)
        for dtype in (np.float32, np.float64):
            for n_threads in (1, 2):
                found = margins_of(layout(X.astype(dtype)), coef, 0.5, lo_hi, n_threads)
                assert np.array_equal(found, expected)


def test_a_map_of_a_file_has_the_bits_of_its_records(tmp_path):
    X, coef = records(33), np.random.default_rng(1).standard_normal((2, 33))
    for dtype in (np.float32, np.float64):
        X.astype(dtype).tofile(tmp_path / "X")
        for rows in (slice(None), slice(3, 401), slice(1, None, 7)):
            found = np.memmap(tmp_path / "X", dtype=dtype, mode="r", shape=X.shape)[rows]
            expected = twin(X, coef, 0.5, None)[rows]
            assert np.array_equal(margins_of(found, coef, 0.5), expected)


@pytest.mark.parametrize("layout", DENSE + SPARSE, ids=lambda f: f.__name__)
def test_rows_that_overflow_have_their_own_bits_too(layout):
    rng = np.random.default_rng(0)
    for n_features in WIDTHS:
        values, shares = [-1.7e308, -3.0, 0.0, 2.5, 1.7e308], [0.02, 0.3, 0.36, 0.3, 0.02]
        X = rng.choice(values, (1000, n_features), p=shares)
        coef = rng.choice([-40.0, 0.5, 3.0], (3, n_features))
        alone = np.vstack([margins_of(row[np.newaxis], coef, [1.0, 0.0, -1e308]) for row in X])
        assert np.isfinite(alone).all() and (np.abs(alone) > 1e308).any()
        for n in SIZES:
            rows = rng.permutation(len(X))[:n]
            found = margins_of(layout(X[rows]), coef, [1.0, 0.0, -1e308])
            assert np.array_equal(found, alone[rows])


def test_an_order_that_follows_the_number_of_rows_is_noticed(monkeypatch):
    right = _prediction.products

    def by_number(X, coef, bounds=None, **threads):
        if X.shape[0] <= 400:
            return right(X, coef, bounds, **threads)
        turned = bounds and tuple(bound[::-1] for bound in bounds)
        return right(np.ascontiguousarray(X[:, ::-1]), coef[:, ::-1], turned, **threads)

    X, coef = records(33), np.random.default_rng(1).standard_normal((3, 33))
    assert np.array_equal(margins_of(X[:400], coef, 0.5), margins_of(X[:401], coef, 0.5)[:400])
    monkeypatch.setattr(_prediction, "products", by_number)
    assert not np.array_equal(margins_of(X[:400], coef, 0.5), margins_of(X[:401], coef, 0.5)[:400])


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_array])
def test_what_can_be_fitted_can_be_predicted_whatever_type_its_indices_have(layout):
    X = records(3, 60)
    for kind in ("one target", "targets", "binary", "classes", "one-vs-rest"):
        model = model_of(kind, 0, 3, None)
        y = np.arange(60) % max(2, N_OUTPUTS[kind])
        for letters in ("b", "B", "h", "H", "i", "I", "l", "L"):
            S, expected = layout(X), model.predict(X)
            S.indices, S.indptr = S.indices.astype(letters), S.indptr.astype("h")
            assert np.array_equal(model.predict(S), expected)
            targets = np.column_stack([y, y, y]) if kind == "targets" else y
            assert clone(model).fit(S, targets).predict(S).shape == expected.shape


# ---- what a private score asks of a model --------------------------------------------------------


BATCHES = [1, 3, 8, 401]
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
    preprocessing.Binarizer(),
    preprocessing.MaxAbsScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.OneHotEncoder(handle_unknown="ignore"),
    preprocessing.OrdinalEncoder(),
    preprocessing.PolynomialFeatures(2),
    SimpleImputer(),
    preprocessing.StandardScaler(),
]


def normals(n_samples=403, n_features=40):
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


# One metric of labels, of probabilities, of margins and of numbers.
OF_EACH_METHOD = {metric.methods: name for name, metric in METRICS.items()}.values()


@pytest.mark.parametrize("kind", [private, foreign, lambda name: OfTheBatch()])
@pytest.mark.parametrize("name", OF_EACH_METHOD)
def test_an_answer_follows_from_its_record(name, kind):
    X, rng = normals(), np.random.default_rng(0)
    model = kind(name).fit(X, X[:, 0] > 0)
    alone = answers(name, model, X)
    for n in BATCHES:
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
    X = np.round(normals(402, 6), 1).astype(dtype)
    model = make_pipeline(step, DPRidgeSkGD(delta=1e-5)).fit(X, X[:, 0])
    assert answers_in_batches(model)
    alone = np.concatenate([model.predict(row[np.newaxis]) for row in X[-8:]])
    for n in BATCHES:
        for layout in (np.ascontiguousarray, np.asfortranarray):
            assert np.array_equal(model.predict(layout(X[-n:]))[-8:], alone[-n:])


def test_steps_that_are_made_of_listed_ones_answer_in_batches():
    pd = pytest.importorskip("pandas")
    X, y = normals(402, 3), np.arange(402) % 2
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(y, "one", "two"))
    both = [("s", preprocessing.StandardScaler()), ("m", preprocessing.MinMaxScaler())]
    parts = [
        ("copied", "passthrough", ["a"]),
        ("left", "drop", ["b"]),
        ("both", FeatureUnion(both), ["b", "c"]),
        ("words", make_pipeline(preprocessing.OneHotEncoder()), ["d"]),
    ]
    for threshold in (0.0, 1.0):
        columns = ColumnTransformer(parts, sparse_threshold=threshold)
        model = make_pipeline(columns, private("accuracy")).fit(frame, y)
        assert answers_in_batches(model)
        alone = np.concatenate([model.predict_proba(frame[i : i + 1]) for i in range(394, 402)])
        for n in BATCHES:
            assert np.array_equal(model.predict_proba(frame[-n:])[-8:], alone[-n:])
    own = ColumnTransformer([("own", preprocessing.FunctionTransformer(np.sinh), ["a"])])
    assert not answers_in_batches(make_pipeline(own, private("r2")).fit(frame, y))


def test_every_step_of_the_list_is_tested():
    tested = {_metrics.full_name(type(step)) for step in STEPS}
    assert tested == _metrics._STEPS


def test_what_is_not_known_is_asked_for_one_record_at_a_time():
    X, seen = normals(30), []

    def look(X):
        seen.append(len(X))
        return X

    step = preprocessing.FunctionTransformer(look)
    model = make_pipeline(step, private("r2")).fit(X, X[:, 0])
    assert not answers_in_batches(model)
    seen.clear()
    answers("r2", model, X)
    assert seen == [1] * 30

    class Mine(DPRidgeSkGD):
        pass

    assert not answers_in_batches(Mine())
    assert not answers_in_batches(private("accuracy").fit(X, X[:, 0] > 0).to_sklearn())
    for name in linear_model.__all__:
        assert answers_in_batches(getattr(linear_model, name)())
    steps = make_private_pipeline(BoundsScaler((-2, 2)), DPRidgeSkGD(), epsilon=1.0)
    assert answers_in_batches(steps)


def test_a_record_without_an_answer_is_never_right_and_no_error():
    X, y = normals(50), np.ones(50)  # which is what it says of a record that is alone
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


def test_a_cell_of_a_list_decides_no_answer_for_other_records():
    """A word among numbers makes words of all cells, if NumPy may choose their kind."""
    rows = [[number, "ab"[number % 2]] for number in [*range(3)] * 400]
    y = np.array([number == 1 for number, _ in rows])
    model = DPLinearClassifier(classes=[False, True])
    encoder = DPOneHotEncoder([[0, 1, 2], ["a", "b"]])
    fitted = make_private_pipeline(encoder, model, epsilon=20.0).fit(rows, y)
    expected = fitted.predict(rows)
    np.testing.assert_array_equal(answers("accuracy", fitted, rows), expected)
    other = [["a word", "a"], *rows[1:]]
    np.testing.assert_array_equal(answers("accuracy", fitted, other)[1:], expected[1:])
    pipeline = make_private_pipeline(encoder, model)
    grid = {"dplinearclassifier__solver": ["skgd", "newton"]}
    for X in (rows, np.array(rows, dtype=object)):
        search = PrivateSearchCV(pipeline, grid, epsilon=50.0, distribution="all").fit(X, y)
        assert search.best_score_ > 0.9


def test_records_that_are_no_numbers_are_asked_for_one_by_one():
    pd = pytest.importorskip("pandas")
    y = np.arange(40) % 2
    words = np.array(["one word", "two words"])[y]
    text = make_pipeline(CountVectorizer(), LogisticRegression()).fit(words, y)
    frame = pd.DataFrame({"colour": words, "size": y})
    encoded = make_pipeline(preprocessing.OneHotEncoder(), LogisticRegression()).fit(frame, y)
    gaps = np.where(y[:, None] > 0, np.nan, 1.0)
    trees = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1).fit(gaps, y)
    for model, X in ((text, words), (text, list(words)), (encoded, frame), (trees, gaps)):
        scorer = make_private_scorer("accuracy", 1e6, delta=1e-6)
        assert scorer(model, X, y) == pytest.approx(1.0, abs=0.01)
    frame.loc[3, "colour"] = "a colour that was never seen"
    scorer = make_private_scorer("accuracy", 1e6, delta=1e-6)
    assert scorer(encoded, frame, y) == pytest.approx(39 / 40, abs=0.01)


# ---- what is refused, and what is charged --------------------------------------------------------

GOOD_X, GOOD_Y = normals(20, 3), np.arange(20) % 2
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
