"""What is different on a bus with IPv6: an interface's addresses, and the options of its sockets. Opens no sockets.

Addresses of links carry the name of the interface (fe80::1%eth0) wherever people read them. Sockets want its index in a
field of its own, and hand out tuples of four; those travel through the protocol as they are, since they only have to be
equal to themselves.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from rvq.errors import BusError

ADDRESSES = Path("/proc/thread-self/net/if_inet6")
"""All of this thread's network: /proc/net would be that of the thread that the process began with."""

OVERHEAD_BYTES = 48
"""IPv6 and UDP headers: what a datagram has less than the MTU."""

Place = tuple[str, int, int, int]

# Linux's numbers, which the socket module does not know.
_IPV6_MTU_DISCOVER = 23
_IPV6_MULTICAST_ALL = 29
_PMTUDISC_WANT = 1
_PMTUDISC_PROBE = 3
_SO_BINDTOIFINDEX = 62
_IFA_F_DADFAILED = 0x08
_IFA_F_DEPRECATED = 0x20
_IFA_F_TENTATIVE = 0x40
_IFA_F_TEMPORARY = 0x01


@dataclass(frozen=True, slots=True)
class Found:
    """One address of one interface."""

    interface: str
    index: int
    address: IPv6Address
    flags: int

    @property
    def is_being_checked(self) -> bool:
        """Nothing can be bound to it before it is known that nobody else has it: a second or two."""
        return bool(self.flags & _IFA_F_TENTATIVE)

    @property
    def is_of_use(self) -> bool:
        return not self.flags & (_IFA_F_DADFAILED | _IFA_F_TENTATIVE)

    @property
    def is_fleeting(self) -> bool:
        """Made to be gone soon."""
        return bool(self.flags & (_IFA_F_TEMPORARY | _IFA_F_DEPRECATED))

    def __str__(self) -> str:
        return f"{self.address}%{self.interface}" if self.address.is_link_local else str(self.address)


def read_addresses(path: Path = ADDRESSES) -> list[Found]:
    """None where the kernel has no IPv6, or it is turned off."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return []
    return [Found(row[5], int(row[1], 16), IPv6Address(bytes.fromhex(row[0])), int(row[4], 16)) for row in rows]


def find(name_or_address: str, routed: bool, path: Path = ADDRESSES) -> tuple[str, str | None]:
    """The interface of that name or address, and the address that it has for this bus, if any. BusError if there is no
    such interface. routed: answers come through routers."""
    names = [name for _, name in socket.if_nameindex()]
    found = read_addresses(path)
    if name_or_address in names:
        return name_or_address, choose(name_or_address, found, routed)
    there = [one for one in found if _is_meant(one, name_or_address)]
    if not there:
        existing = ", ".join(f"{name} ({_first(name, found)})" for name in names)
        raise BusError(f"no interface {name_or_address!r} on this machine: choose one of {existing or 'none'}")
    if len(there) > 1:
        raise BusError(f"{name_or_address!r} is on several interfaces: write one of {', '.join(map(str, there))}")
    return there[0].interface, choose(there[0].interface, there, routed)


def _first(name: str, found: Iterable[Found]) -> str:
    return next((str(one) for one in found if one.interface == name), "no IPv6 address")


def _is_meant(one: Found, text: str) -> bool:
    host, _, zone = text.partition("%")
    try:
        return IPv6Address(host) == one.address and zone in ("", one.interface, str(one.index))
    except ValueError:
        return False


def choose(name: str, found: Iterable[Found], routed: bool) -> str | None:
    """The one of a link is on every host and outlives any renumbering; but routers pass nothing of it on."""
    own = [one for one in found if one.interface == name]
    of_use = [one for one in own if one.is_of_use and not (routed and one.address.is_link_local)]
    if of_use:
        return str(min(of_use, key=lambda one: (not one.address.is_link_local, one.is_fleeting)))
    if any(one.is_being_checked for one in own):
        raise BusError(
            f"the IPv6 address of {name} is still being looked for on the network, lest somebody has it: try again in "
            "two seconds"
        )
    if own and routed:
        raise BusError(f"{own[0]} is passed on by no router: name an address that is, or leave ttl at 1")
    return None


def place(address: str, port: int, index: int) -> Place:
    """What sockets take for it. The index is of meaning for addresses of links, and for no others."""
    host = address.partition("%")[0]
    parsed = IPv6Address(host)
    return host, port, 0, index if parsed.is_link_local or parsed.is_multicast else 0


def set_outgoing(sock: socket.socket, index: int, hops: int) -> None:
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)


def hear_only(sock: socket.socket, index: int) -> None:
    """What this socket joined, on this interface: without it is heard what others on this host have joined."""
    try:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)  # Linux 4.20
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
    # That asks for the group alone, and not for where it was joined, as it does with IPv4.
    sock.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, index)


def join(sock: socket.socket, index: int, group: str) -> None:
    """By index: no route is looked up then."""
    mreq = struct.pack("=16si", socket.inet_pton(socket.AF_INET6, group), index)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, mreq)


def keep_whole(sock: socket.socket, whole: bool) -> None:
    """The kernel cuts nothing, and believes nobody who says that the way is narrower. Routers never cut IPv6."""
    mode = _PMTUDISC_PROBE if whole else _PMTUDISC_WANT
    sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, mode)
