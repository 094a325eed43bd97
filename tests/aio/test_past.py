"""What a journal knows of one group's past."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest

from rvq.aio.past import Past, offered_in, offered_note
from rvq.journal import Entry, EntryKind, Journal, JournalReader
from rvq.journal.runs import RunSet
from rvq.wire.codec import encode_control
from rvq.wire.frames import (
    Control,
    GroupStamp,
    GroupState,
    Handled,
    HandledRun,
    Member,
    Outcome,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    Version,
    label_tag,
)
from rvq.wire.records import NO_SHARD

NOW = 1_790_000_000.0
STREAM, ANN, BOB = 7, 100, 200


def stamp(number: int, at: int, *members: int, group: str = "team", keyed: bool = False) -> Stamp:
    """From `at` on these are in force; none: the group was given up."""
    shard_map = tuple(shard % len(members) for shard in range(1024)) if keyed and members else ()
    who = tuple(Member(id, 1) for id in members)
    entry = GroupStamp(group, number, at, Version(number, 1), who, (), (), (), shard_map)
    return Stamp(STREAM, "work", number, at, keyed, (entry,) if members else ())


def done_up_to(sequence: int, group: str = "team") -> SenderAlive:
    state = GroupState(group, Version(1, 1), sequence, False, ())
    return SenderAlive(STREAM, "work", 1, False, sequence, 0, 1, 1, (state,), ())


def handled(*runs: HandledRun, group: str = "team") -> Handled:
    return Handled(ANN, "work", group, STREAM, 1, runs)


def run_of(first: int, last: int, *, slot: int = 0, number: int = 1, outcome: Outcome = Outcome.ACKED) -> HandledRun:
    return HandledRun(outcome, number, slot, first, last, NOW)


class Told:
    """A journal in which these frames are recorded one after the other."""

    def __init__(self, folder: Path) -> None:
        self.journal = Journal.open(folder, group="journal", recorder=1)
        self.past = Past(JournalReader(folder), "work", "team")

    def __call__(self, *frames: Control) -> Past:
        for frame in frames:
            datagram = encode_control(frame, label_tag("work"))
            self.journal.writer("work").add(Entry(EntryKind.CONTROL, 0, None, NOW, 0, datagram))
        self.journal.commit(NOW)
        self.past.read()
        return self.past

    def undone(self, last: int, shard: int = NO_SHARD) -> list[int]:
        stream = self.past.stream(STREAM)
        return [sequence for sequence in range(1, last + 1) if stream.is_undone(sequence, shard)]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_nothing_was_a_groups_own_before_it_came(told: Told) -> None:
    told(stamp(1, 1, ANN, group="other"))
    assert told.undone(9) == [] and told.past.stream(STREAM).begin is None
    told(stamp(2, 5, ANN))
    assert told.undone(9) == [5, 6, 7, 8, 9] and told.past.stream(STREAM).begin == 5


def test_what_the_sender_knew_as_done_in_the_group_is_done(told: Told) -> None:
    told(stamp(1, 1, ANN), done_up_to(4), done_up_to(9, group="other"))
    assert told.undone(6) == [5, 6]


def test_what_a_receiver_did_is_done_in_its_lane_only(told: Told) -> None:
    told(stamp(1, 1, ANN, BOB), handled(run_of(2, 6)), handled(run_of(1, 99), group="other"))
    assert told.undone(8) == [1, 3, 5, 7, 8], "slot 0 of two has the even ones"


def test_with_keys_a_lane_is_that_of_the_shard(told: Told) -> None:
    told(stamp(1, 1, ANN, BOB, keyed=True), handled(run_of(1, 3, slot=1)))
    assert told.undone(4, shard=1) == [4] and told.undone(4, shard=2) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("outcome", "undone"),
    [
        (Outcome.DEAD, []),
        (Outcome.EXPIRED, []),
        (Outcome.UNREADABLE, []),
        (Outcome.RETRIED, [1]),
        (Outcome.HANDED_OVER, [1]),
    ],
)
def test_some_outcomes_are_the_end_and_some_are_not(told: Told, outcome: Outcome, undone: list[int]) -> None:
    told(stamp(1, 1, ANN), handled(run_of(1, 1, outcome=outcome)))
    assert told.undone(1) == undone


def test_a_later_segment_has_its_own_lanes(told: Told) -> None:
    told(stamp(1, 1, ANN, BOB), stamp(2, 5, ANN), handled(run_of(5, 6, number=2)))
    assert told.undone(7) == [1, 2, 3, 4, 7]


def test_a_sender_that_said_goodbye_left_nothing(told: Told) -> None:
    told(stamp(1, 1, ANN), SenderGoodbye(STREAM, "work"))
    assert told.undone(9) == []


def test_what_came_when_a_group_was_given_up_is_not_its_own(told: Told) -> None:
    told(stamp(1, 1, ANN), stamp(2, 4), stamp(3, 6, BOB))
    assert told.undone(7) == [1, 2, 3, 6, 7]


def test_what_was_offered_again_is_done_with(told: Told) -> None:
    told(stamp(1, 1, ANN))
    runs = {STREAM: RunSet()}
    runs[STREAM].add(2, 3)
    for group in ("team", "other"):
        payload = offered_note(group, runs if group == "team" else {STREAM: RunSet()})
        told.journal.writer("work").add(Entry(EntryKind.NOTE, 0, None, NOW, 0, payload))
    told()
    assert told.undone(4) == [1, 4]


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x01", msgpack.packb(["offered", "team", [1]])])
def test_other_notes_say_nothing_of_it(payload: bytes) -> None:
    assert offered_in(Entry(EntryKind.NOTE, 0, None, NOW, 0, payload), "team") == []


def test_control_that_cannot_be_read_is_passed_over(told: Told) -> None:
    told.journal.writer("work").add(Entry(EntryKind.CONTROL, 0, None, NOW, 0, b"of a later version"))
    told(stamp(1, 1, ANN))
    assert told.undone(2) == [1, 2]


def test_it_is_read_on_from_where_it_ended(told: Told) -> None:
    told(stamp(1, 1, ANN))
    before = dict(told.past._read)
    told(done_up_to(1))
    assert told.past._read != before and told.undone(2) == [2]
