"""Who owned what, from a stream's stamps. Owns the way from stamps to slots and owners, for many messages at once.

Stamps come as the history has them: a number, a first sequence, and JSON with an entry for each group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from rvq.wire.records import NO_SHARD

Array = np.ndarray[Any, np.dtype[Any]]


class Said(NamedTuple):
    """One stamp of a stream."""

    number: int
    at: int
    detail: str


@dataclass(frozen=True, slots=True)
class Segment:
    """From one switch of a group up to the next."""

    stamp: int
    at: int
    end: float
    """The last sequence; infinite for the newest."""
    owners: tuple[int, ...]
    """The receiver of each slot, as it was at the beginning."""
    shard_map: tuple[int, ...]

    def slots_of(self, sequences: Array, shards: Array | None) -> Array:
        """The slot of each message."""
        slots = sequences % len(self.owners)
        if self.shard_map and shards is not None:
            keyed = shards != NO_SHARD
            slots = np.where(keyed, np.asarray(self.shard_map)[np.where(keyed, shards, 0)], slots)
        return slots


@dataclass(frozen=True, slots=True)
class GroupSegments:
    """A group's segments in one stream, in order. Between two of them it may have been away."""

    segments: tuple[Segment, ...]

    def of_stamp(self, stamp: int) -> Segment | None:
        return next((segment for segment in self.segments if segment.stamp == stamp), None)

    def expected(self, sequences: Array) -> Array:
        """Which of these messages are the group's to handle."""
        found = np.zeros(len(sequences), bool)
        for segment in self.segments:
            found |= (sequences >= segment.at) & (sequences <= segment.end)
        return found


def segments_of(stamps: Iterable[Said]) -> dict[str, GroupSegments]:
    """The segments of each group."""
    begun: dict[str, dict[int, Segment]] = {}
    away: dict[str, list[int]] = {}
    seen: set[int] = set()
    for number, at, detail in sorted(set(stamps)):
        if number in seen:
            continue
        seen.add(number)
        entries = {entry["group"]: entry for entry in json.loads(detail)["groups"]}
        for group in begun.keys() - entries.keys():
            away.setdefault(group, []).append(at)
        for group, entry in entries.items():
            owners = tuple(id for id, weight in entry["members"] for _ in range(weight))
            segment = Segment(entry["since"], entry["at"], inf, owners, tuple(entry["shard_map"]))
            begun.setdefault(group, {}).setdefault(entry["since"], segment)
    return {group: GroupSegments(_ended(list(found.values()), away.get(group, []))) for group, found in begun.items()}


def _ended(segments: list[Segment], away: list[int]) -> tuple[Segment, ...]:
    """Each ends where the next begins, or where the group was no longer named."""
    segments.sort(key=lambda segment: (segment.at, segment.stamp))
    found = []
    for place, segment in enumerate(segments):
        ends = [after.at for after in segments[place + 1 : place + 2]] + [at for at in away if at >= segment.at]
        end = min(ends, default=inf) - 1
        found.append(Segment(segment.stamp, segment.at, end, segment.owners, segment.shard_map))
    return tuple(found)
