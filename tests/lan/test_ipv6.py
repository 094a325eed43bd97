"""rvq on a LAN without IPv4: hosts that have addresses of the link, and others besides, but no IPv4 address."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.lan.lan import Lan
from tests.lan.network import run
from tests.processes.harness import await_that

RANGE = "ff15::f271:0/112"
RECEIVERS = ("r0", "r1", "r2")
TIMEOUT_S = 60


@pytest.fixture(autouse=True)
def _ipv6(monkeypatch: pytest.MonkeyPatch, _no_settings_from_outside: None) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    monkeypatch.setenv("RVQ_ADDRESS", RANGE)


def add_hosts(lan: Lan, hosts: Iterable[str]) -> None:
    """Their addresses of the link are awaited: nobody else may have them."""
    names = list(hosts)
    lan.network.add_hosts(names)
    for host in names:
        on = lan.network.on(host)
        run(*on, "ip", "-4", "address", "flush", "dev", "eth0")
        await_that(lambda on=on: _is_ready(on), f"{host} has IPv6")  # type: ignore[misc]


def _is_ready(on: list[str]) -> bool:
    addresses = run(*on, "ip", "-6", "address", "show", "dev", "eth0", "scope", "link")
    routes = run(*on, "ip", "-6", "route", "show", "table", "local", "dev", "eth0")
    return "fe80::" in addresses and "tentative" not in addresses and "multicast ff00::/8" in routes


def link_address(lan: Lan, host: str) -> str:
    words = run(*lan.network.on(host), "ip", "-6", "address", "show", "dev", "eth0", "scope", "link").split()
    return words[words.index("inet6") + 1].partition("/")[0]


def test_hosts_with_addresses_of_the_link_alone_lose_nothing(lan: Lan) -> None:
    add_hosts(lan, ["s", "t", *RECEIVERS])
    assert not run(*lan.network.on("s"), "ip", "-4", "address", "show", "dev", "eth0")
    lan.lose(5, *RECEIVERS)
    workers = lan.start_receivers(*RECEIVERS)
    lan.sender("s", count=10_000)
    lan.sender("t", count=20, size=300_000)
    lan.fleet.await_senders()
    lan.fleet.verdict().assert_all_once()
    assert all(lan.network.lost(host) for host in RECEIVERS), "there was loss"
    assert all(worker.started for worker in workers)


def start(lan: Lan, host: str, *words: str) -> subprocess.Popen[str]:
    command = [*lan.network.on(host), sys.executable, "-m", "rvq.cli", "doctor", "--interface", "eth0", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_doctors_find_each_other_and_measure_the_mtu_between_them(lan: Lan) -> None:
    add_hosts(lan, ["a", "b"])
    lan.network.narrow("b", 1400)
    there = link_address(lan, "b")
    answering = start(lan, "b", "--answer")
    try:
        assert answering.stderr is not None
        assert f"answers doctors on eth0 ({there}%eth0)" in answering.stderr.readline()
        asking = start(lan, "a", "--peer", f"{there}%eth0", "--json")
        out, errors = asking.communicate(timeout=TIMEOUT_S)
        assert out, errors
    finally:
        answering.kill()
        answering.communicate(timeout=TIMEOUT_S)
    told: dict[str, Any] = json.loads(out)
    own = {one["subject"]: one for one in told["findings"] if not one["peer"]}
    peers = {one["subject"]: one for one in told["findings"] if one["peer"] and there in one["peer"]}
    assert told["bus"]["address"] == RANGE
    assert {one["verdict"] for one in own.values()} == {"ok"}, own
    assert "cannot be seen from here" in own["mld"]["text"] and "igmp" not in own
    assert own["mtu"]["facts"]["fits"] == 1452
    assert [peers[way]["verdict"] for way in ("multicast", "unicast", "mtu")] == ["ok", "ok", "fail"]
    assert peers["mtu"]["facts"]["fits"] == 1352
