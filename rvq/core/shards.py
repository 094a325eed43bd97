"""Which slot has each shard. Owns the map of a first table, and how the next follows from the one before.

A map that followed from the members alone could not stay even and move little, so each table remembers its own, and a
stamp with keys says it. Everyone derives the same from the same map and members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from rvq.wire.frames import Member
from rvq.wire.records import SHARDS

ShardMap = tuple[int, ...]
"""The slot of each shard. Empty where no message has a key, or nobody holds a slot."""


@lru_cache(maxsize=64)
def deal(before: tuple[Member, ...], shard_map: ShardMap, members: tuple[Member, ...]) -> ShardMap:
    """The map of these members, from one of the members before: even again, and no shard changes its member that need
    not. Every slot has 1024 / slots of the shards, rounded down or up, also if it was not so before.

    A slot keeps what it has as far as it has room. What is too much for it goes to other slots of its member first;
    what is left, and what was of members that are no more, is dealt to those with room, one each in turn.
    """
    if members == before:
        return shard_map
    if not members:
        return ()
    held = _held(before, shard_map)
    rooms = _rooms(members, held)
    slot_of = [-1] * SHARDS
    slots = dict(zip(_copies(members), range(len(rooms)), strict=True))

    def fill(slot: int, shards: list[int]) -> list[int]:
        taken, left = shards[: rooms[slot]], shards[rooms[slot] :]
        rooms[slot] -= len(taken)
        for shard in taken:
            slot_of[shard] = slot
        return left

    left_of: defaultdict[int, list[int]] = defaultdict(list)
    for (id, copy), shards in held.items():
        left_of[id] += fill(slots[id, copy], shards) if (id, copy) in slots else shards
    for (id, _), slot in slots.items():
        if left_of.get(id):
            left_of[id] = fill(slot, sorted(left_of[id]))
    free = sorted(shard for shards in left_of.values() for shard in shards)
    turns = sorted((turn, slot) for slot, room in enumerate(rooms) for turn in range(room))
    for shard, (_, slot) in zip(free, turns, strict=True):
        slot_of[shard] = slot
    return tuple(slot_of)


def _copies(members: tuple[Member, ...]) -> list[tuple[int, int]]:
    """The member of each slot, and which of its slots that is."""
    return [(member.id, copy) for member in members for copy in range(member.weight)]


def _held(members: tuple[Member, ...], shard_map: ShardMap) -> dict[tuple[int, int], list[int]]:
    """The shards of each member's copies, in order."""
    copies = _copies(members)
    held: dict[tuple[int, int], list[int]] = {copy: [] for copy in copies}
    for shard, slot in enumerate(shard_map):
        held[copies[slot]].append(shard)
    return held


def _rooms(members: tuple[Member, ...], held: dict[tuple[int, int], list[int]]) -> list[int]:
    """How many shards each slot gets: its share rounded down, and one more where that lets a shard stay. What is over
    then goes to the lowest members; of a member's slots, to those that have most."""
    has: Counter[int] = Counter()
    for (id, _), shards in held.items():
        has[id] += len(shards)
    share, over = divmod(SHARDS, sum(member.weight for member in members))
    mores = []
    for id, weight in members:
        mores.append(min(over, weight, max(0, has[id] - share * weight)))
        over -= mores[-1]
    rooms = []
    for (id, weight), kept in zip(members, mores, strict=True):
        more = kept + min(over, weight - kept)
        over -= more - kept
        most = sorted(range(weight), key=lambda copy: (-len(held.get((id, copy), ())), copy))[:more]
        rooms += [share + (copy in most) for copy in range(weight)]
    return rooms


_SCATTERED: Final = sorted(
    range(SHARDS), key=lambda shard: blake2b(shard.to_bytes(2, "big"), person=b"rvq scatter").digest()
)
"""Some order of the shards. It has no pattern, which the lists of two slots could otherwise share."""


class _Wishes(NamedTuple):
    """A slot's list of all shards, the one it wants most first, as the numbers that it follows from.

    The shard at place t is (_SCATTERED[(step t + start) mod 1024] factor + offset) mod 1024. Step and factor are odd:
    each shard is in the list once.
    """

    rank: int
    """Of two slots that want a shard in the same turn, the one with the lower rank gets it."""
    slot: int
    step: int
    start: int
    factor: int
    offset: int


def draft(members: tuple[Member, ...]) -> ShardMap:
    """The map of a first table. Every slot has 1024 / slots of the shards, rounded down or up.

    Slots draft: in turn t every slot that has room takes the shard at place t of its list, if that is free. A slot has
    room for its share rounded down; what is over goes, one each, to those who come first. A list depends on its member
    and copy alone, so two who write a first table at once give most shards to the same members.
    """
    if not members:
        return ()
    asking = sorted(_wishes(slot, member, copy) for slot, (member, copy) in enumerate(_copies(members)))
    share, over = divmod(SHARDS, len(asking))
    loads = [0] * len(asking)
    lanes = [-1] * SHARDS
    # A place is worked out when its turn comes: most slots are full long before the end of their list.
    for turn in range(SHARDS):
        for _, slot, step, start, factor, offset in asking:
            shard = (_SCATTERED[(step * turn + start) % SHARDS] * factor + offset) % SHARDS
            if lanes[shard] < 0:
                if loads[slot] == share:
                    if not over:
                        continue
                    over -= 1
                lanes[shard] = slot
                loads[slot] += 1
        room = share + (over > 0)
        asking = [wishes for wishes in asking if loads[wishes.slot] < room]
        if not asking:
            break
    return tuple(lanes)


def _wishes(slot: int, member: int, copy: int) -> _Wishes:
    seed = member.to_bytes(8, "big") + copy.to_bytes(2, "big")
    bits = int.from_bytes(blake2b(seed, digest_size=8, person=b"rvq wishes").digest(), "big")
    step, start, factor, offset = (bits >> shift & (SHARDS - 1) for shift in (30, 20, 10, 0))
    return _Wishes(bits >> 40, slot, step | 1, start, factor | 1, offset)
