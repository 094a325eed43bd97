"""Transactions of a PostgreSQL ledger, for the event loop and for threads. Owns their steps; the pool has connections.

Each step is there twice, awaited and blocking, since psycopg is: keep the two side by side.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from rvq.errors import AlreadyDone, LedgerError
from rvq.ledger.gate import Gate, Who
from rvq.ledger.ledger import Transaction
from rvq.ledger.mark import Mark
from rvq.ledger.postgres_pool import PostgresPool
from rvq.ledger.postgres_schema import INSERT
from rvq.ledger.postgres_server import AnyConnection, PostgresServer, is_lost

_UNFIT = {
    TransactionStatus.INERROR: "a statement in the block failed and its error did not leave the block, so nothing of it"
    " is kept: let errors out, or try statements in `tx.transaction()`",
    TransactionStatus.IDLE: "the block ended its transaction by itself: take out COMMIT and ROLLBACK",
    TransactionStatus.ACTIVE: "a statement of the block is still running at its end: await it inside",
    TransactionStatus.UNKNOWN: "the connection was closed in the block, so nothing of it is kept: take out close()",
}
"""Why a block that ended without an error cannot be committed. Psycopg would say nothing, and keep nothing."""


class PostgresTransaction(Transaction):
    """The mark is inserted first: a rival with the same one waits for us, and then finds it or takes it."""

    def __init__(self, mark: Mark, server: PostgresServer, gate: Gate, pool: PostgresPool) -> None:
        super().__init__(mark)
        self._server = server
        self._gate = gate
        self._pool = pool
        self._who: Who = None
        self._block: psycopg.AsyncTransaction | None = None
        self._block_blocking: psycopg.Transaction | None = None

    async def _begin(self) -> AsyncConnection[Any]:
        self._who = await self._gate.enter()
        try:
            while True:
                connection, was_used = await self._pool.take()
                try:
                    return await self._insert(connection)
                except psycopg.Error as error:
                    if not (was_used and is_lost(error)):
                        raise self._server.wrong(error) from error
        except BaseException:
            self._gate.leave(self._who)
            raise

    def _begin_blocking(self) -> Connection[Any]:
        self._who = self._gate.enter_blocking()
        try:
            while True:
                connection, was_used = self._pool.take_blocking()
                try:
                    return self._insert_blocking(connection)
                except psycopg.Error as error:
                    if not (was_used and is_lost(error)):
                        raise self._server.wrong(error) from error
        except BaseException:
            self._gate.leave(self._who)
            raise

    async def _insert(self, connection: AsyncConnection[Any]) -> AsyncConnection[Any]:
        self._block = psycopg.AsyncTransaction(connection)
        try:
            await self._block.__aenter__()
            if (await connection.execute(INSERT, self._row)).rowcount != 1:
                raise AlreadyDone(self.mark)
        except BaseException as error:
            await self._roll_back(self._block, error)
            raise
        return connection

    def _insert_blocking(self, connection: Connection[Any]) -> Connection[Any]:
        self._block_blocking = psycopg.Transaction(connection)
        try:
            self._block_blocking.__enter__()
            if connection.execute(INSERT, self._row).rowcount != 1:
                raise AlreadyDone(self.mark)
        except BaseException as error:
            self._roll_back_blocking(self._block_blocking, error)
            raise
        return connection

    async def _end(self, error: BaseException | None) -> None:
        assert self._block is not None
        connection = self._block.connection
        failure = error or _unfit(connection)
        try:
            if failure is None:
                await self._commit(self._block)
                return
            instead = self._instead_of(failure, connection)
            await self._roll_back(self._block, failure)
        finally:
            self._gate.leave(self._who)
        if instead is not None:
            raise instead from error

    def _end_blocking(self, error: BaseException | None) -> None:
        assert self._block_blocking is not None
        connection = self._block_blocking.connection
        failure = error or _unfit(connection)
        try:
            if failure is None:
                self._commit_blocking(self._block_blocking)
                return
            instead = self._instead_of(failure, connection)
            self._roll_back_blocking(self._block_blocking, failure)
        finally:
            self._gate.leave(self._who)
        if instead is not None:
            raise instead from error

    async def _commit(self, block: psycopg.AsyncTransaction) -> None:
        connection = block.connection
        try:
            await block.__aexit__(None, None, None)
        except BaseException as error:
            await connection.close()
            if is_lost(error):
                raise self._server.lost(error) from error
            raise  # a deferred constraint of the user's own tables, for example
        await self._pool.give_back(connection)

    def _commit_blocking(self, block: psycopg.Transaction) -> None:
        connection = block.connection
        try:
            block.__exit__(None, None, None)
        except BaseException as error:
            connection.close()
            if is_lost(error):
                raise self._server.lost(error) from error
            raise
        self._pool.give_back_blocking(connection)

    async def _roll_back(self, block: psycopg.AsyncTransaction, error: BaseException) -> None:
        """The connection is used again only if the end was ordinary and the rollback confirmed; closing rolls back."""
        connection = block.connection
        if not (isinstance(error, Exception) and _is_in_transaction(connection)):
            await connection.close()
            return
        try:
            await block.__aexit__(type(error), error, None)
        except BaseException:
            await connection.close()
            raise
        await self._pool.give_back(connection)

    def _roll_back_blocking(self, block: psycopg.Transaction, error: BaseException) -> None:
        connection = block.connection
        if not (isinstance(error, Exception) and _is_in_transaction(connection)):
            connection.close()
            return
        try:
            block.__exit__(type(error), error, None)
        except BaseException:
            connection.close()
            raise
        self._pool.give_back_blocking(connection)

    def _instead_of(self, failure: BaseException, connection: AnyConnection) -> LedgerError | None:
        """What is raised for a failure that is not the user's own: to be asked before the connection is closed."""
        if isinstance(failure, _Unfit):
            return failure
        if is_lost(failure) and connection.closed:
            return self._server.lost(failure)
        return None


class _Unfit(LedgerError):
    """Found by us at the end of the block, and not raised in it."""


def _unfit(connection: AnyConnection) -> _Unfit | None:
    why = _UNFIT.get(connection.info.transaction_status)
    return None if why is None else _Unfit(why)


def _is_in_transaction(connection: AnyConnection) -> bool:
    return connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}
