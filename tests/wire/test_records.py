"""Messages as bytes: there and back, what cannot be sent, shards of keys, and all that a stranger can write."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rvq.errors import BadMessage, MessageTooLarge, WireError
from rvq.limits import MESSAGE_BYTES_MAX
from rvq.wire.records import (
    NO_SHARD,
    SHARDS,
    Attribute,
    Content,
    Kind,
    Record,
    Records,
    make_record,
    make_records,
    read_or_none,
    read_record,
    shard_of,
)
from tests.wire.samples import bodies, headers, keys, record_lists, shortly

# --- golden numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "shard"), [("user-7", 255), ("größe", 823), (b"\x00\xff", 623)])
def test_a_key_has_the_same_shard_everywhere(key: str | bytes, shard: int) -> None:
    assert shard_of(key) == shard


def test_text_and_its_utf8_bytes_are_one_key() -> None:
    assert shard_of("größe") == shard_of("größe".encode())


def test_keys_spread_over_all_shards() -> None:
    seen = {shard_of(f"user-{number}") for number in range(20 * SHARDS)}
    assert seen == set(range(SHARDS))


def test_the_numbers_of_kinds_and_attributes_never_change() -> None:
    assert {kind.name: kind.value for kind in Kind} == {
        "RAW": 0,
        "PACKED": 1,
        "RICH": 2,
        "LATER": 3,
        "URGENT": 4,
    }
    assert {name.name: name.value for name in Attribute} == {"KEY": 1, "HEADERS": 2, "DUE_AT": 3, "TTL": 4}


# --- one message ----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "headers", [["a"], {1: "a"}, {b"a": 1}, "a", {"a": object()}], ids=["list", "number", "bytes", "text", "object"]
)
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


# --- many messages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bodies", [[b"a", b"bb"], ["a", 1, None, {"k": [1.5]}], [b"raw", "packed", b""]])
def test_many_records_at_once_are_the_same_as_each_by_itself(bodies: list[Any]) -> None:
    assert make_records(bodies) == Records.of([make_record(body) for body in bodies])


@shortly
@given(st.lists(bodies, min_size=1, max_size=20))
def test_many_records_are_each_what_it_would_be_alone(bodies: list[Any]) -> None:
    datas, lens, kinds, shards = make_records(bodies)
    assert [Record(kind, data, NO_SHARD) for kind, data in zip(kinds, datas, strict=True)] == list(
        map(make_record, bodies)
    )
    assert lens == list(map(len, datas))
    assert shards is None


@shortly
@given(record_lists)
def test_records_know_their_lengths_and_their_shards_if_there_are_keys(records: list[Record]) -> None:
    datas, lens, kinds, shards = Records.of(records)
    assert datas == [record.data for record in records]
    assert lens == [len(record.data) for record in records]
    assert list(kinds) == [record.kind for record in records]
    of_all = [record.shard for record in records]
    assert shards == (None if set(of_all) == {NO_SHARD} else of_all)


@shortly
@given(record_lists, st.data())
def test_a_part_of_records_is_those_records(records: list[Record], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(records)))
    stop = data.draw(st.integers(start, len(records)))
    whole = Records.of(records)
    part = whole.part(start, stop)
    assert (part.datas, part.lens, part.kinds) == (
        whole.datas[start:stop],
        whole.lens[start:stop],
        whole.kinds[start:stop],
    )
    assert part.shards == (None if whole.shards is None else whole.shards[start:stop])


def test_one_bad_message_among_many_is_named_and_refused() -> None:
    with pytest.raises(BadMessage, match="cannot be packed"):
        make_records([1, object(), 2])
    with pytest.raises(MessageTooLarge):
        make_records([b"x", bytes(MESSAGE_BYTES_MAX + 1)])


# --- what strangers write -------------------------------------------------------------------------------------------


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


@shortly
@given(st.integers(0, 255), st.binary(max_size=60))
def test_what_cannot_be_read_is_none_to_who_asks_so(kind: int, data: bytes) -> None:
    try:
        content = read_record(kind, data)
    except WireError:
        assert read_or_none(kind, data) is None
    else:
        # Compared as text, since one may be nan.
        assert repr(read_or_none(kind, data)) == repr(content)


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


# --- times and urgency --------------------------------------------------------------------------------------------

seconds = st.none() | st.floats(0, 1e12)


@settings(shortly, max_examples=150)
@given(bodies, keys, headers, seconds, seconds)
def test_times_come_back_and_the_kind_says_whether_it_waits(
    body: Any, key: Any, headers: Any, due_at: float | None, ttl: float | None
) -> None:
    record = make_record(body, key, headers, due_at, ttl)
    assert read_record(record.kind, record.data) == Content(body, key, headers or None, due_at, ttl, False)
    assert (record.kind == Kind.LATER) == (due_at is not None)


def test_the_bytes_of_a_message_with_times_never_change() -> None:
    later = make_record("x", None, None, 1700000000.25, 2)
    assert (later.kind, later.data.hex()) == (3, "92a1788203cb41d954fc4010000004cb4000000000000000")
    urgent = make_record("x", urgent=True)
    assert (urgent.kind, urgent.data.hex()) == (4, "92a17880")
    assert read_record(4, urgent.data).urgent


def test_urgent_is_true_or_false() -> None:
    odd: Any = "yes"
    with pytest.raises(BadMessage, match="urgent='yes' is neither True nor False"):
        make_record("x", urgent=odd)


@pytest.mark.parametrize("odd", [{"key": "k"}, {"due_at": 5.0}])
def test_a_message_that_has_its_place_already_cannot_be_urgent(odd: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="urgent"):
        make_record(1, urgent=True, **odd)


@pytest.mark.parametrize("name", ["due_at", "ttl"])
@pytest.mark.parametrize("odd", [-1.0, float("inf"), float("nan"), "5", True])
def test_a_time_that_no_receiver_would_read_is_refused_where_it_is_sent(name: str, odd: Any) -> None:
    with pytest.raises(BadMessage, match="not a time"):
        make_record(1, **{name: odd})


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        (Kind.RICH, {3: 5.0}),
        (Kind.LATER, {}),
        (Kind.LATER, {4: 5.0}),
        (Kind.URGENT, {3: 5.0}),
        (Kind.URGENT, {1: "k"}),
        (Kind.LATER, {3: 5}),
        (Kind.LATER, {3: -5.0}),
        (Kind.LATER, {3: float("inf")}),
        (Kind.RICH, {4: float("nan")}),
        (Kind.RICH, {4: "5"}),
        (5, {}),
    ],
)
def test_a_record_whose_times_or_kind_cannot_be_is_refused(kind: int, attributes: dict[int, Any]) -> None:
    with pytest.raises(WireError):
        read_record(kind, msgpack.packb([1, attributes]))
