"""One ledger for clones, copies, threads, forks and worker processes: each fit is charged once."""

import copy
import math
import os
import pickle
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from forks import at_once, forked, in_a_new_process, no_hard_links
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import DPLassoCD
from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    gdp_epsilon,
    gdp_mu,
    search_fit_event,
)
from dpcd_sklearn.privacy.ledger import PrivacyAccountant, _filter

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")

SMALL = FitEvent((GaussianEvent(100.0),))


def budget_for(fits, **params):
    """An accountant and an event of which it admits exactly `fits`."""
    accountant = PrivacyAccountant(1.0, 1e-6, **params)
    return accountant, FitEvent((GaussianEvent(math.sqrt(fits) / gdp_mu(1.0, 0.99e-6)),))


def charge_many(accountant, event, attempts):
    """Try to charge; return the numbers of the entries that were admitted."""
    admitted = []
    for _ in range(attempts):
        try:
            admitted.append(accountant.charge(event).entry_id)
        except BudgetExceededError:
            pass
    return admitted


# ---- handles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copier",
    [
        copy.copy,
        copy.deepcopy,
        clone,
        lambda a: clone(a, safe=False),
        lambda a: clone(DPLassoCD(accountant=a)).accountant,
        lambda a: clone(clone(make_pipeline(DPLassoCD(accountant=a))))[-1].accountant,
        lambda a: copy.copy(DPLassoCD(accountant=a)).accountant,
        lambda a: copy.deepcopy(make_pipeline(DPLassoCD(accountant=a)))[-1].accountant,
        lambda a: pickle.loads(pickle.dumps(a)),
        lambda a: cloudpickle.loads(cloudpickle.dumps(a)),
        lambda a: pickle.loads(pickle.dumps(DPLassoCD(accountant=a))).accountant,
    ],
)
def test_copies_share_the_ledger(copier):
    accountant, event = budget_for(3)
    accountant.charge(event)
    copied = copier(accountant)
    assert copied == accountant and hash(copied) == hash(accountant)
    assert repr(copied) == repr(accountant)
    assert copied.charge(event).entry_id == 2
    assert accountant.charge(event).entry_id == 3
    for handle in (copied, accountant):
        with pytest.raises(BudgetExceededError):
            handle.charge(event)
        assert len(handle.entries()) == 3


def test_a_refused_fit_raises_out_of_a_parallel_search():
    model = DPLassoCD(epsilon=0.02, delta=1e-7, accountant=PrivacyAccountant(0.05, 1e-6))
    search = GridSearchCV(
        model, {"alpha": [1.0, 2.0, 3.0]}, cv=KFold(3), n_jobs=2, error_score="raise"
    )
    with pytest.raises(BudgetExceededError, match="remaining"):
        search.fit(np.ones((30, 2)), np.zeros(30))
    assert 0 < len(model.accountant.entries()) < 10


# ---- races ------------------------------------------------------------------------------------


def test_threads_never_overspend():
    accountant, event = budget_for(23)
    admitted = []
    assert not at_once(*8 * [lambda: admitted.extend(charge_many(accountant, event, 5))])
    assert sorted(admitted) == list(range(1, 24))
    assert len(accountant.entries()) == 23


@needs_fork
@pytest.mark.parametrize("fits", [1, 137])
def test_eighth_process_never_overspends(fits, tmp_path):
    accountant, event = budget_for(fits, path=tmp_path / "shared.ledger")
    start = time.monotonic() + 0.3

    def work():
        time.sleep(max(0.0, start - time.monotonic()))  # all at once
        return charge_many(accountant, event, 50)

    admitted = [wait() for wait in [forked(work) for _ in range(8)]]
    assert sorted(sum(admitted, [])) == list(range(1, fits + 1))
    entries = accountant.entries()
    assert [entry.id for entry in entries] == list(range(1, fits + 1))
    assert math.fsum(entry.amount for entry in entries) <= accountant._ledger.parameters.limit
    assert accountant.spent().epsilon <= 1.0


@needs_fork
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_of_processes_that_race_for_the_first_charge_one_has_its_price(share, tmp_path):
    """The others are counted by their covers; of a whole budget nothing is left for them."""
    event = search_fit_event(Budget(share, 1e-6), "logarithmic", 10.0, 1, True, 0)[0]
    accountant = PrivacyAccountant(1.0, 1e-6, path=tmp_path / "shared.ledger")
    start = time.monotonic() + 0.2

    def work():
        time.sleep(max(0.0, start - time.monotonic()))  # all at once
        return charge_many(accountant, event, 2)

    admitted = sum([wait() for wait in [forked(work) for _ in range(6)]], [])
    parameters, entries = accountant._ledger.parameters, accountant.entries()
    assert sorted(admitted) == [entry.id for entry in entries]
    first, later = (_filter.price(parameters, event, is_first) for is_first in (True, False))
    assert [entry.amount for entry in entries] == [
        price.amount for price in (first, *[later] * (len(entries) - 1))
    ]
    assert first.amount < later.amount
    assert sum(entry.amount for entry in entries) <= parameters.limit
    assert len(entries) == 1 or share < 1


@needs_fork
def test_parts_that_were_reserved_are_not_taken_by_a_forked_child():
    parts = [FitEvent((GaussianEvent(20.0),)), FitEvent((GaussianEvent(30.0),))]
    accountant = PrivacyAccountant(1.0, 1e-6)
    prepaid = accountant.reserve(parts)

    def refused():
        with pytest.raises(RuntimeError, match="in the process that charged"):
            prepaid.charge(parts[0])
        with pytest.raises(TypeError, match="in the process that charged"):
            pickle.dumps(prepaid)
        return True

    assert forked(refused)()
    for part in parts:
        assert prepaid.charge(part).redeem() == part
    for part in (*parts, FitEvent((GaussianEvent(25.0),))):
        with pytest.raises(RuntimeError, match="redeemed before, or is no part"):
            prepaid.charge(part)
    assert len(accountant.entries()) == 1


@needs_fork
def test_processes_that_create_one_path_at_once_share_one_ledger(tmp_path):
    path = tmp_path / "shared.ledger"
    start = time.monotonic() + 0.3

    def work():
        time.sleep(max(0.0, start - time.monotonic()))
        accountant = PrivacyAccountant(1.0, 1e-5, path=path)
        accountant.charge(SMALL)
        return accountant._ledger.parameters.ledger_id

    identities = {wait() for wait in [forked(work) for _ in range(8)]}
    assert len(identities) == 1
    assert len(PrivacyAccountant.open(path).entries()) == 8
    assert os.listdir(tmp_path) == [path.name]


def test_a_name_that_another_creator_has_reserved_is_waited_for(tmp_path, monkeypatch):
    """Without hard links the name stands empty before the ledger is moved there."""
    path, replace, reserved = tmp_path / "shared.ledger", os.replace, threading.Event()

    def slow(source, target):
        reserved.set()
        time.sleep(0.2)
        replace(source, target)

    monkeypatch.setattr(os, "link", no_hard_links)
    monkeypatch.setattr(os, "replace", slow)
    made = []
    create = threading.Thread(target=lambda: made.append(PrivacyAccountant(1.0, 1e-5, path=path)))
    create.start()
    assert reserved.wait(30)
    other = PrivacyAccountant(1.0, 1e-5, path=path)
    create.join()
    assert made == [other]


def test_reports_read_one_snapshot_while_others_charge():
    accountant = PrivacyAccountant(5.0, 1e-5)

    def write():
        for _ in range(60):
            accountant.charge(SMALL)

    def read():
        for _ in range(30):
            report = accountant.report()
            n_entries = len(report.entries)
            assert [entry.id for entry in report.entries] == list(range(1, n_entries + 1))
            together = math.fsum(entry.amount for entry in report.entries)
            spent = gdp_epsilon(math.sqrt(together), 1e-5)
            assert report.spent.epsilon == pytest.approx(spent, rel=1e-6)

    assert not at_once(write, read, write)
    assert len(accountant.entries()) == 120


# ---- forks --------------------------------------------------------------------------------------


@needs_fork
def test_a_fork_during_a_charge_in_another_thread_leaves_no_lock_behind():
    """SQLite's own table of locks is copied by fork; no connection may be open then."""
    accountant = PrivacyAccountant(5.0, 1e-5)
    stop, charged = threading.Event(), []

    def work():
        while not stop.is_set():
            charged.append(accountant.charge(SMALL).entry_id)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        waits = []
        for _ in range(15):
            waits.append(forked(lambda: accountant.charge(SMALL).entry_id))
            time.sleep(0.003)
        charged_by_children = [wait() for wait in waits]
    finally:
        stop.set()
        writer.join()
    assert sorted(charged + charged_by_children) == [e.id for e in accountant.entries()]


@needs_fork
def test_a_temporary_ledger_lives_as_long_as_its_creating_process():
    program = """
import os, pickle, sys
from dpcd_sklearn.privacy.ledger import PrivacyAccountant
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
accountant = PrivacyAccountant(5.0, 1e-5)
if os.fork() == 0:
    copied = pickle.loads(pickle.dumps(accountant))
    copied.charge(FitEvent((GaussianEvent(100.0),)))
    copied.close()
    sys.exit()  # runs the exit handlers that the fork inherited
os.wait()
assert len(accountant.entries()) == 1
accountant.close()
assert os.path.exists(accountant.path)
print(accountant.path)
"""
    path = Path(in_a_new_process(program).strip())
    assert path.is_absolute() and not path.exists() and not path.parent.exists()
