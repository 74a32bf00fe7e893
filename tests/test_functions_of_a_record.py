"""Steps before a private model map each record by itself, to the last bit.

A sum of sensitivity one moves by as many records as change their bits. So every step that is said
to learn nothing, in tables of its settings, maps parts of a table, other orders, one record less
and another record in place of one as it maps the whole, and keeps the same of as many records.
"""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import kernel_approximation, preprocessing
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.leaks import full_name
from dpcd_sklearn.leaks._classes import BY_BATCH, LEARNS_NOTHING, class_of
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPSimpleImputer,
    RowNormClipper,
)

N = 503
PARTS = (1, 8, 401)
WIDTHS = (3, 40)
LAYOUTS = ("C", "F", "csr", "csc")
EXTREMES = [0.0, 1e300, -1e300, 1e-310, 1e30, -1e18, 123456789.0, -0.0]
KNOTS = np.linspace(-1.0, 2.0, 4)[:, np.newaxis]
CATEGORIES = [["a", "b", "c"]] * 2
VOCABULARY = ["ab", "bc", "cd", "xx"]


# ---- tables, each with a record that is unlike the others ----------------------------------------


def numbers(width, dtype, layout, positive=False):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(N, width)) * np.exp(rng.normal(size=width))
    strange = np.clip(np.resize(EXTREMES, width), -np.finfo(dtype).max, np.finfo(dtype).max)
    if layout in ("csr", "csc"):
        X *= rng.random(X.shape) < 0.4
    if positive:
        X, strange = np.abs(X), np.abs(strange)
    X = X.astype(dtype)
    other = X.copy()
    other[N // 2] = strange.astype(dtype)
    return tuple(in_layout(table, layout) for table in (X, other))


def in_layout(X, layout):
    if layout in ("csr", "csc"):
        return sparse.csr_array(X).asformat(layout)
    return np.asarray(X, order=layout)


def all_numbers(positive=False, widths=WIDTHS):
    for width in widths:
        for dtype in (np.float64, np.float32):
            for layout in LAYOUTS:
                yield layout, numbers(width, dtype, layout, positive)


def positive_numbers():
    return all_numbers(positive=True)


def few_numbers():
    """Columns that are mapped one by one, at some cost."""
    return all_numbers(widths=(3,))


def numbers_with_holes():
    for layout, tables in all_numbers():
        if layout in ("C", "F"):
            for table in tables:
                table[::3, 1] = np.nan
        yield layout, tables


def of_rows(make):
    rng = np.random.default_rng(0)
    rows = [make(rng) for _ in range(N)]
    yield "rows", (rows, [*rows[: N // 2], make(rng), *rows[N // 2 + 1 :]])


def texts():
    return of_rows(lambda rng: " ".join(rng.choice([*VOCABULARY, "zz"], rng.integers(0, 40))))


def tokens():
    return of_rows(lambda rng: list(rng.choice([*VOCABULARY, "zz"], rng.integers(0, 40))))


def levels():
    return of_rows(lambda rng: list(rng.choice(["a", "b", "c", "z"], 2)))


# ---- settings of every step ----------------------------------------------------------------------


def each(kind, *settings, **fixed):
    return [kind(**fixed, **setting) for setting in settings or ({},)]


SEEDED = {"random_state": 0}
SETTINGS = {
    "dpcd_sklearn.preprocessing.BoundsScaler": (
        all_numbers,
        [
            *each(BoundsScaler, {"bounds": (-1.5, 1.5)}, {"bounds": (-0.3, 2.0)}),
            BoundsScaler((-1, 2), with_centering=False),
        ],
    ),
    "dpcd_sklearn.preprocessing.DPOneHotEncoder": (
        levels, each(DPOneHotEncoder, {}, {"sparse_output": True}, categories=CATEGORIES)
    ),
    "dpcd_sklearn.preprocessing.DPOrdinalEncoder": (
        levels, each(DPOrdinalEncoder, categories=CATEGORIES)
    ),
    "dpcd_sklearn.preprocessing.DPSimpleImputer": (
        numbers_with_holes,
        each(
            DPSimpleImputer, {}, {"fill_value": 2.5}, {"feature_bounds": (-1.0, 1.0)},
            strategy="constant",
        ),
    ),
    "dpcd_sklearn.preprocessing.RowNormClipper": (
        all_numbers, each(RowNormClipper, {"norm": 1.0}, {"norm": 1e9})
    ),
    "sklearn.preprocessing.Binarizer": (all_numbers, [preprocessing.Binarizer(threshold=0.3)]),
    "sklearn.preprocessing.FunctionTransformer": (
        all_numbers,
        [
            preprocessing.FunctionTransformer(function)
            for function in (
                *(None, np.log1p, np.exp, np.sin, np.cos, np.tanh, np.sqrt, np.cbrt, np.log),
                *(np.arctan, np.expm1, np.exp2, np.square, np.abs),
            )
        ],
    ),
    "sklearn.preprocessing.Normalizer": (
        all_numbers, [preprocessing.Normalizer(norm) for norm in ("l1", "l2", "max")]
    ),
    "sklearn.preprocessing.PolynomialFeatures": (
        all_numbers,
        [
            *each(preprocessing.PolynomialFeatures, {}, {"order": "F", "include_bias": False}),
            preprocessing.PolynomialFeatures((2, 2), interaction_only=True),
        ],
    ),
    "sklearn.kernel_approximation.AdditiveChi2Sampler": (
        positive_numbers,
        each(kernel_approximation.AdditiveChi2Sampler, {}, {"sample_steps": 3}, sample_interval=1),
    ),
    "sklearn.kernel_approximation.PolynomialCountSketch": (
        all_numbers,
        each(
            kernel_approximation.PolynomialCountSketch,
            {"n_components": 10},
            {"n_components": 37, "degree": 3, "coef0": 1},
            **SEEDED,
        ),
    ),
    "sklearn.random_projection.SparseRandomProjection": (
        all_numbers,
        each(
            SparseRandomProjection,
            {"n_components": 2},
            {"n_components": 30, "dense_output": True},
            {"n_components": 30, "density": 0.9},
            **SEEDED,
        ),
    ),
    "sklearn.feature_extraction.FeatureHasher": (
        tokens,
        each(FeatureHasher, {}, {"alternate_sign": False}, n_features=32, input_type="string"),
    ),
    "sklearn.feature_extraction.text.HashingVectorizer": (
        texts, each(HashingVectorizer, {}, {"norm": "l1"}, {"norm": None}, n_features=32)
    ),
    "sklearn.feature_extraction.text.CountVectorizer": (
        texts, each(CountVectorizer, {}, {"binary": True}, vocabulary=VOCABULARY)
    ),
    "sklearn.feature_extraction.text.TfidfTransformer": (
        positive_numbers,
        each(TfidfTransformer, {}, {"norm": "l1"}, {"sublinear_tf": True}, use_idf=False),
    ),
    "sklearn.feature_extraction.text.TfidfVectorizer": (
        texts,
        each(
            TfidfVectorizer, {}, {"norm": "l1", "sublinear_tf": True},
            vocabulary=VOCABULARY, use_idf=False,
        ),
    ),
    "sklearn.impute.MissingIndicator": (
        numbers_with_holes, each(MissingIndicator, {}, {"sparse": True}, features="all")
    ),
    "sklearn.impute.SimpleImputer": (
        numbers_with_holes,
        each(SimpleImputer, {}, {"fill_value": 2.5}, strategy="constant", keep_empty_features=True),
    ),
    "sklearn.preprocessing.OneHotEncoder": (
        levels,
        each(
            preprocessing.OneHotEncoder, {}, {"sparse_output": False}, {"drop": "first"},
            categories=CATEGORIES, handle_unknown="ignore",
        ),
    ),
    "sklearn.preprocessing.OrdinalEncoder": (
        levels,
        each(
            preprocessing.OrdinalEncoder,
            categories=CATEGORIES, handle_unknown="use_encoded_value", unknown_value=-1,
        ),
    ),
    "sklearn.preprocessing.SplineTransformer": (
        few_numbers,
        [
            preprocessing.SplineTransformer(
                knots=KNOTS, extrapolation=beyond, sparse_output=is_sparse, degree=degree
            )
            for beyond in ("constant", "linear", "continue", "periodic")
            for is_sparse, degree in ((False, 3), (True, 1))
        ],
    ),
}  # fmt: skip


# ---- the comparison ------------------------------------------------------------------------------


def fitted_to(step, X, warned="ignore"):
    """The bytes of each image, and the step that was fitted."""
    step = clone(step)
    with warnings.catch_warnings(action=warned), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DataDimensionalityWarning)
        Z = step.fit(X).transform(X)
    Z = np.ascontiguousarray(Z.toarray() if sparse.issparse(Z) else Z)
    return Z.view(np.uint8).reshape(len(Z), -1), step


def bits(step, X):
    return fitted_to(step, X)[0]


def kept(step):
    """Everything that a fit left behind, as text that can be compared."""
    names = sorted(vars(step).keys() - step.get_params().keys())
    return re.sub(r" at 0x\w+", "", repr([(name, vars(step)[name]) for name in names]))


def rows_of(X, rows, layout):
    if isinstance(X, list):
        return [X[i] for i in rows]
    return X[rows].asformat(layout) if sparse.issparse(X) else np.asarray(X[rows], order=layout)


def how_records_meet(step, layout, tables):
    """Which tables of the same records gave other bits; None if the step takes no such table."""
    X, other = tables
    if isinstance(step, preprocessing.SplineTransformer):
        step = clone(step).set_params(knots=np.repeat(KNOTS, X.shape[1], axis=1))
    # a warning would tell of the records, which the linter knows of some steps
    warned = "ignore" if find_leaks(step) else "error"
    try:
        whole, of_whole = fitted_to(step, X, warned)
    except (TypeError, ValueError):  # sparse records, which it refuses
        assert layout in ("csr", "csc")
        return None
    rng = np.random.default_rng(5)
    choices = {"other order": rng.permutation(N), "one less": np.arange(1, N)}
    choices["every third"] = np.resize(np.arange(0, N, 3), N)  # a column may be empty there
    for size in PARTS:
        choices |= {f"first {size}": np.arange(size), f"any {size}": rng.choice(N, size, False)}
    if class_of(full_name(type(step))).one_row_differs(step.get_params()):
        choices = {what: rows for what, rows in choices.items() if len(rows) > 1}
    meetings = {what: (rows_of(X, rows, layout), rows) for what, rows in choices.items()}
    found = []
    for what, (part, rows) in meetings.items():
        images, of_part = fitted_to(step, part, warned)
        keeps_alike = len(rows) < N or kept(of_part) == kept(of_whole)
        if not (keeps_alike and np.array_equal(images, whole[rows])):
            found.append(what)
    stays, (images, of_other) = np.arange(N) != N // 2, fitted_to(step, other, warned)
    if not np.array_equal(images[stays], whole[stays]) or kept(of_other) != kept(of_whole):
        found.append("another record in place of one")
    return found


def all_meetings(steps, tables):
    return {
        f"{step!r} {layout} {i}": found
        for step in steps
        for i, (layout, pair) in enumerate(tables())
        if (found := how_records_meet(step, layout, pair))
    }


def test_every_step_that_is_said_to_learn_nothing_has_settings_here():
    # a stand-in puts out constants
    assert {*SETTINGS, "dpcd_sklearn.pipeline.StandIn"} == set(LEARNS_NOTHING)
    for name, (_, steps) in SETTINGS.items():
        for step in steps:
            assert full_name(type(step)) == name
            assert class_of(name).learns(step.get_params(deep=False)) is None


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_said_to_learn_nothing_maps_each_record_by_itself(name):
    tables, steps = SETTINGS[name]
    assert all_meetings(steps, tables) == {}


def test_the_comparison_notices_products_of_all_rows():
    by_batch = kernel_approximation.RBFSampler, kernel_approximation.SkewedChi2Sampler
    steps = [step(random_state=0) for step in by_batch]
    steps += [GaussianRandomProjection(30, random_state=0)]
    assert {full_name(type(step)) for step in steps} == set(BY_BATCH)
    for step in steps:
        assert class_of(full_name(type(step))).learns(step.get_params())
        assert how_records_meet(step, "C", numbers(40, np.float64, "C", positive=True))


def test_the_comparison_notices_what_is_kept():
    tables = {
        preprocessing.StandardScaler(): all_numbers,
        SimpleImputer(strategy="constant"): numbers_with_holes,
        CountVectorizer(): texts,
    }
    assert all(all_meetings([step], of) for step, of in tables.items())


def test_the_comparison_notices_a_row_that_is_alone():
    X = numbers(40, np.float64, "F")[0]
    for norm in ("l1", "l2"):
        among, step = bits(preprocessing.Normalizer(norm), X), preprocessing.Normalizer(norm)
        assert any((bits(step, X[i : i + 1])[0] != among[i]).any() for i in range(200))
    with pytest.raises(ValueError, match="minimum of 2"):
        bits(preprocessing.SplineTransformer(knots=np.repeat(KNOTS, 40, axis=1)), X[:1])
    # ours is mended
    among = bits(RowNormClipper(), X)
    assert all((bits(RowNormClipper(), X[i : i + 1])[0] == among[i]).all() for i in range(200))
