"""One machine on an event loop. Owns its endpoint, its one timer, and waking whoever waits for a change.

There are no tasks: datagrams and the timer call the machine, then everything it has to say is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from rvq.core.machine import Departs, Machine
from rvq.core.strangers import STRANGER
from rvq.errors import Closed
from rvq.transport.passive import PassiveEndpoint
from rvq.transport.udp import Address, Endpoint

logger = logging.getLogger("rvq")
monotonic = time.monotonic

ORDERED = ("paused ", "resumed ", "told to leave ", "given weight ")
"""How events begin that somebody asked for from outside: whoever runs the bus wants to find them in the log."""

_warned: set[str] = set()


def level_of(event: str) -> int:
    """How loud a machine's event is in the log."""
    return logging.WARNING if ": lost " in event or event.startswith((*ORDERED, STRANGER)) else logging.INFO


class Signal:
    """Something changed. Any number may wait for the next time."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def fire(self) -> None:
        if self._waiting:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()

    async def wait(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)


class Driver:
    """Calls `on_change` after each step of the machine."""

    def __init__(self, machine: Machine, endpoint: Endpoint | PassiveEndpoint, on_change: Callable[[], None]) -> None:
        self.closed = False
        self._machine = machine
        self._endpoint = endpoint
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._armed_at = 0.0
        self._now = monotonic()
        for warning in endpoint.warnings:
            if warning not in _warned:
                _warned.add(warning)
                logger.warning("%s", warning)
        endpoint.start(self._loop, self._on_datagram, self.step)
        self.step()

    def check_loop(self, whose: str) -> None:
        """Who waits must do so in the loop that the sockets belong to. Raises Closed."""
        if asyncio.get_running_loop() is not self._loop:
            raise Closed(f"this {whose} belongs to another event loop: open one in the loop that uses it")

    def step(self) -> None:
        """After every call on the machine: send what it says, arm the timer, tell of the change."""
        self.send()
        self._on_change()

    def send(self) -> None:
        """Send what the machine says, and arm the timer."""
        if self.closed:
            return
        outgoing = self._machine.take_outgoing()
        if outgoing:
            send = self._endpoint.send
            for target, datagram in outgoing:
                send(target, datagram)
        self._arm()

    def close(self) -> None:
        """Say what is left to say, then close the sockets. Twice is fine."""
        if not self.closed:
            if isinstance(self._machine, Departs):
                self.send()
                self._machine.depart()
            self.send()
            self.closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._endpoint.close()

    def _on_datagram(self, datagram: bytes, source: Address, size: int = 0) -> None:
        self._machine.receive(monotonic(), datagram, source, size)

    def _arm(self) -> None:
        """One timer. A later deadline leaves it as it is: it finds nothing due and is armed again."""
        deadline = self._machine.next_deadline()
        if self._timer is not None:
            if self._armed_at <= deadline:
                return
            self._timer.cancel()
            self._timer = None
        if deadline != float("inf"):
            self._armed_at = deadline
            self._timer = self._loop.call_later(max(0.0, deadline - monotonic()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.closed:
            return
        now = monotonic()
        if self._machine.next_deadline() <= now:
            # It may have been set. Read before our own clock, so that a pause between the two makes nothing early.
            self._machine.wall.offset = time.time() - monotonic()
            self._machine.wake(now)
            self.step()
        else:
            self._arm()
