"""Data bodies: golden bytes, there and back, the own stride, fragments, and all that a stranger can send."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import msgpack
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rvq.errors import BadMessage, MessageTooLarge, WireError
from rvq.limits import (
    DATAGRAM_BYTES_MAX,
    DATAGRAM_COST_BYTES,
    FRAGMENTS_MAX,
    FRAME_BYTES_MIN,
    FRAME_MESSAGES_MAX,
    MESSAGE_BYTES_MAX,
)
from rvq.wire.batch import (
    FRAGMENT_OVERHEAD,
    NO_SHARD,
    SHARDS,
    Attribute,
    Batch,
    Content,
    Fragment,
    Kind,
    Record,
    Records,
    Stamped,
    Whole,
    batch_cost,
    encode_batch,
    encode_fragments,
    encode_tail,
    make_record,
    make_records,
    own_stride,
    read_batch,
    read_fragment,
    read_record,
    shard_of,
)
from rvq.wire.codec import DATA_HEADER, MAGIC, peek, read_data_header
from rvq.wire.frames import DataFlag, FrameType

AT = Stamped(
    label_tag=0xC0FFEE07, stamp=2, stream=0x0123456789ABCDEF, first=301, sent_at=1.5, done_to=250, position=70_000
)

shortly = settings(max_examples=80, deadline=None, derandomize=True, database=None)

# --- golden bytes -------------------------------------------------------------------------------------------------

GOLDEN_BATCHES: list[tuple[str, list[Record], str]] = [
    (
        "raw",
        [make_record(b"one"), make_record(b""), make_record(b"three")],
        "7276710101010003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
        "0003000300086f6e657468726565",
    ),
    (
        "packed",
        [make_record({"job": 1}), make_record(None), make_record("later")],
        "7276710101000003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
        "00060007000d81a36a6f6201c0a56c61746572",
    ),
    (
        "mixed",
        [make_record(b"raw"), make_record([1, 2]), make_record("x", headers={"trace": "a1"})],
        "7276710101020003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
        "00040008001800726177019201020292a178810281a57472616365a26131",
    ),
    (
        "keyed",
        [make_record(b"raw"), make_record(7, key="user-7"), make_record(b"z", key=b"\x00\xff")],
        "7276710101060003c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
        "00040010001bffff00ff026f007261770292078101a6757365722d370292c4017a8101c40200ff",
    ),
]


@pytest.mark.parametrize(("form", "records", "golden"), GOLDEN_BATCHES, ids=[form for form, _, _ in GOLDEN_BATCHES])
def test_the_bytes_of_batches_never_change(form: str, records: list[Record], golden: str) -> None:
    assert encode_batch(AT, Records.of(records)).hex() == golden
    batch = read_batch(bytes.fromhex(golden))
    flags = {"raw": DataFlag.RAW, "packed": 0, "mixed": DataFlag.MIXED, "keyed": DataFlag.MIXED | DataFlag.KEYED}
    assert batch.flags == flags[form]
    assert batch.contents(range(3)) == [read_record(record.kind, record.data) for record in records]
    assert batch.shards == (tuple(record.shard for record in records) if form == "keyed" else None)


def test_the_bytes_of_fragments_never_change() -> None:
    frames = encode_fragments(AT, make_record(b"0123456789", key="user-7"), FRAGMENT_OVERHEAD + 8)
    assert [frame.hex() for frame in frames] == [
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa00000000000115bb"
        "00000000000000030200ff92c40a3031323334",
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011a06"
        "00000001000000030200ff35363738398101a6",
        "7276710102000001c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011e4f"
        "00000002000000030200ff757365722d37",
    ]


def test_the_bytes_of_a_tail_never_change() -> None:
    assert encode_tail(AT).hex() == (
        "7276710103000000c0ffee07000000020123456789abcdef000000000000012d3ff800000000000000000000000000fa0000000000011170"
    )


@pytest.mark.parametrize(("key", "shard"), [("user-7", 255), ("größe", 823), (b"\x00\xff", 623)])
def test_a_key_has_the_same_shard_everywhere(key: str | bytes, shard: int) -> None:
    assert shard_of(key) == shard


def test_text_and_its_utf8_bytes_are_one_key() -> None:
    assert shard_of("größe") == shard_of("größe".encode())


def test_keys_spread_over_all_shards() -> None:
    seen = {shard_of(f"user-{number}") for number in range(20 * SHARDS)}
    assert seen == set(range(SHARDS))


def test_the_numbers_of_kinds_and_attributes_never_change() -> None:
    assert {kind.name: kind.value for kind in Kind} == {"RAW": 0, "PACKED": 1, "RICH": 2}
    assert {name.name: name.value for name in Attribute} == {"KEY": 1, "HEADERS": 2, "DUE_AT": 3, "TTL": 4}


# --- records ------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=20)
plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=20)
)
bodies = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts | st.integers(0, 9), inner, max_size=5),
    max_leaves=10,
)
keys = st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=9) | st.binary(min_size=1, max_size=9)
headers = st.none() | st.dictionaries(texts, plain, max_size=3)
records = st.builds(make_record, bodies, keys, headers)
bodies_raw = st.builds(make_record, st.binary(max_size=20))
bodies_packed = st.builds(make_record, bodies.filter(lambda body: type(body) is not bytes))
record_lists = st.one_of(*(st.lists(some, min_size=1, max_size=30) for some in (records, bodies_raw, bodies_packed)))


@settings(shortly, max_examples=150)
@given(bodies, keys, headers)
def test_every_message_comes_back_as_it_was(body: Any, key: Any, headers: Any) -> None:
    record = make_record(body, key, headers)
    assert read_record(record.kind, record.data) == Content(body, key, headers or None)
    assert record.shard == (NO_SHARD if key is None else shard_of(key))


def test_bytes_travel_as_they_are_and_cost_nothing() -> None:
    assert make_record(b"raw") == Record(Kind.RAW, b"raw", NO_SHARD)
    assert make_record(b"raw", headers={}) == Record(Kind.RAW, b"raw", NO_SHARD)


def test_what_msgpack_knows_as_other_types_comes_back_as_those() -> None:
    for sent, read in (((1, 2), [1, 2]), (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x")):
        record = make_record(sent)
        assert read_record(record.kind, record.data).body == read


def test_tuples_as_keys_of_a_dict_come_back_as_tuples() -> None:
    body = {(1, ("a", 2)): [3], "x": {(b"k",): None}}
    for record in (make_record(body), make_record(body, key="k")):
        assert read_record(record.kind, record.data).body == body
        assert read_batch(encode_batch(AT, Records.of([record]))).contents([0])[0] == Content(
            body, "k" if record.kind == 2 else None
        )


def test_nan_comes_back_as_nan() -> None:
    record = make_record([math.nan])
    assert math.isnan(read_record(record.kind, record.data).body[0])


def test_extension_types_come_back_as_they_were() -> None:
    for body in (msgpack.ExtType(5, b"abc"), msgpack.Timestamp(1_700_000_000, 5)):
        record = make_record(body)
        assert read_record(record.kind, record.data).body == body


def nested(depth: int) -> list[Any]:
    body: list[Any] = []
    for _ in range(depth):
        body = [body]
    return body


def circular() -> list[Any]:
    body: list[Any] = []
    body.append(body)
    return body


@pytest.mark.parametrize(
    "body",
    [object(), {1, 2}, 2**64, -(2**63) - 1, 1j, "\ud800", {"\udfff": 1}, [print], nested(5000), circular()],
    ids=[
        "object",
        "set",
        "2**64",
        "-2**63-1",
        "complex",
        "surrogate",
        "surrogate as key",
        "function",
        "deep",
        "circular",
    ],
)
def test_what_cannot_be_packed_is_a_bad_message(body: Any) -> None:
    for key in (None, "k"):
        with pytest.raises(BadMessage, match="send what msgpack takes"):
            make_record(body, key)


def test_a_body_nested_500_deep_comes_back_as_it_was() -> None:
    record = make_record(nested(500), key="k")
    body = read_record(record.kind, record.data).body
    depth = 0
    while body:
        [body], depth = body, depth + 1
    assert depth == 500


@pytest.mark.parametrize("key", ["", b"", 7, 1.5, ("a",), ["a"], "\ud800"], ids=ascii)
def test_a_key_that_is_not_text_or_bytes_is_a_bad_message(key: Any) -> None:
    with pytest.raises(BadMessage):
        make_record("body", key)


@pytest.mark.parametrize("headers", [["a"], {1: "a"}, {b"a": 1}, "a", {"a": object()}], ids=repr)
def test_headers_that_are_no_dict_with_text_names_are_a_bad_message(headers: Any) -> None:
    with pytest.raises(BadMessage):
        make_record("body", headers=headers)


def test_a_message_over_the_limit_is_refused_with_its_size() -> None:
    assert len(make_record(bytes(MESSAGE_BYTES_MAX)).data) == MESSAGE_BYTES_MAX
    for body, key in (
        (bytes(MESSAGE_BYTES_MAX + 1), None),
        (bytes(MESSAGE_BYTES_MAX), "k"),
        ("x" * MESSAGE_BYTES_MAX, None),
    ):
        with pytest.raises(MessageTooLarge) as caught:
            make_record(body, key)
        assert caught.value.size > caught.value.limit == MESSAGE_BYTES_MAX


# --- batches ------------------------------------------------------------------------------------------------------


@settings(shortly, max_examples=150)
@given(record_lists)
def test_every_batch_comes_back_as_it_was(records: list[Record]) -> None:
    datagram = encode_batch(AT, Records.of(records))
    batch = read_batch(datagram)
    assert (batch.first, batch.last, batch.count) == (301, 300 + len(records), len(records))
    assert (batch.stamp, batch.sent_at, batch.datagram) == (2, 1.5, datagram)
    assert batch.contents(range(len(records))) == [read_record(record.kind, record.data) for record in records]
    shards = tuple(record.shard for record in records)
    assert batch.shards == (shards if set(shards) != {NO_SHARD} else None)
    assert len(datagram) <= DATA_HEADER.size + sum(map(batch_cost, records))


def test_a_batch_of_one_kind_pays_two_bytes_for_a_message() -> None:
    for body in (b"x" * 9, "x" * 9):
        record = make_record(body)
        size = len(encode_batch(AT, Records.of([record] * 100)))
        assert size == DATA_HEADER.size + 100 * (2 + len(record.data))


def test_the_header_of_a_batch_says_what_the_sender_said() -> None:
    datagram = encode_batch(AT, Records.of([make_record(b"x")]))
    header = read_data_header(datagram)
    assert header == (MAGIC, FrameType.DATA, DataFlag.RAW, 1, *AT)
    assert peek(datagram) == (FrameType.DATA, AT.label_tag)


def test_the_fullest_frames_fit() -> None:
    empty = read_batch(encode_batch(AT, Records.of([make_record(b"")] * FRAME_MESSAGES_MAX)))
    assert empty.contents([0, FRAME_MESSAGES_MAX - 1]) == [Content(b"")] * 2
    longest = DATAGRAM_BYTES_MAX - DATA_HEADER.size - 2
    assert read_batch(encode_batch(AT, Records.of([make_record(bytes(longest))]))).contents([0]) == [
        Content(bytes(longest))
    ]


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


@settings(shortly, max_examples=150)
@given(record_lists, st.data())
def test_any_indices_give_the_records_at_them(records: list[Record], data: st.DataObject) -> None:
    batch = read_batch(encode_batch(AT, Records.of(records)))
    every = batch.slices(list(range(len(records))))
    some = st.lists(st.integers(0, len(records) - 1), max_size=10)
    steps = st.integers(-4, 4).filter(bool)
    ends = st.integers(0, len(records) - 1)
    strides = st.builds(range, ends, ends, steps)
    indices = data.draw(some | strides)
    assert batch.slices(indices) == [every[index] for index in indices]
    assert batch.contents(indices) == [read_record(records[i].kind, records[i].data) for i in indices]


@shortly
@given(record_lists, st.integers(1, 7), st.data())
def test_walking_the_own_stride_gives_the_own_messages(records: list[Record], slots: int, data: st.DataObject) -> None:
    slot = data.draw(st.integers(0, slots - 1))
    batch = read_batch(encode_batch(AT, Records.of(records)))
    own = [record for sequence, record in enumerate(records, AT.first) if sequence % slots == slot]
    contents = batch.contents(own_stride(batch.first, batch.count, slot, slots))
    assert contents == [read_record(record.kind, record.data) for record in own]


def test_an_unreadable_record_spoils_nothing_but_itself() -> None:
    good = make_record("good")
    bad = [Record(Kind.PACKED, b"\xc1", NO_SHARD), Record(Kind.PACKED, b"\x91" * 2000, NO_SHARD)]
    packed = read_batch(encode_batch(AT, Records.of([good, *bad, good])))
    assert packed.contents(range(4)) == [Content("good"), None, None, Content("good")]
    mixed = read_batch(
        encode_batch(AT, Records.of([good, *bad, make_record(b"raw"), Record(Kind.RICH, b"\xc0", NO_SHARD)]))
    )
    assert mixed.contents(range(5)) == [Content("good"), None, None, Content(b"raw"), None]


# --- fragments ----------------------------------------------------------------------------------------------------


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


def test_each_fragment_carries_the_position_behind_itself() -> None:
    frames = encode_fragments(AT, make_record(bytes(1000)), FRAME_BYTES_MIN)
    behind = itertools.accumulate((len(frame) + DATAGRAM_COST_BYTES for frame in frames), initial=AT.position)
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


def fragment_frame(head: bytes, data: bytes, count: int = 1, first: int = 1) -> bytes:
    return DATA_HEADER.pack(MAGIC, FrameType.FRAGMENT, 0, count, 0, 1, 1, first, 1.5, 0, 0) + head + data


@pytest.mark.parametrize(
    ("part", "parts", "kind", "shard", "data"),
    [
        (0, 0, 0, NO_SHARD, b"x"),
        (2, 2, 0, NO_SHARD, b"x"),
        (0, FRAGMENTS_MAX + 1, 0, NO_SHARD, b"x"),
        (0, 2**32 - 1, 0, NO_SHARD, b"x"),
        (0, 2, 3, NO_SHARD, b"x"),
        (0, 2, 255, NO_SHARD, b"x"),
        (0, 2, 0, SHARDS, b"x"),
        (0, 2, 0, NO_SHARD, b""),
        (0, 1000, 0, NO_SHARD, bytes(60_000)),
    ],
)
def test_a_fragment_that_cannot_be_is_refused(part: int, parts: int, kind: int, shard: int, data: bytes) -> None:
    head = part.to_bytes(4, "big") + parts.to_bytes(4, "big") + bytes([kind]) + shard.to_bytes(2, "big")
    frame = fragment_frame(head, data)
    with pytest.raises(WireError):
        read_fragment(frame, read_data_header(frame))


def test_a_fragment_of_several_messages_or_of_none_is_refused() -> None:
    [good] = encode_fragments(AT, make_record(b"x"), FRAME_BYTES_MIN)
    head = good[DATA_HEADER.size : FRAGMENT_OVERHEAD]
    for frame in (
        fragment_frame(head, b"x", count=2),
        fragment_frame(head, b"x", first=0),
        fragment_frame(head[:-1], b""),
    ):
        with pytest.raises(WireError):
            read_fragment(frame, read_data_header(frame))


# --- what strangers send ------------------------------------------------------------------------------------------


def read_everything(datagram: bytes) -> bool:
    """Whatever the bytes are: only WireError may come out of any decoder. False if it did."""
    try:
        kind, _tag = peek(datagram)
        header = read_data_header(datagram)
        if kind == FrameType.FRAGMENT:
            fragment = read_fragment(datagram, header)
            Whole(fragment, fragment.data).contents([0])
        else:
            batch = Batch(datagram, header)
            everything = batch.contents(range(batch.count))
            assert len(everything) == batch.count
            assert sum(map(len, batch.slices(range(batch.count)))) <= len(datagram)
            some = [batch.count - 1, 0, batch.count // 2]
            assert [content is None for content in batch.contents(some)] == [everything[i] is None for i in some]
            assert batch.shards is None or all(shard < SHARDS or shard == NO_SHARD for shard in batch.shards)
    except WireError:
        return False
    return True


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good frame with some bytes changed, cut out, put in or cut off."""
    records = draw(record_lists)
    if draw(st.booleans()):
        frames = [encode_batch(AT, Records.of(records))]
    else:
        assume(records[0].data)
        frames = encode_fragments(AT, records[0], FRAGMENT_OVERHEAD + 5)
    datagram = bytearray(draw(st.sampled_from(frames)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(4, len(datagram)))
        end = place + draw(st.sampled_from([1, 1, 1, 1, 2, 0]))
        datagram[place:end] = draw(st.binary(min_size=1, max_size=1) | st.binary(max_size=3))
    return bytes(datagram[: draw(st.integers(0, len(datagram)))] if draw(st.integers(0, 3)) == 3 else datagram)


@settings(shortly, max_examples=250)
@given(damaged())
def test_a_damaged_frame_raises_nothing_but_wire_errors(datagram: bytes) -> None:
    read_everything(datagram)


@shortly
@given(st.sampled_from([1, 2, 3]), st.integers(0, 255), st.integers(0, 40), st.binary(max_size=120))
def test_random_bodies_raise_nothing_but_wire_errors(kind: int, flags: int, count: int, body: bytes) -> None:
    read_everything(DATA_HEADER.pack(MAGIC, kind, flags, count, 7, 1, 1, 1, 1.5, 0, 0) + body)


@shortly
@given(st.binary(max_size=120))
@example(b"")
def test_random_bytes_raise_nothing_but_wire_errors(datagram: bytes) -> None:
    assert not read_everything(datagram)
    with pytest.raises(WireError):
        read_batch(datagram)


@settings(shortly, max_examples=250)
@given(st.integers(0, 255), st.binary(max_size=60))
@example(Kind.PACKED, b"")
@example(Kind.RICH, b"\x92\xc0\x81\x01\xa0")
@example(Kind.RICH, b"\x92\xc0\x81\x02\x81\x01\x01")
@example(Kind.RICH, b"\x92\xc0\x81\x01\x05")
@example(Kind.RICH, b"\x92\xc0\xc0")
@example(Kind.RICH, b"\x93\xc0\x80\x80")
def test_random_records_raise_nothing_but_wire_errors(kind: int, data: bytes) -> None:
    for likely in (kind, Kind.PACKED, Kind.RICH):
        try:
            read_record(likely, data)
        except WireError:
            continue


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"\xa2\xff\xfe",
        b"\xa3\xed\xa0\x80",
        b"\x81\x80\x01",
        b"\x81\x91\x80\x01",
        b"\x81" + b"\x91" * 1000 + b"\x01\x01",
        b"\xc7\x05\xff\x00\x00\x00\x00\x00",
        b"\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00",
        b"\xd4\x80\x00",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x05",
        b"\x91" * 1500,
        b"\x91" * 60_000,
        b"\x81\xa1a" * 2000,
        b"\x01\x01",
        b"",
    ],
    ids=lambda data: data[:8].hex(),
)
def test_records_that_are_no_message_are_refused(data: bytes) -> None:
    for kind in (Kind.PACKED, Kind.RICH):
        with pytest.raises(WireError):
            read_record(kind, data)


def test_long_lists_nested_in_each_other_are_refused_unmade() -> None:
    # Each of the thousand lists would be made a million long before the first entry is read: 8 GB for 1 MB.
    bomb = b"\xdd\x00\x0f\xff\xff" * 1000 + bytes(2**20)
    with pytest.raises(WireError) as caught:
        read_record(Kind.PACKED, bomb)
    assert isinstance(caught.value.__cause__, msgpack.OutOfData)


def test_long_honest_lists_are_read() -> None:
    for body in (
        list(range(100_000)),
        [["\udcdc".encode("utf-8", "surrogatepass")] * 5000],
        {"a": [[0] * 70_000, "ü" * 9000]},
    ):
        record = make_record(body)
        assert read_record(record.kind, record.data).body == body


def batch_frame(count: int, flags: int, body: bytes, first: int = 1, kind: int = FrameType.DATA) -> bytes:
    return DATA_HEADER.pack(MAGIC, kind, flags, count, 7, 1, 1, first, 1.5, 0, 0) + body


def ends(*values: int) -> bytes:
    return b"".join(value.to_bytes(2, "big") for value in values)


@pytest.mark.parametrize(
    "datagram",
    [
        batch_frame(0, 1, b""),
        batch_frame(FRAME_MESSAGES_MAX + 1, 1, bytes(2 * FRAME_MESSAGES_MAX + 2)),
        batch_frame(65_535, 1, b"short"),
        batch_frame(2, 1, ends(1)),
        batch_frame(2, 5, ends(1, 2) + ends(0)),
        batch_frame(2, 1, ends(1, 2) + b"a"),
        batch_frame(2, 1, ends(1, 2) + b"abc"),
        batch_frame(3, 1, ends(2, 1, 2) + b"ab"),
        batch_frame(3, 1, ends(9, 9, 2) + b"ab"),
        batch_frame(2, 5, ends(1, 2) + ends(0, SHARDS) + b"ab"),
        batch_frame(1, 3, ends(1) + b"a"),
        batch_frame(1, 8, ends(1) + b"a"),
        batch_frame(1, 1, ends(1) + b"a", first=0),
        batch_frame(1, 1, ends(1) + b"a", kind=FrameType.TAIL),
        batch_frame(1, 1, ends(1) + b"a", kind=FrameType.ALIVE),
        b"RVQ\x01" + batch_frame(1, 1, ends(1) + b"a")[4:],
    ],
    ids=[
        "no messages",
        "too many messages",
        "a lying count",
        "half a table of ends",
        "half a table of shards",
        "cut",
        "too long",
        "ends out of order",
        "ends behind the end",
        "a shard that is none",
        "raw and mixed",
        "an unknown flag",
        "sequence 0",
        "a tail",
        "a control frame",
        "another protocol",
    ],
)
def test_a_batch_that_cannot_be_is_refused(datagram: bytes) -> None:
    with pytest.raises(WireError):
        read_batch(datagram)


def test_a_mixed_record_without_its_kind_or_of_an_unknown_one_is_none() -> None:
    batch = read_batch(batch_frame(3, 2, ends(0, 2, 4) + b"\x07\x00" + b"\x01\x07"))
    assert batch.contents(range(3)) == [None, None, Content(7)]


@pytest.mark.parametrize(("form", "records", "golden"), GOLDEN_BATCHES, ids=[form for form, _, _ in GOLDEN_BATCHES])
def test_a_batch_that_is_cut_or_too_long_is_refused(form: str, records: list[Record], golden: str) -> None:
    datagram = bytes.fromhex(golden)
    for wrong in (*(datagram[:length] for length in range(len(datagram))), datagram + b"\x00"):
        with pytest.raises(WireError):
            read_batch(wrong)


@pytest.mark.parametrize("bodies", [[b"a", b"bb"], ["a", 1, None, {"k": [1.5]}], [b"raw", "packed", b""]])
def test_many_records_at_once_are_the_same_as_each_by_itself(bodies: list[Any]) -> None:
    assert make_records(bodies) == Records.of([make_record(body) for body in bodies])


def test_one_bad_message_among_many_is_named_and_refused() -> None:
    with pytest.raises(BadMessage, match="cannot be packed"):
        make_records([1, object(), 2])
    with pytest.raises(MessageTooLarge):
        make_records([b"x", bytes(MESSAGE_BYTES_MAX + 1)])
