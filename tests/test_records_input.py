"""Records as users hand them over: no error quotes a cell, and no broken index is followed."""

import math
import signal
import textwrap
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.utils._tiles import is_finite

N_SAMPLES, N_FEATURES = 40, 3
SECRET = "SECRET271828"


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    return X, (X[:, 0] > 0).astype(int)


MODELS = [DPLassoCD, DPLogisticGCD, DPRidgeSkGD, DPLinearRegressor, DPLinearClassifier]
every_estimator = pytest.mark.parametrize("estimator", MODELS)
X_READERS = {
    "fit": lambda X: DPLassoCD().fit(X, data()[1]),
    "predict": lambda X: DPRidgeSkGD().fit(*data()).predict(X),
    "predict_proba": lambda X: DPLogisticGCD().fit(*data()).predict_proba(X),
    "predict_log_proba": lambda X: DPLinearClassifier().fit(*data()).predict_log_proba(X),
    "score": lambda X: DPLogisticGCD().fit(*data()).score(X, data()[1]),
    "scaler.fit": lambda X: BoundsScaler().fit(X),
    "scaler.transform": lambda X: BoundsScaler().fit(data()[0]).transform(X),
    "scaler.inverse_transform": lambda X: BoundsScaler().fit(data()[0]).inverse_transform(X),
}
every_reader = pytest.mark.parametrize("read", X_READERS.values(), ids=X_READERS)


# ---- messages -----------------------------------------------------------------------------------


def with_cell(value):
    X = data()[0].astype(object)
    X[3, 1] = value
    return X


def sparse_with(value):
    S = sparse.csr_array(data()[0])
    S.data = S.data.astype(object)
    S.data[5] = value
    return S


CELLS = {
    "a word": lambda: with_cell(SECRET),
    "a word among floats": lambda: pd.DataFrame(with_cell(SECRET)),
    "a category": lambda: pd.DataFrame({k: pd.Categorical([SECRET] * N_SAMPLES) for k in "abc"}),
    "words": lambda: np.full((N_SAMPLES, N_FEATURES), SECRET),
    "words of a harmless message": lambda: with_cell(f"{SECRET} requires y to be passed"),
    "bytes": lambda: with_cell(SECRET.encode()),
    "a dict": lambda: with_cell({SECRET: 271828}),
    "an object": lambda: with_cell(type("Secret", (), {"__repr__": lambda self: SECRET})()),
    "a large integer": lambda: with_cell(271828 * 10**400),
    "a complex number": lambda: data()[0] + 271828j,
    "one dimension": lambda: np.full(N_SAMPLES, 271828.0),
    "a scalar": lambda: 271828.0,
    "an array without dimensions": lambda: np.array(271828.0),
    "sparse objects": lambda: sparse_with(SECRET),
    "a word alone": lambda: SECRET,
}


def refused_without_a_quote(call, *, or_answered=False):
    error = None
    try:
        call()
    except (TypeError, ValueError) as raised:
        error = raised
    if error is None:
        assert or_answered, "no error"
        return
    text = "".join(traceback.format_exception_only(error))
    assert SECRET not in text and "271828" not in text
    assert f"U{len(SECRET)}" not in text and f"S{len(SECRET)}" not in text  # the longest label
    assert error.__cause__ is None and error.__context__ is None


@every_reader
@table("cell", CELLS.values())
def test_no_message_about_a_cell_of_x_quotes_it(read, cell):
    refused_without_a_quote(lambda: read(cell()))


COLUMNS = {
    "a word": lambda: np.array([SECRET] + [1.0] * (N_SAMPLES - 1), dtype=object),
    "words": lambda: np.full(N_SAMPLES, SECRET),
    "bytes": lambda: np.full(N_SAMPLES, SECRET.encode()),
    "a dict": lambda: np.array([{SECRET: 1}] * N_SAMPLES),
    "a large integer": lambda: [271828 * 10**400] * N_SAMPLES,
    "complex numbers": lambda: np.full(N_SAMPLES, 271828j),
    "a word alone": lambda: SECRET,
}


@table("column", COLUMNS.values())
@table("estimator", [DPLassoCD, DPRidgeSkGD, DPLinearRegressor])
def test_no_message_about_a_target_or_a_weight_quotes_it(estimator, column):
    X, y = data()
    refused_without_a_quote(lambda: estimator().fit(X, column()))
    refused_without_a_quote(lambda: estimator().fit(X, y, sample_weight=column()))


@pytest.mark.parametrize("column", [c for name, c in COLUMNS.items() if "integer" not in name])
@pytest.mark.parametrize("estimator", [DPLassoCD, DPLogisticGCD])
def test_no_message_of_a_score_quotes_a_target(estimator, column):
    X, y = data()
    model = estimator().fit(X, y)
    # unknown labels are no error of scikit-learn's before 1.9, but wrong
    answered = estimator is DPLogisticGCD
    refused_without_a_quote(lambda: model.score(X, column()), or_answered=answered)
    refused_without_a_quote(lambda: model.score(X, y, sample_weight=column()))


@pytest.mark.parametrize("classes", [[0, 1], [b"no", b"yes"]])
@pytest.mark.parametrize("estimator", [DPLogisticGCD, DPLinearClassifier])
def test_labels_of_another_kind_than_classes_do_not_tell_the_longest(estimator, classes):
    X, _ = data()
    y = np.where(X[:, 0] > 0, SECRET, "b")
    refused_without_a_quote(lambda: estimator(classes=classes).fit(X, y))


class Odd(type):
    """Of classes that can't be compared by value."""

    __hash__ = type.__hash__

    def __eq__(cls, other):
        raise RuntimeError(SECRET)

    def __ne__(cls, other):
        return cls is not other


ODD = {"None": None, "list": [1], "word": SECRET, "huge": 10**400, "odd": Odd("Label", (), {})}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("classes", [[0, 1], ["a", "b"]])
def test_any_object_is_an_unknown_label_once_classes_are_stated(odd, classes):
    # an error after the charge would tell about the record
    X, y = data()
    labels = np.array([classes[k] for k in y], dtype=object)
    plain = DPLogisticGCD(classes=classes, epsilon=math.inf, tol=1e-3)
    other = labels.copy()
    other[7] = classes[0]
    expected = plain.fit(X, other).coef_.copy()
    labels[7] = odd
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(plain.fit(X, labels).coef_, expected)


@pytest.mark.parametrize(
    "y",
    [np.array([math.inf] + [0.0] * 39, dtype=object), np.array(["1e999"] + ["0"] * 39, object)]
    + [np.append(np.zeros(39, np.longdouble), np.longdouble("1e400"))],
    ids=["object", "text", "long double"],
)
def test_a_target_beyond_double_precision_is_refused_before_the_charge(y):
    if not np.isfinite(np.longdouble("1e400")) and y.dtype != object:
        pytest.skip("long doubles are doubles here")
    accountant = PrivacyAccountant(10.0, 1e-2)
    with pytest.raises(ValueError, match="infinity|too large"):
        DPLassoCD(accountant=accountant).fit(data()[0], y)
    assert accountant.entries() == []


# ---- broken sparse records ----------------------------------------------------------------------


def broken(form, **arrays):
    S = sparse.csr_array(data()[0]).asformat(form)
    for name, change in arrays.items():
        array = getattr(S, name).copy()
        setattr(S, name, change(array))
    return S


def at(k, value):
    def change(array):
        array[k] = value
        return array

    return change


BROKEN = {
    f"{form}, {what}": (form, arrays)
    for form in ("csr", "csc", "bsr")
    for what, arrays in {
        "an index far out of range": {"indices": at(5, 2**30)},
        "an index just out of range": {"indices": at(5, N_SAMPLES)},
        "a negative index": {"indices": at(5, -1)},
        "pointers that fall": {"indptr": at(1, 2**30)},
        "negative pointers": {"indptr": at(1, -(2**30))},
        "pointers beyond the end": {"indptr": at(-1, 2**30)},
        "pointers that start late": {"indptr": at(0, 1)},
        "too few pointers": {"indptr": lambda array: array[:-1]},
        "too few entries": {"data": lambda array: array[:-1]},
        "indices that are no integers": {"indices": lambda array: array + 0.5},
    }.items()
}
BROKEN |= {
    "coo, a row out of range": ("coo", {"row": at(5, 2**30)}),
    "coo, a negative column": ("coo", {"col": at(5, -1)}),
    "coo, too few entries": ("coo", {"data": lambda array: array[:-1]}),
    "dia, too few diagonals": ("dia", {"data": lambda array: array[:-1]}),
    "lil, a column out of range": ("lil", {"rows": at(3, [2**30, 1, 2])}),
    "lil, too few entries": ("lil", {"data": at(3, [1.0])}),
}


@every_reader
@table("case", BROKEN)
def test_a_broken_matrix_is_refused_everywhere_before_scipy_follows_it(read, case):
    form, arrays = BROKEN[case]
    with pytest.raises(ValueError, match="sparse X is out of range, or its .* arrays broken"):
        read(broken(form, **arrays))


@every_reader
@table("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_whole_matrices_of_every_format_are_read(read, form):
    read(sparse.csr_array(data()[0] * (np.abs(data()[0]) > 0.3)).asformat(form))
    read(getattr(sparse, f"{form}_matrix")(data()[0]))


def test_a_matrix_that_calls_itself_canonical_is_not_believed():
    S = sparse.csr_array((np.ones(3), [0, 0, 1], [0, 3]), shape=(1, 2))
    S.has_canonical_format = True
    Z = BoundsScaler().fit(S).transform(S).toarray()
    np.testing.assert_array_equal(Z, [[1.0, 1.0]])


# ---- predictions at the edge of double precision ------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_predictions_of_the_largest_numbers_are_finite_without_a_warning(container):
    big = 1.7e308
    rows = np.array([[big, -big, big], [big, big, big], [-big, 0, 0], [1.0, 2.0, -1.0]])
    model = DPRidgeSkGD().fit(*data())
    model.coef_, model.intercept_ = np.array([2.0, 2.0, -0.5]), 0.25
    classifier = DPLogisticGCD().fit(*data())
    classifier.coef_, classifier.intercept_ = model.coef_[np.newaxis], np.array([0.25])
    three = DPLinearClassifier("multinomial", max_iter=1).fit(data()[0], np.arange(40) % 3)
    three.coef_ = np.array([model.coef_, -model.coef_, 0 * model.coef_])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict(container(rows))
        proba = classifier.predict_proba(container(rows))
        log_proba = classifier.predict_log_proba(container(rows))
        of_three = three.predict_proba(container(rows))
        assert not np.isnan(three.predict_log_proba(container(rows))).any()
    largest = np.finfo(np.float64).max
    np.testing.assert_allclose(found[[0, 1, 2]], [-0.5 * big, largest, -largest])
    assert found[3] == pytest.approx(6.75)
    np.testing.assert_array_equal(proba[:3, 1], [0, 1, 0])
    assert not np.isnan(log_proba).any()
    np.testing.assert_array_equal(of_three[:3].argmax(axis=1), [1, 0, 1])
    np.testing.assert_allclose(of_three.sum(axis=1), 1)


# ---- large arrays -------------------------------------------------------------------------------


LARGE = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "float32": lambda X: X.astype(np.float32),
    "memmap": lambda X: X,
}


@pytest.mark.parametrize("layout", LARGE)
def test_a_large_array_is_refused_for_any_cell_that_is_not_finite(layout, tmp_path):
    """It is looked at in tiles; what is refused, and in which words, is scikit-learn's."""
    X = np.ones((1100, 1000))
    model, y = DPLassoCD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=1), np.ones(1100)
    for at in ((0, 0), (1099, 999), (500, 3)):
        for cell, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            other = X.copy()
            other[at] = cell
            other = LARGE[layout](other)
            if layout == "memmap":
                np.save(tmp_path / "X.npy", other)
                other = np.load(tmp_path / "X.npy", mmap_mode="r")
            with pytest.raises(ValueError, match=f"Input X contains {words}"):
                model.fit(other, y)
    enormous = LARGE[layout](X) * np.float32(3e38)  # whose sum is not finite
    assert model.fit(enormous, y).n_features_in_ == 1000


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_a_look_at_a_large_array_is_left_when_a_signal_comes():
    class LeftError(Exception):
        pass

    def handler(*_):
        raise LeftError

    X = np.zeros((20_000_000, 100), dtype=np.float32)  # pages of zeros are no memory
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(LeftError) as at:
            is_finite(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert any(entry.name == "is_finite" for entry in at.traceback)


# ---- words for what is missing, or no number -----------------------------------------------------

TABLE = pd.DataFrame(
    {
        "age": [30.0, np.nan, 51.0, 42.0] * 10,
        "city": pd.Series(["Basel", "Bern", "Basel", "Chur"] * 10, dtype=object),
        "since": pd.to_datetime(["2020-01-01", "2021-01-01"] * 20),
        "kind": pd.Categorical(["a", "b"] * 20),
    }
)


@every_estimator
def test_missing_values_are_refused_without_advice_that_voids_the_guarantee(estimator):
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    for where in ([[1.0, np.nan]] + [[1.0, 1.0]] * 3, pd.DataFrame(X).mask(X == 1)):
        with pytest.raises(ValueError, match=r"Input X contains NaN\. Private models") as refused:
            estimator().fit(where, y)
        text = str(refused.value)
        assert "strategy='constant'" in text and "outside of the guarantee" in text
        assert "HistGradientBoosting" not in text and "scikit-learn.org" not in text


@every_estimator
def test_a_mixed_table_is_refused_once_with_the_pipeline_that_takes_it(estimator):
    y = np.arange(40) % 2
    with PrivacyAccountant(epsilon=5.0, delta=1e-3) as accountant:
        with pytest.raises(ValueError, match="X holds 3 of 4 columns that are no num") as refused:
            estimator(accountant=accountant).fit(TABLE, y)
        assert accountant.entries() == []
    text = str(refused.value)
    assert all(f"{name!r} (" in text for name in ("city", "since", "kind"))
    assert "Basel" not in text  # dtypes and names, no cell
    steps = [make_pipeline, make_private_pipeline, make_private_column_transformer]
    steps += [DPOneHotEncoder, DPSimpleImputer, DPStandardScaler, estimator]
    scope = {step.__name__: step for step in steps}
    pipeline = eval(textwrap.dedent(text.split("\n\n")[1]), scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forty records are few
        pipeline.fit(TABLE, y)
    assert pipeline.predict(TABLE).shape == (40,)
    if hasattr(pipeline[-1], "classes"):
        pipeline[-1].set_params(classes=[0, 1])
    assert {leak.severity for leak in find_leaks(pipeline)} <= {"note"}
