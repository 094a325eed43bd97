"""Which numbers were taken: against a set, and with numbers that nobody should do sums with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rvq.core.window import WINDOW, Window


@given(st.integers(0, 50), st.lists(st.integers(0, 3 * WINDOW), max_size=80))
def test_each_number_is_new_once_if_it_is_not_too_old(floor: int, numbers: list[int]) -> None:
    window, taken, highest = Window(floor), set[int](), floor
    for number in numbers:
        expected = number > floor and number > highest - WINDOW and number not in taken
        assert window.is_new(number) == expected
        if expected:
            window.take(number)
            taken.add(number)
            highest = max(highest, number)
        assert not window.is_new(number) and window.highest == highest


@given(st.integers(0, 50), st.integers(1, 3 * WINDOW), st.integers(1, 2 * WINDOW))
def test_a_run_is_taken_as_its_numbers_one_by_one(floor: int, ahead: int, count: int) -> None:
    run, single = Window(floor), Window(floor)
    run.take_run(floor + ahead, count)
    for number in range(floor + ahead, floor + ahead + count):
        single.take(number)
    assert (run.highest, run._seen) == (single.highest, single._seen)


def test_the_oldest_that_is_remembered_and_the_first_that_is_not() -> None:
    window = Window()
    window.take(10_000)
    assert window.is_new(10_000 - WINDOW + 1) and not window.is_new(10_000 - WINDOW)
    window.take(10_000 - WINDOW + 1)
    assert not window.is_new(10_000 - WINDOW + 1)


def test_a_leap_takes_no_memory() -> None:
    window = Window()
    window.take(2**64 - 1)
    assert window.highest == 2**64 - 1 and window._seen.bit_length() <= WINDOW
    assert not window.is_new(5)


def test_numbers_in_order_take_no_more_memory_than_a_window() -> None:
    window = Window()
    for number in range(1, 3 * WINDOW):
        window.take(number)
    assert window._seen.bit_length() == WINDOW
