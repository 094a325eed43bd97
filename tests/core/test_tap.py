"""A tap among senders and receivers: sees everything, and changes nothing. Times are numbers; nothing waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from rvq import limits
from rvq.core import tap as module
from rvq.core.flow import WINDOW_BYTES_FIRST
from rvq.core.machine import Cut, Route, Target
from rvq.core.receiver import ReceiverMachine
from rvq.core.sender import SenderMachine
from rvq.core.stream import FORGET_S
from rvq.core.tap import TapMachine
from rvq.core.tapped import PATIENCE_S
from rvq.errors import BadLabel
from rvq.message import Message
from rvq.timings import Timings
from rvq.wire.batch import Stamped, encode_batch
from rvq.wire.codec import decode_control, encode_control, peek
from rvq.wire.frames import FrameType, Nak, SenderGoodbye, label_tag
from rvq.wire.records import Records, make_record, make_records

T = Timings()
TAG = label_tag("work")
SENDER, ME = 0xA, 0x7A9

End = SenderMachine | ReceiverMachine | TapMachine
Drop = Callable[[int, int, bytes], bool]


def make_tap(now: float = 0.0) -> TapMachine:
    return TapMachine("work", ME, timings=T, random=Random(1), now=now, wall_offset=1e9)


def frame(first: int, bodies: Iterable[Any], *, stream: int = SENDER, tag: int = TAG) -> bytes:
    return encode_batch(Stamped(tag, 1, stream, first, 1e9, 0, 0), make_records(list(bodies)))


def numbers(messages: Iterable[Message]) -> list[int]:
    return [message.sequence for message in messages]


class Pump:
    """Passes datagrams between machines, at once and in order, unless `drop(from, to, datagram)`."""

    def __init__(self, *, tap: bool = True) -> None:
        self.now = 0.0
        self.drop: Drop = lambda source, to, datagram: False
        self.said: list[tuple[int, Target, bytes]] = []
        self.sender = SenderMachine("work", SENDER, timings=T, random=Random(1), now=0.0, wall_offset=1e9)
        self.receivers = [
            ReceiverMachine(
                "work", id, group="default", weight=1, timings=T, random=Random(id), now=0.0, wall_offset=1e9
            )
            for id in (1, 2)
        ]
        self.tap = make_tap()
        self.handled: list[tuple[float, int, int]] = []
        ends: list[End] = [self.sender, *self.receivers] + ([self.tap] if tap else [])
        self.ends: dict[int, End] = {end.id: end for end in ends}

    def run(self, seconds: float, *, work: bool = True) -> None:
        """In steps of ten milliseconds. With `work`, receivers handle what they get at once."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.01
            for machine in self.ends.values():
                if machine.next_deadline() <= self.now:
                    machine.wake(self.now)
            self.deliver()
            for receiver in self.receivers if work else ():
                for message in receiver.take(self.now, 1000):
                    self.handled.append((self.now, receiver.id, message.sequence))
                    receiver.acknowledge(self.now, message)
            self.deliver()
            for machine in self.ends.values():
                machine.check_invariants()

    def deliver(self) -> None:
        while said := [(id, *datagram) for id, end in self.ends.items() for datagram in end.take_outgoing()]:
            self.said += said
            for source, target, datagram in said:
                for id, end in self.ends.items():
                    if id != source and _is_for(target, end) and not self.drop(source, id, datagram):
                        size = target.size if isinstance(target, Cut) else 0
                        end.receive(self.now, datagram, source, size)

    def send(self, *bodies: Any, **options: Any) -> None:
        for body in bodies:
            self.sender.submit(self.now, body, **options)
            self.sender.flush(self.now)
        self.deliver()

    def seen(self) -> list[Message]:
        return self.tap.take(self.now, 10_000)

    def said_by(self, id: int) -> list[tuple[Target, int]]:
        return [(target, peek(datagram)[0]) for source, target, datagram in self.said if source == id]


def _is_for(target: Target, end: End) -> bool:
    if isinstance(target, Cut) or target is Route.DATA:
        return not isinstance(end, SenderMachine)
    return target is Route.CONTROL or target == end.id


# --- sees everything ------------------------------------------------------------------------------------------------


def test_it_sees_what_each_receiver_gets_and_has_all_that_was_sent() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.send(b"plain", key="k", headers={"a": 1})
    pump.send({"job": 1})
    pump.run(0.1)
    rich, plain = pump.seen()
    assert (rich.body, rich.key, rich.headers, rich.sequence) == (b"plain", "k", {"a": 1}, 1)
    assert (plain.body, plain.key, plain.sequence, plain.sender) == ({"job": 1}, None, 2, SENDER)
    assert (plain.label, plain.sent_at > 1e9) == ("work", True)
    assert (pump.tap.stats.routed, pump.tap.stats.emitted, pump.tap.stats.lost) == (2, 2, 0)
    assert not pump.tap.ready


def test_its_messages_are_nobodys() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    (message,) = tap.take(0.0, 9)
    assert message.group is message.receiver_index is message.lane is message.lane_asked_at is None
    assert (message.attempt, message.redelivered, message.origin.may_continue(1e9)) == (1, False, True)


def test_outcomes_change_nothing() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    (message,) = tap.take(0.0, 9)
    tap.acknowledge(0.0, message)
    tap.acknowledge_all(0.0, [message])
    tap.acknowledge_handed(0.0, [message])
    tap.retry(0.0, message, 0.0)
    tap.give_back(0.0, message)
    assert not tap.reject(0.0, message, "why")
    tap.wake(10.0)
    assert not tap.ready and not tap.take_outgoing()
    assert (tap.stats.acked, tap.stats.retried, tap.stats.dead) == (0, 0, 0)


def test_messages_with_a_due_time_are_shown_when_they_are_sent() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.send("later", delay=60.0)
    pump.run(0.1)
    (message,) = pump.seen()
    assert message.body == "later" and message.due_at is not None and message.due_at > pump.tap.wall.read(pump.now)
    assert not pump.handled


def test_a_frame_can_be_taken_in_parts() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, range(10)), "s")
    tap.receive(0.0, frame(11, range(10, 15)), "s")
    assert [[message.body for message in tap.take(0.0, 4)] for _ in range(5)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13, 14],
        [],
    ]


def test_a_train_is_shown_like_its_frames() -> None:
    frames = [frame(first, [b"xx", b"yy"]) for first in (1, 3, 5)]
    tap = make_tap()
    tap.receive(0.0, b"".join(frames), "s", len(frames[0]))
    assert numbers(tap.take(0.0, 99)) == [1, 2, 3, 4, 5, 6]
    tap.receive(0.0, b"".join([*frames[1:], frame(7, [b"aa", b"bb"])]), "s", len(frames[0]))
    assert numbers(tap.take(0.0, 99)) == [7, 8], "of a train that is not all new, what is new"
    tap.check_invariants()


def test_streams_do_not_wait_for_each_other() -> None:
    tap = make_tap()
    for first in (1, 3):
        tap.receive(0.0, frame(first, ["a"], stream=1), "s1")
    tap.receive(0.0, frame(9, ["b"], stream=2), "s2")
    assert [(message.sender, message.sequence) for message in tap.take(0.0, 9)] == [(1, 1), (2, 9)]


def test_strangers_and_other_labels_are_not_shown() -> None:
    tap = make_tap()
    tap.receive(0.0, b"hello", "x")
    tap.receive(0.0, frame(1, ["x"], tag=TAG ^ 1), "s")
    tap.receive(0.0, frame(1, ["x"])[:40], "s")
    tap.receive(0.0, b"".join([frame(1, ["x"], tag=TAG ^ 1)] * 2), "s", len(frame(1, ["x"])))
    assert not tap.ready and not tap.streams
    assert tap.stats.bad_frames == 2
    with pytest.raises(BadLabel):
        TapMachine("", 1, timings=T, random=Random(1), now=0.0)


def test_what_cannot_be_read_is_counted() -> None:
    tap = make_tap()
    good = make_record({"a": 1}, key="k")
    records = Records.of([good, good._replace(data=b"\xc1" * len(good.data))])
    tap.receive(0.0, encode_batch(Stamped(TAG, 1, SENDER, 1, 1e9, 0, 0), records), "s")
    assert numbers(tap.take(0.0, 9)) == [1]
    assert (tap.stats.bad_frames, tap.stats.lost) == (1, 1)
    tap.receive(0.0, frame(3, ["cut", "a little"])[:-1], "s")
    tap.receive(0.0, frame(5, ["whole"]), "s")
    assert numbers(tap.take(0.0, 9)) == [5]
    assert (tap.stats.bad_frames, tap.stats.lost) == (2, 3)
    tap.check_invariants()


def test_streams_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAMS_MAX", 2)
    tap = make_tap()
    for stream in (1, 2, 3):
        tap.receive(0.0, frame(1, ["x"], stream=stream), stream)
    assert [message.sender for message in tap.take(0.0, 9)] == [1, 2]


# --- asking -------------------------------------------------------------------------------------------------------


def losing_once(to: int, bodies: bytes) -> Drop:
    """One datagram to one end is lost: the first with these bytes in it."""
    lost: list[bytes] = []

    def drop(source: int, end: int, datagram: bytes) -> bool:
        if end == to and bodies in datagram and not lost:
            lost.append(datagram)
            return True
        return False

    return drop


def test_a_sender_answers_one_who_is_no_member() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.drop = losing_once(ME, b"two")
    pump.send(b"one", b"two", b"three")
    assert [message.body for message in pump.seen()] == [b"one"]
    pump.run(0.2, work=False)
    assert [message.body for message in pump.seen()] == [b"two", b"three"]
    assert (pump.tap.stats.repaired, pump.tap.stats.lost, pump.sender.stats.repaired) == (1, 0, 1)
    assert pump.said_by(ME) == [(SENDER, FrameType.NAK)], "to the sender alone"


def test_a_lost_last_message_is_found_by_the_probe_behind_it() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.send(b"one")
    pump.drop = losing_once(ME, b"two")
    pump.send(b"two")
    pump.run(0.5, work=False)
    assert [message.body for message in pump.seen()] == [b"one", b"two"]


def test_what_a_sender_sends_again_for_a_tap_is_bounded() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.drop = lambda source, to, datagram: to == ME and peek(datagram)[0] == FrameType.DATA
    for _ in range(100):
        pump.send(bytes(50_000))
        pump.run(0.01, work=False)
    nak = encode_control(Nak(ME, SENDER, (1, 100), ()), TAG)
    pump.sender.take_outgoing()
    pump.sender.receive(pump.now, nak, "tap")
    answer = pump.sender.take_outgoing()
    assert {target for target, _ in answer} == {"tap"}
    assert 0 < sum(len(datagram) for _, datagram in answer) <= WINDOW_BYTES_FIRST // 2


def test_what_everyone_is_done_with_is_passed_over() -> None:
    pump = Pump()
    pump.run(2.0)
    pump.drop = lambda source, to, datagram: to == ME and b"two" in datagram
    pump.send(b"one", b"two", b"three")
    pump.run(1.0)
    assert [message.body for message in pump.seen()] == [b"one", b"three"]
    assert pump.tap.stats.lost == 1
    assert sorted(sequence for _, _, sequence in pump.handled) == [1, 2, 3]


# --- changes nothing ----------------------------------------------------------------------------------------------


def heard_without_times(pump: Pump) -> list[tuple[int, Target, bytes]]:
    return [said for said in pump.said if said[0] != ME]


def test_everyone_says_the_same_with_and_without_it() -> None:
    pumps = [Pump(tap=False), Pump(tap=True)]
    for pump in pumps:
        pump.run(2.0)
        for number in range(50):
            pump.send(number, key=f"k{number % 3}" if number % 2 else None)
            pump.run(0.03)
        pump.run(1.0)
    assert heard_without_times(pumps[0]) == heard_without_times(pumps[1])
    assert pumps[0].handled == pumps[1].handled
    assert len(pumps[1].seen()) == 50 and not pumps[1].said_by(ME), "and it said nothing at all"


def test_it_is_in_no_table_and_no_stamp() -> None:
    pump = Pump()
    pump.run(3.0)
    assert [receiver.table.members for receiver in pump.receivers if receiver.table] == [(1, 2), (1, 2)]
    assert pump.tap.table is None
    frames = [decode_control(datagram) for source, _, datagram in pump.said if peek(datagram)[0] > FrameType.TAIL]
    assert not [frame for frame in frames if str(ME) in repr(frame)]


def test_it_does_not_hold_a_sender_back_that_nobody_listens_to() -> None:
    pump = Pump()
    for receiver in pump.receivers:
        del pump.ends[receiver.id]
    pump.run(2.0)
    pump.send(b"one")
    pump.run(2.0)
    assert not pump.seen() and pump.sender.undone == 1, "it is no one to send to"


# --- too slow -----------------------------------------------------------------------------------------------------


def fill(tap: TapMachine, first: int, count: int, size: int = 50_000) -> int:
    for sequence in range(first, first + count):
        tap.receive(0.0, frame(sequence, [bytes(size)]), "s")
    return first + count


def test_one_that_is_too_slow_loses_the_oldest_and_says_so_once() -> None:
    tap = make_tap()
    following = fill(tap, 1, 3000)
    tap.check_invariants()
    (event,) = tap.events
    assert event.startswith(f"too slow: lost messages from {SENDER:016x}-1 on")
    shown = numbers(tap.take(0.0, 10_000))
    assert shown == list(range(shown[0], following)), "the newest are there"
    assert tap.stats.lost == shown[0] - 1 > 1000
    fill(tap, following, 3000)
    assert len(tap.events) == 1
    assert tap.stats.lost + len(shown) + len(tap.take(0.0, 10_000)) == 6000


def test_many_small_datagrams_cost_more_than_their_bytes() -> None:
    tap = make_tap()
    fill(tap, 1, 70_000, 1)
    assert tap.events, "a process would have grown by much more than the bytes of the messages"
    tap.check_invariants()


def test_what_waits_for_something_missing_is_bounded_too() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    fill(tap, 3, 3000)
    tap.check_invariants()
    shown = numbers(tap.take(0.0, 10_000))
    assert shown[-1] == 3002 and tap.stats.lost + len(shown) == 3002


def test_one_that_is_behind_asks_for_nothing() -> None:
    tap = make_tap()
    following = fill(tap, 1, 1000)
    tap.receive(0.0, frame(following + 1, ["x"]), "s")
    assert module.BEHIND_BYTES < 1000 * 50_000 < module.TAP_BYTES
    tap.wake(tap.next_deadline())
    assert not tap.take_outgoing()
    assert tap.stats.lost == 1
    assert tap.next_deadline() > PATIENCE_S, "and waits for nothing"


def test_what_came_twice_does_not_count_as_kept() -> None:
    tap = make_tap()
    again = frame(1, [bytes(50_000)])
    for _ in range(3000):
        tap.receive(0.0, again, "s")
    assert numbers(tap.take(0.0, 9)) == [1]
    assert (tap.stats.lost, tap.events) == (0, [])


# --- time, and its end --------------------------------------------------------------------------------------------


def test_it_sleeps_while_there_is_nothing_to_wait_for() -> None:
    tap = make_tap()
    assert tap.next_deadline() == math.inf
    tap.receive(1.0, frame(1, ["x"]), "s")
    assert tap.next_deadline() == 1.0 + FORGET_S


def test_one_that_was_stopped_goes_on_with_what_is_in_its_buffer() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    tap.receive(0.0, frame(3, ["x"]), "s")
    tap.wake(60.0)
    tap.receive(60.0, frame(2, ["x"]), "s")
    assert numbers(tap.take(60.0, 9)) == [1, 2, 3]


def test_a_stream_that_said_goodbye_is_forgotten_and_not_shown_again() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    tap.receive(0.0, encode_control(SenderGoodbye(SENDER, "work"), TAG), "s")
    tap.wake(tap.next_deadline())
    assert not tap.streams
    tap.receive(2.0, frame(1, ["x"]), "s")
    tap.receive(2.0, frame(2, ["late"]), "s")
    assert numbers(tap.take(2.0, 9)) == [1, 2]
    tap.check_invariants()


def test_the_forgotten_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED_MAX", 2)
    tap = make_tap()
    for stream in range(1, 5):
        tap.receive(0.0, frame(1, ["x"], stream=stream), "s")
    tap.wake(tap.next_deadline())
    assert not tap.streams
    tap.check_invariants()


def test_leaving_shows_what_is_here_and_hears_nothing_more() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    tap.receive(0.0, frame(3, ["x"]), "s")
    tap.leave(0.0)
    assert not tap.left
    tap.receive(0.0, frame(4, ["x"]), "s")
    tap.wake(9.0)
    assert numbers(tap.take(0.0, 9)) == [1, 3]
    assert tap.left and tap.next_deadline() == math.inf and not tap.take_outgoing()
    assert tap.stats.lost == 1


def test_one_that_does_not_drain_is_gone_at_once_and_without_a_word() -> None:
    tap = make_tap()
    tap.receive(0.0, frame(1, ["x"]), "s")
    tap.leave(0.0, drain=False)
    tap.say_goodbye()
    assert tap.left and not tap.ready and not tap.take_outgoing()
