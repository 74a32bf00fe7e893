"""Fits on a small Dask cluster: the bits of a local fit, errors before the charge, lost workers."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import dpcd_sklearn as local
from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.testing import ReproducibleNoise

pytest.importorskip("distributed", reason="the extra dask is not installed")

import dask.array as da
import dask.dataframe as dd
from distributed import Client, KilledWorker, LocalCluster

from dpcd_sklearn import dask as on_dask
from dpcd_sklearn.dask import _workers
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPStandardScaler

N, P = 203, 5
CHUNKS = {"1": (N,), "2": (100, 103), "7": (29,) * 7, "uneven": (1, 0, 150, 52, 0)}
_rng = np.random.default_rng(7)
X = _rng.uniform(-1, 1, (N, P))
Y = np.clip(X @ np.linspace(-0.5, 0.5, P) + 0.1 * _rng.normal(size=N), -1, 1)
WITH_NAN = np.where(np.arange(N)[:, np.newaxis] == 180, np.nan, X)
WEIGHTS = _rng.uniform(0, 2, N)
LABELS = np.where(Y > 0, "yes", "no")
SEEDED = {"random_state": ReproducibleNoise(3), "epsilon": 20.0, "max_iter": 3}
MODELS = {
    "DPLassoCD": (
        {
            "alpha": 0.01,
            "feature_bounds": (-1, 1),
            "target_bounds": (-1, 1),
            "solver": "cd",
        },
        Y,
    ),
    "DPRidgeSkGD": ({}, Y),  # whose scales are found
    "DPLogisticGCD": ({"feature_bounds": (-1, 1), "feature_scale": "private"}, LABELS),
    "DPLinearRegressor": ({"solver": "newton", "feature_bounds": (-1, 1)}, Y),
    "DPLinearClassifier": ({"solver": "sgd", "feature_bounds": (-1, 1)}, LABELS),
}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def both(name, *, client=None, **params):
    """The estimator for one machine, and the one for a cluster."""
    params = SEEDED | MODELS[name][0] | params
    return getattr(local, name)(**params), getattr(on_dask, name)(client=client, **params)


def in_chunks(array, chunks="uneven"):
    rows = CHUNKS[chunks]
    return da.from_array(array, chunks=(rows,) + ((-1,) if array.ndim == 2 else ()))


def sparse_in_chunks(X, chunks="uneven"):
    return in_chunks(X, chunks).map_blocks(csr_array)


def assert_same_bits(fitted, other):
    np.testing.assert_array_equal(fitted.coef_, other.coef_)
    np.testing.assert_array_equal(fitted.intercept_, other.intercept_)
    assert fitted.privacy_event_ == other.privacy_event_


@pytest.mark.parametrize("name", MODELS)
def test_the_bits_of_a_local_fit(client, name):
    y = MODELS[name][1]
    here, there = both(name)
    here.fit(X, y, WEIGHTS)
    assert there.fit(in_chunks(X), in_chunks(y), in_chunks(WEIGHTS)) is there
    assert_same_bits(here, there)


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("kind", [in_chunks, sparse_in_chunks], ids=["dense", "sparse"])
def test_the_bits_of_every_chunking(client, kind, chunks):
    here, there = both("DPLogisticGCD")
    here.fit(csr_array(X) if kind is sparse_in_chunks else X, LABELS)
    assert_same_bits(here, there.fit(kind(X, chunks), in_chunks(LABELS, chunks)))


def test_a_parquet_folder_whose_columns_are_read_in_other_partitions(client, tmp_path):
    """Dask joins small files the more, the fewer columns are read of them."""
    columns = list("abcde")
    frame = pd.DataFrame(X, columns=columns).assign(y=Y)
    for day, rows in enumerate(np.array_split(np.arange(N), 6)):
        frame.iloc[rows].to_parquet(tmp_path / f"day{day}.parquet")
    parts = dd.read_parquet(tmp_path)
    here, there = both("DPLassoCD")
    here.fit(frame[columns], frame["y"])
    assert_same_bits(here, there.fit(parts[columns], parts["y"]))
    assert there.feature_names_in_.tolist() == columns
    score = there.score(parts[columns], parts["y"])
    assert score == pytest.approx(here.score(frame[columns], frame["y"]))
    found = there.predict(parts[columns]).compute()
    np.testing.assert_allclose(found, here.predict(frame[columns]))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predictions_are_lazy(client, method):
    here, there = both("DPLinearClassifier")
    here.fit(X, LABELS)
    there.fit(in_chunks(X), in_chunks(LABELS))
    found = getattr(there, method)(in_chunks(X, "7"))
    expected = getattr(here, method)(X)
    assert isinstance(found, da.Array)
    assert found.shape == expected.shape
    assert found.chunks[0] == CHUNKS["7"]
    computed = found.compute()
    assert computed.dtype == found.dtype
    if method == "predict":
        np.testing.assert_array_equal(computed, expected)
    else:
        np.testing.assert_allclose(computed, expected)
    np.testing.assert_array_equal(getattr(there, method)(X), expected)
    score = there.score(in_chunks(X), in_chunks(LABELS), in_chunks(WEIGHTS))
    assert score == pytest.approx(here.score(X, LABELS, WEIGHTS))


def test_clones_pickles_and_local_twins(client):
    _, there = both("DPLassoCD", client=client)
    there.fit(in_chunks(X), in_chunks(Y))
    twin = clone(there)
    assert twin.client is client and twin.alpha == there.alpha and not hasattr(twin, "coef_")
    loaded = pickle.loads(pickle.dumps(there))
    assert loaded.client is None
    np.testing.assert_array_equal(loaded.coef_, there.coef_)
    plain = there.to_local()
    assert type(plain) is local.DPLassoCD
    assert "client" not in plain.get_params()
    np.testing.assert_array_equal(plain.predict(X), there.predict(X))
    here = local.DPLassoCD(**there._stated_params()).fit(X, Y)
    assert plain.get_params() == here.get_params() and vars(plain).keys() == vars(here).keys()
    assert_same_bits(plain, here)
    assert repr(both("DPLassoCD")[1]).startswith("DPLassoCD(alpha=0.01")
    assert "client : distributed.Client" in on_dask.DPLassoCD.__doc__


def test_another_client_than_the_default(client, uncharged):
    """Messages go to the cluster that is stated, whichever client was made last."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        here, there = both("DPLassoCD", client=other)
        assert_same_bits(here.fit(X, Y), there.fit(in_chunks(X), in_chunks(Y)))
    there.set_params(accountant=uncharged, random_state=None)
    with pytest.raises(ValueError, match="the client is clos"):
        there.fit(in_chunks(X), in_chunks(Y))


def unknown(array, n_rows=N):
    """The first rows, in chunks of unknown sizes."""
    return array[da.from_array(np.arange(N) < n_rows, chunks=(array.chunks[0],))]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (lambda: (in_chunks(WITH_NAN), in_chunks(Y)), "partition 3: .*NaN"),
        (lambda: (in_chunks(X).rechunk((50, 2)), in_chunks(Y)), r"X.rechunk\(\{1: -1\}\)"),
        (lambda: (in_chunks(X), in_chunks(Y, "7")), r"y.rechunk\(\(X.chunks\[0\],\)\)"),
        (lambda: (in_chunks(X), in_chunks(Y)[:-1]), "inconsistent numbers of samples"),
        (lambda: (unknown(in_chunks(X)), in_chunks(Y, "7")), r"compute_chunk_sizes\(\)"),
        (lambda: (unknown(in_chunks(X, "7")), unknown(in_chunks(Y, "7"), N - 1)), "partition 6: X"),
        (lambda: (X, in_chunks(Y)), "Dask array or data frame, got ndarray"),
        (lambda: (in_chunks(X), Y), "y must be a Dask collection"),
        (lambda: (in_chunks(Y), in_chunks(Y)), "Expected 2D array"),
    ],
)
def test_what_is_refused_is_not_charged(client, records, message, uncharged):
    _, there = both("DPLassoCD", random_state=None, accountant=uncharged)
    with pytest.raises((ValueError, TypeError), match=message):
        there.fit(*records())


def test_a_search_on_the_cluster_has_one_ledger(client, tmp_path):
    """Scikit-learn's search through joblib: four candidates, three folds and the refit."""
    accountant = PrivacyAccountant(50, 1e-3, path=tmp_path / "ledger.sqlite")
    model = local.DPLassoCD(
        epsilon=1.0, max_iter=1, feature_bounds=(-1, 1), target_bounds=(-1, 1), delta=1e-6,
        accountant=accountant,
    )  # fmt: skip
    alphas = {"alpha": [0.001, 0.01, 0.1, 1.0]}
    with joblib.parallel_backend("dask", client=client):
        GridSearchCV(model, alphas, cv=KFold(3), error_score="raise").fit(X, Y)
    assert len(accountant.entries()) == 13


IDS = _rng.integers(0, 60, N)
BY_ID = {"neighboring": local.Persons(), "delta": 1e-4, "solver": "auto"}


@pytest.mark.parametrize("chunks", ["1", "uneven"])
@pytest.mark.parametrize("name", ["DPLinearRegressor", "DPLinearClassifier"])
def test_persons_are_divided_by_id_whatever_the_chunks(client, name, chunks):
    here, there = both(name, **BY_ID)
    words = np.array([f"id {one}" for one in IDS])
    y = MODELS[name][1]
    arrays = {"dense": (X, in_chunks(X, chunks))}
    arrays["sparse"] = csr_array(X), sparse_in_chunks(X, chunks)
    for one_place, parted in arrays.values():
        for ids in (IDS, words):
            here.fit(one_place, y, WEIGHTS, ids)
            given = (in_chunks(array, chunks) for array in (y, WEIGHTS, ids))
            assert_same_bits(here, there.fit(parted, *given))
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(y=y, ids=words)
    here.fit(frame[[*"abcde"]], frame["y"], None, frame["ids"])
    frame = dd.from_pandas(frame, npartitions=3)
    assert_same_bits(here, there.fit(frame[[*"abcde"]], frame["y"], None, frame["ids"]))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (lambda: in_chunks(IDS.astype(float)), "partition 0: groups must hold integers or strings"),
        (lambda: in_chunks(np.array([None, *IDS[1:]], dtype=object)), "ids of one kind"),
        (lambda: in_chunks(IDS)[:-1], "X has 203 rows, groups has 202"),
        (lambda: in_chunks(IDS, "7"), r"groups.rechunk\(\(X.chunks\[0\],\)\)"),
        (lambda: unknown(in_chunks(IDS, "7"), N - 1), "groups"),
        (lambda: IDS, "groups must be a Dask collection"),
        (lambda: None, "groups=ids"),
    ],
)
def test_ids_that_are_refused_are_not_charged(client, ids, message):
    accountant = PrivacyAccountant(50, 1e-3, neighboring=local.Persons())
    model = both("DPLinearRegressor", **BY_ID, random_state=None, accountant=accountant)[1]
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(in_chunks(X), in_chunks(Y), None, ids())
    assert not accountant.entries()


def test_several_targets(client):
    targets = np.column_stack([Y, -Y])
    here, there = both("DPLinearRegressor", solver="gcd")
    there.fit(in_chunks(X), in_chunks(targets))
    assert_same_bits(here.fit(X, targets), there)
    found = there.predict(in_chunks(X))
    assert found.shape == (N, 2)
    np.testing.assert_allclose(found.compute(), here.predict(X))
    score = there.score(in_chunks(X), in_chunks(targets))
    assert score == pytest.approx(here.score(X, targets))


def test_a_fit_leaves_nothing_with_the_workers(client):
    """Neither do partitions, nor what was made of them, wait for a collection of garbage."""
    before = {key for keys in client.has_what().values() for key in keys}
    _, there = both("DPLassoCD")
    gc.collect()
    gc.disable()
    try:
        there.fit(in_chunks(X, "7"), in_chunks(Y, "7"))
        for _ in range(200):
            left = {key for keys in client.has_what().values() for key in keys} - before
            if not left:
                break
            time.sleep(0.05)
    finally:
        gc.enable()
    assert not left


@pytest.fixture
def losing(monkeypatch):
    """Answers to these messages are not to be had: their workers are said to be lost."""

    def at(*moments):
        told, result = [], _workers.Workers._result

        def one(self, address, *message):
            told.append(address)
            if len(told) in moments:
                raise OSError("lost")
            return result(self, address, *message)

        monkeypatch.setattr(_workers.Workers, "_result", one)
        return told

    return at


# Two workers: 1 and 3 make shelves, 2 and 4 look at them, 5 to 8 are two questions about scales.
@pytest.mark.parametrize("moments", [(1,), (2,), (1, 2, 3, 4, 5), (5, 6), (6, 7, 8), (7, 20)])
def test_shelves_may_be_lost_at_every_moment(client, losing, moments):
    told = losing(*moments)
    accountant = PrivacyAccountant(50, 1e-3, testing=True)
    here, there = both("DPRidgeSkGD")
    there.set_params(accountant=accountant).fit(in_chunks(X, "7"), in_chunks(Y, "7"))
    assert len(told) > max(moments)
    assert_same_bits(here.fit(X, Y), there)
    assert len(accountant.entries()) == 1


class _Lost:
    """A message whose answer is an error."""

    def __init__(self, error):
        self.error = error

    def done(self):
        return True

    def result(self, timeout=None):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Worker holding Actor was lost"),  # between its making and its first message
        KilledWorker("Shelf", None, 0),
        CancelledError("its worker was lost, and with it scattered data"),
        TimeoutError("of a wire"),
        OSError("of a wire"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_words_of_dask_for_a_lost_worker(client, monkeypatch, error):
    tried, shelf = [], _workers.Workers._shelf

    def lost_first(self, address, numbers):
        tried.append(numbers)
        return _Lost(error) if len(tried) == 1 else shelf(self, address, numbers)

    monkeypatch.setattr(_workers.Workers, "_shelf", lost_first)
    here, there = both("DPLassoCD")
    assert_same_bits(here.fit(X, Y), there.fit(in_chunks(X), in_chunks(Y)))
    assert set(tried[0]) <= {number for numbers in tried[1:] for number in numbers}


def test_a_cluster_that_loses_every_worker_is_no_place_to_fit_in(client, losing, uncharged):
    losing(*range(1, 100))
    _, there = both("DPLassoCD", random_state=None, accountant=uncharged)
    with pytest.raises(RuntimeError, match="17 workers were lost in one fit"):
        there.fit(in_chunks(X), in_chunks(Y))


def test_a_partition_that_is_made_anew_otherwise_ends_the_fit(client, losing, monkeypatch):
    losing(20)
    look = _workers.Workers.look

    def other(self, reader):
        found = look(self, reader)
        self._facts = {n: facts._replace(n_samples=1) for n, facts in self._facts.items()}
        return found

    monkeypatch.setattr(_workers.Workers, "look", other)
    accountant = PrivacyAccountant(50, 1e-3)
    _, there = both("DPLassoCD", random_state=None, accountant=accountant)
    with pytest.raises(RuntimeError, match="was made anew with other records"):
        there.fit(in_chunks(X, "7"), in_chunks(Y, "7"))
    assert len(accountant.entries()) == 1


@pytest.fixture
def processes():
    with (
        LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_candidates_of_a_private_search_run_on_the_cluster(client):
    """Through joblib: one entry, whatever was drawn."""
    accountant = PrivacyAccountant(2.0, 1e-3)
    model = local.DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=3)
    search = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, n_iter=3, delta=1e-4, n_jobs=2)
    with joblib.parallel_backend("dask", client=client):
        search.set_params(accountant=accountant).fit(X, Y)
    assert search.best_estimator_ is None or search.predict(X).shape == (N,)
    assert len(accountant.entries()) == 1


@pytest.mark.parametrize(
    ("module", "of"),
    [(on_dask, in_chunks), (on_dask, np.asarray), (local, in_chunks)],
    ids=["Dask of chunks", "Dask of arrays", "local of chunks"],
)
def test_a_private_search_of_partitions_is_refused_before_the_charge(client, module, of, uncharged):
    model = module.DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=1)
    search = PrivateSearchCV(model, {"alpha": [1.0]}, delta=1e-4, accountant=uncharged)
    with pytest.raises(TypeError, match=r"joblib\.parallel_backend\('dask'\)"):
        search.fit(of(X), of(Y))


def test_a_pipeline_before_a_model_of_partitions_is_refused_before_the_charge(client, uncharged):
    model = on_dask.DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1))
    pipeline = make_private_pipeline(
        DPStandardScaler(), model, epsilon=1.0, delta=1e-4, accountant=uncharged
    )
    with pytest.raises(ValueError, match="step 'dpridgeskgd' reads the partitions of a cluster"):
        pipeline.fit(in_chunks(X), in_chunks(Y))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "moment", "n_dead"),
    [("look", 1, 1), ("look", 1, 2), ("answer", 1, 2), ("answer", 40, 1)],
)
def test_workers_that_die_change_no_bit(processes, monkeypatch, name, moment, n_dead):
    """Before the charge, while scales are searched, in mid fit; one or two of four at once."""
    pids, call, killed, calls = processes.run(os.getpid), _workers._Held.call, [], []

    def killing(self, asked, *arguments):
        calls.append(asked)
        if calls.count(name) == moment and not killed:
            others = [pid for address, pid in pids.items() if address != self.address]
            killed.extend([pids[self.address], *others][:n_dead])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return call(self, asked, *arguments)

    monkeypatch.setattr(_workers._Held, "call", killing)
    accountant = PrivacyAccountant(50, 1e-3, testing=True)
    here, there = both("DPRidgeSkGD", client=processes, solver="cd")
    there.set_params(accountant=accountant).fit(in_chunks(X, "7"), in_chunks(Y, "7"))
    assert_same_bits(here.fit(X, Y), there)
    assert len(killed) == n_dead and len(accountant.entries()) == 1


@pytest.mark.slow
def test_a_fit_whose_scheduler_is_gone_fails_and_stays_charged(processes, monkeypatch):
    accountant = PrivacyAccountant(50, 1e-3)
    _, there = both("DPLassoCD", client=processes, random_state=None, accountant=accountant)
    n_asked, tell = [], _workers.Workers._tell
    closer = threading.Thread(target=processes.cluster.close)

    def closing(self, held, *message):
        n_asked.append(held.address)
        if len(n_asked) == 20:
            closer.start()
        return tell(self, held, *message)

    monkeypatch.setattr(_workers.Workers, "_tell", closing)
    monkeypatch.setattr(_workers, "_PATIENCE", 5.0)
    with pytest.raises(RuntimeError, match="stays charged|no worker|could not be made"):
        there.fit(in_chunks(X, "7"), in_chunks(Y, "7"))
    closer.join()
    assert len(accountant.entries()) == 1
    assert not hasattr(there, "coef_")


def test_a_closing_worker_is_a_lost_one(client):
    """Its threads take no more work, as it answers: what lies there is made anew elsewhere."""

    class Pending:
        def done(self):
            return True

        def result(self, timeout):
            with ThreadPoolExecutor(1) as threads:
                pass
            return threads.submit(int)

    workers = _workers.Workers(client, [])
    with pytest.raises(OSError, match="worker tcp://there is lost"):
        workers._result("tcp://there", Pending(), held=object())


CLIENT_THAT_DIES = """
import os, signal, sys
import dask.array as da
from distributed import Client, KilledWorker, LocalCluster
from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.dask import DPLassoCD, _workers

asked, tell = [], _workers.Workers._tell

def dying(self, held, *message):
    asked.append(held.address)
    if len(asked) == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return tell(self, held, *message)

_workers.Workers._tell = dying
cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=None)
with Client(cluster) as client:
    X = da.random.default_rng(0).uniform(-1, 1, (400, 3), chunks=(100, 3))
    accountant = PrivacyAccountant(5.0, 1e-3, path=sys.argv[1])
    model = DPLassoCD(max_iter=20, solver="cd", feature_bounds=(-1, 1),
                      target_bounds=(-1, 1), client=client, accountant=accountant)
    model.fit(X, X[:, 0])
"""


@pytest.mark.slow
def test_a_client_that_dies_in_mid_fit_leaves_one_entry(tmp_path):
    path = tmp_path / "ledger.db"
    done = subprocess.run([sys.executable, "-c", CLIENT_THAT_DIES, str(path)], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert len(PrivacyAccountant(5.0, 1e-3, path=path).entries()) == 1
