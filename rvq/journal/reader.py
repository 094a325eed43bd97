"""Reading a journal, also while it is written. Owns positions: where a label begins and ends, finding rows and times.

What one recorder wrote to one label is a chain of segments with an order of its own; chains have none among each other.
So the ends of a label are one position for each recorder. A reader takes no locks and trusts only what is synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from rvq.errors import JournalDamaged, JournalError, JournalExpired
from rvq.journal.blocks import Block
from rvq.journal.entries import Entry
from rvq.journal.folders import Folders
from rvq.journal.index import Mark, find_mark
from rvq.journal.layout import HEADER_BYTES
from rvq.journal.marker import read_marker
from rvq.journal.places import SegmentName, label_folder
from rvq.journal.scan import Segment
from rvq.journal.storage import OsStorage, Storage
from rvq.journal.writer import Position

Ends = dict[str, Position]
"""One position for each recorder, by its id in 16 hex digits."""


class JournalReader:
    """The reading end of a journal. Keeps nothing open between calls, so it may be copied to other processes."""

    def __init__(self, root: str | Path, *, storage: Storage | None = None, check: bool = True) -> None:
        """JournalError if there is no journal, or one of a newer format. `check=False` skips the checksums of bodies;
        those of headers are always looked at."""
        self.root = Path(root)
        self._check = check
        self._folders = Folders(storage or OsStorage(), self.root)
        self.group = read_marker(self._folders.storage, self.root).group

    # --- what there is --------------------------------------------------------------------------------------------

    def labels(self) -> list[str]:
        return self._folders.labels()

    def parts(self, label: str) -> list[str]:
        """UTC hours (YYYYMMDDHH) in which something of this label was written."""
        return self._folders.parts_in(label_folder(label))

    def segments(self, label: str) -> list[SegmentName]:
        """By hour, recorder and counter."""
        return self._folders.segments_in(label_folder(label))

    @contextmanager
    def segment(self, label: str, name: SegmentName | str) -> Iterator[Segment]:
        """One segment, open: its header, its watermark, its blocks. JournalExpired if it is not there any more."""
        with self._opened(label, _named(name)) as segment:
            yield segment

    def head(self, label: str) -> Ends:
        """Where each recorder's chain begins, as far as it is still there."""
        return {_key(chain): Position(str(chain[0]), HEADER_BYTES, 0) for chain in self._chains(label)}

    def tail(self, label: str) -> Ends:
        """Where each recorder's chain ends: everything before is synced and cannot vanish but by expiry."""
        ends = {}
        for chain in self._chains(label):
            # A chain that expires at this moment has no end any more.
            with suppress(JournalExpired), self._opened(label, chain[-1]) as segment:
                extent = segment.head.watermark.extent
                ends[_key(chain)] = Position(str(chain[-1]), extent.length, extent.rows)
        return ends

    # --- reading --------------------------------------------------------------------------------------------------

    def blocks(self, label: str, start: Position, end: Position | None = None) -> Iterator[Block]:
        """The blocks of one chain from `start` up to `end`, by default up to what is synced by now. The fast way.

        JournalExpired if `start` or `end` is not there any more, or never was. JournalDamaged if what was synced is
        not what was written.
        """
        names = self._chain_from(label, start, end)
        for number, name in enumerate(names):
            with self._opened(label, name) as segment:
                limit = self._limit(label, segment, names[number + 1 : number + 2])
                position, row = (start.position, start.row) if number == 0 else (HEADER_BYTES, 0)
                if end is not None and str(name) == end.segment:
                    _check_within(segment, end.position, limit)
                    limit = end.position
                _check_within(segment, position, limit)
                yield from segment.blocks(position, limit, check=self._check, row=row)

    def entries(self, label: str, start: Position, end: Position | None = None) -> Iterator[Entry]:
        """One by one. For tools; who wants speed takes blocks."""
        for block in self.blocks(label, start, end):
            yield from block.entries()

    # --- finding --------------------------------------------------------------------------------------------------

    def advance(self, label: str, start: Position, rows: int, end: Position) -> Position:
        """So far that at most `rows` rows are between, but at least one block with rows; never beyond `end`.

        Positions lie between blocks. Blocks without rows are taken along.
        """
        names = self._chain_from(label, start, end)
        now, taken = start, 0
        for number, name in enumerate(names):
            with self._opened(label, name) as segment:
                limit = self._limit(label, segment, names[number + 1 : number + 2])
                if str(name) == end.segment:
                    limit = min(limit, end.position)
                if number:
                    now = Position(str(name), HEADER_BYTES, 0)
                _check_within(segment, now.position, limit)
                jump = self._mark_by_row(segment, limit, now.row + rows - taken)
                if jump.position > now.position:
                    taken += jump.row - now.row
                    now = Position(str(name), jump.position, jump.row)
                for header in segment.headers(now.position, limit):
                    if taken and taken + header.rows > rows:
                        return now
                    taken += header.rows
                    now = Position(str(name), header.end, header.row + header.rows)
        return now

    def _mark_by_row(self, segment: Segment, limit: int, row: int) -> Mark:
        return find_mark(self._folders.storage, segment, limit, lambda mark: mark.row <= row)

    def seek_row(self, label: str, name: SegmentName | str, row: int) -> Position:
        """The block of a segment that has the row of this ordinal; its end if there is none yet."""
        with self._opened(label, _named(name)) as segment:
            limit = segment.head.watermark.extent.length
            mark = self._mark_by_row(segment, limit, row)
            for header in segment.headers(mark.position, limit):
                if header.row + header.rows > row:
                    return Position(str(segment.name), header.position, header.row)
            return Position(str(segment.name), limit, segment.head.watermark.extent.rows)

    def seek_time(self, label: str, when: float) -> Ends:
        """For each recorder the first block with anything heard at `when` or later; its end if there is none."""
        ends = {}
        for chain in self._chains(label):
            for name in chain:
                with suppress(JournalExpired), self._opened(label, name) as segment:
                    ends[_key(chain)] = found = self._seek_time(segment, when)
                    if found.position < segment.head.watermark.extent.length:
                        break
        return ends

    def _seek_time(self, segment: Segment, when: float) -> Position:
        extent = segment.head.watermark.extent
        if extent.last >= when:
            mark = find_mark(self._folders.storage, segment, extent.length, lambda mark: mark.time < when)
            for header in segment.headers(mark.position, extent.length):
                if header.last >= when:
                    return Position(str(segment.name), header.position, header.row)
        return Position(str(segment.name), extent.length, extent.rows)

    # --- chains ---------------------------------------------------------------------------------------------------

    def _chains(self, label: str) -> list[list[SegmentName]]:
        chains: dict[int, list[SegmentName]] = {}
        for name in self._folders.segments_in(label_folder(label)):
            chains.setdefault(name.recorder, []).append(name)
        return [sorted(chain, key=lambda name: name.counter) for _, chain in sorted(chains.items())]

    def _chain_from(self, label: str, start: Position, end: Position | None) -> list[SegmentName]:
        """The segments from the one of `start` to that of `end`, without a gap."""
        first = _named(start.segment)
        names = [name for name in self._folders.chain(label, first.recorder) if name.counter >= first.counter]
        if not names or names[0] != first:
            raise JournalExpired(self._path(label, first), start.position, _EXPIRED)
        if end is not None:
            last = _named(end.segment)
            if last.recorder != first.recorder or last < first:
                raise ValueError(f"{end} is not in the chain of {start}, or before it")
            if last not in names:
                raise JournalExpired(self._path(label, last), end.position, _EXPIRED)
            names = names[: names.index(last) + 1]
        for before, name in pairwise(names):
            if name.counter != before.counter + 1:
                raise JournalExpired(self._path(label, before), start.position, _EXPIRED)
        return names

    def _limit(self, label: str, segment: Segment, following: list[SegmentName]) -> int:
        """Where a segment ends. The next one says so, if there is one: that is true for an abandoned one as well, of
        which the watermark may be old."""
        for name in following:
            with self._opened(label, name) as after:
                return after.head.header.prior_length
        return segment.head.watermark.extent.length

    @contextmanager
    def _opened(self, label: str, name: SegmentName) -> Iterator[Segment]:
        try:
            segment = self._folders.open(label_folder(label), name)
            try:
                yield segment
            finally:
                segment.file.close()
        except FileNotFoundError as error:
            raise JournalExpired(self._path(label, name), HEADER_BYTES, _EXPIRED) from error
        except OSError as error:
            words = f"cannot be read ({error.strerror or error}): check its rights and its disk"
            raise JournalError(self._path(label, name), words) from error

    def _path(self, label: str, name: SegmentName) -> Path:
        return self._folders.path(label_folder(label), name)


_EXPIRED = "the segment expired, or never was here: start at the head of the label, or restore the segment"
_BEYOND = "the segment ends at {:,}: it was replaced by an older copy, or the position is of another journal"


def _check_within(segment: Segment, position: int, limit: int) -> None:
    if position > limit:
        raise JournalExpired(segment.path, position, _BEYOND.format(limit))
    if position < HEADER_BYTES:
        raise JournalDamaged(segment.path, position, "no block begins here")


def _key(chain: list[SegmentName]) -> str:
    return f"{chain[0].recorder:016x}"


def _named(name: SegmentName | str) -> SegmentName:
    if isinstance(name, SegmentName):
        return name
    found = SegmentName.parse(name)
    if found is None:
        raise ValueError(f"{name!r} does not name a segment: take positions as a reader gave them")
    return found
