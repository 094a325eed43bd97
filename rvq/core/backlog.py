"""Messages that have no sequence yet. Owns their order and size, and cutting the next frame's worth off.

Hot path: sizes are summed for many messages at once, and a frame is found by bisection.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, repeat
from operator import add

from rvq.wire.batch import NO_SHARD, RECORD_OVERHEAD, Record, Records, batch_cost

COMPACT_MESSAGES = 8192
"""Messages that may be taken before the lists of them are copied."""


class Backlog:
    """First in, first out. `bytes` is what the messages will take of frames."""

    __slots__ = ("_ends", "_head", "_records", "bytes", "has_keys")

    def __init__(self) -> None:
        self.bytes = 0
        self.has_keys = False
        """Was there ever a message with a key?"""
        self._records = Records([], [], [])
        self._ends: list[int] = []
        """The cost of all messages up to each, from any start."""
        self._head = 0

    def __len__(self) -> int:
        return len(self._ends) - self._head

    def add(self, record: Record) -> None:
        """One message."""
        kinds, datas, shards = self._records
        kinds.append(record.kind)
        datas.append(record.data)
        shards.append(record.shard)
        cost = batch_cost(record)
        self._ends.append((self._ends[-1] if self._ends else 0) + cost)
        self.bytes += cost
        self.has_keys = self.has_keys or record.shard != NO_SHARD

    def extend(self, records: Records) -> None:
        """Many at once: nothing is done for each of them in Python."""
        count = len(records.datas)
        last = self._ends[-1] if self._ends else 0
        self._ends += accumulate(map(add, map(len, records.datas), repeat(RECORD_OVERHEAD)), initial=last)
        del self._ends[-count - 1]
        kinds, datas, shards = self._records
        kinds += records.kinds
        datas += records.datas
        shards += records.shards
        self.bytes += self._ends[-1] - last
        self.has_keys = self.has_keys or records.shards.count(NO_SHARD) != count

    def take(self, room: int, most: int) -> Records:
        """The next messages that fit; none if the first one does not."""
        head, ends = self._head, self._ends
        before = ends[head - 1] if head else 0
        return self._cut(bisect_right(ends, before + room, head, min(len(ends), head + most)))

    def take_one(self) -> Record:
        """The next message, however large."""
        kinds, datas, shards = self._cut(self._head + 1)
        return Record(kinds[0], datas[0], shards[0])

    def _cut(self, stop: int) -> Records:
        head, ends, records = self._head, self._ends, self._records
        taken = records.part(head, stop)
        if stop > head:
            self.bytes -= ends[stop - 1] - (ends[head - 1] if head else 0)
        self._head = stop
        if stop == len(ends):
            self._records, self._ends, self._head = Records([], [], []), [], 0
        elif stop > COMPACT_MESSAGES:
            # One that was taken stays: its end is where the next one begins.
            self._records, self._ends, self._head = records.part(stop - 1, len(ends)), ends[stop - 1 :], 1
        return taken

    def check_invariants(self) -> None:
        kinds, datas, shards = self._records.part(self._head, len(self._ends))
        assert len(kinds) == len(datas) == len(shards) == len(self)
        assert self.bytes == sum(len(data) + RECORD_OVERHEAD for data in datas)
        assert self.has_keys or shards.count(NO_SHARD) == len(shards)
