"""What is measured between one doctor and one peer, and in which order. Owns how much; judges nothing.

What is tried first explains what comes after: without the two ways there is no size, and without a size no loss.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from rvq.aio.checkup.meeting import Meeting, Peer, open_meeting
from rvq.aio.checkup.post import Way
from rvq.aio.checkup.probing import Clock, Probing, Run
from rvq.aio.checkup.words import WORD_BYTES_MIN
from rvq.bus import Bus
from rvq.core.stream import CLOCK_S_WARN
from rvq.transport.multicast import Interface
from rvq.wire.keys import Keys

FEW = 10
"""Probes that tell whether anything comes through at all."""
FLIGHT = 2
"""Of these at a time: what waits behind others tells no time."""
MANY = 1000
"""Probes that tell how much is lost: one in a thousand is seen more often than not."""
STEPS = 15
"""Sizes that are tried at once: each round leaves a sixteenth of what was open."""
TRIES = 3
"""Probes of each size, since one may be lost for another reason."""
LOSS_BYTES_MAX = 1472
"""Of the probes that measure loss: a frame on most LANs. Larger ones would only measure buffers."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What was measured with one peer. None where it could not even be tried."""

    peer: Peer
    unicast: Run
    multicast: Run
    fits: int
    """The largest datagram that goes uncut there and back by multicast, or by unicast if that is all there is."""
    wanted: int
    """The largest that may be sent here."""
    loss: Run | None
    clock: Clock | None

    @property
    def is_clock_off(self) -> bool:
        """By as much as receivers warn of, surely."""
        clock = self.clock
        return clock is not None and abs(clock.ahead_s) - clock.round_trip_s / 2 > CLOCK_S_WARN


async def examine(meeting: Meeting, peer: Peer, frame_bytes: int) -> Examined:
    """All of it: some seconds."""
    probing = meeting.probing(peer)
    unicast = await probing.run(Way.UNICAST, [WORD_BYTES_MIN] * FEW, flight=FLIGHT)
    multicast = await probing.run(Way.MULTICAST, [WORD_BYTES_MIN] * FEW, flight=FLIGHT)
    way = Way.MULTICAST if multicast.echoed else Way.UNICAST
    fits, loss = 0, None
    if multicast.echoed or unicast.echoed:
        fits = await find_size(probing, way, frame_bytes)
    if multicast.echoed:
        size = max(WORD_BYTES_MIN, min(fits, frame_bytes, LOSS_BYTES_MAX))
        loss = await probing.run(Way.MULTICAST, [size] * MANY)
    return Examined(peer, unicast, multicast, fits, frame_bytes, loss, unicast.clock or multicast.clock)


async def examine_self(bus: Bus, interface: Interface, keys: Keys | None, frame_bytes: int) -> Examined:
    """Two doctors on this host examine it: what goes out comes in again. BusError if there are no sockets."""

    def one() -> AbstractContextManager[Meeting]:
        return open_meeting(bus, interface, keys, private=True)

    with one() as asking, one() as answering:
        return await examine(asking, answering.as_peer, frame_bytes)


async def find_size(probing: Probing, way: Way, wanted: int) -> int:
    """The largest size, up to `wanted`, that comes back uncut; 0 if none does."""
    fits, too_large = 0, wanted + 1
    sizes, tries = [wanted], FEW
    while sizes:
        run = await probing.run(way, sorted(sizes * tries), whole=True)
        fits = max(fits, run.size_echoed)
        too_large = min([size for size in sizes if size > fits], default=too_large)
        sizes, tries = between(max(fits, WORD_BYTES_MIN - 1), too_large), TRIES
    return fits


def between(low: int, high: int) -> list[int]:
    """Sizes above one and below the other, evenly; none if there is nothing between."""
    step = max(1, (high - low) // (STEPS + 1))
    return list(range(low + step, high, step))[:STEPS]
