"""The frames of one stream that a receiver has. Owns them, the fragments of large messages, and what is missing.

Frames are kept as they came, of all lanes: they are the copy for inheriting and for orphaned streams.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from rvq import limits
from rvq.core.repair import ASK_S_AGAIN, ASK_S_MAX, Gaps
from rvq.core.stats import Stats
from rvq.wire.batch import Batch
from rvq.wire.codec import read_data_header
from rvq.wire.fragments import Whole, read_fragment
from rvq.wire.frames import DataHeader, FrameType, MissingParts, Nak
from rvq.wire.train import Run, Train

_DATA, _FRAGMENT = int(FrameType.DATA), int(FrameType.FRAGMENT)
_new = tuple.__new__

PARTS_QUIET_S = 0.01
"""Fragments still come in: ask for the missing ones only when it has been quiet for this long."""


class HeldFrame(NamedTuple):
    """A frame as it came: one datagram, or all fragments of a message."""

    first: int
    last: int
    header: DataHeader
    """Of its first datagram."""
    datagrams: tuple[bytes, ...]
    size: int
    train: Train | None = None
    """If it is not one frame but many: see there."""

    def run(self) -> Run:
        """Its messages. Raises WireError if it is not what its header said."""
        if self.train is not None:
            return self.train
        if self.header.type == _DATA:
            return Batch(self.datagrams[0], self.header)
        parts = [read_fragment(part, read_data_header(part)) for part in self.datagrams]
        return Whole(parts[0], b"".join([part.data for part in parts]))


class Parts:
    """The fragments of one message that have come."""

    __slots__ = ("ask_at", "asked", "datagrams", "size", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.datagrams: dict[int, bytes] = {}
        self.size = 0
        self.ask_at = math.inf
        self.asked = 0

    def missing(self) -> tuple[int, ...]:
        """The first parts that are lacking, as many as one NAK asks for."""
        lacking = (part for part in range(self.total) if part not in self.datagrams)
        return tuple(part for part, _ in zip(lacking, range(limits.NAK_PARTS_MAX), strict=False))


class Holding:
    """What one receiver has of one stream, by the first sequence of each frame."""

    def __init__(self, random: Random, stats: Stats) -> None:
        self.frames: dict[int, HeldFrame] = {}
        self.bytes = 0
        self.gaps = Gaps(random)
        self._stats = stats
        self._parts: dict[int, Parts] = {}
        self._in_parts = 0
        """Datagrams of large messages, whole ones and others."""
        self._within: set[int] = set()
        """The first sequences of frames inside of trains: they are here too."""

    @property
    def cost(self) -> int:
        """What all of it takes of memory, about. A train is one datagram, and remembers where its frames begin."""
        kept = len(self.frames) + len(self._within) // 8 + self._in_parts
        return self.bytes + limits.DATAGRAM_COST_BYTES * kept

    @property
    def datagrams(self) -> int:
        """How many are here, in frames and parts of messages."""
        frames = sum(len(frame.datagrams) for frame in self.frames.values())
        return frames + sum(len(parts.datagrams) for parts in self._parts.values())

    # --- coming in ------------------------------------------------------------------------------------------------

    def add(self, header: DataHeader, datagram: bytes) -> HeldFrame | None:
        """A batch. None if it is here already."""
        _, _, _, count, _, _, _, first, *_ = header
        if first in self.frames or first in self._within:
            return None
        last = first + count - 1
        size = len(datagram)
        frame = self.frames[first] = _new(HeldFrame, (first, last, header, (datagram,), size, None))
        self.bytes += size
        if self.gaps.missing:
            self._stats.repaired += self.gaps.filled(first, last)
        return frame

    def add_train(self, train: Train) -> HeldFrame:
        """Many batches of which none is here."""
        frame = HeldFrame(train.first, train.last, train.header, (train.datagram,), len(train.datagram), train)
        self.frames[train.first] = frame
        self._within.update(train.firsts[1:])
        self.bytes += frame.size
        self._stats.repaired += self.gaps.filled(train.first, train.last)
        return frame

    def add_part(self, now: float, header: DataHeader, datagram: bytes) -> HeldFrame | None:
        """A fragment. The whole message if this was the last one lacking. Raises WireError."""
        fragment = read_fragment(datagram, header)
        sequence = fragment.first
        if sequence in self.frames or sequence in self._within:
            return None
        parts = self._parts.get(sequence)
        if parts is None:
            parts = self._parts[sequence] = Parts(fragment.parts)
        if fragment.part in parts.datagrams or fragment.parts != parts.total:
            return None
        parts.datagrams[fragment.part] = datagram
        parts.size += len(datagram)
        self._in_parts += 1
        parts.ask_at, parts.asked = now + PARTS_QUIET_S, 0
        self.bytes += len(datagram)
        self._stats.repaired += self.gaps.filled(sequence, sequence)
        if len(parts.datagrams) < parts.total:
            return None
        del self._parts[sequence]
        datagrams = tuple(parts.datagrams[part] for part in range(parts.total))
        frame = HeldFrame(sequence, sequence, header, datagrams, parts.size)
        self.frames[sequence] = frame
        return frame

    # --- going ----------------------------------------------------------------------------------------------------

    def drop(self, first: int) -> None:
        """This frame is of no use."""
        frame = self.frames.pop(first, None)
        if frame is not None:
            self.bytes -= frame.size
            if frame.header.type == _FRAGMENT:
                self._in_parts -= len(frame.datagrams)
            if frame.train is not None:
                self._within.difference_update(frame.train.firsts)

    def drop_to(self, done_to: int) -> None:
        """Everything up to here is done. Frames that came late are found by `sweep`."""
        frames = self.frames
        while frames:
            first = next(iter(frames))
            if frames[first].last > done_to:
                break
            self.drop(first)
        self.gaps.filled(0, done_to)

    def sweep(self, done_to: int) -> None:
        """Drop everything up to here, also what came out of order."""
        for first in [first for first, frame in self.frames.items() if frame.last <= done_to]:
            self.drop(first)
        for sequence in [sequence for sequence in self._parts if sequence <= done_to]:
            gone = self._parts.pop(sequence)
            self.bytes -= gone.size
            self._in_parts -= len(gone.datagrams)

    # --- what is missing ------------------------------------------------------------------------------------------

    def within(self, first: int, last: int) -> list[HeldFrame]:
        """The frames with any of these sequences, in order."""
        found = [frame for frame in self.frames.values() if frame.first <= last and frame.last >= first]
        return sorted(found)

    def holes(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The runs of sequences between these of which there is no frame, nor a part of one."""
        spans = [(frame.first, frame.last) for frame in self.within(first, last)]
        spans += [(sequence, sequence) for sequence in self._parts if first <= sequence <= last]
        for begin, end in sorted(spans):
            if begin > first:
                yield first, begin - 1
            first = end + 1
        if first <= last:
            yield first, last

    def lacking(self, now: float) -> tuple[tuple[int, ...], tuple[MissingParts, ...]]:
        """What to ask for now: runs of sequences, and parts of messages."""
        fragments: list[MissingParts] = []
        for sequence, parts in self._parts.items():
            if parts.ask_at <= now and len(fragments) < limits.NAK_RANGES_MAX:
                fragments.append(MissingParts(sequence, parts.missing()))
                parts.ask_at = now + min(ASK_S_MAX, ASK_S_AGAIN * 2**parts.asked)
                parts.asked = min(parts.asked + 1, 8)
        return self.gaps.due(now), tuple(fragments)

    @property
    def is_whole(self) -> bool:
        """Nothing is missing that anyone here wants."""
        return not (self._parts or self.gaps.missing)

    def next_deadline(self) -> float:
        if self.is_whole:
            return math.inf
        parts = min((parts.ask_at for parts in self._parts.values()), default=math.inf)
        return min(parts, self.gaps.next_deadline())

    def answer(self, nak: Nak) -> Iterator[bytes]:
        """The datagrams that another receiver asks for, as far as they are here."""
        wanted = list(zip(nak.runs[::2], nak.runs[1::2], strict=True))
        for first, last in wanted:
            for frame in self.within(first, last):
                yield from frame.datagrams if frame.train is None else frame.train.frames_with(first, last)
        for sequence, parts in nak.fragments:
            whole, some = self.frames.get(sequence), self._parts.get(sequence)
            for part in parts:
                if whole is not None and part < len(whole.datagrams):
                    yield whole.datagrams[part]
                elif some is not None and part in some.datagrams:
                    yield some.datagrams[part]

    def check_invariants(self) -> None:
        self.gaps.check_invariants()
        sizes = [frame.size for frame in self.frames.values()] + [parts.size for parts in self._parts.values()]
        assert self.bytes == sum(sizes)
        large = [frame.datagrams for frame in self.frames.values() if frame.header.type == _FRAGMENT]
        assert self._in_parts == sum(map(len, large)) + sum(len(parts.datagrams) for parts in self._parts.values())
        assert all(len(parts.datagrams) < parts.total for parts in self._parts.values())
        assert not self._parts.keys() & self.frames.keys()
        trains = [frame.train for frame in self.frames.values() if frame.train is not None]
        assert self._within == {first for train in trains for first in train.firsts[1:]}
