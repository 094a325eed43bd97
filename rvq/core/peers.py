"""Who is there, on a bus without multicast. Owns those who are known, those who are asked, and the bounds of both.

Whoever is new is asked a number, and is known when the number comes back: so an address that somebody else made up is
sent a few small datagrams, and never what is for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from rvq import limits
from rvq.core.machine import Address
from rvq.wire.frames import ID_BITS

ASK_S = 0.05
"""Before an address is asked again; then twice as long each time."""
ASK_S_MAX = 4.0
"""Seeds are asked for ever, this far apart in the end: a host that is started later is found as soon as that."""
NEWCOMER_S = 3.0
"""How long an address is asked that somebody told of, or that spoke to us: five or six times."""
FORMER_S = 600.0
"""How long one is asked that was here and fell silent: two halves of a network meet again, whichever has the seeds."""


@dataclass(slots=True, eq=False)
class Peer:
    """One who is there: the number that was sent to its address came back."""

    id: int
    heard_at: float
    joined: frozenset[int]
    """The channels that it listens to."""


@dataclass(slots=True, eq=False)
class Asked:
    """An address at which there may be somebody."""

    number: int
    again_at: float
    until: float
    pause: float = ASK_S


@dataclass(slots=True)
class Peers:
    """All that one end knows of the others' addresses."""

    random: Random
    """Nobody may guess it, or who forges an address could answer for it."""
    known: dict[Address, Peer] = field(default_factory=dict)
    asked: dict[Address, Asked] = field(default_factory=dict)
    """Oldest first."""
    _seeds: frozenset[Address] = frozenset()
    _own: set[Address] = field(default_factory=set)
    """At which we met ourselves: seeds are the same list for all."""
    _by_id: dict[int, Address] = field(default_factory=dict)
    _audiences: dict[int, tuple[Address, ...]] = field(default_factory=dict)
    """By channel, for as long as nothing changes."""
    _told: int = 0
    next_due: float = math.inf
    """When to ask somebody, at the latest."""

    # --- asking ---------------------------------------------------------------------------------------------------

    def use_seeds(self, now: float, seeds: Iterable[Address]) -> None:
        """From now on these are asked for ever; those that are no seeds any more are asked no longer."""
        chosen = frozenset(seeds)
        for address in self._seeds - chosen:
            self.asked.pop(address, None)
        self._seeds = chosen
        for address in sorted(chosen, key=repr):
            self.ask(now, address, math.inf)

    def ask(self, now: float, address: Address, for_s: float, pause: float = ASK_S) -> int | None:
        """Is somebody there? The number to ask for; None if nobody need be asked."""
        if address in self.known or address in self._own:
            return None
        asked = self.asked.get(address)
        if asked is None:
            if len(self.asked) >= limits.PEERS_ASKED_MAX and not self._drop_oldest():
                return None
            number = self.random.getrandbits(ID_BITS) or 1
            asked = self.asked[address] = Asked(number, now, now + for_s, pause)
            self.next_due = min(self.next_due, now)
        elif for_s == math.inf:
            asked.until = for_s  # it was heard of before it became a seed
        return asked.number

    def _drop_oldest(self) -> bool:
        oldest = next((address for address in self.asked if address not in self._seeds), None)
        if oldest is not None:
            del self.asked[oldest]
        return oldest is not None

    def due(self, now: float) -> list[tuple[Address, int]]:
        """Whom to ask now, and for what number. Those who never answered are asked no longer."""
        for address in [address for address, asked in self.asked.items() if asked.until < now]:
            del self.asked[address]
        found = [(address, asked) for address, asked in self.asked.items() if asked.again_at <= now]
        for _, asked in found:
            self._put_off(now, asked)
        self.next_due = min((asked.again_at for asked in self.asked.values()), default=math.inf)
        return [(address, asked.number) for address, asked in found]

    def put_off(self, now: float, address: Address) -> None:
        """It was asked just now, out of turn."""
        if address in self.asked:
            self._put_off(now, self.asked[address])

    def _put_off(self, now: float, asked: Asked) -> None:
        # Not all seeds in step for ever, nor all who were started together.
        asked.again_at = now + asked.pause * self.random.uniform(0.8, 1.2)
        asked.pause = min(2 * asked.pause, ASK_S_MAX)

    # --- knowing --------------------------------------------------------------------------------------------------

    def is_ourselves(self, address: Address, asks: int) -> bool:
        """Does our own question come back to us from there? Then it is remembered that this is our address."""
        asked = self.asked.get(address)
        if asked is None or asked.number != asks:
            return False
        del self.asked[address]
        self._own.add(address)
        return True

    def confirm(self, now: float, address: Address, number: int, id: int, joined: Iterable[int]) -> bool:
        """The number comes back from there. False if it is not the one that was asked for, or there is no room."""
        asked = self.asked.get(address)
        if asked is None or asked.number != number or len(self.known) >= limits.PEERS_MAX:
            return False
        elsewhere = self._by_id.get(id)
        if elsewhere is not None:
            return False  # it has two addresses, and would hear everything twice
        del self.asked[address]
        self.known[address] = Peer(id, now, frozenset(joined))
        self._by_id[id] = address
        self._audiences.clear()
        return True

    def hear(self, now: float, peer: Peer, joined: Iterable[int]) -> None:
        """It says what it listens to. Nobody listens to nothing: then it did not say."""
        peer.heard_at = now
        said = frozenset(joined)
        if said and said != peer.joined:
            peer.joined = said
            self._audiences.clear()

    def forget(self, now: float, address: Address, ask_for_s: float = 0.0) -> None:
        """It is gone, or so it seems; asked again for a while, and for ever if it is a seed."""
        peer = self.known.pop(address, None)
        if peer is None:
            return
        del self._by_id[peer.id]
        self._audiences.clear()
        for_s = math.inf if address in self._seeds else ask_for_s
        if for_s:
            self.ask(now, address, for_s, ASK_S_MAX / 8)

    def silent(self, now: float, silent_s: float) -> list[Address]:
        return [address for address, peer in self.known.items() if now - peer.heard_at > silent_s]

    def forgive(self, nap: float) -> None:
        """We slept so long, and could not hear anybody."""
        for peer in self.known.values():
            peer.heard_at += nap

    # --- telling --------------------------------------------------------------------------------------------------

    def audience(self, channel: int) -> tuple[Address, ...]:
        """Everyone who listens to this."""
        found = self._audiences.get(channel)
        if found is None:
            found = tuple(address for address, peer in self.known.items() if channel in peer.joined)
            self._audiences[channel] = found
        return found

    def some(self) -> list[Address]:
        """Addresses to tell others of: so many, and the next time the next ones."""
        addresses = list(self.known)
        many = min(len(addresses), limits.PEERS_TOLD_MAX)
        begin = self._told % len(addresses) if addresses else 0
        self._told = begin + many
        return (addresses[begin:] + addresses[:begin])[:many]

    def check_invariants(self) -> None:
        assert len(self.known) <= limits.PEERS_MAX
        assert len(self.asked) <= limits.PEERS_ASKED_MAX
        assert not self.known.keys() & self.asked.keys()
        assert not self._own & (self.known.keys() | self.asked.keys())
        assert all(asked.again_at >= self.next_due for asked in self.asked.values())
        assert self._by_id == {peer.id: address for address, peer in self.known.items()}
        found = self.known.keys() | self._own | self.asked.keys()
        assert self._seeds <= found or len(self.asked) == limits.PEERS_ASKED_MAX
