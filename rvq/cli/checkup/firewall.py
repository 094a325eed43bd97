"""The firewall's rules as far as they can be read: which of them would drop what a bus needs. Owns following nftables.

A rule is followed as the kernel would, with three answers: it meets our datagrams, it does not, or that cannot be told
(a rule about sources, marks or chance). What is certain and what is possible are said apart.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from rvq.bus import Bus
from rvq.cli.checkup.finding import Finding, ok, warn
from rvq.ranges import Range
from rvq.transport.multicast import Interface

_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
READ_S = 5.0
DEPTH_MAX = 16
"""Of chains that jump to each other: the kernel's own limit."""
PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
PORTS_DEFAULT = (32768, 60999)

IN, OUT = ("ingress", "prerouting", "input"), ("output", "postrouting", "egress")
"""Hooks that datagrams pass on their way in and out."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of datagrams that a bus needs."""

    name: str
    hooks: tuple[str, ...]
    interface: str
    to: Range
    ports: tuple[int, int]

    @property
    def protocol(self) -> str:
        """As nftables calls it."""
        return "ip6" if self.to.version == 6 else "ip"


@dataclass(frozen=True, slots=True)
class Drop:
    """Where something is dropped. certain: nothing that can be read speaks against it."""

    family: str
    table: str
    chain: str
    handle: int | None
    """None: the chain's policy."""
    certain: bool

    @property
    def where(self) -> str:
        what = "its policy" if self.handle is None else f"rule handle {self.handle}"
        return f"table {self.family} {self.table}, chain {self.chain}, {what}"


def firewall_findings(bus: Bus, interface: Interface) -> Iterator[Finding]:
    """Nothing at all where there is no nftables."""
    ruleset = read_rules()
    if isinstance(ruleset, str):
        yield ok("firewall", f"its rules cannot be read ({ruleset}); root can", readable=False)
        return
    if ruleset is None:
        return
    found = [(traffic, drop) for traffic in traffics(bus, interface) if (drop := find_drop(ruleset, traffic))]
    for traffic, drop in found:
        does = "drops" if drop.certain else "may drop"
        facts = {"traffic": traffic.name, "certain": drop.certain, "where": drop.where}
        yield warn("firewall", f"{drop.where} {does} {traffic.name}", _change(drop, traffic), **facts)
    if not found:
        yield ok("firewall", "no rule of nftables drops what the bus needs", readable=True)


def _change(drop: Drop, traffic: Traffic) -> str:
    low, high = traffic.ports
    ports = f"{low}" if low == high else f"{low}-{high}"
    side = "iifname" if traffic.hooks is IN else "oifname"
    rule = f"{side} {traffic.interface} {traffic.protocol} daddr {traffic.to} udp dport {ports} accept"
    return f"before it: nft insert rule {drop.family} {drop.table} {drop.chain} {rule}"


def local_ports(path: Path = PORTS) -> tuple[int, int]:
    """Of which the kernel picks those that unicast goes to."""
    try:
        low, high = map(int, path.read_text().split())
    except (OSError, ValueError):
        return PORTS_DEFAULT
    return low, high


def traffics(bus: Bus, interface: Interface) -> list[Traffic]:
    """What has to come in and go out."""
    range_, own = bus.network, ip_network(interface.address.partition("%")[0])
    bus_port = (bus.port, bus.port)
    incoming = "lo" if interface.is_loopback else interface.name
    return [
        Traffic("multicast that comes in", IN, incoming, range_, bus_port),
        Traffic("unicast that comes in", IN, incoming, own, local_ports()),
        Traffic("multicast that goes out", OUT, interface.name, range_, bus_port),
    ]


def read_rules() -> list[dict[str, Any]] | str | None:
    """What nftables says; in words why it cannot be read; None if there is none."""
    nft = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:{_PATH}")
    if nft is None:
        return None
    try:
        command = [nft, "-j", "list", "ruleset"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=READ_S, check=False)
        if said.returncode:
            return (said.stderr.strip().splitlines() or ["no reason given"])[0]
        rules: list[dict[str, Any]] = json.loads(said.stdout)["nftables"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        return type(error).__name__
    return rules


def find_drop(ruleset: Iterable[dict[str, Any]], traffic: Traffic) -> Drop | None:
    """The first rule or policy that would drop it; those that surely do come first."""
    chains: dict[tuple[str, str, str], dict[str, Any]] = {}
    rules: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for entry in ruleset:
        if chain := entry.get("chain"):
            chains[chain["family"], chain["table"], chain["name"]] = chain
        elif rule := entry.get("rule"):
            rules.setdefault((rule["family"], rule["table"], rule["chain"]), []).append(rule)
    walk = _Walk(rules, traffic)
    drops = [drop for place, chain in chains.items() if _is_passed(chain, traffic) for drop in walk.base(place, chain)]
    return min(drops, key=lambda drop: not drop.certain, default=None)


def _is_passed(chain: dict[str, Any], traffic: Traffic) -> bool:
    if chain.get("hook") not in traffic.hooks or chain["family"] not in (traffic.protocol, "inet", "netdev"):
        return False
    return chain.get("dev", traffic.interface) in (traffic.interface, [traffic.interface])


class _Walk:
    """Goes through chains as a datagram of this kind does."""

    def __init__(self, rules: dict[tuple[str, str, str], list[dict[str, Any]]], traffic: Traffic) -> None:
        self._rules = rules
        self._traffic = traffic
        self._doubts = False
        """Whether something may have accepted it before."""

    def base(self, place: tuple[str, str, str], chain: dict[str, Any]) -> list[Drop]:
        self._doubts = False
        drops, decided = self._chain(place, 0)
        if not decided and chain.get("policy") == "drop":
            drops.append(Drop(*place, None, not self._doubts))
        return drops

    def _chain(self, place: tuple[str, str, str], depth: int) -> tuple[list[Drop], bool]:
        """What may drop it, and whether its fate is decided at the end."""
        drops: list[Drop] = []
        for rule in self._rules.get(place, ()) if depth < DEPTH_MAX else ():
            meets = meet(rule["expr"], self._traffic)
            if meets is False:
                continue
            verbs = {verb: what for statement in rule["expr"] for verb, what in statement.items()}
            if "accept" in verbs:
                self._doubts = True
                if meets:
                    return drops, True
            elif "drop" in verbs or "reject" in verbs:
                drops.append(Drop(*place, rule["handle"], meets is True and not self._doubts))
                if meets:
                    return drops, True
            elif target := verbs.get("jump") or verbs.get("goto"):
                inner, decided = self._chain((place[0], place[1], target["target"]), depth + 1)
                drops += inner if meets else [replace(drop, certain=False) for drop in inner]
                if meets and decided:
                    return drops, True
            elif "return" in verbs and meets:
                break
        return drops, False


def meet(expressions: list[dict[str, Any]], traffic: Traffic) -> bool | None:
    """Whether a rule is about these datagrams; None if that cannot be told."""
    answer: bool | None = True
    for expression in expressions:
        if "limit" in expression or "vmap" in expression or "xt" in expression:
            answer = None
        elif "match" in expression:
            one = _match(expression["match"], traffic)
            if one is False:
                return False
            answer = answer if one else None
    return answer


def _match(match: dict[str, Any], traffic: Traffic) -> bool | None:
    left, right = match.get("left"), match.get("right")
    if not isinstance(left, dict) or match.get("op") not in ("==", "!=", "in"):
        return None
    is_about = _about(left, right, traffic)
    return is_about if match["op"] != "!=" or is_about is None else not is_about


def _about(left: dict[str, Any], right: Any, traffic: Traffic) -> bool | None:
    """Whether what stands on the left is, for these datagrams, what stands on the right."""
    if isinstance(right, dict) and "set" in right:
        return _any(_about(left, one, traffic) for one in right["set"])
    if isinstance(right, list):
        return _any(_about(left, one, traffic) for one in right)
    match left:
        case {"meta": {"key": "iifname" | "iif"}}:
            return traffic.hooks is IN and _is_named(right, traffic.interface)
        case {"meta": {"key": "oifname" | "oif"}}:
            return traffic.hooks is OUT and _is_named(right, traffic.interface)
        case {"payload": {"protocol": "ip" | "ip6" as protocol}} if protocol != traffic.protocol:
            return False
        case {"meta": {"key": "l4proto"}} | {"payload": {"field": "protocol" | "nexthdr"}}:
            return right in ("udp", 17)
        case {"meta": {"key": "nfproto" | "protocol"}}:
            return right in (("ipv6", "ip6") if traffic.to.version == 6 else ("ipv4", "ip"))
        case {"payload": {"protocol": "ip" | "ip6", "field": "daddr"}}:
            return _is_within(traffic.to, right)
        case {"payload": {"protocol": "udp" | "th", "field": "dport"}}:
            return _are_ports(traffic.ports, right)
        case {"payload": {"protocol": "tcp" | "icmp" | "icmpv6" | "igmp" | "sctp" | "dccp" | "arp"}}:
            return False
        case {"ct": {"key": "state"}}:
            # The answer to a multicast comes from one to whom nothing was sent: to the kernel it is new.
            return bool(right == "new")
    return None


def _any(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    return True if True in found else None if None in found else False


def _is_named(pattern: object, name: str) -> bool:
    text = str(pattern)
    return name.startswith(text[:-1]) if text.endswith("*") else text == name


def _is_within(network: Range, right: Any) -> bool | None:
    """None if it is so for a part of them."""
    try:
        match right:
            case {"prefix": {"addr": str(address), "len": int(length)}}:
                other = ip_network(f"{address}/{length}", strict=False)
            case str():
                other = ip_network(right)
            case _:
                return None
    except ValueError:
        return None
    if network.version != other.version:
        return False
    if network.subnet_of(other):  # type: ignore[arg-type]
        return True
    return None if network.overlaps(other) else False


def _are_ports(ports: tuple[int, int], right: Any) -> bool | None:
    low, high = right["range"] if isinstance(right, dict) and "range" in right else (right, right)
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    if low <= ports[0] and ports[1] <= high:
        return True
    return None if ports[0] <= high and low <= ports[1] else False
