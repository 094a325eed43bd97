"""Gaps and the frames that fill them. Owns what is missing, when to ask again, and the frames that each side keeps.

Knows no sockets and no clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from sortedcontainers import SortedDict

from rvq import limits

_new = tuple.__new__

ASK_S_FIRST = 0.002
"""Before the first NAK: a frame that only overtook another needs no repair."""
ASK_S_AGAIN = 0.02
ASK_S_MAX = 0.4
"""NAKs back off from `ASK_S_AGAIN` to this, doubling."""
GAPS_MAX = 1024
"""Gaps of one stream that are followed; the others are found again at the next heartbeat."""
COMPACT_FRAMES = 512
"""Sent frames that may be released before the list of them is copied."""


class Gap:
    """A run of missing sequences."""

    __slots__ = ("ask_at", "asked", "last")

    def __init__(self, last: int, ask_at: float, asked: int = 0) -> None:
        self.last = last
        self.ask_at = ask_at
        self.asked = asked


class Gaps:
    """What one receiver lacks of one stream and wants."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.missing: SortedDict[int, Gap] = SortedDict()
        """By the first sequence of each run. Hot: whether there are any is asked for each frame."""

    def __bool__(self) -> bool:
        return bool(self.missing)

    def note(self, now: float, first: int, last: int, wait: float = ASK_S_FIRST) -> None:
        """These are missing, and asked for after `wait`. What is followed already stays as it is."""
        if len(self.missing) >= GAPS_MAX:
            return
        for begin, end in self._unknown(first, last):
            if len(self.missing) < GAPS_MAX:
                self.missing[begin] = Gap(end, now + wait * self._random.uniform(0.5, 1.5))

    def filled(self, first: int, last: int) -> bool:
        """These came, or are no longer wanted. True if they had been asked for."""
        gaps = self.missing
        if not gaps or gaps.keys()[0] > last:
            return False
        asked = False
        for begin in list(gaps.irange(None, last)):
            gap = gaps[begin]
            if gap.last < first:
                continue
            del gaps[begin]
            if begin < first:
                gaps[begin] = Gap(first - 1, gap.ask_at, gap.asked)
            if gap.last > last:
                gaps[last + 1] = Gap(gap.last, gap.ask_at, gap.asked)
            asked = asked or gap.asked > 0
        return asked

    def due(self, now: float) -> tuple[int, ...]:
        """The runs (first, last, first, last, ...) to ask for now. They are due again later and later."""
        runs: list[int] = []
        for begin, gap in self.missing.items():
            if gap.ask_at <= now:
                runs += (begin, gap.last)
                pause = min(ASK_S_MAX, ASK_S_AGAIN * 2 ** min(gap.asked, 8))
                gap.asked += 1
                gap.ask_at = now + pause * self._random.uniform(0.8, 1.2)
                if len(runs) >= 2 * limits.NAK_RANGES_MAX:
                    break
        return tuple(runs)

    def next_deadline(self) -> float:
        return min((gap.ask_at for gap in self.missing.values()), default=math.inf)

    def _unknown(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of a run that no gap has."""
        found = []
        for begin in self.missing.islice(max(0, self.missing.bisect_right(first) - 1)):
            if begin > last:
                break
            end = self.missing[begin].last
            if end < first:
                continue
            if begin > first:
                found.append((first, begin - 1))
            first = end + 1
        if first <= last:
            found.append((first, last))
        return found

    def check_invariants(self) -> None:
        below = 0
        for first, gap in self.missing.items():
            assert below < first <= gap.last
            below = gap.last


class SentFrame(NamedTuple):
    """A frame that a sender keeps until all groups are done with it. A large message is many datagrams."""

    first: int
    last: int
    datagrams: Sequence[bytes]
    cost: int
    shards: Sequence[int] | None
    later: frozenset[int] = frozenset()
    """The sequences of those with a due time, in a frame with keys."""


class Asked:
    """Who asked for a frame last, and when it was sent to everyone again."""

    __slots__ = ("at", "by", "multicast_at")

    def __init__(self) -> None:
        self.by = 0
        self.at = -math.inf
        self.multicast_at = -math.inf


_NONE: frozenset[int] = frozenset()
_RELEASED = SentFrame(0, 0, (), 0, None)


class SentFrames:
    """The frames that a sender keeps: consecutive, released from the oldest on. Those that are done behind one that is
    not keep their place, but no bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._frames: list[SentFrame] = []
        self._firsts: list[int] = []
        self._head = 0
        self._asked: dict[int, Asked] = {}

    def asked(self, frame: SentFrame) -> Asked:
        """What is known of the asking for a frame."""
        return self._asked.setdefault(frame.first, Asked())

    def __len__(self) -> int:
        return len(self._frames) - self._head

    def __iter__(self) -> Iterator[SentFrame]:
        return iter(self._frames[self._head :])

    def add(self, frame: SentFrame) -> None:
        self._frames.append(frame)
        self._firsts.append(frame.first)
        self.bytes += frame.cost

    def add_even(self, first: int, per_frame: int, datagrams: Sequence[bytes], cost: int) -> None:
        """Frame after frame with so many messages without keys, each of this cost."""
        firsts = range(first, first + per_frame * len(datagrams), per_frame)
        self._frames += [
            _new(SentFrame, (begin, begin + per_frame - 1, (datagram,), cost, None, _NONE))
            for begin, datagram in zip(firsts, datagrams, strict=True)
        ]
        self._firsts += firsts
        self.bytes += cost * len(datagrams)

    def release(self, done_to: int) -> None:
        """Frames up to this sequence are done in all groups."""
        frames = self._frames
        head = self._head
        while head < len(frames) and frames[head].last <= done_to:
            self.bytes -= frames[head].cost
            frames[head] = _RELEASED
            head += 1
        self._head = head
        if self._asked:
            for first in [first for first in self._asked if first <= done_to]:
                del self._asked[first]
        if head > COMPACT_FRAMES and head > len(frames) // 2:
            del frames[:head], self._firsts[:head]
            self._head = 0

    def release_run(self, first: int, last: int) -> None:
        """Frames between these sequences are done in all groups, though some before them are not."""
        place = max(self._head, bisect_left(self._firsts, first))
        while place < len(self._frames) and self._frames[place].last <= last:
            frame = self._frames[place]
            if frame.datagrams:
                self.bytes -= frame.cost
                self._frames[place] = frame._replace(datagrams=(), cost=0)
            place += 1

    def overlapping(self, first: int, last: int) -> Iterator[SentFrame]:
        """The frames with any of these sequences."""
        place = max(self._head, bisect_right(self._firsts, first) - 1)
        while place < len(self._frames) and self._frames[place].first <= last:
            if self._frames[place].last >= first:
                yield self._frames[place]
            place += 1

    def check_invariants(self) -> None:
        kept = self._frames[self._head :]
        assert self.bytes == sum(frame.cost for frame in kept)
        assert self._firsts[self._head :] == [frame.first for frame in kept]
        assert self._asked.keys() <= set(self._firsts)
        for older, newer in pairwise(kept):
            assert older.last + 1 == newer.first
