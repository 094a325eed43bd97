"""A sealed bus in a world. Owns its keys, putting machines behind the seal, and the proof that nothing false got in.

The proof does not trust what it judges: every datagram is noted when a process of the world seals it, and when one is
let in somewhere it must be such a one, sealed since that machine started, and let in there for the first time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from rvq.core.machine import Address, Cut, Datagram, Fan, Machine
from rvq.core.sealing import SealingMachine
from rvq.core.stats import Stats
from rvq.sim.clock import Clock
from rvq.sim.history import Deceived, History
from rvq.wire.keys import KEY_BYTES, Key, Keys
from rvq.wire.seal import Cipher, SealKind, cipher_for, is_sealed, read_header, unseal
from rvq.wire.train import split

BUS = b"simulated"

Sealing = Callable[..., SealingMachine]


class SealedBus:
    """What all processes of a sealed world share. kind: the product's sealing machine, or one with a rule left out."""

    def __init__(self, seed: int, clock: Clock, history: History, kind: Sealing) -> None:
        self.random = Random(f"{seed} seal")
        self.keys = Keys([self.new_key()])
        self.guarded: list[Guarded] = []
        self._clock = clock
        self._history = history
        self._kind = kind
        self._sealed_at: dict[bytes, float] = {}
        self._ciphers: Callable[[bytes, bytes], Cipher | None] = lru_cache(None)(self._cipher)

    def new_key(self) -> Key:
        return Key(self.random.randbytes(KEY_BYTES))

    def put_behind(self, name: str, machine: Machine, now: float, stats: Stats, events: list[str]) -> Guarded:
        """The machine as it stands on this bus."""
        inside = Overheard(machine)
        random = Random(self.random.getrandbits(64))
        sealing = self._kind(inside, self.keys, bus=BUS, random=random, now=now, stats=stats, events=events)
        guarded = Guarded(self, name, inside, sealing)
        self.guarded.append(guarded)
        return guarded

    def use_keys(self, keys: Keys) -> None:
        """For those who start from now on."""
        self.keys = keys

    # --- what goes over the network -------------------------------------------------------------------------------

    def note(self, outgoing: list[Datagram]) -> None:
        """These were sealed now."""
        for target, datagram in outgoing:
            size = target.size if isinstance(target, Cut | Fan) else 0
            for one in split(datagram, size) if size else (datagram,):
                self._sealed_at[one] = self._clock.now

    def is_ours(self, datagram: bytes, since: float) -> bool:
        """Did a process of this world seal it, not before?"""
        at = self._sealed_at.get(datagram)
        return at is not None and at >= since

    def kind_of(self, datagram: bytes) -> int:
        """The type of the frame inside, for links that lose frames by their type; 0 if there is none."""
        if not is_sealed(datagram) or (header := read_header(datagram)).kind != SealKind.FRAME:
            return 0
        cipher = self._ciphers(header.key_id, header.salt)
        frame = unseal(cipher, datagram) if cipher is not None else None
        return frame[4] if frame else 0

    def _cipher(self, key_id: bytes, salt: bytes) -> Cipher | None:
        for keys in (self.keys, *(guarded.keys for guarded in self.guarded)):
            if key_id in keys.live:
                return cipher_for(keys.live[key_id], salt, BUS)
        return None

    def deceived(self, name: str, words: str) -> None:
        self._history.add(Deceived(self._clock.now, name, words))

    @property
    def now(self) -> float:
        return self._clock.now


class Overheard:
    """A machine of which somebody hears what it says, and counts what it is told."""

    def __init__(self, machine: Machine) -> None:
        self.wall = machine.wall
        self.said: list[Datagram] = []
        self.told = 0
        self._machine = machine

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        self.told += -(-len(datagram) // size) if size else 1
        self._machine.receive(now, datagram, source, size)

    def take_outgoing(self) -> list[Datagram]:
        self.said = self._machine.take_outgoing()
        return self.said

    def wake(self, now: float) -> None:
        self._machine.wake(now)

    def next_deadline(self) -> float:
        return self._machine.next_deadline()

    def check_invariants(self) -> None:
        self._machine.check_invariants()


class Guarded:
    """A machine behind the seal, and the proof of what it lets in."""

    def __init__(self, bus: SealedBus, name: str, inside: Overheard, sealing: SealingMachine) -> None:
        self.wall = inside.wall
        self.keys = bus.keys
        self._bus = bus
        self._name = name
        self._inside = inside
        self._sealing = sealing
        self._since = bus.now
        self._let_in: set[bytes] = set()

    @property
    def said(self) -> list[Datagram]:
        """What the machine said last, before it was sealed."""
        return self._inside.said

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        before = self._inside.told
        self._sealing.receive(now, datagram, source, size)
        taken = self._inside.told - before
        if taken:
            self._judge(split(datagram, size) if size else [datagram], taken)

    def _judge(self, frames: list[bytes], taken: int) -> None:
        good = {one for one in frames if self._bus.is_ours(one, self._since)} - self._let_in
        self._let_in |= good
        if taken > len(good):
            ours = sum(self._bus.is_ours(one, 0.0) for one in frames)
            again = sum(one in self._let_in for one in frames) - len(good)
            self._bus.deceived(
                self._name,
                f"let in {taken} of {len(frames)}, of which {len(frames) - ours} were forged, {again} were here before"
                f" and {ours - len(good) - again} are older than it",
            )

    def take_outgoing(self) -> list[Datagram]:
        outgoing = self._sealing.take_outgoing()
        self._bus.note(outgoing)
        return outgoing

    def use_keys(self, keys: Keys) -> None:
        """Its key file has changed."""
        self.keys = keys
        self._sealing.use_keys(keys)

    def wake(self, now: float) -> None:
        self._sealing.wake(now)

    def next_deadline(self) -> float:
        return self._sealing.next_deadline()

    def check_invariants(self) -> None:
        self._sealing.check_invariants()
