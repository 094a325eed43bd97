"""When what `rvq-send` sends is due. Owns the options that say so, and how much of what was sent is due by now."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """What all messages of a run have in common, as `Sender.send_many` takes it."""

    delay: float | None = None
    due: datetime | None = None
    ttl: float | None = None
    urgent: bool = False

    def options(self) -> dict[str, Any]:
        """Those that were given."""
        return {name: value for name, value in asdict(self).items() if value}

    def due_at(self, now: float) -> float:
        """When something is due that is sent now: seconds since 1970."""
        return self.due.timestamp() if self.due is not None else now + (self.delay or 0.0)


class Dues:
    """Messages that were sent and are not due. They were sent in the order of their times."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: deque[tuple[float, int]] = deque()

    def add(self, now: float, due_at: float, count: int) -> None:
        if due_at > now:
            self._count += count
            self._waiting.append((due_at, count))

    def early(self, now: float) -> int:
        """How many are not due yet."""
        while self._waiting and self._waiting[0][0] <= now:
            self._count -= self._waiting.popleft()[1]
        return self._count

    def words(self, now: float) -> str | None:
        """What is waited for if nothing else is left; None if everything is due."""
        if not self.early(now):
            return None
        return f"what is left is due later, all of it by {clock(now, self._waiting[-1][0])}"


def clock(now: float, at: float) -> str:
    """A time for people: the day only if it is not today."""
    when, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{when:%H:%M:%S}" if when.date() == today.date() else f"{when:%Y-%m-%d %H:%M:%S}"
