"""When a message is due, as users say it. Owns the checks and the words of refusal."""

from __future__ import annotations

import time
from datetime import datetime

from rvq.errors import BadMessage

YEARS_MAX = 100
"""Further away than this is a mistake, such as milliseconds for seconds."""
_SECONDS_MAX = YEARS_MAX * 365.25 * 86_400


def due_time(delay: float | None, due: datetime | None) -> float | None:
    """Seconds since 1970; None if it is due at once. Raises BadMessage."""
    if due is not None:
        if delay is not None:
            raise BadMessage("delay and due both say when: give one of them")
        if not isinstance(due, datetime):
            raise BadMessage(f"due={due!r:.60} is {type(due).__name__}, not a datetime: give one with a time zone")
        if due.tzinfo is None or due.utcoffset() is None:
            raise BadMessage(
                f"due={due.isoformat()} has no time zone, so nobody knows when that is: datetime.now(UTC) + …"
            )
        return _within_reach("due", due.timestamp())
    if delay is None:
        return None
    seconds = _seconds("delay", delay)
    return _within_reach("delay", time.time() + seconds) if seconds else None


def time_to_live(ttl: float | None) -> float | None:
    """Seconds; None if there is no end. Raises BadMessage."""
    return None if ttl is None else _seconds("ttl", ttl)


def _seconds(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _SECONDS_MAX:
        raise BadMessage(f"{name}={value!r:.60} is not a duration: give seconds, 0 or more, up to {YEARS_MAX} years")
    return float(value)


def _within_reach(name: str, at: float) -> float:
    if not 0 <= at <= time.time() + _SECONDS_MAX:
        raise BadMessage(f"{name} is before 1970 or more than {YEARS_MAX} years away: give seconds, or a nearer time")
    return at
