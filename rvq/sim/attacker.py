"""Somebody on the network without a key, who hears everything and says what he likes. Owns his tricks.

He repeats what he heard, the oldest and the dead's above all, from wherever he likes; he forges; he has a key of his
own. He cannot keep datagrams from arriving: `Network` has faults for that.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from rvq.sim.clock import Clock
from rvq.sim.network import Network
from rvq.sim.sealed import BUS
from rvq.wire.codec import encode_control
from rvq.wire.frames import Alive, Goodbye, Member, SenderGoodbye, TableFrame, Version, label_tag
from rvq.wire.keys import KEY_BYTES, Key
from rvq.wire.seal import HEADER, Channel, Sealer

HEARD_MAX = 3000
"""Datagrams that he remembers: the first ones, and others by chance."""
OLDEST = 300
PAUSE_S = 0.01
AT_ONCE_MAX = 6
NAME = "mallory"


class Attacker:
    """Begins at once, and never ends."""

    def __init__(self, clock: Clock, network: Network, label: str, random: Random) -> None:
        self.heard: list[tuple[str, bytes]] = []
        """Who said what, the oldest first as far as he still has it."""
        self.said = 0
        self._clock = clock
        self._network = network
        self._label = label
        self._random = random
        self._id = random.getrandbits(62) or 1
        self._sealer = Sealer(Key(random.randbytes(KEY_BYTES)), random.randbytes(16), BUS)
        self._tricks: list[Callable[[], bytes]] = [
            self._repeat,
            self._repeat,
            self._repeat_oldest,
            self._repeat_oldest,
            self._bend,
            self._splice,
            self._noise,
            self._count_on,
            self._plain,
            self._own_key,
        ]
        network.overhear = self._hear
        clock.after(PAUSE_S, self._act)

    def _hear(self, source: str, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            if len(self.heard) >= HEARD_MAX:
                # Not the oldest ones: those are worth most.
                del self.heard[self._random.randrange(OLDEST, HEARD_MAX)]
            self.heard.append((source, datagram))

    def _act(self) -> None:
        names = self._network.names
        if self.heard and names:
            for _ in range(self._random.randint(1, AT_ONCE_MAX)):
                datagram = self._random.choice(self._tricks)()
                self.inject(self._random.choice(names), datagram)
        self._clock.after(self._random.uniform(0.5, 1.5) * PAUSE_S, self._act)

    def inject(self, target: str, datagram: bytes, source: str | None = None) -> None:
        """From the one who said it, from himself, or from anybody, as it comes."""
        someone = self._random.choice([self._whose(datagram), self._whose(datagram), NAME, self._any()[0]])
        self.said += 1
        self._network.inject(source or someone, target, datagram)

    def repeat_all_of(self, name: str, target: str) -> None:
        """Everything that one process said, in order, as if it said it now."""
        for source, datagram in list(self.heard):
            if source == name:
                self.inject(target, datagram, name)

    def _whose(self, datagram: bytes) -> str:
        salt = datagram[12:28]
        return next((source for source, heard in reversed(self.heard) if heard[12:28] == salt), NAME)

    def _any(self) -> tuple[str, bytes]:
        return self._random.choice(self.heard)

    # --- tricks ---------------------------------------------------------------------------------------------------

    def _repeat(self) -> bytes:
        return self._any()[1]

    def _repeat_oldest(self) -> bytes:
        return self._random.choice(self.heard[:OLDEST])[1]

    def _bend(self) -> bytes:
        """One bit is another."""
        datagram = bytearray(self._repeat())
        datagram[self._random.randrange(len(datagram))] ^= 1 << self._random.randrange(8)
        return bytes(datagram)

    def _splice(self) -> bytes:
        """The head of one and the body of another."""
        return self._repeat()[: HEADER.size] + self._repeat()[HEADER.size :]

    def _count_on(self) -> bytes:
        """As if it were the next one."""
        datagram = self._repeat()
        counter = int.from_bytes(datagram[32:40], "big") + self._random.randint(1, 10_000)
        return datagram[:32] + counter.to_bytes(8, "big") + datagram[40:]

    def _noise(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 3, 31, 40, 56, 100, 1400)))

    def _own_key(self) -> bytes:
        """True, on another bus."""
        return self._sealer.seal(Channel.CONTROL, self._plain())

    def _plain(self) -> bytes:
        """As on a bus without a key: a member, a table of his own, goodbyes."""
        label, id = self._label, self._id
        version = Version(2**40, id)
        frame = self._random.choice(
            (
                Alive(id, label, "default", 1, self.said, False, False, 0, version, (), ()),
                TableFrame(id, label, "default", version, (Member(id, 1),), ()),
                Goodbye(id, label, "default"),
                SenderGoodbye(id, label),
            )
        )
        return encode_control(frame, label_tag(label))
