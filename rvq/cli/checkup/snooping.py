"""IGMP, or MLD with IPv6, as far as this host can see it: bridges that snoop without a querier, and what is spoken.

Owns reading /sys and /proc for it. A switch elsewhere cannot be looked into: there, only a hint can be given.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rvq.cli.checkup.finding import Finding, ok, warn
from rvq.transport.multicast import Interface

SYS = Path("/sys/class/net")
PROC = Path("/proc/net/igmp")


def snooping_findings(interface: Interface, sys: Path = SYS, proc: Path = PROC) -> Iterator[Finding]:
    """Nothing on loopback, where nobody snoops."""
    if interface.is_loopback:
        return
    bridges = list(bridges_of(interface.name, sys))
    for bridge in bridges:
        yield _bridge_finding(bridge, sys)
    if interface.version == 6:
        yield _mld_finding(interface.name, not bridges)
        return
    version = igmp_version(interface.name, proc)
    if version is not None:
        hint = "" if bridges else "; if a switch snoops it needs a querier, or all stops after some four minutes"
        yield ok("igmp", f"{interface.name} speaks IGMP {version}{hint}", version=version)


def _mld_finding(interface: str, hint: bool) -> Finding:
    """The kernel shows neither which version is spoken nor whether anybody asks."""
    switch = "; if a switch snoops it needs an MLD querier, or all stops after some four minutes" if hint else ""
    return ok("mld", f"{interface} joins by MLD (not IGMP), whose version and querier cannot be seen from here{switch}")


def _bridge_finding(bridge: str, sys: Path) -> Finding:
    snoops = _flag(sys, bridge, "multicast_snooping")
    asks = _flag(sys, bridge, "multicast_querier")
    facts = {"bridge": bridge, "snooping": snoops, "querier": asks}
    if snoops and not asks:
        text = f"bridge {bridge} snoops and asks nobody: unless a router does, multicast stops after some four minutes"
        change = f"ip link set dev {bridge} type bridge mcast_querier 1 (or: mcast_snooping 0)"
        return warn("snooping", text, change, **facts)
    return ok("snooping", f"bridge {bridge} {'snoops, and has a querier' if snoops else 'does not snoop'}", **facts)


def bridges_of(interface: str, sys: Path = SYS) -> Iterator[str]:
    """The bridge that the interface is, or is plugged into, or that one of its VLANs' or bonds' links is."""
    seen: set[str] = set()
    waiting = [interface]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if (sys / name / "bridge").is_dir():
            yield name
        else:
            waiting += [link.name for link in (sys / name / "master",) for link in _followed(link)]
            waiting += [link.name.removeprefix("lower_") for link in (sys / name).glob("lower_*")]


def _followed(link: Path) -> list[Path]:
    return [link.resolve()] if link.exists() else []


def _flag(sys: Path, bridge: str, name: str) -> bool:
    try:
        return (sys / bridge / "bridge" / name).read_text().strip() != "0"
    except OSError:  # a kernel that cannot snoop
        return False


def igmp_version(interface: str, proc: Path = PROC) -> str | None:
    """What the kernel speaks there: lower than V3 where somebody older asks, or it was told so."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return None
    for line in lines[1:]:
        words = line.replace(":", " ").split()
        if not line.startswith("\t") and len(words) >= 4 and words[1] == interface:
            return words[-1]
    return None
