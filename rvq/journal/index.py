"""The sparse index beside a segment: about every 64 KiB a mark. Owns the sidecar file; is never trusted.

A mark is taken if its checksum is right and there is a block where it points, with the row that it says. Missing,
torn or stale marks cost time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from rvq.errors import JournalDamaged
from rvq.journal.layout import FORMAT, HEADER_BYTES, INDEX, MARK, Extent, Header
from rvq.journal.places import index_path
from rvq.journal.scan import Segment
from rvq.journal.storage import File, Storage
from rvq.limits import KIB

MARK_EVERY_BYTES: Final = 64 * KIB
"""How far a reader walks block headers behind a mark."""


class Mark(NamedTuple):
    """A block: the row it begins with, where it is, and the latest time at which anything before it was heard."""

    row: int
    position: int
    time: float


START: Final = Mark(0, HEADER_BYTES, float("-inf"))


class IndexWriter:
    """Marks of one segment, appended while it grows.

    An index is not worth a failed commit: after an OSError there are no further marks.
    """

    def __init__(self, storage: Storage, segment: Path, header: Header, seed: int) -> None:
        self._seed = seed
        self._marked = HEADER_BYTES
        self._waiting: list[bytes] = []
        self._end = INDEX.size
        self._file: File | None = None
        try:
            self._file = storage.create(index_path(segment))
            self._file.write(0, INDEX.pack(seed, FORMAT, header.recorder, header.counter, b""))
        except OSError:
            self.close()

    def block(self, before: Extent) -> None:
        """A block begins where this extent ends. It gets a mark if the last one is far enough back."""
        if before.length - self._marked >= MARK_EVERY_BYTES:
            self._marked = before.length
            self._waiting.append(MARK.pack(self._seed, before.rows, before.length, before.last, b""))

    def flush(self) -> None:
        """Writes the marks that came since. For blocks that are synced."""
        if self._waiting and self._file is not None:
            data = b"".join(self._waiting)
            try:
                self._file.write(self._end, data)
            except OSError:
                self.close()
            self._end += len(data)
        self._waiting.clear()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def find_mark(storage: Storage, segment: Segment, limit: int, is_before: Callable[[Mark], bool]) -> Mark:
    """The last mark that `is_before` holds for and that is good, or the start of the segment.

    `is_before` holds for the first marks and not for the others, so a few probes find it.
    """
    seed = segment.head.seed
    try:
        file = storage.open(index_path(segment.path))
    except OSError:
        return START
    try:
        fields = INDEX.unpack(file.read(0, INDEX.size), seed)
        if fields is None or fields[1] != FORMAT:
            return START
        best, low, high = START, 0, (file.size() - INDEX.size) // MARK.size
        while low < high:
            middle = (low + high) // 2
            mark = _read_mark(file, middle, seed)
            # A mark that cannot be read is taken for one that is too far on: the answer is then further in front.
            if mark is not None and mark.position < limit and is_before(mark):
                best, low = mark, middle + 1
            else:
                high = middle
    except OSError:
        return START
    finally:
        file.close()
    return best if _is_good(segment, best) else START


def read_marks(storage: Storage, segment: Segment) -> list[Mark | None] | None:
    """All marks, None for those that are torn; or None if there is no index. For verify."""
    seed = segment.head.seed
    try:
        file = storage.open(index_path(segment.path))
    except OSError:
        return None
    try:
        if INDEX.unpack(file.read(0, INDEX.size), seed) is None:
            return [None]
        return [_read_mark(file, number, seed) for number in range((file.size() - INDEX.size) // MARK.size)]
    finally:
        file.close()


def _read_mark(file: File, number: int, seed: int) -> Mark | None:
    fields = MARK.unpack(file.read(INDEX.size + number * MARK.size, MARK.size), seed)
    return None if fields is None else Mark(fields[0], fields[1], fields[2])


def _is_good(segment: Segment, mark: Mark) -> bool:
    if mark is START:
        return True
    try:
        return segment.header_at(mark.position).row == mark.row
    except JournalDamaged:
        return False
