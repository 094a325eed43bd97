"""What recorders were told against what happened: histories written by hand, each with one thing wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rvq.core.shards import draft
from rvq.core.stats import Stats
from rvq.sim.checkers import Promise
from rvq.sim.deeds import claimed, untold
from rvq.sim.history import Dead, Ended, Event, Failed, Finished, Recorded, Submitted
from rvq.wire.frames import NO_VERSION, GroupStamp, Handled, HandledRun, Member, Outcome, Stamp
from rvq.wire.records import shard_of

S, G = 9, "default"
MEMBERS = (Member(1, 1), Member(2, 1))


def stamp(keyed: bool = False) -> Recorded:
    shard_map = draft(MEMBERS) if keyed else ()
    entry = GroupStamp(G, 1, 1, NO_VERSION, MEMBERS, (), (), (), shard_map)
    return Recorded(9.0, "j1", "s1", Stamp(S, "work", 1, 1, keyed, (entry,)))


def told(*runs: tuple[int, int, int, int], counter: int = 1, who: str = "r1", recorder: str = "j1") -> Recorded:
    """(outcome, slot, first, last) each."""
    made = tuple(HandledRun(outcome, 1, slot, first, last, 1.0) for outcome, slot, first, last in runs)
    return Recorded(9.0, recorder, who, Handled(7, "work", G, S, counter, made))


def finished(*sequences: int, who: str = "r1", at: float = 1.0) -> list[Event]:
    return [Finished(at, who, G, S, sequence) for sequence in sequences]


def submitted(*keys: str | None, may_expire: bool = False) -> list[Event]:
    return [Submitted(0.0, S, n, key, n, may_expire=may_expire) for n, key in enumerate(keys, 1)]


def both(events: Sequence[Event], **accounts: Stats) -> tuple[bool, bool]:
    """Was anything claimed that was not done, or done and not told?"""
    found = claimed(events), untold(events, accounts)
    assert all(violation.promise is Promise.TOLD for violations in found for violation in violations)
    return bool(found[0]), bool(found[1])


ACKED, DEAD, RETRIED = Outcome.ACKED, Outcome.DEAD, Outcome.RETRIED


def test_what_was_done_and_told_is_good() -> None:
    assert both([stamp(), *finished(1, 3, 5), told((ACKED, 1, 1, 5))]) == (False, False)


def test_the_same_frame_at_two_recorders_counts_once() -> None:
    events = [stamp(), *finished(1, 3), told((ACKED, 1, 1, 3)), told((ACKED, 1, 1, 3), recorder="j2")]
    assert both(events) == (False, False)


def test_a_run_that_is_too_long_claims_what_was_not_done() -> None:
    assert both([stamp(), *finished(1, 3), told((ACKED, 1, 1, 5))]) == (True, False)


def test_a_run_of_another_lane_claims_what_was_not_done() -> None:
    assert both([stamp(), *finished(1, 3), told((ACKED, 0, 1, 3))]) == (True, True)


def test_another_receivers_deed_is_claimed() -> None:
    assert both([stamp(), *finished(1), told((ACKED, 1, 1, 1), who="r2")]) == (True, True)


def test_told_twice_and_done_once_is_found() -> None:
    events = [stamp(), *finished(1), told((ACKED, 1, 1, 1)), told((ACKED, 1, 1, 1), counter=2)]
    assert both(events) == (True, False)


def test_another_outcome_is_found() -> None:
    assert both([stamp(), *finished(1), told((DEAD, 1, 1, 1))]) == (True, True)
    assert both([stamp(), Dead(1.0, "r1", G, S, 1, 1, 1), told((DEAD, 1, 1, 1))]) == (False, False)


def test_what_was_done_and_never_told_is_found() -> None:
    assert both([stamp(), *finished(1, 3), told((ACKED, 1, 1, 1))]) == (False, True)


def test_without_the_stamp_nobody_knows_what_was_told() -> None:
    assert both([*finished(1), told((ACKED, 1, 1, 1))]) == (False, True)


def test_with_keys_a_run_has_the_messages_of_its_shards() -> None:
    keys = ["k1", "k2", "k3", "k4", "k5", None, "k6", "k7", "k8", None]
    slots = [draft(MEMBERS)[shard_of(key)] if key else n % 2 for n, key in enumerate(keys, 1)]
    own = [n for n, slot in enumerate(slots, 1) if slot == 1]
    events = [*submitted(*keys), stamp(keyed=True), *finished(*own), told((ACKED, 1, own[0], own[-1]))]
    assert 1 < len(own) < 10
    assert both(events) == (False, False)
    assert both([*events[:-1], told((ACKED, 1, own[0], own[-2]))]) == (False, True)


def test_each_retry_is_told_and_a_last_failure_is_none() -> None:
    failures: list[Event] = [Failed(1.0, "r1", G, S, 1), Failed(2.0, "r1", G, S, 1), Dead(2.0, "r1", G, S, 1, 2, 2)]
    assert both([stamp(), *failures, told((RETRIED, 1, 1, 1), (DEAD, 1, 1, 1))]) == (False, False)
    twice = told((RETRIED, 1, 1, 1), (RETRIED, 1, 1, 1), (DEAD, 1, 1, 1))
    assert both([stamp(), *failures, twice]) == (True, False)


def test_only_what_may_expire_is_told_as_expired() -> None:
    run = told((Outcome.EXPIRED, 1, 1, 1))
    assert both([*submitted(None, may_expire=True), stamp(), run], r1=Stats(expired=1)) == (False, False)
    assert both([*submitted(None), stamp(), run], r1=Stats(expired=1)) == (True, False)
    assert both([*submitted(None, may_expire=True), stamp(), run], r1=Stats(expired=2)) == (False, True)


def test_what_is_handed_over_is_as_many_as_were_counted() -> None:
    run = told((Outcome.HANDED_OVER, 1, 3, 7))
    assert both([stamp(), run], r1=Stats(handed_over=3)) == (False, False)
    assert both([stamp(), run], r1=Stats(handed_over=4)) == (False, True)


@pytest.mark.parametrize(("at", "is_found"), [(4.9, False), (4.5, True)])
def test_only_its_last_moments_are_excused_to_one_that_crashed(at: float, is_found: bool) -> None:
    events = [stamp(), *finished(1, at=at), Ended(5.0, "r1", None, True)]
    assert both(events) == (False, is_found)


def test_what_is_done_of_a_stream_that_is_over_need_not_be_told() -> None:
    ended = Ended(2.0, "s1", S, False)
    assert both([stamp(), ended, *finished(1, at=3.0)]) == (False, False)
    assert both([stamp(), ended, *finished(1, at=3.0), told((ACKED, 1, 1, 1))]) == (False, False)
