"""Receivers that come and go in mid-stream, as real processes: politely, by kill -9, and by SIGSTOP."""

from __future__ import annotations

import time

import pytest

from tests.processes.harness import LEASE_S, Fleet, before_death

WORK_S = 0.002
"""What a message takes: long enough that everyone always has some left."""


def test_receivers_that_join_in_mid_stream_take_their_share(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", work=WORK_S)
    fleet.sender("a", 6000, rate=1500)
    fleet.await_started(500)
    joined = [fleet.receiver(f"joined{i}", work=WORK_S) for i in range(2)]
    fleet.await_senders()
    fleet.verdict().assert_all_once()
    assert all(worker.started for worker in joined)


def test_a_receiver_that_is_told_to_leave_repeats_nothing(fleet: Fleet) -> None:
    leaver, *_ = fleet.start_receivers("leaver", "r1", "r2", "r3", work=WORK_S)
    fleet.sender("a", 4000, rate=1200)
    fleet.await_started(800)
    leaver.terminate()
    leaver.await_end()
    assert fleet.senders["a"].is_running, "it left in mid-stream"
    fleet.await_senders()
    fleet.verdict().assert_all_once()


def test_all_leave_in_turn_and_another_comes_later(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", work=WORK_S)
    sender = fleet.sender("a", 3000, rate=600)
    fleet.await_started(300)
    fleet.release("r0")
    fleet.release("r1")
    assert sender.is_running
    fleet.receiver("late")
    fleet.await_senders()
    fleet.verdict().assert_all_once()


def test_kill_9_of_one_of_four_loses_nothing(fleet: Fleet) -> None:
    victim, *_ = fleet.start_receivers("victim", "r1", "r2", "r3", work=WORK_S)
    for name in ("a", "b"):
        fleet.sender(name, 2400, rate=700)
    fleet.await_started(1000)
    assert victim.started
    died_at = victim.kill()
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(died_at)]})


SMALL_MESSAGES = {"count": 9000, "rate": 1000}
FULL_SOCKET_BUFFER = {"count": 2700, "rate": 300, "size": 20_000}
"""What comes in three seconds is more than the eight mebibytes that wait for the stopped one at most."""


@pytest.mark.parametrize("stream", [SMALL_MESSAGES, FULL_SOCKET_BUFFER], ids=["small", "full_socket_buffer"])
def test_a_stopped_receiver_starts_nothing_that_is_no_longer_its_own(fleet: Fleet, stream: dict[str, int]) -> None:
    victim, *_ = fleet.start_receivers("victim", "r1", "r2", work=WORK_S)
    sender = fleet.sender("a", **stream)
    fleet.await_started(stream["rate"] // 2)
    stopped_at = victim.stop_while_handling()
    before = victim.started
    time.sleep(3 * LEASE_S)  # the point of the test
    resumed_at = victim.resume()
    fleet.await_started(before + 20, [victim])
    assert sender.is_running, "it has work again in mid-stream"
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(stopped_at)]})
    verdict.assert_one_at_a_time(stopped=["victim"])
    after = [handling.message for handling in victim.handlings if handling.start >= resumed_at]
    taken_over = [message for message in after if message in verdict.repeated]
    assert after and not taken_over, "what it starts afterwards is its own"


def test_all_receivers_die_and_new_ones_go_on(fleet: Fleet) -> None:
    victims = fleet.start_receivers("victim0", "victim1", work=WORK_S)
    fleet.sender("a", 3000, rate=600)
    fleet.await_started(400)
    died_at = {victim.name: victim.kill() for victim in victims}
    fleet.receiver("new0", work=WORK_S)
    fleet.receiver("new1", work=WORK_S)
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({name: [before_death(at)] for name, at in died_at.items()})


def test_keys_stay_in_order_while_one_joins_and_one_is_killed(fleet: Fleet) -> None:
    victim, *_ = fleet.start_receivers("victim", "r1", "r2", work=WORK_S)
    fleet.sender("a", 3000, rate=600, keys=23)
    fleet.await_started(500)
    fleet.receiver("joined", work=WORK_S)
    fleet.await_started(1000)
    died_at = victim.kill()
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({"victim": [before_death(died_at)]})
    verdict.assert_keys_in_order()
    assert fleet.receivers["joined"].started
