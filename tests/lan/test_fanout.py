"""rvq on networks without multicast: one that drops it, as in a cloud, and two with a router between them."""

from __future__ import annotations

import pytest

from tests.lan.lan import Lan
from tests.lan.test_lan import test_a_receiver_with_its_cable_pulled_stops_and_comes_back

__all__ = ["test_a_receiver_with_its_cable_pulled_stops_and_comes_back"]

RECEIVERS = ("r0", "r1", "r2")


@pytest.fixture(autouse=True)
def _peers(monkeypatch: pytest.MonkeyPatch, _no_settings_from_outside: None) -> None:
    """The hosts that are plugged in first."""
    monkeypatch.setenv("RVQ_PEERS", "10.77.0.1,10.77.0.2,10.77.0.3")


def test_a_network_that_drops_multicast_and_loses_datagrams_is_no_matter(lan: Lan) -> None:
    hosts = [*RECEIVERS, "s", "t"]
    lan.network.add_hosts(hosts)
    lan.drop_multicast(*hosts)
    lan.lose(5, *RECEIVERS)
    lan.start_receivers(*RECEIVERS)
    lan.sender("s", count=10_000)
    lan.sender("t", count=1000, rate=1000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert all(lan.network.lost(host) for host in RECEIVERS), "there was loss"
    assert not any(map(lan.network.dropped_multicast, hosts)), "nobody tried"


def test_a_network_that_drops_multicast_is_noticed_by_those_who_use_it(
    lan: Lan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would prove nothing."""
    monkeypatch.delenv("RVQ_PEERS")
    lan.network.add_hosts(["r0", "r1"])
    lan.drop_multicast("r0", "r1")
    for host in ("r0", "r1"):
        lan.fleet.await_members([lan.receiver(host)], 1)
    assert all(map(lan.network.dropped_multicast, ("r0", "r1")))


def test_two_networks_with_a_router_between_them_are_one_bus(lan: Lan) -> None:
    lan.network.add_router()
    lan.network.add_hosts(["seed", "s"], "left")
    lan.network.add_hosts(["right0", "right1", "t"], "right")
    workers = lan.start_receivers("seed", "right0", "right1")
    lan.sender("s", count=3000)
    lan.sender("t", count=3000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert all(worker.started for worker in workers)
    assert lan.network.address("right0").startswith("10.78.")
