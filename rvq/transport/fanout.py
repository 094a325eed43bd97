"""The one socket of an end on a bus without multicast, where what is for all is sent to each.

Owns sending to many and keeping what the kernel has no room for; to whom is said by the machine. Knows no frames.
"""

from __future__ import annotations

from typing import Any

from rvq.bus import Bus
from rvq.core.machine import Fan, Target
from rvq.limits import FANOUT_WINDOW_BYTES
from rvq.transport import multicast
from rvq.transport.udp import Endpoint


class FanoutEndpoint(Endpoint):
    """As `Endpoint`, with nothing joined."""

    __slots__ = ()

    @classmethod
    def open(cls, bus: Bus, label: str = "", *, data: bool = False) -> FanoutEndpoint:
        """On the first of the bus's ports that is free. BusError says why it cannot."""
        interface = multicast.interface_of(bus)
        sock = multicast.open_fanout(bus, interface)
        try:
            endpoint = cls(
                sock,
                (),
                data_target=("", 0),
                control_target=("", 0),
                frame_bytes=multicast.frame_bytes_for(interface),
                train_frames=multicast.train_frames_for(interface),
            )
        except BaseException:
            sock.close()
            raise
        # What receivers let be in flight: the more of them there are, the longer it queues at the sender.
        endpoint.receive_buffer_bytes = min(endpoint.receive_buffer_bytes, FANOUT_WINDOW_BYTES)
        return endpoint

    def send(self, target: Target, datagram: bytes) -> None:
        """To one, or to each of many. Never raises for what the network does."""
        if type(target) is not Fan:
            super().send(target, datagram)
        elif target.size:
            self._fan_train(target, datagram)
        else:
            for address in target.addresses:
                super().send(address, datagram)

    def _fan_train(self, target: Fan, datagram: bytes) -> None:
        """Frame by frame to those for whom the kernel does not cut it, so that what is kept for many is there once."""
        size = target.size
        left = [address for address in target.addresses if not self._send_train(size, datagram, address)]
        for start in range(0, len(datagram) if left else 0, size):
            frame = datagram[start : start + size]
            for address in left:
                super().send(address, frame)

    def _keep(self, datagram: bytes, address: Any) -> None:
        """What waits for many is there once."""
        if self._backlog and self._backlog[-1][0] is datagram:
            self._backlog.append((datagram, address, 0))
        else:
            super()._keep(datagram, address)
