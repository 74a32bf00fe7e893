"""BoundsScaler is a map fixed by public bounds, equal for all records and layouts."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from tables import table

from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.utils import _tiles

CSR_AND_CSC = [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array]
FLOATS = [np.float32, np.float64]

X = np.array([[0.0, -3.0, 5.0], [10.0, 4.0, 5.0], [-7.0, 0.0, 8.0], [2.5, 99.0, -1.0]])
LO, HI = np.array([0.0, -4.0, 5.0]), np.array([10.0, 4.0, 5.0])


def twin(X, lo, hi, with_centering=True):
    """The definition, in NumPy and double precision."""
    X = np.clip(np.asarray(X, dtype=np.float64), lo, hi)
    center = (lo + hi) / 2 if with_centering else 0.0
    half = (hi - lo) / 2 if with_centering else np.maximum(np.abs(lo), np.abs(hi))
    Z = (X - center) / np.where(half == 0, 1.0, half)
    return np.where(lo == hi, 0.0, np.clip(Z, -1, 1))


@st.composite
def problems(draw, *, sparse_too=False):
    """Draw a scaler and X: any finite floats and bounds, of any magnitude."""
    dtype = np.dtype(draw(st.sampled_from(FLOATS)))
    n_samples, n_features = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    kind = st.one_of(
        st.just(0.0),
        st.floats(-10, 10, width=32),
        st.floats(allow_nan=False, allow_infinity=False, width=8 * dtype.itemsize),
    )
    X = draw(hnp.arrays(dtype, (n_samples, n_features), elements=kind))
    finite = st.one_of(st.floats(-10, 10), st.floats(allow_nan=False, allow_infinity=False))
    ends = draw(hnp.arrays(np.float64, (2, n_features), elements=finite))
    lo, hi = ends.min(axis=0), ends.max(axis=0)
    with_centering = draw(st.booleans())
    if sparse_too:
        hi = np.maximum(np.abs(lo), np.abs(hi))
        lo = -hi if with_centering else np.minimum(lo, 0.0)
    return BoundsScaler((lo, hi), with_centering=with_centering), X


# --- scikit-learn's conventions -------------------------------------------------------------------


@table(
    ("bounds", "with_centering", "takes_sparse"),
    [
        ((-1, 1), True, True),
        ((-1, 1), False, True),
        ((0, 2), True, False),
        ((0, 2), False, True),
        ((1, 2), False, False),
        (([-1, 0], [1, 2]), True, False),
        (([-1, 0], [1, 2]), False, True),
        ({"a": (-1, 1)}, True, False),
        ([(-1, 1), (-2, 2)], True, True),
        ([0, 1], True, False),
        ((-np.inf, np.inf), True, False),
        ("nonsense", True, False),
        ((1, 2, 3), True, False),
    ],
)
def test_sparse_tag_tells_whether_zero_stays_zero(bounds, with_centering, takes_sparse):
    tags = BoundsScaler(bounds, with_centering=with_centering).__sklearn_tags__()
    assert tags.input_tags.sparse is takes_sparse
    assert tags.requires_fit and not tags.input_tags.allow_nan


# --- the map --------------------------------------------------------------------------------------


@table("with_centering", [True, False])
@table("dtype", [*FLOATS, np.int32, np.uint8, np.float16, bool, object])
def test_map_is_the_documented_formula_and_only_float32_stays_float32(with_centering, dtype):
    data = np.abs(X).astype(dtype)
    before = data.copy()
    Z = BoundsScaler((LO, HI), with_centering=with_centering).fit(data).transform(data)
    assert Z.dtype == (np.float32 if dtype is np.float32 else np.float64)
    # Computed in double precision and rounded once: equal to the last bit.
    assert_array_equal(Z, twin(data, LO, HI, with_centering).astype(Z.dtype))
    assert_array_equal(data, before)


@pytest.mark.parametrize(("lo", "hi"), [(0.1, 0.7), (1e39, 1e40), (1e-50, 1e-49), (-1e-50, 1e300)])
def test_float32_respects_bounds_that_float32_cannot_hold(lo, hi):
    data = np.array([[-1.0], [0.0], [0.1], [0.5], [0.7], [1.0], [3e38]], dtype=np.float32)
    Z = BoundsScaler((lo, hi)).fit(data).transform(data)
    assert_array_equal(Z, twin(data, np.float64(lo), np.float64(hi)).astype(np.float32))


@pytest.mark.parametrize("with_centering", [True, False])
@pytest.mark.parametrize("value", [0.0, 3.0, -1e308, 5e-324])
def test_column_with_equal_bounds_becomes_zero_and_comes_back_as_the_bound(value, with_centering):
    scaler = BoundsScaler((value, value), with_centering=with_centering).fit(X)
    assert_array_equal(scaler.transform(X), np.zeros_like(X))
    assert_array_equal(scaler.inverse_transform(np.ones_like(X)), np.full_like(X, value))


@given(problem=problems())
def test_result_lies_exactly_within_minus_one_and_one(problem):
    scaler, X = problem
    Z = scaler.fit_transform(X)
    assert Z.dtype == X.dtype and Z.shape == X.shape
    assert (np.abs(Z) <= 1).all()  # also refuses NaN


@given(problem=problems())
def test_memory_layout_does_not_change_the_result_and_is_kept(problem):
    scaler, X = problem
    C = scaler.fit_transform(np.ascontiguousarray(X))
    F = scaler.fit_transform(np.asfortranarray(X))
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    assert C.flags.c_contiguous and F.flags.f_contiguous
    assert_array_equal(F, C)
    assert_array_equal(scaler.transform(strided), C)


@given(problem=problems(sparse_too=True), container=st.sampled_from(CSR_AND_CSC))
def test_sparse_and_dense_give_the_same_numbers(problem, container):
    scaler, X = problem
    dense = scaler.fit_transform(X)
    S = container(X)
    Z = clone(scaler).fit(S).transform(S)
    assert isinstance(Z, container) and Z.dtype == X.dtype
    assert Z.nnz == S.nnz  # the structure is kept, no entry appears
    assert_array_equal(Z.toarray(), dense)


@given(
    X=hnp.arrays(np.float64, (4, 3), elements=st.floats(-50, 50)),
    width=hnp.arrays(np.float64, 3, elements=st.floats(0.1, 100)),
    lo=hnp.arrays(np.float64, 3, elements=st.floats(-50, 50)),
    with_centering=st.booleans(),
)
def test_inverse_gives_back_the_clipped_records(X, width, lo, with_centering):
    scaler = BoundsScaler((lo, lo + width), with_centering=with_centering)
    back = scaler.inverse_transform(scaler.fit_transform(X))
    # A handful of roundings of numbers up to 150.
    assert_allclose(back, np.clip(X, lo, lo + width), rtol=0, atol=1e-12)


def test_inverse_is_that_of_the_map_without_clipping():
    scaler = BoundsScaler((0, 10)).fit(X)
    assert_array_equal(scaler.inverse_transform([[-2.0, 0.0, 3.0]]), [[-5, 5, 20]])
    with pytest.raises(ValueError, match="X has 2 features, but BoundsScaler is expecting 3"):
        scaler.inverse_transform(X[:, :2])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7, 50), (50, 7), (1, 40), (40, 1)])
def test_tiles_cover_every_entry_once(monkeypatch, shape, order):
    monkeypatch.setattr(_tiles, "_STORED_CELLS", 16)
    data = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    data[np.abs(data) < 0.5] = 0
    scaler = BoundsScaler((-1, 2), with_centering=False).fit(data)
    expected = twin(data, -1.0, 2.0, with_centering=False)
    assert_array_equal(scaler.transform(data), expected)
    for container in CSR_AND_CSC:
        assert_array_equal(scaler.transform(container(data)).toarray(), expected)


# --- nothing is learnt, nothing is told -----------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bounds", [(-1, 1), (-1e300, 1e300), (-1.7e308, 1.7e308), (1e39, 1e40)])
def test_outliers_are_clipped_without_warning_or_floating_point_error(bounds, dtype):
    big = np.finfo(dtype).max
    data = np.array([[big], [-big], [0.0]], dtype=dtype)
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        scaler = BoundsScaler(bounds)
        Z = scaler.fit_transform(data)
        scaler.inverse_transform(data)
    assert (np.abs(Z) <= 1).all()


def test_fitted_scaler_does_not_follow_later_changes_of_its_parameters():
    lo, hi = LO.copy(), HI.copy()
    scaler = BoundsScaler((lo, hi)).fit(X)
    expected = scaler.transform(X)
    lo -= 1
    hi += 1
    scaler.set_params(with_centering=False)
    assert_array_equal(scaler.transform(X), expected)


# --- sparse data ----------------------------------------------------------------------------------


@table("container", CSR_AND_CSC)
@table(
    ("bounds", "with_centering"),
    [((0, 2), True), ((1, 2), False), ((-2, -1), False), (([-1, -1, 3], [1, 1, 3]), False)],
)
def test_sparse_is_refused_with_advice_where_zero_would_move(container, bounds, with_centering):
    scaler = BoundsScaler(bounds, with_centering=with_centering)
    for call in (scaler.fit, scaler.fit(X).transform, scaler.fit(X).inverse_transform):
        with pytest.raises(ValueError, match=r"sparse.*with_centering=False.*symmetric bounds"):
            call(container(X))


@table("index_dtype", [np.int32, np.int64])
@table("container", CSR_AND_CSC)
@table("copy", [True, False])
def test_both_index_widths_work_and_empty_columns_do_not_confuse(container, index_dtype, copy):
    data = np.zeros((5, 6))
    data[:, [1, 4]] = np.random.default_rng(1).normal(scale=3, size=(5, 2))
    S = container(data)
    S.indices, S.indptr = S.indices.astype(index_dtype), S.indptr.astype(index_dtype)
    hi = np.arange(1.0, 7)
    scaler = BoundsScaler((-hi, hi), copy=copy).fit(S)
    Z = scaler.transform(S)
    assert_array_equal(Z.toarray(), twin(data, -hi, hi))
    assert_allclose(scaler.inverse_transform(Z).toarray(), np.clip(data, -hi, hi))


@pytest.mark.parametrize("form", ["coo", "lil", "dok", "bsr", "dia"])
def test_other_sparse_formats_become_csr_and_stay_untouched(form):
    S = sparse.random(20, 5, density=0.4, random_state=0, data_rvs=np.random.randn).asformat(form)
    before = S.toarray()
    Z = BoundsScaler((-0.5, 0.5)).fit(S).transform(S)
    assert Z.format == "csr"
    assert_array_equal(Z.toarray(), twin(before, -0.5, 0.5))
    assert_array_equal(S.toarray(), before)


@table("copy", [True, False])
@table("read_only", [True, False])
@table("container", CSR_AND_CSC)
def test_duplicate_entries_are_summed_before_they_are_clipped(container, read_only, copy):
    data, indices, indptr = np.array([3.0, -2.5, 1.0]), np.array([1, 1, 0]), np.array([0, 3, 3])
    if read_only:
        for array in (indices, indptr):
            array.flags.writeable = False
    S = container((data, indices, indptr), shape=(2, 2))
    before = S.toarray()
    Z = BoundsScaler((-1, 1), copy=copy).fit(S).transform(S)
    assert_array_equal(Z.toarray(), before)  # all sums are within the bounds, the entries are not
    if copy:
        assert_array_equal(S.toarray(), before)
        assert S.nnz == 3


# --- copy -----------------------------------------------------------------------------------------


@table("dtype", FLOATS)
@table("make", [np.ascontiguousarray, np.asfortranarray, *CSR_AND_CSC])
def test_copy_false_works_in_place_and_copy_true_does_not(make, dtype):
    data = make(X.astype(dtype))
    before = data.copy()
    kept = BoundsScaler((-4, 4)).fit(data).transform(data)
    assert abs(data - before).max() == 0
    overwritten = BoundsScaler((-4, 4), copy=False).fit(data).transform(data)
    assert overwritten is data or np.shares_memory(overwritten, data)
    assert abs(overwritten - kept).max() == 0


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_matrix])
def test_copy_false_copies_what_it_must_not_write(make):
    data = make(X.copy())
    (data.data if sparse.issparse(data) else data).flags.writeable = False
    Z = BoundsScaler((-4, 4), copy=False).fit(data).transform(data)
    Z = Z.toarray() if sparse.issparse(Z) else Z
    assert_array_equal(Z, twin(X, -4.0, 4.0))
    assert_array_equal(data.toarray() if sparse.issparse(data) else data, X)


def test_copy_false_leaves_data_frames_alone():
    pd = pytest.importorskip("pandas")
    whole = pd.DataFrame(X, columns=list("abc"))
    part = whole.iloc[:2]  # shares memory with `whole`
    BoundsScaler((-4, 4), copy=False).fit(part).transform(part)
    assert_array_equal(whole.to_numpy(), X)


# --- data frames ----------------------------------------------------------------------------------


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    library = pytest.importorskip(request.param)
    if not hasattr(StandardScaler().fit(frame_of(library, X)), "feature_names_in_"):
        pytest.skip("this scikit-learn reads no column names here (1.8 with polars 2)")
    return library


def frame_of(library, data, names="abc"):
    return library.DataFrame({name: data[:, j] for j, name in enumerate(names)})


NAMED = {"c": (5, 5), "a": (0.0, 10), "b": [-4, 4.0]}


def test_frames_are_mapped_by_column_name_and_names_are_kept(library):
    frame = frame_of(library, X)
    scaler = BoundsScaler(NAMED).fit(frame)
    assert list(scaler.feature_names_in_) == ["a", "b", "c"]
    assert list(scaler.get_feature_names_out()) == ["a", "b", "c"]
    with warnings.catch_warnings(action="error", category=UserWarning):
        Z = scaler.transform(frame)
        scaler.inverse_transform(Z)  # an array after a fit on a frame: the normal case
    assert_array_equal(Z, BoundsScaler((LO, HI)).fit_transform(X))


def test_sparse_columns_of_a_data_frame_stay_sparse():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).astype(pd.SparseDtype(np.float64, 0.0))
    if not sparse.issparse(check_array(frame, accept_sparse=True)):
        pytest.skip("this scikit-learn densifies sparse columns itself (1.8 with pandas 3)")
    Z = BoundsScaler({"a": (0, 5), "b": (-4, 4), "c": (0, 0)}, with_centering=False)
    Z = Z.fit(frame).transform(frame)
    assert sparse.issparse(Z)
    lo, hi = np.array([0.0, -4, 0]), np.array([5.0, 4, 0])
    assert_array_equal(Z.toarray(), twin(X, lo, hi, with_centering=False))


# --- errors ---------------------------------------------------------------------------------------


# Other wrong bounds are in test_bounds.py.
@table(
    ("params", "message"),
    [
        ({"bounds": (1, -1)}, "bounds: lo must not exceed hi, but feature 0 has lo=1 > hi=-1"),
        *(({"bounds": bounds}, "'bounds' parameter of") for bounds in ("01", None, 3.0, {0, 1})),
        ({"with_centering": "yes"}, "'with_centering' parameter of BoundsScaler"),
        ({"copy": "yes"}, "'copy' parameter of BoundsScaler"),
    ],
)
def test_wrong_parameters_are_refused_with_a_message_that_says_what(params, message):
    with pytest.raises(ValueError, match=message):
        BoundsScaler(**params).fit(X)
