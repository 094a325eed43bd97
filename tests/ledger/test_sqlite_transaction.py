"""Transactions in SQLite: what the user writes with."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from rvq.errors import LedgerError
from rvq.ledger.ledger import Ledger
from tests.ledger.places import SqlitePlace, mark


@pytest.fixture
def place(sqlite: SqlitePlace) -> SqlitePlace:
    return sqlite


async def test_results_are_awaited_as_asyncio_users_expect(ledger: Ledger) -> None:
    async with ledger.transaction(mark()) as tx:
        many = await tx.executemany("INSERT INTO effects VALUES (?)", [(number,) for number in range(250)])
        assert many.rowcount == 250
        one = await tx.execute("INSERT INTO effects VALUES (:n)", {"n": 250})
        assert one.lastrowid == 251
        cursor = await tx.execute("SELECT sequence FROM effects ORDER BY 1")
        assert cursor.description[0][0] == "sequence"
        assert await cursor.fetchone() == (0,)
        assert await cursor.fetchmany(2) == [(1,), (2,)]
        assert [number async for (number,) in cursor] == list(range(3, 251))
        assert await cursor.fetchone() is None
        tx.row_factory = sqlite3.Row
        assert tx.row_factory is sqlite3.Row
        rows = await (await tx.execute("SELECT max(sequence) AS most FROM effects")).fetchall()
        assert rows[0]["most"] == 250


async def test_settings_of_one_block_do_not_reach_the_next(ledger: Ledger) -> None:
    async with ledger.transaction(mark(1)) as tx:
        tx.row_factory = sqlite3.Row
        await tx.execute("CREATE TEMP TABLE scratch (a)")
    async with ledger.transaction(mark(2)) as tx:
        assert await (await tx.execute("SELECT 1")).fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await tx.execute("SELECT * FROM scratch")


async def test_in_a_thread_it_is_a_plain_connection(ledger: Ledger, place: SqlitePlace) -> None:
    def handle() -> None:
        with ledger.transaction(mark()) as tx:
            assert isinstance(tx, sqlite3.Connection)
            tx.executemany("INSERT INTO effects VALUES (?)", [(1,), (2,)])
            assert tx.execute("SELECT count(*) FROM effects").fetchone() == (2,)

    await asyncio.to_thread(handle)
    assert place.effects() == [1, 2]


async def test_a_handle_that_outlives_its_block_is_of_no_use(ledger: Ledger, place: SqlitePlace) -> None:
    async with ledger.transaction(mark(1)) as kept:
        pass
    kept_blocking = await asyncio.to_thread(enter_and_leave, ledger)
    async with ledger.transaction(mark(3)):
        with pytest.raises(LedgerError, match="its block has ended"):
            await kept.execute("INSERT INTO effects VALUES (7)")
        with pytest.raises(LedgerError, match="its block has ended"):
            kept_blocking.execute("INSERT INTO effects VALUES (7)")
    assert place.effects() == []


def enter_and_leave(ledger: Ledger) -> sqlite3.Connection:
    with ledger.transaction(mark(2)) as tx:
        kept: sqlite3.Connection = tx
    return kept


async def test_ending_it_from_inside_is_refused_and_rolls_back(ledger: Ledger, place: SqlitePlace) -> None:
    with pytest.raises(LedgerError, match="ends with its block"):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            await tx.execute("COMMIT")
    assert (place.effects(), place.marks()) == ([], [])


async def test_a_users_own_error_is_sqlites_and_rolls_back(ledger: Ledger, place: SqlitePlace) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            await tx.execute("SELECT * FROM absent")
    assert (place.effects(), place.marks()) == ([], [])


async def test_an_error_whose_frames_hold_a_cursor_keeps_no_lock(ledger: Ledger, place: SqlitePlace) -> None:
    async with ledger.transaction(mark(1)) as tx:
        await tx.executemany(place.insert, [(number,) for number in range(5)])
    with pytest.raises(ZeroDivisionError) as caught:
        async with ledger.transaction(mark(2)) as tx:
            cursor = await tx.execute("SELECT * FROM effects")
            await cursor.fetchone()
            raise ZeroDivisionError
    async with place.ledger(0.2) as other, other.transaction(mark(3)):
        pass
    assert caught.value.__traceback__ is not None


async def test_cancelled_while_another_process_has_the_lock_it_gives_up_at_once(
    ledger: Ledger, place: SqlitePlace
) -> None:
    async with place.ledger() as other, other.transaction(mark()):
        waiting = asyncio.create_task(ledger.transaction(mark(2)).__aenter__())
        await asyncio.wait({waiting}, timeout=0.05)
        waiting.cancel()
        async with asyncio.timeout(5):  # its patience is 20 s
            await asyncio.wait({waiting})
        assert waiting.cancelled()
    async with ledger.transaction(mark(2)):
        pass
