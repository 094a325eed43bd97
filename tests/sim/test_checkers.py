"""The promises, judged from histories that are written by hand: each verdict, kept and broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from rvq.core.stats import Counts, Stats
from rvq.errors import RvqError
from rvq.sim.checkers import (
    CHECKERS,
    SHOWN_MAX,
    Promise,
    PromiseBroken,
    Verdict,
    Violation,
    account,
    broken,
    invented,
    judge,
    lost,
    one_at_a_time,
    order,
    repeated,
    two_owners,
)
from rvq.sim.deeds import claimed
from rvq.sim.history import (
    Broken,
    Dead,
    Deceived,
    Done,
    Ended,
    Event,
    Failed,
    Finished,
    GivenUp,
    Owed,
    Recording,
    Started,
    Submitted,
)
from rvq.wire.frames import Outcome
from rvq.wire.records import shard_of
from tests.sim.test_deeds import stamp, told

S, S2 = 0xA1, 0xB2
GROUP = "default"


class Tale:
    """A history by hand. Each event happens a second after the one before, at 1.0, 2.0, ..."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._seconds = count(1)

    def _add(self, make: Callable[[float], Event]) -> Tale:
        self.events.append(make(float(next(self._seconds))))
        return self

    def submitted(self, *sequences: int, key: str | bytes | None = None, body: Any = "x", stream: int = S) -> Tale:
        for sequence in sequences:
            self._add(lambda at, q=sequence: Submitted(at, stream, q, key, body))  # type: ignore[misc]
        return self

    def owed(self, first: int = 1, group: str = GROUP, stream: int = S) -> Tale:
        return self._add(lambda at: Owed(at, stream, group, first))

    def started(
        self,
        sequence: int,
        by: str = "r1",
        *,
        key: str | bytes | None = None,
        body: Any = "x",
        group: str = GROUP,
        stream: int = S,
        asked_at: float | None = None,
        rivals: tuple[str, ...] = (),
        due_at: float | None = None,
    ) -> Tale:
        facts = (by, group, stream, sequence, key, body, asked_at, rivals)
        return self._add(lambda at: Started(at, *facts, wall=at, due_at=due_at))

    def finished(self, sequence: int, by: str = "r1", *, group: str = GROUP, stream: int = S) -> Tale:
        return self._add(lambda at: Finished(at, by, group, stream, sequence))

    def failed(self, sequence: int, by: str = "r1", *, again: bool = True) -> Tale:
        return self._add(lambda at: Failed(at, by, GROUP, S, sequence, again))

    def dead(self, sequence: int, attempts: int, attempts_max: int, by: str = "r1") -> Tale:
        return self._add(lambda at: Dead(at, by, GROUP, S, sequence, attempts, attempts_max))

    def given_up(self, last: int, *, group: str = GROUP, stream: int = S) -> Tale:
        return self._add(lambda at: GivenUp(at, stream, group, last))

    def done(self, sequence: int, *, group: str = GROUP, stream: int = S) -> Tale:
        return self._add(lambda at: Done(at, stream, group, sequence))

    def ended(self, process: str, *, stream: int | None = None, crashed: bool = True) -> Tale:
        return self._add(lambda at: Ended(at, process, stream, crashed))

    def broken(self, process: str, error: str) -> Tale:
        return self._add(lambda at: Broken(at, process, error))

    def handled(self, sequence: int, by: str = "r1", *, key: str | None = None, group: str = GROUP) -> Tale:
        """Started, finished and done."""
        return (
            self.started(sequence, by, key=key, group=group)
            .finished(sequence, by, group=group)
            .done(sequence, group=group)
        )


def texts(violations: Sequence[Violation]) -> list[str]:
    return [violation.text for violation in violations]


def good() -> Tale:
    """Two keyed messages in a group, all as it should be."""
    return Tale().submitted(1, 2, key="k").owed().handled(1, key="k").handled(2, "r2", key="k")


# --- what was counted ---------------------------------------------------------------------------------------------


def odd(tale: Tale, stats: Stats | None = None, sender: Stats | None = None, **how: bool) -> list[str]:
    return texts(account(tale.events, {"r1": stats} if stats else {}, {S: sender} if sender else {}, **how))


def test_counts_that_are_what_happened_are_right() -> None:
    assert odd(good(), counted()) == []
    assert odd(good(), sender=Stats(inserted=2, routed=2, acked=2)) == []


@pytest.mark.parametrize("name", ["routed", "emitted", "acked", "retried", "dead", "expired", "handed_over"])
def test_one_more_or_less_is_found_whatever_it_is_of(name: str) -> None:
    for wrong in (-1, 1):
        stats = counted()
        for counts in (stats, stats.lanes[0]):
            setattr(counts, name, getattr(counts, name) + wrong)
        assert odd(good(), stats) or (name, wrong) == ("routed", 1), "what was routed may be another's by now"
        assert odd(good(), counted(**{name: getattr(stats, name)})), "in its lane"


@pytest.mark.parametrize("name", ["emitted", "acked", "retried", "dead"])
def test_a_shard_has_counts_of_its_own(name: str) -> None:
    stats = counted()
    setattr(stats.shards[shard_of("k")], name, 7)
    (text,) = odd(good(), stats)
    assert text.startswith(f"r1 counts 7 {name} in shard {shard_of('k')}, not ")
    stats = counted()
    stats.shards[3] = Counts(**{name: 1})
    assert odd(good(), stats) == [f"r1 counts 1 {name} in shard 3, not 0"]


def test_what_is_given_up_after_it_failed_is_dead_and_not_retried() -> None:
    tale = Tale().submitted(1).owed().started(1).failed(1).started(1).failed(1, again=False).dead(1, 2, 2)
    stats = Stats(routed=1, emitted=2, retried=1, dead=1, lanes={0: Counts(routed=1, emitted=2, retried=1, dead=1)})
    assert odd(tale, stats) == []
    stats.retried = stats.lanes[0].retried = 2
    assert odd(tale, stats) == ["r1 counts 2 retried, not 1"]


def test_who_comes_second_need_not_count() -> None:
    tale = Tale().submitted(1).owed().started(1).started(1, "r2", asked_at=0.5).finished(1, "r2").finished(1)
    for acked in (0, 1):
        stats = Stats(routed=1, emitted=1, acked=acked, lanes={0: Counts(routed=1, emitted=1, acked=acked)})
        assert odd(tale, stats) == []


@pytest.mark.parametrize("wrong", [{"inserted": 3}, {"routed": 1}, {"acked": 1}, {"acked": 3}, {"lost": 1}], ids=str)
def test_what_a_sender_counts_is_what_was_submitted_and_done(wrong: dict[str, int]) -> None:
    (text,) = odd(good(), sender=Stats(**{"inserted": 2, "routed": 2, "acked": 2, **wrong}))
    ((name, number),) = wrong.items()
    assert text.startswith(f"sender {S:x} counts {number} {name}, not ")


def test_in_midway_not_everything_is_sent_or_done() -> None:
    assert odd(good(), sender=Stats(inserted=2, routed=1), converged=False) == []
    assert odd(good().ended("s", stream=S), sender=Stats(inserted=2, routed=1)) == []


# --- groups that were given up ------------------------------------------------------------------------------------


def test_what_a_group_had_not_done_when_it_was_given_up_is_no_promise_and_counted() -> None:
    tale = Tale().submitted(1, 2, 3).owed().handled(1).given_up(3)
    assert lost(tale.events) == []
    assert odd(tale, sender=Stats(inserted=3, routed=3, acked=1, lost=2)) == []
    for lost_count in (1, 3):
        stats = Stats(inserted=3, routed=3, acked=1, lost=lost_count)
        assert odd(tale, sender=stats) == [f"sender {S:x} counts {lost_count} lost, not 2"]


def test_a_group_that_comes_back_is_owed_what_comes_then_and_its_keys_begin_anew() -> None:
    tale = Tale().submitted(1, 2, key="k").owed().started(1, key="k").given_up(1).owed(2)
    assert [violation.text for violation in lost(tale.events)] == [f"1 messages of {S:x} in {GROUP} never handled: 2"]
    tale.handled(2, key="k")
    assert [check.__name__ for check in CHECKERS if check(tale.events)] == []
    unaware = [event for event in tale.events if type(event) is not GivenUp]
    assert order(unaware) and one_at_a_time(unaware)


# --- lost ---------------------------------------------------------------------------------------------------------


def test_what_is_handled_and_done_is_not_lost() -> None:
    assert lost(good().events) == []


def test_what_nobody_handled_is_lost() -> None:
    tale = Tale().submitted(1, 2, 3).owed().handled(2)
    (violation,) = lost(tale.events)
    assert violation == Violation(Promise.LOST, 7.0, "2 messages of a1 in default never handled: 1, 3")


def test_what_was_started_and_never_finished_is_lost() -> None:
    assert "1 messages of a1 in default never handled: 1" in texts(lost(Tale().submitted(1).owed().started(1).events))


def test_what_was_handled_and_never_done_at_the_sender_is_lost() -> None:
    tale = Tale().submitted(1).owed().started(1).finished(1)
    assert texts(lost(tale.events)) == ["1 messages of a1 in default handled, but never done at the sender: 1"]


def test_a_stream_that_no_group_ever_got_is_lost() -> None:
    assert texts(lost(Tale().submitted(1, 2).events)) == ["no group ever got stream a1 (2 messages)"]


def test_each_group_is_owed_every_message_from_its_first_on() -> None:
    tale = Tale().submitted(1).owed().owed(2, "audit").submitted(2).handled(1).handled(2)
    assert texts(lost(tale.events)) == ["1 messages of a1 in audit never handled: 2"]
    assert lost(tale.handled(2, "r9", group="audit").events) == [], "message 1 was before its time"


def test_a_group_that_comes_into_the_stamps_again_is_owed_from_its_first_time_on() -> None:
    tale = Tale().submitted(1, 2).owed(1).owed(2).handled(2)
    assert texts(lost(tale.events)) == ["1 messages of a1 in default never handled: 1"]


def test_what_a_crashed_sender_had_left_is_not_lost() -> None:
    assert lost(Tale().submitted(1).owed().ended("s1", stream=S).events) == []


@pytest.mark.parametrize("end", [("s1", S, False), ("r1", None, True), ("s2", S2, True)])
def test_no_other_end_excuses_a_loss(end: tuple[str, int | None, bool]) -> None:
    process, stream, crashed = end
    assert len(lost(Tale().submitted(1).owed().ended(process, stream=stream, crashed=crashed).events)) == 1


def test_a_long_loss_is_told_in_short() -> None:
    (violation,) = lost(Tale().submitted(*range(1, 31)).owed().events)
    assert violation.text == "30 messages of a1 in default never handled: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."


# --- invented -----------------------------------------------------------------------------------------------------


def test_what_was_submitted_is_not_invented() -> None:
    assert invented(good().events) == []


def test_what_nobody_submitted_is_invented() -> None:
    tale = Tale().submitted(1).started(1).started(2).started(1, stream=S2)
    assert texts(invented(tale.events)) == [
        "r1 started a1/2 (default): nobody submitted it",
        "r1 started b2/1 (default): nobody submitted it",
    ]


def test_what_is_handled_before_it_was_submitted_is_invented() -> None:
    assert len(invented(Tale().started(1).submitted(1).events)) == 1


@pytest.mark.parametrize(("body", "key"), [("y", "k"), ("x", "other"), ("x", None)])
def test_a_message_with_another_body_or_key_is_invented(body: str, key: str | None) -> None:
    tale = Tale().submitted(1, key="k", body="x").started(1, key=key, body=body)
    (violation,) = invented(tale.events)
    assert violation.promise is Promise.INVENTED


# --- repeated -----------------------------------------------------------------------------------------------------


def test_each_message_once_in_each_group_is_no_repeat() -> None:
    tale = good().handled(1, "r3", group="audit")
    assert repeated(tale.events) == []


def test_a_second_handling_in_a_lane_that_was_always_its_own_is_a_repeat() -> None:
    tale = Tale().handled(1, "r1").started(1, "r2")
    assert texts(repeated(tale.events)) == [
        "r2 started a1/1 (default), which r1 has finished, in a lane that was always its own"
    ]


def test_a_retry_after_a_failure_is_no_repeat() -> None:
    assert repeated(Tale().started(1).failed(1).started(1).failed(1).started(1, "r2").events) == []


@pytest.mark.parametrize("crashed", [True, False])
def test_the_remainder_of_one_who_is_gone_is_no_repeat(crashed: bool) -> None:
    assert repeated(Tale().started(1, "r1").ended("r1", crashed=crashed).started(1, "r2").events) == []


def test_one_who_died_after_it_finished_had_finished() -> None:
    tale = Tale().started(1, "r1").finished(1, "r1").ended("r1").started(1, "r2")
    assert len(repeated(tale.events)) == 1


def test_the_end_of_another_process_excuses_nobody() -> None:
    assert len(repeated(Tale().started(1, "r1").ended("r3").started(1, "r2").events)) == 1


def test_an_heir_that_asked_before_the_message_was_done_could_not_know() -> None:
    #                  1.0               2.0                3.0       4.0
    tale = Tale().started(1, "r1").finished(1, "r1").done(1).started(1, "r2", asked_at=2.5)
    assert repeated(tale.events) == []
    assert judge(1, tale.events).repeats == 1


def test_an_heir_that_asked_after_the_message_was_done_should_have_known() -> None:
    tale = Tale().started(1, "r1").finished(1, "r1").done(1).started(1, "r2", asked_at=3.5)
    assert texts(repeated(tale.events)) == [
        "r2 started a1/1 (default), which r1 has finished: done at the sender at 3.0000, and it asked at 3.5000"
    ]


def test_an_heir_of_what_was_finished_and_never_acknowledged_could_not_know() -> None:
    tale = Tale().started(1, "r1").finished(1, "r1").started(1, "r2", asked_at=2.5)
    assert repeated(tale.events) == []


def test_only_the_first_time_that_a_message_was_done_counts() -> None:
    tale = Tale().started(1, "r1").finished(1, "r1").done(1).done(1).started(1, "r2", asked_at=3.5)
    assert len(repeated(tale.events)) == 1


def test_an_heir_may_start_what_one_without_a_lease_still_runs() -> None:
    assert repeated(Tale().started(1, "r1").started(1, "r2", asked_at=1.5).events) == []


def test_nobody_starts_what_it_runs_itself() -> None:
    tale = Tale().started(1, "r1").started(1, "r1", asked_at=1.5)
    assert texts(repeated(tale.events)) == [
        "r1 started a1/1 (default), which r1 has still running, in the same process"
    ]


def test_each_repeat_of_a_message_counts() -> None:
    tale = Tale().handled(1).handled(1).handled(1)
    assert len(repeated(tale.events)) == 1 + 2


# --- two owners ---------------------------------------------------------------------------------------------------


def test_one_owner_at_a_time_is_as_promised() -> None:
    assert two_owners(good().events) == []


def test_another_who_could_start_the_same_message_is_a_second_owner() -> None:
    tale = Tale().started(1, "r1", rivals=("r2", "r3"))
    assert two_owners(tale.events) == [
        Violation(Promise.TWO_OWNERS, 1.0, "r1 started a1/1 (default), and r2, r3 could too")
    ]


# --- order --------------------------------------------------------------------------------------------------------


def test_messages_of_a_key_one_after_the_other_are_in_order() -> None:
    assert order(good().events) == []


def test_a_message_that_starts_before_an_earlier_one_of_its_key_is_out_of_order() -> None:
    tale = Tale().submitted(1, 2, key="k").started(2, key="k")
    assert texts(order(tale.events)) == ["r1 started a1/2 (default), but 1 of the same key 'k' is not handled yet"]


def test_a_message_that_starts_while_an_earlier_one_of_its_key_runs_is_out_of_order() -> None:
    tale = Tale().submitted(1, 2, key="k").started(1, key="k").started(2, "r2", key="k").finished(1)
    assert len(order(tale.events)) == 1


def test_one_that_failed_holds_up_its_key() -> None:
    tale = Tale().submitted(1, 2, key="k").started(1, key="k").failed(1).started(2, key="k")
    assert len(order(tale.events)) == 1


def test_other_keys_no_keys_and_other_streams_wait_for_nobody() -> None:
    tale = Tale().submitted(1, key="k").submitted(2, key=b"k").submitted(3).submitted(4, key="k", stream=S2)
    tale.started(2, key=b"k").started(3).started(4, key="k", stream=S2)
    assert order(tale.events) == []


def test_each_group_has_an_order_of_its_own() -> None:
    tale = Tale().submitted(1, 2, key="k").handled(1, key="k")
    assert order(tale.handled(2, key="k").events) == []
    assert len(order(tale.started(2, "r9", key="k", group="audit").events)) == 1


def test_what_a_group_is_not_owed_holds_up_nothing_in_it() -> None:
    tale = Tale().submitted(1, 2, key="k").owed(2, "audit").started(2, key="k", group="audit")
    assert order(tale.events) == []


def test_an_earlier_message_that_is_handled_again_is_a_repeat_but_not_out_of_order() -> None:
    assert order(good().started(1, "r3", key="k").events) == []


def test_order_is_judged_over_a_long_line() -> None:
    tale = Tale().submitted(*range(1, 101), key="k")
    for sequence in range(1, 100):
        tale.handled(sequence, key="k")
    assert order(tale.events) == []
    late = Tale().submitted(*range(1, 101), key="k").handled(1, key="k").handled(2, key="k").started(4, key="k")
    assert len(order(late.events)) == 1


# --- broken, and the verdict --------------------------------------------------------------------------------------


def test_a_machine_that_raised_is_broken() -> None:
    assert broken(good().events) == []
    assert broken(Tale().broken("r1", "KeyError: 7").events) == [Violation(Promise.BROKEN, 1.0, "r1: KeyError: 7")]


def test_a_good_history_keeps_all_promises() -> None:
    verdict = judge(7, good().events, virtual_s=12.0)
    assert verdict.ok
    verdict.raise_if_bad()
    assert (verdict.submitted, verdict.started, verdict.finished, verdict.repeats) == (2, 2, 2, 0)
    assert str(verdict) == (
        "seed 7: 2 submitted, 2 started, 2 finished, 0 explained repeats, 12.0 virtual s: all promises kept"
    )


def also(*events: Event) -> Tale:
    """A good history, and this."""
    tale = good()
    tale.events += events
    return tale


BAD: dict[Promise, Tale] = {
    Promise.LOST: Tale().submitted(1).owed(),
    Promise.INVENTED: Tale().started(1),
    Promise.REPEATED: Tale().submitted(1).owed().handled(1).started(1, "r2"),
    Promise.TWO_OWNERS: Tale().submitted(1).owed().started(1, rivals=("r2",)).finished(1).done(1),
    Promise.ORDER: Tale().submitted(1, 2, key="k").owed().handled(2, key="k").handled(1, key="k"),
    Promise.TIME: Tale().submitted(1).owed().started(1, due_at=3.5).finished(1).done(1),
    Promise.ATTEMPTS: Tale().submitted(1).owed().started(1).failed(1).dead(1, 1, 2).done(1),
    Promise.ACCOUNT: good(),
    Promise.STORED: also(Recording(0.0, "j1", "journal"), Done(1.0, 7, "journal", 1)),
    Promise.TOLD: also(stamp(), told((Outcome.ACKED, 1, 1, 1))),
    Promise.SEALED: also(Deceived(1.0, "r1", "a frame that was forged")),
    Promise.LEFT: good(),
    Promise.BROKEN: Tale().broken("r1", "KeyError: 7"),
}


def counted(**changes: int) -> Stats:
    """What r1 should have counted in a good history, but for what its lane did."""
    lane = Counts(**{"routed": 1, "emitted": 1, "acked": 1, **changes})
    return Stats(routed=1, emitted=1, acked=1, lanes={0: lane}, shards={shard_of("k"): Counts(emitted=1, acked=1)})


COUNTED = {Promise.ACCOUNT: {"r1": counted(acked=0)}}
"""What receivers counted, where it matters: here the lanes have nothing of what was acknowledged."""


SEEN = {Promise.LEFT: [Violation(Promise.LEFT, 1.0, "r1 was told to leave, and is still there")]}
"""What no history tells, and the world sees at its end."""


@pytest.mark.parametrize("promise", Promise, ids=lambda promise: promise.name)
def test_every_broken_promise_is_in_the_verdict_and_no_other(promise: Promise) -> None:
    events = BAD[promise].events
    verdict = judge(7, events, COUNTED.get(promise), also=[*claimed(events), *SEEN.get(promise, [])])
    assert [violation.promise for violation in verdict.violations] == [promise]
    with pytest.raises(PromiseBroken, match=f"seed 7: .*1 violations\n.*{promise.value}: ") as caught:
        verdict.raise_if_bad()
    assert caught.value.verdict is verdict
    assert isinstance(caught.value, RvqError) and isinstance(caught.value, AssertionError)


def test_every_promise_has_a_checker() -> None:
    assert len(CHECKERS) >= len(Promise) - len(SEEN), "and some have several"


def test_every_checker_is_content_with_a_good_history() -> None:
    assert [check.__name__ for check in CHECKERS if check(good().events)] == []


def test_what_is_finished_after_its_group_was_given_up_may_go_uncounted_and_before_that_not() -> None:
    """Seed 418: a receiver slept meanwhile, and heard the sender's goodbye before its handler ended."""
    uncounted = {"r1": Stats(routed=1, emitted=1, lanes={0: Counts(routed=1, emitted=1)})}
    tale = Tale().submitted(1).owed().started(1)
    assert account(tale.given_up(1).finished(1).events, uncounted) == []
    tale = Tale().submitted(1).owed().started(1).finished(1).given_up(1)
    assert [violation.text for violation in account(tale.events, uncounted)] == ["r1 counts 0 acked, not 1"]


def test_before_a_world_has_calmed_down_nothing_is_lost_yet() -> None:
    tale = Tale().submitted(1).owed().started(1, rivals=("r2",))
    found = [violation.promise for violation in judge(1, tale.events, converged=False).violations]
    assert found == [Promise.TWO_OWNERS]


def test_violations_are_told_in_the_order_in_which_they_happened() -> None:
    tale = Tale().broken("r1", "x").started(1, rivals=("r2",)).broken("r2", "y")
    times = [violation.at for violation in judge(1, tale.events).violations]
    assert times == sorted(times) and len(times) == 4


def test_a_verdict_shows_the_first_violations_and_counts_the_rest() -> None:
    violations = tuple(Violation(Promise.BROKEN, float(n), f"no {n}") for n in range(SHOWN_MAX + 3))
    lines = str(Verdict(1, 0, 0, 0, 0, 0.0, violations)).splitlines()
    assert len(lines) == 1 + SHOWN_MAX + 1
    assert lines[1] == "     0.0000  broken: no 0"
    assert lines[-1] == "  ... and 3 more"
