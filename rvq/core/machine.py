"""What a driver sees of a machine, real or simulated. Owns no state."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

Address = Hashable
"""Where an endpoint is answered; opaque here. A (host, port) pair under asyncio, a name in the simulator."""


class Route(Enum):
    """The two multicast addresses of a label, and the one of the whole bus."""

    DATA = "data"
    """Frames with messages: only receivers join it."""
    CONTROL = "control"
    """Heartbeats, tables, stamps: senders and receivers join it."""
    ABOUT = "about"
    """The bus's directory: everyone introduces itself there, and only observers join it."""


class Cut(NamedTuple):
    """To the data address as a train: frames of this size, one behind the other, to be cut apart on the way."""

    size: int


class Fan(NamedTuple):
    """To each of these, where there is no multicast: what would go to the route's address. With `size`, a train."""

    route: Route
    addresses: tuple[Address, ...]
    size: int = 0


Target = Route | Cut | Fan | Address
Datagram = tuple[Target, bytes]


class Wall:
    """What a host's wall clock shows, told by its distance from the clock that machines are driven by.

    Whoever drives a machine corrects the distance when the wall clock is set.
    """

    __slots__ = ("offset",)

    def __init__(self, offset: float) -> None:
        self.offset = offset

    def read(self, now: float) -> float:
        return now + self.offset


class Machine(Protocol):
    """A sending or receiving end. After every call the driver sends `take_outgoing()` and arms `next_deadline()`."""

    wall: Wall
    """The driver corrects its distance when the wall clock is set."""

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size."""
        ...

    def wake(self, now: float) -> None: ...
    def next_deadline(self) -> float: ...
    def take_outgoing(self) -> list[Datagram]: ...
    def check_invariants(self) -> None: ...


@runtime_checkable
class Departs(Protocol):
    """A machine that has a last word to those around it, whatever the end inside had to say."""

    def depart(self) -> None: ...
