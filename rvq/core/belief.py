"""Which counters may be believed. Owns the bound on versions of tables and pauses, on which everyone counts on.

A version that nobody can surpass would be the last word for ever, and any fixed bound could be claimed by one frame. So
the bound grows with time, faster than anybody honest counts: whatever was claimed, a moment later there is a newer one.
It is the same for all whose clocks are about right, so nobody is taken in by what the others refuse.
"""

from __future__ import annotations

from rvq.errors import WireError
from rvq.limits import TABLES_TOLD_MAX, TABLES_TOLD_PER_S
from rvq.wire.frames import Alive, Control, Order, SenderAlive, Stamp, TableFrame


def newest(wall: float) -> int:
    """The greatest counter that anybody can have reached by this wall time."""
    return TABLES_TOLD_MAX + int(TABLES_TOLD_PER_S * max(0.0, wall))


def check_counters(frame: Control, wall: float) -> None:
    """Raises WireError if a frame claims a version that nobody can have reached."""
    if _claimed(frame) > newest(wall):
        raise WireError("a version that nobody can have reached by now")


def _claimed(frame: Control) -> int:
    match frame:
        case Alive():
            return max(frame.version.counter, frame.pause.counter)
        case TableFrame():
            return frame.version.counter
        case Stamp() | SenderAlive():
            return max((entry.version.counter for entry in frame.groups), default=0)
        case Order():
            return frame.counter
        case _:
            return 0
