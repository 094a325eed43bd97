"""From stamps follows who owned what, as receivers derive it."""

from __future__ import annotations

from math import inf

import numpy as np

from rvq.spark.history import rows_of
from rvq.spark.segments import Said, segments_of
from rvq.wire.frames import GroupStamp, Member, Stamp, Version
from rvq.wire.records import NO_SHARD

MAP = tuple(shard % 3 for shard in range(1024))


def said(number: int, at: int, *entries: GroupStamp) -> Said:
    (row,) = rows_of(Stamp(1, "work", number, at, bool(entries and entries[0].shard_map), entries))
    return Said(row["stamp"], row["first"], row["detail"])


def entry(group: str, since: int, at: int, *members: int, shard_map: tuple[int, ...] = ()) -> GroupStamp:
    owners = tuple(Member(id, 1) for id in members)
    return GroupStamp(group, since, at, Version(since, 1), owners, (), (), (), shard_map)


def test_a_segment_ends_where_the_next_one_of_its_group_begins() -> None:
    stamps = [
        said(1, 1, entry("a", 1, 1, 7)),
        said(2, 50, entry("a", 1, 1, 7), entry("b", 2, 50, 8)),
        said(3, 90, entry("a", 3, 90, 7, 9), entry("b", 2, 50, 8)),
    ]
    found = segments_of(stamps[::-1] + stamps)
    assert [(s.stamp, s.at, s.end, s.owners) for s in found["a"].segments] == [(1, 1, 89, (7,)), (3, 90, inf, (7, 9))]
    assert [(s.at, s.end) for s in found["b"].segments] == [(50, inf)]


def test_a_group_that_is_no_longer_named_is_away() -> None:
    found = segments_of([said(1, 1, entry("a", 1, 1, 7), entry("b", 1, 1, 8)), said(2, 40, entry("a", 1, 1, 7))])
    assert found["b"].expected(np.array([1, 39, 40])).tolist() == [True, True, False]
    assert found["a"].expected(np.array([0, 1, 1000])).tolist() == [False, True, True]


def test_an_older_segment_is_known_from_a_later_stamp() -> None:
    """A recorder that joins hears only of stamps that are still needed."""
    found = segments_of([said(5, 100, entry("a", 3, 70, 7), entry("journal", 5, 100, 9))])
    assert [(s.stamp, s.at) for s in found["a"].segments] == [(3, 70)]


def test_slots_are_those_of_the_protocol() -> None:
    (segment,) = segments_of([said(1, 1, entry("a", 1, 1, 7, 8, 9, shard_map=MAP))])["a"].segments
    slots = segment.slots_of(np.array([10, 11, 12]), np.array([5, NO_SHARD, 7]))
    assert slots.tolist() == [MAP[5], 11 % 3, MAP[7]]
    assert segment.slots_of(np.array([10, 11, 12]), None).tolist() == [1, 2, 0]
