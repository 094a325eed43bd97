"""`rvq.Receiver` on real sockets: each message to one of a group, done when acknowledged, handed back when not."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rvq
from tests.aio.ends import (
    PATIENCE_S,
    Stranger,
    Worker,
    bodies,
    cancelled_after,
    members,
    on_both_loops,
    open_sockets,
    soon,
    stays,
    take,
    taken,
    until,
)

# --- sharing --------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_several_receivers_share_and_each_message_meets_one(bus: rvq.Bus) -> None:
    async with AsyncExitStack() as stack:
        sender = await stack.enter_async_context(rvq.Sender("work", bus=bus))
        workers = [await stack.enter_async_context(Worker(bus)) for _ in range(4)]
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 4)
        await sender.send_many(range(4000))
        await soon(sender.flush())
    assert sorted(body for worker in workers for body in worker.bodies) == list(range(4000))
    assert [len(worker.bodies) for worker in workers] == [1000] * 4


async def test_shares_are_in_proportion_to_weights(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus, weight=3) as heavy, Worker(bus) as light:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many(range(4000))
        await soon(sender.flush())
    assert sorted(heavy.bodies + light.bodies) == list(range(4000))
    assert (len(heavy.bodies), len(light.bodies)) == (3000, 1000)


async def test_one_that_joins_gets_its_share_of_what_is_sent_from_then_on(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as first:
        await sender.send_many(range(100))
        await soon(sender.flush())
        async with Worker(bus) as second:
            await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
            await sender.send_many(range(100, 200))
            await soon(sender.flush())
        assert sorted(first.bodies + second.bodies) == list(range(200))
        assert len(second.bodies) == 50
        assert min(second.bodies) >= 100


async def test_a_key_meets_one_receiver_and_its_messages_come_in_order(bus: rvq.Bus) -> None:
    async with AsyncExitStack() as stack:
        sender = await stack.enter_async_context(rvq.Sender("work", bus=bus))
        workers = [await stack.enter_async_context(Worker(bus)) for _ in range(3)]
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 3)
        for number in range(2000):
            await sender.send(number, key=f"key-{number % 37}" if number % 5 else None)
        await soon(sender.flush())
    got = [(message, worker) for worker in workers for message in worker.messages]
    assert sorted(message.body for message, _ in got) == list(range(2000))
    owners, numbers = defaultdict(set), defaultdict(list)
    for message, worker in got:
        if message.key is not None:
            owners[message.key].add(worker)
            numbers[message.key].append(message.body)
    assert len(numbers) == 37
    assert all(len(by) == 1 for by in owners.values()), "a key has one receiver"
    assert all(list_ == sorted(list_) for list_ in numbers.values())
    assert len({next(iter(by)) for by in owners.values()}) == 3, "keys are spread"


async def test_one_key_is_handled_one_at_a_time(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        for number in range(3):
            await sender.send(number, key="k")
        (first,) = await take(receiver, 1)
        following = asyncio.create_task(take(receiver, 1))
        await stays(lambda: not following.done(), 0.2)
        first.ack()
        (second,) = await following
        second.ack()
        (third,) = await take(receiver, 1)
        third.ack()
        assert [message.body for message in (first, second, third)] == [0, 1, 2]


async def test_a_key_stays_in_order_while_one_of_its_messages_is_retried(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        for number in range(4):
            await sender.send(number, key="k")
        handled = []
        while len(handled) < 4:
            (message,) = await take(receiver, 1)
            if message.body == 1 and message.attempt < 3:
                message.retry(delay=0.05)
            else:
                handled.append(message.body)
                message.ack()
        assert handled == [0, 1, 2, 3]


# --- acknowledging --------------------------------------------------------------------------------------------------


@on_both_loops
async def test_a_message_is_done_when_the_next_one_is_asked_for(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(2))
        assert await bodies(receiver, 1) == [0]
        await stays(lambda: sender.undone == 2 and receiver.stats.acked == 0, 0.15)
        assert await bodies(receiver, 1) == [1]
        await until(lambda: sender.undone == 1)
        assert receiver.stats.acked == 1


async def test_break_and_leaving_the_block_acknowledge_what_is_in_hand(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(3))
        async with rvq.Receiver("work", bus=bus) as receiver:
            async for message in receiver:
                if message.body == 1:
                    break
        assert receiver.stats.acked == 2
        async with Worker(bus) as other:
            await soon(sender.flush())
        assert other.bodies == [2]


async def test_an_error_in_the_block_acknowledges_nothing(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(3))
        with pytest.raises(LookupError):
            async with rvq.Receiver("work", bus=bus) as receiver:
                async for message in receiver:
                    if message.body == 1:
                        raise LookupError
        assert receiver.stats.acked == 1
        async with Worker(bus) as other:
            await soon(sender.flush())
        assert sorted(other.bodies) == [1, 2]
        assert all(message.redelivered for message in other.messages)


async def test_under_manual_nothing_is_done_until_it_is_acknowledged(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(10))
        got = await take(receiver, 10)
        await stays(lambda: sender.undone == 10, 0.15)
        for message in reversed(got):
            message.ack()
        await soon(sender.flush())
        assert receiver.stats.acked == 10


async def test_acknowledging_twice_counts_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(2))
        first, second = await take(receiver, 2)
        for settle in (first.ack, first.ack, first.retry, lambda: first.reject("late")):
            settle()
        second.ack()
        await soon(sender.flush())
        following = asyncio.create_task(take(receiver, 1))
        await stays(lambda: not following.done(), 0.1)
        stats = receiver.stats
        assert (stats.acked, stats.retried, stats.dead) == (2, 0, 0)
        following.cancel()
        await asyncio.wait([following])


async def test_a_retried_message_comes_again_and_counts_its_attempts(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("job", headers={"h": 1})
        seen = []
        for attempt in (1, 2, 3):
            (message,) = await take(receiver, 1)
            seen.append((message.body, message.headers, message.attempt, message.redelivered, message.id))
            if attempt < 3:
                message.retry()
        assert [fact[2:4] for fact in seen] == [(1, False), (2, True), (3, True)]
        assert {(body, headers["h"], id) for body, headers, _, _, id in seen} == {("job", 1, f"{sender.id:016x}-1")}
        message.ack()
        await soon(sender.flush())
        assert (receiver.stats.emitted, receiver.stats.retried, receiver.stats.acked) == (3, 2, 1)


async def test_a_retry_waits_for_its_delay(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("job")
        (message,) = await take(receiver, 1)
        asked_at = time.monotonic()
        message.retry(delay=0.3)
        (again,) = await take(receiver, 1)
        assert 0.3 <= time.monotonic() - asked_at < 5
        again.ack()


async def test_other_messages_go_on_while_one_waits_to_be_retried(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(50))
        order = []
        while len(order) < 50:
            (message,) = await take(receiver, 1)
            if message.body == 0 and message.attempt == 1:
                message.retry(delay=0.2)
            else:
                order.append(message.body)
                message.ack()
        assert order == [*range(1, 50), 0]


async def test_a_rejected_message_is_dead_here_and_done_for_its_sender(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("bad")
        (message,) = await take(receiver, 1)
        with caplog.at_level(logging.INFO, "rvq"):
            message.reject("of no use")
            await soon(sender.flush())
        assert (receiver.stats.dead, receiver.stats.acked) == (1, 0)
        assert f"rejected {message.id}: of no use" in caplog.text


async def test_under_auto_too_a_message_can_be_retried_or_rejected(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(["retry", "reject", "fine"])
        seen = []
        async for message in receiver:
            seen.append((message.body, message.attempt))
            if message.body == "retry" and message.attempt == 1:
                message.retry()
            elif message.body == "reject":
                message.reject()
            if len(seen) == 4:
                break
    assert sorted(seen) == [("fine", 1), ("reject", 1), ("retry", 1), ("retry", 2)]
    assert (receiver.stats.acked, receiver.stats.dead, receiver.stats.retried) == (2, 1, 1)


@pytest.mark.parametrize("delay", [-1, -0.001, float("inf"), float("nan"), "1", None, True])
async def test_an_odd_delay_is_refused_and_the_message_is_still_open(bus: rvq.Bus, delay: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("job")
        (message,) = await take(receiver, 1)
        with pytest.raises(ValueError, match="is not a duration: give seconds, 0 or more"):
            message.retry(delay=delay)
        assert receiver.stats.retried == 0
        message.ack()
        await soon(sender.flush())


# --- batches --------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_batches_bring_everything_in_lists(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(5000))
        got: list[Any] = []
        sizes = []
        async with asyncio.timeout(PATIENCE_S):
            async for batch in receiver.batches(max=300):
                sizes.append(len(batch))
                got += [message.body for message in batch]
                if len(got) == 5000:
                    break
    assert got == list(range(5000))
    assert max(sizes) == 300
    assert min(sizes) >= 1
    assert receiver.stats.acked == 5000


async def test_a_batch_is_done_when_the_next_one_is_asked_for(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(10))
        batches = receiver.batches(max=4)
        assert len(await soon(anext(batches))) == 4
        await stays(lambda: sender.undone == 10, 0.15)
        assert len(await soon(anext(batches))) == 4
        await until(lambda: sender.undone == 6)
        assert len(await soon(anext(batches))) == 2


async def test_messages_of_a_batch_are_acknowledged_one_by_one_under_manual(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(6))
        batches = receiver.batches()
        batch: list[rvq.Message] = []
        while len(batch) < 6:
            batch += await soon(anext(batches))
        batch[0].ack()
        batch[1].retry()
        batch[2].reject()
        for message in batch[3:]:
            message.ack()
        (again,) = await soon(anext(batches))
        assert (again.body, again.attempt) == (1, 2)
        await until(lambda: sender.undone == 1)
        again.ack()
        await soon(sender.flush())


@pytest.mark.parametrize("most", [0, -1, 1.5, "5", None, True])
async def test_an_odd_size_of_batches_is_refused(bus: rvq.Bus, most: Any) -> None:
    async with rvq.Receiver("work", bus=bus) as receiver:
        with pytest.raises(ValueError, match="is not a number of messages: give 1 or more"):
            await anext(receiver.batches(max=most))


async def test_an_error_in_a_batch_acknowledges_nothing_of_it(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(10))
        with pytest.raises(LookupError):
            async with rvq.Receiver("work", bus=bus) as receiver:
                async for batch in receiver.batches(max=5):
                    if batch[0].body == 5:
                        raise LookupError
        async with Worker(bus) as other:
            await soon(sender.flush())
        assert sorted(other.bodies) == [5, 6, 7, 8, 9]


# --- messages -------------------------------------------------------------------------------------------------------


async def test_a_message_knows_where_it_comes_from(bus: rvq.Bus) -> None:
    before = time.time()
    async with rvq.Sender("orders.eu", bus=bus) as sender, rvq.Receiver("orders.eu", bus=bus, group="g") as receiver:
        await sender.send("plain")
        await sender.send("keyed", key="user-7")
        plain, keyed = await take(receiver, 2)
        for message, sequence in ((plain, 1), (keyed, 2)):
            assert (message.label, message.group) == ("orders.eu", "g")
            assert (message.sender, message.sequence) == (sender.id, sequence)
            assert message.id == f"{sender.id:016x}-{sequence}"
            assert before - 0.1 <= message.sent_at <= time.time() + 0.1
            assert (message.attempt, message.redelivered) == (1, False)
            assert (message.lane, message.receiver_index) == (0, 0)
        assert (plain.key, plain.shard, plain.headers) == (None, None, None)
        assert keyed.key == "user-7"
        assert keyed.shard is not None and 0 <= keyed.shard < 1024
        assert repr(plain) == f"<Message {plain.id} of 'orders.eu'>"


async def test_lanes_and_indices_are_those_of_the_table(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus, weight=2) as one, Worker(bus) as two:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many(range(30))
        await soon(sender.flush())
        order = sender.tables["default"].members
    slots = [id for id in order for _ in range(2 if id == one.receiver.id else 1)]
    for worker in (one, two):
        assert {message.receiver_index for message in worker.messages} == {order.index(worker.receiver.id)}
        assert {message.lane for message in worker.messages} == {
            slot for slot, id in enumerate(slots) if id == worker.receiver.id
        }
        assert all(message.sequence % 3 == message.lane for message in worker.messages)


async def test_the_lost_flag_is_set_once_a_message_is_no_longer_ours(bus: rvq.Bus) -> None:
    async with rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        with pytest.raises(LookupError):
            async with rvq.Sender("work", bus=bus) as sender:
                await sender.send("job")
                (message,) = await take(receiver, 1)
                assert not message.lost.is_set()
                raise LookupError  # the sender dies, and with it the lease, once the orphan's time is over
        waiting = asyncio.create_task(message.lost.wait())
        await stays(lambda: not message.lost.is_set(), 0.5)
        assert await soon(waiting) is True
        assert message.lost.is_set()


async def test_the_lost_flag_is_set_when_the_receiver_is_closed(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send("job")
        async with rvq.Receiver("work", bus=bus, ack="manual") as receiver:
            (message,) = await take(receiver, 1)
            waiting = asyncio.create_task(message.lost.wait())
            await stays(lambda: not waiting.done(), 0.1)
        assert await soon(waiting) is True
        message.ack()
        message.retry()
        message.reject()
        async with Worker(bus) as other:
            await soon(sender.flush())
        assert other.bodies == ["job"]


async def test_messages_of_a_sender_that_died_are_reported_lost(bus: rvq.Bus, caplog: pytest.LogCaptureFixture) -> None:
    async with rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        with pytest.raises(LookupError):
            async with rvq.Sender("work", bus=bus) as sender:
                await sender.send_many(range(3))
                (first, *_) = await take(receiver, 3)
                first.ack()
                raise LookupError
        with caplog.at_level(logging.WARNING, "rvq"):
            await until(lambda: receiver.stats.lost)
        assert receiver.stats.lost == 2
        assert "is gone: lost" in caplog.text


# --- leaving --------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_leave_drains_what_is_ours_and_ends_the_loop(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus, work_s=0.001) as leaver, Worker(bus) as stayer:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many(range(400))
        await until(lambda: len(leaver.messages) >= 5)
        leaver.receiver.leave()
        await leaver.ended()
        assert len(leaver.messages) == 200, "what was its own is finished"
        await sender.send_many(range(400, 500))
        await soon(sender.flush())
        assert sorted(leaver.bodies + stayer.bodies) == list(range(500))
        assert len(stayer.bodies) == 300


async def test_the_last_one_may_leave_and_the_sender_holds_what_is_sent_then(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        async with Worker(bus) as first:
            await sender.send_many(range(50))
            await until(lambda: len(first.messages) >= 50)
            first.receiver.leave()
            await first.ended()
        await sender.send_many(range(50, 60))
        assert sender.undone == 10
        async with Worker(bus) as second:
            await soon(sender.flush())
    assert sorted(first.bodies) == list(range(50))
    assert sorted(second.bodies) == list(range(50, 60))


async def test_leave_before_opening_and_after_closing_is_nothing(bus: rvq.Bus) -> None:
    receiver = rvq.Receiver("work", bus=bus)
    receiver.leave()
    async with receiver:
        receiver.leave()
        receiver.leave()
        async with asyncio.timeout(PATIENCE_S):
            assert [message async for message in receiver] == []
    receiver.leave()


@on_both_loops
async def test_closing_hands_back_at_once_what_was_not_started(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(1000))
        async with rvq.Receiver("work", bus=bus) as first:
            got = await bodies(first, 10)
        closed_at = time.monotonic()
        async with Worker(bus) as second:
            await soon(sender.flush())
            took = time.monotonic() - closed_at
        assert got == list(range(10))
        assert sorted(second.bodies) == list(range(10, 1000))
        assert took < 5, "nobody waits for the lease of one that said goodbye"


async def test_closing_hands_over_to_one_who_is_there_without_waiting_for_a_lease(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as stayer:
        async with rvq.Receiver("work", bus=bus, ack="manual") as leaver:
            await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
            await sender.send_many(range(200))
            taken = await take(leaver, 20)
            taken[0].ack()
        closed_at = time.monotonic()
        await soon(sender.flush())
        assert time.monotonic() - closed_at < bus.lease
        assert sorted([taken[0].body, *stayer.bodies]) == list(range(200))


async def test_one_that_comes_after_others_that_only_looked_waits_for_nobody(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send("x")
        for _ in range(3):
            async with rvq.Receiver("work", ack="manual", bus=bus) as looking:
                assert [found.body for found in await take(looking, 1)] == ["x"]
        async with rvq.Receiver("work", ack="manual", bus=bus) as last:
            (message,) = await take(last, 1)
            await until(lambda: not last.inheriting)
            message.ack()
            await soon(sender.flush())


async def test_a_closed_receiver_ends_the_loop_of_a_task_that_waits(bus: rvq.Bus) -> None:
    async with Worker(bus) as worker:
        await members([worker.receiver], 1)
        await worker.receiver.aclose()
        await worker.ended()


async def test_an_empty_block_is_fine(bus: rvq.Bus) -> None:
    began = time.monotonic()
    async with rvq.Receiver("work", bus=bus):
        pass
    assert time.monotonic() - began < bus.expiry, "there is nobody to wait for"


async def test_closing_twice_is_fine_and_so_is_closing_what_was_never_open(bus: rvq.Bus) -> None:
    async with rvq.Receiver("work", bus=bus) as receiver:
        await receiver.aclose()
        await receiver.aclose()
    await receiver.aclose()
    never = rvq.Receiver("work", bus=bus)
    await never.aclose()
    with pytest.raises(rvq.Closed):
        await never.__aenter__()


async def test_a_receiver_that_is_not_open_yet_says_so(bus: rvq.Bus) -> None:
    receiver = rvq.Receiver("work", bus=bus)
    with pytest.raises(rvq.Closed, match="not open yet: use `async with"):
        await anext(receiver)
    with pytest.raises(rvq.Closed, match="not open yet"):
        await anext(receiver.batches())
    assert receiver.table is None
    assert not any(receiver.stats.as_dict().values())


async def test_a_closed_receiver_says_so(bus: rvq.Bus) -> None:
    async with rvq.Receiver("work", bus=bus) as receiver:
        pass
    with pytest.raises(rvq.Closed, match="is closed"):
        await anext(receiver)
    with pytest.raises(rvq.Closed, match="is closed"):
        await anext(receiver.batches())


async def test_a_receiver_is_opened_once(bus: rvq.Bus) -> None:
    async with rvq.Receiver("work", bus=bus) as receiver:
        with pytest.raises(rvq.Closed, match="make another"):
            await receiver.__aenter__()
    with pytest.raises(rvq.Closed, match="make another"):
        await receiver.__aenter__()


async def test_two_loops_do_not_acknowledge_each_others_messages(bus: rvq.Bus) -> None:
    """A pool of tasks on one receiver: what one of them is at is not done because another asks for its next."""
    stuck: list[rvq.Message] = []
    handled: list[rvq.Message] = []

    async def work(receiver: rvq.Receiver) -> None:
        async for message in receiver:
            if not stuck:
                stuck.append(message)
                await asyncio.get_running_loop().create_future()
            handled.append(message)

    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(100))
        with pytest.raises(LookupError):
            async with rvq.Receiver("work", bus=bus) as receiver:
                pool = [asyncio.create_task(work(receiver)) for _ in range(3)]
                await until(lambda: len(handled) == 99)
                await stays(lambda: sender.undone, 0.1)
                for task in pool:
                    task.cancel()
                await asyncio.wait(pool)
                raise LookupError
        async with Worker(bus) as worker:
            await soon(sender.flush())
        assert stuck[0].body in worker.bodies, "it was never handled to its end"


# --- looking --------------------------------------------------------------------------------------------------------


async def test_the_table_shows_the_members_and_ones_own_place(bus: rvq.Bus) -> None:
    seen: list[rvq.TableView] = []
    async with rvq.Receiver("work", bus=bus, on_table=seen.append) as first:
        assert first.table is None
        await members([first], 1)
        assert (first.table.members, first.table.index) == ((first.id,), 0)  # type: ignore[union-attr]
        async with rvq.Receiver("work", bus=bus) as second:
            await members([first, second], 2)
            expected = tuple(sorted((first.id, second.id)))
            for receiver in (first, second):
                assert receiver.table is not None
                assert receiver.table.members == expected
                assert receiver.table.index == expected.index(receiver.id)
            assert first.table == seen[-1]
        await members([first], 1)
        assert [len(view.members) for view in seen] == [1, 2, 1]
        versions = [view.version for view in seen]
        assert versions == sorted(set(versions))


async def test_groups_have_tables_of_their_own(bus: rvq.Bus) -> None:
    async with rvq.Receiver("work", bus=bus, group="a") as one, rvq.Receiver("work", bus=bus, group="b") as two:
        await members([one, two], 1)
        await stays(lambda: len(one.table.members) == len(two.table.members) == 1, 0.3)  # type: ignore[union-attr]


async def test_stats_count_what_came_and_what_became_of_it(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(10))
        got = await take(receiver, 4)
        assert receiver.stats.routed == 10
        assert receiver.stats.bad_frames == 0
        got[0].ack()
        got[1].reject()
        got[2].retry()
        assert (receiver.stats.acked, receiver.stats.dead, receiver.stats.retried) == (1, 1, 1)
        for message in [got[3], *await take(receiver, 7)]:
            message.ack()
        assert (receiver.stats.emitted, receiver.stats.acked) == (11, 9)


def test_a_receiver_says_what_it_is(bus: rvq.Bus) -> None:
    receiver = rvq.Receiver("work", bus=bus, group="team")
    assert repr(receiver) == f"<Receiver {receiver.id:016x} of 'work' in 'team'>"


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ack", ["other", "", None, True, "AUTO"])
def test_an_odd_way_to_acknowledge_is_refused(bus: rvq.Bus, ack: Any) -> None:
    with pytest.raises(ValueError, match='give "auto" or "manual"'):
        rvq.Receiver("work", bus=bus, ack=ack)


@pytest.mark.parametrize("end", [rvq.Receiver, rvq.Sender])
@pytest.mark.parametrize("odd", ["lo", 7400, {"port": 7400}])
def test_what_is_no_bus_is_refused_in_words(end: Any, odd: Any) -> None:
    with pytest.raises(rvq.BadArgument, match=r"^bus=.* is (str|int|dict), not a bus: give rvq\.Bus"):
        end("work", bus=odd)


@pytest.mark.parametrize("hand_over", ["x", 1, None])
def test_an_odd_wish_to_hand_over_is_refused(bus: rvq.Bus, hand_over: Any) -> None:
    with pytest.raises(rvq.BadArgument, match="is neither True nor False"):
        rvq.Receiver("work", bus=bus, hand_over=hand_over)


@pytest.mark.parametrize("reason", [None, 5, b"why"])
async def test_an_odd_reason_is_refused_and_the_message_is_still_open(bus: rvq.Bus, reason: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", ack="manual", bus=bus) as receiver:
        await sender.send(1)
        (message,) = await take(receiver, 1)
        with pytest.raises(rvq.BadArgument, match="not str: say in words why"):
            message.reject(reason)
        message.ack()
        await soon(sender.flush())
        assert (receiver.stats.dead, receiver.stats.acked) == (0, 1)


@pytest.mark.parametrize("weight", [0, 65, -1, 1.5, "2", None, True])
def test_an_odd_weight_is_refused(bus: rvq.Bus, weight: Any) -> None:
    with pytest.raises((ValueError, rvq.RvqError), match="is not a weight: give a whole number from 1 to 64"):
        rvq.Receiver("work", bus=bus, weight=weight)


@pytest.mark.parametrize("name", ["", "x" * 256, "two\nlines", 5, None])
def test_odd_labels_and_groups_are_refused(bus: rvq.Bus, name: Any) -> None:
    with pytest.raises(rvq.BadLabel):
        rvq.Receiver(name, bus=bus)
    if name is not None:  # that is a tap
        with pytest.raises(rvq.BadLabel):
            rvq.Receiver("work", bus=bus, group=name)


async def test_an_unknown_interface_is_named_with_those_that_exist(port: int) -> None:
    with pytest.raises(rvq.BusError, match=r"no interface 'nope0' on this machine: choose one of .*lo \(127"):
        async with rvq.Receiver("work", bus=rvq.Bus(interface="nope0", port=port)):
            pass


async def test_a_port_that_another_program_keeps_is_named(bus: rvq.Bus) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
        foreign.bind(("", bus.port))
        receiver = rvq.Receiver("work", bus=bus)
        with pytest.raises(rvq.BusError, match=f"port {bus.port} is taken .*: choose another"):
            await receiver.__aenter__()
        await receiver.aclose()


# --- strangers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_bytes_and_cut_frames_are_counted_and_harm_nobody(bus: rvq.Bus, seed: int) -> None:
    random = Random(seed)
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as one, Worker(bus) as two:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        with Stranger(bus) as stranger:
            sent = 0
            heard: list[bytes] = []
            for first in range(0, 20_000, 500):
                await sender.send_many(range(first, first + 500))
                heard = [*heard, *stranger.overhear()][-20:]
                for frame in heard:
                    stranger.send(frame[: random.randrange(len(frame))])
                    stranger.send(b"rvq\x01" + random.randbytes(random.randrange(200)))
                    stranger.send(random.randbytes(random.randrange(1500)))
                    sent += 3
            await soon(sender.flush())
    assert sent > 100
    assert sorted(one.bodies + two.bodies) == list(range(20_000))
    for worker in (one, two):
        assert worker.receiver.stats.bad_frames > sent // 4


async def test_frames_of_another_version_are_counted_and_dropped(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        with Stranger(bus) as stranger:
            await sender.send_many(range(100))
            await soon(sender.flush())
            frames = stranger.overhear()
            assert frames
            before = worker.receiver.stats.bad_frames
            for frame in frames:
                stranger.send(frame[:3] + b"\x02" + frame[4:])
            await until(lambda: worker.receiver.stats.bad_frames >= before + len(frames))
        await sender.send("good")
        await soon(sender.flush())
    assert worker.bodies == [*range(100), "good"]


async def test_every_frame_twice_delivers_every_message_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as one, Worker(bus) as two:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        with Stranger(bus) as stranger:
            stranger.overhear()
            for first in range(0, 5000, 100):
                await sender.send_many(range(first, first + 100))
                for frame in stranger.overhear()[:50]:
                    stranger.send(frame)
            await soon(sender.flush())
    assert sorted(one.bodies + two.bodies) == list(range(5000))


# --- cancellation ---------------------------------------------------------------------------------------------------


@on_both_loops
async def test_cancelled_at_any_moment_it_leaves_nothing_open(bus: rvq.Bus) -> None:
    before, tasks = open_sockets(), asyncio.all_tasks()

    async def use() -> None:
        async with rvq.Receiver("work", bus=bus) as receiver:
            async for _ in receiver:
                pass

    for turns in [*range(12), 50, 200, 1000]:
        assert await cancelled_after(turns, use())
        assert open_sockets() <= before
        assert asyncio.all_tasks() == tasks


async def test_cancelled_in_mid_stream_it_loses_nothing(bus: rvq.Bus) -> None:
    handled: list[int] = []

    async def use() -> None:
        async with rvq.Receiver("work", bus=bus) as receiver:
            async for message in receiver:
                await asyncio.sleep(0)
                handled.append(message.body)

    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(2000))
        for stop in (100, 200, 300):
            task = asyncio.create_task(use())
            await until(lambda task=task, stop=stop: len(handled) >= stop or task.done())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await soon(task)
        async with Worker(bus) as worker:
            await soon(sender.flush())
    assert set(handled) | set(worker.bodies) == set(range(2000))
    assert len(handled) + len(worker.bodies) <= 2000 + 3, "only what was in hand is handled again"


async def test_cancelled_while_it_closes_it_is_closed(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, linger=0) as sender:
        await sender.send("job")
        before = open_sockets()
        receiver = rvq.Receiver("work", bus=bus, ack="manual")
        await receiver.__aenter__()
        (message,) = await take(receiver, 1)
        await cancelled_after(0, receiver.aclose())
        await receiver.aclose()
        await until(lambda: open_sockets() <= before)
        async with Worker(bus) as worker:
            await soon(sender.flush())
        assert worker.bodies == [message.body]


# --- many at once ---------------------------------------------------------------------------------------------------


@on_both_loops
async def test_messages_retried_or_rejected_in_a_fast_loop_are_settled_that_way(bus: rvq.Bus) -> None:
    seen: list[int] = []
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await soon(sender.send_many(range(700)))
        async for message in receiver:
            seen.append(message.body)
            if message.body % 7 == 0 and message.attempt == 1:
                message.retry()
            elif message.body % 11 == 0:
                message.reject("odd")
            if len(seen) == 800:
                break
        await until(lambda: receiver.stats.acked + receiver.stats.dead >= 699)
        assert (receiver.stats.retried, receiver.stats.dead) == (100, 64)
    assert sorted(seen) == sorted([*range(700), *range(0, 700, 7)])
    assert sender.undone == 0


@on_both_loops
async def test_of_a_batch_one_is_retried_and_one_rejected_and_the_others_are_done(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await soon(sender.send_many(range(1000)))
        got: list[int] = []
        async for batch in receiver.batches(max=300):
            got += [message.body for message in batch]
            for message in batch:
                if message.body % 100 == 50 and message.attempt == 1:
                    message.retry()
                elif message.body % 100 == 51:
                    message.reject()
                elif message.body % 100 == 52:
                    message.ack()
            if len(got) == 1010:
                break
    assert (receiver.stats.retried, receiver.stats.dead, receiver.stats.acked) == (10, 10, 990)
    assert sorted(got) == sorted([*range(1000), *range(50, 1000, 100)])
    assert sender.undone == 0


async def test_an_error_after_many_messages_leaves_only_the_last_one_open(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, linger=0.0) as sender:
        with pytest.raises(ZeroDivisionError):
            async with rvq.Receiver("work", bus=bus) as receiver:
                await soon(sender.send_many(range(500)))
                async for message in receiver:
                    if message.body == 400:
                        raise ZeroDivisionError
        async with Worker(bus) as worker:
            await soon(sender.flush())
    assert sorted(worker.bodies) == list(range(400, 500))


async def test_what_was_asked_past_counts_as_acknowledged_at_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await soon(sender.send_many(range(100)))
        count = 0
        async for _ in receiver:
            assert receiver.stats.acked == count
            count += 1
            if count == 100:
                break


# --- haste, threads, ledgers ----------------------------------------------------------------------------------------


async def test_an_urgent_message_overtakes_what_waits_in_async_for(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(200))
        assert await bodies(receiver, 1) == [0]
        await sender.send("urgent", urgent=True)
        await until(lambda: receiver.stats.routed == 201)
        rest = await bodies(receiver, 200)
        assert rest == ["urgent", *range(1, 200)]
        receiver.leave()
        with pytest.raises(StopAsyncIteration):
            await soon(anext(receiver))


async def test_an_urgent_message_overtakes_what_waits_in_batches(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(50))
        batches = receiver.batches(max=10)
        first = await soon(anext(batches))
        await sender.send_many(["urgent 1", "urgent 2"], urgent=True)
        await until(lambda: receiver.stats.routed == 52)
        second = await soon(anext(batches))
        rest = [message.body for _ in range(4) for message in await soon(anext(batches))]
        receiver.leave()
        with pytest.raises(StopAsyncIteration):
            await soon(anext(batches))
    assert [message.body for message in first] == list(range(10))
    assert [message.body for message in second] == ["urgent 1", "urgent 2", *range(10, 18)]
    assert all(message.urgent == isinstance(message.body, str) for message in second)
    assert rest == list(range(18, 50))


async def test_urgent_messages_that_are_done_before_their_frame_had_its_turn_leave_no_trace(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        for number in range(50):
            await sender.send(number)
            await sender.send(-number, urgent=True)
        await soon(sender.flush())
        assert sorted(worker.bodies) == sorted([*range(50), *(-number for number in range(50))])


async def test_what_is_to_be_retried_cannot_be_acknowledged_or_rejected_meanwhile(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send("job")
        (message,) = await take(receiver, 1)
        message.retry(delay=0.05)
        message.ack()
        message.reject("no")
        (again,) = await take(receiver, 1)
        assert (again.body, again.attempt) == ("job", 2)
        again.ack()
        await soon(sender.flush())
        assert (receiver.stats.acked, receiver.stats.retried, receiver.stats.dead) == (1, 1, 0)


async def test_outcomes_may_be_told_from_threads(bus: rvq.Bus) -> None:
    async with (
        rvq.Receiver("work.dead", bus=bus, ack="manual") as dead,
        rvq.Sender("work", bus=bus) as sender,
        rvq.Receiver("work", bus=bus, ack="manual") as receiver,
    ):
        await sender.send_many(["ack", "reject", "retry"])
        done, bad, later = await take(receiver, 3)
        await asyncio.to_thread(done.ack)
        await asyncio.to_thread(bad.reject, "no")
        await asyncio.to_thread(later.retry, 0.01)
        (again,) = await take(receiver, 1)
        await asyncio.to_thread(again.ack)
        await soon(sender.flush())
        (letter,) = await taken(dead, 1)
        assert (again.body, letter.body["body"]) == ("retry", "reject")
        assert (receiver.stats.acked, receiver.stats.retried, receiver.stats.dead) == (2, 1, 1)
    await asyncio.to_thread(done.ack)  # after the end it changes nothing


async def test_a_transaction_without_a_ledger_is_a_clear_error(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send("job")
        (message,) = await take(receiver, 1)
        with pytest.raises(rvq.LedgerError, match=r"there is no ledger here: rvq\.consume"):
            message.transaction()
        assert not await receiver.is_marked(message)
        receiver.leave()
        with pytest.raises(StopAsyncIteration):
            await soon(anext(receiver))


async def test_with_a_ledger_a_message_is_marked_once(bus: rvq.Bus, tmp_path: Path) -> None:
    async with (
        rvq.Ledger.sqlite(tmp_path / "work.db") as ledger,
        rvq.Sender("work", bus=bus) as sender,
        rvq.Receiver("work", bus=bus, ack="manual", ledger=ledger) as receiver,
    ):
        await sender.send("job")
        (message,) = await take(receiver, 1)
        assert not await receiver.is_marked(message)
        async with message.transaction():
            pass
        assert await receiver.is_marked(message)
        with pytest.raises(rvq.AlreadyDone):
            async with message.transaction():
                pass
        message.ack()
        await soon(sender.flush())


async def test_counts_are_kept_by_lane_and_by_shard(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        for number in range(30):
            await sender.send(number, key=f"key-{number % 3}")
        await sender.send("no key")
        await soon(sender.flush())
        stats = worker.receiver.stats
        assert sum(counts.acked for counts in stats.lanes.values()) == stats.acked == 31
        shards = {message.shard for message in worker.messages if message.key}
        assert {shard: counts.acked for shard, counts in stats.shards.items()} == dict.fromkeys(shards, 10)
