"""Litter of killed processes is swept by the next one; files of living ones stay."""

import contextlib
import functools
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from forks import ENVIRONMENT, die_at_line, forked, in_a_new_process, no_hard_links

from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import PrivacyAccountant, _files, _ledger

if not hasattr(os, "fork"):
    pytest.skip("this system can't fork", allow_module_level=True)
resource = pytest.importorskip("resource")

SMALL = FitEvent((GaussianEvent(1000.0),))


KEEPS_ZOMBIES = sys.platform == "linux" and hasattr(os, "waitid")


def create_and_die_at_line(path, number):
    """Create a ledger in a child that is killed before the given line; whether it was killed.

    On Linux it stays a zombie, as a child is of which nobody asks for the exit code.
    """
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(60)
            die_at_line(number, _ledger)
            PrivacyAccountant(5.0, 1e-5, path=path)
        finally:
            os._exit(0)
    if KEEPS_ZOMBIES:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_code == os.CLD_KILLED
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.fixture
def reaped():
    yield
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@pytest.mark.parametrize("links", [True, False])
def test_a_kill_anywhere_in_a_creation_leaves_what_the_next_handle_by_path_sweeps(
    links, tmp_path, monkeypatch, reaped
):
    if not links:
        monkeypatch.setattr(os, "link", no_hard_links)
    PrivacyAccountant(5.0, 1e-5, path=tmp_path / "first")  # asks about locks
    littered, number = 0, 1 + links
    while create_and_die_at_line(tmp_path / f"{number}.ledger", number):
        left = sorted(os.listdir(tmp_path))
        littered += any(name.startswith(".dpcd") for name in left)
        made = tmp_path / f"{number}.ledger"
        if made.exists() and made.stat().st_size:  # whole, or absent, or an empty name
            assert PrivacyAccountant.open(made).charge(SMALL).entry_id == 1
        if number % 8 < 4:  # a creation, or an opening of what is there
            PrivacyAccountant(5.0, 1e-5, path=tmp_path / "next")
            (tmp_path / "next").unlink()
        else:
            PrivacyAccountant.open(tmp_path / "first")
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".dpcd")]
        number += 4  # not at each line: a fork takes its time
    assert littered > 5


def test_an_empty_name_that_a_kill_left_is_explained(tmp_path):
    """Where there are no hard links, a name is reserved before the ledger is moved there."""
    (tmp_path / "a.ledger").touch()
    with pytest.raises(LedgerError, match="is empty.*creation.*delete it"):
        PrivacyAccountant(5.0, 1e-5, path=tmp_path / "a.ledger")
    assert (tmp_path / "a.ledger").stat().st_size == 0


HOLDER = """
import pathlib, sys, time
from dpcd_sklearn import PrivacyAccountant
print(PrivacyAccountant(5.0, 1e-5).path, flush=True)
time.sleep(60)
"""


def holder(folder):
    """A process with a temporary ledger, and the ledger's folder."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", HOLDER],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | {"TMPDIR": str(folder)},
    )
    return process, Path(process.stdout.readline().strip()).parent


def test_temporary_ledgers_of_the_dead_are_swept_and_of_the_living_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (dead, its_folder), (living, kept) = holder(tmp_path), holder(tmp_path)
    try:
        dead.kill()
        dead.wait(30)
        assert its_folder.exists() and kept.exists() and its_folder != kept
        ours = PrivacyAccountant(5.0, 1e-5)
        assert not its_folder.exists()
        assert (kept / "ledger.sqlite").exists() and living.poll() is None
        PrivacyAccountant(5.0, 1e-5)
        assert ours.charge(SMALL).entry_id == 1
    finally:
        for process in (dead, living):
            process.kill()
            process.wait(30)
            process.stdout.close()


def test_what_is_not_known_to_be_dead_and_ours_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    gone, here = process.pid, _files._processes()
    names = [
        f"dpcd-ledger-{here}-{os.getpid()}-x",  # alive
        f"dpcd-ledger-{here}-1-x",
        f"dpcd-ledger-{here}-{10**30}-x",
        f"dpcd-ledger-{here}--x",
        f"dpcd-ledger-{'0' * 12}-{gone}-x",  # of another machine or container
        f"dpcd-ledgers-{gone}-x",
        "dpcd-ledger-notes",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    link = tmp_path / f"dpcd-ledger-{here}-{gone}-link"
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "kept").touch()
    link.symlink_to(treasure)
    swept = tmp_path / f"dpcd-ledger-{here}-{gone}-x"
    swept.mkdir()
    PrivacyAccountant(5.0, 1e-5)
    assert not swept.exists() and (treasure / "kept").exists()
    assert all((tmp_path / name).exists() for name in names)
    swept.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # somebody else's
    PrivacyAccountant(5.0, 1e-5)
    assert swept.exists()


# ---- messages -----------------------------------------------------------------------------------


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, make_socket], ids=lambda make: make.__name__)
def test_a_path_that_is_no_regular_file_is_called_that(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    make("odd")
    create = functools.partial(PrivacyAccountant, 5.0, 1e-5, path="odd")
    for ask in (create, functools.partial(PrivacyAccountant.open, "odd")):
        started = time.monotonic()
        with pytest.raises(LedgerError, match="no regular file but a folder, a pipe or a device"):
            ask()
        assert time.monotonic() - started < 10
    assert os.listdir(tmp_path) == ["odd"]


def refusal_on_a_full_disk(room, **params):
    """The answer of a creation in a child that may write files of so many bytes."""

    def create():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            PrivacyAccountant(5.0, 1e-5, **params)
        except LedgerError as error:
            return str(error)

    return forked(create)()


@pytest.mark.parametrize("room", [0, 1000, 5000])
def test_a_full_disk_is_named_by_the_path_that_was_asked_for(room, tmp_path, monkeypatch):
    PrivacyAccountant(5.0, 1e-5, path=tmp_path / "first")  # asks about locks
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "a.ledger"
    text = refusal_on_a_full_disk(room, path=path)
    assert text.startswith(f"no ledger can be created at {path}: ") and ".dpcd" not in text
    assert "no space is left" in text and "nothing was released. Make room" in text
    assert "entries so far" not in text and "existing folder" not in text
    text = refusal_on_a_full_disk(room)
    assert "no space is left" in text and "Make room" in text
    assert os.listdir(tmp_path) == ["first"]


def test_a_ledger_without_a_path_says_once_where_it_lies_and_that_it_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(_files, "_warned_of_place", False)
    with pytest.warns(UserWarning, match="ends with this process.*path='records.ledger'") as shown:
        accountant = PrivacyAccountant(1.0, 1e-6)
    assert accountant.path in str(shown[0].message) and shown[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        PrivacyAccountant(1.0, 1e-6)
        monkeypatch.setattr(_files, "_warned_of_place", False)
        PrivacyAccountant(1.0, 1e-6, testing=True)


def test_a_ledger_that_is_made_anew_is_logged_and_open_makes_none(tmp_path, caplog):
    path, made_up = tmp_path / "a.ledger", {"neighboring": "add_remove", "n_public": 100}
    with pytest.raises(LedgerError, match=r"a.ledger does not exist.*Check the path"):
        PrivacyAccountant.open(path)
    assert os.listdir(tmp_path) == []
    made = PrivacyAccountant(1.0, 1e-6, path=path, **made_up)
    (record,) = caplog.records
    assert "a.ledger: a new one" in record.getMessage() and record.levelname == "WARNING"
    caplog.clear()
    made.charge(FitEvent((GaussianEvent(1000.0),), "add_remove"))
    with warnings.catch_warnings(action="error"):
        tests = PrivacyAccountant(2.0, 1e-5, path=tmp_path / "tests.ledger", testing=True)
        for one in (made, tests):
            opened = PrivacyAccountant.open(one.path)
            assert opened == one and repr(opened) == repr(one)
            assert opened.spent() == one.spent()
        assert PrivacyAccountant(1.0, 1e-6, path=path, **made_up) == made
    assert not caplog.records


def test_a_model_whose_temporary_ledger_is_gone_says_so_in_words():
    accountant = pickle.loads(bytes.fromhex(in_a_new_process(
        "import pickle; from dpcd_sklearn import PrivacyAccountant; "
        "print(pickle.dumps(PrivacyAccountant(1.0, 1e-6)).hex())"
    )))  # fmt: skip
    for call in (accountant.spent, lambda: accountant.charge(SMALL)):
        with pytest.raises(LedgerError, match="ends with the process that made it"):
            call()
