"""`rvq doctor`: can this host be on the bus? Tries each thing that can be wrong, and says what to change.

Owns the findings and their words. The probes are datagrams that no frame looks like, on an address of their own.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum

from rvq.aio.overhearing import others, overhear
from rvq.aio.sealing import keys_of
from rvq.bus import Bus
from rvq.cli.options import bus_from
from rvq.errors import BusError
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.transport import multicast
from rvq.transport.multicast import Interface

PROBE_LABEL = "rvq doctor"
PROBES = 10
PROBE_BYTES_MIN = 32
ANSWER_WITHIN_S = 1.0
"""How long the last probe may take: ages on any LAN."""


class Verdict(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    verdict: Verdict
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.verdict.value:<5} {self.subject:<15} {self.text}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Doctor has no options besides those of the bus."""


def run(args: argparse.Namespace) -> int:
    """Prints the findings as they come; 1 if any of them keeps this host off the bus."""
    failed = False
    for finding in examine(bus_from(args)):
        print(finding, flush=True)
        failed = failed or finding.verdict is Verdict.FAIL
    return 1 if failed else 0


def examine(bus: Bus) -> Iterator[Finding]:
    """All findings, in the order in which a fault in one explains the next. Stops where nothing more can be tried."""
    try:
        interface = multicast.resolve_interface(bus.interface)
    except BusError as error:
        yield Finding(Verdict.FAIL, "interface", str(error))
        return
    yield _interface(interface)
    yield _route(bus, interface)
    frame_bytes = multicast.frame_bytes_for(interface)
    yield from _multicast(bus, interface, frame_bytes)
    yield _mtu(interface, frame_bytes)
    yield from _key(bus)


def _interface(interface: Interface) -> Finding:
    described = f"{interface.name} has {interface.address}"
    if not interface.has_carrier:
        return Finding(Verdict.WARN, "interface", f"{described} and no carrier: see the cable, or the other end of it")
    if not interface.has_multicast:
        advice = f"it may drop it; if so: ip link set dev {interface.name} multicast on"
        return Finding(Verdict.WARN, "interface", f"{described} and does not say that it carries multicast: {advice}")
    reach = ": nothing leaves this machine" if interface.is_loopback else ""
    return Finding(Verdict.OK, "interface", f"{described} and is up{reach}")


def _route(bus: Bus, interface: Interface) -> Finding:
    try:
        multicast.check_route(bus, interface)
    except BusError as error:
        return Finding(Verdict.FAIL, "route", str(error))
    return Finding(Verdict.OK, "route", f"{bus.network} leaves by {interface.name}, port {bus.port}")


def _mtu(interface: Interface, frame_bytes: int) -> Finding:
    text = f"{interface.mtu}, so a frame has up to {frame_bytes:,} bytes"
    if frame_bytes + multicast.UDP_OVERHEAD_BYTES > interface.mtu:
        advice = f"frames go in IP fragments; raise it: ip link set dev {interface.name} mtu 1500"
        return Finding(Verdict.WARN, "mtu", f"{text}: {advice}")
    return Finding(Verdict.OK, "mtu", text)


def _key(bus: Bus) -> Iterator[Finding]:
    try:
        keys = keys_of(bus)
        heard, faults = others(overhear(bus), keys)
    except BusError as error:
        yield Finding(Verdict.FAIL, "key", str(error))
        return
    if keys is None:
        yield Finding(Verdict.OK, "key", "none: frames are not sealed, and anyone on this network can join")
    else:
        live = f", and {len(keys.live) - 1} more live" if len(keys.live) > 1 else ""
        text = f"{keys.in_use.name} is in use{live}: compare with the other hosts (rvq key ls)"
        yield Finding(Verdict.OK, "key", text)
    for fault in faults:
        yield Finding(Verdict.WARN, "others", f"they speak on this bus and we do not understand them: {fault}")
    if heard:
        yield Finding(Verdict.OK, "others", f"{heard} heard that we understand")


def _multicast(bus: Bus, interface: Interface, frame_bytes: int) -> Iterator[Finding]:
    with ExitStack() as stack:
        try:
            hearing = stack.enter_context(multicast.open_multicast(bus, interface, bus.control_address(PROBE_LABEL)))
            asking = stack.enter_context(multicast.open_unicast(bus, interface))
            answering = stack.enter_context(multicast.open_unicast(bus, interface))
        except BusError as error:
            yield Finding(Verdict.FAIL, "multicast", str(error))
            return
        for size in (PROBE_BYTES_MIN, frame_bytes):
            finding = _there_and_back(bus, interface, size, hearing, asking, answering)
            yield finding
            if finding.verdict is Verdict.FAIL:
                break
        yield _buffer("receive buffer", multicast.receive_buffer_bytes(hearing), RECEIVE_BUFFER_BYTES)
        yield _buffer("send buffer", multicast.send_buffer_bytes(asking), multicast.SEND_BUFFER_BYTES, sending=True)


def _buffer(subject: str, got: int, asked: int, *, sending: bool = False) -> Finding:
    warning = multicast.buffer_warning(got, asked, sending=sending)
    if warning:
        return Finding(Verdict.WARN, subject, warning)
    return Finding(Verdict.OK, subject, f"{got:,} bytes, as asked")


def _there_and_back(
    bus: Bus, interface: Interface, size: int, hearing: socket.socket, asking: socket.socket, answering: socket.socket
) -> Finding:
    """Probes go out by multicast and are answered by unicast, the two ways that frames go."""
    target = (bus.control_address(PROBE_LABEL), bus.port)
    probes = [os.urandom(PROBE_BYTES_MIN).ljust(size, b"\0") for _ in range(PROBES)]
    try:
        for probe in probes:
            asking.sendto(probe, target)
        heard, answered = _exchange(set(probes), hearing, asking, answering)
    except OSError as error:
        refused = f"a probe to {target[0]} was refused ({error.strerror})"
        return Finding(Verdict.FAIL, "multicast", f"{refused}: {_firewall(bus)}")
    text = f"{size:,} bytes to {target[0]}: {heard} of {PROBES} heard, {answered} answered"
    if not heard or not answered:
        return Finding(Verdict.FAIL, "multicast", f"{text}: {_firewall(bus)}")
    if answered < PROBES:
        return Finding(Verdict.WARN, "multicast", f"{text}: something drops datagrams; frames will be sent again")
    beyond = "" if interface.is_loopback else " (on this host; for the network between, run rvq-listen on another)"
    return Finding(Verdict.OK, "multicast", text + beyond)


def _exchange(
    waiting: set[bytes], hearing: socket.socket, asking: socket.socket, answering: socket.socket
) -> tuple[int, int]:
    """How many probes were heard, and how many answers came, until all have or it takes too long."""
    answers: set[bytes] = set()
    sent, unheard = len(waiting), set(waiting)
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while len(answers) < sent:
        left = deadline - time.monotonic()
        readable = select.select([hearing, asking], [], [], max(left, 0))[0] if left > 0 else []
        if not readable:
            break
        if hearing in readable:
            probe, source = hearing.recvfrom(65_536)
            if probe in unheard:  # and not another doctor's
                unheard.discard(probe)
                answering.sendto(probe, source)
        if asking in readable:
            answers |= {asking.recv(65_536)} & waiting
    return sent - len(unheard), len(answers)


def _firewall(bus: Bus) -> str:
    rule = f"ip daddr {bus.network} udp dport {bus.port} accept"
    return (
        f"let the firewall pass UDP to {bus.network} port {bus.port}, and the answers (nft, input and output: {rule})"
    )
