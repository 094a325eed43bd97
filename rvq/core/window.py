"""Which numbers of a counter were taken before. Owns one window: what is above it is new, what is below it too old."""

from __future__ import annotations

WINDOW = 4096
"""Numbers that may come out of order: more than any queue on the way has places for what overtakes each other."""

_MASK = (1 << WINDOW) - 1


class Window:
    """The numbers from `floor` on, each once. Numbers up to `floor` were never new here."""

    __slots__ = ("_floor", "_seen", "highest")

    def __init__(self, floor: int = 0) -> None:
        self.highest = floor
        self._floor = floor
        self._seen = 1
        """Bit n: `highest - n` was taken."""

    def is_new(self, number: int) -> bool:
        """Looks only: a number is not taken before it is known to be true."""
        behind = self.highest - number
        if behind < 0:
            return True
        return behind < WINDOW and number > self._floor and not self._seen >> behind & 1

    def take_run(self, first: int, count: int) -> None:
        """These numbers, all of which are above `highest`."""
        self.take(first)
        if count > 1:
            more = count - 1
            run = (1 << more) - 1
            self._seen = (self._seen << more | run) & _MASK if more < WINDOW else _MASK
            self.highest += more

    def take(self, number: int) -> None:
        """It is new, and from now on it is not."""
        ahead = number - self.highest
        if ahead > 0:
            # Not `seen << ahead` when it is far: one number would take any amount of memory.
            self._seen = (self._seen << ahead | 1) & _MASK if ahead < WINDOW else 1
            self.highest = number
        else:
            self._seen |= 1 << -ahead
