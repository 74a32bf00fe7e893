"""Fits for the tape: estimators, transformers, pipelines and partitions, with records for each."""

import functools
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import loguniform
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.losses import Huber, Quantile
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.partitions import fit_partitions
from dpcd_sklearn.penalties import Box, GroupLasso, L1Ball, L2Ball, Monotonic
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    DPPCA,
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    RowNormClipper,
)
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.solvers import CD, GCD, SGD, SVRG, CompGD, FrankWolfe, Newton, SkGD
from dpcd_sklearn.testing import unpaid

N, P, WIDE = 70, 3, 64
MANY = 520
# With less of an epsilon public numbers rule intervals out.
INFERENCE = {"inference": True, "epsilon": 30.0, "feature_bounds": (-1, 1)}
EXTREME = [0.0, -0.0, 1.0, 1e300, -1e300, np.finfo(float).max, 5e-324, 1e-300, 2.0**53 + 2, -7.5]
WORDS = ["red", "green", "blue", "", "never seen", None, "red ", "Red"]


# ---- records: each of a seed, and a neighbour that differs in one --------------------------------


@dataclass(frozen=True)
class Records:
    """A data set with a target and weights, and how one of its records may change."""

    X: object
    y: np.ndarray
    weights: np.ndarray

    def replaced(self, rng, x, y, weight):
        i = rng.integers(len(self.y))
        ys, weights = self.y.copy(), self.weights.copy()
        ys[i], weights[i] = y, weight
        return Records(with_row(self.X, i, x), ys, weights)

    def without(self, i):
        X = self.X
        X = X.drop(index=i).reset_index(drop=True) if hasattr(X, "iloc") else _rows(X, i)
        return Records(X, np.delete(self.y, i, axis=0), np.delete(self.weights, i))


def _rows(X, i):
    keep = np.arange(X.shape[0]) != i
    return X.tocsr()[keep].asformat(X.format) if sparse.issparse(X) else X[keep]


def with_row(X, i, row):
    """A copy with another row."""
    if hasattr(X, "iloc"):
        X = X.copy()
        for name, cell in zip(X.columns, row, strict=True):
            X.loc[X.index[i], name] = cell
        return X
    if sparse.issparse(X):
        dense = X.toarray()
        dense[i] = row
        return type(X)(dense)
    X = X.copy()
    X[i] = row
    return X


def numbers(rng):
    X = rng.normal(size=(N, P)) * [1, 30, 0.01] + [0, 1000, 0]
    return Records(X, X @ [1, 0.1, 50] + rng.normal(size=N), rng.uniform(0, 2, N))


def wide(rng):
    """As many columns as rows of 16 bits take, of an array or of rows that are stored sparsely."""
    X = rng.normal(size=(N, WIDE))
    y = X[:, 0] + rng.normal(size=N)
    return Records(sparse.csr_array(X) if rng.integers(2) else X, y, rng.uniform(0, 2, N))


def cells_of_wide(rng, records):
    kinds = [*EXTREME, *rng.normal(size=4), *records.X[:1].sum(axis=0)]
    return rng.choice(kinds, WIDE), cells_of_numbers(rng, records)[1]


def counts(rng):
    X = rng.normal(size=(N, P)) * [1, 30, 0.01] + [0, 1000, 0]
    y = 1.0 + rng.poisson(np.exp(0.3 * X[:, 0] + 20 * X[:, 2]))
    return Records(X, y, rng.uniform(0, 2, N))


def cells_of_counts(rng, records):
    row, _ = cells_of_numbers(rng, records)
    return row, rng.choice([1e-300, 1e-3, 1.0, 7.0, 1e9, 1e300])


def unit(rng, n=N):
    X = rng.uniform(-1, 1, (n, P))
    y = np.clip(X @ [0.5, -0.3, 0] + 0.1 * rng.normal(size=n), -1, 1)
    return Records(X, y, rng.uniform(0, 2, n))


def cells_of_numbers(rng, records):
    kinds = [*EXTREME, *rng.normal(size=4), *np.ravel(records.X[0])]
    return rng.choice(kinds, P), rng.choice([*EXTREME, *rng.normal(size=4)])


def many(rng):
    """As many as coins may divide."""
    return unit(rng, MANY)


def targets(rng):
    records = numbers(rng)
    return Records(records.X, np.c_[records.y, -records.y], records.weights)


def cells_of_targets(rng, records):
    return cells_of_numbers(rng, records)[0], rng.choice(EXTREME, 2)


def two(rng):
    records = unit(rng)
    return Records(records.X, (records.y > 0).astype(int), records.weights)


def three(rng):
    records = unit(rng)
    y = np.array(["a", "b", "c"], dtype=object)[np.digitize(records.y, [-0.1, 0.1])]
    return Records(records.X, y, records.weights)


def cells_of_two(rng, records):
    return cells_of_numbers(rng, records)[0], rng.choice([0, 1, 2, -1, 2**53 + 1, -(2**63)])


def cells_of_three(rng, records):
    label = [*"abc", "never seen", "", "A"][rng.integers(6)]
    return cells_of_numbers(rng, records)[0], label


def rare(rng):
    X = rng.uniform(-1, 1, (N, P)) * (rng.random((N, P)) < 0.3)
    return Records(sparse.csr_array(X), X @ [1, -1, 0.5], rng.uniform(0, 2, N))


def rare_columns(rng):
    records = rare(rng)
    return Records(records.X.tocsc(), records.y, records.weights)


def cells_of_rare(rng, records):
    return rng.choice([0.0, 0.0, *EXTREME], P), rng.choice(EXTREME)


def gaps(rng):
    records = numbers(rng)
    X = np.where(rng.random((N, P)) < 0.2, np.nan, records.X)
    return Records(X, records.y, records.weights)


def cells_of_gaps(rng, records):
    row, y = cells_of_numbers(rng, records)
    return np.where(rng.random(P) < 0.4, np.nan, row), y


def words(rng):
    cells = [rng.choice(of, N).astype(object) for of in (["red", "green"], ["red", "b", "c"])]
    cells.append(rng.choice(np.array(["x", "y", None], dtype=object), N))
    y = rng.uniform(-1, 1, N)
    return Records(np.column_stack(cells), y, rng.uniform(0, 2, N))


def cells_of_words(rng, records):
    return [WORDS[k] for k in rng.integers(len(WORDS), size=P)], rng.choice(EXTREME)


def tables(rng):
    frame = pd.DataFrame({
        "town": rng.choice(np.array(["Lille", "Lyon", None], dtype=object), N),
        "rooms": rng.choice([1.0, 2.0, 3.0, np.nan], N),
        "rent": np.where(rng.random(N) < 0.2, np.nan, rng.normal(700.0, 90.0, N)),
    })  # fmt: skip
    y = np.nan_to_num(frame["rent"].to_numpy()) / 100 + (frame["town"] == "Lille").to_numpy()
    return Records(frame, y, rng.uniform(0, 2, N))


def cells_of_tables(rng, records):
    row = WORDS[rng.integers(len(WORDS))], *rng.choice([np.nan, *EXTREME], 2)
    return row, rng.choice(EXTREME)


def tables_of_two(rng):
    records = tables(rng)
    return Records(records.X, (records.y > np.median(records.y)).astype(int), records.weights)


def cells_of_tables_of_two(rng, records):
    return cells_of_tables(rng, records)[0], rng.choice([0, 1, 2, -1])


CELLS = {
    numbers: cells_of_numbers, unit: cells_of_numbers, many: cells_of_numbers,
    counts: cells_of_counts, wide: cells_of_wide,
    targets: cells_of_targets, two: cells_of_two, three: cells_of_three,
    rare: cells_of_rare, rare_columns: cells_of_rare,
    gaps: cells_of_gaps, words: cells_of_words, tables: cells_of_tables,
    tables_of_two: cells_of_tables_of_two,
}  # fmt: skip


# ---- fits ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A fit for the tape.

    Attributes
    ----------
    make : callable
        From a tape to an estimator.
    records : callable
        From a generator to Records.
    weighted : bool
    """

    make: object
    records: object
    weighted: bool = False

    def pair(self, seed):
        """A data set, a neighbour, and the row that is missing in it."""
        rng = np.random.default_rng(seed)
        data = self.records(rng)
        if _params(self.make(None)).get("neighboring") == "add_remove":
            removed = int(rng.integers(N))
            row, y = CELLS[self.records](rng, data)
            ys = data.y.copy()
            ys[removed] = y
            data = Records(with_row(data.X, removed, row), ys, data.weights)
            return data, data.without(removed), removed
        row, y = CELLS[self.records](rng, data)
        weight = rng.choice([0.0, 1.0, 2.0])
        return data, data.replaced(rng, row, y, weight), None

    def fit(self, data, tape, ledger=False):
        """Fit, and show all that a caller may look at."""
        model, accountant = self.make(tape), None
        ledger |= _params(model).get("warm_start", False)  # which needs one
        if ledger and "accountant" in _params(model):
            accountant = PrivacyAccountant(1e6, 1e-2, testing=True, **_relation(model))
            model.set_params(accountant=accountant)
        weights = {"sample_weight": data.weights} if self.weighted else {}
        model.fit(data.X, data.y, **weights)
        public = self.records(np.random.default_rng(12345)).X
        if sparse.issparse(public) or hasattr(public, "iloc"):
            public = public[:5]
        with warnings.catch_warnings(action="ignore"):  # names of features, of arrays and frames
            used = model.predict if hasattr(model, "predict") else model.transform
            return model, used(public), accountant


def check_paid(recording, event):
    """Every question was paid for, and only choices within a scale that was not found are left."""
    left = unpaid(recording, event)
    assert not +left and all(kind[0] == "SelectionEvent" for kind in left), left


def planned(model, data):
    """The event that a model would release from public facts of records."""
    columns = data.X.iloc[:2] if hasattr(data.X, "iloc") else data.X.shape[1]
    n_outputs = data.y.shape[1] if data.y.ndim > 1 else 1
    return model.planned_event(len(data.y), columns, n_outputs, sparse=sparse.issparse(data.X))


def _params(model):
    return model.get_params(deep=False)


def _relation(model):
    params = _params(model)
    return {name: params[name] for name in ("neighboring", "n_public")}


class InParts:
    """An estimator that is fitted over three partitions."""

    def __init__(self, model):
        self.model = model

    def get_params(self, deep=False):
        return self.model.get_params(deep=False)

    def set_params(self, **params):
        self.model.set_params(**params)

    def fit(self, X, y):
        cuts = [0, 20, 20, len(y)]
        ends = enumerate(zip(cuts[:-1], cuts[1:], strict=True))
        parts = [(k, X[slice(*cut)], y[slice(*cut)]) for k, cut in ends]
        fit_partitions(self.model, lambda task: [task(*part) for part in parts])
        self.privacy_event_ = self.model.privacy_event_

    def predict(self, X):
        return self.model.predict(X)


class Twice:
    """An estimator that is fitted a second time, from where it is."""

    def __init__(self, model):
        self.model = model

    get_params, set_params = InParts.get_params, InParts.set_params

    def fit(self, X, y):
        self.model.fit(X, y).fit(X, y)

    predict = InParts.predict


class Searched:
    """A private search: its questions are those of a secret number of runs."""

    def __init__(self, estimator, grid, tape, relation=None, epsilon=3.0, **options):
        self.search = PrivateSearchCV(
            estimator, grid, epsilon=epsilon, delta=1e-4, random_state=tape, **options
        )
        self.relation = relation or {"neighboring": "replace_one", "n_public": None}

    def get_params(self, deep=False):
        return {"accountant": None, **self.relation}

    def set_params(self, accountant):
        self.search.set_params(accountant=accountant)

    def fit(self, X, y):
        self.search.fit(X, y)

    def predict(self, X):
        return [] if self.search.best_estimator_ is None else self.search.predict(X)

    def shown_besides_the_winner(self):
        """All that follows from no coin: of the runs a search releases only the winner."""
        found = self.search
        return found.privacy_event_, found.privacy_spent_, found.run_epsilon_, found.n_splits_


class Scored:
    """A private score of a public model."""

    def __init__(self, name, model, tape, **facts):
        self.scorer, self.model = make_private_scorer(name, 1.0, **facts), model
        self.tape = tape

    def get_params(self, deep=False):
        return {}

    def fit(self, X, y):
        self.privacy_event_ = self.scorer.planned_event(len(y))
        event = self.scorer.event_of_records(len(y))
        score = self.scorer.prepared(self.model, X, y, event)
        self.score = score(charge(None, event), key=self.tape)

    def predict(self, X):
        return self.score


@functools.cache
def public_model(records, classifier=False):
    data = records(np.random.default_rng(1))
    model = DPLinearClassifier if classifier else DPLinearRegressor
    with warnings.catch_warnings(action="ignore"):
        return model(epsilon=50.0, random_state=0).fit(data.X, data.y)


ADD_REMOVE = {"neighboring": "add_remove", "n_public": N, "delta": 1e-4}
STATED = {"feature_bounds": (-2, 2), "target_bounds": (-3, 3)}
SETTINGS = {
    "": {},
    ", stated": STATED,
    ", add_remove": ADD_REMOVE,
    ", scales": {"feature_scale": "private", "epsilon": 20.0, **STATED},
    ", large epsilon": {"epsilon": 60.0, "max_iter": 7},
    ", no intercept": {"fit_intercept": False, "feature_bounds": [(-1, 1), (900, 1100), (0, 0)]},
}
ALSO = {
    "frank-wolfe": {"constraint": L1Ball(2.0), "penalty": None, "fit_intercept": False},
}
CASES = {}


def case(name, records, make, **options):
    assert name not in CASES
    CASES[name] = Case(make, records, **options)


def estimator(cls, *args, **params):
    return lambda tape: cls(*args, random_state=tape, **params)


for _word in ("auto", "cd", "gcd", "skgd", "sgd", "svrg", "compgd", "newton", "frank-wolfe"):
    for _setting, _params_of in SETTINGS.items():
        if (_word, _setting) == ("newton", ", scales"):  # it needs no mean squares
            continue
        _all = {"solver": _word, **_params_of, **ALSO.get(_word, {})}
        case(f"{_word}{_setting}", numbers, estimator(DPLinearRegressor, **_all))
    _all = {k: v for k, v in SETTINGS[", stated"].items() if k != "target_bounds"}
    _all |= {"solver": _word, **ALSO.get(_word, {})}
    case(f"{_word}, two", two, estimator(DPLinearClassifier, classes=[0, 1], **_all))
    if _word not in ("compgd", "frank-wolfe"):
        case(f"{_word}, three", three, estimator(DPLinearClassifier, classes=[*"abc"], **_all))
    if _word != "frank-wolfe":
        case(f"{_word}, CSR", rare, estimator(DPLinearRegressor, solver=_word))
        case(f"{_word}, targets", targets, estimator(DPLinearRegressor, solver=_word))
    case(
        f"{_word}, weights", numbers,
        estimator(DPLinearRegressor, **{"solver": _word, **ALSO.get(_word, {})}), weighted=True,
    )  # fmt: skip

_L1 = {"penalty": "l1", "alpha": 0.01}
for _name, _records, _make in [
    ("ridge", numbers, estimator(DPRidgeSkGD)),
    ("ridge, blocks", numbers, estimator(DPRidgeSkGD, sampling="block", block_size=2)),
    ("ridge, nice", numbers, estimator(DPRidgeSkGD, sampling="nice", block_size=2)),
    ("ridge, importance", numbers, estimator(DPRidgeSkGD, sampling="importance")),
    ("ridge, wide", wide, estimator(DPRidgeSkGD, feature_scale=1.0, target_bounds=(-3, 3))),
    ("ridge, norm", numbers, estimator(DPRidgeSkGD, row_norm_bound=3.0)),
    ("lasso", numbers, estimator(DPLassoCD, alpha=0.01)),
    ("lasso, cd", numbers, estimator(DPLassoCD, sampling="uniform")),
    ("lasso, CSC", rare_columns, estimator(DPLassoCD, sampling="importance")),
    ("logistic", two, estimator(DPLogisticGCD, classes=[0, 1])),
    ("logistic, found classes", two, estimator(DPLogisticGCD, classes=[0, 1, 2])),
    ("logistic, rule", two, estimator(DPLogisticGCD, classes=[0, 1], rule="gs-q", l1_ratio=1.0)),
    ("logistic, weights of classes", two,
     estimator(DPLogisticGCD, classes=[0, 1], class_weight={0: 1.0, 1: 0.3})),
    ("logistic, add_remove", two, estimator(DPLogisticGCD, classes=[0, 1], **ADD_REMOVE)),
    ("logistic, words", three, estimator(DPLogisticGCD, classes=[*"abc"])),
    ("gcd, block", numbers, estimator(DPLinearRegressor, solver=GCD(block_size=2), **_L1)),
    ("gcd, lazy", two,
     estimator(DPLogisticGCD, classes=[0, 1], solver=GCD(block_size=2, selection="lazy"))),
    ("gcd, gs-s", numbers, estimator(DPLinearRegressor, solver=GCD("gs-s"), **_L1)),
    ("cd, periodic", numbers, estimator(DPLinearRegressor, solver=CD(averaging="periodic"))),
    ("skgd, tail", numbers, estimator(DPLinearRegressor, solver=SkGD(averaging="tail"))),
    ("skgd, momentum", numbers, estimator(DPLinearRegressor, solver=SkGD(momentum=0.5))),
    ("sgd, decay", numbers,
     estimator(DPLinearRegressor, solver=SGD(0.3, step_decay=0.5, momentum=0.3))),
    ("length of margins", two,
     estimator(DPLinearClassifier, classes=[0, 1], epsilon=20.0, feature_bounds=(-2, 2))),
    ("length of margins, words", three,
     estimator(DPLinearClassifier, classes=[*"abc"], epsilon=30.0, feature_bounds=(-2, 2))),
    ("far records", numbers, estimator(DPLinearRegressor, **STATED | {"epsilon": 60.0})),
    ("far records, add_remove, huber", numbers,
     estimator(DPLinearRegressor, Huber(0.7), **STATED | ADD_REMOVE | {"epsilon": 60.0})),
    ("length, greedy, add_remove", two,
     estimator(DPLinearClassifier, classes=[0, 1], solver="gcd", **ADD_REMOVE | {"epsilon": 20.0})),
    ("sgd, add_remove, two", two,
     estimator(DPLinearClassifier, classes=[0, 1], solver="sgd", **ADD_REMOVE)),
    ("svrg, inner", numbers, estimator(DPLinearRegressor, solver=SVRG(0.5, n_inner=2))),
    ("compgd, sampled", numbers,
     estimator(DPLinearRegressor, solver=CompGD(2, sampling_rate=0.5))),
    ("newton, l1", numbers, estimator(DPLinearRegressor, solver="newton", **_L1)),
    ("newton, huber", numbers, estimator(DPLinearRegressor, Huber(0.7), solver=Newton(0.3))),
    ("newton, path", numbers, estimator(DPLinearRegressor, solver="newton", coef_path=True)),
    ("huber", numbers, estimator(DPLinearRegressor, "huber", solver="cd", coef_path=True)),
    ("poisson", counts, estimator(DPLinearRegressor, "poisson", penalty="l1", epsilon=300.0)),
    ("poisson, bounds", counts,
     estimator(DPLinearRegressor, "poisson", target_bounds=(0, 9), solver="newton", epsilon=300.0)),
    ("gamma, add_remove", counts,
     estimator(DPLinearRegressor, "gamma", penalty="l2", solver="cd", **ADD_REMOVE)),
    ("tweedie, sgd", counts, estimator(DPLinearRegressor, "tweedie", solver=SGD(0.3))),
    ("quantile", numbers, estimator(DPLinearRegressor, Quantile(0.7), solver="skgd")),
    ("box", numbers, estimator(DPLinearRegressor, penalty=Box(-1, 2), solver="skgd")),
    ("monotonic", numbers, estimator(DPLinearRegressor, penalty=Monotonic([1, 0, -1]))),
    ("group lasso", numbers, estimator(DPLinearRegressor, penalty=GroupLasso([[0, 2]]))),
    ("nonnegative", numbers, estimator(DPLinearRegressor, penalty="nonnegative", solver="gcd")),
    ("elastic net", numbers,
     estimator(DPLinearRegressor, penalty="elasticnet", alpha=0.1, solver="cd")),
    ("ball", numbers,
     estimator(DPLinearRegressor, penalty=None, constraint=L2Ball(1.0), solver="compgd")),
    ("frank-wolfe, lazy", two,
     estimator(DPLinearClassifier, classes=[0, 1], penalty=None, constraint=L1Ball(1.0),
               fit_intercept=False, solver=FrankWolfe("lazy"))),
    ("inference", many, estimator(DPLinearRegressor, **INFERENCE)),
    ("inference, found", many, estimator(DPLinearRegressor, inference=True, epsilon=300.0)),
    ("inference, skgd", many,
     estimator(DPLinearRegressor, solver="skgd", target_bounds=(-1, 1), **INFERENCE)),
    ("inference, two", two,
     estimator(DPLogisticGCD, classes=[0, 1], **INFERENCE | {"epsilon": 1e3})),
    ("inference, add_remove", many,
     estimator(DPLinearRegressor, **INFERENCE | ADD_REMOVE | {"n_public": MANY})),
    ("raises at unknown labels", two,
     estimator(DPLinearClassifier, classes=[0, 1, 2, -1, 2**53 + 1, -(2**63)],
               unknown_label="raise")),
    ("a loud penalty", numbers, estimator(DPRidgeSkGD, 1e6)),
    ("a narrow clip", numbers, estimator(DPLassoCD, clip=1e-6)),
    ("a wide clip", two, estimator(DPLogisticGCD, classes=[0, 1], clip=1e6)),
    ("long steps", numbers,
     estimator(DPLinearRegressor, solver=SkGD(step_size=1e3, averaging="last"), alpha=0.1)),
    ("warm start", numbers, lambda tape: Twice(
        DPLinearRegressor(warm_start=True, random_state=tape, max_iter=2))),
    ("warm start, gcd", two, lambda tape: Twice(
        DPLogisticGCD(warm_start=True, classes=[0, 1], solver="gcd", random_state=tape))),
    # strengths of a penalty
    ("strengths, l1", unit, estimator(DPLassoCD, "auto", epsilon=60.0, **STATED)),
    ("strengths, found scales", unit, estimator(DPRidgeSkGD, [1.0, 1e3], epsilon=60.0)),
    ("strengths, kinds", unit,
     estimator(DPLinearRegressor, penalty=["l2", "l1", "elasticnet"], alpha="auto",
               l1_ratio=[0.2, 0.8], epsilon=60.0, **ADD_REMOVE | STATED)),
    ("strengths, two", two,
     estimator(DPLogisticGCD, [0.1, 10.0], l1_ratio=[0.0, 0.5], classes=[0, 1], epsilon=60.0,
               feature_bounds=(-1, 1))),
    ("strengths, three", three,
     estimator(DPLinearClassifier, penalty="l1", alpha="auto", classes=[*"abc"], epsilon=60.0,
               solver="newton")),
    ("strengths, one", unit, estimator(DPLassoCD, [1e-3, 0.1], epsilon=0.1, **STATED)),
    # transformers
    ("scaler", numbers, estimator(DPStandardScaler)),
    ("scaler, scale only", numbers, estimator(DPStandardScaler, with_centering=False)),
    ("scaler, tails", numbers, estimator(DPStandardScaler, with_tails=True)),
    ("scaler, sparse", rare, estimator(DPStandardScaler, with_centering=False)),
    ("scaler, add_remove", numbers, estimator(DPStandardScaler, **ADD_REMOVE)),
    ("scaler, within", numbers, estimator(DPStandardScaler, feature_bounds=(-1e4, 1e4))),
    ("scaler, within, all", numbers, estimator(
        DPStandardScaler, feature_bounds=(-1e4, 1e4), epsilon=50.0, **ADD_REMOVE)),
    ("robust", numbers, estimator(DPRobustScaler)),
    ("robust, bounds", numbers,
     estimator(DPRobustScaler, feature_bounds=(-1e4, 1e4), unit_variance=True)),
    ("robust, add_remove", numbers, estimator(DPRobustScaler, **ADD_REMOVE)),
    ("quantiles", numbers, estimator(DPQuantileTransformer)),
    ("quantiles, normal", numbers, estimator(
        DPQuantileTransformer, output_distribution="normal", feature_bounds=(-1e4, 1e4))),
    ("quantiles, add_remove", numbers, estimator(DPQuantileTransformer, **ADD_REMOVE)),
    ("pca", unit, estimator(DPPCA, feature_bounds=(-1, 1))),
    ("pca, found", numbers, estimator(DPPCA, epsilon=2.0)),
    ("pca, add_remove", unit, estimator(DPPCA, feature_bounds=(-1, 1), **ADD_REMOVE)),
    ("select", unit, estimator(DPSelectKBest, 2, feature_bounds=(-1, 1))),
    ("select, auto", unit, estimator(DPSelectKBest, feature_bounds=(-1, 1))),
    ("select, classes", three, estimator(DPSelectKBest, 1, classes=[*"abc"])),
    ("select, add_remove", two,
     estimator(DPSelectKBest, 1, classes=[0, 1], feature_bounds=(-1, 1), **ADD_REMOVE)),
    ("median", gaps, estimator(DPSimpleImputer, add_indicator=True)),
    ("mean", gaps, estimator(DPSimpleImputer, "mean")),
    ("mean, bounds", gaps, estimator(DPSimpleImputer, "mean", feature_bounds=(-1e4, 1e4))),
    ("median, add_remove", gaps, estimator(DPSimpleImputer, **ADD_REMOVE)),
    ("most frequent", words, estimator(DPSimpleImputer, "most_frequent", epsilon=2.0)),
    ("most frequent, numbers", gaps, estimator(DPSimpleImputer, "most_frequent", epsilon=2.0)),
    ("one hot", words, estimator(DPOneHotEncoder, epsilon=2.0)),
    ("one hot, sparse", words, estimator(DPOneHotEncoder, epsilon=2.0, sparse_output=True)),
    ("one hot, stated", words, estimator(
        DPOneHotEncoder, [["red", "green"], "auto", ["x", "y"]], epsilon=2.0)),
    ("one hot, add_remove", words, estimator(DPOneHotEncoder, epsilon=3.0, **ADD_REMOVE)),
    ("ordinal", words, estimator(DPOrdinalEncoder, epsilon=2.0, max_categories=3)),
    ("target", words, estimator(DPTargetEncoder, epsilon=2.0)),
    ("target, folds", words, estimator(DPTargetEncoder, epsilon=2.0, cv=3)),
    ("target, add_remove", words, estimator(DPTargetEncoder, epsilon=3.0, **ADD_REMOVE)),
    # pipelines
    ("pipeline", numbers, lambda tape: make_private_pipeline(
        DPStandardScaler(random_state=tape), DPRidgeSkGD(random_state=tape), epsilon=100.0)),
    ("pipeline, public steps", numbers, lambda tape: make_private_pipeline(
        BoundsScaler((-2e3, 2e3)), RowNormClipper(1.0), DPLassoCD(random_state=tape))),
    ("pipeline, gaps", gaps, lambda tape: make_private_pipeline(
        DPSimpleImputer("mean", random_state=tape), DPRobustScaler(random_state=tape),
        DPLinearRegressor(random_state=tape), epsilon=3.0)),
    ("pipeline, pca", numbers, lambda tape: make_private_pipeline(
        DPQuantileTransformer(random_state=tape), DPPCA(random_state=tape),
        DPLinearRegressor(solver="sgd", random_state=tape), epsilon=3.0)),
    ("pipeline, add_remove", numbers, lambda tape: make_private_pipeline(
        DPStandardScaler(random_state=tape), DPLinearRegressor(random_state=tape), **ADD_REMOVE)),
    ("pipeline, select", two, lambda tape: make_private_pipeline(
        DPSelectKBest(2, classes=[0, 1], random_state=tape),
        DPLogisticGCD(classes=[0, 1], random_state=tape), epsilon=3.0)),
    ("pipeline, words", words, lambda tape: make_private_pipeline(
        DPSimpleImputer("most_frequent", random_state=tape),
        DPOneHotEncoder(random_state=tape), DPLinearRegressor(random_state=tape), epsilon=5.0)),
    ("pipeline, target encoder", words, lambda tape: make_private_pipeline(
        DPTargetEncoder(random_state=tape), DPLinearRegressor(random_state=tape), epsilon=5.0)),
    ("columns", tables, lambda tape: columns_of(tape, epsilon=3.0)),
    ("table", tables, lambda tape: make_private_pipeline(
        columns_of(tape), DPLinearRegressor(random_state=tape), epsilon=5.0)),
    ("table, add_remove", tables, lambda tape: make_private_pipeline(
        columns_of(tape), DPLinearRegressor(random_state=tape), epsilon=5.0, **ADD_REMOVE)),
    ("table of two", tables_of_two, lambda tape: make_private_pipeline(
        columns_of(tape), DPLogisticGCD(classes=[0, 1], random_state=tape), epsilon=5.0)),
    # searches
    ("search", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"alpha": [1e-3, 0.1], "solver": ["newton", "cd"]}, tape,
        distribution="logarithmic")),
    ("search, all", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"alpha": [1e-3, 0.1], "solver": ["newton", "cd"]}, tape,
        scoring="r2")),
    ("search, too quiet", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"solver": ["cd", "newton"]}, tape)),
    ("search of strengths", unit, lambda tape: Searched(
        DPLassoCD(**STATED), {"alpha": [1e-3, 0.1, 10.0]}, tape)),
    ("search of strengths, pipeline", unit, lambda tape: Searched(
        make_private_pipeline(DPStandardScaler(), DPLinearRegressor(penalty="l2")),
        {"dplinearregressor__alpha": [1e-3, 0.1]}, tape)),
    ("search of columns", unit, lambda tape: Searched(
        make_private_pipeline(
            BoundsScaler((-1, 1)), PolynomialFeatures(include_bias=False),
            DPLinearRegressor(target_bounds=(-1, 1))),
        {"polynomialfeatures__degree": [1, 2],
         "polynomialfeatures__interaction_only": [True, False]},
        tape, epsilon=100.0)),
    ("search of columns and strengths", unit, lambda tape: Searched(
        make_private_pipeline(
            DPStandardScaler(),
            ColumnTransformer([("kept", "passthrough", [0])], sparse_threshold=0), DPLassoCD()),
        {"columntransformer__transformers": [
            [("kept", "passthrough", kept)] for kept in ([0], [1, 2])],
         "dplassocd__alpha": [1e-3, 0.1]},
        tape, epsilon=200.0)),
    ("search, strengths within runs", unit, lambda tape: Searched(
        DPLinearRegressor(feature_scale=0.5, **STATED),  # what runs find would show in caches
        {"alpha": [1e-3, 0.1], "penalty": ["l1", "l2"], "solver": ["newton", "cd"]}, tape,
        epsilon=1e3)),
    ("search, shared steps", unit, lambda tape: Searched(
        make_private_pipeline(
            DPStandardScaler(), DPLinearRegressor(target_bounds=(-1, 1), alpha=0.1)),
        {"dplinearregressor__penalty": ["nonnegative", "l1"]}, tape, scoring="r2")),
    ("search, scales first", unit, lambda tape: Searched(
        DPLinearRegressor(alpha=0.1), {"penalty": ["nonnegative", "l1"]}, tape, epsilon=30.0,
        distribution="all")),
    ("search, scales of classes first", two, lambda tape: Searched(
        DPLogisticGCD(classes=[0, 1], max_iter=1), {"solver": ["gcd", "skgd"]}, tape, epsilon=30.0,
        distribution="all")),
    ("search, refit", unit, lambda tape: Searched(
        DPLassoCD(**STATED), {"alpha": [1e-3, 0.1, 10.0]}, tape, refit=True,
        scoring="neg_mean_squared_error", distribution="geometric")),
    ("search, folds", two, lambda tape: Searched(
        DPLogisticGCD(classes=[0, 1], feature_bounds=(-1, 1)), {"solver": ["gcd", "newton"]},
        tape, refit=True, validation=KFold(2), n_iter=2)),
    ("search, batches", two, lambda tape: Searched(
        DPLinearClassifier(classes=[0, 1], solver="sgd", feature_bounds=(-1, 1)),
        {"max_iter": [1, 2]}, tape, n_iter=1)),
    ("search, no run", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"alpha": [1e-3, 0.1]}, tape, n_iter=1,
        distribution="poisson")),
    ("search, many candidates", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"alpha": loguniform(1e-4, 1.0)}, tape, n_iter=3,
        distribution="geometric")),
    ("search, subset", unit, lambda tape: Searched(
        DPLinearRegressor(**STATED), {"alpha": [1e-3, 0.1], "solver": ["skgd", "newton"]}, tape,
        distribution="subset")),
    ("search, add_remove", many, lambda tape: Searched(
        DPLinearRegressor(**STATED, neighboring="add_remove", n_public=MANY),
        {"alpha": [1e-3, 0.1]}, tape, {"neighboring": "add_remove", "n_public": MANY}, n_iter=3,
        scoring="neg_mean_squared_error")),
    ("search, pipeline", unit, lambda tape: Searched(
        make_private_pipeline(DPStandardScaler(), DPLinearRegressor(target_bounds=(-3, 3))),
        {"dplinearregressor__alpha": [1e-3, 0.1]}, tape, n_iter=3)),
    # partitions and scores
    *[(f"{word}, partitions", numbers,
       lambda tape, word=word: InParts(DPLinearRegressor(solver=word, random_state=tape)))
      for word in ("cd", "gcd", "skgd", "newton", "sgd", "svrg", "compgd")],
    ("partitions, inference", many, lambda tape: InParts(
        DPLinearRegressor(random_state=tape, **INFERENCE))),
    ("partitions, three", three, lambda tape: InParts(
        DPLinearClassifier(classes=[*"abc"], random_state=tape))),
    ("score, r2", unit, lambda tape: Scored(
        "r2", public_model(unit), tape, target_bounds=(-1, 1))),
    ("score, accuracy", two, lambda tape: Scored("accuracy", public_model(two, True), tape)),
    ("score, log loss", two, lambda tape: Scored("neg_log_loss", public_model(two, True), tape)),
    ("score, auc", two, lambda tape: Scored("roc_auc", public_model(two, True), tape)),
]:  # fmt: skip
    case(_name, _records, _make)


def columns_of(tape, **options):
    numeric = make_pipeline(DPSimpleImputer(random_state=tape), DPStandardScaler(random_state=tape))
    encoder = DPOneHotEncoder(max_categories=4, random_state=tape)
    return make_private_column_transformer(
        (numeric, ["rent"]), (encoder, ["town", "rooms"]), **options
    )
