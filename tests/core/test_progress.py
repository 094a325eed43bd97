"""What a sender knows as done, against brute force: one set of messages per lane."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rvq.core.progress import GroupDone, SegmentDone, common_runs
from rvq.core.shards import ShardMap, draft
from rvq.limits import REPORT_RANGES_MAX
from rvq.wire.frames import LaneAnswer, LaneProgress, LaneQuestion, Member
from rvq.wire.records import NO_SHARD


def members(*ids: int) -> tuple[Member, ...]:
    return tuple(Member(id, 1) for id in ids)


def no_keys(sequence: int) -> int:
    return NO_SHARD


@pytest.fixture
def two() -> GroupDone:
    """A group with one segment, from 1 on, of two slots: 0 has the even sequences, 1 the odd ones."""
    done = GroupDone(1)
    done.switch(1, 1, False, members(5, 6))
    return done


def report(slot: int, floor: int, *runs: int, stamp: int = 1) -> LaneProgress:
    return LaneProgress(stamp, slot, floor, runs)


def answer(slot: int, floor: int, *runs: int, stamp: int = 1, whole: bool = True) -> LaneAnswer:
    return LaneAnswer(stamp, slot, 1, floor, runs, whole)


def test_at_first_nothing_is_done(two: GroupDone) -> None:
    assert two.done_to == 0
    assert two.undone(10, no_keys) == 10
    assert not two.is_done(1, no_keys)
    two.check_invariants()


def test_a_group_that_comes_late_owes_nothing_of_what_was_before() -> None:
    done = GroupDone(11)
    done.switch(4, 11, False, members(5))
    assert done.done_to == 10
    assert done.is_done(10, no_keys) and not done.is_done(11, no_keys)
    assert done.undone(15, no_keys) == 5


def test_all_is_done_up_to_where_every_lane_is(two: GroupDone) -> None:
    assert two.merge(report(1, 9), 10), "1 is done; 2 is the other lane's"
    assert two.done_to == 1
    assert two.merge(report(0, 4), 10)
    assert two.done_to == 5
    assert two.undone(10, no_keys) == 3
    two.check_invariants()


def test_a_lane_passes_over_what_is_not_its_own(two: GroupDone) -> None:
    """Floors of 4 and 5 mean that 6 is the first one undone, though nobody said 5 of the even lane."""
    two.merge(report(0, 4), 10)
    two.merge(report(1, 5), 10)
    assert two.done_to == 5


def test_what_is_done_above_the_floor_counts_when_the_gap_closes(two: GroupDone) -> None:
    two.merge(report(1, 10), 10)
    assert not two.merge(report(0, 0, 4, 10), 10)
    assert two.done_to == 1
    assert two.is_done(4, no_keys) and not two.is_done(2, no_keys)
    assert two.undone(10, no_keys) == 1
    assert two.merge(report(0, 2), 10)
    assert two.done_to == 10


def test_facts_are_only_added(two: GroupDone) -> None:
    two.merge(report(1, 9), 10)
    assert not two.merge(report(1, 3), 10)
    assert two.answer(LaneQuestion(1, 1, 1, 0)) == answer(1, 10), "10 is the other lane's"


def test_an_empty_report_does_not_mean_all_done(two: GroupDone) -> None:
    assert not two.merge(report(0, 0), 10)
    assert two.undone(10, no_keys) == 10


def test_nobody_can_be_done_with_what_was_not_sent(two: GroupDone) -> None:
    two.merge(report(0, 99), 6)
    two.merge(report(1, 0, 1, 3, 5, 99), 6)
    assert two.done_to >= 4
    two.merge(report(1, 99), 6)
    assert two.done_to == 6
    assert two.undone(20, no_keys) == 14
    two.check_invariants()


def test_a_run_of_which_nothing_was_sent_says_nothing(two: GroupDone) -> None:
    two.merge(report(0, 0, 10, 12), 8)
    assert not two.is_done(8, no_keys)
    assert two.undone(8, no_keys) == 8


@pytest.mark.parametrize("odd", [report(2, 9), report(0, 9, stamp=7), report(2**40, 9)])
def test_a_report_of_a_lane_that_does_not_exist_says_nothing(two: GroupDone, odd: LaneProgress) -> None:
    assert not two.merge(odd, 10)
    assert two.undone(10, no_keys) == 10


def test_a_segment_stays_open_until_all_of_it_is_done_and_the_next_ones_count_then(two: GroupDone) -> None:
    two.switch(2, 7, False, members(5))
    assert two.oldest_stamp == 1
    assert not two.merge(report(0, 10, stamp=2), 10), "7 to 10 are done, but 1 to 6 are not"
    two.merge(report(0, 6), 10)
    assert (two.done_to, two.oldest_stamp) == (0, 1)
    assert two.merge(report(1, 6), 10)
    assert (two.done_to, two.oldest_stamp) == (10, 2)
    two.check_invariants()


def test_a_report_of_an_ended_segment_says_nothing_of_what_comes_after_it(two: GroupDone) -> None:
    two.switch(2, 7, False, members(5))
    two.merge(report(0, 10), 10)
    two.merge(report(1, 10), 10)
    assert (two.done_to, two.oldest_stamp) == (6, 2)
    assert two.undone(10, no_keys) == 4


def test_a_segment_without_messages_is_closed_at_once() -> None:
    done = GroupDone(1)
    done.switch(1, 1, False, members(5))
    done.switch(2, 1, False, members(5, 6))
    assert done.oldest_stamp == 2
    done.switch(3, 1, True, members(5, 6))
    assert done.oldest_stamp == 3
    assert done.done_to == 0


def test_a_closed_segment_has_no_progress_to_tell(two: GroupDone) -> None:
    two.switch(2, 1, False, members(5))
    assert two.answer(LaneQuestion(1, 0, 1, 0)) is None
    assert two.answer(LaneQuestion(2, 1, 1, 0)) is None
    assert two.answer(LaneQuestion(2, 0, 1, 0)) == answer(0, 0, stamp=2)


def test_progress_that_is_told_has_a_bounded_number_of_runs(two: GroupDone) -> None:
    for n in range(1, REPORT_RANGES_MAX + 20):
        two.merge(report(0, 0, 4 * n, 4 * n), 10_000)
    told = two.answer(LaneQuestion(1, 0, 1, 0))
    assert told is not None and len(told.runs) == 2 * REPORT_RANGES_MAX


def test_with_keys_a_lane_passes_over_nothing_that_it_did_not_report() -> None:
    """The sender cannot tell from the sequence whose a message is."""
    done = GroupDone(1)
    done.switch(1, 1, True, members(5, 6))
    done.merge(report(1, 1), 10)
    assert done.done_to == 0
    done.merge(report(0, 1), 10)
    assert done.done_to == 1


def test_with_keys_what_is_done_of_each_message_is_found_by_walking_where_no_report_moves_it() -> None:
    """The receiver of slot 0 is dead, and nothing was its own."""
    done = GroupDone(1)
    done.switch(1, 1, True, members(5, 6), (0, 1) * 512)
    done.switch(2, 4, True, members(6), (0,) * 1024)

    def shard_of(_sequence: int) -> int:
        return 1

    done.merge(report(1, 0, 1, 3), 5)
    assert (done.done_to, done.undone(5, shard_of)) == (0, 2)
    assert done.walk(5, shard_of) and (done.done_to, done.oldest_stamp) == (3, 2)
    assert not done.walk(5, shard_of), "it moved since the last time: reports may go on doing that"
    done.merge(report(0, 3, 5, 5, stamp=2), 5)
    assert not done.walk(5, shard_of) and done.done_to == 3, "4 is not done"
    done.check_invariants()


def test_with_keys_the_lane_of_a_message_is_that_of_its_shard() -> None:
    slots = tuple(reversed(draft(members(5, 6, 7))))
    segment = SegmentDone(1, 1, True, members(5, 6, 7), slots)
    assert segment.slot_of(8, lambda sequence: 77) == slots[77]
    assert segment.slot_of(8, no_keys) == 8 % 3


# --- against brute force ------------------------------------------------------------------------------------------


@dataclass
class ModelSegment:
    stamp: int
    at: int
    keyed: bool
    members: tuple[Member, ...]
    shard_map: ShardMap = ()
    end: int | None = None
    done: set[int] = field(default_factory=set)

    def slot_of(self, sequence: int, shard: int) -> int:
        slots = sum(member.weight for member in self.members)
        return self.shard_map[shard] if self.keyed and shard != NO_SHARD else sequence % slots


class AgainstBruteForce(RuleBasedStateMachine):
    """Messages are sent, groups switch, and lanes report what is done of them: any part, in any order."""

    @initialize(first=st.integers(1, 5), keyed=st.booleans())
    def begin(self, first: int, keyed: bool) -> None:
        self.first = first
        self.last = first - 1
        self.shards: dict[int, int] = {}
        self.group = GroupDone(first)
        self.segments: list[ModelSegment] = []
        self.done: set[int] = set()
        self.keyed = keyed
        self.switch([3, 4])

    def shard_of(self, sequence: int) -> int:
        return self.shards[sequence]

    @rule(ids=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(sorted))
    def switch(self, ids: list[int]) -> None:
        chosen = tuple(Member(id, 1 + id % 2) for id in ids)
        if self.segments:
            self.segments[-1].end = self.last
        stamp = len(self.segments) + 1
        shard_map = draft(chosen) if self.keyed else ()
        self.segments.append(ModelSegment(stamp, self.last + 1, self.keyed, chosen, shard_map))
        self.group.switch(stamp, self.last + 1, self.keyed, chosen, shard_map)

    @precondition(lambda self: not self.keyed)
    @rule()
    def switch_to_keys(self) -> None:
        self.keyed = True
        self.switch([member.id for member in self.segments[-1].members])

    @rule(shards=st.lists(st.sampled_from([NO_SHARD, 1, 500, 1023]), min_size=1, max_size=12))
    def send(self, shards: list[int]) -> None:
        for shard in shards:
            self.last += 1
            self.shards[self.last] = shard if self.keyed else NO_SHARD

    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        """One lane's owner handles some of its messages, and says so as DoneRuns would: passing over others'."""
        segment = data.draw(st.sampled_from(self.segments))
        end = self.last if segment.end is None else segment.end
        slot = data.draw(st.integers(0, sum(member.weight for member in segment.members) - 1))
        own = [q for q in range(segment.at, end + 1) if segment.slot_of(q, self.shards[q]) == slot]
        if own:
            self.done |= set(data.draw(st.lists(st.sampled_from(own), max_size=6)))
        if data.draw(st.booleans()):
            self.done |= set(own)
        covered = [q not in own or q in self.done for q in range(segment.at, end + 1)]
        floor = segment.at - 1
        while floor < end and covered[floor + 1 - segment.at]:
            floor += 1
        runs: list[int] = []
        for q in range(floor + 1, end + 1):
            if covered[q - segment.at]:
                if runs and runs[-1] == q - 1:
                    runs[-1] = q
                else:
                    runs += (q, q)
        self.reported(segment, slot, own)
        self.group.merge(LaneProgress(segment.stamp, slot, floor, tuple(runs)), self.last)

    @rule()
    def walk(self) -> None:
        before = self.group.done_to
        moved = self.group.walk(self.last, self.shard_of) or self.group.walk(self.last, self.shard_of)
        assert moved == (self.group.done_to > before)
        truly = set().union(*(segment.done for segment in self.segments))
        assert self.group.done_to == self.last or self.group.done_to + 1 not in truly

    def reported(self, segment: ModelSegment, slot: int, own: list[int]) -> None:
        segment.done |= self.done & set(own)

    @invariant()
    def what_is_done_is_what_was_reported(self) -> None:
        if not hasattr(self, "group"):
            return
        group = self.group
        group.check_invariants()
        truly = set().union(*(segment.done for segment in self.segments))
        for sequence in range(self.first, self.last + 1):
            assert group.is_done(sequence, self.shard_of) == (sequence in truly), sequence
        assert group.undone(self.last, self.shard_of) == self.last - self.first + 1 - len(truly)
        assert all(sequence in truly for sequence in range(self.first, group.done_to + 1))

    @invariant()
    def without_keys_nothing_that_is_done_is_still_waited_for(self) -> None:
        if not hasattr(self, "group") or any(segment.keyed for segment in self.segments):
            return
        truly = set().union(*(segment.done for segment in self.segments))
        undone = [q for q in range(self.first, self.last + 1) if q not in truly]
        assert self.group.done_to == min(undone, default=self.last + 1) - 1

    def teardown(self) -> None:
        """When every lane has reported all, everything is done, keys or not."""
        if not hasattr(self, "group"):
            return
        for segment in self.segments:
            end = self.last if segment.end is None else segment.end
            for slot in range(sum(member.weight for member in segment.members)):
                self.group.merge(LaneProgress(segment.stamp, slot, end, ()), self.last)
        assert self.group.done_to == self.last
        assert self.group.undone(self.last, self.shard_of) == 0
        assert self.group.oldest_stamp == self.segments[-1].stamp


TestAgainstBruteForce = AgainstBruteForce.TestCase
TestAgainstBruteForce.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)


# --- answers in parts, and what is done above the floor ------------------------------------------------------------


def test_an_answer_in_parts_ends_and_tells_everything(two: GroupDone) -> None:
    firsts = [4 * n for n in range(1, 3 * REPORT_RANGES_MAX + 20)]
    for first in firsts:
        two.merge(report(0, 0, first, first), 10_000)
    after, known = 0, []
    for _ in range(4):
        told = two.answer(LaneQuestion(1, 0, 1, after))
        assert told is not None and (told.whole or len(told.runs) == 2 * REPORT_RANGES_MAX)
        known += told.runs[::2]
        if told.whole:
            break
        after = told.runs[-2]
    assert told is not None and told.whole
    assert known == firsts


def test_what_several_have_in_common_is_what_each_has() -> None:
    assert common_runs([[(1, 10), (20, 30)]]) == [(1, 10), (20, 30)]
    assert common_runs([[(1, 10), (20, 30)], [(5, 22), (29, 40)]]) == [(5, 10), (20, 22), (29, 30)]
    assert common_runs([[(1, 10)], [], [(1, 10)]]) == []


def test_frames_behind_an_undone_message_are_done_if_every_lane_says_so(two: GroupDone) -> None:
    two.merge(report(0, 0, 4, 20), 30)
    assert two.done_runs(30) == []
    two.merge(report(1, 0, 5, 9, 13, 30), 30)
    assert two.done_runs(30) == [(5, 9), (13, 20)]
    two.switch(2, 31, False, members(5))
    two.merge(report(0, 30, 35, 40, stamp=2), 40)
    assert two.done_runs(40) == [(5, 9), (13, 20), (35, 40)]
    assert two.done_runs(37) == [(5, 9), (13, 20), (35, 37)]


def test_a_group_says_where_its_open_segments_begin(two: GroupDone) -> None:
    assert not two.has_older
    two.switch(4, 7, False, members(5))
    assert two.has_older
    assert two.starts == [(1, 1), (4, 7)]


def test_the_lane_of_a_message_is_found_while_its_segment_is_open(two: GroupDone) -> None:
    two.switch(2, 7, False, members(5))
    assert two.lane_of(3, no_keys) == (1, 1)
    assert two.lane_of(8, no_keys) == (2, 0)
    two.merge(report(0, 6), 10)
    two.merge(report(1, 6), 10)
    assert two.lane_of(3, no_keys) is None
