"""Sockets that only listen: addresses come and go, and nothing is ever sent."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import closing

import pytest

from rvq.bus import Bus
from rvq.core.machine import Route
from rvq.errors import BusError
from rvq.transport import multicast
from rvq.transport.passive import PassiveEndpoint
from rvq.transport.udp import Endpoint


class Heard:
    """What came, and a wait for it."""

    def __init__(self, endpoint: PassiveEndpoint) -> None:
        self.datagrams: list[bytes] = []
        self._changed = asyncio.Event()
        endpoint.start(asyncio.get_running_loop(), self._on_datagram, self._changed.set)

    def _on_datagram(self, datagram: bytes, _source: object, _size: int = 0) -> None:
        self.datagrams.append(datagram)

    async def wait_for(self, *wanted: bytes) -> None:
        async with asyncio.timeout(10):
            while not set(wanted) <= set(self.datagrams):
                self._changed.clear()
                await self._changed.wait()


async def test_it_hears_the_addresses_that_it_listens_to_and_no_others(bus: Bus) -> None:
    with closing(PassiveEndpoint(bus)) as passive, closing(Endpoint.open(bus, "work", data=False)) as sending:
        passive.listen([bus.directory_address])
        heard = Heard(passive)
        sending.send(Route.CONTROL, b"not for you")
        sending.send(Route.ABOUT, b"who I am")
        await heard.wait_for(b"who I am")
        passive.listen([bus.directory_address, bus.control_address("work")])
        sending.send(Route.CONTROL, b"a heartbeat")
        sending.send(Route.DATA, b"messages")
        await heard.wait_for(b"a heartbeat")
        passive.listen([bus.directory_address])
        assert passive.addresses == (bus.directory_address,)
        sending.send(Route.CONTROL, b"no more")
        sending.send(Route.ABOUT, b"still there")
        await heard.wait_for(b"still there")
        assert heard.datagrams == [b"who I am", b"a heartbeat", b"still there"] and passive.datagrams_in == 3


async def test_labels_that_share_an_address_are_listened_to_once(bus: Bus) -> None:
    with closing(PassiveEndpoint(bus)) as passive:
        passive.listen([bus.control_address("work")] * 2)
        assert len(passive.addresses) == 1


async def test_an_address_that_cannot_be_joined_is_refused_and_the_others_are_not(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = multicast.open_multicast

    def scarce(bus: Bus, interface: multicast.Interface, address: str) -> object:
        if address == bus.control_address("work"):
            raise BusError(os.strerror(errno.EMFILE))
        return opened(bus, interface, address)

    monkeypatch.setattr(multicast, "open_multicast", scarce)
    with closing(PassiveEndpoint(bus)) as passive:
        passive.listen([bus.directory_address, bus.control_address("work")])
        assert passive.addresses == (bus.directory_address,)
        assert list(passive.refused) == [bus.control_address("work")]
        passive.listen([bus.directory_address])
        assert not passive.refused


def test_it_cannot_send(bus: Bus) -> None:
    with closing(PassiveEndpoint(bus)) as passive, pytest.raises(AssertionError):
        passive.send(Route.CONTROL, b"")


async def test_closing_twice_is_fine_and_leaves_everything(bus: Bus) -> None:
    passive = PassiveEndpoint(bus)
    passive.listen([bus.directory_address])
    Heard(passive)
    passive.close()
    passive.close()
    assert passive.closed and not passive.addresses
