"""What recorders are told of one stream: runs that are exact, and few."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.machine import Wall
from rvq.core.outcomes import JOIN_S, Outcomes
from rvq.core.stats import Stats
from rvq.core.work import Work
from rvq.limits import HANDLED_RUNS_MAX
from rvq.message import Message
from rvq.wire.codec import DATA_HEADER
from rvq.wire.frames import HandledRun, Outcome
from rvq.wire.records import make_record, shard_of
from tests.core.test_work import ME, frame, frame_of, held, lane_of

ACKED, DEAD, RETRIED = Outcome.ACKED, Outcome.DEAD, Outcome.RETRIED


class Bench:
    """Work that is told of, and what was told."""

    def __init__(self) -> None:
        self.told: list[HandledRun] = []
        self.frames = 0
        self.stats = Stats()
        self.work = Work(self.stats, Wall(1000.0), ME)
        self.work.outcomes = Outcomes(self.hear)

    def hear(self, runs: tuple[HandledRun, ...]) -> None:
        assert 0 < len(runs) <= HANDLED_RUNS_MAX
        self.told += runs
        self.frames += 1

    def take(self, now: float = 0.0, most: int = 9999) -> list[Message]:
        return self.work.take(now, most)

    def tell(self) -> list[tuple[Any, ...]]:
        """(outcome, first, last) of what was told now."""
        assert self.work.outcomes is not None
        self.told.clear()
        self.work.outcomes.flush()
        return [(run.outcome, run.first, run.last) for run in self.told]


def test_what_follows_each_other_in_a_lane_is_one_run() -> None:
    bench, lane = Bench(), lane_of(1, 3, stamp=7)
    for first in (1, 11, 21):
        bench.work.add(lane, frame(first, range(10), stamp=7))
    messages = bench.take()
    piece = lane.pieces[1]
    bench.work.acknowledge_run(0.0, piece, 0, 2)
    for message in messages[2:]:
        bench.work.acknowledge(0.0005, message)
    assert bench.tell() == [(ACKED, 1, 28)]
    assert bench.told == [HandledRun(ACKED, 7, 1, 1, 28, 1000.0)]
    assert bench.tell() == []


def test_other_fates_and_later_times_are_other_runs() -> None:
    bench, lane = Bench(), lane_of()
    bench.work.add(lane, frame(1, range(9)))
    messages = bench.take()
    for place, message in enumerate(messages[:6]):
        if place in (2, 3):
            bench.work.reject(0.0, message)
        else:
            bench.work.acknowledge(0.0, message)
    bench.work.acknowledge(2 * JOIN_S, messages[6])
    bench.work.retry(2 * JOIN_S, messages[7], 1.0)
    bench.work.acknowledge(2 * JOIN_S, messages[8])
    assert bench.tell() == [
        (ACKED, 1, 2),
        (DEAD, 3, 4),
        (ACKED, 5, 6),
        (ACKED, 7, 7),
        (RETRIED, 8, 8),
        (ACKED, 9, 9),
    ]
    assert [run.at for run in bench.told] == [1000.0] * 3 + [1000.0 + 2 * JOIN_S] * 3


def test_lanes_do_not_cut_each_others_runs() -> None:
    bench = Bench()
    lanes = [lane_of(slot, 2) for slot in (0, 1)]
    for first in (1, 5):
        for lane in lanes:
            bench.work.add(lane, frame(first, range(4)))
    for message in sorted(bench.take(), key=lambda message: message.sequence):
        bench.work.acknowledge(0.0, message)
    assert bench.tell() == [(ACKED, 1, 7), (ACKED, 2, 8)]


def test_a_frame_with_nothing_for_a_lane_is_passed_over() -> None:
    bench, lane = Bench(), lane_of(0, 8)
    for first in (1, 9, 13, 17):
        bench.work.add(lane, frame(first, range(8 if first == 1 else 4)))
    bench.work.add(lane, frame(21, range(4)))
    for message in bench.take():
        bench.work.acknowledge(0.0, message)
    assert bench.tell() == [(ACKED, 8, 24)]


def test_with_keys_a_run_does_not_reach_over_a_frame_that_is_not_here() -> None:
    bench, lane = Bench(), lane_of(keyed=True)
    for first in (1, 3, 7):
        bench.work.add(lane, frame(first, "ab", keys=(f"k{first}", f"l{first}")))
    lane.known.merge(8, ())
    bench.work._line_up(lane)
    for message in bench.take():
        bench.work.acknowledge(0.0, message)
    assert bench.tell() == [(ACKED, 1, 4), (ACKED, 7, 8)]


def test_what_was_done_before_is_not_told_again() -> None:
    bench, lane = Bench(), lane_of()
    bench.work.add(lane, frame(1, range(9)))
    messages = bench.take()
    piece = lane.pieces[1]
    bench.work.acknowledge(0.0, messages[4])
    bench.work.acknowledge(0.0, messages[4])
    bench.work.acknowledge_run(0.0, piece, 0, 9)
    bench.work.acknowledge_run(0.0, piece, 0, 9)
    assert bench.tell() == [(ACKED, 5, 5), (ACKED, 1, 4), (ACKED, 6, 9)]


def test_what_another_did_is_never_told() -> None:
    """Learned from the sender: while it waits for its turn, and while it is in hand."""
    bench, lane = Bench(), lane_of()
    lane.inherited = True
    bench.work.add(lane, frame(1, range(9)))
    lane.done.merge(0, (3, 5))
    one, two, six = bench.take(most=3)
    assert (one.sequence, two.sequence, six.sequence) == (1, 2, 6)
    bench.work.raise_done(8, [lane], False)
    (nine,) = bench.take()
    bench.work.acknowledge(0.0, nine)
    assert bench.tell() == [(ACKED, 9, 9)]
    bench.work.acknowledge(0.0, six)
    assert bench.tell() == [(ACKED, 6, 6)], "done twice, and this receiver did it too"


def test_expired_unreadable_and_given_away_have_their_names() -> None:
    bench, lane = Bench(), lane_of()
    bad = bytearray(frame(1, [10, 11, 12]).datagrams[0])
    bad[DATA_HEADER.size + 1] = 0xC1  # never used in msgpack
    bench.work.add(lane, held(bytes(bad)))
    bench.work.add(lane, frame(4, range(6)))
    for message in bench.take(most=3):
        bench.work.acknowledge(0.0, message)
    bench.work.cut(0.0, lane, 6)
    assert bench.tell() == [
        (Outcome.UNREADABLE, 2, 2),
        (ACKED, 1, 1),
        (ACKED, 3, 4),
        (Outcome.HANDED_OVER, 6, 9),
    ]
    assert bench.stats.handed_over == 4


def test_one_whose_time_to_live_is_over_is_told() -> None:
    bench, lane = Bench(), lane_of()
    bench.work.add(lane, frame_of(1, make_record(1, ttl=1.0)))
    assert bench.take(100.0) == []
    assert bench.tell() == [(Outcome.EXPIRED, 1, 1)]


def test_with_a_frame_full_of_runs_times_no_longer_part_them_and_no_frame_has_more() -> None:
    bench, lane = Bench(), lane_of()
    count = HANDLED_RUNS_MAX + 50
    bench.work.add(lane, frame(1, range(2 * count)))
    messages = bench.take()
    for place in range(0, 2 * count, 2):
        bench.work.acknowledge(0.0, messages[place])
    assert len(bench.work.outcomes or ()) == count
    bench.tell()
    assert bench.frames == 2
    for n, place in enumerate(range(1, 2 * count, 2)):
        bench.work.acknowledge(float(n), messages[place])
    assert len(bench.tell()) == count
    more = lane_of(stamp=2)
    bench.work.add(more, frame(1001, range(400), stamp=2))
    for n, message in enumerate(bench.take()):
        bench.work.acknowledge(float(n), message)
    assert bench.tell()[-1] == (ACKED, 1000 + HANDLED_RUNS_MAX, 1400)


def test_with_nobody_to_tell_nothing_is_noted() -> None:
    bench, lane = Bench(), lane_of()
    bench.work.outcomes = None
    bench.work.add(lane, frame(1, range(4)))
    a, b, c, d = bench.take()
    bench.work.acknowledge(0.0, a)
    bench.work.acknowledge_run(0.0, lane.pieces[1], 1, 2)
    bench.work.reject(0.0, c)
    bench.work.retry(0.0, d, 1.0)
    assert b.sequence == 2 and bench.told == []


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_runs_say_exactly_what_was_settled(data: st.DataObject) -> None:
    """Any lanes, keys, orders and outcomes: read as an audit does, they are what was done, no more and no less."""
    bench = Bench()
    keyed = data.draw(st.booleans())
    slots = data.draw(st.integers(1, 4))
    mine = sorted(data.draw(st.sets(st.integers(0, slots - 1), min_size=1)))
    lanes = {slot: lane_of(slot, slots, keyed=keyed) for slot in mine}
    shards: dict[int, int | None] = {}
    first = 1
    for _ in range(data.draw(st.integers(1, 5))):
        count = data.draw(st.integers(1, 8))
        keys = [data.draw(st.sampled_from([None, "a", "b", "c"])) if keyed else None for _ in range(count)]
        shards |= {first + n: None if key is None else shard_of(key) for n, key in enumerate(keys)}
        for lane in lanes.values():
            bench.work.add(lane, frame(first, range(count), keys=keys))
        first += count
    done: list[tuple[int, int]] = []
    now, chance = 0.0, random.Random(data.draw(st.integers(0, 99)))
    hand: list[Message] = []
    told: list[HandledRun] = []
    while hand := hand + bench.take(now):
        now += chance.choice((0.0, 0.0001, 0.01))
        message = hand.pop(chance.randrange(len(hand)))
        if chance.random() < 0.5 and message.key is None:
            piece: Any = message.origin
            hand = [other for other in hand if (other.origin, other.place) != (piece, message.place)]
            bench.work.acknowledge_run(now, piece, message.place, message.place + 1)
            done.append((message.sequence, ACKED))
        elif chance.random() < 0.8:
            assert bench.work.acknowledge(now, message)
            done.append((message.sequence, ACKED))
        else:
            assert bench.work.reject(now, message)
            done.append((message.sequence, DEAD))
        if chance.random() < 0.2:
            bench.tell()
            told += bench.told
    bench.tell()
    told += bench.told

    def slot_of(sequence: int) -> int:
        shard = shards[sequence]
        return sequence % slots if shard is None else next(iter(lanes.values())).segment.shard_map[shard]

    read = [
        (sequence, run.outcome)
        for run in told
        for sequence in range(run.first, run.last + 1)
        if slot_of(sequence) == run.slot
    ]
    assert sorted(read) == sorted(done)
    assert {sequence for sequence, _ in done} == {sequence for sequence in shards if slot_of(sequence) in lanes}
