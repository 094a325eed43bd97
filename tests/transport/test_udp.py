"""Endpoints on real sockets, on both event loops."""

from __future__ import annotations

import asyncio
import errno
import gc
import inspect
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

import pytest
import uvloop

from rvq.bus import Bus
from rvq.core.machine import Cut, Route
from rvq.errors import BadLabel, BusError
from rvq.limits import RECEIVE_BUFFER_BYTES
from rvq.transport import multicast, udp
from rvq.transport.udp import Endpoint
from rvq.wire.train import split
from tests.conftest import ip

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test under asyncio's own loop and under uvloop; what a callback raises fails it."""

    def run(loop_name: str, **fixtures: Any) -> None:
        faults: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: faults.append(context))
            runner.run(asyncio.wait_for(test(**fixtures), 10))
        assert not faults

    loop_name = inspect.Parameter("loop_name", inspect.Parameter.KEYWORD_ONLY)
    fixtures = inspect.signature(test).parameters.values()
    run.__signature__ = inspect.Signature([*fixtures, loop_name])  # type: ignore[attr-defined]
    run.__name__ = test.__name__
    return pytest.mark.parametrize("loop_name", LOOPS)(run)


class Inbox:
    """What an endpoint heard, wake-up by wake-up."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.datagrams: list[bytes] = []
        self.sources: list[udp.Address] = []
        self.sizes: list[int] = []
        self.wakeups: list[int] = []
        self._changed = asyncio.Event()
        endpoint.start(asyncio.get_running_loop(), self._hear, self._drained)

    def _hear(self, datagram: bytes, source: udp.Address, size: int = 0) -> None:
        self.datagrams.append(datagram)
        self.sources.append(source)
        self.sizes.append(size)

    @property
    def frames(self) -> list[bytes]:
        """With trains taken apart."""
        pairs = zip(self.datagrams, self.sizes, strict=True)
        return [frame for datagram, size in pairs for frame in split(datagram, size or len(datagram))]

    async def wait_for_frames(self, count: int) -> list[bytes]:
        while len(self.frames) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.frames

    def _drained(self) -> None:
        self.wakeups.append(len(self.datagrams))
        self._changed.set()

    async def wait_for(self, count: int) -> list[bytes]:
        while len(self.datagrams) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.datagrams


class NarrowSocket(socket.socket):
    """A socket whose send buffer has `room` for so many datagrams, whose first reads may fail, and that counts them."""

    room = 0
    reads = 0
    fault: OSError | None = None

    def sendto(self, *args: Any) -> int:
        if self.room <= 0:
            raise BlockingIOError(errno.EAGAIN, "full")
        self.room -= 1
        return super().sendto(*args)

    def recvfrom(self, *args: Any) -> tuple[bytes, Any]:
        self.reads += 1
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return super().recvfrom(*args)


def narrow_endpoint(bus: Bus) -> tuple[Endpoint, NarrowSocket]:
    """An endpoint that has joined nothing, and its unicast socket."""
    unicast = NarrowSocket(fileno=multicast.open_unicast(bus, multicast.resolve_interface("lo")).detach())
    unicast.setblocking(False)
    target = ("127.0.0.1", bus.port)
    return Endpoint(unicast, [], data_target=target, control_target=target, frame_bytes=60_000), unicast


def opened(bus: Bus, label: str = "work", *, data: bool = True) -> closing[Endpoint]:
    return closing(Endpoint.open(bus, label, data=data))


@on_both_loops
async def test_data_reaches_receivers_and_control_reaches_everyone(bus: Bus) -> None:
    with opened(bus, data=False) as sender, opened(bus) as first, opened(bus) as second:
        at_sender, at_first, at_second = Inbox(sender), Inbox(first), Inbox(second)
        sender.send(Route.DATA, b"data")
        sender.send(Route.CONTROL, b"control")
        for inbox in (at_first, at_second):
            assert sorted(await inbox.wait_for(2)) == [b"control", b"data"]
            assert inbox.sources == [sender.address] * 2
        assert await at_sender.wait_for(1) == [b"control"]


@on_both_loops
async def test_the_source_of_a_datagram_is_where_to_answer_it(bus: Bus) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        at_sender, at_receiver = Inbox(sender), Inbox(receiver)
        sender.send(Route.DATA, b"question")
        await at_receiver.wait_for(1)
        receiver.send(at_receiver.sources[0], b"answer")
        assert await at_sender.wait_for(1) == [b"answer"]
        assert at_sender.sources == [receiver.address]


@on_both_loops
async def test_a_label_does_not_wake_those_who_listen_to_another(bus: Bus) -> None:
    with opened(bus, "orders") as orders, opened(bus, "work") as work:
        at_orders, at_work = Inbox(orders), Inbox(work)
        work.send(Route.DATA, b"for work")
        await at_work.wait_for(1)
        orders.send(Route.DATA, b"for orders")
        assert await at_orders.wait_for(1) == [b"for orders"]


@on_both_loops
async def test_every_datagram_on_the_socket_is_read_in_one_wakeup(bus: Bus) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        sent = [b"%d" % number for number in range(300)]
        for datagram in sent:
            sender.send(Route.DATA, datagram)
        inbox = Inbox(receiver)
        assert await inbox.wait_for(300) == sent
        assert inbox.wakeups == [300]


@on_both_loops
async def test_a_flood_lets_others_have_their_turn(bus: Bus) -> None:
    cap = udp.DATAGRAMS_PER_TURN_MAX
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        for _ in range(2 * cap + 10):
            sender.send(Route.DATA, b"x")
        inbox = Inbox(receiver)
        await inbox.wait_for(2 * cap + 10)
        assert inbox.wakeups == [cap, 2 * cap, 2 * cap + 10]


async def hear_one_by_one(endpoint: Endpoint, inbox: Inbox, count: int) -> None:
    """Each datagram is sent when the one before was heard."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        for _ in range(count):
            peer.sendto(b"alone", endpoint.address)
            await inbox.wait_for(len(inbox.datagrams) + 1)


@on_both_loops
async def test_while_datagrams_come_one_at_a_time_few_reads_look_for_a_second_one(bus: Bus) -> None:
    endpoint, unicast = narrow_endpoint(bus)
    with closing(endpoint):
        inbox = Inbox(endpoint)
        await hear_one_by_one(endpoint, inbox, 5 * udp.LOOK_FOR_MORE_EVERY)
        assert unicast.reads == 5 * udp.LOOK_FOR_MORE_EVERY + 5


@pytest.mark.parametrize("before", [1, 3, udp.LOOK_FOR_MORE_EVERY - 1, udp.LOOK_FOR_MORE_EVERY])
@on_both_loops
async def test_a_flood_after_single_datagrams_is_soon_read_dry_and_in_order(bus: Bus, before: int) -> None:
    endpoint, _ = narrow_endpoint(bus)
    with closing(endpoint), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        inbox = Inbox(endpoint)
        await hear_one_by_one(endpoint, inbox, before)
        sent = [b"%d" % number for number in range(100)]
        for datagram in sent:
            peer.sendto(datagram, endpoint.address)
        assert (await inbox.wait_for(before + 100))[before:] == sent
        alone = -before % udp.LOOK_FOR_MORE_EVERY
        assert inbox.wakeups[before:] == [*range(before + 1, before + 1 + alone), before + 100]
        peer.sendto(b"more", endpoint.address)
        assert (await inbox.wait_for(before + 101))[-1] == b"more"


@on_both_loops
async def test_datagrams_are_counted_in_and_out(bus: Bus) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        inbox = Inbox(receiver)
        for _ in range(7):
            sender.send(Route.DATA, b"x")
        await inbox.wait_for(7)
        assert (sender.datagrams_out, sender.datagrams_in, sender.send_errors) == (7, 0, 0)
        assert (receiver.datagrams_in, receiver.datagrams_out, receiver.receive_errors) == (7, 0, 0)


@on_both_loops
async def test_the_largest_datagram_comes_whole(bus: Bus) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        inbox = Inbox(receiver)
        sender.send(Route.DATA, b"x" * 65_507)
        assert await inbox.wait_for(1) == [b"x" * 65_507]


@on_both_loops
async def test_what_finds_a_full_buffer_leaves_later_and_in_order(bus: Bus) -> None:
    endpoint, narrow = narrow_endpoint(bus)
    with closing(endpoint), opened(bus) as peer:
        Inbox(endpoint)
        inbox = Inbox(peer)
        narrow.room = 1
        for datagram in (b"at once", b"kept", b"behind it"):
            endpoint.send(peer.address, datagram)
        assert endpoint.datagrams_out == 1
        narrow.room = 10
        endpoint.send(peer.address, b"last")
        assert endpoint.datagrams_out == 1, "it must not overtake"
        assert await inbox.wait_for(4) == [b"at once", b"kept", b"behind it", b"last"]
        assert (endpoint.datagrams_out, endpoint.send_errors) == (4, 0)


@on_both_loops
async def test_an_endpoint_stops_waiting_for_room_when_nothing_is_kept(bus: Bus) -> None:
    endpoint, narrow = narrow_endpoint(bus)
    with closing(endpoint), opened(bus) as peer:
        Inbox(endpoint)
        inbox = Inbox(peer)
        endpoint.send(peer.address, b"kept")
        narrow.room = 10
        await inbox.wait_for(1)
        assert not asyncio.get_running_loop().remove_writer(narrow.fileno())


@on_both_loops
async def test_the_backlog_is_bounded_in_bytes_and_in_number(bus: Bus) -> None:
    endpoint, _ = narrow_endpoint(bus)
    with closing(endpoint):
        Inbox(endpoint)
        fitting = udp.BACKLOG_BYTES_MAX // 60_000
        for _ in range(fitting + 3):
            endpoint.send(Route.DATA, b"x" * 60_000)
        assert endpoint.send_errors == 3
    endpoint, _ = narrow_endpoint(bus)
    with closing(endpoint):
        Inbox(endpoint)
        for _ in range(udp.BACKLOG_DATAGRAMS_MAX + 4):
            endpoint.send(Route.DATA, b"x")
        assert endpoint.send_errors == 4


@on_both_loops
async def test_a_fault_in_the_backlog_is_counted_and_the_rest_still_leaves(bus: Bus) -> None:
    endpoint, narrow = narrow_endpoint(bus)
    with closing(endpoint), opened(bus) as peer:
        Inbox(endpoint)
        inbox = Inbox(peer)
        endpoint.send(("127.0.0.1", 0), b"no such port")
        endpoint.send(peer.address, b"after it")
        narrow.room = 10
        assert await inbox.wait_for(1) == [b"after it"]
        assert (endpoint.datagrams_out, endpoint.send_errors) == (1, 1)


@on_both_loops
async def test_closing_sends_what_it_can_and_counts_what_it_cannot(bus: Bus) -> None:
    endpoint, narrow = narrow_endpoint(bus)
    with opened(bus) as peer:
        Inbox(endpoint)
        inbox = Inbox(peer)
        for datagram in (b"goodbye", b"too late"):
            endpoint.send(peer.address, datagram)
        narrow.room = 1
        endpoint.close()
        assert await inbox.wait_for(1) == [b"goodbye"]
        assert (endpoint.datagrams_out, endpoint.send_errors) == (1, 1)


def test_before_it_is_started_nothing_is_kept(bus: Bus) -> None:
    endpoint, _ = narrow_endpoint(bus)
    with closing(endpoint):
        endpoint.send(Route.DATA, b"x")
        assert endpoint.send_errors == 1


@pytest.mark.parametrize(("target", "datagram"), [(("127.0.0.1", 0), b"x"), (Route.DATA, b"x" * 65_508)])
def test_what_the_network_refuses_is_counted_and_never_raised(bus: Bus, target: Any, datagram: bytes) -> None:
    with opened(bus) as endpoint:
        endpoint.send(target, datagram)
        assert (endpoint.send_errors, endpoint.datagrams_out) == (1, 0)


def test_a_peer_without_a_route_is_a_loss_like_any_other(bus: Bus, in_namespace: Callable[..., Any]) -> None:
    def scenario() -> None:
        ip("link", "set", "lo", "up")
        with opened(bus) as endpoint:
            endpoint.send(("203.0.113.7", 9), b"x")
            assert (endpoint.send_errors, endpoint.datagrams_out) == (1, 0)

    in_namespace(scenario)


@on_both_loops
async def test_a_fault_while_reading_is_counted_and_reading_goes_on(bus: Bus) -> None:
    endpoint, narrow = narrow_endpoint(bus)
    with closing(endpoint), opened(bus) as peer:
        narrow.fault = OSError(errno.ENETDOWN, "network is down")
        inbox = Inbox(endpoint)
        peer.send(endpoint.address, b"x")
        assert await inbox.wait_for(1) == [b"x"]
        assert endpoint.receive_errors == 1


@on_both_loops
async def test_an_endpoint_closed_by_what_it_hears_says_no_more(bus: Bus) -> None:
    drained: list[int] = []
    with opened(bus) as endpoint, opened(bus) as peer:
        peer.send(endpoint.address, b"first")
        peer.send(endpoint.address, b"second")
        heard = asyncio.get_running_loop().create_future()

        def close(datagram: bytes, _: udp.Address) -> None:
            endpoint.close()
            heard.set_result(datagram)  # a second one would raise

        endpoint.start(asyncio.get_running_loop(), close, lambda: drained.append(1))
        assert await heard == b"first"
        assert (drained, endpoint.receive_errors) == ([], 0)


@on_both_loops
async def test_closing_twice_is_fine_and_leaves_nothing_open(bus: Bus) -> None:
    before = len(os.listdir("/proc/self/fd"))
    endpoint = Endpoint.open(bus, "work", data=True)
    Inbox(endpoint)
    endpoint.close()
    endpoint.close()
    assert endpoint.closed
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_endpoint_outlives_its_loop_without_harm(bus: Bus) -> None:
    async def start() -> None:
        Inbox(endpoint)

    with opened(bus) as endpoint:
        asyncio.run(start())


def test_sending_on_a_closed_endpoint_is_a_loss_like_any_other(bus: Bus) -> None:
    endpoint = Endpoint.open(bus, "work", data=False)
    endpoint.close()
    endpoint.send(Route.CONTROL, b"x")
    assert endpoint.send_errors == 1


def test_an_endpoint_says_what_its_interface_gave_it(bus: Bus) -> None:
    with opened(bus) as endpoint:
        assert endpoint.frame_bytes == 60_000
        assert endpoint.address[0] == "127.0.0.1" and endpoint.address[1] > 0
        assert 0 < endpoint.receive_buffer_bytes <= RECEIVE_BUFFER_BYTES


def test_a_small_buffer_is_among_the_warnings(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multicast, "receive_buffer_bytes", lambda _: 212_992)
    monkeypatch.setattr(multicast, "send_buffer_bytes", lambda _: multicast.SEND_BUFFER_BYTES)
    with opened(bus) as endpoint:
        (warning,) = endpoint.warnings
        assert "sysctl -w net.core.rmem_max" in warning
        assert endpoint.receive_buffer_bytes == 212_992


def test_an_endpoint_that_cannot_be_opened_leaves_nothing_open(bus: Bus) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", bus.port))
        with pytest.raises(BusError, match="taken"):
            Endpoint.open(bus, "work", data=True)
    gc.collect()  # a socket left to it would warn, and warnings are errors
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_bad_label_has_no_endpoint(bus: Bus) -> None:
    with pytest.raises(BadLabel):
        Endpoint.open(bus, "", data=True)


# --- trains -------------------------------------------------------------------------------------------------------

SIZE = 1400
FRAMES = [bytes([number]) * SIZE for number in range(39)] + [b"the last one is shorter"]


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an interface with an MTU of 1,500 bytes."""
    monkeypatch.setattr(multicast, "frame_bytes_for", lambda interface: SIZE)


@on_both_loops
async def test_a_train_arrives_as_its_frames_in_order(bus: Bus, small_frames: None) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        assert sender.train_frames == receiver.train_frames == 42
        inbox = Inbox(receiver)
        for _ in range(3):
            sender.send(Cut(SIZE), b"".join(FRAMES))
        sender.send(Route.DATA, b"one more")
        assert await inbox.wait_for_frames(121) == [*FRAMES * 3, b"one more"]
        assert sender.datagrams_out == 121


async def test_the_kernel_cuts_and_joins_trains_where_it_can(bus: Bus, small_frames: None) -> None:
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        inbox = Inbox(receiver)
        sender.send(Cut(SIZE), b"".join(FRAMES))
        await inbox.wait_for_frames(40)
        if not multicast.join_on_receive(receiver._multicast[0]):
            pytest.skip("this kernel does not join")
        assert inbox.sizes == [SIZE], "it came in one piece"


async def test_without_offload_trains_are_cut_here_and_nothing_is_joined(
    bus: Bus, small_frames: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RVQ_NO_OFFLOAD", "1")
    with opened(bus, data=False) as sender, opened(bus) as receiver:
        inbox = Inbox(receiver)
        sender.send(Cut(SIZE), b"".join(FRAMES))
        assert await inbox.wait_for(40) == FRAMES
        assert set(inbox.sizes) == {0}


class NoCutting(socket.socket):
    """A socket of a kernel that does not cut trains."""

    tries = 0
    fault = errno.EINVAL

    def sendmsg(self, *args: Any) -> int:
        self.tries += 1
        raise OSError(self.fault, os.strerror(self.fault))


def endpoint_that_cannot_cut(bus: Bus, target: tuple[str, int]) -> tuple[Endpoint, NoCutting]:
    unicast = NoCutting(fileno=multicast.open_unicast(bus, multicast.resolve_interface("lo")).detach())
    unicast.setblocking(False)
    endpoint = Endpoint(unicast, [], data_target=target, control_target=target, frame_bytes=SIZE, train_frames=40)
    return endpoint, unicast


async def test_a_kernel_that_refuses_to_cut_is_asked_once(bus: Bus) -> None:
    with opened(bus, data=False) as receiver:
        inbox = Inbox(receiver)
        endpoint, unicast = endpoint_that_cannot_cut(bus, receiver.address)
        with closing(endpoint):
            for _ in range(2):
                endpoint.send(Cut(SIZE), b"".join(FRAMES))
            assert await inbox.wait_for(80) == FRAMES * 2
            assert (unicast.tries, endpoint.send_errors) == (1, 0)


async def test_a_train_into_a_dead_network_is_counted_and_the_kernel_is_asked_again(bus: Bus) -> None:
    endpoint, unicast = endpoint_that_cannot_cut(bus, ("127.0.0.1", bus.port))
    with closing(endpoint):
        unicast.fault = errno.ENETUNREACH
        for _ in range(2):
            endpoint.send(Cut(SIZE), b"".join(FRAMES))
        assert (unicast.tries, endpoint.send_errors, endpoint.datagrams_out) == (2, 2, 0)


async def test_a_train_that_finds_the_send_buffer_full_waits_in_order(bus: Bus) -> None:
    with opened(bus, data=False) as receiver:
        inbox = Inbox(receiver)
        endpoint, unicast = endpoint_that_cannot_cut(bus, receiver.address)
        unicast.fault = errno.EAGAIN
        with closing(endpoint):
            endpoint.start(asyncio.get_running_loop(), lambda *_: None, lambda: None)
            endpoint.send(Cut(SIZE), b"".join(FRAMES))
            endpoint.send(Route.DATA, b"behind it")
            assert await inbox.wait_for(41) == [*FRAMES, b"behind it"]
