"""Receivers that come and go in mid-stream, as real processes: politely, by kill -9, and by SIGSTOP."""

from __future__ import annotations

import time

import pytest

from tests.processes.harness import LEASE_S, Fleet, before_death

RATE = 400
"""Messages per second and sender."""

WORK_S = 0.002
"""What a message takes: everyone is in the middle of one most of the time."""


def test_receivers_that_join_in_mid_stream_take_their_share(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", work=WORK_S)
    fleet.sender("a", rate=RATE)
    fleet.await_more(200)
    for name in ("joined0", "joined1"):
        fleet.await_more(100, fleet.receiver(name, work=WORK_S))
    fleet.finish()
    fleet.verdict().assert_all_once()


def test_a_receiver_that_is_told_to_leave_repeats_nothing(fleet: Fleet) -> None:
    leaver, *others = fleet.start_receivers("leaver", "r1", "r2", "r3", work=WORK_S)
    fleet.sender("a", rate=2 * RATE)
    fleet.await_more(400)
    leaver.terminate()
    leaver.await_end()
    assert leaver.started
    fleet.await_more(200, *others)
    fleet.finish()
    fleet.verdict().assert_all_once()


def test_all_leave_in_turn_and_another_comes_later(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", work=WORK_S)
    fleet.sender("a", rate=RATE)
    fleet.await_more(200)
    fleet.release("r0")
    fleet.release("r1")
    fleet.await_more(200, fleet.receiver("late", work=WORK_S))
    fleet.finish()
    fleet.verdict().assert_all_once()


def test_kill_9_of_one_of_four_loses_nothing(fleet: Fleet) -> None:
    victim, *others = fleet.start_receivers("victim", "r1", "r2", "r3", work=WORK_S)
    for name in ("a", "b"):
        fleet.sender(name, rate=RATE)
    fleet.await_more(100, victim)
    died_at = victim.kill()
    fleet.await_more(800, *others)
    fleet.finish()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(died_at)]})


SMALL_MESSAGES = {"rate": RATE}
FULL_SOCKET_BUFFER = {"rate": 300, "size": 20_000}
"""In three seconds twice as much comes as the socket of the stopped one can hold."""


@pytest.mark.parametrize("stream", [SMALL_MESSAGES, FULL_SOCKET_BUFFER], ids=["small", "full_socket_buffer"])
def test_a_stopped_receiver_starts_nothing_that_is_no_longer_its_own(fleet: Fleet, stream: dict[str, int]) -> None:
    victim, *_ = fleet.start_receivers("victim", "r1", "r2", work=WORK_S)
    fleet.sender("a", **stream)
    fleet.await_more(50, victim)
    stopped_at = victim.stop_while_handling()
    time.sleep(3 * LEASE_S)  # the point of the test
    resumed_at = victim.resume()
    fleet.await_more(50, victim)
    fleet.finish()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(stopped_at)]})
    verdict.assert_one_at_a_time(stopped=["victim"])
    after = [handling.message for handling in victim.handlings if handling.start >= resumed_at]
    assert not verdict.repeated.keys() & after, "what it starts afterwards is its own"


def test_all_receivers_die_and_new_ones_go_on(fleet: Fleet) -> None:
    victims = fleet.start_receivers("victim0", "victim1", work=WORK_S)
    fleet.sender("a", rate=RATE)
    fleet.await_more(200)
    died_at = {victim.name: victim.kill() for victim in victims}
    fleet.await_more(200, fleet.receiver("new0", work=WORK_S), fleet.receiver("new1", work=WORK_S))
    fleet.finish()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({name: [before_death(at)] for name, at in died_at.items()})


def test_keys_stay_in_order_while_one_joins_and_one_is_killed(fleet: Fleet) -> None:
    victim, *others = fleet.start_receivers("victim", "r1", "r2", work=WORK_S)
    fleet.sender("a", rate=RATE, keys=23)
    fleet.await_more(200)
    joined = fleet.receiver("joined", work=WORK_S)
    fleet.await_more(50, joined)
    fleet.await_more(50, victim)
    died_at = victim.kill()
    fleet.await_more(400, joined, *others)
    fleet.finish()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(died_at)]})
    verdict.assert_keys_in_order()
