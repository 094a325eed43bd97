"""When a message is due, as users say it, and the words for what is no time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import rvq
from rvq.aio.times import YEARS_MAX, due_time, time_to_live

YEAR_S = 366 * 86_400


def test_without_a_delay_or_with_none_at_all_it_is_due_at_once() -> None:
    assert due_time(None, None) is due_time(0, None) is due_time(0.0, None) is None


@pytest.mark.parametrize("delay", [1, 0.001, 86_400])
def test_a_delay_counts_from_now(delay: float) -> None:
    before = time.time()
    due = due_time(delay, None)
    assert due is not None
    assert before + delay <= due <= time.time() + delay


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-11))])
def test_a_due_time_is_the_same_moment_in_every_zone(zone: timezone) -> None:
    assert due_time(None, datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC).astimezone(zone)) == 1893553445.0


def test_a_due_time_in_the_past_is_one() -> None:
    assert due_time(None, datetime(1999, 1, 1, tzinfo=UTC)) == 915148800.0


BAD_SECONDS = [-1, -0.001, float("nan"), float("inf"), -float("inf"), True, False, "5", "", [], 10**400, 200 * YEAR_S]


@pytest.mark.parametrize("seconds", BAD_SECONDS, ids=lambda seconds: f"{seconds!r:.20}")
def test_what_is_no_duration_is_refused(seconds: Any) -> None:
    with pytest.raises(rvq.BadMessage, match=r"^delay=.* is not a duration: give seconds, 0 or more"):
        due_time(seconds, None)
    with pytest.raises(rvq.BadMessage, match=r"^ttl=.* is not a duration: give seconds, 0 or more"):
        time_to_live(seconds)


@pytest.mark.parametrize(
    ("due", "words"),
    [
        (datetime(2030, 1, 1), r"due=2030-01-01T00:00:00 has no time zone, .* datetime\.now\(UTC\)"),
        (1893553445.0, r"due=1893553445\.0 is float, not a datetime"),
        ("tomorrow", "due='tomorrow' is str, not a datetime"),
        (timedelta(seconds=5), "is timedelta, not a datetime"),
        (datetime(1969, 12, 31, tzinfo=UTC), "due is before 1970"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), "due is before 1970"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), f"more than {YEARS_MAX} years away"),
    ],
    ids=["naive", "number", "text", "span", "before 1970", "first of all", "last of all"],
)
def test_what_is_no_due_time_is_refused(due: Any, words: str) -> None:
    with pytest.raises(rvq.BadMessage, match=words):
        due_time(None, due)


def test_delay_and_due_together_are_refused() -> None:
    with pytest.raises(rvq.BadMessage, match="delay and due both say when"):
        due_time(1.0, datetime.now(UTC))
    with pytest.raises(rvq.BadMessage, match="delay and due both say when"):
        due_time(0, datetime.now(UTC))


def test_a_time_to_live_may_be_none_or_nothing() -> None:
    assert (time_to_live(None), time_to_live(0), time_to_live(2)) == (None, 0.0, 2.0)
