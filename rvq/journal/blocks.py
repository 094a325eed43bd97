"""Entries <-> blocks. Owns what is inside a block: the table in columns, the payloads behind it, one checksum for all.

Hot, both ways: a block is written with one join and read without touching its entries one by one.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NamedTuple

from rvq.errors import JournalDamaged
from rvq.journal.checksum import crc32
from rvq.journal.entries import Entry, Payload, pack_source, read_source
from rvq.journal.layout import BLOCK, COLUMNS, ENTRY_BYTES, PADDED_TO
from rvq.limits import JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_BYTES_MAX

_SWAP: Final = sys.byteorder == "big"
_PADDING: Final = [bytes(size) for size in range(PADDED_TO)]


class Written(NamedTuple):
    """One block as bytes, in parts that belong one behind the other."""

    parts: list[Payload]
    length: int
    rows: int
    first: float
    last: float


def encode_block(entries: Sequence[Entry], position: int, row: int, seed: int) -> Written:
    """These entries as one block that begins at this position of its segment, with the row of this ordinal."""
    kinds, flags, sources, heard, rows, payloads = zip(*entries, strict=True)
    addresses, ports = zip(*map(pack_source, sources), strict=True)
    ends = list(accumulate(map(len, payloads)))
    table = b"".join(
        (
            _column("d", heard),
            _column("I", ends),
            _column("I", rows),
            _column("I", addresses),
            _column("H", ports),
            bytes(kinds),
            bytes(flags),
        )
    )
    padding = _PADDING[-ends[-1] % PADDED_TO]
    crc = crc32(table, seed)
    for payload in payloads:
        crc = crc32(payload, crc)
    crc = crc32(padding, crc)
    length = BLOCK.size + len(table) + ends[-1] + len(padding)
    total, first, last = sum(rows), min(heard), max(heard)
    header = BLOCK.pack(seed, length, position, row, total, first, last, len(kinds), crc, b"")
    return Written([header, table, *payloads, padding], length, total, first, last)


def cut(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of one commit, in runs that each make a block of a good size."""
    start, size = 0, 0
    for place, entry in enumerate(entries):
        size += len(entry[5]) + ENTRY_BYTES
        if size >= JOURNAL_BLOCK_BYTES:
            yield entries[start : place + 1]
            start, size = place + 1, 0
    if start < len(entries):
        yield entries[start:]


def _column(code: str, values: Sequence[Any]) -> bytes:
    column = array(code, values)
    if _SWAP:
        column.byteswap()
    return column.tobytes()


class BlockHeader(NamedTuple):
    """The fields of a block header, as they lie there."""

    magic: bytes
    length: int
    position: int
    row: int
    rows: int
    first: float
    last: float
    entries: int
    body_crc: int
    reserved: bytes
    crc: int

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.position + self.length


def read_block_header(data: bytes | memoryview, at: int, position: int, seed: int) -> BlockHeader | None:
    """The header of the block at this position of its segment, which is byte `at` of `data`. None if it is not one."""
    fields = BLOCK.unpack(data, seed, at)
    if fields is None:
        return None
    header = BlockHeader._make(fields)
    if header.position != position or not _is_plausible(header):
        return None
    return header


def _is_plausible(header: BlockHeader) -> bool:
    return header.entries > 0 and BLOCK.size + header.entries * ENTRY_BYTES <= header.length <= JOURNAL_BLOCK_BYTES_MAX


class Columns(NamedTuple):
    """The table of a block: one value for each entry in each. Arrays that numpy takes as they are."""

    heard_at: Sequence[float]
    end: Sequence[int]
    """Where the payload ends, counted from the first byte of the first payload. It begins where the one before ends."""
    rows: Sequence[int]
    address: Sequence[int]
    port: Sequence[int]
    kind: Sequence[int]
    flags: Sequence[int]


class Block:
    """One block as it was read. Nothing in it is decoded before it is asked for."""

    __slots__ = ("_table", "header", "payloads_view", "segment")

    def __init__(self, segment: str, header: BlockHeader, body: memoryview) -> None:
        size = header.entries * ENTRY_BYTES
        self.segment = segment
        """Of which segment, as positions name it."""
        self.header = header
        self._table = body[:size]
        self.payloads_view = body[size:]
        """All payloads one behind the other, then padding."""

    def __len__(self) -> int:
        return self.header.entries

    @property
    def columns(self) -> Columns:
        """Views of the table: nothing is copied."""
        return Columns(*(_view(self._table[start:end], code) for code, start, end in _places(len(self))))

    def payloads(self) -> list[memoryview]:
        """The payload of each entry: views, which keep the memory that was read alive."""
        view, start, payloads = self.payloads_view, 0, []
        for end in self.columns.end:
            payloads.append(view[start:end])
            start = end
        return payloads

    def entries(self) -> Iterator[Entry]:
        """One by one, with payloads that are copies. For tools; who wants speed takes the columns."""
        columns = self.columns
        start = 0
        for heard_at, end, rows, address, port, kind, flags in zip(*columns, strict=True):
            payload = bytes(self.payloads_view[start:end])
            yield Entry(kind, flags, read_source(address, port), heard_at, rows, payload)
            start = end


@lru_cache(maxsize=256)
def _places(entries: int) -> tuple[tuple[str, int, int], ...]:
    """(type, start, end) of each column in a table of so many entries."""
    bounds = list(accumulate((width * entries for _, _, width in COLUMNS), initial=0))
    return tuple((code, bounds[n], bounds[n + 1]) for n, (_, code, _) in enumerate(COLUMNS))


def _view(data: memoryview, code: str) -> Sequence[Any]:
    if not _SWAP:
        return data.cast(code)  # type: ignore[call-overload, no-any-return]
    column = array(code, data.tobytes())
    column.byteswap()
    return column


def check_body(header: BlockHeader, body: memoryview, seed: int, path: object) -> None:
    """JournalDamaged if the body is not the one that its header was made for."""
    if crc32(body, seed) != header.body_crc:
        raise JournalDamaged(path, header.position, "the checksum of a block is wrong")
