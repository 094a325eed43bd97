"""What both databases promise: the mark and the writes together or not at all, awaited and in threads."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from rvq.errors import AlreadyDone, BadLabel, LedgerError
from rvq.ledger.ledger import Ledger, Transaction, check_seconds
from tests.ledger.places import Place, mark


async def handle(ledger: Ledger, place: Place, sequence: int = 1) -> None:
    async with ledger.transaction(mark(sequence)) as tx:
        await tx.execute(place.insert, (sequence,))


def handle_blocking(ledger: Ledger, place: Place, sequence: int = 1) -> None:
    with ledger.transaction(mark(sequence)) as tx:
        tx.execute(place.insert, (sequence,))


async def test_leaving_commits_the_mark_and_the_writes(ledger: Ledger, place: Place) -> None:
    assert not await ledger.is_marked(mark())
    await handle(ledger, place)
    assert await ledger.is_marked(mark())
    assert (place.effects(), place.marks()) == ([1], [1])


async def test_leaving_commits_in_a_thread_too(ledger: Ledger, place: Place) -> None:
    await asyncio.to_thread(handle_blocking, ledger, place)
    assert await ledger.is_marked(mark())
    assert (place.effects(), place.marks()) == ([1], [1])


async def test_nothing_is_seen_before_the_end_of_the_block(ledger: Ledger, place: Place) -> None:
    async with ledger.transaction(mark()) as tx:
        await tx.execute(place.insert, (1,))
        assert not await ledger.is_marked(mark())
        assert (place.effects(), place.marks()) == ([], [])


async def test_an_error_rolls_both_back_and_the_message_can_be_done_later(ledger: Ledger, place: Place) -> None:
    with pytest.raises(ZeroDivisionError):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            raise ZeroDivisionError
    assert (place.effects(), place.marks()) == ([], [])
    await handle(ledger, place)
    assert place.effects() == [1]


async def test_an_error_in_a_thread_rolls_both_back(ledger: Ledger, place: Place) -> None:
    def fail() -> None:
        with ledger.transaction(mark()) as tx:
            tx.execute(place.insert, (1,))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(fail)
    assert (place.effects(), place.marks()) == ([], [])
    await asyncio.to_thread(handle_blocking, ledger, place)
    assert place.effects() == [1]


async def test_a_message_that_is_done_is_refused_with_its_mark(ledger: Ledger, place: Place) -> None:
    await handle(ledger, place)
    with pytest.raises(AlreadyDone) as awaited:
        await handle(ledger, place)
    with pytest.raises(AlreadyDone) as blocking:
        await asyncio.to_thread(handle_blocking, ledger, place)
    assert awaited.value.mark == blocking.value.mark == mark()
    assert place.effects() == [1]
    await handle(ledger, place, 2)  # and the ledger is none the worse for it
    await asyncio.to_thread(handle_blocking, ledger, place, 3)


async def test_marks_differ_by_each_of_their_parts(ledger: Ledger) -> None:
    different = [
        mark(),
        mark(2),
        mark(label="Work"),
        mark(label="wörk"),
        mark(label="work\u200b"),
        mark(group="other"),
        mark(sender=0),
        mark(sender=(1 << 64) - 1),
        mark(sender=1 << 63),
        mark((1 << 64) - 1),
    ]
    for each in different:
        async with ledger.transaction(each):
            pass
    for each in different:
        assert await ledger.is_marked(each)
        with pytest.raises(AlreadyDone):
            async with ledger.transaction(each):
                pass
    assert not await ledger.is_marked(mark(label="WORK"))


async def test_an_id_reads_the_same_in_the_database(ledger: Ledger, place: Place) -> None:
    async with ledger.transaction(mark(7, sender=0xFEDC000000000001)):
        pass
    hexadecimal = "printf('%x', sender)" if place.kind == "sqlite" else "to_hex(sender)"
    query = f"SELECT label, group_name, {hexadecimal}, sequence FROM rvq_marks"
    assert place.query(query) == [("work", "default", "fedc000000000001", 7)]


async def test_rivals_in_one_process_do_it_once(ledger: Ledger, place: Place) -> None:
    rivals = [handle(ledger, place) for _ in range(10)]
    rivals += [asyncio.to_thread(handle_blocking, ledger, place) for _ in range(5)]
    outcomes = await asyncio.gather(*rivals, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [*["AlreadyDone"] * 14, "NoneType"]
    assert place.effects() == [1]


async def test_many_messages_at_once_are_each_done(ledger: Ledger, place: Place) -> None:
    awaited = [handle(ledger, place, number) for number in range(1, 41)]
    blocking = [asyncio.to_thread(handle_blocking, ledger, place, number) for number in range(41, 61)]
    await asyncio.gather(*awaited, *blocking)
    assert place.effects() == place.marks() == list(range(1, 61))


async def test_who_waits_for_an_open_transaction_goes_on_when_that_is_rolled_back(ledger: Ledger, place: Place) -> None:
    with pytest.raises(ZeroDivisionError):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            rival = asyncio.create_task(handle(ledger, place))
            await asyncio.wait({rival}, timeout=0.05)
            assert not rival.done()
            raise ZeroDivisionError
    await rival
    assert place.effects() == [1]


async def test_cancelling_who_waits_for_a_rival_leaves_the_ledger_whole(ledger: Ledger, place: Place) -> None:
    async with ledger.transaction(mark()):
        waiting = asyncio.create_task(handle(ledger, place))
        await asyncio.wait({waiting}, timeout=0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await handle(ledger, place, 2)
    assert (place.effects(), place.marks()) == ([2], [1, 2])


@pytest.mark.parametrize("moment", ["in the block", "in a statement"])
async def test_cancelling_rolls_back_and_leaves_the_ledger_whole(ledger: Ledger, place: Place, moment: str) -> None:
    inside = asyncio.Event()
    endless = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "postgres": "SELECT pg_sleep(1000)",
    }[place.kind]

    async def be_cancelled() -> None:
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            inside.set()
            if moment == "in a statement":
                await tx.execute(endless)
            await asyncio.Event().wait()

    task = asyncio.create_task(be_cancelled())
    await inside.wait()
    await asyncio.wait({task}, timeout=0.05)
    begun = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - begun < 5, "the statement was not interrupted"
    await handle(ledger, place)
    assert (place.effects(), place.marks()) == ([1], [1])


async def test_cancelling_at_any_turn_of_the_loop_leaves_all_or_nothing(ledger: Ledger, place: Place) -> None:
    """Also while it enters and while it commits: cancelled after 1, 2, 3 … turns, until one ends before that."""
    number = 0
    while True:
        number += 1
        task = asyncio.create_task(handle(ledger, place, number))
        for _ in range(number):
            await asyncio.sleep(0)
            if number > 40:  # let the database answer: a turn of the loop is shorter than its steps
                await asyncio.sleep((number - 40) * 0.0002)
        if task.done():
            break
        task.cancel()
        await asyncio.wait({task})
        assert place.effects() == place.marks()
        assert number < 200
    await task
    assert place.effects() == place.marks()
    await asyncio.gather(*(handle(ledger, place, 1000 + more) for more in range(20)))
    assert place.effects()[-20:] == list(range(1000, 1020))


async def test_the_event_loop_goes_on_while_the_database_works(ledger: Ledger, place: Place) -> None:
    slow = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500000) SELECT count(*) FROM n",
        "postgres": "SELECT pg_sleep(0.3)",
    }[place.kind]

    async def statement() -> None:
        async with ledger.transaction(mark()) as tx:
            await tx.execute(slow)

    task = asyncio.create_task(statement())
    turns = 0
    while not task.done():
        await asyncio.sleep(0.005)
        turns += 1
    await task
    assert turns > 5


async def test_forgetting_drops_what_is_older_and_says_how_many(ledger: Ledger, place: Place) -> None:
    for number in (1, 2, 3):
        await handle(ledger, place, number)
    await asyncio.sleep(0.02)  # clocks of databases are not finer than this
    between = time.time()
    await asyncio.sleep(0.02)
    await handle(ledger, place, 4)
    assert await ledger.forget(between) == 3
    assert place.marks() == [4]
    assert await ledger.forget(between) == 0
    assert not await ledger.is_marked(mark(1))
    assert place.effects() == [1, 2, 3, 4], "effects are not the ledger's to forget"


async def test_forgetting_takes_more_than_one_step_for_many(place: Place, ledger: Ledger) -> None:
    series = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2500)"
        " INSERT INTO rvq_marks SELECT 'work', 'default', 1, i, 5.0 FROM n",
        "postgres": "INSERT INTO rvq_marks"
        " SELECT 'work', 'default', 1, i, to_timestamp(5) FROM generate_series(1, 2500) AS i",
    }
    place.query(series[place.kind])
    assert await ledger.forget(5.0) == 0
    assert await ledger.forget(6.0) == 2500
    assert place.marks() == []


async def test_twenty_may_create_the_ledger_at_once(place: Place) -> None:
    ledgers = [place.ledger() for _ in range(20)]
    try:
        await asyncio.gather(*(ledger.open() for ledger in ledgers))
    finally:
        await asyncio.gather(*(ledger.aclose() for ledger in ledgers))
    assert place.query("SELECT version FROM rvq_ledger") == [(1,)]


async def test_opening_and_closing_twice_is_fine_and_it_can_be_opened_again(place: Place) -> None:
    ledger = place.ledger()
    await ledger.aclose()
    await asyncio.gather(ledger.open(), ledger.open())
    await handle(ledger, place)
    await asyncio.gather(ledger.aclose(), ledger.aclose())
    async with ledger:
        assert await ledger.is_marked(mark())
        await asyncio.to_thread(handle_blocking, ledger, place, 2)
    await ledger.aclose()


async def test_a_ledger_that_is_not_open_says_so(place: Place) -> None:
    ledger = place.ledger()
    for _ in range(2):
        with pytest.raises(LedgerError, match="not open: enter `async with ledger:`"):
            await handle(ledger, place)
        with pytest.raises(LedgerError, match="not open"):
            await asyncio.to_thread(handle_blocking, ledger, place)
        with pytest.raises(LedgerError, match="not open"):
            await ledger.is_marked(mark())
        with pytest.raises(LedgerError, match="not open"):
            await ledger.forget(0)
        async with ledger:
            pass


async def test_closing_waits_for_the_transactions_under_way_and_refuses_others(place: Place) -> None:
    ledger = place.ledger()
    await ledger.open()
    async with ledger.transaction(mark()) as tx:
        closing = asyncio.create_task(ledger.aclose())
        await asyncio.wait({closing}, timeout=0.05)
        assert not closing.done()
        with pytest.raises(LedgerError, match="not open"):
            await asyncio.create_task(handle(ledger, place, 2))
        await tx.execute(place.insert, (1,))
    await closing
    assert place.effects() == [1]


async def test_closing_inside_a_transaction_is_refused(ledger: Ledger) -> None:
    async with ledger.transaction(mark()):
        with pytest.raises(LedgerError, match="leave the block first"):
            await ledger.aclose()


async def test_a_closing_that_was_cancelled_can_be_taken_back(place: Place) -> None:
    ledger = place.ledger()
    await ledger.open()
    async with ledger.transaction(mark()):
        closing = asyncio.create_task(ledger.aclose())
        await asyncio.wait({closing}, timeout=0.05)
        closing.cancel()
        await asyncio.wait({closing})
        await ledger.open()
    await handle(ledger, place, 2)
    await ledger.aclose()


async def test_a_transaction_is_entered_once(ledger: Ledger) -> None:
    transaction = ledger.transaction(mark())
    async with transaction:
        pass
    with pytest.raises(LedgerError, match="entered once"):
        await transaction.__aenter__()


async def test_with_in_the_event_loop_is_refused(ledger: Ledger, place: Place) -> None:
    with pytest.raises(LedgerError, match="write `async with`"):
        handle_blocking(ledger, place)


async def test_a_transaction_inside_another_is_refused_and_does_not_wait_for_itself(
    ledger: Ledger, place: Place
) -> None:
    async with ledger.transaction(mark()):
        with pytest.raises(LedgerError, match="end that block before another"):
            await handle(ledger, place, 2)
    await handle(ledger, place, 2)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (mark(-1), LedgerError),
        (mark(1 << 64), LedgerError),
        (mark(label=""), BadLabel),
        (mark(group="a\nb"), BadLabel),
        (mark(label="a\0b"), BadLabel),
    ],
)
async def test_a_mark_that_no_message_has_is_refused(ledger: Ledger, wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ledger.transaction(wrong)
    with pytest.raises(error):
        await ledger.is_marked(wrong)


async def test_a_ledger_of_another_version_is_refused(place: Place) -> None:
    async with place.ledger():
        pass
    place.query("UPDATE rvq_ledger SET version = 2")
    for _ in range(2):
        with pytest.raises(LedgerError, match="has version 2 and this rvq reads 1: use the rvq that made it"):
            await place.ledger().open()
    place.query("DELETE FROM rvq_ledger")
    with pytest.raises(LedgerError, match="has version none"):
        await place.ledger().open()


@pytest.mark.parametrize("table", ["rvq_marks", "rvq_ledger"])
async def test_a_table_that_is_not_a_ledgers_is_refused(place: Place, table: str) -> None:
    place.query(f"CREATE TABLE {table} (something integer)")
    with pytest.raises(LedgerError, match=f"has a table {table} that is not a ledger's: rename it"):
        await place.ledger().open()


async def test_tables_that_went_missing_are_an_error_of_the_ledger(ledger: Ledger, place: Place) -> None:
    place.query("DROP TABLE rvq_marks")
    with pytest.raises(LedgerError, match="rvq_marks"):
        await handle(ledger, place)
    with pytest.raises(LedgerError, match="rvq_marks"):
        await asyncio.to_thread(handle_blocking, ledger, place)
    with pytest.raises(LedgerError, match="rvq_marks"):
        await ledger.is_marked(mark())


def test_a_missing_driver_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("rvq.ledger.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(LedgerError, match=r"needs psycopg .*: pip install 'rvq\[postgres\]'"):
        Ledger.postgres("dbname=work")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", None, True])
def test_a_time_that_nobody_can_wait_is_refused(seconds: Any) -> None:
    with pytest.raises(LedgerError, match=r"timeout=.* give seconds"):
        check_seconds(seconds, "timeout")
    with pytest.raises(LedgerError, match="timeout="):
        Ledger.sqlite("work.db", timeout=seconds)


def test_ledgers_and_transactions_are_abstract() -> None:
    for shape in (Ledger, Transaction):
        with pytest.raises(TypeError, match="abstract"):
            shape()  # type: ignore[abstract, call-arg]
