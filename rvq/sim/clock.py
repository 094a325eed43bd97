"""Virtual time. Owns the true time of a world, what happens next, and how far each process's own clock is off.

Nothing in a simulation reads a real clock: time jumps from one event to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from rvq.errors import RvqError

EVENTS_MAX = 20_000_000
"""Events of one world. Far above any honest one: it ends a world in which something goes round in circles."""


class Runaway(RvqError):
    """A world in which something happens again and again without end."""


class Clock:
    """True time and the events to come. Events of one moment happen in the order in which they were planned."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._planned = 0
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []

    def at(self, when: float, action: Callable[..., object], *args: Any) -> None:
        """Plan an action. What lies in the past happens now."""
        self._planned += 1
        heappush(self._heap, (when if when > self.now else self.now, self._planned, action, args))

    def after(self, delay: float, action: Callable[..., object], *args: Any) -> None:
        """Plan an action `delay` seconds from now."""
        self.at(self.now + delay, action, *args)

    def run(self, until: float) -> None:
        """Let everything happen up to and including this time."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, action, args = heappop(heap)
            self.events += 1
            action(*args)
            if self.events > EVENTS_MAX:
                raise Runaway(
                    f"{self.events:,} events in {self.now:.1f} virtual seconds: something goes round in circles"
                )
        self.now = max(self.now, until)

    @property
    def next_at(self) -> float | None:
        """When the next event happens; None if nothing is planned."""
        return self._heap[0][0] if self._heap else None


@dataclass(frozen=True, slots=True)
class LocalClock:
    """What one process reads: its clock started elsewhere (`offset`) and runs a little fast or slow (`rate`)."""

    offset: float = 0.0
    rate: float = 1.0

    def read(self, true: float) -> float:
        """The local time at a true time."""
        return self.offset + self.rate * true

    def true_time(self, local: float) -> float:
        """The true time at a local time, up to rounding."""
        return (local - self.offset) / self.rate
