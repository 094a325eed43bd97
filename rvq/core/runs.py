"""What is done of a lane: a floor, and runs above it. Facts are only ever added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sortedcontainers import SortedDict


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs: (from, up to and without)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs


class DoneRuns:
    """Everything up to `floor` is done, and so is each run above it. Runs never touch each other or the floor."""

    __slots__ = ("_runs", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self._runs: SortedDict[int, int] = SortedDict()

    def merge(self, floor: int, runs: Sequence[int]) -> bool:
        """Add facts: all up to `floor`, and the runs (first, last, first, last, ...). True if any of it was news."""
        before = (self.floor, len(self._runs))
        news = False
        if floor > self.floor:
            self._raise(floor)
        for at in range(0, len(runs), 2):
            news |= self._add(runs[at], runs[at + 1])
        return news or before != (self.floor, len(self._runs))

    def add(self, first: int, last: int) -> None:
        """One more run. Hot: most follow the floor."""
        if first == self.floor + 1 and not self._runs:
            self.floor = last
        else:
            self._add(first, last)

    def covers(self, sequence: int) -> bool:
        if sequence <= self.floor:
            return True
        if not self._runs:
            return False
        at = self._runs.bisect_right(sequence) - 1
        return at >= 0 and bool(sequence <= self._runs.peekitem(at)[1])

    def covers_run(self, first: int, last: int) -> bool:
        if last <= self.floor:
            return True
        if not self._runs:
            return False
        at = self._runs.bisect_right(max(first, self.floor + 1)) - 1
        return at >= 0 and bool(last <= self._runs.peekitem(at)[1])

    def within(self, first: int, last: int) -> list[tuple[int, int]]:
        """What is done from first to last, as runs."""
        spans = [(first, min(self.floor, last))] + [(max(a, first), min(b, last)) for a, b in self._runs.items()]
        return [span for span in spans if span[0] <= span[1]]

    def not_within(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What is not done from first to last, as runs."""
        first = max(first, self.floor + 1)
        at = max(0, self._runs.bisect_right(first) - 1)
        for begin in self._runs.islice(at):
            if begin > last:
                break
            if begin > first:
                yield first, begin - 1
            first = max(first, self._runs[begin] + 1)
        if first <= last:
            yield first, last

    def flat(self, most: int) -> tuple[int, ...]:
        """The runs above the floor as (first, last, first, last, ...), the lowest `most` of them."""
        return tuple(end for run in self._runs.items()[:most] for end in run)

    def above(self, after: int, most: int) -> tuple[tuple[int, ...], bool]:
        """As `flat`, of the runs that begin above `after`; and whether those are all of them."""
        keys = list(islice(self._runs.irange(after + 1), most + 1))
        return tuple(end for first in keys[:most] for end in (first, self._runs[first])), len(keys) <= most

    def runs_from(self, first: int, most: int) -> list[int]:
        """Where runs begin, from there on, at most so many."""
        return list(islice(self._runs.irange(first), most))

    def run_with(self, sequence: int) -> tuple[int, ...]:
        """The run above the floor that has this sequence, as (first, last); empty if there is none."""
        at = self._runs.bisect_right(sequence) - 1
        if at < 0 or self._runs.peekitem(at)[1] < sequence:
            return ()
        return tuple(self._runs.peekitem(at))

    @property
    def top(self) -> int:
        """The last sequence that is done."""
        return int(self._runs.peekitem()[1]) if self._runs else self.floor

    def __len__(self) -> int:
        """How many runs there are above the floor."""
        return len(self._runs)

    def __bool__(self) -> bool:
        """True if anything above the floor is done."""
        return bool(self._runs)

    def _raise(self, floor: int) -> None:
        runs = self._runs
        while runs and runs.peekitem(0)[0] <= floor + 1:
            floor = max(floor, runs.popitem(0)[1])
        self.floor = floor

    def _add(self, first: int, last: int) -> bool:
        if last <= self.floor:
            return False
        if first <= self.floor + 1:
            self._raise(last)
            return True
        runs = self._runs
        at = runs.bisect_right(first) - 1
        if at >= 0 and runs.peekitem(at)[1] >= first - 1:
            first, reach = runs.peekitem(at)
            if last <= reach:
                return False
        at = runs.bisect_left(first)
        while at < len(runs) and runs.peekitem(at)[0] <= last + 1:
            last = max(last, runs.popitem(at)[1])
        runs[first] = last
        return True

    def check_invariants(self) -> None:
        below = self.floor
        for first, last in self._runs.items():
            assert below + 1 < first <= last, (below, first, last)
            below = last
