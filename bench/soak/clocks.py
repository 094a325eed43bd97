"""Clocks that are wrong, and one that is right. Owns a process's idea of time; sets no clock of the machine.

A process of a soak runs in a time namespace of its own, so CLOCK_MONOTONIC starts elsewhere on every 'host', and its
wall clock is set while it runs by what `time.time` is for it: the wall clock has no namespace, and the machine's own
must not be touched.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

_OFFSETS = Path("/proc/self/timens_offsets")
_real_time = time.time


def offset_s(lines: Iterable[str]) -> float:
    """How far CLOCK_MONOTONIC is ahead of the machine's, from `timens_offsets`."""
    for line in lines:
        name, seconds, nanoseconds = line.split()
        if name in ("monotonic", "1"):
            return int(seconds) + int(nanoseconds) / 1e9
    return 0.0


def read_offset() -> float:
    try:
        return offset_s(_OFFSETS.read_text().splitlines())
    except OSError:  # a kernel without time namespaces
        return 0.0


class TrueClock:
    """The machine's CLOCK_MONOTONIC, whatever this process is told: all logs are by it."""

    def __init__(self) -> None:
        self._offset = read_offset()

    def __call__(self) -> float:
        return time.monotonic() - self._offset


class Wall:
    """The wall clock of this process, which can be set."""

    def __init__(self) -> None:
        self.off_s = 0.0

    def __call__(self) -> float:
        return _real_time() + self.off_s

    def install(self) -> None:
        """From now on, whoever in this process asks for the time is told that of this clock."""
        time.time = self


def in_time_of(age_s: float) -> list[str]:
    """What to put before a command so that its host seems to have been up for so much longer. It keeps its id."""
    return ["unshare", "--time", "--monotonic", f"{age_s:.0f}", "--boottime", f"{age_s:.0f}"]
