"""A doctor as others see it: who calls is answered, probes are echoed, and what was heard is reported.

Says no more than it is asked: an echo is as long as its probe, and no other answer is longer than its question.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.words import Kind, Word

TALLIES_MAX = 512
"""Runs of probes that are remembered, of all who ask; the oldest goes first."""
PROBES_MAX = 4096
"""Of one run, that are told apart."""


@dataclass(frozen=True, slots=True)
class Me:
    """What a doctor says of itself."""

    id: int
    host: str
    pid: int
    mtu: int
    key: str
    """Name of the one in use; empty without one."""
    asks: bool
    """Whether it examines too, and does not only answer."""

    def word(self, kind: Kind, to: int = 0, number: int = 0) -> Word:
        return Word(kind, self.id, to, number, (self.host, self.pid, self.mtu, self.key, self.asks))


@dataclass(slots=True)
class Tally:
    """What was heard of one run of probes."""

    numbers: set[int] = field(default_factory=set)
    largest: int = 0


class Answering:
    """Answers what is for us, and only that."""

    def __init__(self, me: Me, post: Post, wall: Callable[[], float] = time.time) -> None:
        self._me = me
        self._post = post
        self._wall = wall
        self._tallies: dict[tuple[int, int], Tally] = {}

    def on_word(self, word: Word, source: Place, way: Way, size: int) -> None:
        """Any word; what asks for nothing is passed over."""
        heard_at = self._wall()
        if word.kind is Kind.CALL:
            self._say_both(self._me.word(Kind.HERE, word.source, word.number), source)
        elif word.to != self._me.id:
            return
        elif word.kind is Kind.PROBE:
            self._echo(word, source, way, size, heard_at)
        elif word.kind is Kind.ASK:
            (phase,) = word.facts
            tally = self._tallies.get((word.source, phase), Tally())
            facts = (phase, len(tally.numbers), tally.largest)
            self._say_both(Word(Kind.REPORT, self._me.id, word.source, word.number, facts), source)

    def show(self, source: Place) -> None:
        """To somebody who cannot be understood: that we are here, sealed or not as all of ours."""
        self._say_both(self._me.word(Kind.HERE), source)

    def _echo(self, word: Word, source: Place, way: Way, size: int, heard_at: float) -> None:
        """The same way back. One that is too large to leave here is as good as lost."""
        phase, whole = word.facts
        tally = self._tally(word.source, phase)
        if len(tally.numbers) < PROBES_MAX:
            tally.numbers.add(word.number)
        tally.largest = max(tally.largest, size)
        echo = Word(Kind.ECHO, self._me.id, word.source, word.number, (phase, heard_at, self._wall()))
        self._post.say(echo, source if way is Way.UNICAST else None, size, whole=whole)

    def _tally(self, source: int, phase: int) -> Tally:
        tally = self._tallies.get((source, phase))
        if tally is None:
            if len(self._tallies) >= TALLIES_MAX:
                del self._tallies[next(iter(self._tallies))]
            tally = self._tallies[source, phase] = Tally()
        return tally

    def _say_both(self, word: Word, source: Place) -> None:
        """By both ways: which of them comes through is what is to be found out."""
        self._post.say(word, source)
        self._post.say(word)
