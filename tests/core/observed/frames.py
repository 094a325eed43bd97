"""What ends say, for the tests of those who look on."""

from __future__ import annotations

from typing import Any

from rvq.core.stats import COUNTERS
from rvq.wire.frames import (
    NO_VERSION,
    About,
    Alive,
    Echo,
    GroupState,
    LaneProgress,
    SenderAlive,
    StreamReport,
    Version,
)

LABEL, GROUP = "work", "default"
SENDER = 0x5E << 56


def an_about(id: int, group: str = GROUP, *, slot: int = 0, slots: int = 1, **others: Any) -> About:
    """Counters by their names; the rest as a receiver of one slot would say it, or a sender without a group."""
    counters = tuple(others.pop(name, 0) for name in COUNTERS)
    version = others.pop("version", Version(1, id))
    facts: dict[str, Any] = {
        "recorder": False,
        "paused": False,
        "host": "host-a",
        "pid": 4711,
        "started_at": 5.0,
        "weight": 1 if group else 0,
        "version": version if group else NO_VERSION,
        "first_slot": slot,
        "own_slots": 1 if group else 0,
        "slots": slots,
        "stamp": 0,
        "stamp_at": 0,
        "backlog": 0,
        "lag": 0.0,
        "window_used": 0,
        "window": 0 if group else 1000,
    }
    return About(id, LABEL, group, **{**facts, **others}, counters=counters)


def an_alive(
    id: int,
    counter: int,
    version: Version = NO_VERSION,
    *,
    lanes: tuple[tuple[int, int], ...] = (),
    group: str = GROUP,
    leaving: bool = False,
) -> Alive:
    """With a report on these lanes, by stamp and slot."""
    progress = tuple(LaneProgress(stamp, slot, 1, ()) for stamp, slot in lanes)
    reports = (StreamReport(SENDER, 0, 0, progress),) if lanes else ()
    return Alive(id, LABEL, group, 1, counter, False, leaving, 0, version, (), reports)


def a_beat(
    counter: int,
    *,
    stamp: int = 0,
    groups: dict[str, Version] | None = None,
    echoes: dict[int, int] | None = None,
    held: bool = False,
    oldest: int = 1,
) -> SenderAlive:
    """A sender's heartbeat."""
    states = tuple(GroupState(name, version, 0, held, ()) for name, version in (groups or {}).items())
    echoed = tuple(Echo(*echo) for echo in (echoes or {}).items())
    return SenderAlive(SENDER, LABEL, counter, False, 0, 0, oldest, stamp, states, echoed)
