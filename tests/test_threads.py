"""n_threads: passes over records are shared by threads, and no bit of what is released changes."""

import multiprocessing
import os
import re
from pathlib import Path

import numpy as np
import pytest
from forks import at_once
from joblib import Parallel, delayed, parallel_config
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tables import table
from threadpoolctl import ThreadpoolController, threadpool_limits

import dpcd_sklearn
from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyLeakWarning,
)
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import GCD, SGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise
from dpcd_sklearn.utils._threads import effective_n_threads, limited_blas

pytestmark = [
    pytest.mark.filterwarnings("ignore", category=PrivacyLeakWarning),
    pytest.mark.filterwarnings("ignore", category=ConvergenceWarning),
]

HEADER = Path(dpcd_sklearn.__file__).parent / "privacy" / "sums" / "_kernels.h"
CELLS_A_THREAD = int(re.search(r"DPCD_CELLS_A_THREAD (\d+)", HEADER.read_text())[1])
N_THREADS = 3  # more than the processors of the smallest machine: shares of odd sizes
N_FEATURES = 5
# Records of which one column, or two, or all columns make enough cells for N_THREADS.
ONE_COLUMN = N_THREADS * CELLS_A_THREAD + 77
TWO_COLUMNS = ONE_COLUMN // 2 + 77
ALL_COLUMNS = ONE_COLUMN // N_FEATURES + 77

BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
BOUNDS = {"feature_bounds": (-1, 2)}
THREE = {"classes": [0, 1, 2]}
MODELS = {  # how many records they need, and the model
    "DPLassoCD": (ONE_COLUMN, DPLassoCD(1e-4, max_iter=2)),
    "DPLassoCD, bounds": (ONE_COLUMN, DPLassoCD(1e-4, max_iter=2, **BOUNDS)),
    "DPRidgeSkGD": (ALL_COLUMNS, DPRidgeSkGD(max_iter=4, coef_path=True)),
    "DPRidgeSkGD, bounds": (ALL_COLUMNS, DPRidgeSkGD(max_iter=4, **BOUNDS)),
    "DPLogisticGCD": (ALL_COLUMNS, DPLogisticGCD(max_iter=4)),
    "cd": (ONE_COLUMN, DPLinearClassifier(solver="cd", max_iter=2)),
    "gcd": (ALL_COLUMNS, DPLinearRegressor(solver=GCD(block_size=2), penalty="l1", max_iter=4)),
    "gcd, lazy": (ALL_COLUMNS, DPLinearClassifier(solver=GCD(selection="lazy"), max_iter=4)),
    "skgd": (ALL_COLUMNS, DPLinearClassifier(solver=SkGD(sampling="full"), max_iter=4)),
    "skgd, blocks": (
        TWO_COLUMNS,
        DPLinearRegressor(solver=SkGD(sampling="block", block_size=2), max_iter=2),
    ),
    "compgd": (ALL_COLUMNS, DPLinearRegressor(solver="compgd", penalty=None, max_iter=4)),
    "sgd of all": (
        ALL_COLUMNS,
        DPLinearClassifier(solver=SGD(sampling_rate=1.0, momentum=0.5), max_iter=4),
    ),
    "multinomial": (
        ALL_COLUMNS,
        DPLinearClassifier("multinomial", solver=SGD(sampling_rate=1.0), max_iter=3, **THREE),
    ),
    "cd of classes": (ONE_COLUMN, DPLinearClassifier(solver="cd", max_iter=1, **THREE)),
    "svrg": (ALL_COLUMNS, DPLinearRegressor(solver="svrg", max_iter=2)),
    "newton": (ALL_COLUMNS, DPLinearRegressor(solver="newton", max_iter=3)),
    "newton of classes": (ALL_COLUMNS, DPLinearClassifier(solver="newton", max_iter=3, **THREE)),
    "frank-wolfe": (ALL_COLUMNS, DPLinearClassifier(solver="frank-wolfe", max_iter=4, **BALL)),
}
MINI_BATCHES = (  # a stated scale: else all records are counted first
    ALL_COLUMNS,
    DPLinearClassifier(solver=SGD(sampling_rate=0.2), max_iter=1, feature_scale=1.0),
)
WITHOUT_NOISE = (ALL_COLUMNS, DPRidgeSkGD(epsilon=float("inf"), max_iter=5))
FEW_CELLS = (ALL_COLUMNS // 4, DPRidgeSkGD(max_iter=4))

needs_tasks = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="this system does not list its threads"
)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")


def openmp_threads(count):
    """Let OpenMP have so many threads, more than there are processors if need be."""
    return threadpool_limits(count, user_api="openmp")


@pytest.fixture
def room():
    """OpenMP admits N_THREADS; the test is skipped where the package was built without it."""
    with openmp_threads(N_THREADS):
        if effective_n_threads(N_THREADS) < N_THREADS:
            pytest.skip("built without OpenMP")
        yield


def records(n_samples, dtype=np.float64, order="C"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, N_FEATURES))
    y = (X[:, 0] + rng.standard_normal(n_samples) > 0).astype(float)
    return np.asarray(X, dtype=dtype, order=order), y, rng.random(n_samples)


def fitted(model, X, y, sample_weight=None, n_threads=1):
    model = clone(model).set_params(random_state=ReproducibleNoise(0), n_threads=n_threads)
    return model.fit(X, y, sample_weight)


def released(model):
    """The bits of everything that a fit releases."""
    names = ("coef_", "intercept_", "n_iter_", "coef_path_", "intercept_path_")
    return b"".join(np.asarray(getattr(model, name, ())).tobytes() for name in names)


def in_a_thread_of_its_own(function):
    """The result of `function` there, with a pool of OpenMP threads that it does not share."""
    results = []

    def work():
        with openmp_threads(N_THREADS):
            results.append(function())

    assert not at_once(work)
    return results[0]


def threads_started_by(function):
    """How many threads are there after a call that were not there before."""

    def work():
        # Pools of BLAS, of NumPy's and SciPy's, end when a test forks, and start with a product.
        square = np.ones((400, 400))
        linalg.blas.dgemm(1.0, square, square @ square)
        before = set(os.listdir("/proc/self/task"))
        function()
        return len(set(os.listdir("/proc/self/task")) - before)

    return in_a_thread_of_its_own(work)


# ---- the same bits ------------------------------------------------------------------------------


# Any two of the three values of a kind of records occur together.
@table(
    ("weighted", "dtype", "order"),
    [
        (False, np.float64, "C"),
        (False, np.float32, "F"),
        (True, np.float64, "F"),
        (True, np.float32, "C"),
    ],
)
@table(
    ("n_samples", "model"),
    [*MODELS.values(), MINI_BATCHES, WITHOUT_NOISE],
)
def test_no_bit_depends_on_the_number_of_threads(n_samples, model, order, dtype, weighted, room):
    X, y, weights = records(n_samples, dtype, order)
    weights = weights if weighted else None
    expected, found = (fitted(model, X, y, weights, n_threads) for n_threads in (1, N_THREADS))
    assert np.any(expected.coef_ != 0)
    assert released(found) == released(expected)
    assert found.privacy_event_ == expected.privacy_event_
    assert found.privacy_spent_ == expected.privacy_spent_


def test_slices_of_rows_and_columns_are_shared_too(room):
    X, y, _ = records(2 * ALL_COLUMNS)
    for part in (X[33 : ALL_COLUMNS + 40, 1:], np.asfortranarray(X)[5 : 2 * ALL_COLUMNS - 8, :-1]):
        assert not part.flags.c_contiguous and not part.flags.f_contiguous
        bits = {released(fitted(DPLogisticGCD(max_iter=3), part, y[: len(part)], n_threads=t))
                for t in (1, 2, 3)}  # fmt: skip
        assert len(bits) == 1


def test_sparse_records_give_the_bits_of_dense_ones_for_every_number(room):
    X, y, _ = records(4 * ALL_COLUMNS)
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0
    for solver in ("auto", "skgd"):  # Newton steps read rows that become dense
        model = DPRidgeSkGD(max_iter=3, feature_scale=1.0, target_bounds=(0, 1), solver=solver)
        model.set_params(fit_intercept=solver == "skgd")  # else dense rows are centred
        dense = {released(fitted(model, X, y, n_threads=t)) for t in (1, 3)}
        for kind in (sparse.csr_array, sparse.csc_array):
            assert {released(fitted(model, kind(X), y, n_threads=t)) for t in (1, 3)} == dense


@table("order", ["C", "F"])
@table("dtype", [np.float32, np.float64])
def test_counts_of_cells_norms_and_outsiders_are_those_of_one_thread(dtype, order, room):
    X, y, _ = records(ALL_COLUMNS, dtype, order)
    edges = np.array([np.full(N_FEATURES, -0.5), np.linspace(0.5, 2, N_FEATURES)])
    asked = {"features": {"edges": edges}, "row_norm": {}, "outside": {"edges": edges[:, None]}}
    for of, cells in (*asked.items(), ("features", {}), ("features", {"around": np.abs(edges)})):
        one, *more = (LocalPlace(X, y, n_threads=t).counts(of, **cells) for t in (1, 2, 3))
        assert one.sum(axis=1).tolist() == [len(X)] * len(one)
        for counts in more:
            np.testing.assert_array_equal(counts, one)


# ---- threads that really run --------------------------------------------------------------------


@needs_tasks
@table("n_threads", [2, N_THREADS])
@table(("n_samples", "model"), MODELS.values())
def test_so_many_threads_run(n_samples, model, n_threads, room):
    X, y, _ = records(n_samples)
    started = threads_started_by(lambda: fitted(model, X, y, n_threads=n_threads))
    assert started == n_threads - 1


@needs_tasks
@pytest.mark.parametrize(
    ("n_samples", "model"),
    [MINI_BATCHES, WITHOUT_NOISE, FEW_CELLS],
    ids=["mini-batches", "without noise", "few cells"],
)
def test_what_would_not_gain_or_not_be_the_same_stays_in_one_thread(n_samples, model, room):
    X, y, _ = records(n_samples)
    assert threads_started_by(lambda: fitted(model, X, y, n_threads=N_THREADS)) == 0


@needs_tasks
def test_all_threads_are_the_default_of_the_main_thread_and_single_sparse_columns_have_one(room):
    X, y, _ = records(ALL_COLUMNS)
    seeded = DPRidgeSkGD(max_iter=4, random_state=ReproducibleNoise(0))
    assert seeded.n_threads is None
    assert threads_started_by(lambda: seeded.fit(X, y)) == 0  # not the main one
    columns = clone(seeded).set_params(solver="cd", max_iter=1)
    assert threads_started_by(lambda: fitted(columns, sparse.csc_array(X), y, n_threads=3)) == 0


@needs_tasks
@pytest.mark.parametrize("name", ["DPRidgeSkGD", "DPLogisticGCD", "compgd", "sgd of all", "newton"])
def test_full_passes_over_sparse_rows_are_shared(name, room):
    n_samples, model = MODELS[name]
    X, y, _ = records(n_samples)
    assert threads_started_by(lambda: fitted(model, sparse.csr_array(X), y, n_threads=2)) == 1


# ---- a cap, not a wish --------------------------------------------------------------------------


def test_effective_n_threads_is_the_least_of_what_is_asked_and_admitted(room):
    assert [effective_n_threads(t) for t in (1, 2, 3, 4, 10**30, None)] == [1, 2, 3, 3, 3, 3]
    with openmp_threads(2):
        assert [effective_n_threads(t) for t in (1, 2, 3)] == [1, 2, 2]
    with openmp_threads(1):
        assert [effective_n_threads(t) for t in (1, 2, 3)] == [1, 1, 1]


# ---- parallelism around it ----------------------------------------------------------------------

NESTED = MODELS["DPRidgeSkGD"]


def admitted(user_api):
    """Numbers of threads that the libraries of one kind admit."""
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api=user_api).info()}


def fit_and_count(n_threads):
    """In a worker: the bits of a fit, how many threads it had, and what OpenMP admits."""
    n_samples, model = NESTED
    X, y, _ = records(n_samples)
    bits = released(fitted(model, X, y, n_threads=n_threads))
    return bits, effective_n_threads(n_threads), min(admitted("openmp"))


@pytest.fixture
def expected(room):
    """The bits of one thread; and the pool of this process is up, as forks may find it."""
    n_samples, model = NESTED
    X, y, _ = records(n_samples)
    bits = released(fitted(model, X, y))
    assert released(fitted(model, X, y, n_threads=N_THREADS)) == bits
    return bits


def test_worker_processes_have_their_share(expected):
    with parallel_config("loky", n_jobs=2, inner_max_num_threads=2):
        found = Parallel()(delayed(fit_and_count)(N_THREADS) for _ in range(3))
    assert found == [(expected, 2, 2)] * 3


def test_worker_threads_have_one_thread_each(expected):
    found = Parallel(n_jobs=2, backend="threading")(
        delayed(fit_and_count)(N_THREADS) for _ in range(4)
    )
    assert [(bits, n_threads) for bits, n_threads, _ in found] == [(expected, 1)] * 4


def test_one_job_is_no_nest(expected):
    for backend in ("threading", "loky"):
        found = Parallel(n_jobs=1, backend=backend)([delayed(fit_and_count)(N_THREADS)])
        assert found == [(expected, N_THREADS, N_THREADS)]


def _send_fit(connection):
    connection.send(fit_and_count(N_THREADS))


@needs_fork
def test_a_fork_after_threads_neither_hangs_nor_differs(expected):
    """GNU's OpenMP waits for ever in a child whose parent had a pool."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send_fit, args=(there,))
    child.start()
    try:
        assert here.poll(120), "the child hangs"
        bits, n_threads, admitted = here.recv()
    finally:
        child.kill()
        child.join()
    assert (bits, n_threads, admitted) == (expected, 1, N_THREADS)
    assert effective_n_threads(N_THREADS) == N_THREADS  # the parent goes on as before


def test_threads_of_ones_own_fit_at_once(expected):
    """Each has a pool of its own, and there is no state that fits share."""
    found = []

    def work():
        with openmp_threads(N_THREADS):
            found.append(fit_and_count(N_THREADS)[:2])

    assert not at_once(work, work, work)
    assert found == [(expected, N_THREADS)] * 3


def test_limits_of_blas_that_overlap_leave_it_as_it_was():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = admitted("blas")
        first, second = limited_blas(1), limited_blas(1)
        first.__enter__()
        second.__enter__()
        assert admitted("blas") == {1}
        first.__exit__(None, None, None)
        assert admitted("blas") == {1}
        second.__exit__(None, None, None)
        assert admitted("blas") == before
