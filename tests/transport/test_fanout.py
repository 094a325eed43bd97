"""The endpoint that sends to each, on real sockets."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import pytest

from rvq.bus import Bus
from rvq.core.machine import Fan, Route
from rvq.limits import FANOUT_WINDOW_BYTES, SEED_PORTS
from rvq.transport import multicast, udp
from rvq.transport.fanout import FanoutEndpoint
from tests.transport.test_udp import Inbox, on_both_loops


class Narrow:
    """A socket that takes so many datagrams at once."""

    def __init__(self, sock: socket.socket, room: int) -> None:
        self._sock = sock
        self.room = room

    def sendto(self, datagram: bytes, address: tuple[str, int]) -> int:
        if self.room == 0:
            raise BlockingIOError
        self.room -= 1
        return self._sock.sendto(datagram, address)


def test_ends_of_one_host_take_the_ports_of_the_bus_in_turn_and_then_any(port: int) -> None:
    bus = Bus(port=port, peers=[])
    ends = [FanoutEndpoint.open(bus) for _ in range(SEED_PORTS + 2)]
    ports = [end.address[1] for end in ends]
    for end in ends:
        end.close()
    assert ports[:SEED_PORTS] == list(range(port, port + SEED_PORTS))
    assert not set(ports[SEED_PORTS:]) & set(ports[:SEED_PORTS])
    assert {end.address[0] for end in ends} == {"127.0.0.1"}
    with closing(FanoutEndpoint.open(bus)) as again:
        assert again.address[1] == port


def test_no_more_is_in_flight_than_what_a_sender_to_many_can_queue(bus: Bus) -> None:
    with closing(FanoutEndpoint.open(bus)) as endpoint:
        assert 0 < endpoint.receive_buffer_bytes <= FANOUT_WINDOW_BYTES


@on_both_loops
async def test_each_gets_what_is_for_many_and_one_what_is_for_one(bus: Bus) -> None:
    with (
        closing(FanoutEndpoint.open(bus)) as sender,
        closing(FanoutEndpoint.open(bus)) as one,
        closing(FanoutEndpoint.open(bus)) as other,
    ):
        inboxes = [Inbox(one), Inbox(other)]
        Inbox(sender)
        sender.send(Fan(Route.DATA, (one.address, other.address)), b"both")
        sender.send(other.address, b"one")
        assert await inboxes[0].wait_for(1) == [b"both"]
        assert await inboxes[1].wait_for(2) == [b"both", b"one"]
        assert inboxes[0].sources == [sender.address]
        assert (sender.datagrams_out, sender.datagrams_in, sender.send_errors) == (3, 0, 0)


@on_both_loops
async def test_a_train_reaches_each_whoever_cuts_it(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [bytes([number]) * 1000 for number in range(20)]
    for forbidden in ("0", "1"):
        monkeypatch.setenv("RVQ_NO_OFFLOAD", forbidden)
        monkeypatch.setattr(multicast, "train_frames_for", lambda _: 40)
        with (
            closing(FanoutEndpoint.open(bus)) as sender,
            closing(FanoutEndpoint.open(bus)) as one,
            closing(FanoutEndpoint.open(bus)) as other,
        ):
            inboxes = [Inbox(one), Inbox(other)]
            Inbox(sender)
            sender.send(Fan(Route.DATA, (one.address, other.address), 1000), b"".join(frames))
            for inbox in inboxes:
                assert await inbox.wait_for_frames(20) == frames
            assert sender.datagrams_out == 40
            assert any(any(inbox.sizes) for inbox in inboxes) == (forbidden == "0")


@on_both_loops
async def test_what_waits_for_many_is_kept_once_and_reaches_all(bus: Bus) -> None:
    with closing(FanoutEndpoint.open(bus)) as one, closing(FanoutEndpoint.open(bus)) as other:
        inboxes = [Inbox(one), Inbox(other)]
        sock = multicast.open_fanout(bus, multicast.resolve_interface("lo"))
        sender = FanoutEndpoint(sock, (), data_target=("", 0), control_target=("", 0), frame_bytes=60_000)
        narrow = Narrow(sock, 0)
        sender._sendto = narrow.sendto
        with closing(sender):
            Inbox(sender)
            fitting = udp.BACKLOG_BYTES_MAX // 60_000
            fan = Fan(Route.DATA, (one.address, other.address) * 5)
            for number in range(fitting + 2):
                sender.send(fan, bytes([number]) * 60_000)
            assert sender.send_errors == 20, "two datagrams too many, for ten each"
            assert sender._kept == fitting
            narrow.room = 30
            assert [datagram[0] for datagram in await inboxes[0].wait_for(15)] == sorted([0, 1, 2] * 5)
            await inboxes[1].wait_for(15)
            await asyncio.sleep(0)
            assert sender._kept == fitting - 3
            assert sender._backlog_bytes == (fitting - 3) * 60_000
