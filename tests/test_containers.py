"""One record decides nothing of how all others are read, in any container.

Errors are promises about the domain: the dtype of a container, or a cell that no column may hold.
What is read must be the same for all other records, to the bit.
"""

import re
import warnings
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from containers import CHANGES, COLUMNS, EXTREMES, TABLES, UnfitError, changed, column_in, table_in
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    PrivacyAccountant,
)
from dpcd_sklearn import preprocessing as p
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.testing import LeakError, Recording, replay
from dpcd_sklearn.utils._cells import numbers_of, read_labels, stated_labels

STARTS = {
    "numbers": [1, 2, 1, 1, 2, 2] * 5,
    "words": ["a", "b", "a", "a", "b", "b"] * 5,
    "large numbers": [2**53 + 1, 2**53, 2**53 + 1] * 10,
}
LABELS = {"numbers": [1, 2], "words": ["a", "b"], "large numbers": [2**53, 2**53 + 1]}


def pairs(container, start):
    """The same column twice, but for its first cell; nothing where the container has none."""
    for change in CHANGES:
        try:
            yield (
                change,
                column_in(container, STARTS[start]),
                column_in(container, changed(STARTS[start], change)),
            )
        except UnfitError:
            pass


def holds(container, start):
    try:
        return column_in(container, STARTS[start]) is not None
    except UnfitError:
        return False


HELD = [(container, start) for container in COLUMNS for start in STARTS if holds(container, start)]


@table(("container", "start"), HELD)
def test_other_labels_are_read_alike(container, start):
    classes = stated_labels(LABELS[start])
    numbers = [LABELS[start].index(label) for label in STARTS[start]]
    lossy = container in ("float64", "float32", "Float64") and start == "large numbers"
    for change, y, other in pairs(container, start):
        found = numbers_of(read_labels(y, classes), classes)
        of_other = numbers_of(read_labels(other, classes), classes)
        np.testing.assert_array_equal(found[1:], of_other[1:], err_msg=change)
        assert found.dtype == of_other.dtype
        if not lossy:
            assert found.tolist() == numbers
            expected = LABELS[start].index(CHANGES[change]) if _is_label(change, start) else -1
            assert of_other[0] == expected or isinstance(CHANGES[change], bool)


def _is_label(change, start):
    value = CHANGES[change]
    return type(value) is type(LABELS[start][0]) and value in LABELS[start]


def table_of(column):
    if hasattr(column, "to_frame"):
        return column.to_frame()
    return column[:, None] if isinstance(column, np.ndarray) else [[cell] for cell in column]


def test_integers_are_never_rounded():
    ids = pd.DataFrame({"id": [2**53 + 1, 2**53, 2**53 + 1] * 10, "x": [0.5, None, 1.0] * 10})
    found = p.DPSimpleImputer("most_frequent", epsilon=np.inf).fit_transform(ids)
    assert found[:, 0].tolist() == ids["id"].tolist() and found[1, 1] == 0.5
    floats, classes = np.array([2.0**53, 1.0]), stated_labels([1, 2**53 + 1])
    assert numbers_of(floats, classes).tolist() == [-1, 0]


# ---- numbers -------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).round(3)


@table("dtype", [np.float64, np.float32])
@table(
    "step",
    [
        p.BoundsScaler((-4, 4)),
        p.DPStandardScaler(epsilon=50.0),
        p.DPRobustScaler(epsilon=50.0),
        p.DPQuantileTransformer(epsilon=50.0),
        p.DPSimpleImputer("constant", fill_value=1e300),
        p.DPPCA(2, feature_bounds=(-1e8, 1e8), epsilon=50.0),
        p.DPSelectKBest(2, target_bounds=(-4, 4), epsilon=50.0),
        p.RowNormClipper(1e300),
    ],
)
def test_what_comes_out_is_finite_for_all_that_is_finite(dtype, step):
    small = np.asarray(np.tile(X * 1e-6, (50, 1)), dtype=dtype)
    step.fit(small, small[:, 0])
    edge = np.finfo(dtype)
    cells = [edge.max, -edge.max, edge.tiny, 0.0, edge.max / 3, -1.0]
    records = np.array(np.meshgrid(cells, cells, cells), dtype=dtype).reshape(3, -1).T
    for method in ("transform", "inverse_transform"):
        if hasattr(step, method) and not isinstance(step, p.DPSelectKBest):
            found = getattr(step, method)(records)
            assert found.dtype == dtype and np.isfinite(found).all(), method
    if isinstance(step, p.DPSimpleImputer):
        records[0, 0] = np.nan
        assert np.isfinite(step.transform(records)).all()


# ---- whole fits under the tape, in every container -----------------------------------------------

Z = RNG.uniform(-1, 1, (30, 3)).round(3)
WIDE = RNG.uniform(-1, 1, (30, 8)).round(3)  # SciPy sorts short rows by another algorithm
KINDS_OF_CELLS = {
    "logistic": lambda y, tape, known: DPLogisticGCD(
        classes=known, feature_bounds=(-1, 1), solver="newton", max_iter=1, random_state=tape
    ).fit(Z, y),
    "select": lambda y, tape, known: p.DPSelectKBest(
        1, classes=known, feature_bounds=(-1, 1), random_state=tape
    ).fit(Z, y),
    "target of labels": lambda y, tape, known: p.DPTargetEncoder(
        [[0, 1]], classes=known, random_state=tape
    ).fit((Z[:, :1] > 0).astype(int), y),
}
KINDS_OF_TABLES_OF_CELLS = {
    "one-hot": lambda X, tape, known: p.DPOneHotEncoder(epsilon=3.0, random_state=tape).fit(X),
    "ordinal": lambda X, tape, known: p.DPOrdinalEncoder([known], random_state=tape).fit(X),
    "ordinal, found": lambda X, tape, known: p.DPOrdinalEncoder(epsilon=3.0, random_state=tape).fit(
        X
    ),
    "most frequent": lambda X, tape, known: p.DPSimpleImputer(
        "most_frequent", epsilon=3.0, random_state=tape
    ).fit(X),
    "target": lambda X, tape, known: p.DPTargetEncoder(
        epsilon=3.0, target_bounds=(-1, 1), random_state=tape
    ).fit(X, Z[:, 0]),
    "pipeline of cells": lambda X, tape, known: make_private_pipeline(
        p.DPOneHotEncoder(random_state=tape),
        DPLinearRegressor(target_bounds=(-1, 1), max_iter=1, random_state=tape),
        epsilon=3.0,
    ).fit(X, Z[:, 0]),
}
KINDS_OF_NUMBERS = {
    "regressor": lambda X, tape: DPLinearRegressor(random_state=tape).fit(X, Z[:, 0]),
    "stated": lambda X, tape: DPLassoCD(
        feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=2, random_state=tape
    ).fit(X, Z[:, 0]),
    "batches": lambda X, tape: DPLogisticGCD(
        classes=[0, 1], solver="sgd", max_iter=2, random_state=tape
    ).fit(X, (Z[:, 0] > 0).astype(int)),
    "scaler": lambda X, tape: p.DPStandardScaler(with_centering=False, random_state=tape).fit(X),
    "robust": lambda X, tape: p.DPRobustScaler(random_state=tape).fit(X),
    "quantiles": lambda X, tape: p.DPQuantileTransformer(random_state=tape).fit(X),
    "pca": lambda X, tape: p.DPPCA(1, feature_bounds=(-1, 1), random_state=tape).fit(X),
    "imputer": lambda X, tape: p.DPSimpleImputer(random_state=tape).fit(X),
    "pipeline": lambda X, tape: make_private_pipeline(
        p.DPStandardScaler(with_centering=False, random_state=tape),
        DPLinearRegressor(target_bounds=(-1, 1), max_iter=1, random_state=tape),
        epsilon=3.0,
    ).fit(X, Z[:, 0]),
}
# Three kinds that are read by the same code: each takes a sixth of the pairs, slow tests all.
FAST = [
    ("logistic", "select", "target of labels"),
    ("one-hot", "ordinal, found", "pipeline of cells"),
    ("regressor", "stated", "imputer"),
]
# A record may not hold these, by declaration: such a neighbour is refused before the charge.
DOMAIN = {
    "Input [Xy] contains NaN": "models take no missing values, and scorers none of labels",
    "contains infinity or a value too large": "numbers are finite in the dtype that is fitted",
    "categories are strings, numbers, booleans, dates": "no other object is a category",
    "that are no numbers": "a column of objects with a missing one is no column of numbers",
}


def pairs_of_cells(name):
    for container, start in HELD:
        if name in KINDS_OF_CELLS:
            for change, one, other in pairs(container, start):
                yield (container, start, change), one, other, LABELS[start]
        elif not container.startswith("pyarrow.Array"):  # which is no table
            for change, one, other in pairs(container, start):
                yield (container, start, change), table_of(one), table_of(other), LABELS[start]


def pairs_of_numbers():
    values = EXTREMES | {"missing": np.nan, "infinite": np.inf, "zero": -0.0}
    for container in TABLES:
        for change, value in values.items():
            for column in (0, 2):
                other = Z.copy()
                other[4, column] = value
                name = container, change, column
                yield name, table_in(container, Z), table_in(container, other)
    for container in TABLES:
        if container.endswith("with duplicates"):
            make = TABLES[container]
            for extra in ([(4, 1, 1.0)], [(4, 2, 1.0), (4, 0, 1.0)]):
                yield (container, extra), make(WIDE), make(WIDE, extra)


def refused(fit, data):
    """Whether records are refused by declaration, before a question was asked."""
    recording = Recording()
    try:
        fit(data, recording)
    except (TypeError, ValueError) as error:
        return not recording.entries and any(re.search(one, str(error)) for one in DOMAIN)
    return False


def check_pairs(fit, pairs):
    n_pairs, leaks = 0, []
    with warnings.catch_warnings(action="ignore"):
        for name, data, neighbour, *known in pairs:
            n_pairs += 1

            def once(data, tape, known=known):
                return fit(data, tape, *known)

            try:
                replay(once, data, neighbour)
            except LeakError as leak:
                if not refused(once, neighbour):
                    leaks.append(f"{name}: {leak}")
    assert not leaks, "\n".join(leaks)
    return n_pairs


def check_kind(name, first=0, step=1):
    """Replay a kind of fit on every so many of its pairs; returns how many."""
    if name in KINDS_OF_NUMBERS:
        return check_pairs(KINDS_OF_NUMBERS[name], islice(pairs_of_numbers(), first, None, step))
    fits = KINDS_OF_CELLS | KINDS_OF_TABLES_OF_CELLS
    return check_pairs(fits[name], islice(pairs_of_cells(name), first, None, step))


ALL_KINDS = [*KINDS_OF_CELLS, *KINDS_OF_TABLES_OF_CELLS, *KINDS_OF_NUMBERS]


@pytest.mark.parametrize("names", FAST)
def test_fits_are_replayed_in_every_container(names):
    n_pairs = [check_kind(name, first, 2 * len(names)) for first, name in enumerate(names)]
    assert sum(n_pairs) >= 125


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_KINDS)
def test_all_kinds_of_fits_are_replayed_in_every_container(name):
    assert check_kind(name) >= 250


# ---- what is refused, and by which name ----------------------------------------------------------


N = 400
T = pd.DataFrame({"code": np.arange(N) % 3 + 1, "size": np.linspace(-1, 1, N)})
Y = (T["code"] == 2).astype(int)
WORDS = T.assign(code=T["code"].astype("string"))
DAYS = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=N)})


def encoding(categories, ledger):
    columns = make_private_column_transformer((p.DPOneHotEncoder(categories), ["code"]))
    return make_private_pipeline(columns, DPLogisticGCD(classes=[0, 1]), accountant=ledger)


@pytest.fixture
def ledger():
    with PrivacyAccountant(100.0, 1e-4) as ledger:
        yield ledger


def twice_named():
    return pd.DataFrame(np.zeros((N, 2)), columns=["a", "a"])


def in_bytes():
    return pd.DataFrame({"c": np.array([b"u", b"v"] * (N // 2), dtype=object)})


NAMED = {
    "two columns of one name": ("names .'a'.: rename", lambda model: model.fit(twice_named(), Y)),
    "dates": ("'when' .datetime.*days", lambda model: model.fit(DAYS, Y)),
    "missing dates": ("'when' .datetime.*days", lambda model: model.fit(DAYS.mask(Y == 1), Y)),
    "dates beside numbers": ("1 of 2 columns", lambda model: model.fit(DAYS.assign(x=1.0), Y)),
    "an array of dates": ("X holds dates", lambda model: model.fit(DAYS.to_numpy(), Y)),
    "durations": ("no numbers: 'when'", lambda model: model.fit(DAYS - DAYS.iloc[0], Y)),
    "bytes": ("Decode y", lambda model: model.fit(T, np.where(Y, b"u", b"v"))),
}


@table("name", NAMED)
def test_a_fit_refuses_by_the_true_name(name, uncharged):
    match, fit = NAMED[name]
    with pytest.raises(ValueError, match=match):
        fit(DPLogisticGCD(classes=[0, 1], accountant=uncharged))


def test_steps_refuse_dates_bytes_and_repeated_names(uncharged):
    with pytest.raises(TypeError, match="decode them"):
        p.DPOneHotEncoder(accountant=uncharged).fit(in_bytes())
    with pytest.raises(ValueError, match="rename"):
        p.DPOneHotEncoder(accountant=uncharged).fit(twice_named())
    with pytest.raises(ValueError, match="numbers of days"):
        p.DPSimpleImputer(accountant=uncharged).fit(DAYS.mask(Y == 1))


def test_categories_of_another_kind_than_the_column_are_refused(uncharged):
    for categories, given, kinds in (
        ([["1", "2", "3"]], T, "numbers .* words"),
        ([[1, 2, 3]], WORDS, "words .* numbers"),
    ):
        with pytest.raises(ValueError, match=f"'code' of X holds {kinds}"):
            encoding(categories, uncharged).fit(given, Y)
    for categories in ([[1, 2, 3]], "auto"):
        model = encoding(categories, None).fit(T, Y)
        with pytest.raises(ValueError, match="'code' of X holds words .* held numbers in the fit"):
            model.predict(WORDS)
    imputer = p.DPSimpleImputer("most_frequent").fit(T[["code"]])
    with pytest.raises(ValueError, match="held numbers in the fit"):
        imputer.transform(WORDS[["code"]])


def test_a_warm_start_names_the_labels_that_changed(ledger):
    model = DPLogisticGCD(feature_bounds=(-4, 4), warm_start=True, accountant=ledger)
    model.fit(T, np.arange(N) % 3)
    with pytest.raises(ValueError, match=r"labels of the earlier fit, \[0, 1, 2\], and now"):
        model.fit(T, Y)
    assert len(ledger.entries()) == 1


def test_objects_that_are_whole_numbers_are_labels():
    model = DPLogisticGCD(epsilon=np.inf, tol=1e-2)
    assert model.fit(T, Y.astype(object)).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="y holds objects that are not all strings"):
        model.fit(T, [None, 0] * (N // 2))
    assert DPLinearClassifier(classes=[2**63 + 1, -1])._stated_classes().tolist() == [-1, 2**63 + 1]
