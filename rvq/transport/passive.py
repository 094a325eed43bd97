"""Sockets that only listen: to as many multicast addresses as one likes, which come and go.

On a sealed bus it sends challenges and their answers, without which nobody is let in; else nothing, ever.

One socket for each address, so that the kernel hands over nothing else.
"""

from __future__ import annotations

import socket
from asyncio import AbstractEventLoop
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import cast

from rvq.bus import Bus
from rvq.core.machine import Target
from rvq.errors import BusError
from rvq.transport import multicast
from rvq.transport.udp import DATAGRAMS_PER_TURN_MAX, Address, OnDatagram, OnDrained

_RECEIVE_BYTES = 65_536
"""No datagram is larger, so none is ever cut."""


class PassiveEndpoint:
    """Has what a driver needs of an endpoint. Counts what comes in."""

    def __init__(self, bus: Bus) -> None:
        self.closed = False
        self.warnings: tuple[str, ...] = ()
        """None: a listener whose buffer is small only misses something, and hears it again soon."""
        self.datagrams_in = self.receive_errors = 0
        self.refused: dict[str, str] = {}
        """Addresses that could not be listened to, and why: too many, say."""
        self._bus = bus
        self._interface = multicast.interface_of(bus)
        self._sockets: dict[str, socket.socket] = {}
        self._unicast = multicast.open_unicast(bus, self._interface) if bus.key is not None else None
        """To challenge by, and to be answered."""
        self._started: tuple[AbstractEventLoop, OnDatagram, OnDrained] | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that it listens to."""
        return tuple(self._sockets)

    def listen(self, addresses: Iterable[str]) -> None:
        """To these from now on, and to no others. One that cannot be joined is among the refused."""
        wanted = dict.fromkeys(addresses)
        for address in [address for address in self._sockets if address not in wanted]:
            self._leave(address)
        self.refused = {address: why for address, why in self.refused.items() if address in wanted}
        for address in wanted:
            if address not in self._sockets and address not in self.refused:
                try:
                    self.join(address)
                except BusError as error:
                    self.refused[address] = str(error)

    def join(self, address: str) -> None:
        """To this one too. BusError says why it cannot."""
        sock = self._sockets[address] = multicast.open_multicast(self._bus, self._interface, address)
        if self._started is not None:
            self._read(sock)

    def _leave(self, address: str) -> None:
        self._close(self._sockets.pop(address))

    def _close(self, sock: socket.socket) -> None:
        if self._started is not None and not self._started[0].is_closed():
            self._started[0].remove_reader(sock.fileno())
        sock.close()

    def start(self, loop: AbstractEventLoop, on_datagram: OnDatagram, on_drained: OnDrained) -> None:
        """From now on every datagram is handed over, and `on_drained` called after each wake-up of a socket."""
        self._started = (loop, on_datagram, on_drained)
        for sock in (*self._sockets.values(), *([self._unicast] if self._unicast else [])):
            self._read(sock)

    def send(self, target: Target, datagram: bytes) -> None:
        """By unicast, on a sealed bus. What cannot be sent is not kept: it is asked again."""
        assert self._unicast is not None, "an observer says nothing"
        with suppress(OSError):
            self._unicast.sendto(datagram, cast(Address, target))

    def close(self) -> None:
        """Twice is fine."""
        if self.closed:
            return
        self.closed = True
        for address in list(self._sockets):
            self._leave(address)
        if self._unicast is not None:
            self._close(self._unicast)

    def _read(self, sock: socket.socket) -> None:
        assert self._started is not None
        loop, on_datagram, on_drained = self._started
        loop.add_reader(sock.fileno(), partial(self._drain, sock, on_datagram, on_drained))

    def _drain(self, sock: socket.socket, on_datagram: OnDatagram, on_drained: OnDrained) -> None:
        for _ in range(DATAGRAMS_PER_TURN_MAX):
            try:
                datagram, source = sock.recvfrom(_RECEIVE_BYTES)
            except BlockingIOError:
                break
            except OSError:  # the interface went away, say; or somebody closed us
                self.receive_errors += not self.closed
                break
            self.datagrams_in += 1
            on_datagram(datagram, source)
        if not self.closed:
            on_drained()
