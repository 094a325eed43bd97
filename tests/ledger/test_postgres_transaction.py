"""Transactions in PostgreSQL: rivals, blocks that go wrong, and a database that goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rvq.errors import AlreadyDone, LedgerError
from rvq.ledger.ledger import Ledger
from tests.ledger.places import PostgresPlace, mark
from tests.ledger.server import Server

psycopg = pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)


@pytest.fixture
def place(postgres: PostgresPlace) -> PostgresPlace:
    return postgres


@pytest.fixture
def mortal(server: Server) -> Iterator[Server]:
    """The server, for a test that kills it: it runs again afterwards."""
    yield server
    if not server.is_running:
        server.start()


async def handle(ledger: Ledger, place: PostgresPlace, sequence: int = 1) -> None:
    async with ledger.transaction(mark(sequence)) as tx:
        await tx.execute(place.insert, (sequence,))


def handle_blocking(ledger: Ledger, place: PostgresPlace, sequence: int = 1) -> None:
    with ledger.transaction(mark(sequence)) as tx:
        tx.execute(place.insert, (sequence,))


async def test_the_user_gets_psycopgs_connection(ledger: Ledger) -> None:
    async with ledger.transaction(mark()) as tx:
        assert isinstance(tx, psycopg.AsyncConnection)
        assert tx.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS

    def handle() -> None:
        with ledger.transaction(mark(2)) as tx:
            assert isinstance(tx, psycopg.Connection)

    await asyncio.to_thread(handle)


async def test_connections_are_used_again(ledger: Ledger, place: PostgresPlace) -> None:
    seen = set()
    for number in range(5):
        async with ledger.transaction(mark(number)) as tx:
            seen.add(tx.info.backend_pid)
        with pytest.raises(AlreadyDone):
            await handle(ledger, place, number)
        with pytest.raises(ZeroDivisionError):
            async with ledger.transaction(mark(100)):
                raise ZeroDivisionError
    assert len(seen) == 1


async def test_a_connection_whose_block_was_cancelled_is_not_used_again(ledger: Ledger) -> None:
    with pytest.raises(asyncio.CancelledError):
        async with ledger.transaction(mark()) as cancelled:
            raise asyncio.CancelledError
    assert cancelled.closed
    async with ledger.transaction(mark()) as tx:
        assert tx is not cancelled


async def test_there_are_no_more_connections_than_allowed(place: PostgresPlace) -> None:
    async with place.ledger(connections=2) as ledger:
        awaited = [handle(ledger, place, number) for number in range(10)]
        blocking = [asyncio.to_thread(handle_blocking, ledger, place, number) for number in range(10, 20)]
        counts: list[int] = []

        async def count() -> None:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rvq' AND query LIKE '%INTO eff%'"
            async with asyncio.timeout(30):
                while len(place.effects()) < 20:
                    counts.append(place.query(query)[0][0])
                    await asyncio.sleep(0)

        await asyncio.gather(count(), *awaited, *blocking)
    assert place.effects() == list(range(20))
    assert max(counts, default=0) <= 4, "two of the loop's and two of threads', of which two are at work"


async def test_a_rival_waits_no_longer_than_the_lock_timeout(place: PostgresPlace, ledger: Ledger) -> None:
    async with ledger.transaction(mark()) as tx:
        await tx.execute(place.insert, (1,))
        async with place.ledger(patience=0.2) as other:
            for rival in (handle, blocking_rival):
                begun = time.monotonic()
                with pytest.raises(LedgerError, match=r"had this mark locked for 0\.2 s: try again later") as caught:
                    await rival(other, place)
                assert 0.2 <= time.monotonic() - begun < 5
                assert isinstance(caught.value.__cause__, psycopg.errors.LockNotAvailable)
            await handle(other, place, 2)  # another message waits for nobody
    assert place.effects() == [1, 2]


async def blocking_rival(ledger: Ledger, place: PostgresPlace) -> None:
    await asyncio.to_thread(handle_blocking, ledger, place)


async def test_a_rival_that_waited_finds_it_done(place: PostgresPlace, ledger: Ledger) -> None:
    async with ledger.transaction(mark()) as tx:
        await tx.execute(place.insert, (1,))
        rival = asyncio.create_task(handle(ledger, place))
        await asyncio.wait({rival}, timeout=0.05)
    with pytest.raises(AlreadyDone):
        await rival
    assert place.effects() == [1]


async def test_savepoints_keep_the_rest_of_the_block(place: PostgresPlace, ledger: Ledger) -> None:
    async with ledger.transaction(mark()) as tx:
        await tx.execute(place.insert, (1,))
        with pytest.raises(psycopg.errors.UndefinedTable):
            async with tx.transaction():
                await tx.execute("SELECT * FROM absent")
    assert (place.effects(), place.marks()) == ([1], [1])


async def swallow_error(tx: Any) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        await tx.execute("SELECT * FROM absent")


def swallow_error_blocking(tx: Any) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable):
        tx.execute("SELECT * FROM absent")


WRONGS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "error did not leave the block": (swallow_error, swallow_error_blocking),
    "was closed in the block": (lambda tx: tx.close(), lambda tx: tx.close()),
    "ended its transaction by itself": (lambda tx: tx.execute("ROLLBACK"), lambda tx: tx.execute("ROLLBACK")),
}


@pytest.mark.parametrize("wrong", WRONGS)
async def test_a_block_that_cannot_be_committed_is_never_taken_for_done(
    place: PostgresPlace, ledger: Ledger, wrong: str
) -> None:
    do, do_blocking = WRONGS[wrong]
    with pytest.raises(LedgerError, match=wrong):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            await do(tx)

    def block() -> None:
        with ledger.transaction(mark()) as tx:
            tx.execute(place.insert, (1,))
            do_blocking(tx)

    with pytest.raises(LedgerError, match=wrong):
        await asyncio.to_thread(block)
    assert (place.effects(), place.marks()) == ([], [])
    await handle(ledger, place)


async def test_psycopgs_rollback_is_an_error_like_any_other(place: PostgresPlace, ledger: Ledger) -> None:
    with pytest.raises(psycopg.Rollback):
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            raise psycopg.Rollback

    def block() -> None:
        with ledger.transaction(mark()):
            raise psycopg.Rollback

    with pytest.raises(psycopg.Rollback):
        await asyncio.to_thread(block)
    assert (place.effects(), place.marks()) == ([], [])


async def test_commit_inside_the_block_is_refused(place: PostgresPlace, ledger: Ledger) -> None:
    with pytest.raises(psycopg.ProgrammingError, match="forbidden within a Transaction"):
        async with ledger.transaction(mark()) as tx:
            await tx.commit()
    assert place.marks() == []


async def test_a_deferred_constraint_is_the_users_own_error(place: PostgresPlace, ledger: Ledger) -> None:
    place.query("ALTER TABLE effects ADD UNIQUE (sequence) DEFERRABLE INITIALLY DEFERRED")
    await handle(ledger, place)
    for _ in range(2):
        with pytest.raises(psycopg.errors.UniqueViolation):
            async with ledger.transaction(mark(2)) as tx:
                await tx.execute(place.insert, (1,))
    assert (place.effects(), place.marks()) == ([1], [1])
    await handle(ledger, place, 2)


def end_sessions(place: PostgresPlace) -> None:
    place.query(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'rvq'"
        " AND pid <> pg_backend_pid()"
    )


async def test_idle_connections_that_were_lost_are_not_noticed(place: PostgresPlace, ledger: Ledger) -> None:
    await asyncio.gather(*(handle(ledger, place, number) for number in range(5)))
    await asyncio.to_thread(handle_blocking, ledger, place, 5)
    assert await ledger.is_marked(mark(5))
    end_sessions(place)
    await asyncio.gather(*(handle(ledger, place, number) for number in range(6, 12)))
    await asyncio.to_thread(handle_blocking, ledger, place, 12)
    assert await ledger.is_marked(mark(12))
    assert place.effects() == list(range(13))


@pytest.mark.parametrize("lost_at", ["a statement", "the commit"])
async def test_a_connection_lost_in_the_block_is_an_error_of_the_ledger(
    place: PostgresPlace, ledger: Ledger, lost_at: str
) -> None:
    async def block() -> None:
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            end_sessions(place)
            if lost_at == "a statement":
                await tx.execute("SELECT 1")

    def block_blocking() -> None:
        with ledger.transaction(mark()) as tx:
            tx.execute(place.insert, (1,))
            end_sessions(place)
            if lost_at == "a statement":
                tx.execute("SELECT 1")

    for attempt in (block(), asyncio.to_thread(block_blocking)):
        with pytest.raises(LedgerError, match=r"went away: .* its mark says: try again") as caught:
            await attempt
        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
    assert (place.effects(), place.marks()) == ([], [])
    await handle(ledger, place)
    assert place.effects() == [1]


async def test_an_error_of_the_users_own_is_not_hidden_by_a_lost_connection(
    place: PostgresPlace, ledger: Ledger
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with ledger.transaction(mark()):
            end_sessions(place)
            raise ZeroDivisionError
    await handle(ledger, place)


async def test_a_database_killed_in_the_middle_loses_nothing_and_is_used_again_when_it_is_back(
    mortal: Server, place: PostgresPlace, ledger: Ledger
) -> None:
    await handle(ledger, place, 1)
    await asyncio.to_thread(handle_blocking, ledger, place, 2)
    assert await ledger.is_marked(mark(1))
    with pytest.raises(LedgerError, match="went away"):
        async with ledger.transaction(mark(3)) as tx:
            await tx.execute(place.insert, (3,))
            mortal.kill()
            await tx.execute(place.insert, (3,))
    for _ in range(2):
        with pytest.raises(LedgerError, match="cannot be reached"):
            await handle(ledger, place, 3)
        with pytest.raises(LedgerError, match="cannot be reached"):
            await asyncio.to_thread(handle_blocking, ledger, place, 3)
        with pytest.raises(LedgerError, match="cannot be reached"):
            await ledger.is_marked(mark(3))
    mortal.start()
    assert await ledger.is_marked(mark(2)), "what was committed was on disk"
    assert not await ledger.is_marked(mark(3))
    await handle(ledger, place, 3)
    await asyncio.to_thread(handle_blocking, ledger, place, 4)
    assert place.effects() == place.marks() == [1, 2, 3, 4]


async def test_a_database_killed_before_the_commit_keeps_nothing(
    mortal: Server, place: PostgresPlace, ledger: Ledger
) -> None:
    with pytest.raises(LedgerError, match="went away") as caught:
        async with ledger.transaction(mark()) as tx:
            await tx.execute(place.insert, (1,))
            mortal.kill()
    assert isinstance(caught.value.__cause__, psycopg.OperationalError)
    mortal.start()
    assert (place.effects(), place.marks()) == ([], [])
    await handle(ledger, place)
    assert place.effects() == [1]
