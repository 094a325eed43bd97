"""Which slot has each shard: the first map, and how the next follows from the one before. Even, and nothing moves that
need not."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core import shards
from rvq.core.shards import ShardMap, deal, draft
from rvq.core.table import slots_of, sorted_members
from rvq.wire.frames import Member
from rvq.wire.records import SHARDS

Members = tuple[Member, ...]

ids = st.integers(0, 2**63 - 1)


def members_of(weights: dict[int, int]) -> Members:
    return sorted_members(Member(id, weight) for id, weight in weights.items())


def groups(most: int, weight: int = 4) -> st.SearchStrategy[Members]:
    return st.dictionaries(ids, st.integers(1, weight), min_size=1, max_size=most).map(members_of)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Members, ShardMap]:
    """Members with a map that has seen others come and go."""
    members = draw(groups(64, draw(st.sampled_from([1, 4]))))
    shard_map = draft(members)
    for others in draw(st.lists(groups(8), max_size=2)):
        stay = draw(st.integers(0, len(members)))
        after = members_of({**dict(others), **dict(members[:stay])})
        members, shard_map = after, deal(members, shard_map, after)
    return members, shard_map


def owners(members: Members, shard_map: ShardMap) -> list[int]:
    """The receiver of each shard."""
    slots = slots_of(members)
    return [slots[slot] for slot in shard_map]


def moves(before: Members, old: ShardMap, after: Members, new: ShardMap) -> int:
    return sum(a != b for a, b in zip(owners(before, old), owners(after, new), strict=True))


def assert_even(members: Members, shard_map: ShardMap) -> None:
    slots = len(slots_of(members))
    share, over = divmod(SHARDS, slots)
    has = Counter(shard_map)
    assert Counter(has[slot] for slot in range(slots)) == +Counter({share: slots - over, share + 1: over})


def fewest_moves(before: Members, old: ShardMap, after: Members) -> int:
    """Of all even maps the one that lets most shards stay, by trying how many members may have how many more.

    Written without regard to how it is done: the best sum over members, for each number of shards over.
    """
    share, over = divmod(SHARDS, len(slots_of(after)))
    has = Counter(owners(before, old))
    best = [0] + [-SHARDS] * over
    for id, weight in after:
        stay = [min(has[id], share * weight + more) for more in range(weight + 1)]
        best = [
            max(best[left - more] + stay[more] for more in range(min(weight, left) + 1)) for left in range(over + 1)
        ]
    return SHARDS - best[over]


def check_next(before: Members, old: ShardMap, after: Members) -> ShardMap:
    new = deal(before, old, after)
    assert_even(after, new)
    assert moves(before, old, after, new) == fewest_moves(before, old, after)
    return new


# --- the first map ------------------------------------------------------------------------------------------------


def digest_of(shard_map: ShardMap) -> str:
    return blake2b(b"".join(slot.to_bytes(2, "big") for slot in shard_map), digest_size=8).hexdigest()


@pytest.mark.parametrize(
    ("size", "weight", "digest"),
    [
        (1, 1, "1f0281fb8997a0c6"),
        (3, 1, "f28bbdd50b3033ee"),
        (20, 1, "c3c60e9e8f1c7691"),
        (64, 4, "69ac776914aacbf1"),
        (1000, 1, "ebe6b57d4fbab06b"),
        (40, 64, "4bd31e5fa3d6d4e1"),
    ],
)
def test_the_first_map_never_changes(size: int, weight: int, digest: str) -> None:
    # Hosts and releases must agree. If this fails, the protocol's version has to change with it.
    members = members_of({id * 0x0123456789ABCDE % 2**63: id % weight + 1 for id in range(1, size + 1)})
    assert digest_of(draft(members)) == digest


@given(groups(80))
@settings(deadline=None, max_examples=60)
def test_every_slot_of_a_first_map_has_its_share_rounded_down_or_up(members: Members) -> None:
    assert_even(members, draft(members))


@pytest.mark.parametrize("slots", [1023, 1024, 1025, 1280, 16_384])
def test_with_about_as_many_slots_as_shards_or_more_no_shard_is_without_one(slots: int) -> None:
    weights = dict.fromkeys(range(1, slots // 64 + 1), 64) | ({9999: slots % 64} if slots % 64 else {})
    members = members_of(weights)
    assert_even(members, draft(members))
    assert_even(members, deal(members_of({9999: 1}), (0,) * SHARDS, members))


def test_nobody_has_no_shards() -> None:
    assert draft(()) == deal(members_of({1: 1}), (0,) * SHARDS, ()) == ()


@given(ids, st.integers(0, 63))
@settings(deadline=None)
def test_every_shard_is_once_in_the_list_of_a_slot(member: int, copy: int) -> None:
    _, _, step, start, factor, offset = shards._wishes(0, member, copy)
    places = [(shards._SCATTERED[(step * t + start) % SHARDS] * factor + offset) % SHARDS for t in range(SHARDS)]
    assert sorted(places) == list(range(SHARDS))


@pytest.mark.parametrize(
    ("size", "weight"), [(1, 1), (8, 1), (64, 1), (64, 4), (1000, 1), (1024, 1), (1100, 1), (250, 64)]
)
def test_the_places_looked_at_do_not_grow_with_slots_times_shards(
    size: int, weight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = CountedLooks(shards._SCATTERED)
    monkeypatch.setattr(shards, "_SCATTERED", looks)
    draft(members_of(dict.fromkeys(range(1, size + 1), weight)))
    assert looks.count <= 12 * SHARDS + size * weight


class CountedLooks(list[int]):
    count = 0

    def __getitem__(self, place: Any) -> Any:
        self.count += 1
        return super().__getitem__(place)


# --- the next one -------------------------------------------------------------------------------------------------


@given(histories(), ids, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_when_one_joins_or_leaves_again_nothing_moves_that_need_not(
    history: tuple[Members, ShardMap], id: int, weight: int
) -> None:
    members, shard_map = history
    if id not in dict(members):
        more = sorted_members((*members, Member(id, weight)))
        joined = check_next(members, shard_map, more)
        check_next(more, joined, members)


@given(histories(), st.data())
@settings(deadline=None, max_examples=60)
def test_when_any_one_leaves_nothing_moves_that_need_not(
    history: tuple[Members, ShardMap], data: st.DataObject
) -> None:
    members, shard_map = history
    out = data.draw(st.sampled_from(members))
    rest = tuple(member for member in members if member != out)
    if rest:
        left = check_next(members, shard_map, rest)
        assert moves(members, shard_map, rest, left) >= Counter(owners(members, shard_map))[out.id]


@pytest.mark.parametrize("size", range(1, 65))
def test_in_a_group_of_any_size_one_who_joins_takes_its_share_and_one_who_leaves_gives_it_back(size: int) -> None:
    """With weight 1 what must move is known: a joiner's share rounded down, and what one who leaves had."""
    random = Random(size)
    group = [Member(random.getrandbits(63), 1) for _ in range(size + 1)]
    members, more = sorted_members(group[1:]), sorted_members(group)
    before = draft(members)
    joined = deal(members, before, more)
    assert moves(members, before, more, joined) == SHARDS // (size + 1)
    assert moves(more, joined, members, deal(more, joined, members)) == SHARDS // (size + 1)


@given(histories(), ids)
@settings(deadline=None, max_examples=60)
def test_a_restart_under_a_new_id_moves_what_the_old_one_had_and_nothing_else(
    history: tuple[Members, ShardMap], id: int
) -> None:
    members, shard_map = history
    if id in dict(members):
        return
    for out in (members[0], members[-1], members[len(members) // 2]):
        after = sorted_members([*(member for member in members if member != out), Member(id, out.weight)])
        new = check_next(members, shard_map, after)
        assert moves(members, shard_map, after, new) == Counter(owners(members, shard_map))[out.id]


@given(histories(), groups(30), st.data())
@settings(deadline=None, max_examples=60)
def test_however_many_come_go_or_change_their_weight_nothing_moves_that_need_not(
    history: tuple[Members, ShardMap], others: Members, data: st.DataObject
) -> None:
    members, shard_map = history
    stay = data.draw(st.lists(st.sampled_from(members), unique=True))
    weights = {id: data.draw(st.sampled_from([weight, weight, 1, 5])) for id, weight in stay}
    check_next(members, shard_map, members_of({**dict(others), **weights}))


@given(histories())
@settings(deadline=None, max_examples=30)
def test_an_even_map_of_the_same_members_stays_as_it_is(history: tuple[Members, ShardMap]) -> None:
    members, shard_map = history
    assert deal(members, shard_map, members) == shard_map


@given(groups(20), st.integers(0, 2**32), groups(3))
@settings(deadline=None, max_examples=50)
def test_a_map_that_was_not_even_is_so_in_the_next_table(members: Members, seed: int, others: Members) -> None:
    random = Random(seed)
    slots = len(slots_of(members))
    uneven = tuple(random.randrange(random.randint(1, slots)) for _ in range(SHARDS))
    after = members_of({**dict(others), **dict(members)})
    if after != members:
        check_next(members, uneven, after)


@given(histories(), st.data())
@settings(deadline=None, max_examples=50)
def test_within_a_member_a_shard_keeps_its_slot_if_nothing_must_move(
    history: tuple[Members, ShardMap], data: st.DataObject
) -> None:
    """Slots of one member are lanes too: what moves between them moves for nothing."""
    members, shard_map = history
    out = data.draw(st.sampled_from(members))
    rest = tuple(member for member in members if member != out)
    if not rest:
        return
    new = deal(members, shard_map, rest)
    copies, now = shards._copies(members), shards._copies(rest)
    for shard in range(SHARDS):
        if copies[shard_map[shard]][0] == now[new[shard]][0]:
            assert copies[shard_map[shard]] == now[new[shard]]


def test_what_one_who_leaves_had_is_spread_over_the_others() -> None:
    members = members_of(dict.fromkeys(range(1, 9), 1))
    shard_map = draft(members)
    new = deal(members, shard_map, members[1:])
    heirs = Counter(slot for slot, before in zip(new, shard_map, strict=True) if before == 0)
    assert len(heirs) == 7 and max(heirs.values()) - min(heirs.values()) <= 1


@pytest.mark.parametrize(
    ("size", "weight", "digest"),
    [
        (2, 1, "568ec0e54b7cbfb9"),
        (3, 1, "c2846fa0fdd35e5e"),
        (20, 1, "45eeb234f8b9aaf7"),
        (64, 4, "78e22a813bd50072"),
        (1000, 1, "cf6e3b0fde23aec7"),
        (40, 64, "0e01d0ca92d91e7f"),
    ],
)
def test_the_next_map_never_changes(size: int, weight: int, digest: str) -> None:
    # Senders that strike the same members out must agree: the protocol's version has to change with this.
    before = members_of({id * 0x0123456789ABCDE % 2**63: id % weight + 1 for id in range(1, size + 1)})
    after = members_of({id * 0x0123456789ABCDE % 2**63: id % weight + 1 for id in range(2, size + 3)})
    assert digest_of(deal(before, draft(before), after)) == digest
