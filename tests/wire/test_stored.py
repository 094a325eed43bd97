"""What a journal keeps of frames: what goes in comes out, and other bytes raise nothing but one error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.errors import WireError
from rvq.limits import FRAME_MESSAGES_MAX, STORED_MESSAGES_MAX
from rvq.wire.batch import Stamped, encode_batch, own_stride, read_batch
from rvq.wire.codec import read_data_header
from rvq.wire.fragments import Whole, encode_fragments, read_fragment
from rvq.wire.frames import DataHeader
from rvq.wire.records import NO_SHARD, Content, Record, Records, make_record, make_records, read_or_none
from rvq.wire.stored import (
    SHARE_HEADER,
    STRIDE,
    ShareFlag,
    Stored,
    StoredFrame,
    StoredKind,
    read_stored,
    store,
)
from rvq.wire.train import Run, read_train
from tests.wire.samples import AT, damaged, data_frame, record_lists, records, shortly, shorts

SIZE = 300


def read_datagram(datagram: bytes) -> tuple[DataHeader, Run]:
    return read_data_header(datagram), read_batch(datagram)


def whole_of(datagrams: Sequence[bytes]) -> Whole:
    parts = [read_fragment(datagram, read_data_header(datagram)) for datagram in datagrams]
    return Whole(parts[0], b"".join(part.data for part in parts))


def stored(datagram: bytes, places: Sequence[int] | None = None) -> Stored:
    return store(*read_datagram(datagram), (datagram,), places)


def read(block: Stored) -> StoredFrame:
    return read_stored(*block)


def refused(kind: int, flags: int, payload: bytes) -> bool:
    """True if it is refused in the only way allowed, at once or when it is looked at."""
    try:
        frame = read_stored(kind, flags, payload)
        frame.columns()
        frame.contents()
    except WireError:
        return True
    return False


def content_of(record: Record) -> Content | None:
    return read_or_none(record.kind, record.data)


def places_of(data: st.DataObject, count: int) -> Sequence[int]:
    """A stride, or some of them, at least one."""
    if data.draw(st.booleans()):
        slots = data.draw(st.integers(1, count))
        return own_stride(data.draw(st.integers(0, 99)), count, data.draw(st.integers(0, slots - 1)), slots)
    return sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))


def check_columns(frame: StoredFrame, expected: Sequence[Record]) -> None:
    """The columns are the records, side by side."""
    sequences, data, offsets, kinds, shards = frame.columns()
    assert list(sequences) == list(frame.sequences) and frame.count == len(expected) == len(offsets) - 1
    cut = [bytes(data[start:end]) for start, end in pairwise(offsets)]
    assert cut == [record.data for record in expected]
    assert ([kinds] * len(expected) if isinstance(kinds, int) else list(kinds)) == [r.kind for r in expected]
    assert list(shards or [NO_SHARD] * len(expected)) == [record.shard for record in expected]


# --- there and back -----------------------------------------------------------------------------------------------


@settings(shortly, max_examples=200)
@given(record_lists, st.sampled_from([0, 1200]))
def test_a_frame_comes_back_as_it_came(some: list[Record], size_least: int) -> None:
    datagram = encode_batch(AT, Records.of(some), size_least)
    block = stored(datagram)
    assert block == (StoredKind.FRAME, 0, datagram)
    frame = read(block)
    assert frame.datagrams == (datagram,)
    assert (frame.label_tag, frame.stream, frame.stamp) == (AT.label_tag, AT.stream, AT.stamp)
    assert (frame.first, frame.sent_at) == (AT.first, AT.sent_at)
    assert frame.sequences == range(AT.first, AT.first + len(some))
    assert frame.contents() == [content_of(record) for record in some]
    check_columns(frame, some)


@settings(shortly, max_examples=120)
@given(record_lists, st.data())
def test_a_share_of_a_frame_comes_back(some: list[Record], data: st.DataObject) -> None:
    datagram = encode_batch(AT, Records.of(some), data.draw(st.sampled_from([0, 1200])))
    places = places_of(data, len(some))
    if not places:
        return
    frame = read(stored(datagram, places))
    assert frame.datagrams is None
    assert (frame.label_tag, frame.stream, frame.stamp) == (AT.label_tag, AT.stream, AT.stamp)
    assert (frame.first, frame.sent_at) == (AT.first, AT.sent_at)
    assert list(frame.sequences) == [AT.first + place for place in places]
    assert frame.contents() == [content_of(some[place]) for place in places]
    check_columns(frame, [some[place] for place in places])


frame_groups = st.lists(
    st.lists(st.builds(make_record, st.binary(max_size=9) | st.integers(0, 9)), min_size=1, max_size=8)
    | st.lists(st.builds(make_record, st.just(b"0123")), min_size=5, max_size=5)
    | st.lists(st.builds(make_record, st.integers(0, 9), st.none(), st.just({"h": 1})), min_size=1, max_size=5),
    min_size=2,
    max_size=6,
)


def train_of(groups: Sequence[Sequence[Record]]) -> bytes:
    """A frame for each group, all of one size but the last."""
    frames: list[bytes] = []
    at = AT
    for group in groups:
        frames.append(encode_batch(at, Records.of(group), SIZE if group is not groups[-1] else 0))
        at = at._replace(first=at.first + len(group), position=read_data_header(frames[-1]).position)
    return b"".join(frames)


@settings(shortly, max_examples=120)
@given(frame_groups, st.data())
def test_a_train_and_its_shares_come_back(groups: list[list[Record]], data: st.DataObject) -> None:
    datagram = train_of(groups)
    train = read_train(datagram, SIZE)
    assert train is not None
    some = [record for group in groups for record in group]
    frame = read(store(train.header, train, (datagram,), None))
    assert frame.datagrams == (datagram,)
    assert frame.sequences == range(AT.first, AT.first + len(some))
    assert frame.contents() == [content_of(record) for record in some]
    check_columns(frame, some)
    places = places_of(data, len(some))
    if places:
        share = read(store(train.header, train, (datagram,), places))
        assert list(share.sequences) == [AT.first + place for place in places]
        assert share.contents() == [content_of(some[place]) for place in places]
        check_columns(share, [some[place] for place in places])


@shortly
@given(records, st.integers(68, 300))
def test_a_large_message_comes_back_in_its_fragments(record: Record, frame_bytes: int) -> None:
    datagrams = tuple(encode_fragments(AT, record, frame_bytes))
    if not datagrams:
        return
    frame = read(store(read_data_header(datagrams[0]), whole_of(datagrams), datagrams, None))
    assert frame.datagrams == datagrams
    assert frame.sequences == range(AT.first, AT.first + 1)
    assert frame.contents() == [content_of(record)]
    check_columns(frame, [record])


def test_a_large_message_is_never_shared() -> None:
    datagrams = tuple(encode_fragments(AT, make_record(bytes(500)), 300))
    with pytest.raises(WireError):
        store(read_data_header(datagrams[0]), whole_of(datagrams), datagrams, [0])


def test_the_bytes_of_a_share_never_change() -> None:
    """One of each: a stride of raw records of one length; and some with keys, of all kinds."""
    even = stored(encode_batch(AT, make_records([b"aa", b"bb", b"cc", b"dd"])), range(1, 4, 2))
    assert (even.kind, even.flags) == (4, ShareFlag.RAW | ShareFlag.EVEN | ShareFlag.STRIDE)
    facts = "c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000002"
    assert even.payload.hex() == facts + "00010002" + "0002" + "62626464"
    keyed = stored(
        encode_batch(AT, Records.of([make_record(b"a"), make_record(1, "user-7"), make_record("bc")])), [1, 2]
    )
    assert (keyed.kind, keyed.flags) == (4, ShareFlag.MIXED | ShareFlag.KEYED)
    assert keyed.payload.hex() == (
        facts + "00010002" + "00ffffff" + "000c0004" + "0292018101a6757365722d37" + "01a26263"
    )


def test_a_share_costs_its_records_and_little_more() -> None:
    bodies = [bytes(200)] * 300
    share = stored(encode_batch(AT, make_records(bodies)), range(0, 300, 3))
    assert len(share.payload) == SHARE_HEADER.size + STRIDE.size + 2 + 100 * 200


def test_records_of_different_kinds_that_turn_out_alike_have_one_kind() -> None:
    datagram = encode_batch(AT, Records.of([make_record(b"a"), make_record(1), make_record(b"c")]))
    assert read(stored(datagram)).columns().kinds == b"\x00\x01\x00"
    share = read(stored(datagram, [0, 2]))
    assert share.columns().kinds == 0
    assert share.plain_bodies() == [b"a", b"c"]


def test_a_record_that_cannot_be_read_is_none_and_the_others_are_read() -> None:
    mixed = data_frame(3, 2, b"\x00a" + b"\x01\xc1" + shorts(56, 58, 58, 60))
    assert read(stored(mixed)).contents() == [Content(b"a"), None, None]
    assert read(stored(mixed)).columns().kinds == bytes([0, 255, 1])
    assert read(stored(mixed, [1])).contents() == [None]


def test_large_packed_records_are_looked_at_before_they_are_read() -> None:
    liar = b"\xdd\x00\x10\x00\x00" + bytes(5000)
    frame = read(stored(data_frame(1, 8, liar + shorts(len(liar)))))
    assert frame.plain_bodies() is None
    assert frame.contents() == [None]


# --- other bytes --------------------------------------------------------------------------------------------------


def a_block(data: st.DataObject) -> Stored:
    some = data.draw(record_lists)
    datagram = encode_batch(AT, Records.of(some))
    kind = data.draw(st.sampled_from(StoredKind))
    if kind == StoredKind.TRAIN:
        datagram = train_of(data.draw(frame_groups))
        train = read_train(datagram, SIZE)
        assert train is not None
        return store(train.header, train, (datagram,), None)
    if kind == StoredKind.FRAGMENTS:
        parts = tuple(encode_fragments(AT, make_record(bytes(500)), 300))
        return store(read_data_header(parts[0]), whole_of(parts), parts, None)
    return stored(datagram, places_of(data, len(some)) or [0] if kind == StoredKind.SHARE else None)


@settings(shortly, max_examples=200)
@given(st.data())
def test_a_damaged_block_is_refused_or_still_a_block(data: st.DataObject) -> None:
    kind, flags, payload = a_block(data)
    if data.draw(st.integers(0, 3)) == 3:
        flags = data.draw(st.integers(-1, 300))
    payload = data.draw(damaged(payload))
    if not refused(kind, flags, payload):
        frame = read_stored(kind, flags, payload)
        assert len(frame.contents()) == frame.count == len(frame.columns().offsets) - 1
        assert list(frame.columns().offsets) == sorted(frame.columns().offsets)
        assert frame.columns().offsets[-1] <= len(frame.columns().data)


@shortly
@given(st.integers(0, 6), st.integers(0, 63), st.binary(max_size=150))
def test_random_bytes_raise_nothing_but_wire_errors(kind: int, flags: int, payload: bytes) -> None:
    refused(kind, flags, payload)


@shortly
@given(st.data())
def test_a_block_that_is_cut_or_too_long_is_refused(data: st.DataObject) -> None:
    kind, flags, payload = a_block(data)
    cut = data.draw(st.integers(0, len(payload) - 1))
    if kind == StoredKind.TRAIN:  # without its last frames it is a shorter one
        cut = min(cut, SIZE)
    assert refused(kind, flags, payload[:cut])
    assert refused(kind, flags, payload + b"\x00")


def share_with(flags: int, body: bytes, count: int = 2, first: int = 1, stream: int = 1, sent_at: float = 1.0) -> bytes:
    return SHARE_HEADER.pack(7, 1, stream, first, sent_at, count) + body


@pytest.mark.parametrize(
    ("flags", "payload", "is_refused"),
    [
        (1 | 8, share_with(0, shorts(0, 2, 1) + b"ab"), False),
        (1 | 8, share_with(0, shorts(2, 2, 1) + b"ab"), True),  # the same place twice
        (1 | 8, share_with(0, shorts(2, 0, 1) + b"ab"), True),  # places out of order
        (1 | 8 | 16, share_with(0, shorts(3, 4, 1) + b"ab"), False),
        (1 | 8 | 16, share_with(0, shorts(3, 0, 1) + b"ab"), True),  # a step of nothing
        (1 | 8 | 16, share_with(0, shorts(65_000, 536, 1) + b"ab"), True),  # beyond every frame
        (1 | 2 | 8, share_with(0, shorts(0, 2, 1) + b"ab"), True),  # raw and mixed
        (32 | 1 | 8, share_with(0, shorts(0, 2, 1) + b"ab"), True),  # an unknown flag
        (1 | 8, share_with(0, shorts(1) + b"", count=0), True),
        (1 | 4 | 8, share_with(0, shorts(0, 2, 9, 1023, 1) + b"ab"), False),
        (1 | 4 | 8, share_with(0, shorts(0, 2, 9, 1024, 1) + b"ab"), True),  # no such shard
        (1, share_with(0, shorts(0, 2, 1, 1) + b"ab"), False),
        (1, share_with(0, shorts(0, 2, 1, 2) + b"ab"), True),
        (1 | 8, share_with(0, shorts(0, 2, 1) + b"ab", first=0), True),
        (1 | 8, share_with(0, shorts(0, 2, 1) + b"ab", first=2**63 - 1), True),
        (1 | 8, share_with(0, shorts(0, 2, 1) + b"ab", stream=2**63), True),
        (1 | 8, share_with(0, shorts(0, 2, 1) + b"ab", sent_at=float("nan")), True),
    ],
)
def test_a_share_is_what_it_says_or_refused(flags: int, payload: bytes, is_refused: bool) -> None:
    assert refused(StoredKind.SHARE, flags, payload) == is_refused


def test_huge_claims_of_empty_records_are_refused_unmade() -> None:
    """Empty records cost no bytes, so only the bound keeps their lists short."""
    payload = share_with(0, shorts(0, 1, 0), count=2**32 - 1)
    assert refused(StoredKind.SHARE, 1 | 8 | 16, payload)
    most = share_with(0, shorts(0, 1, 0), count=STORED_MESSAGES_MAX)
    assert read_stored(StoredKind.SHARE, 1 | 8 | 16, most).count == STORED_MESSAGES_MAX
    frames = []
    for number in range(20):
        at = Stamped(7, 1, 1, 1 + number * FRAME_MESSAGES_MAX, 1.0, 0, 0)
        frames.append(encode_batch(at, make_records([b""] * FRAME_MESSAGES_MAX)))
    assert refused(StoredKind.TRAIN, 0, shorts(len(frames[0])) + b"".join(frames))


def test_bounds_out_of_order_are_refused_though_nobody_reads_them_yet() -> None:
    frame = data_frame(3, 1, b"abcd" + shorts(56, 59, 57, 60))
    assert refused(StoredKind.FRAME, 0, frame)


def test_fragments_of_different_messages_are_no_message() -> None:
    one = encode_fragments(AT, make_record(bytes(500)), 300)
    other = encode_fragments(AT._replace(first=9), make_record(bytes(500)), 300)
    stream = encode_fragments(AT._replace(stream=9), make_record(bytes(500)), 300)
    run = whole_of(one)
    header = read_data_header(one[0])
    for parts in ([one[0], *other[1:]], [one[0], *stream[1:]], one[1:], [*one[1:], one[0]], [*one, one[0]], one[:1]):
        assert refused(*store(header, run, parts, None))
    assert not refused(*store(header, run, one, None))
