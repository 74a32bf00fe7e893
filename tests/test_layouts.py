"""The layout of what reaches a private step is public: no record decides whether it is sparse.

Plans depend on the layout, and a ColumnTransformer publishes its choice. Tables that differ in one
record either are refused alike, before a charge, or give the same plan and the same layout.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import SparseRandomProjection

from dpcd_sklearn import DPLinearRegressor, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import _private_pipeline, make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore")  # of few records
N, P = 20, 10
Y = np.linspace(-1.0, 1.0, N)
WORDS = [f"w{j}" for j in range(P)]
ALL = slice(0, P)
KNOTS = [[-1.0] * P, [1.0] * P]
LETTERS = {"categories": [["a"]] * P, "handle_unknown": "ignore"}


def neighbours(level):
    """Cells that are not zero: of one table, and of one with another last record."""
    cells = (np.arange(N * P) < level).reshape(N, P)
    other = cells.copy()
    cells[-1], other[-1] = False, True
    return cells, other


# ---- what X is, by the cells that are not zero ---------------------------------------------------


def array(cells):
    return cells * 0.5


def csr(cells):
    return sparse.csr_array(array(cells))


def sparse_frame(cells):
    return pd.DataFrame.sparse.from_spmatrix(csr(cells), columns=WORDS)


def half_sparse_frame(cells):
    return sparse_frame(cells).assign(w0=array(cells)[:, 0])


def holes(cells):
    return pd.DataFrame(np.where(cells, np.nan, 0.5), columns=WORDS)


def letters(cells):
    return pd.DataFrame(np.where(cells, "a", "b"), columns=WORDS)


def texts(cells):
    return pd.DataFrame({"text": [" ".join(np.array(WORDS)[row]) for row in cells]})


# ---- steps, each with the table that it is given -------------------------------------------------


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return sparse.csr_array(X)


MAY_BE_SPARSE = {
    "counts": (texts, CountVectorizer(vocabulary=WORDS), "text"),
    "frequencies": (texts, TfidfVectorizer(vocabulary=WORDS, use_idf=False), "text"),
    "hashes": (texts, HashingVectorizer(n_features=8), "text"),
    "levels": (letters, OneHotEncoder(**LETTERS), WORDS),
    "indicator": (holes, MissingIndicator(features="all", sparse=True), WORDS),
    "weights": (array, TfidfTransformer(use_idf=False), ALL),
    "splines": (array, SplineTransformer(knots=KNOTS, sparse_output=True), ALL),
    "function": (array, FunctionTransformer(sparse.csr_array), ALL),
    "own step": (array, Own(), ALL),
    "union": (
        letters,
        FeatureUnion([("a", OneHotEncoder(**LETTERS)), ("b", OneHotEncoder(**LETTERS))]),
        WORDS,
    ),
    "pipeline": (texts, make_pipeline(CountVectorizer(vocabulary=WORDS), Normalizer()), "text"),
    "within": (
        letters,
        ColumnTransformer([("a", OneHotEncoder(**LETTERS), WORDS)], sparse_threshold=1.0),
        WORDS,
    ),
    "CSR passed through": (csr, "passthrough", ALL),
    "CSR in bounds": (csr, BoundsScaler((-1, 1)), ALL),
    "CSR by private scales": (csr, DPStandardScaler(with_centering=False), ALL),
    "CSR by rows": (csr, Normalizer(), ALL),
    "CSR in two values": (csr, Binarizer(), ALL),
    "CSR filled": (csr, SimpleImputer(strategy="constant", keep_empty_features=True), ALL),
    "CSR of products": (csr, PolynomialFeatures(2), ALL),
    "CSR projected": (csr, SparseRandomProjection(5), ALL),
    "CSR of a function": (csr, FunctionTransformer(np.sqrt), ALL),
    "sparse frame": (sparse_frame, BoundsScaler((-1, 1)), WORDS),
    "half-sparse frame": (half_sparse_frame, BoundsScaler((-1, 1)), WORDS[1:]),
}
DENSE = {
    "levels": (letters, OneHotEncoder(**LETTERS, sparse_output=False), WORDS),
    "indicator": (holes, MissingIndicator(features="all", sparse=False), WORDS),
    "indicator of a dense frame": (holes, MissingIndicator(features="all"), WORDS),
    "passed through": (array, "passthrough", ALL),
    "bounds": (array, BoundsScaler((-1, 1)), ALL),
    "private scales": (array, DPStandardScaler(), ALL),
    "rows, within": (
        array,
        ColumnTransformer([("a", make_pipeline(Normalizer(), Binarizer()), ALL)]),
        ALL,
    ),
    "union": (
        array,
        FeatureUnion([("a", PolynomialFeatures(2)), ("b", SplineTransformer(knots=KNOTS))]),
        ALL,
    ),
    "CSR made dense": (csr, SparseRandomProjection(5, dense_output=True), ALL),
}


def columns(step, which, threshold):
    return ColumnTransformer([("step", step, which)], sparse_threshold=threshold)


def outcome(make, cells, step):
    """The public side of a fit: its plan, bounds and layout; or the error, and nothing charged."""
    accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
    model = make_private_pipeline(step, DPRidgeSkGD(target_bounds=(-1, 1)), accountant=accountant)
    try:
        model.fit(make(cells), Y)
    except (TypeError, ValueError) as error:
        assert not accountant.entries()
        return str(error)
    return model.privacy_event_, model[0].sparse_output_, model[-1].clip_


def outcomes(makers, thresholds, levels):
    for name, (make, step, which) in makers.items():
        for threshold in thresholds:
            for level in levels:
                transformer = columns(step, which, threshold)
                yield name, *(outcome(make, cells, transformer) for cells in neighbours(level))


def test_no_record_decides_a_layout_or_a_plan_through_what_may_be_sparse():
    for name, one, other in outcomes(MAY_BE_SPARSE, (0.3, 1.0), (0, 55, 180)):
        assert one == other, name
        assert "not covered by the guarantee" in one, name


def test_what_is_known_to_be_dense_is_fitted_and_stays_dense():
    for name, one, other in outcomes(DENSE, (0.3, 1.0), (60,)):
        if name != "private scales":  # its bounds have noise
            assert one == other, name
        assert one[0] == other[0] and not one[1], name


def test_a_threshold_of_zero_takes_everything_that_is_known():
    strangers = {"function", "own step"}
    known = {name: maker for name, maker in MAY_BE_SPARSE.items() if name not in strangers}
    for name, one, other in outcomes(known, (0,), (60,)):
        if name == "within":  # it has a threshold of its own
            assert one == other and "not covered" in one
            continue
        assert one[0] == other[0] and one[1] is False, name


def test_without_the_rule_one_record_decides(monkeypatch):
    monkeypatch.setattr(_private_pipeline, "refuse_leaks", lambda *args, **kwargs: None)
    names = ("counts", "levels", "indicator", "CSR passed through", "CSR in bounds")
    some = {name: MAY_BE_SPARSE[name] for name in names}
    told = {name for name, one, other in outcomes(some, (0.3,), range(40, 64, 4)) if one != other}
    assert told == set(names)


def test_a_plan_is_refused_as_the_fit_is():
    step = columns("passthrough", ALL, 0.3)
    model = make_private_pipeline(step, DPRidgeSkGD(target_bounds=(-1, 1)))
    assert model.planned_event(N, P)
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        model.planned_event(N, P, sparse=True)
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        model.planned_event(N, sparse_frame(neighbours(9)[0]))


# ---- searches and scores -------------------------------------------------------------------------


def refused_search(estimator, params, X, match, y=Y):
    accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
    search = PrivateSearchCV(
        estimator, params, epsilon=50.0, delta=1e-3, n_iter=2, accountant=accountant
    )
    with pytest.raises(ValueError, match=match):
        search.fit(X, y)
    assert not accountant.entries()


def model():
    return DPLinearRegressor(target_bounds=(-1, 1))


def test_a_search_refuses_what_a_pipeline_refuses():
    cells, _ = neighbours(60)
    for make, step, which in MAY_BE_SPARSE.values():
        if isinstance(step, DPStandardScaler):  # only a PrivatePipeline has two private steps
            continue
        for kind in (make_pipeline, make_private_pipeline):
            estimator = kind(columns(step, which, 0.3), model())
            refused_search(
                estimator,
                {"dplinearregressor__alpha": [0.1, 1.0]},
                make(cells),
                "not covered by the guarantee",
            )


def test_candidates_are_looked_at_as_the_estimator_is():
    clean = make_pipeline(columns("passthrough", ALL, 0), BoundsScaler((-1, 1)), model())
    cells, _ = neighbours(60)
    for name, values in {
        "columntransformer__sparse_threshold": [0.3],
        "boundsscaler": [FunctionTransformer(abs)],
        "columntransformer__step": [Own()],
    }.items():
        refused_search(clean, {name: values}, csr(cells), "not covered by the guarantee")


def test_a_candidate_that_was_not_planned_fails_alone():
    """Only some draws of distributions are planned; the others are looked at when they come."""

    class Late:
        calls = 0

        def rvs(self, random_state=None):
            self.calls += 1
            return 0.0 if self.calls <= 48 else 0.3  # as many as are planned

    clean = make_pipeline(columns("passthrough", ALL, 0), model())
    search = PrivateSearchCV(
        clean, {"columntransformer__sparse_threshold": Late()}, epsilon=50.0, delta=1e-3, n_iter=2
    )
    assert search.fit(csr(neighbours(60)[0]), Y).best_estimator_ is None


def test_what_tells_one_record_from_two_is_refused_where_their_number_is_protected():
    cells, _ = neighbours(60)
    relation = {"neighboring": "add_remove", "n_public": 50 * N, "delta": 1e-4}
    for step in (Normalizer(), SplineTransformer(knots=KNOTS)):
        accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
        mine = make_private_pipeline(step, model(), accountant=accountant, **relation)
        with pytest.raises(ValueError, match="one record from two"):
            mine.fit(array(cells), Y)
        assert not accountant.entries()
        mine.set_params(public_steps=[mine.steps[0][0]], accountant=None).fit(array(cells), Y)
        make_private_pipeline(step, model()).fit(array(cells), Y)
        refused_search(
            make_pipeline(step, model().set_params(**relation)),
            {"dplinearregressor__alpha": [1.0]},
            np.tile(array(cells), (50, 1)),
            "one record from two",
            np.tile(Y, 50),
        )


def test_your_word_holds_in_pipelines_and_in_searches():
    cells, _ = neighbours(60)
    step = columns(Own(), ALL, 0.3)
    vouched = make_private_pipeline(step, model(), public_steps=["columntransformer"])
    vouched.fit(array(cells), Y)
    search = PrivateSearchCV(vouched, {"dplinearregressor__alpha": [1.0]}, epsilon=50.0, delta=1e-3)
    assert search.fit(array(cells), Y).privacy_event_
    assert [leak.severity for leak in find_leaks(vouched)] == ["note", "note"]


def test_a_scorer_refuses_the_leaks_of_a_private_model_before_the_charge():
    cells, _ = neighbours(60)
    fitted = make_pipeline(columns(OneHotEncoder(**LETTERS), WORDS, 0.3), model())
    fitted.fit(letters(cells), Y)
    accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
    scorer = make_private_scorer("r2", 0.5, accountant, target_bounds=(-1, 1))
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        scorer(fitted, letters(cells), Y)
    assert not accountant.entries()
    clean = make_pipeline(columns(OneHotEncoder(**LETTERS), WORDS, 0), model())
    assert scorer(clean.fit(letters(cells), Y), letters(cells), Y) < np.inf
