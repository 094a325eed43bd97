"""Bytes <-> frames. Owns the header, the control bodies and their validation.

`decode_control` raises `WireError` and nothing else, whatever the bytes. Data bodies are `batch`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from math import isfinite
from struct import Struct
from struct import error as StructError
from typing import Any, Final, TypeVar

import msgpack

from rvq import limits
from rvq.errors import WireError
from rvq.wire import frames as f
from rvq.wire.records import SHARDS

T = TypeVar("T")
_new = tuple.__new__
Reader = Callable[[Any], T]

VERSION: Final = 1
MAGIC: Final = int.from_bytes(b"rvq" + bytes([VERSION]), "big")
"""The first four bytes of every frame: the name and the version of the protocol."""

HEADER: Final = Struct(">IBBHIIQQ")
"""Magic and version, type, flags, count, label tag, stamp, stream (who speaks), first sequence."""

DATA_HEADER: Final = Struct(">IBBHIIQQdQQ")
"""The same, and for data frames: time of sending, done up to, position in the stream."""

UINT_MAX: Final = 2**63 - 1
"""The largest number that is read. Half of what a field holds, so that who counts on from it can still be packed."""

LIST_MAX: Final = 4096
"""Entries of any list in a control body: msgpack makes a list as long as it claims to be before it reads an entry."""

assert max(limits.MEMBERS_MAX, limits.STREAMS_MAX, limits.REPORT_LANES_MAX, 2 * limits.REPORT_RANGES_MAX) <= LIST_MAX
assert HEADER.size == 32
assert DATA_HEADER.size == 56


def peek(datagram: bytes) -> tuple[int, int]:
    """The type and the label tag of a datagram. Raises WireError for strangers, other versions and cut headers."""
    try:
        magic, kind, _flags, _count, tag, _stamp, _stream, _first = HEADER.unpack_from(datagram)
    except StructError as error:
        raise WireError(f"{len(datagram)} bytes are no frame") from error
    if magic != MAGIC:
        raise WireError("not a frame of this protocol and version")
    return kind, tag


def speaker_of(datagram: bytes) -> int:
    """Who says that he speaks, in a datagram that was peeked at."""
    return int.from_bytes(datagram[16:24], "big")


def read_data_header(datagram: bytes) -> f.DataHeader:
    """The fixed part of a data frame. Raises WireError if it is cut, strange, or has numbers that nobody reaches."""
    try:
        fields = DATA_HEADER.unpack_from(datagram)
    except StructError as error:
        raise WireError(f"{len(datagram)} bytes are no data frame") from error
    # Hot: by position, since a name of a NamedTuple costs as much as the whole check.
    magic, _, _, _, _, _, stream, first, sent_at, done_to, position = fields
    if magic != MAGIC:
        raise WireError("not a frame of this protocol and version")
    if stream | first | done_to | position > UINT_MAX or not isfinite(sent_at):
        raise WireError("a data frame with numbers out of range")
    return _new(f.DataHeader, fields)


# --- reading control bodies ---------------------------------------------------------------------------------------


# Refusals name the type and not the value: printing what a stranger nested a thousand deep would raise RecursionError.


def _uint(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= UINT_MAX:
        raise WireError(f"not a number: {type(value).__name__}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise WireError(f"not a flag: {type(value).__name__}")
    return value


def _name(value: Any) -> str:
    if type(value) is not str or not value or len(value.encode("utf-8", "replace")) > limits.LABEL_BYTES_MAX:
        raise WireError(f"not a name: {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    """A name, or none."""
    return "" if type(value) is str and not value else _name(value)


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise WireError(f"not a duration: {type(value).__name__}")
    return float(value)


def _outcome(value: Any) -> int:
    if type(value) is not int or not f.Outcome.ACKED <= value <= f.Outcome.UNREADABLE:
        raise WireError(f"not an outcome: {type(value).__name__}")
    return value


def _order_outcome(value: Any) -> int:
    if type(value) is not int or not f.OrderOutcome.CARRIED_OUT <= value <= f.OrderOutcome.OVERRULED:
        raise WireError(f"not an outcome of an order: {type(value).__name__}")
    return value


def _weight(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= limits.WEIGHT_MAX:
        raise WireError(f"not a weight: {type(value).__name__}")
    return value


def _shard(value: Any) -> int:
    if type(value) is not int or not 0 <= value < SHARDS:
        raise WireError(f"not a shard: {type(value).__name__}")
    return value


def _many(reader: Reader[T], most: int) -> Reader[tuple[T, ...]]:
    def read(value: Any) -> tuple[T, ...]:
        if type(value) is not list or len(value) > most:
            raise WireError(f"not a list of at most {most}")
        return tuple(map(reader, value))

    return read


def _row(*readers: Reader[Any]) -> Reader[list[Any]]:
    """Fields in order, each with its own reader."""

    def read(value: Any) -> list[Any]:
        if type(value) is not list or len(value) != len(readers):
            raise WireError(f"not {len(readers)} fields")
        return [reader(field) for reader, field in zip(readers, value, strict=True)]

    return read


def _one(make: Callable[..., T], *readers: Reader[Any]) -> Reader[T]:
    row = _row(*readers)

    def read(value: Any) -> T:
        return make(*row(value))

    return read


def _runs(most: int) -> Reader[tuple[int, ...]]:
    """Runs (first, last, first, last, ...): in order, apart from each other, none empty."""
    numbers = _many(_uint, 2 * most)

    def read(value: Any) -> tuple[int, ...]:
        runs = numbers(value)
        if len(runs) % 2:
            raise WireError("a run without an end")
        below = -1
        for first, last in zip(runs[::2], runs[1::2], strict=True):
            if not below < first <= last:
                raise WireError("runs out of order")
            below = last
        return runs

    return read


def _rising(most: int) -> Reader[tuple[int, ...]]:
    """Numbers in order, each once."""
    numbers = _many(_uint, most)

    def read(value: Any) -> tuple[int, ...]:
        rising = numbers(value)
        if any(a >= b for a, b in pairwise(rising)):
            raise WireError("numbers out of order")
        return rising

    return read


def _members(value: Any) -> tuple[f.Member, ...]:
    """Members sorted by id, each once: the sorting is what makes everyone derive the same index."""
    members = _member_list(value)
    if any(a.id >= b.id for a, b in pairwise(members)):
        raise WireError("members out of order")
    if sum(member.weight for member in members) > limits.SLOTS_MAX:
        raise WireError("too many slots")
    return members


def _slot_holders(value: Any) -> tuple[f.Member, ...]:
    """The members in a stamp. At least one: messages without an owner cannot be sent, let alone handled."""
    members = _members(value)
    if not members:
        raise WireError("a stamp without slots")
    return members


def _shard_map(value: Any) -> tuple[int, ...]:
    """The slot of each shard, or nothing. Whether it is even is its keeper's affair; whether there are such slots is
    looked at where the members are known."""
    if type(value) is not list or len(value) not in (0, SHARDS) or any(type(slot) is not int for slot in value):
        raise WireError("not a map of all shards")
    return tuple(value)


def _check_slots(members: tuple[f.Member, ...], shard_map: tuple[int, ...]) -> None:
    if shard_map and not 0 <= min(shard_map) <= max(shard_map) < sum(member.weight for member in members):
        raise WireError("a shard without a slot")


def _table(value: Any) -> list[Any]:
    fields = _table_fields(value)
    _check_slots(fields[3], fields[5])
    return fields


def _group_stamp(value: Any) -> f.GroupStamp:
    entry = _group_stamp_fields(value)
    _check_slots(entry.members, entry.shard_map)
    return entry


def _stamp(value: Any) -> list[Any]:
    """A stamp has maps if and only if its messages may have keys."""
    fields = _stamp_fields(value)
    keyed, groups = fields[3:]
    if any(bool(entry.shard_map) != keyed for entry in groups):
        raise WireError("keys without a map of the shards, or one without keys")
    return fields


def _order(value: Any) -> list[Any]:
    """Each kind of order has what it needs, and nothing else."""
    fields = _order_fields(value)
    to, what, weight, counter = fields[2], *fields[4:7]
    if what not in (f.OrderKind.DRAIN, f.OrderKind.WEIGHT, f.OrderKind.PAUSE, f.OrderKind.RESUME):
        raise WireError("not an order")
    of_group = what in (f.OrderKind.PAUSE, f.OrderKind.RESUME)
    if of_group == bool(to) or of_group != bool(counter):
        raise WireError("an order that is for nobody, or for one and for all")
    if weight != 0 if what != f.OrderKind.WEIGHT else not 1 <= weight <= limits.WEIGHT_MAX:
        raise WireError("an order without its weight, or with one")
    return fields


def _handled_run(value: Any) -> f.HandledRun:
    run = _handled_run_fields(value)
    if run.first > run.last:
        raise WireError("a run that ends before it begins")
    return run


_member_list = _many(_one(f.Member, _uint, _weight), limits.MEMBERS_MAX)
_ids = _many(_uint, limits.MEMBERS_MAX)
_version = _one(f.Version, _uint, _uint)
_lanes = _many(_one(f.LaneProgress, _uint, _uint, _uint, _runs(limits.REPORT_RANGES_MAX)), limits.REPORT_LANES_MAX)
_questions = _many(_one(f.LaneQuestion, _uint, _uint, _uint, _uint), limits.REPORT_LANES_MAX)
_answers = _many(
    _one(f.LaneAnswer, _uint, _uint, _uint, _uint, _runs(limits.REPORT_RANGES_MAX), _flag), limits.REPORT_LANES_MAX
)
_tried = _many(_one(f.Tried, _uint, _uint, _uint), limits.REPORT_TRIED_MAX)
_report = _one(f.StreamReport, _uint, _uint, _uint, _lanes, _tried)
_reports = _many(_report, limits.STREAMS_MAX)
_shards_done = _many(_one(f.ShardsDone, _uint, _many(_uint, SHARDS // 32)), limits.GATES_MAX)
_group_states = _many(_one(f.GroupState, _name, _version, _uint, _flag, _shards_done), limits.GROUPS_MAX)
_silences = _many(_one(f.Silence, _uint, _seconds), limits.MEMBERS_MAX)
_moved = _many(_one(f.Moved, _uint, _uint, _uint, _uint), limits.MOVED_MAX)
_group_stamp_fields = _one(
    f.GroupStamp, _name, _uint, _uint, _version, _slot_holders, _ids, _silences, _ids, _shard_map, _moved
)
_stamp_fields = _row(_name, _uint, _uint, _flag, _many(_group_stamp, limits.GROUPS_MAX))
_table_fields = _row(_name, _name, _version, _members, _ids, _shard_map)
_heard = _many(_one(f.Heard, _uint, _uint, _uint, _flag, _flag), limits.STREAMS_MAX)
_echoes = _many(_one(f.Echo, _uint, _uint), limits.MEMBERS_MAX)
_handled_run_fields = _one(f.HandledRun, _outcome, _uint, _uint, _uint, _uint, _seconds)
_handled_runs = _many(_handled_run, limits.HANDLED_RUNS_MAX)
_pause = _one(f.Pause, _uint, _uint, _flag)
_order_fields = _row(_name, _name, _uint, _uint, _uint, _uint, _uint, _name)
_place = _one(f.PeerAddress, _name, _uint)
_parts = _many(_one(f.MissingParts, _uint, _rising(limits.NAK_PARTS_MAX)), limits.NAK_RANGES_MAX)

Shape = tuple[type[Any], Reader[list[Any]]]

SHAPES: Final[dict[int, Shape]] = {
    f.FrameType.SENDER_ALIVE: (
        f.SenderAlive,
        _row(_name, _uint, _flag, _uint, _uint, _uint, _uint, _group_states, _echoes),
    ),
    f.FrameType.STAMP: (f.Stamp, _stamp),
    f.FrameType.PROGRESS: (f.Progress, _row(_uint, _answers, _tried)),
    f.FrameType.SENDER_GOODBYE: (f.SenderGoodbye, _row(_name)),
    f.FrameType.ASK_TABLE: (f.AskTable, _row(_name, _version)),
    f.FrameType.ALIVE: (
        f.Alive,
        _row(_name, _name, _weight, _uint, _flag, _flag, _uint, _version, _heard, _reports, _flag, _pause),
    ),
    f.FrameType.TABLE: (f.TableFrame, _table),
    f.FrameType.REPORT: (f.Report, _row(_report)),
    f.FrameType.NAK: (f.Nak, _row(_uint, _runs(limits.NAK_RANGES_MAX), _parts)),
    f.FrameType.ASK_STAMPS: (f.AskStamps, _row(_uint, _uint, _uint)),
    f.FrameType.ASK_PROGRESS: (f.AskProgress, _row(_uint, _name, _uint, _questions)),
    f.FrameType.GOODBYE: (f.Goodbye, _row(_name, _name)),
    f.FrameType.HAND_OVER: (f.HandOver, _row(_uint, _name, _uint, _uint, _uint, _uint, _uint)),
    f.FrameType.HANDLED: (f.Handled, _row(_name, _name, _uint, _uint, _handled_runs)),
    f.FrameType.ORDER: (f.Order, _order),
    f.FrameType.ORDER_DONE: (f.OrderDone, _row(_uint, _order_outcome)),
    f.FrameType.PEERS: (
        f.Peers,
        _row(_uint, _uint, _uint, _flag, _many(_uint, limits.CHANNELS_MAX), _many(_place, limits.PEERS_TOLD_MAX)),
    ),
    f.FrameType.ABOUT: (
        f.About,
        _row(
            _name,
            _text,
            _flag,
            _flag,
            _text,
            _uint,
            _seconds,
            _uint,
            _version,
            *[_uint] * 6,
            _seconds,
            _uint,
            _uint,
            _many(_uint, limits.COUNTERS_MAX),
        ),
    ),
}
"""Each control frame's class and the reader of its body: the fields after `source`, in their order."""

_TYPES: Final = {shape: kind for kind, (shape, _) in SHAPES.items()}
_FIELDS: Final = {shape: tuple(field.name for field in fields(shape))[1:] for shape, _ in SHAPES.values()}


def encode_control(frame: f.Control, tag: int) -> bytes:
    """A control frame as bytes."""
    shape = type(frame)
    body: bytes = msgpack.packb([getattr(frame, name) for name in _FIELDS[shape]])
    return HEADER.pack(MAGIC, _TYPES[shape], 0, 0, tag, 0, frame.source, 0) + body


def decode_control(datagram: bytes) -> f.Control:
    """A control frame from bytes. Raises WireError on anything else."""
    try:
        magic, kind, _flags, _count, _tag, _stamp, source, _first = HEADER.unpack_from(datagram)
    except StructError as error:
        raise WireError(f"{len(datagram)} bytes are no frame") from error
    if magic != MAGIC or kind not in SHAPES or source > UINT_MAX:
        raise WireError("not a control frame of this protocol and version")
    make, read = SHAPES[kind]
    frame: f.Control = make(source, *read(_unpack(datagram)))
    return frame


def _unpack(datagram: bytes) -> Any:
    """The body behind a header. No control frame has maps, bytes or extension types, nor any long text."""
    try:
        return msgpack.unpackb(
            memoryview(datagram)[HEADER.size :],
            max_array_len=LIST_MAX,
            max_str_len=limits.LABEL_BYTES_MAX,
            max_map_len=0,
            max_bin_len=0,
            max_ext_len=0,
        )
    # Too deep is StackError, not UTF-8 is UnicodeDecodeError, bytes left over are ExtraData: all of them ValueErrors.
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise WireError("the body is not msgpack, or not as a control frame has it") from error
