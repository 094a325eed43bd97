"""Who owns what: everyone derives the same from the same stamps. And what is done of a lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.lanes import Lane, Loss, Part, Piece, heir_may_ask_at, ownership, part_with
from rvq.core.lease import Lease
from rvq.core.runs import DoneRuns
from rvq.core.stamps import Segment
from rvq.core.stats import Counts
from rvq.limits import REPORT_RANGES_MAX
from rvq.message import Settler
from rvq.timings import Timings
from rvq.wire.frames import LaneKey, LaneProgress, Member, Moved, Silence

T = Timings()


@dataclass
class AHome:
    label: str = "work"
    group: str = "default"
    id: int = 0xABC
    me: int = 5
    settler: Settler | None = None
    lease: Lease = field(default_factory=lambda: Lease(T))


def segment(
    stamp: int,
    *ids: int,
    at: int = 1,
    end: int | None = None,
    draining: tuple[int, ...] = (),
    silent: tuple[Silence, ...] = (),
    gone: tuple[int, ...] = (),
    keyed: bool = False,
    weight: int = 1,
) -> Segment:
    return Segment(stamp, at, end, keyed, tuple(Member(id, weight) for id in ids), draining, silent, gone)


def pairs(runs: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(runs[::2], runs[1::2], strict=True))


def whole(segments: list[Segment], index: int = 0) -> list[Part]:
    """The lanes of a segment of which nothing was given away."""
    lanes = ownership(segments, index)
    assert all(len(parts) == 1 for parts in lanes)
    return [parts[0] for parts in lanes]


def owners(segments: list[Segment], index: int = 0) -> list[int]:
    return [owned.owner for owned in whole(segments, index)]


# --- who owns what ------------------------------------------------------------------------------------------------


def test_without_a_later_stamp_the_slots_are_as_stamped() -> None:
    assert whole([segment(1, 5, 6, 7, at=4)]) == [Part(4, None, id, ()) for id in (5, 6, 7)]


def test_a_heavy_member_owns_as_many_lanes_as_its_weight() -> None:
    assert owners([segment(1, 5, 6, weight=2)]) == [5, 5, 6, 6]


def test_a_joiner_takes_nothing_of_older_segments() -> None:
    assert owners([segment(1, 5, 6), segment(2, 4, 5, 6)]) == [5, 6]
    assert owners([segment(1, 5, 6), segment(2, 4, 5, 6)], 1) == [4, 5, 6]


def test_a_draining_member_keeps_its_lanes() -> None:
    segments = [segment(1, 5, 6), segment(2, 6, draining=(5,)), segment(3, 6, draining=(5,))]
    assert owners(segments) == [5, 6]


def test_the_lane_of_one_that_is_gone_passes_to_who_was_there_all_the_time() -> None:
    """Stamp 1, slot 0: (1 + 0) mod 2 of the members 6 and 8 is 8; 7 joined later and has no frames."""
    segments = [segment(1, 5, 6, 8), segment(2, 6, 7, 8)]
    assert whole(segments)[0] == Part(1, None, 8, (Loss(5, segments[1]),))
    assert owners(segments) == [8, 6, 8]


def test_heirs_share_what_is_left_by_slot() -> None:
    segments = [segment(1, 5, 6, 7, weight=4), segment(2, 6, 7, weight=4)]
    assert owners(segments)[:4] == [7, 6, 7, 6]


def test_if_nobody_was_there_all_the_time_any_member_inherits() -> None:
    segments = [segment(3, 5, 6), segment(4, 7, 8)]
    assert owners(segments) == [8, 7]


def test_a_lane_passes_on_along_the_stamps_and_all_who_lost_it_are_known() -> None:
    segments = [segment(1, 5, 6, 7), segment(2, 6, 7), segment(3, 6), segment(4, 6, 9)]
    assert whole(segments) == [
        Part(1, None, 6, (Loss(5, segments[1]), Loss(7, segments[2]))),
        Part(1, None, 6, ()),
        Part(1, None, 6, (Loss(7, segments[2]),)),
    ]


def test_one_that_was_struck_out_and_let_in_again_does_not_get_its_old_lanes_back() -> None:
    segments = [segment(1, 5, 6), segment(2, 6), segment(3, 5, 6)]
    assert owners(segments) == [6, 6]


def test_one_that_came_back_is_no_heir_either_while_another_was_there_all_the_time() -> None:
    segments = [segment(1, 5, 6, 7), segment(2, 6, 7), segment(3, 5, 6, 7), segment(4, 5, 6)]
    assert set(owners(segments)) == {6}


def test_a_draining_member_inherits_nothing() -> None:
    segments = [segment(1, 5, 6, 7), segment(2, 7, draining=(6,))]
    assert owners(segments) == [7, 6, 7]


ids = st.integers(1, 6)


@st.composite
def histories(draw: st.DrawFn) -> list[Segment]:
    """Stamps as a sender could write them: any members, anyone draining who is no member."""
    segments = []
    at = 1
    number = 0
    for _ in range(draw(st.integers(1, 6))):
        number += draw(st.integers(1, 2))
        chosen = sorted(draw(st.sets(ids, min_size=1)))
        members = tuple(Member(id, draw(st.integers(1, 2))) for id in chosen)
        draining = tuple(sorted(draw(st.sets(ids)) - set(chosen)))
        segments.append(Segment(number, at, None, False, members, draining))
        at += draw(st.integers(0, 20))
    return [replace(s, end=after.at - 1) for s, after in pairwise(segments)] + segments[-1:]


@given(histories(), st.data())
def test_everyone_derives_the_same_owner_whatever_older_stamps_it_still_remembers(
    segments: list[Segment], data: st.DataObject
) -> None:
    """Closed stamps are forgotten at different times: that must not change who owns the open lanes."""
    index = data.draw(st.integers(0, len(segments) - 1))
    forgotten = data.draw(st.integers(0, index))
    assert ownership(segments, index) == ownership(segments[forgotten:], index - forgotten)


@given(histories(), st.data())
def test_an_owner_is_always_in_force_and_keeps_its_lane_for_as_long_as_it_is(
    segments: list[Segment], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(segments) - 1))
    before = list(segments[index].slots)
    for later in range(index + 1, len(segments) + 1):
        now = whole(segments[:later], index)
        newest = segments[later - 1]
        for owned, was in zip(now, before, strict=True):
            assert newest.has(owned.owner)
            if newest.has(was):
                assert owned.owner == was, "members and draining ones keep their lanes"
            else:
                assert owned.owner in newest.member_ids, "heirs are members"
                assert owned.losses[-1] == Loss(was, newest)
        before = [owned.owner for owned in now]


@given(histories(), st.data())
def test_one_that_was_away_inherits_only_if_nobody_was_there_all_the_time(
    segments: list[Segment], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(segments) - 1))
    for slot, owned in enumerate(whole(segments, index)):
        if not owned.losses:
            assert owned.owner == segments[index].slots[slot]
            continue
        inherited_with = segments.index(owned.losses[-1].segment)
        since = segments[index:inherited_with]
        was_away = not all(s.has(owned.owner) for s in since)
        steady = [m.id for m in segments[inherited_with].members if all(s.has(m.id) for s in since)]
        assert not (was_away and steady)


# --- how long heirs wait ------------------------------------------------------------------------------------------


def test_an_heir_waits_until_the_lease_of_one_that_was_just_heard_must_be_over() -> None:
    loss = Loss(5, segment(2, 6, silent=(Silence(5, 0.0),)))
    assert heir_may_ask_at([loss], {2: 10.0}, T) == pytest.approx(10.0 + 1.1 * T.lease)


def test_what_the_sender_had_not_heard_counts_as_waited() -> None:
    loss = Loss(5, segment(2, 6, silent=(Silence(5, 0.7),)))
    assert heir_may_ask_at([loss], {2: 10.0}, T) == pytest.approx(10.0 + 1.1 * T.lease - 0.7)
    long_silent = Loss(5, segment(2, 6, silent=(Silence(5, 70.0),)))
    assert heir_may_ask_at([long_silent], {2: 10.0}, T) == 10.0


def test_the_heir_of_one_that_said_goodbye_does_not_wait() -> None:
    assert heir_may_ask_at([Loss(5, segment(2, 6, gone=(5,)))], {2: 10.0}, T) == 10.0


def test_one_of_whom_the_stamp_says_nothing_is_waited_for_in_full() -> None:
    assert heir_may_ask_at([Loss(5, segment(2, 6))], {2: 10.0}, T) == pytest.approx(10.0 + 1.1 * T.lease)


def test_of_several_former_owners_the_longest_wait_counts() -> None:
    quick = Loss(7, segment(3, 6, gone=(7,)))
    slow = Loss(5, segment(2, 6, 7, silent=(Silence(5, 0.0),)))
    learned = {2: 10.0, 3: 10.3}
    assert heir_may_ask_at([slow, quick], learned, T) == pytest.approx(11.1)
    assert heir_may_ask_at([slow, quick], {2: 10.0, 3: 20.0}, T) == 20.0


def test_an_own_lane_needs_no_waiting() -> None:
    assert heir_may_ask_at([], {}, T) == 0.0


# --- a lane as its owner works on it ------------------------------------------------------------------------------


def lane_of(slot: int = 0, slots: int = 2, *, at: int = 1, end: int | None = None, keyed: bool = False) -> Lane:
    lane = Lane(AHome(), segment(1, *range(5, 5 + slots), at=at, end=end, keyed=keyed), slot, Counts())
    lane.mine = lane.granted = True
    return lane


def test_a_new_lane_is_nobodys_to_start_yet() -> None:
    lane = Lane(AHome(), segment(3, 5, 6, at=11), 1, Counts())
    assert lane.key == LaneKey(3, 1, 11)
    assert not lane.startable
    assert lane.progress() == LaneProgress(3, 1, 10, ())
    lane.check_invariants()


def test_a_lane_can_be_started_only_by_its_owner_and_once_its_progress_is_known() -> None:
    lane = lane_of()
    assert lane.startable
    lane.granted = False
    assert not lane.startable
    lane.granted = True
    lane.lose()
    assert not lane.startable
    lane.check_invariants()


def test_what_was_started_goes_on_while_the_lane_is_ours_and_the_lease_holds() -> None:
    lane = lane_of()
    piece = Piece(lane, 11, 13, [0, 1, 2], 0.0)
    lane.home.lease.renew(10.0)
    assert piece.may_continue(10.0 + T.lease - 0.001)
    assert not piece.may_continue(10.0 + T.lease)
    lane.lose()
    assert not piece.may_continue(10.0)


def test_a_lane_is_all_done_when_its_floor_is_at_the_end_of_the_segment_or_of_the_stream() -> None:
    lane = lane_of(end=20)
    lane.done.merge(15, ())
    assert lane.has_all(15) and not lane.has_all(16) and not lane.has_all(99)
    lane.done.merge(20, ())
    assert lane.has_all(99)


def test_progress_says_what_is_done_and_never_what_is_open() -> None:
    """Sequences 1 to 10 in one frame, of which the lane has 2, 4, 6, 8 and 10."""
    lane = lane_of(slot=0)
    piece = lane.pieces[1] = Piece(lane, 1, 10, range(1, 10, 2), 0.0)
    assert lane.progress() == LaneProgress(1, 0, 0, ())
    piece.finish(0, 1)
    assert lane.progress() == LaneProgress(1, 0, 3, ()), "all of the lane before 4"
    piece.finish(3, 4)
    assert lane.progress() == LaneProgress(1, 0, 3, (8, 8))
    lane.check_invariants()


def test_a_report_has_a_bounded_number_of_runs_the_lowest_first() -> None:
    lane = lane_of(slot=0)
    many = REPORT_RANGES_MAX + 10
    piece = lane.pieces[1] = Piece(lane, 1, 4 * many, range(1, 4 * many, 2), 0.0)
    for place in range(1, 2 * many, 2):
        piece.finish(place, place + 1)
    runs = lane.progress().runs
    assert len(runs) == 2 * REPORT_RANGES_MAX
    assert runs[:2] == (4, 4)


def test_with_keys_a_piece_is_in_line_only_when_nothing_can_be_missing_before_it() -> None:
    lane = lane_of(keyed=True)
    first, second, third = (Piece(lane, n, n + 9, range(10), 0.0) for n in (1, 11, 21))
    lane.known.merge(0, (21, 30))
    lane.early[21] = third
    assert lane.take_in_order(0) == []
    lane.known.merge(0, (1, 10))
    lane.early[1] = first
    assert lane.take_in_order(0) == [first]
    lane.known.merge(0, (11, 20))
    lane.early[11] = second
    assert lane.take_in_order(0) == [second, third]
    assert lane.take_in_order(0) == []


def test_with_keys_what_is_done_by_others_is_not_missing() -> None:
    lane = lane_of(keyed=True)
    late = lane.early[21] = Piece(lane, 21, 30, range(10), 0.0)
    lane.known.merge(0, (21, 30))
    assert lane.take_in_order(19) == []
    assert lane.take_in_order(20) == [late]


def test_with_keys_what_is_done_of_the_lane_is_not_missing() -> None:
    lane = lane_of(keyed=True)
    late = lane.early[21] = Piece(lane, 21, 30, range(10), 0.0)
    lane.known.merge(0, (21, 30, 1, 10))
    lane.done.merge(0, (11, 20))
    assert lane.take_in_order(0) == [late]


# --- the messages of one frame ------------------------------------------------------------------------------------


def test_a_piece_tells_its_messages_where_they_came_from() -> None:
    piece = Piece(lane_of(slot=1), 1, 10, range(0, 10, 2), 77.5)
    assert (piece.label, piece.group, piece.stream, piece.slot) == ("work", "default", 0xABC, 1)
    assert (piece.sent_at, piece.settler, piece.asked_at, piece.receiver_index) == (77.5, None, None, 0)


def test_one_that_was_not_in_the_table_has_no_index_in_it() -> None:
    piece = Piece(Lane(AHome(me=99), segment(1, 5, 6), 0, Counts()), 1, 10, range(5), 0.0)
    assert piece.receiver_index is None


@settings(max_examples=200)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4))),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_a_piece_knows_as_finished_what_was_finished(
    count: int, steps: list[tuple[int, int]], slots: int, offset: int
) -> None:
    """Against a set of places. What it covers of the stream is what a set says."""
    first = 100
    places = range(min(offset, slots - 1), count * slots, slots)[:count]
    piece = Piece(lane_of(slots=slots), first, first + count * slots - 1, places, 0.0)
    done: set[int] = set()
    for start, length in steps:
        stop = min(start + length, count)
        if start >= stop or piece.complete:
            continue
        new = set(range(start, stop)) - done
        assert piece.finish(start, stop) == len(new)
        done |= new
        assert {place for place in range(count) if piece.is_finished(place)} == done
        assert piece.complete == (len(done) == count)
        covered = {sequence for a, b in pairs(piece.covered()) for sequence in range(a, b + 1)}
        own = {first + places[place]: place for place in range(count)}
        assert {own[sequence] for sequence in covered if sequence in own} == done
        assert all(first <= sequence <= piece.last for sequence in covered)
        if not piece.complete:
            piece.check_invariants()


# --- more than a report can tell ----------------------------------------------------------------------------------


def told_by(lane: Lane, reports: int, most: int = REPORT_RANGES_MAX) -> DoneRuns:
    """What a sender knows after so many reports."""
    known = DoneRuns(0)
    for _ in range(reports):
        progress = lane.progress(most)
        assert len(progress.runs) <= 2 * most
        known.merge(progress.floor, progress.runs)
    return known


def with_holes(lane: Lane, count: int) -> Piece:
    """One frame of which every second message of the lane is done."""
    piece = lane.pieces[1] = Piece(lane, 1, 2 * count, range(2 * count), 0.0)
    for place in range(1, 2 * count, 2):
        piece.finish(place, place + 1)
    lane.changed[1] = None
    return piece


def test_thousands_of_holes_in_one_frame_are_told_in_a_few_reports() -> None:
    lane = lane_of(slots=1)
    piece = with_holes(lane, 3000)
    known = told_by(lane, 3000 // (REPORT_RANGES_MAX // 2) + 2)
    assert all(known.covers(sequence) for sequence in range(2, 6001, 2))
    assert not any(known.covers(sequence) for sequence in range(1, 6001, 2))
    assert not lane.changed, "there is no more news"
    piece.check_invariants()


def test_a_frame_that_changes_all_the_time_does_not_keep_the_others_from_being_told() -> None:
    lane = lane_of(slots=1)
    with_holes(lane, 1000)
    for first in range(10_001, 14_001, 20):
        lane.pieces[first] = Piece(lane, first, first + 9, range(10), 0.0)
        lane.pieces[first].finish(3, 4)
    known = DoneRuns(0)
    for _ in range(60):
        lane.changed[1] = None
        progress = lane.progress()
        known.merge(progress.floor, progress.runs)
    assert all(known.covers(first + 3) for first in range(10_001, 14_001, 20))
    assert all(known.covers(sequence) for sequence in range(2, 2001, 2))


def test_thousands_of_frames_with_holes_are_told_in_turns() -> None:
    lane = lane_of(slots=1)
    for first in range(1, 40_001, 20):
        lane.pieces[first] = Piece(lane, first, first + 9, range(10), 0.0)
        lane.pieces[first].finish(3, 4)
        lane.done.merge(0, (first + 12, first + 15))
    known = told_by(lane, 4000 // 64 + 20)
    assert all(known.covers(first + 3) and known.covers(first + 13) for first in range(1, 40_001, 20))


def test_what_changed_is_told_before_the_rest() -> None:
    lane = lane_of(slots=1)
    for first in range(1, 40_001, 20):
        lane.pieces[first] = Piece(lane, first, first + 9, range(10), 0.0)
    piece = lane.pieces[39_981]
    piece.finish(3, 4)
    lane.changed[39_981] = None
    assert lane.progress().runs == (39_984, 39_984)
    assert not lane.changed


@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_lane_that_shares_a_report_with_many_is_told_all_the_same(most: int) -> None:
    lane = lane_of(slots=1)
    with_holes(lane, 30)
    known = told_by(lane, 2 * 30 + 2, most)
    assert all(known.covers(sequence) for sequence in range(2, 61, 2))


def test_everything_that_is_done_of_a_lane_is_whole_frames_and_parts_of_those_in_work() -> None:
    lane = lane_of(slots=1)
    lane.done.merge(10, (31, 40))
    lane.pieces[11] = Piece(lane, 11, 20, range(10), 0.0)
    lane.pieces[11].finish(0, 2)
    done = lane.all_done()
    assert (done.floor, done.flat(9)) == (12, (31, 40))


def test_a_lane_lacks_of_what_is_missing_only_what_is_neither_done_nor_in_work() -> None:
    """Frames in work may have been dropped: what waits for its time is not asked for again."""
    lane = lane_of(slots=1)
    lane.done.merge(5, (41, 50))
    lane.pieces[11] = Piece(lane, 11, 20, range(10), 0.0)
    lane.pieces[61] = Piece(lane, 61, 70, range(10), 0.0)
    assert list(lane.lacking([(1, 30), (35, 65), (90, 91)])) == [(6, 10), (21, 30), (35, 40), (51, 60), (90, 91)]
    assert list(lane.lacking([(11, 20), (42, 47)])) == []


def test_a_message_that_was_pulled_forward_and_how_often_one_was_tried_cost_nothing_until_there_is_one() -> None:
    one, other = (Piece(lane_of(), first, first + 9, range(10), 0.0) for first in (1, 11))
    one.pull(3)
    one.set_tries(4, 2)
    assert (one.pulled, one.retries) == ({3}, {4: 2})
    assert (other.pulled, other.retries) == (set(), {})


# --- parts of lanes -----------------------------------------------------------------------------------------------


def with_moves(stamp: int, *moved: Moved, ids: tuple[int, ...] = (5, 6), draining: tuple[int, ...] = ()) -> Segment:
    return replace(segment(stamp, *ids, at=21, draining=draining), moved=moved)


FIRST = segment(1, 5, 6, end=20)
GIVEN = with_moves(2, Moved(1, 0, 11, 6))


def test_what_was_moved_is_a_part_of_its_own_with_another_owner() -> None:
    assert ownership([FIRST, GIVEN], 0) == [
        [Part(1, 10, 5, ()), Part(11, 20, 6, (Loss(5, GIVEN, given=True),))],
        [Part(1, 20, 6, ())],
    ]
    assert ownership([FIRST, GIVEN], 1) == [[Part(21, None, 5, ())], [Part(21, None, 6, ())]]


def test_a_part_can_be_handed_on_and_the_part_before_it_cut_again() -> None:
    back, more = with_moves(3, Moved(1, 0, 15, 5)), with_moves(4, Moved(1, 0, 7, 6))
    (parts, _) = ownership([FIRST, GIVEN, back, more], 0)
    assert [(part.first, part.last, part.owner) for part in parts] == [(1, 6, 5), (7, 10, 6), (11, 14, 6), (15, 20, 5)]
    assert [loss.owner for loss in parts[3].losses] == [5, 6]


def test_each_part_passes_on_for_itself_when_its_owner_is_gone() -> None:
    later = segment(3, 5, 7, at=21)
    (parts, _) = ownership([FIRST, GIVEN, later], 0)
    assert parts == [Part(1, 10, 5, ()), Part(11, 20, 5, (Loss(5, GIVEN, given=True), Loss(6, later)))]


def test_what_is_moved_to_one_who_is_not_there_stays_where_it_is() -> None:
    (parts, _) = ownership([FIRST, with_moves(2, Moved(1, 0, 11, 9))], 0)
    assert parts == [Part(1, 20, 5, ())]
    (parts, _) = ownership([FIRST, with_moves(2, Moved(1, 0, 11, 9), draining=(9,))], 0)
    assert [part.owner for part in parts] == [5, 9]


@pytest.mark.parametrize("odd", [Moved(1, 7, 11, 6), Moved(9, 0, 11, 6), Moved(1, 0, 99, 6), Moved(1, 0, 0, 6)])
def test_a_move_of_what_does_not_exist_changes_nothing(odd: Moved) -> None:
    assert ownership([FIRST, with_moves(2, odd)], 0) == ownership([FIRST, with_moves(2)], 0)


def test_a_part_is_found_by_any_of_its_sequences() -> None:
    (parts, _) = ownership([FIRST, GIVEN], 0)
    assert [part_with(parts, sequence) for sequence in (0, 1, 10, 11, 20, 21)] == [
        None,
        parts[0],
        parts[0],
        parts[1],
        parts[1],
        None,
    ]


def test_for_what_was_given_nobody_waits() -> None:
    assert heir_may_ask_at([Loss(5, GIVEN, given=True)], {2: 10.0}, T) == 10.0


def test_a_lane_reaches_from_its_first_sequence_to_its_end_or_its_fence() -> None:
    lane = Lane(AHome(), FIRST, 0, Counts(), 11)
    assert lane.key == LaneKey(1, 0, 11)
    assert [lane.reaches(sequence) for sequence in (10, 11, 20, 21)] == [False, True, True, False]
    lane.fence = 15
    assert [lane.reaches(sequence) for sequence in (14, 15)] == [True, False]
    lane.fence = 25
    assert lane.limit == 20, "no fence makes it longer"
    lane.lose()
    assert lane.limit == 20, "whoever has it next begins anew"


def part_lane() -> Lane:
    lane = Lane(AHome(), segment(1, 5, end=400), 0, Counts(), 101)
    lane.mine = lane.granted = True
    return lane


def test_a_part_says_nothing_of_what_is_before_it() -> None:
    lane = part_lane()
    assert lane.progress() == LaneProgress(1, 0, 0, ())
    lane.pieces[91] = Piece(lane, 91, 110, range(10, 20), 0.0)
    lane.pieces[91].finish(0, 4)
    lane.done.merge(0, (111, 120))
    assert lane.progress() == LaneProgress(1, 0, 0, (101, 104, 111, 120))


@pytest.mark.parametrize("most", [1, 2, 7])
def test_a_part_that_shares_a_report_with_many_is_told_all_the_same(most: int) -> None:
    lane = part_lane()
    lane.done.merge(102, ())
    lane.pieces[103] = piece = Piece(lane, 103, 162, range(60), 0.0)
    for place in range(1, 60, 2):
        piece.finish(place, place + 1)
    lane.changed[103] = None
    known = DoneRuns(0)
    for _ in range(70):
        progress = lane.progress(most)
        assert len(progress.runs) <= 2 * max(2, most)
        known.merge(progress.floor, progress.runs)
    assert all(known.covers(sequence) for sequence in (101, 102, *range(104, 163, 2)))
    assert not known.covers(100) and not known.covers(103)


@given(st.integers(0, 20), st.lists(st.tuples(st.integers(1, 200), st.integers(0, 5)), max_size=12), st.integers(1, 20))
def test_a_lane_without_work_tells_what_it_would_tell_beside_some(
    floor: int, runs: list[tuple[int, int]], most: int
) -> None:
    """Most reports take a short cut, since nothing of the lane is in work then."""
    lane = Lane(AHome(), segment(1, 5), 0, Counts())
    lane.done.merge(floor, ())
    for first, length in runs:
        lane.done.add(first, first + length)
        lane.changed[first] = None
    if len(lane.done) > most:
        return  # then it is told in parts, with work and without
    alone = lane.progress(most)
    assert not lane.changed
    lane.pieces[1000] = Piece(lane, 1000, 1009, range(10), 0.0)
    assert lane.progress(most) == alone
