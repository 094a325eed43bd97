"""Which multicast ranges a bus may have."""

from __future__ import annotations

from ipaddress import IPv6Network

import pytest

from rvq.errors import BusError
from rvq.ranges import (
    DEFAULT_ADDRESS,
    DEFAULT_ADDRESS_6,
    check_together,
    default_range,
    parse_range,
    scope_of,
    stays_on_host,
    version_of,
)


@pytest.mark.parametrize(
    ("host", "version"),
    [("10.0.0.1", 4), ("::1", 6), ("fe80::1%eth0", 6), ("eth0", None), ("eth0:1", None), ("", None)],
)
def test_a_name_is_told_from_an_address(host: str, version: int | None) -> None:
    assert version_of(host) == version
    assert default_range(host) == (DEFAULT_ADDRESS_6 if version == 6 else DEFAULT_ADDRESS)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ff15::/95", r"/96 to /120"),
        ("ff15::/121", r"/96 to /120"),
        ("ff15::1/112", "write ff15::/112"),
        ("fd00::/112", "not inside ff00::/8"),
        ("2001:db8::7", "not inside ff00::/8"),
        ("ff02::/112", "IANA assigns"),
        ("ff05::f271:0/112", "IANA assigns"),
        ("ff10::/112", "reserved"),
        ("ff1f::/112", "reserved"),
        ("ff15::/", "not an IPv6 network"),
        ("ff15::%eth0/112", "not an IPv6 network"),
        ("ff15:::", "not an IPv6 network"),
        ("ff15", "not an IPv4 network, nor an IPv6 one"),
    ],
)
def test_a_range_that_is_of_no_use_is_refused_with_one_that_is(address: str, words: str) -> None:
    with pytest.raises(BusError, match=words) as refused:
        parse_range(address)
    assert "\n" not in str(refused.value) and any(
        hint in str(refused.value) for hint in (DEFAULT_ADDRESS, DEFAULT_ADDRESS_6, "write ")
    )


@pytest.mark.parametrize("address", ["ff15::f271:0/112", "ff15:0::F271:0/112", "ff15::f271:5"])
def test_a_range_may_be_written_in_several_ways(address: str) -> None:
    assert parse_range(address) == IPv6Network(DEFAULT_ADDRESS_6)


def test_the_default_of_ipv6_is_of_one_site_and_assigned_to_nobody() -> None:
    network = parse_range(DEFAULT_ADDRESS_6)
    assert isinstance(network, IPv6Network) and scope_of(network) == 5
    assert network.num_addresses == parse_range(DEFAULT_ADDRESS).num_addresses
    group = int(network.network_address) & 0xFFFF_FFFF
    assert group >= 0x8000_0000, "RFC 3307: group ids that hosts choose"


def test_the_scope_of_an_interface_stays_there() -> None:
    assert stays_on_host(parse_range("ff11::/112"))
    assert not any(map(stays_on_host, map(parse_range, ("ff12::/112", DEFAULT_ADDRESS_6, DEFAULT_ADDRESS))))


@pytest.mark.parametrize("interface", ["eth0", "::1", "fe80::1%eth0"])
def test_a_name_goes_with_any_range_and_an_address_with_those_of_its_kind(interface: str) -> None:
    check_together(interface, parse_range(DEFAULT_ADDRESS_6))
    if version_of(interface) == 6:
        with pytest.raises(BusError, match=r"is an IPv6 address and 239.192.0.0/16 is a range of IPv4"):
            check_together(interface, parse_range(DEFAULT_ADDRESS))
