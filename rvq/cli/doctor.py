"""`rvq doctor`: can this host be on the bus, and reach another? Tries what can be wrong, and says what to change.

Owns the options, the order of findings and the exit codes. What is looked at is in `rvq.cli.checkup`, what is measured
in `rvq.aio.checkup`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator

from rvq.aio.checkup.bystanders import listen
from rvq.aio.checkup.examination import examine, examine_self
from rvq.aio.checkup.meeting import Peer, open_meeting
from rvq.aio.sealing import keys_of
from rvq.bus import Bus
from rvq.cli import values
from rvq.cli.checkup import host
from rvq.cli.checkup.finding import Finding, fail
from rvq.cli.checkup.firewall import firewall_findings
from rvq.cli.checkup.judging import judge
from rvq.cli.checkup.others import bystander_findings, nobody_finding, stranger_findings
from rvq.cli.checkup.peers import findings_with_peers
from rvq.cli.checkup.snooping import snooping_findings
from rvq.cli.command import ALL_DONE, FAULT, WrongUse, reachable_bus
from rvq.cli.options import bus_from
from rvq.cli.signals import calling_on_signals
from rvq.cli.words import say
from rvq.errors import BusError
from rvq.keyfile import Keys
from rvq.transport import multicast
from rvq.transport.multicast import Interface

ANYBODY = ""
"""`--peer` without an address."""

WAIT_S = 60.0
"""For a peer: time to start it on another host, too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peer",
        metavar="ADDRESS",
        nargs="?",
        const=ANYBODY,
        help="examine the way to the hosts where this runs too; ADDRESS: of one that multicast may not reach",
    )
    parser.add_argument("--answer", action="store_true", help="only answer the doctors of other hosts, until Ctrl-C")
    parser.add_argument(
        "--wait", metavar="S", type=values.seconds, default=WAIT_S, help=f"for a peer, at most ({WAIT_S:g})"
    )
    parser.add_argument("--json", action="store_true", help="all findings at the end, for scripts")


def run(args: argparse.Namespace) -> int:
    """Prints the findings as they come; 1 if any of them is broken."""
    from rvq.aio import run as run_loop

    if bus_from(args).peers is not None and (args.answer or args.peer is not None):
        raise WrongUse("--peer and --answer examine multicast, and this bus has peers: leave them out, or --peers")
    if args.answer:
        if args.peer is not None or args.json:
            raise WrongUse("--answer only answers: leave out --peer and --json")
        return run_loop(_answer(args.prog, reachable_bus(args)))
    bus = bus_from(args)
    return run_loop(_report(args, bus, _address(args.peer, bus) if args.peer else None))


def _address(name: str, bus: Bus) -> str:
    version = bus.network.version
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET6 if version == 6 else socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise WrongUse(f"--peer {name!r} is no host: give its IPv{version} address, or nothing at all") from None
    return str(found[0][4][0]).partition("%")[0]


async def _report(args: argparse.Namespace, bus: Bus, named: str | None) -> int:
    findings: list[Finding] = []
    async for finding in examine_all(
        bus, args.peer is not None, named, args.wait, lambda text: say(f"{args.prog}: {text}")
    ):
        findings.append(finding)
        if not args.json:
            print(finding, flush=True)
    broken = any(finding.is_broken for finding in findings)
    if args.json:
        place = {
            "interface": bus.interface,
            "port": bus.port,
            "address": str(bus.network),
            "sealed": bus.key is not None,
        }
        told = {"bus": place, "healthy": not broken, "findings": [finding.as_json() for finding in findings]}
        print(json.dumps(told, ensure_ascii=False))
    return FAULT if broken else ALL_DONE


async def examine_all(
    bus: Bus,
    peers: bool = False,
    named: str | None = None,
    wait_s: float = WAIT_S,
    tell: Callable[[str], object] = lambda text: None,
    wall: Callable[[], float] = time.time,
) -> AsyncIterator[Finding]:
    """All findings, in the order in which a fault in one explains the next. Stops where nothing more can be tried."""
    try:
        interface = multicast.interface_of(bus)
    except BusError as error:
        yield fail("interface", str(error))
        return
    if bus.peers is not None:
        async for finding in findings_with_peers(bus, interface):
            yield finding
        return
    for finding in _at_rest(bus, interface):
        yield finding
    try:
        keys = keys_of(bus)
    except BusError:
        return  # `_at_rest` has said it
    try:
        for finding in host.buffer_findings(bus, interface):
            yield finding
        async for finding in _by_itself(bus, interface, keys):
            yield finding
        if peers:
            async for finding in _with_peers(bus, interface, keys, named, wait_s, tell, wall):
                yield finding
    except BusError as error:
        yield fail("multicast", str(error))


def _at_rest(bus: Bus, interface: Interface) -> Iterator[Finding]:
    yield host.interface_finding(interface)
    yield host.route_finding(bus, interface)
    yield host.key_finding(bus)
    yield from snooping_findings(interface)
    yield from firewall_findings(bus, interface)


async def _by_itself(bus: Bus, interface: Interface, keys: Keys | None) -> AsyncIterator[Finding]:
    frame_bytes = multicast.frame_bytes_for(interface)
    examined, heard = await asyncio.gather(
        examine_self(bus, interface, keys, frame_bytes), listen(bus, interface, keys)
    )
    for finding in judge(examined, bus, interface, own=True):
        yield finding
    for finding in bystander_findings(heard):
        yield finding


async def _with_peers(
    bus: Bus,
    interface: Interface,
    keys: Keys | None,
    named: str | None,
    wait_s: float,
    tell: Callable[[str], object],
    wall: Callable[[], float],
) -> AsyncIterator[Finding]:
    with open_meeting(bus, interface, keys, named=named, wall=wall) as meeting:
        tell(f"waiting for others, up to {wait_s:g} s: run `rvq doctor --peer` there too")
        peers = await meeting.find(wait_s)
        for peer in peers:
            examined = await examine(meeting, peer, multicast.frame_bytes_for(interface))
            for finding in judge(examined, bus, interface, key=meeting.me.key):
                yield finding
        for finding in stranger_findings(meeting.strangers, broken=True):
            yield finding
        is_missing = not peers if named is None else named not in {peer.place[0] for peer in peers}
        if is_missing and not meeting.strangers:
            yield nobody_finding(wait_s, named)
        await meeting.part()


async def _answer(prog: str, bus: Bus) -> int:
    interface = multicast.interface_of(bus)
    stopping = asyncio.Event()

    def told(peer: Peer) -> None:
        print(f"{peer} examines the way here", flush=True)

    with calling_on_signals(stopping.set), open_meeting(bus, interface, keys_of(bus), asks=False) as meeting:
        meeting.on_asker = told
        meeting.on_stranger = lambda address, fault: print(f"{address} cannot be answered: {fault}", flush=True)
        say(f"{prog}: answers doctors on {interface.name} ({interface.address}), port {bus.port}; Ctrl-C ends it")
        await stopping.wait()
    return ALL_DONE
