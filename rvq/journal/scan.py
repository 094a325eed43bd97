"""Reading one segment file from front to back. Owns the check of headers, blocks and their order; knows no folders.

Readers, recovery and verify all go through here, so they agree on what a good block is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rvq.errors import JournalDamaged, JournalError
from rvq.journal.blocks import Block, BlockHeader, check_body, read_block_header
from rvq.journal.layout import BLOCK, FORMAT, HEADER_BYTES, SEGMENT, Header, Watermark, read_watermark
from rvq.journal.places import SegmentName
from rvq.journal.storage import File
from rvq.limits import MIB

CHUNK_BYTES: Final = MIB
"""Read at once. Small blocks share a read; more than this would only leave the processor's cache."""


class Head(NamedTuple):
    """What the first bytes of a segment say."""

    header: Header
    seed: int
    """The checksum of the header: where all checksums in this segment start."""
    watermark: Watermark


def read_head(file: File, path: Path) -> Head:
    """Header and watermark. JournalError if the format is newer, JournalDamaged if it is no format at all."""
    data = file.read(0, HEADER_BYTES)
    fields = SEGMENT.unpack(data, 0)
    if fields is None:
        raise JournalDamaged(path, 0, "this is no header of a segment")
    _, version, size, recorder, counter, created_at, prior, label_length, group_length, label, group, _, seed = fields
    if version > FORMAT:
        raise newer(path, version)
    if size != HEADER_BYTES or version < 1:
        raise JournalDamaged(path, 8, f"version {version} has no header of {size} bytes")
    names = label[:label_length].decode(), group[:group_length].decode()
    watermark = read_watermark(data, seed)
    if watermark is None:
        raise JournalDamaged(path, SEGMENT.size, "both watermarks are torn")
    return Head(Header(recorder, counter, created_at, prior, *names), seed, watermark)


def newer(path: Path, version: int) -> JournalError:
    return JournalError(
        path,
        f"written by a newer rvq (journal format {version}; this one reads up to {FORMAT}): upgrade rvq to read it",
    )


class Segment(NamedTuple):
    """A segment file open for reading."""

    file: File
    path: Path
    name: SegmentName
    head: Head

    def header_at(self, position: int) -> BlockHeader:
        """The header of the block at a position. JournalDamaged if there is none."""
        header = read_block_header(self.file.read(position, BLOCK.size), 0, position, self.head.seed)
        if header is None:
            raise JournalDamaged(self.path, position, "no block begins here")
        return header

    def headers(self, start: int, limit: int) -> Iterator[BlockHeader]:
        """Headers of blocks from a position on, without reading what is between them."""
        while start < limit:
            header = self.header_at(start)
            yield header
            start = header.end

    def blocks(self, start: int, limit: int, *, check: bool = True, row: int | None = None) -> Iterator[Block]:
        """Blocks from one that begins at `start`, up to `limit`. JournalDamaged where there is no good one.

        `row` is the ordinal that the first of them must have, where that is known.
        """
        file, path, seed = self.file, self.path, self.head.seed
        name = str(self.name)
        position = start
        while position < limit:
            data = memoryview(file.read(position, min(CHUNK_BYTES, limit - position)))
            at = 0
            while position < limit:
                header = read_block_header(data, at, position, seed)
                if header is None:
                    if at and at + BLOCK.size > len(data):
                        break  # its header is cut by the chunk: read on from there
                    raise JournalDamaged(path, position, "no block begins here")
                if header.end > limit:
                    raise JournalDamaged(path, position, f"a block ends behind what is there, at {header.end:,}")
                if row is not None and header.row != row:
                    raise JournalDamaged(path, position, f"a block begins with row {header.row:,}, not {row:,}")
                if at + header.length > len(data):
                    if at:
                        break
                    data = memoryview(file.read(position, header.length))
                    if len(data) < header.length:
                        raise JournalDamaged(path, position, "the file ends within a block")
                body = data[at + BLOCK.size : at + header.length]
                if check:
                    check_body(header, body, seed, path)
                yield Block(name, header, body)
                at += header.length
                position += header.length
                row = header.row + header.rows
