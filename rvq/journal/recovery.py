"""Segments that a recorder left open when it died: checked, cut, sealed. Owns what is a torn tail and what is damage.

What the watermark covers was confirmed, so a bad byte there is damage, and nothing is changed. Behind it complete
blocks are kept (they may have been synced in the moment before the death) and the first that is not ends the segment.
A death within a recovery is harmless: the next one begins anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.folders import Folders
from rvq.journal.index import MARK_EVERY_BYTES, IndexWriter
from rvq.journal.layout import FOOTER, HEADER_BYTES, Extent, State, read_footer
from rvq.journal.places import NEW_SUFFIX, SegmentName, part_folder
from rvq.journal.scan import Segment, read_head
from rvq.journal.segment import SegmentWriter
from rvq.journal.storage import Storage


class Recovered(NamedTuple):
    """One segment that was sealed, and what was cut off."""

    path: Path
    extent: Extent
    cut_bytes: int


class Recovery(NamedTuple):
    """What was found."""

    recovered: list[Recovered]
    damaged: list[JournalDamaged]
    """Segments that were left as they are."""


def recover(storage: Storage, root: Path) -> Recovery:
    """Seals all segments that are open and that no recorder has. JournalError if the disk refuses."""
    folders = Folders(storage, root)
    recovery = Recovery([], [])
    for folder in folders.label_folders():
        for name in folders.segments_in(folder):
            try:
                recovered = _recover_one(folders, folder, name)
            except JournalDamaged as damage:
                recovery.damaged.append(damage)
            except FileNotFoundError:
                continue  # expired in the meantime
            except OSError as error:
                path = folders.path(folder, name)
                words = f"cannot be recovered ({error.strerror or error}): make room or repair the disk, then try again"
                raise JournalError(path, words) from error
            else:
                recovery.recovered.extend(recovered)
        _remove_leftovers(folders, folder)
    return recovery


def _recover_one(folders: Folders, folder: str, name: SegmentName) -> list[Recovered]:
    segment = folders.open(folder, name)
    segment.file.close()
    if segment.head.watermark.state is State.SEALED:
        return []
    storage, path = folders.storage, folders.path(folder, name)
    file = storage.open(path, write=True)
    try:
        if not file.lock():
            return []
        # Read again: whoever had it may have gone on, and sealed it, until just now.
        segment = segment._replace(file=file, head=read_head(file, path))
        if segment.head.watermark.state is State.SEALED:
            return []
        marks, extent = find_end(segment, successor_prior(folders, folder, name))
        cut_bytes = max(0, file.size() - extent.length)
        _seal(storage, segment, marks, extent)
    finally:
        file.close()
    return [Recovered(path, extent, cut_bytes)]


def _seal(storage: Storage, segment: Segment, marks: list[Extent], extent: Extent) -> None:
    file, path, head = segment.file, segment.path, segment.head
    file.truncate(extent.length)
    index = IndexWriter(storage, path, head.header, head.seed)
    for before in marks:
        index.block(before)
    writer = SegmentWriter(storage, file, path, head.seed, head.watermark, index)
    # Only what the watermark covers is known to have been synced. A process cannot know of the failed syncs of another.
    known = min(head.watermark.extent.length, extent.length)
    writer.rewrite(head.watermark.state, known, file.read(known, extent.length - known))
    writer.written = extent
    writer.seal()


def find_end(segment: Segment, prior: int | None) -> tuple[list[Extent], Extent]:
    """What is good of an open segment: the extents for its index, and the last. JournalDamaged if that is less than
    what was confirmed.

    `prior` is where the next segment says that this one ends, if there is a next one.
    """
    mark, size = segment.head.watermark, segment.file.size()
    confirmed = mark.extent.length if prior is None else prior
    may_go_on = prior is None and mark.state is State.OPEN
    if size < confirmed:
        raise JournalDamaged(segment.path, size, f"the file ends here, and was synced up to {confirmed:,}")
    befores: list[Extent] = []
    extent = Extent()
    is_as_told = prior is not None or extent == mark.extent
    try:
        for block in segment.blocks(HEADER_BYTES, size if may_go_on else confirmed, row=0):
            _, length, _, _, rows, first, last, *_ = block.header
            if extent.length - (befores[-1].length if befores else HEADER_BYTES) >= MARK_EVERY_BYTES:
                befores.append(extent)
            extent = extent.grown(length, rows, first, last)
            is_as_told = is_as_told or extent == mark.extent
    except JournalDamaged:
        if extent.length < confirmed:
            raise
    if not is_as_told:
        raise JournalDamaged(segment.path, confirmed, "what is there is not what the watermark counted")
    return befores, extent


def successor_prior(folders: Folders, folder: str, name: SegmentName) -> int | None:
    """Where the recorder's next segment says that this one ends. None if there is no next one."""
    for other in folders.segments_in(folder):
        if (other.recorder, other.counter) == (name.recorder, name.counter + 1):
            segment = folders.open(folder, other)
            segment.file.close()
            return segment.head.header.prior_length
    return None


def has_footer(segment: Segment, extent: Extent) -> bool:
    """Whether the seal of exactly this extent is in its place."""
    return read_footer(segment.file.read(extent.length, FOOTER.size), segment.head.seed) == extent


def _remove_leftovers(folders: Folders, folder: str) -> None:
    """Segments that never got their name: their recorder died before the header was synced. Nothing is in them."""
    for part in folders.parts_in(folder):
        for name in folders.leftovers_of(folder, part):
            if name.endswith(NEW_SUFFIX):
                path = folders.root / folder / part_folder(part) / name
                try:
                    file = folders.storage.open(path, write=True)
                    try:
                        if file.lock():
                            folders.storage.remove(path)
                    finally:
                        file.close()
                except OSError:
                    continue  # it is of no use and does no harm
