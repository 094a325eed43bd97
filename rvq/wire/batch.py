"""Many messages in one frame, and one message in many. Owns data bodies: offsets, shards, records, fragments.

A batch is a table of record ends (16 bits each), with keys a table of shards, then the records. A receiver unpacks the
tables at once and slices out its own stride; it never touches the others' records. Hot path: tuples and locals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

import msgpack

from rvq.errors import BadMessage, MessageTooLarge, WireError
from rvq.limits import DATAGRAM_COST_BYTES, FRAGMENTS_MAX, FRAME_MESSAGES_MAX, MESSAGE_BYTES_MAX
from rvq.wire.codec import DATA_HEADER, MAGIC, read_data_header
from rvq.wire.frames import DataFlag, DataHeader, FrameType

SHARDS: Final = 1024
"""Keys are spread over this many shards, and shards over lanes."""

NO_SHARD: Final = 0xFFFF
"""Stands in the table of shards for a message without a key."""

_FRAGMENT: Final = Struct(">IIBH")
"""Part, number of parts, kind of the whole record, shard."""

FRAGMENT_OVERHEAD: Final = DATA_HEADER.size + _FRAGMENT.size

_TRUSTED_BYTES: Final = 4096
"""Records up to this size are unpacked unseen: the lists that they could claim cost a few milliseconds at most."""


class Kind(IntEnum):
    """How a record is to be read."""

    RAW = 0
    PACKED = 1
    RICH = 2
    """msgpack of [body, {attribute: value}]."""


class Attribute(IntEnum):
    """The optional attributes of a rich record."""

    KEY = 1
    HEADERS = 2
    DUE_AT = 3
    TTL = 4


# Plain ints for the hot paths: in Python 3.11 `flags & DataFlag.RAW` takes longer than to read a record.
_RAW, _PACKED, _RICH = int(Kind.RAW), int(Kind.PACKED), int(Kind.RICH)
_KEY, _HEADERS = int(Attribute.KEY), int(Attribute.HEADERS)
_ALL_RAW, _MIXED, _KEYED = int(DataFlag.RAW), int(DataFlag.MIXED), int(DataFlag.KEYED)
_DATA = int(FrameType.DATA)
_FLAGS: Final = frozenset({0, _ALL_RAW, _MIXED, _KEYED, _ALL_RAW | _KEYED, _MIXED | _KEYED})
_SHARDS: Final = frozenset({*range(SHARDS), NO_SHARD})
_KIND_BYTES: Final = [bytes([kind]) for kind in Kind]
_new = tuple.__new__
_unpackb = msgpack.unpackb
_UNPACKABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
_UNREADABLE: Final = (ValueError, TypeError, msgpack.UnpackException, RecursionError)
"""What msgpack raises on bad bytes: TypeError is for maps with maps as keys."""


class Record(NamedTuple):
    """One message, ready for a frame."""

    kind: int
    data: bytes
    shard: int


class Content(NamedTuple):
    """One message, read."""

    body: Any
    key: str | bytes | None = None
    headers: dict[str, Any] | None = None


@lru_cache(maxsize=1024)
def _shorts(count: int) -> Struct:
    return Struct(f">{count}H")


def shard_of(key: str | bytes) -> int:
    """The shard of a key: the same on every host and in every version of Python."""
    raw = key.encode() if isinstance(key, str) else key
    return int.from_bytes(blake2b(raw, digest_size=4, person=b"rvq shard").digest(), "big") % SHARDS


def make_record(body: Any, key: str | bytes | None = None, headers: dict[str, Any] | None = None) -> Record:
    """Pack one message. Raises BadMessage for what msgpack cannot take and MessageTooLarge over the limit."""
    kind, shard = _PACKED, NO_SHARD
    if key is None and not headers:
        if type(body) is bytes:
            kind, data = _RAW, body
        else:
            data = _pack(body)
    else:
        kind = _RICH
        data = _pack([body, _attributes(key, headers)])
        if key is not None:
            shard = shard_of(key)
    if len(data) > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(len(data), MESSAGE_BYTES_MAX)
    return _new(Record, (kind, data, shard))


class Records(NamedTuple):
    """Many messages, ready for frames: one list for each field of `Record`."""

    kinds: list[int]
    datas: list[bytes]
    shards: list[int]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        kinds, datas, shards = zip(*records, strict=True)
        return cls(list(kinds), list(datas), list(shards))

    def part(self, start: int, stop: int) -> Records:
        return Records(self.kinds[start:stop], self.datas[start:stop], self.shards[start:stop])


def make_records(bodies: list[Any]) -> Records:
    """Pack many messages without keys or headers: as `make_record` of each, with next to nothing done for each."""
    count = len(bodies)
    types = set(map(type, bodies))
    if types == {bytes}:
        records = Records([_RAW] * count, bodies, [NO_SHARD] * count)
    elif bytes in types:
        return Records.of(map(make_record, bodies))
    else:
        try:
            records = Records([_PACKED] * count, list(map(msgpack.Packer().pack, bodies)), [NO_SHARD] * count)
        except _UNPACKABLE:
            return Records.of(map(make_record, bodies))  # finds the one, and says what is wrong with it
    longest = max(map(len, records.datas))
    if longest > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(longest, MESSAGE_BYTES_MAX)
    return records


def _attributes(key: str | bytes | None, headers: dict[str, Any] | None) -> dict[int, Any]:
    attributes: dict[int, Any] = {}
    if key is not None:
        if not isinstance(key, (str, bytes)) or not key:
            raise BadMessage(f"key {key!r:.60} cannot be used: give text or bytes that are not empty")
        attributes[_KEY] = key
    if headers:
        if not isinstance(headers, dict) or not all(isinstance(name, str) for name in headers):
            raise BadMessage("headers must be a dict whose names are text")
        attributes[_HEADERS] = headers
    return attributes


def _pack(body: Any) -> bytes:
    try:
        packed: bytes = msgpack.packb(body)
    except _UNPACKABLE as error:
        raise BadMessage(
            f"this message cannot be packed ({error}): send what msgpack takes (None, bool, 64-bit int, float, "
            "str, bytes, list, dict of these), or bytes that you packed yourself"
        ) from error
    return packed


def read_record(kind: int, data: bytes) -> Content:
    """One message from its record. Raises WireError if it cannot be read."""
    if kind == _RAW:
        return _new(Content, (data, None, None))
    if kind != _PACKED and kind != _RICH:
        raise WireError(f"a record of the unknown kind {kind}")
    if len(data) > _TRUSTED_BYTES:
        _check_lists(data)
    try:
        value = _unpack(data)
    except _UNREADABLE as error:
        raise WireError("a record is not msgpack") from error
    if kind == _PACKED:
        return _new(Content, (value, None, None))
    return _read_rich(value)


def _unpack(data: bytes) -> Any:
    try:
        return _unpackb(data, strict_map_key=False)
    except TypeError:
        # A dict with tuples as keys: msgpack packs them as lists, and cannot make keys of lists.
        return _unpackb(data, strict_map_key=False, object_pairs_hook=_with_tuple_keys)


def _with_tuple_keys(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {_as_key(key): value for key, value in pairs}


def _as_key(key: Any) -> Any:
    return tuple(map(_as_key, key)) if type(key) is list else key


def _read_rich(value: Any) -> Content:
    if type(value) is not list or len(value) != 2 or type(value[1]) is not dict:
        raise WireError("a record of unknown shape")
    body, attributes = value
    key, headers = attributes.get(_KEY), attributes.get(_HEADERS)
    if key is not None and (type(key) not in (str, bytes) or not key):
        raise WireError("a record with an odd key")
    if headers is not None and (type(headers) is not dict or not all(type(name) is str for name in headers)):
        raise WireError("a record with odd headers")
    return _new(Content, (body, key, headers))


def _check_lists(data: bytes) -> None:
    """Refuse lists that are longer than their record, before a list of that length is made for each level of nesting.

    Only lists with a 16 or 32-bit length can lie by much, so a record without their bytes needs no look.
    """
    if b"\xdc" not in data and b"\xdd" not in data:
        return
    unpacker = msgpack.Unpacker(max_buffer_size=len(data), strict_map_key=False)
    unpacker.feed(data)
    try:
        unpacker.skip()
    except _UNREADABLE as error:
        raise WireError("a record is not msgpack") from error


# --- batches ------------------------------------------------------------------------------------------------------


RECORD_OVERHEAD: Final = 5
"""What a record takes of a frame beyond its bytes, at most: its kind, its end and its shard."""


def batch_cost(record: Record) -> int:
    """What a record takes of a frame at most."""
    return len(record.data) + RECORD_OVERHEAD


class Stamped(NamedTuple):
    """What the sender puts around the records of one frame."""

    label_tag: int
    stamp: int
    stream: int
    first: int
    sent_at: float
    done_to: int
    position: int
    """Bytes of the stream: up to the end of the frame for a batch or a tail, up to the start of the first fragment."""


def _header(kind: int, flags: int, count: int, at: Stamped, position: int) -> bytes:
    tag, stamp, stream, first, sent_at, done_to, _ = at
    return DATA_HEADER.pack(MAGIC, kind, flags, count, tag, stamp, stream, first, sent_at, done_to, position)


def encode_batch(at: Stamped, records: Records) -> bytes:
    """One data frame of 1 to FRAME_MESSAGES_MAX records. One kind: no kinds are written. No keys: no shards are.

    The caller keeps the sum of their `batch_cost` within a datagram, so that ends fit 16 bits.
    """
    kinds, datas, shards = records
    count = len(datas)
    flags = 0
    if kinds.count(_RAW) == count:
        flags = _ALL_RAW
    elif kinds.count(_PACKED) != count:
        flags = _MIXED
        datas = [_KIND_BYTES[kind] + data for kind, data in zip(kinds, datas, strict=True)]
    tables = _shorts(count).pack(*accumulate(map(len, datas)))
    if shards.count(NO_SHARD) != count:
        flags |= _KEYED
        tables += _shorts(count).pack(*shards)
    return b"".join((_header(_DATA, flags, count, at, at.position), tables, *datas))


class Batch:
    """A received data frame. Holds the datagram as it came and its unpacked tables."""

    __slots__ = ("_base", "count", "datagram", "ends", "first", "flags", "sent_at", "shards", "stamp")

    def __init__(self, datagram: bytes, header: DataHeader) -> None:
        count, flags = header.count, header.flags
        if not 0 < count <= FRAME_MESSAGES_MAX or not header.first or flags not in _FLAGS:
            raise WireError(f"a batch of {count} from {header.first} with flags {flags}")
        keyed = flags & _KEYED
        base = DATA_HEADER.size + (4 if keyed else 2) * count
        tables = _shorts(count)
        try:
            ends: tuple[int, ...] = tables.unpack_from(datagram, DATA_HEADER.size)
            shards: tuple[int, ...] | None = (
                tables.unpack_from(datagram, DATA_HEADER.size + 2 * count) if keyed else None
            )
        except StructError as error:
            raise WireError("a batch without its tables") from error
        if base + ends[-1] != len(datagram):
            raise WireError("a batch that is cut or too long")
        # Ends out of order would let a small frame hold many long messages. Sorting what is sorted is a cheap look.
        if sorted(ends) != list(ends):
            raise WireError("a batch with ends out of order")
        if shards is not None and not _SHARDS.issuperset(shards):
            raise WireError("a batch with shards that do not exist")
        self._base = base
        self.ends = ends
        self.shards = shards
        self.datagram = datagram
        self.first = header.first
        self.count = count
        self.stamp = header.stamp
        self.flags = flags
        self.sent_at = header.sent_at

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def slices(self, indices: Sequence[int]) -> list[bytes]:
        """The records at these indices."""
        base, ends, datagram = self._base, self.ends, self.datagram
        if isinstance(indices, range) and indices and indices.step > 0:
            # One stride: two slices of the table of ends give all starts and ends at once.
            start, step = indices[0], indices.step
            stop = indices[-1] + 1
            uppers = ends[start:stop:step]
            lowers = ends[start - 1 : stop - 1 : step] if start else (0, *ends[step - 1 : stop - 1 : step])
            return [datagram[base + a : base + b] for a, b in zip(lowers, uppers, strict=True)]
        return [datagram[base + (ends[i - 1] if i else 0) : base + ends[i]] for i in indices]

    def plain_bodies(self, indices: Sequence[int]) -> list[Any] | None:
        """The bodies at these indices, if all of them are plain and can be read; else None, and see `contents`."""
        if self.flags & _MIXED:
            return None
        slices = self.slices(indices)
        if self.flags & _ALL_RAW:
            return slices
        if max(map(len, slices), default=0) > _TRUSTED_BYTES:
            return None
        try:
            return [_unpackb(data, strict_map_key=False) for data in slices]
        except _UNREADABLE:
            return None

    def contents(self, indices: Sequence[int]) -> list[Content | None]:
        """The messages at these indices; None for one that cannot be read."""
        plain = self.plain_bodies(indices)
        if plain is not None:
            return [_new(Content, (body, None, None)) for body in plain]
        slices = self.slices(indices)
        if self.flags & _MIXED:
            return [_read_or_none(data[0], data[1:]) if data else None for data in slices]
        return [_read_or_none(_PACKED, data) for data in slices]


def _read_or_none(kind: int, data: bytes) -> Content | None:
    try:
        return read_record(kind, data)
    except WireError:
        return None


def own_stride(first: int, count: int, slot: int, slots: int) -> range:
    """The indices of a frame that belong to the lane `slot` of `slots`, for messages without keys."""
    return range((slot - first) % slots, count, slots)


# --- fragments ----------------------------------------------------------------------------------------------------


def encode_fragments(at: Stamped, record: Record, frame_bytes: int) -> list[bytes]:
    """One message in as many frames as it takes. Each carries the position behind itself."""
    chunk = frame_bytes - FRAGMENT_OVERHEAD
    parts = -(-len(record.data) // chunk)
    position = at.position
    frames = []
    for part in range(parts):
        data = record.data[part * chunk : (part + 1) * chunk]
        position += DATAGRAM_COST_BYTES + FRAGMENT_OVERHEAD + len(data)
        head = _FRAGMENT.pack(part, parts, record.kind, record.shard)
        frames.append(_header(FrameType.FRAGMENT, 0, 1, at, position) + head + data)
    return frames


@dataclass(frozen=True, slots=True)
class Fragment:
    """A received fragment."""

    first: int
    stamp: int
    sent_at: float
    part: int
    parts: int
    kind: int
    shard: int
    data: bytes
    datagram: bytes


def read_fragment(datagram: bytes, header: DataHeader) -> Fragment:
    """A fragment from its datagram. Raises WireError."""
    try:
        part, parts, kind, shard = _FRAGMENT.unpack_from(datagram, DATA_HEADER.size)
    except StructError as error:
        raise WireError("a fragment without its head") from error
    data = datagram[FRAGMENT_OVERHEAD:]
    if header.count != 1 or not header.first or not part < parts <= FRAGMENTS_MAX or not data:
        raise WireError(f"part {part} of {parts}")
    # All parts but the last are of one size: so this bounds what the message can grow to while it is put together.
    if part < parts - 1 and len(data) * (parts - 1) >= MESSAGE_BYTES_MAX:
        raise WireError(f"{parts} parts of {len(data)} bytes are over the limit of a message")
    if kind > _RICH or shard not in _SHARDS:
        raise WireError(f"a fragment of kind {kind} and shard {shard}")
    return Fragment(header.first, header.stamp, header.sent_at, part, parts, kind, shard, data, datagram)


class Whole:
    """A message put together from its fragments: reads like a batch of one."""

    __slots__ = ("count", "data", "first", "kind", "sent_at", "shards", "stamp")

    def __init__(self, fragment: Fragment, data: bytes) -> None:
        self.first = fragment.first
        self.count = 1
        self.stamp = fragment.stamp
        self.kind = fragment.kind
        self.sent_at = fragment.sent_at
        self.shards = None if fragment.shard == NO_SHARD else (fragment.shard,)
        self.data = data

    @property
    def last(self) -> int:
        return self.first

    def plain_bodies(self, indices: Sequence[int]) -> list[Any] | None:
        """As of a batch: never plain enough."""
        return None

    def contents(self, indices: Sequence[int]) -> list[Content | None]:
        """As of a batch."""
        return [_read_or_none(self.kind, self.data) for _ in indices]


Run = Batch | Whole
"""A run of consecutive messages as one frame (or one set of fragments) brought it."""


def encode_tail(at: Stamped) -> bytes:
    """A probe that says how far the stream goes (`first` is its last sequence), sent behind the data it speaks of."""
    return _header(FrameType.TAIL, 0, 0, at, at.position)


def read_batch(datagram: bytes) -> Batch:
    """A batch from its datagram. Raises WireError."""
    header = read_data_header(datagram)
    if header.type != _DATA:
        raise WireError("not a batch")
    return Batch(datagram, header)
