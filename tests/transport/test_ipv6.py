"""Interfaces, sockets and endpoints of a bus with IPv6, in networks that the tests make."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rvq.bus import Bus
from rvq.core.machine import Cut, Route
from rvq.errors import BusError
from rvq.transport import ipv6, multicast
from rvq.transport.udp import Endpoint
from tests.conftest import ip
from tests.processes.harness import await_that
from tests.transport.test_multicast import hears_nothing, receive, sockets

InNamespace = Callable[[Callable[[], Any]], Any]

ROUTE = ("-6", "route", "add", "local", "ff15::f271:0/112", "dev", "lo", "table", "local")
FLAGS_PERMANENT, FLAGS_TENTATIVE, FLAGS_TEMPORARY, FLAGS_FAILED = 0x80, 0x40, 0x01, 0x08


@pytest.fixture(autouse=True)
def _has_ipv6() -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")


@pytest.fixture
def bus(port: int) -> Bus:
    return Bus(interface="::1", port=port)


def make_loopback() -> None:
    ip("link", "set", "lo", "up")
    ip(*ROUTE)


def make_lan() -> None:
    """In a namespace: a cable between eth0, with an address of the link and two others, and eth1, with IPv4 alone."""
    make_loopback()
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
    for name in ("eth0", "eth1"):
        ip("link", "set", name, "addrgenmode", "none")
    ip("address", "add", "10.9.0.2/24", "dev", "eth1")
    for address in ("fd09::1", "fd09::2", "fe80::9"):  # at once: nobody is asked whether it is his
        ip("address", "add", f"{address}/64", "dev", "eth0", "nodad")
    ip("link", "set", "eth0", "up")
    ip("link", "set", "eth1", "up")
    # The kernel takes note of a carrier when it comes round to it, and then gives it the route to ff00::/8.
    await_that(has_multicast, "eth0 has multicast")


def has_multicast() -> bool:
    rows = map(str.split, Path("/proc/thread-self/net/ipv6_route").read_text().splitlines())
    return any(row[0].startswith("ff00") and row[1] == "08" and row[-1] == "eth0" for row in rows)


def on_lan(bus: Bus, interface: str = "eth0", **others: Any) -> Bus:
    return replace(bus, interface=interface, **others)


def test_loopback_is_found_by_name_and_by_address(bus: Bus) -> None:
    by_address = multicast.interface_of(bus)
    assert (by_address.name, by_address.address, by_address.version) == ("lo", "::1", 6)
    assert multicast.interface_of(replace(bus, interface="lo")) == by_address
    assert multicast.resolve_interface("lo").version == 4


def test_by_name_it_is_the_address_of_the_link_and_through_routers_another(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        named = multicast.interface_of(on_lan(bus))
        assert (named.name, named.address) == ("eth0", "fe80::9%eth0")
        assert multicast.interface_of(on_lan(bus, named.address)) == named
        assert multicast.interface_of(on_lan(bus, named.address.replace("%eth0", f"%{named.index}"))) == named
        assert multicast.interface_of(on_lan(bus, ttl=2)).address in ("fd09::1", "fd09::2")
        assert multicast.interface_of(on_lan(bus, "fd09::1")).address == "fd09::1"
        with pytest.raises(BusError, match="fe80::9%eth0 is passed on by no router: name an address that is"):
            multicast.interface_of(on_lan(bus, named.address, ttl=2))

    in_namespace(scenario)


def test_an_interface_without_ipv6_is_refused(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        with pytest.raises(BusError, match="interface eth1 has no IPv6 address: turn IPv6 on there"):
            multicast.interface_of(on_lan(bus, "eth1"))
        with pytest.raises(BusError, match=r"no IPv4 address: give it one .* or use its IPv6 address \(address=ff15::"):
            multicast.resolve_interface("eth0")
        with pytest.raises(BusError, match=r"no interface 'fd09::9' on this machine: choose one of lo \(::1\), .*eth1"):
            multicast.interface_of(on_lan(bus, "fd09::9"))
        with pytest.raises(BusError, match=r"ff11::/112 never leaves a host, so nobody else hears it on eth0"):
            multicast.interface_of(on_lan(bus, address="ff11::/112"))
        ip("link", "set", "eth0", "down")
        with pytest.raises(BusError, match="interface eth0 is down: bring it up"):
            multicast.interface_of(on_lan(bus))

    in_namespace(scenario)


def rows(tmp_path: Path, *flags: int) -> Path:
    """As the kernel lists them: lo has index 1 and is on every machine."""
    path = tmp_path / "if_inet6"
    path.write_text(
        "".join(f"fd0900000000000000000000000000{n:02x} 01 40 00 {f:02x}  lo\n" for n, f in enumerate(flags))
    )
    return path


def test_an_address_that_is_still_looked_for_is_not_taken(tmp_path: Path) -> None:
    assert ipv6.find("lo", False, rows(tmp_path, FLAGS_TENTATIVE, FLAGS_PERMANENT)) == ("lo", "fd09::1")
    with pytest.raises(BusError, match=r"still being looked for on the network, .* try again in two seconds"):
        ipv6.find("lo", False, rows(tmp_path, FLAGS_TENTATIVE))
    assert ipv6.find("lo", False, rows(tmp_path, FLAGS_FAILED)) == ("lo", None)
    assert ipv6.find("lo", False, rows(tmp_path, FLAGS_TEMPORARY, 0)) == ("lo", "fd09::1")


def test_the_address_of_the_link_is_first_wherever_the_kernel_lists_it(tmp_path: Path) -> None:
    path = rows(tmp_path, 0)
    path.write_text(path.read_text() + f"fe80{7:028x} 01 40 20 80 lo\n")
    assert ipv6.find("lo", False, path) == ("lo", "fe80::7%lo")
    assert ipv6.find("lo", True, path) == ("lo", "fd09::")


def test_an_address_on_two_interfaces_wants_its_zone(tmp_path: Path) -> None:
    path = tmp_path / "if_inet6"
    path.write_text("".join(f"fe80{7:028x} {n:02x} 40 20 80 {name}\n" for n, name in ((1, "lo"), (2, "eth0"))))
    with pytest.raises(BusError, match="is on several interfaces: write one of fe80::7%lo, fe80::7%eth0"):
        ipv6.find("fe80::7", False, path)
    assert ipv6.find("fe80::7%eth0", False, path) == ("eth0", "fe80::7%eth0")


def test_without_ipv6_in_the_kernel_there_are_no_addresses(tmp_path: Path) -> None:
    assert ipv6.read_addresses(tmp_path / "none") == []
    with pytest.raises(BusError, match=r"no interface '::1' on this machine: .*lo \(no IPv6 address\)"):
        ipv6.find("::1", False, tmp_path / "none")


def test_a_kernel_without_ipv6_is_said_to_have_none(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    interface = multicast.interface_of(bus)

    def refuse(*_: object) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(multicast.socket, "socket", refuse)
    with pytest.raises(BusError, match=r"no IPv6 on this machine \(Address family .*\): use a range of IPv4"):
        multicast.open_unicast(bus, interface)


@pytest.mark.parametrize(("mtu", "frame_bytes"), [(65_536, 60_000), (1500, 1452), (1280, 1232)])
def test_headers_are_longer_than_those_of_ipv4(mtu: int, frame_bytes: int) -> None:
    here = multicast.Interface("lo", 1, "::1", mtu, flags=0x49)
    assert multicast.frame_bytes_for(here) == frame_bytes == max(0, min(60_000, mtu - here.overhead_bytes))


def test_loopback_without_a_route_says_which_one_it_needs(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        ip("link", "set", "lo", "up")
        interface = multicast.interface_of(bus)
        with pytest.raises(BusError) as refused:
            multicast.check_route(bus, interface)
        command = str(refused.value).partition("as root, ip ")[2].partition(";")[0]
        ip(*command.split())
        multicast.check_route(bus, interface)

    in_namespace(scenario)


@pytest.mark.parametrize("interface", ["::1", "eth0", "fd09::1"])
def test_everyone_who_joined_gets_a_copy_and_can_answer(bus: Bus, in_namespace: InNamespace, interface: str) -> None:
    def scenario() -> None:
        make_lan()
        own, size = on_lan(bus, interface), 60_000 if interface == "::1" else 1452
        address = own.data_address("work")
        with sockets(own, address, address, own.control_address("work")) as (unicast, *joined, other):
            unicast.sendto(b"x" * size, (address, own.port))
            for sock in joined:
                datagram, source = receive(sock)
                assert (len(datagram), source) == (size, unicast.getsockname())
            joined[0].sendto(b"answer", source)
            answer, by = receive(unicast)
            assert answer == b"answer" and hears_nothing(other)
            assert (source[3] == 0) == (interface != "eth0"), "an address of the link has its index with it"
            assert len(by) == 4

    in_namespace(scenario)


def test_a_bus_on_another_interface_is_another_bus(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        address = bus.data_address("work")
        with sockets(bus, address) as (local, on_loopback), sockets(on_lan(bus), address) as (lan, hears_lan):
            lan.sendto(b"x", (address, bus.port))
            assert receive(hears_lan)[0] == b"x" and hears_nothing(on_loopback)
            local.sendto(b"y", (address, bus.port))
            assert receive(on_loopback)[0] == b"y" and hears_nothing(hears_lan)

    in_namespace(scenario)


def test_no_privilege_is_needed(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        own = on_lan(bus)
        os.seteuid(65_534)
        try:
            with sockets(own, own.data_address("work")) as (unicast, joined):
                unicast.sendto(b"x", (own.data_address("work"), own.port))
                assert receive(joined)[0] == b"x"
        finally:
            os.seteuid(0)

    in_namespace(scenario)


def test_nothing_on_a_loopback_bus_can_leave_the_machine(bus: Bus) -> None:
    # Asked of the sockets and not tried: if it were wrong, trying would be the harm.
    own = replace(bus, ttl=9)
    interface = multicast.resolve_interface("::1", 6)
    with multicast.open_multicast(own, interface, own.data_address("work")) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS) == 0
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF) == interface.index
        assert not sock.getblocking()


def test_no_socket_of_ipv6_hears_ipv4() -> None:
    with closing(multicast._new(6)) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_on_a_lan_frames_live_as_long_as_asked_and_reach_this_host_too(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        with sockets(on_lan(bus, "fd09::1", ttl=9)) as (unicast,):
            assert unicast.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS) == 9
            assert unicast.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP) == 1
            assert unicast.getsockname()[0] == "fd09::1"

    in_namespace(scenario)


def test_what_is_kept_whole_is_not_cut_to_fit(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> list[object]:
        make_lan()
        own, sent = on_lan(bus), []
        with multicast.open_unicast(own, multicast.interface_of(own)) as sock:
            for whole in (False, True, False):
                multicast.keep_whole(sock, whole)
                try:
                    sent.append(sock.sendto(bytes(1453), (own.data_address("work"), own.port)))
                except OSError as error:
                    sent.append(error.errno)
                assert sock.sendto(bytes(1452), (own.data_address("work"), own.port)) == 1452
        return sent

    assert in_namespace(scenario) == [1453, errno.EMSGSIZE, 1453]


@pytest.mark.parametrize("scope", ["ff12::", "ff15::f271:0", "ff18::"])
def test_any_scope_that_leaves_a_host_will_do(bus: Bus, in_namespace: InNamespace, scope: str) -> None:
    def scenario() -> None:
        make_lan()
        own = on_lan(bus, address=f"{scope}/112")
        with sockets(own, own.data_address("work")) as (unicast, joined):
            unicast.sendto(b"x", (own.data_address("work"), own.port))
            assert receive(joined)[0] == b"x"

    in_namespace(scenario)


def test_a_train_is_cut_and_joined_by_the_kernel(bus: Bus, in_namespace: InNamespace) -> None:
    frames = [bytes([n]) * 1452 for n in range(40)]

    async def exchange() -> tuple[list[tuple[bytes, int]], bool]:
        own, loop = on_lan(bus), asyncio.get_running_loop()
        heard: list[tuple[bytes, int]] = []
        done = asyncio.Event()

        def take(datagram: bytes, source: object, size: int = 0) -> None:
            heard.append((datagram, size))
            if sum(len(datagram) for datagram, _ in heard) >= 1452 * 40:
                done.set()

        sending, hearing = Endpoint.open(own, "work", data=False), Endpoint.open(own, "work", data=True)
        with closing(sending), closing(hearing):
            hearing.start(loop, take, lambda: None)
            sending.send(Cut(1452), b"".join(frames))
            await asyncio.wait_for(done.wait(), 20)
            assert sending.frame_bytes == 1452 and sending.train_frames > 1
            sending.send(Route.CONTROL, b"beat")
            return heard, sending._cuts

    def scenario() -> tuple[list[tuple[bytes, int]], bool]:
        make_lan()
        return asyncio.run(exchange())

    heard, cuts = in_namespace(scenario)
    assert b"".join(datagram for datagram, _ in heard) == b"".join(frames)
    assert cuts, "it did not refuse to"
    assert {size for datagram, size in heard if len(datagram) > 1452} <= {1452}
    assert all(len(datagram) == 1452 or size for datagram, size in heard)


def test_a_port_that_something_else_holds_is_refused_by_number(bus: Bus) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as other:
        other.bind(("::", bus.port))
        with pytest.raises(BusError, match=f"port {bus.port} is taken .* choose another"):
            multicast.open_multicast(bus, multicast.interface_of(bus), bus.data_address("work"))
