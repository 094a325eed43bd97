"""Seeds that are names, and those that cannot be."""

from __future__ import annotations

import asyncio
import math

import pytest

from rvq.errors import BusError
from rvq.peers import Seed
from rvq.transport import names
from rvq.transport.multicast import Interface
from rvq.transport.names import AGAIN_S, AGAIN_S_UNKNOWN, Names, check_seeds, host_addresses, is_address

LO = Interface("lo", 1, "127.0.0.1", 65536, 0x9)
ETH = Interface("eth0", 2, "10.0.0.1", 1500, 0x1003)


@pytest.mark.parametrize(
    ("interface", "host", "words"),
    [
        (LO, "10.0.0.2", "is not on this machine, which lo does not leave: name the interface"),
        (ETH, "127.0.0.1", "is this machine, and eth0 is not: give the address that the others have for it"),
        (ETH, "239.192.0.1", "is no host"),
        (ETH, "0.0.0.0", "is no host"),
    ],
)
def test_an_address_that_this_interface_cannot_reach_is_refused(interface: Interface, host: str, words: str) -> None:
    with pytest.raises(BusError, match=words):
        check_seeds([Seed(host, 1, 2)], interface)


def test_addresses_and_names_that_may_be_right_are_let_be() -> None:
    check_seeds([Seed("127.0.0.9", 1, 2), Seed("localhost", 1, 2)], LO)
    check_seeds([Seed("10.9.0.9", 1, 2), Seed("queue", 1, 2)], ETH)


def test_addresses_need_no_looking_up() -> None:
    found = Names([Seed("10.0.0.1", 7400, 7402), Seed("10.0.0.2", 9, 9)], lambda _: None, lambda _: None)
    assert found.addresses == (("10.0.0.1", 7400), ("10.0.0.1", 7401), ("10.0.0.1", 7402), ("10.0.0.2", 9))
    assert found.look_at == math.inf
    assert is_address("10.0.0.1") and not is_address("queue") and not is_address("fd00::1")


async def test_names_are_looked_up_again_and_one_that_is_unknown_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, tuple[str, ...]] = {"queue": ("10.0.0.7", "10.0.0.8")}
    monkeypatch.setattr(names, "host_addresses", lambda name: known.get(name, ()))
    told: asyncio.Queue[tuple[object, ...]] = asyncio.Queue()
    warnings: list[str] = []
    found = Names([Seed("queue", 7, 7), Seed("late", 8, 8)], told.put_nowait, warnings.append)
    assert found.look_at == 0.0 and found.addresses == ()
    loop = asyncio.get_running_loop()

    async def look(now: float) -> tuple[object, ...]:
        found.look(now, loop)
        found.look(now, loop)  # one at a time
        async with asyncio.timeout(30):
            return await told.get()

    assert await look(1.0) == (("10.0.0.7", 7), ("10.0.0.8", 7))
    assert found.look_at == 1.0 + AGAIN_S_UNKNOWN
    await look(2.0)
    assert len(warnings) == 1 and warnings[0].startswith("peers='late' has no IPv4 address")
    known |= {"late": ("10.0.0.9",), "queue": ("10.0.1.7",)}
    assert await look(3.0) == (("10.0.1.7", 7), ("10.0.0.9", 8))
    assert found.look_at == 3.0 + AGAIN_S
    known.clear()
    assert await look(4.0) == (("10.0.1.7", 7), ("10.0.0.9", 8)), "who is not known now is where he was"
    assert told.empty()


def test_this_host_is_known_and_nonsense_is_not() -> None:
    assert host_addresses("localhost") == ("127.0.0.1",)
    assert host_addresses("a" * 300) == ()
