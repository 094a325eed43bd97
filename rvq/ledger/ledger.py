"""What every ledger can do. Owns the public shape of ledgers and transactions; knows no database."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from rvq.errors import LedgerError
from rvq.ledger.gate import in_event_loop
from rvq.ledger.mark import Mark, row_of

__all__ = ["Ledger", "Mark", "Transaction"]


class Transaction(ABC):
    """One message's mark and its handler's writes, committed together or not at all. Entered once.

    `async with transaction as tx` in the event loop, `with transaction as tx` in a thread. Entering inserts the mark,
    and raises AlreadyDone if it is there. Leaving commits; leaving by an exception rolls back.
    """

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self._row = row_of(mark)
        self._was_entered = False

    async def __aenter__(self) -> Any:
        self._enter_once()
        return await self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(error)

    def __enter__(self) -> Any:
        if in_event_loop():
            raise LedgerError("`with` would block the event loop: write `async with`, or run this in a thread")
        self._enter_once()
        return self._begin_blocking()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_blocking(error)

    def _enter_once(self) -> None:
        if self._was_entered:
            raise LedgerError("a transaction is entered once: ask ledger.transaction(mark) for another")
        self._was_entered = True

    @abstractmethod
    async def _begin(self) -> Any:
        """Inserts the mark; what the user writes with."""

    @abstractmethod
    async def _end(self, error: BaseException | None) -> None:
        """Commits if there is no error, else rolls back."""

    @abstractmethod
    def _begin_blocking(self) -> Any: ...

    @abstractmethod
    def _end_blocking(self, error: BaseException | None) -> None: ...


class Ledger(ABC):
    """Remembers which messages are done, in the database that the handlers write to: effects exactly once.

    `Ledger.sqlite(path)` for the processes of one machine, `Ledger.postgres(dsn)` for many machines. Opened by
    `async with ledger:` or `await ledger.open()`.
    """

    @staticmethod
    def sqlite(path: str | os.PathLike[str], *, timeout: float = 5.0) -> Ledger:
        """A ledger in a SQLite file, which is created if it is not there.

        timeout: seconds that a transaction waits while another process has the file's only write lock.
        """
        from rvq.ledger.sqlite import SqliteLedger

        return SqliteLedger(path, timeout)

    @staticmethod
    def postgres(dsn: str, *, connections: int = 8, lock_timeout: float = 10.0) -> Ledger:
        """A ledger in a PostgreSQL database. Needs psycopg: `pip install 'rvq[postgres]'`.

        dsn: as libpq takes it, "postgresql://user@host/database" or "host=… dbname=…".
        connections: transactions at a time from this process; one more connection is for questions.
        lock_timeout: seconds that a transaction waits for a lock, such as that of a rival with the same mark.
        """
        try:
            from rvq.ledger.postgres import PostgresLedger
        except ImportError as error:
            raise LedgerError(f"a PostgreSQL ledger needs psycopg ({error}): pip install 'rvq[postgres]'") from error
        return PostgresLedger(dsn, connections, lock_timeout)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Was it opened, and not closed since?"""

    @abstractmethod
    async def open(self) -> None:
        """Creates the tables, or checks those that are there. Does nothing if it is open."""

    @abstractmethod
    async def aclose(self) -> None:
        """Refuses new transactions, waits for those under way, and closes. Does nothing if it is closed."""

    @abstractmethod
    async def is_marked(self, mark: Mark) -> bool:
        """Whether the message was done, by a transaction that is committed."""

    @abstractmethod
    def transaction(self, mark: Mark) -> Transaction:
        """The mark and the handler's writes in one: `async with` in the event loop, `with` in a thread."""

    @abstractmethod
    async def forget(self, before: float) -> int:
        """Drops marks that are older than this wall-clock time (as of `time.time()`); how many.

        A message whose mark is forgotten would be done again if it were delivered again: see docs/ledger.md for how
        old is safe.
        """


def check_seconds(seconds: object, what: str) -> float:
    """`seconds` itself if one can wait that long; LedgerError otherwise."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= SECONDS_MAX:
        raise LedgerError(f"{what}={seconds!r} is not a time to wait: give seconds, over 0 and up to {SECONDS_MAX:,}")
    return float(seconds)


SECONDS_MAX = 86_400
"""A day: databases count in milliseconds of 31 bits, and nobody means to wait for longer."""
