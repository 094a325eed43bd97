"""Messages that wait for a frame: what goes in comes out in order, in frames that fit and are not needlessly short."""

from __future__ import annotations

import sys
from itertools import repeat
from operator import gt, sub
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.backlog import COMPACT_BYTES, COMPACT_MESSAGES, LOOK_MESSAGES, Backlog
from rvq.limits import FRAME_MESSAGES_MAX
from rvq.wire.batch import BATCH_OVERHEAD, RECORD_OVERHEAD, Stamped, encode_batch, encode_even_batches, read_batch
from rvq.wire.records import NO_SHARD, RAW, Record, Records, make_record, make_records

AT = Stamped(label_tag=7, stamp=1, stream=0xABC, first=1, sent_at=1.5, done_to=0, position=0)
ETHERNET = 1472 - BATCH_OVERHEAD

shortly = settings(max_examples=200, deadline=None, derandomize=True, database=None)

bodies_of_one_length = st.integers(0, 12).flatmap(
    lambda length: st.lists(st.binary(min_size=length, max_size=length), min_size=1, max_size=80)
)
bodies_raw = st.lists(st.binary(max_size=40), min_size=1, max_size=20)
bodies_packed = st.lists(st.integers(0, 1000) | st.text("ab", max_size=30), min_size=1, max_size=20)
bodies_mixed = st.lists(st.sampled_from([b"", b"a", b"bc", 1, 300, None]), min_size=1, max_size=20)
record = st.builds(
    make_record,
    st.sampled_from([b"", b"a", b"bcd", 7, "text"]),
    st.sampled_from([None, None, "k", "key"]),
    st.sampled_from([None, None, {"h": 1}]),
)
comes = st.one_of(
    st.tuples(st.just("add"), record),
    st.tuples(st.just("extend"), st.lists(record, min_size=1, max_size=20)),
    *(
        st.tuples(st.just("pack"), some)
        for some in (bodies_of_one_length, bodies_of_one_length, bodies_raw, bodies_packed, bodies_mixed)
    ),
)
goes = st.one_of(
    st.tuples(st.just("take"), st.tuples(st.integers(0, 60) | st.integers(0, 500), st.integers(1, 6) | st.just(100))),
    st.tuples(st.just("take_one"), st.none()),
)


def put(backlog: Backlog, step: str, value: Any) -> list[Record]:
    """One step in; gives what should come out for it."""
    if step == "add":
        backlog.add(value)
        return [value]
    if step == "extend":
        backlog.extend(Records.of(value))
        return list(value)
    backlog.extend(make_records(value.copy()))
    return [make_record(body) for body in value]


def each_of(records: Records) -> list[Record]:
    datas, lens, kinds, shards = records
    assert lens == list(map(len, datas))
    assert len(kinds) == len(datas)
    of_all = [NO_SHARD] * len(datas) if shards is None else shards
    return [Record(kind, data, shard) for kind, data, shard in zip(kinds, datas, of_all, strict=True)]


def each_most(records: list[Record]) -> int:
    """What they take of a frame at most."""
    return sum(len(record.data) + RECORD_OVERHEAD for record in records)


def frame_of(records: list[Record]) -> int:
    """What they really take of a frame, beyond what a batch takes."""
    return len(encode_batch(AT, Records.of(records))) - BATCH_OVERHEAD


def take(backlog: Backlog, model: list[Record], room: int, most: int) -> list[Record]:
    """The next messages, checked against the model: the same, in order, within the room, and as many as must fit."""
    records = backlog.take(room, most)
    taken = each_of(records)
    assert taken == model[: len(taken)]
    assert len(taken) <= most
    if taken:
        assert len(encode_batch(AT, records)) <= BATCH_OVERHEAD + room
    del model[: len(taken)]
    if model and len(taken) < most:
        assert each_most([*taken, model[0]]) > room
    return taken


@shortly
@given(st.lists(comes | comes | goes, max_size=30))
def test_it_gives_out_what_went_in_in_order_and_knows_its_size(steps: list[tuple[str, Any]]) -> None:
    backlog, model = Backlog(), list[Record]()
    for step, value in steps:
        if step == "take":
            if model:
                take(backlog, model, *value)
        elif step == "take_one":
            if model:
                assert backlog.take_one() == model.pop(0)
        else:
            model += put(backlog, step, value)
        backlog.check_invariants()
        assert len(backlog) == len(model)
        assert backlog.bytes == each_most(model)
        assert bool(backlog) == bool(model)


@shortly
@given(st.lists(comes, min_size=1, max_size=12), st.integers(0, 300), st.integers(1, 100))
def test_frames_fit_and_are_not_needlessly_short(steps: list[tuple[str, Any]], room: int, most: int) -> None:
    backlog, model = Backlog(), list[Record]()
    for step, value in steps:
        model += put(backlog, step, value)
    while model:
        before = backlog.bytes
        taken = take(backlog, model, room, most)
        if taken:
            assert before - backlog.bytes == each_most(taken) >= frame_of(taken)
        else:
            assert backlog.take_one() == model.pop(0)
        backlog.check_invariants()
    assert (len(backlog), backlog.bytes) == (0, 0)


@shortly
@given(st.integers(0, 40), st.integers(1, 300), st.integers(0, 400), st.integers(1, 200), st.booleans())
def test_messages_of_one_length_and_kind_fill_a_frame_to_the_last_byte(
    length: int, count: int, room: int, most: int, packed: bool
) -> None:
    bodies: list[Any] = ["x" * min(length, 31)] * count if packed else [bytes(length)] * count
    backlog = Backlog()
    records = make_records(bodies)
    each = records.lens[0]
    backlog.extend(records)
    taken = backlog.take(room, most)
    assert len(taken.datas) == min(count, most, room // max(1, each))
    if taken.datas:
        assert len(encode_batch(AT, taken)) == BATCH_OVERHEAD + each * len(taken.datas) <= BATCH_OVERHEAD + room


@shortly
@given(st.lists(comes, min_size=1, max_size=12), st.integers(0, 300), st.integers(1, 100), st.integers(1, 6))
def test_many_frames_at_once_fit_and_are_full_but_for_the_last(
    steps: list[tuple[str, Any]], room: int, most: int, frames: int
) -> None:
    backlog, model = Backlog(), list[Record]()
    for step, value in steps:
        model += put(backlog, step, value)
    while model:
        several = backlog.take_frames(room, most, frames)
        assert len(several) <= frames
        for number, records in enumerate(several, 1):
            taken = each_of(records)
            assert taken == model[: len(taken)]
            assert 0 < len(taken) <= most
            assert len(encode_batch(AT, records)) <= BATCH_OVERHEAD + room
            del model[: len(taken)]
            if number < len(several) and len(taken) < most:
                assert each_most([*taken, model[0]]) > room
        backlog.check_invariants()
        assert len(backlog) == len(model)
        if not several:
            assert each_most(model[:1]) > room
            assert backlog.take_one() == model.pop(0)


@shortly
@given(st.lists(comes, min_size=1, max_size=6), st.integers(0, 100), st.integers(1, 6))
def test_even_frames_are_of_as_many_plain_messages_of_one_length(
    steps: list[tuple[str, Any]], room: int, frames: int
) -> None:
    backlog, model = Backlog(), list[Record]()
    for step, value in steps:
        model += put(backlog, step, value)
    while model:
        even = backlog.take_even(room, frames)
        backlog.check_invariants()
        if even is None:
            assert len(backlog) == len(model)
            assert backlog.take_one() == model.pop(0)
            continue
        records, per_frame = even
        taken = each_of(records)
        assert taken == model[: len(taken)]
        assert len({(record.kind, len(record.data), record.shard) for record in taken}) == 1
        many, rest = divmod(len(taken), per_frame)
        assert not rest
        assert 2 <= many <= frames
        each = max(1, records.lens[0])
        assert per_frame * each <= room < (per_frame + 1) * each
        made = encode_even_batches(AT, records, per_frame, BATCH_OVERHEAD + room)
        assert {len(frame) for frame in made} == {BATCH_OVERHEAD + room}
        del model[: len(taken)]


def test_even_frames_are_found_where_there_are_some() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"%04d" % number for number in range(1000)]))
    for start in (0, 400, 800):
        even = backlog.take_even(400, 4)
        assert even is not None
        records, per_frame = even
        assert (records.datas[0], len(records.datas), per_frame) == (b"%04d" % start, min(400, 1000 - start), 100)
    assert not backlog


@pytest.mark.parametrize(
    "records",
    [
        [make_record(b"a"), make_record(1)] * 500,
        [make_record(7, key="k")] * 1000,
        [make_record(7, headers={"h": 1})] * 1000,
        [Record(RAW, b"ab", 5)] * 1000,
        [*[make_record(b"a")] * 400, make_record(b"bc"), *[make_record(b"a")] * 599],
    ],
    ids=["kinds", "keys", "headers", "shards", "lengths"],
)
def test_messages_that_are_not_alike_make_no_even_frames(records: list[Record]) -> None:
    backlog = Backlog()
    backlog.extend(Records.of(records))
    assert backlog.take_even(ETHERNET // 7, 3) is None
    assert len(backlog) == 1000


@pytest.mark.parametrize("count", [LOOK_MESSAGES - 1, LOOK_MESSAGES, LOOK_MESSAGES + 1, 4 * LOOK_MESSAGES + 1])
@pytest.mark.parametrize("at", [1, LOOK_MESSAGES - 2, "last"])
def test_one_message_of_another_length_is_seen_wherever_it_stands(count: int, at: int | str) -> None:
    bodies = [b"ab"] * count
    bodies[count - 1 if at == "last" else int(at)] = bytes(50)
    for room in (0, 1, 6, 7, 8, 100, 2 * count, 2 * count + 50, 7 * count + 47, 7 * count + 48, 10_000):
        backlog, model = Backlog(), [make_record(body) for body in bodies]
        backlog.extend(make_records(bodies.copy()))
        take(backlog, model, room, FRAME_MESSAGES_MAX)


def test_many_short_messages_of_different_lengths_go_in_one_frame() -> None:
    # Behind a long one, many more than are looked at first, and at second.
    bodies = [bytes(1000), *(b"x" * (number % 3) for number in range(2999))]
    backlog = Backlog()
    backlog.extend(make_records(bodies.copy()))
    assert backlog.take(60_000, 2500).datas == bodies[:2500]
    assert backlog.take(60_000, 2500).datas == bodies[2500:]


def test_short_messages_behind_a_long_one_go_with_it() -> None:
    bodies = [bytes(800), *[bytes(10)] * 30]
    backlog = Backlog()
    backlog.extend(make_records(bodies.copy()))
    assert backlog.take(ETHERNET, FRAME_MESSAGES_MAX).datas == bodies


def test_a_shorter_message_behind_many_of_one_length_makes_their_frame_no_shorter() -> None:
    bodies = [bytes(10)] * (ETHERNET // 10)
    backlog = Backlog()
    backlog.extend(make_records([*bodies, b"short"]))
    assert backlog.take(ETHERNET, FRAME_MESSAGES_MAX).datas == bodies


def test_mixed_kinds_of_one_length_leave_room_for_their_kinds() -> None:
    # Without a look at the kinds, 1,414 of them would seem to fit, and the frame would be twice its size.
    records = [make_record(b"a"), make_record(1)] * 1000
    backlog, model = Backlog(), list(records)
    backlog.extend(Records.of(records))
    while model:
        take(backlog, model, ETHERNET, FRAME_MESSAGES_MAX)


def test_headers_of_one_length_leave_room_for_their_kinds() -> None:
    records = [make_record(b"a", headers={"h": number % 10}) for number in range(1000)]
    backlog, model = Backlog(), list(records)
    backlog.extend(Records.of(records))
    while model:
        take(backlog, model, ETHERNET, FRAME_MESSAGES_MAX)


def test_keys_of_one_length_leave_room_for_their_shards() -> None:
    records = [make_record(b"a", key=f"k{number % 10}") for number in range(1000)]
    backlog, model = Backlog(), list(records)
    backlog.extend(Records.of(records))
    while model:
        take(backlog, model, ETHERNET, FRAME_MESSAGES_MAX)


def test_shards_of_plain_records_leave_room_for_them() -> None:
    # `make_record` makes a rich record of every message with a key; whoever makes records by hand may not.
    records = [Record(RAW, b"ab", number % 10) for number in range(1000)]
    backlog, model = Backlog(), list(records)
    backlog.extend(Records.of(records))
    while model:
        take(backlog, model, ETHERNET, FRAME_MESSAGES_MAX)


def test_a_frame_that_is_taken_reads_as_what_went_in() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"plain", b"also plain"]))
    backlog.add(make_record({"job": 1}, key="user-7"))
    backlog.extend(make_records([None]))
    batch = read_batch(encode_batch(AT, backlog.take(ETHERNET, 100)))
    contents = [content for content in batch.contents(range(4)) if content is not None]
    assert [content.body for content in contents] == [b"plain", b"also plain", {"job": 1}, None]
    assert list(batch.shards or ()) == [NO_SHARD, NO_SHARD, 255, NO_SHARD]


def test_one_message_is_given_out_however_large() -> None:
    backlog = Backlog()
    large = make_record(bytes(100_000), key="k")
    backlog.extend(Records.of([large, make_record(b"small")]))
    assert backlog.take(ETHERNET, 100).datas == []
    assert backlog.take_one() == large
    assert backlog.take(ETHERNET, 100).datas == [b"small"]


def test_the_lists_of_what_was_taken_are_not_touched_again() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"a", b"b"]))
    taken = backlog.take(ETHERNET, 100)
    backlog.extend(make_records([b"c"]))
    backlog.add(make_record(b"d", key="k"))
    assert taken == Records([b"a", b"b"], [1, 1], bytearray([RAW, RAW]), None)
    assert backlog.take(ETHERNET, 1).datas == [b"c"]


@pytest.mark.parametrize("keyed", [False, True], ids=["without keys", "with keys"])
def test_a_long_backlog_is_let_go_as_it_is_taken(keyed: bool) -> None:
    count = 4 * COMPACT_MESSAGES
    bodies = [b"body %d" % number for number in range(count)]
    backlog = Backlog()
    if keyed:
        backlog.add(make_record(b"first", key="k"))
        backlog.take_one()
    backlog.extend(make_records(bodies.copy()))
    held_by_all = references(bodies)
    taken = 0
    while backlog:
        some = backlog.take(1000, 100).datas
        assert some == bodies[taken : taken + len(some)]
        taken += len(some)
        del some
        backlog.check_invariants()
        if taken % 1000 < 100:
            held = sum(map(gt, references(bodies), map(sub, held_by_all, repeat(1))))
            assert len(backlog) <= held <= 2 * len(backlog) + COMPACT_MESSAGES
    assert taken == count
    assert references(bodies) == [references - 1 for references in held_by_all]


def references(bodies: list[bytes]) -> list[int]:
    return list(map(sys.getrefcount, bodies))


def test_a_backlog_that_is_never_empty_does_not_grow() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"%6d" % number for number in range(10)]))
    for number in range(10, 5 * COMPACT_MESSAGES, 10):
        backlog.extend(make_records([b"%6d" % (number + more) for more in range(10)]))
        assert backlog.take(60, 100).datas == [b"%6d" % (number - 10 + more) for more in range(10)]
        assert len(backlog) == 10
        assert len(backlog._datas) <= COMPACT_MESSAGES + 20
    backlog.check_invariants()


def test_it_tells_that_keys_are_wanted() -> None:
    backlog = Backlog()
    backlog.extend(make_records([b"x"]))
    assert not backlog.has_keys
    backlog.extend(Records.of([make_record(b"x"), make_record(b"x", key="k")]))
    assert backlog.has_keys
    single = Backlog()
    single.add(make_record(b"x", key="k"))
    assert single.has_keys


def test_it_remembers_that_there_were_keys_when_they_are_gone() -> None:
    backlog = Backlog()
    backlog.add(make_record(b"x", key="k"))
    backlog.take_one()
    backlog.extend(make_records([b"x", b"y"]))
    assert backlog.has_keys
    assert backlog.take(ETHERNET, 1).shards == [NO_SHARD]
    assert backlog.take_one() == make_record(b"y")
    backlog.check_invariants()


def test_large_messages_that_were_taken_are_let_go_though_the_backlog_never_empties() -> None:
    backlog, large = Backlog(), bytes(COMPACT_BYTES)
    backlog.extend(make_records([large, b"stays"]))
    kept = sys.getrefcount(large)
    assert backlog.take_one().data is large
    assert sys.getrefcount(large) < kept
    assert len(backlog) == 1
    backlog.check_invariants()
