"""What can be seen of this host without sending anything: interface, route, buffers, key. Owns those findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rvq.aio.sealing import keys_of
from rvq.bus import Bus
from rvq.cli.checkup.finding import Finding, fail, ok, warn
from rvq.errors import BusError
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.transport import multicast
from rvq.transport.multicast import Interface

PROC = Path("/proc")

STRICT = 1
"""Of rp_filter: what would be answered by another interface is dropped."""


def interface_finding(interface: Interface, *, multicast: bool = True) -> Finding:
    described = f"{interface.name} has {interface.address}"
    facts = {"name": interface.name, "address": interface.address, "mtu": interface.mtu}
    if not interface.has_carrier:
        return warn("interface", f"{described} and no carrier", "see the cable, or the other end of it", **facts)
    if multicast and not interface.has_multicast:
        change = f"it may drop it; if so: ip link set dev {interface.name} multicast on"
        return warn("interface", f"{described} and does not say that it carries multicast", change, **facts)
    reach = ": nothing leaves this machine" if interface.is_loopback else ""
    return ok("interface", f"{described} and is up{reach}", **facts)


def route_finding(bus: Bus, interface: Interface, proc: Path = PROC) -> Finding:
    try:
        multicast.check_route(bus, interface)
    except BusError as error:
        return fail("route", str(error))
    if interface.version == 6:
        return ok("route", f"{leaves_by(bus, interface)} (IPv6 has no reverse-path filter of its own to look at)")
    strict = [name for name in ("all", interface.name) if _setting(proc, name, "rp_filter") == STRICT]
    leaves = leaves_by(bus, interface)
    others = [] if interface.is_loopback else others_in_network(interface, proc)
    if strict and others:
        change = " ".join(f"net.ipv4.conf.{name}.rp_filter=2" for name in ("all", interface.name))
        text = f"{leaves}, but {others[0]} is in the same network, and what comes in by the wrong one is dropped"
        return warn("route", text, f"sysctl -w {change}", rp_filter=STRICT)
    return ok("route", leaves)


def leaves_by(bus: Bus, interface: Interface) -> str:
    return f"{bus.network} leaves by {interface.name}, port {bus.port}"


def _setting(proc: Path, interface: str, name: str) -> int | None:
    try:
        return int((proc / "sys/net/ipv4/conf" / interface / name).read_text())
    except (OSError, ValueError):
        return None


def others_in_network(interface: Interface, proc: Path = PROC) -> list[str]:
    """Other interfaces with a route to the network of this one."""
    try:
        rows = [line.split() for line in (proc / "net/route").read_text().splitlines()[1:]]
    except OSError:
        return []
    networks = {(row[1], row[7]) for row in rows if row[0] == interface.name and row[7] != "00000000"}
    return sorted({row[0] for row in rows if row[0] != interface.name and (row[1], row[7]) in networks})


def buffer_findings(bus: Bus, interface: Interface) -> Iterator[Finding]:
    """What sockets ask for, and what they get. BusError if there can be none."""
    with multicast.open_multicast(bus, interface, bus.doctors_address) as hearing:
        received = multicast.receive_buffer_bytes(hearing)
    with multicast.open_unicast(bus, interface) as speaking:
        sent = multicast.send_buffer_bytes(speaking)
    yield buffer_finding("receive buffer", received, RECEIVE_BUFFER_BYTES)
    yield buffer_finding("send buffer", sent, multicast.SEND_BUFFER_BYTES, sending=True)


def buffer_finding(subject: str, got: int, asked: int, *, sending: bool = False) -> Finding:
    setting, harm = ("wmem_max", "bursts wait") if sending else ("rmem_max", "bursts overflow it and are sent again")
    if got >= asked:
        return ok(subject, f"{asked:,} bytes asked, {got:,} got", asked=asked, got=got)
    text = f"{asked:,} bytes asked, {got:,} got, so {harm}"
    return warn(
        subject, text, f"sysctl -w net.core.{setting}={asked} (docs/multicast.md: Buffers)", asked=asked, got=got
    )


def key_finding(bus: Bus) -> Finding:
    try:
        keys = keys_of(bus)
    except BusError as error:
        return fail("key", str(error))
    if keys is None:
        return ok("key", "none: frames are not sealed, and anyone on this network can join")
    live = f", and {len(keys.live) - 1} more live" if len(keys.live) > 1 else ""
    return ok(
        "key", f"{keys.in_use.name} is in use{live}", in_use=keys.in_use.name, live=list(map(bytes.hex, keys.live))
    )
