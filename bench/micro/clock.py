"""Timing one step."""

from __future__ import annotations

from collections.abc import Callable
from timeit import Timer

REPEATS = 3


def ns_per_call(step: Callable[[], object], quick: bool = False) -> float:
    """Nanoseconds per call: the best of some repeats, as anything above it is somebody else's time."""
    timer = Timer(step)
    calls, seconds = timer.autorange() if not quick else (10, timer.timeit(10))
    if quick:
        return seconds / calls * 1e9
    return min(timer.repeat(REPEATS, calls)) / calls * 1e9
