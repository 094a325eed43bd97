"""What one recorder has to store of one stream: whole pieces, the oldest first, without what others stored."""

from __future__ import annotations

import pytest

from rvq.core.machine import Wall
from rvq.core.stats import Stats
from rvq.core.taken import RecorderWork
from rvq.wire.records import make_record
from rvq.wire.stored import read_stored
from tests.core.test_work import ME, frame, frame_of, held, lane_of


@pytest.fixture
def work() -> RecorderWork:
    return RecorderWork(Stats(), Wall(0.0), ME)


def test_all_of_a_frame_is_marked_as_such(work: RecorderWork) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abc"))
    (taken,) = work.take_frames(9)
    assert (taken.places, taken.spans, taken.sequences) == (None, [(0, 3)], range(1, 4))
    assert lane.in_hand == 3 and not lane.done.covers(1)
    work.acknowledge_run(0.0, taken.piece, 0, 3)
    assert lane.in_hand == 0 and lane.done.floor == 3
    work.check_invariants()


def test_a_share_is_the_own_places(work: RecorderWork) -> None:
    work.add(lane_of(1, 3), frame(1, range(8)))
    (taken,) = work.take_frames(9)
    assert (taken.places, taken.sequences) == (range(0, 8, 3), range(1, 8, 3))


def test_one_message_of_many_is_a_share_too(work: RecorderWork) -> None:
    work.add(lane_of(1, 8), frame(1, range(8)))
    (taken,) = work.take_frames(9)
    assert (taken.places, list(taken.sequences)) == (range(0, 8, 8), [1])
    work.add(lane_of(0, 2, stamp=2), frame(12, "a", stamp=2))
    assert [one.places for one in work.take_frames(9)] == [None], "there is no other in that frame"


def test_frames_come_the_oldest_first_whenever_they_came(work: RecorderWork) -> None:
    lane = lane_of()
    for first in (7, 10, 1, 4):
        work.add(lane, frame(first, "abc"))
    assert [one.frame.first for one in work.take_frames(2)] == [1, 4]
    assert [one.frame.first for one in work.take_frames(9)] == [7, 10]


def test_with_keys_frames_are_taken_as_they_come(work: RecorderWork) -> None:
    lane = lane_of(keyed=True)
    work.add(lane, frame(4, "abc", keys="kkl"))
    assert [one.frame.first for one in work.take_frames(9)] == [4]
    work.add(lane, frame(1, "abc", keys="kkl"))
    assert [one.frame.first for one in work.take_frames(9)] == [1]
    assert lane.early == {}


def test_with_keys_what_is_known_does_not_pile_up(work: RecorderWork) -> None:
    """Frames of which everything was done elsewhere leave no holes behind."""
    lane = lane_of(keyed=True)
    for first in range(10, 400, 20):
        work.raise_done(first - 1, [lane], False)
        work.add(lane, frame(first, "ab", keys="kl"))
        for taken in work.take_frames(9):
            work.acknowledge_run(0.0, taken.piece, 0, 2)
    assert len(lane.known) <= 1


def test_what_is_done_is_left_out_and_is_not_started(work: RecorderWork) -> None:
    lane = lane_of()
    lane.inherited = True
    work.add(lane, frame(1, range(10)))
    lane.done.merge(0, (1, 2, 5, 5, 9, 10))
    (taken,) = work.take_frames(9)
    assert list(taken.sequences) == [3, 4, 6, 7, 8]
    assert taken.spans == [(2, 4), (5, 8)]
    for start, stop in taken.spans:
        work.acknowledge_run(0.0, taken.piece, start, stop)
    assert lane.pieces == {} and lane.done.floor == 10


def test_what_is_done_up_to_somewhere_in_a_frame_is_left_out(work: RecorderWork) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(10)))
    work.raise_done(4, [lane], False)
    (taken,) = work.take_frames(9)
    assert (taken.places, taken.sequences) == (range(4, 10), range(5, 11))


def test_a_frame_that_is_done_by_the_time_of_its_turn_is_not_taken(work: RecorderWork) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(3)))
    work.add(lane, frame(4, range(3)))
    work.raise_done(3, [lane], False)
    assert [one.frame.first for one in work.take_frames(9)] == [4]
    assert 1 not in lane.pieces
    work.check_invariants()


def test_a_lane_that_is_lost_is_not_taken_and_is_in_line_again_if_it_comes_back(work: RecorderWork) -> None:
    lane = lane_of()
    work.add(lane, frame(1, range(3)))
    lane.lose()
    assert work.take_frames(9) == []
    lane.mine = lane.granted = lane.inherited = True
    work.resume(lane)
    assert [one.frame.first for one in work.take_frames(9)] == [1]


def test_what_was_taken_is_not_taken_again_when_its_lane_comes_back(work: RecorderWork) -> None:
    lane = lane_of()
    held_frame = frame(1, range(3))
    work.add(lane, held_frame)
    assert len(work.take_frames(9)) == 1
    lane.lose()
    lane.mine = lane.granted = lane.inherited = True
    work.resume(lane)
    work.add(lane, held_frame)
    assert work.take_frames(9) == []


def test_urgent_ones_are_stored_with_their_frame(work: RecorderWork) -> None:
    work.add(lane_of(), frame_of(1, make_record(1), make_record(2, urgent=True)))
    assert not work.has_urgent
    assert [list(one.sequences) for one in work.take_frames(9)] == [[1, 2]]


def test_an_unreadable_frame_is_spoilt_and_not_done(work: RecorderWork) -> None:
    lane = lane_of()
    good = frame(1, ["one", "three", "seven"])
    bad = held(good.datagrams[0][:-6] + good.datagrams[0][-4:-2] + good.datagrams[0][-6:-4] + good.datagrams[0][-2:])
    work.add(lane, bad)
    assert work.take_frames(9) == [] and work.spoilt == [bad]
    assert lane.done.floor == 0
    work.add(lane, good)
    assert len(work.take_frames(9)) == 1


def test_what_the_journal_has_is_left_out_of_what_is_stored_and_done_all_the_same(work: RecorderWork) -> None:
    lane = lane_of()
    work.add(lane, frame(1, "abcde"))
    (taken,) = work.take_frames(9)
    assert taken.without({9}.__contains__) is taken
    left = taken.without({1, 4, 9}.__contains__)
    assert left is not None and list(left.sequences) == [2, 3, 5]
    assert list(read_stored(*left.block()).sequences) == [2, 3, 5]
    assert taken.without(range(1, 6).__contains__) is None
    assert left.spans == taken.spans == [(0, 5)]
