"""The examples in docs/ are what the code does: frames decode as is said of them, addresses come out as printed."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rvq import limits
from rvq.bus import Bus
from rvq.wire import frames
from rvq.wire.batch import Stamped, encode_batch, read_batch
from rvq.wire.codec import DATA_HEADER, HEADER, SHAPES, decode_control, read_data_header
from rvq.wire.frames import DataFlag, FrameType, MissingParts, Nak
from rvq.wire.records import Attribute, Content, Kind, Records, make_record, make_records

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


def printed_frame(first_line: str) -> bytes:
    """The bytes of a dump: all hex pairs at the start of its lines, up to the end of the block."""
    block = page("protocol.md").split(first_line, 1)[1].split("```", 1)[0]
    pairs = [
        re.match(r"\s*((?:[0-9a-f]{2}\s+)*[0-9a-f]{2}(?=\s|$))", line) for line in (first_line + block).splitlines()
    ]
    return bytes.fromhex("".join(found[1] for found in pairs if found))


def test_the_printed_data_frame_reads_as_it_says() -> None:
    datagram = printed_frame("72 76 71 01  01 06 00 03")
    batch = read_batch(datagram)
    assert (batch.first, batch.count, batch.stamp) == (41, 3, 3)
    assert batch.shards is not None
    assert list(batch.shards) == [0xFFFF, 0xFFFF, 255]
    assert batch.contents(range(3)) == [Content(b"a"), Content(b"bcd"), Content({"job": 1}, "user-7")]
    records = [make_record(b"a"), make_record(b"bcd"), make_record({"job": 1}, key="user-7")]
    assert encode_batch(stamped(datagram, 100_000), Records.of(records)) == datagram


def test_the_printed_even_and_padded_frame_reads_as_it_says() -> None:
    datagram = printed_frame("72 76 71 01  01 19 00 02")
    batch = read_batch(datagram)
    assert (batch.first, batch.count, batch.stamp, batch.shards) == (44, 2, 3, None)
    assert batch.contents(range(2)) == [Content(b"one"), Content(b"two")]
    assert encode_batch(stamped(datagram, 108_285), make_records([b"one", b"two"]), 67) == datagram


def stamped(datagram: bytes, position: int) -> Stamped:
    """What the sender of a printed frame said, and the position before it."""
    header = read_data_header(datagram)
    assert header.label_tag == frames.label_tag("work")
    assert f"position {header.position}: {position} before it, {len(datagram)} bytes, 8192\n" in page("protocol.md")
    return Stamped(
        header.label_tag, header.stamp, header.stream, header.first, header.sent_at, header.done_to, position
    )


def test_the_printed_control_frame_reads_as_it_says() -> None:
    frame = decode_control(printed_frame("72 76 71 01  23 00 00 00"))
    assert frame == Nak(0x0102030405060708, 0x1122334455667788, (5, 9, 12, 12), (MissingParts(7, (0, 3)),))


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: FrameType(kind).name)
def test_every_control_frame_has_its_row(kind: int) -> None:
    shape, _ = SHAPES[kind]
    names = ", ".join(f"`{field.name}`" for field in fields(shape)[1:])
    assert f"| {kind} | {FrameType(kind).name} | {names} |" in page("protocol.md")


@pytest.mark.parametrize(
    "part",
    [
        frames.Version,
        frames.Member,
        frames.Echo,
        frames.GroupState,
        frames.Silence,
        frames.GroupStamp,
        frames.LaneKey,
        frames.LaneProgress,
        frames.StreamReport,
        frames.Heard,
        frames.MissingParts,
    ],
)
def test_every_part_of_a_control_frame_is_spelt_out(part: Any) -> None:
    assert f"`[{', '.join(part._fields)}]`" in page("protocol.md")


@pytest.mark.parametrize("kind", [FrameType.DATA, FrameType.FRAGMENT, FrameType.TAIL])
def test_every_data_frame_has_its_section(kind: FrameType) -> None:
    assert f"\n### {kind.name} ({kind.value}): " in page("protocol.md")


def test_the_printed_structs_are_those_in_use() -> None:
    text = page("protocol.md")
    assert f'`struct.Struct("{HEADER.format}")`' in text
    assert f'`struct.Struct("{DATA_HEADER.format}")`' in text


def test_the_printed_bounds_are_those_in_use() -> None:
    text = page("protocol.md")
    assert f"`count` messages (1 to {limits.FRAME_MESSAGES_MAX:,})" in text
    assert f"and {limits.FLIGHT_COST_BYTES:,} for each of them" in text


def test_flags_kinds_and_attributes_are_as_printed() -> None:
    text = page("protocol.md")
    for number in (*DataFlag, *Kind):
        assert f"| {number.name} | {number.value} |" in text
    for attribute, name in zip(Attribute, ("key", "headers", "due at", "time to live"), strict=True):
        assert f"| {name} | {attribute.value} |" in text


def test_the_worked_example_of_an_address_comes_out() -> None:
    text = page("multicast.md")
    bus = Bus()
    assert f"= {bus.data_address('work')}\ncontrol = {bus.control_address('work')}\n" in text
