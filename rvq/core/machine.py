"""What a driver sees of a machine, real or simulated. Owns no state."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple, Protocol

Address = Hashable
"""Where an endpoint is answered; opaque here. A (host, port) pair under asyncio, a name in the simulator."""


class Route(Enum):
    """The two multicast addresses of a label."""

    DATA = "data"
    """Frames with messages: only receivers join it."""
    CONTROL = "control"
    """Heartbeats, tables, stamps: senders and receivers join it."""


class Cut(NamedTuple):
    """To the data address as a train: frames of this size, one behind the other, to be cut apart on the way."""

    size: int


Target = Route | Cut | Address
Datagram = tuple[Target, bytes]


class Machine(Protocol):
    """A sending or receiving end. After every call the driver sends `take_outgoing()` and arms `next_deadline()`."""

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size."""
        ...

    def wake(self, now: float) -> None: ...
    def next_deadline(self) -> float: ...
    def take_outgoing(self) -> list[Datagram]: ...
    def check_invariants(self) -> None: ...
