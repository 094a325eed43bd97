"""The multicast ranges in which a bus has its addresses, of IPv4 and of IPv6. Owns which are good, and the defaults.

IPv6 has the scope in the address, and not in the hop limit alone: 5 is a site, 8 an organization, 2 one link, and what
leaves a scope is dropped by routers whatever its hop limit. Of the flags, T says that nobody assigned the address for
good: only those are anybody's to take.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from rvq.errors import BusError

Range = IPv4Network | IPv6Network

DEFAULT_ADDRESS = "239.192.0.0/16"
"""In the organization-local scope of RFC 2365: nobody else's, and routers keep it inside."""

DEFAULT_ADDRESS_6 = "ff15::f271:0/112"
"""Site-local and transient: no wider than it must be to pass the routers that a ttl names. The group ids ("rq", with
the first bit set) are of those that RFC 3307 leaves to hosts; Ethernet keeps all of their 32 bits, so cards filter."""

PREFIX_MIN, PREFIX_MAX, PREFIX_PLAIN = 8, 24, 16
"""Ranges hold 128 pairs at least, so that labels seldom share one; an address without a prefix means its /16."""

PREFIX_MIN_6, PREFIX_MAX_6, PREFIX_PLAIN_6 = 96, 120, 112
"""The same for IPv6, of whose addresses no more than the last 32 bits are a group's."""

_MULTICAST = IPv4Network("224.0.0.0/4")
_LINK_CONTROL = IPv4Network("224.0.0.0/24")
_MULTICAST_6 = IPv6Network("ff00::/8")
_TRANSIENT = 0x1
_SCOPE_HOST = 1
_SCOPES_RESERVED = (0, 15)
_ANY_ADDRESS = f"use one such as {DEFAULT_ADDRESS}"
_ANY_ADDRESS_6 = f"use one such as {DEFAULT_ADDRESS_6}"


def version_of(host: str) -> int | None:
    """4 or 6 if that is an address, None if it is a name."""
    for kind in (IPv4Address, IPv6Address):
        try:
            return kind(host).version
        except ValueError:
            continue
    return None


def default_range(interface: str) -> str:
    """For who names nothing but an interface."""
    return DEFAULT_ADDRESS_6 if version_of(interface) == 6 else DEFAULT_ADDRESS


def check_together(interface: str, network: Range) -> None:
    """BusError if the interface is named by an address of the other kind."""
    version = version_of(interface)
    if version not in (None, network.version):
        other = DEFAULT_ADDRESS_6 if version == 6 else DEFAULT_ADDRESS
        raise BusError(
            f"interface={interface!r} is an IPv{version} address and {network} is a range of IPv{network.version}: "
            f"name the interface by its name or its IPv{network.version} address, or use a range such as {other}"
        )


def parse_range(address: object) -> Range:
    """The range that is meant. BusError says what is wrong with it."""
    if not isinstance(address, str):
        raise BusError(f"address={address!r} is {type(address).__name__}, not str: {_ANY_ADDRESS}")
    return _parse_6(address) if ":" in address else _parse_4(address)


def _parse_4(address: str) -> IPv4Network:
    host, slash, prefix = address.partition("/")
    try:
        network = IPv4Network(f"{host}/{prefix if slash else PREFIX_PLAIN}", strict=False)
    except ValueError:
        raise BusError(f"address={address!r} is not an IPv4 network, nor an IPv6 one: {_ANY_ADDRESS}") from None
    if slash and str(network.network_address) != host:
        raise BusError(f"address={address!r} does not start its range: write {network}")
    if not PREFIX_MIN <= network.prefixlen <= PREFIX_MAX:
        raise BusError(f"address={address!r} is not a range of /{PREFIX_MIN} to /{PREFIX_MAX}: {_ANY_ADDRESS}")
    if not network.subnet_of(_MULTICAST):
        raise BusError(f"address={address!r} is not inside {_MULTICAST}, the multicast addresses: {_ANY_ADDRESS}")
    if network.overlaps(_LINK_CONTROL):
        raise BusError(f"address={address!r} holds {_LINK_CONTROL}, which routing protocols own: {_ANY_ADDRESS}")
    return network


def _parse_6(address: str) -> IPv6Network:
    host, slash, prefix = address.partition("/")
    try:
        if "%" in host:  # the interface is said apart
            raise ValueError(host)
        network = IPv6Network(f"{host}/{prefix if slash else PREFIX_PLAIN_6}", strict=False)
    except ValueError:
        raise BusError(f"address={address!r} is not an IPv6 network: {_ANY_ADDRESS_6}") from None
    if slash and network.network_address != IPv6Address(host):
        raise BusError(f"address={address!r} does not start its range: write {network}")
    if not PREFIX_MIN_6 <= network.prefixlen <= PREFIX_MAX_6:
        raise BusError(f"address={address!r} is not a range of /{PREFIX_MIN_6} to /{PREFIX_MAX_6}: {_ANY_ADDRESS_6}")
    if not network.subnet_of(_MULTICAST_6):
        raise BusError(f"address={address!r} is not inside {_MULTICAST_6}, the multicast addresses: {_ANY_ADDRESS_6}")
    if not _flags(network) & _TRANSIENT:
        raise BusError(
            f"address={address!r} is among the addresses that IANA assigns (ff1… are free): {_ANY_ADDRESS_6}"
        )
    if scope_of(network) in _SCOPES_RESERVED:
        raise BusError(f"address={address!r} has a scope that is reserved: {_ANY_ADDRESS_6}")
    return network


def _flags(network: IPv6Network) -> int:
    return network.network_address.packed[1] >> 4


def scope_of(network: IPv6Network) -> int:
    return network.network_address.packed[1] & 0xF


def stays_on_host(network: Range) -> bool:
    """Its scope is an interface: nothing of it ever goes by a cable."""
    return isinstance(network, IPv6Network) and scope_of(network) == _SCOPE_HOST
