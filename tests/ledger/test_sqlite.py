"""Ledgers in SQLite files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from rvq.errors import LedgerError
from rvq.ledger.ledger import Ledger
from tests.ledger.places import SqlitePlace, mark


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", 7, None, b"work.db"])
def test_a_path_that_is_no_file_is_refused(path: Any) -> None:
    with pytest.raises(LedgerError, match=r"path=.* give"):
        Ledger.sqlite(path)


async def test_a_ledger_that_cannot_be_opened_can_be_opened_later(tmp_path: Path) -> None:
    ledger = Ledger.sqlite(tmp_path / "later" / "work.db")
    with pytest.raises(LedgerError, match="make it first"):
        await ledger.open()
    (tmp_path / "later").mkdir()
    async with ledger:
        assert not await ledger.is_marked(mark())


async def test_a_path_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.sqlite("work.db")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    async with ledger, ledger.transaction(mark()):
        pass
    assert (tmp_path / "work.db").exists()


async def test_looking_waits_for_no_writer(sqlite: SqlitePlace) -> None:
    async with sqlite.ledger() as ledger, ledger.transaction(mark()):
        async with asyncio.timeout(10):  # the writer's end would be too late
            assert not await ledger.is_marked(mark())
            async with sqlite.ledger() as other:
                assert not await other.is_marked(mark())


async def test_forgetting_waits_for_its_turn(sqlite: SqlitePlace) -> None:
    async with sqlite.ledger() as ledger:
        async with ledger.transaction(mark()):
            forgetting = asyncio.create_task(ledger.forget(2e9 * 2))
            await asyncio.wait({forgetting}, timeout=0.05)
            assert not forgetting.done()
        assert await forgetting == 1
