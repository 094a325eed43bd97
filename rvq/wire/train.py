"""Data frames one behind the other in one datagram, all of one size but the last, as kernels cut and join them.

A sender hands a train to the kernel to be cut (GSO), and a receiver may get one that its kernel joined again (GRO).
Each frame in it is whole in itself: it does not matter where a train comes apart. Owns reading a train as one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import add
from struct import Struct
from typing import Any

from rvq.errors import WireError
from rvq.wire.batch import HAS_URGENT, Batch
from rvq.wire.codec import DATA_HEADER, MAGIC, UINT_MAX, read_data_header
from rvq.wire.fragments import Whole
from rvq.wire.frames import DataFlag, DataHeader, FrameType
from rvq.wire.records import Content

_START = DATA_HEADER.size
_new = tuple.__new__
_DATA = int(FrameType.DATA)
_RAW_AND_EVEN = frozenset({int(DataFlag.RAW | DataFlag.EVEN), int(DataFlag.RAW | DataFlag.EVEN | DataFlag.PADDED)})


def split(datagram: bytes, size: int) -> list[bytes]:
    """The frames of a train."""
    return [datagram[at : at + size] for at in range(0, len(datagram), size)]


@lru_cache(maxsize=64)
def _headers_of(size: int) -> Struct:
    return Struct(f"{DATA_HEADER.format}{size - _START}x")


def read_train(datagram: bytes, size: int) -> Train | None:
    """A train of frames of this size. None if it is no run of consecutive batches under one stamp: then it is split."""
    if not _START < size < len(datagram):
        return None
    whole = len(datagram) // size * size
    rows = list(_headers_of(size).iter_unpack(memoryview(datagram)[:whole]))
    if whole < len(datagram):
        if len(datagram) - whole < _START:
            return None
        rows.append(DATA_HEADER.unpack_from(datagram, whole))
    # Hot: by columns and positions. What all have in common is looked at once.
    magics, kinds, flags, counts, tags, stamps, streams, firsts, *_ = zip(*rows, strict=True)
    many = len(rows)
    first = read_data_header(datagram)
    if magics.count(MAGIC) != many or kinds.count(_DATA) != many or tags.count(first.label_tag) != many:
        return None
    if max(flags) >= HAS_URGENT:
        return None
    if stamps.count(first.stamp) != many or streams.count(first.stream) != many:
        return None
    if tuple(map(add, firsts[:-1], counts)) != firsts[1:]:
        return None
    # The last one says how far the stream is done and how far it goes.
    *_, done_to, position = rows[-1]
    if not first.position <= position <= UINT_MAX or not first.done_to <= done_to <= UINT_MAX:
        return None
    count = firsts[-1] + counts[-1] - first.first
    header = _new(DataHeader, (*first[:3], count, *first[4:9], done_to, position))
    return Train(datagram, size, firsts, counts, header)


class Train:
    """Consecutive batches. Reads like one batch without keys; `header` is that of all of them together."""

    __slots__ = ("_counts", "count", "datagram", "first", "firsts", "header", "sent_at", "shards", "size", "stamp")

    def __init__(
        self, datagram: bytes, size: int, firsts: Sequence[int], counts: Sequence[int], header: DataHeader
    ) -> None:
        self.size = size
        """Of each frame but the last."""
        self._counts = counts
        self.datagram = datagram
        self.header = header
        self.firsts = firsts
        """The first sequence of each frame."""
        self.first = header.first
        self.count = header.count
        self.stamp = header.stamp
        self.sent_at = header.sent_at
        self.shards = None

    has_urgent = False
    """A train with urgent messages is split."""

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def plain_bodies(self, indices: Sequence[int]) -> Sequence[Any] | None:
        """As of a batch. Raises WireError if any of the frames is not what its header says."""
        found = self._raw_bodies(indices) if isinstance(indices, range) and indices.step > 0 else []
        for batch, own in self.batches(indices[len(found) :]) if len(found) < len(indices) else ():
            bodies = batch.plain_bodies(own)
            if bodies is None:
                return None
            found += bodies
        return found

    def contents(self, indices: Sequence[int]) -> list[Content | None]:
        """As of a batch."""
        return list(chain.from_iterable(batch.contents(own) for batch, own in self.batches(indices)))

    def batches(self, indices: Sequence[int]) -> list[tuple[Batch, Sequence[int]]]:
        """Each frame that has any of these, with their places in it. A stride of the train is one of each frame."""
        found: list[tuple[Batch, Sequence[int]]] = []
        stride = indices.step if isinstance(indices, range) and indices.step > 0 else 0
        below = 0
        for frame, first, count in zip(split(self.datagram, self.size), self.firsts, self._counts, strict=True):
            before = first - self.first
            if stride:
                start, below = below, _below(indices, before + count)
                own: Sequence[int] = range(indices[start] - before, count, stride) if start < below else ()
            else:
                own = [index - before for index in indices if before <= index < before + count]
            if own:
                found.append((Batch(frame, self.header._replace(flags=frame[5], first=first, count=count)), own))
        return found

    def frames_with(self, first: int, last: int) -> list[bytes]:
        """The frames that have any of these sequences."""
        frames = zip(split(self.datagram, self.size), self.firsts, self._counts, strict=True)
        return [frame for frame, begin, count in frames if begin <= last and begin + count > first]

    def _raw_bodies(self, indices: range) -> list[bytes]:
        """Those in the leading frames that are all alike: raw records of one length, so many in each of them."""
        datagram, size, per_frame = self.datagram, self.size, self._counts[0]
        flags, whole = datagram[5::size], len(datagram) // size
        alike = min(_leading(flags, flags[0]), _leading(self._counts, per_frame), whole)
        if flags[0] not in _RAW_AND_EVEN:
            return []
        # The length of the records stands at the end of each frame.
        high, low = datagram[size - 2 :: size], datagram[size - 1 :: size]
        alike = min(alike, _leading(high, high[0]), _leading(low, low[0]))
        each = high[0] << 8 | low[0]
        if _START + per_frame * each + 2 > size:
            raise WireError("a batch that is cut or too long")
        count = _below(indices, alike * per_frame)
        if not count:
            return []
        own = _own_records(size, each, per_frame, indices.start, indices.step, count)
        return list(own.unpack_from(datagram))


@lru_cache(maxsize=64)
def _own_records(size: int, each: int, per_frame: int, start: int, step: int, count: int) -> Struct:
    """Records of one length out of frames of one size, every `step`-th; all that lies between them is passed over."""
    form, at = [], 0
    for index in range(start, start + count * step, step):
        frame, place = divmod(index, per_frame)
        begins = frame * size + _START + place * each
        form.append(f"{begins - at}x{each}s")
        at = begins + each
    return Struct("".join(form))


def _leading(values: Sequence[int], value: int) -> int:
    """How many stand at the beginning that are this value."""
    count = values.count(value)
    while count and values[:count].count(value) != count:
        count = values[:count].count(value)
    return count


def _below(indices: Sequence[int], value: int) -> int:
    """How many of a rising range are below a value."""
    assert isinstance(indices, range)
    return min(len(indices), max(0, -(-(value - indices.start) // indices.step)))


Run = Batch | Whole | Train
"""A run of consecutive messages as a datagram, or the fragments of one message, brought it."""
