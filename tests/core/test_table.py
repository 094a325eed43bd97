"""A group's members: slots, indices, and the shard map that a table remembers."""

from __future__ import annotations

from rvq.core.shards import deal, draft
from rvq.core.table import Table, index_of, slots_held, slots_of, sorted_members
from rvq.wire.frames import Member, Version


def members_of(weights: dict[int, int]) -> tuple[Member, ...]:
    return sorted_members(Member(id, weight) for id, weight in weights.items())


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


def test_a_table_gives_its_own_members_the_map_that_it_carries() -> None:
    members = members_of({1: 1, 2: 1})
    uneven = (0,) * 1000 + (1,) * 24
    assert Table(Version(1, 1), members, (), uneven).shard_map_of(members) == uneven


def test_other_members_get_a_map_from_the_one_that_the_table_carries() -> None:
    members, fewer = members_of({1: 1, 2: 1, 3: 1}), members_of({1: 1, 3: 1})
    carried = tuple(reversed(draft(members)))
    assert Table(Version(1, 1), members, (), carried).shard_map_of(fewer) == deal(members, carried, fewer)


def test_a_table_that_carries_no_map_counts_as_one_with_the_first_map_of_its_members() -> None:
    members, fewer = members_of({1: 1, 2: 1, 3: 1}), members_of({1: 1, 3: 1})
    bare = Table(Version(1, 1), members)
    assert bare.shard_map_of(members) == draft(members)
    assert bare.shard_map_of(fewer) == deal(members, draft(members), fewer)


def test_after_a_table_that_nobody_holds_a_slot_of_the_map_begins_anew() -> None:
    nobody = Table(Version(1, 1), (), draining=(1,))
    assert nobody.shard_map_of(()) == ()
    assert nobody.shard_map_of(members_of({1: 1, 2: 1})) == draft(members_of({1: 1, 2: 1}))


def test_it_says_which_slots_a_receiver_holds() -> None:
    table = Table(Version(1, 2), (Member(2, 1), Member(5, 3), Member(9, 2)), (7,))
    assert [slots_held(table, id) for id in (2, 5, 9)] == [(0, 1, 6), (1, 3, 6), (4, 2, 6)]
    assert slots_held(table, 7) == (0, 0, 6), "one that drains has none"
    assert slots_held(None, 2) == (0, 0, 0)
