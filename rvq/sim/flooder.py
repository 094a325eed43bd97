"""A stranger on a plain bus who says all that `floods` knows of, in a world. Owns when he speaks, and from where.

He has addresses of his own and speaks from no other: that nobody believes him in another's name is what is checked. To
one who never heard that other he speaks in no name but his own: there he could be the first, and nobody would know. He
ends before the world heals, since a bus without a key lets him be a member for as long as he likes.
"""

from __future__ import annotations

from collections.abc import Container
from random import Random

from rvq.core.machine import Route
from rvq.sim.clock import Clock
from rvq.sim.floods import Floods
from rvq.sim.network import Endpoint, Network
from rvq.wire.codec import MAGIC, speaker_of
from rvq.wire.frames import FrameType

MAGIC_BYTES = MAGIC.to_bytes(4, "big")
_ALIVE = (bytes([FrameType.SENDER_ALIVE]), bytes([FrameType.ALIVE]))
NAMES = ("mallory", "mallet")
"""Where he speaks from."""
PAUSE_S = 0.02
AT_ONCE_MAX = 5
"""Some hundred a second to each: as much as all others say, and not so many that worlds take for ever."""
SLOW = frozenset({"tables", "naks", "questions", "stamps"})
"""Kinds that take long to make, so one at a time."""
MEMBERS = 8
"""Of his tables and stamps, beside those who are there."""
ALL = frozenset(Floods("work", Random(0)).kinds) - {"abouts"}
"""Observers have checks of their own."""


class Flooder:
    """Begins at once, and ends at a time. kinds: what he says; all that he can, unless told."""

    def __init__(
        self, clock: Clock, network: Network, label: str, random: Random, until: float, kinds: Container[str] = ()
    ) -> None:
        self.said = 0
        self._clock, self._network, self._random = clock, network, random
        self._until = until
        self._floods = Floods(label, random, most=MEMBERS)
        self._kinds = {name: make for name, make in self._floods.kinds.items() if name in (kinds or ALL)}
        self._known: dict[Endpoint, set[int]] = {}
        """In whose name each has heard somebody."""
        self._named: set[int] = set()
        """All those who are no inventions of his."""
        network.overhear = self._hear
        network.arrived = self._arrived
        clock.after(PAUSE_S, self._act)

    def _hear(self, source: str, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            self._floods.hear(datagram, source)
            if source not in NAMES and datagram[:4] == MAGIC_BYTES:
                self._named.add(speaker_of(datagram))

    def _arrived(self, endpoint: Endpoint, source: str, datagram: bytes) -> None:
        if source not in NAMES and datagram[4:5] in _ALIVE:
            self._known.setdefault(endpoint, set()).add(speaker_of(datagram))

    def _would_be_first(self, name: str, datagram: bytes) -> bool:
        speaker = speaker_of(datagram)
        endpoint = self._network.endpoint(name)
        return speaker in self._named and (endpoint is None or speaker not in self._known.get(endpoint, ()))

    def _act(self) -> None:
        if self._clock.now >= self._until:
            return
        kind = self._random.choice(list(self._kinds))
        for _ in range(1 if kind in SLOW else self._random.randint(1, AT_ONCE_MAX)):
            self._say(kind)
        self._clock.after(self._random.uniform(0.5, 1.5) * PAUSE_S, self._act)

    def _say(self, kind: str) -> None:
        target, datagram = self._kinds[kind]()
        there = self._network.names
        for name in there if isinstance(target, Route) else [target]:
            if name in there and not self._would_be_first(str(name), datagram):
                self.said += 1
                self._network.inject(self._random.choice(NAMES), str(name), datagram)
