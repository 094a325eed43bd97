"""What the tests of Spark share: journals with real frames, as recorders write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import Any

from rvq.journal import Entry, EntryKind, Journal
from rvq.limits import FRAME_MESSAGES_MAX
from rvq.wire.batch import Stamped, encode_batch, encode_even_batches
from rvq.wire.codec import encode_control, read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import Control, label_tag
from rvq.wire.records import Record, Records, make_records

NOW = 1_790_000_000.0
"""A second in the middle of an hour, long after the wall clocks of those who read this."""

STREAM = 0x0123_4567_89AB_CDEF


def at(first: int, *, label: str = "work", stream: int = STREAM, stamp: int = 1, sent_at: float = NOW) -> Stamped:
    return Stamped(label_tag(label), stamp, stream, first, sent_at, 0, 0)


def frame(records: Records, first: int, **what: Any) -> bytes:
    assert len(records.datas) <= FRAME_MESSAGES_MAX
    return encode_batch(at(first, **what), records)


def entry_of(datagram: bytes, heard_at: float = NOW) -> Entry:
    return Entry(EntryKind.FRAME, 0, ("127.0.0.1", 9999), heard_at, read_data_header(datagram).count, datagram)


def train_of(bodies: Sequence[bytes], first: int, per_frame: int, size: int, **what: Any) -> Entry:
    frames = encode_even_batches(at(first, **what), make_records(list(bodies)), per_frame, size)
    payload = size.to_bytes(2, "big") + b"".join(frames)
    return Entry(EntryKind.TRAIN, 0, None, NOW, len(bodies), payload)


def fragments_of(record: Record, first: int, frame_bytes: int = 1500, **what: Any) -> Entry:
    parts = encode_fragments(at(first, **what), record, frame_bytes)
    sizes = b"".join(len(part).to_bytes(2, "big") for part in parts)
    return Entry(EntryKind.FRAGMENTS, 0, None, NOW, 1, Struct(">I").pack(len(parts)) + sizes + b"".join(parts))


def control_of(said: Control, heard_at: float = NOW, label: str = "work") -> Entry:
    return Entry(EntryKind.CONTROL, 0, ("127.0.0.1", 9999), heard_at, 0, encode_control(said, label_tag(label)))


def write(
    folder: Path,
    entries: Iterable[Iterable[Entry]],
    *,
    label: str = "work",
    recorder: int = 1,
    now: float = NOW,
    segment_bytes: int = 1 << 28,
    seal: bool = True,
    group: str = "journal",
) -> Path:
    """A journal with these entries, each list of them as one commit."""
    journal = Journal.open(folder, group=group, recorder=recorder, segment_bytes=segment_bytes)
    for commit in entries:
        for entry in commit:
            journal.writer(label).add(entry)
        journal.commit(now)
    if seal:
        journal.close(now)
    else:
        journal.abort()
    return folder


def frames_of(bodies: Sequence[Any], per_frame: int = 100, first: int = 1, **what: Any) -> list[bytes]:
    """Frame after frame of these bodies."""
    return [
        frame(make_records(list(bodies[n : n + per_frame])), first + n, **what)
        for n in range(0, len(bodies), per_frame)
    ]


def write_bodies(
    folder: Path, bodies: Sequence[Any], *, per_frame: int = 100, per_commit: int = 4, **what: Any
) -> Path:
    """A journal of one stream with these bodies."""
    into = {name: what.pop(name) for name in ("recorder", "now", "segment_bytes", "seal") if name in what}
    label = what.get("label", "work")
    frames = [entry_of(one, what.get("sent_at", NOW)) for one in frames_of(bodies, per_frame, **what)]
    commits = [frames[n : n + per_commit] for n in range(0, len(frames), per_commit)]
    return write(folder, commits, label=label, **into)
