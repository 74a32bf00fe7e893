"""Files of ledgers: made whole or not at all, temporary ones, and what killed processes left."""

import atexit
import contextlib
import functools
import logging
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

from ...exceptions import LedgerError
from ._gate import make_empty, sync_folder
from ._sqlite import (
    MAKE_ROOM,
    NO_SPACE,
    OTHER_FOLDER,
    TEMPORARY,
    connected,
    not_created,
    sha256,
    uri,
    write_schema,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# ---- Does a file system keep locks? Asked of a second process, once a process and file system ----
#
# Two charges at once are kept apart by SQLite's locks alone. Where they do nothing (some network
# and container mounts answer "yes" to everybody), every process would find room for its own charge,
# and no error would tell. So the first charge lets another process try to take the lock that it
# holds. That the answer holds goes with pickles of a handle: a worker on the same machine and file
# system need not ask again. What this can't see: locks that only processes on one machine respect.

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
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
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
                timeout=30.0,
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


def create_file(path, parameters):
    """Write a new ledger, whole or not at all.

    Raises
    ------
    FileExistsError
        If there is a file at `path` already; it is left alone.
    LedgerError
        If the file can't be written, or its file system has no locks.
    """
    folder = os.path.dirname(path)
    sweep_drafts(folder)
    draft = os.path.join(folder, f"{_DRAFT}{_maker()}-{secrets.token_hex(8)}")
    try:
        try:  # from before there is a file: an interrupt may come at any time
            make_empty(draft)
            with connected(draft, parameters.host, creating=path) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("BEGIN IMMEDIATE")
                check_locks(draft, uri(draft), path)
                write_schema(connection, parameters)
                connection.execute("COMMIT")
            _publish(draft, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
    except FileExistsError:
        raise
    except OSError as error:
        advice = MAKE_ROOM if error.errno in NO_SPACE else OTHER_FOLDER
        raise not_created(path, error.strerror, advice) from error


def _publish(draft, path):
    """Give a finished file its name, unless the name is taken (then FileExistsError)."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then replace it
        make_empty(path)
        try:
            os.replace(draft, path)
        except OSError:
            os.unlink(path)  # ours, and empty
            raise
    # The name must be as durable as the file; some systems can't open or sync a folder.
    with contextlib.suppress(OSError):
        sync_folder(os.path.dirname(path))


# ---- temporary ledgers ----------------------------------------------------------------------


def temporary_path():
    """A path for a ledger in a folder of its own, which goes when this process exits.

    No exit handler runs after a fatal signal; the folder then goes when the next process of this
    user asks for one.

    Raises
    ------
    LedgerError
        If no folder can be made.
    """
    try:
        _sweep(tempfile.gettempdir(), TEMPORARY, shutil.rmtree)
        folder = tempfile.mkdtemp(prefix=f"{TEMPORARY}{_maker()}-")  # for its owner only
    except OSError as error:
        raise LedgerError(
            f"no temporary ledger can be created: {error.strerror}; nothing was released. Give a "
            "path"
        ) from error
    atexit.register(_remove_temporary, folder, os.getpid())
    return os.path.join(folder, "ledger.sqlite")


_warned_of_place = False  # in this process


def say_where(path):
    """Warn where a temporary ledger lies, once: a budget that is forgotten is spent twice."""
    global _warned_of_place
    if _warned_of_place:
        return
    _warned_of_place = True
    warnings.warn(
        f"this ledger lies in {path} and ends with this process, and so does what it counted; "
        "PrivacyAccountant(..., path='records.ledger') keeps it. Said once a process",
        UserWarning,
        stacklevel=4,  # who made the accountant
    )


def say_new(path):
    """Log that a ledger is made: where one was expected, the path is wrong or the file is lost.

    The log and not a warning: the first run of every script makes its ledger, rightly.
    """
    logging.getLogger("dpcd_sklearn").warning(
        "there is no ledger at %s: a new one is created, with the whole budget. If the records "
        "were fitted before, this path is wrong or the file is lost; PrivacyAccountant.open(path) "
        "opens a ledger and never creates one",
        path,
    )


def _remove_temporary(folder, pid):
    if os.getpid() == pid:  # not at the end of a forked child
        shutil.rmtree(folder, ignore_errors=True)


# ---- what killed processes left ---------------------------------------------------------------

_DRAFT = f".{TEMPORARY}"


def _maker():
    """A name of the process that makes a file, on this machine and among its containers."""
    return f"{_processes()}-{os.getpid()}"


def _processes():
    """A short name of what process numbers are numbers of: the running kernel, and a namespace."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return sha256(f"{machine()} {space}")[:12]


def sweep_drafts(folder):
    """Remove drafts of ledgers that were being created when their process was killed."""
    _sweep(folder, _DRAFT, os.unlink)


def _sweep(folder, prefix, remove):
    """Remove what processes of this machine and user left that are dead; never a living one's."""
    if os.name != "posix":  # there is no harmless question whether a process lives
        return
    if sys.platform == "linux" and not os.path.lexists("/proc/self/ns/pid"):
        return  # whose numbers these are is not known: another container may share the folder
    prefix = f"{prefix}{_processes()}-"
    own = f"{prefix}{os.getpid()}-"  # a process with many ledgers has many folders here
    is_dead = functools.cache(_is_dead)  # and each process is asked once
    with contextlib.suppress(OSError), os.scandir(folder) as items:
        for item in items:
            if not item.name.startswith(prefix) or item.name.startswith(own):
                continue
            pid = item.name.removeprefix(prefix).partition("-")[0]
            if pid.isdecimal() and is_dead(int(pid)):
                with contextlib.suppress(OSError):
                    if item.stat(follow_symlinks=False).st_uid == os.getuid():
                        remove(item.path)


def _is_dead(pid):
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's, no number of a process, or no /proc
        return False
    # Dead, though its parent has not asked for its exit code yet.
    return state.rpartition(")")[2].split()[0] in "ZX"


def absolute(path):
    """The path of a ledger that stays the same wherever the process goes.

    Raises
    ------
    LedgerError, TypeError, ValueError
        If it names no file.
    """
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"path must be a string or a path-like object, got {path!r}")
    if name in ("", ":memory:"):
        raise ValueError(f"a ledger is a file, got path={path!r}; leave path out for a trial")
    if "\0" in name:
        raise ValueError("a path has no null character")
    try:
        return os.path.abspath(name)  # workers may run in another folder
    except FileNotFoundError as error:
        raise LedgerError(
            f"no ledger can be reached at {name}: the working directory was deleted; nothing was "
            "released. Give an absolute path"
        ) from error
