"""rvq on a LAN of network namespaces, with 1500-byte frames: loss, pulled cables, and a network in two halves."""

from __future__ import annotations

import time

from tests.lan.lan import Lan
from tests.processes.harness import LEASE_S, Worker, while_cut

WORK_S = 0.002
SLOW_S = 0.03
"""What a message takes one that will be cut off: it has work left for longer than its lease then."""

RECEIVERS = ("r0", "r1", "r2")

RATE = 400
"""Messages per second and sender."""

CUT_S = 3.0

STOPPED_BY_S = LEASE_S + 0.5
"""When one that is cut off has stopped by itself: its lease, and the time until a process has its turn."""


def assert_stopped_by_itself(victim: Worker, since: float, to: float) -> None:
    late = [handling for handling in victim.read().handlings if since + STOPPED_BY_S < handling.start < to]
    assert not late, f"{victim.name} started {len(late)} messages without a lease: {late[:3]}"


def test_four_hosts_handle_everything_once(lan: Lan) -> None:
    lan.network.add_hosts(["s", *RECEIVERS])
    workers = lan.start_receivers(*RECEIVERS)
    lan.sender("s", count=20_000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert all(worker.started for worker in workers)


def test_five_percent_loss_at_every_receiver_is_repaired(lan: Lan) -> None:
    lan.network.add_hosts(["s", "t", *RECEIVERS])
    lan.lose(5, *RECEIVERS)
    lan.start_receivers(*RECEIVERS)
    lan.sender("s", count=10_000)
    lan.sender("t", count=2000, rate=1000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert all(lan.network.lost(host) for host in RECEIVERS), "there was loss"


def test_hosts_whose_kernels_cut_and_join_trains_and_hosts_whose_do_not_work_together(lan: Lan) -> None:
    lan.network.add_hosts(["s", "t", *RECEIVERS])
    without = ["env", "RVQ_NO_OFFLOAD=1"]
    workers = [lan.receiver(host, prefix=[*lan.network.on(host), *without * (host == "r1")]) for host in RECEIVERS]
    lan.fleet.await_members(workers)
    lan.sender("s", count=20_000, size=100)
    lan.sender("t", count=20_000, size=100, prefix=[*lan.network.on("t"), *without])
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()


def test_large_messages_come_through_loss_everywhere(lan: Lan) -> None:
    lan.network.add_hosts(["s", "r0", "r1"])
    lan.lose(5, "s", "r0", "r1")
    lan.start_receivers("r0", "r1")
    lan.sender("s", count=6, size=1_000_000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert lan.network.lost("r0") > 20


def test_a_receiver_with_its_cable_pulled_stops_and_comes_back(lan: Lan) -> None:
    lan.network.add_hosts(["s", *RECEIVERS])
    victim = lan.receiver(RECEIVERS[0], work=SLOW_S)
    others = [lan.receiver(host, work=WORK_S) for host in RECEIVERS[1:]]
    lan.fleet.await_members([victim, *others])
    lan.sender("s", rate=RATE)
    lan.fleet.await_more(60, victim)
    cut_at = lan.network.pull_cable(victim.name)
    time.sleep(CUT_S)  # the point of the test
    healed_at = lan.network.put_back_cable(victim.name)
    lan.fleet.await_more(20, victim)
    lan.fleet.finish()
    verdict = lan.fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_repeats_only({victim.name: [while_cut(cut_at, cut_at + STOPPED_BY_S)]})
    verdict.assert_one_at_a_time()
    assert_stopped_by_itself(victim, cut_at, healed_at)


def test_a_sender_with_its_cable_pulled_goes_on_when_it_is_back(lan: Lan) -> None:
    lan.network.add_hosts(["s", "t", *RECEIVERS])
    lan.start_receivers(*RECEIVERS, work=WORK_S)
    for host in ("s", "t"):
        lan.sender(host, rate=RATE // 2)
    lan.fleet.await_more(300)
    cut_at = lan.network.pull_cable("s")
    time.sleep(2.0)  # the point of the test
    healed_at = lan.network.put_back_cable("s")
    lan.fleet.await_more(600)
    lan.fleet.finish()
    verdict = lan.fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_one_at_a_time()
    # Of the sender that was cut off, what was handled meanwhile could not be reported to it; of the other, all was.
    verdict.assert_repeats_only({name: [while_cut(cut_at, healed_at)] for name in RECEIVERS})
    assert not [message for message in verdict.repeated if message.startswith("t/")]


def test_a_network_in_two_halves_is_served_by_the_half_with_the_sender(lan: Lan) -> None:
    lan.network.add_hosts(["s", "left0", "left1"], "left")
    lan.network.add_hosts(["right0", "right1"], "right")
    near = [lan.receiver(host, work=WORK_S) for host in ("left0", "left1")]
    far = [lan.receiver(host, work=SLOW_S) for host in ("right0", "right1")]
    lan.fleet.await_members([*near, *far])
    lan.sender("s", rate=RATE)
    for worker in far:
        lan.fleet.await_more(60, worker)
    cut_at = lan.network.split()
    time.sleep(CUT_S)  # the point of the test
    healed_at = lan.network.heal()
    for worker in far:
        lan.fleet.await_more(20, worker)
    lan.fleet.finish()
    verdict = lan.fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_one_at_a_time()
    verdict.assert_repeats_only({worker.name: [while_cut(cut_at, cut_at + STOPPED_BY_S)] for worker in far})
    for worker in far:
        assert_stopped_by_itself(worker, cut_at, healed_at)


def test_each_half_of_a_network_serves_its_own_sender(lan: Lan) -> None:
    lan.network.add_hosts(["s", "left0", "left1"], "left")
    lan.network.add_hosts(["t", "right0", "right1"], "right")
    workers = lan.start_receivers("left0", "left1", "right0", "right1", work=WORK_S)
    for host in ("s", "t"):
        lan.sender(host, rate=RATE // 2)
    lan.fleet.await_more(200)
    cut_at = lan.network.split()
    time.sleep(CUT_S)  # the point of the test
    lan.network.heal()
    for worker in workers:
        lan.fleet.await_more(20, worker)
    lan.fleet.finish()
    verdict = lan.fleet.verdict()
    verdict.assert_nothing_lost_or_invented()
    verdict.assert_one_at_a_time()
    verdict.assert_repeats_only({worker.name: [while_cut(cut_at, cut_at + STOPPED_BY_S)] for worker in workers})
