"""Memory that the processes of one measurement share. Owns the go, the stop, and what each process has counted.

Everything here is read and written without locks: each number has one writer, and 8 aligned bytes change at once.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import time
from array import array
from pathlib import Path
from random import Random

monotonic = time.monotonic

NUMBER_BYTES = 8
"""A message begins with its number, in this machine's byte order."""

SENDER_SHIFT = 40
"""The number of a message is its sender's in the upper bits, and its place in the lower."""

NAP_S = 0.002
"""Between two looks at the board, before and after what is measured."""

_GO, _STOP, _FIRST = 0, 1, 2
_READY, _COUNT, _LAST_AT, _DONE, _EXTRA, _FIELDS = 0, 1, 2, 3, 4, 5


class Board:
    """A go, a stop, and a row per process. Made before the processes fork."""

    def __init__(self, processes: int) -> None:
        memory = memoryview(mmap.mmap(-1, 8 * (_FIRST + _FIELDS * processes)))
        self._numbers, self._times = memory.cast("q"), memory.cast("d")
        self.processes = processes

    @property
    def go(self) -> bool:
        return self._numbers[_GO] != 0

    @property
    def stop(self) -> bool:
        return self._numbers[_STOP] != 0

    def say_go(self) -> None:
        self._numbers[_GO] = 1

    def say_stop(self) -> None:
        self._numbers[_STOP] = 1

    def set_ready(self, process: int) -> None:
        self._numbers[self._at(process, _READY)] = 1

    def is_ready(self, process: int) -> bool:
        return self._numbers[self._at(process, _READY)] != 0

    def set_done(self, process: int) -> None:
        """It has nothing more to do; this is when."""
        self._times[self._at(process, _LAST_AT)] = monotonic()
        self._numbers[self._at(process, _DONE)] = 1

    def is_done(self, process: int) -> bool:
        return self._numbers[self._at(process, _DONE)] != 0

    def count(self, process: int, messages: int, *, now: bool) -> None:
        """It has had so many; with `now`, the last of them just now."""
        if now:
            self._times[self._at(process, _LAST_AT)] = monotonic()
        self._numbers[self._at(process, _COUNT)] = messages

    def counted(self, process: int) -> int:
        return int(self._numbers[self._at(process, _COUNT)])

    def last_at(self, process: int) -> float:
        return float(self._times[self._at(process, _LAST_AT)])

    def set_extra(self, process: int, value: int) -> None:
        """One number more, that only some systems have."""
        self._numbers[self._at(process, _EXTRA)] = value

    def extra(self, process: int) -> int:
        return int(self._numbers[self._at(process, _EXTRA)])

    def _at(self, process: int, field: int) -> int:
        return _FIRST + _FIELDS * process + field

    def wait_for_go(self) -> None:
        while not self.go:
            time.sleep(NAP_S)

    async def go_said(self) -> None:
        """As `wait_for_go`, while the loop turns."""
        while not self.go:
            await asyncio.sleep(NAP_S)

    def wait_for_stop(self) -> None:
        while not self.stop:
            time.sleep(NAP_S)

    async def stop_said(self) -> None:
        while not self.stop:
            await asyncio.sleep(10 * NAP_S)


class Tally:
    """What one receiver was handed. `seen` gets the numbers as bytes, as that costs the least."""

    EVERY = 256 * NUMBER_BYTES
    """Those who are handed messages one by one tell the board after so many."""

    def __init__(self, board: Board, process: int) -> None:
        self.seen = bytearray()
        self._board = board
        self._process = process

    def tell(self, *, now: bool = True) -> None:
        self._board.count(self._process, len(self.seen) // NUMBER_BYTES, now=now)

    async def tell_always(self) -> None:
        """For those who do not know that they wait: the last few count as handed out with those before them."""
        while not self._board.stop:
            await asyncio.sleep(0.05)
            self.tell(now=False)

    def keep(self, path: Path) -> None:
        path.write_bytes(self.seen)


def numbers_in(path: Path) -> array[int]:
    found = array("Q")
    found.frombytes(path.read_bytes())
    return found


def make_bodies(sender: int, count: int, size: int, spread: int = 0) -> list[bytes]:
    """Numbered. With a spread, their lengths are those of chance, and the same in every run."""
    filling = bytes(size + spread - NUMBER_BYTES)
    first = sender << SENDER_SHIFT
    numbers = (number.to_bytes(NUMBER_BYTES, "little") for number in range(first, first + count))
    if not spread:
        return [number + filling for number in numbers]
    lengths = Random(sender).choices(range(size - spread, size + spread + 1), k=count)
    return [number + filling[: length - NUMBER_BYTES] for number, length in zip(numbers, lengths, strict=True)]


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process, which the scheduler counts in nanoseconds."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def bind_to(parent: int) -> None:
    """Die with the parent, so that a measurement that is given up leaves nothing behind."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it is gone already; process 1 may be a parent too
        os._exit(1)
