"""What a receiver has to start of one stream: from frame to done, keys in order, retries, lanes that come and go."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.holding import HeldFrame
from rvq.core.lanes import Lane, Piece
from rvq.core.lease import Lease
from rvq.core.machine import Wall
from rvq.core.shards import draft
from rvq.core.stamps import Segment
from rvq.core.stats import Counts, Stats
from rvq.core.work import Work
from rvq.message import Message, Settler
from rvq.timings import Timings
from rvq.wire.batch import Stamped, encode_batch
from rvq.wire.codec import DATA_HEADER, read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import LaneProgress, Member, Tried, label_tag
from rvq.wire.records import Record, Records, make_record, shard_of

TAG = label_tag("work")
ME = 5


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
    return Work(stats, Wall(0.0), ME)


def lane_of(
    slot: int = 0, slots: int = 1, *, stamp: int = 1, at: int = 1, end: int | None = None, keyed: bool = False
) -> Lane:
    members = tuple(Member(id, 1) for id in range(5, 5 + slots))
    shard_map = tuple(reversed(draft(members))) if keyed else ()
    lane = Lane(AHome(), Segment(stamp, at, end, keyed, members, (), shard_map=shard_map), slot, Counts())
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
    assert bodies(work.take(0.0, 99)) == [1, 4, 7, 10]
    assert not work.ready
    assert (stats.routed, stats.emitted) == (4, 4)


def test_no_more_are_handed_out_than_there_are_workers_for(work: Work) -> None:
    work.add(lane_of(), frame(1, "abc"))
    work.add(lane_of(stamp=2), frame(4, "de", stamp=2))
    assert [bodies(work.take(0.0, 2)) for _ in range(4)] == [["a", "b"], ["c", "d"], ["e"], []]


def test_a_message_says_where_it_came_from(work: Work) -> None:
    lane = lane_of(1, 2, stamp=3)
    work.add(lane, frame(11, range(4), stamp=3))
    message = work.take(0.0, 9)[1]
    assert (message.sender, message.sequence, message.lane, message.sent_at) == (0xABC, 13, 1, 5.0)
    assert (message.key, message.headers, message.attempt, message.redelivered) == (None, None, 1, False)


def test_keys_and_headers_come_as_they_were_sent(work: Work) -> None:
    lane = lane_of(keyed=True)
    records = Records.of([make_record(1, "k", {"h": 2}), make_record(2, None, {"h": 3}), make_record(3)])
    work.add(lane, held(encode_batch(Stamped(TAG, 1, 0xABC, 1, 5.0, 0, 0), records)))
    found = [(message.body, message.key, message.headers) for message in work.take(0.0, 9)]
    assert found == [(1, "k", {"h": 2}), (2, None, {"h": 3}), (3, None, None)]


def test_a_large_message_in_parts_is_one_message(work: Work) -> None:
    parts = encode_fragments(Stamped(TAG, 1, 0xABC, 7, 5.0, 0, 0), make_record(bytes(5000)), 512)
    work.add(lane_of(), HeldFrame(7, 7, read_data_header(parts[0]), tuple(parts), sum(map(len, parts))))
    assert bodies(work.take(0.0, 9)) == [bytes(5000)]


def test_what_is_acknowledged_is_reported_as_done(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(5)))
    first, second, third, *_ = work.take(0.0, 9)
    assert not work.reported
    assert work.acknowledge(0.0, first)
    assert work.acknowledge(0.0, third)
    assert list(work.reported) == [lane]
    assert lane.progress() == LaneProgress(1, 0, 1, (3, 3))
    assert not work.acknowledge(0.0, first), "that was known"
    work.acknowledge(0.0, second)
    assert lane.progress() == LaneProgress(1, 0, 3, ())
    work.check_invariants()


def test_a_frame_is_let_go_when_all_of_it_that_is_ours_is_done(work: Work) -> None:
    lane = lane_of(0, 2)
    work.add(lane, frame(1, range(6)))
    for message in work.take(0.0, 9):
        work.acknowledge(0.0, message)
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
    taken = work.take(0.0, 9)
    work.add(lane, frame(1, "ab"))
    assert bodies(taken) == ["a", "b"]
    for message in taken:
        work.acknowledge(0.0, message)
    work.add(lane, frame(1, "ab"))
    assert not work.take(0.0, 9)


def test_what_is_done_in_the_group_is_not_started(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame(3, "cd"))
    work.raise_done(2, [lane], False)
    assert bodies(work.take(0.0, 9)) == ["c", "d"]


# --- bad frames ---------------------------------------------------------------------------------------------------


def test_an_unreadable_frame_is_handed_out_to_be_asked_for_again(work: Work) -> None:
    lane = lane_of()
    bad = held(frame(1, range(5)).datagrams[0][:-1])
    work.add(lane, bad)
    work.add(lane, frame(6, "a"))
    assert bodies(work.take(0.0, 9)) == ["a"]
    assert work.spoilt == [bad]
    assert lane.progress() == LaneProgress(1, 0, 0, ()), "nothing of it is done"
    work.add(lane, frame(1, range(5)))
    assert bodies(work.take(0.0, 9)) == [0, 1, 2, 3, 4]
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
    taken = work.take(0.0, 9)
    assert sequences(taken) == [1, 3]
    assert stats.bad_frames == 1
    for message in taken:
        work.acknowledge(0.0, message)
    assert lane.done.floor == 3


# --- retries ------------------------------------------------------------------------------------------------------


def test_a_retried_message_comes_again_when_its_delay_is_over(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, b = work.take(0.0, 9)
    assert (a.attempt, b.attempt) == (1, 1)
    work.retry(10.0, a, 2.5)
    assert work.next_deadline() == 12.5
    work.wake(12.4)
    assert not work.ready
    work.wake(12.5)
    assert work.next_deadline() == math.inf
    (again,) = work.take(0.0, 9)
    assert (again.id, again.attempt, again.redelivered) == (a.id, 2, True)
    assert (b.attempt, stats.retried, stats.emitted) == (1, 1, 3)


def test_a_message_may_be_retried_again_and_again(work: Work) -> None:
    work.add(lane_of(), frame(1, "a"))
    for attempt in range(1, 5):
        work.wake(float(attempt))
        (message,) = work.take(0.0, 9)
        assert message.attempt == attempt
        work.retry(float(attempt), message, 1.0)


def test_of_several_retries_the_one_that_is_due_first_comes_first(work: Work) -> None:
    work.add(lane_of(), frame(1, "abc"))
    a, b, c = work.take(0.0, 9)
    for message, delay in ((a, 3.0), (b, 1.0), (c, 1.0)):
        work.retry(0.0, message, delay)
    work.wake(9.0)
    assert bodies(work.take(0.0, 9)) == ["b", "c", "a"]


def test_what_is_done_is_not_retried(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(0.0, 9)
    work.acknowledge(0.0, a)
    work.retry(0.0, a, 0.0)
    work.wake(1.0)
    assert (work.take(0.0, 9), stats.retried) == ([], 0)


def test_after_a_retry_a_second_one_changes_nothing(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(0.0, 9)
    work.retry(0.0, a, 0.0)
    work.retry(0.0, a, 0.0)
    work.wake(1.0)
    assert bodies(work.take(0.0, 9)) == ["a"]
    assert (a.attempt, stats.retried) == (2, 1)


def test_after_a_retry_an_acknowledgement_changes_nothing(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, _ = work.take(0.0, 9)
    work.retry(0.0, a, 0.0)
    assert not work.acknowledge(0.0, a) and not work.reject(0.0, a)
    work.wake(1.0)
    assert bodies(work.take(0.0, 9)) == ["a"]
    assert (stats.acked, stats.dead) == (0, 0)
    assert work.acknowledge(0.0, a), "by now it was tried again"


def test_one_that_was_taken_and_not_started_can_be_given_back(work: Work, stats: Stats) -> None:
    work.add(lane_of(), frame(1, "ab"))
    a, b = work.take(0.0, 9)
    work.give_back(a)
    assert stats.emitted == 1
    assert bodies(work.take(0.0, 9)) == ["a"]
    assert a.attempt == 1
    work.acknowledge(0.0, b)
    work.give_back(b)
    assert work.take(0.0, 9) == []


# --- keys ---------------------------------------------------------------------------------------------------------


def test_one_key_is_handed_out_one_at_a_time_and_in_order(work: Work) -> None:
    work.add(lane_of(keyed=True), frame(1, [1, 2, 3, 4], keys=["a", "a", "b", None]))
    first, other, free = work.take(0.0, 9)
    assert bodies([first, other, free]) == [1, 3, 4]
    assert work.take(0.0, 9) == []
    work.acknowledge(0.0, other)
    assert work.take(0.0, 9) == []
    work.acknowledge(0.0, first)
    assert bodies(work.take(0.0, 9)) == [2]


def test_a_retried_message_of_a_key_is_not_overtaken(work: Work) -> None:
    work.add(lane_of(keyed=True), frame(1, [1, 2], keys=["a", "a"]))
    (first,) = work.take(0.0, 9)
    work.retry(0.0, first, 5.0)
    assert work.take(0.0, 9) == []
    work.wake(5.0)
    (again,) = work.take(0.0, 9)
    assert again.body == 1
    work.acknowledge(0.0, again)
    assert bodies(work.take(0.0, 9)) == [2]


def test_with_keys_nothing_starts_while_something_before_it_may_be_missing(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(3, [3, 4], keys=["a", "b"]))
    assert work.take(0.0, 9) == []
    work.add(lane, frame(1, [1, 2], keys=["a", "c"]))
    assert bodies(work.take(0.0, 9)) == [1, 2, 4]


def test_with_keys_what_others_have_done_is_not_waited_for(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(3, [3], keys=["a"]))
    work.raise_done(2, [lane], False)
    assert bodies(work.take(0.0, 9)) == [3]


def test_a_keyed_message_waits_until_the_older_segments_are_done(work: Work) -> None:
    lane = lane_of(stamp=2, at=11, keyed=True)
    work.add(lane, frame(11, [11, 12, 13], keys=["a", None, "a"], stamp=2))
    assert bodies(work.take(0.0, 9)) == [12], "without a key there is no order to keep"
    work.raise_done(9, [lane], False)
    assert work.take(0.0, 9) == []
    work.raise_done(10, [lane], False)
    (first,) = work.take(0.0, 9)
    assert first.body == 11
    work.acknowledge(0.0, first)
    assert bodies(work.take(0.0, 9)) == [13]


def test_each_lane_gets_the_keys_of_its_shards_and_the_unkeyed_ones_of_its_stride(stats: Stats) -> None:
    keys = ["a", None, "b", "c", None, "d", "e", None]
    found: list[int] = []
    for slot in range(3):
        work = Work(stats, Wall(0.0), ME)
        lane = lane_of(slot, 3, keyed=True)
        work.add(lane, frame(1, range(1, 9), keys=keys))
        slots = lane.segment.shard_map
        mine = [n for n, key in enumerate(keys, 1) if (n % 3 if key is None else slots[shard_of(key)]) == slot]
        assert bodies(work.take(0.0, 99)) == mine
        found += mine
    assert sorted(found) == list(range(1, 9))


def test_one_key_that_another_receiver_has_done_meanwhile_frees_what_waits_behind_it(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(1, [1, 2, 3], keys=["a", "a", "a"]))
    assert bodies(work.take(0.0, 9)) == [1]
    work.raise_done(2, [lane], True)
    assert bodies(work.take(0.0, 9)) == [3]


# --- lanes that come and go ---------------------------------------------------------------------------------------


def test_nothing_is_started_of_a_lane_that_was_lost(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abc"))
    work.take(0.0, 1)
    lane.lose()
    assert work.take(0.0, 9) == []


def inherit(work: Work, lane: Lane, floor: int = 0, *runs: int) -> None:
    lane.done.merge(floor, runs)
    lane.mine = lane.granted = lane.inherited = True
    lane.asked_at = 7.0
    work.resume(lane)


def test_a_lane_that_comes_back_goes_on_where_it_was_without_what_others_did(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abcde"))
    work.take(0.0, 1)
    lane.lose()
    work.take(0.0, 9)
    inherit(work, lane, 2, 4, 4)
    taken = work.take(0.0, 9)
    assert bodies(taken) == ["c", "e"]
    assert all(message.redelivered and message.lane_asked_at == 7.0 for message in taken)


def test_a_retry_that_falls_due_while_the_lane_is_lost_waits_for_it_to_come_back(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    a, b = work.take(0.0, 9)
    work.retry(0.0, a, 1.0)
    work.retry(0.0, b, 1.0)
    lane.lose()
    work.wake(1.0)
    assert work.take(0.0, 9) == []
    inherit(work, lane, 0, 2, 2)
    assert bodies(work.take(0.0, 9)) == ["a"], "b was done by another"


def test_what_is_being_handled_is_not_handed_out_again_when_its_lane_comes_back(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    (a,) = work.take(0.0, 1)
    lane.lose()
    inherit(work, lane)
    assert bodies(work.take(0.0, 9)) == ["b"]
    work.acknowledge(0.0, a)
    assert lane.progress() == LaneProgress(1, 0, 1, ())


def test_what_is_acknowledged_after_its_lane_was_lost_is_still_a_fact(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    a, _ = work.take(0.0, 9)
    lane.lose()
    assert work.acknowledge(0.0, a)
    assert lane.progress() == LaneProgress(1, 0, 1, ())
    assert lane in work.reported


def test_it_knows_what_has_its_verdict_and_what_is_anothers(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abcd"))
    a, b, c, d = work.take(0.0, 9)
    work.acknowledge(0.0, a)
    work.retry(0.0, b, 1.0)
    work.reject(0.0, c)
    assert [work.is_settled(message) for message in (a, b, c, d)] == [True, True, True, False]
    work.wake(1.0)
    work.take(1.0, 9)
    assert not work.is_settled(b), "it is in hand again"
    assert not work.is_anothers(d)
    lane.lose()
    assert work.is_anothers(d)


def test_a_closed_lane_is_forgotten_whole(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame(3, "cd"))
    a = work.take(0.0, 1)[0]
    work.acknowledge(0.0, a)
    work.forget(lane)
    assert work.take(0.0, 9) == []
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
    work = Work(Stats(), Wall(0.0), ME)
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
        running += work.take(0.0, random.randint(1, 3))
        in_hand = [message.key for message in running if message.key is not None]
        assert len(in_hand) == len(set(in_hand)), "two of a key at once"
        if running:
            message = running.pop(random.randrange(len(running)))
            if random.random() < 0.3:
                work.retry(now, message, random.random())
            else:
                work.acknowledge(0.0, message)
                done.append(message.sequence)
        work.check_invariants()
    assert sorted(done) == list(range(1, len(keys) + 1))
    for key in ("a", "b", "c"):
        of_key = [sequence for sequence in done if keys[sequence - 1] == key]
        assert of_key == sorted(of_key)
    assert all(lane.done.floor == len(keys) for lane in lanes)


# --- due times, times to live, urgent ones ------------------------------------------------------------------------


def frame_of(first: int, *records: Record, stamp: int = 1) -> HeldFrame:
    return held(encode_batch(Stamped(TAG, stamp, 0xABC, first, 5.0, 0, 0), Records.of(records)))


def urgent(body: Any) -> Record:
    return make_record(body, urgent=True)


def test_a_message_waits_in_its_lane_until_it_is_due(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("later", due_at=10.0), make_record("now")))
    assert bodies(work.take(9.0, 9)) == ["now"]
    assert (work.waiting, work.next_deadline(), work.ready) == (1, 10.0, False)
    work.wake(9.9)
    assert not work.ready
    work.wake(10.0)
    (message,) = work.take(10.0, 9)
    assert (message.body, message.due_at, message.attempt) == ("later", 10.0, 1)
    assert work.acknowledge(0.0, message)
    work.check_invariants()


def test_one_that_is_due_already_does_not_wait(work: Work) -> None:
    work.add(lane_of(), frame_of(1, make_record("late", due_at=10.0)))
    assert bodies(work.take(10.0, 9)) == ["late"]


def test_one_that_waits_is_open_and_not_needed_as_a_frame_any_more(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("later", due_at=10.0)))
    work.take(9.0, 9)
    assert work.unread() == set()
    assert lane.progress() == LaneProgress(1, 0, 0, ())
    work.add(lane, frame_of(1, make_record("later", due_at=10.0)))
    work.wake(10.0)
    assert bodies(work.take(10.0, 9)) == ["later"], "the frame came again: it is handed out once"


def test_a_hundred_thousand_that_wait_cost_memory_in_proportion_and_no_wake_before_the_first_is_due(work: Work) -> None:
    lane, each = lane_of(), 500
    used = [resident_bytes()]
    for first in range(1, 100_001, each):
        records = (make_record(number, due_at=1000.0 + number) for number in range(first, first + each))
        work.add(lane, frame_of(first, *records))
        assert work.take(5.0, each) == []
        if first + each == 50_001:
            used.append(resident_bytes())
    used.append(resident_bytes())
    assert used[2] - used[0] < 100_000 * 700 and used[2] - used[1] < 50_000 * 700
    assert (work.waiting, work.ready, work.next_deadline()) == (100_000, False, 1001.0)
    work.wake(1000.9)
    assert (work.ready, work.next_deadline()) == (False, 1001.0)
    work.wake(1010.0)
    assert bodies(work.take(1010.0, each)) == list(range(1, 11))
    assert work.next_deadline() == 1011.0


def resident_bytes() -> int:
    """What this process takes up. Counting every allocation would take longer than making them."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_one_whose_lane_was_lost_while_it_waited_starts_only_if_the_lane_comes_back(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("later", due_at=10.0)))
    work.take(9.0, 9)
    lane.lose()
    work.wake(10.0)
    assert work.take(10.0, 9) == []
    lane.mine = lane.granted = True
    work.resume(lane)
    assert bodies(work.take(11.0, 9)) == ["later"]
    assert work.take(11.0, 9) == []


def test_one_that_waits_and_was_done_by_another_is_not_handed_out(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("later", due_at=10.0)))
    work.take(9.0, 9)
    work.raise_done(1, [lane], lost_lanes=False)
    work.wake(10.0)
    assert work.take(10.0, 9) == []


def test_what_has_outlived_its_time_is_dropped_counted_and_done(work: Work, stats: Stats) -> None:
    """Frames were sent at 5.0."""
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("short", ttl=1.0), make_record("long", ttl=9.0), make_record("ever")))
    assert bodies(work.take(6.0, 9)) == ["long", "ever"]
    assert (stats.expired, stats.emitted, lane.counts.expired, lane.counts.emitted) == (1, 2, 1, 2)
    assert lane.progress().floor == 1
    assert list(work.reported) == [lane]


def test_one_that_expires_while_it_waits_for_its_retry_is_counted_as_expired_and_not_as_handed_out(
    work: Work, stats: Stats
) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("short", ttl=3.0)))
    (message,) = work.take(6.0, 9)
    work.retry(6.0, message, 5.0)
    work.wake(11.0)
    assert work.take(11.0, 9) == []
    assert (stats.emitted, stats.retried, stats.expired) == (1, 1, 1)
    assert (lane.counts.emitted, lane.counts.retried, lane.counts.expired) == (1, 1, 1)
    assert not work.tried and lane.progress().floor == 1


def test_an_urgent_message_goes_before_all_that_wait_and_is_handed_out_once(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "ab"))
    work.add(lane, frame_of(3, make_record("c"), urgent("!"), make_record("d")))
    assert work.has_urgent and work.unstarted == 5
    (first,) = work.take(0.0, 1)
    assert (first.body, first.urgent, first.sequence) == ("!", True, 4)
    assert not work.has_urgent and work.unstarted == 4
    assert bodies(work.take(0.0, 9)) == ["a", "b", "c", "d"]


def test_a_frame_of_which_all_was_urgent_and_is_done_needs_no_turn(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, urgent("!")))
    work.add(lane, frame(2, "a"))
    (message,) = work.take(0.0, 1)
    work.acknowledge(0.0, message)
    assert bodies(work.take(0.0, 1)) == ["a"]
    work.check_invariants()


def test_an_urgent_message_in_parts_is_urgent_too(work: Work) -> None:
    work.add(lane_of(), frame(1, "ab"))
    parts = encode_fragments(Stamped(TAG, 1, 0xABC, 3, 5.0, 0, 0), urgent(bytes(5000)), 512)
    work.add(lane_of(), HeldFrame(3, 3, read_data_header(parts[0]), tuple(parts), sum(map(len, parts))))
    assert bodies(work.take(0.0, 9)) == [bytes(5000), "a", "b"]


def test_an_urgent_message_of_a_lane_that_is_lost_and_comes_back_is_handed_out_once(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, urgent("!"), make_record("a")))
    lane.lose()
    assert work.take(0.0, 9) == []
    lane.mine = lane.granted = True
    work.resume(lane)
    assert bodies(work.take(0.0, 9)) == ["!", "a"]
    assert work.take(0.0, 9) == []


def test_what_was_inherited_does_not_go_behind_what_came_meanwhile(work: Work) -> None:
    heir = lane_of(1, 2)
    work.add(lane_of(0, 2), frame(11, "cd"))
    work.add(heir, frame(1, "ab"))
    work.sort()
    assert bodies(work.take(0.0, 9)) == ["a", "d"]


# --- keys across switches -----------------------------------------------------------------------------------------


def keyed_lanes() -> tuple[Lane, Lane]:
    return lane_of(end=10, keyed=True), lane_of(stamp=2, at=11, keyed=True)


def bit(key: str) -> int:
    return 1 << shard_of(key)


def test_a_key_goes_on_after_a_switch_when_its_shard_is_through(work: Work) -> None:
    _, new = keyed_lanes()
    work.add(new, frame(11, "ab", keys=["x", "y"], stamp=2))
    assert work.take(0.0, 9) == []
    work.open_gates(2, bit("y"))
    assert bodies(work.take(0.0, 9)) == ["b"]
    work.open_gates(2, bit("x"))
    assert bodies(work.take(0.0, 9)) == ["a"]


def test_a_shard_that_is_through_with_a_newer_segment_is_so_with_the_older_ones(work: Work) -> None:
    _, new = keyed_lanes()
    work.add(new, frame(11, "a", keys=["x"], stamp=2))
    work.open_gates(3, bit("x"))
    assert bodies(work.take(0.0, 9)) == ["a"]


def test_a_gate_of_an_older_segment_opens_no_newer_one(work: Work) -> None:
    newest = lane_of(stamp=3, at=11, keyed=True)
    work.add(newest, frame(11, "a", keys=["x"], stamp=3))
    work.open_gates(2, bit("x"))
    assert work.take(0.0, 9) == []


def test_gates_of_closed_segments_are_forgotten(work: Work) -> None:
    _, new = keyed_lanes()
    work.open_gates(2, bit("x"))
    work.close_gates({3})
    work.add(new, frame(11, "a", keys=["x"], stamp=2))
    assert work.take(0.0, 9) == []


def test_one_that_could_not_start_because_its_lane_was_lost_does_not_hold_its_key(work: Work) -> None:
    """It came due when the lane was another's. Here the key goes on in the new segment."""
    old, new = keyed_lanes()
    work.add(old, frame_of(1, make_record("later", "x", due_at=10.0)))
    work.take(0.0, 9)
    old.lose()
    work.wake(10.0)
    assert work.take(10.0, 9) == []
    work.open_gates(2, bit("x"))
    work.add(new, frame(11, "ab", keys=["x", "x"], stamp=2))
    (fresh,) = work.take(10.0, 9)
    assert fresh.body == "a"
    old.mine = old.granted = True
    work.resume(old)
    assert work.take(10.0, 9) == [], "one of a key at a time"
    work.acknowledge(0.0, fresh)
    (following,) = work.take(10.0, 9)
    work.acknowledge(0.0, following)
    assert sorted([following.body, *bodies(work.take(10.0, 9))]) == ["b", "later"]
    work.check_invariants()


def test_keys_whose_lane_comes_back_go_on_in_order(work: Work) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(1, "abc", keys=["x", "x", "x"]))
    (first,) = work.take(0.0, 9)
    work.give_back(first)
    lane.lose()
    assert work.take(0.0, 9) == []
    lane.mine = lane.granted = True
    work.resume(lane)
    handled = []
    for _ in range(3):
        (message,) = work.take(0.0, 9)
        handled.append(message.body)
        work.acknowledge(0.0, message)
    assert handled == ["a", "b", "c"]


# --- tries --------------------------------------------------------------------------------------------------------


def test_a_tracked_message_is_told_of_when_it_starts(stats: Stats) -> None:
    work = Work(stats, Wall(0.0), ME, tracked=True)
    work.add(lane_of(), frame(1, "ab"))
    (first,) = work.take(0.0, 1)
    assert work.tried == {1: Tried(1, 1, ME)}
    assert list(work.begun) == [1]
    work.acknowledge(0.0, first)
    assert not work.tried and not work.begun
    work.check_invariants()


def test_a_retry_counts_once_whether_starts_are_told_or_not(stats: Stats) -> None:
    for tracked in (False, True):
        work = Work(stats, Wall(0.0), ME, tracked=tracked)
        work.add(lane_of(), frame(1, "a"))
        for attempt in (1, 2, 3):
            (message,) = work.take(0.0, 9)
            assert message.attempt == attempt
            work.retry(0.0, message, 0.0)
            assert work.tried[1] == Tried(1, attempt, ME)
            work.wake(0.0)


def test_an_heir_goes_on_counting_and_knows_who_was_first(work: Work) -> None:
    lane = lane_of()
    lane.inherited = True
    work.learn_tries([Tried(1, 2, 77)])
    work.add(lane, frame(1, "a"))
    (message,) = work.take(0.0, 9)
    assert (message.attempt, work.first_owner(message)) == (3, 77)
    work.retry(0.0, message, 0.0)
    assert work.tried[1] == Tried(1, 3, 77)


def test_one_that_waited_here_while_another_tried_it_counts_that_too(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame_of(1, make_record("later", due_at=10.0)))
    work.take(0.0, 9)
    lane.lose()
    work.wake(10.0)
    assert work.take(10.0, 9) == []
    work.learn_tries([Tried(1, 1, 77)])
    lane.mine = lane.granted = lane.inherited = True
    work.resume(lane)
    (message,) = work.take(11.0, 9)
    assert message.attempt == 2
    work.give_back(message)
    (again,) = work.take(11.0, 9)
    assert again.attempt == 2, "it was given back, and not tried"


def test_what_the_sender_tells_of_done_messages_or_of_fewer_tries_is_no_news(work: Work) -> None:
    lane = lane_of()
    work.raise_done(3, [lane], lost_lanes=False)
    work.learn_tries([Tried(3, 5, 77), Tried(4, 2, 77)])
    work.learn_tries([Tried(4, 1, 78)])
    assert work.tried == {4: Tried(4, 2, 77)}
    work.raise_done(4, [lane], lost_lanes=False)
    assert not work.tried


def with_suspects(work: Work, count: int) -> Lane:
    """Messages that were in the hands of one that died."""
    lane = lane_of()
    lane.inherited = True
    work.learn_tries([Tried(sequence, 1, 77) for sequence in range(1, count + 1)])
    work.add(lane, frame(1, range(1, count + 1)))
    return lane


def test_suspects_are_handled_one_at_a_time(work: Work) -> None:
    with_suspects(work, 3)
    for body in (1, 2, 3):
        (message,) = work.take(0.0, 9)
        assert message.body == body
        work.acknowledge(0.0, message)
    assert not work.ready


def test_a_suspect_that_is_acknowledged_with_others_of_its_frame_lets_the_next_one_start(work: Work) -> None:
    with_suspects(work, 2)
    (message,) = work.take(0.0, 9)
    piece = message.origin
    assert isinstance(piece, Piece)
    work.acknowledge_run(0.0, piece, 0, 1)
    assert bodies(work.take(0.0, 9)) == [2]


def test_a_suspect_that_need_not_start_after_all_does_not_keep_the_others(work: Work) -> None:
    lane = with_suspects(work, 3)
    (message,) = work.take(0.0, 9)
    lane.done.merge(0, (2, 2))
    work.acknowledge(0.0, message)
    assert bodies(work.take(0.0, 9)) == [3]


# --- what is counted ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lanes_add_up_to_the_totals_and_shards_to_those_with_keys(data: st.DataObject) -> None:
    stats = Stats()
    work = Work(stats, Wall(0.0), ME, tracked=data.draw(st.booleans()))
    lanes = [lane_of(slot, 2, keyed=True) for slot in range(2)]
    for lane in lanes:
        lane.counts = stats.lane(lane.slot)
    first, in_hand, with_keys, now = 1, [], 0, 5.0
    for step in data.draw(st.lists(st.sampled_from("sstthrjgalw"), max_size=40)):
        if step == "s":
            records = []
            for _ in range(data.draw(st.integers(1, 4))):
                key = data.draw(st.sampled_from([None, "x", "y"]))
                due_at = data.draw(st.sampled_from([None, None, now + 1.0]))
                is_urgent = key is None and due_at is None and data.draw(st.booleans())
                records.append(make_record(1, key, None, due_at, data.draw(st.sampled_from([None, 2.0])), is_urgent))
                with_keys += key is not None
            for lane in lanes:
                work.add(lane, frame_of(first, *records))
            first += len(records)
        elif step == "t":
            in_hand += work.take(now, data.draw(st.integers(1, 3)))
        elif step in "hrjg" and in_hand:
            message = in_hand.pop(0)
            if step == "h":
                work.acknowledge(0.0, message)
            elif step == "r":
                work.retry(now, message, 0.5)
            elif step == "j":
                work.reject(0.0, message)
            else:
                work.give_back(message)
        elif step == "l":
            lane = lanes[0]
            if lane.mine:
                lane.lose()
            else:
                lane.mine = lane.granted = True
                work.resume(lane)
        elif step == "w":
            now += 0.4
            work.wake(now)
        work.check_invariants()
    for name in ("routed", "emitted", "acked", "retried", "dead", "expired"):
        total = sum(getattr(counts, name) for counts in stats.lanes.values())
        assert total == getattr(stats, name), name
        assert sum(getattr(counts, name) for counts in stats.shards.values()) <= total
    assert sum(counts.routed for counts in stats.shards.values()) == with_keys


# --- handing over -------------------------------------------------------------------------------------------------


def test_half_of_what_was_not_started_can_be_given_away(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 6)))
    work.add(lane, frame(6, range(6, 11)))
    assert work.middle(lane) == 6
    work.take(0.0, 3)
    assert work.middle(lane) == 8, "4 to 7 are kept"
    work.take(0.0, 6)
    assert work.middle(lane) is None, "one is not worth it"


def test_frames_with_nothing_of_the_lane_are_in_nobodys_way(work: Work) -> None:
    """One message in each frame: what is others' is done as soon as it comes, far ahead of what is started here."""
    lane = lane_of(0, 2)
    for sequence in range(1, 13):
        work.add(lane, frame(sequence, [sequence]))
    assert sequences(work.take(0.0, 2)) == [2, 4]
    assert work.middle(lane) == 10


def test_nothing_is_given_away_before_what_was_started_out_of_turn(work: Work) -> None:
    lane = lane_of()
    records = Records.of(make_record(n, urgent=n == 7) for n in range(1, 11))
    work.add(lane, held(encode_batch(Stamped(TAG, 1, 0xABC, 1, 5.0, 0, 0), records)))
    assert bodies(work.take(0.0, 1)) == [7]
    assert work.middle(lane) == 10, "8 and 9 are kept"


def test_nothing_is_given_away_before_what_was_done_out_of_turn(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 6)))
    records = Records.of(make_record(n, urgent=True) for n in (6, 7))
    work.add(lane, held(encode_batch(Stamped(TAG, 1, 0xABC, 6, 5.0, 0, 0), records)))
    work.add(lane, frame(8, range(8, 12)))
    for message in work.take(0.0, 2):
        work.acknowledge(0.0, message)
    assert work.middle(lane) == 10


def test_nothing_from_the_fence_on_is_started_and_it_is_counted(work: Work, stats: Stats) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 6)))
    work.add(lane, frame(6, range(6, 11)))
    assert sequences(work.take(0.0, 1)) == [1]
    work.cut(0.0, lane, 4)
    work.add(lane, frame(6, range(6, 11)))
    work.add(lane, frame(11, range(11, 16)))
    assert sequences(work.take(0.0, 99)) == [2, 3]
    assert (stats.routed, stats.handed_over, lane.counts.handed_over) == (10, 7, 7)
    work.check_invariants()


def test_a_frame_of_which_all_that_is_kept_is_done_is_done_up_to_the_fence(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 11)))
    for message in work.take(0.0, 3):
        work.acknowledge(0.0, message)
    work.cut(0.0, lane, 4)
    assert (lane.pieces, lane.progress()) == ({}, LaneProgress(1, 0, 3, ()))


def test_what_comes_back_with_its_lane_is_whole_again(work: Work) -> None:
    """The request was never granted: the lane was lost, and came back to its giver."""
    lane = lane_of()
    held_frame = frame(1, range(1, 11))
    work.add(lane, held_frame)
    (first,) = work.take(0.0, 1)
    work.cut(0.0, lane, 6)
    lane.lose()
    lane.mine = lane.granted = lane.inherited = True
    work.resume(lane)
    work.add(lane, held_frame)
    assert sequences(work.take(0.0, 99)) == list(range(2, 11))
    work.acknowledge(0.0, first)
    assert lane.progress().floor == 1
    work.check_invariants()


def test_what_another_gave_away_of_a_lane_meanwhile_is_not_started(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 11)))
    waiting = work.take(0.0, 9)[8]
    work.retry(0.0, waiting, 1.0)
    lane.lose()
    lane.mine = lane.granted = lane.inherited = True
    lane.end = 5
    work.resume(lane)
    work.wake(2.0)
    assert sequences(work.take(2.0, 99)) == []
    work.check_invariants()


def test_of_a_lane_that_comes_back_shorter_no_more_is_handed_over_than_there_is(work: Work) -> None:
    lane = lane_of()
    for first in (1, 6, 11):
        work.add(lane, frame(first, range(first, first + 5)))
    lane.lose()
    lane.mine = lane.granted = lane.inherited = True
    lane.end = 8
    work.resume(lane)
    assert list(lane.pieces) == [1, 6]
    assert work.middle(lane) == 5
    work.cut(0.0, lane, 5)
    assert sequences(work.take(0.0, 99)) == [1, 2, 3, 4]
    work.check_invariants()


def test_what_is_in_hand_is_known_until_it_is_settled_or_its_lane_lost(work: Work) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(1, 11)))
    one, two, three, four, *_ = work.take(0.0, 6)
    assert lane.in_hand == 6
    work.acknowledge(0.0, one)
    work.reject(0.0, two)
    work.retry(0.0, three, 1.0)
    work.give_back(four)
    assert lane.in_hand == 2
    work.acknowledge_run(0.0, lane.pieces[1], 4, 6)
    assert lane.in_hand == 0
    work.take(0.0, 9)
    assert lane.in_hand > 0
    lane.lose()
    assert lane.in_hand == 0
