"""Who sends to a label now. Owns listening for a moment; says nothing of its own."""

from __future__ import annotations

import asyncio
import math

from rvq.aio.driver import Driver
from rvq.aio.fanout import on_bus, open_endpoint
from rvq.aio.sealing import keys_of
from rvq.bus import Bus
from rvq.core.end import End
from rvq.core.machine import Address, Wall
from rvq.errors import WireError
from rvq.wire.codec import decode_control, peek
from rvq.wire.frames import SenderAlive, SenderGoodbye, label_tag


class Listening(End):
    """Hears senders. A machine only because on a sealed bus one has to answer to be told anything."""

    def __init__(self, label: str) -> None:
        super().__init__(label_tag(label), 0.0, math.inf)
        self.wall = Wall(0.0)
        self.heard: set[int] = set()
        self._label = label

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        try:
            frame = decode_control(datagram) if peek(datagram)[1] == self._tag else None
        except WireError:
            self._refuse(datagram, source)
            return
        if isinstance(frame, SenderAlive) and frame.label == self._label:
            self.heard.add(frame.source)
        elif isinstance(frame, SenderGoodbye) and frame.label == self._label:
            self.heard.discard(frame.source)

    def wake(self, now: float) -> None: ...
    def check_invariants(self) -> None: ...


async def live_streams(label: str, bus: Bus) -> set[int]:
    """The ids of the senders that are heard within `expiry`, in which each of them speaks several times."""
    keys = keys_of(bus)
    listening = Listening(label)
    driver = Driver(
        on_bus(listening, bus, keys, label, data=False), open_endpoint(bus, label, data=False), lambda: None
    )
    try:
        await asyncio.sleep(bus.expiry)
    finally:
        driver.close()
    return listening.heard
