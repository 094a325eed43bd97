"""A crowd of receivers in the simulator, at the default timings. Owns counting what control traffic each of them hears.

A thousand receivers hear five million heartbeats in each virtual second. So that this takes minutes and not an hour,
what is the same for all is done once: each datagram is decoded once, and control travels in turns of a few
milliseconds, in which everyone is handed all that was said since the turn before. Who says what, and how often, is
left to the machines.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from unittest.mock import patch

from bench.group.fleet import Trouble
from rvq.core.machine import Datagram, Route
from rvq.sim import World
from rvq.wire.codec import decode_control

TURN_S = 0.005
"""A datagram is on its way for up to this long: as on a LAN whose hosts are busy."""

WATCHED_S = 1.0
"""Virtual seconds in which control traffic is counted, once everyone is in: five heartbeats of each."""

HEADERS_BYTES = 20 + 8 + 38
"""What a datagram takes on a wire beyond its own bytes: IP, UDP, and Ethernet with its preamble and the gap after."""

GATHERED_S_MAX = 30.0
DECODED_MAX = 4096
"""Datagrams that are remembered as decoded. What is said in a turn is read in that turn."""


def control_bytes_per_s(members: int, seed: int = 1) -> float:
    """What each receiver hears besides data, headers included, while one sender sends a little."""
    world = World(seed=seed)
    world.sender("work", messages=100_000, rate=50)
    for _ in range(members):
        world.receiver("work")
    ear = Ear(world)
    with _shared():
        _gather(world, members)
        before, began = ear.bytes, world.now
        world.run(until=began + WATCHED_S)
    return (ear.bytes - before) / members / (world.now - began)


@contextmanager
def _shared() -> Iterator[None]:
    """Each datagram is decoded once, and the garbage collector does not go through a million peers again and again."""
    gc.disable()
    try:
        with patch("rvq.core.receiver.decode_control", lru_cache(DECODED_MAX)(decode_control)):
            yield
    finally:
        gc.enable()


def _gather(world: World, members: int) -> None:
    sender = world.senders[0].machine
    while _in_force(sender) < members:
        if world.now > GATHERED_S_MAX:
            raise Trouble(f"{_in_force(sender)} of {members} receivers are in after {world.now:g} virtual seconds")
        world.run(until=world.now + 0.05)


def _in_force(sender: object) -> int:
    tables = sender.tables  # type: ignore[attr-defined]
    return sum(len(table.members) for table in tables.values())


class Ear:
    """Carries a world's control traffic from now on, and counts what arrives at receivers and is not data."""

    def __init__(self, world: World) -> None:
        self.bytes = 0
        self._world = world
        self._carry = world.network.send
        self._endpoints = world.network._endpoints  # not public: it is of interest to nobody but a bench
        self._receivers = {receiver.name for receiver in world.receivers}
        self._said: list[tuple[str, list[bytes]]] = []
        world.network.send = self._send  # type: ignore[method-assign]

    def _send(self, source: str, outgoing: list[Datagram]) -> None:
        everyone = len(self._receivers) - (source in self._receivers)
        others: list[Datagram] = []
        for target, datagram in outgoing:
            if target is Route.CONTROL:
                self.bytes += everyone * (HEADERS_BYTES + len(datagram))
                if not self._said:
                    self._world.after(TURN_S, self._hand_over)
                self._said.append((source, [datagram]))
            else:
                self.bytes += HEADERS_BYTES + len(datagram) if target in self._receivers else 0
                others.append((target, datagram))
        if others:
            self._carry(source, others)

    def _hand_over(self) -> None:
        """Everyone reads all that the others said."""
        said, self._said = self._said, []
        for name, endpoint in list(self._endpoints.items()):
            notify, endpoint.notify = endpoint.notify, _nothing
            for source, datagrams in said:
                if source != name:
                    endpoint.arrive(source, datagrams)
            endpoint.notify = notify
            notify()


def _nothing() -> None:
    """Nobody is told until everything is there."""
