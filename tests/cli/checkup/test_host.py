"""What is said of this host before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rvq.bus import Bus
from rvq.cli.checkup import host
from rvq.cli.checkup.finding import Verdict
from rvq.keyfile import Keys, create_keys, new_key
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.transport import multicast
from rvq.transport.multicast import Interface, resolve_interface
from tests.conftest import ip

ETH = Interface("eth0", 2, "10.9.0.1", 1500, 0x1043)


def test_an_interface_is_well_without_a_cable_or_without_the_flag() -> None:
    assert host.interface_finding(ETH).verdict is Verdict.OK
    pulled = host.interface_finding(replace(ETH, flags=0x1003))
    assert pulled.verdict is Verdict.WARN and "no carrier" in pulled.text
    mute = host.interface_finding(replace(ETH, flags=0x43))
    assert mute.verdict is Verdict.WARN and mute.change.endswith("ip link set dev eth0 multicast on")


def test_no_way_to_send_fails_with_what_to_do(bus: Bus, in_namespace: Callable[[Callable[[], Any]], Any]) -> None:
    def inside() -> list[Any]:
        ip("link", "set", "lo", "up")
        interface = resolve_interface("lo")
        found = [host.route_finding(bus, interface)]
        ip("link", "set", "lo", "down")
        return [*found, host.route_finding(bus, interface)]

    before, after = in_namespace(inside)
    assert (before.verdict, after.verdict) == (Verdict.OK, Verdict.FAIL) and "ip route add" in after.text


def test_routes_do_not_matter_to_an_interface_that_is_named(in_namespace: Callable[[Callable[[], Any]], Any]) -> None:
    def inside() -> list[Any]:
        ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
        ip("address", "add", "10.9.0.1/24", "dev", "eth0")
        for name in ("eth0", "eth1"):
            ip("link", "set", name, "up")
        ip("route", "add", "prohibit", "239.192.0.0/16")
        bus, interface = Bus(interface="eth0"), resolve_interface("eth0")
        with multicast.open_unicast(bus, interface) as sock:
            sent = sock.sendto(b"probe", (str(bus.network.network_address), bus.port))
        return [host.route_finding(bus, interface).verdict, sent]

    assert in_namespace(inside) == [Verdict.OK, 5]


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t01000A0A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
{other}\t0000090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth2\t0000100A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


@pytest.mark.parametrize(
    ("other", "filter", "verdict"),
    [("eth1", 1, Verdict.WARN), ("eth1", 2, Verdict.OK), ("eth0", 1, Verdict.OK)],
)
def test_strict_filtering_with_two_interfaces_in_one_network_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, filter: int, verdict: Verdict
) -> None:
    monkeypatch.setattr(host.multicast, "check_route", lambda bus, interface: None)
    settings = tmp_path / "sys/net/ipv4/conf/eth0"
    settings.mkdir(parents=True)
    (settings / "rp_filter").write_text(f"{filter}\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "net/route").write_text(ROUTES.format(other=other))
    finding = host.route_finding(Bus(interface="eth0"), ETH, tmp_path)
    assert finding.verdict is verdict
    if verdict is Verdict.WARN:
        assert "eth1 is in the same network" in finding.text and "net.ipv4.conf.eth0.rp_filter=2" in finding.change


def test_buffers_say_what_was_asked_and_got(bus: Bus) -> None:
    found = list(host.buffer_findings(bus, resolve_interface("lo")))
    assert [finding.subject for finding in found] == ["receive buffer", "send buffer"]
    assert found[0].facts["asked"] == RECEIVE_BUFFER_BYTES
    if os.geteuid() == 0:
        assert {finding.verdict for finding in found} == {Verdict.OK}


@pytest.mark.parametrize(("sending", "setting"), [(False, "rmem_max"), (True, "wmem_max")])
def test_a_small_buffer_is_a_warning_with_the_setting(sending: bool, setting: str) -> None:
    finding = host.buffer_finding("buffer", 212_992, 8_388_608, sending=sending)
    assert finding.verdict is Verdict.WARN and "212,992 got" in finding.text
    assert finding.change.startswith(f"sysctl -w net.core.{setting}=8388608")


def test_the_key_is_named_and_a_bad_file_fails(tmp_path: Path) -> None:
    assert "not sealed" in host.key_finding(Bus()).text
    keys = [new_key(), new_key()]
    create_keys(tmp_path / "bus.key", Keys(keys))
    finding = host.key_finding(Bus(key=tmp_path / "bus.key"))
    assert finding.text == f"{keys[0].name} is in use, and 1 more live" and finding.verdict is Verdict.OK
    (tmp_path / "bus.key").chmod(0o644)
    finding = host.key_finding(Bus(key=tmp_path / "bus.key"))
    assert finding.verdict is Verdict.FAIL and "chmod 600" in finding.text
