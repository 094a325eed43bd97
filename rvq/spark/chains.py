"""A chain's segments between two positions, and cuts through them at block borders. Owns no offsets and no Spark.

Everything here is a pure function of the positions and of what is synced: Spark may ask again on another day, and must
get the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from rvq.errors import JournalDamaged, JournalExpired, SparkError
from rvq.journal import JournalReader, OsStorage, Position, SegmentName
from rvq.journal.blocks import BlockHeader
from rvq.journal.index import find_mark
from rvq.journal.layout import HEADER_BYTES
from rvq.spark.offsets import Chain, order

logger = logging.getLogger("rvq.spark")


@dataclass(frozen=True, slots=True)
class Slice:
    """Blocks of one segment, from one position up to another."""

    label: str
    recorder: str
    start: Position
    end: Position

    @property
    def size(self) -> int:
        return self.end.position - self.start.position

    @property
    def rows(self) -> int:
        return self.end.row - self.start.row


class Chains:
    """Chains of one journal, cut into slices."""

    def __init__(self, reader: JournalReader, *, fail_on_data_loss: bool) -> None:
        self._reader = reader
        self._fails = fail_on_data_loss
        self._storage = OsStorage()

    def slices(self, chain: Chain, start: Position | None, end: Position) -> list[Slice]:
        """What lies between, one slice for each segment. Without `start`, from where the chain now begins.

        SparkError if part of that has expired; with `failOnDataLoss` false what is left is taken, and a line says so.
        """
        label, recorder = chain
        begin = start or self._reader.head(label).get(recorder)
        if begin is None:
            return []
        if order(begin) > order(end):
            raise SparkError(f"{label!r} would end at {end.segment}:{end.position}, before it starts")
        names = [name for name in self._reader.segments(label) if f"{name.recorder:016x}" == recorder]
        names = sorted((name for name in names if _between(name, begin, end)), key=lambda name: name.counter)
        if begin != end:
            begin = self._past(label, names, begin)
            names = self._whole(label, names, begin, end)
        found = []
        for name, following in pairwise([*names, None]):
            assert name is not None
            found.append(self._slice(chain, name, following, begin, end))
        return [one for one in found if one is not None and one.size]

    def _past(self, label: str, names: list[SegmentName], begin: Position) -> Position:
        """From the next segment on, if the one that is gone had been read to its end: then nothing is lost."""
        if names and names[0].counter == order(begin)[0] + 1:
            with self._reader.segment(label, names[0]) as following:
                if following.head.header.prior_length == begin.position:
                    return Position(str(names[0]), HEADER_BYTES, 0)
        return begin

    def _whole(self, label: str, names: list[SegmentName], begin: Position, end: Position) -> list[SegmentName]:
        counters = [name.counter for name in names]
        first, last = order(begin)[0], order(end)[0]
        if counters == list(range(first, last + 1)):
            return names
        gone = sorted(set(range(first, last + 1)) - set(counters))
        words = f"{len(gone)} of the segments from {begin.segment} to {end.segment} of {label!r} have expired"
        if self._fails:
            raise SparkError(
                f"{words}: start at earliest with a new checkpoint, or set failOnDataLoss=false to go on with what is"
                " left"
            )
        logger.warning("%s: going on with what is left (failOnDataLoss=false)", words)
        return names

    def _slice(
        self, chain: Chain, name: SegmentName, following: SegmentName | None, begin: Position, end: Position
    ) -> Slice | None:
        label, recorder = chain
        start = begin if str(name) == begin.segment else Position(str(name), HEADER_BYTES, 0)
        if str(name) == end.segment:
            self._check_within(label, name, end)
            return Slice(label, recorder, start, end)
        try:
            with self._reader.segment(label, name) as segment:
                extent = segment.head.watermark.extent
                stop = Position(str(name), extent.length, extent.rows)
                if following is not None and following.counter == name.counter + 1:
                    with self._reader.segment(label, following) as after:
                        prior = after.head.header.prior_length
                    if prior != extent.length:  # abandoned: the next one knows where it ends
                        stop = self._stop_at(segment.headers(HEADER_BYTES, prior), str(name), prior)
        except JournalExpired as error:
            if self._fails:
                raise SparkError(str(error)) from error
            logger.warning("%s", error)
            return None
        return Slice(label, recorder, start, stop)

    def _stop_at(self, headers: Iterable[BlockHeader], name: str, length: int) -> Position:
        return Position(name, length, sum(header.rows for header in headers))

    def _check_within(self, label: str, name: SegmentName, end: Position) -> None:
        with self._reader.segment(label, name) as segment:
            length = segment.head.watermark.extent.length
        if end.position > length and self._fails:
            raise SparkError(
                f"{label!r} ends at byte {length:,} of {name}, before the offset {end.position:,}: the journal was"
                " replaced, or lost what was synced; start with a new checkpoint"
            )

    def cut(self, one: Slice, size: int) -> Position:
        """A block border about `size` bytes on: not beyond unless the first block is longer, never beyond its end."""
        with self._reader.segment(one.label, one.start.segment) as segment:
            target = one.start.position + size
            if target >= one.end.position:
                return one.end
            mark = find_mark(self._storage, segment, one.end.position, lambda mark: mark.position <= target)
            now = one.start
            if mark.position > now.position:
                now = Position(now.segment, mark.position, mark.row)
            for header in segment.headers(now.position, one.end.position):
                if header.end > target and now != one.start:
                    break
                now = Position(now.segment, header.end, header.row + header.rows)
            return now

    def pieces(self, one: Slice, size: int) -> Iterator[Slice]:
        """A slice as slices of about `size` bytes."""
        while one.size > size * 5 // 4:  # rather one that is a little long than a tiny one behind it
            try:
                border = self.cut(one, size)
            except (JournalExpired, JournalDamaged):
                break  # whoever reads it finds the words
            if border == one.end:
                break
            yield Slice(one.label, one.recorder, one.start, border)
            one = Slice(one.label, one.recorder, border, one.end)
        yield one


def _between(name: SegmentName, begin: Position, end: Position) -> bool:
    return order(begin)[0] <= name.counter <= order(end)[0]
