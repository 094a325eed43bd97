"""Files as a journal needs them. Owns every call to the operating system; knows nothing of what is in the files.

`Storage` and `File` are what the rest of the journal is written against: `OsStorage` is the real one, and the simulator
has one that loses what was not synced. All of them raise OSError and nothing else.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from rvq.journal.entries import Payload

PARTS_AT_ONCE: Final = 1024
"""IOV_MAX of Linux: what one call takes."""


class File(Protocol):
    """An open file. Used by one thread at a time."""

    def read(self, at: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def write(self, at: int, data: bytes) -> None:
        """All of it, or OSError with any part of it written."""

    def write_parts(self, at: int, parts: Sequence[Payload]) -> None:
        """The same of many, one behind the other."""

    def size(self) -> int: ...
    def truncate(self, length: int) -> None: ...
    def sync(self) -> None:
        """Data and length are on disk when this returns."""

    def let_go(self, start: int, end: int) -> None:
        """Of what is synced between these the system need keep nothing in memory."""

    def lock(self) -> bool:
        """Takes the file for this writer. False if another one has it. Closing the file, and dying, gives it back."""

    def close(self) -> None: ...


class Storage(Protocol):
    """A file system."""

    def make_folder(self, path: Path) -> None:
        """With all above it; fine if it is there."""

    def list(self, path: Path) -> list[str] | None:
        """Sorted names in a folder, or None if there is no such folder."""

    def create(self, path: Path) -> File:
        """A new file, or an old one emptied."""

    def open(self, path: Path, *, write: bool = False) -> File: ...
    def rename(self, old: Path, new: Path) -> None:
        """Within one folder, in one step, over what is there."""

    def remove(self, path: Path) -> None: ...
    def remove_folder(self, path: Path) -> None:
        """Only if it is empty: OSError otherwise."""

    def sync_folder(self, path: Path) -> None:
        """Names made, changed and removed in it are on disk when this returns."""


class OsFile:
    """A file of the operating system."""

    def __init__(self, path: Path, flags: int) -> None:
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def read(self, at: int, size: int) -> bytes:
        data = os.pread(self._fd, size, at)
        while 0 < len(data) < size:
            more = os.pread(self._fd, size - len(data), at + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, at: int, data: bytes) -> None:
        done = os.pwrite(self._fd, data, at)
        while done < len(data):
            done += os.pwrite(self._fd, memoryview(data)[done:], at + done)

    def write_parts(self, at: int, parts: Sequence[Payload]) -> None:
        # Without joining them: that would be one copy more of everything that is recorded.
        for start in range(0, len(parts), PARTS_AT_ONCE):
            some = parts[start : start + PARTS_AT_ONCE]
            size = sum(map(len, some))
            done = os.pwritev(self._fd, some, at)
            if done < size:  # the disk is full, or something came between: what is left says which
                self.write(at + done, b"".join(some)[done:])
            at += size

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, length: int) -> None:
        os.ftruncate(self._fd, length)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def let_go(self, start: int, end: int) -> None:
        with suppress(OSError):  # it is only advice
            os.posix_fadvise(self._fd, start, end - start, os.POSIX_FADV_DONTNEED)

    def lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsStorage:
    """The file system that this process sees."""

    def make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def list(self, path: Path) -> list[str] | None:
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, path: Path) -> OsFile:
        return OsFile(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def open(self, path: Path, *, write: bool = False) -> OsFile:
        return OsFile(path, os.O_RDWR if write else os.O_RDONLY)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
