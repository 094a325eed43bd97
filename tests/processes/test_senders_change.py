"""Senders that die or are stopped in mid-stream, as real processes: receivers go on, and make nothing up."""

from __future__ import annotations

import time

from tests.processes.harness import Fleet, await_that

WORK_S = 0.002


def test_receivers_go_on_when_a_sender_is_killed(fleet: Fleet) -> None:
    receivers = fleet.start_receivers("r0", "r1", "r2", work=WORK_S)
    victim, other = fleet.sender("victim", 100_000, rate=600), fleet.sender("other", 3000, rate=600)
    fleet.await_started(1000)
    victim.kill()
    other.await_end()
    assert other.undone == 0
    everything = fleet.verdict()
    assert not everything.invented
    everything.assert_repeats_only({})
    mine = {message for message in everything.by_message if message.startswith("other/")}
    assert mine == fleet.verdict(senders=[other]).sent
    fleet.release()
    assert all(worker.started for worker in receivers)


def test_what_a_killed_sender_has_sent_is_finished(fleet: Fleet) -> None:
    receivers = fleet.start_receivers("r0", "r1", work=WORK_S)
    victim = fleet.sender("victim", 2000)
    fleet.await_started(200)
    await_that(lambda: victim.read().has_sent, "all of it was sent")
    fleet.await_started(300)
    victim.kill()
    # A second is enough for the rest, and orphaned streams go on for five.
    fleet.await_started(2000, receivers)
    fleet.verdict().assert_all_once()


def test_a_stopped_sender_goes_on_as_if_nothing_had_been(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", "r2", work=WORK_S)
    sender = fleet.sender("a", 3000, rate=600)
    fleet.await_started(500)
    sender.stop()
    time.sleep(2.5)  # the point of the test
    sender.resume()
    fleet.await_senders()
    fleet.verdict().assert_all_once()


def test_senders_that_come_and_go_leave_nothing_behind(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1")
    for turn in range(4):
        fleet.sender(f"s{turn}", 300).await_end()
    fleet.verdict().assert_all_once()
