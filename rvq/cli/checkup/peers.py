"""What the doctor finds on a bus without multicast: who answers of those who are named. Owns those findings."""

from __future__ import annotations

from collections.abc import AsyncIterator

from rvq.aio.fanout import Found, look_around
from rvq.bus import Bus
from rvq.cli.checkup import host
from rvq.cli.checkup.finding import Finding, fail, ok, warn
from rvq.errors import BusError
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.peers import Seed, seed_ports
from rvq.transport import multicast
from rvq.transport.multicast import Interface
from rvq.transport.names import host_addresses

LABEL = "rvq doctor"
LOOK_S = 2.0
"""How long peers have to answer: they are asked five times meanwhile."""


async def findings_with_peers(bus: Bus, interface: Interface) -> AsyncIterator[Finding]:
    """Asks the seeds as every end does, and says who answered."""
    yield host.interface_finding(interface, multicast=False)
    yield host.key_finding(bus)
    try:
        found, port = await look_around(bus, LABEL, LOOK_S)
        with multicast.open_fanout(bus, interface) as sock:
            received, sent = multicast.receive_buffer_bytes(sock), multicast.send_buffer_bytes(sock)
    except BusError as error:
        yield fail("peers", str(error))
        return
    yield port_finding(bus, interface, port)
    if not bus.seeds:
        yield ok("peers", "none are named: this host waits until others find it")
    for seed in bus.seeds:
        yield seed_finding(seed, found)
    yield host.buffer_finding("receive buffer", received, RECEIVE_BUFFER_BYTES)
    yield host.buffer_finding("send buffer", sent, multicast.SEND_BUFFER_BYTES, sending=True)


def port_finding(bus: Bus, interface: Interface, port: int) -> Finding:
    ports = seed_ports(bus.port)
    if port in ports:
        return ok("port", f"{interface.address}:{port} was free for one more", port=port)
    text = (
        f"{ports.start} to {ports.stop - 1} are taken, so who starts here now has a port that a firewall may not pass"
    )
    return warn("port", text, "choose another --port, or pass all ports between the hosts of this bus", port=port)


def seed_finding(seed: Seed, found: tuple[Found, ...]) -> Finding:
    hosts = {seed.host, *host_addresses(seed.host)}
    there = [one.port for one in found if one.host in hosts and seed.first <= one.port <= seed.last]
    if there:
        others = f"; {len(found)} found in all" if len(found) > len(there) else ""
        return ok("peers", f"{seed.host} answers at port {', '.join(map(str, sorted(there)))}{others}", ports=there)
    ports = f"{seed.first}" if seed.first == seed.last else f"{seed.first} to {seed.last}"
    change = "see that rvq runs there with this --port, and that firewalls pass UDP both ways"
    return warn("peers", f"nobody answers at {seed.host}, port {ports}", change, ports=[])
