"""The SQLite file, in blocking calls: settings, and what can be wrong with it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from rvq.errors import AlreadyDone, LedgerError
from rvq.ledger.mark import row_of
from rvq.ledger.sqlite_connection import InsideConnection
from rvq.ledger.sqlite_file import Patience, SqliteFile
from tests.ledger.places import SqlitePlace, mark


@pytest.fixture
def file(sqlite: SqlitePlace) -> SqliteFile:
    file = SqliteFile(sqlite.path, 0.2)
    file.prepare().close()
    return file


def test_writers_are_as_safe_as_sqlite_can_be(file: SqliteFile) -> None:
    connection = file.begin(Patience(1))
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.rollback(connection)


def test_a_writer_waits_for_another_no_longer_than_its_patience(file: SqliteFile) -> None:
    first = file.begin(Patience(1))
    begun = time.monotonic()
    with pytest.raises(LedgerError, match=r"had the write lock of .*work\.db for 0\.2 s: look for one"):
        file.begin(Patience(0.2))
    assert 0.2 <= time.monotonic() - begun < 5
    file.rollback(first)
    file.rollback(file.begin(Patience(1)))


def test_patience_can_be_ended() -> None:
    patience = Patience(60)
    assert not patience.is_over
    patience.end()
    assert patience.is_over


def test_a_cursor_that_is_not_read_out_keeps_no_lock(file: SqliteFile) -> None:
    connection = file.begin(Patience(1))
    connection.executemany("INSERT INTO effects VALUES (?)", [(1,), (2,)])
    cursor = connection.execute("SELECT * FROM effects")
    assert cursor.fetchone() == (1,)
    file.rollback(connection)
    following = file.begin(Patience(1))
    assert following.execute("SELECT * FROM effects").fetchall() == []
    file.rollback(following)
    del cursor


def test_marking_again_is_refused_and_frees_the_lock(file: SqliteFile, sqlite: SqlitePlace) -> None:
    for is_first in (True, False):
        connection = file.begin(Patience(1))
        if is_first:
            file.mark(connection, mark(), row_of(mark()))
            file.commit(connection)
        else:
            with pytest.raises(AlreadyDone):
                file.mark(connection, mark(), row_of(mark()))
    assert sqlite.marks() == [1]
    file.rollback(file.begin(Patience(0.2)))


def test_a_commit_that_cannot_be_is_an_error_and_nothing_is_kept(file: SqliteFile, sqlite: SqlitePlace) -> None:
    sqlite.query("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    sqlite.query("CREATE TABLE children (parent REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
    connection = file._connect("rw", InsideConnection)
    sqlite3.Connection.execute(connection, "PRAGMA foreign_keys = ON")
    file._begin(connection, Patience(1))
    file.mark(connection, mark(), row_of(mark()))
    connection.execute("INSERT INTO children VALUES (7)")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        file.commit(connection)
    assert sqlite.marks() == []
    assert sqlite.query("SELECT * FROM children") == []


def test_a_rollback_that_went_unnoticed_is_an_error_at_the_end(file: SqliteFile, sqlite: SqlitePlace) -> None:
    sqlite.query("CREATE UNIQUE INDEX once ON effects (sequence)")
    connection = file.begin(Patience(1))
    file.mark(connection, mark(), row_of(mark()))
    connection.execute("INSERT INTO effects VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT OR ROLLBACK INTO effects VALUES (1)")
    with pytest.raises(LedgerError, match="rolled back by an earlier error"):
        file.commit(connection)
    assert (sqlite.effects(), sqlite.marks()) == ([], [])


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is a folder: give the path of a file in it"):
        SqliteFile(tmp_path, 1).prepare()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no folder .*missing for the ledger: make it first"):
        SqliteFile(tmp_path / "missing" / "work.db", 1).prepare()


def test_what_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    path.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(LedgerError, match="is not a SQLite database: give another path"):
        SqliteFile(path, 1).prepare()
    assert path.read_bytes() == b"dear diary, " * 1000


def test_a_damaged_database_is_an_error_of_the_ledger(file: SqliteFile) -> None:
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    damaged = bytearray(file.path.read_bytes())
    damaged[100:] = os.urandom(len(damaged) - 100)
    file.path.write_bytes(damaged)
    with pytest.raises(LedgerError, match=r"the ledger .*work\.db failed: .*; check the file and its disk"):
        file.prepare()


def test_a_file_that_is_gone_is_not_made_anew_in_the_middle(file: SqliteFile) -> None:
    file.path.unlink()
    with pytest.raises(LedgerError, match="cannot be written: check that it is there"):
        file.begin(Patience(1))
    assert not file.path.exists()


def test_odd_names_are_only_names(tmp_path: Path) -> None:
    path = tmp_path / "50% of ?mode=memory&#.db"
    SqliteFile(path, 1).prepare().close()
    assert path.exists()


def test_a_database_of_the_users_keeps_its_own_version(sqlite: SqlitePlace) -> None:
    sqlite.query("PRAGMA user_version = 42")
    SqliteFile(sqlite.path, 1).prepare().close()
    assert sqlite.query("PRAGMA user_version") == [(42,)]
