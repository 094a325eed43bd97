"""Leases: they count from when a heartbeat was sent, and never from when its echo came."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.core.lease import BEATS_MAX, Beats, Lease
from rvq.timings import Timings

T = Timings()


@pytest.fixture
def lease() -> Lease:
    return Lease(T)


# --- heartbeats ---------------------------------------------------------------------------------------------------


def test_heartbeats_are_counted_from_one_and_their_times_remembered() -> None:
    beats = Beats()
    assert [beats.beat(10.0), beats.beat(10.2), beats.beat(10.5)] == [1, 2, 3]
    assert [beats.sent_at(counter) for counter in (1, 2, 3)] == [10.0, 10.2, 10.5]
    beats.check_invariants()


@pytest.mark.parametrize("counter", [0, -1, 3, 2**63])
def test_a_heartbeat_that_was_never_sent_was_sent_long_ago(counter: int) -> None:
    beats = Beats()
    beats.beat(10.0)
    beats.beat(10.2)
    assert beats.sent_at(counter) == -math.inf


def test_old_heartbeats_are_forgotten_and_worth_nothing() -> None:
    beats = Beats()
    for number in range(BEATS_MAX + 5):
        beats.beat(float(number))
    assert beats.sent_at(5) == -math.inf
    assert beats.sent_at(6) == 5.0
    assert beats.sent_at(BEATS_MAX + 5) == BEATS_MAX + 4.0
    beats.check_invariants()


def test_enough_heartbeats_are_remembered_for_a_whole_lease() -> None:
    """Out of turn they come more often than every `heartbeat`, so there is a wide margin."""
    assert 3 * T.lease / T.heartbeat <= BEATS_MAX


# --- leases -------------------------------------------------------------------------------------------------------


def test_without_an_echo_there_is_no_lease(lease: Lease) -> None:
    assert not lease.holds(0.0)
    lease.check_invariants()


def test_a_lease_counts_from_the_sending_of_the_echoed_heartbeat_however_late_the_echo_comes(lease: Lease) -> None:
    assert lease.renew(100.0)
    assert lease.holds(100.0 + T.lease - 0.001)
    assert not lease.holds(100.0 + T.lease)
    lease.check_invariants()


def test_an_echo_of_an_older_heartbeat_or_the_same_one_again_is_no_news(lease: Lease) -> None:
    lease.renew(100.0)
    assert not lease.renew(100.0)
    assert not lease.renew(99.0)
    assert not lease.renew(-math.inf)
    assert not lease.holds(100.0 + T.lease)


def test_an_orphaned_stream_goes_on_until_orphan_for_after_the_last_echo(lease: Lease) -> None:
    lease.renew(100.0)
    assert lease.orphan(100.7)
    assert lease.holds(100.0 + T.orphan_for - 0.001)
    assert not lease.holds(100.0 + T.orphan_for)
    lease.check_invariants()


def test_once_the_lease_is_over_it_is_too_late_to_call_the_stream_orphaned(lease: Lease) -> None:
    lease.renew(100.0)
    assert not lease.orphan(100.0 + T.lease)
    assert not lease.holds(100.0 + T.lease)


def test_one_that_never_had_a_lease_cannot_call_the_stream_orphaned(lease: Lease) -> None:
    assert not lease.orphan(5.0)
    assert not lease.holds(5.0)


def test_a_stream_is_called_orphaned_once(lease: Lease) -> None:
    lease.renew(100.0)
    assert lease.orphan(100.7)
    assert not lease.orphan(101.5)
    assert not lease.holds(100.0 + T.orphan_for)


def test_a_sender_that_is_back_can_be_lost_again(lease: Lease) -> None:
    lease.renew(100.0)
    lease.orphan(100.7)
    assert lease.renew(103.0)
    assert not lease.orphaned
    assert lease.orphan(103.8)
    assert lease.holds(103.0 + T.orphan_for - 0.001)
    lease.check_invariants()


def test_what_the_others_said_is_worth_nothing_once_the_sender_echoes_again(lease: Lease) -> None:
    """Or one who joined since then, and never gave its word, could wrongly vouch that the lease is over."""
    lease.renew(100.0)
    lease.orphan(100.7)
    lease.renew(102.0)
    assert lease.holds(102.0 + T.lease - 0.001)
    assert not lease.holds(102.0 + T.lease)


def test_a_sender_that_is_heard_without_an_echo_ends_it_too(lease: Lease) -> None:
    lease.renew(100.0)
    lease.orphan(100.7)
    lease.end_orphan()
    assert lease.holds(100.0 + T.lease - 0.001)
    assert not lease.holds(100.0 + T.lease)
    assert not lease.orphaned


def test_a_sender_that_is_heard_changes_no_lease_that_it_gave(lease: Lease) -> None:
    lease.renew(100.0)
    lease.end_orphan()
    assert lease.holds(100.0 + T.lease - 0.001)
    lease.check_invariants()


times = st.floats(0.0, 50.0)


@given(st.lists(st.tuples(st.booleans(), times, times)))
def test_a_lease_never_outlasts_what_the_newest_echo_allows(steps: list[tuple[bool, float, float]]) -> None:
    """And without the word of the others it is over `lease` after the newest heartbeat that was echoed."""
    lease = Lease(T)
    newest, orphaned_ever = -math.inf, False
    now = 0.0
    for is_echo, pause, age in steps:
        now += pause / 10
        if is_echo:
            lease.renew(now - age / 10)
            newest = max(newest, now - age / 10)
        else:
            orphaned_ever |= lease.orphan(now)
        lease.check_invariants()
        assert not lease.holds(newest + T.orphan_for)
        if not orphaned_ever:
            assert not lease.holds(newest + T.lease)
