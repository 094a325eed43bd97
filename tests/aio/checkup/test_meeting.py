"""Doctors on one loopback: they find each other, stay for each other, and leave private ones alone."""

from __future__ import annotations

import asyncio

import pytest

from rvq.aio.checkup import meeting
from rvq.aio.checkup.meeting import Meeting, Peer, open_meeting
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key
from rvq.transport.multicast import Interface, resolve_interface
from tests.aio.checkup.test_post import until

LO: Interface = resolve_interface("lo")


@pytest.fixture(autouse=True)
def _few_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one host there is nobody more to wait for."""
    monkeypatch.setattr(meeting, "MORE_S", 0.1)
    monkeypatch.setattr(meeting, "STRANGE_S", 1.0)


async def test_two_find_each_other_and_know_who_asks(bus: Bus) -> None:
    with open_meeting(bus, LO, None) as one, open_meeting(bus, LO, None, asks=False) as other:
        told: list[Peer] = []
        other.on_asker = told.append
        (found,) = await one.find(20)
        assert found == other.as_peer and not found.asks and found.mtu == LO.mtu
        assert [peer.id for peer in told] == [one.me.id]


async def test_one_who_is_called_by_name_is_found_without_multicast(bus: Bus) -> None:
    # On one host, whoever opened its door last hears what is said there.
    with open_meeting(bus, LO, None, named="127.0.0.1") as one, open_meeting(bus, LO, None, asks=False) as other:
        for doctor in (one, other):
            doctor._post.everyone = ("127.0.0.1", 9)  # nobody hears what is said to everyone
        assert [peer.id for peer in await one.find(20)] == [other.me.id]


async def test_nobody_is_there_after_the_time(bus: Bus) -> None:
    with open_meeting(bus, LO, None) as one:
        assert await one.find(0.1) == []


async def test_private_ones_answer_nobody_who_does_not_know_them(bus: Bus) -> None:
    with open_meeting(bus, LO, None) as one, open_meeting(bus, LO, None, private=True) as other:
        assert await one.find(0.5) == [] and not other.peers


async def test_who_asks_is_stayed_for_until_it_is_through(bus: Bus) -> None:
    with open_meeting(bus, LO, None) as one, open_meeting(bus, LO, None) as other:
        await asyncio.gather(one.find(20), other.find(20))
        leaving = asyncio.ensure_future(one.part())
        await until(lambda: one.me.id not in other._askers)  # its goodbye is heard
        assert not leaving.done()
        await asyncio.gather(leaving, other.part())


async def test_one_that_died_is_stayed_for_only_so_long(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "SILENT_S", 0.3)
    with open_meeting(bus, LO, None) as one:
        with open_meeting(bus, LO, None) as other:
            await asyncio.gather(one.find(20), other.find(20))
        await asyncio.wait_for(one.part(), 20)


@pytest.mark.parametrize("keys", [None, Keys([new_key()])], ids=["plain", "sealed"])
async def test_those_who_do_not_understand_each_other_both_learn_why(bus: Bus, keys: Keys | None) -> None:
    with open_meeting(bus, LO, Keys([new_key()])) as one, open_meeting(bus, LO, keys, asks=False) as other:
        told: list[str] = []
        other.on_stranger = lambda address, fault: told.append(address)
        assert await one.find(20) == []
        assert list(one.strangers) == list(other.strangers) == told == ["127.0.0.1"]
        assert ("not sealed" if keys is None else "rvq key ls") in one.strangers["127.0.0.1"]


async def test_strangers_do_not_answer_each_other_for_ever(bus: Bus) -> None:
    keys = [Keys([new_key()]), Keys([new_key()])]
    with open_meeting(bus, LO, keys[0], asks=False) as one, open_meeting(bus, LO, keys[1], asks=False) as other:
        for doctor in (one, other):
            doctor._call()
        await until(lambda: one.strangers and other.strangers)
        said = [0, 0]
        for place, doctor in enumerate((one, other)):
            _count_words(doctor, said, place)
        await asyncio.sleep(3 * meeting.CALL_S)  # the point of the test: nobody calls, so nobody speaks
        assert said == [0, 0]


def _count_words(doctor: Meeting, said: list[int], place: int) -> None:
    say = doctor._post.say

    def counted(*words: object, **options: object) -> bool:
        said[place] += 1
        return say(*words, **options)  # type: ignore[arg-type]

    doctor._post.say = counted  # type: ignore[method-assign]
