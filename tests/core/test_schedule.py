"""What waits for a time: due messages by the wall clock, retries by one's own."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.core.machine import Wall
from rvq.core.schedule import Schedule
from rvq.message import Message, Origin, RichMessage
from rvq.wire.records import Content

WALL = 1_700_000_000.0
SENT_AT = WALL + 5.0


def message(place: int = 0, *, due_at: float | None = None, ttl: float | None = None) -> Message:
    origin = cast(Origin, SimpleNamespace(sent_at=SENT_AT, sequence_of=lambda place: place))
    return RichMessage(Content("body", None, None, due_at, ttl), origin, place)


@pytest.fixture
def wall() -> Wall:
    return Wall(WALL)


@pytest.fixture
def schedule(wall: Wall) -> Schedule:
    return Schedule(wall)


def test_a_wall_clock_is_told_by_its_distance_from_the_clock_that_drives_the_machines(wall: Wall) -> None:
    assert wall.read(7.5) == WALL + 7.5


def test_nothing_waits_at_first(schedule: Schedule) -> None:
    assert len(schedule) == 0 and not schedule
    assert schedule.next_deadline() == math.inf
    assert schedule.take(1e9) == []


def test_a_message_is_early_until_it_is_due_by_the_wall_clock(schedule: Schedule) -> None:
    later = message(due_at=WALL + 10.0)
    assert schedule.is_early(10.0 - 1e-6, later)
    assert not schedule.is_early(10.0, later)
    assert not schedule.is_early(0.0, message())


def test_a_message_is_over_when_its_time_to_live_has_passed_since_it_was_sent(schedule: Schedule) -> None:
    short = message(ttl=2.0)
    assert not schedule.is_over(6.9, short)
    assert schedule.is_over(7.0, short)
    assert not schedule.is_over(1e9, message())


def test_due_messages_come_up_in_the_order_of_their_times(schedule: Schedule) -> None:
    last, first, middle = (message(place, due_at=WALL + due) for place, due in enumerate((30.0, 10.0, 20.0)))
    for later in (last, first, middle):
        schedule.wait_until_due(later)
    assert len(schedule) == 3
    assert schedule.next_deadline() == 10.0
    assert schedule.take(9.9) == []
    assert schedule.take(20.0) == [first, middle]
    assert schedule.next_deadline() == 30.0
    assert schedule.take(99.0) == [last]
    assert len(schedule) == 0


def test_of_those_with_the_same_time_the_first_to_come_is_the_first_to_go(schedule: Schedule) -> None:
    same = [message(place, due_at=WALL + 10.0) for place in range(5)]
    for later in same:
        schedule.wait_until_due(later)
    assert schedule.take(10.0) == same


def test_a_retry_waits_by_the_own_clock_whatever_happens_to_the_wall(schedule: Schedule, wall: Wall) -> None:
    failed = message()
    schedule.retry_at(3.0, failed)
    wall.offset += 1000.0
    assert schedule.next_deadline() == 3.0
    assert schedule.take(2.9) == []
    assert schedule.take(3.0) == [failed]


def test_setting_the_wall_clock_moves_what_is_due_by_it(schedule: Schedule, wall: Wall) -> None:
    schedule.wait_until_due(message(due_at=WALL + 10.0))
    wall.offset -= 4.0
    assert schedule.next_deadline() == 14.0
    assert schedule.take(13.9) == []
    wall.offset += 10.0
    assert schedule.next_deadline() == 4.0
    assert len(schedule.take(4.0)) == 1


def test_the_deadline_is_that_of_whatever_comes_first(schedule: Schedule) -> None:
    schedule.wait_until_due(message(due_at=WALL + 10.0))
    schedule.retry_at(3.0, message())
    assert schedule.next_deadline() == 3.0
    schedule.take(3.0)
    assert schedule.next_deadline() == 10.0


@given(st.floats(0, 2e9), st.floats(-2e9, 2e9))
def test_who_wakes_at_the_deadline_finds_something(due_at: float, offset: float) -> None:
    """Else a simulated clock, which stands still in between, would be asked for the same moment for ever."""
    schedule = Schedule(Wall(offset))
    schedule.wait_until_due(message(due_at=due_at))
    assert len(schedule.take(schedule.next_deadline())) == 1


def test_something_waits_whether_it_is_to_be_due_or_to_be_tried_again(schedule: Schedule) -> None:
    schedule.retry_at(3.0, message(1))
    assert schedule and len(schedule) == 1
    assert schedule.take(3.0) and not schedule
    schedule.wait_until_due(message(2, due_at=WALL + 10.0))
    assert schedule and len(schedule) == 1
