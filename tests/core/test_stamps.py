"""A stream's switches: what a sender stamps, and what a receiver makes of what it hears of that, in any order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.core.shards import draft
from rvq.core.stamps import ANSWER_MAX, Segment, Stamper, StampLog, segments_of
from rvq.wire.frames import GroupStamp, Member, Silence, Stamp, Version

GROUP = "default"


def members(*ids: int) -> tuple[Member, ...]:
    return tuple(Member(id, 1) for id in ids)


def switch(
    stamper: Stamper,
    at: int,
    *ids: int,
    group: str = GROUP,
    draining: tuple[int, ...] = (),
    silent: tuple[Silence, ...] = (),
    gone: tuple[int, ...] = (),
) -> Stamp:
    version, shard_map = Version(stamper.newest + 1, ids[0]), draft(members(*ids)) if stamper.keyed else ()
    return stamper.switch(at, group, version, members(*ids), draining, silent, gone, shard_map)


def switch_to_keys(stamper: Stamper, at: int) -> Stamp:
    return stamper.switch_to_keys(at, {name: draft(entry.members) for name, entry in stamper.groups.items()})


@pytest.fixture
def stamper() -> Stamper:
    return Stamper(0xABC, "work")


@pytest.fixture
def log() -> StampLog:
    return StampLog(GROUP)


@pytest.fixture
def three(stamper: Stamper) -> list[Stamp]:
    """Stamps 1 to 3, at sequences 1, 11 and 21."""
    return [switch(stamper, 1, 5), switch(stamper, 11, 5, 6), switch(stamper, 21, 6)]


# --- the sender's side --------------------------------------------------------------------------------------------


def test_stamps_are_numbered_from_one_on(three: list[Stamp], stamper: Stamper) -> None:
    assert [stamp.number for stamp in three] == [1, 2, 3]
    assert (stamper.oldest, stamper.newest) == (1, 3)
    stamper.check_invariants()


def test_before_the_first_switch_no_stamp_is_open(stamper: Stamper) -> None:
    assert (stamper.oldest, stamper.newest, stamper.open) == (1, 0, {})
    stamper.check_invariants()


def test_a_stamp_says_who_holds_the_slots_and_what_became_of_the_others(stamper: Stamper) -> None:
    switch(stamper, 1, 5, 6, 7, 8)
    stamp = switch(stamper, 9, 5, draining=(6,), silent=(Silence(7, 1.5),), gone=(8,))
    assert stamp == Stamp(
        0xABC,
        "work",
        2,
        9,
        False,
        (GroupStamp(GROUP, 2, 9, Version(2, 5), members(5), (6,), (Silence(7, 1.5),), (8,)),),
    )


def test_a_group_without_slots_is_never_stamped(stamper: Stamper) -> None:
    with pytest.raises(AssertionError, match="without slots"):
        stamper.switch(1, GROUP, Version(1, 1), (), (5,), (), ())


def test_a_group_that_does_not_switch_keeps_its_segment(stamper: Stamper) -> None:
    switch(stamper, 1, 5)
    stamp = switch(stamper, 8, 9, group="other")
    assert {entry.group: (entry.since, entry.at) for entry in stamp.groups} == {GROUP: (1, 1), "other": (2, 8)}


def test_the_first_key_begins_a_new_segment_in_every_group(stamper: Stamper) -> None:
    switch(stamper, 1, 5, 6, silent=(Silence(7, 1.0),), gone=(8,))
    switch(stamper, 3, 9, group="other")
    stamp = switch_to_keys(stamper, 10)
    assert stamp.keyed and stamper.keyed
    assert [(entry.since, entry.at, entry.silent, entry.gone) for entry in stamp.groups] == [(3, 10, (), ())] * 2
    assert [entry.members for entry in stamp.groups] == [members(5, 6), members(9)]
    assert [entry.shard_map for entry in stamp.groups] == [draft(members(5, 6)), draft(members(9))]
    stamper.check_invariants()


def test_keys_stay_once_they_came(stamper: Stamper) -> None:
    switch_to_keys(stamper, 1)
    assert switch(stamper, 1, 5).keyed


def test_stamps_that_are_no_longer_needed_are_closed_and_the_newest_never_is(
    three: list[Stamp], stamper: Stamper
) -> None:
    stamper.close_before(2)
    assert list(stamper.open) == [2, 3]
    stamper.close_before(1)
    assert stamper.oldest == 2
    stamper.close_before(99)
    assert (stamper.oldest, stamper.newest) == (3, 3)
    stamper.check_invariants()


# --- segments -----------------------------------------------------------------------------------------------------


def test_a_segment_ends_where_the_next_one_begins(three: list[Stamp]) -> None:
    assert [(s.stamp, s.at, s.end) for s in segments_of(three, GROUP)] == [(1, 1, 10), (2, 11, 20), (3, 21, None)]


def test_another_groups_switch_is_no_segment_of_mine(stamper: Stamper) -> None:
    stamps = [switch(stamper, 1, 5), switch(stamper, 4, 9, group="other"), switch(stamper, 8, 6)]
    assert [(s.stamp, s.at, s.end) for s in segments_of(stamps, GROUP)] == [(1, 1, 7), (3, 8, None)]
    assert [(s.stamp, s.at, s.end) for s in segments_of(stamps, "other")] == [(2, 4, None)]
    assert segments_of(stamps, "nobody") == []


def test_a_segment_that_began_before_the_oldest_open_stamp_keeps_its_name_and_beginning(stamper: Stamper) -> None:
    switch(stamper, 1, 5)
    later = switch(stamper, 4, 9, group="other")
    assert [(s.stamp, s.at) for s in segments_of([later], GROUP)] == [(1, 1)]


def test_a_segment_may_hold_no_sequence_at_all(stamper: Stamper, log: StampLog) -> None:
    for stamp in (switch(stamper, 1, 5), switch(stamper, 8, 6), switch(stamper, 8, 7)):
        log.learn(0.0, stamp)
    log.check_invariants()
    assert [(s.at, s.end) for s in log.segments] == [(1, 7), (8, 7), (8, None)]
    found = log.segment_at(8)
    assert found is not None and found.stamp == 3


def test_only_segments_after_the_first_key_are_keyed(stamper: Stamper) -> None:
    stamps = [switch(stamper, 1, 5), switch_to_keys(stamper, 4), switch(stamper, 9, 6)]
    assert [s.keyed for s in segments_of(stamps, GROUP)] == [False, True, True]
    assert [s.shard_map for s in segments_of(stamps, GROUP)] == [(), draft(members(5)), draft(members(6))]


def test_a_segment_has_the_shard_map_of_its_stamp(stamper: Stamper) -> None:
    shard_map = tuple(reversed(draft(members(5, 6))))
    stamper.keyed = True
    stamps = [stamper.switch(1, GROUP, Version(1, 5), members(5, 6), (), (), (), shard_map)]
    (segment,) = segments_of(stamps, GROUP)
    assert [segment.slot_of_shard(shard) for shard in range(1024)] == list(shard_map)


def test_slots_follow_the_weights() -> None:
    segment = Segment(1, 1, None, False, (Member(5, 2), Member(6, 1)), (7,))
    assert segment.slots == (5, 5, 6)
    assert segment.member_ids == {5, 6}
    assert [segment.has(id) for id in (5, 6, 7, 8)] == [True, True, True, False]


def test_how_long_one_was_silent_is_known_of_the_lost_and_of_nobody_who_said_goodbye() -> None:
    segment = Segment(2, 1, None, False, members(5), (), silent=(Silence(7, 1.5),), gone=(8,))
    assert segment.silence_of(7) == 1.5
    assert segment.silence_of(8) is None
    assert segment.silence_of(9) == 0.0, "one that just vanished was heard until now, for all we know"


# --- the receiver's side ------------------------------------------------------------------------------------------


def test_a_fresh_log_lacks_nothing_and_knows_nothing(log: StampLog) -> None:
    assert log.missing() is None
    assert not log.knows(1)
    assert log.current is None
    assert log.segment_at(1) is None


def test_what_is_announced_and_not_known_is_missing(log: StampLog, three: list[Stamp]) -> None:
    log.announce(1, 3)
    assert log.missing() == (1, 3)
    log.learn(0.0, three[0])
    assert log.missing() == (2, 3)


def test_behind_a_gap_nothing_counts(log: StampLog, three: list[Stamp]) -> None:
    assert log.learn(0.0, three[0])
    assert not log.learn(0.0, three[2])
    assert log.knows(1) and not log.knows(2) and not log.knows(3)
    assert log.missing() == (2, 3)
    assert [s.stamp for s in log.segments] == [1]
    assert log.learn(0.0, three[1])
    assert log.knows(3) and log.missing() is None
    assert [s.stamp for s in log.segments] == [1, 2, 3]
    log.check_invariants()


def test_a_stamp_that_is_known_is_no_news(log: StampLog, three: list[Stamp]) -> None:
    assert log.learn(0.0, three[0])
    assert not log.learn(5.0, three[0])
    assert log.learned_at == {1: 0.0}


def test_a_sequence_lies_in_the_segment_that_began_last_before_it(log: StampLog, three: list[Stamp]) -> None:
    log.announce(2, 3)
    for stamp in three:
        log.learn(0.0, stamp)
    found = {sequence: log.segment_at(sequence) for sequence in (10, 11, 20, 21, 999)}
    assert {q: s.stamp if s else None for q, s in found.items()} == {10: None, 11: 2, 20: 2, 21: 3, 999: 3}
    assert log.current == found[999]


def test_the_segment_of_a_frame_is_found_by_its_stamp(log: StampLog, stamper: Stamper) -> None:
    for stamp in (switch(stamper, 1, 5), switch(stamper, 4, 9, group="other"), switch(stamper, 8, 6)):
        log.learn(0.0, stamp)
    found = {number: log.segment_of_stamp(number) for number in (0, 1, 2, 3)}
    assert {number: s.stamp if s else None for number, s in found.items()} == {0: None, 1: 1, 2: 1, 3: 3}


def test_what_is_known_is_handed_on_in_order_and_not_too_much_at_once(log: StampLog) -> None:
    stamper = Stamper(1, "work")
    stamps = [switch(stamper, at, 5) for at in range(1, ANSWER_MAX + 10)]
    for stamp in reversed(stamps[2:]):
        log.learn(0.0, stamp)
    assert log.between(1, 5) == stamps[2:5]
    assert log.between(1, 999) == stamps[2 : 2 + ANSWER_MAX]
    assert log.between(5, 4) == []


def test_what_the_sender_closed_is_forgotten(log: StampLog, three: list[Stamp]) -> None:
    for stamp in three:
        log.learn(0.0, stamp)
    assert log.announce(3, 3)
    assert [s.stamp for s in log.segments] == [3]
    assert log.learned_at == {3: 0.0}
    assert not log.learn(1.0, three[0])
    assert log.knows(3)
    log.check_invariants()


def test_a_late_announcement_opens_nothing_again(log: StampLog, three: list[Stamp]) -> None:
    for stamp in three:
        log.learn(0.0, stamp)
    log.announce(3, 3)
    assert not log.announce(1, 2)
    assert (log.oldest, log.announced) == (3, 3)


def test_a_joiner_that_lacks_the_oldest_open_stamp_knows_none(log: StampLog, three: list[Stamp]) -> None:
    log.announce(2, 3)
    assert not log.learn(0.0, three[2])
    assert not log.knows(2) and not log.knows(3)
    assert log.missing() == (2, 3)


def test_after_all_known_stamps_closed_the_next_ones_are_asked_for(log: StampLog, stamper: Stamper) -> None:
    log.learn(0.0, switch(stamper, 1, 5))
    log.announce(3, 4)
    assert log.missing() == (3, 4)
    assert not log.knows(3)
    log.check_invariants()


def test_each_segment_has_the_time_at_which_it_was_learned(log: StampLog, three: list[Stamp]) -> None:
    for now, stamp in enumerate(three):
        log.learn(float(now), stamp)
    assert log.learned_at == {1: 0.0, 2: 1.0, 3: 2.0}


def test_a_stamp_counts_as_learned_no_sooner_than_the_ones_before_it(log: StampLog, three: list[Stamp]) -> None:
    log.learn(0.0, three[0])
    log.learn(1.0, three[2])
    log.learn(4.0, three[1])
    assert log.learned_at == {1: 0.0, 2: 4.0, 3: 4.0}


def test_stamps_that_count_only_since_older_ones_closed_have_a_time_too(log: StampLog, three: list[Stamp]) -> None:
    # A joiner hears the switch that lets it in before the heartbeat that says which stamps are open.
    assert not log.learn(7.0, three[1])
    assert not log.learn(8.0, three[2])
    assert log.announce(2, 3)
    assert log.knows(3)
    assert log.learned_at.keys() == {2, 3}
    assert min(log.learned_at.values()) >= 7.0
    log.check_invariants()


def test_a_log_takes_no_more_stamps_than_can_be_open(log: StampLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPEN_STAMPS_MAX", 2)
    stamper = Stamper(1, "work")
    assert [log.learn(0.0, switch(stamper, at, 5)) for at in (1, 2, 3)] == [True, True, False]
    log.announce(2, 3)
    assert log.missing() == (3, 3)


# --- both ---------------------------------------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn) -> list[Stamp]:
    """The stamps of a stream with two groups and, maybe, keys."""
    stamper, at = Stamper(1, "work"), 1
    for _ in range(draw(st.integers(1, 8))):
        at += draw(st.integers(0, 5))
        if draw(st.integers(0, 4)) == 0 and not stamper.keyed:
            switch_to_keys(stamper, at)
        else:
            ids = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)))
            switch(stamper, at, *ids, group=draw(st.sampled_from([GROUP, "other"])))
    stamper.check_invariants()
    return list(stamper.open.values())


@given(streams(), st.data())
@settings(deadline=None)
def test_in_whatever_order_stamps_are_heard_the_segments_are_the_same(stamps: list[Stamp], data: st.DataObject) -> None:
    log, oldest = StampLog(GROUP), 1
    heard: set[int] = set()
    for now, stamp in enumerate(data.draw(st.permutations(stamps + stamps[: len(stamps) // 2]))):
        if data.draw(st.booleans()):
            oldest = max(oldest, data.draw(st.integers(1, len(stamps))))
            log.announce(oldest, len(stamps))
            heard = {number for number in heard if number >= oldest}
        log.learn(float(now), stamp)
        heard |= {stamp.number} if stamp.number >= oldest else set()
        log.check_invariants()
        unbroken = next(number for number in range(oldest, len(stamps) + 2) if number not in heard) - 1
        assert log.complete_to == unbroken
        if unbroken >= oldest:
            assert log.segments == segments_of(stamps[oldest - 1 : unbroken], GROUP)
            assert log.learned_at.keys() == {segment.stamp for segment in log.segments}
    assert log.missing() is None
    assert log.segments == segments_of(stamps[oldest - 1 :], GROUP)


def test_a_stamp_without_a_group_ends_all_that_was_before_it() -> None:
    """The group was given up: what was undone is nobody's, and whoever comes begins anew."""
    stamper = Stamper(7, "work")
    members = (Member(5, 1),)
    stamps = [
        stamper.switch(1, "default", Version(1, 5), members, (), (), ()),
        stamper.switch(1, "other", Version(1, 5), members, (), (), ()),
        stamper.drop(11, "default"),
    ]
    assert segments_of(stamps, "default") == []
    assert [segment.stamp for segment in segments_of(stamps, "other")] == [2]
    stamps.append(stamper.switch(21, "default", Version(2, 5), members, (), (), ()))
    assert [(segment.stamp, segment.at, segment.end) for segment in segments_of(stamps, "default")] == [(4, 21, None)]
    assert stamper.drop(31, "nobody").number == 5
