"""Blocks of a journal as columns: where each message is, of which stream, which one, of which kind and shard.

Owns the way from what a recorder stored to numbers in arrays. A run of blocks is decoded at once: nothing is done for
each message in Python, nor for each frame, but for large messages that came in fragments. Hot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rvq.errors import JournalDamaged
from rvq.journal import Block
from rvq.spark.stored import FRAGMENTS, FRAME, SHARE, TRAIN, read_whole, stored_kinds
from rvq.wire.codec import DATA_HEADER, MAGIC
from rvq.wire.frames import DataFlag, FrameType
from rvq.wire.records import NO_SHARD, PACKED, RAW

Array = np.ndarray[Any, np.dtype[Any]]

_HEADER: Final = np.dtype(
    [
        ("magic", ">u4"),
        ("type", "u1"),
        ("flags", "u1"),
        ("count", ">u2"),
        ("tag", ">u4"),
        ("stamp", ">u4"),
        ("stream", ">u8"),
        ("first", ">u8"),
        ("sent_at", ">f8"),
        ("done_to", ">u8"),
        ("position", ">u8"),
    ]
)
_SHARE: Final = np.dtype(
    [("tag", ">u4"), ("stamp", ">u4"), ("stream", ">u8"), ("first", ">u8"), ("sent_at", ">f8"), ("count", ">u4")]
)
_RAW, _MIXED, _KEYED, _EVEN = (int(flag) for flag in (DataFlag.RAW, DataFlag.MIXED, DataFlag.KEYED, DataFlag.EVEN))
_STRIDE: Final = 16
"""Flag of a share whose places are said by a first one and a step."""
_DATA: Final = int(FrameType.DATA)

assert _HEADER.itemsize == DATA_HEADER.size


@dataclass(slots=True)
class Frames:
    """What frames, or shares of frames, say of all their messages. One value for each frame in each array."""

    entry: Array
    """Of which entry of the blocks."""
    stream: Array
    stamp: Array
    sent_at: Array
    count: Array
    first: Array
    """The sequence of the first message that is here."""
    step: Array
    """From a message that is here to the next; 0 where `sequences` says each."""


@dataclass(slots=True)
class Messages:
    """All messages of some blocks. One value for each message in each array, in the order in which they lie there."""

    data: bytes | memoryview
    """What `start` and `end` are places in."""
    frames: Frames
    frame: Array
    """Of which frame."""
    sequence: Array
    start: Array
    end: Array
    kind: Array
    shard: Array | None
    """NO_SHARD for one without a key. None if none has one."""
    ordinal: Array
    """Row of its segment."""
    block: Array
    """Of which of the blocks."""
    heard_at: Array
    """Of each frame."""

    def __len__(self) -> int:
        return len(self.sequence)


def ragged(starts: Array, counts: Array, step: int = 1) -> Array:
    """For each pair so many numbers, from its start on. `ragged([5, 9], [3, 2])` is `[5, 6, 7, 9, 10]`."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before * step, counts) + np.arange(int(counts.sum())) * step


def shorts_at(data: Array, at: Array) -> Array:
    """Numbers of 16 bits in network order."""
    found: Array = data[at].astype(np.int64) << 8 | data[at + 1]
    return found


class _Class:
    """The messages of all entries that are stored alike."""

    def __init__(self, entry: Array, frames: Frames, sequence: Array, start: Array, end: Array, kind: Array) -> None:
        self.entry, self.frames = entry, frames
        self.sequence, self.start, self.end, self.kind = sequence, start, end, kind
        self.shard: Array | None = None


def read_messages(blocks: list[Block]) -> Messages:
    """The messages of these blocks. JournalDamaged if an entry that says it has some is not what recorders store."""
    views = [block.payloads_view for block in blocks]
    data: bytes | memoryview = views[0] if len(views) == 1 else b"".join(views)
    columns = [block.columns for block in blocks]
    sizes = np.array([len(view) for view in views], np.int64)
    bases = np.cumsum(sizes) - sizes
    ends = np.concatenate([np.asarray(c.end, np.int64) + base for c, base in zip(columns, bases, strict=True)])
    lens = [len(block) for block in blocks]
    starts = np.empty_like(ends)
    starts[1:] = ends[:-1]
    starts[np.cumsum(lens) - lens] = bases
    rows = np.concatenate([np.asarray(c.rows, np.int64) for c in columns])
    heard = np.concatenate([np.asarray(c.heard_at) for c in columns])
    kinds = stored_kinds(np.concatenate([np.asarray(c.kind) for c in columns]))
    flags = np.concatenate([np.asarray(c.flags) for c in columns])
    view = np.frombuffer(data, np.uint8)
    where = f"{blocks[0].segment} from byte {blocks[0].header.position:,}"
    try:
        classes, data = _classes(view, data, kinds, flags, rows, starts, ends)
    except IndexError as error:
        raise JournalDamaged(where, blocks[0].header.position, "an entry is shorter than it says") from error
    found = _joined(classes)
    counts = np.bincount(found.frames.entry, found.frames.count, len(ends)).astype(np.int64)
    if (counts != rows).any() or (found.start > found.end).any() or (found.end > len(data)).any():
        raise JournalDamaged(where, blocks[0].header.position, "an entry does not have the messages that it says")
    frame = np.repeat(np.arange(len(found.frames.count)), found.frames.count)
    bounds = np.array([block.header.rows for block in blocks])
    firsts = np.array([block.header.row for block in blocks])
    return Messages(
        data=data,
        frames=found.frames,
        frame=frame,
        sequence=found.sequence,
        start=found.start,
        end=found.end,
        kind=found.kind,
        shard=found.shard,
        ordinal=ragged(firsts, bounds),
        block=np.repeat(np.arange(len(blocks)), bounds),
        heard_at=heard[found.frames.entry],
    )


def _classes(
    view: Array, data: bytes | memoryview, kinds: Array, flags: Array, rows: Array, starts: Array, ends: Array
) -> tuple[list[_Class], bytes | memoryview]:
    found = []
    whole = np.flatnonzero(kinds == FRAME)
    trains = np.flatnonzero(kinds == TRAIN)
    entry, begin, end = whole, starts[whole], ends[whole]
    if len(trains):
        cut = _cut_trains(view, trains, starts[trains], ends[trains])
        entry, begin, end = (np.concatenate(pair) for pair in zip((entry, begin, end), cut, strict=True))
        place = np.lexsort((begin, entry))
        entry, begin, end = entry[place], begin[place], end[place]
    if len(entry):
        found.append(_frames(view, entry, begin, end))
    shares = np.flatnonzero(kinds == SHARE)
    for flag in np.unique(flags[shares]):
        alike = shares[flags[shares] == flag]
        found.append(_shares(view, alike, rows[alike], starts[alike], ends[alike], int(flag)))
    large = np.flatnonzero(kinds == FRAGMENTS)
    if len(large):
        parts, one = _large(data, large, starts[large], ends[large])
        found.append(one)
        data = b"".join((data, *parts))
    return found, data


def _cut_trains(view: Array, entry: Array, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    size = shorts_at(view, starts)
    many = -(-(ends - starts - 2) // np.maximum(size, 1))
    begin = np.repeat(starts + 2, many) + ragged(np.zeros_like(many), many) * np.repeat(size, many)
    return np.repeat(entry, many), begin, np.minimum(begin + np.repeat(size, many), np.repeat(ends, many))


def _frames(view: Array, entry: Array, begin: Array, end: Array) -> _Class:
    header = view[begin[:, None] + np.arange(_HEADER.itemsize)].view(_HEADER).ravel()
    if (header["magic"] != MAGIC).any() or (header["type"] != _DATA).any():
        raise IndexError("no frame")
    flags, count = header["flags"], header["count"].astype(np.int64)
    even = (flags & _EVEN) > 0
    table = end - np.where(even, 2, 2 * count + 2)
    total = int(count.sum())
    start, stop = np.empty(total, np.int64), np.empty(total, np.int64)
    frame = np.repeat(np.arange(len(count)), count)
    is_even = even[frame]
    if even.any():
        each = shorts_at(view, table[even])
        where = slice(None) if even.all() else np.flatnonzero(is_even)
        places = ragged(np.zeros(len(each), np.int64), count[even]) * np.repeat(each, count[even])
        start[where] = np.repeat(begin[even] + _HEADER.itemsize, count[even]) + places
        stop[where] = start[where] + np.repeat(each, count[even])
    if not even.all():
        odd = ~even
        bounds = shorts_at(view, ragged(table[odd], count[odd], 2))
        last = shorts_at(view, ragged(table[odd] + 2, count[odd], 2))
        where = slice(None) if odd.all() else np.flatnonzero(~is_even)
        base = np.repeat(begin[odd], count[odd])
        start[where], stop[where] = base + bounds, base + last
    kind = np.where(flags & _RAW, RAW, PACKED).astype(np.uint8)[frame]
    _cut_kinds(view, kind, start, ((flags & _MIXED) > 0)[frame])
    first = header["first"].astype(np.int64)
    ones = np.ones_like(first)
    stream, stamp = header["stream"].astype(np.int64), header["stamp"].astype(np.int64)
    frames = Frames(entry, stream, stamp, header["sent_at"].astype(np.float64), count, first, ones)
    found = _Class(entry, frames, ragged(first, count), start, stop, kind)
    keyed = (flags & _KEYED) > 0
    if keyed.any():
        found.shard = np.full(total, NO_SHARD, np.int32)
        found.shard[keyed[frame]] = shorts_at(view, ragged(table[keyed] - 2 * count[keyed], count[keyed], 2))
    return found


def _cut_kinds(view: Array, kind: Array, start: Array, mixed: Array) -> None:
    if mixed.any():
        kind[mixed] = view[start[mixed]]
        start[mixed] += 1


def _shares(view: Array, entry: Array, rows: Array, begin: Array, end: Array, flags: int) -> _Class:
    """Shares whose flags are alike."""
    header = view[begin[:, None] + np.arange(_SHARE.itemsize)].view(_SHARE).ravel()
    count, first = header["count"].astype(np.int64), header["first"].astype(np.int64)
    at = begin + _SHARE.itemsize
    total = int(count.sum())
    if (count != rows).any() or not count.all():
        raise IndexError("not as many messages as the entry says")
    if flags & _STRIDE:
        first, step = first + shorts_at(view, at), shorts_at(view, at + 2)
        sequence = np.repeat(first, count) + ragged(np.zeros_like(count), count) * np.repeat(step, count)
        at = at + 4
    else:
        sequence = np.repeat(first, count) + shorts_at(view, ragged(at, count, 2))
        first, step = sequence[np.cumsum(count) - count], np.zeros_like(count)
        at = at + 2 * count
    shard = None
    if flags & _KEYED:
        shard = shorts_at(view, ragged(at, count, 2)).astype(np.int32)
        at = at + 2 * count
    if flags & _EVEN:
        lens, at = np.repeat(shorts_at(view, at), count), at + 2
    else:
        lens, at = shorts_at(view, ragged(at, count, 2)), at + 2 * count
    before = np.cumsum(lens) - lens
    start = np.repeat(at - before[np.cumsum(count) - count], count) + before
    stop = start + lens
    if (stop[np.cumsum(count) - 1] != end).any():
        raise IndexError("a share that is cut or too long")
    kind = np.full(total, RAW if flags & _RAW else PACKED, np.uint8)
    if flags & _MIXED:
        _cut_kinds(view, kind, start, np.ones(total, bool))
    stream, stamp = header["stream"].astype(np.int64), header["stamp"].astype(np.int64)
    frames = Frames(entry, stream, stamp, header["sent_at"].astype(np.float64), count, first, step)
    found = _Class(entry, frames, sequence, start, stop, kind)
    found.shard = shard
    return found


def _large(data: bytes | memoryview, entry: Array, starts: Array, ends: Array) -> tuple[list[bytes], _Class]:
    """Messages in fragments: few and large, so one by one. Their bytes are put behind all the others."""
    whole = [read_whole(bytes(data[start:end])) for start, end in zip(starts, ends, strict=True)]
    parts = [one.data for one in whole]
    lens = np.array([len(part) for part in parts], np.int64)
    start = len(data) + np.cumsum(lens) - lens
    sequence = np.array([one.sequence for one in whole], np.int64)
    ones = np.ones_like(sequence)
    stamp = np.array([one.stamp for one in whole], np.int64)
    stream = np.array([one.stream for one in whole], np.int64)
    sent_at = np.array([one.sent_at for one in whole])
    frames = Frames(entry, stream, stamp, sent_at, ones, sequence, ones)
    kind = np.array([one.kind for one in whole], np.uint8)
    found = _Class(entry, frames, sequence, start, start + lens, kind)
    found.shard = np.array([one.shard for one in whole], np.int32)
    return parts, found


def _joined(classes: list[_Class]) -> _Class:
    if len(classes) == 1:
        return classes[0]
    if not classes:
        none = np.empty(0, np.int64)
        return _Class(none, Frames(*[none] * 7), none, none, none, none.astype(np.uint8))
    frames = Frames(
        *(np.concatenate([getattr(one.frames, name) for one in classes]) for name in Frames.__dataclass_fields__)
    )
    frame = np.repeat(np.arange(len(frames.count)), frames.count)
    entry = frames.entry[frame]
    order = np.argsort(entry, kind="stable")
    columns = [
        np.concatenate([getattr(one, name) for one in classes])[order] for name in ("sequence", "start", "end", "kind")
    ]
    found = _Class(entry[order], frames, *columns)
    if any(one.shard is not None for one in classes):
        shards = [np.full(len(one.sequence), NO_SHARD, np.int32) if one.shard is None else one.shard for one in classes]
        found.shard = np.concatenate(shards)[order]
    by_entry = np.argsort(frames.entry, kind="stable")
    found.frames = Frames(*(getattr(frames, name)[by_entry] for name in Frames.__dataclass_fields__))
    return found
