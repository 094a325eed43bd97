"""Where everyone who can talk to each other meets. Owns the settings and the addresses of labels; opens no sockets.

A label's two multicast addresses are derived, so that nobody has to be asked for them and a host is not woken for
labels that it does not listen to:

    digest  = BLAKE2b of the label's UTF-8 bytes, 8 bytes long, no key
    pair    = digest as a big-endian number, modulo 2 ** (31 - prefix length), or 127 - prefix length with IPv6
    data    = first address of the range + 2 * pair
    control = data + 1

So the last bit says which of the two it is, and the default ranges of /16 and /112 have 32,768 pairs. Two labels may
share a pair; frames carry a tag of their label, so that costs a little work and harms nobody.

The directory, where everyone introduces itself to whoever looks on, is the control address of a name that no label can
have. A label that shares its pair hears it too, and throws it away.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from rvq.errors import BadArgument, BusError
from rvq.names import check_label
from rvq.peers import Seed, parse_seeds
from rvq.ranges import DEFAULT_ADDRESS, Range, check_together, default_range, parse_range
from rvq.timings import Timings
from rvq.wire.keys import KEY_BYTES

DEFAULT_PORT = 7400

_DIRECTORY = "\0directory"
_DOCTORS = "\0doctors"
"""No labels: those have no control characters."""

_DEFAULTS = Timings()


@dataclass(frozen=True, slots=True)
class Bus:
    """Everyone with the same interface's network, port and address range is on the same bus.

    interface: a name ("eth0") or one of its addresses. Loopback unless told, so nothing leaves the machine.
    port: UDP. Different ports are different buses.
    address: the multicast range in which labels have their addresses: a network of /8 to /24, or an address (its /16).
        One of IPv6 has /96 to /120 (an address: its /112); an interface that is named by its IPv6 address has
        ff15::f271:0/112 in place of the default.
    ttl: routers that a frame may pass, plus one. 1 stays on the LAN; on loopback it is always 0.
    key: the bus is sealed: a key file (`rvq key new`), which is read again when it changes, or a key of 32 bytes.
    peers: no multicast: everything is sent to each who listens. Hosts of this bus, as "host", "host:port" or
        "host:first-last", of which one is enough to find all; an empty list waits to be found.
    heartbeat, expiry, lease, settle, orphan_for, report: see `rvq.timings.Timings`.
    """

    interface: str = "lo"
    port: int = DEFAULT_PORT
    address: str = DEFAULT_ADDRESS
    ttl: int = 1
    key: str | bytes | os.PathLike[str] | None = field(default=None, repr=False)
    peers: Sequence[str] | None = None
    heartbeat: float = _DEFAULTS.heartbeat
    expiry: float = _DEFAULTS.expiry
    lease: float = _DEFAULTS.lease
    settle: float = _DEFAULTS.settle
    orphan_for: float = _DEFAULTS.orphan_for
    report: float = _DEFAULTS.report

    def __post_init__(self) -> None:
        if not isinstance(self.interface, str) or not self.interface:
            raise BusError(
                f"interface={self.interface!r} is not an interface: give a name such as 'eth0', or its address"
            )
        if not _is_integer(self.port) or not 1 <= self.port <= 65535:
            raise BusError(f"port={self.port!r} is not a port: give a number from 1 to 65535")
        if not _is_integer(self.ttl) or not 0 <= self.ttl <= 255:
            raise BusError(f"ttl={self.ttl!r} is not a time to live: give a number from 0 to 255")
        _check_key(self.key)
        if self.address == DEFAULT_ADDRESS:
            object.__setattr__(self, "address", default_range(self.interface))
        check_together(self.interface, self.network)
        if self.peers is not None:
            parse_seeds(self.peers, self.port)
            if self.network.version == 6:
                raise BusError("peers= is for IPv4 only: use an interface and a range of IPv4, or leave peers out")
        _ = self.timings  # its own checks

    @classmethod
    def from_env(cls, **overrides: Any) -> Bus:
        """The bus that RVQ_INTERFACE, RVQ_PORT, RVQ_ADDRESS, RVQ_KEY_FILE and RVQ_PEERS name.

        An override wins over its variable; an empty variable counts as not set.
        """
        names = {
            "interface": "RVQ_INTERFACE",
            "port": "RVQ_PORT",
            "address": "RVQ_ADDRESS",
            "key": "RVQ_KEY_FILE",
            "peers": "RVQ_PEERS",
        }
        settings: dict[str, Any] = {name: os.environ[env] for name, env in names.items() if os.environ.get(env)}
        settings |= overrides
        if isinstance(settings.get("port"), str):
            settings["port"] = _parse_port(settings["port"])
        if isinstance(settings.get("peers"), str):
            settings["peers"] = tuple(peer for peer in settings["peers"].split(",") if peer.strip())
        return cls(**settings)

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """Whom to ask for the others, on a bus without multicast."""
        return parse_seeds(self.peers or (), self.port)

    @property
    def timings(self) -> Timings:
        return Timings(
            heartbeat=self.heartbeat,
            expiry=self.expiry,
            lease=self.lease,
            settle=self.settle,
            orphan_for=self.orphan_for,
            report=self.report,
        )

    @property
    def name(self) -> bytes:
        """What sealed frames are bound to: recorded on one bus they mean nothing on another with the same key."""
        return f"{self.network} {self.port}".encode()

    @property
    def network(self) -> Range:
        """The multicast addresses of this bus."""
        return parse_range(self.address)

    def data_address(self, label: str) -> str:
        """Where frames with messages of `label` go: an even address, which receivers join."""
        return str(self._first_address(label))

    def control_address(self, label: str) -> str:
        """Where heartbeats, tables and stamps of `label` go: an odd address, which senders and receivers join."""
        return str(self._first_address(label) + 1)

    @property
    def directory_address(self) -> str:
        """Where everyone introduces itself: an odd address, which only observers join."""
        return str(self._pair(_DIRECTORY) + 1)

    @property
    def doctors_address(self) -> str:
        """Where those who examine the network meet (`rvq doctor`): an odd address, which nobody else joins."""
        return str(self._pair(_DOCTORS) + 1)

    def _first_address(self, label: str) -> IPv4Address | IPv6Address:
        return self._pair(check_label(label))

    def _pair(self, name: str) -> IPv4Address | IPv6Address:
        network = self.network
        digest = blake2b(name.encode(), digest_size=8).digest()
        pair = int.from_bytes(digest, "big") % (network.num_addresses // 2)
        return network.network_address + 2 * pair


def check_bus(bus: object) -> Bus:
    """`bus` itself if it is one, that of the environment if it is None; BadArgument otherwise."""
    if bus is None:
        return Bus.from_env()
    if not isinstance(bus, Bus):
        raise BadArgument(f"bus={bus!r:.60} is {type(bus).__name__}, not a bus: give rvq.Bus(interface='eth0')")
    return bus


def _check_key(key: object) -> None:
    """Whether there is such a file is seen when it is opened. A key is never shown."""
    if isinstance(key, bytes):
        if len(key) != KEY_BYTES:
            raise BusError(f"key= of {len(key)} bytes is not a key: give {KEY_BYTES} random ones, or a key file's path")
    elif key is not None and (not isinstance(key, (str, os.PathLike)) or not os.fspath(key)):
        raise BusError(f"key= is {type(key).__name__}, not a key file's path nor {KEY_BYTES} bytes: see `rvq key new`")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_port(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BusError(f"port={text!r} is not a port: give a number from 1 to 65535") from None
