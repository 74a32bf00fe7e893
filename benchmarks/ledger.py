"""Time of a call to the accountant against the number of entries in its ledger.

    python benchmarks/ledger.py [--quick]

The commit of a charge waits for the disk, which says more about the machine than about the ledger:
its time stands in a column of its own. Each time is the median of 20 calls, each on a handle that
was pickled when the ledger was new. Of `verify`, which waits for nothing, the processor's time.
"""

import argparse
import contextlib
import pickle
import statistics
import time

from papers import print_environment

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.privacy.accounting._events import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import _filter, _ledger
from dpcd_sklearn.privacy.ledger._facts import facts_of_charge

EVENT = FitEvent((GaussianEvent(5000.0, 40),))
FACTS = {
    "estimator": "DPLassoCD",
    "params": {"alpha": 0.1, "epsilon": 0.5, "max_iter": 40},
    "n_samples": 1000,
    "n_features": 10,
}
CALLS = 20


def fill(accountant, entries):
    """Write entries as charges do, but in one transaction: nobody waits for the disk each time."""
    ledger = accountant._ledger
    facts = facts_of_charge(EVENT, _filter.price(ledger.parameters, EVENT), None, **FACTS)
    with _ledger.connected(ledger.path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        balance, previous = ledger._head(connection, ledger.seen)
        while balance.entries < entries:
            balance = balance.after(facts)
            previous = _ledger.insert(connection, balance, previous, facts)
        connection.execute("COMMIT")


class Watched:
    """A connection whose commits are timed."""

    def __init__(self, connection, commits):
        self._connection, self._commits = connection, commits

    def execute(self, statement, *args):
        start = time.perf_counter()
        try:
            return self._connection.execute(statement, *args)
        finally:
            if statement == "COMMIT":
                self._commits.append(time.perf_counter() - start)


def milliseconds(times):
    return f"{1e3 * statistics.median(times):10.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 entries")
    sizes = (0, 10, 1_000) if parser.parse_args().quick else (0, 100, 10_000, 100_000)
    print_environment()
    names = ("charge", "its commit", "the rest", "spent", "remaining", "verify")
    print("\nTime of a call in ms\n\n   entries" + "".join(f"{name:>11}" for name in names))
    commits, connected = [], _ledger.connected

    @contextlib.contextmanager
    def watched(*args, **options):
        with connected(*args, **options) as connection:
            yield Watched(connection, commits)

    accountant = PrivacyAccountant(epsilon=1e3, delta=1e-6)
    fresh = pickle.dumps(accountant)
    for entries in sizes:
        fill(accountant, entries)
        times = {"charge": [], "spent": [], "remaining": [], "verify": []}
        _ledger.connected = watched
        commits.clear()
        for name, found in times.items():
            clock = time.process_time if name == "verify" else time.perf_counter
            for _ in range(3 if name == "verify" else CALLS):
                handle = pickle.loads(fresh)
                start = clock()
                handle.charge(EVENT, **FACTS) if name == "charge" else getattr(handle, name)()
                found.append(clock() - start)
        _ledger.connected = connected
        rest = [whole - commit for whole, commit in zip(times["charge"], commits, strict=True)]
        columns = (times["charge"], commits, rest, *list(times.values())[1:])
        print(f"{entries:10,}" + "".join(" " + milliseconds(column) for column in columns))


if __name__ == "__main__":
    main()
