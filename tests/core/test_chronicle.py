"""Which control frames are history: news, once, and never more than there is room for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rvq import limits
from rvq.core.chronicle import Chronicle
from rvq.core.stats import Stats
from rvq.wire.codec import encode_control
from rvq.wire.frames import (
    NO_VERSION,
    Alive,
    AskTable,
    Control,
    Goodbye,
    GroupState,
    Handled,
    HandOver,
    Nak,
    Report,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    StreamReport,
    TableFrame,
    Version,
)

ALIVE = Alive(7, "work", "default", 1, 1, True, False, 0, NO_VERSION, (), ())
STATE = GroupState("default", Version(1, 7), 10, False, ())
SENDER_ALIVE = SenderAlive(9, "work", 1, True, 20, 900, 1, 2, (STATE,), ())
STAMP = Stamp(9, "work", 1, 1, False, ())
TABLE = TableFrame(7, "work", "default", Version(1, 7), (), ())
HAND_OVER = HandOver(7, 9, "default", 1, 0, 5, 8, 1)
HANDLED = Handled(7, "work", "default", 9, 1, ())


class Bench:
    def __init__(self) -> None:
        self.stats = Stats()
        self.chronicle = Chronicle("work", self.stats)

    def keeps(self, frame: Control) -> bool:
        """Is it kept, as it came?"""
        datagram = encode_control(frame, 1)
        self.chronicle.note(frame, datagram, "there")
        self.chronicle.check_invariants()
        kept = self.chronicle.take()
        assert kept in ([], [(datagram, "there")])
        return bool(kept)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    "frame",
    [ALIVE, SENDER_ALIVE, STAMP, TABLE, HAND_OVER, Goodbye(7, "work", "default"), SenderGoodbye(9, "work")],
    ids=lambda frame: type(frame).__name__,
)
def test_what_is_said_again_is_no_news(bench: Bench, frame: Control) -> None:
    assert bench.keeps(frame)
    assert not bench.keeps(frame)
    assert bench.keeps(replace(frame, source=8)) != isinstance(frame, TableFrame), "a table is told by anyone"


def test_what_receivers_did_is_always_kept(bench: Bench) -> None:
    assert bench.keeps(HANDLED) and bench.keeps(HANDLED) and bench.keeps(replace(HANDLED, counter=2))


@pytest.mark.parametrize(
    "frame", [Nak(7, 9, (), ()), Report(7, StreamReport(9, 1, 1, ())), AskTable(9, "g", NO_VERSION)]
)
def test_questions_and_reports_are_no_history(bench: Bench, frame: Control) -> None:
    assert not bench.keeps(frame)


def test_a_receivers_heartbeat_is_kept_when_it_has_another_table_or_leaves(bench: Bench) -> None:
    assert bench.keeps(ALIVE)
    assert not bench.keeps(replace(ALIVE, counter=2, hello=False, load=5))
    assert bench.keeps(replace(ALIVE, counter=3, version=Version(1, 7)))
    assert bench.keeps(replace(ALIVE, counter=4, version=Version(1, 7), leaving=True))
    assert not bench.keeps(replace(ALIVE, counter=5, version=Version(1, 7), leaving=True))


def test_a_senders_heartbeat_is_kept_when_more_is_done_it_holds_or_has_another_stamp(bench: Bench) -> None:
    assert bench.keeps(SENDER_ALIVE)
    assert not bench.keeps(replace(SENDER_ALIVE, counter=2, last=30, position=999))
    done, held = STATE._replace(done_to=11), STATE._replace(done_to=11, held=True)
    assert bench.keeps(replace(SENDER_ALIVE, groups=(done,)))
    assert bench.keeps(replace(SENDER_ALIVE, groups=(held,)))
    assert not bench.keeps(replace(SENDER_ALIVE, groups=(held,)))
    assert bench.keeps(replace(SENDER_ALIVE, groups=(held,), newest_stamp=3))


def test_other_stamps_tables_and_parts_are_news(bench: Bench) -> None:
    assert bench.keeps(STAMP) and bench.keeps(replace(STAMP, number=2))
    assert bench.keeps(TABLE) and bench.keeps(replace(TABLE, version=Version(2, 7)))
    assert bench.keeps(HAND_OVER) and bench.keeps(replace(HAND_OVER, first=6))


def test_other_labels_with_the_same_tag_are_not_kept(bench: Bench) -> None:
    assert not bench.keeps(replace(STAMP, label="other"))


def test_what_has_no_room_is_counted_and_is_news_again_later() -> None:
    bench, size = Bench(), len(encode_control(HANDLED, 1)) + limits.DATAGRAM_COST_BYTES
    fits = limits.HISTORY_BYTES // size
    for counter in range(fits + 5):
        bench.chronicle.note(HANDLED, encode_control(HANDLED, 1), counter)
    bench.chronicle.note(STAMP, encode_control(STAMP, 1), "there")
    bench.chronicle.check_invariants()
    assert bench.stats.unrecorded == 6
    assert len(bench.chronicle) == fits
    assert [source for _, source in bench.chronicle.take()] == list(range(fits)), "the oldest are kept"
    assert bench.keeps(STAMP)


def test_what_was_news_lately_is_remembered_longest(bench: Bench) -> None:
    bench.keeps(ALIVE)
    for number in range(limits.REMEMBERED_MAX - 1):
        bench.keeps(replace(STAMP, number=number))
    assert bench.keeps(replace(ALIVE, leaving=True))
    assert bench.keeps(replace(STAMP, number=limits.REMEMBERED_MAX))
    assert not bench.keeps(replace(ALIVE, leaving=True))


def test_no_more_is_remembered_than_there_may_be(bench: Bench) -> None:
    for number in range(limits.REMEMBERED_MAX + 10):
        assert bench.keeps(replace(STAMP, number=number))
    assert not bench.keeps(replace(STAMP, number=limits.REMEMBERED_MAX))
