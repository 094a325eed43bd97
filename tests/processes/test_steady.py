"""Real processes on loopback, none of which comes, goes or fails: everything once, and shared as it should be."""

from __future__ import annotations

from collections import Counter

from tests.processes.harness import Fleet


def test_three_senders_and_five_receivers_handle_everything_once(fleet: Fleet) -> None:
    receivers = fleet.start_receivers(*(f"r{i}" for i in range(5)))
    for name in ("a", "b", "c"):
        fleet.sender(name, count=4000)
    fleet.await_senders()
    fleet.verdict().assert_all_once()
    assert all(worker.started for worker in receivers), "each has its share"


def test_twenty_receivers_handle_everything_once(fleet: Fleet) -> None:
    receivers = fleet.start_receivers(*(f"r{i}" for i in range(20)))
    for name in ("a", "b", "c"):
        fleet.sender(name, count=2000)
    fleet.await_senders()
    fleet.verdict().assert_all_once()
    assert all(worker.started for worker in receivers), "each has its share"


def test_a_sender_that_starts_before_any_receiver_loses_nothing(fleet: Fleet) -> None:
    sender = fleet.sender("a", count=2000)
    receivers = [fleet.receiver("r0"), fleet.receiver("r1")]
    fleet.await_senders()
    fleet.verdict(receivers, [sender]).assert_all_once()


def test_each_of_two_groups_handles_everything_once(fleet: Fleet) -> None:
    work = [fleet.receiver(f"work{i}", group="work") for i in range(2)]
    audit = [fleet.receiver(f"audit{i}", group="audit") for i in range(3)]
    fleet.await_members(work)
    fleet.await_members(audit)
    fleet.sender("a", count=3000, groups=2)  # a group gets what is sent from the time on at which the sender knows it
    fleet.await_senders()
    fleet.verdict(work).assert_all_once()
    fleet.verdict(audit).assert_all_once()


def test_shares_are_in_proportion_to_weights(fleet: Fleet) -> None:
    weights = {"one": 1, "two": 2, "five": 5}
    receivers = [fleet.receiver(name, weight=weight) for name, weight in weights.items()]
    fleet.await_members(receivers)
    fleet.sender("a", count=8000)
    fleet.await_senders()
    fleet.verdict().assert_all_once()
    for name, weight in weights.items():
        assert abs(fleet.receivers[name].started - 1000 * weight) <= 200


def test_the_messages_of_a_key_meet_one_receiver_and_in_order(fleet: Fleet) -> None:
    receivers = fleet.start_receivers("r0", "r1", "r2")
    fleet.sender("a", count=2000, keys=37)
    fleet.sender("b", count=2000, keys=37)
    fleet.await_senders()
    verdict = fleet.verdict()
    verdict.assert_all_once()
    verdict.assert_keys_in_order()
    owners = Counter(key for key, _ in {(handling.key, handling.by) for handling in verdict.handled})
    assert set(owners.values()) == {1}, "a key has one receiver"
    assert all(worker.started for worker in receivers)


def test_messages_of_five_mebibytes_arrive_whole(fleet: Fleet) -> None:
    fleet.start_receivers("r0", "r1")
    fleet.sender("a", count=4, size=5 * 1024 * 1024)
    fleet.sender("small", count=2000)
    fleet.await_senders()
    fleet.verdict().assert_all_once()


def test_two_labels_do_not_mix(fleet: Fleet) -> None:
    work = [fleet.receiver(f"work{i}", "work") for i in range(2)]
    play = [fleet.receiver(f"play{i}", "play") for i in range(2)]
    fleet.await_members(work)
    fleet.await_members(play)
    work_sender, play_sender = fleet.sender("w", "work", count=2000), fleet.sender("p", "play", count=2000)
    fleet.await_senders()
    fleet.verdict(work, [work_sender]).assert_all_once()
    fleet.verdict(play, [play_sender]).assert_all_once()
