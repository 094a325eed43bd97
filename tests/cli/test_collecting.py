"""Looking at what is there, on a real bus: when it ends, and that it changes nothing."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace
from typing import Any, cast

import pytest

import rvq
from rvq.cli.collecting import OTHERS_S, Collecting
from rvq.cli.words import Words
from tests.cli.fakes import overheard

WAIT_S = 1.0
"""Longer than any of it takes; the looking ends so much later."""


async def look(bus: rvq.Bus, words: Words | None = None) -> tuple[list[object], int]:
    """The bodies that are found, and how many others were there."""
    collecting = Collecting("work.dead", bus, words or overheard()[0], WAIT_S)
    async with collecting.receiver:
        found = await collecting.run()
    return [one.message.body for one in found], collecting.others


async def test_nothing_is_found_where_nothing_is(bus: rvq.Bus) -> None:
    words, said = overheard()
    assert await look(bus, words) == ([], 0)
    assert said.getvalue() == "", "it took no longer than a look takes"


async def test_looking_takes_nothing_away(bus: rvq.Bus) -> None:
    async with rvq.Sender("work.dead", bus=bus) as sender:
        await sender.send_many(range(2000))
        for _ in range(2):
            bodies, others = await look(bus)
            assert sorted(map(int, map(str, bodies))) == [*range(2000)] and others == 0
        assert sender.undone == 2000
        sender.end()  # nobody is to take them


async def test_what_several_processes_hold_is_found_together(bus: rvq.Bus) -> None:
    senders = [rvq.Sender("work.dead", bus=bus) for _ in range(3)]
    for number, sender in enumerate(senders):
        sender.open()
        await sender.send(number)
    assert sorted((await look(bus))[0], key=str) == [0, 1, 2]
    for sender in senders:
        sender.linger = 0.0
        await asyncio.gather(sender.aclose(), return_exceptions=True)


async def test_what_another_holds_is_waited_for_until_it_leaves(bus: rvq.Bus) -> None:
    async with rvq.Sender("work.dead", bus=bus) as sender:
        await sender.send("x")
        async with rvq.Receiver("work.dead", bus=bus, ack="manual") as holder:
            assert len(await holder.take(1)) == 1
            looking = asyncio.create_task(look(bus))
            while len(holder.table.members if holder.table else ()) < 2:
                await asyncio.sleep(0.01)
        assert await looking == (["x"], 0)
        sender.end()  # nobody is to take it


async def test_others_that_stay_are_told_of(bus: rvq.Bus) -> None:
    words, said = overheard()
    async with rvq.Receiver("work.dead", bus=bus, ack="manual"):
        assert await look(bus, words) == ([], 1)
    assert said.getvalue() == (
        "rvq dead: still looking at work.dead: another receiver is there, and may leave what it holds: 5 s are given to"
        " that\n"
    )


async def test_what_it_waits_for_is_said_in_words(bus: rvq.Bus) -> None:
    collecting = Collecting("work.dead", bus, overheard()[0], WAIT_S)
    assert collecting.waits_for == "0 came, and more may come until it is quiet for 1 s"
    collecting.others = 2
    assert collecting.waits_for.startswith("2 other receivers are there")
    collecting.receiver = cast(Any, SimpleNamespace(inheriting=True))
    assert collecting.waits_for.startswith("what a receiver held that is gone without a goodbye")


async def test_quiet_does_not_count_while_others_may_be_on_their_way_out(
    bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0, time=lambda: clock.now)
    monkeypatch.setattr("rvq.cli.collecting.asyncio.get_running_loop", lambda: clock)
    ends_at: list[float] = []
    collecting = Collecting("work.dead", bus, overheard()[0], WAIT_S)
    collecting._limit = cast(Any, SimpleNamespace(reschedule=ends_at.append))

    def see(now: float, members: int) -> float:
        clock.now = now
        collecting._look_around(cast(Any, SimpleNamespace(members=range(members), index=0)))
        return ends_at[-1]

    assert see(100.0, 1) == 100 + WAIT_S
    assert see(101.0, 2) == see(103.0, 3) == 101 + OTHERS_S
    assert see(101.0 + OTHERS_S, 2) == 101 + OTHERS_S + WAIT_S
    assert see(110.0, 1) == 110 + WAIT_S
    assert see(120.0, 2) == 120 + OTHERS_S


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_a_terminal_sees_that_something_goes_on_and_nothing_is_left_of_it(
    bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    await look(bus, Words(stream))
    assert "looking at work.dead: 0 so far" in stream.getvalue() and stream.getvalue().endswith("\r\x1b[K")
