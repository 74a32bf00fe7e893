"""A fit gives a model and one charge, or says what it refuses and charges nothing: nothing between.

A table of what may be handed over as X and y, and of who takes it. A cell that is wrong is unlike
any other one (`SECRET`), so that whoever quotes it is found out.
"""

import functools
import math
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    preprocessing,
)
from dpcd_sklearn.exceptions import FewRecordsWarning, PrivacyLeakWarning, UnknownScaleWarning
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.metrics._metrics import METRICS
from dpcd_sklearn.model_selection import PrivateSearchCV, _runs
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")

N, P = 48, 3
SECRET = "SECRET271828"
NUMBER = 73526.0625  # a secret one
RNG = np.random.default_rng(0)
PLAIN = RNG.uniform(-1, 1, (N, P))
TARGET = PLAIN @ [1.0, -1.0, 0.5]
LABELS = np.arange(N) % 2

TOLD = {"delta": 1e-9}
FEW = TOLD | {"max_iter": 1}
BOUNDS = FEW | {"target_bounds": (-2, 2)}
MODELS = [
    DPLassoCD(**BOUNDS),
    DPRidgeSkGD(**BOUNDS),
    DPLinearRegressor(**BOUNDS, solver="newton", penalty="l2"),
    DPLogisticGCD(**FEW, classes=[0, 1]),
    DPLinearClassifier(**FEW, classes=[0, 1], solver="skgd"),
]


# ---- what may be handed over ---------------------------------------------------------------------


class Strange:
    """An object of which nothing can be asked."""

    def refuse(self, *args, **options):
        raise RuntimeError(SECRET)

    __hash__ = __eq__ = __float__ = __array__ = refuse

    def __repr__(self):
        return SECRET


def with_cell(cell, dtype=object):
    X = PLAIN.astype(dtype)
    X[7, 1] = cell
    return X


def frames():
    """Data frames of pandas and polars."""
    plain = pd.DataFrame(PLAIN, columns=list("abc"))
    yield "frame", plain
    yield "frame of integers", plain.round().astype(int)
    yield "frame of float32", plain.astype("float32")
    yield "frame of nullable", plain.astype("Float64")
    yield "frame of booleans", plain > 0
    yield "frame of nullable booleans", (plain > 0).astype("boolean")
    yield "frame of mixed dtypes", plain.assign(a=plain.a > 0, b=plain.b.round().astype("Int8"))
    yield "frame of objects", plain.astype(object)
    yield "frame of number words", plain.astype(str)
    yield "frame with an index", plain.set_axis(RNG.permutation(N) + 100)
    yield "frame with equal index", plain.set_axis([5] * N)
    yield "frame with numbers for names", plain.set_axis([0, 1, 2], axis=1)
    yield "frame with mixed names", plain.set_axis(["a", 1, "c"], axis=1)
    yield "frame with tuples for names", plain.set_axis([("a", 1), ("b", 1), ("c", 2)], axis=1)
    yield "frame with equal names", plain.set_axis(list("aac"), axis=1)
    yield "frame with NaN", plain.where(plain < plain.max())
    yield "frame with NA", plain.astype("Float64").where(plain < plain.max())
    yield "frame with None", pd.DataFrame(with_cell(None), columns=list("abc"))
    yield "frame with a word", pd.DataFrame(with_cell(SECRET), columns=list("abc"))
    yield "frame with infinity", plain.replace(plain.a.max(), math.inf)
    yield "frame with a category", plain.assign(c=pd.Categorical(np.resize(["x", SECRET], N)))
    yield "frame with a numeric category", plain.assign(c=pd.Categorical(LABELS))
    yield "frame with dates", plain.assign(c=pd.date_range("2020", periods=N))
    yield "frame of sparse columns", plain.astype(pd.SparseDtype("float", 0.0))
    yield "empty frame", plain.iloc[:0]
    yield "series", plain.a
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({name: plain[name].to_numpy() for name in "abc"})
    yield "polars", table
    yield "polars with null", table.with_columns(c=polars.Series([None, *PLAIN[1:, 2]]))
    yield "polars with a word", table.with_columns(c=polars.Series([SECRET] * N))
    yield "polars of integers", table.cast(polars.Int32)


def sparses():
    """Sparse matrices and arrays of every format."""
    cells = np.where(np.abs(PLAIN) > 0.3, PLAIN, 0.0)
    for name in ("csr", "csc", "coo", "dia", "bsr", "lil", "dok"):
        yield f"{name} array", getattr(sparse, f"{name}_array")(cells)
        yield f"{name} matrix", getattr(sparse, f"{name}_matrix")(cells)
    bad = cells.copy()
    bad[7, 1] = math.nan
    for name in ("csr", "csc", "coo", "bsr"):
        yield f"{name} with NaN", getattr(sparse, f"{name}_array")(bad)
    yield "csr of float32", sparse.csr_array(cells.astype("f4"))
    yield "csr of integers", sparse.csr_array(np.rint(cells).astype(int))
    yield "csr of booleans", sparse.csr_array(cells > 0)
    yield "csr of complex", sparse.csr_array(cells.astype(complex))
    wide = sparse.csr_array(cells)
    wide.indices, wide.indptr = wide.indices.astype("i8"), wide.indptr.astype("i8")
    yield "csr with int64 indices", wide
    unsigned = sparse.csr_array(cells)
    unsigned.indices = unsigned.indices.astype("u4")
    yield "csr with uint32 indices", unsigned
    yield "csr of nothing", sparse.csr_array((N, P))
    yield "empty csr", sparse.csr_array((0, P))
    yield "coo of one dimension", sparse.coo_array(cells[:, 0])
    broken = sparse.csr_array(cells)
    broken.indices = broken.indices + 100
    yield "broken csr", broken


def arrays():
    """Arrays, lists and what is neither."""
    for dtype in ("f2", "f4", "f8", ">f8", "g"):
        yield f"of {dtype}", PLAIN.astype(dtype)
    for dtype in ("i1", "i4", "i8", "u1", "u8", "?"):
        yield f"of {dtype}", np.abs(PLAIN * 3).astype(dtype)
    yield "in F order", np.asfortranarray(PLAIN)
    yield "a slice", np.repeat(PLAIN, 2, axis=0)[::2]
    yield "reversed", PLAIN[::-1, ::-1]
    yield "read-only", np.broadcast_to(PLAIN, PLAIN.shape)
    yield "of one row many times", np.broadcast_to(PLAIN[0], PLAIN.shape)
    yield "masked", np.ma.masked_array(PLAIN, PLAIN > 0.9)
    yield "matrix", np.asmatrix(PLAIN)
    yield "list", PLAIN.tolist()
    yield "tuple", tuple(map(tuple, PLAIN))
    yield "list of arrays", list(PLAIN)
    yield "of objects", PLAIN.astype(object)
    yield "of number words", PLAIN.astype(str)
    yield "of a word", with_cell(SECRET)
    yield "list with a word", with_cell(SECRET).tolist()
    yield "of None", with_cell(None)
    yield "of a list", with_cell([NUMBER])
    yield "of a dict", with_cell({SECRET: NUMBER})
    yield "of an integer beyond doubles", with_cell(10**400)
    yield "of a strange object", with_cell(Strange())
    yield "words of a harmless message", with_cell(f"{SECRET} requires y to be passed")
    yield "of NaN as an object", with_cell(math.nan)
    yield "of NA", with_cell(pd.NA)
    yield "of complex", PLAIN.astype(complex)
    yield "of complex objects", with_cell(1j)
    yield "of bytes", PLAIN.astype("S")
    yield "of dates", np.full((N, P), np.datetime64("2020-01-01"))
    yield "of spans", np.full((N, P), np.timedelta64(3, "s"))
    yield "of records", np.zeros(N, dtype=[("a", "f8"), ("b", "f8")])
    yield "of NaN", with_cell(math.nan, float)
    yield "of infinity", with_cell(math.inf, float)
    for huge in (1e160, 1e300, -1e308, 5e-324):
        yield f"of {huge:g}", with_cell(huge, float)
        yield f"all of {huge:g}", np.full((N, P), huge)
    yield "zeros", np.zeros((N, P))
    yield "of huge float32", with_cell(3e38, "f4")
    yield "1-D", PLAIN[:, 0]
    yield "3-D", PLAIN[:, :, np.newaxis]
    yield "0-D", np.float64(NUMBER)
    yield "without rows", PLAIN[:0]
    yield "without columns", PLAIN[:, :0]
    yield "one row", PLAIN[:1]
    yield "empty list", []
    yield "ragged", [[1.0, 2.0, 3.0]] * (N - 1) + [[NUMBER]]
    yield "None", None
    yield "a word", SECRET
    yield "a number", NUMBER
    yield "a dict", {"a": PLAIN[:, 0]}
    yield "a set", {1.0, 2.0}
    yield "a generator", (row for row in PLAIN)
    yield "an object", object()


def memory_maps(folder):
    kept = np.memmap(f"{folder}/X", dtype="f8", mode="w+", shape=(N, P))
    kept[:] = PLAIN
    yield "memory map", np.memmap(f"{folder}/X", dtype="f8", mode="r", shape=(N, P))


def targets(good):
    """Targets beside a sound X; `good` are numbers or labels."""
    yield "None", None
    yield "list", good.tolist()
    yield "series", pd.Series(good)
    yield "series with another index", pd.Series(good, index=np.arange(N) + 7)
    yield "nullable series", pd.Series(good).astype("Float64")
    yield "series with NA", pd.Series(good).astype("Float64").mask(np.arange(N) == 7)
    yield "categories", pd.Series(pd.Categorical(good))
    yield "frame of one column", pd.DataFrame({"y": good})
    yield "one column", good[:, None]
    yield "two columns", np.column_stack([good, good])
    yield "3-D", good[:, None, None]
    yield "one row", good[None, :]
    yield "0-D", np.array(1.0)
    yield "sparse", sparse.csr_array(good[:, None].astype(float))
    yield "too short", good[:-1]
    yield "too long", np.append(good, good[:1])
    yield "no records", good[:0]
    yield "booleans", good > 0
    yield "words", np.resize(["a", SECRET], N)
    yield "number words", good.astype(str)
    yield "bytes", good.astype(str).astype("S")
    yield "objects", good.astype(object)
    yield "one class", np.ones(N, dtype=int)
    yield "other classes", np.arange(N) + 5
    yield "float32", good.astype("f4")
    yield "float16", good.astype("f2")
    yield "long double", good.astype("g")
    yield "beyond doubles", np.append(good[1:].astype("g"), np.longdouble("1e4000"))
    yield "complex", good.astype(complex)
    yield "dates", np.full(N, np.datetime64("2020-01-01"))
    yield "masked", np.ma.masked_array(good, np.arange(N) == 3)
    yield "matrix", np.asmatrix(good)
    cells = (math.nan, math.inf, 1e160, 1e300, -1e308, 1e400)
    for cell in cells:
        y = good.astype(float)
        y[7] = cell
        yield f"of {cell:g}", y
        yield f"all of {cell:g}", np.full(N, cell)
        yield f"of {cell:g} as objects", y.astype(object)
    for cell in (None, SECRET, [NUMBER], {SECRET: 1}, pd.NA, 10**400, object(), Strange()):
        y = good.astype(object)
        y[7] = cell
        yield f"of an object {type(cell).__name__}", y
    yield "a word", SECRET
    yield "a number", NUMBER
    yield "a dict", {"y": good}
    yield "an object", object()


# ---- who takes it --------------------------------------------------------------------------------


def holders(model):
    """Who may be given X and y: the estimator, pipelines of it and searches over it."""
    name = type(model).__name__.lower()
    key = "C" if isinstance(model, DPLogisticGCD) else "alpha"
    search = {"epsilon": 5.0, "delta": 1e-9, "n_iter": 1.5}
    inner = clone(model).set_params(delta="auto")
    scaled = make_private_pipeline(DPStandardScaler(), inner, **TOLD)
    yield "alone", clone(model)
    yield "PrivatePipeline", scaled
    yield "Pipeline", make_pipeline(DPStandardScaler(**TOLD), clone(model))
    yield "PrivateSearchCV", PrivateSearchCV(clone(model), {key: [1.0]}, **search)
    yield "search of pipelines", PrivateSearchCV(clone(scaled), {f"{name}__{key}": [1.0]}, **search)


HARMLESS = (
    *(UnknownScaleWarning, FewRecordsWarning, PrivacyLeakWarning),
    *(DataConversionWarning, ConvergenceWarning),
)
FACTS = (  # of public numbers, names and dtypes
    "are few for ",
    "only categories of more than about",
    "X has feature names, but",
    "X does not have valid feature names, but",
    "seem to be dates or spans",
)


class Ledger:
    """An accountant, and what became of calls that it was given to."""

    def __init__(self, testing=False):
        self.accountant = PrivacyAccountant(epsilon=1e9, delta=0.4, testing=testing)
        self.kept, self.n_kept = self.accountant.entries, 0

    def give(self, holder):
        """A clone whose charges go here."""
        holder, steps = clone(holder), getattr(holder, "steps", ())
        if "accountant" in holder.get_params():
            return holder.set_params(accountant=self.accountant)
        return holder.set_params(**{f"{name}__accountant": self.accountant for name, _ in steps})

    def complaints(self, holder, X, y, **params):
        """The fault in a fit, and whether it gave a model."""
        holder = self.give(holder)
        n_charges = 1 if "accountant" in holder.get_params() else len(holder.steps)
        return self.of_call(lambda: holder.fit(X, y, **params), n_charges)

    def of_call(self, call, n_charges):
        """The fault in a call of so many charges, and whether it was answered."""
        before, error, answer = self.n_kept, None, None
        with warnings.catch_warnings(record=True, action="always") as told:
            try:
                answer = call()
            except Exception as raised:
                error = raised
        self.n_kept = len(self.kept())
        charges = self.n_kept - before
        return list(_wrong(n_charges, answer, error, charges, told)), error is None


def _wrong(n_charges, answer, error, charges, told):
    if error is None:
        if charges != n_charges:
            yield f"{charges} charges for an answer"
        if getattr(answer, "best_estimator_", answer) is None:
            yield "charged, and no model"
        if n_charges and isinstance(answer, float) and not math.isfinite(answer):
            yield f"charged, and a score of {answer}"
    else:
        if not isinstance(error, (TypeError, ValueError)):
            yield f"{type(error).__name__}: {error}"
        # of a plain Pipeline each step is charged by itself: the last one was not
        if charges > max(n_charges - 1, 0):
            yield f"{charges} charges, then {type(error).__name__}: {error}"
        said = "".join(traceback.format_exception_only(error))
        if error.__context__ is not None and not error.__suppress_context__:
            said += str(error.__context__)
        secrets = SECRET, str(NUMBER), f"U{len(SECRET)}", f"S{len(SECRET)}"  # or how long it is
        if any(secret in said for secret in secrets):
            yield f"quotes a cell: {said}"
    for warning in told:
        known = any(fact in str(warning.message) for fact in FACTS)
        if not (known or isinstance(warning.message, HARMLESS)) or SECRET in str(warning.message):
            yield f"{warning.category.__name__}: {warning.message}"


@pytest.fixture
def cheap_budgets(monkeypatch):
    """A candidate of a search that was calibrated once is not calibrated again."""
    real, known = _runs.give_budget, {}

    def give_budget(estimator, release, budget, sizes, *start):
        part, (n, columns, _, is_sparse) = _runs.budgeted_part(estimator), sizes
        width = columns if isinstance(columns, int) else columns.shape[1]
        key = str(part), release, budget.delta, n, width, is_sparse
        if key not in known:
            mu = real(estimator, release, budget, sizes, *start)
            known[key] = mu, part.epsilon
        part.set_params(epsilon=known[key][1], delta=budget.delta)
        return known[key][0]

    monkeypatch.setattr(_runs, "give_budget", give_budget)


def kinds_of_x(folder):
    return [*arrays(), *sparses(), *frames(), *memory_maps(folder)]


def complaints(models_of, folder, one_in=1):
    """Faults in any fit to any kind of X and y; `models_of` the number of a kind.

    Of all holders of a model every kind is given to one in so many.
    """
    found, ledgers = [], {}
    kinds = [(f"X {kind}", lambda good, X=X: (X, good)) for kind, X in kinds_of_x(folder)]
    of_targets = [kind for kind, _ in targets(TARGET)]
    for i, kind in enumerate(of_targets):
        kinds.append((f"y {kind}", lambda good, i=i: (PLAIN, list(targets(good))[i][1])))
    for number, (kind, records) in enumerate(kinds):
        for model in models_of(number):
            X, y = records(LABELS if is_classifier(model) else TARGET)
            fitted = {}
            for turn, (name, holder) in enumerate(holders(model)):
                if (number + turn) % one_in:
                    continue
                ledger = ledgers.setdefault((type(model), name), Ledger())
                who = f"{type(model).__name__}, {name}, {kind}"
                wrong, fitted[name] = ledger.complaints(holder, X, y)
                found += [f"{who}: {complaint}" for complaint in wrong]
            both = {fitted.get(name) for name in ("alone", "PrivateSearchCV")} - {None}
            if len(both) > 1 and kind not in ONE_TARGET:
                found.append(f"{type(model).__name__}, {kind}: {fitted}")
    return found


ONE_TARGET = ("y two columns",)  # is all that a search takes


def test_every_kind_of_x_and_y_is_fitted_for_one_charge_or_refused_for_none(
    tmp_path, cheap_budgets
):
    found = complaints(lambda number: [MODELS[number % len(MODELS)]], tmp_path, one_in=3)
    assert not found, f"{len(found)}:\n" + "\n".join(found)


@pytest.mark.slow
def test_every_kind_of_x_and_y_is_so_by_every_model(tmp_path, cheap_budgets):
    found = complaints(lambda number: MODELS, tmp_path)
    assert not found, f"{len(found)}:\n" + "\n".join(found)


STEPS = [getattr(preprocessing, name) for name in preprocessing.__all__]
STEPS = [step for step in STEPS if hasattr(step, "planned_event")]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_takes_or_refuses_every_kind_of_x_and_y(step, tmp_path):
    found, ledger = [], Ledger()
    kinds = [(kind, X, TARGET) for kind, X in kinds_of_x(tmp_path)]
    if "target_bounds" in step().get_params():
        kinds += [(f"y {kind}", PLAIN, y) for kind, y in targets(TARGET)]
    for kind, X, y in kinds:
        found += [(kind, wrong) for wrong in ledger.complaints(step(**TOLD), X, y)[0]]
    assert not found


@functools.cache
def fitted(name):
    model = {"ridge": DPRidgeSkGD(**BOUNDS), "logistic": DPLogisticGCD(**FEW)}.get(name)
    with warnings.catch_warnings(action="ignore"):
        return (BoundsScaler() if model is None else model).fit(PLAIN, LABELS)


READERS_OF_X = {
    "fit": lambda X: DPLassoCD(**BOUNDS).fit(X, TARGET),
    "predict": lambda X: fitted("ridge").predict(X),
    "predict_proba": lambda X: fitted("logistic").predict_proba(X),
    "predict_log_proba": lambda X: fitted("logistic").predict_log_proba(X),
    "score": lambda X: fitted("logistic").score(X, LABELS),
    "scaler.fit": lambda X: BoundsScaler().fit(X),
    "scaler.transform": lambda X: fitted("scaler").transform(X),
    "scaler.inverse_transform": lambda X: fitted("scaler").inverse_transform(X),
    "selection.transform": lambda X: SELECTION.transform(X),
    "selection.inverse_transform": lambda X: SELECTION.inverse_transform(X),
    "encoder.inverse_transform": lambda X: ENCODER.inverse_transform(X),
}
SELECTION = preprocessing.DPSelectKBest(P, classes=[0, 1]).fit(PLAIN, LABELS)
ENCODER = preprocessing.DPOneHotEncoder([["a", "b"]]).fit([["a"], ["b"]])  # to three columns
READERS_OF_Y = {
    "score of a ridge": lambda y: fitted("ridge").score(PLAIN, y),
    "weights of a ridge's score": lambda y: fitted("ridge").score(PLAIN, LABELS, y),
    "weights of a classifier's score": lambda y: fitted("logistic").score(PLAIN, LABELS, y),
    "weights of a fit": lambda y: DPLassoCD(**BOUNDS).fit(PLAIN, TARGET, y),
}


def test_readers_answer_or_refuse_every_kind_without_a_quote(tmp_path):
    found, ledger = [], Ledger()
    kinds = [(READERS_OF_X, kind, X) for kind, X in kinds_of_x(tmp_path)]
    kinds += [(READERS_OF_Y, kind, y) for kind, y in targets(TARGET)]
    for readers, kind, records in kinds:
        for name, reader in readers.items():
            wrong, answered = ledger.of_call(lambda: reader(records), 0)  # noqa: B023
            found += [f"{name}, {kind}: {complaint}" for complaint in wrong]
            if not answered and kind.endswith((" array", " matrix")):
                found.append(f"{name} refuses {kind}")
    assert not found, "\n".join(found)


def scored_models(regression):
    own = DPRidgeSkGD(**BOUNDS) if regression else DPLogisticGCD(**FEW, classes=[0, 1])
    yield own
    yield LinearRegression() if regression else LogisticRegression()
    for edge in (9, 0.5):
        yield make_pipeline(BoundsScaler((-edge, edge)), clone(own))


@pytest.mark.parametrize("name", METRICS)
def test_every_kind_is_scored_for_one_charge_or_refused_for_none(name, tmp_path):
    """Each kind by one metric of a task: all of them read records alike."""
    found, ledger, n_scored = [], Ledger(), 0
    regression = METRICS[name].task == "regression"
    alike = [other for other, metric in METRICS.items() if metric.task == METRICS[name].task]
    bounds = {"target_bounds": (-1, 2)} if regression else {}
    scorer = make_private_scorer(name, 1.0, ledger.accountant, delta=1e-6, **bounds)
    good = TARGET if regression else LABELS
    kinds = [(kind, X, good) for kind, X in kinds_of_x(tmp_path)]
    kinds += [(f"y {kind}", PLAIN, y) for kind, y in targets(good)]
    kinds = kinds[alike.index(name) :: len(alike)]
    models = [model.fit(PLAIN, good) for model in scored_models(regression)]
    for number, (kind, X, y) in enumerate(kinds, start=len(name)):
        model = models[number % len(models)]
        wrong, scored = ledger.of_call(lambda: scorer(model, X, y), 1)  # noqa: B023
        n_scored += scored
        found += [f"{model}, {kind}: {complaint}" for complaint in wrong]
    assert not found, "\n".join(found)
    assert n_scored > len(kinds) / 3


def test_this_table_would_show_what_is_wrong():
    class Late(DPLassoCD):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y)
            warnings.warn(SECRET, stacklevel=2)
            raise KeyError(NUMBER)

    wrong, fitted = Ledger().complaints(Late(**BOUNDS), PLAIN, TARGET)
    words = "KeyError", "1 charges, then", "quotes a cell", SECRET
    assert not fitted and all(any(word in one for one in wrong) for word in words)


# ---- broken sparse records ----------------------------------------------------------------------


def broken(form, **arrays):
    S = sparse.csr_array(PLAIN).asformat(form)
    for name, change in arrays.items():
        setattr(S, name, change(getattr(S, name).copy()))
    return S


def at(k, value):
    def change(array):
        array[k] = value
        return array

    return change


def shorter(array):
    return array[:-1]


COMPRESSED = {
    "an index far out of range": {"indices": at(5, 2**30)},
    "an index just out of range": {"indices": at(5, N)},
    "a negative index": {"indices": at(5, -1)},
    "pointers that fall": {"indptr": at(1, 2**30)},
    "negative pointers": {"indptr": at(1, -(2**30))},
    "pointers beyond the end": {"indptr": at(-1, 2**30)},
    "pointers that start late": {"indptr": at(0, 1)},
    "pointers that end at nothing": {"indptr": at(-1, 0)},
    "too few pointers": {"indptr": shorter},
    "too few entries": {"data": shorter},
    "indices that are no integers": {"indices": lambda array: array + 0.5},
}
BROKEN = [
    *((form, *what) for form in ("csr", "csc", "bsr") for what in COMPRESSED.items()),
    ("coo", "a row out of range", {"row": at(5, 2**30)}),
    ("coo", "a negative column", {"col": at(5, -1)}),
    ("coo", "too few entries", {"data": shorter}),
    ("dia", "too few diagonals", {"data": shorter}),
    ("lil", "a column out of range", {"rows": at(3, [2**30, 1, 2])}),
    ("lil", "too few entries", {"data": at(3, [1.0])}),
]


@table("reader", READERS_OF_X)
@table(("form", "what", "arrays"), BROKEN)
def test_a_broken_matrix_is_refused_everywhere_before_scipy_follows_it(reader, form, what, arrays):
    with pytest.raises(ValueError, match="sparse X is out of range, or its .* arrays broken"):
        READERS_OF_X[reader](broken(form, **arrays))


# ---- parameters of estimators and of fits --------------------------------------------------------


def parameters(model):
    """Parameters of the model, and of its fit, that are refused once X and y are known."""
    labels, ones = is_classifier(model), np.ones(N)
    yield "names of columns", {"feature_bounds": dict.fromkeys("abc", (-1, 1))}, {}
    yield "bounds of other columns", {"feature_bounds": [(-1, 1)] * (P + 1)}, {}
    yield "scales of other columns", {"feature_scale": np.ones(P + 2)}, {}
    yield "no delta", {"delta": "none"}, {}
    if labels:
        yield "balanced", {"class_weight": "balanced"}, {}
        yield "weights of no class", {"class_weight": {5: 1.0}}, {}
        yield "zero weights", {"class_weight": {0: 0.0, 1: 0.0}}, {}
        if "unknown_label" in model.get_params():
            yield "unknown labels", {"classes": [1, 2], "unknown_label": "raise"}, {}
    else:
        yield "bounds of targets", {"target_bounds": [(-1, 1)] * 2}, {}
    for name, weights in (
        ("short", ones[:-1]),
        ("negative", -ones),
        ("zero", 0 * ones),
        ("NaN", ones * math.nan),
        ("infinite", ones * math.inf),
        ("a word", [*ones[1:], SECRET]),
        ("2-D", ones[:, None]),
        ("a dict", {"a": 1}),
    ):
        yield f"weights {name}", {}, {"sample_weight": weights}
    yield "an unknown parameter", {}, {"weight": ones}
    yield "two parameters", {}, {"sample_weight": ones, "groups": ones}


def test_what_parameters_refuse_is_refused_before_any_step_is_charged():
    found = []
    for model in MODELS:
        y = LABELS if is_classifier(model) else TARGET
        name = type(model).__name__.lower()
        pipeline, ledger = dict(holders(model))["PrivatePipeline"], Ledger()
        for kind, params, fit_params in parameters(model):
            of_last = {f"{name}__{key}": value for key, value in params.items()}
            of_fit = {f"{name}__{key}": value for key, value in fit_params.items()}
            holder = clone(pipeline).set_params(**of_last)
            wrong, fitted = ledger.complaints(holder, PLAIN, y, **of_fit)
            wrong += ["fitted"] * fitted
            found += [f"{type(model).__name__}, {kind}: {one}" for one in wrong]
    assert not found, "\n".join(found)


def test_parameters_for_no_step_and_for_scalers_are_refused_before_the_charge():
    found = []
    model = clone(MODELS[0]).set_params(delta="auto")
    pipeline = make_private_pipeline(BoundsScaler((-1, 1)), DPStandardScaler(), model, **TOLD)
    for told in ("sample_weight", "nosuch__sample_weight", "dpstandardscaler__sample_weight"):
        wrong, fitted = Ledger().complaints(pipeline, PLAIN, TARGET, **{told: np.ones(N)})
        found += [f"{told}: {one}" for one in wrong + ["fitted"] * fitted]
    assert not found, "\n".join(found)


def test_routed_weights_reach_the_model_and_bad_ones_are_refused_before_the_charge():
    model = clone(MODELS[0]).set_params(delta="auto")
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        pipeline = make_private_pipeline(DPStandardScaler(), model, **TOLD)
        ledger = Ledger()
        for weights, is_good in ((np.ones(N), True), (-np.ones(N), False), (np.ones(3), False)):
            wrong, fitted = ledger.complaints(pipeline, PLAIN, TARGET, sample_weight=weights)
            assert wrong == [] and fitted is is_good
        wrong, fitted = ledger.complaints(pipeline, PLAIN, TARGET, groups=LABELS)
        assert wrong == [] and not fitted


def test_a_second_warm_start_is_refused_before_the_scaler_is_charged():
    model = clone(MODELS[0]).set_params(delta="auto", warm_start=True)
    ledger = Ledger()
    pipeline = ledger.give(make_private_pipeline(DPStandardScaler(), model, **TOLD))
    pipeline.fit(PLAIN, TARGET)
    with pytest.raises(ValueError, match="warm_start=True needs the earlier fit"):
        pipeline.fit(PLAIN, TARGET)
    assert len(ledger.kept()) == 1
    search = PrivateSearchCV(clone(model).set_params(delta=1e-9), {"alpha": [1.0]}, delta=1e-9)
    wrong, fitted = Ledger().complaints(search, PLAIN, TARGET)
    assert wrong == [] and not fitted


def test_public_steps_that_refuse_only_what_comes_later_are_tried_before_the_charge():
    def refuse(X):
        raise ZeroDivisionError("a step of the user's own")

    model = clone(MODELS[0]).set_params(delta="auto")
    steps = DPStandardScaler(), FunctionTransformer(refuse), model
    ledger = Ledger()
    pipeline = make_private_pipeline(*steps, public_steps=["functiontransformer"], **TOLD)
    with pytest.raises(ZeroDivisionError):
        ledger.give(pipeline).fit(PLAIN, TARGET)
    assert ledger.kept() == []


def test_no_warning_of_a_public_step_tells_of_records():
    def cast(X):
        return np.where(X > 0.5, 1e300, X).astype("f4").astype("i4").astype("f8")

    model = clone(MODELS[0]).set_params(delta="auto")
    step = FunctionTransformer(cast)
    for steps in ((step, model), (step, DPStandardScaler(), model)):
        pipeline = make_private_pipeline(*steps, public_steps=["functiontransformer"], **TOLD)
        wrong, fitted = Ledger().complaints(pipeline, PLAIN, TARGET)
        assert wrong == [] and fitted
        name = f"{type(model).__name__.lower()}__alpha"
        search = PrivateSearchCV(pipeline, {name: [1.0]}, epsilon=5.0, delta=1e-9, n_iter=1.5)
        wrong, fitted = Ledger().complaints(search, PLAIN, TARGET)
        assert wrong == [] and fitted


# ---- records that linear algebra gives up on -----------------------------------------------------


def extremes():
    """Records, targets and weights from tiny to the largest doubles, and collinear ones."""
    even = np.ones(N)
    for size in (1e-160, 1e154, 1e160, 1e307):
        one = TARGET.copy()
        one[3] = size
        yield f"targets of {size:g}", PLAIN, TARGET * size, even
        yield f"a target of {size:g}", PLAIN, one, even
        yield f"features of {size:g}", PLAIN * size, TARGET, even
        yield f"a weight of {size:g}", PLAIN, TARGET, np.where(np.arange(N) == 3, size, 1.0)
        yield f"weights of {size:g}", PLAIN, TARGET, size * even
    yield "zeros", np.zeros((N, P)), np.zeros(N), even
    yield "ones", np.ones((N, P)), np.ones(N), even
    yield "equal columns", np.repeat(PLAIN[:, :1], P, axis=1), TARGET, even
    yield "nearly equal columns", PLAIN[:, :1] * [1, 1 + 1e-12, 1 - 1e-12], TARGET, even


def second_order(epsilon):
    """Fits that invert what was released."""
    told = {"epsilon": epsilon, "delta": 1e-9, "tol": 1e-2, "max_iter": 3}
    newton = told | {"solver": "newton"}
    yield DPRidgeSkGD(**told, inference=True)
    yield DPLinearRegressor(**newton, inference=True, penalty=None)
    yield DPLinearRegressor(**newton, inference=True, target_bounds=(-1e300, 1e300))
    yield DPLinearRegressor(**newton, fit_intercept=False)
    yield DPLinearClassifier(**newton, classes=[0, 1], inference=True)


@pytest.mark.parametrize("epsilon", [math.inf, pytest.param(1e6, marks=pytest.mark.slow)])
def test_no_record_makes_linear_algebra_fail_once_it_is_paid_for(epsilon):
    found = []
    for model in second_order(epsilon):
        for kind, X, y, weights in extremes():
            y = (y > np.median(y)).astype(int) if is_classifier(model) else y
            # each has a budget of its own: a second charge so large counts as infinite
            wrong, fitted = Ledger(testing=True).complaints(model, X, y, sample_weight=weights)
            wrong = [one for one in wrong if "numbers of a size about" not in one]  # a found scale
            found += [f"{model}, {kind}: {one}" for one in wrong]
    assert not found, "\n".join(found)
