"""A doctor's sockets on loopback: every way that a word goes, and what does not leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing

from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.words import Kind, Speech, Word
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key
from rvq.transport.multicast import resolve_interface

BYE = Word(Kind.BYE, 7, 0, 0)


def opened(bus: Bus, keys: Keys | None = None) -> Post:
    return Post(bus, resolve_interface(bus.interface), Speech(bus, keys))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_words_come_by_the_way_that_they_were_sent(bus: Bus) -> None:
    heard: list[tuple[Word, Place, Way, int]] = []
    with closing(opened(bus)) as speaker, closing(opened(bus)) as hearer:
        hearer.start(lambda *word: heard.append(word), lambda *stranger: None)
        assert speaker.say(BYE) and speaker.say(BYE, hearer.place, 500) and speaker.say(BYE, ("127.0.0.1", bus.port))
        await until(lambda: len(heard) == 3)
    by_way = sorted((way.value, size) for _, _, way, size in heard)
    assert [way for way, _ in by_way] == ["multicast", "unicast", "unicast"] and ("unicast", 500) in by_way
    assert {source for _, source, _, _ in heard} == {speaker_place(heard)}


def speaker_place(heard: list[tuple[Word, Place, Way, int]]) -> Place:
    return heard[0][1]


async def test_strangers_are_told_with_their_address(bus: Bus) -> None:
    strangers: list[tuple[Place, str]] = []
    with closing(opened(bus, Keys([new_key()]))) as speaker, closing(opened(bus)) as hearer:
        hearer.start(lambda *word: None, lambda *stranger: strangers.append(stranger))
        speaker.say(BYE, size=300)
        await until(lambda: strangers)
        assert strangers[0][0] == speaker.place
    assert "has no key" in strangers[0][1]


async def test_what_is_too_large_to_leave_is_said_to_be(bus: Bus) -> None:
    with closing(opened(bus)) as post:
        assert post.say(BYE, size=65_500, whole=True)
        assert not post.say(BYE, size=65_600, whole=True)
        assert post.error is not None and post.error.strerror == "Message too long"


async def test_where_the_door_is_taken_all_else_goes_on(bus: Bus) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", bus.port))
        with closing(opened(bus)) as post:
            assert post.say(BYE)
