"""Files of ledgers: made whole or not at all, temporary ones, and what killed processes left."""

import atexit
import contextlib
import logging
import os
import secrets
import shutil
import sys
import tempfile
import warnings

from ...exceptions import LedgerError
from ._gate import make_empty, sync_folder
from ._locks import check_locks, machine
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


_said_where = False  # in this process


def say_where(path):
    """Warn where a temporary ledger lies, once: a budget that is forgotten is spent twice."""
    global _said_where
    if _said_where:
        return
    _said_where = True
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
    with contextlib.suppress(OSError), os.scandir(folder) as items:
        for item in items:
            if not item.name.startswith(prefix) or item.name.startswith(own):
                continue
            pid = item.name.removeprefix(prefix).partition("-")[0]
            if pid.isdecimal() and _is_dead(int(pid)):
                with contextlib.suppress(OSError):
                    if item.stat(follow_symlinks=False).st_uid == os.getuid():
                        remove(item.path)


def _is_dead(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's, no number of a process, or no /proc
        return False
    return state in "ZX"  # dead, though its parent has not asked for its exit code yet


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
