"""A ledger in a PostgreSQL database, for many machines. Owns its gate, its pool and the connection for questions.

Importing this module imports psycopg.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg

from rvq.errors import LedgerError
from rvq.ledger.gate import Gate, closed
from rvq.ledger.ledger import Ledger, check_seconds
from rvq.ledger.mark import Mark, row_of
from rvq.ledger.postgres_pool import PostgresPool
from rvq.ledger.postgres_schema import FORGET, FORGET_ROWS, SELECT, prepare
from rvq.ledger.postgres_server import PostgresServer, is_lost
from rvq.ledger.postgres_transaction import PostgresTransaction

Result = TypeVar("Result")
Question = Callable[[psycopg.AsyncConnection[Any]], Awaitable[Result]]


class PostgresLedger(Ledger):
    """Transactions have the pool's connections. Questions have one apart, so that they never wait for handlers."""

    def __init__(self, dsn: str, connections: int, lock_timeout: float) -> None:
        if type(connections) is not int or connections < 1:
            raise LedgerError(f"connections={connections!r} is not a number of connections: give 1 or more")
        self._server = PostgresServer(dsn, check_seconds(lock_timeout, "lock_timeout"))
        self._gate = Gate(connections)
        self._pool = PostgresPool(self._server)
        self._opening = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._is_open = False
        self._desk: psycopg.AsyncConnection[Any] | None = None

    @property
    def is_open(self) -> bool:
        return self._is_open

    async def open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._ask(lambda connection: prepare(connection, self._server.name))
                self._is_open = True
            self._gate.open()

    async def aclose(self) -> None:
        async with self._opening:
            if not self._is_open:
                return
            await self._gate.close()
            self._is_open = False
            await self._pool.aclose()
            async with self._asking:
                await self._leave_desk()

    async def is_marked(self, mark: Mark) -> bool:
        row = row_of(mark)
        self._check_open()

        async def look(connection: psycopg.AsyncConnection[Any]) -> bool:
            return await (await connection.execute(SELECT, row)).fetchone() is not None

        return await self._ask(look)

    def transaction(self, mark: Mark) -> PostgresTransaction:
        return PostgresTransaction(mark, self._server, self._gate, self._pool)

    async def forget(self, before: float) -> int:
        self._check_open()

        async def drop(connection: psycopg.AsyncConnection[Any]) -> int:
            return (await connection.execute(FORGET, [before])).rowcount

        count = 0
        while True:
            dropped = await self._ask(drop)
            count += dropped
            if dropped < FORGET_ROWS:
                return count

    def _check_open(self) -> None:
        if not self._is_open:
            raise closed()

    async def _ask(self, question: Question[Result]) -> Result:
        """One question at a time. One that finds its idle connection lost is asked again on a new one."""
        async with self._asking:
            while True:
                was_used = self._desk is not None
                self._desk = self._desk or await self._server.connect()
                try:
                    return await question(self._desk)
                except psycopg.Error as error:
                    await self._leave_desk()
                    if not (was_used and is_lost(error)):
                        raise self._server.wrong(error) from error
                except BaseException:
                    await self._leave_desk()  # cancelled in the middle, or not a ledger
                    raise

    async def _leave_desk(self) -> None:
        desk, self._desk = self._desk, None
        if desk is not None:
            await desk.close()
