"""A sqlite3 connection inside a transaction. Owns what a user may not do there: end it, or write outside of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NoReturn, Self

from rvq.errors import LedgerError

BLOCK_COMMITS = "the transaction ends with its block: take out BEGIN, COMMIT, ROLLBACK, executescript() and close()"
ENDED = (
    "the transaction was rolled back by an earlier error, or its block has ended: let errors leave the block, and write"
    " inside of it"
)


class InsideCursor(sqlite3.Cursor):
    """Executes only while the transaction is open: after it, SQLite would commit each statement by itself."""

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        check_inside(self.connection)
        try:
            return super().execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            _explain(error)
            raise

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        check_inside(self.connection)
        try:
            return super().executemany(sql, parameters)
        except sqlite3.DatabaseError as error:
            _explain(error)
            raise

    def executescript(self, sql: str, /) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)  # it would commit first


class InsideConnection(sqlite3.Connection):
    """What `with ledger.transaction(mark) as tx` gives: the plain thing, less the ways to end the transaction."""

    def cursor(self, factory: Any = InsideCursor) -> Any:
        check_inside(self)
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return self.cursor().execute(sql, parameters)  # type: ignore[no-any-return]

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        return self.cursor().executemany(sql, parameters)  # type: ignore[no-any-return]

    def executescript(self, sql: str, /) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)

    def commit(self) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)

    def rollback(self) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)

    def close(self) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)

    def __enter__(self) -> NoReturn:
        raise LedgerError(BLOCK_COMMITS)  # `with connection:` commits at its end


def check_inside(connection: sqlite3.Connection) -> None:
    """LedgerError unless the transaction is open."""
    try:
        is_inside = connection.in_transaction
    except sqlite3.ProgrammingError:  # closed
        is_inside = False
    if not is_inside:
        raise LedgerError(ENDED)


def forbid_ending(connection: sqlite3.Connection) -> None:
    """From now on SQLite refuses BEGIN, COMMIT and ROLLBACK. Savepoints are welcome."""
    connection.set_authorizer(_authorize)


def allow_ending(connection: sqlite3.Connection) -> None:
    connection.set_authorizer(None)


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK


def _explain(error: sqlite3.DatabaseError) -> None:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
        raise LedgerError(BLOCK_COMMITS) from error
