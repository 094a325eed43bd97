"""Listening where everyone introduces itself: who speaks with which key is seen without opening anything."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

import rvq
from rvq.aio.overhearing import PLAIN, key_of, others, overhear
from rvq.limits import STRANGERS_NAMED_MAX
from rvq.wire.codec import encode_control
from rvq.wire.frames import SenderGoodbye, label_tag
from rvq.wire.keys import Key, Keys
from rvq.wire.seal import Channel, Sealer

OURS, THEIRS = Key(bytes(range(32))), Key(bytes(range(1, 33)))
FRAME = encode_control(SenderGoodbye(1, "work"), label_tag("work"))


@pytest.mark.parametrize(
    ("datagram", "key"),
    [
        (FRAME, PLAIN),
        (Sealer(THEIRS, bytes(16)).seal(Channel.CONTROL, FRAME), THEIRS.id),
        (b"", None),
        (b"rvqs", None),
        (b"?" * 100, None),
        (b"rvqs" + bytes(100), None),
    ],
)
def test_what_a_datagram_shows(datagram: bytes, key: bytes | None) -> None:
    assert key_of(datagram) == key


@pytest.mark.parametrize(
    ("key", "keys", "fault"),
    [
        (PLAIN, None, ""),
        (THEIRS.id, Keys([THEIRS]), ""),
        (THEIRS.id, Keys([OURS, THEIRS]), ""),
        (THEIRS.id, None, f"1 (10.0.0.5:7) with key {THEIRS.name}: take their key file"),
        (THEIRS.id, Keys([OURS]), f"1 (10.0.0.5:7) with key {THEIRS.name}, which is not in our key file"),
        (PLAIN, Keys([OURS]), "1 (10.0.0.5:7) with no key"),
    ],
)
def test_whoever_has_another_key_is_told_from_those_who_have_ours(key: bytes, keys: Keys | None, fault: str) -> None:
    heard, faults = others({("10.0.0.5", 7): key}, keys)
    assert heard == (not fault)
    assert len(faults) == bool(fault) and all(said.startswith(fault) for said in faults)


def test_many_with_one_other_key_are_one_line() -> None:
    found = {("10.0.0.5", port): THEIRS.id for port in range(9, 0, -1)}
    assert others(found, None)[1][0].startswith("9 (10.0.0.5:1) with key")


async def test_senders_and_receivers_are_overheard_with_their_keys(bus: rvq.Bus) -> None:
    sealed = replace(bus, key=THEIRS.secret)
    async with rvq.Receiver("work", bus=bus), rvq.Receiver("other", bus=sealed):
        found = await asyncio.to_thread(overhear, bus)
    assert sorted(found.values()) == [PLAIN, THEIRS.id]


def test_whoever_floods_is_listened_to_no_longer_and_takes_no_memory(bus: rvq.Bus) -> None:
    target = (bus.directory_address, bus.port)
    with ExitStack() as stack, ThreadPoolExecutor(1) as thread:
        senders = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(STRANGERS_NAMED_MAX + 5)]
        for sender in senders:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        listening = thread.submit(overhear, bus, 60.0)
        while not listening.done():
            for sender in senders:
                sender.sendto(FRAME, target)
    assert len(listening.result()) == STRANGERS_NAMED_MAX
