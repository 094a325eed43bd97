"""Probes to one peer, and what became of them. Owns pace, patience and counting; says nothing of what that means.

Few probes are on their way at a time, so a network that is well loses none, however small its buffers are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import randbits

from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.words import WORD_BYTES_MIN, Kind, Word

FLIGHT_BYTES, FLIGHT_MAX = 96 * 1024, 64
"""Probes without an answer at a time: they fit into the smallest buffers that kernels give."""
LATE_S = 0.1
"""An answer that takes longer holds up no further probes; if it comes, it counts."""
BURST, PACE_S = 4, 0.002
"""So many probes, and then a pause: 2,000 a second, as a quiet bus sends."""
ASKS, ASK_S = 16, 0.25
"""How often it is asked what was heard, and how long is waited for each answer: seconds, for a peer that is busy."""
OTHER_WAY_ASKS = 3
"""So often, where the answer comes by the other way only: then this one is broken, or as good as that."""


@dataclass(frozen=True, slots=True)
class Clock:
    """One exchange with a peer: its wall clock is so far ahead of ours, give or take half of the round trip."""

    ahead_s: float
    round_trip_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """What became of probes of one kind."""

    sent: int
    heard: int | None
    """By the peer; None if it never said."""
    echoed: int
    """Answers that came back."""
    size: int
    """Of the largest that was sent."""
    size_heard: int
    size_echoed: int
    clock: Clock | None
    """Of the exchange that was quickest."""


@dataclass(slots=True)
class _Sent:
    at: float
    wall: float
    size: int


class Probing:
    """Probes one peer. Echoes and reports are handed to `on_word`."""

    def __init__(self, me: int, peer: int, place: Place, post: Post, wall: Callable[[], float] = time.time) -> None:
        self._me, self._peer, self._place = me, peer, place
        self._post = post
        self._wall = wall
        self._phase = 0
        self._next = randbits(48)
        """Numbers that nobody can have recorded."""
        self._waiting: dict[int, _Sent] = {}
        self._came = asyncio.Event()
        self._size_echoed = self._echoed = 0
        self._clock: Clock | None = None
        self._asked = 0
        self._report: tuple[int, int] | None = None
        self._reported: set[Way] = set()
        """By which ways the report came. By the way of the probes it comes after all that they led to."""

    def on_word(self, word: Word, way: Way, size: int) -> None:
        """An ECHO or a REPORT for us."""
        if word.source != self._peer or word.to != self._me:
            return
        if word.kind is Kind.ECHO and (sent := self._waiting.pop(word.number, None)) is not None:
            self._echoed += 1
            self._size_echoed = max(self._size_echoed, size)
            self._compare(sent, *word.facts[1:])
        elif word.kind is Kind.REPORT and word.number == self._asked:
            self._report = word.facts[1:]
            self._reported.add(way)
        self._came.set()

    def _compare(self, sent: _Sent, heard_at: float, said_at: float) -> None:
        """As NTP does it."""
        now = self._wall()
        round_trip = max(0.0, (now - sent.wall) - (said_at - heard_at))
        if self._clock is None or round_trip < self._clock.round_trip_s:
            self._clock = Clock(((heard_at - sent.wall) + (said_at - now)) / 2, round_trip)

    async def run(self, way: Way, sizes: Sequence[int], *, whole: bool = False, flight: int = FLIGHT_MAX) -> Run:
        """One probe of each size. whole: uncut, there and back."""
        self._phase += 1
        self._waiting.clear()
        self._echoed = self._size_echoed = 0
        self._clock = None
        flight = max(1, min(flight, FLIGHT_BYTES // max(sizes)))
        for place, size in enumerate(sizes):
            if place % BURST == 0:
                await asyncio.sleep(PACE_S)
            await self._until(lambda: self._flying() < flight, LATE_S)
            self._probe(way, size, whole)
        await self._ask(way)
        heard, size_heard = self._report or (None, 0)
        return Run(len(sizes), heard, self._echoed, max(sizes), size_heard, self._size_echoed, self._clock)

    def _flying(self) -> int:
        late = time.monotonic() - LATE_S
        return sum(sent.at > late for sent in self._waiting.values())

    def _probe(self, way: Way, size: int, whole: bool) -> None:
        self._next += 1
        self._waiting[self._next] = _Sent(time.monotonic(), self._wall(), size)
        word = Word(Kind.PROBE, self._me, self._peer, self._next, (self._phase, whole))
        self._post.say(word, self._place if way is Way.UNICAST else None, size, whole=whole)

    async def _ask(self, way: Way) -> None:
        """What the peer heard: probes, and how large the largest was. By both ways, since one may be broken.

        Question and answer stand in line behind probes and echoes, so nothing depends on how long those take.
        """
        self._next += 1
        self._asked, self._report = self._next, None
        self._reported.clear()
        word = Word(Kind.ASK, self._me, self._peer, self._asked, (self._phase,))
        for asks in range(ASKS):
            self._post.say(word, self._place, WORD_BYTES_MIN)
            self._post.say(word, None, WORD_BYTES_MIN)
            await self._until(lambda: way in self._reported, ASK_S)
            if way in self._reported or (self._reported and asks + 1 >= OTHER_WAY_ASKS):
                return

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        """Until that is so, or it takes too long."""
        deadline = time.monotonic() + seconds
        while not done() and (left := deadline - time.monotonic()) > 0:
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), left)
            except TimeoutError:
                return
