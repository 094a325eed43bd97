"""The first window: nobody's socket buffer overflows, and nobody who is silent stops the others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.flow import WINDOW_BYTES_FIRST, Flow, Intake
from rvq.timings import Timings

T = Timings()
SILENCE = T.flow_silence


@pytest.fixture
def flow() -> Flow:
    return Flow(T)


def test_with_nobody_there_nothing_is_held_back(flow: Flow) -> None:
    assert flow.may_send(10**9, 10**6)
    assert flow.in_flight_from == math.inf


def test_one_that_has_not_spoken_yet_can_take_a_default_socket_buffer(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    assert flow.may_send(0, WINDOW_BYTES_FIRST)
    assert not flow.may_send(1, WINDOW_BYTES_FIRST)
    assert flow.window_of(5) == WINDOW_BYTES_FIRST


def test_a_new_one_starts_where_the_stream_is(flow: Flow) -> None:
    flow.admit(0.0, [5], 5000)
    assert flow.in_flight_from == 5000
    assert flow.may_send(5000, WINDOW_BYTES_FIRST)


def test_the_slowest_holds_the_stream_back(flow: Flow) -> None:
    flow.admit(0.0, [5, 6], 0)
    flow.report(0.0, 5, 9000, 1000)
    flow.report(0.0, 6, 4000, 1000)
    assert flow.may_send(4500, 500)
    assert not flow.may_send(4500, 501)
    flow.report(0.1, 6, 9500, 1000)
    assert flow.may_send(9500, 500)
    assert not flow.may_send(9500, 501)
    flow.check_invariants()


def test_a_small_window_holds_back_more_than_a_low_position(flow: Flow) -> None:
    flow.admit(0.0, [5, 6], 0)
    flow.report(0.0, 5, 1000, 9000)
    flow.report(0.0, 6, 2000, 100)
    assert not flow.may_send(2050, 8000)
    assert flow.may_send(2050, 50)


def test_one_silent_for_two_heartbeats_no_longer_holds_back(flow: Flow) -> None:
    flow.admit(0.0, [5, 6], 0)
    flow.report(0.0, 5, 0, 1000)
    flow.report(0.0, 6, 0, 9000)
    flow.heard(SILENCE, 6)
    flow.find_slowest(SILENCE)
    assert not flow.may_send(500, 1000)
    flow.heard(SILENCE + 0.01, 6)
    flow.find_slowest(SILENCE + 0.01)
    assert flow.may_send(500, 1000)


def test_one_that_is_heard_again_holds_back_again(flow: Flow) -> None:
    flow.admit(0.0, [5, 6], 0)
    flow.heard(1.0, 6)
    flow.report(1.0, 6, 0, 9000)
    flow.find_slowest(1.0)
    assert flow.may_send(500, 1000)
    flow.report(1.1, 5, 0, 1000)
    assert not flow.may_send(500, 1000)


def test_if_all_are_silent_nobody_holds_back(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.find_slowest(SILENCE + 0.01)
    assert flow.may_send(10**9, 1)


def test_a_nap_of_the_senders_own_makes_nobody_silent(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.forgive(10.0)
    flow.find_slowest(10.0)
    assert not flow.may_send(1, WINDOW_BYTES_FIRST)


def test_one_no_longer_in_force_holds_nothing_back(flow: Flow) -> None:
    flow.admit(0.0, [5, 6], 0)
    flow.report(0.0, 6, 9000, 9000)
    flow.admit(0.0, [6], 0)
    assert flow.may_send(9000, 9000)
    flow.report(0.0, 5, 0, 1)
    flow.heard(0.0, 5)
    assert flow.may_send(9000, 9000)
    flow.check_invariants()


def test_one_that_stays_in_force_keeps_its_place(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.report(0.0, 5, 7000, 1000)
    flow.admit(0.0, [5, 6], 7500)
    assert flow.in_flight_from == 7000
    assert flow.window_of(5) == 1000


def test_a_late_report_takes_nothing_back(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.report(0.0, 5, 7000, 1000)
    flow.report(0.1, 5, 3000, 9000)
    assert flow.in_flight_from == 7000
    assert flow.window_of(5) == 1000


def test_a_datagram_larger_than_a_window_still_goes_when_nothing_else_is_on_its_way(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.report(0.0, 5, 7000, 1000)
    assert flow.may_send(7000, 60_000)
    assert not flow.may_send(7001, 60_000)


def test_a_window_of_nothing_stops_the_stream(flow: Flow) -> None:
    flow.admit(0.0, [5], 0)
    flow.report(0.0, 5, 7000, 0)
    assert not flow.may_send(7000, 1)


reports = st.tuples(st.integers(1, 4), st.integers(0, 100), st.integers(0, 50), st.floats(0, 0.2))


@settings(max_examples=150)
@given(st.lists(reports, max_size=30), st.integers(0, 200), st.integers(1, 60))
def test_whatever_is_reported_no_window_of_one_who_is_heard_is_overrun(
    said: list[tuple[int, int, int, float]], position: int, cost: int
) -> None:
    flow = Flow(T)
    now = 0.0
    flow.admit(now, [1, 2, 3], 0)
    known = dict.fromkeys((1, 2, 3), (0, WINDOW_BYTES_FIRST, 0.0))
    for receiver, taken, window, pause in said:
        now += pause
        flow.report(now, receiver, taken, window)
        if receiver in known and taken >= known[receiver][0]:
            known[receiver] = (taken, window, now)
        flow.check_invariants()
    flow.find_slowest(now)
    counted = [(taken, window) for taken, window, heard_at in known.values() if heard_at >= now - SILENCE]
    tightest = min(counted, key=sum, default=None)
    if flow.may_send(position, cost) and tightest is not None:
        taken, window = tightest
        assert position + cost <= taken + window or (position <= taken and window > 0)
    if all(position + cost <= taken + window for taken, window in counted):
        assert flow.may_send(position, cost)


# --- the receiver's side ------------------------------------------------------------------------------------------


def test_a_receiver_tells_every_half_window_how_far_it_is() -> None:
    intake = Intake()
    intake.window = 1000
    assert not intake.take(499)
    assert intake.take(500)
    intake.reported = intake.taken
    assert not intake.take(999)
    assert intake.take(1100)


def test_what_came_late_moves_nothing() -> None:
    intake = Intake()
    intake.take(500)
    assert not intake.take(400)
    assert intake.taken == 500
