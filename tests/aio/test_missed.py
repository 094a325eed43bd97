"""What a group missed, and then what it gets live: each message once, whoever asks for it and however often."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import rvq
from rvq.aio import missed as module
from rvq.aio.missed import _is_ready
from rvq.aio.past import StreamPast
from rvq.wire.frames import GroupStamp, Member, Stamp, Version
from tests.aio.ends import Worker, soon, until


class Stream:
    """A sender that goes on sending, while the block lasts."""

    def __init__(self, bus: rvq.Bus, groups: int) -> None:
        self.sender = rvq.Sender("work", bus=bus)
        self.sent: list[str] = []
        self._groups = groups
        self._stopping = False

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[Stream]:
        async with self.sender:
            await until(lambda: len(self.sender.tables) == self._groups)
            sending = asyncio.create_task(self._send())
            await until(lambda: len(self.sent) > 50)
            try:
                yield self
            finally:
                self._stopping = True
                await soon(sending)
                await soon(self.sender.flush())

    async def _send(self) -> None:
        while not self._stopping:
            texts = [f"{self.sender.id}/{len(self.sent) + n}" for n in range(5)]
            await self.sender.send_many(texts)
            self.sent += texts
            await asyncio.sleep(0.001)


async def caught_up(worker: Worker) -> None:
    """Until it has sent all that there is to send."""
    catching_up = worker.receiver._catching_up
    assert catching_up is not None
    await until(lambda: catching_up._task.done())
    catching_up.check()


@pytest.fixture
async def root(bus: rvq.Bus, tmp_path: Path) -> Path:
    """A journal of ten messages of a sender that is gone."""
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send_many(range(10))
        await soon(sender.flush())
    return tmp_path


async def test_a_group_that_comes_late_gets_what_was_recorded_and_then_what_is_sent_each_once(
    bus: rvq.Bus, tmp_path: Path
) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus), Worker(bus) as others:
        async with rvq.Sender("work", bus=bus) as gone:
            await until(lambda: len(gone.tables) == 2)
            await gone.send_many([f"gone/{n}" for n in range(50)])
        async with rvq.Sender("work", bus=bus) as stays:
            await until(lambda: len(stays.tables) == 2)
            sent = 0

            async def send() -> None:
                nonlocal sent
                while True:
                    await stays.send(f"live/{sent}")
                    sent += 1
                    await asyncio.sleep(0.001)

            sending = asyncio.create_task(send())
            await until(lambda: sent > 50)
            async with Worker(bus, group="late") as late:
                assert await soon(rvq.catch_up(tmp_path, "work", "late", bus=bus)) > 100
                sending.cancel()
                await asyncio.wait({sending})
                await soon(stays.flush())
    wanted = Counter([f"gone/{n}" for n in range(50)] + [f"live/{n}" for n in range(sent)])
    assert Counter(late.bodies) == wanted, "no gap and no repeat at the seam"
    assert Counter(others.bodies) == wanted, "and the others got nothing again"


async def test_catching_up_needs_somebody_of_the_group(bus: rvq.Bus, root: Path) -> None:
    with pytest.raises(TimeoutError):
        await soon(rvq.catch_up(root, "work", "late", bus=bus, linger=0.2))


# --- a receiver that sees to it --------------------------------------------------------------------------------------


async def test_a_group_begins_with_the_journal_while_senders_go_on_and_each_message_comes_once(
    bus: rvq.Bus, tmp_path: Path
) -> None:
    """Three receivers of the new group join, one of them leaves again and another comes, in full flow."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(rvq.Recorder(tmp_path, "work", bus=bus))
        others = await stack.enter_async_context(Worker(bus))
        streams = [await stack.enter_async_context(Stream(bus, 2).flowing()) for _ in range(2)]
        team = [await stack.enter_async_context(Worker(bus, group="late", from_journal=tmp_path)) for _ in range(3)]
        before = {text for stream in streams for text in stream.sent}
        await until(lambda: before <= {body for worker in team for body in worker.bodies}, "what was sent before")
        team[1].receiver.leave()
        await team[1].ended()
        for stream in streams:
            more = len(stream.sent) + 100
            await until(lambda stream=stream, more=more: len(stream.sent) > more)
        later = await stack.enter_async_context(Worker(bus, group="late", from_journal=tmp_path))
        for stream in streams:
            stream._stopping = True
        wanted = Counter()
        for stream in streams:
            await soon(stream.sender.flush())
            wanted.update(stream.sent)
        await until(lambda: sum(len(worker.bodies) for worker in (*team, later)) >= wanted.total())
        await caught_up(later)
    assert Counter(body for worker in (*team, later) for body in worker.bodies) == wanted, "no gap and no repeat"
    assert Counter(others.bodies) == wanted, "and the others got nothing again"


async def test_what_was_caught_up_is_not_sent_again(bus: rvq.Bus, root: Path) -> None:
    async with rvq.Recorder(root, "work", bus=bus):
        for bodies in ([*range(10)], []):
            async with Worker(bus, group="late", from_journal=root) as late:
                await caught_up(late)
            assert Counter(late.bodies) == Counter(bodies)


async def test_two_groups_may_catch_up_at_once(bus: rvq.Bus, root: Path) -> None:
    async with (
        rvq.Recorder(root, "work", bus=bus),
        Worker(bus, group="one", from_journal=root) as one,
        Worker(bus, group="two", from_journal=root) as two,
    ):
        await until(lambda: len(one.bodies) == len(two.bodies) == 10)
    assert Counter(one.bodies) == Counter(two.bodies) == Counter(range(10))


async def test_consume_begins_with_the_journal_too(bus: rvq.Bus, root: Path) -> None:
    handled: list[object] = []
    stop = asyncio.Event()

    async def handle(message: rvq.Message) -> None:
        handled.append(message.body)

    async with rvq.Recorder(root, "work", bus=bus):
        consuming = asyncio.create_task(
            rvq.consume("work", handle, group="late", from_journal=root, bus=bus, stop=stop)
        )
        await until(lambda: len(handled) == 10)
        stop.set()
        await soon(consuming)
    assert Counter(handled) == Counter(range(10))


async def test_a_folder_that_is_no_journal_is_said_when_the_receiver_is_opened(bus: rvq.Bus, tmp_path: Path) -> None:
    with pytest.raises(rvq.JournalError, match="not a journal"):
        async with rvq.Receiver("work", from_journal=tmp_path, bus=bus):
            pass
    with pytest.raises(rvq.BusError, match="a tap"):
        rvq.Receiver("work", group=None, from_journal=tmp_path, bus=bus)


async def test_what_keeps_it_from_catching_up_comes_out_of_the_receiver(
    bus: rvq.Bus, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise rvq.JournalError(root, "a bit changed")

    monkeypatch.setattr(module, "messages", damaged)
    with pytest.raises(rvq.JournalError, match="a bit changed"):
        async with rvq.Receiver("work", group="late", from_journal=root, bus=bus) as receiver:
            await soon(anext(receiver))


async def test_without_a_recorder_it_says_what_it_waits_for(
    bus: rvq.Bus, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    async with rvq.Sender("work", bus=bus) as sender, Worker(bus, group="late", from_journal=root) as late:
        await sender.send("live")
        await until(lambda: "is `rvq record` running" in caplog.text)
        await until(lambda: late.bodies == ["live"])


async def test_one_that_is_closed_in_between_gives_its_turn_to_another(
    bus: rvq.Bus, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rvq.aio.replay.OFFERED_MESSAGES", 4)
    async with rvq.Recorder(root, "work", bus=bus):
        async with rvq.Receiver("work", group="late", from_journal=root, ack="manual", bus=bus) as first:
            seen: list[object] = []
            while len(seen) < 6:  # the first four are noted, the next four under way
                for message in await soon(first.take(1)):
                    seen.append(message.body)
                    message.ack()
        async with Worker(bus, group="late", from_journal=root) as second:
            await caught_up(second)
    assert set(seen) | set(second.bodies) == set(range(10))
    twice = Counter([*seen, *second.bodies]) - Counter(range(10))
    assert len(twice) <= 4, "no more than were under way"
    assert not set(twice) & set(seen[:4]), "what was noted is not sent again"


def stamped(at: int, *groups: str) -> tuple[StreamPast, StreamPast]:
    """What is known of a stream for the group "late" and for the journal, after one stamp of these groups."""
    ours, recorded = StreamPast("late"), StreamPast("journal")
    entries = tuple(GroupStamp(group, 2, at, Version(1, 1), (Member(1, 1),), (), (), ()) for group in groups)
    for past in (ours, recorded):
        past.stamped(Stamp(7, "work", 2, at, False, entries))
    return ours, recorded


def test_a_stream_is_waited_for_until_the_journal_has_all_before_the_seam() -> None:
    assert not _is_ready(StreamPast("late"), StreamPast("journal")), "nothing is known of it yet"
    ours, recorded = stamped(10, "journal")
    assert not _is_ready(ours, recorded), "not known yet from where on the group has it"
    ours, recorded = stamped(10, "journal", "late")
    recorded.done_to = 8
    assert not _is_ready(ours, recorded)
    recorded.done_to = 9
    assert _is_ready(ours, recorded)


def test_a_stream_that_nobody_records_is_not_waited_for() -> None:
    assert _is_ready(*stamped(1, "another"))
