"""Where seeds are. Owns looking names up, again and again, beside the event loop. Asks nobody whether he is there."""

from __future__ import annotations

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address
from threading import Thread

from rvq.errors import BusError
from rvq.peers import Seed
from rvq.transport.multicast import Interface
from rvq.transport.udp import Address

AGAIN_S = 10.0
"""Between looks: hosts that are started anew have other addresses in most clouds."""
AGAIN_S_UNKNOWN = 1.0
"""The same if a name was not known: it may become so when its host is up."""

HOSTS_MAX = 64
"""Addresses of one name that are used."""

Tell = Callable[[tuple[Address, ...]], None]


def is_address(host: str) -> bool:
    """Not a name."""
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


def check_seeds(seeds: Iterable[Seed], interface: Interface) -> None:
    """BusError if one of the addresses cannot be reached by this interface, whatever the network does."""
    for host in [seed.host for seed in seeds if is_address(seed.host)]:
        if interface.is_loopback and not IPv4Address(host).is_loopback and host != interface.address:
            raise BusError(
                f"peers={host!r} is not on this machine, which {interface.name} does not leave: name the interface "
                "(interface=, --interface, RVQ_INTERFACE)"
            )
        if IPv4Address(host).is_loopback and not interface.is_loopback:
            raise BusError(
                f"peers={host!r} is this machine, and {interface.name} is not: give the address that the others have "
                f"for it ({interface.address}), or use the interface lo"
            )
        if IPv4Address(host).is_multicast or IPv4Address(host).is_unspecified:
            raise BusError(f"peers={host!r} is no host: give the address or the name of one")


class Names:
    """The addresses of all seeds. Those of names are told when they are known."""

    def __init__(self, seeds: Iterable[Seed], tell: Tell, warn: Callable[[str], None]) -> None:
        self._seeds = tuple(seeds)
        self._names = sorted({seed.host for seed in self._seeds if not is_address(seed.host)})
        self._found: dict[str, tuple[str, ...]] = {}
        self._tell = tell
        self._warn = warn
        self._warned: set[str] = set()
        self._looking = False
        self.look_at = 0.0 if self._names else float("inf")
        """When to look again."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """As far as they are known."""
        return tuple(
            (host, port)
            for seed in self._seeds
            for host in (self._found.get(seed.host, ()) if seed.host in self._names else (seed.host,))
            for port in range(seed.first, seed.last + 1)
        )

    def look(self, now: float, loop: AbstractEventLoop) -> None:
        """In a thread of its own, since it may take many seconds. One at a time."""
        if not self._looking:
            self._looking = True
            Thread(target=self._look, args=(now, loop), name="rvq names", daemon=True).start()

    def _look(self, now: float, loop: AbstractEventLoop) -> None:
        found = {name: host_addresses(name) for name in self._names}
        with suppress(RuntimeError):  # the loop is closed, and nobody wants to know any more
            loop.call_soon_threadsafe(self._take, now, found)

    def _take(self, now: float, found: dict[str, tuple[str, ...]]) -> None:
        """A name that is not known now keeps the addresses that it had."""
        self._looking = False
        self._found |= {name: hosts for name, hosts in found.items() if hosts}
        unknown = [name for name in self._names if name not in self._found]
        self.look_at = now + (AGAIN_S_UNKNOWN if unknown else AGAIN_S)
        for name in unknown:
            if name not in self._warned:
                self._warned.add(name)
                self._warn(f"peers={name!r} has no IPv4 address: see that the name is right (it is looked up again)")
        self._tell(self.addresses)


def host_addresses(name: str) -> tuple[str, ...]:
    """Of a host, or nothing if it is not known. May take long."""
    try:
        answers = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(sorted({str(address[0]) for *_, address in answers}))[:HOSTS_MAX]
