"""The sockets of one sender or receiver, on an event loop. Owns reading them dry and sending in order; knows no frames.

Everything is sent from one socket, so the source address of a datagram is where to answer it. A datagram that cannot be
sent is counted and dropped: UDP may lose, and repair is the protocol's.
"""

from __future__ import annotations

import socket
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rvq.bus import Bus
from rvq.core.machine import Cut, Route, Target
from rvq.limits import MIB, RECEIVE_BUFFER_BYTES
from rvq.transport import multicast

Address = multicast.Place
OnDatagram = Callable[..., None]
"""Called with a datagram and its source; with the size of its frames too if it is several that were joined."""
Receive = Callable[[int], tuple[Any, ...]]
OnDrained = Callable[[], None]

DATAGRAMS_PER_TURN_MAX = 512
"""Read from one socket before other tasks have their turn; the loop comes back at once for what is left."""

LOOK_FOR_MORE_EVERY = 8
"""Where each wake-up of a socket brought one datagram, only every so many of them look for a second one. To be told
that there is none takes as long as to read one; what is there all the same wakes us again at once."""

BACKLOG_BYTES_MAX = 8 * MIB
BACKLOG_DATAGRAMS_MAX = 4096
"""Kept while the send buffer is full. More would only be stale when it leaves."""

_RECEIVE_BYTES = 65_536
"""No datagram is larger, so none is ever cut."""

_DATA, _CONTROL, _ABOUT = Route.DATA, Route.CONTROL, Route.ABOUT


def _receive_joined(recvmsg: Callable[[int, int], tuple[bytes, Any, int, Address]], most: int) -> tuple[Any, ...]:
    datagram, ancillary, _, source = recvmsg(most, multicast.JOINED_SPACE)
    return datagram, source, multicast.joined_size(ancillary) if ancillary else 0


class Endpoint:
    """One unicast socket and the label's multicast sockets. Counts what goes in and out."""

    __slots__ = (
        "_about_target",
        "_backlog",
        "_backlog_bytes",
        "_control_target",
        "_cuts",
        "_data_target",
        "_joining",
        "_kept",
        "_loop",
        "_multicast",
        "_sendto",
        "_unicast",
        "address",
        "closed",
        "datagrams_in",
        "datagrams_out",
        "frame_bytes",
        "receive_buffer_bytes",
        "receive_errors",
        "send_errors",
        "train_frames",
        "warnings",
    )

    def __init__(
        self,
        unicast: socket.socket,
        joined: Sequence[socket.socket],
        *,
        data_target: Address,
        control_target: Address,
        frame_bytes: int,
        train_frames: int = 1,
        about_target: Address | None = None,
    ) -> None:
        self._unicast = unicast
        self._multicast = tuple(joined)
        self._data_target = data_target
        self._control_target = control_target
        self._about_target = about_target or control_target
        self._sendto: Callable[[bytes, Any], int] = unicast.sendto
        self._loop: AbstractEventLoop | None = None
        self._backlog: deque[tuple[bytes, Any, int]] = deque()
        """What, to whom, and what it takes: nothing if it is there for another one already."""
        self._backlog_bytes = self._kept = 0
        self.address: Address = unicast.getsockname()
        """Where peers answer."""
        self.frame_bytes = frame_bytes
        """The largest data frame for this interface."""
        self.train_frames = train_frames
        """How many of them are sent at once."""
        offload = train_frames > 1 and multicast.may_offload()
        self._cuts = offload
        """Does the kernel cut trains apart? Until it has once refused to."""
        self._joining = {sock for sock in joined or (unicast,) if offload and multicast.join_on_receive(sock)}
        self.receive_buffer_bytes = min(multicast.receive_buffer_bytes(sock) for sock in (unicast, *joined))
        """The smallest that was granted."""
        self.warnings = self._warn()
        """Sentences for the log: what about this host will cost speed."""
        self.closed = False
        self.datagrams_in = self.datagrams_out = 0
        self.receive_errors = self.send_errors = 0

    @classmethod
    def open(cls, bus: Bus, label: str, *, data: bool) -> Endpoint:
        """Joins the label's control address, and with `data` its data address. BusError says why it cannot."""
        data_address, control_address = bus.data_address(label), bus.control_address(label)
        interface = multicast.interface_of(bus)
        sockets: list[socket.socket] = []
        try:
            sockets.append(multicast.open_unicast(bus, interface))
            for address in (control_address, data_address) if data else (control_address,):
                sockets.append(multicast.open_multicast(bus, interface, address))
            return cls(
                sockets[0],
                sockets[1:],
                data_target=(data_address, bus.port),
                control_target=(control_address, bus.port),
                frame_bytes=multicast.frame_bytes_for(interface),
                train_frames=multicast.train_frames_for(interface),
                about_target=(bus.directory_address, bus.port),
            )
        except BaseException:
            for sock in sockets:
                sock.close()
            raise

    def start(self, loop: AbstractEventLoop, on_datagram: OnDatagram, on_drained: OnDrained) -> None:
        """From now on every datagram is handed over, and `on_drained` called after each wake-up of a socket."""
        self._loop = loop
        for sock in (self._unicast, *self._multicast):
            receive = partial(_receive_joined, sock.recvmsg) if sock in self._joining else sock.recvfrom
            loop.add_reader(sock.fileno(), partial(self._drain, receive, on_datagram, on_drained, [0]))

    def send(self, target: Target, datagram: bytes) -> None:
        """Sends at once, or as soon as there is room. Never raises for what the network does."""
        address: Any = target
        if target is _DATA:
            address = self._data_target
        elif target is _CONTROL:
            address = self._control_target
        elif target is _ABOUT:
            address = self._about_target
        elif type(target) is Cut:
            if not self._send_train(target.size, datagram, self._data_target):
                for start in range(0, len(datagram), target.size):
                    self.send(_DATA, datagram[start : start + target.size])
            return
        if self._backlog:
            self._keep(datagram, address)
            return
        try:
            self._sendto(datagram, address)
        except BlockingIOError:
            self._keep(datagram, address)
        except OSError:
            self.send_errors += 1
        else:
            self.datagrams_out += 1

    def _send_train(self, size: int, datagram: bytes, address: Any) -> bool:
        """To be cut apart by the kernel. False if it is to be done here, or there is no room now."""
        if not self._cuts or self._backlog:
            return False
        try:
            self._unicast.sendmsg([datagram], multicast.cut_on_send(size), 0, address)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in multicast.CANNOT_CUT:
                self._cuts = False
                return False
            self.send_errors += 1
        else:
            self.datagrams_out += -(-len(datagram) // size)
        return True

    def close(self) -> None:
        """Sends what it still can of the backlog, without waiting. Twice is fine."""
        if self.closed:
            return
        self._send_backlog()
        self.send_errors += len(self._backlog)
        self._backlog.clear()
        self.closed = True
        for sock in (self._unicast, *self._multicast):
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(sock.fileno())
                self._loop.remove_writer(sock.fileno())
            sock.close()

    def _drain(self, receive: Receive, on_datagram: OnDatagram, on_drained: OnDrained, alone: list[int]) -> None:
        # Hot: only locals, and one call per datagram beyond the system call. `alone` has one number: how many wake-ups
        # in a row brought a single datagram, as far as was looked.
        taken = 0
        most = 1 if alone[0] % LOOK_FOR_MORE_EVERY else DATAGRAMS_PER_TURN_MAX
        while taken < most:
            try:
                received = receive(_RECEIVE_BYTES)
            except BlockingIOError:
                break
            except OSError:  # the interface went away, say; or somebody closed us
                self.receive_errors += not self.closed
                break
            taken += 1
            on_datagram(*received)
        alone[0] = alone[0] + 1 if taken == 1 else 0
        self.datagrams_in += taken
        if not self.closed:
            on_drained()

    def _keep(self, datagram: bytes, address: Any) -> None:
        full = self._kept >= BACKLOG_DATAGRAMS_MAX or self._backlog_bytes + len(datagram) > BACKLOG_BYTES_MAX
        if self._loop is None or full:
            self.send_errors += 1
            return
        if not self._backlog:
            self._loop.add_writer(self._unicast.fileno(), self._on_writable)
        self._backlog.append((datagram, address, len(datagram)))
        self._backlog_bytes += len(datagram)
        self._kept += 1

    def _on_writable(self) -> None:
        self._send_backlog()
        if not self._backlog and self._loop is not None:
            self._loop.remove_writer(self._unicast.fileno())

    def _send_backlog(self) -> None:
        backlog = self._backlog
        while backlog:
            datagram, address, size = backlog[0]
            try:
                self._sendto(datagram, address)
            except BlockingIOError:
                return
            except OSError:
                self.send_errors += 1
            else:
                self.datagrams_out += 1
            backlog.popleft()
            self._backlog_bytes -= size
            self._kept -= size > 0

    def _warn(self) -> tuple[str, ...]:
        received = multicast.buffer_warning(self.receive_buffer_bytes, RECEIVE_BUFFER_BYTES)
        sent = multicast.buffer_warning(
            multicast.send_buffer_bytes(self._unicast), multicast.SEND_BUFFER_BYTES, sending=True
        )
        return tuple(warning for warning in (received, sent) if warning)
