"""What became of each message of a run of sequences. Owns the arrays: what is recorded, who did what with it, and when.

A bucket is a run of sequences of one stream. All that the history says of it goes into arrays with a place for each
message, so nothing here is done message by message, and a stream of any length is looked at in pieces of one size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from rvq.spark.segments import Array, GroupSegments
from rvq.wire.records import NO_SHARD

BUCKET: Final = 1 << 19
"""Messages that are looked at together: some 20 MB of arrays."""

ACKED: Final = "acked"
SETTLED: Final = frozenset({"acked", "dead", "expired", "unreadable"})
"""Outcomes after which nothing more is to be done."""


class Sent(NamedTuple):
    """Messages of a frame, as the history has them."""

    first: int
    last: int
    step: int
    sequences: bytes | None
    shards: bytes | None
    at: float


class Run(NamedTuple):
    """Messages of one lane that met one fate."""

    group: str
    receiver: int
    stamp: int
    slot: int
    first: int
    last: int
    outcome: str
    at: float


class Bucket:
    """The messages from one sequence on, as the journal knows them."""

    def __init__(self, number: int, size: int = BUCKET) -> None:
        self.base = number * size
        self.size = size
        self.recorded = np.zeros(size, np.int32)
        """How often each is in the journal."""
        self.sent_at = np.full(size, np.nan)
        self.shards = np.full(size, NO_SHARD, np.int32)

    @property
    def sequences(self) -> Array:
        found: Array = np.arange(self.base, self.base + self.size)
        return found

    def add(self, sent: Sent) -> None:
        """What of a frame is in this bucket."""
        if sent.sequences is None:
            places = np.arange(sent.first, sent.last + 1, max(sent.step, 1)) - self.base
        else:
            places = np.frombuffer(sent.sequences, "<i8") - self.base
        inside = (places >= 0) & (places < self.size)
        mine = places[inside]
        self.recorded[mine] += 1
        self.sent_at[mine] = sent.at
        if sent.shards is not None:
            self.shards[mine] = np.frombuffer(sent.shards, "<u2")[inside]

    def places(self, segments: GroupSegments, run: Run) -> Array:
        """The places of the messages that a run is about; none if its segment is not known."""
        segment = segments.of_stamp(run.stamp)
        low, high = max(run.first, self.base), min(run.last, self.base + self.size - 1)
        if segment is None or low > high:
            return np.empty(0, np.int64)
        count = len(segment.owners)
        if not segment.shard_map:
            low += (run.slot - low) % count
            return np.arange(low, high + 1, count) - self.base
        sequences = np.arange(low, high + 1)
        places = sequences - self.base
        mine = segment.slots_of(sequences, self.shards[places]) == run.slot
        # What is not recorded has no shard that we know: it is not said to be done by anybody.
        found: Array = places[mine & (self.recorded[places] > 0)]
        return found


class Fate:
    """What one group did with the messages of a bucket."""

    def __init__(self, bucket: Bucket, segments: GroupSegments) -> None:
        self.bucket = bucket
        self.segments = segments
        self.settled = np.zeros(bucket.size, np.int32)
        """How many said that nothing more is to be done."""
        self.acked = np.zeros(bucket.size, np.int32)
        self.acked_at = np.full(bucket.size, np.nan)
        self._by: list[tuple[int, Array]] = []

    def add(self, run: Run) -> Array:
        """Whom a run is about: their places."""
        places = self.bucket.places(self.segments, run)
        if run.outcome in SETTLED:
            self.settled[places] += 1
        if run.outcome == ACKED:
            self.acked[places] += 1
            first = places[np.isnan(self.acked_at[places])]
            self.acked_at[first] = run.at
            self._by.append((run.receiver, places))
        return places

    def doers(self, first: int, last: int) -> list[int]:
        """Who acknowledged any of these."""
        low, high = first - self.bucket.base, last - self.bucket.base
        return sorted({receiver for receiver, places in self._by if ((places >= low) & (places <= high)).any()})


def runs_of(mask: Array, base: int) -> list[tuple[int, int]]:
    """The sequences at which it holds, as runs (first, last)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(a) + base, int(b) - 1 + base) for a, b in edges.reshape(-1, 2)]


def distinct(runs: Iterable[Any]) -> list[Any]:
    """Each once: several recorders of one journal hear the same words."""
    return list(dict.fromkeys(runs))
