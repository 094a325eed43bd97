"""Who seals on this bus. Owns those who have shown that they are here now, those who are asked to, and both bounds.

Whoever is unknown is challenged: a recorded datagram is true, and yet nobody may be there any more to have said it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rvq import limits
from rvq.core.machine import Address
from rvq.core.window import Window
from rvq.wire.keys import Key
from rvq.wire.seal import Cipher, cipher_for

SILENT_S = 15.0
"""One that was silent for so long has to show again that it is here: so nobody can hold its words back for longer."""
ANSWER_S = 1.0
"""A challenge that is older is another one when it is repeated: an answer that was held back tells of old times."""
AGAIN_S = 0.02
"""Before the same challenge is repeated; then twice as long each time."""
AGAIN_S_MAX = 0.5


@dataclass(slots=True, eq=False)
class Known:
    """One start, which has shown that it was here when we asked."""

    salt: bytes
    address: Address
    floor: int
    """How far its counter was then. What it sealed before may be a recording."""
    heard_at: float
    ciphers: dict[bytes, Cipher] = field(default_factory=dict)
    ways: list[bytes] = field(default_factory=list)
    dropped: dict[bytes, int] = field(default_factory=dict)
    """How far it was under keys that were dropped: they may come back, and recordings with them."""
    dropped_before: int = 0
    """How far it was under those of which that is not remembered one by one any more: counters go on with every key."""


@dataclass(slots=True, eq=False)
class Way:
    """Its frames of one channel under one key."""

    known: Known
    cipher: Cipher
    window: Window


@dataclass(slots=True, eq=False)
class Asked:
    """A challenge that is on its way."""

    nonce: bytes
    asked_at: float
    again_at: float
    pause: float = AGAIN_S


class Sealers:
    """All that is known of the others. Ways are found by the bytes that their datagrams have in common."""

    def __init__(self, bus: bytes, silent_s: float) -> None:
        self.ways: dict[bytes, Way] = {}
        self.known: dict[bytes, Known] = {}
        self.asked: dict[tuple[bytes, Address], Asked] = {}
        """By salt and address, oldest first: who repeats another's words from elsewhere is asked himself."""
        self._bus = bus
        self.silent_s = silent_s

    def find(self, now: float, salt: bytes) -> Known | None:
        """The one with this salt, if it is known and was heard lately."""
        known = self.known.get(salt)
        return known if known is not None and now - known.heard_at <= self.silent_s else None

    def cipher(self, key: Key, salt: bytes) -> Cipher:
        known = self.known.get(salt)
        if known is None:
            return cipher_for(key, salt, self._bus)
        cipher = known.ciphers.get(key.id)
        if cipher is None:
            cipher = known.ciphers[key.id] = cipher_for(key, salt, self._bus)
        return cipher

    def has_cipher(self, key: Key, salt: bytes) -> bool:
        """Does it cost nothing to get it?"""
        known = self.known.get(salt)
        return known is not None and key.id in known.ciphers

    def floor(self, known: Known, key: Key) -> int:
        """What it sealed with that key before this number is not let in."""
        return max(known.floor, known.dropped.get(key.id, known.dropped_before))

    def open_way(self, name: bytes, known: Known, key: Key, cipher: Cipher) -> Way:
        """From its first true frame on. There are no more than channels times keys."""
        way = self.ways[name] = Way(known, cipher, Window(self.floor(known, key)))
        known.ways.append(name)
        return way

    # --- showing that one is here ---------------------------------------------------------------------------------

    def ask(self, now: float, salt: bytes, source: Address, fresh: bytes) -> bytes | None:
        """The number to challenge it with; None if it was challenged just now. `fresh`: a number never used before."""
        asked = self.asked.get((salt, source))
        if asked is not None and now < asked.again_at:
            return None
        if asked is None or now - asked.asked_at > ANSWER_S:
            self.asked.pop((salt, source), None)
            if len(self.asked) >= limits.CHALLENGES_MAX:
                del self.asked[next(iter(self.asked))]
            asked = self.asked[salt, source] = Asked(fresh, now, now)
        asked.again_at = now + asked.pause
        asked.pause = min(2 * asked.pause, AGAIN_S_MAX)
        return asked.nonce

    def is_asked(self, now: float, salt: bytes, source: Address) -> bool:
        """Is there nothing to do but wait for its answer?"""
        asked = self.asked.get((salt, source))
        return asked is not None and now < asked.again_at

    def prove(self, now: float, salt: bytes, source: Address, nonce: bytes, counter: int) -> bool:
        """It answered. True if that is what was asked, and lately: then it is known."""
        asked = self.asked.get((salt, source))
        if asked is None or asked.nonce != nonce or now - asked.asked_at > ANSWER_S:
            return False
        del self.asked[salt, source]
        self._forget_one(salt)
        if len(self.known) >= limits.SEALERS_MAX:
            self.forget_silent(now)
            if len(self.known) >= limits.SEALERS_MAX:
                return False
        self.known[salt] = Known(salt, source, counter, now)
        return True

    # --- forgetting -----------------------------------------------------------------------------------------------

    def forget_silent(self, now: float) -> None:
        for salt in [salt for salt, known in self.known.items() if now - known.heard_at > self.silent_s]:
            self._forget_one(salt)
        for place in [place for place, asked in self.asked.items() if now - asked.asked_at > 2 * ANSWER_S]:
            del self.asked[place]

    def forget_key(self, id: bytes) -> None:
        """What was sealed with it is nobody's any more. Who is known stays known: the next word has another key."""
        for known in self.known.values():
            known.ciphers.pop(id, None)
            gone = [name for name in known.ways if name.startswith(id)]
            for name in gone:
                known.ways.remove(name)
                known.dropped[id] = max(known.dropped.get(id, 0), self.ways.pop(name).window.highest)
            while len(known.dropped) > limits.KEYS_MAX:
                known.dropped_before = max(known.dropped_before, known.dropped.pop(next(iter(known.dropped))))

    def _forget_one(self, salt: bytes) -> None:
        known = self.known.pop(salt, None)
        for name in known.ways if known is not None else ():
            del self.ways[name]

    def check_invariants(self) -> None:
        assert len(self.known) <= limits.SEALERS_MAX
        assert len(self.asked) <= limits.CHALLENGES_MAX
        assert sorted(name for known in self.known.values() for name in known.ways) == sorted(self.ways)
        assert all(way.known is self.known[way.known.salt] for way in self.ways.values())
        assert all(way.window.highest >= way.known.floor for way in self.ways.values())
