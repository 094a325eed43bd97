"""What a journal keeps of a frame: all of it as it came, or the share that is one recorder's. Owns how that is bytes.

A block is a kind, flags and a payload. Whoever stores blocks adds its own checks; but nothing that is read here raises
anything but `WireError`, whatever the bytes. What is read gives messages one by one, or side by side as `columns`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from functools import partial
from itertools import accumulate, pairwise
from math import isfinite
from operator import add, lt
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from rvq.errors import WireError
from rvq.limits import FRAGMENTS_MAX, MESSAGE_BYTES_MAX, STORED_MESSAGES_MAX
from rvq.wire.batch import Batch, even_offsets, read_batch, read_shorts, write_shorts
from rvq.wire.codec import UINT_MAX, read_data_header
from rvq.wire.columns import (
    FRAME_MIXED,
    FRAME_RAW,
    Columns,
    check_run,
    columns_of_run,
    kind_of,
    make_columns,
    records_of,
)
from rvq.wire.fragments import Whole, read_fragment
from rvq.wire.frames import DataHeader
from rvq.wire.records import (
    NO_SHARD,
    PACKED,
    RAW,
    SHARDS,
    TRUSTED_BYTES,
    UNREADABLE,
    Content,
    read_or_none,
    unpack_trusted,
)
from rvq.wire.train import Run, Train, read_train


class StoredKind(IntEnum):
    """What a payload is."""

    FRAME = 1
    """A DATA frame."""
    TRAIN = 2
    """The size of its frames (16 bits), and a train of them."""
    FRAGMENTS = 3
    """How many there are (32 bits), the size of each (16 bits), and all fragments of one message."""
    SHARE = 4
    """Some of the messages of a frame or a train: those that were one recorder's."""


class ShareFlag(IntFlag):
    """The flags of a share; those of other kinds are 0."""

    RAW = 1
    MIXED = 2
    KEYED = 4
    EVEN = 8
    """As of a DATA frame."""
    STRIDE = 16
    """The places are said by the first of them and a step, not one by one."""


SHARE_HEADER: Final = Struct(">IIQQdI")
"""Label tag, stamp, stream, the frame's first sequence, time of sending, how many messages the share has."""

STRIDE: Final = Struct(">HH")
"""The place of the first message in its frame, and how far the next ones are from each other."""

PLACES: Final = 1 << 16
"""Places in a frame are below this."""

_TRAIN: Final = Struct(">H")
_FRAGMENTS: Final = Struct(">I")
_length = Struct(">H")
_RAW, _MIXED, _KEYED, _EVEN, _STRIDE = (int(flag) for flag in ShareFlag)
_SHARDS: Final = frozenset({*range(SHARDS), NO_SHARD})

assert STORED_MESSAGES_MAX <= PLACES
assert (ShareFlag.RAW, ShareFlag.MIXED) == (FRAME_RAW, FRAME_MIXED), "a share says it as a frame does"


class Stored(NamedTuple):
    """A block of a journal, as it is to be written."""

    kind: int
    flags: int
    payload: bytes


# --- writing ------------------------------------------------------------------------------------------------------


def store(header: DataHeader, run: Run, datagrams: Sequence[bytes], places: Sequence[int] | None) -> Stored:
    """The block of a frame: all of it, or its messages at these places (rising indices).

    header, datagrams: as they came.  run: what they are read as.  Raises WireError if its records cannot be told apart.
    """
    if places is not None:
        return _share(header, run, places)
    if isinstance(run, Train):
        return Stored(StoredKind.TRAIN, 0, _TRAIN.pack(run.size) + run.datagram)
    if isinstance(run, Batch):
        return Stored(StoredKind.FRAME, 0, run.datagram)
    sizes = write_shorts(map(len, datagrams))
    return Stored(StoredKind.FRAGMENTS, 0, b"".join((_FRAGMENTS.pack(len(datagrams)), sizes, *datagrams)))


def _share(header: DataHeader, run: Run, places: Sequence[int]) -> Stored:
    if isinstance(run, Whole):
        raise WireError("a large message is never shared")
    flags, records = records_of(run, places)
    if not records or places[-1] >= PLACES:
        raise WireError(f"a share of {len(records)} messages")
    parts = [SHARE_HEADER.pack(header.label_tag, run.stamp, header.stream, run.first, run.sent_at, len(records))]
    if isinstance(places, range):
        flags |= _STRIDE
        parts.append(STRIDE.pack(places.start, places.step if len(places) > 1 else 1))
    else:
        parts.append(write_shorts(places))
    if run.shards is not None:
        shards = list(map(run.shards.__getitem__, places))
        if shards.count(NO_SHARD) != len(shards):
            flags |= _KEYED
            parts.append(write_shorts(shards))
    lens = list(map(len, records))
    if lens.count(lens[0]) == len(lens):
        flags |= _EVEN
        parts.append(_length.pack(lens[0]))
    else:
        parts.append(write_shorts(lens))
    return Stored(StoredKind.SHARE, flags, b"".join((*parts, *records)))


# --- reading ------------------------------------------------------------------------------------------------------


def read_stored(kind: int, flags: int, payload: bytes) -> StoredFrame:
    """A block that was stored. Raises WireError if it is none."""
    if kind == StoredKind.SHARE:
        return _read_share(flags, payload)
    if flags:
        raise WireError(f"a block of kind {kind} with flags {flags}")
    if kind == StoredKind.FRAME:
        datagrams: tuple[bytes, ...] = (payload,)
        run: Run = read_batch(payload)
    elif kind == StoredKind.TRAIN:
        datagrams = (payload[_TRAIN.size :],)
        run = _read_train(payload)
    elif kind == StoredKind.FRAGMENTS:
        datagrams = _read_datagrams(payload)
        run = _read_whole(datagrams)
    else:
        raise WireError(f"a block of the unknown kind {kind}")
    check_run(run, STORED_MESSAGES_MAX)
    header = read_data_header(datagrams[0])
    if header.first > UINT_MAX - run.count:
        raise WireError("a frame with sequences that nobody reaches")
    sequences = range(run.first, run.first + run.count)
    facts = (header.label_tag, header.stream, header.stamp, header.first, header.sent_at)
    return StoredFrame(*facts, sequences, datagrams, partial(columns_of_run, run, sequences))


def _read_train(payload: bytes) -> Train:
    try:
        (size,) = _TRAIN.unpack_from(payload)
    except StructError as error:
        raise WireError("a train without its size") from error
    train = read_train(payload[_TRAIN.size :], size)
    if train is None:
        raise WireError("a train that is none")
    return train


def _read_datagrams(payload: bytes) -> tuple[bytes, ...]:
    try:
        (count,) = _FRAGMENTS.unpack_from(payload)
    except StructError as error:
        raise WireError("fragments without their number") from error
    begin = _FRAGMENTS.size + 2 * count
    if not 0 < count <= FRAGMENTS_MAX or begin > len(payload):
        raise WireError(f"{count} fragments in {len(payload)} bytes")
    ends = list(accumulate(read_shorts(payload[_FRAGMENTS.size : begin]), initial=begin))
    if ends[-1] != len(payload):
        raise WireError("fragments that are cut or too long")
    return tuple(payload[start:end] for start, end in pairwise(ends))


def _read_whole(datagrams: Sequence[bytes]) -> Whole:
    parts = [read_fragment(datagram, read_data_header(datagram)) for datagram in datagrams]
    first = parts[0]
    alike = {(part.first, part.stamp, part.parts) for part in parts}
    streams = {read_data_header(datagram).stream for datagram in datagrams}
    if [part.part for part in parts] != list(range(first.parts)) or len(alike) != 1 or len(streams) != 1:
        raise WireError("fragments that are not all of one message")
    if sum(len(part.data) for part in parts) > MESSAGE_BYTES_MAX:
        raise WireError("fragments of a message over the limit")
    return Whole(first, b"".join([part.data for part in parts]))


def _read_share(flags: int, payload: bytes) -> StoredFrame:
    if not 0 <= flags < 2 * _STRIDE or (flags & _RAW and flags & _MIXED):
        raise WireError(f"a share with flags {flags}")
    try:
        tag, stamp, stream, first, sent_at, count = SHARE_HEADER.unpack_from(payload)
    except StructError as error:
        raise WireError("a share without its head") from error
    if not first or stream | first > UINT_MAX - PLACES or not isfinite(sent_at):
        raise WireError("a share with numbers out of range")
    if not count:
        raise WireError("a share of nothing")
    rest = Tables(payload, SHARE_HEADER.size)
    sequences: Sequence[int]
    if flags & _STRIDE:
        start, step = rest.shorts(2)
        if not step or start + (count - 1) * step >= PLACES:
            raise WireError("a share of places that there are not")
        sequences = range(first + start, first + start + (count - 1) * step + 1, step)
    else:
        places = rest.shorts(count)
        if not all(map(lt, places[:-1], places[1:])):
            raise WireError("a share with places out of order")
        sequences = array("q", map(partial(add, first), places))
    shards = rest.shorts(count) if flags & _KEYED else None
    if shards is not None and not _SHARDS.issuperset(shards):
        raise WireError("a share with shards that do not exist")
    offsets = (
        even_offsets(0, rest.shorts(1)[0], count)
        if flags & _EVEN
        else array("i", accumulate(rest.shorts(count), initial=0))
    )
    data = memoryview(payload)[rest.at :]
    if offsets[-1] != len(data):
        raise WireError("a share that is cut or too long")
    columns = partial(make_columns, sequences, data, offsets, kind_of(flags), shards)
    return StoredFrame(tag, stream, stamp, first, sent_at, sequences, None, columns)


class Tables:
    """Numbers of 16 bits in a payload, table after table."""

    __slots__ = ("_payload", "at")

    def __init__(self, payload: bytes, at: int) -> None:
        self._payload = payload
        self.at = at

    def shorts(self, count: int) -> array[int]:
        end = self.at + 2 * count
        if end > len(self._payload):
            raise WireError("a share without its tables")
        table = read_shorts(self._payload[self.at : end])
        self.at = end
        return table


class StoredFrame:
    """A block, read: where its messages came from, and what they are."""

    __slots__ = ("_columns", "_make", "datagrams", "first", "label_tag", "sent_at", "sequences", "stamp", "stream")

    def __init__(
        self,
        label_tag: int,
        stream: int,
        stamp: int,
        first: int,
        sent_at: float,
        sequences: Sequence[int],
        datagrams: tuple[bytes, ...] | None,
        columns: partial[Columns],
    ) -> None:
        self.label_tag = label_tag
        self.stream = stream
        self.stamp = stamp
        self.first = first
        """The first sequence of the frame, be it in the block or not."""
        self.sent_at = sent_at
        self.sequences = sequences
        self.datagrams = datagrams
        """As they came: one, a train as one, or all fragments. None if only a share of the frame is here."""
        self._make = columns
        self._columns: Columns | None = None

    @property
    def count(self) -> int:
        return len(self.sequences)

    def columns(self) -> Columns:
        if self._columns is None:
            self._columns = self._make()
        return self._columns

    def records(self) -> list[bytes]:
        """Of each message, without its kind."""
        _, data, offsets, _, _ = self.columns()
        return [bytes(data[start:end]) for start, end in pairwise(offsets)]

    def plain_bodies(self) -> Sequence[Any] | None:
        """The bodies, if all messages are plain and can be read; else None, and see `contents`."""
        kinds = self.columns().kinds
        if kinds not in (RAW, PACKED):
            return None
        records = self.records()
        if kinds == RAW:
            return records
        if max(map(len, records)) > TRUSTED_BYTES:
            return None
        try:
            return list(map(unpack_trusted, records))
        except UNREADABLE:
            return None

    def contents(self) -> list[Content | None]:
        """The messages; None for one that cannot be read."""
        plain = self.plain_bodies()
        if plain is not None:
            return [Content(body) for body in plain]
        kinds, records = self.columns().kinds, self.records()
        if isinstance(kinds, int):
            return [read_or_none(kinds, record) for record in records]
        return [read_or_none(kind, record) for kind, record in zip(kinds, records, strict=True)]
