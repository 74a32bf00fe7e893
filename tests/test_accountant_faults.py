"""Faults around a ledger: it fails closed, and keeps every charge that returned."""

import contextlib
import os
import pickle
import platform
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from flat import SOLVERS
from forks import ChildDiedError, die_at_line, forked

from dpcd_sklearn import DPLassoCD
from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import PrivacyAccountant, _ledger, _sqlite

if not hasattr(os, "fork"):
    pytest.skip("this system can't fork", allow_module_level=True)
resource = pytest.importorskip("resource")

SMALL = FitEvent((GaussianEvent(1000.0),))


@pytest.fixture
def accountant(tmp_path):
    """A ledger with three entries."""
    accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / "a.ledger")
    for number in range(1, 4):
        accountant.charge(SMALL, estimator=f"fit {number}", n_samples=100)
    return accountant


def assert_fails_closed(accountant, match, exceptions=()):
    """Whatever asks the ledger gets a LedgerError that says that nothing was released."""
    calls = {
        "charge": lambda: accountant.charge(SMALL),
        "spent": accountant.spent,
        "remaining": accountant.remaining,
        "entries": accountant.entries,
        "verify": accountant.verify,
        "report": accountant.report,
    }
    for name, call in calls.items():
        if name not in exceptions:
            with pytest.raises(LedgerError, match=match) as caught:
                call()
            text = str(caught.value)
            assert "nothing was released. " in text and accountant.path in text
            assert text.split("nothing was released. ")[1]  # what to do


def edit(path, *statements):
    """Change a ledger by hand, as somebody with a database browser would."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


# ---- kills --------------------------------------------------------------------------------------


def kill_while_charging(accountant, delay):
    """SIGKILL a child that charges without end; the numbers that were returned to it."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(60)
            while True:
                entry_id = accountant.charge(SMALL, params={"x": "y" * 500}).entry_id
                os.write(write_end, entry_id.to_bytes(4, "big"))
        finally:
            os._exit(1)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answers = pipe.read(4)  # it is at work
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        answers += pipe.read()
    os.waitpid(pid, 0)
    assert len(answers) % 4 == 0
    return [int.from_bytes(answers[i : i + 4], "big") for i in range(0, len(answers), 4)]


def check_kills(kills):
    accountant = PrivacyAccountant(5.0, 1e-5)
    delays, before, unfinished = random.Random(0), 0, 0
    for _ in range(kills):
        returned = kill_while_charging(accountant, delays.uniform(0.0, 0.012))
        unfinished += os.path.exists(accountant.path + "-journal")
        entries = accountant.entries()  # verifies, and rolls an unfinished entry back
        assert [entry.id for entry in entries] == list(range(1, len(entries) + 1))
        assert returned == list(range(before + 1, before + 1 + len(returned)))
        # The last charge may have been committed without the time to say so, never the reverse.
        assert len(entries) - (before + len(returned)) in (0, 1)
        assert all(entry.params == {"x": "y" * 500} for entry in entries)
        before = len(entries)
        if before > 300:  # a short ledger keeps the time in the transaction, not in the check
            accountant, before = PrivacyAccountant(5.0, 1e-5), 0
    return unfinished


def test_twenty_kills_leave_a_whole_ledger_with_every_charge_that_returned():
    check_kills(20)


def kill_at_line(accountant, number):
    """Charge in a child that is killed before the given line of the storage; None if it ended."""

    def charge():
        die_at_line(number, _ledger)
        return accountant.charge(SMALL).entry_id

    try:
        return forked(charge)()
    except ChildDiedError:
        return None


def test_a_kill_anywhere_in_a_charge_leaves_the_entry_whole_or_absent(tmp_path):
    outcomes = []
    for number in range(1, 900, 3):  # not at each line: a fork takes its time
        accountant = PrivacyAccountant(5.0, 1e-5, path=tmp_path / f"{number}.ledger")
        returned = kill_at_line(accountant, number)
        entries = accountant.entries()
        outcomes.append(len(entries))
        assert accountant.charge(SMALL).entry_id == len(entries) + 1
        if returned:
            break
    assert outcomes == sorted(outcomes)  # absent, then whole
    assert outcomes[0] == 0 and outcomes[-1] == 1 and len(outcomes) > 20


def test_a_fit_killed_after_its_charge_leaves_one_entry(tmp_path, monkeypatch):
    def killed(self, *args):
        os.kill(os.getpid(), signal.SIGKILL)

    accountant = PrivacyAccountant(10.0, 1e-3, path=tmp_path / "ledger.db")
    model, records = DPLassoCD(accountant=accountant), (np.eye(6), [0, 1, 0, 1, 0, 1])
    with monkeypatch.context() as in_the_child:
        for solver in SOLVERS.values():
            in_the_child.setattr(solver.planned_by, "run", killed)
        wait = forked(lambda: model.fit(*records))
    with pytest.raises(ChildDiedError):
        wait()
    (entry,) = accountant.entries()
    assert entry.estimator == "DPLassoCD" and entry.n_samples == 6
    model.fit(*records)  # the ledger goes on
    assert len(accountant.entries()) == 2


# ---- the disk -----------------------------------------------------------------------------------


def test_a_full_disk_refuses_the_charge_and_keeps_the_others(accountant):
    size = os.path.getsize(accountant.path)

    def fill():
        # Python ignores SIGXFSZ: a write past the limit fails as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, size + 8192))
        charged = 0
        while charged < 1000:
            try:
                accountant.charge(SMALL, params={"x": "y" * 3000})
            except LedgerError as error:
                return charged, str(error)
            charged += 1
        return None

    charged, text = forked(fill)()
    assert 0 < charged < 10
    assert "no space is left" in text and "nothing was released. Make room" in text
    assert len(accountant.entries()) == 3 + charged
    assert accountant.charge(SMALL).entry_id == 3 + charged + 1


@pytest.mark.parametrize("read_only", ["file", "folder", "both"])
def test_a_read_only_ledger_can_be_read_and_not_charged(read_only):
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # tmp_path can't be entered by other users
    try:
        accountant = PrivacyAccountant(5.0, 1e-5, path=folder / "a.ledger")
        accountant.charge(SMALL)
        os.chmod(accountant.path, 0o444 if read_only != "folder" else 0o666)
        os.chmod(folder, 0o555 if read_only != "file" else 0o777)

        def use():
            if os.getuid() == 0:  # permissions don't bind root
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            spent = accountant.spent()
            try:
                accountant.charge(SMALL)
            except LedgerError as error:
                return spent, str(error)

        spent, text = forked(use)()
        assert spent.epsilon > 0
        assert "can't be opened for writing" in text
        assert "nothing was released. Make the file and its folder" in text
        assert len(accountant.entries()) == 1
    finally:
        os.chmod(folder, 0o700)
        shutil.rmtree(folder)


def test_an_unreadable_folder_gives_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="nothing was released. Choose a path in an existing"):
        PrivacyAccountant(5.0, 1e-5, path=tmp_path / "missing" / "a.ledger")
    with pytest.raises(LedgerError, match="nothing was released"):
        PrivacyAccountant(5.0, 1e-5, path=tmp_path)
    with pytest.raises(LedgerError, match="does not exist"):
        PrivacyAccountant.open(tmp_path / "a.ledger")
    assert os.listdir(tmp_path) == []


def test_a_deleted_working_directory_is_named(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for ask in (PrivacyAccountant.open, lambda path: PrivacyAccountant(5.0, 1e-5, path=path)):
        with pytest.raises(LedgerError, match="working directory was deleted.*absolute path"):
            ask("a.ledger")
    path = tmp_path / "a.ledger"
    assert PrivacyAccountant(5.0, 1e-5, path=path).charge(SMALL).entry_id == 1


def test_no_temporary_folder_gives_no_ledger(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(LedgerError, match="Give a path"):
        PrivacyAccountant(5.0, 1e-5)


# ---- files that went away or changed ------------------------------------------------------------


def test_a_ledger_that_goes_away_during_a_charge_fails_closed(accountant, monkeypatch):
    check = _ledger.check_locks

    def unlink_first(path, *args):
        os.unlink(path)
        check(path, *args)

    monkeypatch.setattr(_ledger, "check_locks", unlink_first)
    with pytest.raises(LedgerError, match="does not exist"):
        accountant.charge(SMALL)


def test_a_handle_on_another_machine_names_the_path_and_the_host_it_came_from(
    accountant, monkeypatch
):
    home = platform.node()
    pickled = pickle.dumps(accountant)
    os.unlink(accountant.path)
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    arrived = pickle.loads(pickled)  # loads: only a use needs the file
    assert repr(arrived) == repr(accountant)
    assert_fails_closed(arrived, f"'elsewhere' .it was created on host {home!r}")


def make_a_folder(path):
    os.unlink(path)
    os.mkdir(path)


def make_foreign(path):
    os.unlink(path)
    edit(path, "CREATE TABLE entries (id INTEGER PRIMARY KEY, amount REAL)")


FAULTS = {
    "deleted": (os.unlink, "does not exist"),
    "a folder": (make_a_folder, "is no regular file"),
    "no database": (lambda path: Path(path).write_text("alpha,beta\n" * 1000), "damaged or no"),
    "another database": (make_foreign, "no ledger of dpcd_sklearn"),
    "no tables": (lambda path: edit(path, "DROP TABLE entries"), "no such table"),
}
FAULTS |= {
    f"schema {version}": (
        lambda path, version=version: edit(path, f"PRAGMA user_version = {version}"),
        f"schema version {version}.*Use the version of dpcd_sklearn",
    )
    for version in (0, 2, 3, 5)
}
FAULTS |= {
    f"cut to {length} bytes": (
        lambda path, length=length: os.truncate(path, length),
        "nothing was released",
    )
    for length in (0, 1, 100, 4096, 5000)
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_ledger_fails_closed_and_no_fit_reads_a_record(name, accountant, monkeypatch):
    break_it, match = FAULTS[name]
    break_it(accountant.path)
    left = Path(accountant.path).read_bytes() if os.path.isfile(accountant.path) else None
    assert_fails_closed(accountant, match)
    asks = [PrivacyAccountant.open]
    if name != "deleted":  # which is made anew where it is asked for by its parameters
        asks.append(lambda path: PrivacyAccountant(5.0, 1e-5, path=path))
    for ask in asks:
        with pytest.raises(LedgerError):
            ask(accountant.path)
    reads = []
    monkeypatch.setattr(SOLVERS["cd"].planned_by, "run", lambda self, *args: reads.append(args))
    model = DPLassoCD(epsilon=0.1, solver="cd", accountant=accountant)
    with pytest.raises(LedgerError, match="nothing was released"):
        model.fit(np.ones((40, 3)), np.zeros(40))
    assert not reads and not hasattr(model, "coef_")
    if left is not None:
        assert Path(accountant.path).read_bytes() == left
    assert os.path.exists(accountant.path) == (name != "deleted")


def test_another_ledger_at_the_path_is_not_charged_by_an_old_handle(accountant, tmp_path):
    os.unlink(accountant.path)
    new = PrivacyAccountant(5.0, 1e-5, path=accountant.path)
    assert_fails_closed(accountant, "holds another ledger")
    assert new.entries() == [] and new != accountant


# ---- edits by hand ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET amount = 0.0 WHERE id = 2",
        "DELETE FROM entries",
        "REPLACE INTO entries SELECT * FROM entries WHERE id = 2",
        "INSERT INTO entries SELECT 9, time, estimator, params, event, releases, amount, delta, "
        "n_samples, n_features, private, version, amount_sum, delta_sum, all_private, "
        "hash, user, host, note FROM entries WHERE id = 2",
        "UPDATE ledger SET parameters = ''",
        "DELETE FROM ledger",
    ],
)
def test_triggers_keep_the_ledger_append_only(accountant, statement):
    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|fixed"):
        edit(accountant.path, statement)
    accountant.verify()


@pytest.mark.parametrize(
    ("drop", "statement", "fault"),
    [
        ("entries_are_fixed", "UPDATE entries SET amount = 1e-9 WHERE id = 2", "entry 2 is not"),
        ("entries_are_fixed", "UPDATE entries SET delta = 1.0 WHERE id >= 2", "entry 2 is not"),
        ("entries_are_fixed", "UPDATE entries SET n_samples = 101 WHERE id = 3", "entry 3 is not"),
        ("entries_are_fixed", "UPDATE entries SET params = x'00ff' WHERE id = 1", "entry 1 is not"),
        ("entries_are_fixed", "UPDATE entries SET estimator = 'other'", "entry 1 is not"),
        ("entries_stay", "DELETE FROM entries WHERE id = 1", "entry 1 is missing"),
        ("entries_stay", "DELETE FROM entries WHERE id = 2", "entry 2 is missing"),
        ("entries_stay", "DELETE FROM entries WHERE id = 3", "entry 3 is missing"),
        ("entries_stay", "DELETE FROM entries", "entry 1 is missing"),
        ("entries_follow", "SELECT 1", "triggers"),
        ("ledger_is_fixed", "UPDATE ledger SET parameters = '{}'", "parameters of the ledger"),
        ("ledger_stays", "DELETE FROM ledger", "parameters of the ledger"),
        (
            "ledger_is_fixed",
            "UPDATE ledger SET parameters = replace(parameters, '\"limit\":', '\"limit\":9')",
            "parameters of the ledger",
        ),
    ],
)
def test_tampering_is_named(accountant, drop, statement, fault):
    edit(accountant.path, f"DROP TRIGGER {drop}", statement)
    assert_fails_closed(accountant, "damaged or changed")
    for call in (accountant.entries, accountant.verify, accountant.report):
        with pytest.raises(LedgerError, match=fault):
            call()
    with pytest.raises(LedgerError, match=fault):  # a handle that has seen nothing before
        PrivacyAccountant.open(accountant.path)


# ---- locks --------------------------------------------------------------------------------------


def test_a_ledger_that_stays_locked_fails_closed_and_recovers(accountant, monkeypatch):
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(accountant.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert_fails_closed(accountant, r"was locked for more than 0\.05 s")
    other.execute("ROLLBACK")
    # a reader that does not end blocks the commit
    other.execute("BEGIN")
    other.execute("SELECT * FROM entries").fetchone()
    with pytest.raises(LedgerError, match="locked"):
        accountant.charge(SMALL)
    assert len(accountant.entries()) == 3
    other.close()
    assert accountant.charge(SMALL).entry_id == 4


def test_a_ledger_that_a_tool_left_in_another_journal_mode_gets_its_own_back(accountant):
    edit(accountant.path, "PRAGMA journal_mode = WAL")
    assert accountant.charge(SMALL).entry_id == 4
    with contextlib.closing(sqlite3.connect(accountant.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert os.listdir(os.path.dirname(accountant.path)) == ["a.ledger"]
