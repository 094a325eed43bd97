"""Sets of numbers that lie mostly in a row, as runs. Owns adding and taking away; its memory grows with the holes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Run = tuple[int, int]
"""First and last."""


class RunSet:
    """Numbers, kept as runs that neither touch nor overlap."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> None:
        """All numbers from `first` to `last`. Adding behind everything, as a journal mostly does, costs nothing."""
        firsts, lasts = self._firsts, self._lasts
        if not lasts or first > lasts[-1] + 1:
            firsts.append(first)
            lasts.append(last)
            return
        low = bisect_left(lasts, first - 1)
        high = bisect_right(firsts, last + 1)
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high] = [first]
        lasts[low:high] = [last]

    def __iter__(self) -> Iterator[Run]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """How many numbers."""
        return sum(last - first + 1 for first, last in self)

    def without(self, other: RunSet) -> Iterator[Run]:
        """The numbers of this set that are not in the other, as runs in order."""
        holes = iter(other)
        hole = next(holes, None)
        for first, last in self:
            while hole is not None and hole[1] < first:
                hole = next(holes, None)
            while hole is not None and hole[0] <= last:
                if first < hole[0]:
                    yield first, hole[0] - 1
                first = hole[1] + 1
                if first > last:
                    break
                hole = next(holes, None)
            if first <= last:
                yield first, last
