"""A virtual network. Owns who hears whom, how late, and what is lost on the way.

Endpoints have names, which are their addresses. Every ordered pair of them is a link with its own faults, so that
a process can be deaf, or unheard, or only unknown to one other. A datagram that has arrived waits in the endpoint's
buffer until its process reads it; what does not fit is lost, as with a socket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from zlib import crc32

from rvq.core.machine import Cut, Datagram, Fan, Route, Target
from rvq.sim.clock import Clock
from rvq.wire.frames import FrameType
from rvq.wire.seal import Channel, is_sealed
from rvq.wire.train import split

BUFFER_BYTES = 4 * 1024 * 1024
"""An endpoint's socket buffer, if nothing else is asked for."""

DATAGRAM_OVERHEAD_BYTES = 512
"""What a kernel counts for a datagram beyond its bytes."""

KIND = 4
"""Where a frame's header has its type."""

CHANNEL = 30
"""Where a sealed frame's header says which way it went."""

JOINED_BYTES_MAX = 65_000
"""Of frames that a kernel joins."""

Packet = tuple[str, bytes, int]
"""Who sent it, what, and of which size frames are if they were joined (0: they were not). A tuple: there are many."""

Pair = tuple[str, str]
Kinds = frozenset[int]
Listener = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Link:
    """How datagrams fare from one endpoint to another. Probabilities are per datagram.

    delay, jitter: the least delay, and the mean of what comes on top. A link keeps the order of its datagrams.
    loss: never arrives.  duplicate: arrives a second time, up to `late` seconds later.
    reorder: arrives up to `late` seconds later than those sent after it.
    """

    delay: float = 0.0002
    jitter: float = 0.0003
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    late: float = 0.05


class Endpoint:
    """One process's end of the network: a name, what it listens to, and a buffer of datagrams that have arrived."""

    __slots__ = (
        "_packets",
        "_waiting_bytes",
        "arrived",
        "buffer_bytes",
        "hears_data",
        "joined",
        "joins",
        "label",
        "name",
        "notify",
        "overflowed",
    )

    def __init__(self, name: str, label: str, *, hears_data: bool, notify: Listener, buffer_bytes: int) -> None:
        self.name = name
        self.label = label
        self.hears_data = hears_data
        self.notify = notify
        self.buffer_bytes = buffer_bytes
        self.overflowed = 0
        self.joined: list[tuple[str, Route]] = []
        """The multicast addresses that it listens to."""
        self.joins = hears_data and bool(crc32(name.encode()) & 1)
        """Does its kernel join frames that follow each other? Of every second endpoint it does."""
        self._packets: list[tuple[str, bytes]] = []
        self._waiting_bytes = 0
        self.arrived: Callable[[Endpoint, str, bytes], None] | None = None
        """Told of each datagram that has come so far."""

    def arrive(self, source: str, datagrams: Sequence[bytes]) -> None:
        """Datagrams reach the buffer; what has no room is lost. The process hears that there is something."""
        for datagram in datagrams:
            size = len(datagram) + DATAGRAM_OVERHEAD_BYTES
            if self._waiting_bytes + size > self.buffer_bytes:
                self.overflowed += 1
                continue
            self._waiting_bytes += size
            self._packets.append((source, datagram))
            if self.arrived is not None:
                self.arrived(self, source, datagram)
        self.notify()

    def read(self) -> list[Packet]:
        """Everything that has arrived, oldest first."""
        packets, self._packets = self._packets, []
        self._waiting_bytes = 0
        return _joined(packets) if self.joins else [(source, datagram, 0) for source, datagram in packets]

    def __len__(self) -> int:
        return len(self._packets)


def _joined(packets: list[tuple[str, bytes]]) -> list[Packet]:
    """As GRO does: data frames of one source and one size, one after the other; a shorter one is the last."""
    found: list[Packet] = []
    train: list[bytes] = []
    for (source, datagram), following in zip(packets, [*packets[1:], ("", b"")], strict=False):
        train.append(datagram)
        size = len(train[0])
        fits = following[0] == source and 0 < len(following[1]) <= size == len(datagram)
        if fits and _is_data(datagram) and _is_data(following[1]) and size * len(train) < JOINED_BYTES_MAX - size:
            continue
        found.append((source, b"".join(train), size if len(train) > 1 else 0))
        train = []
    return found


def _is_data(datagram: bytes) -> bool:
    """Of the frames of a sealed bus the network knows only which address they go to."""
    if is_sealed(datagram):
        return datagram[CHANNEL : CHANNEL + 1] == bytes([Channel.DATA])
    return datagram[KIND : KIND + 1] == bytes([FrameType.DATA])


def _cut(target: Target, datagram: bytes) -> list[bytes]:
    """The frames of a train, or the only one."""
    return split(datagram, target.size) if isinstance(target, Cut | Fan) and target.size else [datagram]


class Fault:
    """Links that are cut or clogged. `end()` undoes it; twice is fine."""

    def __init__(self, pairs: Iterable[Pair], undo: Callable[[list[Pair]], None]) -> None:
        self.pairs = list(pairs)
        self._undo = undo
        self.over = False

    def end(self) -> None:
        if not self.over:
            self.over = True
            self._undo(self.pairs)


class Network:
    """Everyone's multicast and unicast. `link` holds for all links that have none of their own."""

    def __init__(self, clock: Clock, random: Random, link: Link | None = None) -> None:
        self.kind_of: Callable[[bytes], int] = lambda datagram: datagram[KIND]
        """The type of a frame, for `sieve`. On a sealed bus no network could know it."""
        self.arrived: Callable[[Endpoint, str, bytes], None] | None = None
        """Told of each datagram that has come to an endpoint."""
        self.overhear: Callable[[str, list[bytes]], None] | None = None
        """Somebody hears everything."""
        self.link = self.plain_link = link or Link()
        self.sent = 0
        self.lost = 0
        self._clock = clock
        self._random = random
        self._luck: dict[str, Random] = {}
        """Of endpoints that have their own."""
        self._endpoints: dict[str, Endpoint] = {}
        self._links: dict[Pair, Link] = {}
        self._cuts: Counter[Pair] = Counter()
        self._clogs: Counter[Pair] = Counter()
        self._sieves: dict[Pair, list[Kinds]] = {}
        self._held: dict[Pair, list[bytes]] = {}
        self._last_arrival: dict[Pair, float] = {}
        self._faults: list[Fault] = []
        self._listeners: dict[tuple[str, Route], list[str]] = {}

    # --- who is there ---------------------------------------------------------------------------------------------

    def attach(
        self,
        name: str,
        label: str,
        *,
        hears_data: bool,
        notify: Listener,
        buffer_bytes: int = BUFFER_BYTES,
        luck: Random | None = None,
    ) -> Endpoint:
        """A new endpoint. Everyone hears its label's control address; receivers hear the data address too.

        luck: what befalls its datagrams is drawn from this, so that the others fare as if it were not there.
        """
        if name in self._endpoints:
            raise ValueError(f"there is an endpoint named {name} already")
        if luck is not None:
            self._luck[name] = luck
        endpoint = Endpoint(name, label, hears_data=hears_data, notify=notify, buffer_bytes=buffer_bytes)
        self._endpoints[name] = endpoint
        self.join(name, label, Route.CONTROL)
        if hears_data:
            self.join(name, label, Route.DATA)
        return endpoint

    def join(self, name: str, label: str, route: Route) -> None:
        """From now on this endpoint hears that address, too. Twice is once."""
        where = _where(label, route)
        endpoint = self._endpoints[name]
        if where not in endpoint.joined:
            endpoint.joined.append(where)
            self._listeners.setdefault(where, []).append(name)

    def detach(self, name: str) -> None:
        """An endpoint is gone: whatever is on its way to it is lost."""
        endpoint = self._endpoints.pop(name, None)
        for where in endpoint.joined if endpoint is not None else ():
            self._listeners[where].remove(name)

    # --- sending --------------------------------------------------------------------------------------------------

    def send(self, source: str, outgoing: list[Datagram]) -> None:
        """Everything that a machine had to say in one go. Datagrams of one go and one link travel together."""
        label = self._endpoints[source].label
        self.sent += len(outgoing)
        batches: dict[str, list[bytes]] = {}
        if self.overhear is not None:
            self.overhear(source, [one for target, datagram in outgoing for one in _cut(target, datagram)])
        for target, datagram in outgoing:
            if isinstance(target, Cut):
                frames = _cut(target, datagram)
                for name in self._listeners.get((label, Route.DATA), ()):
                    if name != source:
                        batches.setdefault(name, []).extend(frames)
            elif isinstance(target, Fan):
                frames = _cut(target, datagram)
                for address in target.addresses:
                    batches.setdefault(str(address), []).extend(frames)
            elif isinstance(target, Route):
                for name in self._listeners.get(_where(label, target), ()):
                    if name != source:
                        batches.setdefault(name, []).append(datagram)
            else:
                batches.setdefault(str(target), []).append(datagram)
        for name, datagrams in batches.items():
            self._carry((source, name), datagrams)

    @property
    def names(self) -> list[str]:
        """Of all endpoints."""
        return list(self._endpoints)

    def endpoint(self, name: str) -> Endpoint | None:
        """The one of that name."""
        return self._endpoints.get(name)

    def inject(self, source: str, name: str, datagram: bytes) -> None:
        """Somebody says this in another's name, and it comes at once."""
        self._arrive((source, name), [datagram])

    def _carry(self, pair: Pair, datagrams: list[bytes]) -> None:
        if pair in self._cuts:
            self.lost += len(datagrams)
            return
        if pair in self._sieves:
            sieved = frozenset().union(*self._sieves[pair])
            datagrams = [datagram for datagram in datagrams if self.kind_of(datagram) not in sieved]
            if not datagrams:
                return
        if pair in self._clogs:
            self._held.setdefault(pair, []).extend(datagrams)
            return
        link = self._links.get(pair, self.link)
        if link.loss >= 1.0:
            self.lost += len(datagrams)
            return
        if link.loss or link.duplicate or link.reorder:
            datagrams = self._disturb(pair, link, datagrams)
            if not datagrams:
                return
        delay = link.delay + (self._luck_of(pair).expovariate(1.0) * link.jitter if link.jitter else 0.0)
        self._arrive_in_order(pair, datagrams, self._clock.now + delay)

    def _disturb(self, pair: Pair, link: Link, datagrams: list[bytes]) -> list[bytes]:
        """Lose some, hold some back, repeat some; what is left travels in order."""
        chance = self._luck_of(pair).random
        left = []
        for datagram in datagrams:
            if chance() < link.loss:
                self.lost += 1
                continue
            if chance() < link.duplicate:
                self._arrive_late(pair, link, datagram)
            if chance() < link.reorder:
                self._arrive_late(pair, link, datagram)
            else:
                left.append(datagram)
        return left

    def _arrive_late(self, pair: Pair, link: Link, datagram: bytes) -> None:
        self._clock.after(link.delay + self._luck_of(pair).random() * link.late, self._arrive, pair, [datagram])

    def _luck_of(self, pair: Pair) -> Random:
        if self._luck:
            for name in pair:
                if name in self._luck:
                    return self._luck[name]
        return self._random

    def _arrive_in_order(self, pair: Pair, datagrams: list[bytes], when: float) -> None:
        when = max(when, self._last_arrival.get(pair, 0.0))
        self._last_arrival[pair] = when
        self._clock.at(when, self._arrive, pair, datagrams)

    def _arrive(self, pair: Pair, datagrams: list[bytes]) -> None:
        source, name = pair
        endpoint = self._endpoints.get(name)
        if endpoint is not None:
            endpoint.arrived = self.arrived
            endpoint.arrive(source, datagrams)

    # --- faults ---------------------------------------------------------------------------------------------------

    def set_link(self, sources: Iterable[str], destinations: Iterable[str], link: Link) -> None:
        """Give the links from each of the first to each of the second these properties, until `heal`."""
        for pair in _pairs(sources, destinations):
            self._links[pair] = link

    def cut(self, sources: Iterable[str], destinations: Iterable[str]) -> Fault:
        """From now on nothing gets from the first to the second. The way back stays open."""
        return self._begin(self._cuts, sources, destinations, self._reopen)

    def sieve(self, sources: Iterable[str], destinations: Iterable[str], kinds: Iterable[int]) -> Fault:
        """From now on no frames of these types get from the first to the second; all others do."""
        lost = frozenset(map(int, kinds))
        fault = Fault(_pairs(sources, destinations), lambda pairs: self._unsieve(pairs, lost))
        for pair in fault.pairs:
            self._sieves.setdefault(pair, []).append(lost)
        self._faults.append(fault)
        return fault

    def clog(self, sources: Iterable[str], destinations: Iterable[str]) -> Fault:
        """From now on what goes from the first to the second is held; when the fault ends, it arrives all at once."""
        return self._begin(self._clogs, sources, destinations, self._release)

    def partition(self, *sides: Iterable[str]) -> Fault:
        """Nobody hears anybody of another side."""
        named = [list(side) for side in sides]
        faults = [self.cut(a, b) for a in named for b in named if a is not b]
        return Fault([], lambda _: _end_all(faults))

    def heal(self) -> None:
        """End every fault; the links are as they were at the start."""
        for fault in self._faults:
            fault.end()
        self._faults.clear()
        self._links.clear()
        self.link = self.plain_link

    def _begin(
        self,
        kind: Counter[Pair],
        sources: Iterable[str],
        destinations: Iterable[str],
        undo: Callable[[list[Pair]], None],
    ) -> Fault:
        fault = Fault(_pairs(sources, destinations), undo)
        kind.update(fault.pairs)
        self._faults.append(fault)
        return fault

    def _unsieve(self, pairs: list[Pair], kinds: Kinds) -> None:
        for pair in pairs:
            self._sieves[pair].remove(kinds)
            if not self._sieves[pair]:
                del self._sieves[pair]

    def _reopen(self, pairs: list[Pair]) -> None:
        _take_one(self._cuts, pairs)

    def _release(self, pairs: list[Pair]) -> None:
        _take_one(self._clogs, pairs)
        for pair in pairs:
            if pair not in self._clogs and pair in self._held:
                self._arrive_in_order(pair, self._held.pop(pair), self._clock.now)


def _where(label: str, route: Route) -> tuple[str, Route]:
    """The multicast address of a label; the directory is the same for all."""
    return ("" if route is Route.ABOUT else label, route)


def _pairs(sources: Iterable[str], destinations: Iterable[str]) -> list[Pair]:
    destinations = list(destinations)
    return [(a, b) for a in sources for b in destinations if a != b]


def _take_one(counts: Counter[Pair], pairs: list[Pair]) -> None:
    for pair in pairs:
        counts[pair] -= 1
        if counts[pair] <= 0:
            del counts[pair]


def _end_all(faults: list[Fault]) -> None:
    for fault in faults:
        fault.end()
