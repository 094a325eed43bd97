"""Virtual time: what happens, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.sim import clock as clock_module
from rvq.sim.clock import Clock, LocalClock, Runaway


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_nothing_happens_before_its_time(clock: Clock) -> None:
    told: list[float] = []
    clock.at(2.0, lambda: told.append(clock.now))
    clock.run(until=1.999)
    assert (told, clock.now) == ([], 1.999)
    clock.run(until=2.0)
    assert told == [2.0]


def test_time_goes_on_to_the_end_even_if_nothing_happens(clock: Clock) -> None:
    clock.run(until=7.0)
    assert clock.now == 7.0
    clock.run(until=3.0)
    assert clock.now == 7.0, "and never back"


def test_events_of_one_moment_happen_in_the_order_in_which_they_were_planned(clock: Clock) -> None:
    told: list[str] = []
    for name in "cab":
        clock.at(1.0, told.append, name)
    clock.run(until=1.0)
    assert told == ["c", "a", "b"]


def test_what_is_planned_for_the_past_happens_now(clock: Clock) -> None:
    clock.run(until=5.0)
    told: list[float] = []
    clock.at(1.0, lambda: told.append(clock.now))
    clock.run(until=5.0)
    assert told == [5.0]


def test_a_delay_counts_from_the_event_that_asks_for_it(clock: Clock) -> None:
    told: list[float] = []
    clock.at(1.0, lambda: clock.after(0.5, lambda: told.append(clock.now)))
    clock.run(until=10.0)
    assert told == [1.5]


def test_the_next_event_is_known(clock: Clock) -> None:
    assert clock.next_at is None
    clock.at(3.0, lambda: None)
    clock.at(2.0, lambda: None)
    assert clock.next_at == 2.0
    clock.run(until=2.5)
    assert (clock.next_at, clock.events) == (3.0, 1)


def test_a_world_that_goes_round_in_circles_is_ended(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "EVENTS_MAX", 100)

    def again() -> None:
        clock.at(clock.now, again)

    again()
    with pytest.raises(Runaway, match=r"101 events in 0\.0 virtual seconds"):
        clock.run(until=1.0)


@given(st.lists(st.floats(0.0, 100.0), max_size=30))
def test_events_happen_in_the_order_of_their_times(times: list[float]) -> None:
    clock, told = Clock(), []
    for when in times:
        clock.at(when, lambda: told.append(clock.now))
    clock.run(until=100.0)
    assert told == sorted(times)


def test_a_clock_that_runs_fast_is_ahead_by_its_rate() -> None:
    local = LocalClock(offset=1000.0, rate=1.05)
    assert local.read(0.0) == 1000.0
    assert local.read(20.0) == pytest.approx(1021.0)


@given(st.floats(-1e6, 1e6), st.floats(0.9, 1.1), st.floats(0.0, 1e5))
def test_a_local_time_can_be_turned_back_into_the_true_one(offset: float, rate: float, true: float) -> None:
    local = LocalClock(offset, rate)
    assert local.true_time(local.read(true)) == pytest.approx(true, abs=1e-6)
