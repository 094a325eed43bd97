"""A group's members at one version. Owns slots and indices, which everyone derives alike from the members, and
remembers which slot has each shard, which follows from the tables before: see `shards`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from rvq.core.shards import ShardMap, deal, draft
from rvq.wire.frames import Member, Version


@dataclass(frozen=True, slots=True)
class Table:
    """As a keeper wrote it: `members` hold the slots, `draining` ones finish what they have and get nothing new."""

    version: Version
    members: tuple[Member, ...]
    draining: tuple[int, ...] = ()
    shard_map: ShardMap = field(default=(), repr=False)
    """The slot of each shard, as the keeper derived it from the table before."""
    everyone: frozenset[int] = field(init=False, compare=False, repr=False)
    """Members and draining members."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "everyone", frozenset(member.id for member in self.members).union(self.draining))

    def has(self, receiver: int) -> bool:
        return receiver in self.everyone

    def shard_map_of(self, members: tuple[Member, ...]) -> ShardMap:
        """The slot of each shard among other members: those of the next table, or those that a sender counts on.

        It moves as little as it can, and all who derive it from this table for the same members get the same.
        """
        if not self.members:
            return draft(members)
        return deal(self.members, self.shard_map or draft(self.members), members)


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


def slots_held(table: Table | None, receiver: int) -> tuple[int, int, int]:
    """The first slot of a receiver, how many it has, and how many there are."""
    first, own, slots = 0, 0, 0
    for member in table.members if table else ():
        if member.id == receiver:
            first, own = slots, member.weight
        slots += member.weight
    return first, own, slots


def sorted_members(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members))


def index_of(members: tuple[Member, ...], receiver: int) -> int | None:
    """The place of a receiver among the members."""
    return next((index for index, member in enumerate(members) if member.id == receiver), None)
