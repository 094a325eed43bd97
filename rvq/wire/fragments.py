"""One message in many frames. Owns fragments: cutting a large record, and what is put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from rvq.errors import WireError
from rvq.limits import FLIGHT_COST_BYTES, FRAGMENTS_MAX, MESSAGE_BYTES_MAX
from rvq.wire.batch import Stamped, header_of
from rvq.wire.codec import DATA_HEADER
from rvq.wire.frames import DataHeader, FrameType
from rvq.wire.records import NO_SHARD, SHARDS, URGENT, Content, Record, read_or_none

_FRAGMENT: Final = Struct(">IIBH")
"""Part, number of parts, kind of the whole record, shard."""

FRAGMENT_OVERHEAD: Final = DATA_HEADER.size + _FRAGMENT.size


def encode_fragments(at: Stamped, record: Record, frame_bytes: int) -> list[bytes]:
    """One message in as many frames as it takes. Each carries the position behind itself."""
    chunk = frame_bytes - FRAGMENT_OVERHEAD
    parts = -(-len(record.data) // chunk)
    position = at.position
    frames = []
    for part in range(parts):
        data = record.data[part * chunk : (part + 1) * chunk]
        position += FLIGHT_COST_BYTES + FRAGMENT_OVERHEAD + len(data)
        head = _FRAGMENT.pack(part, parts, record.kind, record.shard)
        frames.append(header_of(FrameType.FRAGMENT, 0, 1, at, position) + head + data)
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
    if kind > URGENT or (shard >= SHARDS and shard != NO_SHARD):
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

    @property
    def has_urgent(self) -> bool:
        return self.kind == URGENT

    def plain_bodies(self, indices: Sequence[int]) -> list[Any] | None:
        """As of a batch: never plain enough."""
        return None

    def contents(self, indices: Sequence[int]) -> list[Content | None]:
        """As of a batch."""
        return [read_or_none(self.kind, self.data) for _ in indices]
