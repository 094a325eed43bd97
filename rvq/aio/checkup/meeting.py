"""Doctors find each other and part again. Owns who is there, and staying for those who are not through with us."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import randbits

from rvq.aio.checkup.answering import Answering, Me
from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.probing import Probing
from rvq.aio.checkup.words import WORD_BYTES_MIN, Kind, Speech, Word
from rvq.aio.home import here
from rvq.bus import Bus
from rvq.transport import multicast
from rvq.transport.multicast import Interface
from rvq.wire.keys import Keys

CALL_S = 0.25
"""Between two calls."""
MORE_S = 1.0
"""How long is waited for further peers once there is one, and for the first where there should be none to wait for."""
STRANGE_S = 3.0
"""Where somebody is there whom nobody can understand, others are waited for so long."""
SILENT_S = 10.0
"""One that asks says when it is through; if it was silent for so long, it is gone, and nobody stays for it."""
STAY_S_MAX = 60.0
"""Nobody is stayed for any longer than that."""
PEERS_MAX = 64
"""And strangers: who is too much is passed over."""
BYES = 3
"""One may be lost."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another doctor, as it introduced itself."""

    id: int
    host: str
    pid: int
    place: Place
    mtu: int
    key: str
    asks: bool

    def __str__(self) -> str:
        return f"{self.host or '?'} ({self.place[0]})"


@contextmanager
def open_meeting(
    bus: Bus,
    interface: Interface,
    keys: Keys | None,
    *,
    asks: bool = True,
    named: str | None = None,
    private: bool = False,
    wall: Callable[[], float] = time.time,
) -> Iterator[Meeting]:
    """One doctor, which hears and answers from now on; a private one only who knows it. BusError if a socket cannot be
    had."""
    speech, home = Speech(bus, keys), here()
    post = Post(bus, interface, speech)
    try:
        me = Me(randbits(63) + 1, home.host, home.pid, interface.mtu, speech.key_name, asks)
        meeting = Meeting(
            me, post, multicast.place_on(interface, named, bus.port) if named is not None else None, private, wall
        )
        meeting.start()
        yield meeting
    finally:
        post.close()


class Meeting:
    """All that one doctor hears goes through here."""

    def __init__(
        self,
        me: Me,
        post: Post,
        named: Place | None = None,
        private: bool = False,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """named: somebody who is called by unicast too, where multicast may be what is broken."""
        self.me = me
        self.peers: dict[int, Peer] = {}
        self.strangers: dict[str, str] = {}
        """By address: why it is none of ours."""
        self.on_asker: Callable[[Peer], object] = lambda peer: None
        self.on_stranger: Callable[[str, str], object] = lambda address, fault: None
        self._post = post
        self._answer_at: dict[str, float] = {}
        """When a stranger may be answered again."""
        self._named = named
        self._private = private
        self._wall = wall
        self._answering = Answering(me, post, wall)
        self._probing: Probing | None = None
        self._askers: dict[int, float] = {}
        """Those who are not through with us, and when they were heard last."""
        self._calls = 0
        self._changed = asyncio.Event()

    def start(self) -> None:
        self._post.start(self._on_word, self._on_stranger)

    def probing(self, peer: Peer) -> Probing:
        """Probes to this peer. One at a time."""
        self._probing = Probing(self.me.id, peer.id, peer.place, self._post, self._wall)
        return self._probing

    async def find(self, seconds: float) -> list[Peer]:
        """Those who are there; if there are none, until one comes or that is over."""
        deadline = time.monotonic() + seconds
        settled_at = None
        while (now := time.monotonic()) < deadline and (settled_at is None or now < settled_at):
            self._call()
            await self._wait(CALL_S)
            if settled_at is None and self.peers:
                settled_at = deadline if len(self.peers) >= PEERS_MAX else time.monotonic() + MORE_S
                deadline = max(deadline, settled_at)
            if settled_at is None and self.strangers and deadline > now + STRANGE_S:
                deadline = now + STRANGE_S  # somebody is there, and will not answer
        return sorted(self.peers.values(), key=lambda peer: (peer.host, peer.place))

    async def part(self) -> None:
        """Stays until those who ask are through too."""
        deadline = time.monotonic() + STAY_S_MAX
        for _ in range(BYES):
            self._post.say(Word(Kind.BYE, self.me.id, 0, 0))
            for peer in self.peers.values():
                self._post.say(Word(Kind.BYE, self.me.id, peer.id, 0), peer.place)
        while self._askers_left() and time.monotonic() < deadline:
            await self._wait(CALL_S)

    def _askers_left(self) -> bool:
        now = time.monotonic()
        self._askers = {id: at for id, at in self._askers.items() if now - at < SILENT_S}
        return bool(self._askers)

    def _call(self) -> None:
        self._calls += 1
        call = self.me.word(Kind.CALL, number=self._calls)
        self._post.say(call, None, WORD_BYTES_MIN)
        if self._named is not None:
            self._post.say(call, self._named, WORD_BYTES_MIN)

    async def _wait(self, seconds: float) -> None:
        """Until somebody comes or goes, or that is over."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    @property
    def as_peer(self) -> Peer:
        """Ourselves, as others see us."""
        me = self.me
        return Peer(me.id, me.host, me.pid, self._post.place, me.mtu, me.key, me.asks)

    # --- what is heard --------------------------------------------------------------------------------------------

    def _on_word(self, word: Word, source: Place, way: Way, size: int) -> None:
        if word.source == self.me.id or (self._private and word.to != self.me.id):
            return
        self._answering.on_word(word, source, way, size)
        if word.kind in (Kind.CALL, Kind.HERE):
            self._meet(word, source)
        if word.kind is Kind.BYE:
            self._askers.pop(word.source, None)
            self._changed.set()
        elif word.kind in (Kind.PROBE, Kind.ASK, Kind.CALL):
            self._note_asker(word)
        elif self._probing is not None:
            self._probing.on_word(word, way, size)

    def _note_asker(self, word: Word) -> None:
        is_ours = word.to == self.me.id or (word.kind is Kind.CALL and word.source in self.peers and word.facts[-1])
        if is_ours and (word.source in self._askers or len(self._askers) < PEERS_MAX):
            self._askers[word.source] = time.monotonic()

    def _meet(self, word: Word, source: Place) -> None:
        """Whoever calls or answers is there, and is spoken to where it spoke from."""
        if word.source in self.peers or len(self.peers) >= PEERS_MAX:
            return
        if word.kind is Kind.HERE and word.to != self.me.id:
            return
        host, pid, mtu, key, asks = word.facts
        peer = self.peers[word.source] = Peer(word.source, host, pid, source, mtu, key, asks)
        if asks:
            self.on_asker(peer)
        self._changed.set()

    def _on_stranger(self, source: Place, fault: str) -> None:
        """Nobody understands the other, but who calls is to see whose key is in use here."""
        address = source[0]
        if self._private:
            return
        if address not in self.strangers:
            if len(self.strangers) >= PEERS_MAX:
                return
            self.strangers[address] = fault
            self.on_stranger(address, fault)
            self._changed.set()
        # Not each time: two who do not understand each other would go on for ever.
        if time.monotonic() >= self._answer_at.get(address, 0.0):
            self._answer_at[address] = time.monotonic() + CALL_S
            self._answering.show(source)
