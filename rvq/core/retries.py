"""When a failed message is tried again, and when no more. Owns the pauses; pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from rvq.errors import BadArgument


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first retry comes at once; the next after `first` seconds, then `factor` times as long each time.

    most: the longest pause.  jitter: the part of each pause that is left to chance, so that what failed together does
    not come back together.
    """

    first: float = 0.2
    factor: float = 2.0
    most: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        for name in ("first", "factor", "most", "jitter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise BadArgument(f"{name}={value!r:.60} is {type(value).__name__}, not a number: see rvq.Backoff")
        if not 0 <= self.first <= self.most < float("inf"):
            raise BadArgument(f"first={self.first!r} and most={self.most!r}: give seconds, and the longest pause last")
        if not 1 <= self.factor <= 100:
            raise BadArgument(f"factor={self.factor!r} does not let pauses grow: give a number from 1 to 100")
        if not 0 <= self.jitter <= 1:
            raise BadArgument(f"jitter={self.jitter!r} is not a part: give a number from 0 to 1")

    def pause(self, attempt: int, random: Random) -> float:
        """Seconds before the next attempt, after that many have failed. Never longer than without jitter."""
        if attempt <= 1:
            return 0.0
        pause = min(self.first * self.factor ** min(attempt - 2, 64), self.most)
        return pause * (1.0 - self.jitter * random.random())
