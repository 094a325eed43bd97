"""Fixed structures: golden bytes, sizes, and that a bit changed anywhere is noticed."""

from __future__ import annotations

from math import inf

import pytest

from rvq.journal import layout
from rvq.journal.layout import (
    BLOCK,
    FOOTER,
    HEADER_BYTES,
    INDEX,
    MARK,
    SEGMENT,
    WATERMARK,
    Extent,
    Header,
    Layout,
    State,
    Watermark,
    pack_footer,
    read_footer,
    read_watermark,
)

EXTENT = Extent(4296, 3, 2, 10.0, 20.0)
HEADER = Header(0x0123456789ABCDEF, 7, 1.5, 99, "work", "journal")

STRUCTURES = {
    "segment": (SEGMENT, HEADER.pack(), 0),
    "watermark": (WATERMARK, Watermark(State.OPEN, 5, EXTENT).pack(42), 42),
    "block": (BLOCK, BLOCK.pack(42, 128, 4096, 0, 1, 1.0, 1.0, 1, 77, b""), 42),
    "footer": (FOOTER, pack_footer(EXTENT, 42), 42),
    "index": (INDEX, INDEX.pack(42, 1, 2, 3, b""), 42),
    "mark": (MARK, MARK.pack(42, 1, 2, 3.0, b""), 42),
}

each_structure = pytest.mark.parametrize("name", STRUCTURES)


def test_the_bytes_of_a_journal_never_change() -> None:
    assert HEADER.pack()[:64].hex() == (
        "727671206a726e6c0100000000100000efcdab89674523010700000000000000000000000000f83f630000000000000004000700776f726b"
        "0000000000000000"
    )
    assert HEADER.pack()[-4:].hex() == "fbba1ef7"
    assert {name: data.hex() for name, (_, data, _) in STRUCTURES.items() if name != "segment"} == {
        "watermark": (
            "72767157010000000500000000000000c8100000000000000300000000000000"
            "000000000000244000000000000034400200000000000000000000004aaccb48"
        ),
        "block": (
            "7276714280000000001000000000000000000000000000000100000000000000"
            "000000000000f03f000000000000f03f010000004d00000000000000ebf4196d"
        ),
        "footer": (
            "7276714640000000c81000000000000003000000000000000000000000002440"
            "00000000000034400200000000000000000000000000000000000000213b2455"
        ),
        "index": "72767149010000000200000000000000030000000000000000000000da71000f",
        "mark": "010000000000000002000000000000000000000000000840000000002e97d0c7",
    }


@each_structure
def test_a_structure_is_as_long_as_it_says(name: str) -> None:
    structure, data, _ = STRUCTURES[name]
    assert len(data) == structure.size


@each_structure
def test_a_bit_changed_anywhere_is_noticed(name: str) -> None:
    structure, data, seed = STRUCTURES[name]
    assert structure.unpack(data, seed) is not None
    for place in range(len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[place] ^= 1 << bit
            assert structure.unpack(bytes(bad), seed) is None


@each_structure
def test_a_cut_structure_is_none(name: str) -> None:
    structure, data, seed = STRUCTURES[name]
    assert all(structure.unpack(data[:end], seed) is None for end in range(len(data)))


def test_a_structure_of_another_segment_is_none() -> None:
    assert all(structure.unpack(data, seed + 1) is None for structure, data, seed in STRUCTURES.values())


def test_no_structure_is_taken_for_another() -> None:
    for name, (structure, _, _) in STRUCTURES.items():
        if name == "mark":
            continue  # has no magic, and stands only where nothing else does
        others = [data for other, (_, data, _) in STRUCTURES.items() if other != name]
        assert all(structure.unpack(data, 42) is None for data in others)


def test_every_structure_ends_in_its_checksum() -> None:
    structures = [value for value in vars(layout).values() if isinstance(value, Layout)]
    assert len(structures) == len(STRUCTURES)
    assert all(structure.fields[-1] == ("crc", "I") for structure in structures)


def test_an_extent_grows_by_a_block_and_keeps_the_widest_times() -> None:
    empty = Extent()
    assert (empty.length, empty.first, empty.last) == (HEADER_BYTES, inf, -inf)
    assert empty.grown(100, 2, 5.0, 6.0).grown(50, 1, 3.0, 4.0) == Extent(HEADER_BYTES + 150, 3, 2, 3.0, 6.0)


def page(*marks: Watermark) -> bytearray:
    data = bytearray(HEADER_BYTES)
    for mark in marks:
        data[mark.at : mark.at + WATERMARK.size] = mark.pack(42)
    return data


def test_the_newer_watermark_counts() -> None:
    old, new = Watermark(State.OPEN, 8, Extent()), Watermark(State.SEALED, 9, EXTENT)
    assert read_watermark(bytes(page(old, new)), 42) == new
    assert read_watermark(bytes(page(new, old._replace(serial=10))), 42) == old._replace(serial=10)


def test_a_torn_watermark_leaves_the_other_one() -> None:
    old, new = Watermark(State.OPEN, 8, Extent()), Watermark(State.OPEN, 9, EXTENT)
    torn = page(old, new)
    torn[new.at + 20] ^= 1
    assert read_watermark(bytes(torn), 42) == old
    torn[old.at + 20] ^= 1
    assert read_watermark(bytes(torn), 42) is None


def test_a_watermark_of_no_known_state_is_none() -> None:
    data = bytearray(HEADER_BYTES)
    data[1024:1088] = WATERMARK.pack(42, 9, 1, 4096, 0, inf, -inf, 0, b"")
    assert read_watermark(bytes(data), 42) is None


def test_a_footer_tells_the_extent() -> None:
    assert read_footer(pack_footer(EXTENT, 42), 42) == EXTENT
    assert read_footer(bytes(64), 42) is None
