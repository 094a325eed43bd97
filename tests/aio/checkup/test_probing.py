"""Probes and their counts, over a network that loses what it is told to: real words, made-up ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from rvq.aio.checkup import probing
from rvq.aio.checkup.answering import Answering, Me
from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.probing import Probing
from rvq.aio.checkup.words import Kind, Word

HERE: Place = ("10.0.0.1", 40_000)
THERE: Place = ("10.0.0.2", 40_001)

Lost = Callable[[Word, Way, int], bool]


class Wire:
    """One end of a network: what is said here arrives there, unless `lost` says otherwise."""

    def __init__(self, own: Place, lost: Lost) -> None:
        self.own, self.lost = own, lost
        self.other: Callable[[Word, Place, Way, int], object] = lambda *heard: None
        self.most = self.flying = 0

    def say(self, word: Word, to: Place | None = None, size: int = 0, *, whole: bool = False) -> bool:
        way = Way.MULTICAST if to is None else Way.UNICAST
        if not self.lost(word, way, size):
            asyncio.get_running_loop().call_soon(self.other, word, self.own, way, size)
        return True


def pair(there: Lost = lambda *_: False, back: Lost = lambda *_: False, ahead: float = 0.0) -> Probing:
    """One who probes a peer, whose clock is so far ahead."""
    out, home = Wire(HERE, there), Wire(THERE, back)
    doctor = Answering(Me(8, "b", 1, 1500, "", False), cast(Post, home), wall=lambda: 1000.0 + ahead)
    asking = Probing(7, 8, THERE, cast(Post, out), wall=lambda: 1000.0)
    out.other = doctor.on_word
    home.other = lambda word, source, way, size: asking.on_word(word, way, size)
    return asking


def is_probe(word: Word) -> bool:
    return word.kind in (Kind.PROBE, Kind.ECHO)


async def test_where_nothing_is_lost_all_is_counted() -> None:
    run = await pair().run(Way.MULTICAST, [300] * 50)
    assert (run.sent, run.heard, run.echoed, run.size_heard, run.size_echoed) == (50, 50, 50, 300, 300)


@pytest.mark.parametrize("way", Way)
async def test_loss_is_told_apart_by_its_direction(way: Way) -> None:
    asking = pair(
        there=lambda word, _, size: is_probe(word) and word.number % 5 == 0,
        back=lambda word, _, size: is_probe(word) and word.number % 10 == 1,
    )
    run = await asking.run(way, [300] * 100)
    assert (run.sent, run.heard, run.echoed) == (100, 80, 70)


async def test_a_way_that_is_broken_is_asked_about_by_the_other() -> None:
    asking = pair(there=lambda word, way, size: way is Way.MULTICAST)
    run = await asking.run(Way.MULTICAST, [300] * 3)
    assert (run.heard, run.echoed, run.clock) == (0, 0, None)


async def test_each_way_reports_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = pair(there=lambda word, way, size: way is Way.UNICAST, back=lambda word, way, size: way is Way.UNICAST)
    run = await asking.run(Way.MULTICAST, [300] * 3)
    assert (run.heard, run.echoed) == (3, 3)
    run = await asking.run(Way.UNICAST, [300] * 3)
    assert (run.heard, run.echoed) == (0, 0)


async def test_an_echo_that_comes_in_the_next_run_counts_for_none() -> None:
    late: list[Word] = []

    def held(word: Word, way: Way, size: int) -> bool:
        if word.kind is Kind.ECHO and word.facts[0] == 1:
            late.append(word)
            return True
        for echo in late if word.facts[0] == 2 else ():
            asking.on_word(echo, way, 1400)
        return False

    asking = pair(back=held)
    assert (await asking.run(Way.MULTICAST, [1400] * 3)).echoed == 0
    run = await asking.run(Way.MULTICAST, [300] * 3)
    assert len(late) == 3 and (run.echoed, run.size_echoed) == (3, 300)


async def test_a_peer_that_is_gone_has_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "ASKS", 2)
    run = await pair(there=lambda *_: True).run(Way.UNICAST, [300] * 3)
    assert (run.sent, run.heard, run.echoed) == (3, None, 0)


@pytest.mark.parametrize("ahead", [0.0, 3.5, -0.75])
async def test_the_clock_of_the_peer_is_compared(ahead: float) -> None:
    run = await pair(ahead=ahead).run(Way.UNICAST, [300] * 3)
    assert run.clock is not None and run.clock.ahead_s == pytest.approx(ahead) and run.clock.round_trip_s == 0


async def test_the_largest_that_passed_is_known_for_both_directions() -> None:
    asking = pair(there=lambda word, _, size: size > 1400, back=lambda word, _, size: size > 1000)
    run = await asking.run(Way.MULTICAST, [500, 1000, 1400, 1500], whole=True)
    assert (run.size, run.size_heard, run.size_echoed) == (1500, 1400, 1000)


async def test_only_the_peers_own_answers_count_and_each_once() -> None:
    def forged(word: Word, way: Way, size: int) -> bool:
        if word.kind is Kind.PROBE:
            for source, to, number in ((9, 7, word.number), (8, 6, word.number), (8, 7, word.number + 99)):
                asking.on_word(Word(Kind.ECHO, source, to, number, (1, 0.0, 0.0)), way, size)
                asking.on_word(Word(Kind.REPORT, source, to, number, (1, 77, 77)), way, size)
        return word.kind is Kind.PROBE

    asking = pair(there=forged)
    run = await asking.run(Way.MULTICAST, [300] * 3)
    assert (run.heard, run.echoed) == (0, 0)

    def twice(word: Word, way: Way, size: int) -> bool:
        asking.on_word(word, way, size)
        return False

    asking = pair(back=twice)
    assert (await asking.run(Way.MULTICAST, [300] * 3)).echoed == 3


async def test_no_more_are_on_their_way_than_the_smallest_buffers_hold() -> None:
    flying: list[int] = []

    def held(word: Word, way: Way, size: int) -> bool:
        flying.append(asking._flying())
        return False

    asking = pair(there=held)
    await asking.run(Way.MULTICAST, [60_000] * 20)
    assert max(flying) <= probing.FLIGHT_BYTES // 60_000
