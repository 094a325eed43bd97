"""Looking on: who is on a bus and what they do. Owns which addresses are listened to; the picture is the machine's."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rvq.aio.driver import Driver, Signal, level_of, logger, monotonic
from rvq.aio.fanout import Fanned, open_endpoint
from rvq.aio.sealing import keys_of, sealed
from rvq.bus import Bus, check_bus
from rvq.core.observer import ObserverMachine
from rvq.errors import Closed
from rvq.names import check_label
from rvq.transport.passive import PassiveEndpoint


class Observer:
    """Listens to a bus and says nothing, so nobody knows of it. All labels that are in use; or those named only.

    `snapshot()` is the picture and `history()` what charts need: both are plain data, see docs/operations.md.
    """

    def __init__(self, bus: Bus | None = None, labels: str | Iterable[str] = ()) -> None:
        self.bus = check_bus(bus)
        self.labels = tuple(check_label(label) for label in ([labels] if isinstance(labels, str) else labels))
        self._machine: ObserverMachine | None = None
        self._endpoint: PassiveEndpoint | None = None
        self._fanned: Fanned | None = None
        """Where there is no multicast: others know of us then, as they have to send us what we look at."""
        self._driver: Driver | None = None
        self._changed = Signal()
        self._follows = -1

    async def __aenter__(self) -> Observer:
        if self._machine is not None:
            raise Closed("this observer was opened before: make another")
        keys = keys_of(self.bus)
        if self.bus.peers is None:
            self._endpoint = PassiveEndpoint(self.bus)
            self._endpoint.join(self.bus.directory_address)
        self._machine = ObserverMachine(
            self.labels,
            timings=self.bus.timings,
            now=monotonic(),
            wall_offset=time.time() - monotonic(),
            bus={
                "interface": self.bus.interface,
                "port": self.bus.port,
                "address": str(self.bus.network),
                "sealed": self.bus.key is not None,
            }
            | ({"peers": list(self.bus.peers)} if self.bus.peers is not None else {}),
        )
        if self._endpoint is not None:
            self._driver = Driver(sealed(self._machine, self.bus, keys), self._endpoint, self._on_change)
        else:
            endpoint = open_endpoint(self.bus, "", data=False)
            self._fanned = Fanned(self._machine, self.bus, None, data=False)
            self._driver = Driver(sealed(self._machine, self.bus, keys, self._fanned), endpoint, self._on_change)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Twice is fine."""
        if self._driver is not None:
            self._driver.close()
        self._changed.fire()

    async def changed(self) -> None:
        """Until something new was heard."""
        heard = self._opened.changes
        while self._opened.changes == heard and self._driver is not None and not self._driver.closed:
            await self._changed.wait()

    async def complete(self) -> None:
        """Until everyone who is there must have been heard: some two seconds, in large groups more."""
        while not self._opened.is_complete(monotonic()) and self._driver is not None and not self._driver.closed:
            await self._changed.wait()

    def snapshot(self) -> dict[str, Any]:
        """The whole picture, as plain data."""
        return self._opened.snapshot(monotonic())

    def history(self) -> dict[str, dict[str, list[list[float]]]]:
        """The last two minutes of every sender and receiver, as plain data."""
        return self._opened.history()

    @property
    def found(self) -> tuple[str, ...]:
        """The labels that it follows at present."""
        return self._opened.labels

    @property
    def _opened(self) -> ObserverMachine:
        if self._machine is None:
            raise Closed("this observer is not open yet: use `async with Observer(...)`")
        return self._machine

    def _on_change(self) -> None:
        machine, endpoint = self._opened, self._endpoint
        for event in machine.events:
            logger.log(level_of(event), "observer: %s", event)
        machine.events.clear()
        if self._fanned is not None and machine.follows != self._follows:
            self._follows = machine.follows
            self._fanned.listen(machine.labels)
        if endpoint is not None and machine.follows != self._follows and not endpoint.closed:
            self._follows = machine.follows
            controls = map(self.bus.control_address, machine.labels)
            before = endpoint.refused.keys()
            endpoint.listen([self.bus.directory_address, *controls])
            for address in endpoint.refused.keys() - before:
                logger.warning("not all is seen: %s", endpoint.refused[address])
        self._changed.fire()
