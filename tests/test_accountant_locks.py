"""A file system that keeps no locks is found out by a second process, once, and refused."""

import contextlib
import os
import pickle
import sqlite3
import stat
import subprocess
import sys

import pytest
from forks import in_a_new_process

from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import PrivacyAccountant, _files, _sqlite

SMALL = FitEvent((GaussianEvent(1000.0),))
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")


@pytest.fixture(autouse=True)
def nothing_is_proved(monkeypatch):
    monkeypatch.setattr(_files, "_proved", set())


@pytest.fixture
def no_locks(monkeypatch):
    """As on a file system that says yes to everybody."""
    monkeypatch.setattr(_sqlite, "URI_OPTIONS", "mode=rw&nolock=1")


@pytest.fixture
def asked(monkeypatch):
    """The processes that were asked."""
    calls, run = [], subprocess.run

    def counted(*args, **options):
        calls.append(args)
        return run(*args, **options)

    monkeypatch.setattr(_files.subprocess, "run", counted)
    return calls


def test_no_ledger_is_created_without_locks(tmp_path, no_locks):
    path = tmp_path / "a.ledger"
    with pytest.raises(LedgerError, match="no working locks.*nothing was released. Put the") as at:
        PrivacyAccountant(5.0, 1e-5, path=path)
    assert str(path) in str(at.value) and ".dpcd" not in str(at.value)
    assert os.listdir(tmp_path) == []
    with pytest.raises(LedgerError, match="no working locks"):
        PrivacyAccountant(5.0, 1e-5)


def test_a_ledger_that_came_to_such_a_place_is_read_and_not_charged(tmp_path, monkeypatch):
    accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / "a.ledger")
    accountant.charge(SMALL)
    monkeypatch.setattr(_sqlite, "URI_OPTIONS", "mode=rw&nolock=1")
    monkeypatch.setattr(_files, "_proved", set())  # another device
    for _ in range(2):
        with pytest.raises(LedgerError, match="no working locks"):
            accountant.charge(SMALL)
    assert len(accountant.entries()) == 1 and accountant.spent().epsilon > 0


def test_one_process_is_asked_for_all_ledgers_of_a_file_system(tmp_path, asked):
    for number in range(3):
        accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / f"{number}.ledger")
        accountant.charge(SMALL)
    assert len(asked) == 1
    PrivacyAccountant.open(accountant.path).charge(SMALL)
    assert len(asked) == 1


WORKER = """
import pickle, sys
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import _files

def refuse(*args):
    raise SystemExit("asked")

_files._ask_interpreter = refuse
accountant = pickle.loads(bytes.fromhex(sys.argv[1]))
print(accountant.charge(FitEvent((GaussianEvent(1000.0),))).entry_id)
"""


def test_a_worker_that_gets_a_pickle_asks_nobody(tmp_path):
    accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / "a.ledger")
    assert in_a_new_process(WORKER, pickle.dumps(accountant).hex()) == "1\n"
    # what was found out elsewhere says nothing about this machine
    state = accountant.__getstate__()
    machine, device = state["locks"]
    for foreign in (None, ("elsewhere", device), (machine, device + 1)):
        accountant.__getstate__ = None
        copied = PrivacyAccountant.__new__(PrivacyAccountant)
        _files._proved.clear()
        copied.__setstate__(state | {"locks": foreign})
        assert _files.proof(copied.path) is None


@pytest.mark.parametrize("executable", [None, "", "/nowhere/python", "/bin/true", "odd"])
@needs_fork
def test_an_odd_interpreter_is_no_witness_and_a_forked_child_is(
    executable, tmp_path, monkeypatch, asked
):
    if executable == "odd":  # its name is Python, its answers are not
        odd = tmp_path / "python-of-ours"
        odd.write_text("#!/bin/sh\necho held held\n")
        odd.chmod(odd.stat().st_mode | stat.S_IXUSR)
        executable = str(odd)
    monkeypatch.setattr(sys, "executable", executable)
    path = tmp_path / "a.ledger"
    PrivacyAccountant(5.0, 1e-5, path=path).charge(SMALL)
    assert len(_files._proved) == 1
    assert len(asked) == ("python" in (executable or ""))
    # and it finds out what is to be found out
    monkeypatch.setattr(_files, "_proved", set())
    monkeypatch.setattr(_sqlite, "URI_OPTIONS", "mode=rw&nolock=1")
    with pytest.raises(LedgerError, match="no working locks"):
        PrivacyAccountant.open(path).charge(SMALL)
    # without a witness nothing is charged
    monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(_sqlite, "URI_OPTIONS", "mode=rw")
    with pytest.raises(LedgerError, match=r"nobody could be asked.*nothing was released\. Allow"):
        PrivacyAccountant.open(path).charge(SMALL)
    assert len(PrivacyAccountant.open(path).entries()) == 1


def test_the_question_leaves_the_lock_and_the_ledger_as_they_were(tmp_path):
    accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / "a.ledger")
    monkey = _files._proved
    for ask in (
        lambda: _files._ask_interpreter(_sqlite.uri(accountant.path)),
        *([lambda: _files._ask_fork(accountant.path)] if hasattr(os, "fork") else []),
    ):
        with _sqlite.connected(accountant.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            assert ask() == ask() == "held"
            other = sqlite3.connect(accountant.path, timeout=0, isolation_level=None)
            with contextlib.closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        assert ask() == "free"
    assert accountant.entries() == [] and monkey is _files._proved
