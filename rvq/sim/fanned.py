"""A bus without multicast in a world. Owns who the seeds are, and that everyone finds the others from there.

The seeds are a name that is looked up, as in a cloud: at any time it stands for the two processes that have been there
for the longest. So they die and are others, and whoever comes later knows nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from rvq.core.fanout import FanoutMachine, channel_of
from rvq.core.machine import Address, Datagram, Machine, Route
from rvq.core.stats import Stats
from rvq.sim.network import Network
from rvq.wire.frames import PeerAddress

BUS = b"the world's"
SEEDS = 2
LOOK_S = 2.0
"""Between looks who they are."""

Fanning = Callable[..., FanoutMachine]


class Names:
    """Endpoints of a world are called by their names."""

    def spell(self, address: Address) -> PeerAddress:
        return PeerAddress(str(address), 1)

    def read(self, place: PeerAddress) -> Address | None:
        return place.host


class FannedBus:
    """What all processes of such a world share. kind: the product's machine, or one with a rule left out."""

    def __init__(self, seed: int, network: Network, kind: Fanning) -> None:
        self._random = Random(f"{seed} fan-out")
        self._network = network
        self._kind = kind

    @property
    def seeds(self) -> list[str]:
        return self._network.names[:SEEDS]

    def put_behind(
        self, machine: Machine, label: str | None, routes: Iterable[Route], now: float, stats: Stats, events: list[str]
    ) -> Fanned:
        """The machine as it stands on this bus."""
        fanned = self._kind(
            machine,
            bus=BUS,
            label=label,
            joined=[channel_of(label, route) for route in routes],
            seeds=self.seeds,
            places=Names(),
            random=Random(self._random.getrandbits(64)),
            now=now,
            stats=stats,
            events=events,
        )
        return Fanned(self, fanned, now)


class Fanned:
    """A machine that finds the others, and looks the seeds up now and then."""

    def __init__(self, bus: FannedBus, machine: FanoutMachine, now: float) -> None:
        self.wall = machine.wall
        self.machine = machine
        self._bus = bus
        self._look_at = now + LOOK_S

    def listen(self, labels: Iterable[str]) -> None:
        """An observer's."""
        channels = [channel_of(None, Route.ABOUT), *(channel_of(label, Route.CONTROL) for label in labels)]
        self.machine.join(channels)

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        self.machine.receive(now, datagram, source, size)

    def wake(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self.machine.use_seeds(now, self._bus.seeds)
        self.machine.wake(now)

    def next_deadline(self) -> float:
        return min(self._look_at, self.machine.next_deadline())

    def take_outgoing(self) -> list[Datagram]:
        return self.machine.take_outgoing()

    def check_invariants(self) -> None:
        self.machine.check_invariants()
