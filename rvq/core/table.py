"""A group's members at one version. Owns slots, indices and the shard map.

Everyone derives the same from the same members.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import shake_128
from itertools import compress

from rvq.wire.frames import Member, Version
from rvq.wire.records import SHARDS


@dataclass(frozen=True, slots=True)
class Table:
    """As a keeper wrote it: `members` hold the slots, `draining` ones finish what they have and get nothing new."""

    version: Version
    members: tuple[Member, ...]
    draining: tuple[int, ...] = ()
    everyone: frozenset[int] = field(init=False, compare=False, repr=False)
    """Members and draining members."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "everyone", frozenset(member.id for member in self.members).union(self.draining))

    def has(self, receiver: int) -> bool:
        return receiver in self.everyone


@dataclass(frozen=True, slots=True)
class TableView:
    """The table in force as users see it. `index` is None for a sender, and for a receiver that is not in it."""

    version: tuple[int, int]
    members: tuple[int, ...]
    index: int | None = None


@lru_cache(maxsize=256)
def slots_of(members: tuple[Member, ...]) -> tuple[int, ...]:
    """The owner of each slot: each member as often as its weight, in the order of ids."""
    return tuple(member.id for member in members for _ in range(member.weight))


def sorted_members(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members))


def index_of(members: tuple[Member, ...], receiver: int) -> int | None:
    """The place of a receiver among the members."""
    return next((index for index, member in enumerate(members) if member.id == receiver), None)


@lru_cache(maxsize=64)
def lane_of_shard(members: tuple[Member, ...]) -> tuple[int, ...]:
    """The slot of each shard. Each shard goes to the slot that scores highest for it and still has room.

    Scores depend on (shard, member, copy) alone, so most shards stay where they are when others come and go; the room
    is the fair share rounded up, so no slot has more than one shard over its share.
    """
    # A thousand members are a million scores: rows of plain numbers, and max() instead of a loop of our own.
    rows = [_scores(member.id, copy) for member in members for copy in range(member.weight)]
    room = [-(-SHARDS // len(rows))] * len(rows)
    chosen = []
    for scores in zip(*rows, strict=True):
        best = max(compress(scores, room))
        slot = scores.index(best)
        while not room[slot]:  # a full slot with the very same score
            slot = scores.index(best, slot + 1)
        room[slot] -= 1
        chosen.append(slot)
    return tuple(chosen)


def _scores(member: int, copy: int) -> array[int]:
    """One score per shard for a slot: 32 bits each, little-endian."""
    seed = member.to_bytes(8, "big") + copy.to_bytes(2, "big")
    scores = array("I", shake_128(seed).digest(4 * SHARDS))
    if sys.byteorder == "big":
        scores.byteswap()
    return scores
