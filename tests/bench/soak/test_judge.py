"""The judge of a soak: each kind of violation, forged, is found; and what a fault explains is not one."""

from __future__ import annotations

import pytest

from bench.soak.judge import AFTER_S, MOURNED_S, NEWS_S, words
from bench.soak.schedule import AUDIT, JOURNAL, LEDGER, Kind
from rvq.sim.checkers import Promise, Violation
from tests.bench.soak.telling import Book, id_of
from tests.processes.harness import UNREPORTED_S


def only(book: Book, words: str) -> None:
    """It is found, and nothing else."""
    found = book.found()
    assert found and all(words in line for line in found), found


def test_a_soak_in_which_all_is_well_is_well_and_counted() -> None:
    account = Book(count=6).judged()
    assert account.ok and not account.repeats
    expected = {"sent": 6, "keyed": 6, "effects in the ledger": 6, "messages in the journal": 6, "senders killed": 0}
    assert expected.items() <= account.counts.items()
    assert [account.counts[f"{group}: handled"] for group in (LEDGER, AUDIT, JOURNAL)] == [6, 6, 6]


# --- lost, invented -----------------------------------------------------------------------------------------------


def test_a_message_that_one_group_never_handled_is_lost() -> None:
    book = Book(keys=0)
    book.without("b0.0", "start", "finish", of=3)
    only(book, "1 messages of a1 in audit never handled: 3")


def test_a_message_that_is_not_in_the_journal_is_lost() -> None:
    book = Book()
    book.stored.remove(2)
    only(book, "1 messages of a1 in journal never handled: 2")


def test_a_sender_that_did_not_see_everything_done_is_found_although_it_was() -> None:
    book = Book()
    book.without("s0.0", "done")
    only(book, "handled, but never done at the sender")


def test_what_nobody_sent_is_invented_also_in_the_ledger_and_in_the_journal() -> None:
    book = Book(keys=0)
    book.handled("a0.0", 9, 50.0)
    only(book, "invented")
    book = Book()
    book.stored.append(9)
    only(book, "is in the journal")


def test_a_message_with_another_body_is_invented() -> None:
    book = Book(keys=0)
    book.without("b0.0", "start", "finish", of=3)
    book.started("b0.0", 3, 3.1, body="spoilt:s0.0/3")
    book.finished("b0.0", 3, 3.2)
    only(book, "was submitted as 's0.0/3'")


# --- repeats ------------------------------------------------------------------------------------------------------


def repeated(at: float = 6.0) -> Book:
    """b0 handled message 4 from 4.1 to 4.2, and b1 inherits it."""
    book = Book()
    book.handled("b1.0", 4, at, again=True)
    return book


def test_a_repeat_that_nothing_explains_is_found() -> None:
    only(repeated(), "repeated: b1.0 started s0.0/4")


@pytest.mark.parametrize("kind", [Kind.KILL, Kind.STOP])
def test_a_repeat_is_explained_by_what_befell_its_first_owner_just_then(kind: Kind) -> None:
    book = repeated()
    book.befell(kind, "b0", 4.3, 4.3, "b0.0")
    account = book.judged()
    assert account.ok
    [(former, latter, span)] = account.repeats
    assert (former.process, latter.process) == ("b0.0", "b1.0") and span is not None and span.kind is kind
    assert account.counts["audit: of these handled to the end before"] == 1


@pytest.mark.parametrize("at", [4.2 + UNREPORTED_S + 0.01, 4.1 - AFTER_S - 0.01], ids=["too late", "too early"])
def test_a_fault_that_was_not_close_in_time_explains_nothing(at: float) -> None:
    book = repeated()
    book.befell(Kind.STOP, "b0", at, at, "b0.0")
    only(book, "no fault befell that one then")


@pytest.mark.parametrize("process", ["b1.0", "b0.1", "a0.0", "s0.0"])
def test_a_fault_of_another_process_explains_nothing(process: str) -> None:
    book = repeated()
    book.befell(Kind.STOP, process[:2], 4.2, 4.3, process)
    only(book, "no fault befell that one then")


@pytest.mark.parametrize("kind", [Kind.LEAVE, Kind.STEP, Kind.SLOW, Kind.REKEY])
def test_leaving_clocks_disks_and_keys_explain_nothing(kind: Kind) -> None:
    book = repeated()
    book.befell(kind, "b0", 4.2, 4.3, "b0.0")
    only(book, "no fault befell that one then")


@pytest.mark.parametrize("host", ["b0", "s0"])
def test_a_link_that_is_cut_explains_it_at_either_end_and_at_no_other(host: str) -> None:
    for kind in (Kind.PULL, Kind.DEAF, Kind.MUTE, Kind.LOSS):
        book = repeated()
        book.befell(kind, host, 3.0, 5.0)
        assert book.judged().ok
        book.spans[0].host = "b1"
        only(book, "no fault befell that one then")


def test_a_split_explains_it_only_between_its_sides() -> None:
    book = repeated()
    book.befell(Kind.SPLIT, "everywhere", 3.0, 5.0)
    only(book, "no fault befell that one then")  # b0 and s0 are on one side
    book = Book()
    book.without("b0.0", "start", "finish", of=4)
    book.handled("b2.0", 4, 4.1)
    book.handled("b1.0", 4, 6.0, again=True)
    book.befell(Kind.SPLIT, "everywhere", 3.0, 5.0)
    assert book.judged().ok


def test_a_receiver_to_which_the_machine_gave_no_turn_was_as_good_as_stopped() -> None:
    book = repeated()
    book.said("b0.0", 5.0, "nap", 4.25)
    assert book.judged().ok


def test_a_repeat_of_a_lane_that_was_not_inherited_is_found_whatever_befell() -> None:
    book = Book()
    book.handled("b1.0", 4, 6.0)
    book.befell(Kind.KILL, "b0", 4.3, 4.3, "b0.0")
    only(book, "in a lane that was not inherited")


def test_a_try_after_an_error_is_no_repeat() -> None:
    book = Book(keys=0)
    book.without("b0.0", "start", "finish", of=4)
    book.started("b0.0", 4, 4.1)
    book.finished("b0.0", 4, 4.2, "failed")
    book.started("b0.0", 4, 4.3, attempt=2)
    book.finished("b0.0", 4, 4.4)
    assert book.judged().ok and not book.judged().repeats


def test_one_that_gave_a_message_back_when_its_lease_was_over_has_not_handled_it() -> None:
    book = repeated()
    book.without("b0.0", "finish", of=4)
    book.finished("b0.0", 4, 4.2, "cancelled")
    account = book.judged()
    assert account.ok and not account.repeats and account.counts["audit: given back in time"] == 1


def test_one_that_begins_on_waking_and_gives_it_back_has_not_handled_it_and_one_that_goes_on_has() -> None:
    for outcome in ("cancelled", "finish"):
        book = Book()
        book.started("b1.0", 4, 6.0)
        book.finished("b1.0", 4, 6.1, outcome)
        if outcome == "cancelled":
            only(book, "in a lane that was not inherited")
        book.befell(Kind.STOP, "b1", 3.5, 5.99, "b1.0")
        assert book.judged().ok if outcome == "cancelled" else not only(book, "not inherited")


def test_two_that_have_one_message_at_a_time_are_found_unless_one_stood_still() -> None:
    book = Book(keys=0)
    book.without("b0.0", "finish", of=4)
    book.finished("b0.0", 4, 9.0)
    book.handled("b1.0", 4, 6.0, again=True)
    book.befell(Kind.PULL, "b0", 4.2, 8.0)
    only(book, "two owners: b1.0 started s0.0/4")
    book.befell(Kind.STOP, "b0", 4.2, 8.0, "b0.0")
    assert book.judged().ok


# --- order, time, ledger ------------------------------------------------------------------------------------------


def test_messages_of_a_key_out_of_order_are_found() -> None:
    book = Book(keys=1)
    book.without("b0.0", "start", "finish", of=2)
    book.handled("b0.0", 2, 3.3)
    only(book, "order: b0.0 started a1/3 (audit), but 2 of the same key 'k0' is not handled yet")


def test_two_messages_of_a_key_in_one_receivers_hands_are_found() -> None:
    book = Book(keys=1)
    book.without("b0.0", "finish", of=2)
    book.finished("b0.0", 2, 3.9)
    assert any("of the same key 'k0' is in hand" in line for line in book.found())


@pytest.mark.parametrize(("wall", "right"), [(49.9, False), (50.0, True)])
def test_what_is_started_before_it_is_due_is_found(wall: float, right: bool) -> None:
    book = Book(keys=0)
    book.without("b0.0", "start", "finish", of=4)
    book.started("b0.0", 4, 4.1, wall=wall, due=50.0)
    book.finished("b0.0", 4, 4.2)
    assert book.judged().ok if right else not only(book, "early")


def test_a_wall_clock_that_was_set_back_just_before_makes_nothing_early() -> None:
    book = Book(keys=0)
    book.without("b0.0", "start", "finish", of=4)
    book.started("b0.0", 4, 4.1, wall=49.0, due=50.0)
    book.finished("b0.0", 4, 4.2)
    book.said("b0.0", 4.0, "wall", -1.5)
    assert book.judged().ok
    book.said("b0.0", 2.0, "wall", -1.5)
    book.without("b0.0", "wall")
    book.said("b0.0", 2.0, "wall", -1.5)
    only(book, "early")


def test_an_effect_that_happened_twice_is_found() -> None:
    book = Book()
    book.effects.append((2, "a1.0", 5.0))
    only(book, "has 2 effects in the ledger")


def test_a_message_that_was_handled_without_its_effect_is_found() -> None:
    book = Book()
    book.effects = [effect for effect in book.effects if effect[0] != 2]
    only(book, "has no effect in the ledger")


def test_one_that_was_killed_between_its_commit_and_the_word_for_it_has_handled_it() -> None:
    book = Book(keys=1)
    book.without("a0.0", "finish", of=4)
    book.effects.append((4, "a0.0", 4.2))
    book.killed("a0.0", 4.25)
    assert book.judged().ok


# --- senders that died --------------------------------------------------------------------------------------------


def mourned(*told: int, at: float = 10.0) -> Book:
    """Of ten messages the last five were not handled in `audit` when their sender was killed."""
    book = Book(count=10, keys=0)
    for sequence in range(6, 11):
        book.without("b0.0", "start", "finish", of=sequence)
    book.killed("s0.0", at + NEWS_S + 5)
    if told:
        book.said("b0.0", 21.5, "lost", ",".join(map(id_of, told)))
    return book


def test_what_a_dead_sender_left_undone_and_somebody_told_as_lost_is_accounted_for() -> None:
    account = mourned(6, 7, 8, 9, 10).judged()
    assert account.ok
    assert account.counts["audit: undone when their sender died"] == 5
    assert account.counts["audit: of these told as lost"] == 5


def test_what_a_dead_sender_left_undone_and_nobody_told_of_is_found() -> None:
    only(mourned(6, 7, 9, 10), "told: s0.0/8 of s0.0, killed, was not handled in audit, and nobody told of it")


def test_what_it_sent_in_its_last_second_may_have_been_heard_by_nobody() -> None:
    book = mourned(6, 7, 8, 9)
    book.ends["s0.0"] = ("killed", 10.0 + NEWS_S - 0.01)
    account = book.judged()
    assert account.ok and account.counts["audit: of these sent in its last second"] == 1


def test_an_owner_that_was_away_too_need_not_tell_but_only_just_then() -> None:
    book = mourned(6, 7, 9, 10)
    book.befell(Kind.KILL, "b1", 16.0, 17.0, "b1.0")
    account = book.judged()
    assert account.ok and account.counts["audit: of these owned by one that was not there either"] == 1
    book.spans[-1].since = 16.0 + MOURNED_S + 0.1
    only(book, "nobody told of it")
    book.spans[-1] = type(book.spans[-1])(Kind.KILL, "a1", 16.0, 17.0, 0.0, "a1.0")
    only(book, "nobody told of it")


def test_what_was_held_because_nobody_of_the_group_was_there_need_not_be_told() -> None:
    book = mourned(6, 7, 9, 10)
    book.ends["b0.0"] = book.ends["b1.0"] = ("left", 12.0)
    book.said("b0.1", 15.5, "table", 1)  # the sender cannot know of it yet when it dies
    account = book.judged()
    assert account.ok and account.counts["audit: of these held, as nobody of the group was there"] == 1
    book.said("b0.1", 13.5, "table", 1)
    only(book, "nobody told of it")


def test_what_nobody_can_know_is_told_as_such_and_is_no_false_alarm() -> None:
    book = mourned(6, 7, 9, 10)
    book.said("b1.0", 21.5, "doubtful", f"{id_of(8)},{id_of(5)}")
    account = book.judged()
    assert account.ok
    assert account.counts["audit: of these told as lost, or handled by one who is gone too"] == 1


def test_a_loss_that_is_told_and_did_not_happen_is_found_unless_one_was_cut_off() -> None:
    book = Book(keys=0)
    book.said("b1.0", 30.0, "lost", id_of(3))
    only(book, "told: b1.0 told that")
    book.befell(Kind.PULL, "b1", 20.0, 29.0)
    account = book.judged()
    assert account.ok and account.counts["audit: told as lost by one cut off, and handled"] == 1


def test_a_loss_of_a_stream_that_never_was_is_found() -> None:
    book = Book()
    book.said("b1.0", 30.0, "lost", "00000000000000ff-1")
    only(book, "there is none")


def test_what_a_sender_knew_to_be_done_must_be_so_although_it_was_killed() -> None:
    book = mourned(6, 7, 8, 9, 10)
    book.said("s0.0", 9.0, "checkpoint", 5)
    assert book.judged().ok
    book.said("s0.0", 11.0, "checkpoint", 7)
    only(book, "was told that these are done in audit, and they are not: [6, 7]")


def test_the_journal_of_a_dead_sender_has_what_was_known_to_be_on_disk() -> None:
    book = mourned(6, 7, 8, 9, 10)
    book.said("s0.0", 9.0, "checkpoint", 5)
    book.stored.remove(5)
    book.said("j0.0", 30.0, "lost", id_of(5))
    only(book, "are done in journal, and they are not: [5]")


def test_a_process_that_failed_or_raised_is_found() -> None:
    book = Book()
    book.troubles.append("a0.0 raised: Traceback")
    only(book, "broken: a0.0 raised")


def test_violations_are_told_by_the_time_since_the_beginning_and_not_all_of_many() -> None:
    found = [Violation(Promise.LOST, 107.5, "one"), *[Violation(Promise.ORDER, 0.0, "more")] * 5]
    assert list(words(found, 100.0, most=2)) == ["   7.500 s  lost: one", "            order: more", "... and 4 more"]
