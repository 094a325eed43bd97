"""One sender or receiver as an observer knows it: counters, rates, leases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rvq import limits
from rvq.core.machine import Address
from rvq.core.observed.ends import RATE_S_MIN, SHARE_S, SeenReceiver, SeenSender, spell
from rvq.core.stats import COUNTERS
from rvq.wire.frames import Version
from tests.core.observed.frames import GROUP, LABEL, SENDER, a_beat, an_about, an_alive


@pytest.fixture
def receiver() -> SeenReceiver:
    return SeenReceiver(7, LABEL, GROUP, 0.0)


def test_what_was_counted_before_it_was_seen_is_not_news(receiver: SeenReceiver) -> None:
    assert not any(receiver.introduce(1.0, 1e9, an_about(7, repaired=5, acked=100), "there").values())
    grown = receiver.introduce(2.0, 1e9 + 1, an_about(7, repaired=7, acked=150), "there")
    assert (grown["repaired"], grown["acked"]) == (2, 50)
    assert receiver.count("acked") == 150 and receiver.rate(2.0) == 50.0


def test_introductions_that_follow_closely_make_no_rate(receiver: SeenReceiver) -> None:
    receiver.introduce(1.0, 1e9, an_about(7, acked=100), "there")
    receiver.introduce(2.0, 1e9, an_about(7, acked=200), "there")
    receiver.introduce(2.0 + RATE_S_MIN / 2, 1e9, an_about(7, acked=260), "there")
    assert receiver.rate(2.1) == 100.0 and receiver.count("acked") == 260
    receiver.introduce(3.0, 1e9, an_about(7, acked=260), "there")
    assert receiver.rate(3.0) == 60.0
    assert receiver.rate(3.0 + SHARE_S) == 0.0, "what it did long ago is no rate"


def test_what_it_did_lately_is_what_its_counter_grew_by(receiver: SeenReceiver) -> None:
    for second in range(30):
        receiver.introduce(float(second), 1e9, an_about(7, acked=10 * second), "there")
    assert receiver.done_lately(29.0) == 10 * SHARE_S


def test_a_newer_end_may_have_more_counters_and_an_older_one_fewer(receiver: SeenReceiver) -> None:
    frame = an_about(7, inserted=3, routed=4)
    receiver.introduce(1.0, 1e9, _with(frame, (*frame.counters, 99, 98)), "there")
    assert receiver.count("inserted") == 3
    receiver.introduce(2.0, 1e9, _with(frame, frame.counters[:2]), "there")
    assert receiver.count("routed") == 4 and receiver.count(COUNTERS[-1]) == 0


def _with(frame: Any, counters: tuple[int, ...]) -> Any:
    return replace(frame, counters=counters)


def test_a_lease_is_as_old_as_the_heartbeat_that_was_echoed(receiver: SeenReceiver) -> None:
    for n in range(5):
        assert receiver.beat(0.2 * n, an_alive(7, n + 1), "there")
    assert receiver.lease_age(1.0) is None
    receiver.echoed(SENDER, 4)
    assert receiver.lease_age(1.0) == pytest.approx(0.4)
    receiver.echoed(SENDER, 2)
    assert receiver.lease_age(1.0) == pytest.approx(0.4), "an older echo takes nothing back"
    receiver.echoed(SENDER + 1, 1)
    assert receiver.lease_age(1.0) == 1.0, "the worst of them"
    receiver.forget_stream(SENDER + 1)
    assert receiver.lease_age(1.0) == pytest.approx(0.4)


def test_an_old_heartbeat_changes_nothing(receiver: SeenReceiver) -> None:
    receiver.beat(1.0, an_alive(7, 9, Version(2, 1)), "there")
    assert not receiver.beat(2.0, an_alive(7, 8, Version(1, 1)), "elsewhere")
    assert (receiver.version, receiver.address, receiver.heard_at) == (Version(2, 1), "there", 1.0)


def test_the_history_of_an_end_is_bounded(receiver: SeenReceiver) -> None:
    for n in range(limits.HISTORY_POINTS_MAX + 50):
        receiver.introduce(float(n), 1e9 + n, an_about(7, acked=n, lag=0.5), "there")
    assert len(receiver.history) == limits.HISTORY_POINTS_MAX
    assert receiver.history[-1] == (1e9 + limits.HISTORY_POINTS_MAX + 49, 1.0, 0.5, 0)


def test_the_picture_of_a_receiver_says_who_and_where(receiver: SeenReceiver) -> None:
    assert receiver.picture(0.5)["host"] is None, "not yet known"
    receiver.introduce(1.0, 1e9, an_about(7, acked=3, lag=0.25, backlog=2), ("10.0.0.1", 4000))
    picture = receiver.picture(1.5)
    assert (picture["host"], picture["pid"], picture["address"]) == ("host-a", 4711, "10.0.0.1:4000")
    assert (picture["acked"], picture["lag"], picture["backlog"], picture["heard_age"]) == (3, 0.25, 2, 0.5)


@pytest.mark.parametrize(
    ("address", "spelled"),
    [
        (("10.0.0.1", 4000), "10.0.0.1:4000"),
        (("::1", 4000, 0, 0), "[::1]:4000"),
        (("fe80::7", 4000, 0, 3), "[fe80::7%3]:4000"),
        ("there", "there"),
    ],
)
def test_an_address_is_spelled_for_people(address: Address, spelled: str) -> None:
    assert spell(address) == spelled


def test_the_state_of_a_sender_is_what_it_waits_for() -> None:
    sender = SeenSender(SENDER, LABEL, 0.0)
    sender.introduce(1.0, 1e9, an_about(SENDER, "", inserted=5, backlog=5), "there")
    assert sender.state() == "waiting", "nobody is there"
    sender.beat(1.0, a_beat(1, groups={GROUP: Version(1, 7)}), "there")
    assert sender.state() == "sending"
    sender.beat(1.0, a_beat(2, groups={GROUP: Version(1, 7)}, held=True), "there")
    assert sender.state() == "waiting", "nobody is left"
    sender.introduce(2.0, 1e9, an_about(SENDER, "", inserted=5), "there")
    assert sender.state() == "idle"


def test_lanes_of_segments_that_are_closed_are_forgotten() -> None:
    sender = SeenSender(SENDER, LABEL, 0.0)
    sender.beat(1.0, a_beat(1, stamp=3), "there")
    sender.owners = {(1, 0): 7, (2, 0): 7, (3, 1): 8}
    sender.beat(1.0, a_beat(2, stamp=3, oldest=3), "there")
    assert sender.owners == {(3, 1): 8}
    assert not sender.beat(1.0, a_beat(1, stamp=3), "there")
