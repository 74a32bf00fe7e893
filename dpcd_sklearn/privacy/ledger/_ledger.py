"""Entries in one SQLite file: append-only, hash-chained, each with the sums so far.

All that is stored here is public: facts fixed before a record was used. ``_filter`` decides what
may be charged; this module only promises that an entry is either on the disk, whole, or absent.

*Chain.* Each entry carries the SHA-256 of its canonical JSON and the hash before it, from the hash
of the ledger's parameters on. It uncovers accidents (bit rot, a restored copy, an edit by hand),
not somebody who rewrites the whole file.

*Head.* Each entry carries the exact sums up to itself, so that a charge reads two entries however
many there are: the last one, whose content must have its hash and whose number must be the count
that SQLite keeps, and the last one that this handle has seen before, which must still be there. A
changed older entry changes neither; `rows` checks all of them.
"""

import contextlib
import os
import shutil
import time

from ...exceptions import LedgerError
from ._files import check_locks, create_file, say_new, say_where, sweep_drafts, temporary_path
from ._ledger_entries import Balance, canonical, now
from ._sqlite import (
    RESTORE,
    connected,
    has_its_triggers,
    read_entries,
    read_parameters,
    sha256,
    uri,
)

# The user asks for these; the rest of the parameters follows from it.
_FIXED = ("epsilon", "delta", "neighboring", "n_public", "testing", "max_contributions")


class Ledger:
    """Entries in one SQLite file, reached by path and checked by identity.

    Parameters
    ----------
    path : str
        Absolute path of the file.
    parameters : LedgerParameters
        What the file must state about itself.
    seen : tuple (int, str or None), default=(0, None)
        Number and hash of an entry that it must hold.
    """

    def __init__(self, path, parameters, seen=(0, None)):
        self.path = path
        self.parameters = parameters
        # The last entry that this object has seen: a file that lacks it is an older copy. Read
        # before a transaction starts and set after it ended, so that of two threads neither finds
        # the other's news missing.
        self.seen = seen

    @classmethod
    def create(cls, path, parameters):
        """Write a new ledger, whole or not at all.

        Raises
        ------
        FileExistsError
            If there is a file at `path` already; it is left alone.
        LedgerError
            If the file can't be written, or its file system has no locks.
        """
        create_file(path, parameters)
        return cls(path, parameters)

    @classmethod
    def open(cls, path):
        """Open an existing ledger with what it states about itself, after a check of all entries.

        Raises
        ------
        LedgerError
            If it can't be read, was changed, or is no ledger of this version.
        """
        sweep_drafts(os.path.dirname(path))
        with connected(path) as connection:
            connection.execute("BEGIN")
            parameters = read_parameters(connection, path)
        ledger = cls(path, parameters)
        ledger.rows()
        return ledger

    def balance(self):
        """The sums over all entries, as the last one states them.

        Raises
        ------
        LedgerError
            If the file can't be read, or what was read was changed.
        """
        seen = self.seen
        with connected(self.path, self.parameters.host) as connection:
            connection.execute("BEGIN")  # one snapshot for every statement below
            self._check_identity(connection)
            balance, last = self._head(connection, seen)
        self._advance(balance.entries, last)
        return balance

    def append(self, facts, admits):
        """Add an entry if `admits(balance)` says so; it is on the disk when this returns.

        Parameters
        ----------
        facts : dict
            The columns of the entry but its id, time, sums and hash.
        admits : callable
            Gets the sums so far, under the write lock; returns a bool.

        Returns
        -------
        balance : Balance
            The sums before.
        entry_id : int or None
            None if it was not admitted; the file is untouched then.

        Raises
        ------
        LedgerError
            If the file can't be read or written, what was read was changed, or the file system has
            no locks.
        """
        seen = self.seen
        with connected(self.path, self.parameters.host) as connection:
            # Somebody's tool may have left it in another mode, which the file remembers.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN IMMEDIATE")
            check_locks(self.path, uri(self.path), self.path)
            self._check_identity(connection)
            balance, previous = self._head(connection, seen)
            if not admits(balance):
                return balance, None
            after = balance.after(facts)
            last = insert(connection, after, previous, facts)
            connection.execute("COMMIT")
        self._advance(after.entries, last)
        return balance, after.entries

    def rows(self):
        """All entries as dicts of columns, after a check of the whole chain and of every sum.

        Raises
        ------
        LedgerError
            If the file can't be read, or was changed.
        """
        seen = self.seen
        with connected(self.path, self.parameters.host) as connection:
            connection.execute("BEGIN")
            self._check_identity(connection)
            rows = read_entries(connection, "ORDER BY id")
            written, has_triggers = _count(connection), has_its_triggers(connection)
        # Hashing takes long where entries are many; nobody waits for it.
        self._check_chain(rows)
        if written != len(rows):
            raise self._broken(f"entry {len(rows) + 1} is missing")
        number = seen[0]
        found = rows[number - 1]["hash"] if 0 < number <= len(rows) else None
        self._check_seen(seen, len(rows), found)
        self._check_triggers(has_triggers)
        if rows:
            self._advance(len(rows), rows[-1]["hash"])
        return rows

    # ---- checks ---------------------------------------------------------------------------------

    def _head(self, connection, seen):
        """The sums so far and the hash that the next entry builds on."""
        rows = read_entries(connection, "ORDER BY id DESC LIMIT 2")
        count = rows[0]["id"] if rows else 0
        if _count(connection) != count:
            raise self._broken(f"entry {count + 1} is missing")
        if count > 1 and (len(rows) < 2 or rows[1]["id"] != count - 1):
            raise self._broken(f"entry {count - 1} is missing")
        if rows:
            previous = rows[1]["hash"] if count > 1 else self._origin()
            self._check_hash(rows[0], previous)
        found = connection.execute("SELECT hash FROM entries WHERE id = ?", seen[:1]).fetchone()
        self._check_seen(seen, count, found[0] if found else None)
        self._check_triggers(has_its_triggers(connection))
        if not rows:
            return Balance(), self._origin()
        return Balance.of_row(rows[0]), rows[0]["hash"]

    def _check_chain(self, rows):
        balance, previous = Balance(), self._origin()
        for number, row in enumerate(rows, 1):
            if row["id"] != number:
                raise self._broken(f"entry {number} is missing")
            self._check_hash(row, previous)
            balance, previous = balance.after(row), row["hash"]
            if any(row[name] != value for name, value in balance.columns().items()):
                raise self._broken(f"the sums of entry {number} are not those of the entries")

    def _check_hash(self, row, previous):
        content = {name: row[name] for name in row if name != "hash"}
        if sha256(canonical(content | {"previous": previous})) != row["hash"]:
            raise self._broken(f"entry {row['id']} is not what was written")

    def _check_seen(self, seen, count, found):
        number, known = seen
        if number > count:
            raise self._broken(f"entry {count + 1}, written before, is missing (an older copy)")
        if number and found != known:
            raise self._broken(f"entry {number} is not the one that was written before")

    def _check_triggers(self, there):
        if not there:
            raise self._broken("the triggers that keep it append-only were changed")

    def _check_identity(self, connection):
        if read_parameters(connection, self.path) != self.parameters:
            stated = self.parameters
            raise LedgerError(
                f"the file {self.path} holds another ledger than this handle was made for; nothing "
                f"was released. Put the former file back (created {stated.created} on host "
                f"{stated.host!r}); to go on with this one, open it with PrivacyAccountant.open"
            )

    def _broken(self, fault):
        return LedgerError(
            f"the ledger {self.path} was damaged or changed: {fault}; nothing was released. "
            f"{RESTORE}"
        )

    def _origin(self):
        return sha256(self.parameters.to_json())

    def _advance(self, number, known):
        if number > self.seen[0]:
            self.seen = number, known


def insert(connection, balance, previous, facts):
    """Write one entry after the hash of the one before; `balance` includes it. Its hash."""
    entry = {"id": balance.entries, "time": now(), **facts, **balance.columns()}
    entry["hash"] = sha256(canonical(entry | {"previous": previous}))
    places = ", ".join(f":{name}" for name in entry)
    connection.execute(f"INSERT INTO entries ({', '.join(entry)}) VALUES ({places})", entry)
    return entry["hash"]


def _count(connection):
    """How many entries were ever written; SQLite keeps it on a page of its own."""
    written = connection.execute("SELECT seq FROM sqlite_sequence").fetchone()
    return written[0] if written else 0


# ---- opening ----------------------------------------------------------------------------------


def create_temporary(parameters):
    """A ledger in a folder of its own that goes when this process exits."""
    path = temporary_path()
    try:
        ledger = Ledger.create(path, parameters)
    except BaseException:
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        raise
    if not parameters.testing:
        say_where(path)
    return ledger


def open_or_create(path, parameters):
    """The ledger at `path`, which must agree with what is asked for (ValueError), or a new one."""
    if not os.path.lexists(path):
        if not parameters.testing:
            say_new(path)
        with contextlib.suppress(FileExistsError):  # somebody was faster: open that one
            return Ledger.create(path, parameters)
    _await_content(path)
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


def _await_content(path):
    """Give a creator without hard links a second to move its ledger to the name it reserved."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            if os.stat(path).st_size == 0:
                time.sleep(0.05)
                continue
        return
