"""What a stranger on a bus without a key may say, kind by kind. Owns the frames, and nothing that sends them.

All of it is for checks: the simulator, the machines' own tests and the flooder on real sockets say the same. He hears
everything that is multicast, so he knows who is there; what he cannot do is speak from another's address.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgpack

from rvq import limits
from rvq.core.machine import Address, Route, Target
from rvq.errors import WireError
from rvq.wire.batch import Stamped, encode_batch, encode_tail, header_of
from rvq.wire.codec import DATA_HEADER, HEADER, MAGIC, UINT_MAX, decode_control, encode_control
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import (
    About,
    Alive,
    AskProgress,
    AskStamps,
    AskTable,
    Control,
    Echo,
    FrameType,
    Goodbye,
    GroupStamp,
    GroupState,
    HandOver,
    Heard,
    LaneProgress,
    LaneQuestion,
    Member,
    Order,
    OrderKind,
    Pause,
    Report,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    StreamReport,
    TableFrame,
    Tried,
    Version,
    label_tag,
)
from rvq.wire.records import NO_SHARD, RAW, Record, Records

Said = tuple[Target, bytes]
"""Where it goes, and what."""

REMEMBERED = 64
"""Of those who were heard, so many are remembered."""

FAR = (UINT_MAX, UINT_MAX - 1, 2**62, 2**48, 2**40, 2**32, 2**31)
"""Numbers that nobody reaches, or may count on from."""

DATAGRAM = 60_000
"""The largest of his datagrams."""


class Floods:
    """One stranger. `kinds` has what he can say by name; each call makes one datagram.

    most: members of his tables; what a world simulates must not be as large as what a machine has to bear.
    """

    def __init__(self, label: str, random: Random, group: str = "default", most: int = 4000) -> None:
        self.kinds: dict[str, Callable[[], Said]] = {
            "noise": self._noise,
            "members": self._members,
            "impostors": self._impostors,
            "sequences": self._sequences,
            "naks": self._naks,
            "fragments": self._fragments,
            "tables": self._tables,
            "stamps": self._stamps,
            "done": self._done,
            "questions": self._questions,
            "groups": self._groups,
            "abouts": self._abouts,
        }
        self._label, self._group, self._random, self._most = label, group, random, most
        self._tag = label_tag(label)
        self._senders: dict[int, Address] = {}
        self._receivers: dict[int, Address] = {}
        self._stamp = 1
        self._last = 0
        self._counter = 1
        """The newest heartbeat of a sender that he heard."""
        self._mine = self._id()
        self._my_counter = 0

    def hear(self, datagram: bytes, source: Address) -> None:
        """He learns who is there."""
        try:
            frame = decode_control(datagram)
        except WireError:
            return
        if isinstance(frame, SenderAlive):
            self._note(self._senders, frame.source, source)
            self._stamp, self._last, self._counter = frame.newest_stamp, frame.last, frame.counter
        elif isinstance(frame, Alive):
            self._note(self._receivers, frame.source, source)

    def _note(self, known: dict[int, Address], id: int, source: Address) -> None:
        if id in known or len(known) < REMEMBERED:
            known[id] = source

    def any(self) -> Said:
        """Of all kinds one."""
        return self._random.choice(list(self.kinds.values()))()

    # --- parts --------------------------------------------------------------------------------------------------------

    def _id(self) -> int:
        return self._random.getrandbits(63) or 1

    def _wild(self) -> int:
        """A number from anywhere."""
        if self._random.random() < 0.5:
            return self._random.choice(FAR)
        return self._random.getrandbits(self._random.randint(1, 63))

    def _stream(self) -> int:
        """One that is there, as a rule."""
        if self._senders and self._random.random() < 0.8:
            return self._random.choice(list(self._senders))
        return self._id()

    def _receiver(self) -> int:
        if self._receivers and self._random.random() < 0.8:
            return self._random.choice(list(self._receivers))
        return self._id()

    def _someone(self) -> Target:
        """To one of those who are there, or to all."""
        there = [*self._senders.values(), *self._receivers.values()]
        if there and self._random.random() < 0.8:
            return self._random.choice(there)
        return Route.CONTROL

    def _say(self, target: Target, frame: Control) -> Said:
        return target, encode_control(frame, self._tag)

    def _version(self) -> Version:
        return Version(self._wild(), self._receiver())

    def _alive(self, id: int, counter: int, **options: object) -> Alive:
        values: dict[str, object] = {"hello": self._random.random() < 0.5, "leaving": False, "load": 0}
        values |= {"version": Version(0, 0), "heard": (), "reports": (), **options}
        return Alive(id, self._label, self._group, 1, counter, **values)  # type: ignore[arg-type]

    # --- kinds --------------------------------------------------------------------------------------------------------

    def _noise(self) -> Said:
        """Bytes; now and then with a header in front."""
        noise = self._random.randbytes(self._random.choice((0, 3, 31, 32, 56, 100, 1400)))
        if self._random.random() < 0.5:
            kind = self._random.choice(list(FrameType))
            noise = HEADER.pack(MAGIC, kind, 0, 0, self._tag, 0, self._stream(), 0) + noise
        return self._random.choice((Route.DATA, Route.CONTROL)), noise

    def _members(self) -> Said:
        """A million receivers, each heard once."""
        heard = tuple(Heard(self._stream(), self._counter, self._stamp, True, True) for _ in range(2))
        version = self._version() if self._random.random() < 0.5 else Version(0, 0)
        pause = Pause(self._wild(), self._id(), False)
        options = {"version": version, "heard": heard, "recorder": self._random.random() < 0.1, "pause": pause}
        return self._say(Route.CONTROL, self._alive(self._id(), self._wild(), **options))

    def _impostors(self) -> Said:
        """As those who are there: with heartbeats that are far ahead, and farewells."""
        receiver, stream = self._receiver(), self._stream()
        frames: tuple[Control, ...] = (
            self._alive(receiver, UINT_MAX, version=self._version()),
            self._alive(receiver, UINT_MAX, leaving=True),
            Goodbye(receiver, self._label, self._group),
            SenderGoodbye(stream, self._label),
            SenderAlive(stream, self._label, UINT_MAX, False, UINT_MAX, UINT_MAX, UINT_MAX - 1, UINT_MAX, (), ()),
            HandOver(receiver, stream, self._group, self._stamp, 0, self._last, self._mine, UINT_MAX),
        )
        return self._say(self._random.choice((Route.CONTROL, self._someone())), self._random.choice(frames))

    def _sequences(self) -> Said:
        """Messages of streams that are there, and of others, from anywhere, with everything before them done."""
        stamp = self._random.choice((self._stamp, self._random.getrandbits(32)))
        first, done_to = self._random.choice((self._last + 1, self._wild())), self._random.choice((0, self._wild()))
        at = Stamped(self._tag, stamp, self._stream(), max(1, first), 1.0, done_to, self._wild() >> 1)
        if self._random.random() < 0.3:
            return Route.DATA, encode_tail(at)
        count = self._random.choice((1, 10, 1000))
        return Route.DATA, encode_batch(at, Records.plain(bytearray([RAW]) * count, [b""] * count))

    def _naks(self) -> Said:
        """Everything, please; and each part of it."""
        runs = self._random.choice(((1, UINT_MAX), tuple(range(1, 2 * limits.NAK_RANGES_MAX + 1))))
        body = [self._stream(), runs, [[n, list(range(4096))] for n in range(self._random.choice((0, 1, 3)))]]
        source = self._random.choice((self._receiver(), self._id(), self._mine))
        return self._someone(), self._raw(FrameType.NAK, source, body)

    def _fragments(self) -> Said:
        """Parts of messages that never come to an end."""
        kind, at = int(FrameType.FRAGMENT), Stamped(self._tag, self._stamp, self._stream(), self._last + 1, 1.0, 0, 0)
        at = at._replace(first=max(1, self._random.choice((self._last + 1, self._random.getrandbits(40)))))
        if self._random.random() < 0.2:
            return Route.DATA, header_of(kind, 0, 1, at, 1) + self._random.randbytes(20)
        size = self._random.choice((1, 1000, DATAGRAM - 200))
        record = Record(RAW, bytes(2 * size), NO_SHARD)
        return Route.DATA, encode_fragments(at, record, DATA_HEADER.size + 11 + size)[0]

    def _tables(self) -> Said:
        """Tables with as many members as fit, and with more than that; newer than any other."""
        version, trick = self._version(), self._random.random()
        if trick < 0.2:
            head = msgpack.packb([self._label, self._group, list(version)])
            huge = b"\x96" + head[1:] + b"\xdd" + (100_000).to_bytes(4, "big") + msgpack.packb([1, 1]) * 12_000
            return Route.CONTROL, self._raw_bytes(FrameType.TABLE, self._id(), huge[:DATAGRAM])
        count = min(self._most, self._random.choice((1, 10, 100, 4000)))
        ids = sorted({*(self._id() for _ in range(count)), *self._receivers})
        members = tuple(Member(id, 1) for id in ids)
        shard_map = tuple(shard % len(members) for shard in range(1024)) if trick < 0.5 else ()
        source = self._random.choice((version.keeper, self._mine))
        return self._say(Route.CONTROL, TableFrame(source, self._label, self._group, version, members, (), shard_map))

    def _stamps(self) -> Said:
        """A sender with many stamps, of many slots, for those who are there."""
        stream = self._random.choice((self._mine, self._mine, self._stream()))
        if self._random.random() < 0.2:
            state = GroupState(self._group, self._version(), 0, False, ())
            number = self._random.choice((4096, self._wild()))
            alive = SenderAlive(stream, self._label, self._my_beat(), True, 2**40, 1, 1, number, (state,), ())
            return self._say(Route.CONTROL, alive)
        number, weight = self._random.choice((self._random.randint(1, 4096), self._wild())), limits.WEIGHT_MAX
        count = min(self._most, self._random.choice((1, 10, 250)))
        ids = sorted({*(self._id() for _ in range(count)), *self._receivers})
        members = tuple(Member(id, self._random.choice((1, weight))) for id in ids[: limits.SLOTS_MAX // weight])
        entry = GroupStamp(self._group, number, number, self._version(), members, (), (), ())
        return self._say(self._someone(), Stamp(stream, self._label, number, number, False, (entry,)))

    def _done(self) -> Said:
        """All of it is done, by him and by others. He does not say that he hears the sender: then he would be a member
        like any other, whose word counts."""
        lanes = tuple(LaneProgress(stamp, slot, UINT_MAX, ()) for stamp in (self._stamp, 1) for slot in range(8))
        tried = tuple(Tried(self._wild(), self._wild(), self._id()) for _ in range(20))
        report = StreamReport(self._stream(), self._wild(), self._wild(), lanes, tried)
        receiver = self._random.choice((self._receiver(), self._mine))
        if self._random.random() < 0.5:
            return self._say(self._someone(), Report(receiver, report))
        alive = self._alive(receiver, self._my_beat(), reports=(report,))
        return self._say(Route.CONTROL, alive)

    def _questions(self) -> Said:
        """For all that is large to answer; and orders to nobody."""
        source, stream = self._random.choice((self._mine, self._receiver())), self._stream()
        questions = tuple(LaneQuestion(stamp, slot, 1, 0) for stamp in (1, self._stamp) for slot in range(500))
        frames: tuple[Control, ...] = (
            AskStamps(source, stream, 1, UINT_MAX),
            AskTable(source, self._group, self._version()),
            AskProgress(source, stream, self._group, self._id(), questions),
            Order(self._mine, self._label, self._group, self._id(), self._id(), OrderKind.DRAIN, 0, 0, "mallory"),
        )
        return self._say(self._someone(), self._random.choice(frames))

    def _groups(self) -> Said:
        """Of ever another group."""
        alive = self._alive(self._id(), self._wild(), version=self._version())
        return self._say(Route.CONTROL, _of_group(alive, f"g{self._random.getrandbits(30)}"))

    def _abouts(self) -> Said:
        """To those who look on: ends and labels that are not there."""
        label = self._random.choice((self._label, f"l{self._random.getrandbits(30)}"))
        version, wild = self._version(), self._wild()
        group = self._random.choice(("", self._group, f"g{self._random.getrandbits(20)}"))
        about = About(
            *(self._id(), label, group, False, False, "mallory", 1, 1.0, 1, version, 0, 1, 1),
            *(wild, wild, wild, 1e300, wild, wild, (wild,) * limits.COUNTERS_MAX),
        )
        echoes = tuple(Echo(self._id(), wild) for _ in range(3))
        if self._random.random() < 0.3:
            return self._say(Route.CONTROL, SenderAlive(self._id(), label, wild, True, wild, 1, 1, 1, (), echoes))
        return Route.ABOUT, encode_control(about, label_tag(label))

    def _my_beat(self) -> int:
        self._my_counter += 1
        return self._my_counter

    def _raw(self, kind: int, source: int, body: object) -> bytes:
        """A control frame with a body that the codec may not make."""
        return self._raw_bytes(kind, source, msgpack.packb(body))

    def _raw_bytes(self, kind: int, source: int, body: bytes) -> bytes:
        return HEADER.pack(MAGIC, kind, 0, 0, self._tag, 0, source, 0) + body


def _of_group(alive: Alive, group: str) -> Alive:
    return Alive(
        *(alive.source, alive.label, group, alive.weight, alive.counter, alive.hello, alive.leaving, alive.load),
        *(alive.version, alive.heard, alive.reports),
    )
