"""Connections that wait for the next transaction. Owns which are idle; a connection that is not as new is closed.

Only who is inside the ledger's gate takes one, so there are never more than the gate has places.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rvq.ledger.postgres_server import AnyConnection, PostgresServer


class PostgresPool:
    """Connections of the event loop, and others for threads: psycopg has a class for each."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        # Appending to a list and popping from it are atomic: threads need no lock here.
        self._idle: list[AsyncConnection[Any]] = []
        self._idle_blocking: list[Connection[Any]] = []

    async def take(self) -> tuple[AsyncConnection[Any], bool]:
        """A connection, and whether it was used before: such a one may have been lost while it was idle."""
        try:
            return self._idle.pop(), True
        except IndexError:
            return await self._server.connect(), False

    def take_blocking(self) -> tuple[Connection[Any], bool]:
        try:
            return self._idle_blocking.pop(), True
        except IndexError:
            return self._server.connect_blocking(), False

    async def give_back(self, connection: AsyncConnection[Any]) -> None:
        """Keeps it if it is as new, else closes it, which rolls back whatever it had open."""
        if is_as_new(connection):
            connection.row_factory = tuple_row
            self._idle.append(connection)
        else:
            await connection.close()

    def give_back_blocking(self, connection: Connection[Any]) -> None:
        if is_as_new(connection):
            connection.row_factory = tuple_row
            self._idle_blocking.append(connection)
        else:
            connection.close()

    async def aclose(self) -> None:
        """Closes what is idle. Nobody may be inside the gate."""
        while self._idle:
            await self._idle.pop().close()
        while self._idle_blocking:
            self._idle_blocking.pop().close()


def is_as_new(connection: AnyConnection) -> bool:
    """Alive, with no transaction open and no statement under way."""
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
