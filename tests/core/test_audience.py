"""Whom a sender sends to: tables adopted, members struck out and let in, and when a former owner must have stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rvq import limits
from rvq.core.audience import GOOD_BEATS, PAUSE_S_MAX, SILENCE_S_MAX, TABLES_MAX, Audience, Ear
from rvq.core.lanes import Loss
from rvq.core.stamps import Segment
from rvq.core.table import Table, sorted_members
from rvq.timings import Timings
from rvq.wire.frames import NO_VERSION, Alive, Heard, Member, Silence, Version

T = Timings()
GROUP = "default"
STREAM = 0xABC
STEP = 0.2


def table(counter: int, keeper: int, *ids: int, draining: tuple[int, ...] = ()) -> Table:
    return Table(Version(counter, keeper), sorted_members(Member(id, 1) for id in ids), draining)


class Ears:
    """An audience and the heartbeats that it hears. A sender's heartbeat is named by the time it was sent, in ms."""

    def __init__(self) -> None:
        self.audience = Audience(T)
        self.counters: dict[int, int] = {}
        self.announced: dict[int, Version] = {}

    def announce(self, one: Table, *ids: int) -> None:
        """A table is known, and these say that it is theirs."""
        self.audience.offer(0.0, GROUP, one)
        for id in ids or one.everyone:
            self.announced[id] = one.version

    def beat(
        self,
        now: float,
        *ids: int,
        heard_at: float | None = None,
        leaving: bool = False,
        stamp: int = 0,
        orphaned: bool = False,
        group: str = GROUP,
    ) -> None:
        """Heartbeats of these, who have heard ours of `heard_at`: just now, unless told; never if negative."""
        for id in ids:
            self.counters[id] = self.counters.get(id, 0) + 1
            version = self.announced.get(id, NO_VERSION)
            heard = Heard(STREAM, round(1000 * (now if heard_at is None else heard_at)), stamp, False, orphaned)
            frame = Alive(id, "work", group, 1, self.counters[id], False, leaving, 0, version, (heard,), ())
            deaf = heard_at is not None and heard_at < 0
            self.audience.hear(now, frame, f"at {id}", None if deaf else heard, lambda counter: counter / 1000)

    def settle(self, now: float) -> bool:
        changed = self.audience.settle(now, GROUP)
        self.audience.check_invariants()
        return changed

    def run(self, start: float, end: float, *ids: int) -> float:
        """These are heard both ways, every `STEP`."""
        now = start
        while now < end:
            self.beat(now, *ids)
            self.settle(now)
            now += STEP
        return now

    @property
    def members(self) -> list[int]:
        return [member.id for member in self.audience.groups[GROUP].members]

    @property
    def held(self) -> bool:
        return self.audience.groups[GROUP].held

    def echo(self, now: float, *ids: int) -> None:
        """As a heartbeat of ours does."""
        for id in ids:
            self.audience.ears[id].echoed_at = self.audience.ears[id].heard_at


@pytest.fixture
def ears() -> Ears:
    """5, 6 and 7 in force since 0.0."""
    ears = Ears()
    ears.announce(table(1, 5, 5, 6, 7))
    ears.beat(0.0, 5, 6, 7)
    assert ears.settle(0.0)
    assert ears.members == [5, 6, 7]
    return ears


# --- the table in force -------------------------------------------------------------------------------------------


def test_the_first_table_comes_in_force_when_a_member_is_heard_both_ways() -> None:
    ears = Ears()
    ears.announce(table(1, 5, 5, 6))
    ears.beat(0.0, 5, heard_at=-1.0)
    assert not ears.settle(0.0), "5 has not heard us"
    assert ears.held
    ears.beat(0.2, 5)
    assert ears.settle(0.2)
    assert (ears.members, ears.held) == ([5, 6], False)


def test_a_table_that_nobody_in_it_announces_is_not_adopted() -> None:
    ears = Ears()
    ears.announce(table(1, 5, 5, 6), 9)
    ears.beat(0.0, 9)
    assert not ears.settle(0.0)
    ears.beat(0.1, 5)
    assert not ears.settle(0.1), "5 says nothing of a table"


def test_a_table_that_is_only_announced_and_never_heard_is_asked_for() -> None:
    ears = Ears()
    ears.announced[5] = Version(4, 5)
    ears.beat(0.0, 5)
    assert ears.audience.lacks_table(ears.audience.ears[5])
    ears.audience.offer(0.0, GROUP, table(4, 5, 5))
    assert not ears.audience.lacks_table(ears.audience.ears[5])
    ears.settle(0.0)
    assert not ears.audience.lacks_table(ears.audience.ears[5])


def test_one_without_a_table_makes_nobody_ask() -> None:
    ears = Ears()
    ears.beat(0.0, 5)
    assert not ears.audience.lacks_table(ears.audience.ears[5])


def test_a_newer_table_comes_in_force_when_a_member_of_the_old_one_announces_it(ears: Ears) -> None:
    ears.announce(table(2, 5, 5, 6, 7, 8), 6)
    ears.beat(0.2, 5, 6, 7, 8)
    assert ears.settle(0.2)
    assert ears.members == [5, 6, 7, 8]


def test_a_newer_table_announced_by_strangers_is_not_adopted(ears: Ears) -> None:
    ears.announce(table(9, 1, 1, 2, 3, 4, 8), 1, 2, 3, 4, 8)
    ears.beat(0.2, 1, 2, 3, 4, 5, 6, 7, 8)
    assert not ears.settle(0.2)
    assert ears.members == [5, 6, 7]


def test_a_stranger_cannot_announce_a_table_for_the_members(ears: Ears) -> None:
    ears.announce(table(9, 1, 1, 5, 6, 7), 1)
    ears.beat(0.2, 1, 5, 6, 7)
    assert not ears.settle(0.2)
    assert ears.members == [5, 6, 7]


def test_an_older_table_is_not_adopted(ears: Ears) -> None:
    ears.announce(table(2, 5, 5, 6, 7, 8), 5, 6, 7)
    ears.beat(0.2, 5, 6, 7, 8)
    ears.settle(0.2)
    ears.announce(table(1, 6, 5, 6, 7, 9), 5)
    ears.beat(0.4, 5, 6, 7, 9)
    assert not ears.settle(0.4)
    assert ears.members == [5, 6, 7, 8]


def test_a_newer_table_with_fewer_members_who_are_heard_is_not_adopted(ears: Ears) -> None:
    """In a split the sender stays with the larger part."""
    ears.announce(table(2, 5, 5), 5)
    ears.beat(0.2, 5, 6, 7)
    assert not ears.settle(0.2)
    now = ears.run(0.4, 0.4 + T.expiry, 5)
    assert ears.settle(now + STEP) or ears.members == [5]
    assert ears.audience.groups[GROUP].table == table(2, 5, 5), "6 and 7 are heard no more"


def test_when_the_table_in_force_is_silent_another_one_that_is_not_is_adopted(ears: Ears) -> None:
    ears.announce(table(1, 8, 8, 9))
    ears.beat(0.9, 8, 9)
    assert not ears.settle(0.9)
    ears.beat(1.1, 8, 9)
    assert ears.settle(1.1), "silent for more than expiry"
    assert ears.members == [8, 9]


def test_of_several_tables_the_one_with_most_members_who_are_heard_is_adopted() -> None:
    ears = Ears()
    ears.announce(table(9, 5, 5))
    ears.announce(table(1, 6, 6, 7))
    ears.beat(0.0, 5, 6, 7)
    ears.settle(0.0)
    assert ears.members == [6, 7]


def test_only_so_many_tables_are_remembered_the_newest_ones(ears: Ears) -> None:
    for counter in range(2, TABLES_MAX + 20):
        ears.audience.offer(0.0, GROUP, table(counter, 5, 5, 6, 7, 8))
    known = ears.audience.groups[GROUP].known
    assert len(known) == TABLES_MAX
    assert max(known) == Version(TABLES_MAX + 19, 5)


def test_only_so_many_groups_and_receivers_are_followed() -> None:
    ears = Ears()
    for number in range(limits.GROUPS_MAX + 5):
        ears.beat(0.0, 100 + number, group=f"g{number}")
    assert len(ears.audience.groups) == limits.GROUPS_MAX
    assert len(ears.audience.ears) == limits.GROUPS_MAX


# --- heartbeats ---------------------------------------------------------------------------------------------------


def test_a_late_or_repeated_heartbeat_says_nothing(ears: Ears) -> None:
    ear = ears.audience.ears[5]
    frame = Alive(5, "work", GROUP, 1, ear.counter, False, True, 0, NO_VERSION, (), ())
    assert ears.audience.hear(5.0, frame, "elsewhere", None, lambda counter: 5.0) is None
    assert (ear.heard_at, ear.leaving, ear.address) == (0.0, False, "at 5")


def test_a_receiver_cannot_change_its_group(ears: Ears) -> None:
    ears.beat(0.2, 5, group="other")
    assert ears.audience.ears[5].heard_at == 0.0


def test_one_that_said_goodbye_is_not_heard_again(ears: Ears) -> None:
    assert ears.audience.goodbye(6, "at 6")
    assert not ears.audience.goodbye(6, "at 6"), "said once"
    assert not ears.audience.goodbye(99, "at 99")
    ears.beat(0.2, 5, 6, 7)
    assert ears.settle(0.2)
    assert ears.members == [5, 7]


# --- striking out and letting in ----------------------------------------------------------------------------------


def test_one_that_is_not_heard_for_expiry_is_struck_out_of_the_stamp_but_not_of_the_table(ears: Ears) -> None:
    now = ears.run(STEP, T.expiry, 5, 6)
    assert ears.members == [5, 6, 7]
    ears.beat(now, 5, 6)
    ears.settle(T.expiry + 0.01)
    assert ears.members == [5, 6]
    assert ears.audience.groups[GROUP].table == table(1, 5, 5, 6, 7)


def test_one_that_is_deaf_to_this_sender_is_struck_out_though_it_is_heard(ears: Ears) -> None:
    now = STEP
    while now <= 2 * T.expiry + STEP:
        ears.beat(now, 5, 6)
        ears.beat(now, 7, heard_at=0.0)
        ears.settle(now)
        now += STEP
    assert ears.members == [5, 6]


def test_a_member_that_was_never_heard_has_one_expiry_of_grace(ears: Ears) -> None:
    ears.announce(table(2, 5, 5, 6, 7, 8), 5, 6, 7)
    ears.beat(0.4, 5, 6, 7)
    ears.settle(0.4)
    assert ears.members == [5, 6, 7, 8]
    ears.run(0.6, 0.4 + T.expiry, 5, 6, 7)
    assert ears.members == [5, 6, 7, 8]
    ears.settle(0.4 + T.expiry + 0.01)
    assert ears.members == [5, 6, 7]


def test_one_that_stays_in_the_next_table_gets_no_new_grace(ears: Ears) -> None:
    ears.announce(table(2, 5, 5, 6, 7, 8), 5, 6)
    ears.run(STEP, 0.9, 5, 6, 8)
    assert ears.members == [5, 6, 7, 8]
    ears.beat(1.01, 5, 6, 8)
    ears.settle(1.01)
    assert ears.members == [5, 6, 8]


def strike(ears: Ears, receiver: int, now: float) -> float:
    """It is silent until it is struck out. The time then."""
    others = [id for id in (5, 6, 7) if id != receiver]
    now = ears.run(now, now + T.expiry + 2 * STEP, *others)
    assert receiver not in ears.members
    return now


def let_in_after(ears: Ears, receiver: int, now: float) -> tuple[int, float]:
    """It is heard again: after how many heartbeats, and when, it is a member again."""
    for beats in range(1, 100):
        ears.beat(now, 5, 6, 7)
        ears.settle(now)
        if receiver in ears.members:
            return beats, now
        now += STEP
    raise AssertionError("it is never let in")


def test_one_that_was_struck_out_is_let_in_after_three_good_heartbeats(ears: Ears) -> None:
    now = strike(ears, 7, STEP)
    assert let_in_after(ears, 7, now)[0] == GOOD_BEATS == 3


def test_heartbeats_of_one_who_does_not_hear_us_are_not_good(ears: Ears) -> None:
    now = strike(ears, 7, STEP)
    for _ in range(10):
        ears.beat(now, 5, 6)
        ears.beat(now, 7, heard_at=0.0)
        ears.settle(now)
        now += STEP
    assert ears.members == [5, 6]
    assert let_in_after(ears, 7, now)[0] == GOOD_BEATS


def test_one_that_is_struck_out_again_and_again_waits_longer_each_time_but_not_for_ever(ears: Ears) -> None:
    now = STEP
    waits = []
    for _ in range(7):
        now = strike(ears, 7, now)
        struck_at = ears.audience.ears[7].struck_at
        _, now = let_in_after(ears, 7, now)
        waits.append(now - struck_at)
        now += STEP
    assert waits == pytest.approx(sorted(waits), abs=1.5 * STEP)
    assert waits[0] < 1.0 < waits[2] < waits[3]
    assert max(waits) <= PAUSE_S_MAX + 2 * STEP
    assert waits[-1] >= PAUSE_S_MAX


def test_a_nap_of_the_senders_own_strikes_nobody_out(ears: Ears) -> None:
    ears.audience.forgive(30.0)
    assert not ears.settle(30.0 + T.expiry)
    assert ears.members == [5, 6, 7]
    ears.settle(30.0 + T.expiry + 0.01)
    assert ears.held


def test_time_that_the_sender_slept_is_taken_off_everyones_silence(ears: Ears) -> None:
    ears.run(STEP, 0.9, 5, 6, 7)
    ears.audience.forgive(30.0)
    ears.settle(30.8 + T.expiry - 0.01)
    assert ears.members == [5, 6, 7] and not ears.held
    ears.settle(30.8 + T.expiry + 0.01)
    assert ears.held


# --- holding, leaving ---------------------------------------------------------------------------------------------


def test_when_nobody_is_left_the_group_is_held_and_not_stamped(ears: Ears) -> None:
    assert not ears.settle(T.expiry + 0.01)
    assert ears.held
    assert ears.members == [5, 6, 7], "as last stamped: a table without slots never comes in force"


def test_when_all_said_goodbye_the_group_is_held_until_someone_comes(ears: Ears) -> None:
    for id in (5, 6, 7):
        ears.audience.goodbye(id, f"at {id}")
    assert not ears.settle(0.1)
    assert ears.held
    ears.announce(table(4, 9, 9))
    ears.beat(0.5, 9)
    assert ears.settle(0.5)
    assert (ears.members, ears.held) == ([9], False)


def test_one_that_leaves_is_draining_before_any_table_says_so(ears: Ears) -> None:
    ears.beat(0.2, 6, leaving=True)
    assert ears.settle(0.2)
    assert (ears.members, ears.audience.groups[GROUP].draining) == ([5, 7], (6,))


def test_those_who_drain_in_the_table_are_in_force_until_they_go(ears: Ears) -> None:
    ears.announce(table(2, 5, 5, 7, draining=(6,)), 5, 6, 7)
    ears.beat(0.2, 5, 6, 7)
    assert ears.settle(0.2)
    group = ears.audience.groups[GROUP]
    assert group.everyone == {5, 6, 7}
    ears.audience.goodbye(6, "at 6")
    assert ears.settle(0.3)
    assert group.everyone == {5, 7}


def test_if_all_are_leaving_the_group_is_held(ears: Ears) -> None:
    ears.beat(0.2, 5, 6, 7, leaving=True)
    assert not ears.settle(0.2)
    assert ears.held


def test_nothing_new_is_no_reason_to_stamp(ears: Ears) -> None:
    ears.beat(0.2, 5, 6, 7)
    assert not ears.settle(0.2)
    ears.announce(table(2, 5, 5, 6, 7))
    ears.beat(0.4, 5, 6, 7)
    assert not ears.settle(0.4), "another version with the same members"


# --- what a stamp says of those it lost ---------------------------------------------------------------------------


def test_the_silence_of_one_is_counted_from_the_heartbeat_that_was_last_echoed(ears: Ears) -> None:
    ears.echo(0.0, 5)
    ears.beat(0.6, 5)
    before, after = frozenset({5, 6}), frozenset({6})
    assert list(ears.audience.silences(1.0, before, after)) == [Silence(5, 1.0)]


def test_one_that_was_never_echoed_has_no_lease_to_wait_for(ears: Ears) -> None:
    assert list(ears.audience.silences(1.0, frozenset({5}), frozenset())) == [Silence(5, SILENCE_S_MAX)]
    assert list(ears.audience.silences(1.0, frozenset({77}), frozenset())) == [Silence(77, SILENCE_S_MAX)]


def test_of_one_that_said_goodbye_no_silence_is_told(ears: Ears) -> None:
    ears.audience.goodbye(5, "at 5")
    assert list(ears.audience.silences(1.0, frozenset({5}), frozenset())) == []


def test_receivers_that_were_not_heard_for_long_are_forgotten_unless_they_are_in_force(ears: Ears) -> None:
    ears.beat(0.0, 99)
    ears.audience.tidy(60 * T.expiry + 1)
    assert set(ears.audience.ears) == {5, 6, 7}


# --- has a former owner stopped? ----------------------------------------------------------------------------------

# 5 was the owner of a lane of stamp 1, and stamp 2 does not have it. Its last heartbeat that was echoed came at 0.0.

WAIT = T.heir_wait
SEGMENTS = [
    Segment(1, 1, 10, False, (Member(5, 1), Member(6, 1), Member(7, 1)), ()),
    Segment(2, 11, None, False, (Member(6, 1), Member(7, 1), Member(8, 1)), ()),
]
LOSS = Loss(5, SEGMENTS[1])


@pytest.fixture
def lost(ears: Ears) -> Ears:
    ears.beat(0.0, 5, stamp=1)
    ears.echo(0.0, 5)
    ears.beat(0.0, 8)
    return ears


def stopped(ears: Ears, now: float) -> bool:
    return ears.audience.has_stopped(now, LOSS, SEGMENTS)


def test_the_former_owner_may_hold_its_lease_for_so_long(lost: Ears) -> None:
    lost.beat(WAIT - 0.01, 6, 7)
    assert not stopped(lost, WAIT - 0.01)


def test_once_its_lease_is_over_it_has_stopped_if_someone_who_was_with_it_still_hears_us(lost: Ears) -> None:
    lost.beat(WAIT, 6)
    assert stopped(lost, WAIT)


def test_a_witness_must_have_heard_us_after_the_lease_was_over(lost: Ears) -> None:
    lost.beat(WAIT + 0.1, 6, 7, heard_at=WAIT - 0.01)
    assert not stopped(lost, WAIT + 0.1)
    lost.beat(WAIT + 0.2, 7, heard_at=WAIT)
    assert stopped(lost, WAIT + 0.2)


def test_without_a_witness_it_may_have_taken_the_stream_for_orphaned(lost: Ears) -> None:
    assert not stopped(lost, T.orphan_wait - 0.01)
    assert stopped(lost, T.orphan_wait)


def test_one_who_called_the_stream_orphaned_is_no_witness(lost: Ears) -> None:
    lost.beat(WAIT + 0.1, 6, 7, orphaned=True)
    assert not stopped(lost, WAIT + 0.1)


def test_one_who_is_gone_is_no_witness(lost: Ears) -> None:
    lost.beat(WAIT + 0.1, 6)
    lost.audience.goodbye(6, "at 6")
    assert not stopped(lost, WAIT + 0.1)


def test_one_who_joined_later_is_no_witness(lost: Ears) -> None:
    """5 does not know of 8, and so does not wait for its word."""
    lost.beat(WAIT + 0.1, 8)
    assert not stopped(lost, WAIT + 0.1)


def test_one_who_is_no_longer_in_force_is_no_witness(lost: Ears) -> None:
    segments = [SEGMENTS[0], Segment(2, 11, None, False, (Member(8, 1),), ())]
    lost.beat(WAIT + 0.1, 6, 7)
    assert not lost.audience.has_stopped(WAIT + 0.1, Loss(5, segments[1]), segments)


def test_a_draining_member_can_be_a_witness(lost: Ears) -> None:
    segments = [SEGMENTS[0], Segment(2, 11, None, False, (Member(8, 1),), (7,))]
    lost.beat(WAIT + 0.1, 7)
    assert lost.audience.has_stopped(WAIT + 0.1, Loss(5, segments[1]), segments)


def test_a_witness_was_in_every_segment_that_the_former_owner_may_take_for_the_newest(lost: Ears) -> None:
    """5 knows stamp 1 only, and may have heard of stamp 2, which has no 7, when it asked for their word."""
    segments = [
        SEGMENTS[0],
        Segment(2, 11, 20, False, (Member(5, 1), Member(6, 1)), ()),
        Segment(3, 21, None, False, (Member(6, 1), Member(7, 1)), ()),
    ]
    loss = Loss(5, segments[2])
    lost.beat(WAIT + 0.1, 7)
    assert not lost.audience.has_stopped(WAIT + 0.1, loss, segments)
    lost.beat(WAIT + 0.1, 6)
    assert lost.audience.has_stopped(WAIT + 0.1, loss, segments)


def test_segments_older_than_what_the_former_owner_knows_do_not_matter(lost: Ears) -> None:
    segments = [
        Segment(1, 1, 10, False, (Member(5, 1),), ()),
        Segment(2, 11, 20, False, (Member(5, 1), Member(6, 1)), ()),
        Segment(3, 21, None, False, (Member(6, 1),), ()),
    ]
    loss = Loss(5, segments[2])
    lost.beat(WAIT + 0.1, 6)
    assert not lost.audience.has_stopped(WAIT + 0.1, loss, segments), "5 may know stamp 1 only"
    lost.beat(WAIT + 0.1, 5, stamp=2)
    assert lost.audience.has_stopped(WAIT + 0.1, loss, segments)


def test_one_that_knows_the_stamp_that_it_is_not_in_has_stopped(lost: Ears) -> None:
    lost.beat(0.1, 5, stamp=2)
    assert stopped(lost, 0.1)


def forget(ears: Ears) -> None:
    del ears.audience.ears[5]


def goodbye(ears: Ears) -> None:
    ears.audience.goodbye(5, "at 5")


def never_echoed(ears: Ears) -> None:
    ears.audience.ears[5] = Ear(5, GROUP, None)


@pytest.mark.parametrize("why", [forget, goodbye, never_echoed])
def test_one_that_said_goodbye_or_never_had_a_lease_has_stopped(lost: Ears, why: Callable[[Ears], None]) -> None:
    why(lost)
    assert stopped(lost, 0.1)


def test_time_that_the_sender_slept_does_not_count_as_waited(lost: Ears) -> None:
    lost.audience.forgive(10.0)
    lost.beat(10.0 + WAIT - 0.01, 6)
    assert not stopped(lost, 10.0 + WAIT - 0.01)
    lost.beat(10.0 + WAIT, 6)
    assert stopped(lost, 10.0 + WAIT)


# --- shards -------------------------------------------------------------------------------------------------------

MAP = (2, 0, 1, 0) * 256


def keyed_ears() -> Ears:
    """A stream with keys, on a table of 5, 6 and 7 with a map of its own."""
    ears = Ears()
    ears.audience.take_keys()
    ears.announce(replace(table(1, 5, 5, 6, 7), shard_map=MAP))
    ears.run(0.0, 1.0, 5, 6, 7)
    assert ears.audience.groups[GROUP].shard_map == MAP
    return ears


def test_without_keys_no_map_is_derived_and_another_one_is_no_switch() -> None:
    ears = Ears()
    ears.announce(replace(table(1, 5, 5, 6), shard_map=(0, 1) * 512))
    ears.run(0.0, 1.0, 5, 6)
    assert ears.audience.groups[GROUP].shard_map == ()
    ears.announce(replace(table(2, 5, 5, 6), shard_map=(1, 0) * 512))
    ears.beat(1.0, 5, 6)
    assert not ears.settle(1.0)
    assert ears.audience.groups[GROUP].table.version == Version(2, 5)


def test_the_first_key_finds_the_map_of_those_in_force() -> None:
    ears = Ears()
    one = replace(table(1, 5, 5, 6, 7), shard_map=MAP)
    ears.announce(one)
    ears.run(0.0, 1.0, 5, 6, 7)
    ears.run(1.0, 3.0, 5, 7)
    assert ears.members == [5, 7]
    assert ears.audience.take_keys() == {GROUP: one.shard_map_of((Member(5, 1), Member(7, 1)))}
    ears.beat(3.0, 5, 7)
    assert not ears.settle(3.0), "that was stamped with the first key"


def test_the_shards_of_one_that_is_struck_out_are_dealt_and_come_back_with_it() -> None:
    ears = keyed_ears()
    ears.run(1.0, 3.0, 5, 7)
    group = ears.audience.groups[GROUP]
    assert ears.members == [5, 7]
    assert group.shard_map == group.table.shard_map_of((Member(5, 1), Member(7, 1))) != MAP
    ears.run(3.0, 5.0, 5, 6, 7)
    assert ears.members == [5, 6, 7]
    assert group.shard_map == MAP


def test_two_senders_that_strike_out_the_same_ones_have_the_same_map_whatever_came_before() -> None:
    one, other = keyed_ears(), keyed_ears()
    one.run(1.0, 5.0, 5, 6)
    other.run(1.0, 3.0, 6, 7)
    other.run(3.0, 5.0, 5, 6)
    assert one.members == other.members == [5, 6]
    assert one.audience.groups[GROUP].shard_map == other.audience.groups[GROUP].shard_map


def test_with_keys_another_map_of_the_same_members_is_a_switch() -> None:
    """Two sides of a split may have written it: senders on one table must have one map."""
    ears = keyed_ears()
    another = tuple(reversed(MAP))
    ears.announce(replace(table(2, 5, 5, 6, 7), shard_map=another))
    ears.beat(1.0, 5, 6, 7)
    assert ears.settle(1.0)
    assert ears.audience.groups[GROUP].shard_map == another
    assert not ears.settle(1.0)


def test_a_table_that_only_drops_those_who_were_struck_out_moves_nothing_again() -> None:
    ears = keyed_ears()
    ears.run(1.0, 3.0, 5, 7)
    group = ears.audience.groups[GROUP]
    before = group.table
    rest = (Member(5, 1), Member(7, 1))
    ears.announce(Table(Version(2, 5), rest, (), before.shard_map_of(rest)))
    ears.beat(3.0, 5, 7)
    assert not ears.settle(3.0)
    assert group.table.version == Version(2, 5)


def test_one_of_another_group_gets_no_slots_whatever_a_table_says() -> None:
    """Whoever writes such a table would have messages wait for one who never handles them, and nothing would end it:
    it is heard, and so it would count for the table."""
    ears = Ears()
    ears.announce(table(1, 5, 5, 6))
    now = ears.run(0.0, 1.0, 5, 6)
    ears.beat(now, 7, 8, 9, group="second")
    ears.announce(table(2, 66, 5, 6, 7, 8, 9), 5, 6)
    ears.beat(now + 0.1, 5, 6)
    ears.settle(now + 0.1)
    assert [member.id for member in ears.audience.groups[GROUP].members] == [5, 6]
    ears.announce(table(3, 5, 5, 6), 5, 6)
    ears.beat(now + 0.2, 5, 6)
    ears.beat(now + 0.2, 7, 8, 9, group="second")
    ears.settle(now + 0.2)
    in_force = ears.audience.groups[GROUP].table
    assert in_force is not None and in_force.version == Version(3, 5), "they do not count for it"
