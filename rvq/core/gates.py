"""Which keys may go on after a switch. Owns, at the sender, what each shard still has to do in older segments.

A key's new receiver must not start before its former one is through. Only the sender knows what is done of everything,
so it says for which shards that is so; other shards are not held up by one that is slow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence

from rvq.wire.records import SHARDS

ALL = (1 << SHARDS) - 1
BITS = 32
"""Of each number that a heartbeat carries."""


class Gates:
    """One group's shards. Messages with a due time are not among them: they would hold their keys up until then."""

    __slots__ = ("_undone", "closed_to")

    def __init__(self, closed_to: int) -> None:
        self.closed_to = closed_to
        """Messages up to here are in the gates, if they were not done when their segment ended."""
        self._undone: dict[int, deque[int]] = {}

    def close(self, shard: int, sequence: int) -> None:
        """A message of an ended segment that is not done. They come in the order of their sequences."""
        self._undone.setdefault(shard, deque()).append(sequence)

    def advance(self, is_done: Callable[[int], bool]) -> None:
        """Look again what is done."""
        for shard in list(self._undone):
            waiting = self._undone[shard]
            while waiting and is_done(waiting[0]):
                waiting.popleft()
            if not waiting:
                del self._undone[shard]

    def reached(self, segments: Sequence[tuple[int, int]]) -> dict[int, int]:
        """How far the shards are, as bits: each is through with all before the segment in which its first undone
        message is, or before the newest. Segments are (stamp, at), the oldest first: nothing is undone before it."""
        starts = [at for _, at in segments]
        found = {segments[-1][0]: ALL}
        for shard, waiting in self._undone.items():
            place = bisect_right(starts, waiting[0]) - 1
            found[segments[-1][0]] &= ~(1 << shard)
            if place > 0:
                stamp = segments[place][0]
                found[stamp] = found.get(stamp, 0) | 1 << shard
        return dict(sorted(found.items()))

    def check_invariants(self) -> None:
        for waiting in self._undone.values():
            assert waiting and list(waiting) == sorted(waiting) and waiting[-1] <= self.closed_to


def bits_to_numbers(bits: int) -> tuple[int, ...]:
    """As a frame carries them: the lowest shards first."""
    return tuple(bits >> start & (1 << BITS) - 1 for start in range(0, SHARDS, BITS))


def numbers_to_bits(numbers: tuple[int, ...]) -> int:
    return sum((number & (1 << BITS) - 1) << BITS * place for place, number in enumerate(numbers))
