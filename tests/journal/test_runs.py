"""Runs of numbers, against plain sets."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.journal.runs import RunSet

runs = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=25)


def made(some: list[tuple[int, int]]) -> tuple[RunSet, set[int]]:
    numbers, plain = RunSet(), set[int]()
    for first, more in some:
        numbers.add(first, first + more)
        plain.update(range(first, first + more + 1))
    return numbers, plain


def spread(runs: list[tuple[int, int]]) -> list[int]:
    return [number for first, last in runs for number in range(first, last + 1)]


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(runs, runs)
def test_runs_are_what_sets_would_be(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    (of_a, plain_a), (of_b, plain_b) = made(a), made(b)
    assert spread(list(of_a)) == sorted(plain_a)
    assert len(of_a) == len(plain_a)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(of_a))
    assert spread(list(of_a.without(of_b))) == sorted(plain_a - plain_b)


def test_numbers_in_a_row_take_one_run() -> None:
    numbers = RunSet()
    for first in range(1, 10_000, 10):
        numbers.add(first, first + 9)
    assert list(numbers) == [(1, 10_000)]
