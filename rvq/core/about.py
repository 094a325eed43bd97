"""Introducing oneself to those who look on. Owns when that is done; what is said is the frame `About`.

It goes to the directory only, which nobody but observers joins. It is said with heartbeats, so it wakes nobody.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

from rvq import limits

ABOUT_S = 1.0
"""Pause between introductions: rates are seen soon enough, and a lost one is not missed for long."""
SOON = 4
"""What is news waits for this part of the pause at most: that of a bus at rest is soon exact, and the directory has at
most so many times its rate."""


EARLY_S = 0.05
"""The heartbeat with which a pause is over may come so much sooner, and is not to be missed for that."""


class Home(NamedTuple):
    """The process that an end lives in."""

    host: str = ""
    pid: int = 0


NOWHERE = Home()


def pace(ends: int) -> float:
    """The pause between introductions, where one knows of so many ends of the label."""
    return max(ABOUT_S, ends / limits.ABOUTS_PER_S)


class Introducing:
    """When one end introduces itself. Asked with each heartbeat."""

    __slots__ = ("_before", "_told", "_told_at", "_urgent")

    def __init__(self) -> None:
        self._told_at = -math.inf
        self._told: Hashable = None
        self._before: Hashable = None
        self._urgent: Hashable = None

    def is_due(self, now: float, ends: int, counts: Hashable, urgent: Hashable) -> bool:
        """Counters that move are told once in a pause; when they have come to rest, sooner; what is urgent, as soon as
        may be. True counts as told."""
        pause = pace(ends)
        rests = counts == self._before
        self._before = counts
        news = urgent != self._urgent or (rests and counts != self._told)
        if now < self._told_at + (pause / SOON if news else pause) - EARLY_S:
            return False
        self._told_at, self._told, self._urgent = now, counts, urgent
        return True
