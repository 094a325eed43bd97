"""A recording end: frames go out whole, are done when they are stored, and what the others do is told and kept."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from random import Random
from typing import Any

import pytest

from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import JOURNAL, RecorderMachine
from rvq.core.taken import Taken
from rvq.wire.codec import decode_control, encode_control, peek
from rvq.wire.frames import (
    NO_VERSION,
    Alive,
    FrameType,
    Goodbye,
    Handled,
    HandledRun,
    HandOver,
    Outcome,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    TableFrame,
)
from rvq.wire.stored import StoredFrame, read_stored
from tests.core.test_receiver import GROUP, LABEL, LATE, SENDER, TAG, T, apart, handle, whole
from tests.core.test_receiver import Pump as ReceiversPump


class Pump(ReceiversPump):
    def recorder(self, id: int, *, group: str = JOURNAL, weight: int = 1, **options: Any) -> RecorderMachine:
        machine = RecorderMachine(
            LABEL,
            id,
            group=group,
            weight=weight,
            timings=T,
            random=Random(id),
            now=self.now,
            wall_offset=1e9,
            **options,
        )
        self.ends[id] = machine
        return machine


@pytest.fixture
def pump() -> Pump:
    return Pump()


def read(taken: Taken) -> StoredFrame:
    return read_stored(*taken.block())


def bodies(taken: list[Taken]) -> list[Any]:
    return [content.body for one in taken for content in read(one).contents() if content is not None]


def store_all(pump: Pump, *recorders: RecorderMachine) -> dict[int, list[int]]:
    """Everything there is to take is taken and stored. Sequences, by recorder."""
    found = {}
    for recorder in recorders:
        taken = recorder.take(pump.now, 999)
        recorder.stored(pump.now, taken)
        found[recorder.id] = [sequence for one in taken for sequence in one.sequences]
    pump.deliver()
    return found


def words(recorder: RecorderMachine, kind: type[Any]) -> list[Any]:
    """What of a kind is history."""
    return [frame for datagram, _ in recorder.history() if isinstance(frame := decode_control(datagram), kind)]


def deeds(recorder: RecorderMachine) -> list[tuple[Any, ...]]:
    return [(h.source, r.outcome, r.first, r.last) for h in words(recorder, Handled) for r in h.runs]


# --- frames out ---------------------------------------------------------------------------------------------------


def test_what_is_stored_is_done_and_not_before(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, "a", "b", "c")
    (taken,) = recorder.take(pump.now, 9)
    assert (taken.places, taken.sequences, taken.stream) == (None, range(1, 4), SENDER)
    assert bodies([taken]) == ["a", "b", "c"] and read(taken).datagrams == taken.frame.datagrams
    pump.run(pump.now + 2.0)
    assert sender.undone == 3 and not recorder.ready
    recorder.stored(pump.now, [taken])
    pump.run(pump.now + 0.1)
    assert sender.all_done
    assert (recorder.stats.routed, recorder.stats.emitted, recorder.stats.acked) == (3, 3, 3)


def test_no_more_frames_are_taken_than_asked_for(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    for n in range(5):
        pump.send(sender, n)
    assert [bodies(recorder.take(pump.now, 2)) for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_a_journal_and_a_group_each_get_every_message(pump: Pump) -> None:
    sender, recorder, receiver = pump.sender(), pump.recorder(5), pump.receiver(6)
    pump.run(LATE)
    pump.send(sender, *range(4))
    assert handle(pump, receiver) == [0, 1, 2, 3]
    pump.run(pump.now + 0.3)
    assert sender.undone == 4, "the journal has not stored it"
    assert store_all(pump, recorder) == {5: [1, 2, 3, 4]}
    pump.run(pump.now + 0.1)
    assert sender.all_done


@pytest.mark.parametrize("key", [None, "k"])
def test_recorders_share_each_its_own(pump: Pump, key: str | None) -> None:
    sender, recorders = pump.sender(), [pump.recorder(5), pump.recorder(6), pump.recorder(7)]
    pump.run(LATE)
    for n in range(4):
        for each in (None, key, "other"):
            pump.send(sender, *range(10 * n, 10 * n + 5), key=each if key else None)
    found = store_all(pump, *recorders)
    assert sorted(chain.from_iterable(found.values())) == list(range(1, 61))
    assert sum(bool(sequences) for sequences in found.values()) >= (3 if key is None else 2)
    pump.run(pump.now + 0.3)
    assert sender.all_done


def test_a_share_says_its_places_as_a_stride(pump: Pump) -> None:
    sender, _, recorder = pump.sender(), pump.recorder(5), pump.recorder(6)
    pump.run(LATE)
    pump.send(sender, *range(1, 10))
    (taken,) = recorder.take(pump.now, 9)
    assert (taken.places, taken.sequences, bodies([taken])) == (range(0, 9, 2), range(1, 10, 2), [1, 3, 5, 7, 9])


@pytest.mark.parametrize("come", [whole, apart])
def test_trains_are_taken_whole(pump: Pump, come: Callable[..., Any]) -> None:
    sender, recorder = pump.sender(frame_bytes=1000, train_frames=8), pump.recorder(5)
    pump.run(LATE)
    pump.come_apart = come
    for body in [bytes(50)] * 200:
        sender.submit(pump.now, body)
    sender.flush(pump.now)
    pump.deliver()
    taken = recorder.take(pump.now, 999)
    assert bodies(taken) == [bytes(50)] * 200
    assert {one.places for one in taken} == {None}
    assert any(one.frame.train is not None for one in taken) == (come is whole)
    recorder.stored(pump.now, taken)
    pump.run(pump.now + 0.3)
    assert sender.all_done


def test_a_large_message_is_taken_in_its_fragments(pump: Pump) -> None:
    sender, recorder = pump.sender(frame_bytes=1000), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, bytes(5000))
    (taken,) = recorder.take(pump.now, 9)
    assert bodies([taken]) == [bytes(5000)] and len(taken.frame.datagrams) > 5
    recorder.stored(pump.now, [taken])
    pump.run(pump.now + 0.1)
    assert sender.all_done


def test_nothing_waits_for_its_time_its_key_its_turn_or_its_end(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    sender.submit(pump.now, "later", delay=3600.0)
    sender.submit(pump.now, "over", ttl=0.001)
    sender.submit(pump.now, "one", key="k")
    sender.submit(pump.now, "two", key="k")
    sender.submit(pump.now, "urgent", urgent=True)
    sender.flush(pump.now)
    pump.run(pump.now + 0.1)
    assert bodies(recorder.take(pump.now, 9)) == ["later", "over", "one", "two", "urgent"]
    assert not recorder.has_urgent and recorder.stats.expired == 0


def test_with_keys_a_frame_does_not_wait_for_one_that_is_missing(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, "first", key="k")
    store_all(pump, recorder)
    pump.drop = lambda source, to, datagram: peek(datagram)[0] == FrameType.DATA
    pump.send(sender, "lost", key="k")
    pump.drop = lambda source, to, datagram: False
    pump.send(sender, "here", key="k")
    assert bodies(recorder.take(pump.now, 9)) == ["here"]
    pump.run(pump.now + 1.0)
    assert bodies(recorder.take(pump.now, 9)) == ["lost"]


def test_what_was_asked_for_again_comes_before_what_came_first(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    pump.drop = lambda source, to, datagram: peek(datagram)[0] == FrameType.DATA
    pump.send(sender, "lost")
    pump.drop = lambda source, to, datagram: False
    pump.send(sender, "a")
    pump.send(sender, "b")
    pump.run(pump.now + 1.0)
    assert bodies(recorder.take(pump.now, 9)) == ["lost", "a", "b"]


def test_without_a_lease_nothing_is_taken(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, "a")
    pump.cut((SENDER, 5))
    pump.run(pump.now + T.orphan_for + 2.0)
    assert recorder.take(pump.now, 9) == []


def test_an_heir_records_what_the_dead_had_not_stored(pump: Pump) -> None:
    sender, dead, heir = pump.sender(), pump.recorder(5), pump.recorder(6)
    pump.run(LATE)
    for n in range(6):
        pump.send(sender, 2 * n, 2 * n + 1)
    own = store_all(pump, heir)[6]
    taken = dead.take(pump.now, 999)
    dead.stored(pump.now, taken[:2])
    safe = [sequence for one in taken[:2] for sequence in one.sequences]
    pump.run(pump.now + 0.1)
    pump.kill(5)
    pump.run(pump.now + 4.0)
    inherited = store_all(pump, heir)[6]
    assert sorted(own + safe + inherited) == list(range(1, 13))
    pump.run(pump.now + 0.3)
    assert sender.all_done


def test_of_a_train_that_is_inherited_only_what_is_not_stored_is_taken(pump: Pump) -> None:
    """The former owner had it in frames, and stored some of them; the heir has it as one."""
    sender, dead, heir = pump.sender(frame_bytes=1000, train_frames=8), pump.recorder(5), pump.recorder(6)
    pump.run(LATE)
    for body in [bytes(50)] * 100:
        sender.submit(pump.now, body)
    sender.flush(pump.now)
    trains = [(target, datagram) for target, datagram in sender.take_outgoing()]
    for target, datagram in trains:
        for part, size in apart(target, datagram):
            dead.receive(pump.now, part, SENDER, size)
        for part, size in whole(target, datagram):
            heir.receive(pump.now, part, SENDER, size)
    first, second, *_ = dead.take(pump.now, 999)
    dead.stored(pump.now, [second])
    pump.run(pump.now + 0.1)
    pump.kill(5)
    own = store_all(pump, heir)[6]
    pump.run(pump.now + 4.0)
    inherited = heir.take(pump.now, 999)
    (taken,) = [one for one in inherited if len(one.spans) == 2]
    assert isinstance(taken.places, list) and list(read(taken).sequences) == list(taken.sequences)
    assert set(first.sequences) < set(taken.sequences) and set(second.sequences).isdisjoint(taken.sequences)
    rest = chain.from_iterable(one.sequences for one in inherited)
    assert sorted([*own, *second.sequences, *rest]) == list(range(1, 101))
    heir.stored(pump.now, inherited)
    pump.run(pump.now + 0.3)
    assert sender.all_done


def test_a_frame_that_cannot_be_read_is_asked_for_again(pump: Pump) -> None:
    sender, recorder = pump.sender(), pump.recorder(5)
    pump.run(LATE)
    for body in [b"one", b"three", b"seven"]:
        sender.submit(pump.now, body)
    sender.flush(pump.now)
    ((_, datagram),) = [one for one in sender.take_outgoing() if peek(one[1])[0] == FrameType.DATA]
    bad = bytearray(datagram)
    bad[-6:-2] = bad[-4:-2] + bad[-6:-4]  # bounds out of order
    recorder.receive(pump.now, bytes(bad), SENDER)
    assert recorder.take(pump.now, 9) == [] and recorder.stats.bad_frames == 1
    pump.run(pump.now + 1.0)
    assert bodies(recorder.take(pump.now, 9)) == [b"one", b"three", b"seven"]


def test_one_that_leaves_stores_its_own_first(pump: Pump) -> None:
    sender, recorder, _ = pump.sender(), pump.recorder(5), pump.recorder(6)
    pump.run(LATE)
    pump.send(sender, *range(10))
    taken = recorder.take(pump.now, 9)
    recorder.leave(pump.now)
    pump.run(pump.now + 3.0)
    assert not recorder.left
    recorder.stored(pump.now, taken)
    pump.run(pump.now + 1.0)
    assert recorder.left


def test_one_that_hands_back_takes_nothing_more_and_another_stores_it(pump: Pump) -> None:
    sender, recorder, other = pump.sender(), pump.recorder(5), pump.recorder(6)
    pump.run(LATE)
    pump.send(sender, *range(10))
    taken = recorder.take(pump.now, 9)
    recorder.leave(pump.now, drain=False)
    pump.run(pump.now + 1.0)
    assert recorder.left and recorder.take(pump.now, 9) == []
    found = store_all(pump, other)[6]
    assert sorted(found) == list(range(1, 11)) and taken
    pump.run(pump.now + 0.3)
    assert sender.all_done


# --- who did what -------------------------------------------------------------------------------------------------


def test_with_no_recorder_there_nobody_tells_anything(pump: Pump) -> None:
    sender, receiver = pump.sender(), pump.receiver(6)
    pump.run(LATE)
    pump.send(sender, *range(10))
    handle(pump, receiver)
    pump.run(pump.now + 1.0)
    assert pump.control(6, Handled) == [] and not receiver.recorders
    assert receiver.streams[SENDER].work.outcomes is None
    assert {alive.recorder for alive in pump.control(6, Alive)} == {False}


def test_every_recorder_of_every_group_is_told_what_each_receiver_did(pump: Pump) -> None:
    sender, receivers = pump.sender(), [pump.receiver(6), pump.receiver(7, group="audit")]
    recorders = [pump.recorder(4), pump.recorder(5), pump.recorder(8, group="copy")]
    pump.run(LATE)
    pump.send(sender, *range(10))
    for receiver in receivers:
        handle(pump, receiver)
    store_all(pump, *recorders)
    pump.run(pump.now + 0.5)
    for recorder in recorders:
        assert sorted(deeds(recorder)) == [(6, Outcome.ACKED, 1, 10), (7, Outcome.ACKED, 1, 10)]
    assert all(pump.control(recorder.id, Handled) == [] for recorder in recorders), "the journal itself shows it"


def test_what_is_told_is_counted_frame_by_frame(pump: Pump) -> None:
    sender, receiver, recorder = pump.sender(), pump.receiver(6), pump.recorder(5)
    other = pump.sender(0xB)
    pump.run(LATE)
    for n in range(5):
        pump.send(sender, n)
        pump.send(other, n)
        handle(pump, receiver)
        pump.run(pump.now + 0.1)
    told = words(recorder, Handled)
    assert [frame.counter for frame in told] == list(range(1, len(told) + 1))
    assert {(frame.label, frame.group, frame.source) for frame in told} == {(LABEL, GROUP, 6)}
    assert {frame.stream for frame in told} == {SENDER, 0xB}


def test_a_run_is_told_with_a_wall_time_and_the_lane_that_owned_it(pump: Pump) -> None:
    sender, receiver, recorder = pump.sender(), pump.receiver(6), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, *range(3))
    at = pump.now
    handle(pump, receiver)
    pump.run(pump.now + 0.5)
    (frame,) = words(recorder, Handled)
    (lane,) = receiver.streams[SENDER].lanes.values()
    assert frame.runs == (HandledRun(Outcome.ACKED, lane.stamp, 0, 1, 3, at + 1e9),)


def test_one_that_handles_what_it_inherits_tells_of_that_and_not_of_what_it_learned(pump: Pump) -> None:
    sender, dead, heir, recorder = pump.sender(), pump.receiver(6), pump.receiver(7), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, *range(1, 13))
    taken = dead.take(pump.now, 99)
    for message in taken[:2]:
        dead.acknowledge(pump.now, message)
    pump.run(pump.now + 0.1)
    pump.kill(6)
    handle(pump, heir)
    pump.run(pump.now + 4.0)
    handle(pump, heir)
    pump.run(pump.now + 0.5)
    told = deeds(recorder)
    assert [deed for deed in told if deed[0] == 6] == [(6, Outcome.ACKED, 2, 4)]
    # Of two slots, the runs have every second message.
    assert sorted(q for id, _, first, last in told if id == 7 for q in range(first, last + 1, 2)) == [
        *(1, 3, 5, 6, 7, 8, 9, 10, 11, 12),
    ]


def test_last_words_are_told_before_the_goodbye(pump: Pump) -> None:
    sender, receiver, recorder = pump.sender(), pump.receiver(6), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, "a")
    (message,) = receiver.take(pump.now, 9)
    receiver.reject(pump.now, message)
    receiver.say_goodbye()
    pump.deliver()
    kept = [decode_control(datagram) for datagram, _ in recorder.history()]
    kinds = [type(frame) for frame in kept if frame.source == 6]
    assert kinds.index(Handled) < kinds.index(Goodbye)


def test_a_new_receiver_hears_of_recorders_at_once(pump: Pump) -> None:
    """Else nobody would be told what it did until the next heartbeat."""
    pump.sender(), pump.recorder(5)
    pump.run(LATE)
    receiver = pump.receiver(6)
    pump.run(pump.now + 0.02)
    assert receiver.recorders.addresses == [5]


def test_a_recorder_that_is_gone_is_told_no_more(pump: Pump) -> None:
    sender, receiver, leaving, dying = pump.sender(), pump.receiver(6), pump.recorder(4), pump.recorder(5)
    pump.run(LATE)
    assert sorted(receiver.recorders.addresses, key=str) == [4, 5]
    leaving.say_goodbye()
    pump.deliver()
    assert receiver.recorders.addresses == [5]
    pump.kill(5)
    pump.run(pump.now + T.expiry + 2 * T.heartbeat)
    assert not receiver.recorders and receiver.streams[SENDER].work.outcomes is None
    pump.send(sender, "a")
    before = len(pump.passed)
    handle(pump, receiver)
    pump.run(pump.now + 0.5)
    assert not [d for id, to, d in pump.passed[before:] if id == 6 and peek(d)[0] == FrameType.HANDLED]
    assert dying.id == 5


def test_one_that_slept_still_knows_its_recorders(pump: Pump) -> None:
    _, receiver, _ = pump.sender(), pump.receiver(6), pump.recorder(5)
    pump.run(LATE)
    pump.stop(6)
    pump.run(pump.now + 5.0)
    receiver.wake(pump.now)
    assert receiver.recorders.addresses == [5], "before it has read what came meanwhile"


# --- history ------------------------------------------------------------------------------------------------------


def test_history_tells_who_came_who_owned_and_who_left(pump: Pump) -> None:
    sender, receiver, recorder = pump.sender(), pump.receiver(6), pump.recorder(5)
    pump.run(LATE)
    pump.send(sender, "a")
    handle(pump, receiver)
    store_all(pump, recorder)
    pump.run(pump.now + 0.5)
    receiver.leave(pump.now)
    pump.run(pump.now + 2.0)
    sender.close(pump.now)
    pump.deliver()
    history = recorder.history()
    assert {source for _, source in history} == {6, SENDER}
    frames = [decode_control(datagram) for datagram, _ in history]
    assert next(frame.hello for frame in frames if isinstance(frame, Alive))
    assert [frame.leaving for frame in frames if isinstance(frame, Alive)][-1]
    numbers = [frame.number for frame in frames if isinstance(frame, Stamp)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 2
    assert {type(frame) for frame in frames} == {
        Alive,
        SenderAlive,
        Stamp,
        TableFrame,
        Handled,
        Goodbye,
        SenderGoodbye,
    }
    assert [type(frame) for frame in frames].count(Goodbye) == 1
    assert recorder.history() == []


def test_an_idle_bus_adds_nothing(pump: Pump) -> None:
    pump.sender(), pump.receiver(6), pump.receiver(7)
    recorder = pump.recorder(5)
    pump.run(LATE + 1.0)
    assert recorder.history()
    pump.run(pump.now + 60.0)
    assert recorder.history() == []


def test_one_that_comes_late_has_the_stamps_that_it_asked_for(pump: Pump) -> None:
    sender, receiver = pump.sender(), pump.receiver(6)
    pump.run(LATE)
    pump.send(sender, "a")
    pump.receiver(7)
    pump.run(pump.now + 2.0)
    recorder = pump.recorder(5)
    pump.run(pump.now + 2.0)
    assert receiver.streams[SENDER].log.oldest == 1
    numbers = [stamp.number for stamp in words(recorder, Stamp)]
    assert sorted(numbers) == list(range(1, max(numbers) + 1))


def test_what_is_said_to_other_labels_is_not_history(pump: Pump) -> None:
    recorder = pump.recorder(5)
    other = Alive(9, "other", GROUP, 1, 1, True, False, 0, NO_VERSION, (), ())
    recorder.receive(0.0, encode_control(other, TAG), 9)
    recorder.receive(0.0, encode_control(Goodbye(9, "other", GROUP), TAG), 9)
    assert recorder.history() == []


def test_a_receiver_is_no_recorder_and_asks_nobody_to_tell(pump: Pump) -> None:
    pump.recorder(5), pump.receiver(6)
    pump.run(LATE)
    assert {alive.recorder for alive in pump.control(5, Alive)} == {True}
    assert isinstance(pump.ends[6], ReceiverMachine) and not pump.ends[6].is_recorder
    hand_over = HandOver(6, SENDER, GROUP, 1, 0, 5, 7, 1)
    pump.ends[5].receive(pump.now, encode_control(hand_over, TAG), 6)
    assert words(pump.ends[5], HandOver) == [hand_over]  # type: ignore[arg-type]
