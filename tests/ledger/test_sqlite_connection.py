"""What a user cannot do inside of a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rvq.errors import LedgerError
from rvq.ledger.sqlite_connection import InsideConnection, allow_ending, forbid_ending

Act = Callable[[InsideConnection], object]


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[InsideConnection]:
    connection = sqlite3.connect(tmp_path / "a.db", isolation_level=None, factory=InsideConnection)
    sqlite3.Connection.execute(connection, "CREATE TABLE effects (sequence INTEGER UNIQUE)")
    sqlite3.Connection.execute(connection, "BEGIN IMMEDIATE")
    forbid_ending(connection)
    yield connection
    sqlite3.Connection.close(connection)


def test_it_is_a_plain_connection_otherwise(inside: InsideConnection) -> None:
    assert isinstance(inside, sqlite3.Connection)
    assert inside.execute("INSERT INTO effects VALUES (?)", (1,)).rowcount == 1
    inside.executemany("INSERT INTO effects VALUES (?)", [(2,), (3,)])
    inside.cursor().execute("INSERT INTO effects VALUES (:n)", {"n": 4})
    assert inside.execute("SELECT * FROM effects").fetchall() == [(1,), (2,), (3,), (4,)]
    inside.row_factory = sqlite3.Row
    assert inside.execute("SELECT max(sequence) AS most FROM effects").fetchone()["most"] == 4


def test_savepoints_are_welcome(inside: InsideConnection) -> None:
    inside.execute("SAVEPOINT one")
    inside.execute("INSERT INTO effects VALUES (1)")
    inside.execute("ROLLBACK TO one")
    inside.execute("RELEASE one")
    assert inside.execute("SELECT * FROM effects").fetchall() == []


@pytest.mark.parametrize(
    "act",
    [
        lambda tx: tx.commit(),
        lambda tx: tx.rollback(),
        lambda tx: tx.close(),
        lambda tx: tx.__enter__(),
        lambda tx: tx.executescript("SELECT 1"),
        lambda tx: tx.cursor().executescript("SELECT 1"),
        lambda tx: tx.execute("COMMIT"),
        lambda tx: tx.execute("end transaction"),
        lambda tx: tx.execute("ROLLBACK"),
        lambda tx: tx.cursor().execute("/* now */ commit"),
        lambda tx: tx.executemany("COMMIT", [()]),
    ],
)
def test_the_transaction_is_not_ended_from_inside(inside: InsideConnection, act: Act) -> None:
    with pytest.raises(LedgerError, match="ends with its block"):
        act(inside)
    assert inside.in_transaction
    allow_ending(inside)
    inside.execute("ROLLBACK")
    assert not inside.in_transaction


@pytest.mark.parametrize(
    "act",
    [
        lambda tx: tx.execute("INSERT INTO effects VALUES (7)"),
        lambda tx: tx.executemany("INSERT INTO effects VALUES (?)", [(7,)]),
        lambda tx: tx.cursor().execute("INSERT INTO effects VALUES (7)"),
    ],
)
def test_nothing_is_written_after_sqlite_rolled_back_by_itself(inside: InsideConnection, act: Act) -> None:
    inside.execute("INSERT INTO effects VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        inside.execute("INSERT OR ROLLBACK INTO effects VALUES (1)")
    with pytest.raises(LedgerError, match="rolled back by an earlier error"):
        act(inside)


def test_errors_of_statements_are_sqlites_own(inside: InsideConnection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        inside.execute("SELECT * FROM absent")
    with pytest.raises(sqlite3.IntegrityError):
        inside.executemany("INSERT INTO effects VALUES (?)", [(1,), (1,)])
