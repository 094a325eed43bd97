"""Ends on the network: with multicast, or on a bus with peers. Owns which endpoint an end has, and what stands around
its machine; who the others are is `core.fanout`'s."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address
from random import Random
from secrets import SystemRandom
from typing import NamedTuple, cast

from rvq.aio.driver import Driver, logger, monotonic
from rvq.aio.sealing import HasStats, keys_of, sealed
from rvq.bus import Bus
from rvq.core.end import End
from rvq.core.fanout import FanoutMachine, channel_of
from rvq.core.machine import Address, Machine, Route, Wall
from rvq.peers import seed_ports
from rvq.transport import multicast
from rvq.transport.fanout import FanoutEndpoint
from rvq.transport.names import Names, check_seeds
from rvq.transport.udp import Endpoint
from rvq.wire.frames import PeerAddress, label_tag
from rvq.wire.keys import Keys

OPEN_PORTS = range(1024, 65536)
"""Where ends are. Who tells of others at the ports of system services does not get them asked."""


def open_endpoint(bus: Bus, label: str, *, data: bool) -> Endpoint:
    """The sockets of an end of this label. BusError says why it cannot."""
    if bus.peers is None:
        return Endpoint.open(bus, label, data=data)
    check_seeds(bus.seeds, multicast.interface_of(bus))
    return FanoutEndpoint.open(bus)


def on_bus(machine: HasStats, bus: Bus, keys: Keys | None, label: str | None, *, data: bool) -> Machine:
    """The machine as this bus needs it. data: it receives what is sent to the label. label: None is for observers."""
    if bus.peers is None:
        return sealed(machine, bus, keys)
    return sealed(machine, bus, keys, Fanned(machine, bus, label, data=data))


class Found(NamedTuple):
    """One who answered."""

    host: str
    port: int


async def look_around(bus: Bus, label: str, patience_s: float) -> tuple[tuple[Found, ...], int]:
    """Who is there on a bus with peers, after so long; and the port that one more end of this host has."""
    keys = keys_of(bus)
    endpoint = open_endpoint(bus, label, data=False)
    silent = Silent(label_tag(label), 0.0, math.inf)
    fanned = Fanned(silent, bus, label, data=False)
    driver = Driver(sealed(silent, bus, keys, fanned), endpoint, lambda: None)
    try:
        await asyncio.sleep(patience_s)
        return tuple(sorted(Found(*cast(tuple[str, int], address)) for address in fanned.peers)), endpoint.address[1]
    finally:
        driver.close()


class Silent(End):
    """An end that says nothing and hears nothing: only to be on the bus."""

    wall = Wall(0.0)

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None: ...
    def wake(self, now: float) -> None: ...
    def check_invariants(self) -> None: ...


class Fanned(FanoutMachine):
    """Looks names up, when it is woken anyway."""

    def __init__(self, machine: HasStats, bus: Bus, label: str | None, *, data: bool) -> None:
        now = monotonic()
        self._loop = asyncio.get_running_loop()
        self._lookups = Names(bus.seeds, self._take_seeds, lambda words: logger.warning("%s", words))
        routes = (Route.ABOUT,) if label is None else (Route.CONTROL, Route.DATA)[: 2 if data else 1]
        super().__init__(
            machine,
            bus=bus.name,
            label=label,
            joined=[channel_of(label, route) for route in routes],
            seeds=self._lookups.addresses,
            places=Internet(bus),
            random=cast(Random, SystemRandom()),
            now=now,
            stats=machine.stats,
            events=machine.events,
            expiry=bus.expiry,
        )

    def listen(self, labels: Iterable[str]) -> None:
        """An observer's: to the directory, and to what is said about the work of these."""
        self.join([channel_of(None, Route.ABOUT), *(channel_of(label, Route.CONTROL) for label in labels)])

    def _take_seeds(self, seeds: tuple[Address, ...]) -> None:
        self.use_seeds(monotonic(), seeds)

    def wake(self, now: float) -> None:
        if now >= self._lookups.look_at:
            self._lookups.look(now, self._loop)
        super().wake(now)


class Internet:
    """Addresses as frames have them: and which of those that others tell of may be asked."""

    def __init__(self, bus: Bus) -> None:
        self._interface = multicast.interface_of(bus)
        self._ports = frozenset((*OPEN_PORTS, *seed_ports(bus.port)))

    def spell(self, address: Address) -> PeerAddress:
        host, port = cast(tuple[str, int], address)
        return PeerAddress(host, port)

    def read(self, place: PeerAddress) -> Address | None:
        with suppress(ValueError):
            host = IPv4Address(place.host)
            near = host.is_loopback or str(host) == self._interface.address
            of_use = not (host.is_multicast or host.is_unspecified or host.is_reserved)
            # Nothing leaves this machine unless an interface is named; and another's loopback is not ours.
            reachable = near if self._interface.is_loopback else not host.is_loopback
            if of_use and reachable and place.port in self._ports:
                return str(host), place.port
        return None
