"""What is measured of a soak: how long takeovers took, and messages waited."""

from __future__ import annotations

import pytest

from bench.soak.chaos import Sample
from bench.soak.measure import every_second, measure, summary, takeovers
from bench.soak.schedule import AUDIT, LEDGER, Kind
from tests.bench.soak.telling import Book


def test_a_takeover_is_from_the_fault_to_the_first_inherited_start_of_another() -> None:
    book = Book()
    book.killed("b0.0", 4.15)
    book.handled("b1.0", 3, 5.25)  # of its own
    book.handled("b1.0", 4, 5.75, again=True)
    book.handled("a1.0", 4, 4.5, again=True)  # of another group
    assert takeovers(book.story()) == {"kill -9": [pytest.approx(1.6)]}


def test_what_makes_nobody_take_over_is_not_measured() -> None:
    book = Book()
    book.befell(Kind.STOP, "b0", 4.0, 4.5, "b0.0")
    book.befell(Kind.LOSS, "b0", 4.0, 9.0)
    book.befell(Kind.KILL, "s0", 4.0, 4.0, "s0.0")
    book.befell(Kind.KILL, "j0", 4.0, 4.0, "j0.0")
    book.handled("b1.0", 4, 5.75, again=True)
    assert takeovers(book.story()) == {}
    book.befell(Kind.STOP, "b0", 4.0, 7.0, "b0.0")
    assert takeovers(book.story()) == {"SIGSTOP": [pytest.approx(1.75)]}


def test_waits_rates_and_memory_by_the_second() -> None:
    book = Book()
    book.without("b0.0", "start", "finish", of=4)
    book.handled("b0.0", 4, 7.5)
    samples = [Sample(2.0, "b0", 30_000_000), Sample(3.0, "b0", 31_000_000), Sample(2.0, "a0", 20_000_000)]
    measured = measure(book.story(), samples, 0.0)
    assert dict(measured.waits[AUDIT])[4.0] == pytest.approx(3.5)
    assert dict(measured.waits[LEDGER])[4.0] == pytest.approx(0.1)
    assert dict(measured.rates[AUDIT])[5.0] == 0 and dict(measured.rates[AUDIT])[7.0] == 1
    assert measured.memory == {"a0": [(2.0, 20.0)], "b0": [(2.0, 30.0), (3.0, 31.0)]}
    assert list(measured.memory) == ["a0", "b0"]


def test_seconds_in_which_nothing_happened_are_there() -> None:
    assert every_second({3: 1.0, 5: 2.0}) == [(3.0, 1.0), (4.0, 0.0), (5.0, 2.0)]
    assert every_second({}) == []


def test_a_summary_has_the_middle_and_the_ends() -> None:
    assert summary([3.0, 1.0, 1.5]) == {"times": 3, "least_s": 1.0, "median_s": 1.5, "most_s": 3.0}
