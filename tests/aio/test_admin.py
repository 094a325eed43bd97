"""Orders to receivers in this process, over real sockets: what they do, and what the one who asks is told."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import rvq
from tests.aio.ends import Worker, members, soon, stays, taken, until


async def test_a_drained_receiver_finishes_what_is_its_own_and_its_loop_ends(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        collecting = asyncio.create_task(collect(receiver))
        await sender.send_many(range(20))
        await until(lambda: receiver.stats.acked)
        ordered = await soon(rvq.admin.drain(receiver.id, label="work", bus=bus))
        assert ordered == rvq.admin.Ordered("work", "default", (f"{receiver.id:016x}",))
        assert receiver.leaving
        assert await soon(collecting) == list(range(20))


async def collect(receiver: rvq.Receiver) -> list[Any]:
    """Slowly, until there is no more."""
    found = []
    async for message in receiver:
        await asyncio.sleep(0.002)
        found.append(message.body)
    return found


async def test_a_consumer_that_is_drained_returns(bus: rvq.Bus) -> None:
    seen: list[Any] = []

    async def handle(message: rvq.Message) -> None:
        seen.append(message.body)

    consuming = asyncio.create_task(rvq.consume("work", handle, bus=bus))
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send("one")
        await sender.flush(20)
        (id,) = sender.tables["default"].members
        await soon(rvq.admin.drain(f"{id:016x}"[:6], label="work", bus=bus))
        await soon(consuming)
    assert seen == ["one"]


async def test_a_weight_changes_the_share_from_the_next_table_on(bus: rvq.Bus) -> None:
    async with Worker(bus) as one, Worker(bus) as other:
        await members([one.receiver, other.receiver], 2)
        before = one.receiver.table
        await soon(rvq.admin.weight(one.receiver.id, 3, label="work", bus=bus))
        assert (one.receiver.weight, other.receiver.weight) == (3, 1)
        await until(lambda: one.receiver.table != before)
        async with rvq.Sender("work", bus=bus) as sender:
            await until(lambda: sender.tables)
            await sender.send_many(range(400))
            await sender.flush(20)
        assert (len(one.messages), len(other.messages)) == (300, 100)


async def test_a_paused_group_starts_nothing_and_says_so(bus: rvq.Bus, caplog: pytest.LogCaptureFixture) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(100))
        messages = await taken(receiver, 3)  # and some are taken ahead
        with caplog.at_level(logging.WARNING, "rvq"):
            await soon(rvq.admin.pause("work", bus=bus, by="the night shift"))
        assert "paused by 'the night shift'" in caplog.text
        assert receiver.paused
        following = asyncio.create_task(taken(receiver, 97))
        await stays(lambda: not following.done() and receiver.stats.acked == 3)
        words = "group 'default' of 'work' is paused: rvq resume work default"
        assert receiver.waiting_for == words
        await until(lambda: sender.waiting_for == words)
        await soon(rvq.admin.resume("work", bus=bus))
        messages += await soon(following)
        assert sorted(message.body for message in messages) == list(range(100))
        assert not receiver.paused and receiver.waiting_for is None


async def test_batches_and_consumers_pause_too(bus: rvq.Bus) -> None:
    seen: list[Any] = []
    consuming = asyncio.create_task(rvq.consume("work", lambda message: seen.append(message.body), bus=bus))
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", group="batches", bus=bus) as receiver:
        await until(lambda: len(sender.tables) == 2)
        for group in ("default", "batches"):
            await soon(rvq.admin.pause("work", group, bus=bus))
        await sender.send_many(range(50))
        batches = receiver.batches()
        batch = asyncio.ensure_future(anext(batches))
        await stays(lambda: not seen and not batch.done())
        for group in ("default", "batches"):
            await soon(rvq.admin.resume("work", group, bus=bus))
        found = await soon(batch)
        receiver.leave()
        found += [message async for batch in batches for message in batch]
        assert [message.body for message in found] == list(range(50))
        await until(lambda: len(seen) == 50)
        await sender.flush(20)
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)


async def test_a_newcomer_learns_that_its_group_is_paused(bus: rvq.Bus) -> None:
    async with Worker(bus) as one:
        await members([one.receiver], 1)
        await soon(rvq.admin.pause("work", bus=bus))
        async with Worker(bus) as other:
            await until(lambda: other.receiver.paused)
            await members([one.receiver, other.receiver], 2)
            async with rvq.Sender("work", bus=bus) as sender:
                await sender.send_many(range(10))
                await stays(lambda: not one.messages and not other.messages)
                await soon(rvq.admin.resume("work", bus=bus))
                await sender.flush(20)


async def test_who_is_not_there_is_said_with_those_who_are(bus: rvq.Bus) -> None:
    with pytest.raises(rvq.OrderFailed, match="no receiver of 'work' is there"):
        await soon(rvq.admin.drain("3f2a", label="work", bus=bus))
    async with Worker(bus) as one:
        await members([one.receiver], 1)
        other = f"{one.receiver.id ^ 1 << 62:016x}"
        with pytest.raises(rvq.OrderFailed, match=f"no receiver {other} of 'work': there are {one.receiver.id:016x}"):
            await soon(rvq.admin.drain(other, label="work", bus=bus))
        with pytest.raises(rvq.OrderFailed, match="nobody of group 'other' listens to 'work': there are 'default'"):
            await soon(rvq.admin.pause("work", "other", bus=bus))


@pytest.mark.parametrize("id", ["", "xyz", "0" * 17, 0, -1, 2**63, True, None, 1.5])
async def test_what_is_no_id_is_refused(id: Any) -> None:
    with pytest.raises(rvq.BadArgument, match="is not the id of a receiver"):
        await rvq.admin.drain(id, label="work")


@pytest.mark.parametrize("weight", [0, 65, True, "3", 1.5])
async def test_what_is_no_weight_is_refused(weight: Any) -> None:
    with pytest.raises(rvq.BadArgument, match="is not a weight"):
        await rvq.admin.weight("3f2a", weight, label="work")


async def test_a_recorder_can_be_drained_and_paused(bus: rvq.Bus, tmp_path: Any) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder, rvq.Sender("work", bus=bus) as sender:
        await until(lambda: sender.tables)
        await soon(rvq.admin.pause("work", "journal", bus=bus))
        await sender.send("one")
        await stays(lambda: sender.undone == 1)
        await soon(rvq.admin.resume("work", "journal", bus=bus))
        await sender.flush(20)
        await soon(rvq.admin.drain(recorder.id, label="work", bus=bus))
        await soon(recorder.wait())
