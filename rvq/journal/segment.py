"""The segment that is being written. Owns its file: blocks, syncs, the watermark, the seal. Decides nothing.

`written` is what is in the file, `synced` what its watermark says. Every failure is an OSError, and `written` and
`synced` are then as before: what to do about it is the writer's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from rvq.journal.blocks import cut, encode_block
from rvq.journal.entries import Entry
from rvq.journal.index import IndexWriter
from rvq.journal.layout import HEADER_BYTES, Extent, Header, State, Watermark, pack_footer
from rvq.journal.places import new_path
from rvq.journal.storage import File, Storage
from rvq.limits import MIB

CACHED_BYTES: Final = 32 * MIB
"""Of the end of a segment that stay in memory, for those who read it while it is written."""
LET_GO_BYTES: Final = MIB
"""Let go at a time: not a call for each small commit."""


class SegmentWriter:
    """An open segment, locked. Made by `create`, or by recovery for one that somebody left behind."""

    def __init__(
        self, storage: Storage, file: File, path: Path, seed: int, watermark: Watermark, index: IndexWriter
    ) -> None:
        self._storage = storage
        self._file = file
        self._seed = seed
        self._serial = watermark.serial
        self._index = index
        self._is_clean = True
        self._let_go_to = watermark.extent.length
        self.path = path
        self.synced = self.written = watermark.extent

    @classmethod
    def create(cls, storage: Storage, path: Path, header: Header) -> SegmentWriter:
        """A new segment of this name. It has it only once its header is on disk: so a header that cannot be read is
        damage, and never a death at the wrong moment."""
        data = header.pack()
        seed = int.from_bytes(data[-4:], "little")
        page = bytearray(HEADER_BYTES)
        page[: len(data)] = data
        # Both, so that from the first sync on the one that is not being written is whole and on disk.
        for watermark in (Watermark(State.OPEN, serial, Extent()) for serial in (1, 2)):
            mark = watermark.pack(seed)
            page[watermark.at : watermark.at + len(mark)] = mark
        storage.make_folder(path.parent)
        file = storage.create(new_path(path))
        try:
            if not file.lock():
                raise BlockingIOError(f"{new_path(path)} is locked")
            file.write(0, bytes(page))
            file.sync()
            storage.rename(new_path(path), path)
            # Up to the folder of the journal: another recorder may have made these a moment ago and not synced them.
            for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
                storage.sync_folder(folder)
        except BaseException:
            file.close()
            raise
        return cls(storage, file, path, seed, watermark, IndexWriter(storage, path, header, seed))

    def append(self, entries: Sequence[Entry]) -> None:
        """Writes entries as one block or several. Not synced yet."""
        if not self._is_clean:  # a write failed half-way: nothing of it may stay behind what comes now
            self._file.truncate(self.written.length)
            self._is_clean = True
        extent, befores, parts = self.written, [], []
        for run in cut(entries):
            block = encode_block(run, extent.length, extent.rows, self._seed)
            befores.append(extent)
            parts.append(block.parts)
            extent = extent.grown(block.length, block.rows, block.first, block.last)
        self._is_clean = False
        self._file.write_parts(self.written.length, list(chain.from_iterable(parts)))
        self._is_clean = True
        for before in befores:
            self._index.block(before)
        self.written = extent

    def sync(self) -> None:
        """What is written is on disk when this returns, and the watermark says so. One sync for all of it."""
        if self.synced == self.written:
            return
        self._file.sync()
        self._publish(State.OPEN)
        self._index.flush()
        self._let_go()

    def _let_go(self) -> None:
        """So that the same memory is written to again. Else all of a journal costs the system new pages, which is most
        of its work, and pushes out what others read."""
        end = self.synced.length - CACHED_BYTES
        if end >= self._let_go_to + LET_GO_BYTES:
            self._file.let_go(self._let_go_to, end)
            self._let_go_to = end

    def seal(self) -> None:
        """Ends the segment for good and gives it back. Only what is synced by now is in it."""
        if not self._is_clean:
            self._file.truncate(self.written.length)
        self._file.write(self.written.length, pack_footer(self.written, self._seed))
        self._file.sync()
        self._publish(State.SEALED)
        self._file.sync()
        self._index.flush()
        self._storage.sync_folder(self.path.parent)
        self.close()

    def abandon(self) -> None:
        """After a failed sync: ends at the watermark as it is. Who asks the kernel again is told that all is well.

        The lock stays: until the next segment says where this one ends, nobody may recover what is behind that.
        """
        self.written = self.synced
        # In the place of the last one: that may be torn on disk by now, and the other one is all that is left then.
        self._serial += 1
        with suppress(OSError):  # this only spares recovery a look; the next segment says the same
            self._publish(State.ABANDONED)

    def rewrite(self, state: State, at: int, data: bytes) -> None:
        """Writes what is there once more, and the watermark too: a sync that failed has made the kernel believe that
        they are on disk, and it would not write them."""
        self._file.write(at, data)
        self._serial -= 1
        self._publish(state)

    def close(self) -> None:
        """Gives the segment back as it is."""
        self._index.close()
        self._file.close()

    def _publish(self, state: State) -> None:
        self._serial += 1  # also if the write fails: then this is the place that may be torn
        mark = Watermark(state, self._serial, self.written)
        self._file.write(mark.at, mark.pack(self._seed))
        self.synced = self.written
