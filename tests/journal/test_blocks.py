"""Blocks: golden bytes, there and back, in columns."""

from __future__ import annotations

from struct import unpack_from

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.errors import JournalDamaged
from rvq.journal import blocks
from rvq.journal.blocks import Block, check_body, cut, encode_block, read_block_header
from rvq.journal.entries import Entry, EntryKind
from rvq.journal.layout import BLOCK, ENTRY_BYTES
from rvq.limits import JOURNAL_BLOCK_BYTES

SEED = 42
A = Entry(EntryKind.FRAME, 1, ("127.0.0.1", 5000), 10.0, 3, b"abc")
B = Entry(EntryKind.CONTROL, 0, None, 9.5, 0, memoryview(b"defgh"))

entries = st.lists(
    st.builds(
        Entry,
        st.integers(0, 255),
        st.integers(0, 255),
        st.none() | st.tuples(st.sampled_from(["10.0.0.1", "192.168.7.255"]), st.integers(1, 65_535)),
        st.floats(-1e12, 1e12),
        st.integers(0, 2**32 - 1),
        st.binary(max_size=40),
    ),
    min_size=1,
    max_size=20,
)


def read_back(data: bytes, position: int = 4096) -> Block:
    header = read_block_header(data, 0, position, SEED)
    assert header is not None and header.length == len(data)
    body = memoryview(data)[BLOCK.size :]
    check_body(header, body, SEED, "file")
    return Block("segment", header, body)


def encoded(*some: Entry, position: int = 4096, row: int = 7) -> bytes:
    return b"".join(encode_block(some, position, row, SEED).parts)


def test_the_bytes_of_a_block_never_change() -> None:
    data = encoded(A, B)
    assert data[64:].hex() == (
        "0000000000002440"
        "0000000000002340"  # heard at
        "0300000008000000"  # ends
        "0300000000000000"  # rows
        "0100007f00000000"  # addresses
        "88130000"  # ports
        "0103"  # kinds
        "0100"  # flags
        "6162636465666768"
    )
    header = read_block_header(data, 0, 4096, SEED)
    assert header is not None
    assert header[:8] == (b"rvqB", 120, 4096, 7, 3, 9.5, 10.0, 2)


def test_columns_are_arrays_one_behind_the_other() -> None:
    data = encoded(A, B)
    columns = read_back(data).columns
    assert list(columns.heard_at) == [10.0, 9.5] == list(unpack_from("<2d", data, 64))
    assert list(columns.end) == [3, 8]
    assert list(columns.rows) == [3, 0]
    assert list(columns.address) == [0x7F000001, 0]
    assert list(columns.port) == [5000, 0]
    assert (list(columns.kind), list(columns.flags)) == ([1, 3], [1, 0])
    assert read_back(data).payloads() == [b"abc", b"defgh"]


def test_columns_are_the_same_where_numbers_lie_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice swapped is as it was: so this shows that writing and reading swap alike, and nothing else."""
    monkeypatch.setattr(blocks, "_SWAP", True)
    assert list(read_back(encoded(A, B)).entries()) == [A, B._replace(payload=b"defgh")]
    assert encoded(A, B)[64:72].hex() == "4024000000000000"


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(entries)
def test_entries_come_back_as_they_were(some: list[Entry]) -> None:
    data = encoded(*some)
    assert len(data) % 8 == 0
    block = read_back(data)
    assert list(block.entries()) == some
    assert (block.header.row, block.header.rows) == (7, sum(one.rows for one in some))
    assert (block.header.first, block.header.last) == (
        min(one.heard_at for one in some),
        max(one.heard_at for one in some),
    )


def test_a_bit_changed_anywhere_in_a_block_is_noticed() -> None:
    data = encoded(A, B)
    for place in range(len(data)):
        bad = bytearray(data)
        bad[place] ^= 1
        header = read_block_header(bytes(bad), 0, 4096, SEED)
        if header is not None:
            with pytest.raises(JournalDamaged, match="damaged at byte 4,096"):
                check_body(header, memoryview(bad)[BLOCK.size :], SEED, "file")


def test_a_block_in_another_place_or_segment_is_none() -> None:
    data = encoded(A)
    assert read_block_header(data, 0, 4096, SEED) is not None
    assert read_block_header(data, 0, 4104, SEED) is None
    assert read_block_header(data, 0, 4096, SEED + 1) is None


@pytest.mark.parametrize(("length", "entries"), [(64, 0), (64, 1), (2**31, 1), (80, 1)])
def test_a_header_that_nobody_would_write_is_none(length: int, entries: int) -> None:
    data = BLOCK.pack(SEED, length, 4096, 0, 1, 1.0, 1.0, entries, 0, b"")
    assert read_block_header(data, 0, 4096, SEED) is None


def test_what_one_commit_has_is_cut_into_blocks_of_a_good_size() -> None:
    half = A._replace(payload=bytes(JOURNAL_BLOCK_BYTES // 2))
    runs = list(cut([half, half, half, A]))
    assert [len(run) for run in runs] == [2, 2]
    assert [len(run) for run in cut([A] * 10)] == [10]
    many = list(cut([A] * (JOURNAL_BLOCK_BYTES // ENTRY_BYTES)))
    assert sum(map(len, many)) == JOURNAL_BLOCK_BYTES // ENTRY_BYTES
    assert len(many) == 2
    assert list(cut([])) == []
