"""Interfaces and sockets, on loopback and in networks that the tests make."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rvq.bus import Bus
from rvq.errors import BusError
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.transport import multicast
from rvq.transport.multicast import Interface
from tests.conftest import ip

InNamespace = Callable[[Callable[[], Any]], Any]

HERE = Interface("lo", 1, "127.0.0.1", 65_536, flags=0x49)


@contextmanager
def sockets(bus: Bus, *addresses: str) -> Iterator[list[socket.socket]]:
    """A unicast socket, and one that hears each of the addresses."""
    interface = multicast.interface_of(bus)
    with ExitStack() as stack:
        opened = [stack.enter_context(multicast.open_unicast(bus, interface))]
        for address in addresses:
            opened.append(stack.enter_context(multicast.open_multicast(bus, interface, address)))
        yield opened


def receive(sock: socket.socket) -> tuple[bytes, Any]:
    assert select.select([sock], [], [], 5)[0], "nothing came"
    return sock.recvfrom(65_536)


def hears_nothing(sock: socket.socket) -> bool:
    """Loopback delivers before sendto returns, so there is nothing to wait for."""
    return not select.select([sock], [], [], 0)[0]


def make_lan() -> None:
    """In a namespace: a cable between eth0, with two addresses, and eth1, with none."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
    ip("address", "add", "10.9.0.1/24", "dev", "eth0")
    ip("address", "add", "10.9.0.2/24", "dev", "eth0")
    ip("link", "set", "eth0", "up")
    ip("link", "set", "eth1", "up")


def test_an_interface_is_found_by_name_and_by_address() -> None:
    by_name = multicast.resolve_interface("lo")
    assert (by_name.name, by_name.address) == ("lo", "127.0.0.1")
    assert by_name.index == socket.if_nametoindex("lo")
    assert by_name.is_up and by_name.is_loopback and by_name.has_carrier and by_name.has_multicast
    assert multicast.resolve_interface("127.0.0.1") == by_name


@pytest.mark.parametrize("name", ["nope0", "203.0.113.7", "a-name-longer-than-linux-takes", "", "lo\0", "::1"])
def test_an_unknown_interface_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(BusError, match=r"no interface .* on this machine: choose one of .*lo \(127\.0\.0\.1\)"):
        multicast.resolve_interface(name)


def test_an_interface_that_is_down_is_refused(in_namespace: InNamespace) -> None:
    with pytest.raises(BusError, match="interface lo is down: bring it up"):
        in_namespace(lambda: multicast.resolve_interface("lo"))


def test_an_interface_without_address_is_refused(in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        multicast.resolve_interface("eth1")

    with pytest.raises(BusError, match="interface eth1 has no IPv4 address: give it one"):
        in_namespace(scenario)


def test_a_second_address_of_an_interface_is_where_peers_answer(in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        assert multicast.resolve_interface("eth0").address == "10.9.0.1"
        second = multicast.resolve_interface("10.9.0.2")
        assert (second.name, second.address, second.mtu) == ("eth0", "10.9.0.2", 1500)
        assert not second.is_loopback and second.has_multicast

    in_namespace(scenario)


@pytest.mark.parametrize(
    ("mtu", "frame_bytes"), [(65_536, 60_000), (9000, 8972), (1500, 1472), (541, 513), (540, 512), (68, 512)]
)
def test_a_frame_is_as_large_as_the_mtu_lets_it(mtu: int, frame_bytes: int) -> None:
    assert multicast.frame_bytes_for(replace(HERE, mtu=mtu)) == frame_bytes


def test_everyone_who_joined_gets_a_copy_and_can_answer(bus: Bus) -> None:
    address = bus.data_address("work")
    with sockets(bus, address, address) as (unicast, *joined):
        unicast.sendto(b"x" * 60_000, (address, bus.port))
        for sock in joined:
            datagram, source = receive(sock)
            assert (len(datagram), source) == (60_000, unicast.getsockname())
        joined[0].sendto(b"answer", source)
        assert receive(unicast)[0] == b"answer"


def test_a_socket_hears_no_address_but_its_own(bus: Bus) -> None:
    data, control = bus.data_address("work"), bus.control_address("work")
    with sockets(bus, data, control) as (unicast, hears_data, hears_control):
        unicast.sendto(b"heartbeat", (control, bus.port))
        assert receive(hears_control)[0] == b"heartbeat"
        assert hears_nothing(hears_data)


def test_a_bus_on_another_port_is_another_bus(bus: Bus) -> None:
    address = bus.data_address("work")
    with sockets(bus, address) as (unicast, joined), sockets(replace(bus, port=bus.port + 1), address) as (_, other):
        unicast.sendto(b"x", (address, bus.port))
        assert receive(joined)[0] == b"x"
        assert hears_nothing(other)


def test_a_bus_on_another_interface_is_another_bus(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        address = bus.data_address("work")
        with (
            sockets(bus, address) as (_, on_loopback),
            sockets(replace(bus, interface="eth0"), address) as (lan, on_lan),
        ):
            lan.sendto(b"x", (address, bus.port))
            assert receive(on_lan) == (b"x", lan.getsockname())
            assert hears_nothing(on_loopback)

    in_namespace(scenario)


@pytest.mark.parametrize("interface", ["lo", "eth0"])
def test_multicast_needs_no_route_at_all(bus: Bus, in_namespace: InNamespace, interface: str) -> None:
    def scenario() -> None:
        make_lan()
        ip("route", "flush", "table", "main")
        address = bus.data_address("work")
        with sockets(replace(bus, interface=interface), address) as (unicast, joined):
            unicast.sendto(b"x", (address, bus.port))
            assert receive(joined)[0] == b"x"

    in_namespace(scenario)


def test_nothing_on_a_loopback_bus_can_leave_the_machine(bus: Bus) -> None:
    # Asked of the sockets and not tried: if it were wrong, trying would be the harm.
    with sockets(replace(bus, ttl=9), bus.data_address("work")) as opened:
        for sock in opened:
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 0
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, 4) == socket.inet_aton("127.0.0.1")


def test_on_a_lan_frames_live_as_long_as_asked_and_reach_this_host_too(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        make_lan()
        with sockets(replace(bus, interface="eth0", ttl=9)) as (unicast,):
            assert unicast.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 9
            assert unicast.getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP) == 1
            assert unicast.getsockname()[0] == "10.9.0.1"

    in_namespace(scenario)


def test_sockets_do_not_block(bus: Bus) -> None:
    with sockets(bus, bus.data_address("work")) as opened:
        assert not any(sock.getblocking() for sock in opened)


def test_a_port_that_something_else_holds_is_refused_by_number(bus: Bus) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", bus.port))
        with pytest.raises(BusError, match=f"port {bus.port} is taken .* choose another"):
            multicast.open_multicast(bus, HERE, bus.data_address("work"))


def test_an_interface_that_is_gone_by_now_is_refused(bus: Bus) -> None:
    gone = replace(HERE, name="gone0", index=99_999)
    with pytest.raises(BusError, match="interface gone0 is no longer on this machine: choose another"):
        multicast.open_multicast(bus, gone, bus.data_address("work"))


def test_an_address_that_is_gone_by_now_is_refused(bus: Bus) -> None:
    with pytest.raises(BusError, match=r"address 203\.0\.113\.7 is no longer on lo"):
        multicast.open_unicast(bus, replace(HERE, address="203.0.113.7"))


def test_no_way_to_send_is_refused_with_what_to_do(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> None:
        ip("link", "set", "lo", "up")
        interface = multicast.resolve_interface("lo")
        multicast.check_route(bus, interface)
        ip("link", "set", "lo", "down")
        multicast.check_route(bus, interface)

    with pytest.raises(BusError, match=r"no multicast .* by interface lo \(Network is unreachable\): .*ip route add"):
        in_namespace(scenario)


def test_a_door_is_found_by_address_and_shared(bus: Bus) -> None:
    with (
        multicast.open_multicast(bus, HERE, bus.doctors_address),
        multicast.open_door(bus, HERE) as first,
        multicast.open_door(bus, HERE) as last,
        multicast.open_unicast(bus, HERE) as calling,
    ):
        calling.sendto(b"is anybody there", (HERE.address, bus.port))
        assert receive(last)[0] == b"is anybody there" and hears_nothing(first)


def test_what_is_kept_whole_is_not_cut_to_fit(bus: Bus, in_namespace: InNamespace) -> None:
    def scenario() -> list[object]:
        make_lan()
        interface = multicast.resolve_interface("eth0")
        to, sent = (bus.data_address("work"), bus.port), []
        with multicast.open_unicast(bus, interface) as sock:
            for whole in (False, True, False):
                multicast.keep_whole(sock, whole)
                try:
                    sent.append(sock.sendto(bytes(1473), to))
                except OSError as error:
                    sent.append(error.errno)
                assert sock.sendto(bytes(1472), to) == 1472
        return sent

    assert in_namespace(scenario) == [1473, errno.EMSGSIZE, 1473]


def test_a_socket_that_could_not_be_set_up_is_closed(bus: Bus) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(BusError):
        multicast.open_unicast(bus, replace(HERE, address="203.0.113.7"))
    with pytest.raises(BusError):
        multicast.open_multicast(bus, replace(HERE, index=99_999), bus.data_address("work"))
    multicast.check_route(bus, HERE)
    assert len(os.listdir("/proc/self/fd")) == before


def test_buffers_are_asked_for_and_read_back(bus: Bus) -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    with sockets(bus, bus.data_address("work")) as (unicast, joined):
        for sock in (unicast, joined):
            assert multicast.receive_buffer_bytes(sock) in (RECEIVE_BUFFER_BYTES, min(limit, RECEIVE_BUFFER_BYTES))
        assert multicast.send_buffer_bytes(unicast) > 100_000


def test_without_privilege_the_kernels_limit_is_what_one_gets(bus: Bus) -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(65_534)
    try:
        with sockets(bus, bus.data_address("work")) as (_, joined):
            got = multicast.receive_buffer_bytes(joined)
    finally:
        if privileged:
            os.seteuid(0)
    assert got == min(limit, RECEIVE_BUFFER_BYTES)


def test_a_small_buffer_is_warned_of_with_the_line_that_mends_it() -> None:
    warning = multicast.buffer_warning(212_992, 8_388_608)
    assert warning is not None
    assert "212,992 bytes of 8,388,608 asked" in warning
    assert "sysctl -w net.core.rmem_max=8388608" in warning
    assert "sysctl -w net.core.wmem_max=2097152" in str(multicast.buffer_warning(1, 2_097_152, sending=True))


def test_a_buffer_as_large_as_asked_is_not_warned_of() -> None:
    assert multicast.buffer_warning(8_388_608, 8_388_608) is None
