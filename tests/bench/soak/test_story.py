"""A story is what the logs, the ledger and the journal say, put together."""

from __future__ import annotations

from bench.soak.schedule import AUDIT, JOURNAL, LEDGER
from bench.soak.story import by_message, parse_id
from tests.bench.soak.telling import STREAM, Book, id_of
from tests.processes.worker import WATCH_S


def test_a_sender_that_was_done_and_one_that_was_killed() -> None:
    book = Book()
    book.said("s0.0", 50.0, "checkpoint", 3)
    stream = book.story().streams[STREAM]
    assert (stream.process, stream.host, stream.end, stream.ended_at, stream.checkpoint) == (
        "s0.0",
        "s0",
        "done",
        100.0,
        3,
    )
    book.killed("s0.0", 60.0)
    stream = book.story().streams[STREAM]
    assert (stream.end, stream.ended_at, len(stream.writes)) == ("killed", 60.0, 4)


def test_a_handling_is_open_until_it_ends_in_one_way_or_another() -> None:
    book = Book()
    for sequence, outcome in enumerate(("finish", "failed", "cancelled", "taken"), 1):
        book.without("b0.0", "finish", of=sequence)
        book.finished("b0.0", sequence, sequence + 0.2, outcome)
    book.without("a0.0", "finish", of=4)
    story = book.story()
    outcomes = {handling.id[1]: handling.outcome for handling in story.handlings if handling.group == AUDIT}
    assert outcomes == {1: "finish", 2: "failed", 3: "cancelled", 4: "taken"}
    open_ones = [handling for handling in story.handlings if handling.finish is None]
    assert [(handling.id[1], handling.outcome) for handling in open_ones] == [(4, "open")]
    assert story.handled(STREAM) == {AUDIT: {1, 4}, LEDGER: {1, 2, 3}, JOURNAL: {1, 2, 3, 4}}


def test_handlings_of_a_message_are_in_the_order_of_their_starts() -> None:
    book = Book()
    book.handled("b1.0", 2, 1.5)
    handlings = by_message(book.story().handlings)[AUDIT, (STREAM, 2)]
    assert [handling.process for handling in handlings] == ["b1.0", "b0.0"]


def test_what_is_told_as_lost_naps_and_set_clocks_are_kept() -> None:
    book = Book()
    book.said("b0.0", 30.0, "lost", f"{id_of(1)},{id_of(2)}")
    book.said("b0.0", 31.0, "nap", 30.5)
    book.said("b0.0", 32.0, "wall", -1.5)
    story = book.story()
    [lost] = story.lost
    assert (lost.group, lost.ids) == (AUDIT, [(STREAM, 1), (STREAM, 2)])
    assert story.lives["b0.0"].naps == [(30.5 + WATCH_S, 31.0)]
    assert story.lives["b0.0"].steps == [(32.0, -1.5)]


def test_ids_are_those_of_messages() -> None:
    assert parse_id("00000000000000ff-12") == (255, 12)


def test_a_process_that_never_opened_a_stream_has_none() -> None:
    book = Book()
    book.logs["s1.0"] = []
    book.ends["s1.0"] = ("killed", 1.0)
    assert set(book.story().streams) == {STREAM}
