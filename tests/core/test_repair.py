"""Gaps and the frames that fill them, against plain sets of numbers."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rvq.core.repair import ASK_S_FIRST, ASK_S_MAX, COMPACT_FRAMES, GAPS_MAX, Gaps, SentFrame, SentFrames
from rvq.limits import NAK_RANGES_MAX

LATER = 1e6


@pytest.fixture
def gaps() -> Gaps:
    return Gaps(Random(1))


def missing(runs: tuple[int, ...]) -> list[int]:
    return [n for first, last in zip(runs[::2], runs[1::2], strict=True) for n in range(first, last + 1)]


# --- gaps ---------------------------------------------------------------------------------------------------------


def test_with_nothing_missing_nothing_is_asked_for(gaps: Gaps) -> None:
    assert not gaps
    assert gaps.due(LATER) == ()
    assert gaps.next_deadline() == math.inf


def test_a_frame_that_was_only_overtaken_needs_no_repair(gaps: Gaps) -> None:
    """Nothing is asked for within half the first wait."""
    gaps.note(10.0, 5, 9)
    assert gaps.due(10.0 + ASK_S_FIRST * 0.49) == ()
    gaps.filled(5, 9)
    assert not gaps and gaps.due(LATER) == ()


def test_what_stays_missing_is_asked_for_when_due(gaps: Gaps) -> None:
    gaps.note(10.0, 5, 9)
    due_at = gaps.next_deadline()
    assert 10.0 + 0.5 * ASK_S_FIRST <= due_at <= 10.0 + 1.5 * ASK_S_FIRST
    assert gaps.due(due_at) == (5, 9)


def test_naks_back_off_and_never_end(gaps: Gaps) -> None:
    gaps.note(0.0, 5, 9)
    asked = []
    for _ in range(15):
        asked.append(gaps.next_deadline())
        assert gaps.due(asked[-1]) == (5, 9)
        assert gaps.due(asked[-1]) == (), "once at a time"
    pauses = [b - a for a, b in pairwise(asked)]
    assert pauses[0] < 0.03 < pauses[2] < pauses[4]
    assert min(pauses[-5:]) >= 0.8 * ASK_S_MAX and max(pauses) <= 1.2 * ASK_S_MAX


def test_noticing_a_gap_again_does_not_start_its_waiting_anew(gaps: Gaps) -> None:
    gaps.note(0.0, 5, 9)
    due_at = gaps.next_deadline()
    gaps.note(due_at, 5, 9)
    gaps.note(due_at, 6, 12)
    assert gaps.due(due_at) == (5, 9)
    gaps.check_invariants()


def test_a_part_that_came_leaves_the_rest_missing(gaps: Gaps) -> None:
    gaps.note(0.0, 5, 15)
    gaps.filled(8, 10)
    assert gaps.due(LATER) == (5, 7, 11, 15)
    gaps.filled(1, 6)
    gaps.filled(15, 99)
    gaps.check_invariants()
    assert gaps.due(2 * LATER) == (7, 7, 11, 14)


def test_only_so_many_gaps_are_followed(gaps: Gaps) -> None:
    for n in range(GAPS_MAX + 50):
        gaps.note(0.0, 2 * n + 1, 2 * n + 1)
    found: list[int] = []
    now = 1.0
    while len(runs := gaps.due(now)):
        assert len(runs) <= 2 * NAK_RANGES_MAX
        found += missing(runs)
        gaps.filled(runs[0], runs[-1])
    assert len(found) == GAPS_MAX


def test_one_nak_names_a_bounded_number_of_gaps_and_the_rest_follows(gaps: Gaps) -> None:
    for n in range(NAK_RANGES_MAX + 3):
        gaps.note(0.0, 2 * n + 1, 2 * n + 1)
    assert len(gaps.due(1.0)) == 2 * NAK_RANGES_MAX
    assert len(gaps.due(1.0)) == 2 * 3


class GapsAgainstASet(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.gaps = Gaps(Random(7))
        self.missing: set[int] = set()
        self.now = 0.0

    @rule(first=st.integers(1, 40), length=st.integers(1, 12), wait=st.sampled_from([0.0, 0.002, 0.03]))
    def note(self, first: int, length: int, wait: float) -> None:
        self.gaps.note(self.now, first, first + length - 1, wait)
        self.missing |= set(range(first, first + length))

    @rule(first=st.integers(0, 40), length=st.integers(1, 20))
    def fill(self, first: int, length: int) -> None:
        self.gaps.filled(first, first + length - 1)
        self.missing -= set(range(first, first + length))

    @rule()
    def ask_for_all(self) -> None:
        self.now += 10.0
        assert missing(self.gaps.due(self.now)) == sorted(self.missing)

    @rule(pause=st.floats(0.0, 0.1))
    def ask_for_some(self, pause: float) -> None:
        self.now += pause
        due_at = self.gaps.next_deadline()
        assert set(missing(self.gaps.due(self.now))) <= self.missing
        assert due_at > self.now or self.gaps.next_deadline() > due_at

    @invariant()
    def it_knows_whether_anything_is_missing(self) -> None:
        self.gaps.check_invariants()
        assert bool(self.gaps) == bool(self.missing)
        assert (self.gaps.next_deadline() < math.inf) == bool(self.missing)


TestGaps = GapsAgainstASet.TestCase
TestGaps.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


# --- the frames that a sender keeps -------------------------------------------------------------------------------


def sent(first: int, last: int, cost: int = 10) -> SentFrame:
    return SentFrame(first, last, [b"x"], cost, None)


def spans(frames: SentFrames, first: int, last: int) -> list[tuple[int, int]]:
    return [(frame.first, frame.last) for frame in frames.overlapping(first, last)]


def test_frames_are_kept_until_they_are_done_whole() -> None:
    frames = SentFrames()
    for first in (1, 11, 21):
        frames.add(sent(first, first + 9))
    frames.release(19)
    assert [frame.first for frame in frames] == [11, 21]
    assert (len(frames), frames.bytes) == (2, 20)
    frames.release(30)
    assert (len(frames), frames.bytes) == (0, 0)
    frames.check_invariants()


def test_a_released_frame_lets_go_of_its_bytes() -> None:
    frames = SentFrames()
    datagram = bytes(1000)
    frames.add(SentFrame(1, 10, [datagram], 10, None))
    kept = sys.getrefcount(datagram)
    frames.release(10)
    assert sys.getrefcount(datagram) < kept


def test_what_was_released_is_not_found() -> None:
    frames = SentFrames()
    for first in (1, 11, 21):
        frames.add(sent(first, first + 9))
    frames.release(10)
    assert spans(frames, 1, 10) == []
    assert spans(frames, 1, 11) == [(11, 20)]
    assert spans(frames, 20, 21) == [(11, 20), (21, 30)]
    assert spans(frames, 31, 99) == []


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 9)), min_size=1, max_size=30), st.integers(0, 3), st.data())
def test_the_frames_found_are_those_kept_that_have_any_of_the_sequences(
    steps: list[tuple[int, int]], copies: int, data: st.DataObject
) -> None:
    """Against a plain list; often enough for released frames to be cleared away."""
    frames = SentFrames()
    kept: list[tuple[int, int]] = []
    last = 0
    for length, lag in steps * (1 + copies * (COMPACT_FRAMES // len(steps))):
        kept.append((last + 1, last + length))
        frames.add(sent(last + 1, last + length, length))
        last += length
        frames.release(last - lag)
        kept = [span for span in kept if span[1] > last - lag]
    frames.check_invariants()
    assert [(frame.first, frame.last) for frame in frames] == kept
    assert frames.bytes == sum(b - a + 1 for a, b in kept)
    first = data.draw(st.integers(max(1, last - 20), last + 2))
    to = data.draw(st.integers(first, last + 5))
    assert spans(frames, first, to) == [span for span in kept if span[0] <= to and span[1] >= first]


# --- released behind one that is not done -------------------------------------------------------------------------


def some_frames() -> SentFrames:
    frames = SentFrames()
    for first in range(1, 51, 10):
        frames.add(SentFrame(first, first + 9, (bytes(first),), 100, None))
    return frames


def test_a_frame_that_is_done_behind_one_that_is_not_keeps_its_place_and_no_bytes() -> None:
    frames = some_frames()
    frames.release_run(11, 30)
    assert frames.bytes == 300
    assert [frame.datagrams == () for frame in frames] == [False, True, True, False, False]
    assert [frame.first for frame in frames.overlapping(15, 35)] == [11, 21, 31]
    frames.check_invariants()


def test_a_frame_of_which_only_a_part_is_done_is_kept() -> None:
    frames = some_frames()
    frames.release_run(12, 29)
    assert frames.bytes == 500
    frames.release_run(8, 21)
    assert frames.bytes == 400
    frames.check_invariants()


def test_a_frame_is_released_once() -> None:
    frames = some_frames()
    for _ in range(2):
        frames.release_run(11, 20)
    assert frames.bytes == 400
    frames.release(30)
    assert frames.bytes == 200
    frames.release_run(1, 50)
    assert frames.bytes == 0
    frames.check_invariants()


def test_gaps_that_are_followed_already_are_found_wherever_they_are() -> None:
    gaps = Gaps(Random(1))
    for first in (10, 30, 50):
        gaps.note(0.0, first, first + 4)
    gaps.note(0.0, 32, 60)
    gaps.note(0.0, 1, 12)
    gaps.check_invariants()
    assert gaps.due(1.0) == (1, 9, 10, 14, 30, 34, 35, 49, 50, 54, 55, 60)
