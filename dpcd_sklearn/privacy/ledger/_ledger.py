"""Storage of a ledger: one SQLite file, append-only, hash-chained; no connection outlives a call.

What is stored here is public: facts fixed before a record was used. What may be charged is decided
by ``_filter``; this module only promises that an entry is either on the disk, whole, or absent.

A. *Durability.* One charge is one ``BEGIN IMMEDIATE`` transaction in a rollback journal with
   ``synchronous=EXTRA``: the write lock is taken before the sum is read, and the commit has reached
   the disk (the removal of the journal too) before `append` returns.
B. *Handles.* A connection lives for one call, so that pickles, clones and threads carry only a
   path. ``_GATE`` lets no fork happen while a connection is open: a child would inherit SQLite's
   table of this process's locks and wait for a thread that it does not have.
C. *Chain.* Each entry carries the SHA-256 of its canonical JSON and the hash before it, from the
   hash of the ledger's parameters on. It uncovers accidents (bit rot, a restored copy, an edit by
   hand), not somebody who rewrites the whole file.
D. *Never open the file with anything but SQLite in this process*: closing any descriptor of it
   drops the POSIX locks of every connection.
"""

import atexit
import contextlib
import hashlib
import json
import os
import platform
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

from ...exceptions import LedgerError
from ._ledger_records import LedgerParameters, canonical, now

APPLICATION_ID = 0x64706364  # "dpcd"
SCHEMA_VERSION = 1
BUSY_SECONDS = 60.0

_SCHEMA = """
CREATE TABLE ledger (parameters TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    estimator TEXT NOT NULL,
    params TEXT NOT NULL,
    event TEXT NOT NULL,
    releases TEXT NOT NULL,
    amount REAL NOT NULL CHECK (amount >= 0),
    rho REAL,
    mu_squared REAL,
    n_samples INTEGER,
    n_features INTEGER,
    private INTEGER NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TRIGGER ledger_is_fixed BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the parameters of a ledger are fixed'); END;
CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the parameters of a ledger are fixed'); END;
CREATE TRIGGER entries_are_fixed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM entries)
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
"""
_TRIGGERS = {
    "ledger_is_fixed", "ledger_stays", "entries_are_fixed", "entries_stay", "entries_follow"
}  # fmt: skip
_COLUMNS = (
    "id", "time", "estimator", "params", "event", "releases", "amount", "rho", "mu_squared",
    "n_samples", "n_features", "private", "version", "hash",
)  # fmt: skip

# What the user asks for; the rest of the parameters follows from it.
_FIXED = ("epsilon", "delta", "currency", "neighboring", "n_public", "testing")
_RESTORE = (
    "Restore a copy that holds every charge; if there is none, count the whole budget as spent"
)

# Note B. Held for the life of each connection, and by fork() itself.
_GATE = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release
    )


class Ledger:
    """Entries in one SQLite file, reached by path and checked by identity.

    Parameters
    ----------
    path : str
        Absolute path of the file.
    parameters : LedgerParameters
        What the file must state about itself.
    """

    def __init__(self, path, parameters, seen=(0, None)):
        self.path = path
        self.parameters = parameters
        # Number and hash of the last entry that this object has seen: a file that lacks it is an
        # older copy. Read before a transaction starts and set after it ended, so that of two
        # threads neither finds the other's news missing.
        self.seen = seen

    @classmethod
    def create(cls, path, parameters):
        """Write a new ledger, whole or not at all.

        Raises
        ------
        FileExistsError
            If there is a file at `path` already; it is left alone.
        LedgerError
            If the file can't be written.
        """
        folder = os.path.dirname(path)
        try:
            handle, draft = tempfile.mkstemp(prefix=".dpcd-ledger-", dir=folder)
            os.close(handle)
            try:
                with _connected(draft, parameters.host) as connection:
                    _write_schema(connection, parameters)
                _publish(draft, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft)
        except FileExistsError:
            raise
        except OSError as error:
            raise LedgerError(
                f"no ledger can be created at {path}: {error}; nothing was released. Choose a "
                "path in an existing folder that can be written to"
            ) from error
        return cls(path, parameters)

    @classmethod
    def open(cls, path):
        """Open an existing ledger with what it states about itself.

        Raises
        ------
        LedgerError
            If it can't be read, or is no ledger of this version.
        """
        with _connected(path) as connection:
            connection.execute("BEGIN")
            ledger = cls(path, _read_parameters(connection, path))
            ledger._verified_rows(connection, ledger.seen)
        return ledger

    def rows(self):
        """All entries as dicts of columns, after a check of the whole chain.

        Raises
        ------
        LedgerError
            If the file can't be read or the chain is broken.
        """
        seen = self.seen
        with _connected(self.path, self.parameters.host) as connection:
            connection.execute("BEGIN")  # one snapshot for every statement below
            self._check_identity(connection)
            rows = self._verified_rows(connection, seen)
        self._advance(rows[-1:])
        return rows

    def append(self, facts, admits):
        """Add an entry if `admits(rows)` says so; it is on the disk when this returns.

        Parameters
        ----------
        facts : dict
            The columns of the entry but its id, time and hash.
        admits : callable
            Gets the rows so far, under the write lock; returns a bool.

        Returns
        -------
        rows : list of dict
            The entries before.
        entry_id : int or None
            None if it was not admitted; the file is untouched then.

        Raises
        ------
        LedgerError
            If the file can't be read or written, or the chain is broken.
        """
        seen = self.seen
        with _connected(self.path, self.parameters.host) as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._check_identity(connection)
            rows = self._verified_rows(connection, seen)
            if not admits(rows):
                return rows, None
            previous = rows[-1]["hash"] if rows else _sha256(self.parameters.to_json())
            entry = {"id": len(rows) + 1, "time": now(), **facts}
            entry["hash"] = _sha256(canonical(entry | {"previous": previous}))
            connection.execute(_INSERT, entry)
            connection.execute("COMMIT")
        self._advance([entry])
        return rows, entry["id"]

    def _advance(self, rows):
        if rows and rows[0]["id"] > self.seen[0]:
            self.seen = rows[0]["id"], rows[0]["hash"]

    def _check_identity(self, connection):
        found = _read_parameters(connection, self.path)
        if found != self.parameters:
            raise LedgerError(
                f"the file {self.path} holds another ledger than this handle was made for; nothing "
                f"was released. Put the former file back ({self._identity()}); to go on with this "
                "one, open it with PrivacyAccountant.open"
            )

    def _identity(self):
        return f"created {self.parameters.created} on host {self.parameters.host!r}"

    def _verified_rows(self, connection, seen):
        """Check the whole chain and return the rows: 1 ms at 100 entries, 0.1 s at 10,000."""
        previous, rows = _sha256(self.parameters.to_json()), []
        for values in connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM entries ORDER BY id"):
            row = dict(zip(_COLUMNS, values, strict=True))
            number, stored = len(rows) + 1, row.pop("hash")
            if row["id"] != number:
                raise self._broken(f"entry {number} is missing")
            row["previous"] = previous
            if _sha256(canonical(row)) != stored:
                raise self._broken(f"entry {number} is not what was written")
            del row["previous"]
            row["hash"] = previous = stored
            rows.append(row)
        written = connection.execute("SELECT seq FROM sqlite_sequence").fetchone()
        if (written[0] if written else 0) != len(rows):
            raise self._broken(f"entry {len(rows) + 1} is missing")
        number, known = seen
        if number > len(rows):
            raise self._broken(f"entry {len(rows) + 1}, written before, is missing (an older copy)")
        if number and rows[number - 1]["hash"] != known:
            raise self._broken(f"entry {number} is not the one that was written before")
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        if {name for (name,) in triggers} != _TRIGGERS:
            raise self._broken("the triggers that keep it append-only were changed")
        return rows

    def _broken(self, fault):
        return LedgerError(
            f"the ledger {self.path} was damaged or changed: {fault}; nothing was released. "
            f"{_RESTORE}"
        )


_INSERT = (
    f"INSERT INTO entries ({', '.join(_COLUMNS)}) VALUES ({', '.join(':' + c for c in _COLUMNS)})"
)


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


# ---- opening ----------------------------------------------------------------------------------


def create_temporary(parameters):
    """A ledger in a folder of its own that goes when this process exits."""
    try:
        folder = tempfile.mkdtemp(prefix="dpcd-ledger-")  # readable for its owner only
    except OSError as error:
        raise LedgerError(
            f"no temporary ledger can be created: {error}; nothing was released. Give a path"
        ) from error
    atexit.register(_remove_temporary, folder, os.getpid())
    return Ledger.create(os.path.join(folder, "ledger.sqlite"), parameters)


def _remove_temporary(folder, pid):
    if os.getpid() == pid:  # not at the end of a forked child
        shutil.rmtree(folder, ignore_errors=True)


def open_or_create(path, parameters):
    """The ledger at `path`, which must agree with what is asked for (ValueError), or a new one."""
    if not os.path.lexists(path):
        with contextlib.suppress(FileExistsError):  # somebody was faster: open that one
            return Ledger.create(path, parameters)
    ledger = Ledger.open(path)
    pairs = [(n, getattr(ledger.parameters, n), getattr(parameters, n)) for n in _FIXED]
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    if differing:
        stored = ", ".join(f"{name}={there!r}" for name, there, _ in differing)
        asked = ", ".join(f"{name}={here!r}" for name, _, here in differing)
        raise ValueError(
            f"the ledger {path} was created with {stored}, and was now asked for with {asked}; "
            "open it as it is with PrivacyAccountant.open, or choose another path"
        )
    return ledger


# ---- SQLite -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _connected(path, host=None):
    """A connection for one call; every failure of SQLite leaves as LedgerError (fail closed).

    Closing it rolls back what was not committed. ``mode=rw`` never creates a file: a ledger that
    was deleted must not come back empty.
    """
    if not _GATE.acquire(timeout=BUSY_SECONDS):
        raise _locked(path)
    try:
        uri = Path(path).as_uri() + "?mode=rw"
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged file garbles messages too
        raise _explained(error, path, host) from error
    finally:
        _GATE.release()


def _write_schema(connection, parameters):
    text = parameters.to_json()
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.executescript(
        f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
        f"PRAGMA user_version = {SCHEMA_VERSION};"
    )
    connection.execute("INSERT INTO ledger VALUES (?, ?)", (text, _sha256(text)))
    connection.execute("COMMIT")


def _publish(draft, path):
    """Give a finished file its name, unless the name is taken (then FileExistsError)."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name, then replace it
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.replace(draft, path)
        except OSError:
            os.unlink(path)  # ours, and empty
            raise
    # The name must be as durable as the file; some systems can't open or sync a folder.
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read_parameters(connection, path):
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise LedgerError(
            f"the file {path} is empty or no ledger of dpcd_sklearn; nothing was released. Choose "
            f"another path; if it was a ledger, it is damaged. {_RESTORE}"
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"the ledger {path} has schema version {version}, and this version of dpcd_sklearn "
            f"reads {SCHEMA_VERSION}; nothing was released. Use the version of dpcd_sklearn that "
            "wrote the ledger"
        )
    stated = connection.execute("SELECT parameters, hash FROM ledger").fetchall()
    if len(stated) != 1 or _sha256(str(stated[0][0])) != stated[0][1]:
        raise LedgerError(
            f"the parameters of the ledger {path} were damaged or changed; nothing was released. "
            f"{_RESTORE}"
        )
    return LedgerParameters(**json.loads(stated[0][0]))


def _locked(path):
    return LedgerError(
        f"the ledger {path} was locked for more than {BUSY_SECONDS:g} s by another process or "
        "thread; nothing was released. Let it end, then try again"
    )


def _explained(error, path, host):
    """The LedgerError that says what an error of SQLite means for the user."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _locked(path)
    if not os.path.exists(path):
        made = f" (it was created on host {host!r})" if host else ""
        problem = f"does not exist on host {platform.node()!r}{made}"
        advice = "Bring the file back, or run where it can be reached; it is never made anew"
    elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        problem, advice = f"is damaged or no ledger ({error})", _RESTORE
    elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        problem = f"can't be opened for writing ({error})"
        advice = "Make the file and its folder readable and writable for this user"
    elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        problem = f"can't be read or written: no space is left, or the disk is at fault ({error})"
        advice = "Make room or repair the disk, then try again; entries so far are kept"
    else:
        problem, advice = f"can't be used ({error})", _RESTORE
    return LedgerError(f"the ledger {path} {problem}; nothing was released. {advice}")
