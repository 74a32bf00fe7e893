"""SQLite under a ledger: one connection a call, the schema, and what its errors mean.

A. *Durability.* One charge is one ``BEGIN IMMEDIATE`` transaction in a rollback journal with
   ``synchronous=EXTRA``: the write lock is taken before the sum is read, and the commit has reached
   the disk (the removal of the journal too) before the call returns.
B. *Handles.* A connection lives for one call, so that pickles, clones and threads carry only a
   path. ``_GATE`` lets no fork happen while a connection is open: a child would inherit SQLite's
   table of this process's locks and wait for a thread that it does not have. No interrupt leaves
   the gate held (``_gate``).
C. *Never open the file with anything but SQLite in this process*: closing any descriptor of it
   drops the POSIX locks of every connection.
"""

import errno
import hashlib
import json
import os
import platform
import sqlite3
import stat
from functools import partial
from pathlib import Path

from ...exceptions import LedgerError
from ._gate import Connected, Gate
from ._ledger_entries import LedgerParameters

TEMPORARY = "dpcd-ledger-"  # folders of ledgers that go with their process
APPLICATION_ID = 0x64706364  # "dpcd"
SCHEMA_VERSION = 4
BUSY_SECONDS = 60.0
URI_OPTIONS = "mode=rw"  # never creates a file: a ledger that was deleted must not come back empty

_TABLES = """
CREATE TABLE ledger (parameters TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    estimator TEXT NOT NULL,
    params TEXT NOT NULL,
    event TEXT NOT NULL,
    releases TEXT NOT NULL,
    amount REAL NOT NULL CHECK (amount >= 0),
    delta REAL NOT NULL CHECK (delta >= 0),
    n_samples INTEGER,
    n_features INTEGER,
    private INTEGER NOT NULL,
    version TEXT NOT NULL,
    amount_sum TEXT NOT NULL,
    delta_sum TEXT NOT NULL,
    all_private INTEGER NOT NULL,
    hash TEXT NOT NULL,
    user TEXT NOT NULL,
    host TEXT NOT NULL,
    note TEXT NOT NULL
);
"""
_TRIGGERS = (
    """CREATE TRIGGER ledger_is_fixed BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the parameters of a ledger are fixed'); END""",
    """CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the parameters of a ledger are fixed'); END""",
    """CREATE TRIGGER entries_are_fixed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM entries)
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
)

RESTORE = (
    "Restore a copy that holds every charge; if there is none, count the whole budget as spent"
)

_GATE = Gate()  # note B


def sha256(text):
    """The hash of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


# ---- connections --------------------------------------------------------------------------------


def uri(path):
    """The name by which SQLite opens a file."""
    return f"{Path(path).as_uri()}?{URI_OPTIONS}"


def connected(path, host=None, *, creating=None):
    """A connection for one call; every failure leaves as LedgerError (fail closed).

    Closing it rolls back what was not committed. Of a draft, `creating` is the name that it will
    have; it stands in the messages.
    """

    def explained(error):
        # A damaged file garbles messages too, and a file may go away at any moment.
        ours = isinstance(error, (sqlite3.Error, UnicodeDecodeError, OSError, _UnusableError))
        return _explained(error, path, host, creating) if ours else None

    connect = partial(
        sqlite3.connect, uri(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    late = partial(_locked, path)
    return Connected(_GATE, BUSY_SECONDS, partial(_check_kind, path), connect, late, explained)


class _UnusableError(Exception):
    """A path that SQLite is not asked to open."""


def _check_kind(path):
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _UnusableError(f"can't be reached: {error.strerror}") from error
    if not stat.S_ISREG(mode):  # SQLite would open a pipe, and call what follows a broken disk
        raise _UnusableError("is no regular file but a folder, a pipe or a device")


def write_schema(connection, parameters):
    """Make an empty file a ledger; call within a transaction."""
    text = parameters.to_json()
    for statement in filter(str.strip, _TABLES.split(";\n")):
        connection.execute(statement)
    for statement in _TRIGGERS:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("INSERT INTO ledger VALUES (?, ?)", (text, sha256(text)))


def read_entries(connection, which):
    """Rows of entries as dicts; `which` ends the statement.

    No cursor has a name: an error that is kept after an interrupt would hold the file open by it.
    """
    connection.row_factory = sqlite3.Row
    rows = connection.execute(f"SELECT * FROM entries {which}").fetchall()
    connection.row_factory = None
    return list(map(dict, rows))


def read_parameters(connection, path):
    """Facts that a ledger states about itself.

    Raises
    ------
    LedgerError
        If the file is no ledger of this version, or its parameters were changed.
    """
    if os.path.getsize(path) == 0:
        raise LedgerError(
            f"the file {path} is empty; nothing was released. If no charge was ever made there, "
            f"its creation was cut off: delete it, or choose another path. Otherwise: {RESTORE}"
        )
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise LedgerError(
            f"the file {path} is no ledger of dpcd_sklearn; nothing was released. Choose "
            f"another path; if it was a ledger, it is damaged. {RESTORE}"
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {path} has schema version {version}, and this version of dpcd_sklearn "
            f"reads {SCHEMA_VERSION}; nothing was released. Use the version "
            "of dpcd_sklearn that wrote the ledger, or make a new one whose budget is what "
            "remaining() of that version says"
        )
    stated = connection.execute("SELECT parameters, hash FROM ledger").fetchall()
    if len(stated) != 1 or sha256(str(stated[0][0])) != stated[0][1]:
        raise LedgerError(
            f"the parameters of the ledger {path} were damaged or changed; nothing was released. "
            f"{RESTORE}"
        )
    return LedgerParameters(**json.loads(stated[0][0]))


def has_its_triggers(connection):
    """Whether what keeps a ledger append-only is there, word by word."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    return sorted(sql for (sql,) in found) == sorted(_TRIGGERS)


# ---- errors -------------------------------------------------------------------------------------


def _locked(path):
    return LedgerError(
        f"the ledger {path} was locked for more than {BUSY_SECONDS:g} s by another process or "
        "thread; nothing was released. Let it end, then try again"
    )


_LOCKING = (
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAKE_ROOM = "Make room or repair the disk, then try again"
OTHER_FOLDER = "Choose a path in an existing folder that can be written to"


def _explained(error, path, host, creating):
    """The LedgerError that says what an error of SQLite means for the user."""
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _locked(creating or path)
    if not os.path.lexists(path):
        made = f" (it was created on host {host!r})" if host else ""
        problem = f"does not exist on host {platform.node()!r}{made}"
        advice = (
            "Check the path, bring the file back, or run where it can be reached; it is never made "
            "anew"
        )
        # made without a path, in a folder that goes with its process
        if os.path.basename(os.path.dirname(path)).startswith(TEMPORARY):
            advice = (
                "It was a temporary one, which ends with the process that made it: count its "
                "budget as spent, and give the next accountant a path='records.ledger' that stays"
            )
    elif isinstance(error, _UnusableError):
        problem = str(error)
        advice = "Choose another path, or put the ledger back where it was"
    elif extended in _LOCKING:
        problem, advice = f"can't be locked ({error})", "Move it to a file system that has locks"
    elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        problem, advice = f"is damaged or no ledger ({error})", RESTORE
    elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        problem = f"can't be opened for writing ({error})"
        advice = (
            "Make the file and its folder readable and writable for this user, and see that the "
            "disk has room for one more file"
        )
    elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        problem = f"can't be read or written: no space is left, or the disk is at fault ({error})"
        advice = MAKE_ROOM if creating else f"{MAKE_ROOM}; entries so far are kept"
    else:
        problem, advice = f"can't be used ({error})", RESTORE
    if creating:
        return not_created(creating, f"the file {problem}", advice)
    return LedgerError(f"the ledger {path} {problem}; nothing was released. {advice}")


def not_created(path, problem, advice):
    """The LedgerError of a ledger that could not be made."""
    return LedgerError(
        f"no ledger can be created at {path}: {problem}; nothing was released. {advice}"
    )
