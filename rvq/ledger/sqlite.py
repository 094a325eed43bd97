"""A ledger in a SQLite file, for the processes of one machine. Owns its thread, its gate and the reading connection."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

from rvq.errors import LedgerError
from rvq.ledger.gate import Gate, closed
from rvq.ledger.ledger import Ledger, check_seconds
from rvq.ledger.mark import Mark, row_of
from rvq.ledger.sqlite_file import FORGET_ROWS, Patience, SqliteFile
from rvq.ledger.sqlite_transaction import SqliteTransaction
from rvq.ledger.thread import StepThread


class SqliteLedger(Ledger):
    """One writes at a time: SQLite has one write lock for the whole file, and the gate hands it out in order."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self._file = SqliteFile(_checked(path), check_seconds(timeout, "timeout"))
        self._gate = Gate(1)
        self._opening = asyncio.Lock()
        self._reader: sqlite3.Connection | None = None
        self._readings: StepThread | None = None
        self._writings: StepThread | None = None

    @property
    def is_open(self) -> bool:
        return self._reader is not None

    async def open(self) -> None:
        async with self._opening:
            if self._reader is not None:
                self._gate.open()  # it is shut if a closing was cancelled
                return
            self._readings = StepThread("rvq-ledger-read")
            try:
                await self._readings.run(self._prepare)
            except BaseException:
                await self._end_readings()
                raise
            self._writings = StepThread("rvq-ledger-write")
            self._gate.open()

    async def aclose(self) -> None:
        async with self._opening:
            if self._reader is None:
                return
            await self._gate.close()
            self._thread().end()
            self._writings = None
            await self._end_readings()

    async def is_marked(self, mark: Mark) -> bool:
        row = row_of(mark)
        reader = self._reader
        if reader is None or self._readings is None:
            raise closed()
        return await self._readings.run(lambda: self._file.is_marked(reader, row))

    def transaction(self, mark: Mark) -> SqliteTransaction:
        return SqliteTransaction(mark, self._file, self._gate, self._thread)

    async def forget(self, before: float) -> int:
        count = 0
        while True:
            dropped = await self._forget_some(before)
            count += dropped
            if dropped < FORGET_ROWS:
                return count

    async def _forget_some(self, before: float) -> int:
        who = await self._gate.enter()
        patience = Patience(self._file.timeout)
        try:
            return await self._thread().run(lambda: self._file.forget_some(before, patience), patience.end)
        finally:
            self._gate.leave(who)

    def _thread(self) -> StepThread:
        """Of those who are inside the gate: it is open, so there is one."""
        assert self._writings is not None
        return self._writings

    def _prepare(self) -> None:
        self._reader = self._file.prepare()

    async def _end_readings(self) -> None:
        reader, self._reader = self._reader, None
        readings, self._readings = self._readings, None
        assert readings is not None
        try:
            if reader is not None:
                await readings.run(reader.close)
        finally:
            readings.end()


def _checked(path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(text := os.fspath(path), str):
        raise LedgerError(f"path={path!r} is not a path: give that of a file, such as 'work.db'")
    if text in {"", ":memory:"} or "\0" in text:
        raise LedgerError(f"path={text!r} is not a file: a ledger must outlive its process, so give a path")
    return Path(text).absolute()
