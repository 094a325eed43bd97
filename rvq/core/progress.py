"""What a sender knows as done, in one group of its stream. Owns the lanes' progress and what follows from it.

Facts are only ever added, from whomever they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rvq.core.runs import DoneRuns
from rvq.core.shards import ShardMap
from rvq.core.table import slots_of
from rvq.limits import REPORT_RANGES_MAX
from rvq.wire.frames import LaneAnswer, LaneProgress, LaneQuestion, Member
from rvq.wire.records import NO_SHARD

ShardOf = Callable[[int], int]
"""The shard of a sequence that is still kept; NO_SHARD for one without a key."""


class SegmentDone:
    """One segment's lanes. `floor` is the least of theirs; those of unkeyed lanes pass over what is not their own."""

    __slots__ = ("at", "end", "everyone", "floor", "floors", "keyed", "lanes", "shard_map", "stamp")

    def __init__(
        self,
        stamp: int,
        at: int,
        keyed: bool,
        members: tuple[Member, ...],
        shard_map: ShardMap = (),
        draining: Iterable[int] = (),
    ) -> None:
        self.stamp = stamp
        self.everyone = frozenset(member.id for member in members).union(draining)
        self.at = at
        self.end: int | None = None
        self.keyed = keyed
        self.shard_map = shard_map
        self.lanes = [DoneRuns(at - 1) for _ in slots_of(members)]
        self.floors = [self._floor(slot) for slot in range(len(self.lanes))]
        self.floor = min(self.floors)

    def merge(self, slot: int, floor: int, runs: tuple[int, ...]) -> bool:
        """True if the segment's floor moved."""
        lane = self.lanes[slot]
        if not lane.merge(floor, runs):
            return False
        if not self.keyed:
            # What is passed over may lead up to a run that is done.
            while lane.merge(self._floor(slot), ()):
                pass
        before, self.floors[slot] = self.floors[slot], self._floor(slot)
        if before > self.floor:
            return False
        floor_before, self.floor = self.floor, min(self.floors)
        return self.floor > floor_before

    def _floor(self, slot: int) -> int:
        floor = self.lanes[slot].floor
        return floor if self.keyed else floor + (slot - floor - 1) % len(self.lanes)

    def slot_of(self, sequence: int, shard_of: ShardOf) -> int:
        shard = shard_of(sequence) if self.keyed else NO_SHARD
        return sequence % len(self.lanes) if shard == NO_SHARD else self.shard_map[shard]

    def done_within(self, first: int, last: int, shard_of: ShardOf) -> int:
        """How many messages from first to last are done."""
        if self.keyed:
            return sum(self.lanes[self.slot_of(q, shard_of)].covers(q) for q in range(first, last + 1))
        slots = len(self.lanes)
        return sum(
            len(range(begin + (slot - begin) % slots, end + 1, slots))
            for slot, lane in enumerate(self.lanes)
            for begin, end in lane.within(first, last)
        )


def common_runs(lists: Sequence[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """What all of these lists of runs have in common. Each is in order."""
    common = lists[0]
    for runs in lists[1:]:
        both, at = [], 0
        for first, last in common:
            while at < len(runs) and runs[at][1] < first:
                at += 1
            place = at
            while place < len(runs) and runs[place][0] <= last:
                both.append((max(first, runs[place][0]), min(last, runs[place][1])))
                place += 1
        common = both
    return common


class GroupDone:
    """One group's open segments. Everything up to `done_to` is done in it."""

    def __init__(self, first: int) -> None:
        self.done_to = first - 1
        self._walked_from = first - 1
        self._segments: list[SegmentDone] = []

    @property
    def oldest_stamp(self) -> int:
        """The stamp of the oldest segment that is not done."""
        return self._segments[0].stamp

    def switch(
        self,
        stamp: int,
        at: int,
        keyed: bool,
        members: tuple[Member, ...],
        shard_map: ShardMap = (),
        draining: Iterable[int] = (),
    ) -> None:
        """A new segment begins; the one before ends."""
        if self._segments:
            self._segments[-1].end = at - 1
        self._segments.append(SegmentDone(stamp, at, keyed, members, shard_map, draining))
        self._close()

    def had(self, receiver: int) -> bool:
        """Can it have had a lane of what is open?"""
        return any(receiver in segment.everyone for segment in reversed(self._segments))

    def merge(self, lane: LaneProgress, last: int) -> bool:
        """A report, of what was sent up to `last`. True if `done_to` moved."""
        segment = self._segment(lane.stamp)
        if segment is None or lane.slot >= len(segment.lanes):
            return False
        reach = last if segment.end is None else min(last, segment.end)
        # Nobody can be done with what was not sent: a report that says so is cut.
        runs = lane.runs
        if runs and runs[-1] > reach:
            runs = tuple(end for run in zip(runs[::2], runs[1::2], strict=True) if run[1] <= reach for end in run)
        if not segment.merge(lane.slot, min(lane.floor, reach), runs):
            return False
        return self._close(last)

    def answer(self, question: LaneQuestion) -> LaneAnswer | None:
        """What is known of one lane; None if its segment is not known, or no longer."""
        segment = self._segment(question.stamp)
        if segment is None or question.slot >= len(segment.lanes):
            return None
        lane = segment.lanes[question.slot]
        runs, whole = lane.above(question.after, REPORT_RANGES_MAX)
        return LaneAnswer(question.stamp, question.slot, question.first, lane.floor, runs, whole)

    def done_runs(self, last: int) -> list[tuple[int, int]]:
        """Runs above `done_to`, up to `last`, in which everything is done."""
        found: list[tuple[int, int]] = []
        for segment in self._segments:
            end = last if segment.end is None else min(last, segment.end)
            if segment.at <= end:
                found += common_runs([lane.within(segment.at, end) for lane in segment.lanes])
        return found

    def walk(self, last: int, shard_of: ShardOf) -> bool:
        """Look at each message from `done_to` on, up to `last`: with keys, a lane is not known to be through before its
        receiver has said that the rest is not its own, and that one may be dead. True if `done_to` moved.

        A step for each message, so only where reports do not move it: that is, called twice with nothing between.
        """
        if self.done_to != self._walked_from:
            self._walked_from = self.done_to
            return False
        reached = self.done_to
        while reached < last and self.is_done(reached + 1, shard_of):
            reached += 1
        if reached == self.done_to:
            return False
        for segment in self._segments:
            if segment.at <= reached:
                for slot in range(len(segment.lanes)):
                    segment.merge(slot, reached if segment.end is None else min(reached, segment.end), ())
        return self._close(last)

    @property
    def has_older(self) -> bool:
        """Are there segments before the newest that are not done?"""
        return len(self._segments) > 1

    @property
    def starts(self) -> list[tuple[int, int]]:
        """The stamp and the first sequence of each open segment, the oldest first."""
        return [(segment.stamp, segment.at) for segment in self._segments]

    def is_done(self, sequence: int, shard_of: ShardOf) -> bool:
        if sequence <= self.done_to:
            return True
        for segment in reversed(self._segments):
            if sequence >= segment.at:
                return segment.lanes[segment.slot_of(sequence, shard_of)].covers(sequence)
        return True

    def lane_of(self, sequence: int, shard_of: ShardOf) -> tuple[int, int] | None:
        """The stamp and slot of a message's lane; None if its segment is closed."""
        for segment in reversed(self._segments):
            if sequence >= segment.at:
                return segment.stamp, segment.slot_of(sequence, shard_of)
        return None

    def undone(self, last: int, shard_of: ShardOf) -> int:
        """How many messages up to `last` are not done."""
        done = 0
        for segment in self._segments:
            end = last if segment.end is None else min(last, segment.end)
            done += segment.done_within(max(segment.at, self.done_to + 1), end, shard_of)
        return max(0, last - self.done_to - done)

    def _segment(self, stamp: int) -> SegmentDone | None:
        return next((segment for segment in self._segments if segment.stamp == stamp), None)

    def _close(self, last: int | None = None) -> bool:
        """Segments that are all done are let go."""
        before = self.done_to
        segments = self._segments
        while len(segments) > 1 and segments[0].end is not None and segments[0].floor >= segments[0].end:
            self.done_to = max(self.done_to, segments.pop(0).end or 0)
        floor = segments[0].floor
        reach = segments[0].end if segments[0].end is not None else last
        self.done_to = max(self.done_to, floor if reach is None else min(floor, reach))
        return self.done_to > before

    def check_invariants(self) -> None:
        for segment in self._segments:
            assert segment.floor == min(segment.floors)
            for lane in segment.lanes:
                lane.check_invariants()
        assert all(segment.end is not None for segment in self._segments[:-1])
        assert self._segments[-1].end is None
