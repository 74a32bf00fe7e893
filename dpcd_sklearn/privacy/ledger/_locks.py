"""Does a file system keep locks? Asked of a second process, once a process and file system.

Two charges at once are kept apart by SQLite's locks alone. Where they do nothing (some network and
container mounts answer "yes" to everybody), every process would find room for its own charge, and
no error would tell. So the first charge lets another process try to take the lock that it holds.
That the answer holds goes with pickles of a handle: a worker on the same machine and file system
need not ask again. What this can't see: locks that only processes on one machine respect.
"""

import contextlib
import functools
import os
import platform
import subprocess
import sys
import threading
import warnings

from ...exceptions import LedgerError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_SECONDS = 30.0
_RESERVED_BYTE = 0x40000001  # where SQLite locks what BEGIN IMMEDIATE reserves

_proved = set()

_QUESTION = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], uri=True, timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print("held" if error.sqlite_errorcode & 255 == sqlite3.SQLITE_BUSY else error)
else:
    print("free")
"""


def check_locks(path, uri, called):
    """Refuse a file system whose locks another process does not respect.

    Call it while this process holds the write lock of the SQLite file at `path`.

    Raises
    ------
    LedgerError
        If the lock is free for others, or nobody could be asked.
    """
    place = _place(path)
    if place in _proved:
        return
    answer = _ask_interpreter(uri) or _ask_fork(path)
    if answer == "held":
        _proved.add(place)
    elif answer == "free":
        raise LedgerError(
            f"the file system of the ledger {called} has no working locks: another process could "
            "take the one that this process holds, and both would spend the same budget; nothing "
            "was released. Put the ledger on a local disk"
        )
    else:
        raise LedgerError(
            f"nobody could be asked whether the file system of the ledger {called} keeps locks, "
            f"because no second process could be started with {sys.executable!r}; nothing was "
            "released. Allow it, or charge from an ordinary Python process"
        )


def proof(path):
    """The finding of check_locks about a file, for pickles: a machine and device, or None."""
    try:
        place = _place(path)
    except OSError:
        return None
    return place if place in _proved else None


def trust(place):
    """Take over what another process found out; it counts on its machine and device only."""
    if place is not None:
        _proved.add(tuple(place))


def _place(path):
    return machine(), os.stat(path).st_dev


@functools.cache
def machine():
    """Name of this running kernel; device numbers mean something within it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return platform.node()


def _ask_interpreter(uri):
    """The finding of an isolated Python; None without one. A frozen program would start itself."""
    name = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or not ("python" in name or "pypy" in name):
        return None
    answers = []

    def ask():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            run = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _QUESTION, uri],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
            answers.append(run.stdout.decode(errors="replace").strip())

    # Signals reach the main thread only: in another one no interrupt leaves a pipe open.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join()
    return next((answer for answer in answers if answer in ("held", "free")), None)


def _ask_fork(path):
    """The same by a forked child: of little Python, and no SQLite, whose state it inherits."""
    if fcntl is None or not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        try:
            pid = os.fork()
        except OSError:
            return None
    if pid == 0:
        status = 2
        try:
            fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _RESERVED_BYTE)
            status = 0
        except (BlockingIOError, PermissionError):
            status = 1
        finally:
            os._exit(status)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # somebody else took the answer
        return None
    return {0: "free", 1: "held"}.get(status)
