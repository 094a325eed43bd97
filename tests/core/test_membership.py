"""Heartbeats in, tables out. Times are numbers; nothing waits."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.core import membership
from rvq.core.membership import CALM_S, PAUSE_S_MAX, Membership
from rvq.core.shards import draft
from rvq.core.table import Table, slots_of, sorted_members
from rvq.timings import Timings
from rvq.wire.frames import NO_VERSION, Alive, Heard, Member, Version

T = Timings()
FIRST = T.first_table


def alive(
    id: int,
    counter: int = 1,
    *,
    version: Version = NO_VERSION,
    weight: int = 1,
    leaving: bool = False,
    heard: tuple[Heard, ...] = (),
) -> Alive:
    return Alive(id, "work", "default", weight, counter, False, leaving, 0, version, heard, ())


def table(counter: int, keeper: int, *members: int, draining: tuple[int, ...] = ()) -> Table:
    return Table(Version(counter, keeper), sorted_members(Member(id, 1) for id in members), draining)


def bare(written: Table | None) -> Table:
    """A table without its shard map."""
    assert written is not None, "no table was written"
    return replace(written, shard_map=())


def ids(written: Table | None) -> list[int]:
    assert written is not None, "no table was written"
    return [member.id for member in written.members]


def alone(me: int = 5, now: float = 0.0) -> Membership:
    """One that heard nobody and wrote the first table."""
    group = Membership(me, 1, T, now)
    assert run(group, now, now + FIRST) is not None
    return group


def run(group: Membership, now: float, until: float) -> Table | None:
    """Wake it whenever it asks for it. The last table that it wrote."""
    written = None
    for _ in range(1000):
        due = max(now, group.next_deadline())
        if due > until:
            return written
        now = due
        written = group.wake(now) or written
        group.check_invariants()
    raise AssertionError("it asks to be woken again and again")


# --- the first table ----------------------------------------------------------------------------------------------


def test_one_who_hears_nobody_writes_the_first_table_after_three_heartbeats() -> None:
    group = Membership(5, 2, T, 100.0)
    assert run(group, 100.0, 100.0 + FIRST - 0.001) is None
    assert bare(run(group, 100.0, 100.0 + FIRST)) == Table(Version(1, 5), (Member(5, 2),))
    assert group.is_keeper


def test_of_those_who_wait_for_a_first_table_the_lowest_writes_it() -> None:
    low, high = Membership(5, 1, T, 0.0), Membership(7, 1, T, 0.0)
    low.hear(0.1, alive(7), "b")
    high.hear(0.1, alive(5), "a")
    assert run(high, 0.1, 0.9) is None
    assert ids(run(low, 0.1, 0.9)) == [5, 7]


def test_the_next_one_writes_the_first_table_when_the_lowest_dies_before_it_could() -> None:
    group = Membership(7, 1, T, 0.0)
    group.hear(0.1, alive(5), "a")
    assert ids(run(group, 0.1, 0.1 + T.expiry + T.settle)) == [7]


def test_one_who_leaves_before_there_is_a_table_writes_none() -> None:
    group = Membership(5, 1, T, 0.0)
    group.leave(0.1)
    assert run(group, 0.1, 10.0) is None


def test_a_joiner_that_hears_of_a_table_waits_to_be_let_in() -> None:
    group = Membership(5, 1, T, 0.0)
    for beat in range(1, 20):
        group.hear(beat * 0.2, alive(7, beat, version=Version(3, 7)), "b")
        assert run(group, beat * 0.2, beat * 0.2 + 0.1) is None
    assert not group.is_keeper
    assert group.offer(4.0, table(4, 7, 5, 7))
    assert group.version == Version(4, 7)


def test_two_that_wrote_first_tables_at_once_hear_each_other_and_the_lower_writes_the_union() -> None:
    low, high = alone(5), alone(7)
    low.hear(0.7, alive(7, version=high.version), "b")
    high.hear(0.7, alive(5, version=low.version), "a")
    union = run(low, 0.7, 0.9)
    assert ids(union) == [5, 7]
    assert run(high, 0.7, 0.9) is None
    assert union is not None and high.offer(0.9, union)
    assert high.table == low.table


# --- shards -------------------------------------------------------------------------------------------------------


def moves(before: Table, after: Table) -> int:
    """Shards that change their member."""
    old, new = slots_of(before.members), slots_of(after.members)
    return sum(old[a] != new[b] for a, b in zip(before.shard_map, after.shard_map, strict=True))


def test_the_first_table_has_the_first_map() -> None:
    written = alone().table
    assert written is not None and written.shard_map == draft(written.members)


def test_a_table_moves_shards_from_the_one_before_and_no_more_than_it_must() -> None:
    group = alone()
    tables = [group.table]
    for n in range(1, 6):
        group.hear(n, alive(100 + n), 100 + n)
        for m in range(1, n):
            group.hear(n, alive(100 + m, 1 + n), 100 + m)
        tables.append(run(group, n, n + 0.9))
    for before, after in pairwise(tables):
        assert before is not None and after is not None
        assert moves(before, after) == 1024 // len(after.members)
        assert after.shard_map == before.shard_map_of(after.members)


def test_one_who_is_there_again_under_a_new_id_gets_what_it_had() -> None:
    group = alone()
    for id in (7, 8, 9):
        group.hear(1.0, alive(id), id)
    before = run(group, 1.0, 1.5)
    group.goodbye(1.6, 8, 8)
    group.hear(1.6, alive(11), "c")
    after = run(group, 1.6, 1.9)
    assert before is not None and after is not None and ids(after) == [5, 7, 9, 11]
    assert [slots_of(after.members)[slot] for slot in after.shard_map] == [
        {8: 11}.get(owner, owner) for owner in (slots_of(before.members)[slot] for slot in before.shard_map)
    ]


def test_a_union_follows_from_the_table_of_its_keeper() -> None:
    """One that hears nobody writes a newer table for itself, and is heard: that must not move everyone's shards."""
    group = alone()
    group.hear(1.0, alive(7), "b")
    before = run(group, 1.0, 1.2)
    lonely = replace(table(7, 7, 7), shard_map=(0,) * 1024)
    assert not group.offer(1.3, lonely)
    group.hear(1.3, alive(7, 2, version=lonely.version), "b")
    union = run(group, 1.3, 1.6)
    assert before is not None and union is not None and ids(union) == [5, 7]
    assert union.shard_map == before.shard_map


def test_a_keeper_that_heard_nobody_for_a_while_goes_back_to_the_map_that_it_shared() -> None:
    group = alone()
    before = replace(table(2, 5, 5, 7, 9), shard_map=(2, 0, 1, 2) * 255 + (0, 1) * 2)
    for id in (7, 9):
        group.hear(1.0, alive(id), id)
    assert group.offer(1.0, before)
    assert ids(run(group, 1.0, 3.0)) == [5]
    for id in (7, 9):
        group.hear(3.0, alive(id, 2, version=Version(7, 7)), id)
    union = run(group, 3.0, 3.5)
    assert union is not None and ids(union) == [5, 7, 9]
    assert union.shard_map == before.shard_map


def test_one_that_has_no_table_writes_from_the_newest_that_it_heard() -> None:
    group = Membership(5, 1, T, 0.0)
    heard = replace(table(7, 7, 7, 9), shard_map=(1, 1, 1, 0) * 256)
    group.offer(0.1, heard)
    group.offer(0.2, replace(table(6, 7, 7, 9), shard_map=(0, 1) * 512))
    written = run(group, 0.2, 2.0)
    assert written is not None and written.shard_map == (0,) * 1024
    group.hear(2.0, alive(7, version=heard.version), "b")
    group.hear(2.0, alive(9, version=heard.version), "c")
    written = run(group, 2.0, 2.5)
    assert written is not None and written.shard_map == heard.shard_map_of(written.members)


def test_a_table_that_is_heard_late_is_not_where_shards_are_moved_from() -> None:
    group = alone()
    group.hear(1.0, alive(7), "b")
    before = run(group, 1.0, 1.2)
    assert before is not None
    group.offer(1.2, replace(table(1, 7, 5, 7), shard_map=(1, 1, 1, 0) * 256))
    group.hear(1.3, alive(9), "c")
    after = run(group, 1.3, 1.6)
    assert after is not None and after.shard_map == before.shard_map_of(after.members)


def test_a_table_without_slots_has_no_map_and_the_next_one_begins_anew() -> None:
    group = alone()
    group.leave(1.0)
    written = run(group, 1.0, 1.5)
    assert written is not None and (written.members, written.shard_map) == ((), ())
    group.hear(2.0, alive(7), "b")
    written = run(group, 2.0, 2.5)
    assert written is not None and written.shard_map == draft(written.members) == (0,) * 1024


# --- joining, dying, leaving --------------------------------------------------------------------------------------


def test_a_joiner_is_in_the_table_after_the_group_settled() -> None:
    group = alone()
    group.hear(1.0, alive(7, weight=3), "b")
    assert run(group, 1.0, 1.0 + T.settle - 0.001) is None
    written = run(group, 1.0, 1.0 + T.settle)
    assert bare(written) == Table(Version(2, 5), (Member(5, 1), Member(7, 3)))


def test_a_hundred_joiners_make_one_table() -> None:
    group = alone()
    tables = []
    for n in range(100):
        now = 1.0 + n * 0.001
        group.hear(now, alive(100 + n), n)
        tables.append(run(group, now, now))
    assert not any(tables)
    assert len(ids(run(group, 1.1, 1.1 + T.settle))) == 101


def test_joiners_without_end_cannot_put_off_a_table_for_ever() -> None:
    group = alone()
    now, written = 1.0, None
    for n in range(1000):
        now = 1.0 + n * T.settle / 2
        group.hear(now, alive(100 + n), n)
        written = run(group, now, now)
        if written:
            break
    assert written is not None
    assert now == pytest.approx(1.0 + T.settle_max, abs=T.settle)


def test_a_silent_member_is_dropped_after_the_expiry() -> None:
    group = alone()
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.5)
    assert run(group, 1.5, 1.0 + T.expiry - 0.001) is None
    assert 7 in group.peers
    assert ids(run(group, 1.5, 1.0 + T.expiry + T.settle)) == [5]
    assert 7 not in group.peers


def test_when_the_keeper_is_silent_the_next_id_is_the_keeper() -> None:
    group = Membership(7, 1, T, 0.0)
    group.hear(0.1, alive(5, version=Version(1, 5)), "a")
    group.hear(0.1, alive(9, version=Version(1, 5)), "c")
    group.offer(0.1, table(1, 5, 5, 7, 9))
    assert not group.is_keeper
    group.hear(1.0, alive(9, 2, version=Version(1, 5)), "c")
    written = run(group, 1.0, 0.1 + T.expiry + T.settle)
    assert group.is_keeper
    assert bare(written) == table(2, 7, 7, 9)


def test_only_the_keeper_writes() -> None:
    group = Membership(7, 1, T, 0.0)
    group.hear(0.1, alive(5, version=Version(1, 5)), "a")
    group.offer(0.1, table(1, 5, 5, 7))
    group.hear(0.2, alive(9), "c")
    assert run(group, 0.2, 0.9) is None


def test_a_joiner_with_the_lowest_id_is_no_keeper_before_it_belongs_to_a_table() -> None:
    group = alone(5)
    group.hear(1.0, alive(2), "a")
    assert group.is_keeper
    written = run(group, 1.0, 1.1)
    assert ids(written) == [2, 5]
    group.hear(1.2, alive(2, 2, version=group.version), "a")
    assert not group.is_keeper


def test_a_late_heartbeat_revives_nobody() -> None:
    group = alone()
    group.hear(1.0, alive(7, counter=4), "b")
    run(group, 1.0, 3.0)
    assert not group.hear(3.0, alive(7, counter=4), "b")
    assert not group.hear(3.0, alive(7, counter=3), "b")
    assert 7 not in group.peers
    assert group.hear(3.0, alive(7, counter=5), "b"), "one that goes on beating lives"
    assert 7 in group.peers


def test_a_repeated_heartbeat_prolongs_no_life() -> None:
    group = alone()
    assert group.hear(1.0, alive(7, counter=4), "b")
    assert not group.hear(1.9, alive(7, counter=4), "b")
    run(group, 1.0, 1.0 + T.expiry)
    assert 7 not in group.peers


def test_after_a_goodbye_no_heartbeat_counts_again() -> None:
    group = alone()
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    group.goodbye(1.3, 7, "b")
    assert not group.hear(1.3, alive(7, counter=2**63 - 1), "b")
    assert ids(run(group, 1.3, 1.3 + T.settle)) == [5]


def test_one_who_leaves_drains_until_its_goodbye() -> None:
    group = alone()
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    group.hear(1.3, alive(7, 2, leaving=True, version=group.version), "b")
    assert bare(run(group, 1.3, 1.4)) == table(3, 5, 5, draining=(7,))
    group.goodbye(1.5, 7, "b")
    assert bare(run(group, 1.5, 1.6)) == table(4, 5, 5)


def test_one_who_leaves_without_having_been_in_is_in_no_table() -> None:
    group = alone()
    group.hear(1.0, alive(7, leaving=True), "b")
    assert run(group, 1.0, 1.5) is None


def test_one_who_leaves_with_another_table_than_mine_drains() -> None:
    group = alone()
    group.hear(1.0, alive(7, leaving=True, version=Version(1, 7)), "b")
    assert bare(run(group, 1.0, 1.5)) == table(2, 5, 5, draining=(7,))


def test_a_keeper_that_leaves_hands_over_to_one_that_stays() -> None:
    group = alone(5)
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    group.hear(1.2, alive(7, 2, version=group.version), "b")
    group.leave(1.3)
    assert not group.is_keeper
    assert run(group, 1.3, 1.5) is None

    other = Membership(7, 1, T, 0.0)
    other.hear(1.2, alive(5, version=Version(2, 5)), "a")
    other.offer(1.2, table(2, 5, 5, 7))
    other.hear(1.3, alive(5, 2, leaving=True, version=Version(2, 5)), "a")
    assert bare(run(other, 1.3, 1.5)) == table(3, 7, 7, draining=(5,))


def test_a_leaver_that_alone_has_a_table_still_lets_a_joiner_in() -> None:
    group = alone(5)
    group.leave(1.0)
    group.hear(1.1, alive(7), "b")
    assert bare(run(group, 1.0, 1.5)) == table(2, 5, 7, draining=(5,))


def test_when_all_leave_the_last_table_has_only_draining_ones() -> None:
    group = alone(5)
    group.leave(1.0)
    assert bare(run(group, 1.0, 1.5)) == table(2, 5, draining=(5,))


def test_a_changed_weight_makes_a_new_table() -> None:
    group = alone()
    group.hear(1.0, alive(7, 1, weight=1), "b")
    run(group, 1.0, 1.2)
    group.hear(1.3, alive(7, 2, weight=4, version=group.version), "b")
    written = run(group, 1.3, 1.5)
    assert written is not None and written.members == (Member(5, 1), Member(7, 4))


def test_nothing_new_makes_no_new_table() -> None:
    group = alone()
    group.hear(1.0, alive(7, 1), "b")
    run(group, 1.0, 1.2)
    for beat in range(2, 30):
        now = 1.0 + beat * T.heartbeat
        group.hear(now, alive(7, beat, version=group.version), "b")
        assert run(group, now, now + T.heartbeat / 2) is None


# --- versions -----------------------------------------------------------------------------------------------------


def test_a_new_table_is_newer_than_any_that_was_heard_of() -> None:
    group = alone()
    group.learn_counter(40)  # a stamp said so
    group.hear(1.0, alive(7, version=Version(50, 7)), "b")
    group.offer(1.0, table(60, 9, 9))
    written = run(group, 1.0, 1.2)
    assert written is not None and written.version == Version(61, 5)


def test_a_table_is_taken_only_if_it_is_newer_and_has_me() -> None:
    group = alone(5)
    assert not group.offer(1.0, table(9, 1, 1, 2)), "I am not in it"
    assert not group.offer(1.0, table(1, 4, 4, 5)), "(1, 4) is older than (1, 5)"
    assert not group.offer(1.0, table(1, 5, 5)), "it is the one I have"
    assert group.offer(1.0, table(1, 6, 5, 6))
    assert not group.offer(1.0, table(1, 6, 5, 6))
    assert group.version == Version(1, 6)


def test_one_who_drains_in_a_table_is_in_it() -> None:
    group = alone(5)
    assert group.offer(1.0, table(2, 1, 1, draining=(5,)))


def test_a_keeper_that_hears_of_a_newer_table_without_it_writes_the_union() -> None:
    group = alone(5)
    group.hear(1.0, alive(7, version=Version(8, 7)), "b")
    assert bare(run(group, 1.0, 1.2)) == table(9, 5, 5, 7)


def test_a_keeper_whose_member_went_on_without_it_writes_a_table_that_is_newer_still() -> None:
    group = alone(5)
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    group.hear(1.3, alive(7, 2, version=Version(3, 7)), "b")  # it took me for dead
    assert bare(run(group, 1.3, 1.5)) == table(4, 5, 5, 7)


def test_the_first_who_has_the_table_sends_it_to_those_who_lag() -> None:
    group = alone(5)
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    assert group.lags(1.3, 7)
    assert not group.lags(1.3, 7), "not again at once"
    assert group.lags(1.3 + T.heartbeat, 7)
    group.hear(1.6, alive(7, 2, version=group.version), "b")
    assert not group.lags(2.0, 7), "it has it now"
    assert not group.lags(2.0, 8), "nobody knows it"


def test_one_who_is_not_in_the_table_does_not_lag() -> None:
    group = alone(5)
    group.hear(1.0, alive(7), "b")
    assert not group.lags(1.01, 7)


def test_one_who_is_not_the_first_to_have_the_table_sends_it_to_nobody() -> None:
    group = Membership(7, 1, T, 0.0)
    group.hear(0.1, alive(5, version=Version(2, 5)), "a")
    group.hear(0.1, alive(9, version=Version(1, 5)), "c")
    group.offer(0.1, table(2, 5, 5, 7, 9))
    assert not group.lags(0.2, 9)
    run(group, 0.2, 0.15 + T.expiry)
    group.hear(1.2, alive(9, 2, version=Version(1, 5)), "c")
    assert group.lags(1.3, 9), "5 is dead"


# --- naps and pauses ----------------------------------------------------------------------------------------------


def test_one_that_slept_takes_nobody_for_dead_before_it_listened() -> None:
    group = alone()
    group.hear(1.0, alive(7), "b")
    run(group, 1.0, 1.2)
    group.forgive(10.0)
    assert run(group, 11.2, 11.9) is None
    assert 7 in group.peers
    assert ids(run(group, 11.9, 12.1)) == [5]


def test_a_busy_keeper_doubles_its_pause_up_to_a_limit() -> None:
    group = alone()
    pauses, now = [], FIRST
    for n in count():
        group.hear(now, alive(1000 + n), n)
        for peer in group.peers.values():
            peer.expires_at = math.inf
        due = group.next_deadline()
        pauses.append(due - now)
        assert group.wake(due) is not None
        now = due
        group.check_invariants()
        if n == 14:
            break
    # The table of the beginning and two more make three.
    assert pauses[:3] == pytest.approx([T.settle, T.settle, 2 * T.settle])
    assert all(b == pytest.approx(min(PAUSE_S_MAX, 2 * a)) for a, b in pairwise(pauses[1:]))
    assert pauses[-1] == pytest.approx(PAUSE_S_MAX)


def test_a_keeper_that_has_been_calm_is_quick_again() -> None:
    group = alone()
    now = FIRST
    for n in range(10):
        group.hear(now, alive(1000 + n), n)
        for peer in group.peers.values():
            peer.expires_at = math.inf
        now = group.next_deadline()
        group.wake(now)
    now += CALM_S
    group.hear(now, alive(2000), "late")
    assert group.next_deadline() == pytest.approx(now + T.settle)


# --- strangers ----------------------------------------------------------------------------------------------------


def test_ones_own_heartbeat_that_comes_back_is_nobody() -> None:
    group = alone(5)
    assert not group.hear(1.0, alive(5, counter=9, version=Version(9, 9)), "me")
    assert not group.peers
    group.check_invariants()


def test_no_table_has_more_members_than_everyone_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMBERS_MAX", 3)
    group = alone(5)
    assert [group.hear(1.0, alive(id), id) for id in (6, 7, 8)] == [True, True, False]
    assert len(ids(run(group, 1.0, 1.2))) == 3
    assert group.hear(1.2, alive(7, 2), 7), "those who are in stay in"


def test_no_table_has_more_slots_than_everyone_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOTS_MAX", 10)
    group = alone(5)
    assert [group.hear(1.0, alive(id, weight=w), id) for id, w in ((6, 5), (7, 5), (8, 4))] == [True, False, True]


def test_the_departed_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership.limits, "REMEMBERED_MAX", 3)
    group = alone(5)
    for id in range(100, 110):
        group.hear(1.0, alive(id), id)
        group.goodbye(1.0, id, id)
        group.check_invariants()
    assert not group.hear(1.0, alive(109, 2), 109)
    assert group.hear(1.0, alive(100, 2), 100), "the oldest are forgotten"


def test_a_table_of_members_whom_nobody_hears_is_not_taken_by_one_who_has_another() -> None:
    group = alone(5)
    for id in (7, 8):
        group.hear(1.0, alive(id), id)
    run(group, 1.0, 1.5)
    made_up = table(50, 66, 5, 7, 8, *range(1000, 3000))
    assert not group.offer(1.5, made_up) and group.table is not None and group.table.has(7)
    assert group.offer(1.5, table(51, 7, 5, 7, 8, 9, 10, 11)), "joiners whom the keeper heard sooner"
    newcomer = Membership(5, 1, T, 0.0)
    assert newcomer.offer(0.0, made_up), "who has no table may have heard nobody yet"


# --- everyone together --------------------------------------------------------------------------------------------


class Group:
    """Several of them that hear each other at once, on time steps of a tenth of a heartbeat."""

    def __init__(self) -> None:
        self.now = 0.0
        self.live: dict[int, Membership] = {}
        self.counters: dict[int, int] = {}
        self.versions: list[Version] = []

    def join(self, id: int) -> None:
        self.live[id] = Membership(id, 1, T, self.now)
        self.counters[id] = 0

    def go_on(self, seconds: float) -> None:
        for _ in range(round(seconds / (T.heartbeat / 10))):
            self.now += T.heartbeat / 10
            for id, one in list(self.live.items()):
                if round(self.now / (T.heartbeat / 10)) % 10 == id % 10:
                    self.beat(one)
                written = one.wake(self.now)
                one.check_invariants()
                if written is not None:
                    self.versions.append(written.version)
                    self.tell(one, written)

    def beat(self, one: Membership) -> None:
        self.counters[one.me] += 1
        frame = alive(one.me, self.counters[one.me], version=one.version, leaving=one.leaving)
        for other in self.live.values():
            if other is not one:
                other.hear(self.now, frame, one.me)
                if other.lags(self.now, one.me) and other.table is not None:
                    self.tell(other, other.table)

    def tell(self, one: Membership, written: Table) -> None:
        for other in self.live.values():
            if other is not one:
                other.offer(self.now, written)


actions = st.tuples(
    st.sampled_from(["join", "die", "leave", "goodbye"]), st.integers(1, 30), st.sampled_from([0.0, 0.02, 0.3, 1.5])
)


@given(st.lists(actions, max_size=12))
@settings(max_examples=60, deadline=None)
def test_whoever_comes_and_goes_all_who_stay_soon_have_one_table_of_them_all(
    steps: list[tuple[str, int, float]],
) -> None:
    group = Group()
    group.join(50)
    used = {50}
    for action, id, pause in steps:
        if action == "join" and id not in used:
            used.add(id)
            group.join(id)
        elif action == "die" and id in group.live:
            del group.live[id]
        elif action == "leave" and id in group.live:
            group.live[id].leave(group.now)
        elif action == "goodbye" and id in group.live:
            del group.live[id]
            for other in group.live.values():
                other.goodbye(group.now, id, id)
        group.go_on(pause)
    group.go_on(T.expiry + 3 * PAUSE_S_MAX)
    staying = sorted(id for id, one in group.live.items() if not one.leaving)
    tables = {group.live[id].table for id in staying}
    assert len(tables) == 1
    assert ids(tables.pop()) == staying
    assert len(set(group.versions)) == len(group.versions), "two tables of one version"
    for one in group.live.values():
        assert one.table is None or one.leaving or one.table.has(one.me)
    quiet = len(group.versions)
    group.go_on(5.0)
    assert len(group.versions) == quiet, "tables are written though nothing changes"


def test_a_keeper_that_hears_nobody_does_not_keep_others_from_a_table_for_ever() -> None:
    """The lowest id is heard, and writes tables of itself alone: those behind it write in its place, late."""
    mine = Membership(20, 1, Timings(), 0.0)
    deaf = Alive(10, "work", "default", 1, 0, False, False, 0, Version(1, 10), (), ())
    written, now, counter = None, 0.0, 0
    while written is None and now < 60.0:
        now += 0.2
        counter += 1
        mine.hear(now, replace(deaf, counter=counter), "deaf")
        written = mine.wake(now)
        mine.check_invariants()
    assert written is not None and {member.id for member in written.members} == {10, 20}
    assert PAUSE_S_MAX < now < PAUSE_S_MAX + 3.0


def test_another_weight_of_mine_makes_another_table_and_one_that_fits_none_is_refused() -> None:
    group = alone()
    assert group.weigh(10.0, 7)
    written = run(group, 10.0, 20.0)
    assert written is not None and written.members == (Member(5, 7),)
    group._slots = limits.SLOTS_MAX
    assert not group.weigh(20.0, 8) and group.weight == 7
    assert group.weigh(20.0, 6)


def test_a_peers_weight_that_no_table_has_room_for_stays_what_it_was() -> None:
    group = alone()
    group.hear(1.0, alive(7, 1, weight=2), "7")
    group._slots, spare = limits.SLOTS_MAX, limits.SLOTS_MAX - group._slots
    assert group.hear(1.0, alive(7, 2, weight=3), "7")
    assert group.peers[7].weight == 2 and group.peers[7].counter == 2
    group._slots -= spare
    group.check_invariants()
