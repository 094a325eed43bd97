"""`rvq.Sender` on real sockets: what is sent arrives once, what is not done is said, and nothing is left behind."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rvq
from rvq import limits
from tests.aio.ends import (
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
    until,
)

BODIES = [
    None,
    True,
    -1,
    2**64 - 1,
    1.5,
    "text",
    "",
    b"bytes",
    b"",
    [1, [2, "three"]],
    {"job": 1, "of": {"many": [b"\x00", None]}},
    {1: "an int as key", b"b": 2},
]


# --- messages arrive ------------------------------------------------------------------------------------------------


@on_both_loops
async def test_what_is_sent_arrives_as_it_was_sent(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        for body in BODIES:
            await sender.send(body)
        got = await bodies(receiver, len(BODIES))
    assert got == BODIES
    assert list(map(type, got)) == list(map(type, BODIES))


@on_both_loops
async def test_send_many_delivers_everything_once_and_in_order_to_one_receiver(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await soon(sender.send_many({"job": n} for n in range(20_000)))
        await soon(sender.flush())
        await stays(lambda: len(worker.messages) == 20_000, 0.1)
    assert worker.bodies == [{"job": n} for n in range(20_000)]


@on_both_loops
async def test_messages_arrive_in_the_order_in_which_they_were_sent_in_whatever_way(bus: rvq.Bus) -> None:
    sent: list[Any] = []
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        for n in range(2000):
            if n % 97 == 0:
                sent += range(n, n + 50)
                await sender.send_many(range(n, n + 50))
            body = b"%d" % n if n % 3 else {"n": n}
            sent.append(body)
            await sender.send(body, headers={"h": n} if n % 31 == 0 else None)
            if n == 1000:
                sent.append(bytes(200_000))
                await sender.send(bytes(200_000))
        await soon(sender.flush())
        await until(lambda: len(worker.messages) == len(sent))
    assert worker.bodies == sent


async def test_what_was_sent_a_moment_ago_counts_at_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await until(lambda: sender.tables)
        for n in range(100):
            await sender.send(n)
        assert sender.undone == sender.stats.inserted == 100
        await soon(sender.flush())
        assert (sender.undone, sender.stats.acked) == (0, 100)
    assert worker.bodies == list(range(100))


async def test_a_bad_message_between_good_ones_harms_only_itself(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await sender.send("before")
        for bad in (object(), {1, 2}, bytes(limits.MESSAGE_BYTES_MAX + 1)):
            with pytest.raises((rvq.BadMessage, rvq.MessageTooLarge)):
                await sender.send(bad)
        await sender.send("after")
        await soon(sender.flush())
    assert worker.bodies == ["before", "after"]


async def test_a_sender_that_is_closed_in_the_turn_of_its_sends_has_sent_them(bus: rvq.Bus) -> None:
    async with Worker(bus) as worker:
        async with rvq.Sender("work", bus=bus) as sender:
            for n in range(50):
                await sender.send(n)
        with pytest.raises(rvq.Closed):
            await sender.send("too late")
    assert worker.bodies == list(range(50))


async def test_headers_and_keys_arrive(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send("both", key="user-7", headers={"trace": "a1", "n": 3})
        await sender.send(b"key", key=b"\x00raw")
        await sender.send(b"headers", headers={"only": True})
        await sender.send(b"empty headers", headers={})
        got = await take(receiver, 4)
    facts = sorted((message.body, message.key, message.headers) for message in got if isinstance(message.body, bytes))
    assert facts == [
        (b"empty headers", None, None),
        (b"headers", None, {"only": True}),
        (b"key", b"\x00raw", None),
    ]
    both = next(message for message in got if message.body == "both")
    assert (both.key, both.headers) == ("user-7", {"trace": "a1", "n": 3})


async def test_send_many_gives_all_of_them_its_key_and_headers(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send_many(range(5), key="k", headers={"h": 1})
        got = await take(receiver, 5)
    assert [(m.body, m.key, m.headers) for m in got] == [(n, "k", {"h": 1}) for n in range(5)]


@pytest.mark.parametrize("size", [59_000, 60_000, 70_000, 5_000_000, limits.MESSAGE_BYTES_MAX])
async def test_messages_larger_than_a_frame_arrive_whole(bus: rvq.Bus, size: int) -> None:
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send("before")
        await sender.send(body)
        await sender.send("behind")
        got = sorted(await bodies(receiver, 3), key=len)
    assert got[:2] == ["before", "behind"]
    assert got[2] == body


async def test_many_tasks_may_share_a_sender(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await soon(asyncio.gather(*(send_each(sender, task * 100, 100) for task in range(20))))
        await soon(sender.flush())
    assert sorted(worker.bodies) == list(range(2000))


async def send_each(sender: rvq.Sender, first: int, count: int) -> None:
    for number in range(first, first + count):
        await sender.send(number)


async def test_several_senders_of_one_label_do_not_mix_their_messages_up(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as one, rvq.Sender("work", bus=bus) as two, Worker(bus) as worker:
        await one.send_many(("one", n) for n in range(500))
        await two.send_many(("two", n) for n in range(500))
        await soon(one.flush())
        await soon(two.flush())
    assert one.id != two.id
    for sender, name in ((one, "one"), (two, "two")):
        got = [message.body for message in worker.messages if message.sender == sender.id]
        assert got == [[name, n] for n in range(500)]


async def test_what_is_sent_before_anyone_listens_is_held_for_whoever_comes(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.send_many(range(100))
        assert sender.undone == 100
        async with Worker(bus) as worker:
            await soon(sender.flush())
    assert sorted(worker.bodies) == list(range(100))


async def test_each_group_gets_every_message(bus: rvq.Bus) -> None:
    async with (
        rvq.Sender("work", bus=bus) as sender,
        Worker(bus, group="one") as one,
        Worker(bus, group="two") as two,
        Worker(bus, group="two") as also_two,
    ):
        await until(lambda: set(sender.tables) == {"one", "two"} and len(sender.tables["two"].members) == 2)
        await sender.send_many(range(300))
        await soon(sender.flush())
    assert sorted(one.bodies) == list(range(300))
    assert sorted(two.bodies + also_two.bodies) == list(range(300))
    assert two.bodies and also_two.bodies


async def test_labels_do_not_mix(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus, "play") as other, Worker(bus) as worker:
        await sender.send_many(range(100))
        await soon(sender.flush())
        assert sorted(worker.bodies) == list(range(100))
        assert other.bodies == []


# --- waiting for done -----------------------------------------------------------------------------------------------


async def test_flush_waits_until_everything_is_acknowledged(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(3))
        got = await take(receiver, 3)
        flushing = asyncio.create_task(sender.flush())
        got[0].ack()
        got[2].ack()
        await stays(lambda: not flushing.done(), 0.2)
        got[1].ack()
        await soon(flushing)
        assert sender.undone == 0


async def test_it_knows_which_of_them_are_done(bus: rvq.Bus) -> None:
    sender = rvq.Sender("work", bus=bus)
    assert not sender.is_done(1)
    async with sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(3))
        assert not sender.is_done(1)
        got = sorted(await take(receiver, 3), key=lambda message: message.sequence)
        got[1].ack()
        await until(lambda: sender.is_done(2))
        assert not sender.is_done(1) and not sender.is_done(3)
        got[0].ack()
        got[2].ack()
        await soon(sender.flush())
        assert sender.is_done(1) and sender.is_done(3) and not sender.is_done(4)


async def test_flush_of_nothing_is_over_at_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.flush(timeout=0.1)
        await sender.flush()


@on_both_loops
async def test_flush_that_takes_too_long_says_how_many_are_undone(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus, ack="manual") as receiver:
        await sender.send_many(range(5))
        got = await take(receiver, 5)
        for message in got[:2]:
            message.ack()
        await until(lambda: sender.undone == 3)
        with pytest.raises(rvq.NotDelivered, match="3 messages not done") as raised:
            await sender.flush(timeout=0.05)
        assert raised.value.undone == 3
        for message in got[2:]:
            message.ack()
        await soon(sender.flush())


async def test_flush_waits_for_every_group(bus: rvq.Bus) -> None:
    async with (
        rvq.Sender("work", bus=bus) as sender,
        Worker(bus, group="fast") as worker,
        rvq.Receiver("work", bus=bus, group="slow", ack="manual") as slow,
    ):
        await until(lambda: set(sender.tables) == {"fast", "slow"})
        await sender.send("job")
        (message,) = await take(slow, 1)
        await until(lambda: worker.bodies == ["job"])
        with pytest.raises(rvq.NotDelivered):
            await sender.flush(timeout=0.2)
        message.ack()
        await soon(sender.flush())


async def test_leaving_the_block_waits_until_everything_is_done(bus: rvq.Bus) -> None:
    async with Worker(bus, work_s=0.002) as worker:
        async with rvq.Sender("work", bus=bus) as sender:
            await sender.send_many(range(100))
            assert len(worker.messages) < 100
        assert sender.stats.acked == 100
        assert sorted(worker.bodies) == list(range(100))


async def test_leaving_the_block_fails_loudly_after_linger(bus: rvq.Bus) -> None:
    began = time.monotonic()
    with pytest.raises(rvq.NotDelivered, match="nobody listens to 'work': start a receiver") as raised:
        async with rvq.Sender("work", bus=bus, linger=0.2) as sender:
            await sender.send_many(range(7))
    assert raised.value.undone == 7
    assert 0.2 <= time.monotonic() - began < 5
    with pytest.raises(rvq.Closed):
        await sender.send("more")


async def test_without_linger_the_block_is_left_at_once(bus: rvq.Bus) -> None:
    with pytest.raises(rvq.NotDelivered):
        async with rvq.Sender("work", bus=bus, linger=0) as sender:
            await sender.send("job")
    async with rvq.Sender("work", bus=bus, linger=0):
        pass


async def test_an_error_in_the_block_is_not_hidden_by_what_is_undone(bus: rvq.Bus) -> None:
    began = time.monotonic()
    with pytest.raises(LookupError, match="on purpose"):
        async with rvq.Sender("work", bus=bus) as sender:
            await sender.send("job")
            raise LookupError("on purpose")
    assert time.monotonic() - began < 5, "it does not wait for what cannot be done"


# --- the window -----------------------------------------------------------------------------------------------------


@on_both_loops
async def test_send_waits_while_the_window_is_full_and_goes_on_when_messages_are_done(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, window=20_000) as sender:
        sending = asyncio.create_task(send_large(sender, 100))
        await until(lambda: sender.stats.inserted >= 15)
        await stays(lambda: not sending.done() and sender.stats.inserted < 30, 0.2)
        async with Worker(bus) as worker:
            await soon(sending)
            await soon(sender.flush())
    assert sorted(body[0] for body in worker.bodies) == list(range(100))


async def send_large(sender: rvq.Sender, count: int) -> None:
    for number in range(count):
        await sender.send([number, bytes(1000)])


async def test_send_many_waits_while_the_window_is_full(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, window=20_000) as sender:
        sending = asyncio.create_task(sender.send_many([n, bytes(100)] for n in range(20_000)))
        await until(lambda: sender.stats.inserted > 0)
        await stays(lambda: not sending.done() and sender.stats.inserted < 10_000, 0.2)
        async with Worker(bus) as worker:
            await soon(sending)
            await soon(sender.flush())
    assert sorted(body[0] for body in worker.bodies) == list(range(20_000))


async def test_a_receiver_that_acknowledges_nothing_fills_the_window(bus: rvq.Bus) -> None:
    async with (
        rvq.Sender("work", bus=bus, window=20_000) as sender,
        rvq.Receiver("work", bus=bus, ack="manual") as receiver,
    ):
        sending = asyncio.create_task(send_large(sender, 60))
        got = await take(receiver, 10)
        await stays(lambda: not sending.done(), 0.2)
        assert sender.waiting_for is not None and "window is full" in sender.waiting_for
        while len(got) < 60:
            got[-1].ack()
            got += await take(receiver, 1)
            for message in got:
                message.ack()
        await soon(sending)
        await soon(sender.flush())
    assert sorted(message.body[0] for message in got) == list(range(60))


async def test_a_send_that_is_cancelled_at_a_full_frame_has_sent_each_message_once(bus: rvq.Bus) -> None:
    """Where a frame is full, `send` gives the others a turn: that is where it can be cancelled."""
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await until(lambda: sender.tables)
        for attempt in range(5):
            sent = []

            async def send_all(sent: list[tuple[int, int]] = sent, attempt: int = attempt) -> None:
                for number in range(100_000):
                    sent.append((attempt, number))
                    await sender.send([attempt, number, "x" * 500])

            before = sender.stats.inserted
            sending = asyncio.create_task(send_all())
            await until(lambda before=before: sender.stats.inserted > before + 200)  # type: ignore[misc]
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            assert sender.stats.inserted - before == len(sent), "it was cancelled after its last message was taken"
            await soon(sender.send([attempt, -1, "after"]))
            await soon(sender.flush())
            got = [(body[0], body[1]) for body in worker.bodies if body[0] == attempt]
            assert sorted(got) == sorted([*sent, (attempt, -1)])


async def test_a_send_that_is_cancelled_while_it_waits_has_sent_nothing(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, window=5_000) as sender:
        waiting = asyncio.create_task(send_large(sender, 50))
        await until(lambda: sender.stats.inserted >= 3)
        await stays(lambda: not waiting.done(), 0.05)
        count = sender.stats.inserted
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert sender.stats.inserted == count
        async with Worker(bus) as worker:
            await soon(sender.send("after"))
            await soon(sender.flush())
    assert len(worker.bodies) == count + 1
    assert "after" in worker.bodies


# --- looking --------------------------------------------------------------------------------------------------------


async def test_tables_show_who_is_in_force(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        assert sender.tables == {}
        async with Worker(bus) as one, Worker(bus) as two, Worker(bus, group="audit") as audit:
            await until(lambda: sum(len(table.members) for table in sender.tables.values()) == 3)
            assert sender.tables["default"].members == tuple(sorted((one.receiver.id, two.receiver.id)))
            assert sender.tables["audit"].members == (audit.receiver.id,)
            assert sender.tables["default"].index is None
            assert sender.tables["default"].version[0] >= 1


async def test_stats_count_what_was_sent_and_what_is_done(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        assert not any(sender.stats.as_dict().values())
        await sender.send_many(range(40))
        await sender.send("last")
        assert (sender.stats.inserted, sender.stats.routed, sender.stats.acked) == (41, 0, 0)
        async with Worker(bus):
            await soon(sender.flush())
        assert (sender.stats.inserted, sender.stats.routed, sender.stats.acked) == (41, 41, 41)
        assert (sender.stats.bad_frames, sender.undone) == (0, 0)


async def test_it_says_for_whom_it_waits(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        assert sender.waiting_for is not None and "nobody listens to 'work'" in sender.waiting_for
        async with Worker(bus, group="team"):
            await sender.send("one")
            await soon(sender.flush())
            assert sender.waiting_for is None
        await until(lambda: sender.waiting_for is not None)
        assert "nobody of group 'team' is left" in str(sender.waiting_for)


async def test_that_the_window_is_full_while_nobody_listens_is_said_once(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async with rvq.Sender("work", bus=bus, window=limits.FRAME_BYTES_MIN) as sender:
        sending = asyncio.create_task(sender.send_many([bytes(500)] * 200))
        await until(lambda: "the window is full: nobody listens to 'work'" in caplog.text)
        await stays(lambda: not sending.done() and caplog.text.count("the window is full") == 1, 0.1)
        async with Worker(bus):
            await soon(sending)
            await soon(sender.flush())


async def test_a_group_that_is_held_for_is_said_aloud_and_given_up_when_its_time_is_over(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async with rvq.Sender("work", bus=bus, hold=0.5) as sender, Worker(bus) as others:
        async with rvq.Receiver("work", group="team", ack="manual", bus=bus) as gone:
            await until(lambda: sender.tables.keys() == {"default", "team"})
            await sender.send("one")
            await take(gone, 1)
            await stays(lambda: sender.tables.keys() == {"default", "team"}, 0.1)
        await until(lambda: "nobody of group 'team'" in str(sender.waiting_for))
        await sender.send("two")
        await until(lambda: others.bodies == ["one", "two"])
        assert sender.undone == 2, "for the team"
        await soon(sender.flush())
        assert others.bodies == ["one", "two"]
        assert (sender.stats.lost, sender.stats.acked, sender.tables.keys()) == (2, 2, {"default"})
    said = [record.message.partition(": ")[2] for record in caplog.records if record.levelname == "WARNING"]
    assert said[:2] == [
        "group team: holding messages until somebody is there",
        "group team: nobody came back in 0.5 s: gave up 2 messages of it",
    ]


def test_a_sender_says_what_it_is(bus: rvq.Bus) -> None:
    assert repr(rvq.Sender("work", bus=bus)).startswith("<Sender ")
    assert "'work'" in repr(rvq.Sender("work", bus=bus))


def test_ids_are_fresh_at_every_start(bus: rvq.Bus) -> None:
    assert len({rvq.Sender("work", bus=bus).id for _ in range(100)}) == 100


# --- lifetime -------------------------------------------------------------------------------------------------------


def test_groups_that_are_no_names_are_refused(bus: rvq.Bus) -> None:
    with pytest.raises(rvq.BadArgument, match="groups=5 is no list of names"):
        rvq.Sender("work", bus=bus, groups=5)  # type: ignore[arg-type]


async def test_a_sender_that_is_not_open_yet_says_so(bus: rvq.Bus) -> None:
    sender = rvq.Sender("work", bus=bus)
    for call in (lambda: sender.send(1), lambda: sender.send_many([1]), lambda: sender.flush()):
        with pytest.raises(rvq.Closed, match="not open yet: use `async with"):
            await call()
    assert (sender.undone, sender.tables, sender.waiting_for) == (0, {}, None)
    assert not any(sender.stats.as_dict().values())


async def test_a_closed_sender_says_so(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        pass
    for call in (lambda: sender.send(1), lambda: sender.send_many([1]), lambda: sender.flush()):
        with pytest.raises(rvq.Closed, match="is closed: open another"):
            await call()


def test_one_that_is_used_in_another_event_loop_says_so(bus: rvq.Bus) -> None:
    async def both() -> tuple[rvq.Sender, rvq.Receiver]:
        sender, receiver = rvq.Sender("work", bus=bus), rvq.Receiver("work", bus=bus)
        sender.open()
        await receiver.__aenter__()
        return sender, receiver

    async def use(sender: rvq.Sender, receiver: rvq.Receiver) -> None:
        with pytest.raises(rvq.Closed, match="sender of 'work' belongs to another event loop: open one in the loop"):
            await sender.flush()
        with pytest.raises(rvq.Closed, match="receiver of 'work' belongs to another event loop"):
            await anext(receiver)

    with asyncio.Runner() as first:
        ends = first.run(both())
        with asyncio.Runner() as second:
            second.run(use(*ends))
        first.get_loop().call_soon(ends[0].end)
        first.run(ends[1].aclose())


async def test_a_sender_is_opened_once(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        with pytest.raises(rvq.Closed, match="make another"):
            await sender.__aenter__()
        await sender.send_many([])
    with pytest.raises(rvq.Closed, match="make another"):
        await sender.__aenter__()


async def test_closing_twice_is_fine_and_so_is_closing_what_was_never_open(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        await sender.aclose()
        await sender.aclose()
    await sender.aclose()
    await rvq.Sender("work", bus=bus).aclose()


async def test_closing_wakes_a_send_that_waits(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, window=2_000, linger=0) as sender:
        waiting = asyncio.create_task(send_large(sender, 50))
        await until(lambda: sender.stats.inserted >= 2)
        with pytest.raises(rvq.NotDelivered):
            await sender.aclose()
        with pytest.raises(rvq.Closed):
            await soon(waiting)


async def test_closing_wakes_a_flush_that_waits(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, linger=0) as sender:
        await sender.send("job")
        waiting = asyncio.create_task(sender.flush())
        await asyncio.sleep(0)
        with pytest.raises(rvq.NotDelivered):
            await sender.aclose()
        with pytest.raises((rvq.Closed, rvq.NotDelivered)):
            await soon(waiting)


@on_both_loops
async def test_cancelled_at_any_moment_it_leaves_nothing_open(bus: rvq.Bus) -> None:
    before, tasks = open_sockets(), asyncio.all_tasks()

    async def use() -> None:
        async with rvq.Sender("work", bus=bus, linger=30, window=50_000) as sender:
            await sender.send_many(bytes(100) for _ in range(200))
            await sender.send("one", key="k")
            await send_large(sender, 200)

    for turns in [*range(12), 50, 200, 1000]:
        assert await cancelled_after(turns, use()), "it waits for a receiver, for ever"
        assert open_sockets() <= before
        assert asyncio.all_tasks() == tasks


async def test_cancelled_while_it_lingers_it_is_closed(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, linger=30) as sender:
        await sender.send("job")
        assert await cancelled_after(5, sender.aclose())
        with pytest.raises(rvq.Closed):
            await sender.send("more")


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [object(), {1, 2}, 2**64, -(2**63) - 1, lambda: 1, [object()], {"x": 1j}])
async def test_what_cannot_be_packed_is_refused_and_the_sender_goes_on(bus: rvq.Bus, body: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        with pytest.raises(rvq.BadMessage, match=r"cannot be packed .*: send what msgpack takes"):
            await sender.send(body)
        with pytest.raises(TypeError):
            await sender.send(body)
        with pytest.raises(rvq.BadMessage):
            await sender.send_many([body])
        assert sender.stats.inserted == 0
        await sender.send("good")
        await soon(sender.flush())
        assert worker.bodies == ["good"]


@pytest.mark.parametrize("place", [0, 5, 16, 700])
async def test_send_many_sends_what_stands_before_a_bad_message_and_nothing_behind_it(bus: rvq.Bus, place: int) -> None:
    many: list[Any] = list(range(1000))
    many[place] = object()
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        with pytest.raises(rvq.BadMessage):
            await sender.send_many(many)
        await soon(sender.flush())
        assert worker.bodies == list(range(place))


async def test_a_list_that_holds_itself_is_refused(bus: rvq.Bus) -> None:
    endless: list[Any] = []
    endless.append(endless)
    async with rvq.Sender("work", bus=bus) as sender:
        with pytest.raises(rvq.BadMessage):
            await sender.send(endless)


async def test_a_message_over_the_limit_is_refused_and_the_sender_goes_on(bus: rvq.Bus) -> None:
    size = limits.MESSAGE_BYTES_MAX + 1
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        with pytest.raises(rvq.MessageTooLarge, match="16,777,217 bytes is over the limit of 16,777,216") as raised:
            await sender.send(bytes(size))
        assert (raised.value.size, raised.value.limit) == (size, limits.MESSAGE_BYTES_MAX)
        with pytest.raises(rvq.MessageTooLarge):
            await sender.send("x" * size)
        await sender.send("good")
        await soon(sender.flush())
        assert worker.bodies == ["good"]


@pytest.mark.parametrize("many", ["text", b"bytes", {"a": 1}, 5, None])
async def test_send_many_refuses_what_is_one_message(bus: rvq.Bus, many: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        with pytest.raises(rvq.BadMessage, match="takes a list or another iterable"):
            await sender.send_many(many)


@pytest.mark.parametrize("key", ["", b"", 5, ("a",), True])
async def test_odd_keys_are_refused(bus: rvq.Bus, key: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        with pytest.raises(rvq.BadMessage, match="give text or bytes that are not empty"):
            await sender.send("job", key=key)
        assert sender.undone == 0


@pytest.mark.parametrize("headers", [["a"], {1: "number as a name"}, "text"])
async def test_odd_headers_are_refused(bus: rvq.Bus, headers: Any) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        with pytest.raises(rvq.BadMessage, match="headers must be a dict"):
            await sender.send("job", headers=headers)


@pytest.mark.parametrize("label", ["", "x" * 256, "é" * 128, "two\nlines", 5, None, b"bytes"])
def test_odd_labels_are_refused(bus: rvq.Bus, label: Any) -> None:
    with pytest.raises(rvq.BadLabel):
        rvq.Sender(label, bus=bus)


async def test_a_label_may_have_255_bytes(bus: rvq.Bus) -> None:
    label = "é" * 127 + "x"
    async with rvq.Sender(label, bus=bus) as sender, Worker(bus, label) as worker:
        await sender.send("job")
        await soon(sender.flush())
    assert worker.messages[0].label == label


@pytest.mark.parametrize("linger", [-1, -0.001, float("inf"), float("nan"), "5", None, True])
def test_an_odd_linger_is_refused(bus: rvq.Bus, linger: Any) -> None:
    with pytest.raises(ValueError, match=r"linger=.* is not a duration: give seconds, 0 or more"):
        rvq.Sender("work", bus=bus, linger=linger)


@pytest.mark.parametrize("hold", [-1, float("inf"), float("nan"), "5", True])
def test_an_odd_hold_is_refused(bus: rvq.Bus, hold: Any) -> None:
    with pytest.raises(ValueError, match=r"hold=.* is not a duration: give seconds, 0 or more"):
        rvq.Sender("work", bus=bus, hold=hold)


@pytest.mark.parametrize("window", [0, -1, 511, 1.5, "1", None, True])
def test_an_odd_window_is_refused(bus: rvq.Bus, window: Any) -> None:
    with pytest.raises(ValueError, match=r"window=.* is not a size: give bytes"):
        rvq.Sender("work", bus=bus, window=window)


async def test_an_unknown_interface_is_named_with_those_that_exist(port: int) -> None:
    with pytest.raises(rvq.BusError, match=r"no interface 'nope0' on this machine: choose one of .*lo \(127"):
        async with rvq.Sender("work", bus=rvq.Bus(interface="nope0", port=port)):
            pass


async def test_a_port_that_another_program_keeps_is_named(bus: rvq.Bus) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
        foreign.bind(("", bus.port))
        sender = rvq.Sender("work", bus=bus)
        with pytest.raises(rvq.BusError, match=f"port {bus.port} is taken .*: choose another"):
            await sender.__aenter__()
        with pytest.raises(rvq.Closed, match="not open yet"):
            await sender.send("job")


async def test_the_bus_is_that_of_the_environment_unless_given(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_PORT", str(port))
    sender = rvq.Sender("work")
    assert sender.bus == rvq.Bus(port=port)


# --- strangers ------------------------------------------------------------------------------------------------------


async def test_what_strangers_send_is_counted_and_harms_nobody(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await members([worker.receiver], 1)
        with Stranger(bus) as stranger:
            sending = asyncio.create_task(sender.send_many(range(20_000)))
            for datagram in (b"", b"x", b"GET / HTTP/1.1\r\n\r\n", bytes(60_000), b"rvq", b"rvq\x01", b"rvq\xff" * 20):
                stranger.send(datagram)
            await soon(sending)
            await soon(sender.flush())
        await until(lambda: sender.stats.bad_frames >= 7)
    assert worker.bodies == list(range(20_000))


async def test_a_sender_that_ends_without_a_goodbye_can_be_followed_by_another(bus: rvq.Bus) -> None:
    async with Worker(bus) as worker:
        with suppress(LookupError):
            async with rvq.Sender("work", bus=bus) as first:
                await first.send("from the first")
                await until(lambda: worker.messages)
                raise LookupError
        async with rvq.Sender("work", bus=bus) as second:
            await second.send("from the second")
            await soon(second.flush())
    assert worker.bodies == ["from the first", "from the second"]


# --- time and haste -------------------------------------------------------------------------------------------------

BAD_WISHES: dict[str, tuple[dict[str, Any], str]] = {
    "due without a zone": ({"due": datetime(2030, 1, 1)}, "has no time zone"),
    "due that is no datetime": ({"due": 1893456000}, "is int, not a datetime"),
    "delay and due": ({"delay": 1, "due": datetime.now(UTC)}, "both say when"),
    "negative delay": ({"delay": -1}, r"delay=-1 is not a duration"),
    "delay of NaN": ({"delay": float("nan")}, "delay=nan is not a duration"),
    "delay True": ({"delay": True}, "delay=True is not a duration"),
    "delay False": ({"delay": False}, "delay=False is not a duration"),
    "negative ttl": ({"ttl": -0.5}, r"ttl=-0\.5 is not a duration"),
    "ttl of NaN": ({"ttl": float("nan")}, "ttl=nan is not a duration"),
    "ttl True": ({"ttl": True}, "ttl=True is not a duration"),
    "key that is a number": ({"key": 7}, "key 7 cannot be used: give text or bytes"),
    "key that is empty": ({"key": ""}, "key '' cannot be used"),
    "key of a due one": ({"key": 7.5, "delay": 1}, r"key 7\.5 cannot be used"),
    "urgent with a key": ({"key": "k", "urgent": True}, "cannot be urgent"),
    "urgent and due": ({"delay": 5, "urgent": True}, "cannot be urgent"),
}


@pytest.mark.parametrize("name", BAD_WISHES)
async def test_a_wish_that_makes_no_sense_is_refused_and_nothing_is_sent(bus: rvq.Bus, name: str) -> None:
    wish, words = BAD_WISHES[name]
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        with pytest.raises(rvq.BadMessage, match=words):
            await sender.send("bad", **wish)
        with pytest.raises(rvq.BadMessage, match=words):
            await sender.send_many(["bad", "bad"], **wish)
        assert (sender.undone, sender.stats.inserted) == (0, 0)
        await sender.send("good")
        (message,) = await take(receiver, 1)
        assert (message.body, message.sequence) == ("good", 1)
        receiver.leave()
        with pytest.raises(StopAsyncIteration):
            await soon(anext(receiver))


@pytest.mark.parametrize("how", ["send", "send_many"])
async def test_nothing_is_handled_before_it_is_due_however_many_receivers(bus: rvq.Bus, how: str) -> None:
    early: list[float] = []

    async def handle(receiver: rvq.Receiver) -> None:
        async for message in receiver:
            assert message.due_at is not None
            early.append(message.due_at - time.time())

    async with AsyncExitStack() as stack:
        sender = await stack.enter_async_context(rvq.Sender("work", bus=bus))
        receivers = [await stack.enter_async_context(rvq.Receiver("work", bus=bus)) for _ in range(3)]
        handling = [asyncio.create_task(handle(receiver)) for receiver in receivers]
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 3)
        for number in range(20):
            if how == "send":
                await sender.send(number, delay=0.2 + number / 100)
            else:
                await sender.send_many([number], due=datetime.now(UTC) + timedelta(seconds=0.2 + number / 100))
        assert early == []
        await soon(sender.flush())
        for receiver in receivers:
            receiver.leave()
        await soon(asyncio.gather(*handling))
    assert len(early) == 20
    assert max(early) <= 0


async def test_who_has_nothing_else_to_do_is_late_by_less_than_50_ms(bus: rvq.Bus) -> None:
    late: list[float] = []
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await until(lambda: sender.tables)
        for number in range(9):
            await sender.send(number, delay=0.2 + number / 10)
        for _ in range(9):
            (message,) = await take(receiver, 1)
            assert message.due_at is not None
            late.append(time.time() - message.due_at)
    # The machine that runs the tests is seldom idle: but for a moment in nine it is.
    assert 0 <= min(late) < 0.05


async def test_a_due_message_whose_receiver_leaves_waits_at_its_heir(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        async with rvq.Receiver("work", bus=bus) as leaver:
            await until(lambda: sender.tables)
            await sender.send_many(range(10), delay=2.0)
            waiting = asyncio.create_task(anext(leaver))
            await until(lambda: leaver.stats.routed == 10)
            await stays(lambda: not waiting.done(), 0.1)
            waiting.cancel()
        async with rvq.Receiver("work", bus=bus) as heir:
            messages = []
            for _ in range(10):
                messages += await take(heir, 1)
                assert messages[-1].due_at <= time.time()
            heir.leave()
            with pytest.raises(StopAsyncIteration):
                await soon(anext(heir))
            await soon(sender.flush())
    assert sorted(message.body for message in messages) == list(range(10))


@pytest.mark.parametrize("how", ["send", "send_many"])
async def test_what_is_over_is_counted_and_done_and_not_handed_out(bus: rvq.Bus, how: str) -> None:
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus) as worker:
        await until(lambda: sender.tables)
        if how == "send":
            await sender.send("over", ttl=0)
            await sender.send("over", ttl=0.01, delay=0.05)
            await sender.send("over", key="k", ttl=0)
        else:
            await sender.send_many(["over"] * 3, ttl=0)
        await sender.send("good", ttl=600)
        await sender.send("good", key="k")
        await soon(sender.flush())
        assert worker.bodies == ["good", "good"]
        assert worker.receiver.stats.expired == 3
        assert sum(counts.expired for counts in worker.receiver.stats.lanes.values()) == 3
        assert sum(counts.expired for counts in worker.receiver.stats.shards.values()) == (how == "send")


async def test_a_message_says_when_it_is_due_and_over(bus: rvq.Bus) -> None:
    due = datetime.now(UTC)
    async with rvq.Sender("work", bus=bus) as sender, rvq.Receiver("work", bus=bus) as receiver:
        await sender.send("job", due=due, ttl=60, headers={"trace": "a1"}, key="k")
        (message,) = await take(receiver, 1)
        assert (message.due_at, message.ttl, message.urgent) == (due.timestamp(), 60.0, False)
        assert message.expires_at == message.sent_at + 60.0
        receiver.leave()
        with pytest.raises(StopAsyncIteration):
            await soon(anext(receiver))
