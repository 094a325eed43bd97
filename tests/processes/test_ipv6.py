"""Real processes on a bus with IPv6, on the loopback of a network of their own, which has the route that it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rvq.keyfile import Keys, create_keys, new_key
from tests.cli.processes import Commands
from tests.conftest import ip
from tests.processes.harness import Fleet

InNamespace = Callable[[Callable[[], Any]], Any]


@pytest.fixture(autouse=True)
def _ipv6(monkeypatch: pytest.MonkeyPatch, _peers: None) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    monkeypatch.delenv("RVQ_PEERS", raising=False)  # that is for IPv4 only


def make_loopback() -> None:
    ip("link", "set", "lo", "up")
    ip("-6", "route", "add", "local", "ff15::f271:0/112", "dev", "lo", "table", "local")


def test_what_is_sent_on_a_bus_with_ipv6_is_heard_there(in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_loopback()
        commands = Commands(7400)
        try:
            listener = commands.listen("--interface", "::1")
            other = commands.listen("--interface", "lo")
            sender = commands.send("--interface", "::1", "hello", "world")
            assert "done 2" in sender.words[-1], sender.words
            listener.until_printed(2)
            assert sorted(listener.texts) == ["hello", "world"]
            assert commands.send("--interface", "lo", "four").process.returncode == 0
            other.until_printed(1)
            assert other.texts == ["four"], "IPv4 is another bus"
        finally:
            commands.close()

    in_namespace(scenario)


def test_a_sealed_bus_with_ipv6_loses_nothing_when_a_receiver_is_killed(
    in_namespace: InNamespace, tmp_path: Path
) -> None:
    create_keys(tmp_path / "bus.key", Keys([new_key()]))
    key = tmp_path / "bus.key"

    def scenario() -> None:
        make_loopback()
        fleet = Fleet(tmp_path, 7400, interface="::1")
        try:
            r0, r1 = fleet.start_receivers("r0", "r1", key=key, work=0.002)
            fleet.sender("a", rate=400, key=key)
            fleet.sender("b", count=10, size=300_000, key=key)
            fleet.await_more(200)
            died = r0.kill()
            fleet.await_members([r1], 1)
            fleet.finish()
            verdict = fleet.verdict()
            verdict.assert_nothing_lost_or_invented()
            verdict.assert_repeats_only({"r0": [(died - 0.3, died)]})
        finally:
            fleet.end()

    in_namespace(scenario)


def test_without_its_route_the_command_says_which_one(in_namespace: InNamespace) -> None:
    def scenario() -> None:
        ip("link", "set", "lo", "up")
        commands = Commands(7400)
        try:
            sender = commands.send("--interface", "::1", "hello")
            assert sender.process.returncode != 0
            (words,) = sender.words
            assert "ip -6 route add local ff15::f271:0/112 dev lo table local" in words
        finally:
            commands.close()

    in_namespace(scenario)
