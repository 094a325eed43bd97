"""The seeds of a bus without multicast, as they are written: HOST, HOST:PORT, HOST:FIRST-LAST. Owns reading them.

Knows no sockets: names are looked up where the addresses are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rvq.errors import BusError
from rvq.limits import SEED_PORTS, SEEDS_MAX

_FORMS = "give HOST, HOST:PORT or HOST:FIRST-LAST, such as 10.0.0.1 or 10.0.0.1:7400"


class Seed(NamedTuple):
    """A host, and the ports at which somebody of this bus may be."""

    host: str
    first: int
    last: int


def parse_seeds(peers: object, port: int) -> tuple[Seed, ...]:
    """What `peers=` names. Without a port it is those that ends on that host take: the bus's own and the next."""
    if isinstance(peers, str) or not isinstance(peers, Sequence):
        raise BusError(f"peers={peers!r:.60} is not a list of hosts: {_FORMS}")
    if len(peers) > SEEDS_MAX:
        raise BusError(f"peers= has {len(peers)} entries: name {SEEDS_MAX} at most, the others are found through them")
    return tuple(_parse(peer, port) for peer in peers)


def seed_ports(port: int) -> range:
    """The ports that ends of a bus take first, on every host."""
    return range(port, min(port + SEED_PORTS, 65536))


def _parse(peer: object, port: int) -> Seed:
    if not isinstance(peer, str) or not peer.strip():
        raise BusError(f"peers={peer!r:.60} is not a host: {_FORMS}")
    host, ports = _split(peer.strip())
    if not host or any(not character.isprintable() or character in " ,/[]" for character in host):
        raise BusError(f"peers={peer!r:.60} is not a host: {_FORMS}")
    if ports is None:
        usual = seed_ports(port)
        return Seed(host, usual.start, usual.stop - 1)
    first, dash, last = ports.partition("-")
    seed = Seed(host, _port(first, peer), _port(last if dash else first, peer))
    if not 0 <= seed.last - seed.first < SEED_PORTS:
        raise BusError(f"peers={peer!r:.60} is not a range of 1 to {SEED_PORTS} ports: {_FORMS}")
    return seed


def _split(peer: str) -> tuple[str, str | None]:
    """Host and ports. An IPv6 address has brackets if it has ports."""
    if peer.startswith("["):
        host, bracket, rest = peer[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", None
        return host, rest[1:] if rest else None
    if peer.count(":") > 1:
        return peer, None
    host, colon, ports = peer.partition(":")
    return host, ports if colon else None


def _port(text: str, peer: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 65535:
        raise BusError(f"peers={peer!r:.60} has no port from 1 to 65535: {_FORMS}")
    return int(text)
