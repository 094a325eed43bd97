"""`rvq.Receiver(label, group=None)` on real sockets: sees every message, owns none, and nobody notices."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest

import rvq
from rvq.core import tap as tap_module
from rvq.wire.codec import peek
from rvq.wire.frames import FrameType
from tests.aio.ends import Stranger, Worker, bodies, on_both_loops, soon, take, until


def tap(bus: rvq.Bus, **options: Any) -> rvq.Receiver:
    return rvq.Receiver("work", group=None, bus=bus, **options)


@on_both_loops
async def test_it_sees_everything_in_order_while_others_share_it(bus: rvq.Bus) -> None:
    async with AsyncExitStack() as stack:
        watcher = await stack.enter_async_context(Worker(bus, group=None))
        sender = await stack.enter_async_context(rvq.Sender("work", bus=bus))
        workers = [await stack.enter_async_context(Worker(bus)) for _ in range(2)]
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many(range(4000))
        await soon(sender.flush())
        assert sorted(workers[0].bodies + workers[1].bodies) == list(range(4000))
        await until(lambda: len(watcher.messages) + watcher.receiver.stats.lost == 4000)
    assert watcher.receiver.stats.lost == 0, "on loopback nothing is lost"
    assert watcher.bodies == list(range(4000))


async def test_its_messages_say_that_it_owns_nothing(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, tap(bus) as watcher, Worker(bus):
        await sender.send("x", key="k", headers={"a": 1}, delay=0.01)
        (message,) = await take(watcher, 1)
        assert (message.body, message.key, message.headers) == ("x", "k", {"a": 1})
        assert message.group is message.receiver_index is message.lane is None
        assert not message.lost.is_set()
        assert watcher.table is None and watcher.group is None
        assert "as a tap" in repr(watcher)
        await soon(sender.flush())


async def test_ack_retry_and_reject_change_nothing(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker, tap(bus, ack="manual") as watcher:
        await sender.send_many(["one", "two", "three"])
        one, two, three = await take(watcher, 3)
        one.ack()
        two.retry()
        three.reject("why")
        with pytest.raises(rvq.LedgerError):
            three.transaction()
        await soon(sender.flush())
        await sender.send("four")
        assert await bodies(watcher, 1) == ["four"], "nothing comes again"
        await soon(sender.flush())
        stats = watcher.stats
        assert (stats.emitted, stats.acked, stats.retried, stats.dead) == (4, 0, 0, 0)
        assert sorted(worker.bodies) == ["four", "one", "three", "two"]


async def test_batches_and_more_than_one_loop(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus), tap(bus) as watcher:
        await sender.send_many(range(10))
        seen: list[int] = []
        async for batch in watcher.batches(max=4):
            assert len(batch) <= 4
            seen += [message.body for message in batch]
            if len(seen) == 10:
                break
        assert seen == list(range(10))
        await sender.send("next")
        assert await bodies(watcher, 1) == ["next"]
        await soon(sender.flush())


async def test_it_says_nothing_on_the_bus(bus: rvq.Bus) -> None:
    with Stranger(bus) as stranger:
        async with rvq.Sender("work", bus=bus) as sender, tap(bus) as watcher:
            heard: list[bytes] = []

            def beats() -> int:
                heard.extend(stranger.overhear())
                return len(heard)

            await until(lambda: beats() >= 5)  # of the sender
            assert {peek(datagram)[0] for datagram in heard} == {FrameType.SENDER_ALIVE}
            assert not sender.tables
            assert watcher.stats.emitted == 0


async def test_a_sender_with_nobody_but_a_tap_has_nobody(bus: rvq.Bus) -> None:
    async with tap(bus) as watcher:
        with pytest.raises(rvq.NotDelivered):
            async with rvq.Sender("work", bus=bus, linger=0.2) as sender:
                await sender.send("x")
        assert watcher.stats.emitted == 0


async def test_one_that_nobody_reads_holds_nobody_back(bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap_module, "TAP_BYTES", 400_000)
    monkeypatch.setattr(tap_module, "BEHIND_BYTES", 200_000)
    async with rvq.Sender("work", bus=bus, window=500_000) as sender, Worker(bus) as worker, tap(bus) as watcher:
        await until(lambda: sender.tables)
        for number in range(200):
            await soon(sender.send([number, bytes(10_000)]))
        await soon(sender.flush())
        assert len(worker.messages) == 200
        await until(lambda: watcher.stats.lost)


async def test_one_that_is_too_slow_says_so_once(
    bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tap_module, "TAP_BYTES", 100_000)
    monkeypatch.setattr(tap_module, "BEHIND_BYTES", 50_000)
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus), tap(bus) as watcher:
        await until(lambda: sender.tables)
        for number in range(100):
            await sender.send([number, bytes(10_000)])
            await soon(sender.flush())
        await until(lambda: watcher.stats.routed == 100)
        assert watcher.stats.lost
    said = [record for record in caplog.records if "too slow: lost" in record.getMessage()]
    assert [(record.levelno, "(tap)" in record.getMessage()) for record in said] == [(logging.WARNING, True)]


async def test_leaving_ends_the_loop_with_what_is_there(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus), tap(bus) as watcher:
        await sender.send_many(range(100))
        await until(lambda: watcher.stats.routed == 100)
        watcher.leave()
        assert [message.body async for message in watcher] == list(range(100))
        await soon(sender.flush())


async def test_closing_needs_nobodys_answer(bus: rvq.Bus) -> None:
    watcher = tap(bus)
    async with watcher:
        pass
    await watcher.aclose()
    with pytest.raises(rvq.Closed):
        await anext(watcher)


@pytest.mark.parametrize("options", [{"weight": 2}, {"tracked": True}, {"ledger": rvq.Ledger.sqlite("no.db")}])
def test_what_is_for_owners_is_refused(bus: rvq.Bus, options: dict[str, Any]) -> None:
    with pytest.raises(rvq.BusError, match="a tap, which owns nothing"):
        tap(bus, **options)
