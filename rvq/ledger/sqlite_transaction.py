"""Transactions of a SQLite ledger. Owns their steps and where they run; the file does the work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from rvq.ledger.gate import Gate, Who
from rvq.ledger.ledger import Transaction
from rvq.ledger.mark import Mark
from rvq.ledger.sqlite_connection import InsideConnection
from rvq.ledger.sqlite_file import Patience, SqliteFile
from rvq.ledger.thread import StepThread

Result = TypeVar("Result")


class SqliteCursor:
    """The result of a statement. As in sqlite3, but what may touch the disk is awaited."""

    def __init__(self, cursor: sqlite3.Cursor, inside: SqliteInside) -> None:
        self._cursor = cursor
        self._inside = inside

    async def fetchone(self) -> Any:
        """The next row, or None."""
        return await self._inside.run(self._cursor.fetchone)

    async def fetchmany(self, size: int = 100) -> list[Any]:
        """The next rows, an empty list at the end."""
        return await self._inside.run(lambda: self._cursor.fetchmany(size))

    async def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return await self._inside.run(self._cursor.fetchall)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while rows := await self.fetchmany():
            for row in rows:
                yield row

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    @property
    def description(self) -> Any:
        return self._cursor.description


class SqliteInside:
    """What `async with ledger.transaction(mark) as tx` gives: statements run in the ledger's thread."""

    def __init__(self, connection: InsideConnection, thread: StepThread) -> None:
        self._connection = connection
        self._thread = thread

    async def execute(self, sql: str, parameters: Any = ()) -> SqliteCursor:
        """Executes one statement; rows are fetched from what is returned."""
        return SqliteCursor(await self.run(lambda: self._connection.execute(sql, parameters)), self)

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> SqliteCursor:
        """Executes one statement for each of the parameters."""
        return SqliteCursor(await self.run(lambda: self._connection.executemany(sql, parameters)), self)

    @property
    def row_factory(self) -> Any:
        """As in sqlite3: what makes a row of a tuple, such as `sqlite3.Row`."""
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._connection.row_factory = factory

    async def run(self, step: Callable[[], Result]) -> Result:
        """A step in the ledger's thread. One that is cancelled is interrupted, however long its statement."""
        return await self._thread.run(step, self._connection.interrupt)


class SqliteTransaction(Transaction):
    """Waits for its turn among those of this process, then for the file's write lock."""

    def __init__(self, mark: Mark, file: SqliteFile, gate: Gate, thread: Callable[[], StepThread]) -> None:
        super().__init__(mark)
        self._file = file
        self._gate = gate
        self._thread_now = thread
        self._connection: InsideConnection | None = None
        self._who: Who = None

    async def _begin(self) -> SqliteInside:
        self._who = await self._gate.enter()
        self._thread = self._thread_now()
        patience = Patience(self._file.timeout)
        try:
            await self._thread.run(lambda: self._mark(patience), patience.end)
        except asyncio.CancelledError:
            await self._end_anyhow(self._rollback)  # the lock may have come all the same
            raise
        except BaseException:
            self._gate.leave(self._who)
            raise
        assert self._connection is not None
        return SqliteInside(self._connection, self._thread)

    async def _end(self, error: BaseException | None) -> None:
        await self._end_anyhow(self._commit if error is None else self._rollback)

    async def _end_anyhow(self, step: Callable[[], None]) -> None:
        try:
            await self._thread.run(step)
        finally:
            self._gate.leave(self._who)

    def _begin_blocking(self) -> InsideConnection:
        self._who = self._gate.enter_blocking()
        try:
            return self._mark(Patience(self._file.timeout))
        except BaseException:
            self._rollback()
            self._gate.leave(self._who)
            raise

    def _end_blocking(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._rollback()
        finally:
            self._gate.leave(self._who)

    def _mark(self, patience: Patience) -> InsideConnection:
        connection = self._file.begin(patience)
        self._file.mark(connection, self.mark, self._row)
        self._connection = connection
        return connection

    def _commit(self) -> None:
        assert self._connection is not None
        self._file.commit(self._connection)

    def _rollback(self) -> None:
        if self._connection is not None:
            self._file.rollback(self._connection)
