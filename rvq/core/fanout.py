"""A machine on a bus without multicast: any machine, with what is for all sent to each one who listens to it.

Owns finding the others: seeds are asked, those who answer tell of others, and whoever falls silent is forgotten.
The machine inside never learns of it. What is for one goes as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from random import Random
from typing import Protocol

from rvq import limits
from rvq.core.budget import Budget
from rvq.core.machine import Address, Cut, Datagram, Fan, Machine, Route
from rvq.core.naps import Naps
from rvq.core.peers import FORMER_S, NEWCOMER_S, Peer, Peers
from rvq.core.stats import Stats
from rvq.errors import WireError
from rvq.wire.codec import decode_control, encode_control, peek
from rvq.wire.frames import ID_BITS, FrameType, PeerAddress, label_tag
from rvq.wire.frames import Peers as PeersFrame
from rvq.wire.seal import is_sealed
from rvq.wire.train import split

HERE_S = 1.0
"""Pause between words to all who are known. In large buses more, as it costs a datagram for each of them."""
HERES_PER_S = 200
SILENT_HERES = 4
"""Whoever was not heard for so many pauses is gone, or cut off."""
WORDS_S = 0.3
"""What was said to all in this time is said again to one who is new: a heartbeat and a half."""
NAP_S = 0.25
"""Called so late, we were asleep."""
UNASKED_MAX = 4
"""Channels that one says to an address that has not answered yet: so that an answer is no larger than its question."""
ALONE_S = 3.0
"""Nobody was found for so long: worth a word."""

SAID_TO_ALL = frozenset({FrameType.SENDER_ALIVE, FrameType.ALIVE, FrameType.TABLE})
"""Frames of which everybody needs the newest."""

_TYPE = 4
"""Where a frame has its type."""
_NUMBERS = {route: number for number, route in enumerate(Route)}


def channel_of(label: str | None, route: Route) -> int:
    """What stands for a multicast address: one for each route of a label, and the directory for the whole bus."""
    if route is Route.ABOUT or label is None:
        return _NUMBERS[Route.ABOUT]
    return label_tag(label) << 2 | _NUMBERS[route]


def bus_tag(name: bytes) -> int:
    """Stands for a bus in 63 bits."""
    digest = blake2b(name, digest_size=8, person=b"rvq bus").digest()
    return int.from_bytes(digest, "big") >> 64 - ID_BITS


class Places(Protocol):
    """How addresses are said to others."""

    def spell(self, address: Address) -> PeerAddress: ...
    def read(self, place: PeerAddress) -> Address | None:
        """None for where nobody of this bus can be."""
        ...


class FanoutMachine:
    """Stands between a machine and whoever drives it; on a sealed bus the seal stands around both.

    bus: what names the bus.  label: of the machine.  joined: the channels that it listens to.
    random: of it come the numbers that are asked, so it must be one that nobody can guess.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        bus: bytes,
        label: str | None,
        joined: Iterable[int],
        seeds: Iterable[Address],
        places: Places,
        random: Random,
        now: float,
        stats: Stats,
        events: list[str],
        expiry: float = 1.0,
    ) -> None:
        self.wall = machine.wall
        self._machine = machine
        self._bus = bus_tag(bus)
        self._channels = {route: channel_of(label, route) for route in Route}
        self._joined = tuple(joined)
        self._places = places
        self._random = random
        self._id = random.getrandbits(ID_BITS) or 1
        self._stats = stats
        self._events = events
        self._expiry = expiry
        self._now = now
        self._peers = Peers(random)
        self._peers.use_seeds(now, seeds)
        self._budget = Budget(random.randbytes(16), now)
        self._hearsay = float(limits.HEARSAY_BURST)
        self._hearsay_at = now
        self._out: list[Datagram] = []
        self._words: dict[int, tuple[float, bytes]] = {}
        self._here_at = now + HERE_S
        self._alone_at = now + ALONE_S
        self._naps = Naps(NAP_S)

    @property
    def peers(self) -> tuple[Address, ...]:
        """Where all are who are known."""
        return tuple(self._peers.known)

    def use_seeds(self, now: float, seeds: Iterable[Address]) -> None:
        """Names have other addresses now."""
        self._peers.use_seeds(now, seeds)

    def join(self, joined: Iterable[int]) -> None:
        """To these from now on, and to no others: all are told at once."""
        self._joined = tuple(joined)[: limits.CHANNELS_MAX]
        self._say_here()

    # --- out ------------------------------------------------------------------------------------------------------

    def take_outgoing(self) -> list[Datagram]:
        said = self._machine.take_outgoing()
        outgoing, self._out = self._out, []
        for target, datagram in said:
            if isinstance(target, Route):
                self._fan(outgoing, target, 0, datagram)
            elif type(target) is Cut:
                self._fan(outgoing, Route.DATA, target.size, datagram)
            else:
                outgoing.append((target, datagram))
        return outgoing

    def _fan(self, outgoing: list[Datagram], route: Route, size: int, datagram: bytes) -> None:
        if datagram[_TYPE] in SAID_TO_ALL:
            self._words[datagram[_TYPE]] = (self._now, datagram)
        addresses = self._peers.audience(self._channels[route])
        if addresses:
            outgoing.append((Fan(route, addresses, size), datagram))

    def _say(self, to: Address, *, asks: int = 0, answers: int = 0) -> None:
        """To one. Who is not known yet is told of nobody."""
        known = to in self._peers.known
        joined = self._joined if known or len(self._joined) <= UNASKED_MAX else ()
        self._out.append((to, self._frame(asks, answers, joined, known)))

    def _say_here(self, *, leaves: bool = False) -> None:
        everyone = self.peers
        if everyone:
            frame = self._frame(0, 0, self._joined, not leaves, leaves)
            self._out.append((Fan(Route.CONTROL, everyone), frame))

    def _frame(self, asks: int, answers: int, joined: tuple[int, ...], tells: bool, leaves: bool = False) -> bytes:
        known = tuple(map(self._places.spell, self._peers.some())) if tells else ()
        return encode_control(PeersFrame(self._id, self._bus, asks, answers, leaves, joined, known), 0)

    # --- in -------------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size. Only those who are known are let in."""
        self._notice_nap(now)
        self._now = now
        if 0 < size < len(datagram) and FrameType.PEERS in datagram[_TYPE::size]:
            for frame in split(datagram, size):
                self._receive(now, frame, source, 0)
        else:
            self._receive(now, datagram, source, size)

    def _receive(self, now: float, datagram: bytes, source: Address, size: int) -> None:
        if is_sealed(datagram):
            self._machine.receive(now, datagram, source, size)  # which says that it is none of ours
        elif datagram[_TYPE : _TYPE + 1] == bytes([FrameType.PEERS]):
            self._hear(now, datagram, source)
        elif (peer := self._peers.known.get(source)) is not None:
            peer.heard_at = now
            self._machine.receive(now, datagram, source, size)
        else:
            self._refuse(now, datagram, source)

    def _refuse(self, now: float, datagram: bytes, source: Address) -> None:
        """Not from one who is known: that may be because we slept, or the way back was cut."""
        try:
            peek(datagram)
        except WireError:
            self._stats.bad_frames += 1
            return
        self._stats.strangers += 1
        if source not in self._peers.asked and self._budget.take(now, source):
            self._peers.ask(now, source, NEWCOMER_S)

    def _hear(self, now: float, datagram: bytes, source: Address) -> None:
        try:
            frame = decode_control(datagram)
        except WireError:
            self._stats.bad_frames += 1
            return
        assert isinstance(frame, PeersFrame)
        if frame.bus != self._bus:
            self._stats.strangers += 1
            self._peers.forget(now, source)
        elif frame.asks and self._peers.is_ourselves(source, frame.asks):
            return
        elif frame.leaves:
            self._on_leaves(now, frame, source)
        else:
            new = frame.answers and self._peers.confirm(now, source, frame.answers, frame.source, frame.joined)
            self._on_here(now, frame, source)
            if new:  # only now: it lets nothing in before it has its answer
                self._welcome(now, source)

    def _on_leaves(self, now: float, frame: PeersFrame, source: Address) -> None:
        peer = self._peers.known.get(source)
        if peer is not None and peer.id == frame.source:
            self._peers.forget(now, source)

    def _on_here(self, now: float, frame: PeersFrame, source: Address) -> None:
        peer = self._peers.known.get(source)
        if peer is not None and peer.id == frame.source:
            self._peers.hear(now, peer, frame.joined)
            self._ask_about(now, frame.known)
            if frame.asks:
                self._say(source, answers=frame.asks)
            return
        if not self._budget.take(now, source):
            return
        self._peers.forget(now, source)  # another one, who has its address now
        number = self._peers.ask(now, source, NEWCOMER_S)
        # Whoever answers has been asked: if the answer did not do, both would go on for ever.
        asks = number if number is not None and not frame.answers else 0
        if asks or frame.asks:
            self._peers.put_off(now, source)
            self._say(source, asks=asks, answers=frame.asks)

    def _ask_about(self, now: float, told: Iterable[PeerAddress]) -> None:
        """Somebody tells of others. If he lies, his victims get a few small datagrams."""
        for place in told:
            address = self._places.read(place)
            if address is None or address in self._peers.known or address in self._peers.asked:
                continue
            if not self._may_ask(now):
                return
            self._peers.ask(now, address, NEWCOMER_S)

    def _may_ask(self, now: float) -> bool:
        grown = self._hearsay + (now - self._hearsay_at) * limits.HEARSAY_PER_S
        self._hearsay, self._hearsay_at = min(grown, float(limits.HEARSAY_BURST)), now
        if self._hearsay < 1.0:
            return False
        self._hearsay -= 1.0
        return True

    def _welcome(self, now: float, address: Address) -> None:
        """Tell one who is new what he would wait for."""
        self._events.append(f"found {self._name(address)}")
        self._say(address)
        if self._channels[Route.CONTROL] in self._peers.known[address].joined:
            self._out += [(address, datagram) for at, datagram in self._words.values() if now - at <= WORDS_S]

    def _name(self, address: Address) -> str:
        place = self._places.spell(address)
        return f"{place.host}:{place.port}"

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        self._notice_nap(now)
        self._now = now
        for address in self._peers.silent(now, self._silent_s):
            self._peers.forget(now, address, FORMER_S)
            self._events.append(f"no longer hears {self._name(address)}")
        if now >= self._here_at:
            self._here_at = now + self._pace * self._random.uniform(0.9, 1.1)
            self._say_here()
        for address, number in self._peers.due(now):
            self._say(address, asks=number)
        self._note_alone(now)
        if self._machine.next_deadline() <= now:
            self._machine.wake(now)
        self._naps.expect(self.next_deadline())

    @property
    def _pace(self) -> float:
        return max(HERE_S, len(self._peers.known) / HERES_PER_S)

    @property
    def _silent_s(self) -> float:
        return max(SILENT_HERES * self._pace, 3 * self._expiry)

    def _note_alone(self, now: float) -> None:
        if now >= self._alone_at and not self._peers.known:
            self._events.append("has found nobody yet: see that peers= names a host where rvq runs, on this port")
        if now >= self._alone_at or self._peers.known:
            self._alone_at = float("inf")

    def next_deadline(self) -> float:
        return min(self._machine.next_deadline(), self._peers.next_due, self._here_at, self._alone_at)

    def _notice_nap(self, now: float) -> None:
        nap = self._naps.slept(now)
        if nap:
            self._peers.forgive(nap)

    def depart(self) -> None:
        """The last word: nobody need send here any more."""
        self._say_here(leaves=True)

    def peer(self, address: Address) -> Peer | None:
        """What is known of who is there."""
        return self._peers.known.get(address)

    def check_invariants(self) -> None:
        self._machine.check_invariants()
        self._peers.check_invariants()
        assert self._words.keys() <= SAID_TO_ALL
