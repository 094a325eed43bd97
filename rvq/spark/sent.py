"""What of a batch was sent already: a file that says it, message by message. Owns its bytes.

A message is known by its digest, so it does not matter in which order Spark computes the rows when it does so again.
It says what is about to be sent, and what is done, and is synced before anything is sent, and after.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

_RECORD: Final = Struct("<4sBII")
_MAGIC: Final = b"rvqS"
ABOUT: Final = 1
DONE: Final = 2
ALL: Final = 3
"""Of the whole batch: then nothing else need be kept."""


class SentFile:
    """One batch's file. A torn end is cut: what it would have said was not relied on."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self.done: Counter[int] = Counter()
        """Digests of what all receivers are done with."""
        self.about: Counter[int] = Counter()
        """Of what was on its way, and may be done."""
        self.is_complete = False
        self._file = open(path, "ab")  # noqa: SIM115  it is kept
        good = self._read(path.read_bytes())
        self._file.truncate(good)

    def _read(self, data: bytes) -> int:
        at = 0
        while len(data) - at >= _RECORD.size:
            magic, kind, count, crc = _RECORD.unpack_from(data, at)
            end = at + _RECORD.size + 8 * count
            if magic != _MAGIC or end > len(data) or crc32(data[at + _RECORD.size : end], kind) != crc:
                break
            self._learn(kind, array("Q", data[at + _RECORD.size : end]))
            at = end
        return at

    def _learn(self, kind: int, digests: Iterable[int]) -> None:
        if kind == ABOUT:
            self.about.update(digests)
        elif kind == DONE:
            digests = list(digests)
            self.done.update(digests)
            self.about.subtract(digests)
        else:
            self.is_complete = True

    def write(self, kind: int, digests: Iterable[int] = ()) -> None:
        """On disk when this returns."""
        digests = array("Q", digests)
        data = digests.tobytes()
        self._file.write(_RECORD.pack(_MAGIC, kind, len(digests), crc32(data, kind)) + data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._learn(kind, digests)

    def close(self) -> None:
        self._file.close()


class Forgetful:
    """For a batch that nobody will take up again."""

    def __init__(self) -> None:
        self.done: Counter[int] = Counter()
        self.about: Counter[int] = Counter()
        self.is_complete = False

    def write(self, kind: int, digests: Iterable[int] = ()) -> None:
        """Nothing is kept."""

    def close(self) -> None: ...
