"""A group as an observer knows it: who is in, which slots are whose, also for one who comes when all is said."""

from __future__ import annotations

from rvq.core.observed.ends import SeenReceiver
from rvq.core.observed.group import TABLES_MAX, SeenGroup
from rvq.core.observed.happenings import Happenings, hex_id
from rvq.wire.frames import Member, TableFrame, Version
from tests.core.observed.frames import GROUP, LABEL, an_about, an_alive

V1, V2 = Version(1, 7), Version(2, 7)


def a_group(*ids: int, version: Version = V1, introduced: bool = True) -> SeenGroup:
    """Receivers of one slot each, who all say that they belong to that table."""
    group = SeenGroup(LABEL, GROUP, Happenings())
    for slot, id in enumerate(ids):
        receiver = group.receivers[id] = SeenReceiver(id, LABEL, GROUP, 0.0)
        receiver.beat(0.0, an_alive(id, 1, version), "there")
        if introduced:
            receiver.introduce(0.0, 1e9, an_about(id, version=version, slot=slot, slots=len(ids)), "there")
        group.update(1e9, receiver, watched=True)
    return group


def states(group: SeenGroup, *silent: int) -> dict[int, str]:
    return {id: group.state(receiver, id in silent) for id, receiver in group.receivers.items()}


def a_table(version: Version, *ids: int, draining: tuple[int, ...] = ()) -> TableFrame:
    return TableFrame(version.keeper, LABEL, GROUP, version, tuple(Member(id, 1) for id in ids), draining)


def test_one_who_comes_later_pieces_the_table_together() -> None:
    group = a_group(7, 8, 9)
    assert group.table is None and group.slots() == (7, 8, 9)
    picture = group.picture(0.1, [])
    assert picture["version"] == [1, hex_id(7)] and picture["slots"] == 3
    assert [row["index"] for row in picture["receivers"]] == [[0], [1], [2]]
    assert [row["share"] for row in picture["receivers"]] == [0.3333] * 3, "of the slots, while nothing is done"


def test_slots_of_whom_nothing_is_known_yet_are_nobodys() -> None:
    group = a_group(7, 9)
    group.receivers[9].introduce(0.0, 1e9, an_about(9, version=V1, slot=2, slots=3), "there")
    assert group.slots() == (7, 0, 9)


def test_a_table_that_is_heard_counts_when_somebody_belongs_to_it() -> None:
    group = a_group(7, 8, 9)
    group.heard_table(a_table(V2, 7, 8))
    assert group.version == V1 and set(states(group).values()) == {"in"}
    group.receivers[7].beat(0.2, an_alive(7, 2, V2), "there")
    group.update(1e9, group.receivers[7], watched=True)
    assert group.version == V2 and group.slots() == (7, 8)
    assert states(group) == {7: "in", 8: "in", 9: "joining"} and group.is_out(group.receivers[9])


def test_who_leaves_is_draining_and_who_is_silent_is_silent() -> None:
    group = a_group(7, 8, 9)
    group.receivers[8].beat(0.2, an_alive(8, 2, V1, leaving=True), "there")
    assert states(group, 9) == {7: "in", 8: "draining", 9: "silent"}
    group = a_group(7, 8)
    group.heard_table(a_table(V1, 7, draining=(8,)))
    assert states(group) == {7: "in", 8: "draining"} and not group.is_out(group.receivers[8])


def test_one_without_a_table_is_joining() -> None:
    group = a_group(7, version=Version(0, 0), introduced=False)
    assert states(group) == {7: "joining"} and group.slots() == ()


def test_tables_and_joins_are_told_once() -> None:
    group = a_group(7, 8)
    for _ in range(3):
        group.update(1e9, group.receivers[8], watched=True)
    happenings = group._happenings
    assert [(e.kind, e.who) for e in happenings.events] == [("table", 7), ("joined", 7), ("joined", 8)]
    assert [switch.slots for switch in happenings.switches] == [(7, 8)], "known by now"


def test_what_was_there_before_one_looked_is_no_event() -> None:
    group = SeenGroup(LABEL, GROUP, Happenings())
    receiver = group.receivers[7] = SeenReceiver(7, LABEL, GROUP, 0.0)
    receiver.beat(0.0, an_alive(7, 1, V1), "there")
    group.update(1e9, receiver, watched=False)
    assert not group._happenings.events and len(group._happenings.switches) == 1


def test_tables_that_are_kept_are_bounded() -> None:
    group = a_group(7)
    for counter in range(1, 100):
        group.heard_table(a_table(Version(counter, 7), 7))
    assert len(group._tables) == TABLES_MAX


def test_a_version_that_only_a_stranger_spoke_of_goes_with_it() -> None:
    group = a_group(7)
    stranger = group.receivers[99] = SeenReceiver(99, LABEL, GROUP, 0.0)
    stranger.beat(0.0, an_alive(99, 1, Version(2**62, 99)), "there")
    group.update(1e9, stranger, watched=True)
    assert states(group)[7] == "joining"
    group.drop(stranger)
    assert group.version == V1 and states(group) == {7: "in"}


def test_shares_are_of_what_was_done_lately() -> None:
    group = a_group(7, 8)
    for id, done in ((7, 30), (8, 10)):
        group.receivers[id].introduce(1.0, 1e9, an_about(id, version=V1, slot=id - 7, slots=2, acked=done), "there")
    assert [row["share"] for row in group.picture(1.0, [])["receivers"]] == [0.75, 0.25]
