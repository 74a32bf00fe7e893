"""Sparse records: the same released numbers as dense ones, whatever their storage."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from unreleased import MovingSums

from dpcd_sklearn import DPLassoCD, DPLogisticGCD
from dpcd_sklearn.losses import LogisticLoss
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, NonPrivateEvent, SelectionEvent
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.privacy.sums._moving_sums import IS_CHECKED
from dpcd_sklearn.privacy.sums._records import canonical
from dpcd_sklearn.testing import ReproducibleNoise

changes_records = pytest.mark.skipif(
    IS_CHECKED, reason="a build with checks sums anew, and sees other records"
)
N, P = 300, 23
FORMATS = [("csr", np.int32), ("csc", np.int32), ("csr", np.int64), ("csc", np.int64)]
every_format = pytest.mark.parametrize(("storage", "index"), FORMATS)


def records(dtype=np.float64, density=0.15, seed=0, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < density)
    X[:, 3] = 0.0  # a column and a record without entries
    X[5] = 0.0
    return X.astype(dtype), (rng.random(n) < 0.5).astype(float), rng.uniform(0, 2, n)


def stored(X, storage, index):
    S = sparse.csr_array(X).asformat(storage)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


def sums_of(X, y, weights, *, loss=None, greedy=True, bounds=None, private=True, intercept=True):
    releases = (GaussianEvent(5.0, 10_000),) + greedy * (SelectionEvent(0.5, 10_000),)
    event = FitEvent(releases if private else (NonPrivateEvent(),), "replace_one")
    p = X.shape[1]
    units = CoordinateUnits(
        event,
        n_samples=len(y),
        smoothness=np.random.default_rng(5).uniform(0.5, 2, p + intercept),
        clip=1.0,
        n_normalizer=len(y),
    )
    place = LocalPlace(X, y, weights, bounds)
    return MovingSums(units, place, loss=loss or LogisticLoss(), fit_intercept=intercept)


def moves(rng, p):
    """Steps of all coordinates, of one, of the intercept, and none; blocks of any size."""
    for _ in range(60):
        step = np.zeros(p)
        kind = rng.integers(4)
        if kind == 0:
            step = rng.standard_normal(p)
        elif kind == 1:
            step[rng.integers(p - 1)] = rng.normal()
        elif kind == 2:
            step[-1] = 0.3
        block = np.arange(p)
        if rng.random() < 0.5:
            block = np.sort(rng.choice(p, rng.integers(1, p), replace=False))
        yield block, step, bool(rng.random() < 0.4)


def zipf(n=500, p=80, seed=2, dtype=np.float64):
    """Columns of all sizes: the first is of all records, the last of few."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 1 / np.arange(1, p + 1) ** 1.2)
    X[:, 0] = 1.0
    X[7] = 0.0
    return X.astype(dtype), (rng.random(n) < 0.5).astype(float), rng.uniform(0, 2, n)


@changes_records
def test_a_step_of_a_rare_column_reads_the_rows_in_it_and_a_popular_one_is_a_pass():
    X, y, weights = zipf()
    S = stored(X, "csr", np.int32)  # read in place by row; its columns are a copy
    thin = sums_of(S, y, weights, intercept=False)
    everything, step = np.arange(80), np.zeros(80)
    thin.of(everything[:1], joint=False)  # sorts the columns
    before, _ = thin.of(everything, joint=False)
    S.data[:] = 0.0
    for rare in (79, 40):
        step[:] = 0.0
        step[rare] = 5.0
        # rows of zeros: nothing that was read changes a sum
        assert_array_equal(thin.of(everything, step, joint=False)[0], before)
    step[:] = 0.0
    step[0] = 5.0
    assert np.any(before) and not np.any(thin.of(everything, step, joint=False)[0])


def test_a_cell_that_is_stored_twice_is_clipped_once():
    # scipy is told that there are no duplicates, and believes it
    y = np.zeros(1)
    twice = sparse.csr_array((np.array([9.0, 9.0]), np.array([0, 0]), np.array([0, 2])), (1, 3))
    twice.has_canonical_format = True
    assert twice.nnz == 2
    for S in (twice, twice.tocsc()):
        sums, limit = sums_of(S, y + 1, None).of([0], joint=False)
        assert abs(sums[0]) == limit
        once = sums_of(np.array([[18.0, 0, 0]]), y + 1, None)
        expected, _ = once.of([0, 1, 2, 3], joint=True)
        found, _ = sums_of(S, y + 1, None).of([0, 1, 2, 3], joint=True)
        assert_array_equal(found, expected)


def test_a_sum_of_duplicates_that_overflows_counts_as_a_large_number():
    huge = np.finfo(float).max
    S = sparse.csr_array((np.full(4, huge), np.array([0, 0, 1, 1]), np.array([0, 4])), (1, 2))
    sums, limit = sums_of(S, np.ones(1), None).of([0, 1, 2], joint=True)
    assert np.linalg.norm(sums) <= limit + 1


@every_format
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unsorted_records_with_zeros_and_huge_values_give_the_dense_sums(storage, index, dtype):
    rng = np.random.default_rng(8)
    X, y, weights = records(dtype)
    X[2, 4], X[9, 4], X[9, 6] = np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).tiny
    S = stored(X, storage, index)
    S.data[rng.random(S.nnz) < 0.1] = 0.0  # stored zeros
    X = S.toarray()
    for line in range(len(S.indptr) - 1):
        at = np.arange(S.indptr[line], S.indptr[line + 1])
        mixed = rng.permutation(at)
        S.indices[at], S.data[at] = S.indices[mixed], S.data[mixed]
    S.has_sorted_indices = True  # a lie
    for greedy in (False, True):
        dense, thin = sums_of(X, y, weights, greedy=greedy), sums_of(S, y, weights, greedy=greedy)
        for block, step, joint in moves(rng, P + 1):
            expected, _ = dense.of(block, step, joint=joint)
            assert_array_equal(thin.of(block, step, joint=joint)[0], expected)


@pytest.mark.parametrize("storage", ["csr", "csc"])
def test_canonical_records_are_not_copied_and_others_are_not_changed(storage):
    X, _, _ = records()
    S = stored(X, storage, np.int32)
    assert canonical(S) is S
    S.indices[[0, 1]] = S.indices[[1, 0]]  # unsorted
    before = S.indices.copy()
    found = canonical(S)
    assert found is not S
    assert_array_equal(S.indices, before)
    assert canonical(found) is found
    mixed = stored(X, storage, np.int32)
    mixed.indptr = mixed.indptr.astype(np.int64)  # two types of index
    assert_array_equal(canonical(mixed).toarray(), X)


@pytest.mark.parametrize("storage", ["csr", "csc"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_fall_within_a_line_is_told_from_one_between_lines(storage, index):
    # every line but the empty ones begins below the end of the line before
    X = np.array([[1.0, 2, 3], [0, 0, 0], [4, 5, 6], [0, 7, 0], [8, 0, 9]])
    S = stored(X, storage, index)
    assert canonical(S) is S
    for at in range(S.nnz - 1):
        bad = S.copy()
        bad.indices[at + 1] = bad.indices[at]
        starts = at + 1 in S.indptr
        assert (canonical(bad) is bad) == (starts and not _repeats(bad))
        for wrong in (-1, 5, np.iinfo(index).max, np.iinfo(index).min):
            bad = S.copy()
            bad.indices[at] = wrong
            with pytest.raises(ValueError, match="out of range"):
                canonical(bad)


def _repeats(S):
    lines = (S.indices[a:b] for a, b in zip(S.indptr[:-1], S.indptr[1:], strict=True))
    return any((np.diff(line) <= 0).any() for line in lines)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 7], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 2, 1]), ([0, 1], [0, 1, 9])],
)
def test_a_broken_matrix_is_refused_before_it_is_read(indices, indptr):
    S = sparse.csr_array((2, 3))
    S.data, S.indices = np.ones(2), np.array(indices, dtype=np.int32)
    S.indptr = np.array(indptr, dtype=np.int32)
    with pytest.raises(ValueError, match=r"sparse X (are|is)"):
        sums_of(S, np.zeros(2), None)


# ---- estimators ---------------------------------------------------------------------------------

SEEDED = {"random_state": ReproducibleNoise(0), "epsilon": 3.0}


def test_bounds_of_sparse_records_contain_zero():
    X, y, _ = records()
    with pytest.raises(ValueError, match="must contain zero"):
        DPLassoCD(feature_bounds=(0.5, 2)).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="would become dense"):
        BoundsScaler((0.5, 2)).fit(sparse.csr_array(X))


@changes_records
def test_a_descent_over_rows_never_turns_them(monkeypatch):
    """A copy by column would take as much memory as X."""
    X, y, _ = records()
    monkeypatch.setattr(sparse.csr_array, "tocsc", None)
    model = DPLogisticGCD(epsilon=1e3, solver="skgd", row_norm_bound=1.0, classes=(0, 1))
    assert model.fit(sparse.csr_array(X), y).intercept_ != 0


def test_nothing_grows_dense():
    n, p = 200, 2_000_000  # dense it would be 3 GB
    rng = np.random.default_rng(0)
    where = rng.integers(n, size=4000), rng.integers(p, size=4000)
    S = sparse.csr_array((np.ones(4000), where), shape=(n, p))
    y = np.arange(n) % 2
    model = DPLogisticGCD(l1_ratio=1.0, max_iter=2, classes=[0, 1], feature_bounds=(0, 1)).fit(S, y)
    assert model.coef_.shape == (1, p)
    assert model.predict(S).shape == (n,)


def test_other_formats_and_integers_are_converted():
    X, y, _ = records()
    with warnings.catch_warnings(action="error"):
        facts = SEEDED | {"feature_scale": 1.0, "target_bounds": (-1, 1)}
        expected = DPLassoCD(**facts)
        with pytest.warns(match="not private"):
            expected.fit(X.round(), y)
        for S in (sparse.coo_array(X.round()), sparse.lil_array(X.round().astype(int))):
            with pytest.warns(match="not private"):
                found = DPLassoCD(**facts).fit(S, y)
            assert_array_equal(found.coef_, expected.coef_)
