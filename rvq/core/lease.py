"""Leases: until when a receiver may start messages of one stream. Owns heartbeat times and what echoes are worth.

A lease counts from when the receiver *sent* the heartbeat that is echoed, on its own clock: however late the echo
comes, however long the process slept, it can only be shorter than others think. A stream whose sender is gone for
everyone is an orphan: if all who could inherit have said so before the lease is over, it lasts until `orphan_for`.
"""

from __future__ import annotations

import math
from collections import deque

from rvq.timings import Timings

BEATS_MAX = 64
"""Heartbeats whose time is remembered. With the shortest heartbeat that timings allow, a lease has fewer."""


class Beats:
    """One's own heartbeats: a counter, and when each was sent."""

    def __init__(self) -> None:
        self.counter = 0
        self._sent: deque[tuple[int, float]] = deque(maxlen=BEATS_MAX)

    def beat(self, now: float) -> int:
        """The counter of a heartbeat that is sent now."""
        self.counter += 1
        self._sent.append((self.counter, now))
        return self.counter

    def sent_at(self, counter: int) -> float:
        """When that heartbeat was sent; long ago if it is not remembered."""
        place = counter - self.counter + len(self._sent) - 1
        if 0 <= place < len(self._sent):
            return self._sent[place][1]
        return -math.inf

    def check_invariants(self) -> None:
        times = [at for _, at in self._sent]
        assert times == sorted(times)
        assert [counter for counter, _ in self._sent] == list(
            range(self.counter - len(self._sent) + 1, self.counter + 1)
        )


class Lease:
    """One receiver's lease on one stream."""

    __slots__ = ("_timings", "base", "orphaned", "until")

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self.base = -math.inf
        self.until = -math.inf
        self.orphaned = False

    def renew(self, echoed_sent_at: float) -> bool:
        """A sender echoed the heartbeat that was sent then. True if that is news."""
        if echoed_sent_at <= self.base:
            return False
        self.base = echoed_sent_at
        self.until = echoed_sent_at + self._timings.lease
        self.orphaned = False
        return True

    def end_orphan(self) -> None:
        """The sender lives: what the others said while it was silent is worth nothing any more."""
        if self.orphaned:
            self.orphaned = False
            self.until = self.base + self._timings.lease

    def orphan(self, now: float) -> bool:
        """All who could inherit say that the sender is gone. Too late once the lease is over. True if it counts."""
        if self.orphaned or not self.holds(now):
            return False
        self.orphaned = True
        self.until = self.base + self._timings.orphan_for
        return True

    def holds(self, now: float) -> bool:
        return now < self.until

    def check_invariants(self) -> None:
        assert self.until <= self.base + self._timings.orphan_for or self.until == -math.inf
