"""Introductions: once a second, sooner when something is news, and never more often than there is room for."""

from __future__ import annotations

from rvq import limits
from rvq.core.about import ABOUT_S, SOON, Introducing, pace

BEAT = 0.2


def told(counts: list[int], *, ends: int = 3, urgent: list[int] | None = None) -> list[int]:
    """At which heartbeats it introduces itself, with these counts at each."""
    introducing = Introducing()
    news = urgent or [0] * len(counts)
    return [n for n, count in enumerate(counts) if introducing.is_due(n * BEAT + 1e-6 * n, ends, count, news[n])]


def test_it_introduces_itself_at_once_and_then_once_a_second() -> None:
    assert told([0] * 16) == [0, 5, 10, 15]


def test_counters_that_move_all_the_time_are_told_once_a_second() -> None:
    assert told(list(range(16))) == [0, 5, 10, 15]


def test_counters_that_came_to_rest_are_told_at_the_next_heartbeat_but_one() -> None:
    assert told([0, 0, 5, 6, 7, 7, 7, 7, 7, 7]) == [0, 5]
    assert told([0, 0, 5, 7, 7, 7, 7, 7, 7, 7]) == [0, 4, 9]


def test_what_is_urgent_is_told_as_soon_as_may_be() -> None:
    assert told([0] * 8, urgent=[0, 1, 1, 1, 1, 1, 1, 1]) == [0, 1, 6]


def test_in_a_large_group_all_together_keep_to_the_rate() -> None:
    assert pace(1) == pace(limits.ABOUTS_PER_S) == ABOUT_S
    assert pace(1000) == 1000 / limits.ABOUTS_PER_S == 5.0
    steady = told([0] * 1000, ends=1000)
    assert len(steady) == 1000 * BEAT / 5.0
    wild = told([n // 2 for n in range(1000)], ends=1000, urgent=list(range(1000)))
    assert len(wild) <= 1.05 * SOON * len(steady)
