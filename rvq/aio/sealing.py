"""Sealed buses under asyncio. Owns where keys come from, and reading their file again when it changes."""

from __future__ import annotations

import os
from secrets import SystemRandom
from typing import Any, Protocol
from weakref import WeakSet

from rvq.aio.driver import logger, monotonic
from rvq.bus import Bus
from rvq.core.machine import Machine
from rvq.core.sealing import SealingMachine
from rvq.core.stats import Stats
from rvq.errors import BusError
from rvq.keyfile import read_keys
from rvq.wire.keys import Key, Keys
from rvq.wire.seal import OVERHEAD, check_tools

LOOK_S = 0.5
"""Between looks whether the key file is another one: a `stat` costs nothing, and nobody re-keys in a hurry."""

Shape = tuple[int, int, int, int]

_live: WeakSet[SealingMachine] = WeakSet()
"""What would go on in a child process with the counters of its parent."""


def _end_in_child() -> None:
    for machine in _live:
        machine.end_sealing()


os.register_at_fork(after_in_child=_end_in_child)


def keys_of(bus: Bus) -> Keys | None:
    """None if the bus has no key; BusError if it cannot be had, or sealing is not installed."""
    if bus.key is None:
        return None
    check_tools()
    return Keys([Key(bus.key)]) if isinstance(bus.key, bytes) else read_keys(bus.key)


def frame_bytes(bus: Bus, most: int) -> int:
    """How large a frame may be so that it fits a datagram of this size."""
    return most if bus.key is None else most - OVERHEAD


class HasStats(Machine, Protocol):
    """What all machines have that are put behind a seal."""

    stats: Stats
    events: list[str]


def sealed(machine: HasStats, bus: Bus, keys: Keys | None, inner: Machine | None = None) -> Machine:
    """The machine as this bus needs it: itself, or behind a seal. inner: what stands around it already."""
    if keys is None:
        return inner or machine
    return _Sealed(inner or machine, bus, keys, monotonic(), machine.stats, machine.events)


class _Sealed(SealingMachine):
    """Looks now and then whether its key file has changed, when it is woken anyway."""

    def __init__(self, machine: Machine, bus: Bus, keys: Keys, now: float, stats: Stats, events: list[str]) -> None:
        options: dict[str, Any] = {"stats": stats, "events": events, "expiry": bus.expiry}
        super().__init__(machine, keys, bus=bus.name, random=SystemRandom(), now=now, **options)
        _live.add(self)
        self._path = None if isinstance(bus.key, bytes) else bus.key
        # Of what was read, nobody knows: the file may have changed since. So the first look reads it again.
        self._shape: Shape | tuple[()] | None = ()
        self._look_at = now + LOOK_S

    def wake(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._read_again()
        super().wake(now)

    def _read_again(self) -> None:
        shape = self._look()
        if shape == self._shape or self._path is None:
            return
        self._shape = shape
        try:
            self.use_keys(read_keys(self._path))
        except BusError as error:
            logger.warning("goes on with the keys that it has: %s", error)

    def _look(self) -> Shape | None:
        """What changes with the file; None if there is none."""
        try:
            found = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return found and (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
