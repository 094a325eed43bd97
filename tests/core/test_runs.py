"""What is done of a lane, against a plain set of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rvq.core.runs import DoneRuns

TOP = 40


def done_of(runs: DoneRuns) -> set[int]:
    return {number for number in range(-1, TOP + 2) if runs.covers(number)}


def test_at_first_only_the_floor_is_done() -> None:
    runs = DoneRuns(7)
    assert runs.covers(7) and runs.covers(1) and not runs.covers(8)
    assert not runs
    assert runs.flat(10) == ()


def test_a_run_above_the_floor_is_kept_apart() -> None:
    runs = DoneRuns(0)
    assert runs.merge(0, (3, 5))
    assert (runs.floor, runs.flat(10), bool(runs)) == (0, (3, 5), True)
    assert not runs.covers(2) and runs.covers(3) and runs.covers(5) and not runs.covers(6)


def test_filling_the_gap_lifts_the_floor_over_what_was_done_above_it() -> None:
    runs = DoneRuns(0)
    runs.merge(0, (3, 5, 7, 8))
    assert runs.merge(2, ())
    assert (runs.floor, runs.flat(10)) == (5, (7, 8))
    assert runs.merge(0, (6, 6))
    assert (runs.floor, runs.flat(10), bool(runs)) == (8, (), False)


def test_runs_that_touch_become_one() -> None:
    runs = DoneRuns(0)
    runs.merge(0, (3, 4, 7, 8))
    assert runs.merge(0, (5, 6))
    assert runs.flat(10) == (3, 8)


def test_one_run_swallows_all_that_it_spans() -> None:
    runs = DoneRuns(0)
    runs.merge(0, (3, 3, 5, 5, 7, 7, 20, 20))
    assert runs.merge(0, (4, 10))
    assert runs.flat(10) == (3, 10, 20, 20)


@pytest.mark.parametrize(("floor", "news"), [(0, (3, 5)), (0, (4, 4)), (0, ()), (1, (1, 1)), (2, ())])
def test_what_is_known_is_no_news(floor: int, news: tuple[int, ...]) -> None:
    runs = DoneRuns(2)
    runs.merge(0, (4, 6))
    runs.merge(0, (3, 3))
    assert runs.floor == 6
    runs.merge(0, (10, 12))
    assert not runs.merge(floor, news)
    assert not runs.merge(0, (10, 12))
    assert not runs.merge(0, (11, 11))


def test_a_run_that_only_grows_is_news() -> None:
    runs = DoneRuns(0)
    runs.merge(0, (3, 5))
    assert runs.merge(0, (3, 6))
    assert runs.merge(0, (2, 5))


def test_done_is_never_taken_back() -> None:
    runs = DoneRuns(9)
    assert not runs.merge(4, ())
    assert runs.floor == 9


def test_a_report_has_the_lowest_runs_when_there_is_no_room_for_all() -> None:
    runs = DoneRuns(0)
    runs.merge(0, (9, 9, 3, 3, 6, 7))
    assert runs.flat(2) == (3, 3, 6, 7)
    assert runs.flat(0) == ()


@given(st.integers(0, TOP), st.sets(st.integers(1, TOP)))
def test_a_report_read_by_another_says_the_same(floor: int, more: set[int]) -> None:
    mine, theirs = DoneRuns(0), DoneRuns(0)
    mine.merge(floor, [number for one in more for number in (one, one)])
    theirs.merge(mine.floor, mine.flat(TOP))
    assert done_of(theirs) == done_of(mine)


class AgainstASet(RuleBasedStateMachine):
    """Facts are merged in any order, and the runs say what a set would."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = DoneRuns(0)
        self.model: set[int] = set()

    @rule(floor=st.integers(0, TOP), ends=st.lists(st.integers(1, TOP), max_size=6))
    def merge(self, floor: int, ends: list[int]) -> None:
        runs = [number for a, b in zip(ends[::2], ends[1::2], strict=False) for number in sorted((a, b))]
        facts = set(range(1, floor + 1))
        for first, last in zip(runs[::2], runs[1::2], strict=True):
            facts |= set(range(first, last + 1))
        assert self.runs.merge(floor, runs) == bool(facts - self.model)
        self.model |= facts

    @rule(a=st.integers(1, TOP), length=st.integers(0, 3), at_floor=st.booleans())
    def add(self, a: int, length: int, at_floor: bool) -> None:
        first = min(self.runs.floor + 1 if at_floor else a, TOP)
        last = min(first + length, TOP)
        self.runs.add(first, last)
        self.model |= set(range(first, last + 1))

    @rule(a=st.integers(1, TOP), b=st.integers(1, TOP))
    def look(self, a: int, b: int) -> None:
        first, last = sorted((a, b))
        wanted = set(range(first, last + 1))
        assert self.runs.covers_run(first, last) == (wanted <= self.model)
        spans = self.runs.within(first, last)
        assert all(x <= y for x, y in spans)
        assert [n for x, y in spans for n in range(x, y + 1)] == sorted(wanted & self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.model)))
        assert not self.runs.merge(0, (one, one))

    @invariant()
    def same_as_the_set(self) -> None:
        self.runs.check_invariants()
        assert done_of(self.runs) == self.model | {-1, 0}
        assert self.runs.floor == next(n for n in range(TOP + 2) if n + 1 not in self.model)
        assert bool(self.runs) == (max(self.model, default=0) > self.runs.floor)
        above = {n for n in self.model if n > self.runs.floor}
        assert len(self.runs) == len(above - {n + 1 for n in above}) == len(self.runs.flat(TOP)) // 2


TestAgainstASet = AgainstASet.TestCase
TestAgainstASet.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def some_runs() -> DoneRuns:
    runs = DoneRuns(10)
    runs.merge(0, (20, 25, 30, 30, 40, 49))
    return runs


def test_runs_above_a_sequence_come_in_parts_and_the_last_part_says_so() -> None:
    runs = some_runs()
    assert runs.above(0, 2) == ((20, 25, 30, 30), False)
    assert runs.above(30, 2) == ((40, 49), True)
    assert runs.above(0, 3) == ((20, 25, 30, 30, 40, 49), True)
    assert runs.above(40, 2) == ((), True)


def test_where_runs_begin_and_what_run_a_sequence_is_in() -> None:
    runs = some_runs()
    assert runs.runs_from(0, 2) == [20, 30]
    assert runs.runs_from(21, 9) == [30, 40]
    assert runs.run_with(20) == runs.run_with(25) == (20, 25)
    assert runs.run_with(26) == runs.run_with(5) == runs.run_with(99) == ()
    assert len(runs) == 3


@given(
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), max_size=8),
    st.integers(1, 45),
    st.integers(0, 20),
)
def test_what_is_not_within_is_what_nobody_covers(
    floor: int, spans: list[tuple[int, int]], first: int, length: int
) -> None:
    runs = DoneRuns(floor)
    for begin, more in spans:
        runs.merge(0, (begin, begin + more))
    last = first + length
    missing = [q for a, b in runs.not_within(first, last) for q in range(a, b + 1)]
    assert missing == [q for q in range(first, last + 1) if not runs.covers(q)]
