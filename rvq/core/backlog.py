"""Messages that have no sequence yet. Owns their order and size, and cutting the next frame's worth off.

Hot path: sizes are summed for many messages at once; messages of one length are cut without looking at each.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from operator import add

from rvq.limits import FRAME_MESSAGES_MAX, MIB
from rvq.wire.batch import RECORD_OVERHEAD
from rvq.wire.records import NO_SHARD, RICH, Record, Records

COMPACT_MESSAGES, COMPACT_BYTES = 4096, MIB
"""What may be taken before the lists are cut: so many messages, or half of all if that is more; and so many bytes."""
_new = tuple.__new__
LOOK_MESSAGES = 64
"""Messages of different lengths that are looked at first, to find how many fit; twice as many each time."""


class Backlog:
    """First in, first out. `bytes` is what the messages will take of frames at most."""

    __slots__ = ("_datas", "_head", "_kinds", "_lens", "_shards", "_taken", "bytes", "has_keys")

    def __init__(self) -> None:
        self.bytes = 0
        self.has_keys = False
        """Was there ever a message with a key?"""
        self._head = 0
        self._taken = 0
        """Bytes of messages that were taken and are still in the lists."""
        self._start(_new(Records, ([], [], bytearray(), None)))

    def _start(self, records: Records) -> None:
        self._datas, self._lens, self._kinds, self._shards = records
        if self.has_keys and self._shards is None:
            self._shards = [NO_SHARD] * len(self._datas)

    def __len__(self) -> int:
        return len(self._datas) - self._head

    def add(self, record: Record) -> None:
        """One message."""
        kind, data, shard = record
        if shard != NO_SHARD or self._shards is not None:
            self.extend(Records.of((record,)))
            return
        length = len(data)
        self._datas.append(data)
        self._lens.append(length)
        self._kinds.append(kind)
        self.bytes += length + RECORD_OVERHEAD

    def extend(self, records: Records) -> None:
        """Many at once, whose lists are not used by anyone else from now on."""
        datas, lens, kinds, shards = records
        if shards is not None and not self.has_keys:
            self.has_keys = True
            self._shards = [NO_SHARD] * len(self._datas)
        self.bytes += sum(lens) + RECORD_OVERHEAD * len(datas)
        if not self._datas:
            self._start(records)
            return
        self._datas += datas
        self._lens += lens
        self._kinds += kinds
        if self._shards is not None:
            self._shards += shards if shards is not None else [NO_SHARD] * len(datas)

    def take(self, room: int, most: int) -> Records:
        """The next messages that fit; none if the first one does not."""
        waiting = len(self)
        if self.bytes <= room and waiting <= most:
            return self._cut(self._head + waiting)
        most = min(most, waiting)
        return self._cut(self._head + (self._fitting(room, most) if most else 0))

    def take_even(self, room: int, frames: int) -> tuple[Records, int] | None:
        """Enough for two to so many full frames, each with the same number of plain messages of one length; and how
        many there are in each. None if the next ones are not like that."""
        each = self._lens[self._head]
        per_frame = min(room // max(1, each), FRAME_MESSAGES_MAX)
        frames = min(frames, len(self) // per_frame if per_frame else 0)
        count = frames * per_frame
        if frames < 2 or self._overhead(count) or self._lens[self._head : self._head + count].count(each) != count:
            return None
        return self._cut(self._head + count), per_frame

    def take_frames(self, room: int, most: int, frames: int) -> list[Records]:
        """The next messages for up to so many frames; none if the first one does not fit."""
        head, mean = self._head, self.bytes // len(self)
        lens = self._lens[head : head + frames * room // mean + LOOK_MESSAGES]
        costs = list(
            map(add, accumulate(lens, initial=0), range(0, RECORD_OVERHEAD * (len(lens) + 1), RECORD_OVERHEAD))
        )
        cuts = [0]
        while len(cuts) <= frames and cuts[-1] < len(lens):
            cut = min(bisect_right(costs, costs[cuts[-1]] + room) - 1, cuts[-1] + most)
            if cut == cuts[-1] or (cut == len(lens) < len(self) and len(cuts) > 1):
                break  # too large for a frame, or not known whether more would fit
            cuts.append(cut)
        taken = self._cut(head + cuts[-1])
        return [taken.part(start, stop) for start, stop in pairwise(cuts)]

    def take_one(self) -> Record:
        """The next message, however large."""
        (data,), _, (kind,), shards = self._cut(self._head + 1)
        return Record(kind, data, NO_SHARD if shards is None else shards[0])

    def _fitting(self, room: int, most: int) -> int:
        """How many fit. Those of one length need less room each, so more of them may fit than of different ones."""
        head, lens = self._head, self._lens
        first = lens[head]
        count = min(most, room // max(1, first + self._overhead(most)))
        even = count if lens[head : head + count].count(first) == count else 0
        if even and (even == most or lens[head + even] >= first):
            return even
        look = max(LOOK_MESSAGES, count)
        while True:
            ends = list(accumulate(lens[head : head + min(look, most)]))
            fits = bisect_right(range(len(ends)), room, key=lambda at: ends[at] + RECORD_OVERHEAD * (at + 1))
            if fits < len(ends) or fits == most:
                return max(even, fits)
            look *= 2

    def _overhead(self, most: int) -> int:
        """Of each record, if they are all of one length: nothing, if they are also of one plain kind."""
        head, kinds = self._head, self._kinds
        kind = kinds[head]
        plain = self._shards is None and kind < RICH and kinds.count(kind, head, head + most) == most
        return 0 if plain else RECORD_OVERHEAD

    def _cut(self, stop: int) -> Records:
        head = self._head
        records = _new(Records, (self._datas, self._lens, self._kinds, self._shards))
        if stop == len(self._datas):
            taken = records.part(head, stop) if head else records
            self._start(_new(Records, ([], [], bytearray(), None)))
            self._head = self._taken = self.bytes = 0
            return taken
        taken = records.part(head, stop)
        size = sum(taken.lens) + RECORD_OVERHEAD * len(taken.lens)
        self.bytes -= size
        self._taken += size
        self._head = stop
        if stop > max(COMPACT_MESSAGES, len(self._datas) // 2) or self._taken > COMPACT_BYTES:
            for whole in (self._datas, self._lens, self._kinds, self._shards):
                if whole is not None:
                    del whole[:stop]
            self._head = self._taken = 0
        return taken

    def check_invariants(self) -> None:
        lens = self._lens[self._head :]
        assert lens == [len(data) for data in self._datas[self._head :]]
        assert len(self._kinds) == len(self._datas) == len(self._lens)
        assert self.bytes == sum(lens) + RECORD_OVERHEAD * len(lens)
        assert (self._shards is not None) == self.has_keys
        assert self._shards is None or len(self._shards) == len(self._datas)
