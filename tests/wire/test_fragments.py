"""One message in many frames: golden bytes, there and back, and all that a stranger can send."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.errors import WireError
from rvq.limits import FLIGHT_COST_BYTES, FRAGMENTS_MAX, FRAME_BYTES_MIN, MESSAGE_BYTES_MAX
from rvq.wire.codec import DATA_HEADER, read_data_header
from rvq.wire.fragments import FRAGMENT_OVERHEAD, Fragment, Whole, encode_fragments, read_fragment
from rvq.wire.frames import FrameType
from rvq.wire.records import NO_SHARD, SHARDS, Kind, Record, make_record, read_record
from tests.wire.samples import AT, damaged, data_frame, records, shortly


def test_the_bytes_of_fragments_never_change() -> None:
    frames = encode_fragments(AT, make_record(b"0123456789", key="user-7"), FRAGMENT_OVERHEAD + 8)
    assert [frame.hex() for frame in frames] == [
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131bb"
        "00000000000000030200ff92c40a3031323334",
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000015206"
        "00000001000000030200ff35363738398101a6",
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa000000000001724f"
        "00000002000000030200ff757365722d37",
    ]


def fragments_of(frames: list[bytes]) -> list[Fragment]:
    return [read_fragment(frame, read_data_header(frame)) for frame in frames]


@shortly
@given(records.filter(lambda record: record.data), st.integers(1, 9), st.randoms(use_true_random=False))
def test_fragments_put_together_are_the_message(record: Record, chunk: int, random: random.Random) -> None:
    frames = encode_fragments(AT, record, FRAGMENT_OVERHEAD + chunk)
    assert all(len(frame) <= FRAGMENT_OVERHEAD + chunk for frame in frames)
    random.shuffle(frames)
    fragments = sorted(fragments_of(frames), key=lambda fragment: fragment.part)
    assert [fragment.part for fragment in fragments] == list(range(fragments[0].parts))
    whole = Whole(fragments[-1], b"".join(fragment.data for fragment in fragments))
    assert (whole.first, whole.last, whole.count, whole.stamp, whole.sent_at) == (301, 301, 1, 2, 1.5)
    assert whole.shards == (None if record.shard == NO_SHARD else (record.shard,))
    assert whole.contents([0]) == [read_record(record.kind, record.data)]
    assert whole.contents([]) == []
    assert whole.plain_bodies([0]) is None


def test_each_fragment_carries_the_position_behind_itself() -> None:
    frames = encode_fragments(AT, make_record(bytes(1000)), FRAME_BYTES_MIN)
    behind = itertools.accumulate((len(frame) + FLIGHT_COST_BYTES for frame in frames), initial=AT.position)
    assert [read_data_header(frame).position for frame in frames] == list(behind)[1:]
    assert all(read_data_header(frame).first == AT.first for frame in frames)


def test_the_longest_message_in_the_smallest_frames_is_within_the_limits() -> None:
    frames = encode_fragments(AT, make_record(bytes(MESSAGE_BYTES_MAX)), FRAME_BYTES_MIN)
    assert len(frames) <= FRAGMENTS_MAX
    assert sum(len(fragment.data) for fragment in fragments_of(frames)) == MESSAGE_BYTES_MAX


def test_a_whole_that_cannot_be_read_is_none() -> None:
    [frame] = encode_fragments(AT, Record(Kind.PACKED, b"\xc1", NO_SHARD), FRAME_BYTES_MIN)
    [fragment] = fragments_of([frame])
    assert Whole(fragment, fragment.data).contents([0]) == [None]


@pytest.mark.parametrize(
    ("part", "parts", "kind", "shard", "data"),
    [
        (0, 0, 0, NO_SHARD, b"x"),
        (2, 2, 0, NO_SHARD, b"x"),
        (0, FRAGMENTS_MAX + 1, 0, NO_SHARD, b"x"),
        (0, 2**32 - 1, 0, NO_SHARD, b"x"),
        (0, 2, 5, NO_SHARD, b"x"),
        (0, 2, 255, NO_SHARD, b"x"),
        (0, 2, 0, SHARDS, b"x"),
        (0, 2, 0, NO_SHARD, b""),
        (0, 1000, 0, NO_SHARD, bytes(60_000)),
    ],
)
def test_a_fragment_that_cannot_be_is_refused(part: int, parts: int, kind: int, shard: int, data: bytes) -> None:
    head = part.to_bytes(4, "big") + parts.to_bytes(4, "big") + bytes([kind]) + shard.to_bytes(2, "big")
    frame = data_frame(1, 0, head + data, kind=FrameType.FRAGMENT)
    with pytest.raises(WireError):
        read_fragment(frame, read_data_header(frame))


def test_a_fragment_of_several_messages_or_of_none_is_refused() -> None:
    [good] = encode_fragments(AT, make_record(b"x"), FRAME_BYTES_MIN)
    head = good[DATA_HEADER.size : FRAGMENT_OVERHEAD]
    for frame in (
        data_frame(2, 0, head + b"x", kind=FrameType.FRAGMENT),
        data_frame(0, 0, head + b"x", kind=FrameType.FRAGMENT),
        data_frame(1, 0, head + b"x", first=0, kind=FrameType.FRAGMENT),
        data_frame(1, 0, head[:-1], kind=FrameType.FRAGMENT),
    ):
        with pytest.raises(WireError):
            read_fragment(frame, read_data_header(frame))


# --- what strangers send ------------------------------------------------------------------------------------------


def read_everything(datagram: bytes) -> bool:
    """Whatever the bytes are: only WireError may come out. False if it did."""
    try:
        fragment = read_fragment(datagram, read_data_header(datagram))
    except WireError:
        return False
    assert 0 <= fragment.part < fragment.parts <= FRAGMENTS_MAX
    assert 0 < len(fragment.data) < len(datagram)
    assert fragment.shard < SHARDS or fragment.shard == NO_SHARD
    Whole(fragment, fragment.data).contents([0])
    return True


@settings(shortly, max_examples=150)
@given(records.filter(lambda record: record.data), st.data())
def test_a_damaged_fragment_raises_nothing_but_wire_errors(record: Record, data: st.DataObject) -> None:
    good = data.draw(st.sampled_from(encode_fragments(AT, record, FRAGMENT_OVERHEAD + 5)))
    assert read_everything(good)
    read_everything(data.draw(damaged(good)))


@shortly
@given(st.integers(0, 255), st.integers(0, 3), st.binary(max_size=120))
def test_random_bodies_raise_nothing_but_wire_errors(flags: int, count: int, body: bytes) -> None:
    read_everything(data_frame(count, flags, body, kind=FrameType.FRAGMENT))


@shortly
@given(st.binary(max_size=120))
def test_random_bytes_raise_nothing_but_wire_errors(datagram: bytes) -> None:
    assert not read_everything(datagram)


def test_a_large_message_keeps_its_times_and_its_urgency() -> None:
    for record in (make_record(bytes(2000), urgent=True), make_record(bytes(2000), None, None, 9.5, 2.5)):
        parts = [read_fragment(part, read_data_header(part)) for part in encode_fragments(AT, record, FRAME_BYTES_MIN)]
        whole = Whole(parts[0], b"".join(part.data for part in parts))
        (content,) = whole.contents([0])
        assert content == read_record(record.kind, record.data)
        assert content is not None and whole.has_urgent == content.urgent == (record.kind == Kind.URGENT)
