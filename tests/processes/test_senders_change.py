"""Senders that die or are stopped in mid-stream, as real processes: receivers go on, and make nothing up."""

from __future__ import annotations

import time

from tests.processes.harness import Fleet, await_that

RATE = 400
WORK_S = 0.002


def test_receivers_go_on_when_a_sender_is_killed(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", "r2", work=WORK_S)
    victim, other = fleet.sender("victim", rate=RATE), fleet.sender("other", rate=RATE)
    fleet.await_more(500)
    victim.kill()
    fleet.await_more(500)
    fleet.finish()
    everything = fleet.verdict()
    assert not everything.invented
    everything.assert_repeats_only({})
    assert not everything.lost & fleet.verdict(senders=[other]).sent
    fleet.release()  # a stream without a sender keeps nobody from leaving


def test_what_a_killed_sender_has_sent_is_finished(fleet: Fleet) -> None:
    receivers = fleet.start_receivers("r0", "r1", work=WORK_S)
    victim = fleet.sender("victim", count=2000)
    await_that(lambda: victim.read().has_sent, "all of it was sent")
    fleet.await_started(300)
    victim.kill()
    # The rest takes two seconds, and a stream goes on for five without its sender.
    fleet.await_started(2000, receivers)
    fleet.verdict().assert_all_once()


def test_a_stopped_sender_goes_on_as_if_nothing_had_been(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1", "r2", work=WORK_S)
    sender = fleet.sender("a", rate=RATE)
    fleet.await_more(300)
    sender.stop()
    time.sleep(2.5)  # the point of the test
    sender.resume()
    fleet.await_more(300)
    fleet.finish()
    fleet.verdict().assert_all_once()


def test_senders_that_come_and_go_leave_nothing_behind(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1")
    for turn in range(4):
        fleet.sender(f"s{turn}", count=300).await_end()
    fleet.verdict().assert_all_once()
