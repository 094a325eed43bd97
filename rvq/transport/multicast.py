"""Interfaces and UDP sockets of a bus. Owns every socket option that rvq sets, and why; reads and sends nothing.

What is different with IPv6 is in `rvq.transport.ipv6`. Linux only: interfaces are asked by ioctl, and IP_MULTICAST_ALL
is what keeps two interfaces apart.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl

from rvq.bus import Bus
from rvq.errors import BusError
from rvq.limits import FRAME_BYTES_LOOPBACK, FRAME_BYTES_MIN, MIB, RECEIVE_BUFFER_BYTES
from rvq.peers import seed_ports
from rvq.ranges import DEFAULT_ADDRESS_6, stays_on_host
from rvq.transport import ipv6

SEND_BUFFER_BYTES = 2 * MIB
"""Asked for at each sending socket: some milliseconds of a 10 Gbit/s link, so that a burst of frames seldom waits."""

TRAIN_FRAMES_MAX = 60
"""Linux cuts a datagram into 64 at most."""

UDP_OVERHEAD_BYTES = 28
"""IPv4 and UDP headers: what a datagram has less than the MTU."""

Place = tuple[str, int] | ipv6.Place
"""A host and a port; with IPv6 also what belongs to it."""

# Linux's numbers, which the socket module does not know.
_IP_MULTICAST_ALL = 49
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_WANT = 1
_IP_PMTUDISC_PROBE = 3
_SOL_UDP = 17
_UDP_SEGMENT = 103
_UDP_GRO = 104
_SO_RCVBUFFORCE = 33
_SO_SNDBUFFORCE = 32
_SIOCGIFFLAGS = 0x8913
_SIOCGIFADDR = 0x8915
_SIOCGIFMTU = 0x8921
_IFF_UP = 0x1
_IFF_LOOPBACK = 0x8
_IFF_RUNNING = 0x40
_IFF_MULTICAST = 0x1000


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface as it was when asked. `address` is the one that peers answer to; with a %name if it is of a
    link, as it is written."""

    name: str
    index: int
    address: str
    mtu: int
    flags: int

    @property
    def version(self) -> int:
        """Of the address: 4 or 6."""
        return 6 if ":" in self.address else 4

    @property
    def overhead_bytes(self) -> int:
        """What a datagram has less than the MTU."""
        return ipv6.OVERHEAD_BYTES if self.version == 6 else UDP_OVERHEAD_BYTES

    @property
    def is_up(self) -> bool:
        return bool(self.flags & _IFF_UP)

    @property
    def is_loopback(self) -> bool:
        return bool(self.flags & _IFF_LOOPBACK)

    @property
    def has_carrier(self) -> bool:
        """False with the cable pulled."""
        return bool(self.flags & _IFF_RUNNING)

    @property
    def has_multicast(self) -> bool:
        """Loopback never says so, and carries multicast all the same."""
        return self.is_loopback or bool(self.flags & _IFF_MULTICAST)


def interface_of(bus: Bus) -> Interface:
    """The bus's own, with an address of the kind that its range is of. BusError if it is of no use to the bus."""
    interface = resolve_interface(bus.interface, bus.network.version, routed=bus.ttl > 1)
    if stays_on_host(bus.network) and not interface.is_loopback:
        raise BusError(
            f"{bus.network} never leaves a host, so nobody else hears it on {interface.name}: use {DEFAULT_ADDRESS_6}"
        )
    return interface


def resolve_interface(name_or_address: str, version: int = 4, *, routed: bool = False) -> Interface:
    """The interface of that name, or the one that has that address of IPv4 or 6. BusError if it is of no use to a bus.
    routed: answers come through routers."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            if version == 6:
                return _resolve(asking, *ipv6.find(name_or_address, routed), version)
            return _resolve(asking, *_find(asking, name_or_address), version)
    except OSError as error:
        raise BusError(f"interface {name_or_address!r} cannot be asked ({error.strerror}): see `ip address`") from error


def _resolve(asking: socket.socket, name: str, address: str | None, version: int) -> Interface:
    (flags,) = _ask(asking, _SIOCGIFFLAGS, name, "H")
    if not flags & _IFF_UP:
        raise BusError(f"interface {name} is down: bring it up (ip link set dev {name} up) or choose another")
    if address is None:
        raise BusError(f"interface {name} has no IPv{version} address: {_advise(name, version)}")
    (mtu,) = _ask(asking, _SIOCGIFMTU, name, "i")
    return Interface(name, socket.if_nametoindex(name), address, mtu, flags)


def _advise(name: str, version: int) -> str:
    """What to do about an interface that has no address of this kind."""
    has_others = any(one.interface == name and one.is_of_use for one in ipv6.read_addresses())
    if version == 6:
        turn_on = f"sysctl -w net.ipv6.conf.{name}.disable_ipv6=0"
        return f"turn IPv6 on there ({turn_on}), give it one, or choose another interface or a range of IPv4"
    instead = f", or use its IPv6 address (address={DEFAULT_ADDRESS_6})" if has_others else ""
    return f"give it one (ip address add 10.0.0.1/24 dev {name}) or choose another{instead}"


def _find(asking: socket.socket, name_or_address: str) -> tuple[str, str | None]:
    names = [name for _, name in socket.if_nameindex()]
    if name_or_address in names:
        return name_or_address, _address_of(asking, name_or_address)
    for name in names:
        if name_or_address == _address_of(asking, name, name_or_address):
            return name, name_or_address
    existing = ", ".join(f"{name} ({_address_of(asking, name) or 'no IPv4 address'})" for name in names)
    raise BusError(f"no interface {name_or_address!r} on this machine: choose one of {existing or 'none'}")


def _ask(asking: socket.socket, request: int, name: str, answer: str) -> tuple[int, ...]:
    reply = ioctl(asking, request, struct.pack("16s24x", name.encode()))
    return struct.unpack_from(answer, reply, 16)


def _address_of(asking: socket.socket, name: str, wanted: str = "0.0.0.0") -> str | None:
    """The interface's first address, or `wanted` if that is one of its others: Linux looks for what we put in."""
    try:
        request = struct.pack("16sHxx4s16x", name.encode(), socket.AF_INET, socket.inet_pton(socket.AF_INET, wanted))
        return socket.inet_ntoa(ioctl(asking, _SIOCGIFADDR, request)[20:24])
    except (OSError, ValueError):  # `wanted` is no address, or the interface has none
        return None


def frame_bytes_for(interface: Interface) -> int:
    """The largest data frame that leaves in one piece: IP fragments would make one lost packet cost a whole frame."""
    return max(FRAME_BYTES_MIN, min(FRAME_BYTES_LOOPBACK, interface.mtu - interface.overhead_bytes))


def train_frames_for(interface: Interface) -> int:
    """How many frames are handed to the kernel at once, to be cut apart there: 1 where a frame is large anyway."""
    return max(1, min(TRAIN_FRAMES_MAX, FRAME_BYTES_LOOPBACK // frame_bytes_for(interface)))


def may_offload() -> bool:
    """Is the kernel to cut trains apart and to join them? RVQ_NO_OFFLOAD=1 says no, to find out what that costs."""
    return os.environ.get("RVQ_NO_OFFLOAD", "") in ("", "0")


def join_on_receive(sock: socket.socket) -> bool:
    """Have the kernel join frames that follow each other (UDP GRO). False if it does not know how."""
    try:
        sock.setsockopt(_SOL_UDP, _UDP_GRO, 1)
    except OSError:
        return False
    return True


def cut_on_send(size: int) -> list[tuple[int, int, bytes]]:
    """What goes with a train so that the kernel cuts it into datagrams of this size (UDP GSO)."""
    return [(_SOL_UDP, _UDP_SEGMENT, struct.pack("=H", size))]


CANNOT_CUT = frozenset({errno.EINVAL, errno.EIO, errno.EOPNOTSUPP, errno.ENOPROTOOPT, errno.EMSGSIZE})
"""What a kernel says that does not cut, or not for this interface. Anything else is what the network does."""

JOINED_SPACE = socket.CMSG_SPACE(4)
"""What to keep free for the kernel's word on joined frames."""


def joined_size(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Of which size the frames are that were joined; 0 if they were not."""
    for level, kind, data in ancillary:
        if level == _SOL_UDP and kind == _UDP_GRO:
            return int.from_bytes(data[:4], sys.byteorder)
    return 0


def open_multicast(bus: Bus, interface: Interface, address: str) -> socket.socket:
    """A socket that hears what is sent to the multicast `address` on this interface's network, and nothing else."""
    with _opening(bus, interface) as sock:
        # Everyone on this host who listens to the label binds the same address, and each gets a copy.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Without this a socket also hears what others on this host have joined, on any interface.
        _hear_only(sock, interface)
        # Nothing is meant to be sent from here; if it ever is, it must not follow the default route off this bus.
        _set_outgoing(sock, bus, interface)
        _ask_receive_buffer(sock)
        # The address and not 0.0.0.0: the kernel then drops other labels before they reach our queue.
        sock.bind(place_on(interface, address, bus.port))
        _join(sock, interface, address)
    return sock


def open_unicast(bus: Bus, interface: Interface) -> socket.socket:
    """A socket from which everything is sent, and to which peers answer: a port of its own on the interface."""
    with _opening(bus, interface) as sock:
        _set_outgoing(sock, bus, interface)
        _ask_receive_buffer(sock)
        _ask_buffer(sock, socket.SO_SNDBUF, _SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
        sock.bind(place_on(interface, interface.address, 0))
        check_route(bus, interface)
    return sock


def open_fanout(bus: Bus, interface: Interface) -> socket.socket:
    """The one socket of an end on a bus without multicast: on the first of the bus's ports that is free, so that seeds
    are found there, or else on any."""
    with _opening(bus, interface) as sock:
        _ask_receive_buffer(sock)
        _ask_buffer(sock, socket.SO_SNDBUF, _SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
        for port in (*seed_ports(bus.port), 0):
            try:
                sock.bind((interface.address, port))
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    return sock


def open_door(bus: Bus, interface: Interface) -> socket.socket:
    """A socket at the bus's port and the interface's own address: there one can be called who is known by address."""
    with _opening(bus, interface) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _set_outgoing(sock, bus, interface)
        sock.bind(place_on(interface, interface.address, bus.port))
    return sock


def keep_whole(sock: socket.socket, whole: bool) -> None:
    """Whether datagrams may be cut on their way (the DF bit): what does not fit is dropped, and not cut."""
    if sock.family == socket.AF_INET6:
        ipv6.keep_whole(sock, whole)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE if whole else _IP_PMTUDISC_WANT)


def place_on(interface: Interface, address: str, port: int) -> Place:
    """That address on this interface's network, as sockets take and tell it."""
    return ipv6.place(address, port, interface.index) if interface.version == 6 else (address, port)


def check_route(bus: Bus, interface: Interface) -> None:
    """BusError if the kernel has no way to send to the bus's addresses by this interface."""
    with _opening(bus, interface) as sock:
        _set_outgoing(sock, bus, interface)
        # Looks the route up and sends nothing. With IPv4 none is needed, in fact: the interface is given.
        sock.connect(place_on(interface, str(bus.network.network_address), bus.port))
    sock.close()


def receive_buffer_bytes(sock: socket.socket) -> int:
    """What the socket was granted, in the unit in which it is asked for: Linux doubles it for its bookkeeping."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2


def send_buffer_bytes(sock: socket.socket) -> int:
    """As `receive_buffer_bytes`, for sending."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2


def buffer_warning(got: int, asked: int, *, sending: bool = False) -> str | None:
    """A sentence that says what to change, or None if the buffer is as large as asked."""
    if got >= asked:
        return None
    kind, setting = ("send", "net.core.wmem_max") if sending else ("receive", "net.core.rmem_max")
    harm = "bursts wait" if sending else "bursts overflow it and must be sent again"
    return f"{kind} buffer is {got:,} bytes of {asked:,} asked, so {harm}: run `sysctl -w {setting}={asked}` as root"


@contextmanager
def _opening(bus: Bus, interface: Interface) -> Iterator[socket.socket]:
    """A new non-blocking socket; closed again, and the fault put in words, if setting it up fails."""
    sock = _new(interface.version)
    try:
        sock.setblocking(False)
        yield sock
    except OSError as error:
        sock.close()
        raise BusError(_explain(error, bus, interface)) from error
    except BaseException:
        sock.close()
        raise


def _new(version: int) -> socket.socket:
    if version == 4:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    except OSError as error:
        raise BusError(f"no IPv6 on this machine ({error.strerror}): use a range of IPv4") from error
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


def _explain(error: OSError, bus: Bus, interface: Interface) -> str:
    # Kernels differ in what they answer for an interface that is gone (ENODEV, EADDRNOTAVAIL): look for oneself.
    if not _still_there(interface):
        return f"interface {interface.name} is no longer on this machine: choose another, see `ip address`"
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {bus.port} is taken by a program that keeps it: choose another (port=, --port, RVQ_PORT),"
                f" or see who has it (ss -ulnp 'sport = :{bus.port}')"
            )
        case errno.EACCES:
            return f"port {bus.port} is not allowed for this user: choose one above 1023 (port=, --port, RVQ_PORT)"
        case errno.EADDRNOTAVAIL:
            return (
                f"address {interface.address} is no longer on {interface.name}: see `ip address show {interface.name}`"
            )
        case errno.ENETUNREACH if interface.version == 6 and interface.is_loopback:
            return (
                f"Linux sends no IPv6 multicast on {interface.name} before it has a route there: as root, "
                f"{_route_command(bus, interface)}; IPv4 needs none"
            )
        case errno.ENETUNREACH | errno.EHOSTUNREACH | errno.ENODEV | errno.ENETDOWN:
            return (
                f"no multicast to {bus.address} by interface {interface.name} ({error.strerror}): see that it is up "
                f"and has an address, or give it a route ({_route_command(bus, interface)})"
            )
        case errno.EPERM if interface.version == 6:
            return f"a bus with IPv6 on {interface.name} needs Linux 5.7, or root: use a range of IPv4"
        case _:
            return f"no socket on {interface.name}, port {bus.port} ({error.strerror}): run `rvq doctor`"


def _route_command(bus: Bus, interface: Interface) -> str:
    if interface.version == 4:
        return f"ip route add {bus.network} dev {interface.name}"
    # The kernel gives every interface one for ff00::/8, but for loopback, where only this kind is of any use.
    kind = "local" if interface.is_loopback else "multicast"
    return f"ip -6 route add {kind} {bus.network} dev {interface.name} table local"


def _still_there(interface: Interface) -> bool:
    """True if the interface has the index it had: one that was removed and made again has another."""
    return (interface.index, interface.name) in socket.if_nameindex()


def _set_outgoing(sock: socket.socket, bus: Bus, interface: Interface) -> None:
    # 0 keeps the kernel itself from ever putting a loopback bus on a cable.
    ttl = 0 if interface.is_loopback else bus.ttl
    if interface.version == 6:
        ipv6.set_outgoing(sock, interface.index, ttl)
        return
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _mreqn(interface, local=interface.address))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
    # Receivers on the sender's own host are receivers like any other.
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def _hear_only(sock: socket.socket, interface: Interface) -> None:
    if interface.version == 6:
        ipv6.hear_only(sock, interface.index)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)


def _join(sock: socket.socket, interface: Interface, address: str) -> None:
    if interface.version == 6:
        ipv6.join(sock, interface.index, address)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, _mreqn(interface, group=address))


def _mreqn(interface: Interface, *, group: str = "0.0.0.0", local: str = "0.0.0.0") -> bytes:
    """struct ip_mreqn. By index: an address can be on two interfaces, and no route is looked up then."""
    return struct.pack("=4s4si", socket.inet_aton(group), socket.inet_aton(local), interface.index)


def _ask_receive_buffer(sock: socket.socket) -> None:
    _ask_buffer(sock, socket.SO_RCVBUF, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)


def _ask_buffer(sock: socket.socket, option: int, forced: int, size: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, size)  # past the sysctl limit, if we may
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, option, size)  # the kernel cuts it to the limit
