"""Events that a budget admits, and the time of a call to the accountant against its entries.

    python benchmarks/ledger.py [--quick]

*What is admitted.* Of each kind of work the largest ε of one fit or search that a budget admits: by
the ledger; by the sum of Rényi divergences at one order, as a filter without residues would; and by
the exact composition of events that are fixed beforehand, which no filter exceeds; at the budget's
δ. The accountant itself is asked a ten-thousandth below and above.

*Time.* The commit of a charge waits for the disk, which says more about the machine than about the
ledger: its time stands in a column of its own. Each time is the median of 20 calls, each on a
handle that was pickled when the ledger was new. Of `verify`, which waits for nothing, the
processor's time.
"""

import argparse
import contextlib
import math
import pickle
import statistics
import time
import warnings

from reproduce_papers import print_environment
from scipy.optimize import brentq

from dpcd_sklearn import DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    gaussian_fit_event,
    greedy_fit_event,
    search_fit_event,
)
from dpcd_sklearn.privacy.accounting._accounting import best_order, conversion_gap, epsilon_of, rdp
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_epsilon, gdp_mu
from dpcd_sklearn.privacy.ledger import _filter, _ledger
from dpcd_sklearn.privacy.ledger._facts import facts_of_charge, signature_of

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
    price = _filter.price(ledger.parameters, EVENT, False)
    facts = facts_of_charge(EVENT, price, None, signature=signature_of("auto", ""), **FACTS)
    with _ledger.connected(ledger.path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        balance, previous = ledger._head(connection, ledger.seen)
        while balance.entries < entries:
            balance = balance.after(facts)
            previous = _ledger.insert(connection, balance, previous, facts)
        connection.execute("COMMIT")


class Watched:
    """A connection whose commits are timed."""

    row_factory = property(fset=lambda self, kind: setattr(self._connection, "row_factory", kind))

    def __init__(self, connection, commits):
        self._connection, self._commits = connection, commits

    def execute(self, statement, *args):
        start = time.perf_counter()
        try:
            return self._connection.execute(statement, *args)
        finally:
            if statement == "COMMIT":
                self._commits.append(time.perf_counter() - start)


# ---- what a budget admits -----------------------------------------------------------------------


def raw(epsilon, delta):
    """A default regression of 100,000 raw records and 8 features, which finds its scales."""
    return DPLinearRegressor(epsilon=epsilon, delta=delta).planned_event(100_000, 8)


def greedy(epsilon, delta):
    return greedy_fit_event(Budget(epsilon, delta), 40, 0.8)


def gaussian(epsilon, delta):
    return gaussian_fit_event(Budget(epsilon, delta), 40)


def search(epsilon, delta):
    return search_fit_event(Budget(epsilon, delta), "logarithmic", 10.0, 1, True, 1)[0]


def search_of_any(epsilon, delta):
    """Over candidates that are not Gaussian."""
    return search_fit_event(Budget(epsilon, delta), "logarithmic", 10.0, 1, False, 1)[0]


# Mixtures of events of one ε, each kind with its number, the first charge first.
WORK = {
    "one raw regression": ((raw, 1),),
    "one greedy classifier": ((greedy, 1),),
    "one search": ((search, 1),),
    "one search of any fits": ((search_of_any, 1),),
    "a search and three fits": ((search, 1), (gaussian, 3)),
    "three fits, then a search": ((gaussian, 3), (search, 1)),
    "13 Gaussian fits": ((gaussian, 13),),
    "13 raw regressions": ((raw, 13),),
    "13 greedy fits": ((greedy, 13),),
    "100 Gaussian fits": ((gaussian, 100),),
    "100 greedy fits": ((greedy, 100),),
}


# ---- rules: which share of a budget is taken, infinite of what is never admitted ----------------


def by_ledger(events, budget):
    """By the sums of the ledger's own prices."""
    ledger = _filter.fixed_parameters(*budget, "replace_one", None)
    prices = [_filter.price(ledger, event, i == 0) for i, event in enumerate(events)]
    return sum(price.amount for price in prices) / ledger.limit


def by_one_order(events, budget):
    order, _ = best_order(*budget)
    amounts = [rdp(event, order) for event in events]
    limit = budget[0] - conversion_gap(order, budget[1])
    return None if None in amounts else sum(amounts) / limit


def by_composition(events, budget):
    """The number that a whole fixed beforehand admits; as μ², as the others are."""
    whole = FitEvent(tuple(r for event in events for r in event.releases))
    epsilon = epsilon_of(whole, budget[1])
    return (gdp_mu(epsilon, budget[1]) / gdp_mu(*budget)) ** 2


def admits(events, budget):
    """The accountant's number, which has the last word."""
    accountant = PrivacyAccountant(*budget)
    try:
        for event in events:
            accountant.charge(event)
    except BudgetExceededError:
        return False
    return True


def largest(work, rule, budget):
    """The largest ε of one event that a rule admits; None where it knows no bound."""

    def events(epsilon):
        return [kind(epsilon, budget[1]) for kind, count in work for _ in range(count)]

    def excess(log_epsilon):
        share = rule(events(math.exp(log_epsilon)), budget)
        return None if share is None else math.log(min(share, 10.0))

    fits = sum(count for _, count in work)
    at_most = excess(math.log(budget[0])) if fits == 1 else 1.0
    if at_most is None or at_most <= 1e-9:
        return None if at_most is None else budget[0]
    # a Gaussian of a share of μ² is near
    guess = math.log(gdp_epsilon(gdp_mu(*budget) / math.sqrt(fits), budget[1]))
    if (found := excess(guess)) is None:
        return None
    step = -math.copysign(0.06, found)
    while excess(guess + step) * found > 0:
        guess += step
    found = math.exp(brentq(excess, *sorted((guess, guess + step)), xtol=2e-5))
    if rule is by_ledger and fits < 20:
        assert admits(events(found * (1 - 1e-4)), budget)
        assert not admits(events(found * (1 + 1e-4)), budget)
    return found


def print_admitted(quick):
    names = ("ledger", "one order", "composed", "composed / ledger")
    for budget in ((1.0, 1e-6), (10.0, 1e-5)):
        print(f"\nThe largest epsilon of each fit or search within {budget}\n")
        print(f"{'':28}" + "".join(f"{name:>18}" for name in names))
        for name, work in WORK.items():
            if quick and sum(count for _, count in work) > 4:
                continue
            found = [
                largest(work, rule, budget) for rule in (by_ledger, by_one_order, by_composition)
            ]
            cells = ["-" if value is None else f"{value:.4f}" for value in found]
            cells.append(f"{found[2] / found[0]:.4f}")
            print(f"{name:28}" + "".join(f"{cell:>18}" for cell in cells))


# ---- time ---------------------------------------------------------------------------------------


def milliseconds(times):
    return f"{1e3 * statistics.median(times):10.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 entries")
    quick = parser.parse_args().quick
    sizes = (0, 10, 1_000) if quick else (0, 100, 10_000, 100_000)
    print_environment()
    warnings.simplefilter("ignore")
    print_admitted(quick)
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
