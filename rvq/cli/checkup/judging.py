"""What was measured with a peer, as findings: which figures are good, which are not, and what then to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from rvq.aio.checkup.examination import Examined
from rvq.aio.checkup.post import Way
from rvq.aio.checkup.probing import Run
from rvq.bus import Bus
from rvq.cli.checkup.finding import Finding, fail, ok, warn
from rvq.cli.checkup.firewall import local_ports
from rvq.transport.multicast import Interface, frame_bytes_for

LOSS_BROKEN = 0.2
"""Then one in three thousand silences of an expiry is no death, and rates have fallen to a fraction: mend it first."""


def judge(examined: Examined, bus: Bus, interface: Interface, *, key: str = "", own: bool = False) -> Iterator[Finding]:
    """Of one peer. key: the name of ours. own: it was this host itself."""
    findings = [
        way_finding(Way.MULTICAST, examined.multicast, bus, interface, own=own),
        way_finding(Way.UNICAST, examined.unicast, bus, interface, own=own),
        mtu_finding(examined, interface),
    ]
    if examined.loss is not None:
        findings.append(loss_finding(examined.loss))
    if own:
        yield from findings
        return
    if examined.peer.key:
        findings.append(key_finding(key, examined.peer.key))
    if examined.clock is not None:
        findings.append(clock_finding(examined))
    for finding in findings:
        yield replace(finding, peer=str(examined.peer))


def way_finding(way: Way, run: Run, bus: Bus, interface: Interface, *, own: bool = False) -> Finding:
    """Whether anything comes through at all."""
    heard = run.echoed if run.heard is None else max(run.heard, run.echoed)
    text = f"{heard} of {run.sent} arrived there, {run.echoed} came back"
    if not heard or not run.echoed:
        return fail(way.value, text, _advice(way, bus, interface, there=not heard, own=own), **asdict(run))
    beyond = (
        " (on this host; to another: rvq doctor --peer on both)"
        if own and way is Way.MULTICAST and not interface.is_loopback
        else ""
    )
    return ok(way.value, text + beyond, **asdict(run))


def _advice(way: Way, bus: Bus, interface: Interface, *, there: bool, own: bool) -> str:
    """Where it was lost, and what lets it pass."""
    low, high = local_ports()
    protocol, snooped = ("ip6", "MLD") if interface.version == 6 else ("ip", "IGMP")
    passes = {
        Way.MULTICAST: f"{protocol} daddr {bus.network} udp dport {bus.port} accept",
        Way.UNICAST: f"udp dport {low}-{high} accept",
    }[way]
    rule = f"nft add rule inet filter input {passes}"
    place = "this host's" if own or not there else "the peer's"
    firewall = f"let {place} firewall pass it in, in the chain that drops ({rule}), and see output too"
    switch = f"; or a switch between drops it: {snooped} snooping wants a querier"
    return firewall + (switch if way is Way.MULTICAST and not own else "")


def mtu_finding(examined: Examined, interface: Interface) -> Finding:
    here, there = interface.mtu, examined.peer.mtu
    frame = frame_bytes_for(interface)
    facts = {"mtu": here, "peer_mtu": there, "frame_bytes": frame, "fits": examined.fits}
    text = f"{here}, so a frame has up to {frame:,} bytes"
    if frame + interface.overhead_bytes > here:
        change = f"raise it: ip link set dev {interface.name} mtu 1500"
        return warn("mtu", f"{text}, and goes in IP fragments", change, **facts)
    if frame_bytes_for(replace(interface, mtu=there)) != frame:
        least = min(here, there)
        change = f"one for all: ip link set dev {interface.name} mtu {least}, or raise all to {max(here, there)}"
        passes = f"; the largest that passes has {examined.fits:,}" if examined.fits else ""
        return fail(
            "mtu", f"{here} here and {there} there, so frames of the larger one vanish{passes}", change, **facts
        )
    if not examined.fits:
        return warn("mtu", f"{text}; none of any size came back uncut", "mend what is said above first", **facts)
    if examined.fits < examined.wanted:
        least = examined.fits + interface.overhead_bytes
        change = (
            f"raise the MTU of what is between, or lower it on all hosts: ip link set dev {interface.name} mtu {least}"
        )
        return fail("mtu", f"{text}, but no more than {examined.fits:,} pass: larger frames vanish", change, **facts)
    return ok("mtu", f"{text}: that passes uncut, there and back", **facts)


def loss_finding(run: Run) -> Finding:
    heard = run.echoed if run.heard is None else max(run.heard, run.echoed)
    there, back = run.sent - heard, heard - run.echoed
    text = f"of {run.sent:,} probes of {run.size:,} bytes {there:,} were lost there and {back:,} back"
    facts = {**asdict(run), "lost_there": there, "lost_back": back}
    if not there and not back:
        return ok("loss", text, **facts)
    parts = there / run.sent, back / heard if heard else 1.0
    change = "see cable and switch (ip -s link), the firewall, and the receiving host: nstat -az UdpRcvbufErrors"
    if max(parts) >= LOSS_BROKEN:
        return fail("loss", f"{text}: too much for a bus", change, **facts)
    return warn("loss", f"{text}; frames are sent again, which costs speed", change, **facts)


def key_finding(ours: str, theirs: str) -> Finding:
    """Each could read the other: with a key that is not live there would be no peer."""
    if ours == theirs:
        return ok("key", f"{theirs} is in use there too", peer_key=theirs)
    text = f"{theirs} is in use there and {ours} here; each opens what the other seals"
    return warn("key", text, "bring re-keying to its end (rvq key use, then drop, on every host)", peer_key=theirs)


def clock_finding(examined: Examined) -> Finding:
    clock = examined.clock
    assert clock is not None
    side = "ahead of" if clock.ahead_s >= 0 else "behind"
    text = f"{_seconds(abs(clock.ahead_s))} {side} ours, give or take {_seconds(clock.round_trip_s / 2)}"
    if not examined.is_clock_off:
        return ok("clock", text, **asdict(clock))
    change = "keep time by NTP on both (timedatectl set-ntp true): due times, times to live and lag go by it"
    return warn("clock", text, change, **asdict(clock))


def _seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:,.1f} s"
