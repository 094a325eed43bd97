"""Bridges and IGMP as /sys and /proc show them. Real bridges: tests/lan/test_doctor.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rvq.cli.checkup.finding import Verdict
from rvq.cli.checkup.snooping import bridges_of, igmp_version, snooping_findings
from rvq.transport.multicast import Interface

IGMP = (
    "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"
    "1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n"
    "2\teth0      :     2      V2\n\t\t\t\tFBFFFFEF     1 0:00000000\t\t1\n"
)


def interface(name: str, flags: int = 0x1043) -> Interface:
    return Interface(name, 2, "10.0.0.1", 1500, flags)


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """eth0 is plugged into br0; vlan5 is above eth0; eth9 is alone."""
    for name in ("eth0", "eth9", "vlan5"):
        (tmp_path / name).mkdir()
    (tmp_path / "br0/bridge").mkdir(parents=True)
    (tmp_path / "eth0/master").symlink_to(tmp_path / "br0")
    (tmp_path / "vlan5/lower_eth0").symlink_to(tmp_path / "eth0")
    return tmp_path


def configure(sys: Path, snooping: int, querier: int) -> None:
    (sys / "br0/bridge/multicast_snooping").write_text(f"{snooping}\n")
    (sys / "br0/bridge/multicast_querier").write_text(f"{querier}\n")


@pytest.mark.parametrize(("name", "bridges"), [("eth0", ["br0"]), ("br0", ["br0"]), ("vlan5", ["br0"]), ("eth9", [])])
def test_the_bridge_behind_an_interface_is_found(sys: Path, name: str, bridges: list[str]) -> None:
    assert list(bridges_of(name, sys)) == bridges


@pytest.mark.parametrize(
    ("snooping", "querier", "verdict"),
    [(1, 0, Verdict.WARN), (1, 1, Verdict.OK), (0, 0, Verdict.OK)],
)
def test_a_bridge_that_snoops_needs_a_querier(sys: Path, snooping: int, querier: int, verdict: Verdict) -> None:
    configure(sys, snooping, querier)
    (finding,) = snooping_findings(interface("eth0"), sys, sys / "none")
    assert finding.verdict is verdict and finding.facts["bridge"] == "br0"
    if verdict is Verdict.WARN:
        assert "ip link set dev br0 type bridge mcast_querier 1" in finding.change


def test_the_version_that_the_kernel_speaks_is_said(sys: Path) -> None:
    (sys / "igmp").write_text(IGMP)
    assert [igmp_version(name, sys / "igmp") for name in ("lo", "eth0", "eth1")] == ["V3", "V2", None]
    (finding,) = snooping_findings(interface("lo", 0x1043), sys, sys / "igmp")
    assert finding.verdict is Verdict.OK and "querier" in finding.text


def test_with_ipv6_it_says_that_mld_cannot_be_seen(sys: Path) -> None:
    configure(sys, 1, 0)
    own = Interface("eth0", 2, "fe80::1%eth0", 1500, 0x1043)
    bridge, mld = snooping_findings(own, sys, sys / "igmp")
    assert (bridge.subject, bridge.verdict) == ("snooping", Verdict.WARN), "it snoops MLD too"
    assert mld.subject == "mld" and "cannot be seen" in mld.text and "querier, or all stops" not in mld.text
    (alone,) = snooping_findings(replace(own, name="eth9"), sys, sys / "igmp")
    assert "needs an MLD querier" in alone.text


def test_loopback_has_nothing_to_snoop(sys: Path) -> None:
    assert not list(snooping_findings(interface("lo", 0x49), sys))
