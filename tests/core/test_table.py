"""A group's members: slots, indices and the shard map."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core import table
from rvq.core.table import Table, index_of, lane_of_shard, slots_of, sorted_members
from rvq.wire.frames import Member, Version
from rvq.wire.records import SHARDS

ids = st.integers(0, 2**63 - 1)


def members_of(weights: dict[int, int]) -> tuple[Member, ...]:
    return sorted_members(Member(id, weight) for id, weight in weights.items())


def groups(most: int, weight: int = 4) -> st.SearchStrategy[tuple[Member, ...]]:
    return st.dictionaries(ids, st.integers(1, weight), min_size=1, max_size=most).map(members_of)


def owners(members: tuple[Member, ...]) -> list[int]:
    """The receiver of each shard."""
    slots = slots_of(members)
    return [slots[slot] for slot in lane_of_shard(members)]


def moves(before: tuple[Member, ...], after: tuple[Member, ...]) -> int:
    return sum(a != b for a, b in zip(owners(before), owners(after), strict=True))


def test_members_are_in_the_order_of_their_ids() -> None:
    assert sorted_members([Member(7, 1), Member(2, 3)]) == (Member(2, 3), Member(7, 1))


def test_a_receiver_has_as_many_slots_as_its_weight() -> None:
    assert slots_of(members_of({7: 1, 2: 3})) == (2, 2, 2, 7)


def test_with_all_weights_one_the_slot_is_the_index() -> None:
    members = members_of({30: 1, 10: 1, 20: 1})
    for id in (10, 20, 30):
        index = index_of(members, id)
        assert index is not None and slots_of(members)[index] == id


def test_one_who_is_not_in_has_no_index() -> None:
    assert index_of(members_of({1: 1}), 2) is None


def test_draining_ones_are_in_the_table_and_hold_no_slot() -> None:
    written = Table(Version(1, 1), members_of({1: 1}), draining=(2,))
    assert written.has(1) and written.has(2) and not written.has(3)
    assert written.everyone == {1, 2}
    assert slots_of(written.members) == (1,)


def test_the_shard_map_never_changes() -> None:
    # Receivers of different releases must agree. If this fails, the protocol's version has to change with it.
    members = members_of({0x1111111111111111: 1, 0x2222222222222222: 2, 0x3333333333333333: 1})
    assert lane_of_shard(members)[:16] == (3, 3, 1, 3, 0, 1, 1, 3, 1, 2, 1, 0, 1, 2, 3, 0)


@given(groups(12))
@settings(deadline=None, max_examples=40)
def test_every_shard_has_a_slot_and_no_slot_more_than_its_share_rounded_up(members: tuple[Member, ...]) -> None:
    lanes = lane_of_shard(members)
    slots = len(slots_of(members))
    assert len(lanes) == SHARDS
    assert set(lanes) <= set(range(slots))
    assert max(Counter(lanes).values()) <= -(-SHARDS // slots)


@given(groups(12))
@settings(deadline=None, max_examples=40)
def test_no_slot_is_left_far_below_its_share(members: tuple[Member, ...]) -> None:
    lanes = Counter(lane_of_shard(members))
    slots = len(slots_of(members))
    assert min(lanes[slot] for slot in range(slots)) >= SHARDS // slots - slots


def test_more_slots_than_shards_give_each_shard_a_slot_of_its_own() -> None:
    lanes = lane_of_shard(members_of(dict.fromkeys(range(1, 21), 64)))
    assert len(set(lanes)) == SHARDS


@given(groups(12, weight=1), ids)
@settings(deadline=None, max_examples=40)
def test_a_joiner_takes_little_more_than_its_share(members: tuple[Member, ...], joiner: int) -> None:
    after = sorted_members({*members, Member(joiner, 1)} if index_of(members, joiner) is None else members)
    assert moves(members, after) <= SHARDS / len(after) + SHARDS / 8


@given(groups(12, weight=1), st.data())
@settings(deadline=None, max_examples=40)
def test_when_one_leaves_little_more_than_its_share_moves(members: tuple[Member, ...], data: st.DataObject) -> None:
    if len(members) > 1:
        gone = data.draw(st.sampled_from(members))
        after = tuple(member for member in members if member != gone)
        assert owners(members).count(gone.id) <= moves(members, after) <= SHARDS / len(members) + SHARDS / 8


def test_a_full_slot_with_the_best_score_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    # All scores alike: slots fill up one after the other.
    monkeypatch.setattr(table, "_scores", lambda member, copy: array("I", [5] * SHARDS))
    assert lane_of_shard.__wrapped__(members_of({1: 1, 2: 1})) == (0,) * (SHARDS // 2) + (1,) * (SHARDS // 2)
