"""Who is heard on a bus without a word being said to them."""

from __future__ import annotations

import asyncio

import pytest

import rvq
from rvq.aio.checkup.bystanders import Bystanders, listen
from rvq.aio.home import here
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key
from rvq.transport.multicast import resolve_interface

LO = resolve_interface("lo")


@pytest.mark.parametrize("key", [None, new_key()], ids=["plain", "sealed"])
async def test_those_who_send_and_listen_are_heard(bus: Bus, key: rvq.keyfile.Key | None) -> None:
    bus = Bus(port=bus.port, key=key.secret if key is not None else None)
    async with rvq.Sender("work", bus=bus, linger=0.1), rvq.Receiver("work", bus=bus):
        heard = await until_heard(bus, Keys([key]) if key is not None else None, 2)
    assert (heard.senders, heard.receivers, heard.hosts, heard.strangers) == (1, 1, [here().host], {})


async def until_heard(bus: Bus, keys: Keys | None, count: int) -> Bystanders:
    """Listened to for as long as it takes."""
    async with asyncio.timeout(30):
        while len((heard := await listen(bus, LO, keys, 1.2)).ends) + len(heard.strangers) < count:
            pass
    return heard


@pytest.mark.parametrize(
    ("theirs", "ours", "fault"),
    [
        (new_key(), None, "this bus has no key"),
        (None, new_key(), "not sealed"),
        (new_key(), new_key(), "rvq key ls"),
    ],
)
async def test_another_key_is_heard_and_named(
    bus: Bus, theirs: rvq.keyfile.Key | None, ours: rvq.keyfile.Key | None, fault: str
) -> None:
    on_theirs = Bus(port=bus.port, key=theirs.secret if theirs is not None else None)
    async with rvq.Receiver("work", bus=on_theirs):
        heard = await until_heard(bus, Keys([ours]) if ours is not None else None, 1)
    assert not heard.ends and fault in heard.strangers["127.0.0.1"]


def test_what_is_no_frame_is_passed_over(bus: Bus) -> None:
    heard = Bystanders()
    for datagram in (b"", b"rvq\x01", b"rvqs" + bytes(60), b"anything at all"):
        for keys in (None, Keys([new_key()])):
            heard.hear(datagram, "10.0.0.1", bus, keys)
    assert not heard.ends
