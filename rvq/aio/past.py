"""What a journal knows of one group's past: what was its own, and what of that is done. Owns reading it from control.

Everything follows from what senders and receivers said: stamps say whose a message was, receivers what they did, and
senders what they knew as done.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgpack

from rvq.core.shards import ShardMap
from rvq.core.table import slots_of
from rvq.errors import WireError
from rvq.journal import Entry, EntryKind, JournalReader, Position
from rvq.journal.runs import RunSet
from rvq.wire.codec import decode_control
from rvq.wire.frames import Control, Handled, Outcome, SenderAlive, SenderGoodbye, Stamp
from rvq.wire.records import NO_SHARD

DONE = frozenset({Outcome.ACKED, Outcome.DEAD, Outcome.EXPIRED, Outcome.UNREADABLE})
"""After these nobody handles a message again."""
OFFERED = "offered"
"""Names the note that some messages were offered to a group again, and done there."""


class Past:
    """One label of a journal, as far as it was read, for one group."""

    def __init__(self, reader: JournalReader, label: str, group: str) -> None:
        self._reader = reader
        self._label = label
        self._group = group
        self._read: dict[str, Position] = {}
        self._streams: dict[int, StreamPast] = {}

    def read(self) -> None:
        """What came since, up to what is synced now."""
        tail = self._reader.tail(self._label)
        for chain, head in self._reader.head(self._label).items():
            if chain not in tail:
                continue
            for entry in self._reader.entries(self._label, self._read.get(chain, head), tail[chain]):
                self._learn(entry)
            self._read[chain] = tail[chain]

    @property
    def ends(self) -> dict[str, Position]:
        """How far it was read, by chain."""
        return dict(self._read)

    def stream(self, id: int) -> StreamPast:
        found = self._streams.get(id)
        if found is None:
            found = self._streams[id] = StreamPast(self._group)
        return found

    def _learn(self, entry: Entry) -> None:
        if entry.kind == EntryKind.CONTROL:
            try:
                self._heard(decode_control(bytes(entry.payload)))
            except WireError:
                return  # of a later version, perhaps: what it would have said is not known
        elif entry.kind == EntryKind.NOTE:
            for stream, first, last in offered_in(entry, self._group):
                self.stream(stream).offered.add(first, last)

    def _heard(self, frame: Control) -> None:
        match frame:
            case Stamp():
                self.stream(frame.source).stamped(frame)
            case SenderAlive():
                for state in frame.groups:
                    if state.group == self._group:
                        past = self.stream(frame.source)
                        past.done_to = max(past.done_to, state.done_to)
            case SenderGoodbye():
                self.stream(frame.source).is_over = True
            case Handled() if frame.group == self._group:
                past = self.stream(frame.stream)
                for run in frame.runs:
                    if run.outcome in DONE:
                        past.handled.setdefault((run.stamp, run.slot), RunSet()).add(run.first, run.last)


class Share:
    """A group's segment: from which sequence on, and which lanes it has."""

    __slots__ = ("at", "keyed", "shard_map", "slots", "stamp")

    def __init__(self, stamp: int, at: int, slots: int, keyed: bool, shard_map: ShardMap) -> None:
        self.stamp = stamp
        self.at = at
        self.slots = slots
        """0 from where on the group was given up."""
        self.keyed = keyed
        self.shard_map = shard_map

    def slot_of(self, sequence: int, shard: int) -> int:
        return sequence % self.slots if shard == NO_SHARD or not self.keyed else self.shard_map[shard]


class StreamPast:
    """One sender's stream."""

    def __init__(self, group: str) -> None:
        self.done_to = 0
        self.is_stamped = False
        """Its sender said whose its messages are."""
        self.is_over = False
        """Its sender said goodbye, and so knew everything as done."""
        self.handled: dict[tuple[int, int], RunSet] = {}
        """By the lane's stamp and slot."""
        self.offered = RunSet()
        self._group = group
        self._shares: dict[int, Share] = {}
        """By where they begin."""

    def stamped(self, stamp: Stamp) -> None:
        self.is_stamped = True
        entry = next((entry for entry in stamp.groups if entry.group == self._group), None)
        if entry is not None:
            slots = len(slots_of(entry.members))
            self._shares[entry.at] = Share(entry.since, entry.at, slots, stamp.keyed, entry.shard_map)
        elif self._shares and stamp.at not in self._shares:
            self._shares[stamp.at] = Share(stamp.number, stamp.at, 0, False, ())

    @property
    def begin(self) -> int | None:
        """The group's first message; None if none was its own."""
        return min((share.at for share in self._shares.values() if share.slots), default=None)

    def is_undone(self, sequence: int, shard: int) -> bool:
        """Was it the group's, and is it not known to be done?"""
        if self.is_over or sequence <= self.done_to or self.offered.has(sequence):
            return False
        begins = sorted(self._shares)
        place = bisect_right(begins, sequence) - 1
        if place < 0:
            return False
        share = self._shares[begins[place]]
        if not share.slots:
            return False
        done = self.handled.get((share.stamp, share.slot_of(sequence, shard)))
        return done is None or not done.has(sequence)


# --- notes ----------------------------------------------------------------------------------------------------------


def offered_note(group: str, runs: dict[int, RunSet]) -> bytes:
    """What a note says of messages that were offered again, and are done."""
    told = [(stream, *run) for stream, set_of in runs.items() for run in set_of]
    packed: bytes = msgpack.packb([OFFERED, group, told])
    return packed


def offered_in(entry: Entry, group: str) -> list[tuple[int, int, int]]:
    """Stream, first and last of what a note says of this group; nothing if it speaks of something else."""
    try:
        said: Any = msgpack.unpackb(bytes(entry.payload))
        what, of, runs = said
        if what != OFFERED or of != group:
            return []
        return [(int(stream), int(first), int(last)) for stream, first, last in runs]
    except (ValueError, TypeError, msgpack.UnpackException):
        return []
