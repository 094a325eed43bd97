"""Which versions are believed, and that whatever was claimed, a group can go on switching."""

from __future__ import annotations

import pytest

from rvq import limits
from rvq.core.belief import check_counters, newest
from rvq.core.membership import Membership
from rvq.core.table import Table
from rvq.errors import WireError
from rvq.timings import Timings
from rvq.wire.frames import (
    Alive,
    GroupStamp,
    GroupState,
    Member,
    Order,
    OrderKind,
    Pause,
    SenderAlive,
    Stamp,
    TableFrame,
    Version,
)

WALL = 1_790_000_000.0


def claiming(counter: int) -> list[object]:
    """Every frame that can claim a version."""
    version, pause = Version(counter, 9), Pause(counter, 9, True)
    entry = GroupStamp("g", 1, 1, version, (Member(9, 1),), (), (), ())
    return [
        Alive(9, "work", "g", 1, 1, False, False, 0, version, (), ()),
        Alive(9, "work", "g", 1, 1, False, False, 0, Version(0, 0), (), (), pause=pause),
        TableFrame(9, "work", "g", version, (Member(9, 1),), ()),
        Stamp(9, "work", 1, 1, False, (entry,)),
        SenderAlive(9, "work", 1, False, 0, 0, 1, 1, (GroupState("g", version, 0, False, ()),), ()),
        Order(9, "work", "g", 0, 1, OrderKind.PAUSE, 0, counter, "me"),
    ]


@pytest.mark.parametrize("place", range(6))
def test_what_nobody_can_have_reached_is_refused(place: int) -> None:
    check_counters(claiming(newest(WALL))[place], WALL)  # type: ignore[arg-type]
    with pytest.raises(WireError):
        check_counters(claiming(newest(WALL) + 1)[place], WALL)  # type: ignore[arg-type]


def test_an_honest_group_is_never_refused_even_where_the_clock_is_not_set() -> None:
    tables_of_ten_years = 10 * 365 * 86_400 * 20
    assert newest(0.0) == newest(-5.0) == limits.TABLES_TOLD_MAX > tables_of_ten_years


def test_after_the_boldest_claim_the_next_table_is_believed_a_moment_later() -> None:
    group = Membership(5, 1, Timings(), 0.0)
    claimed = newest(WALL)
    assert group.offer(0.0, Table(Version(claimed, 66), (Member(5, 1), Member(66, 1))))
    at = 0.0
    while (written := group.wake(at)) is None and at < 60.0:
        at += 0.05
    assert written is not None and written.version.counter == claimed + 1
    assert written.version.counter <= newest(WALL + at), "whoever's clock is right believes it at once"
