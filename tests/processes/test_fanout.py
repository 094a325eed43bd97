"""Real processes on loopback without multicast: the tests that stand for all others. `make fanout` runs every one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.harness import Fleet, await_that
from tests.processes.test_receivers_change import (
    test_a_receiver_that_is_told_to_leave_repeats_nothing,
)
from tests.processes.test_sealed import (
    key,
    test_everything_is_handled_once_and_in_the_order_of_its_keys,
)
from tests.processes.test_senders_change import test_what_a_killed_sender_has_sent_is_finished
from tests.processes.test_steady import (
    test_messages_of_five_mebibytes_arrive_whole,
    test_twenty_receivers_handle_everything_once,
    test_two_labels_do_not_mix,
)
from tests.processes.test_taps import test_a_tap_sees_everything_once_and_takes_nothing

__all__ = [
    "key",
    "test_a_receiver_that_is_told_to_leave_repeats_nothing",
    "test_a_tap_sees_everything_once_and_takes_nothing",
    "test_everything_is_handled_once_and_in_the_order_of_its_keys",
    "test_messages_of_five_mebibytes_arrive_whole",
    "test_twenty_receivers_handle_everything_once",
    "test_two_labels_do_not_mix",
    "test_what_a_killed_sender_has_sent_is_finished",
]

WORK_S = 0.002


@pytest.fixture(autouse=True)
def _peers(monkeypatch: pytest.MonkeyPatch, _no_settings_from_outside: None) -> None:
    monkeypatch.setenv("RVQ_PEERS", "127.0.0.1")


@pytest.fixture
def one_seed(monkeypatch: pytest.MonkeyPatch, port: int, _peers: None) -> None:
    """Only whoever comes first is at an address that all know."""
    monkeypatch.setenv("RVQ_PEERS", f"127.0.0.1:{port}")


def test_when_the_only_seed_dies_those_who_know_each_other_go_on(one_seed: None, fleet: Fleet) -> None:
    seed = fleet.receiver("seed", work=WORK_S)
    fleet.await_members([seed], 1)
    others = [fleet.receiver(name, work=WORK_S) for name in ("r1", "r2")]
    fleet.await_members([seed, *others])
    fleet.sender("a", rate=400)
    fleet.await_more(100)
    seed.kill()
    fleet.await_members(others, 2)
    fleet.await_more(300, *others)
    # Whoever is started at the seed's address is found by those who knew it: they go on asking.
    late = fleet.receiver("late", work=WORK_S)
    fleet.await_members([*others, late], 3)
    fleet.await_more(50, late)
    fleet.finish()
    fleet.verdict().assert_nothing_lost_or_invented()


def test_buses_at_neighbouring_ports_do_not_hear_each_other(fleet: Fleet, port: int, tmp_path: Path) -> None:
    (tmp_path / "neighbours").mkdir()
    neighbours = Fleet(tmp_path / "neighbours", port + 1)
    try:
        mine = fleet.start_receivers("r0", "r1")
        theirs = neighbours.start_receivers("n0", "n1", "n2")
        fleet.sender("a", count=1000)
        neighbours.sender("b", count=1000)
        fleet.await_senders()
        neighbours.await_senders()
        fleet.verdict().assert_all_once()
        neighbours.verdict().assert_all_once()
        await_that(lambda: {worker.read().members for worker in (*mine, *theirs)} == {2, 3}, "two groups")
    finally:
        neighbours.end()
