"""The fixed structures of a journal on disk, byte by byte. Owns their fields, magics and checksums; reads no files.

All numbers are little-endian, other than on the wire: a column of a block is an array as it lies in memory. Every
structure ends in a CRC32 of what is before it. All but the segment header start that CRC from the one of the segment
header, so a structure that strayed in from another segment is not taken for one of this segment.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf
from struct import Struct
from typing import Any, Final, NamedTuple

from rvq.journal.checksum import crc32
from rvq.limits import LABEL_BYTES_MAX

FORMAT: Final = 1
"""The version of the format. A reader reads this one and those below; a later version keeps the first 12 bytes and the
place of the checksum of the segment header, so that any reader can tell a newer journal from a damaged one."""

HEADER_BYTES: Final = 4096
"""The segment header with both watermarks: the blocks begin here."""

WATERMARKS_AT: Final = (1024, 2048)
"""Places of the two watermarks. They are written in turn: a torn write spoils one, and the other is whole. They are in
sectors of their own, so that writing them cannot tear the header either."""

_CRC: Final = 4


class Layout:
    """A structure of named fields of which the last is its checksum."""

    def __init__(self, magic: bytes, fields: tuple[tuple[str, str], ...]) -> None:
        self.magic = magic
        self.fields = (*fields, ("crc", "I"))
        self.struct = Struct("<" + "".join(code for _, code in self.fields))
        self.size = self.struct.size

    def pack(self, seed: int, *values: Any) -> bytes:
        """The fields between the magic, if there is one, and the checksum, as bytes with both."""
        start = (self.magic,) if self.magic else ()
        body = self.struct.pack(*start, *values, 0)[:-_CRC]
        return body + crc32(body, seed).to_bytes(_CRC, "little")

    def unpack(self, data: bytes | memoryview, seed: int, at: int = 0) -> tuple[Any, ...] | None:
        """All fields, or None if these bytes are not such a structure of this segment."""
        end = at + self.size
        if len(data) < end:
            return None
        fields = self.struct.unpack_from(data, at)
        if (self.magic and fields[0] != self.magic) or crc32(data[at : end - _CRC], seed) != fields[-1]:
            return None
        return fields


SEGMENT: Final = Layout(
    b"rvq jrnl",
    (
        ("magic", "8s"),
        ("version", "I"),
        ("header_bytes", "I"),
        ("recorder", "Q"),
        ("counter", "Q"),
        ("created_at", "d"),
        ("prior_length", "Q"),
        ("label_length", "H"),
        ("group_length", "H"),
        ("label", f"{LABEL_BYTES_MAX}s"),
        ("group", f"{LABEL_BYTES_MAX}s"),
        ("reserved", "458s"),
    ),
)

WATERMARK: Final = Layout(
    b"rvqW",
    (
        ("magic", "4s"),
        ("state", "I"),
        ("serial", "Q"),
        ("length", "Q"),
        ("rows", "Q"),
        ("first", "d"),
        ("last", "d"),
        ("blocks", "Q"),
        ("reserved", "4s"),
    ),
)

BLOCK: Final = Layout(
    b"rvqB",
    (
        ("magic", "4s"),
        ("length", "I"),
        ("position", "Q"),
        ("row", "Q"),
        ("rows", "Q"),
        ("first", "d"),
        ("last", "d"),
        ("entries", "I"),
        ("body_crc", "I"),
        ("reserved", "4s"),
    ),
)

FOOTER: Final = Layout(
    b"rvqF",
    (
        ("magic", "4s"),
        ("length", "I"),
        ("position", "Q"),
        ("rows", "Q"),
        ("first", "d"),
        ("last", "d"),
        ("blocks", "Q"),
        ("reserved", "12s"),
    ),
)

INDEX: Final = Layout(
    b"rvqI", (("magic", "4s"), ("version", "I"), ("recorder", "Q"), ("counter", "Q"), ("reserved", "4s"))
)

MARK: Final = Layout(b"", (("row", "Q"), ("position", "Q"), ("time", "d"), ("reserved", "4s")))

COLUMNS: Final = (
    ("heard_at", "d", 8),
    ("end", "I", 4),
    ("rows", "I", 4),
    ("address", "I", 4),
    ("port", "H", 2),
    ("kind", "B", 1),
    ("flags", "B", 1),
)
"""The table at the start of a block's body: for each column its name, type and width. One column after the other."""

ENTRY_BYTES: Final = sum(width for _, _, width in COLUMNS)
"""What an entry takes beside its payload."""

PADDED_TO: Final = 8
"""Blocks begin at multiples of this."""

assert SEGMENT.size == WATERMARKS_AT[0]
assert BLOCK.size == FOOTER.size == WATERMARK.size == 64, "what stands where a block may stand is read alike"
assert HEADER_BYTES % PADDED_TO == BLOCK.size % PADDED_TO == ENTRY_BYTES % PADDED_TO == 0


class State(IntEnum):
    """What a watermark says of its segment."""

    OPEN = 1
    SEALED = 2
    ABANDONED = 3
    """A sync failed: the next segment of this recorder says where this one ends."""


class Extent(NamedTuple):
    """How far a segment goes: its length up to the end of a block, and what is in it."""

    length: int = HEADER_BYTES
    rows: int = 0
    blocks: int = 0
    first: float = inf
    """Of an empty segment infinite, and `last` the negative of it."""
    last: float = -inf

    def grown(self, length: int, rows: int, first: float, last: float) -> Extent:
        """With one more block."""
        return Extent(
            self.length + length, self.rows + rows, self.blocks + 1, min(self.first, first), max(self.last, last)
        )


class Header(NamedTuple):
    """What is said once, when a segment is made."""

    recorder: int
    counter: int
    created_at: float
    prior_length: int
    """Where the segment before this one of the same recorder and label ends. What is behind that was written again
    here, or never confirmed. 0 if this is the first."""
    label: str
    group: str

    def pack(self) -> bytes:
        label, group = self.label.encode(), self.group.encode()
        return SEGMENT.pack(
            0,
            FORMAT,
            HEADER_BYTES,
            self.recorder,
            self.counter,
            self.created_at,
            self.prior_length,
            len(label),
            len(group),
            label,
            group,
            b"",
        )


class Watermark(NamedTuple):
    """Up to where a segment is synced."""

    state: State
    serial: int
    extent: Extent

    def pack(self, seed: int) -> bytes:
        length, rows, blocks, first, last = self.extent
        return WATERMARK.pack(seed, self.state, self.serial, length, rows, first, last, blocks, b"")

    @property
    def at(self) -> int:
        """Where this one is written: in turn."""
        return WATERMARKS_AT[self.serial % 2]


def pack_footer(extent: Extent, seed: int) -> bytes:
    """What stands behind the last block of a sealed segment."""
    length, rows, blocks, first, last = extent
    return FOOTER.pack(seed, FOOTER.size, length, rows, first, last, blocks, b"")


def read_footer(data: bytes | memoryview, seed: int) -> Extent | None:
    """The extent that a footer tells, or None if these bytes are not a footer of this segment."""
    fields = FOOTER.unpack(data, seed)
    if fields is None or fields[1] != FOOTER.size:
        return None
    _, _, length, rows, first, last, blocks, _, _ = fields
    return Extent(length, rows, blocks, first, last)


def read_watermark(data: bytes | memoryview, seed: int) -> Watermark | None:
    """The newer one of the two watermarks in a header that are whole, or None if neither is."""
    found = []
    for at in WATERMARKS_AT:
        fields = WATERMARK.unpack(data, seed, at)
        if fields is not None and fields[1] in State.__members__.values():
            _, state, serial, length, rows, first, last, blocks, _, _ = fields
            found.append(Watermark(State(state), serial, Extent(length, rows, blocks, first, last)))
    return max(found, key=lambda mark: mark.serial, default=None)
