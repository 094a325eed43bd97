"""The frames that a receiver has: whole ones, parts of large messages, and what is missing."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.holding import PARTS_QUIET_S, HeldFrame, Holding
from rvq.core.stats import Stats
from rvq.errors import WireError
from rvq.limits import NAK_PARTS_MAX, NAK_RANGES_MAX
from rvq.wire.batch import Stamped, encode_batch, encode_even_batches
from rvq.wire.codec import read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import MissingParts, Nak, label_tag
from rvq.wire.records import make_record, make_records
from rvq.wire.train import Train, read_train, split

TAG = label_tag("work")
FRAME_BYTES = 512


@pytest.fixture
def holding() -> Holding:
    return Holding(Random(1), Stats())


def batch(first: int, count: int, stamp: int = 1) -> bytes:
    at = Stamped(TAG, stamp, 0xABC, first, 5.0, 0, 0)
    return encode_batch(at, make_records([first + n for n in range(count)]))


def fragments(sequence: int, size: int = 2000, stamp: int = 1) -> list[bytes]:
    at = Stamped(TAG, stamp, 0xABC, sequence, 5.0, 0, 0)
    return encode_fragments(at, make_record(bytes(size)), FRAME_BYTES)


def add(holding: Holding, datagram: bytes) -> HeldFrame | None:
    return holding.add(read_data_header(datagram), datagram)


def add_part(holding: Holding, datagram: bytes, now: float = 0.0) -> HeldFrame | None:
    return holding.add_part(now, read_data_header(datagram), datagram)


def spans(frames: list[HeldFrame]) -> list[tuple[int, int]]:
    return [(frame.first, frame.last) for frame in frames]


# --- whole frames -------------------------------------------------------------------------------------------------


def test_a_frame_is_kept_as_it_came(holding: Holding) -> None:
    datagram = batch(11, 5, stamp=3)
    frame = add(holding, datagram)
    assert frame == HeldFrame(11, 15, read_data_header(datagram), (datagram,), len(datagram))
    assert holding.bytes == len(datagram)
    assert [content.body for content in frame.run().contents(range(5)) if content] == [11, 12, 13, 14, 15]
    holding.check_invariants()


def test_a_frame_that_is_here_already_is_not_kept_twice(holding: Holding) -> None:
    add(holding, batch(11, 5))
    size = holding.bytes
    assert add(holding, batch(11, 5)) is None
    assert holding.bytes == size


def test_a_frame_fills_the_gap_that_it_was_missing_from(holding: Holding) -> None:
    holding.gaps.note(0.0, 1, 20)
    add(holding, batch(6, 10))
    assert holding.lacking(9.0) == ((1, 5, 16, 20), ())


def test_only_frames_that_were_asked_for_count_as_repaired() -> None:
    stats = Stats()
    holding = Holding(Random(1), stats)
    holding.gaps.note(0.0, 1, 20)
    add(holding, batch(1, 10))
    assert stats.repaired == 0, "it was only overtaken"
    holding.lacking(9.0)
    add(holding, batch(11, 10))
    add(holding, batch(21, 10))
    assert stats.repaired == 1


def test_frames_are_found_in_order_whatever_order_they_came_in(holding: Holding) -> None:
    for first in (21, 1, 11):
        add(holding, batch(first, 10))
    assert spans(holding.within(10, 21)) == [(1, 10), (11, 20), (21, 30)]
    assert spans(holding.within(11, 20)) == [(11, 20)]
    assert holding.within(31, 40) == []


def test_holes_are_where_there_is_no_frame_nor_a_part_of_one(holding: Holding) -> None:
    add(holding, batch(11, 10))
    add_part(holding, fragments(25)[0])
    assert list(holding.holes(5, 30)) == [(5, 10), (21, 24), (26, 30)]
    assert list(holding.holes(12, 18)) == []
    assert list(holding.holes(21, 24)) == [(21, 24)]


@settings(max_examples=100)
@given(st.sets(st.integers(0, 9)), st.integers(1, 30), st.integers(0, 12))
def test_frames_and_holes_are_a_partition_of_any_stretch(tens: set[int], first: int, length: int) -> None:
    holding = Holding(Random(1), Stats())
    for ten in tens:
        add(holding, batch(3 * ten + 1, 3))
    have = {q for ten in tens for q in range(3 * ten + 1, 3 * ten + 4)}
    holes = [q for a, b in holding.holes(first, first + length) for q in range(a, b + 1)]
    assert holes == [q for q in range(first, first + length + 1) if q not in have]


def test_what_is_done_is_dropped_and_no_longer_missing(holding: Holding) -> None:
    for first in (1, 11, 21):
        add(holding, batch(first, 10))
    holding.gaps.note(0.0, 31, 40)
    holding.drop_to(20)
    assert list(holding.frames) == [21]
    holding.drop_to(35)
    assert holding.bytes == 0
    assert holding.lacking(9.0) == ((36, 40), ())
    holding.check_invariants()


def test_a_frame_is_kept_while_any_of_it_is_undone(holding: Holding) -> None:
    add(holding, batch(1, 10))
    holding.drop_to(9)
    holding.sweep(9)
    assert list(holding.frames) == [1]


def test_what_came_out_of_order_is_found_by_sweeping(holding: Holding) -> None:
    for first in (21, 1):
        add(holding, batch(first, 10))
    add_part(holding, fragments(15)[0])
    holding.sweep(20)
    assert list(holding.frames) == [21]
    assert holding.bytes == holding.frames[21].size
    assert list(holding.holes(15, 15)) == [(15, 15)]
    holding.check_invariants()


def test_dropping_what_is_not_here_changes_nothing(holding: Holding) -> None:
    add(holding, batch(1, 10))
    holding.drop(11)
    assert list(holding.frames) == [1]


# --- parts --------------------------------------------------------------------------------------------------------


@given(st.randoms(use_true_random=False), st.integers(600, 3000))
def test_a_message_is_whole_when_its_last_part_came_in_whatever_order(random: Random, size: int) -> None:
    holding = Holding(Random(1), Stats())
    parts = fragments(7, size)
    shuffled = parts * 2
    random.shuffle(shuffled)
    whole = [frame for frame in (add_part(holding, part) for part in shuffled) if frame is not None]
    assert len(whole) == 1
    assert whole[0].datagrams == tuple(parts)
    content = whole[0].run().contents([0])[0]
    assert content is not None and content.body == bytes(size)
    holding.check_invariants()


def test_parts_are_asked_for_only_when_no_more_come_in(holding: Holding) -> None:
    parts = fragments(7)
    add_part(holding, parts[0], 0.0)
    add_part(holding, parts[2], 0.008)
    assert holding.lacking(0.012) == ((), ())
    assert holding.next_deadline() == 0.008 + PARTS_QUIET_S
    lacking = tuple(n for n in range(len(parts)) if n not in (0, 2))
    assert holding.lacking(0.02) == ((), (MissingParts(7, lacking),))
    assert holding.lacking(0.02) == ((), ()), "once at a time"


def test_parts_are_asked_for_again_and_again_with_longer_pauses(holding: Holding) -> None:
    add_part(holding, fragments(7)[0])
    asked = []
    for _ in range(12):
        asked.append(holding.next_deadline())
        assert holding.lacking(asked[-1])[1]
    pauses = [b - a for a, b in pairwise(asked)]
    assert (
        pauses == pytest.approx(sorted(pauses))
        and pauses[0] == pytest.approx(0.02)
        and pauses[-1] == pytest.approx(0.4)
    )


def test_a_message_of_which_a_part_is_here_is_no_gap(holding: Holding) -> None:
    holding.gaps.note(0.0, 7, 7)
    add_part(holding, fragments(7)[3])
    assert not holding.gaps


def test_one_nak_asks_for_a_bounded_number_of_parts_and_messages(holding: Holding) -> None:
    add_part(holding, fragments(1, 100_000)[0])
    for sequence in range(2, NAK_RANGES_MAX + 5):
        add_part(holding, fragments(sequence)[0])
    _, lacking = holding.lacking(1.0)
    assert len(lacking) == NAK_RANGES_MAX
    assert lacking[0] == MissingParts(1, tuple(range(1, NAK_PARTS_MAX + 1)))


def test_parts_that_contradict_each_other_do_not_mix(holding: Holding) -> None:
    mine, other = fragments(7, 2000), fragments(7, 900)
    add_part(holding, mine[0])
    assert add_part(holding, other[1]) is None
    for part in mine[1:-1]:
        assert add_part(holding, part) is None
    whole = add_part(holding, mine[-1])
    assert whole is not None and whole.datagrams == tuple(mine)
    holding.check_invariants()


def test_a_part_that_cannot_be_read_is_refused(holding: Holding) -> None:
    part = fragments(7)[0]
    with pytest.raises(WireError):
        add_part(holding, part[:58])
    assert holding.bytes == 0 and holding.next_deadline() == math.inf


# --- answering ----------------------------------------------------------------------------------------------------


def nak(*runs: int, parts: tuple[MissingParts, ...] = ()) -> Nak:
    return Nak(9, 0xABC, runs, parts)


def test_another_receiver_gets_what_it_asks_for_as_far_as_it_is_here(holding: Holding) -> None:
    first, third = batch(1, 10), batch(21, 10)
    add(holding, first)
    add(holding, third)
    assert list(holding.answer(nak(5, 6, 11, 25))) == [first, third]
    assert list(holding.answer(nak(11, 20))) == []


def test_another_receiver_gets_single_parts_of_what_is_here_whole_or_not(holding: Holding) -> None:
    whole, some = fragments(7), fragments(8)
    for part in whole:
        add_part(holding, part)
    add_part(holding, some[1])
    wanted = (MissingParts(7, (0, 3, 999)), MissingParts(8, (0, 1)), MissingParts(9, (0,)))
    assert list(holding.answer(nak(parts=wanted))) == [whole[0], whole[3], some[1]]


# --- trains -------------------------------------------------------------------------------------------------------


def a_train(first: int, frames: int) -> Train:
    bodies = make_records([b"0123456789"] * (frames * 5))
    datagram = b"".join(encode_even_batches(Stamped(TAG, 1, 0xABC, first, 5.0, 0, 0), bodies, 5, FRAME_BYTES))
    train = read_train(datagram, FRAME_BYTES)
    assert train is not None
    return train


def test_the_frames_inside_of_a_train_are_here(holding: Holding) -> None:
    train = a_train(11, 4)
    frame = holding.add_train(train)
    assert (frame.first, frame.last, holding.bytes) == (11, 30, 4 * FRAME_BYTES)
    assert frame.run() is train
    for single in split(train.datagram, FRAME_BYTES):
        assert add(holding, single) is None
    assert list(holding.holes(1, 40)) == [(1, 10), (31, 40)]
    holding.check_invariants()
    holding.drop_to(30)
    assert holding.bytes == 0
    holding.check_invariants()
    assert add(holding, split(train.datagram, FRAME_BYTES)[2]) is not None


def test_another_receiver_gets_only_the_frames_of_a_train_that_it_lacks(holding: Holding) -> None:
    train = a_train(11, 4)
    holding.add_train(train)
    frames = split(train.datagram, FRAME_BYTES)
    assert list(holding.answer(Nak(5, 0xABC, (17, 21), ()))) == frames[1:3]
