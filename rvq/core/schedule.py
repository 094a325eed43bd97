"""What waits for a time: due messages by the wall clock, retries by one's own. Owns the order in which they come up.

A message that waits is owned, and open: everybody knows of it, and its heir waits for the same moment.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count

from rvq.core.machine import Wall
from rvq.message import Message


class Schedule:
    """The messages of one stream that may not start yet. One entry each, so a hundred thousand cost as many entries."""

    __slots__ = ("_dues", "_numbers", "_retries", "_wall")

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._dues: list[tuple[float, int, Message]] = []
        self._retries: list[tuple[float, int, Message]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._dues) + len(self._retries)

    def __bool__(self) -> bool:
        """Does anything wait? Hot: asked after every datagram."""
        return bool(self._dues or self._retries)

    def is_early(self, now: float, message: Message) -> bool:
        """Is it not due yet?"""
        return message.due_at is not None and message.due_at > self._wall.read(now)

    def is_over(self, now: float, message: Message) -> bool:
        """Has it outlived its time?"""
        expires_at = message.expires_at
        return expires_at is not None and expires_at <= self._wall.read(now)

    def wait_until_due(self, message: Message) -> None:
        assert message.due_at is not None
        heappush(self._dues, (message.due_at, next(self._numbers), message))

    def retry_at(self, at: float, message: Message) -> None:
        heappush(self._retries, (at, next(self._numbers), message))

    def take(self, now: float) -> list[Message]:
        """Those whose time has come, in the order of their times."""
        ready = []
        offset = self._wall.offset
        # Reckoned as the deadline is: added up the other way, it could be a last bit early, and be asked for for ever.
        while self._dues and self._dues[0][0] - offset <= now:
            ready.append(heappop(self._dues)[2])
        while self._retries and self._retries[0][0] <= now:
            ready.append(heappop(self._retries)[2])
        return ready

    def next_deadline(self) -> float:
        """When to look again. Never early: if the wall clock is behind by then, it is looked at once more."""
        due = self._dues[0][0] - self._wall.offset if self._dues else math.inf
        return min(due, self._retries[0][0] if self._retries else math.inf)
