"""A tap: frames in, every message out, none of them its own. Composes the streams that it hears.

Nobody knows of it: it is in no table, says nothing but NAKs, and acknowledges nothing. So it holds nobody back, and if
it is too slow, it is the tap that loses messages.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from rvq import limits
from rvq.core.doors import Doors
from rvq.core.end import End
from rvq.core.holding import HeldFrame
from rvq.core.machine import Address, Wall
from rvq.core.tapped import Tapped
from rvq.core.work import Handed
from rvq.errors import WireError
from rvq.message import Message, RichMessage, Settler, make_messages
from rvq.names import check_label
from rvq.timings import Timings
from rvq.wire.codec import decode_control, peek, read_data_header
from rvq.wire.frames import Control, DataHeader, FrameType, Nak, SenderAlive, SenderGoodbye, label_tag
from rvq.wire.records import Content
from rvq.wire.train import read_train, split

TAP_BYTES = limits.RECEIVED_BYTES
"""What a tap keeps over all streams, seen or waited for. Above it, the oldest messages are lost."""
BEHIND_BYTES = TAP_BYTES // 2
"""A tap with more than this in line asks for nothing: it could not keep up with what it gets."""

_DATA_MAX = bytes([FrameType.TAIL])
_PLAIN = Content(None)[1:]
_NONE: dict[int, int] = {}


class Shown:
    """Where a tap's messages come from: what all of one frame have in common. Nothing of it is owned."""

    __slots__ = ("_first", "_home", "sent_at", "stream")

    group = None
    slot = None
    asked_at = None
    receiver_index = None
    retries = _NONE

    def __init__(self, home: TapMachine, stream: int, first: int, sent_at: float) -> None:
        self._home = home
        self._first = first
        self.stream = stream
        self.sent_at = sent_at

    @property
    def label(self) -> str:
        return self._home.label

    @property
    def settler(self) -> Settler | None:
        return self._home.settler

    def sequence_of(self, place: int) -> int:
        return self._first + place

    def may_continue(self, now: float) -> bool:
        return True


class InLine:
    """A frame whose turn has come. It is read when its first message is taken."""

    __slots__ = ("count", "frame", "is_plain", "origin", "place", "read")

    def __init__(self, frame: HeldFrame, origin: Shown) -> None:
        self.frame = frame
        self.origin = origin
        self.count = frame.last - frame.first + 1
        self.place = 0
        self.is_plain = False
        self.read: Sequence[Any] | None = None

    @property
    def left(self) -> int:
        return self.count - self.place

    def load(self) -> None:
        """Raises WireError if it cannot be read."""
        run, places = self.frame.run(), range(self.count)
        bodies = run.plain_bodies(places)
        self.is_plain = bodies is not None
        self.read = run.contents(places) if bodies is None else bodies

    def take(self, most: int) -> list[Message | None]:
        """The next messages; None for each that cannot be read."""
        assert self.read is not None
        start = self.place
        self.place = min(start + most, self.count)
        read = self.read[start : self.place]
        if self.is_plain:
            return list(make_messages(read, self.origin, start))
        return [_message(content, self.origin, place) for place, content in enumerate(read, start)]


class TapMachine(End):
    """Sees every message of one label. Has all that `rvq.Receiver` needs of a machine; outcomes change nothing."""

    table = None
    has_urgent = False

    def __init__(
        self,
        label: str,
        id: int,
        *,
        timings: Timings,
        random: Random,
        now: float,
        wall_offset: float = 0.0,
        settler: Settler | None = None,
    ) -> None:
        super().__init__(label_tag(check_label(label)), timings.heartbeat, now)
        self.label = label
        self.id = id
        self.settler = settler
        self.wall = Wall(wall_offset)
        self.streams: dict[int, Tapped] = {}
        self._random = random
        self._doors = Doors(random, now, limits.PEER_FRAMES_PER_S)
        self._expiry = timings.expiry
        self._streams_at: dict[Address, int] = {}
        """Who speaks from where: one from each address."""
        self._seen: dict[int, int] = {}
        """Of streams that are no longer followed: the next sequence, so that nothing is shown twice."""
        self._line: deque[InLine] = deque()
        self._held = 0
        """What is kept costs so much at most: counted up with each datagram, and anew when it seems too much."""
        self._said_slow = False
        self._deadline = math.inf  # there is nothing to say at the start

    # --- messages out ---------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return bool(self._line)

    def take(self, now: float, max: int, handed: list[Handed] | None = None) -> list[Message]:
        """Up to so many messages, which will not be shown again. There is nothing to acknowledge, so none is handed."""
        taken: list[Message] = []
        while self._line and len(taken) < max:
            front = self._line[0]
            try:
                if front.read is None:
                    front.load()
            except WireError:
                self.stats.bad_frames += 1
                self._lose(self._line.popleft())
                continue
            messages = front.take(max - len(taken))
            readable = [message for message in messages if message is not None]
            self.stats.bad_frames += len(messages) - len(readable)
            self.stats.lost += len(messages) - len(readable)
            taken += readable
            if not front.left:
                self._held -= _cost(self._line.popleft().frame)
        self.stats.emitted += len(taken)
        return taken

    def _lose(self, one: InLine) -> None:
        self.stats.lost += one.left
        self._held -= _cost(one.frame)

    # A tap owns nothing, so these change nothing.

    def acknowledge(self, now: float, message: Message) -> None: ...
    def acknowledge_all(self, now: float, messages: Iterable[Message]) -> None: ...
    def acknowledge_handed(self, now: float, handed: Iterable[Handed]) -> None: ...
    def retry(self, now: float, message: Message, delay: float = 0.0) -> None: ...
    def give_back(self, now: float, message: Message) -> None: ...

    def reject(self, now: float, message: Message, reason: str = "") -> bool:
        """Never: there is nothing to bury."""
        return False

    def first_owner(self, message: Message) -> int:
        """Nobody that a tap knows of."""
        return 0

    def may_continue(self, now: float, message: Message) -> bool:
        """Looking needs no leave."""
        return True

    def is_anothers(self, message: Message) -> bool:
        """Nothing of a tap is anybody's."""
        return False

    def is_settled(self, message: Message) -> bool:
        """Nobody waits for it."""
        return True

    # --- leaving --------------------------------------------------------------------------------------------------

    @property
    def leaving(self) -> bool:
        return self._ended

    @property
    def inheriting(self) -> bool:
        """It owns nothing, and inherits nothing."""
        return False

    @property
    def paused(self) -> bool:
        """It handles nothing, so there is nothing to pause."""
        return False

    @property
    def waiting_for(self) -> str | None:
        """It owns nothing, and leaves when it is told to."""
        return None

    def leave(self, now: float, *, drain: bool = True) -> None:
        """Hear nothing more; what is here can still be taken, unless not `drain`."""
        for stream in self.streams.values():
            self._line_up(stream, stream.skip_all())
        self.streams.clear()
        if not drain:
            self._line.clear()
        self._ended = True
        self._deadline = math.inf

    def say_goodbye(self) -> None:
        """Leave now. Nobody needs to be told."""
        self.leave(0.0, drain=False)

    @property
    def left(self) -> bool:
        return self._ended and not self._line

    # --- frames in ------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size. Bad ones are counted."""
        if self._ended:
            return
        if size and size < len(datagram):
            self._receive_train(now, datagram, source, size)
            return
        self._notice_nap(now)
        try:
            if datagram[4:5] <= _DATA_MAX:
                self._on_data(now, read_data_header(datagram), datagram, source)
            elif peek(datagram)[1] == self._tag:
                if self._doors.admits(now, source, len(datagram)):
                    self._on_control(now, decode_control(datagram), source)
                else:
                    self.stats.refused += 1
        except WireError:
            self._refuse(datagram, source)

    def _receive_train(self, now: float, datagram: bytes, source: Address, size: int) -> None:
        """As a whole if that can be; else frame by frame."""
        self._notice_nap(now)
        try:
            train = read_train(datagram, size)
        except WireError:
            train = None
        if train is not None and train.header.label_tag == self._tag:
            stream = self._follow(now, train.header.stream, source)
            found = stream.on_train(now, train) if stream is not None else None
            if stream is not None and found is not None:
                self._after(now, stream, found, datagram)
                return
        for frame in split(datagram, size):
            self.receive(now, frame, source)

    def _on_data(self, now: float, header: DataHeader, datagram: bytes, source: Address) -> None:
        if header.label_tag == self._tag:
            stream = self._follow(now, header.stream, source)
            if stream is not None:
                self._after(now, stream, stream.on_data(now, header, datagram), datagram)

    def _on_control(self, now: float, frame: Control, source: Address) -> None:
        match frame:
            case SenderAlive() if frame.label == self.label:
                stream = self._follow(now, frame.source, source)
                if stream is not None:
                    stream.on_alive(now, frame)
                    self._at_latest(stream.next_deadline())
            case SenderGoodbye() if frame.source in self.streams and self.streams[frame.source].address == source:
                stream = self.streams[frame.source]
                stream.on_goodbye(now)
                self._at_latest(stream.next_deadline())

    def _follow(self, now: float, id: int, address: Address) -> Tapped | None:
        """The stream, from here on if it is new. None if there are too many."""
        stream = self.streams.get(id)
        if stream is None and self._may_follow(now, address):
            begin = self._seen.pop(id, 0)
            stream = self.streams[id] = Tapped(id, address, self._random, self.stats, now, begin)
            self._streams_at[address] = id
        if stream is None or stream.address != address:
            self.stats.refused += 1
            return None
        return stream

    def _may_follow(self, now: float, address: Address) -> bool:
        """Is there room, and nobody else who speaks from there?"""
        if len(self.streams) >= limits.STREAMS_MAX:
            return False
        other = self.streams.get(self._streams_at.get(address, 0))
        return other is None or now - other.heard_at > self._expiry

    def _after(self, now: float, stream: Tapped, found: list[HeldFrame], datagram: bytes) -> None:
        self._held += len(datagram) + limits.DATAGRAM_COST_BYTES
        if found:
            self._line_up(stream, found)
        if self._held > TAP_BYTES:
            self._make_room()
        deadline = stream.next_deadline()
        if deadline < self._deadline:
            self._at_latest(deadline)

    def _line_up(self, stream: Tapped, found: Iterable[HeldFrame]) -> None:
        for frame in found:
            one = InLine(frame, Shown(self, stream.id, frame.first, frame.header.sent_at))
            self.stats.routed += one.count
            self._line.append(one)

    # --- memory ---------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Memory seems full. Then nothing is waited for, and the oldest in line goes, down to what a tap that is behind
        may have: so this is not done again for each datagram."""
        self._count_held()
        if self._held <= TAP_BYTES:
            return
        for stream in self.streams.values():
            self._line_up(stream, stream.skip_all())
        self._count_held()
        if self._held > BEHIND_BYTES and not self._said_slow:
            self._said_slow = True
            oldest = self._line[0].origin
            self.events.append(
                f"too slow: lost messages from {oldest.stream:016x}-{oldest.sequence_of(self._line[0].place)} on; "
                "stats.lost counts these and those to come"
            )
        while self._held > BEHIND_BYTES:
            self._lose(self._line.popleft())

    def _count_held(self) -> None:
        waiting = sum(map(_waiting_cost, self.streams.values()))
        self._held = waiting + sum(_cost(one.frame) for one in self._line)

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Whatever is due."""
        if self._ended:
            return
        self._notice_nap(now)
        if self._held > BEHIND_BYTES:
            self._count_held()
        self._doors.know(now, [stream.address for stream in self.streams.values() if stream.next])
        for stream in list(self.streams.values()):
            self._line_up(stream, stream.wake(now))
            if self._held > BEHIND_BYTES:
                self._line_up(stream, stream.skip_all())
            lacking = stream.lacking(now)
            if lacking is not None:
                self._say(stream.address, Nak(self.id, stream.id, *lacking))
            if stream.is_over(now):
                self._forget(stream)
        self._wake_at(min((stream.next_deadline() for stream in self.streams.values()), default=math.inf))

    def _forget(self, stream: Tapped) -> None:
        self._line_up(stream, stream.skip_all())
        del self.streams[stream.id]
        if self._streams_at.get(stream.address) == stream.id:
            del self._streams_at[stream.address]
        if stream.next:
            self._seen[stream.id] = stream.next
            if len(self._seen) > limits.REMEMBERED_MAX:
                del self._seen[next(iter(self._seen))]

    def _notice_nap(self, now: float) -> None:
        nap = self._naps.slept(now)
        if nap:
            for stream in self.streams.values():
                stream.forgive(nap)

    def check_invariants(self) -> None:
        for stream in self.streams.values():
            stream.check_invariants()
        assert len(self.streams) <= limits.STREAMS_MAX
        assert len(self._seen) <= limits.REMEMBERED_MAX
        assert not self._seen.keys() & self.streams.keys()
        assert all(one.left for one in self._line)
        said = self._held
        self._count_held()
        assert self._held <= said or self._ended, "never less than is kept"
        assert self._held <= TAP_BYTES


def _cost(frame: HeldFrame) -> int:
    return frame.size + limits.DATAGRAM_COST_BYTES * len(frame.datagrams)


def _waiting_cost(stream: Tapped) -> int:
    return stream.holding.bytes + limits.DATAGRAM_COST_BYTES * stream.holding.datagrams


def _message(content: Content | None, origin: Shown, place: int) -> Message | None:
    if content is None:
        return None
    return Message(content.body, origin, place) if content[1:] == _PLAIN else RichMessage(content, origin, place)
