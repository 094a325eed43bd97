"""The SQLite file of a ledger, in blocking calls. Owns its tables, its settings and the words for what goes wrong.

A transaction has a connection of its own, opened for it and closed after it: whatever happened inside, nothing of it
can leak into the next. That costs less than a millisecond.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import TypeVar

from rvq.errors import AlreadyDone, LedgerError
from rvq.ledger.mark import Mark, Row
from rvq.ledger.sqlite_connection import ENDED, InsideConnection, allow_ending, forbid_ending
from rvq.ledger.version import check_version

_Connection = TypeVar("_Connection", bound=sqlite3.Connection)

VERSION = 1
"""Of the tables. A ledger of another version is refused."""

SLICE_S = 0.1
"""SQLite waits for a lock in slices of this length: between two of them a cancelled transaction gives up."""

FORGET_ROWS = 1000
"""Marks that are dropped in one transaction: others write in between."""

# The version has a table, since `PRAGMA user_version` belongs to the application that shares the file.
_TABLES = (
    "CREATE TABLE rvq_ledger (version INTEGER NOT NULL)",
    "CREATE TABLE rvq_marks (label TEXT NOT NULL, group_name TEXT NOT NULL, sender INTEGER NOT NULL,"
    " sequence INTEGER NOT NULL, done_at REAL NOT NULL,"
    " PRIMARY KEY (label, group_name, sender, sequence)) WITHOUT ROWID",
    "CREATE INDEX rvq_marks_done_at ON rvq_marks (done_at)",
    f"INSERT INTO rvq_ledger VALUES ({VERSION})",
)

_INSERT = "INSERT INTO rvq_marks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SELECT = "SELECT 1 FROM rvq_marks WHERE label = ? AND group_name = ? AND sender = ? AND sequence = ?"
_FORGET = (
    "DELETE FROM rvq_marks WHERE (label, group_name, sender, sequence) IN"
    " (SELECT label, group_name, sender, sequence FROM rvq_marks WHERE done_at < ? ORDER BY done_at LIMIT ?)"
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

# Our own statements are executed by the plain class, past what users are kept from.
_run = sqlite3.Connection.execute


class SqliteFile:
    """Where it is and how long to wait for it."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout

    def prepare(self) -> sqlite3.Connection:
        """Creates or checks the tables. The connection is for reading; while it is open, SQLite keeps its log."""
        if self.path.is_dir():
            raise LedgerError(f"{self.path} is a folder: give the path of a file in it for the ledger")
        if not self.path.parent.is_dir():
            raise LedgerError(f"there is no folder {self.path.parent} for the ledger: make it first")
        connection = self._connect("rwc", sqlite3.Connection)
        try:
            self._use_log(connection)
            if not self._has_tables(connection):  # looked first: opening a ledger need not wait for its writers
                self._begin(connection, Patience(self.timeout))
                if not self._has_tables(connection):
                    for statement in _TABLES:
                        _run(connection, statement)
                _run(connection, "COMMIT")
            check_version(_run(connection, "SELECT version FROM rvq_ledger").fetchall(), VERSION, str(self.path))
            _run(connection, f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
        except sqlite3.Error as error:
            _drop(connection)
            raise self._wrong(error) from error
        except BaseException:
            _drop(connection)
            raise
        return connection

    def is_marked(self, reader: sqlite3.Connection, row: Row) -> bool:
        try:
            return _run(reader, _SELECT, row).fetchone() is not None
        except sqlite3.Error as error:
            raise self._wrong(error) from error

    def forget_some(self, before: float, patience: Patience) -> int:
        """Drops up to FORGET_ROWS marks; how many."""
        connection = self.begin(patience)
        try:
            count = _run(connection, _FORGET, (before, FORGET_ROWS)).rowcount
        except sqlite3.Error as error:
            _drop(connection)
            raise self._wrong(error) from error
        self.commit(connection)
        return count

    def begin(self, patience: Patience) -> InsideConnection:
        """A connection that has the write lock."""
        connection = self._connect("rw", InsideConnection)
        try:
            _run(connection, "PRAGMA synchronous = FULL")
            self._begin(connection, patience)
        except sqlite3.Error as error:
            _drop(connection)
            raise self._wrong(error) from error
        except BaseException:
            _drop(connection)
            raise
        return connection

    def mark(self, connection: InsideConnection, mark: Mark, row: Row) -> None:
        """Inserts the mark, and leaves the rest to the user; AlreadyDone if it is there."""
        try:
            is_new = _run(connection, _INSERT, (*row, time.time())).rowcount == 1
        except sqlite3.Error as error:
            _drop(connection)
            raise self._wrong(error) from error
        if not is_new:
            _drop(connection)
            raise AlreadyDone(mark)
        forbid_ending(connection)

    def commit(self, connection: InsideConnection) -> None:
        """All of it is on disk when this returns; none of it is there if it raises."""
        try:
            if not connection.in_transaction:
                raise LedgerError(ENDED)
            allow_ending(connection)
            _run(connection, "COMMIT")
        except sqlite3.IntegrityError:
            raise  # a deferred constraint of the user's own tables
        except sqlite3.Error as error:
            raise self._wrong(error) from error
        finally:
            _drop(connection)

    def rollback(self, connection: InsideConnection) -> None:
        """Nothing of it is there, and the lock is free."""
        _drop(connection)

    def _connect(self, mode: str, factory: type[_Connection]) -> _Connection:
        try:
            return sqlite3.connect(
                f"{self.path.as_uri()}?mode={mode}",
                uri=True,
                timeout=SLICE_S,
                isolation_level=None,
                check_same_thread=False,
                factory=factory,
            )
        except sqlite3.Error as error:
            raise self._wrong(error) from error

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Write-ahead logging: readers and a writer do not wait for each other. Stays with the file."""
        patience = Patience(self.timeout)
        while True:
            try:
                (mode,) = _run(connection, "PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                # Others may be doing the same at this moment, for which SQLite does not always wait by itself.
                if _code(error) not in _BUSY or patience.is_over:
                    raise
                time.sleep(SLICE_S / 10)
            else:
                if mode != "wal":
                    raise LedgerError(f"{self.path} cannot have a write-ahead log there: put it on a local disk")
                return

    def _begin(self, connection: sqlite3.Connection, patience: Patience) -> None:
        while True:
            try:
                _run(connection, "BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or patience.is_over:
                    raise
            else:
                return

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        tables = _run(connection, "SELECT name FROM sqlite_master WHERE name IN ('rvq_ledger', 'rvq_marks')").fetchall()
        if len(tables) == 1:
            raise LedgerError(f"{self.path} has a table {tables[0][0]} that is not a ledger's: rename it")
        return bool(tables)

    def _wrong(self, error: sqlite3.Error) -> LedgerError:
        """The one sentence for an error that is not the user's own."""
        code = _code(error)
        if code in _BUSY:
            return LedgerError(
                f"another process had the write lock of {self.path} for {self.timeout:g} s: look for one that is"
                " stopped or has a long transaction, or raise timeout="
            )
        if code == sqlite3.SQLITE_NOTADB:
            return LedgerError(f"{self.path} is not a SQLite database: give another path, or move that file away")
        if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and not os.access(self.path, os.W_OK)):
            return LedgerError(f"{self.path} cannot be written: check that it is there, and the rights to it ({error})")
        return LedgerError(f"the ledger {self.path} failed: {error}; check the file and its disk")


class Patience:
    """How long a step may still wait. Ended early, from any thread, by `end`."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def end(self) -> None:
        self._deadline = 0.0


def _code(error: sqlite3.Error) -> int | None:
    """The primary code: extended ones have more in their upper bits."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _drop(connection: sqlite3.Connection) -> None:
    """Rolls back first: closing alone would keep the lock while somebody holds a cursor that is not read out."""
    try:
        connection.set_authorizer(None)
        if connection.in_transaction:
            _run(connection, "ROLLBACK")
    except sqlite3.Error:
        pass  # closing does the same, if later
    sqlite3.Connection.close(connection)
