"""A file system in memory that loses what was not synced. Owns the faults of disks: torn, lost, full, failing, flipped.

It is as bad as a disk may be: after a crash any part of what was written since the last sync is there, of each file by
itself; names made since their folder was synced may be gone; and a sync that failed lets go of what it could not write
and says "all is well" to the next one that asks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from rvq.journal.entries import Payload
from rvq.limits import KIB

SECTOR_BYTES: Final = 512
"""Half of a torn write is a multiple of this, half of the time. Else it ends at any byte."""


class Crashed(Exception):
    """The process is dead: raised by whatever it was doing, and by everything that it still tries."""


class _Node:
    """A file: what the system shows, what is on disk, and the steps between the two."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown = bytearray()
        self.durable = bytearray()
        self.unsynced: list[tuple[int, bytes | None]] = []
        """(place, data) of writes; (length, None) of truncations."""
        self.owner: MemoryFile | None = None


class MemoryFile:
    """An open file of a `MemoryStorage`."""

    def __init__(self, storage: MemoryStorage, node: _Node, *, write: bool) -> None:
        self._storage = storage
        self._node = node
        self._may_write = write
        self._life = storage.life

    def _check(self, *, write: bool = False) -> None:
        self._storage.step(self._life)
        if write and not self._may_write:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def read(self, at: int, size: int) -> bytes:
        self._check()
        return bytes(self._node.shown[at : at + size])

    def write(self, at: int, data: bytes) -> None:
        self._check(write=True)
        room = self._storage.room_for(at + len(data) - len(self._node.shown))
        self._apply(at, data[: max(0, len(data) - room)])
        if room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._storage.fail("write", self._node.path)

    def write_parts(self, at: int, parts: Sequence[Payload]) -> None:
        self.write(at, b"".join(parts))

    def let_go(self, start: int, end: int) -> None:
        """It is all in memory here."""
        self._check(write=True)

    def _apply(self, at: int, data: bytes) -> None:
        """A process may die within a write: then any first part of it is there."""
        budget = self._storage.bytes_left(len(data))
        done = data[:budget]
        if done:
            _step(self._node.shown, at, done)
            self._node.unsynced.append((at, done))
        if budget < len(data):
            self._storage.kill()
            raise Crashed

    def size(self) -> int:
        self._check()
        return len(self._node.shown)

    def truncate(self, length: int) -> None:
        self._check(write=True)
        self._storage.fail("truncate", self._node.path)
        _step(self._node.shown, length, None)
        self._node.unsynced.append((length, None))

    def sync(self) -> None:
        self._check(write=True)
        node, storage = self._node, self._storage
        try:
            storage.fail("sync", node.path)
        except OSError:
            # What could not be written is marked clean: some of it got there, the rest never will, and nobody is told.
            node.durable = storage.torn(node)
            node.unsynced.clear()
            raise
        for place, data in node.unsynced:
            _step(node.durable, place, data)
        node.unsynced.clear()

    def lock(self) -> bool:
        self._check()
        if self._node.owner not in (None, self):
            return False
        self._node.owner = self
        return True

    def close(self) -> None:
        if self._node.owner is self:
            self._node.owner = None


class MemoryStorage:
    """A disk with one root. Everything random comes from `random`, so a seed tells the whole story.

    `crash()` is a power cut, `kill()` the death of the process alone. Both end all open files; the storage itself is
    then as a restarted process finds it.
    """

    def __init__(self, random: Random, *, capacity: int | None = None) -> None:
        self.random = random
        self.capacity = capacity
        """Bytes of all files together. A write that does not fit writes what does."""
        self.syncs = 0
        self.life = 0
        self.failing: Callable[[str, Path], bool] = lambda _what, _path: False
        """Says whether this step ("write", "truncate", "sync", "folder") on this path fails."""
        self._die_after: int | None = None
        self._folders: dict[Path, dict[str, _Node | None]] = {Path("/"): {}}
        """Names in each folder, with None for a folder."""
        self._durable: dict[Path, dict[str, _Node | None]] = {Path("/"): {}}
        self._renamed: dict[Path, list[dict[str, _Node | None]]] = {}
        """The states that a folder went through since it was synced: a crash leaves one of them."""

    # --- faults ---------------------------------------------------------------------------------------------------

    def die_after(self, steps: int) -> None:
        """Kills the process within the `steps`-th byte or call from now."""
        self._die_after = steps

    def kill(self) -> None:
        """The process dies; the system lives on, and has everything that was written."""
        self.life += 1
        self._die_after = None
        for folder in self._folders.values():
            for node in folder.values():
                if node is not None:
                    node.owner = None

    def crash(self) -> None:
        """The power goes: of what was not synced, anything may be there."""
        self.kill()
        for path, states in self._renamed.items():
            self._durable[path] = dict(self.random.choice([self._durable.get(path, {}), *states]))
        self._renamed.clear()
        self._folders = {path: dict(names) for path, names in self._durable.items()}
        for path in sorted(self._folders):
            if path != path.parent and path.name not in self._folders.get(path.parent, {}):
                self._forget(path)
        for path, names in list(self._folders.items()):
            for name, node in names.items():
                if node is None:
                    self._folders.setdefault(path / name, {})
                else:
                    node.shown = self.torn(node)
                    node.durable = bytearray(node.shown)
                    node.unsynced.clear()
        self._durable = {path: dict(names) for path, names in self._folders.items()}

    def flip(self, path: Path, position: int, bit: int = 0) -> None:
        """One bit of a file changes by itself, on disk."""
        node = self._node(path)
        node.shown[position] ^= 1 << bit
        if position < len(node.durable):
            node.durable[position] ^= 1 << bit

    def torn(self, node: _Node) -> bytearray:
        """What may be on disk of a file whose last steps were not synced."""
        disk, random = bytearray(node.durable), self.random
        in_order = random.random() < 0.5
        for place, data in node.unsynced:
            if random.random() < 0.3:
                if data and random.random() < 0.7:
                    end = random.randrange(len(data) + 1)
                    end -= end % SECTOR_BYTES if random.random() < 0.5 else 0
                    _step(disk, place, data[:end])
                if in_order:
                    break
            else:
                _step(disk, place, data)
        return disk

    def step(self, life: int | None = None) -> None:
        """Counts one call of the process; Crashed if it is its last, or if the caller is of an earlier life."""
        if life is not None and life != self.life:
            raise Crashed
        if self._die_after is not None:
            self._die_after -= 1
            if self._die_after <= 0:
                self.kill()
                raise Crashed

    def bytes_left(self, size: int) -> int:
        """How much of a write the process lives to see. A KiB counts as a call does, or nearly all would die there."""
        if self._die_after is None:
            return size
        steps = size // KIB + 1
        if self._die_after > steps:
            self._die_after -= steps
            return size
        return self.random.randrange(size + 1) if size else 0

    def room_for(self, more: int) -> int:
        """How many bytes of a write do not fit."""
        if self.capacity is None:
            return 0
        used = sum(len(node.shown) for names in self._folders.values() for node in names.values() if node)
        return max(0, used + max(0, more) - self.capacity)

    def fail(self, what: str, path: Path) -> None:
        self.syncs += what == "sync"
        if self.failing(what, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    # --- a file system --------------------------------------------------------------------------------------------

    def make_folder(self, path: Path) -> None:
        self.step()
        for folder in [*reversed(path.parents), path]:
            if folder not in self._folders:
                self._folders[folder] = {}
                self._change(folder.parent, {**self._folders[folder.parent], folder.name: None})

    def list(self, path: Path) -> list[str] | None:
        self.step()
        names = self._folders.get(path)
        return None if names is None else sorted(names)

    def create(self, path: Path) -> MemoryFile:
        self.step()
        self.fail("create", path)
        folder = self._folder(path)
        node = folder.get(path.name)
        if node is None:
            node = _Node(path)
            self._change(path.parent, {**folder, path.name: node})
        file = MemoryFile(self, node, write=True)
        if node.shown:
            file.truncate(0)
        return file

    def open(self, path: Path, *, write: bool = False) -> MemoryFile:
        self.step()
        return MemoryFile(self, self._node(path), write=write)

    def rename(self, old: Path, new: Path) -> None:
        self.step()
        self.fail("rename", new)
        node, names = self._node(old), dict(self._folder(old))
        del names[old.name]
        names[new.name] = node
        node.path = new
        self._change(old.parent, names)

    def remove(self, path: Path) -> None:
        self.step()
        self._node(path)
        names = dict(self._folder(path))
        del names[path.name]
        self._change(path.parent, names)

    def remove_folder(self, path: Path) -> None:
        self.step()
        if self._folders.get(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        names = dict(self._folder(path))
        del names[path.name]
        del self._folders[path]
        self._change(path.parent, names)

    def sync_folder(self, path: Path) -> None:
        self.step()
        self.fail("folder", path)
        self._durable[path] = dict(self._folders[path])
        self._renamed.pop(path, None)

    def _change(self, folder: Path, names: dict[str, _Node | None]) -> None:
        self._folders[folder] = names
        self._renamed.setdefault(folder, []).append(dict(names))

    def _forget(self, folder: Path) -> None:
        for path in [path for path in self._folders if path == folder or folder in path.parents]:
            del self._folders[path]

    def _folder(self, path: Path) -> dict[str, _Node | None]:
        names = self._folders.get(path.parent)
        if names is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return names

    def _node(self, path: Path) -> _Node:
        node = self._folder(path).get(path.name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return node


def _step(disk: bytearray, place: int, data: bytes | None) -> None:
    """One write or truncation on the bytes of a file. What was never written reads as zeros."""
    if len(disk) < place:
        disk.extend(bytes(place - len(disk)))
    if data is None:
        del disk[place:]
    else:
        disk[place : place + len(data)] = data
