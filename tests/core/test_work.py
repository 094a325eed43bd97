"""What a receiver has to start of one stream: from frame to done, keys in order, retries, lanes that come and go."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane
from rvq.core.lease import Lease
from rvq.core.stamps import Segment
from rvq.core.stats import Stats
from rvq.core.table import lane_of_shard
from rvq.core.work import Work
from rvq.message import Message, Settler
from rvq.timings import Timings
from rvq.wire.batch import Stamped, encode_batch
from rvq.wire.codec import DATA_HEADER, read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import LaneProgress, Member, label_tag
from rvq.wire.records import Records, make_record, shard_of

TAG = label_tag("work")


@dataclass
class AHome:
    label: str = "work"
    group: str = "default"
    id: int = 0xABC
    me: int = 5
    settler: Settler | None = None
    lease: Lease = field(default_factory=lambda: Lease(Timings()))


@pytest.fixture
def stats() -> Stats:
    return Stats()


@pytest.fixture
def work(stats: Stats) -> Work:
    return Work(stats)


def lane_of(
    slot: int = 0, slots: int = 1, *, stamp: int = 1, at: int = 1, end: int | None = None, keyed: bool = False
) -> Lane:
    members = tuple(Member(id, 1) for id in range(5, 5 + slots))
    lane = Lane(AHome(), Segment(stamp, at, end, keyed, members, ()), slot)
    lane.mine = lane.granted = True
    return lane


def frame(first: int, bodies: Iterable[Any], *, keys: Iterable[str | None] | None = None, stamp: int = 1) -> HeldFrame:
    bodies = list(bodies)
    keys = list(keys) if keys is not None else [None] * len(bodies)
    records = Records.of(make_record(body, key) for body, key in zip(bodies, keys, strict=True))
    return held(encode_batch(Stamped(TAG, stamp, 0xABC, first, 5.0, 0, 0), records))


def held(datagram: bytes) -> HeldFrame:
    header = read_data_header(datagram)
    last = header.first + header.count - 1
    return HeldFrame(header.first, last, header, (datagram,), len(datagram))


def bodies(messages: Iterable[Message]) -> list[Any]:
    return [message.body for message in messages]


def sequences(messages: Iterable[Message]) -> list[int]:
    return [message.sequence for message in messages]


# --- from frame to done -------------------------------------------------------------------------------------------


def test_only_the_own_messages_of_a_frame_are_handed_out(work: Work, stats: Stats) -> None:
    work.add(lane_of(1, 3), frame(1, range(1, 11)))
    assert work.ready
    assert bodies(work.take(99)) == [1, 4, 7, 10]
    assert not work.ready
    assert (stats.routed, stats.emitted) == (4, 4)


def test_no_more_are_handed_out_than_there_are_workers_for(work: Work) -> None:
    work.add(lane_of(), frame(1, "abc"))
    work.add(lane_of(stamp=2), frame(4, "de", stamp=2))
    assert [bodies(work.take(2)) for _ in range(4)] == [["a", "b"], ["c", "d"], ["e"], []]


def test_a_message_says_where_it_came_from(work: Work) -> None:
    lane = lane_of(1, 2, stamp=3)
    work.add(lane, frame(11, range(4), stamp=3))
    message = work.take(9)[1]
    assert (message.sender, message.sequence, message.lane, message.sent_at) == (0xABC, 13, 1, 5.0)
    assert (message.key, message.headers, message.attempt, message.redelivered) == (None, None, 1, False)


def test_keys_and_headers_come_as_they_were_sent(work: Work) -> None:
    lane = lane_of(keyed=True)
    records = Records.of([make_record(1, "k", {"h": 2}), make_record(2, None, {"h": 3}), make_record(3)])
    work.add(lane, held(encode_batch(Stamped(TAG, 1, 0xABC, 1, 5.0, 0, 0), records)))
    found = [(message.body, message.key, message.headers) for message in work.take(9)]
    assert found == [(1, "k", {"h": 2}), (2, None, {"h": 3}), (3, None, None)]


def test_a_large_message_in_parts_is_one_message(work: Work) -> None:
    parts = encode_fragments(Stamped(TAG, 1, 0xABC, 7, 5.0, 0, 0), make_record(bytes(5000)), 512)
    work.add(lane_of(), HeldFrame(7, 7, read_data_header(parts[0]), tuple(parts), sum(map(len, parts))))
    assert bodies(work.take(9)) == [bytes(5000)]


def test_what_is_acknowledged_is_reported_as_done(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(5)))
    first, second, third, *_ = work.take(9)
    assert not work.reported
    assert work.acknowledge(first)
    assert work.acknowledge(third)
    assert list(work.reported) == [lane]
    assert lane.progress() == LaneProgress(1, 0, 1, (3, 3))
    assert not work.acknowledge(first), "that was known"
    work.acknowledge(second)
    assert lane.progress() == LaneProgress(1, 0, 3, ())
    work.check_invariants()


def test_a_frame_is_let_go_when_all_of_it_that_is_ours_is_done(work: Work) -> None:
    lane = lane_of(0, 2)
    work.add(lane, frame(1, range(6)))
    for message in work.take(9):
        work.acknowledge(message)
    assert (lane.pieces, lane.done.floor) == ({}, 6)


def test_a_frame_without_own_messages_is_as_good_as_done(work: Work) -> None:
    lane = lane_of(0, 5)
    work.add(lane, frame(1, range(4)))
    assert not work.ready
    assert lane.done.floor == 4
    assert lane in work.reported


def test_a_frame_that_comes_again_is_handed_out_once(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame(1, "ab"))
    taken = work.take(9)
    work.add(lane, frame(1, "ab"))
    assert bodies(taken) == ["a", "b"]
    for message in taken:
        work.acknowledge(message)
    work.add(lane, frame(1, "ab"))
    assert not work.take(9)


def test_what_is_done_in_the_group_is_not_started(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame(3, "cd"))
    work.raise_done(2, [lane], False)
    assert bodies(work.take(9)) == ["c", "d"]


# --- bad frames ---------------------------------------------------------------------------------------------------


def test_an_unreadable_frame_is_handed_out_to_be_asked_for_again(work: Work) -> None:
    lane = lane_of()
    bad = held(frame(1, range(5)).datagrams[0][:-1])
    work.add(lane, bad)
    work.add(lane, frame(6, "a"))
    assert bodies(work.take(9)) == ["a"]
    assert work.spoilt == [bad]
    assert lane.progress() == LaneProgress(1, 0, 0, ()), "nothing of it is done"
    work.add(lane, frame(1, range(5)))
    assert bodies(work.take(9)) == [0, 1, 2, 3, 4]
    work.check_invariants()


def test_with_keys_an_unreadable_frame_is_noticed_at_once(work: Work) -> None:
    bad = held(frame(1, range(5)).datagrams[0][:-1])
    work.add(lane_of(keyed=True), bad)
    assert work.spoilt == [bad] and not work.ready


def test_one_unreadable_message_of_a_frame_is_counted_and_passed_over(work: Work, stats: Stats) -> None:
    """Its sender packed it so: asking again would bring the same."""
    good = frame(1, [10, 11, 12])
    datagram = bytearray(good.datagrams[0])
    datagram[DATA_HEADER.size + 1] = 0xC1  # never used in msgpack
    lane = lane_of()
    work.add(lane, held(bytes(datagram)))
    taken = work.take(9)
    assert sequences(taken) == [1, 3]
    assert stats.bad_frames == 1
    for message in taken:
        work.acknowledge(message)
    assert lane.done.floor == 3


# --- retries ------------------------------------------------------------------------------------------------------


def test_a_retried_message_comes_again_when_its_delay_is_over(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, b = work.take(9)
    assert (a.attempt, b.attempt) == (1, 1)
    work.retry(10.0, a, 2.5)
    assert work.next_deadline() == 12.5
    work.wake(12.4)
    assert not work.ready
    work.wake(12.5)
    assert work.next_deadline() == math.inf
    (again,) = work.take(9)
    assert (again.id, again.attempt, again.redelivered) == (a.id, 2, True)
    assert (b.attempt, stats.retried, stats.emitted) == (1, 1, 3)


def test_a_message_may_be_retried_again_and_again(work: Work) -> None:
    work.add(lane_of(), frame(1, "a"))
    for attempt in range(1, 5):
        work.wake(float(attempt))
        (message,) = work.take(9)
        assert message.attempt == attempt
        work.retry(float(attempt), message, 1.0)


def test_of_several_retries_the_one_that_is_due_first_comes_first(work: Work) -> None:
    work.add(lane_of(), frame(1, "abc"))
    a, b, c = work.take(9)
    for message, delay in ((a, 3.0), (b, 1.0), (c, 1.0)):
        work.retry(0.0, message, delay)
    work.wake(9.0)
    assert bodies(work.take(9)) == ["b", "c", "a"]


def test_what_is_done_is_not_retried(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(9)
    work.acknowledge(a)
    work.retry(0.0, a, 0.0)
    work.wake(1.0)
    assert (work.take(9), stats.retried) == ([], 0)


def test_after_a_retry_a_second_one_changes_nothing(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(9)
    work.retry(0.0, a, 0.0)
    work.retry(0.0, a, 0.0)
    work.wake(1.0)
    assert bodies(work.take(9)) == ["a"]
    assert (a.attempt, stats.retried) == (2, 1)


def test_one_that_was_acknowledged_after_all_is_not_handed_out_again(work: Work) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(9)
    work.retry(0.0, a, 0.0)
    work.acknowledge(a)
    work.wake(1.0)
    assert work.take(9) == []


def test_one_that_was_taken_and_not_started_can_be_given_back(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, b = work.take(9)
    work.give_back(a)
    assert stats.emitted == 1
    assert bodies(work.take(9)) == ["a"]
    assert a.attempt == 1
    work.acknowledge(b)
    work.give_back(b)
    assert work.take(9) == []


# --- keys ---------------------------------------------------------------------------------------------------------


def test_one_key_is_handed_out_one_at_a_time_and_in_order(work: Work) -> None:
    work.add(lane_of(keyed=True), frame(1, [1, 2, 3, 4], keys=["a", "a", "b", None]))
    first, other, free = work.take(9)
    assert bodies([first, other, free]) == [1, 3, 4]
    assert work.take(9) == []
    work.acknowledge(other)
    assert work.take(9) == []
    work.acknowledge(first)
    assert bodies(work.take(9)) == [2]


def test_a_retried_message_of_a_key_is_not_overtaken(work: Work) -> None:
    work.add(lane_of(keyed=True), frame(1, [1, 2], keys=["a", "a"]))
    (first,) = work.take(9)
    work.retry(0.0, first, 5.0)
    assert work.take(9) == []
    work.wake(5.0)
    (again,) = work.take(9)
    assert again.body == 1
    work.acknowledge(again)
    assert bodies(work.take(9)) == [2]


def test_with_keys_nothing_starts_while_something_before_it_may_be_missing(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(3, [3, 4], keys=["a", "b"]))
    assert work.take(9) == []
    work.add(lane, frame(1, [1, 2], keys=["a", "c"]))
    assert bodies(work.take(9)) == [1, 2, 4]


def test_with_keys_what_others_have_done_is_not_waited_for(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(3, [3], keys=["a"]))
    work.raise_done(2, [lane], False)
    assert bodies(work.take(9)) == [3]


def test_a_keyed_message_waits_until_the_older_segments_are_done(work: Work) -> None:
    lane = lane_of(stamp=2, at=11, keyed=True)
    work.add(lane, frame(11, [11, 12, 13], keys=["a", None, "a"], stamp=2))
    assert bodies(work.take(9)) == [12], "without a key there is no order to keep"
    work.raise_done(9, [lane], False)
    assert work.take(9) == []
    work.raise_done(10, [lane], False)
    (first,) = work.take(9)
    assert first.body == 11
    work.acknowledge(first)
    assert bodies(work.take(9)) == [13]


def test_each_lane_gets_the_keys_of_its_shards_and_the_unkeyed_ones_of_its_stride(stats: Stats) -> None:
    keys = ["a", None, "b", "c", None, "d", "e", None]
    found: list[int] = []
    for slot in range(3):
        work = Work(stats)
        lane = lane_of(slot, 3, keyed=True)
        work.add(lane, frame(1, range(1, 9), keys=keys))
        slots = lane_of_shard(lane.segment.members)
        mine = [n for n, key in enumerate(keys, 1) if (n % 3 if key is None else slots[shard_of(key)]) == slot]
        assert bodies(work.take(99)) == mine
        found += mine
    assert sorted(found) == list(range(1, 9))


def test_one_key_that_another_receiver_has_done_meanwhile_frees_what_waits_behind_it(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(1, [1, 2, 3], keys=["a", "a", "a"]))
    assert bodies(work.take(9)) == [1]
    work.raise_done(2, [lane], True)
    assert bodies(work.take(9)) == [3]


# --- lanes that come and go ---------------------------------------------------------------------------------------


def test_nothing_is_started_of_a_lane_that_was_lost(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abc"))
    work.take(1)
    lane.lose()
    assert work.take(9) == []


def inherit(work: Work, lane: Lane, floor: int = 0, *runs: int) -> None:
    lane.done.merge(floor, runs)
    lane.mine = lane.granted = lane.inherited = True
    lane.asked_at = 7.0
    work.resume(lane)


def test_a_lane_that_comes_back_goes_on_where_it_was_without_what_others_did(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abcde"))
    work.take(1)
    lane.lose()
    work.take(9)
    inherit(work, lane, 2, 4, 4)
    taken = work.take(9)
    assert bodies(taken) == ["c", "e"]
    assert all(message.redelivered and message.lane_asked_at == 7.0 for message in taken)


def test_a_retry_that_falls_due_while_the_lane_is_lost_waits_for_it_to_come_back(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    a, b = work.take(9)
    work.retry(0.0, a, 1.0)
    work.retry(0.0, b, 1.0)
    lane.lose()
    work.wake(1.0)
    assert work.take(9) == []
    inherit(work, lane, 0, 2, 2)
    assert bodies(work.take(9)) == ["a"], "b was done by another"


def test_what_is_being_handled_is_not_handed_out_again_when_its_lane_comes_back(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    (a,) = work.take(1)
    lane.lose()
    inherit(work, lane)
    assert bodies(work.take(9)) == ["b"]
    work.acknowledge(a)
    assert lane.progress() == LaneProgress(1, 0, 1, ())


def test_what_is_acknowledged_after_its_lane_was_lost_is_still_a_fact(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    a, _ = work.take(9)
    lane.lose()
    assert work.acknowledge(a)
    assert lane.progress() == LaneProgress(1, 0, 1, ())
    assert lane in work.reported


def test_a_closed_lane_is_forgotten_whole(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame(3, "cd"))
    a = work.take(1)[0]
    work.acknowledge(a)
    work.forget(lane)
    assert work.take(9) == []
    assert not work.reported
    work.check_invariants()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_whatever_the_order_of_frames_and_outcomes_each_message_is_done_once_and_keys_in_order(
    keys: list[str | None], slots: int, seed: int
) -> None:
    """Frames of up to four messages come in any order, some twice; some messages fail a few times."""
    random = Random(seed)
    work = Work(Stats())
    lanes = [lane_of(slot, slots, keyed=True) for slot in range(slots)]
    frames = [
        frame(start + 1, range(start + 1, min(start + 4, len(keys)) + 1), keys=keys[start : start + 4])
        for start in range(0, len(keys), 4)
    ]
    coming = frames + random.sample(frames, random.randint(0, len(frames)))
    random.shuffle(coming)
    done: list[int] = []
    running: list[Message] = []
    now = 0.0
    for _ in range(400):
        now += 1.0
        if coming and random.random() < 0.5:
            arrived = coming.pop()
            for lane in lanes:
                work.add(lane, arrived)
        work.wake(now)
        running += work.take(random.randint(1, 3))
        in_hand = [message.key for message in running if message.key is not None]
        assert len(in_hand) == len(set(in_hand)), "two of a key at once"
        if running:
            message = running.pop(random.randrange(len(running)))
            if random.random() < 0.3:
                work.retry(now, message, random.random())
            else:
                work.acknowledge(message)
                done.append(message.sequence)
        work.check_invariants()
    assert sorted(done) == list(range(1, len(keys) + 1))
    for key in ("a", "b", "c"):
        of_key = [sequence for sequence in done if keys[sequence - 1] == key]
        assert of_key == sorted(of_key)
    assert all(lane.done.floor == len(keys) for lane in lanes)
