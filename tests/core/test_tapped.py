"""One stream at a tap: where it begins, in which order it goes on, and what is asked for or passed over."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.core.holding import HeldFrame
from rvq.core.repair import ASK_S_FIRST
from rvq.core.stats import Stats
from rvq.core.stream import CONTROL_GAP_S, FORGET_S
from rvq.core.tapped import ASK_PAUSE_S, FUTILE_S, HOLES_MAX, PATIENCE_S, Tapped
from rvq.errors import WireError
from rvq.wire.batch import Stamped, encode_batch, encode_tail
from rvq.wire.codec import read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import NO_VERSION, GroupState, MissingParts, SenderAlive
from rvq.wire.records import make_record, make_records
from rvq.wire.train import read_train

STREAM, TAG = 0xA, 7
ASKED_S = 2 * ASK_S_FIRST
"""What is missing is asked for after this."""


def stamped(first: int, *, done_to: int = 0) -> Stamped:
    """Positions are a thousand for each message, to keep them readable."""
    return Stamped(TAG, 1, STREAM, first, 1e9, done_to, 1000 * (first - 1))


def batch(first: int, count: int = 1, *, done_to: int = 0) -> bytes:
    bodies = [f"m{sequence}".encode() for sequence in range(first, first + count)]
    return encode_batch(stamped(first, done_to=done_to), make_records(bodies))


def alive(last: int, position: int = 0, done_to: int | None = None) -> SenderAlive:
    state = GroupState("default", NO_VERSION, last if done_to is None else done_to, False, ())
    return SenderAlive(STREAM, "work", 1, False, last, position, 1, 1, (state,), ())


class Tap:
    """A stream, and what it has shown."""

    def __init__(self, begin: int = 0) -> None:
        self.stats = Stats()
        self.stream = Tapped(STREAM, "sender", Random(1), self.stats, 0.0, begin)
        self.shown: list[int] = []

    def hear(self, now: float, *datagrams: bytes) -> list[int]:
        """What is shown because of these."""
        before = len(self.shown)
        for datagram in datagrams:
            self._show(self.stream.on_data(now, read_data_header(datagram), datagram))
        return self.shown[before:]

    def wake(self, now: float) -> list[int]:
        before = len(self.shown)
        self._show(self.stream.wake(now))
        return self.shown[before:]

    def _show(self, frames: Iterable[HeldFrame]) -> None:
        for frame in frames:
            self.shown += range(frame.first, frame.last + 1)
        self.stream.check_invariants()

    def asks(self, now: float) -> Any:
        return self.stream.lacking(now)


# --- where it begins ----------------------------------------------------------------------------------------------


def test_it_begins_with_the_first_frame_that_it_hears() -> None:
    tap = Tap()
    assert tap.hear(0.0, batch(41, 3)) == [41, 42, 43]
    assert tap.asks(1.0) is None, "what was before is nothing to it"


def test_it_begins_behind_a_tail() -> None:
    tap = Tap()
    assert tap.hear(0.0, encode_tail(stamped(7))) == []
    assert tap.hear(0.1, batch(9)) == []
    assert tap.asks(0.2) == ((8, 8), ())


def test_of_a_stream_that_has_sent_nothing_it_misses_nothing() -> None:
    tap = Tap()
    tap.stream.on_alive(0.0, alive(last=0))
    tap.wake(CONTROL_GAP_S)
    assert tap.hear(0.1, batch(2)) == []
    assert tap.asks(0.2) == ((1, 1), ())
    assert tap.hear(0.2, batch(1)) == [1, 2]


def test_frames_that_a_heartbeat_overtook_are_not_missed() -> None:
    tap = Tap()
    tap.stream.on_alive(0.0, alive(last=5))
    assert tap.stream.next_deadline() == CONTROL_GAP_S
    assert tap.hear(0.01, batch(4)) == [4]
    tap.wake(CONTROL_GAP_S)
    assert tap.hear(0.02, batch(5)) == [5]


def test_what_is_numbered_and_perhaps_not_sent_is_not_where_it_begins() -> None:
    tap = Tap()
    tap.stream.on_alive(0.0, alive(last=50, done_to=10))
    tap.wake(1.0)
    assert tap.hear(1.0, batch(11)) == [11], "it was held back for the receivers"


# --- order and once -----------------------------------------------------------------------------------------------


def test_what_overtakes_waits_for_what_it_overtook() -> None:
    tap = Tap()
    assert tap.hear(0.0, batch(1), batch(3), batch(4, 2)) == [1]
    assert tap.hear(0.001, batch(2)) == [2, 3, 4, 5]
    assert tap.stats.lost == tap.stats.repaired == 0


def test_what_comes_twice_is_shown_once() -> None:
    tap = Tap()
    assert tap.hear(0.0, batch(1, 2), batch(1, 2), batch(4), batch(4), batch(3), batch(4)) == [1, 2, 3, 4]
    assert tap.stats.duplicates == 3


@pytest.mark.parametrize("count", [0, 1])
def test_a_frame_of_nothing_is_refused(count: int) -> None:
    tap = Tap()
    header = read_data_header(batch(1))._replace(first=count ^ 1, count=count)
    with pytest.raises(WireError):
        tap.stream.on_data(0.0, header, batch(1))


def test_a_train_is_one_run_if_all_of_it_is_new() -> None:
    frames = [batch(first, 2) for first in (1, 3, 5)]
    size = len(frames[0])
    train = read_train(b"".join(frames), size)
    assert train is not None
    tap = Tap()
    found = tap.stream.on_train(0.0, train)
    assert found is not None
    assert [(frame.first, frame.last) for frame in found] == [(1, 6)]
    assert tap.stream.on_train(0.0, train) is None
    assert tap.hear(0.0, batch(3, 2)) == []
    assert tap.hear(0.0, batch(7)) == [7]


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_whatever_comes_in_whatever_order_each_is_shown_once_in_order_or_counted(random: Random, count: int) -> None:
    tap = Tap(begin=1)
    coming = [sequence for sequence in range(1, count + 1) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    random.shuffle(coming)
    now = 0.0
    for sequence in coming:
        now += random.choice((0.0, 0.001, PATIENCE_S / 3))
        tap.wake(now)
        tap.asks(now)
        tap.hear(now, batch(sequence, done_to=random.randrange(sequence)))
    tap._show(tap.stream.skip_all())
    assert tap.shown == sorted(set(tap.shown))
    assert len(tap.shown) + tap.stats.lost == max(coming, default=0)


# --- what is missing ----------------------------------------------------------------------------------------------


def test_what_is_missing_is_asked_for_and_shown_when_it_comes() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(4))
    assert tap.asks(0.0) is None, "it may only have been overtaken"
    assert tap.stream.next_deadline() < ASKED_S
    assert tap.asks(ASKED_S) == ((2, 3), ())
    assert tap.hear(0.01, batch(2, 2)) == [2, 3, 4]
    assert (tap.stats.repaired, tap.stats.lost) == (1, 0)


def test_it_asks_no_more_often_than_a_sender_can_bear() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    assert tap.asks(ASKED_S) == ((2, 2), ())
    tap.hear(ASKED_S, batch(5))
    assert tap.asks(2 * ASKED_S) is None
    assert tap.stream.next_deadline() == ASKED_S + ASK_PAUSE_S
    runs, _ = tap.asks(ASKED_S + ASK_PAUSE_S)
    assert runs[-2:] == (4, 4)


def test_a_lost_tail_is_noticed_by_a_probe() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), encode_tail(stamped(3)))
    assert tap.asks(ASKED_S) == ((2, 3), ())


def test_a_lost_tail_is_noticed_by_a_heartbeat() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1))
    tap.stream.on_alive(0.1, alive(last=2, position=10**6, done_to=1))
    assert tap.asks(0.1 + ASKED_S) is None, "it may have overtaken the frame"
    assert tap.asks(0.1 + 2 * CONTROL_GAP_S) == ((2, 2), ())


def test_what_was_not_sent_yet_is_not_asked_for() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1))
    position = read_data_header(batch(1)).position
    tap.stream.on_alive(0.1, alive(last=900, position=position, done_to=0))
    assert tap.asks(1.0) is None
    assert tap.hear(9.0, batch(2)) == [2]
    assert tap.stats.lost == 0


def test_what_does_not_come_is_passed_over_and_counted() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(4), batch(6))
    assert tap.wake(PATIENCE_S - 0.01) == []
    assert tap.wake(PATIENCE_S) == [4, 6]
    assert tap.stats.lost == 3
    assert tap.hear(PATIENCE_S, batch(2), batch(7)) == [7], "what comes too late is not shown out of order"
    assert tap.asks(2 * PATIENCE_S) is None


def test_what_its_sender_has_let_go_of_is_not_waited_for_long() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3), batch(5, done_to=2))
    assert tap.wake(FUTILE_S - 0.01) == []
    assert tap.wake(FUTILE_S) == [3], "the sender still has 4"
    assert tap.stats.lost == 1
    tap.stream.on_alive(0.2, alive(last=5, done_to=4))
    assert tap.wake(0.2 + FUTILE_S) == [5]


def test_what_was_noticed_later_is_waited_for_longer() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    tap.hear(0.5, batch(5))
    assert tap.wake(PATIENCE_S) == [3]
    assert tap.wake(PATIENCE_S + 0.5) == [5]


def test_a_nap_is_no_reason_to_pass_anything_over() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    tap.stream.forgive(10.0)
    assert tap.wake(10.0) == []
    assert tap.hear(10.0, batch(2)) == [2, 3]


def test_holes_are_bounded() -> None:
    tap = Tap()
    for sequence in range(1, 4 * HOLES_MAX, 2):
        tap.hear(0.0, batch(sequence))
    assert tap.shown == [1]
    assert len(tap.wake(PATIENCE_S)) == 2 * HOLES_MAX - 1
    assert tap.stats.lost == 2 * HOLES_MAX - 1


# --- large messages -----------------------------------------------------------------------------------------------


def parts_of(sequence: int, size: int = 2000) -> list[bytes]:
    return encode_fragments(stamped(sequence), make_record(bytes(size)), 600)


def test_a_large_message_is_shown_when_it_is_whole() -> None:
    tap = Tap()
    first, *others = parts_of(1)
    assert tap.hear(0.0, *others, batch(2)) == []
    assert tap.asks(1.0) == ((), (MissingParts(1, (0,)),))
    assert tap.hear(0.1, first) == [1, 2]


def test_parts_that_were_perhaps_not_sent_yet_are_not_asked_for_nor_passed_over() -> None:
    tap = Tap()
    *others, final = parts_of(1)
    tap.hear(0.0, *others)
    assert tap.asks(0.5) is None and tap.wake(2 * PATIENCE_S) == []
    assert tap.stream.next_deadline() > 0.5
    tap.hear(3.0, encode_tail(stamped(1)))
    assert tap.asks(4.0) == ((), (MissingParts(1, (len(others),)),))
    assert tap.hear(4.0, final) == [1]


def test_a_large_message_that_stays_incomplete_is_passed_over() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), *parts_of(2)[1:], batch(3))
    assert tap.wake(PATIENCE_S) == [3]
    assert (tap.stats.lost, tap.stream.holding.bytes) == (1, 0)


def test_a_large_message_is_waited_for_as_long_as_it_comes() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    first, *others = parts_of(2)
    now = 0.0
    for part in others:
        now += 0.9 * PATIENCE_S
        assert tap.wake(now) == []
        tap.hear(now, part)
    assert tap.hear(now, first) == [2, 3]


# --- its end ------------------------------------------------------------------------------------------------------


def test_what_is_on_its_way_at_the_goodbye_is_still_shown() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    tap.stream.on_goodbye(0.0)
    assert tap.hear(0.01, batch(4), batch(2)) == [2, 3, 4]
    assert not tap.stream.is_over(0.01)


def test_after_the_goodbye_nothing_is_waited_for_long_and_then_it_is_over() -> None:
    tap = Tap()
    tap.hear(0.0, batch(1), batch(3))
    tap.stream.on_goodbye(0.0)
    assert tap.wake(FUTILE_S) == [3]
    assert tap.stream.is_over(PATIENCE_S)


def test_a_stream_is_over_when_it_was_silent_for_long() -> None:
    tap = Tap()
    tap.hear(1.0, batch(1))
    assert not tap.stream.is_over(FORGET_S)
    tap.stream.on_alive(2.0, alive(last=1))
    assert tap.stream.next_deadline() == 2.0 + FORGET_S
    assert tap.stream.is_over(2.0 + FORGET_S)


def test_a_stream_that_comes_back_goes_on_where_it_was() -> None:
    tap = Tap(begin=5)
    assert tap.hear(0.0, batch(3), batch(4)) == []
    assert tap.hear(0.0, batch(6)) == []
    assert tap.hear(0.0, batch(5)) == [5, 6]
