"""Ledgers in PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rvq.errors import LedgerError
from rvq.ledger.ledger import Ledger
from tests.ledger.places import PostgresPlace, mark

pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)


@pytest.mark.parametrize("connections", [0, -1, 1.5, "8", None, True])
def test_a_number_of_connections_that_is_none_is_refused(connections: Any) -> None:
    with pytest.raises(LedgerError, match=r"connections=.* give 1 or more"):
        Ledger.postgres("dbname=work", connections=connections)


def test_a_lock_timeout_that_is_none_is_refused() -> None:
    with pytest.raises(LedgerError, match="lock_timeout=0 is not a time to wait"):
        Ledger.postgres("dbname=work", lock_timeout=0)


async def test_making_a_ledger_reaches_for_nothing_and_opening_says_what_is_wrong() -> None:
    ledger = Ledger.postgres("host=127.0.0.1 port=1 dbname=work")
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"127\.0\.0\.1/1/work cannot be reached: .*; check the dsn"):
            await ledger.open()
    await ledger.aclose()


async def test_questions_never_wait_for_handlers(postgres: PostgresPlace) -> None:
    async with postgres.ledger(connections=1) as ledger, ledger.transaction(mark()):
        async with asyncio.timeout(10):
            assert not await ledger.is_marked(mark())
            assert await ledger.forget(4e9) == 0


async def test_a_cancelled_question_leaves_the_ledger_whole(postgres: PostgresPlace) -> None:
    async with postgres.ledger() as ledger:
        for turns in range(12):
            asking = asyncio.create_task(ledger.is_marked(mark()))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        assert not await ledger.is_marked(mark())


async def test_closing_leaves_no_session_behind(postgres: PostgresPlace) -> None:
    async with postgres.ledger() as ledger:
        for number in range(3):
            async with ledger.transaction(mark(number)):
                pass
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rvq'"
    async with asyncio.timeout(10):
        while postgres.query(query) != [(0,)]:
            await asyncio.sleep(0.01)
