"""What was recorded, on the bus again: all of it or some, to all or into one group, as fast as may be or as it was."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rvq
from rvq.aio.replay import Chosen, _Pace
from rvq.journal.messages import Recorded
from rvq.wire.records import Content
from tests.aio.ends import Worker, soon, until


@pytest.fixture
async def root(bus: rvq.Bus, tmp_path: Path) -> Path:
    """A journal of ten messages, every other one with the key "k"."""
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        for number in range(10):
            await sender.send(number, key="k" if number % 2 else None, headers={"n": number})
        await soon(sender.flush())
    return tmp_path


async def test_all_of_it_comes_again_as_new_messages(bus: rvq.Bus, root: Path) -> None:
    async with Worker(bus) as worker:
        told: list[int] = []
        assert await soon(rvq.replay(root, "work", bus=bus, on_sent=lambda sent, undone: told.append(sent))) == 10
    assert Counter(worker.bodies) == Counter(range(10)) and told[-1] == 10
    assert {(m.body, m.key, m.headers["n"]) for m in worker.messages if m.headers} == {
        (n, "k" if n % 2 else None, n) for n in range(10)
    }


async def test_into_one_group_no_other_gets_anything_nor_holds_it_up(bus: rvq.Bus, root: Path) -> None:
    async with Worker(bus) as others, Worker(bus, group="team") as team:
        assert await soon(rvq.replay(root, "work", group="team", bus=bus)) == 10
        async with rvq.Sender("work", bus=bus) as sender:  # whatever was on its way to the others is there before this
            await until(lambda: len(sender.tables) == 2)
            await sender.send("last")
            await soon(sender.flush())
    assert Counter(team.bodies) == Counter([*range(10), "last"]) and others.bodies == ["last"]


async def test_to_another_label(bus: rvq.Bus, root: Path) -> None:
    async with Worker(bus, "copy") as worker:
        await soon(rvq.replay(root, "work", to="copy", bus=bus))
    assert Counter(worker.bodies) == Counter(range(10))


@pytest.mark.parametrize(
    ("chosen", "bodies"),
    [
        (Chosen(key="k"), [1, 3, 5, 7, 9]),
        (Chosen(first=3, last=5), [2, 3, 4]),
        (Chosen(sender=1), []),
        (Chosen(since=4e9), []),
        (Chosen(until=4e9), [*range(10)]),
        (Chosen(until=1.0), []),
    ],
)
async def test_only_what_was_chosen(bus: rvq.Bus, root: Path, chosen: Chosen, bodies: list[int]) -> None:
    async with Worker(bus) as worker:
        assert await soon(rvq.replay(root, "work", chosen=chosen, bus=bus)) == len(bodies)
    assert sorted(worker.bodies) == bodies


async def test_a_time_divides_what_was_sent(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send("before")
        await soon(sender.flush())
        between = time.time()
        await sender.send("after")
        await soon(sender.flush())
    for chosen, bodies in ((Chosen(since=between), ["after"]), (Chosen(until=between), ["before"])):
        async with Worker(bus) as worker:
            await soon(rvq.replay(tmp_path, "work", chosen=chosen, bus=bus))
        assert worker.bodies == bodies


async def test_nobody_to_replay_to_is_said_as_for_any_sender(bus: rvq.Bus, root: Path) -> None:
    with pytest.raises(rvq.NotDelivered) as caught:
        await soon(rvq.replay(root, "work", bus=bus, linger=0.1))
    assert caught.value.undone == 10


async def test_no_journal_is_one_clear_error(bus: rvq.Bus, tmp_path: Path) -> None:
    with pytest.raises(rvq.JournalError, match=str(tmp_path)):
        await rvq.replay(tmp_path / "none", "work", bus=bus)


@pytest.mark.parametrize(
    ("rate", "speed", "sent_at", "pauses"),
    [
        (None, None, [0.0, 9.0], [0.0, 0.0]),
        (10.0, None, [0.0, 9.0, 9.0], [0.0, 0.1, 0.2]),
        (None, 1.0, [5.0, 6.0, 8.0], [0.0, 1.0, 3.0]),
        (None, 2.0, [5.0, 6.0, 8.0], [0.0, 0.5, 1.5]),
        (2.0, 1.0, [5.0, 5.1, 9.0], [0.0, 0.5, 4.0]),
        (None, 1.0, [5.0, 4.0], [0.0, 0.0]),
    ],
)
async def test_the_pace(
    monkeypatch: pytest.MonkeyPatch, rate: Any, speed: Any, sent_at: list[float], pauses: list[float]
) -> None:
    slept = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds

    monkeypatch.setattr("rvq.aio.replay.monotonic", lambda: 100.0 + slept)
    monkeypatch.setattr("rvq.aio.replay.asyncio.sleep", sleep)
    pace, found = _Pace(rate, speed), []
    for at in sent_at:
        await pace.wait_for(Recorded("work", 1, 1, at, Content("x")))
        found.append(slept)
    assert found == pytest.approx(pauses)


# --- what was never done --------------------------------------------------------------------------------------------


async def test_after_everyone_died_what_was_not_done_is_offered_again_once(bus: rvq.Bus, tmp_path: Path) -> None:
    dead = rvq.Sender("work", bus=bus)
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder:
        async with rvq.Receiver("work", ack="manual", bus=bus) as receiver:
            dead.open()
            await until(lambda: len(dead.tables) == 2)
            await dead.send_many(range(40))
            await dead.send("in an hour", delay=3600.0)
            await dead.send("k", key="k", headers={"h": 1})
            done: list[object] = []
            while len(done) < 20:
                for message in (await soon(receiver.take(5)))[:5]:
                    message.ack()
                    done.append(message.body)
            await until(lambda: recorder.stats["work"].acked == 42)
            await until(lambda: dead.undone == 22)
        dead.end()  # as if killed: without goodbye
    async with Worker(bus) as worker:
        offering = asyncio.create_task(rvq.offer_again(tmp_path, "work", "default", bus=bus, linger=0.5))
        await until(lambda: len(worker.messages) == 21)
        with pytest.raises(rvq.NotDelivered) as caught:
            await soon(offering)
        assert caught.value.undone == 1, "it waits for its time again"
    left = Counter([*range(40), "k"])
    left.subtract(done)
    assert Counter(worker.bodies) == +left
    assert any((message.key, message.headers) == ("k", {"h": 1}) for message in worker.messages)


async def test_what_was_offered_again_and_done_is_not_offered_a_third_time(bus: rvq.Bus, tmp_path: Path) -> None:
    dead = rvq.Sender("work", bus=bus)
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder:
        async with rvq.Receiver("work", bus=bus):
            dead.open()
            await until(lambda: len(dead.tables) == 2)
            await dead.send_many(range(10))
            await until(lambda: recorder.stats["work"].acked == 10)
        dead.end()
    async with Worker(bus) as worker:
        assert await soon(rvq.offer_again(tmp_path, "work", "default", bus=bus)) == 10
        assert Counter(worker.bodies) == Counter(range(10))
        assert await soon(rvq.offer_again(tmp_path, "work", "default", bus=bus)) == 0
        assert await soon(rvq.offer_again(tmp_path, "work", "another", bus=bus)) == 0


async def test_what_a_living_sender_has_not_seen_done_is_its_own_affair(bus: rvq.Bus, tmp_path: Path) -> None:
    async with (
        rvq.Recorder(tmp_path, "work", bus=bus) as recorder,
        rvq.Sender("work", bus=bus) as sender,
        rvq.Receiver("work", ack="manual", bus=bus) as receiver,
    ):
        await until(lambda: len(sender.tables) == 2)
        await sender.send_many(range(10))
        await until(lambda: recorder.stats["work"].acked == 10)
        assert await soon(rvq.offer_again(tmp_path, "work", "default", bus=bus)) == 0
        for _ in range(10):
            for message in await soon(receiver.take(1)):
                message.ack()


async def test_ended_midway_only_what_was_under_way_is_offered_again(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rvq.aio.replay.OFFERED_MESSAGES", 4)
    dead = rvq.Sender("work", bus=bus)
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder:
        async with rvq.Receiver("work", bus=bus):
            dead.open()
            await until(lambda: len(dead.tables) == 2)
            await dead.send_many(range(10))
            await until(lambda: recorder.stats["work"].acked == 10)
        dead.end()

    def break_off(sent: int, _undone: int) -> None:
        raise KeyError(sent)

    async with Worker(bus) as worker:
        with pytest.raises(KeyError, match="4"):
            await soon(rvq.offer_again(tmp_path, "work", "default", bus=bus, on_sent=break_off))
        assert await soon(rvq.offer_again(tmp_path, "work", "default", bus=bus)) == 6
    assert Counter(worker.bodies) == Counter(range(10))
