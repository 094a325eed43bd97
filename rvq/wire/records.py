"""Messages as bytes, one by one. Owns records: their kinds, keys, headers and shards; `batch` puts them into frames."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import partial
from hashlib import blake2b
from math import inf
from typing import Any, Final, NamedTuple

import msgpack

from rvq.errors import BadMessage, MessageTooLarge, WireError
from rvq.limits import MESSAGE_BYTES_MAX

SHARDS: Final = 1024
"""Keys are spread over this many shards, and shards over lanes."""

NO_SHARD: Final = 0xFFFF
"""Stands for the shard of a message without a key."""

TRUSTED_BYTES: Final = 4096
"""Records up to this size are unpacked unseen: the lists that they could claim cost a few milliseconds at most."""


class Kind(IntEnum):
    """How a record is to be read."""

    RAW = 0
    PACKED = 1
    RICH = 2
    """msgpack of [body, {attribute: value}]."""
    LATER = 3
    """As RICH, with a due time: who keeps order and frames knows without reading it that it will wait."""
    URGENT = 4
    """As RICH, to be handled before those that wait: a receiver looks for it as soon as its frame is there."""


class Attribute(IntEnum):
    """The optional attributes of a rich record."""

    KEY = 1
    HEADERS = 2
    DUE_AT = 3
    TTL = 4


# Plain ints for the hot paths: in Python 3.11 an IntEnum in a comparison takes longer than to read a record.
RAW, PACKED, RICH, LATER, URGENT = (int(kind) for kind in Kind)
_KEY, _HEADERS, _DUE_AT, _TTL = (int(attribute) for attribute in Attribute)
_RAW_BYTE, _PACKED_BYTE = bytes([RAW]), bytes([PACKED])
_new = tuple.__new__
unpack_trusted = partial(msgpack.unpackb, strict_map_key=False)
_UNPACKABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
UNREADABLE: Final = (ValueError, TypeError, msgpack.UnpackException, RecursionError)
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
    due_at: float | None = None
    """Not to be handled before: seconds since 1970."""
    ttl: float | None = None
    """Not to be handled later than so many seconds after it was sent."""
    urgent: bool = False


_NOTHING: Final = (None, None, None, None, False)


def shard_of(key: str | bytes) -> int:
    """The shard of a key: the same on every host and in every version of Python."""
    raw = key.encode() if isinstance(key, str) else key
    return int.from_bytes(blake2b(raw, digest_size=4, person=b"rvq shard").digest(), "big") % SHARDS


def make_record(
    body: Any,
    key: str | bytes | None = None,
    headers: dict[str, Any] | None = None,
    due_at: float | None = None,
    ttl: float | None = None,
    urgent: bool = False,
) -> Record:
    """Pack one message. Raises BadMessage for what msgpack cannot take and MessageTooLarge over the limit."""
    kind, shard = PACKED, NO_SHARD
    if key is None and not headers and due_at is None and ttl is None and not urgent:
        if type(body) is bytes:
            kind, data = RAW, body
        else:
            data = pack(body)
    else:
        kind = RICH if due_at is None else LATER
        if urgent:
            if urgent is not True:
                raise BadMessage(f"urgent={urgent!r:.60} is neither True nor False: give one of them")
            if key is not None or due_at is not None:
                raise BadMessage("a message with a key or a due time has its place already: it cannot be urgent")
            kind = URGENT
        data = pack([body, _attributes(key, headers, due_at, ttl)])
        if key is not None:
            shard = shard_of(key)
    if len(data) > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(len(data), MESSAGE_BYTES_MAX)
    return _new(Record, (kind, data, shard))


class Records(NamedTuple):
    """Many messages, ready for frames: a list for each thing, so that nothing is done for each message in Python."""

    datas: list[bytes]
    lens: list[int]
    """Of each of the datas: asked once, and needed for the window, the cut and the table of a frame."""
    kinds: bytearray
    shards: list[int] | None
    """None if none of them has a key."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        kinds, datas, shards = zip(*records, strict=True)
        keyed = shards.count(NO_SHARD) != len(shards)
        return cls(list(datas), list(map(len, datas)), bytearray(kinds), list(shards) if keyed else None)

    @classmethod
    def plain(cls, kinds: bytearray, datas: list[bytes]) -> Records:
        """Without keys."""
        return _new(cls, (datas, list(map(len, datas)), kinds, None))

    def part(self, start: int, stop: int) -> Records:
        datas, lens, kinds, shards = self
        cut = None if shards is None else shards[start:stop]
        return _new(Records, (datas[start:stop], lens[start:stop], kinds[start:stop], cut))


def make_records(bodies: list[Any]) -> Records:
    """Pack many messages without keys or headers: as `make_record` of each, with next to nothing done for each."""
    count = len(bodies)
    types = list(map(type, bodies))
    raw = types.count(bytes)
    if raw == count:
        records = Records.plain(bytearray(_RAW_BYTE) * count, bodies)
    elif raw:
        return Records.of(map(make_record, bodies))
    else:
        try:
            records = Records.plain(bytearray(_PACKED_BYTE) * count, list(map(msgpack.Packer().pack, bodies)))
        except _UNPACKABLE:
            return Records.of(map(make_record, bodies))  # finds the one, and says what is wrong with it
    if sum(records.lens) > MESSAGE_BYTES_MAX:  # else none of them can be
        longest = max(records.lens)
        if longest > MESSAGE_BYTES_MAX:
            raise MessageTooLarge(longest, MESSAGE_BYTES_MAX)
    return records


def _attributes(
    key: str | bytes | None, headers: dict[str, Any] | None, due_at: float | None, ttl: float | None
) -> dict[int, Any]:
    attributes: dict[int, Any] = {}
    if key is not None:
        if not isinstance(key, (str, bytes)) or not key:
            raise BadMessage(f"key {key!r:.60} cannot be used: give text or bytes that are not empty")
        attributes[_KEY] = key
    if headers:
        if not isinstance(headers, dict) or not all(isinstance(name, str) for name in headers):
            raise BadMessage("headers must be a dict whose names are text")
        attributes[_HEADERS] = headers
    for attribute, seconds in ((_DUE_AT, due_at), (_TTL, ttl)):
        if seconds is not None:
            if type(seconds) not in (int, float) or not 0 <= seconds < inf:
                raise BadMessage(f"{seconds!r} is not a time: give seconds, not negative and not infinite")
            attributes[attribute] = float(seconds)
    return attributes


def pack(body: Any) -> bytes:
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
    if kind == RAW:
        return _new(Content, (data, *_NOTHING))
    if kind > URGENT:
        raise WireError(f"a record of the unknown kind {kind}")
    if len(data) > TRUSTED_BYTES:
        _check_lists(data)
    try:
        value = _unpack(data)
    except UNREADABLE as error:
        raise WireError("a record is not msgpack") from error
    if kind == PACKED:
        return _new(Content, (value, *_NOTHING))
    content = _read_rich(value, kind == URGENT)
    if (content.due_at is not None) != (kind == LATER) or (kind == URGENT and content.key is not None):
        raise WireError("a record whose attributes are not those of its kind")
    return content


def _unpack(data: bytes) -> Any:
    try:
        return unpack_trusted(data)
    except TypeError:
        # A dict with tuples as keys: msgpack packs them as lists, and cannot make keys of lists.
        return unpack_trusted(data, object_pairs_hook=_with_tuple_keys)


def _with_tuple_keys(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {_as_key(key): value for key, value in pairs}


def _as_key(key: Any) -> Any:
    return tuple(map(_as_key, key)) if type(key) is list else key


def _read_rich(value: Any, urgent: bool) -> Content:
    if type(value) is not list or len(value) != 2 or type(value[1]) is not dict:
        raise WireError("a record of unknown shape")
    body, attributes = value
    key, headers = attributes.get(_KEY), attributes.get(_HEADERS)
    if key is not None and (type(key) not in (str, bytes) or not key):
        raise WireError("a record with an odd key")
    if headers is not None and (type(headers) is not dict or not all(type(name) is str for name in headers)):
        raise WireError("a record with odd headers")
    due_at, ttl = attributes.get(_DUE_AT), attributes.get(_TTL)
    if not _is_time(due_at) or not _is_time(ttl):
        raise WireError("a record with odd times")
    return _new(Content, (body, key, headers, due_at, ttl, urgent))


def _is_time(value: Any) -> bool:
    return value is None or (type(value) is float and 0 <= value < inf)


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
    except UNREADABLE as error:
        raise WireError("a record is not msgpack") from error


def read_or_none(kind: int, data: bytes) -> Content | None:
    """As `read_record`; None if it cannot be read."""
    try:
        return read_record(kind, data)
    except WireError:
        return None
