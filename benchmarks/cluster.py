"""A Dask cluster of this machine against a local fit: the same bits, how long, and what it costs.

``python benchmarks/cluster.py`` makes records in blocks (uniform features, a logistic target),
fits them with threads of this process and on a LocalCluster of as many processes, and prints

1. coefficients bit by bit, seconds, and milliseconds an update beyond the kernels, for the solvers
   that are named ("cd" of an eighth of the records: it sends a message for every coordinate);
2. seconds against the number of partitions;
3. what an update would take on a large cluster, from the parts that were measured here.

Local fits and those of the cluster take turns, and the better of each counts. X lies in memory
twice, here and with the workers.
"""

import argparse
import logging
import os
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from dpcd_sklearn import dask as on_dask
from dpcd_sklearn import linear_model as local
from dpcd_sklearn.exceptions import FewRecordsWarning, ReproducibleNoiseWarning
from dpcd_sklearn.testing import ReproducibleNoise

BLOCK = 2**15  # records that one seed makes
# Dask's words on a worker that ends are silenced; records are held on purpose, so no limit.
CLUSTER = {"memory_limit": 0, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
MODELS = {
    "skgd": ("DPLinearClassifier", {"solver": "skgd", "max_iter": 20}),
    "gcd": ("DPLinearClassifier", {"solver": "gcd", "max_iter": 20}),
    "newton": ("DPLinearClassifier", {"solver": "newton", "max_iter": 4}),
    "cd": ("DPLinearClassifier", {"solver": "cd", "max_iter": 1}),
}


def block_of(number, n_features):
    """Records of one block, the same wherever they are made."""
    X = np.random.default_rng(number).random((BLOCK, n_features), dtype=np.float32)
    X *= 2
    X -= 1
    return X


def records(start, stop, n_features):
    """Rows start, ..., stop - 1; both are multiples of BLOCK."""
    X = np.empty((stop - start, n_features), dtype=np.float32)
    for at in range(start, stop, BLOCK):
        X[at - start : at - start + BLOCK] = block_of(at // BLOCK, n_features)
    return X


def labels(X):
    """Labels by the sign of a sum of few features."""
    return (X[:, :5].sum(axis=1) > 0).astype(np.int8)


def on_cluster(client, n_samples, n_features, n_partitions):
    """The same records as Dask arrays, made where they lie: with each worker in turn.

    Dask alone may put most of them with one worker, for whom all others would wait.
    """
    edges = np.linspace(0, n_samples // BLOCK, n_partitions + 1).astype(int) * BLOCK
    addresses = sorted(client.nthreads())
    parts = [
        client.submit(
            records, *rows, n_features, workers=[addresses[k % len(addresses)]], pure=False
        )
        for k, rows in enumerate(zip(edges.tolist(), edges[1:].tolist(), strict=False))
    ]
    shapes = [(size, n_features) for size in np.diff(edges).tolist()]
    X = da.concatenate(
        [da.from_delayed(p, s, dtype=np.float32) for p, s in zip(parts, shapes, strict=True)]
    )
    (y,) = client.persist([X.map_blocks(labels, dtype=np.int8, drop_axis=1)])
    wait([*parts, y])  # made
    return X, y


def timed(fit, *args):
    began = time.perf_counter()
    model = fit(*args)
    return model, time.perf_counter() - began


def fitted(module, name, X, y, **more):
    estimator, params = MODELS[name]
    model = getattr(module, estimator)(
        feature_bounds=(-1, 1),
        classes=[0, 1],
        random_state=ReproducibleNoise(0),
        **(params | more),
    )
    return timed(model.fit, X, y)


def same_bits(model, other):
    return np.array_equal(model.coef_, other.coef_) and model.intercept_ == other.intercept_


def compare(client, X, y, names, n_threads, rounds):
    """Table 1."""
    dX, dy = on_cluster(client, *X.shape, 2 * n_threads)
    print(f"\n{len(X):,} records")
    print(f"{'solver':8} {'bits':6} {'local s':>8} {'Dask s':>8} {'ratio':>6} {'updates':>8} "
          f"{'ms beyond':>10}")
    for name in names:
        here, there = [], []
        for _ in range(rounds):
            model, seconds = fitted(local, name, X, y, n_threads=n_threads)
            here.append(seconds)
            other, seconds = fitted(on_dask, name, dX, dy)
            there.append(seconds)
        seconds, total = min(here), min(there)
        beyond = 1e3 * (total - seconds) / model.n_iter_
        print(f"{name:8} {'same' if same_bits(model, other) else 'OTHER':6} {seconds:8.2f} "
              f"{total:8.2f} {total / seconds:6.2f} {model.n_iter_:8d} {beyond:10.2f}",
              flush=True)


def against_partitions(client, X, y, name, counts):
    """Table 2."""
    print(f"\n{name}: seconds against partitions")
    for count in counts:
        if count * BLOCK > len(X):
            break
        dX, dy = on_cluster(client, *X.shape, count)
        _, seconds = fitted(on_dask, name, dX, dy)
        del dX, dy  # before the next ones are made
        print(f"{count:5d} partitions {seconds:8.2f} s", flush=True)


def message_time(client, n_features, n_updates=100):
    """Seconds of an update whose records are none to speak of: what messages take."""
    n_workers = len(client.nthreads())
    X, y = on_cluster(client, n_workers * BLOCK, n_features, n_workers)
    X, y = X[:: BLOCK // 16].rechunk((16, -1)), y[:: BLOCK // 16].rechunk((16,))
    seconds = [fitted(on_dask, "skgd", X, y, max_iter=n)[1] for n in (1, n_updates + 1)]
    return (seconds[1] - seconds[0]) / n_updates


def message_times(n_features, counts=(1, 16)):
    """Seconds of an update for so many workers of this process, who share its interpreter."""
    found = []
    for count in counts:
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, processes=False, **CLUSTER
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            with client.as_current():
                found.append(message_time(client, n_features))
    return found


def model_of_costs(rate, message, few, many, n_features):
    """Table 3: kernels, a message to each worker, and the sum of their answers."""
    each = (many - few) / 15
    print(f"\nan update of all coordinates, from kernels that read {rate:.3g} cells a second and "
          f"core,\n{1e3 * message:.2f} ms for the messages of the workers above, and "
          f"{1e3 * each:.2f} ms more for each more worker\n(of 16 in one process: an upper bound)")
    print(f"{'records':>8} {'workers':>8} {'kernels s':>10} {'messages s':>11} {'MB of sums':>11}")
    for n_samples, n_workers in ((10**7, 2), (10**8, 10), (10**9, 100), (10**10, 1000)):
        kernels = n_samples * n_features / n_workers / rate
        print(f"{n_samples:8.0e} {n_workers:8d} {kernels:10.2f} {few + each * n_workers:11.3f} "
              f"{8e-6 * n_features * n_workers:11.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--records", type=float, default=1e7)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--solvers", nargs="*", default=["skgd", "gcd", "newton", "cd"])
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 2, 4, 16, 64, 256])
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    warnings.simplefilter("ignore", FewRecordsWarning)  # bits do not depend on it
    n_samples = max(1, int(args.records) // BLOCK) * BLOCK
    X = records(0, n_samples, args.features)
    y = labels(X)
    print(f"{n_samples:,} records of {args.features} float32 features, {os.cpu_count()} cores, "
          f"{args.workers} workers, load {os.getloadavg()[0]:.1f}")
    with (
        LocalCluster(n_workers=args.workers, threads_per_worker=1, **CLUSTER) as cluster,
        Client(cluster) as client,
    ):
        whole = [name for name in args.solvers if name != "cd"]
        if whole:
            compare(client, X, y, whole, args.workers, args.rounds)
        if "cd" in args.solvers:
            n = max(1, len(X) // BLOCK // 8) * BLOCK
            compare(client, X[:n], y[:n], ["cd"], args.workers, args.rounds)
        if args.partitions:
            against_partitions(client, X, y, "gcd", args.partitions)
        message = message_time(client, args.features)
        model, seconds = fitted(local, "skgd", X, y, n_threads=1)
    few, many = message_times(args.features)
    rate = X.size * model.n_iter_ / seconds
    model_of_costs(rate, message, few, many, args.features)


if __name__ == "__main__":
    main()
