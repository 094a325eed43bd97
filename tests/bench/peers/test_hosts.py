"""Across hosts: the same job on loopback and between network namespaces, which are there and gone again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.figures import Figure, Skipped
from bench.peers import hosts, namespaces
from bench.peers.hosts import HOSTS, LOOPBACK, NO_OFFLOAD, Way
from bench.peers.one import Measured
from bench.peers.systems import Job
from tests.lan.network import Network, Unavailable, check_tools

RATES = {"loopback": 1000.0, "hosts": 500.0, "hosts, no GSO/GRO": 100.0, "hosts, cut at the sender's interface": 200.0}


@pytest.fixture
def can_have_hosts() -> None:
    try:
        check_tools("ip")
        Network("probe").remove()
    except Unavailable as reason:
        pytest.skip(str(reason))


def forge(monkeypatch: pytest.MonkeyPatch, wrong: int = 0) -> list[Job]:
    """As if it had been measured. The jobs, as they come."""
    jobs: list[Job] = []

    def measure_way(way: Way, job: Job) -> Measured:
        jobs.append(job)
        return Measured(1.0, RATES[way.name], 2.0, {}, wrong if way is NO_OFFLOAD else 0)

    monkeypatch.setattr(hosts, "measure_way", measure_way)
    return jobs


def by_name(figures: Iterator[Figure]) -> dict[str, Figure]:
    return {figure.what: figure for figure in figures}


def test_every_way_is_measured_in_every_round_with_the_same_job(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = forge(monkeypatch)
    figures = by_name(hosts.run(False))
    assert len(jobs) == hosts.ROUNDS * len(hosts.WAYS) and len(set(jobs)) == 1
    assert figures["messages, all ways together"].value == sum(job.total for job in jobs)
    assert figures["lost, repeated or invented"].good


def test_the_share_of_the_loopback_rate_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch)
    figures = by_name(hosts.run(True))
    assert figures["hosts: of loopback"].value == 50.0
    assert figures["hosts: of loopback"].good is False
    assert figures["hosts, no GSO/GRO: of loopback"].value == 10.0
    assert figures["hosts, no GSO/GRO: of loopback"].good is None


def test_a_message_that_is_wrong_in_one_way_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch, wrong=1)
    assert by_name(hosts.run(True))["lost, repeated or invented"].good is False


def test_each_process_has_a_host_of_its_own_and_loopback_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Job] = []
    asked: list[bool] = []

    @contextmanager
    def made_up(names: tuple[str, ...], *, whole: bool) -> Iterator[list[str]]:
        asked.append(whole)
        yield list(names)

    monkeypatch.setattr(hosts, "hosts", made_up)
    monkeypatch.setattr(hosts, "measure", jobs.append)
    for way in hosts.WAYS:
        hosts.measure_way(way, Job("rvq batches", 1, 3, 10, 100))
    assert [job.namespaces for job in jobs] == [(), *[["r0", "r1", "r2", "s0"]] * 3]
    assert [job.interface for job in jobs] == ["lo", "eth0", "eth0", "eth0"]
    assert [job.offload for job in jobs] == [True, True, False, True]
    assert asked == [True, True, False]


@pytest.mark.parametrize("way", [HOSTS, NO_OFFLOAD, hosts.CUT], ids=lambda way: way.name)
def test_every_message_crosses_between_hosts_once(can_have_hosts: None, way: Way) -> None:
    assert hosts.measure_way(way, Job("rvq batches", 1, 3, 500, 100)).wrong == 0


def test_hosts_are_on_a_network_of_their_own_and_gone_afterwards(can_have_hosts: None) -> None:
    def in_host(*words: str) -> str:
        return subprocess.run(["ip", "-netns", names[0], *words], check=True, capture_output=True, text=True).stdout

    with namespaces.hosts(["a", "b"], whole=False) as names:
        assert all((namespaces.NAMESPACES / name).exists() for name in names)
        link = in_host("-details", "link", "show", "eth0")
        assert "mtu 1500" in link and "gso_max_segs 1 " in link
        assert "default" not in in_host("route")
    assert not any((namespaces.NAMESPACES / name).exists() for name in names)


def test_without_root_it_is_skipped_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(hosts, "measure", lambda job: Measured(1.0, 1.0, 1.0, {}, 0))
    with pytest.raises(Skipped, match="needs root"):
        list(hosts.run(True))


def test_a_kernel_that_has_no_such_links_is_a_reason_to_skip(
    can_have_hosts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Network, host: str, switch: str = "left") -> None:
        raise RuntimeError("ip link add: not supported")

    monkeypatch.setattr(Network, "add_host", refuse)
    with pytest.raises(Skipped, match="not supported"), namespaces.hosts(["a"]):
        pass


def test_loopback_needs_no_hosts() -> None:
    assert not LOOPBACK.across
