"""Many messages in one frame. Owns data bodies: records, then the tables behind them that say where they are.

A batch is the records, with keys a table of shards, and a table of bounds (16 bits each); records of one length need
only that length. A receiver slices out its own stride; it never touches the others' records. Hot path: tuples, locals.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import sub
from struct import Struct
from typing import Any, Final, NamedTuple

from rvq.errors import WireError
from rvq.limits import FLIGHT_COST_BYTES, FRAME_MESSAGES_MAX
from rvq.wire.codec import DATA_HEADER, MAGIC, read_data_header
from rvq.wire.frames import DataFlag, DataHeader, FrameType
from rvq.wire.records import (
    NO_SHARD,
    PACKED,
    RAW,
    SHARDS,
    TRUSTED_BYTES,
    UNREADABLE,
    URGENT,
    Content,
    Kind,
    Records,
    read_or_none,
    unpack_trusted,
)

RECORD_OVERHEAD: Final = 5
"""What a record takes of a frame beyond its bytes, at most: its kind, its bound and its shard."""

BATCH_OVERHEAD: Final = DATA_HEADER.size + 2
"""What a batch takes beyond its records and their overheads: there is one bound more than there are records."""

PADDING: Final = b"\xff"
"""Of no meaning; but if a padded frame is cut, this stands where the tables should be, and is no table."""

FEW: Final = 8
"""Up to so many records are sliced one by one; more, in blocks of powers of two, each by one call."""

# Plain ints for the hot paths: in Python 3.11 `flags & DataFlag.RAW` takes longer than to read a record.
_ALL_RAW, _MIXED, _KEYED, _EVEN, _PADDED, HAS_URGENT = (int(flag) for flag in DataFlag)
_DATA = int(FrameType.DATA)
_START: Final = DATA_HEADER.size
_FLAGS: Final = frozenset(
    kind | keyed | even | padded | urgent
    for kind in (0, _ALL_RAW, _MIXED)
    for keyed in (0, _KEYED)
    for even in (0, _EVEN)
    for padded in (0, _PADDED)
    for urgent in ((0, HAS_URGENT) if kind == _MIXED else (0,))
)
_SHARDS: Final = frozenset({*range(SHARDS), NO_SHARD})
_KIND_BYTES: Final = [bytes([kind]) for kind in Kind]
_SWAP: Final = sys.byteorder == "little"
_new = tuple.__new__
_length = Struct(">H")


class Stamped(NamedTuple):
    """What the sender puts around the records of one frame."""

    label_tag: int
    stamp: int
    stream: int
    first: int
    sent_at: float
    done_to: int
    position: int
    """Bytes of the stream before this frame."""


def header_of(kind: int, flags: int, count: int, at: Stamped, position: int) -> bytes:
    """The header of a data frame that ends at this position."""
    tag, stamp, stream, first, sent_at, done_to, _ = at
    return DATA_HEADER.pack(MAGIC, kind, flags, count, tag, stamp, stream, first, sent_at, done_to, position)


@lru_cache(maxsize=1024)
def _shorts(count: int) -> Struct:
    return Struct(f">{count}H")


def encode_batch(at: Stamped, records: Records, size_least: int = 0) -> bytes:
    """One data frame of 1 to FRAME_MESSAGES_MAX records. Says no more than it must: kinds only if they differ, bounds
    only if the lengths do, shards only if there are keys. A frame below `size_least` bytes is padded.

    The caller keeps the sum of lengths and overheads within a datagram, so that bounds fit 16 bits.
    """
    datas, lens, kinds, shards = records
    count = len(datas)
    flags = 0
    if kinds.count(RAW) == count:
        flags = _ALL_RAW
    elif kinds.count(PACKED) != count:
        flags = _MIXED | HAS_URGENT if URGENT in kinds else _MIXED
        datas = [_KIND_BYTES[kind] + data for kind, data in zip(kinds, datas, strict=True)]
        lens = [length + 1 for length in lens]
    if lens.count(lens[0]) == count:
        flags |= _EVEN
        size = _START + count * lens[0] + 2
        table = _length.pack(lens[0])
    else:
        bounds = list(accumulate(lens, initial=_START))
        size = bounds[-1] + 2 * count + 2
        table = _shorts(count + 1).pack(*bounds)
    if shards is not None and shards.count(NO_SHARD) != count:
        flags |= _KEYED
        size += 2 * count
        table = _shorts(count).pack(*shards) + table
    if size < size_least:
        flags |= _PADDED
        table = PADDING * (size_least - size) + table
        size = size_least
    header = header_of(_DATA, flags, count, at, at.position + size + FLIGHT_COST_BYTES)
    return b"".join((header, *datas, table))


def encode_even_batches(at: Stamped, records: Records, per_frame: int, size: int) -> list[bytes]:
    """As `encode_batch` for frame after frame of so many plain records of one length, each padded to this size."""
    datas, lens, kinds, _ = records
    flags = _EVEN | (_ALL_RAW if kinds[0] == RAW else 0)
    padding = size - _START - per_frame * lens[0] - 2
    if padding:
        flags |= _PADDED
    table = PADDING * padding + _length.pack(lens[0])
    tag, stamp, stream, first, sent_at, done_to, position = at
    frames = []
    for start in range(0, len(datas), per_frame):
        position += size + FLIGHT_COST_BYTES
        header = DATA_HEADER.pack(
            MAGIC, _DATA, flags, per_frame, tag, stamp, stream, first + start, sent_at, done_to, position
        )
        frames.append(b"".join((header, *datas[start : start + per_frame], table)))
    return frames


class Batch:
    """A received data frame. Holds the datagram as it came; its tables are read as far as they are asked for."""

    __slots__ = ("_bounds", "_each", "count", "datagram", "first", "flags", "sent_at", "shards", "stamp")

    def __init__(self, datagram: bytes, header: DataHeader) -> None:
        count, flags = header.count, header.flags
        if not 0 < count <= FRAME_MESSAGES_MAX or not header.first or flags not in _FLAGS:
            raise WireError(f"a batch of {count} from {header.first} with flags {flags}")
        table_at = len(datagram) - (2 if flags & _EVEN else 2 * count + 2)
        end = table_at - 2 * count if flags & _KEYED else table_at
        if end < _START:
            raise WireError("a batch without its tables")
        if flags & _EVEN:
            self._bounds = None
            (self._each,) = _length.unpack_from(datagram, table_at)
            used = _START + count * self._each
        else:
            self._bounds = bounds = read_shorts(datagram[table_at:])
            used = bounds[-1] if bounds[0] == _START else -1
        if used != end and not (flags & _PADDED and _START <= used < end):
            raise WireError("a batch that is cut or too long")
        self.shards: array[int] | None = None
        if flags & _KEYED:
            self.shards = read_shorts(datagram[end:table_at])
            if not _SHARDS.issuperset(self.shards):
                raise WireError("a batch with shards that do not exist")
        self.datagram = datagram
        self.first = header.first
        self.count = count
        self.stamp = header.stamp
        self.flags = flags
        self.sent_at = header.sent_at

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    @property
    def has_urgent(self) -> bool:
        return bool(self.flags & HAS_URGENT)

    def check(self) -> None:
        """Raises WireError if any record ends before it begins: else that is found only for those that are read."""
        bounds = self._bounds
        if bounds is not None and list(bounds) != sorted(bounds):
            raise WireError("a batch with bounds out of order")

    def offsets(self) -> array[int]:
        """Where each record begins in the datagram, and where the last one ends. Of a batch that was checked."""
        if self._bounds is not None:
            return array("i", self._bounds)
        return even_offsets(_START, self._each, self.count)

    def slices(self, indices: Sequence[int]) -> Sequence[bytes]:
        """The records at these indices. Raises WireError if one ends before it begins, or all exceed the frame."""
        bounds, datagram = self._bounds, self.datagram
        if bounds is None:
            return self._even_slices(indices)
        if isinstance(indices, range) and indices and indices.step > 0:
            # One stride: two slices of the bounds give all starts and ends at once.
            start, stop, step = indices[0], indices[-1] + 1, indices.step
            starts: Sequence[int] = bounds[start:stop:step]
            ends: Sequence[int] = bounds[start + 1 : stop + 1 : step]
        else:
            starts, ends = [bounds[i] for i in indices], [bounds[i + 1] for i in indices]
        # Bounds out of order would let a small frame hold many long messages. Looked at for those only that are asked.
        lens = list(map(sub, ends, starts))
        if lens and (min(lens) < 0 or sum(lens) > len(datagram)):
            raise WireError("a batch with bounds out of order")
        return [datagram[start:end] for start, end in zip(starts, ends, strict=True)]

    def _even_slices(self, indices: Sequence[int]) -> Sequence[bytes]:
        each, datagram = self._each, self.datagram
        if isinstance(indices, range) and indices and indices.step > 0:
            return slice_stride(datagram, _START + indices[0] * each, each, indices.step, len(indices))
        return [datagram[_START + i * each : _START + i * each + each] for i in indices]

    def plain_bodies(self, indices: Sequence[int]) -> Sequence[Any] | None:
        """The bodies at these indices, if all of them are plain and can be read; else None, and see `contents`.

        Raises WireError as `slices` does.
        """
        if self.flags & _MIXED:
            return None
        slices = self.slices(indices)
        if self.flags & _ALL_RAW:
            return slices
        if max(map(len, slices), default=0) > TRUSTED_BYTES:
            return None
        try:
            return list(map(unpack_trusted, slices))
        except UNREADABLE:
            return None

    def contents(self, indices: Sequence[int]) -> list[Content | None]:
        """The messages at these indices; None for one that cannot be read. Raises WireError as `slices` does."""
        plain = self.plain_bodies(indices)
        if plain is not None:
            return [Content(body) for body in plain]
        slices = self.slices(indices)
        if self.flags & _MIXED:
            return [read_or_none(data[0], data[1:]) if data else None for data in slices]
        return [read_or_none(PACKED, data) for data in slices]


def write_shorts(numbers: Iterable[int]) -> bytes:
    """Numbers of 16 bits, as in the tables of a frame."""
    shorts = array("H", numbers)
    if _SWAP:
        shorts.byteswap()
    return shorts.tobytes()


def read_shorts(data: bytes) -> array[int]:
    """The same from their bytes."""
    shorts = array("H", data)
    if _SWAP:
        shorts.byteswap()
    return shorts


def even_offsets(start: int, each: int, count: int) -> array[int]:
    """Where each of so many records of one length begins, and where the last one ends."""
    return array("i", range(start, start + each * count + 1, each)) if each else array("i", [start]) * (count + 1)


@lru_cache(maxsize=256)
def _block(each: int, step: int, count: int) -> Struct:
    """So many records of one length, each `step` records behind the last: what lies between them is passed over."""
    return Struct(f"{each}s{(step - 1) * each}x" * (count - 1) + f"{each}s")


def slice_stride(datagram: bytes, at: int, each: int, step: int, count: int) -> Sequence[bytes]:
    """`count` records of `each` bytes from `at` on, every `step`-th. In blocks: so their formats are few, and kept."""
    width = each * step
    if count <= FEW:
        return [datagram[at + n * width : at + n * width + each] for n in range(count)]
    found: list[bytes] = []
    while count:
        block = min(1 << count.bit_length() - 1, 1024)
        found += _block(each, step, block).unpack_from(datagram, at)
        at += block * width
        count -= block
    return found


def own_stride(first: int, count: int, slot: int, slots: int) -> range:
    """The indices of a frame that belong to the lane `slot` of `slots`, for messages without keys."""
    return range((slot - first) % slots, count, slots)


def encode_tail(at: Stamped) -> bytes:
    """A probe that says how far the stream goes (`first` is its last sequence), sent behind the data it speaks of."""
    return header_of(FrameType.TAIL, 0, 0, at, at.position)


def read_batch(datagram: bytes) -> Batch:
    """A batch from its datagram. Raises WireError."""
    header = read_data_header(datagram)
    if header.type != _DATA:
        raise WireError("not a batch")
    return Batch(datagram, header)
