"""The first window: what may be on its way to the slowest receiver. Owns what each has taken and how much it can take.

Positions are bytes of the stream, with what each datagram costs a socket buffer. The second window (sent, not done) is
the sum of the frames that a sender keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rvq.limits import KIB
from rvq.timings import Timings

WINDOW_BYTES_FIRST = 256 * KIB
"""Assumed of a receiver that has not said how much it can take: the default socket buffer of Linux holds about that."""


class Taker:
    """How far one receiver is."""

    __slots__ = ("heard_at", "taken", "window")

    def __init__(self, now: float, taken: int, window: int) -> None:
        self.heard_at = now
        self.taken = taken
        self.window = window

    @property
    def limit(self) -> int:
        return self.taken + self.window


class Flow:
    """A sender's view of what is in flight. A receiver that is silent for two heartbeats no longer holds it back."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._takers: dict[int, Taker] = {}
        self._slowest: Taker | None = None

    def admit(self, now: float, receivers: Iterable[int], position: int) -> None:
        """These are in force from now on. New ones start at this position."""
        old = self._takers
        self._takers = {
            receiver: old.get(receiver) or Taker(now, position, WINDOW_BYTES_FIRST) for receiver in receivers
        }
        self.find_slowest(now)

    def heard(self, now: float, receiver: int) -> None:
        """It is alive."""
        taker = self._takers.get(receiver)
        if taker is not None:
            taker.heard_at = now

    def report(self, now: float, receiver: int, taken: int, window: int) -> None:
        """It has taken this much, and has room for so much more."""
        taker = self._takers.get(receiver)
        if taker is None or taken < taker.taken:
            return
        taker.heard_at, taker.taken, taker.window = now, taken, window
        if taker is self._slowest or self._slowest is None or taker.limit < self._slowest.limit:
            self.find_slowest(now)

    def find_slowest(self, now: float) -> None:
        """Whoever holds the stream back, of those that are not silent."""
        since = now - self._timings.flow_silence
        heard = [taker for taker in self._takers.values() if taker.heard_at >= since]
        self._slowest = min(heard, key=lambda taker: taker.limit, default=None)

    def forgive(self, nap: float) -> None:
        """I slept: nobody was silent in that time."""
        for taker in self._takers.values():
            taker.heard_at += nap

    def may_send(self, position: int, cost: int) -> bool:
        """Is there room behind `position` for a datagram of this cost? One may always fly, unless a window is 0."""
        slowest = self._slowest
        return slowest is None or position + cost <= slowest.limit or (position <= slowest.taken and slowest.window > 0)

    def window_of(self, receiver: int) -> int:
        """How much it can take at once."""
        taker = self._takers.get(receiver)
        return taker.window if taker else WINDOW_BYTES_FIRST

    @property
    def in_flight_from(self) -> float:
        """Everything up to this position has been taken by everyone who counts."""
        return self._slowest.taken if self._slowest else math.inf

    def check_invariants(self) -> None:
        assert all(taker.taken >= 0 and taker.window >= 0 for taker in self._takers.values())
        assert self._slowest is None or self._slowest in self._takers.values()


class Intake:
    """A receiver's side of one stream: how far it has read, and when to say so."""

    __slots__ = ("reported", "taken", "window")

    def __init__(self) -> None:
        self.taken = 0
        self.reported = 0
        self.window = WINDOW_BYTES_FIRST

    def take(self, position: int) -> bool:
        """A datagram up to this position was read. True if it is time to tell: every half window."""
        if position > self.taken:
            self.taken = position
            return position - self.reported >= self.window >> 1
        return False
