"""Rules of nftables, read as the kernel follows them: made-up ones, and real ones in a network of their own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest

from rvq.bus import Bus
from rvq.cli.checkup import firewall
from rvq.cli.checkup.finding import Finding, Verdict
from rvq.cli.checkup.firewall import IN, OUT, Drop, Traffic, find_drop, firewall_findings, meet
from rvq.transport.multicast import Interface, resolve_interface
from tests.conftest import ip

ETH = Interface("eth0", 2, "10.9.0.1", 1500, 0x1043)
INTO = Traffic("multicast that comes in", IN, "eth0", IPv4Network("239.192.0.0/16"), (7400, 7400))
UNICAST = Traffic("unicast that comes in", IN, "eth0", IPv4Network("10.9.0.1"), (32768, 60999))


def matches(left: dict[str, Any], right: Any, op: str = "==") -> list[dict[str, Any]]:
    return [{"match": {"op": op, "left": left, "right": right}}]


def prefix(address: str, length: int) -> dict[str, Any]:
    return {"prefix": {"addr": address, "len": length}}


DADDR = {"payload": {"protocol": "ip", "field": "daddr"}}
DPORT = {"payload": {"protocol": "udp", "field": "dport"}}


@pytest.mark.parametrize(
    ("left", "right", "op", "expected"),
    [
        ({"meta": {"key": "iifname"}}, "eth0", "==", True),
        ({"meta": {"key": "iifname"}}, "eth*", "==", True),
        ({"meta": {"key": "iifname"}}, "lo", "==", False),
        ({"meta": {"key": "iifname"}}, "lo", "!=", True),
        ({"meta": {"key": "oifname"}}, "eth0", "==", False),
        ({"meta": {"key": "l4proto"}}, "tcp", "==", False),
        ({"meta": {"key": "l4proto"}}, {"set": ["tcp", "udp"]}, "==", True),
        (DADDR, prefix("224.0.0.0", 4), "==", True),
        (DADDR, prefix("239.192.7.0", 24), "==", None),
        (DADDR, "10.9.0.1", "==", False),
        (DPORT, 7400, "==", True),
        (DPORT, {"range": [7000, 8000]}, "==", True),
        (DPORT, {"set": [53, {"range": [7000, 7399]}]}, "==", False),
        (DPORT, 22, "!=", True),
        ({"payload": {"protocol": "tcp", "field": "dport"}}, 22, "==", False),
        ({"payload": {"protocol": "ip", "field": "saddr"}}, "10.9.0.7", "==", None),
        ({"ct": {"key": "state"}}, {"set": ["established", "related"]}, "==", False),
        ({"ct": {"key": "state"}}, "new", "==", True),
        ({"numgen": {"mode": "random", "mod": 100}}, 5, "<", None),
    ],
)
def test_a_match_is_true_false_or_unknown(left: dict[str, Any], right: Any, op: str, expected: bool | None) -> None:
    assert meet(matches(left, right, op), INTO) is expected


SIX = Traffic("multicast that comes in", IN, "eth0", IPv6Network("ff15::f271:0/112"), (7400, 7400))
DADDR_6 = {"payload": {"protocol": "ip6", "field": "daddr"}}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (DADDR_6, prefix("ff00::", 8), True),
        (DADDR_6, prefix("fe80::", 10), False),
        (DADDR_6, "ff15::f271:7", None),
        (DADDR, prefix("224.0.0.0", 4), False),
        ({"payload": {"protocol": "ip", "field": "protocol"}}, "udp", False),
        ({"payload": {"protocol": "ip6", "field": "nexthdr"}}, "udp", True),
        ({"meta": {"key": "nfproto"}}, "ipv6", True),
        ({"meta": {"key": "nfproto"}}, "ipv4", False),
    ],
)
def test_rules_of_one_protocol_are_not_about_the_other(left: dict[str, Any], right: Any, expected: bool | None) -> None:
    assert meet(matches(left, right), SIX) is expected
    if left is DADDR_6:
        assert meet(matches(left, right), INTO) is False


def test_tables_of_ipv6_are_followed_for_ipv6_alone() -> None:
    place = {"family": "ip6", "table": "filter"}
    base = {**place, "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}
    assert find_drop([{"chain": base}], INTO) is None
    drop = find_drop([{"chain": base}], SIX)
    assert drop is not None and drop.where == "table ip6 filter, chain input, its policy"
    assert "ip6 daddr ff15::f271:0/112 udp dport 7400" in firewall._change(drop, SIX)


def test_what_comes_in_with_ipv6_is_for_its_range_and_for_its_address() -> None:
    own = Interface("eth0", 2, "fe80::1%eth0", 1500, 0x1043)
    found = firewall.traffics(Bus(interface="fe80::1%eth0"), own)
    assert [str(traffic.to) for traffic in found] == ["ff15::f271:0/112", "fe80::1/128", "ff15::f271:0/112"]


def test_ports_of_which_a_rule_names_some_are_unknown() -> None:
    assert meet(matches(DPORT, {"range": [40_000, 50_000]}), UNICAST) is None
    assert meet(matches(DPORT, {"range": [1024, 65_535]}), UNICAST) is True


def ruleset(
    policy: str, *rules: list[dict[str, Any]], more: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    place = {"family": "inet", "table": "filter"}
    base = {**place, "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": policy}
    found: list[dict[str, Any]] = [{"metainfo": {}}, {"table": {"family": "inet", "name": "filter"}}, {"chain": base}]
    found += [
        {"rule": {**place, "chain": "input", "handle": handle, "expr": expr}} for handle, expr in enumerate(rules, 2)
    ]
    return found + (more or [])


PORT = matches(DPORT, 7400)
SOME = matches({"payload": {"protocol": "ip", "field": "saddr"}}, "10.9.0.7")
ACCEPT, DROP, REJECT = ([{verb: None}] for verb in ("accept", "drop", "reject"))
JUMP = [{"jump": {"target": "work"}}]
INNER = [
    {"chain": {"family": "inet", "table": "filter", "name": "work", "handle": 9}},
    {"rule": {"family": "inet", "table": "filter", "chain": "work", "handle": 10, "expr": PORT + DROP}},
]


@pytest.mark.parametrize(
    ("rules", "handle", "certain"),
    [
        (ruleset("drop"), None, True),
        (ruleset("drop", SOME + ACCEPT), None, False),
        (ruleset("accept", PORT + DROP), 2, True),
        (ruleset("accept", PORT + REJECT), 2, True),
        (ruleset("accept", SOME + ACCEPT, PORT + DROP), 3, False),
        (ruleset("accept", SOME + DROP), 2, False),
        (ruleset("accept", SOME + DROP, DROP), 3, True),
        (ruleset("accept", JUMP, more=INNER), 10, True),
        (ruleset("accept", SOME + JUMP, more=INNER), 10, False),
    ],
)
def test_what_drops_is_found_and_how_surely(rules: list[dict[str, Any]], handle: int | None, certain: bool) -> None:
    drop = find_drop(rules, INTO)
    assert drop is not None and (drop.handle, drop.certain) == (handle, certain)


@pytest.mark.parametrize(
    "rules",
    [
        ruleset("accept"),
        ruleset("drop", PORT + ACCEPT),
        ruleset("accept", PORT + ACCEPT, DROP),
        ruleset("accept", matches(DPORT, 53) + DROP),
        ruleset("accept", [*PORT, {"return": None}], DROP),
        ruleset("drop", PORT + JUMP, more=[INNER[0], {"rule": {**INNER[1]["rule"], "expr": ACCEPT}}]),
    ],
)
def test_what_passes_is_not_complained_of(rules: list[dict[str, Any]]) -> None:
    assert find_drop(rules, INTO) is None


def test_chains_that_jump_in_a_circle_end() -> None:
    circle = [INNER[0], {"rule": {**INNER[1]["rule"], "expr": JUMP}}]
    assert find_drop(ruleset("accept", JUMP, more=circle), INTO) is None


def test_other_hooks_and_families_do_not_count() -> None:
    rules = ruleset("drop")
    for changed in ({"hook": "forward"}, {"family": "ip6"}, {"hook": "ingress", "dev": "eth7", "family": "netdev"}):
        assert find_drop([{"chain": {**rules[2]["chain"], **changed}}], INTO) is None
    assert find_drop([{"chain": {**rules[2]["chain"], "hook": "output"}}], INTO) is None
    out = Traffic("out", OUT, "eth0", INTO.to, INTO.ports)
    assert find_drop([{"chain": {**rules[2]["chain"], "hook": "output"}}], out) == Drop(
        "inet", "filter", "input", None, True
    )


@pytest.mark.parametrize(("said", "count"), [(None, 0), ("Operation not permitted", 1)])
def test_what_cannot_be_read_is_no_fault(monkeypatch: pytest.MonkeyPatch, said: str | None, count: int) -> None:
    monkeypatch.setattr(firewall, "read_rules", lambda: said)
    found = list(firewall_findings(Bus(interface="eth0"), ETH))
    assert [finding.verdict for finding in found] == [Verdict.OK] * count
    assert all("root can" in finding.text for finding in found)


REAL = """
table inet filter {
  chain input {
    type filter hook input priority 0; policy drop
    ct state established,related accept
    iifname "lo" accept
    iifname "eth0" udp dport { 53, 7400 } jump bus
  }
  chain bus {
    ip daddr 239.192.0.0/16 accept
  }
}
"""


@pytest.mark.skipif(not shutil.which("nft", path=firewall._PATH), reason="needs nft (apt-get install nftables)")
def test_real_rules_are_read_and_what_it_advises_is_a_rule(
    in_namespace: Callable[[Callable[[], Any]], Any],
) -> None:
    def nft(*words: str, given: str | None = None) -> None:
        path = shutil.which("nft", path=firewall._PATH)
        assert path
        subprocess.run([path, *words], input=given, check=True, capture_output=True, text=True, timeout=20)

    def inside() -> list[list[Finding]]:
        ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
        ip("address", "add", "10.9.0.1/24", "dev", "eth0")
        ip("link", "set", "eth0", "up")
        interface = resolve_interface("eth0")
        found = [list(firewall_findings(Bus(interface="eth0"), interface))]
        nft("-f", "-", given=REAL)
        found.append(list(firewall_findings(Bus(interface="eth0"), interface)))
        nft(*found[1][0].change.removeprefix("before it: nft ").split())
        return [*found, list(firewall_findings(Bus(interface="eth0"), interface))]

    before, behind, mended = in_namespace(inside)
    assert [finding.verdict for finding in before] == [Verdict.OK] == [finding.verdict for finding in mended]
    (finding,) = behind
    assert finding.verdict is Verdict.WARN and finding.facts["certain"]
    assert finding.text == "table inet filter, chain input, its policy drops unicast that comes in"
