"""Data frames: golden bytes, there and back, the own stride, and all that a stranger can send."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rvq.errors import WireError
from rvq.limits import DATAGRAM_BYTES_MAX, FLIGHT_COST_BYTES, FRAME_BYTES_LOOPBACK, FRAME_MESSAGES_MAX
from rvq.wire.batch import (
    BATCH_OVERHEAD,
    FEW,
    PADDING,
    RECORD_OVERHEAD,
    Batch,
    encode_batch,
    encode_tail,
    own_stride,
    read_batch,
    slice_stride,
)
from rvq.wire.codec import DATA_HEADER, MAGIC, peek, read_data_header
from rvq.wire.frames import DataFlag, FrameType
from rvq.wire.records import (
    NO_SHARD,
    SHARDS,
    TRUSTED_BYTES,
    Content,
    Kind,
    Record,
    Records,
    make_record,
    make_records,
    read_record,
)
from tests.wire.samples import AT, damaged, data_frame, record_lists, shortly, shorts

RAW, MIXED, KEYED, EVEN, PADDED, HAS_URGENT = (int(flag) for flag in DataFlag)
START = DATA_HEADER.size

# --- golden bytes -------------------------------------------------------------------------------------------------

GOLDEN_BATCHES: list[tuple[str, int, list[Record], int, str]] = [
    (
        "raw",
        RAW,
        [make_record(b"one"), make_record(b""), make_record(b"three")],
        0,
        "7276710101010003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131b8"
        "6f6e6574687265650038003b003b0040",
    ),
    (
        "packed",
        0,
        [make_record({"job": 1}), make_record(None), make_record("later")],
        0,
        "7276710101000003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131bd"
        "81a36a6f6201c0a56c617465720038003e003f0045",
    ),
    (
        "mixed",
        MIXED,
        [make_record(b"raw"), make_record([1, 2]), make_record("x", headers={"trace": "a1"})],
        0,
        "7276710101020003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131c8"
        "00726177019201020292a178810281a57472616365a261310038003c00400050",
    ),
    (
        "keyed",
        MIXED | KEYED,
        [make_record(b"raw"), make_record(7, key="user-7"), make_record(b"z", key=b"\x00\xff")],
        0,
        "7276710101060003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131d1"
        "007261770292078101a6757365722d370292c4017a8101c40200ffffff00ff026f0038003c00480053",
    ),
    (
        "even",
        RAW | EVEN,
        [make_record(b"one"), make_record(b"two"), make_record(b"six")],
        0,
        "7276710101090003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131b3"
        "6f6e6574776f7369780003",
    ),
    (
        "even, packed",
        EVEN,
        [make_record(7), make_record(None), make_record(True)],
        0,
        "7276710101080003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131ad"
        "07c0c30001",
    ),
    (
        "even, mixed",
        MIXED | EVEN,
        [make_record(b"a"), make_record(7), make_record(None)],
        0,
        "72767101010a0003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131b0"
        "0061010701c00002",
    ),
    (
        "even, keyed",
        MIXED | KEYED | EVEN,
        [make_record(7, key="user-7"), make_record(8, key="user-8")],
        0,
        "72767101010e0002c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131c6"
        "0292078101a6757365722d370292088101a6757365722d3800ff00c9000c",
    ),
    (
        "even, empty",
        RAW | EVEN,
        [make_record(b""), make_record(b"")],
        0,
        "7276710101090002c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131aa"
        "0000",
    ),
    (
        "padded",
        RAW | PADDED,
        [make_record(b"one"), make_record(b""), make_record(b"three")],
        80,
        "7276710101110003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131c0"
        "6f6e657468726565ffffffffffffffff0038003b003b0040",
    ),
    (
        "padded, keyed",
        MIXED | KEYED | PADDED,
        [make_record(b"raw"), make_record(7, key="user-7")],
        90,
        "7276710101160002c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131ca"
        "007261770292078101a6757365722d37ffffffffffffffffffff00ff0038003c0048",
    ),
    (
        "padded, even",
        RAW | EVEN | PADDED,
        [make_record(b"one"), make_record(b"two")],
        67,
        "7276710101190002c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000131b3"
        "6f6e6574776fffffff0003",
    ),
]

each_golden = pytest.mark.parametrize(
    ("flags", "records", "size_least", "golden"),
    [golden[1:] for golden in GOLDEN_BATCHES],
    ids=[golden[0] for golden in GOLDEN_BATCHES],
)


@each_golden
def test_the_bytes_of_batches_never_change(flags: int, records: list[Record], size_least: int, golden: str) -> None:
    assert encode_batch(AT, Records.of(records), size_least).hex() == golden
    batch = read_batch(bytes.fromhex(golden))
    assert batch.flags == flags
    assert batch.contents(range(len(records))) == contents_of(records)
    assert shards_of(batch) == ([record.shard for record in records] if flags & KEYED else None)


def test_the_bytes_of_a_tail_never_change() -> None:
    assert encode_tail(AT).hex() == (
        "7276710103000000c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
    )


# --- there and back -----------------------------------------------------------------------------------------------


def contents_of(records: list[Record]) -> list[Content]:
    return [read_record(record.kind, record.data) for record in records]


def shards_of(batch: Batch) -> list[int] | None:
    return None if batch.shards is None else list(batch.shards)


@settings(shortly, max_examples=200)
@given(record_lists, st.just(0) | st.integers(0, 400))
def test_every_batch_comes_back_as_it_was(records: list[Record], size_least: int) -> None:
    datagram = encode_batch(AT, Records.of(records), size_least)
    batch = read_batch(datagram)
    assert (batch.first, batch.last, batch.count) == (301, 300 + len(records), len(records))
    assert (batch.stamp, batch.sent_at, batch.datagram) == (2, 1.5, datagram)
    assert batch.contents(range(len(records))) == contents_of(records)
    shards = [record.shard for record in records]
    assert shards_of(batch) == (shards if set(shards) != {NO_SHARD} else None)


@settings(shortly, max_examples=200)
@given(record_lists, st.just(0) | st.integers(0, 400))
def test_the_header_tells_the_form_and_where_the_frame_really_ends(records: list[Record], size_least: int) -> None:
    datagram = encode_batch(AT, Records.of(records), size_least)
    kinds = {record.kind for record in records}
    of_kind = {(Kind.RAW,): RAW, (Kind.PACKED,): 0}.get(tuple(kinds), MIXED)
    even = EVEN if len({len(record.data) for record in records}) == 1 else 0
    keyed = KEYED if {record.shard for record in records} != {NO_SHARD} else 0
    size = START + sum(len(record.data) + (of_kind == MIXED) for record in records)
    size += 2 if even else 2 * len(records) + 2
    size += 2 * len(records) if keyed else 0
    padded = PADDED if size < size_least else 0
    assert len(datagram) == max(size, size_least)
    position = AT.position + len(datagram) + FLIGHT_COST_BYTES
    flags = of_kind | even | keyed | padded
    assert read_data_header(datagram) == (MAGIC, FrameType.DATA, flags, len(records), *AT[:-1], position)
    assert peek(datagram) == (FrameType.DATA, AT.label_tag)


@settings(shortly, max_examples=150)
@given(record_lists)
def test_a_batch_takes_no_more_than_the_overheads_say(records: list[Record]) -> None:
    datagram = encode_batch(AT, Records.of(records))
    assert len(datagram) <= BATCH_OVERHEAD + sum(len(record.data) + RECORD_OVERHEAD for record in records)


@settings(shortly, max_examples=150)
@given(record_lists)
def test_the_records_stand_right_behind_the_header(records: list[Record]) -> None:
    datagram = encode_batch(AT, Records.of(records))
    mixed = read_data_header(datagram).flags & MIXED
    expected = b"".join((bytes([record.kind]) if mixed else b"") + record.data for record in records)
    assert datagram[START : START + len(expected)] == expected


def test_a_batch_of_one_kind_and_different_lengths_pays_two_bytes_for_a_message() -> None:
    for bodies in ([b"x" * 9, b"y"] * 50, ["x" * 9, "y"] * 50):
        records = make_records(bodies)
        assert len(encode_batch(AT, records)) == START + sum(records.lens) + 2 * 100 + 2


@pytest.mark.parametrize("body", [b"x" * 9, "x" * 9, b"", None], ids=["bytes", "text", "nothing", "none"])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_batch_of_one_kind_and_one_length_pays_two_bytes_in_all(body: Any, count: int) -> None:
    records = make_records([body] * count)
    datagram = encode_batch(AT, records)
    assert datagram == datagram[:START] + b"".join(records.datas) + shorts(records.lens[0])
    assert read_batch(datagram).contents(range(count)) == [Content(body)] * count


@pytest.mark.parametrize(
    ("records", "flags", "each"),
    [
        ([make_record(b"a"), make_record(7), make_record(None)], MIXED | EVEN, 2),
        ([make_record(b"abc", headers={"h": 1})] * 2, MIXED | EVEN, 13),
        ([make_record(7, key="k"), make_record(8, key="l"), make_record(9, key="k")], MIXED | KEYED | EVEN, 7),
        ([make_record(b"123456"), make_record(8, key="l")], MIXED | KEYED | EVEN, 7),
        ([Record(Kind.RAW, b"ab", 5), Record(Kind.RAW, b"cd", NO_SHARD)], RAW | KEYED | EVEN, 2),
        ([Record(Kind.PACKED, b"\x05", 5), Record(Kind.PACKED, b"\x06", 6)], KEYED | EVEN, 1),
        ([Record(Kind.RAW, b"", 5), Record(Kind.RAW, b"", 1023)], RAW | KEYED | EVEN, 0),
    ],
    ids=["kinds", "headers", "keys", "one key", "raw with a shard", "packed with a shard", "shards of nothing"],
)
def test_one_length_is_written_once_also_with_kinds_and_keys(records: list[Record], flags: int, each: int) -> None:
    datagram = encode_batch(AT, Records.of(records))
    batch = read_batch(datagram)
    assert batch.flags == flags
    tables = shorts(*(record.shard for record in records) if flags & KEYED else (), each)
    assert datagram[START + each * len(records) :] == tables
    assert batch.contents(range(len(records))) == contents_of(records)
    assert shards_of(batch) == ([record.shard for record in records] if flags & KEYED else None)


def test_what_is_of_one_length_only_with_its_kinds_is_not_even() -> None:
    # As bodies they are of one length; as records one byte apart.
    records = [make_record(b"a"), make_record("a")]
    batch = read_batch(encode_batch(AT, Records.of(records)))
    assert batch.flags == MIXED
    assert batch.contents(range(2)) == [Content(b"a"), Content("a")]


def test_keys_that_were_looked_for_and_not_found_cost_nothing() -> None:
    plain = make_records([b"a", b"bc"])
    assert encode_batch(AT, plain._replace(shards=[NO_SHARD] * 2)) == encode_batch(AT, plain)


@settings(shortly, max_examples=150)
@given(record_lists, st.integers(-3, 60))
def test_padding_fills_a_frame_up_and_changes_nothing_else(records: list[Record], more: int) -> None:
    tight = encode_batch(AT, Records.of(records))
    padded = encode_batch(AT, Records.of(records), len(tight) + more)
    if more <= 0:
        assert padded == tight
        return
    assert len(padded) == len(tight) + more
    batch, same = read_batch(padded), read_batch(tight)
    assert batch.flags == same.flags | PADDED
    assert batch.slices(range(batch.count)) == same.slices(range(batch.count))
    assert batch.contents(range(batch.count)) == contents_of(records)
    assert shards_of(batch) == shards_of(same)
    end = START + sum(map(len, same.slices(range(batch.count))))
    assert padded[START:] == tight[START:end] + PADDING * more + tight[end:]


def test_padding_may_be_of_any_bytes_and_of_none() -> None:
    for padding in (b"", b"\xff\x00\xff"):
        batch = read_batch(data_frame(2, RAW | PADDED, b"abc" + padding + shorts(START, START + 1, START + 3)))
        assert batch.slices(range(2)) == [b"a", b"bc"]
        even = read_batch(data_frame(2, RAW | PADDED | EVEN, b"abcd" + padding + shorts(2)))
        assert even.slices(range(2)) == [b"ab", b"cd"]


def test_the_fullest_frames_fit() -> None:
    empty = read_batch(encode_batch(AT, Records.of([make_record(b"")] * FRAME_MESSAGES_MAX)))
    assert empty.contents([0, FRAME_MESSAGES_MAX - 1]) == [Content(b"")] * 2
    longest = bytes(DATAGRAM_BYTES_MAX - BATCH_OVERHEAD)
    datagram = encode_batch(AT, make_records([longest]))
    assert len(datagram) == DATAGRAM_BYTES_MAX
    assert read_batch(datagram).contents([0]) == [Content(longest)]
    uneven = make_records([bytes(DATAGRAM_BYTES_MAX - BATCH_OVERHEAD - 2 * FRAME_MESSAGES_MAX)])
    uneven = Records.of([Record(Kind.RAW, uneven.datas[0], NO_SHARD), *[make_record(b"")] * (FRAME_MESSAGES_MAX - 1)])
    datagram = encode_batch(AT, uneven)
    assert len(datagram) == DATAGRAM_BYTES_MAX
    assert read_batch(datagram).slices(range(FRAME_MESSAGES_MAX)) == uneven.datas


def test_bodies_with_tuples_as_keys_come_back_in_a_batch() -> None:
    body = {(1, ("a", 2)): [3], "x": {(b"k",): None}}
    for key in (None, "k"):
        batch = read_batch(encode_batch(AT, Records.of([make_record(body, key)])))
        assert batch.contents([0]) == [Content(body, key)]


@settings(shortly, max_examples=150)
@given(record_lists)
def test_plain_bodies_are_the_bodies_or_not_there_at_all(records: list[Record]) -> None:
    batch = read_batch(encode_batch(AT, Records.of(records)))
    plain = batch.plain_bodies(range(len(records)))
    if batch.flags & MIXED:
        assert plain is None
    elif plain is not None:
        assert list(plain) == [content.body for content in contents_of(records)]


def test_a_long_packed_record_is_looked_at_before_it_is_unpacked() -> None:
    body = "x" * TRUSTED_BYTES
    batch = read_batch(encode_batch(AT, make_records(["short", body])))
    assert batch.plain_bodies(range(2)) is None
    assert batch.plain_bodies([0]) == ["short"]
    assert batch.contents(range(2)) == [Content("short"), Content(body)]


def test_an_unreadable_record_spoils_nothing_but_itself() -> None:
    good = make_record("good")
    bad = [Record(Kind.PACKED, b"\xc1", NO_SHARD), Record(Kind.PACKED, b"\x91" * 2000, NO_SHARD)]
    packed = read_batch(encode_batch(AT, Records.of([good, *bad, good])))
    assert packed.contents(range(4)) == [Content("good"), None, None, Content("good")]
    mixed = read_batch(
        encode_batch(AT, Records.of([good, *bad, make_record(b"raw"), Record(Kind.RICH, b"\xc0", NO_SHARD)]))
    )
    assert mixed.contents(range(5)) == [Content("good"), None, None, Content(b"raw"), None]
    even = read_batch(encode_batch(AT, Records.of([make_record(7), bad[0], make_record(None)])))
    assert even.flags == EVEN
    assert even.contents(range(3)) == [Content(7), None, Content(None)]


# --- the own stride -----------------------------------------------------------------------------------------------


@settings(shortly, max_examples=150)
@given(st.integers(1, 2**63 - 1) | st.integers(1, 50), st.integers(0, 60), st.integers(1, 40), st.data())
def test_the_own_stride_is_every_sequence_that_leaves_the_own_slot(
    first: int, count: int, slots: int, data: st.DataObject
) -> None:
    slot = data.draw(st.integers(0, slots - 1))
    naive = [index for index in range(count) if (first + index) % slots == slot]
    assert list(own_stride(first, count, slot, slots)) == naive


@given(st.integers(1, 1000), st.integers(0, 60), st.integers(1, 40))
@shortly
def test_the_strides_of_all_slots_share_a_frame_without_a_rest(first: int, count: int, slots: int) -> None:
    shares = [own_stride(first, count, slot, slots) for slot in range(slots)]
    assert sorted(itertools.chain(*shares)) == list(range(count))


@settings(shortly, max_examples=200)
@given(record_lists, st.data())
def test_any_indices_give_the_records_at_them(records: list[Record], data: st.DataObject) -> None:
    batch = read_batch(encode_batch(AT, Records.of(records)))
    every = batch.slices(list(range(len(records))))
    # Each at most once: a frame holds no more than itself.
    some = st.permutations(range(len(records))).flatmap(
        lambda indices: st.integers(0, len(indices)).map(lambda count: list(indices)[:count])
    )
    steps = st.integers(-4, 4).filter(bool)
    ends = st.integers(0, len(records) - 1)
    strides = st.builds(range, ends, ends | st.just(len(records)), steps)
    indices = data.draw(some | strides)
    assert batch.slices(indices) == [every[index] for index in indices]
    assert batch.contents(indices) == contents_of([records[index] for index in indices])


@settings(shortly, max_examples=150)
@given(record_lists, st.integers(1, 7), st.data())
def test_walking_the_own_stride_gives_the_own_messages(records: list[Record], slots: int, data: st.DataObject) -> None:
    slot = data.draw(st.integers(0, slots - 1))
    batch = read_batch(encode_batch(AT, Records.of(records)))
    own = [record for sequence, record in enumerate(records, AT.first) if sequence % slots == slot]
    assert batch.contents(own_stride(batch.first, batch.count, slot, slots)) == contents_of(own)


def naive_stride(datagram: bytes, at: int, each: int, step: int, count: int) -> list[bytes]:
    starts = [at + number * step * each for number in range(count)]
    return [datagram[start : start + each] for start in starts]


@pytest.mark.parametrize("step", range(1, 10))
def test_a_stride_in_blocks_is_the_same_as_record_by_record(step: int) -> None:
    counting = bytes(range(256)) * 8
    for count in range(71):
        for each in (0, 1, 3):
            datagram = (b"head!" + counting)[: 5 + max(0, (count - 1) * step + 1) * each]  # ends with the last one
            found = slice_stride(datagram, 5, each, step, count)
            assert list(found) == naive_stride(datagram, 5, each, step, count)
            assert len(found) == count


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2047, 2048, 4097, 9999, FRAME_MESSAGES_MAX])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_long_stride_in_blocks_is_the_same_as_record_by_record(count: int, step: int) -> None:
    datagram = bytes(START) + b"".join(number.to_bytes(3, "big") for number in range(count * step))
    found = slice_stride(datagram, START + 3 * (step - 1), 3, step, count)
    assert found == [number.to_bytes(3, "big") for number in range(step - 1, count * step, step)]


@shortly
@given(st.integers(1, 300), st.integers(0, 9), st.integers(1, 2 * FEW), st.data())
def test_every_share_of_an_even_frame_is_what_was_sent(count: int, each: int, slots: int, data: st.DataObject) -> None:
    bodies = [(number * 7919).to_bytes(10, "big")[10 - each :] for number in range(count)]
    batch = read_batch(encode_batch(AT, make_records(bodies.copy()), data.draw(st.sampled_from([0, 5000]))))
    assert batch.flags & EVEN
    shares = [own_stride(AT.first, count, slot, slots) for slot in range(slots)]
    assert [list(batch.slices(share)) for share in shares] == [[bodies[i] for i in share] for share in shares]


# --- what strangers send ------------------------------------------------------------------------------------------


def read_everything(datagram: bytes) -> bool:
    """Whatever the bytes are: only WireError may come out of any decoder. False if it did."""
    try:
        batch = read_batch(datagram)
        everything = batch.contents(range(batch.count))
        assert len(everything) == batch.count
        assert sum(map(len, batch.slices(range(batch.count)))) <= len(datagram)
        some = [batch.count - 1, 0, batch.count // 2] if batch.count > 2 else [0]
        assert [content is None for content in batch.contents(some)] == [everything[i] is None for i in some]
        assert batch.shards is None or all(shard < SHARDS or shard == NO_SHARD for shard in batch.shards)
    except WireError:
        return False
    return True


@settings(shortly, max_examples=300)
@given(record_lists, st.just(0) | st.integers(0, 300), st.data())
def test_a_damaged_frame_raises_nothing_but_wire_errors(
    records: list[Record], size_least: int, data: st.DataObject
) -> None:
    good = encode_batch(AT, Records.of(records), size_least)
    assert read_everything(good)
    read_everything(data.draw(damaged(good)))


@shortly
@given(record_lists, st.data())
def test_a_damaged_table_raises_nothing_but_wire_errors(records: list[Record], data: st.DataObject) -> None:
    good = bytearray(encode_batch(AT, Records.of(records)))
    tables = 2 * len(records) + 2
    for _ in range(data.draw(st.integers(1, 4))):
        good[-data.draw(st.integers(1, min(tables, len(good) - START)))] = data.draw(st.integers(0, 255))
    read_everything(bytes(good))


@settings(shortly, max_examples=150)
@given(
    st.sampled_from([1, 2, 3]), st.integers(0, 255) | st.integers(0, 31), st.integers(0, 40), st.binary(max_size=120)
)
def test_random_bodies_raise_nothing_but_wire_errors(kind: int, flags: int, count: int, body: bytes) -> None:
    read_everything(data_frame(count, flags, body, kind=kind))


@shortly
@given(st.binary(max_size=120))
@example(b"")
def test_random_bytes_raise_nothing_but_wire_errors(datagram: bytes) -> None:
    assert not read_everything(datagram)
    with pytest.raises(WireError):
        read_batch(datagram)


def from_start(*values: int) -> bytes:
    """Bounds, counted from the first byte of the first record."""
    return shorts(*(START + value for value in values))


@pytest.mark.parametrize(
    "datagram",
    [
        data_frame(0, RAW, from_start(0)),
        data_frame(0, RAW | EVEN, shorts(0)),
        data_frame(FRAME_MESSAGES_MAX + 1, RAW, from_start(*[0] * (FRAME_MESSAGES_MAX + 2))),
        data_frame(FRAME_MESSAGES_MAX + 1, RAW | EVEN, shorts(0)),
        data_frame(65_535, RAW, b"short"),
        data_frame(65_535, RAW | EVEN, b"short"),
        data_frame(2, RAW, from_start(0, 0)),
        data_frame(1, RAW | EVEN, b"\x00"),
        data_frame(1, RAW | EVEN, b""),
        data_frame(2, RAW | KEYED, shorts(0) + from_start(0, 0, 0)),
        data_frame(2, RAW | KEYED | EVEN, shorts(0) + shorts(0)),
        data_frame(2, RAW, b"a" + from_start(0, 1, 2)),
        data_frame(2, RAW, b"abc" + from_start(0, 1, 2)),
        data_frame(2, RAW | EVEN, b"abc" + shorts(2)),
        data_frame(2, RAW | EVEN, b"abc" + shorts(1)),
        data_frame(2, RAW | EVEN | PADDED, b"abc" + shorts(2)),
        data_frame(2, RAW | PADDED, b"abc" + from_start(0, 1, 4)),
        data_frame(2, RAW | PADDED, b"abc" + from_start(0, 1, -1)),
        data_frame(2, RAW, b"ab" + from_start(1, 1, 2)),
        data_frame(2, RAW, b"ab" + from_start(-56, 1, 2)),
        data_frame(2, RAW | PADDED, b"ab" + from_start(-1, 1, 2)),
        data_frame(2, RAW, b"ab" + from_start(0, 1, 2)[::-1]),
        data_frame(2, RAW, from_start(0, 1, 2) + b"ab"),
        data_frame(2, RAW | KEYED, b"ab" + shorts(0, SHARDS) + from_start(0, 1, 2)),
        data_frame(2, RAW | KEYED | EVEN, b"ab" + shorts(NO_SHARD - 1, 0) + shorts(1)),
        data_frame(1, RAW | MIXED | EVEN, b"a" + shorts(1)),
        data_frame(1, RAW | EVEN | 32, b"a" + shorts(1)),
        data_frame(1, RAW | EVEN, b"a" + shorts(1), first=0),
        data_frame(1, RAW | EVEN, b"a" + shorts(1), kind=FrameType.TAIL),
        data_frame(1, RAW | EVEN, b"a" + shorts(1), kind=FrameType.FRAGMENT),
        data_frame(1, RAW | EVEN, b"a" + shorts(1), kind=FrameType.ALIVE),
        b"RVQ\x01" + data_frame(1, RAW | EVEN, b"a" + shorts(1))[4:],
    ],
    ids=[
        "no messages",
        "no messages of one length",
        "too many messages",
        "too many messages of one length",
        "a lying count",
        "a lying count of one length",
        "a bound too few",
        "half a length",
        "no length",
        "half a table of shards",
        "half a table of shards of one length",
        "cut",
        "too long",
        "cut records of one length",
        "too long for one length",
        "one length that padding does not make up for",
        "an end in the tables",
        "an end in the header",
        "a gap before the first",
        "a start in the header",
        "a start in the header of a padded one",
        "the wrong byte order",
        "tables in front",
        "a shard that is none",
        "a shard that is nearly none",
        "raw and mixed",
        "an unknown flag",
        "sequence 0",
        "a tail",
        "a fragment",
        "a control frame",
        "another protocol",
    ],
)
def test_a_batch_that_cannot_be_is_refused(datagram: bytes) -> None:
    with pytest.raises(WireError):
        read_batch(datagram)


def test_what_those_refusals_are_one_step_from_is_read() -> None:
    for datagram in (
        data_frame(2, RAW, b"ab" + from_start(0, 1, 2)),
        data_frame(2, RAW | KEYED, b"ab" + shorts(0, SHARDS - 1) + from_start(0, 1, 2)),
        data_frame(2, RAW | KEYED | EVEN, b"ab" + shorts(NO_SHARD, 0) + shorts(1)),
        data_frame(2, RAW | PADDED, b"abc" + from_start(0, 1, 2)),
        data_frame(2, RAW | EVEN | PADDED, b"abc" + shorts(1)),
    ):
        assert read_batch(datagram).slices(range(2)) == [b"a", b"b"]


def test_a_mixed_record_without_its_kind_or_of_an_unknown_one_is_none() -> None:
    batch = read_batch(data_frame(3, MIXED, b"\x07\x00" + b"\x01\x07" + from_start(0, 0, 2, 4)))
    assert batch.contents(range(3)) == [None, None, Content(7)]
    even = read_batch(data_frame(2, MIXED | EVEN, b"\x07\x00" + b"\x01\x07" + shorts(2)))
    assert even.contents(range(2)) == [None, Content(7)]
    assert read_batch(data_frame(2, MIXED | EVEN, shorts(0))).contents(range(2)) == [None, None]


@each_golden
def test_a_batch_that_is_cut_or_too_long_is_refused(
    flags: int, records: list[Record], size_least: int, golden: str
) -> None:
    datagram = bytes.fromhex(golden)
    for wrong in (*(datagram[:length] for length in range(len(datagram))), datagram + b"\x00"):
        with pytest.raises(WireError):
            read_batch(wrong)


def test_bounds_out_of_order_are_found_when_they_give_more_than_the_frame() -> None:
    # Back and forth over 200 bytes: 20 of 40 records have all of them, which no frame of 338 bytes can hold.
    bounds = [200 * (number % 2) for number in range(40)]
    for flags in (RAW, 0, MIXED):
        batch = read_batch(data_frame(40, flags, bytes(200) + from_start(*bounds, 200)))
        for indices in (range(40), list(range(40)), range(0, 40, 2)):
            for read in (batch.slices, batch.contents):
                with pytest.raises(WireError, match="out of order"):
                    read(indices)
            if flags == MIXED:
                assert batch.plain_bodies(indices) is None
            else:
                with pytest.raises(WireError, match="out of order"):
                    batch.plain_bodies(indices)


def test_bounds_out_of_order_in_others_records_are_not_looked_at() -> None:
    batch = read_batch(data_frame(4, RAW, b"abcd" + from_start(0, 1, 3, 2, 4)))
    assert batch.slices([0]) == [b"a"]
    assert batch.slices(range(1, 4, 2)) == [b"bc", b"cd"]


def test_an_own_record_that_ends_before_it_begins_spoils_the_frame() -> None:
    batch = read_batch(data_frame(4, RAW, b"abcd" + from_start(0, 1, 3, 2, 4)))
    for indices in ([2], range(4), range(2, 4), range(0, 4, 2)):
        with pytest.raises(WireError, match="out of order"):
            batch.slices(indices)


def test_bounds_behind_the_end_give_no_more_than_the_frame() -> None:
    batch = read_batch(data_frame(3, RAW, b"ab" + from_start(0, 65_000 - START, 65_400 - START, 2)))
    for indices in ([0], [1], [2], range(3)):
        try:
            found = batch.slices(indices)
        except WireError:
            continue
        assert sum(map(len, found)) <= len(batch.datagram)


def zigzag(size: int, count: int) -> bytes:
    """A frame whose every other record is said to be all of its records."""
    length = size - START - 2 * count - 2
    bounds = [length * (number % 2) for number in range(count)]
    return data_frame(count, RAW, bytes(length) + from_start(*bounds, length))


@pytest.mark.parametrize("as_list", [False, True], ids=["a stride", "single ones"])
def test_bounds_out_of_order_never_take_more_memory_than_a_frame(as_list: bool) -> None:
    # Each of 8,192 records would be 27 kB: 223 MB of a frame of 60 kB.
    batch = read_batch(zigzag(FRAME_BYTES_LOOPBACK, FRAME_MESSAGES_MAX))
    every = range(FRAME_MESSAGES_MAX)
    indices = list(every) if as_list else every
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            batch.slices(indices)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    of_each = 256  # places in lists, and the numbers and bytes in them: a good record takes that too
    assert peak < FRAME_BYTES_LOOPBACK + of_each * FRAME_MESSAGES_MAX


# --- urgent ones --------------------------------------------------------------------------------------------------


def test_a_frame_says_whether_it_has_urgent_messages() -> None:
    plain, urgent = make_record(1), make_record(1, urgent=True)
    assert not read_batch(encode_batch(AT, Records.of([plain, make_record(b"x")]))).has_urgent
    frame = encode_batch(AT, Records.of([plain, urgent]))
    assert read_data_header(frame).flags == MIXED | HAS_URGENT
    batch = read_batch(frame)
    assert batch.has_urgent
    assert [content and content.urgent for content in batch.contents(range(2))] == [False, True]
    alone = encode_batch(AT, Records.of([urgent]))
    assert read_data_header(alone).flags == MIXED | HAS_URGENT | EVEN
    assert read_batch(alone).contents(range(1)) == [Content(1, urgent=True)]


@pytest.mark.parametrize("flags", [HAS_URGENT, RAW | HAS_URGENT, 64, 128])
def test_urgent_ones_without_kinds_and_unknown_flags_are_refused(flags: int) -> None:
    with pytest.raises(WireError):
        read_batch(data_frame(1, flags | EVEN, b"x" + shorts(1)))
