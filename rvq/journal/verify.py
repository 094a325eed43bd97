"""The whole journal looked at, byte by byte. Owns what counts as a finding; changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.folders import Folders
from rvq.journal.index import Mark, read_marks
from rvq.journal.layout import FOOTER, HEADER_BYTES, Extent, State
from rvq.journal.marker import read_marker
from rvq.journal.places import SegmentName
from rvq.journal.recovery import has_footer, successor_prior
from rvq.journal.scan import Segment
from rvq.journal.storage import OsStorage, Storage


class Finding(NamedTuple):
    """Something that is not as it should be."""

    path: Path
    position: int
    words: str
    is_harmless: bool = False
    """Nothing that was confirmed is touched: an index that only makes reading slower, a segment to be recovered."""


@dataclass(slots=True)
class Verified:
    """What was looked at, and what was found."""

    findings: list[Finding] = field(default_factory=list)
    segments: int = 0
    blocks: int = 0
    entries: int = 0
    rows: int = 0
    bytes: int = 0

    @property
    def is_good(self) -> bool:
        """Everything that was confirmed is there, as it was written."""
        return all(finding.is_harmless for finding in self.findings)


def verify(root: str | Path, *, storage: Storage | None = None) -> Verified:
    """Reads everything that is synced: also while recorders write. JournalError if there is no journal."""
    folders = Folders(storage or OsStorage(), Path(root))
    group = read_marker(folders.storage, folders.root).group
    verified = Verified()
    for folder in folders.label_folders():
        names = folders.segments_in(folder)
        for name in names:
            try:
                _verify_segment(folders, folder, name, group, verified)
            except JournalDamaged as damage:
                verified.findings.append(Finding(folders.path(folder, name), damage.position, damage.words))
            except FileNotFoundError:
                continue  # expired in the meantime
            except (OSError, JournalError) as error:
                verified.findings.append(Finding(folders.path(folder, name), 0, f"cannot be read: {error}"))
        _verify_chains(folders, folder, names, verified)
    return verified


def _verify_segment(folders: Folders, folder: str, name: SegmentName, group: str, verified: Verified) -> None:
    segment = folders.open(folder, name)
    try:
        head, path = segment.head, segment.path
        found = verified.findings
        if head.header.group != group:
            found.append(Finding(path, 0, f"is of the group {head.header.group}, in a journal of {group}"))
        told, state = head.watermark.extent, head.watermark.state
        prior = successor_prior(folders, folder, name)
        if segment.file.size() < told.length:
            found.append(Finding(path, segment.file.size(), f"ends here, and was synced up to {told.length:,}"))
            return
        marks = read_marks(folders.storage, segment)
        marked = {mark.position for mark in marks or () if mark is not None}
        begins = _verify_blocks(segment, told.length if prior is None else prior, marked, verified)
        if state is State.SEALED:
            if not has_footer(segment, told):
                found.append(Finding(path, told.length, "is sealed and has no seal of that length"))
            elif segment.file.size() != told.length + FOOTER.size:
                found.append(Finding(path, told.length + FOOTER.size, "goes on behind its seal"))
        elif _is_free(folders, path):
            found.append(Finding(path, told.length, "was left open: the next recorder seals it", is_harmless=True))
        _verify_index(segment, marks, begins, verified)
    finally:
        segment.file.close()


def _verify_blocks(segment: Segment, limit: int, marked: set[int], verified: Verified) -> dict[int, int]:
    """Checks and counts the blocks. The row that each marked one begins with, by its position."""
    begins, extent, told = {}, Extent(), segment.head.watermark.extent
    verified.segments += 1
    for block in segment.blocks(HEADER_BYTES, limit, row=0):
        _, length, position, row, rows, first, last, *_ = block.header
        if position in marked:
            begins[position] = row
        extent = extent.grown(length, rows, first, last)
        ends = block.columns.end
        if any(a > b for a, b in pairwise(ends)) or ends[-1] > len(block.payloads_view):
            raise JournalDamaged(segment.path, position, "the table of a block points out of it")
        if sum(block.columns.rows) != rows or (min(block.columns.heard_at), max(block.columns.heard_at)) != (
            first,
            last,
        ):
            raise JournalDamaged(segment.path, position, "the table of a block is not what its header says")
        verified.blocks += 1
        verified.entries += len(block)
        verified.rows += rows
        verified.bytes += length
        if extent.length == told.length and extent != told:
            raise JournalDamaged(segment.path, position, "what is there is not what the watermark counted")
    return begins


def _verify_index(
    segment: Segment, marks: list[Mark | None] | None, begins: dict[int, int], verified: Verified
) -> None:
    if marks is None:
        words = "has no index: finding rows and times takes longer"
        verified.findings.append(Finding(segment.path, 0, words, is_harmless=True))
        return
    for number, mark in enumerate(marks):
        # A recorder may have gone on since: what is behind the watermark that was read cannot be judged.
        if mark is None or (
            mark.position < segment.head.watermark.extent.length and begins.get(mark.position) != mark.row
        ):
            words = f"mark {number} of its index is not good: finding rows and times takes longer"
            verified.findings.append(Finding(segment.path, mark.position if mark else 0, words, is_harmless=True))
            return


def _verify_chains(folders: Folders, folder: str, names: list[SegmentName], verified: Verified) -> None:
    for before, name in pairwise(sorted(names, key=lambda name: (name.recorder, name.counter))):
        if before.recorder == name.recorder and before.counter + 1 != name.counter:
            words = f"segments are missing between this one and {name}"
            verified.findings.append(Finding(folders.path(folder, before), 0, words))
        elif before.recorder == name.recorder:
            _verify_joint(folders, folder, before, name, verified)


def _verify_joint(folders: Folders, folder: str, before: SegmentName, name: SegmentName, verified: Verified) -> None:
    try:
        one, other = folders.open(folder, before), folders.open(folder, name)
    except (OSError, JournalError):
        return  # is a finding of its own
    one.file.close()
    other.file.close()
    told, prior = one.head.watermark, other.head.header.prior_length
    if told.state is State.SEALED and told.extent.length != prior:
        words = f"is sealed at {told.extent.length:,}, and the next segment says {prior:,}"
        verified.findings.append(Finding(one.path, prior, words))


def _is_free(folders: Folders, path: Path) -> bool:
    file = folders.storage.open(path, write=True)
    try:
        return file.lock()
    finally:
        file.close()
