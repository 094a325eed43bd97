"""The frames: what is said, without its bytes. Owns their fields; `codec` owns how they look on the wire.

Tuples with names stand for the small things inside a frame, because msgpack packs a tuple as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from hashlib import blake2b
from typing import NamedTuple, NewType

SenderId = NewType("SenderId", int)
ReceiverId = NewType("ReceiverId", int)
Sequence = int
StampNumber = int

ID_BITS = 63
"""Ids are random 63-bit numbers: 64 bits unsigned would not fit the signed columns of data tools."""


class FrameType(IntEnum):
    """The header's type byte. Data frames below 16, a sender's words from 16, a receiver's from 32, both's from 48,
    orders and their answers from 64."""

    DATA = 1
    FRAGMENT = 2
    TAIL = 3
    SENDER_ALIVE = 16
    STAMP = 17
    PROGRESS = 18
    SENDER_GOODBYE = 19
    ASK_TABLE = 20
    ALIVE = 32
    TABLE = 33
    REPORT = 34
    NAK = 35
    ASK_STAMPS = 36
    ASK_PROGRESS = 37
    GOODBYE = 38
    HAND_OVER = 39
    HANDLED = 40
    ABOUT = 48
    PEERS = 49
    ORDER = 64
    ORDER_DONE = 65


class DataFlag(IntFlag):
    """The header's flags byte in data frames."""

    RAW = 1
    """Every record is the body itself, as bytes. Without RAW and MIXED, every record is msgpack."""
    MIXED = 2
    """Each record starts with a byte that says its kind."""
    KEYED = 4
    """A table of shards stands before the table of bounds."""
    EVEN = 8
    """All records are of one length, which stands in place of the table of bounds."""
    PADDED = 16
    """There may be bytes without meaning between the last record and the tables: frames of a train have one size."""
    URGENT = 32
    """At least one record is urgent."""


class Outcome(IntEnum):
    """What became of messages at one receiver, as it tells recorders."""

    ACKED = 1
    """Acknowledged: handled to the end."""
    DEAD = 2
    """Rejected for good."""
    EXPIRED = 3
    """Dropped, because their time to live was over."""
    RETRIED = 4
    """Failed, and to be handed out again; once for each time."""
    HANDED_OVER = 5
    """Given to another before they were started."""
    UNREADABLE = 6
    """Dropped, because their records are not what they should be."""


class OrderKind(IntEnum):
    """What somebody who runs the bus asks of a receiver, or of all of a group."""

    DRAIN = 1
    """One receiver finishes what is its own, and goes."""
    WEIGHT = 2
    """One receiver takes another share."""
    PAUSE = 3
    """All of a group start nothing more."""
    RESUME = 4
    """They go on."""


class OrderOutcome(IntEnum):
    """What a receiver did about an order."""

    CARRIED_OUT = 1
    WAS_SO = 2
    """There was nothing to change."""
    REFUSED = 3
    """It cannot: it is leaving, or the table would have more slots than one can have."""
    OVERRULED = 4
    """A newer word on the pause of this group stands."""


class Version(NamedTuple):
    """A table's version. Compares as the design says: by counter, then by keeper."""

    counter: int
    keeper: int


NO_VERSION = Version(0, 0)


class Pause(NamedTuple):
    """Whether a group is paused, as the newest order that its receivers know says it. The greater one is the newer:
    by counter, and of two orders at the same time by who gave them."""

    counter: int
    setter: int
    """The id of who ordered it."""
    paused: bool


NO_PAUSE = Pause(0, 0, False)
"""Nobody ever said anything."""


class Member(NamedTuple):
    """One receiver of a table, with the number of slots it holds."""

    id: int
    weight: int


class Echo(NamedTuple):
    """The newest heartbeat counter that a sender heard of one receiver."""

    id: int
    counter: int


class ShardsDone(NamedTuple):
    """The shards of which every message before the segment of this stamp is done, as bits, 32 in each number."""

    stamp: StampNumber
    bits: tuple[int, ...]


class GroupState(NamedTuple):
    """What a sender's heartbeat says of one group."""

    group: str
    version: Version
    done_to: Sequence
    """Every message up to this one is done in the group."""
    held: bool
    """The sender sends nothing because of this group: nobody of it is left."""
    shards: tuple[ShardsDone, ...]
    """With keys, while older segments are open: how far each shard is. A key goes on at its new receiver when its shard
    is through with what was before that receiver's segment."""


class Silence(NamedTuple):
    """How long a sender had not heard a receiver when it stamped it out."""

    id: int
    seconds: float


class Moved(NamedTuple):
    """The part of a lane from sequence `first` on that its owner gave to another before it started any of it."""

    stamp: StampNumber
    slot: int
    first: Sequence
    to: int


class GroupStamp(NamedTuple):
    """One group in a stamp: who owns the slots from here on, and what became of those who no longer do."""

    group: str
    since: StampNumber
    """The stamp with which the group's segment began: this one, or an older one if the group did not switch here."""
    at: Sequence
    """The first sequence of that segment."""
    version: Version
    members: tuple[Member, ...]
    draining: tuple[int, ...]
    silent: tuple[Silence, ...]
    gone: tuple[int, ...]
    """Those who said goodbye: their heirs need not wait."""
    shard_map: tuple[int, ...] = ()
    """With keys: the slot of each shard."""
    moved: tuple[Moved, ...] = ()


class LaneKey(NamedTuple):
    """The name of a lane, one slot of the segment that began with a stamp; or of a part of it, from `first` on."""

    stamp: StampNumber
    slot: int
    first: Sequence


class LaneQuestion(NamedTuple):
    """What is done of this lane above `after`?"""

    stamp: StampNumber
    slot: int
    first: Sequence
    after: Sequence


class LaneProgress(NamedTuple):
    """What is done of a lane: all up to `floor`, and each run (first, last, first, last, ...) above it."""

    stamp: StampNumber
    slot: int
    floor: Sequence
    runs: tuple[Sequence, ...]


class LaneAnswer(NamedTuple):
    """As a lane's progress, with runs above what was asked for. There are more if it does not say `whole`."""

    stamp: StampNumber
    slot: int
    first: Sequence
    floor: Sequence
    runs: tuple[Sequence, ...]
    whole: bool


class Tried(NamedTuple):
    """A message that was started and is not done: how often, and by whom first. Survives whoever tried it."""

    sequence: Sequence
    attempts: int
    first_owner: int


class HandledRun(NamedTuple):
    """What became of the messages of one lane from `first` to `last`, both of which are among them: all of these, and
    at that receiver. Messages of other lanes that stand between them are not meant."""

    outcome: int
    stamp: StampNumber
    slot: int
    first: Sequence
    last: Sequence
    at: float
    """When the first of them was, by the receiver's wall clock: seconds since 1970. The others were within about a ms,
    unless there was too much to tell."""


class StreamReport(NamedTuple):
    """What one receiver says of one stream."""

    stream: int
    taken: int
    """The highest stream position (bytes) taken from its socket."""
    window: int
    """How many bytes may be in flight to it."""
    lanes: tuple[LaneProgress, ...]
    tried: tuple[Tried, ...] = ()


class Heard(NamedTuple):
    """What a receiver has heard of one stream."""

    stream: int
    counter: int
    """The newest sender heartbeat."""
    stamp: StampNumber
    """The newest stamp up to which it knows every open one."""
    silent: bool
    """It does not hear the sender now, for most of a lease: its word for those who want to go on without it."""
    orphaned: bool
    """It has lately not heard the sender for most of a lease. Says so for `orphan_wait` after: others rely on it."""


class MissingParts(NamedTuple):
    """The fragments that a receiver lacks of one message."""

    sequence: Sequence
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SenderAlive:
    """A sender's heartbeat."""

    source: int
    label: str
    counter: int
    hello: bool
    last: Sequence
    position: int
    oldest_stamp: StampNumber
    newest_stamp: StampNumber
    groups: tuple[GroupState, ...]
    echoes: tuple[Echo, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A switch: from sequence `at` on, these tables are in force."""

    source: int
    label: str
    number: StampNumber
    at: Sequence
    keyed: bool
    """Messages from here on may have keys, so a receiver cannot tell its own from the sequence alone."""
    groups: tuple[GroupStamp, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """A sender's answer to an heir: what it knows as done of the lanes asked for."""

    source: int
    nonce: int
    lanes: tuple[LaneAnswer, ...]
    tried: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class SenderGoodbye:
    """A sender leaves; nothing of its stream is undone."""

    source: int
    label: str


@dataclass(frozen=True, slots=True)
class AskTable:
    """A sender has heard of a table that it does not have."""

    source: int
    group: str
    version: Version


@dataclass(frozen=True, slots=True)
class Alive:
    """A receiver's heartbeat."""

    source: int
    label: str
    group: str
    weight: int
    counter: int
    hello: bool
    leaving: bool
    load: int
    """Messages that it has in hand or in line: with none it is idle, and others may give it of theirs."""
    version: Version
    """The newest table that it belongs to."""
    heard: tuple[Heard, ...]
    reports: tuple[StreamReport, ...]
    recorder: bool = False
    """It keeps a journal, and wants to be told what receivers of all groups do."""
    pause: Pause = NO_PAUSE
    """What it knows of whether its group is paused."""


@dataclass(frozen=True, slots=True)
class TableFrame:
    """A table as its keeper wrote it."""

    source: int
    label: str
    group: str
    version: Version
    members: tuple[Member, ...]
    draining: tuple[int, ...]
    shard_map: tuple[int, ...] = ()
    """The slot of each shard."""


@dataclass(frozen=True, slots=True)
class Report:
    """Progress of one stream, between heartbeats."""

    source: int
    report: StreamReport


@dataclass(frozen=True, slots=True)
class Nak:
    """Sequences that a receiver lacks, as runs (first, last, first, last, ...), and missing fragments."""

    source: int
    stream: int
    runs: tuple[Sequence, ...]
    fragments: tuple[MissingParts, ...]


@dataclass(frozen=True, slots=True)
class AskStamps:
    """Stamps that a receiver lacks: those from `first` to `last`."""

    source: int
    stream: int
    first: StampNumber
    last: StampNumber


@dataclass(frozen=True, slots=True)
class AskProgress:
    """An heir's question, asked after its wait."""

    source: int
    stream: int
    group: str
    nonce: int
    lanes: tuple[LaneQuestion, ...]


@dataclass(frozen=True, slots=True)
class Goodbye:
    """A receiver leaves; it owns nothing any more."""

    source: int
    label: str
    group: str


@dataclass(frozen=True, slots=True)
class HandOver:
    """An owner gives the part of a lane from `first` on to another. It has started none of it, and never will."""

    source: int
    stream: int
    group: str
    stamp: StampNumber
    slot: int
    first: Sequence
    to: int
    known: StampNumber
    """The newest stamp that it knew: if it has lost the lane since, and has it again, this no longer counts."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What a receiver did, told to recorders only: with none there, nobody says this."""

    source: int
    label: str
    group: str
    stream: int
    counter: int
    """Of these frames of this receiver, one by one: who misses one sees that it does."""
    runs: tuple[HandledRun, ...]


@dataclass(frozen=True, slots=True)
class About:
    """Who a sender or receiver is and what it has counted. Goes to the directory, for those who look on."""

    source: int
    label: str
    group: str
    """Empty: a sender."""
    recorder: bool
    paused: bool
    host: str
    pid: int
    started_at: float
    """By its wall clock: seconds since 1970."""
    weight: int
    """0: a sender."""
    version: Version
    """Receiver: the newest table that it belongs to."""
    first_slot: int
    own_slots: int
    """Receiver: how many slots it has in that table, the first of them before; 0 while it is draining."""
    slots: int
    """Receiver: of how many."""
    stamp: StampNumber
    stamp_at: Sequence
    """Sender: its newest stamp, and from which sequence on that holds."""
    backlog: int
    """Receiver: messages in hand or in line. Sender: accepted and not done in every group."""
    lag: float
    """Receiver: seconds for which a message waited until it was handed out; the longest since this was told last."""
    window_used: int
    window: int
    """Sender: bytes that it keeps, and how many it may."""
    counters: tuple[int, ...]
    """In the order of the catalogue."""


class PeerAddress(NamedTuple):
    """Where somebody is, in words that a frame can carry."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Peers:
    """On a bus without multicast: that I am here, what I listen to, and who else is.

    Whoever is new is asked a number, and is sent nothing else before the number has come back.
    """

    source: int
    """An id of this start of this end, for this purpose only."""
    bus: int
    """Which bus it is on: another's may come to have the same address."""
    asks: int
    """A number that is to be given back; 0: none."""
    answers: int
    """The number that was asked; 0: none was."""
    leaves: bool
    """It is going: there is nobody here any more."""
    joined: tuple[int, ...]
    """The channels that it listens to."""
    known: tuple[PeerAddress, ...]
    """Where others are: some of them, and not always the same."""


@dataclass(frozen=True, slots=True)
class Order:
    """Somebody who runs the bus asks one receiver, or all of a group, to do something."""

    source: int
    label: str
    group: str
    to: int
    """The receiver that it is for; 0 for all of the group."""
    nonce: int
    """The order's name: whoever hears it again carries it out no second time."""
    what: int
    value: int
    """The weight; else 0."""
    counter: int
    """Of a pause or its end: makes it newer than what the group knew. Else 0."""
    by: str
    """Who it is, for people."""

    @property
    def pause(self) -> Pause:
        """Of a pause or its end: what is so from now on."""
        return Pause(self.counter, self.source, self.what == OrderKind.PAUSE)


@dataclass(frozen=True, slots=True)
class OrderDone:
    """A receiver has carried an order out, or says why not."""

    source: int
    nonce: int
    outcome: int


Control = (
    SenderAlive
    | Stamp
    | Progress
    | SenderGoodbye
    | AskTable
    | Alive
    | TableFrame
    | Report
    | Nak
    | AskStamps
    | AskProgress
    | Goodbye
    | HandOver
    | Handled
    | Order
    | OrderDone
    | About
    | Peers
)


class DataHeader(NamedTuple):
    """The fixed part of a data frame, as one struct call reads it."""

    magic: int
    type: int
    flags: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls on a header
    label_tag: int
    stamp: StampNumber
    stream: int
    first: Sequence
    sent_at: float
    done_to: Sequence
    position: int


def label_tag(label: str) -> int:
    """32 bits of a label for the header: tells the frames of labels that share a multicast address apart."""
    return int.from_bytes(blake2b(label.encode(), digest_size=4, person=b"rvq label").digest(), "big")
