"""A world's story: which lines there are at which level, and the words in them."""

from __future__ import annotations

import pytest

from rvq.core.machine import Route
from rvq.sim.clock import Clock
from rvq.sim.story import Story
from rvq.wire.batch import Stamped, encode_batch
from rvq.wire.codec import encode_control
from rvq.wire.frames import GroupStamp, Member, Nak, Silence, Stamp, TableFrame, Version, label_tag
from rvq.wire.records import Records, make_record

A, B, C = 0x3F2A_0000_1111_2222, 0x51BC_0000_3333_4444, 0x77DD_0000_5555_6666
TAG = label_tag("work")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def story(clock: Clock, level: int) -> Story:
    told = Story(clock, level)
    for id, name in ((A, "ada"), (B, "bob"), (C, "cy")):
        told.introduce(id, name)
    return told


def table(counter: int = 3, *, draining: tuple[int, ...] = (), group: str = "default") -> bytes:
    frame = TableFrame(A, "work", group, Version(counter, A), (Member(A, 1), Member(B, 4)), draining)
    return encode_control(frame, TAG)


def test_at_level_zero_nothing_is_kept(clock: Clock) -> None:
    told = story(clock, 0)
    told.tell("ada", "hello")
    told.overhear("ada", Route.CONTROL, table())
    assert told.lines == []


def test_a_line_says_when_who_and_what(clock: Clock) -> None:
    told = story(clock, 1)
    clock.run(12.34567)
    told.tell("ada", "joined")
    assert told.lines == ["  12.3457  ada      joined"]


def test_lines_are_handed_on_as_they_happen(clock: Clock) -> None:
    heard: list[str] = []
    told = Story(clock, 1, heard.append)
    told.tell("ada", "joined")
    assert heard == told.lines != []


def test_one_without_a_name_is_called_by_its_id(clock: Clock) -> None:
    assert story(clock, 1).name_of(0xBEEF) == "beef"
    assert story(clock, 1).name_of(A) == "ada"


@pytest.mark.parametrize("spelt", [f"{A:016x}", f"{A:x}", f"{A:x}"[:8], f"{A:x}"[:4] + "…"])
def test_ids_in_a_line_become_names_however_short_they_are_spelt(clock: Clock, spelt: str) -> None:
    told = story(clock, 1)
    told.tell("bob", f"inherited 12 messages from {spelt}, all of them")
    assert told.lines[0].endswith("inherited 12 messages from ada, all of them")


def test_a_small_id_chosen_by_hand_leaves_ordinary_numbers_alone(clock: Clock) -> None:
    told = Story(clock, 1)
    told.introduce(1, "one")
    told.introduce(2, "two")
    told.tell("x", "STAMP 12 from 1201 on, 0000… and 00000000")
    assert told.lines[0].endswith("STAMP 12 from 1201 on, 0000… and 00000000")
    told.tell("x", f"left: {1:016x}")
    assert told.lines[1].endswith("left: one")


def test_a_table_is_told_once_however_often_it_is_sent(clock: Clock) -> None:
    told = story(clock, 1)
    told.overhear("ada", Route.CONTROL, table())
    told.overhear("bob", "cy", table())
    assert len(told.lines) == 1
    assert told.lines[0].endswith("ada      TABLE 3 of default [ada bobx4]")
    told.overhear("ada", Route.CONTROL, table(4))
    told.overhear("ada", Route.CONTROL, table(3, group="audit"))
    assert len(told.lines) == 3


def test_a_table_names_those_who_drain(clock: Clock) -> None:
    told = story(clock, 1)
    told.overhear("ada", Route.CONTROL, table(draining=(C,)))
    assert told.lines[0].endswith("TABLE 3 of default [ada bobx4], draining cy")


def test_a_switch_names_those_who_are_in_and_what_became_of_the_others(clock: Clock) -> None:
    told = story(clock, 1)
    default = GroupStamp("default", 2, 41, Version(3, A), (Member(A, 1),), (B,), (Silence(C, 1.5),), (0xBEEF,))
    audit = GroupStamp("audit", 1, 1, Version(1, B), (Member(B, 1),), (), (), ())
    told.stamped("s1", Stamp(9, "work", 2, 41, False, (default, audit)))
    assert told.lines[0].endswith("STAMP 2 from 41 on: default [ada], draining bob, out cy, gone beef")


def test_a_stamp_without_a_switch_says_so(clock: Clock) -> None:
    told = story(clock, 1)
    told.stamped("s1", Stamp(9, "work", 1, 1, True, ()))
    assert told.lines[0].endswith("STAMP 1 from 1 on: as before")


def test_frames_are_told_at_level_two_only(clock: Clock) -> None:
    frame = encode_control(Nak(A, B, (3, 5), ()), TAG)
    quiet, loud = story(clock, 1), story(clock, 2)
    for told in (quiet, loud):
        told.overhear("ada", Route.CONTROL, frame)
        told.overhear("ada", "s1", frame)
    assert quiet.lines == []
    assert [line[10:] for line in loud.lines] == [
        " ada        -> *control Nak stream=bob runs=(3 5) fragments=()",
        " ada        -> s1       Nak stream=bob runs=(3 5) fragments=()",
    ]


def test_a_data_frame_is_told_by_its_header(clock: Clock) -> None:
    told = story(clock, 2)
    at = Stamped(TAG, stamp=4, stream=9, first=7, sent_at=0.0, done_to=3, position=100)
    datagram = encode_batch(at, Records.of([make_record(b"x"), make_record(b"y")]))
    told.overhear("s1", Route.DATA, datagram)
    assert f"*data    DATA 7+2 stamp 4 done to 3 ({len(datagram)} bytes)" in told.lines[0]


def test_bytes_that_are_no_frame_are_told_and_do_no_harm(clock: Clock) -> None:
    told = story(clock, 1)
    told.overhear("ada", Route.CONTROL, b"nonsense")
    assert "sent something that is no frame" in told.lines[0]
