"""A machine on a sealed bus: any machine, with all that goes out sealed, and only what is true and fresh let in.

Owns opening, sealing, and the challenge by which a start shows that it is here now. Composes the sealer, those who are
known and what strangers may cost; the machine inside never learns of it.
"""

from __future__ import annotations

from random import Random

from rvq.core.budget import Budget
from rvq.core.machine import Address, Cut, Datagram, Departs, Fan, Machine, Route, Target
from rvq.core.sealers import SILENT_S, Known, Sealers, Way
from rvq.core.stats import Stats
from rvq.core.strangers import OTHER_KEY, PLAIN_HERE_SEALED, Strangers
from rvq.errors import WireError
from rvq.wire.codec import peek
from rvq.wire.frames import FrameType
from rvq.wire.keys import Keys
from rvq.wire.seal import (
    NONCE_BYTES,
    NOTHING_ASKED,
    OVERHEAD,
    SALT,
    SALT_BYTES,
    WAY,
    Channel,
    Header,
    Proof,
    Sealer,
    SealKind,
    pack_proof,
    read_header,
    read_proof,
    unseal,
    unseal_train,
)
from rvq.wire.train import split

WORDS_S = 0.3
"""What was said to all in this time is said again to one who could not understand it then: a heartbeat and a half."""
SWEEP_S = 5.0
"""Between looks for those who are silent."""

SAID_TO_ALL = frozenset({bytes([FrameType.SENDER_ALIVE]), bytes([FrameType.ALIVE]), bytes([FrameType.TABLE])})
"""Types of frames of which everybody needs the newest."""

_COUNTER = slice(32, 40)
_TYPE = slice(4, 5)
"""Where a plain frame has its type."""
_ROUTES = {Route.DATA: int(Channel.DATA), Route.CONTROL: int(Channel.CONTROL)} | {
    route: Channel.UNICAST + place
    for place, route in enumerate((route for route in Route if route not in (Route.DATA, Route.CONTROL)), 1)
}
"""Each is a queue of its own on the way."""


class SealingMachine:
    """Stands between a machine and whoever drives it.

    bus: what names the bus: the same key on another bus makes other subkeys.
    random: of it come the salt and the challenges, so it must be one that nobody can guess.
    """

    def __init__(
        self,
        machine: Machine,
        keys: Keys,
        *,
        bus: bytes,
        random: Random,
        now: float,
        stats: Stats,
        events: list[str],
        expiry: float = 1.0,
    ) -> None:
        self.wall = machine.wall
        self._machine = machine
        self._keys = keys
        self._random = random
        self._stats = stats
        self._events = events
        self._now = now
        self._sealer = Sealer(keys.in_use, random.randbytes(SALT_BYTES), bus)
        self._sealers = Sealers(bus, max(SILENT_S, 5 * expiry))
        self._ways = self._sealers.ways
        self._strangers = Strangers(stats, events)
        self._budget = Budget(random.randbytes(SALT_BYTES), now)
        self._out: list[Datagram] = []
        self._words: dict[bytes, tuple[float, bytes]] = {}
        """What was said to all last, by its type; the oldest first."""
        self._sweep_at = now + SWEEP_S

    # --- out ------------------------------------------------------------------------------------------------------

    def take_outgoing(self) -> list[Datagram]:
        said = self._machine.take_outgoing()
        outgoing, self._out = self._out, []
        for target, datagram in said:
            if datagram[_TYPE] in SAID_TO_ALL:
                self._note_words(datagram)
            outgoing.append(self._seal(target, datagram))
        return outgoing

    def _seal(self, target: Target, datagram: bytes) -> Datagram:
        if type(target) is Cut:
            return Cut(target.size + OVERHEAD), self._sealer.seal_train(Channel.DATA, datagram, target.size)
        if type(target) is Fan:  # sealed once, and sent to each
            if target.size:
                train = self._sealer.seal_train(Channel.DATA, datagram, target.size)
                return target._replace(size=target.size + OVERHEAD), train
            return target, self._sealer.seal(_ROUTES[target.route], datagram)
        channel = _ROUTES.get(target, Channel.UNICAST) if isinstance(target, Route) else Channel.UNICAST
        return target, self._sealer.seal(channel, datagram)

    def _note_words(self, datagram: bytes) -> None:
        kind = datagram[_TYPE]
        self._words.pop(kind, None)
        self._words[kind] = (self._now, datagram)

    # --- in -------------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size. What is not true and fresh is counted."""
        self._now = now
        if size and size < len(datagram):
            self._receive_train(now, datagram, source, size)
            return
        frame = self._open(now, datagram, source)
        if frame is not None:
            self._machine.receive(now, frame, source)

    def _receive_train(self, now: float, datagram: bytes, source: Address, size: int) -> None:
        """As a whole if it is what one start said in one go; else frame by frame. All good ones are a train again."""
        opened = self._open_train(now, datagram, source, size)
        if opened is not None:
            self._machine.receive(now, b"".join(opened), source, size - OVERHEAD)
            return
        sealed = split(datagram, size)
        opened = [frame for one in sealed if (frame := self._open(now, one, source)) is not None]
        if len(opened) == len(sealed):
            self._machine.receive(now, b"".join(opened), source, size - OVERHEAD)
        else:
            for frame in opened:
                self._machine.receive(now, frame, source)

    def _open_train(self, now: float, datagram: bytes, source: Address, size: int) -> list[bytes] | None:
        way = self._ways.get(datagram[WAY])
        if way is None or not self._is_at_home(now, way.known, source):
            return None
        first = int.from_bytes(datagram[_COUNTER], "big")
        if first <= way.window.highest:
            return None
        opened = unseal_train(way.cipher, datagram, size, first)
        if opened is not None:
            way.window.take_run(first, len(opened))
            way.known.heard_at = now
        return opened

    def _is_at_home(self, now: float, known: Known, source: Address) -> bool:
        """Does it speak from where it did, and lately?"""
        return known.address == source and now - known.heard_at <= self._sealers.silent_s

    def _open(self, now: float, datagram: bytes, source: Address) -> bytes | None:
        """The frame, if it is one and may be let in."""
        way = self._ways.get(datagram[WAY])
        if way is None or not self._is_at_home(now, way.known, source):
            return self._meet(now, datagram, source)
        counter = int.from_bytes(datagram[_COUNTER], "big")
        if not self._is_new(way, counter):
            self._stats.replayed += 1
            return None
        frame = unseal(way.cipher, datagram)
        if frame is None:
            self._stats.bad_frames += 1
            return None
        way.window.take(counter)
        way.known.heard_at = now
        return frame

    def _is_new(self, way: Way, counter: int) -> bool:
        return way.window.is_new(counter)

    # --- whoever is not known, and what is not a frame ------------------------------------------------------------

    def _meet(self, now: float, datagram: bytes, source: Address) -> bytes | None:
        """The first of its kind from there: what is true is let in from those who are known; others are challenged."""
        if datagram[SALT] == self._sealer.salt:
            return None  # our own words, which multicast brings back to us, or somebody else does
        try:
            header = read_header(datagram)
        except WireError:
            self._note_plain(datagram, source)
            return None
        key = self._keys.live.get(header.key_id)
        if key is None:
            self._strangers.note(source, OTHER_KEY.format(header.key_id.hex()))
            return None
        known = self._sealers.find(now, header.salt)
        if known is not None and known.address != source:
            self._stats.replayed += 1  # whoever is here does not speak from elsewhere
            return None
        if header.kind == SealKind.FRAME and known is None and self._sealers.is_asked(now, header.salt, source):
            return None
        is_cheap = header.kind == SealKind.FRAME and self._sealers.has_cipher(key, header.salt)
        if not is_cheap and not self._budget.take(now, source):
            return None
        cipher = self._sealers.cipher(key, header.salt)
        body = unseal(cipher, datagram)
        if body is None:
            self._stats.bad_frames += 1
        elif header.kind == SealKind.CHALLENGE:
            self._on_challenge(now, header, body, source)
        elif header.kind == SealKind.ANSWER:
            self._on_answer(now, header, body, source)
        elif known is None:
            self._challenge(now, header.salt, source)
        elif header.counter <= self._sealers.floor(known, key):
            self._stats.replayed += 1
        else:
            way = self._sealers.open_way(datagram[WAY], known, key, cipher)
            way.window.take(header.counter)
            known.heard_at = now
            return body
        return None

    def _note_plain(self, datagram: bytes, source: Address) -> None:
        try:
            peek(datagram)
        except WireError:
            self._stats.bad_frames += 1
        else:
            self._strangers.note(source, PLAIN_HERE_SEALED)

    def _challenge(self, now: float, salt: bytes, source: Address) -> None:
        nonce = self._sealers.ask(now, salt, source, self._random.randbytes(NONCE_BYTES))
        if nonce is not None:
            self._out.append((source, self._sealer.seal(Channel.UNICAST, nonce, SealKind.CHALLENGE)))

    def _on_challenge(self, now: float, header: Header, body: bytes, source: Address) -> None:
        """Answer it. Whoever asks and is not known is asked in turn, so that both are known after three datagrams."""
        if len(body) != NONCE_BYTES:
            self._stats.bad_frames += 1
            return
        asks = None
        if self._sealers.find(now, header.salt) is not None:
            self._say_again(now, source)
        else:
            asks = self._sealers.ask(now, header.salt, source, self._random.randbytes(NONCE_BYTES))
        self._answer(body, asks or NOTHING_ASKED, source)

    def _on_answer(self, now: float, header: Header, body: bytes, source: Address) -> None:
        try:
            proof = read_proof(body)
        except WireError:
            self._stats.bad_frames += 1
            return
        if self._sealers.prove(now, header.salt, source, proof.nonce, proof.counter):
            if proof.asks != NOTHING_ASKED:
                self._answer(proof.asks, NOTHING_ASKED, source)
            self._say_again(now, source)

    def _answer(self, nonce: bytes, asks: bytes, source: Address) -> None:
        proof = pack_proof(Proof(nonce, self._sealer.counter, asks))
        self._out.append((source, self._sealer.seal(Channel.UNICAST, proof, SealKind.ANSWER)))

    def _say_again(self, now: float, source: Address) -> None:
        """What one who is new here could not understand, or did not dare to: so that nobody waits for a heartbeat.

        Sealed anew, and not older than frames become on a bad network.
        """
        for said_at, datagram in self._words.values():
            if now - said_at <= WORDS_S:
                self._out.append((source, self._sealer.seal(Channel.UNICAST, datagram)))

    def end_sealing(self) -> None:
        """Somebody else goes on where we are: not one number may be used by both."""
        self._sealer.end()

    def depart(self) -> None:
        """Whatever stands between us and the end may have a last word."""
        if isinstance(self._machine, Departs):
            self._machine.depart()

    # --- time and keys --------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        self._now = now
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            self._sealers.forget_silent(now)
        self._machine.wake(now)

    def next_deadline(self) -> float:
        return self._machine.next_deadline()

    def use_keys(self, keys: Keys) -> None:
        """From now on these are live, and that one is in use. Who is known stays known."""
        if keys == self._keys:
            return
        for id in self._keys.live.keys() - keys.live.keys():
            self._sealers.forget_key(id)
        self._keys = keys
        self._sealer.use(keys.in_use)
        live = ", ".join(key.name for key in keys.live.values())
        self._events.append(f"seals with key {keys.in_use.name} from now on, and opens {live}")

    def check_invariants(self) -> None:
        self._machine.check_invariants()
        self._sealers.check_invariants()
        assert self._words.keys() <= SAID_TO_ALL
        assert {name[:8] for name in self._ways} <= self._keys.live.keys()
