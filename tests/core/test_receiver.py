"""Whole machines with a perfect network in between: from hello to done, and when someone comes, goes or stops.

Lossy networks are the simulator's. Times are numbers; nothing waits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.core.machine import Address, Cut, Route, Target
from rvq.core.receiver import ReceiverMachine
from rvq.core.sender import SenderMachine
from rvq.errors import BusError
from rvq.message import Message
from rvq.timings import Timings
from rvq.wire.batch import Stamped, encode_batch, encode_tail
from rvq.wire.codec import decode_control, encode_control, peek
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import (
    NO_VERSION,
    Alive,
    AskStamps,
    AskTable,
    Control,
    Echo,
    FrameType,
    Goodbye,
    GroupStamp,
    GroupState,
    Heard,
    LaneAnswer,
    Member,
    Nak,
    Progress,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    TableFrame,
    Tried,
    Version,
    label_tag,
)
from rvq.wire.records import Records, make_record, make_records
from rvq.wire.train import split

T = Timings()
LABEL, GROUP = "work", "default"
TAG = label_tag(LABEL)
SENDER = 0xA
LATE = 2.0
"""When everyone who was there from the start has found each other."""

End = SenderMachine | ReceiverMachine
Drop = Callable[[int, int, bytes], bool]


def whole(target: Target, datagram: bytes) -> list[tuple[bytes, int]]:
    return [(datagram, target.size if isinstance(target, Cut) else 0)]


def apart(target: Target, datagram: bytes) -> list[tuple[bytes, int]]:
    size = target.size if isinstance(target, Cut) else len(datagram)
    return [(frame, 0) for frame in split(datagram, size)]


class Pump:
    """Passes datagrams between machines, at once and in order, unless `drop(from, to, datagram)`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ends: dict[int, End] = {}
        self.stopped: dict[int, list[tuple[bytes, Address]]] = {}
        self.drop: Drop = lambda source, to, datagram: False
        self.passed: list[tuple[int, Target, bytes]] = []
        self.come_apart: Callable[[Target, bytes], list[tuple[bytes, int]]] = whole
        """What becomes of a train on its way: datagrams, and the size of the frames in each."""

    def sender(self, id: int = SENDER, **options: Any) -> SenderMachine:
        machine = SenderMachine(LABEL, id, timings=T, random=Random(id), now=self.now, wall_offset=1e9, **options)
        self.ends[id] = machine
        return machine

    def receiver(self, id: int, *, group: str = GROUP, weight: int = 1, **options: Any) -> ReceiverMachine:
        options.setdefault("wall_offset", 1e9)
        machine = ReceiverMachine(
            LABEL, id, group=group, weight=weight, timings=T, random=Random(id), now=self.now, **options
        )
        self.ends[id] = machine
        return machine

    def receivers(self, *ids: int) -> list[ReceiverMachine]:
        return [self.receiver(id) for id in ids]

    def deliver(self) -> None:
        """Until nobody has anything more to say."""
        while outgoing := [(id, *datagram) for id, end in self.ends.items() for datagram in end.take_outgoing()]:
            self.passed += outgoing
            for source, target, datagram in outgoing:
                for id, end in list(self.ends.items()):
                    if id != source and self._is_for(target, id, end) and not self.drop(source, id, datagram):
                        for part, size in self.come_apart(target, datagram):
                            self._give(id, part, source, size)

    def _is_for(self, target: Target, id: int, end: End) -> bool:
        if isinstance(target, Cut):
            return isinstance(end, ReceiverMachine)
        if isinstance(target, Route):
            return target is Route.CONTROL or isinstance(end, ReceiverMachine)
        return target == id

    def _give(self, id: int, datagram: bytes, source: int, size: int) -> None:
        if id in self.stopped:
            self.stopped[id].append((datagram, source))
        else:
            self.ends[id].receive(self.now, datagram, source, size)
            self.ends[id].check_invariants()

    def run(self, until: float) -> None:
        """Time passes. Everyone is woken when it asked for it."""
        self.deliver()
        while True:
            awake = [end for id, end in self.ends.items() if id not in self.stopped]
            due = min((end.next_deadline() for end in awake), default=math.inf)
            if due > until:
                break
            self.now = max(self.now, due)
            for end in awake:
                if end.next_deadline() <= self.now:
                    end.wake(self.now)
                    end.check_invariants()
            self.deliver()
        self.now = until

    def stop(self, id: int) -> None:
        """The process is stopped; its socket buffer fills."""
        self.stopped[id] = []

    def go_on(self, id: int) -> None:
        waiting = self.stopped.pop(id)
        self.ends[id].wake(self.now)
        for datagram, source in waiting:
            self.ends[id].receive(self.now, datagram, source)
        self.deliver()

    def kill(self, id: int) -> None:
        del self.ends[id]

    def cut(self, *pairs: tuple[int, int]) -> None:
        """From the first of each pair nothing comes to the second any more."""
        self.drop = lambda source, to, datagram: (source, to) in pairs

    def send(self, sender: SenderMachine, *bodies: Any, key: str | None = None) -> None:
        for body in bodies:
            sender.submit(self.now, body, key=key)
        sender.flush(self.now)
        self.deliver()

    def control(self, source: int, kind: type[Any]) -> list[Any]:
        """What one has said, of a kind."""
        frames = [decode_control(d) for id, _, d in self.passed if id == source and peek(d)[0] > FrameType.TAIL]
        return [frame for frame in frames if isinstance(frame, kind)]


def handle(pump: Pump, receiver: ReceiverMachine, most: int = 999) -> list[Any]:
    """Take and acknowledge. The bodies."""
    taken = receiver.take(pump.now, most)
    for message in taken:
        receiver.acknowledge(pump.now, message)
    pump.deliver()
    return [message.body for message in taken]


def work_on(pump: Pump, until: float, *receivers: ReceiverMachine) -> dict[int, list[Any]]:
    """Everyone handles what it gets until then."""
    handled: dict[int, list[Any]] = {receiver.id: [] for receiver in receivers}
    while pump.now < until:
        pump.run(min(until, pump.now + 0.05))
        for receiver in receivers:
            if receiver.id in pump.ends and receiver.id not in pump.stopped:
                handled[receiver.id] += handle(pump, receiver)
    return handled


@pytest.fixture
def pump() -> Pump:
    return Pump()


def all_of(handled: dict[int, list[Any]]) -> list[Any]:
    return sorted(body for bodies in handled.values() for body in bodies)


# --- from hello to done -------------------------------------------------------------------------------------------


def test_from_hello_to_done(pump: Pump) -> None:
    sender, receiver = pump.sender(), pump.receiver(5)
    pump.send(sender, "a", "b")
    pump.run(0.3)
    assert not receiver.ready and receiver.table is None
    pump.run(LATE)
    assert receiver.table is not None
    assert (receiver.table.members, receiver.table.index) == ((5,), 0)
    assert sender.tables[GROUP].members == (5,)
    assert receiver.ready
    assert [receiver.may_start(pump.now, SENDER, q) for q in (1, 2, 3)] == [True, True, False]
    assert handle(pump, receiver) == ["a", "b"]
    pump.run(pump.now + T.report)
    assert sender.all_done and sender.undone == 0
    assert (receiver.stats.routed, receiver.stats.emitted, receiver.stats.acked) == (2, 2, 2)


def test_each_message_is_handled_by_one_receiver_and_all_share_the_work(pump: Pump) -> None:
    sender = pump.sender()
    receivers = pump.receivers(5, 6, 7)
    pump.run(LATE)
    pump.send(sender, *range(1, 31))
    handled = {receiver.id: handle(pump, receiver) for receiver in receivers}
    assert handled == {5: list(range(3, 31, 3)), 6: list(range(1, 31, 3)), 7: list(range(2, 31, 3))}
    pump.run(LATE + 0.1)
    assert sender.all_done


def test_each_group_handles_every_message(pump: Pump) -> None:
    sender = pump.sender()
    ours, audit = pump.receiver(5), pump.receiver(6, group="audit")
    pump.run(LATE)
    pump.send(sender, *range(10))
    assert handle(pump, ours) == handle(pump, audit) == list(range(10))
    pump.run(LATE + 0.1)
    assert sender.all_done


def test_a_receiver_of_weight_two_gets_twice_as_much(pump: Pump) -> None:
    sender = pump.sender()
    light, heavy = pump.receiver(5), pump.receiver(6, weight=2)
    pump.run(LATE)
    pump.send(sender, *range(30))
    assert (len(handle(pump, light)), len(handle(pump, heavy))) == (10, 20)


def test_two_senders_are_two_streams_that_take_turns(pump: Pump) -> None:
    one, two = pump.sender(0xA), pump.sender(0xB)
    receiver = pump.receiver(5)
    pump.run(LATE)
    pump.send(one, *("one" for _ in range(10)))
    pump.send(two, *("two" for _ in range(10)))
    taken = [message.body for _ in range(4) for message in receiver.take(pump.now, 2)]
    assert Counter(taken) == {"one": 4, "two": 4}


def test_a_large_message_comes_whole(pump: Pump) -> None:
    sender, receiver = pump.sender(frame_bytes=1000), pump.receiver(5)
    pump.run(LATE)
    pump.send(sender, "before", bytes(50_000), "after")
    assert handle(pump, receiver) == ["before", bytes(50_000), "after"]
    pump.run(pump.now + T.report)
    assert sender.all_done


def test_lost_frames_and_lost_fragments_are_repaired(pump: Pump) -> None:
    sender, receiver = pump.sender(frame_bytes=1000), pump.receiver(5)
    pump.run(LATE)
    data = [0]

    def every_third(source: int, to: int, datagram: bytes) -> bool:
        if peek(datagram)[0] <= FrameType.FRAGMENT:
            data[0] += 1
        return peek(datagram)[0] <= FrameType.FRAGMENT and data[0] % 3 == 0

    pump.drop = every_third
    for n in range(30):
        pump.send(sender, n)
    pump.send(sender, bytes(20_000))
    handled = work_on(pump, LATE + 3.0, receiver)[5]
    assert sorted(handled, key=str) == sorted([*range(30), bytes(20_000)], key=str)
    assert sender.all_done
    assert receiver.stats.repaired > 0 and sender.stats.repaired >= receiver.stats.repaired


# --- messages -----------------------------------------------------------------------------------------------------


def with_messages(pump: Pump, *bodies: Any, key: str | None = None) -> tuple[SenderMachine, ReceiverMachine]:
    sender, receiver = pump.sender(), pump.receiver(5)
    pump.run(LATE)
    pump.send(sender, *bodies, key=key)
    return sender, receiver


def test_no_more_is_taken_than_asked_for(pump: Pump) -> None:
    _, receiver = with_messages(pump, *range(5))
    assert [len(receiver.take(pump.now, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_many_acknowledged_at_once_are_each_counted_once(pump: Pump) -> None:
    sender, receiver = with_messages(pump, *range(10))
    taken = receiver.take(pump.now, 99)
    receiver.acknowledge(pump.now, taken[4])
    receiver.acknowledge_all(pump.now, taken[:6])
    assert receiver.stats.acked == 6
    receiver.acknowledge_all(pump.now, [taken[9], taken[6], taken[7], taken[6]])
    assert receiver.stats.acked == 9
    receiver.acknowledge_all(pump.now, taken)
    assert receiver.stats.acked == 10
    pump.run(LATE + 0.1)
    assert sender.all_done


def test_many_with_keys_acknowledged_at_once_free_their_keys(pump: Pump) -> None:
    sender, receiver = with_messages(pump, *range(5), key="k")
    for n in range(5):
        taken = receiver.take(pump.now, 99)
        assert [message.body for message in taken] == [n]
        receiver.acknowledge_all(pump.now, taken)
    pump.run(LATE + 0.1)
    assert sender.all_done


def test_a_retried_message_comes_again_when_it_is_due(pump: Pump) -> None:
    _, receiver = with_messages(pump, "a")
    (message,) = receiver.take(pump.now, 9)
    receiver.retry(pump.now, message, 0.033)
    assert receiver.next_deadline() <= pump.now + 0.033
    pump.run(pump.now + 0.03)
    assert not receiver.ready
    pump.run(pump.now + 0.01)
    (again,) = receiver.take(pump.now, 9)
    assert (again.attempt, again.id) == (2, message.id)


def test_a_rejected_message_is_dead_here_and_done_for_its_sender(pump: Pump) -> None:
    sender, receiver = with_messages(pump, "a")
    (message,) = receiver.take(pump.now, 9)
    receiver.reject(pump.now, message, "no such customer")
    receiver.reject(pump.now, message)
    receiver.acknowledge(pump.now, message)
    pump.run(pump.now + T.report)
    assert (receiver.stats.dead, receiver.stats.acked) == (1, 0)
    assert sender.all_done
    assert f"rejected {message.id}: no such customer" in receiver.events


def test_one_that_was_taken_and_not_started_is_given_back(pump: Pump) -> None:
    _, receiver = with_messages(pump, "a")
    (message,) = receiver.take(pump.now, 9)
    receiver.give_back(pump.now, message)
    assert receiver.ready
    assert handle(pump, receiver) == ["a"]
    assert receiver.stats.emitted == 1


def test_a_message_is_its_receivers_for_as_long_as_the_lease_holds_and_the_lane_is_its(pump: Pump) -> None:
    _, receiver = with_messages(pump, "a")
    (message,) = receiver.take(pump.now, 9)
    assert receiver.may_continue(pump.now, message)
    assert not receiver.may_continue(pump.now + T.lease + 0.2, message)
    pump.kill(SENDER)
    pump.run(LATE + 0.3)
    receiver.receive(pump.now, encode_control(SenderGoodbye(SENDER, LABEL), TAG), SENDER)
    assert not receiver.may_continue(pump.now, message)
    receiver.acknowledge(pump.now, message)
    receiver.retry(pump.now, message)
    receiver.give_back(pump.now, message)
    assert not receiver.take(pump.now, 9)


def test_a_key_always_meets_one_receiver_and_in_order(pump: Pump) -> None:
    sender = pump.sender()
    receivers = pump.receivers(5, 6, 7)
    pump.run(LATE)
    for n in range(60):
        pump.send(sender, (n % 6, n), key=f"key {n % 6}")
    handled = work_on(pump, LATE + 1.0, *receivers)
    owners = {key: {id for id, bodies in handled.items() if any(body[0] == key for body in bodies)} for key in range(6)}
    assert all(len(who) == 1 for who in owners.values())
    for bodies in handled.values():
        for key in range(6):
            of_key = [n for k, n in bodies if k == key]
            assert of_key == sorted(of_key)
    assert sender.all_done


def test_the_order_of_a_key_survives_a_join(pump: Pump) -> None:
    sender, old = pump.sender(), pump.receiver(5)
    pump.run(LATE)
    pump.send(sender, *range(10), key="k")
    newcomers = pump.receivers(3, 4, 6, 7)
    pump.run(LATE + 1.0)
    assert len(sender.tables[GROUP].members) == 5
    pump.send(sender, *range(10, 20), key="k")
    started: list[int] = []
    for _ in range(40):
        for receiver in (*newcomers, old):
            started += handle(pump, receiver, 1)
        pump.run(pump.now + 0.05)
    assert started == list(range(20))


# --- coming and going ---------------------------------------------------------------------------------------------


def test_a_joiner_gets_new_messages_only_and_then_its_share(pump: Pump) -> None:
    sender, old = pump.sender(), pump.receiver(6)
    pump.run(LATE)
    pump.send(sender, *range(10))
    new = pump.receiver(5)
    pump.run(LATE + 1.0)
    assert not new.ready
    pump.send(sender, *range(10, 20))
    assert len(handle(pump, new)) == 5
    assert len(handle(pump, old)) == 15


def test_joiners_come_in_with_one_table(pump: Pump) -> None:
    sender = pump.sender()
    pump.receiver(5)
    pump.run(LATE)
    tables = len(pump.control(5, TableFrame))
    for id in range(100, 120):
        pump.receiver(id)
    pump.run(LATE + 1.0)
    versions = {frame.version for frame in pump.control(5, TableFrame)[tables:]}
    assert len(versions) <= 2
    assert len(sender.tables[GROUP].members) == 21


def test_the_dead_are_inherited_from_and_only_what_was_not_acknowledged_comes_again(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.send(sender, *range(20))
    first = handle(pump, five, 3)
    pump.run(pump.now + T.report)
    pump.kill(5)
    handled = work_on(pump, LATE + 4.0, six)[6]
    assert sorted(handled + first) == list(range(20))
    assert sender.all_done
    assert any("inherited" in event for event in six.events)


def test_a_stopped_receiver_starts_nothing_after_its_lease(pump: Pump) -> None:
    """Ten seconds with a full socket buffer: another has its lanes by then."""
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.stop(5)
    pump.send(sender, *range(20))
    handled = work_on(pump, LATE + 10.0, six)[6]
    assert sorted(handled) == list(range(20))
    for datagram, source in pump.stopped.pop(5):
        five.receive(pump.now, datagram, source)
        assert five.take(pump.now, 9) == []
    pump.run(pump.now + 3.0)
    assert five.take(pump.now, 9) == []
    pump.send(sender, *range(100, 110))
    assert len(handle(pump, five)) == 5, "and then it is back"


def test_one_that_is_deaf_to_the_sender_is_struck_out_and_let_in_again(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.cut((SENDER, 5))
    pump.send(sender, *range(10))
    handled = work_on(pump, LATE + 4.0, five, six)
    assert sender.tables[GROUP].members == (6,)
    assert (handled[5], sorted(handled[6])) == ([], list(range(10)))
    pump.cut()
    pump.run(pump.now + 2.0)
    assert sender.tables[GROUP].members == (5, 6)


def test_one_that_is_unheard_by_the_sender_stops_by_itself(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.cut((5, SENDER))
    pump.run(LATE + T.lease + 0.25)
    pump.send(sender, *range(10))
    assert not any(five.may_start(pump.now, SENDER, q) for q in range(1, 11))
    handled = work_on(pump, LATE + 5.0, five, six)
    assert (handled[5], sorted(handled[6])) == ([], list(range(10)))


def test_a_leaver_finishes_its_own_and_then_says_goodbye(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.send(sender, *range(20))
    five.leave(pump.now)
    pump.run(LATE + 1.0)
    assert not five.left, "it has work"
    pump.send(sender, *range(20, 30))
    assert sorted(handle(pump, five)) == list(range(1, 20, 2)), "and nothing new"
    pump.run(pump.now + 0.5)
    handled = work_on(pump, LATE + 2.0, six)[6]
    pump.run(LATE + 2.5)
    assert five.left and five.next_deadline() == math.inf
    assert Goodbye(5, LABEL, GROUP) in pump.control(5, Goodbye)
    assert sorted(handled) == sorted([*range(0, 20, 2), *range(20, 30)]), "nothing twice"
    assert sender.all_done


def test_a_leaver_says_in_words_what_it_has_to_finish(pump: Pump) -> None:
    sender, five = with_messages(pump, *range(4))
    submit(pump, sender, 4, delay=2.0)
    pump.run(pump.now + 0.1)
    assert five.waiting_for is None, "it is not to leave"
    (message, *_) = five.take(pump.now, 2)
    five.retry(pump.now, message, 1.0)
    five.leave(pump.now)
    pump.deliver()
    ours = "messages that are ours: 1 in hand, 3 in line, 1 waiting for their time or next try"
    assert five.waiting_for == f"{ours} (sender {SENDER:016x}: what we lack of 1 lane of ours)"
    others = work_on(pump, pump.now + 4.0, five)
    assert len(all_of(others)) == 4 and not five.left, "one is in hand"
    assert (five.waiting_for or "").startswith("messages that are ours: 1 in hand (sender ")


def test_a_leaver_says_which_sender_keeps_it(pump: Pump) -> None:
    """A message that is here is done; of what is done, one of two senders is deaf and so cannot say that it knows."""
    first, second = pump.sender(), pump.sender(SENDER + 1)
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    for sender in (first, second):
        pump.send(sender, *range(20))
    handle(pump, five)
    pump.cut((5, SENDER), (5, SENDER + 1))
    five.leave(pump.now)
    assert five.waiting_for == f"sender {SENDER:016x}: word that it knows what was done here, and 1 more sender"
    pump.cut((5, SENDER + 1))
    pump.run(pump.now + 0.5)
    assert five.waiting_for == f"sender {SENDER + 1:016x}: word that it knows what was done here"
    pump.cut()
    work_on(pump, pump.now + 2.0, six)
    assert five.left and five.waiting_for is None


def test_a_leaver_does_not_wait_for_the_work_of_others(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.send(sender, *range(20))
    six.take(pump.now, 99)
    five.leave(pump.now)
    pump.run(LATE + 0.5)
    handle(pump, five)
    pump.run(LATE + 1.5)
    assert five.left
    assert sender.undone == 10


def test_a_leaver_goes_though_a_sender_died_as_it_began_to_leave(pump: Pump) -> None:
    """Its clock shows the time since its host was started. Datagrams are read before its timer is looked at: that it
    has something to ask since ever does not mean that it slept since then, and that nobody was silent."""
    pump.now = 5_000.0
    dying, sender = pump.sender(), pump.sender(SENDER + 1)
    five, six = pump.receivers(5, 6)
    pump.run(pump.now + LATE)
    pump.send(sender, *range(20))
    handle(pump, five)
    handle(pump, six)
    pump.send(dying, *range(20))
    pump.kill(SENDER)
    five.leave(pump.now)
    pump.send(sender, 20)
    pump.send(sender, 21)
    work_on(pump, pump.now + 10.0, five, six)
    assert five.left, five.waiting_for


def test_one_that_leaves_without_draining_hands_back_what_it_has_not_started(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.send(sender, *range(20))
    done = handle(pump, five, 3)
    five.leave(pump.now, drain=False)
    assert not five.ready and five.take(pump.now, 9) == []
    assert not five.may_start(pump.now, SENDER, 20)
    pump.run(pump.now + 0.1)
    assert five.left
    handled = work_on(pump, pump.now + 0.5, six)[6]
    assert sorted(done + handled) == list(range(20)), "at once, and nothing twice"
    assert sender.all_done


def test_the_last_one_leaves_too_and_what_is_left_waits_for_whoever_comes(pump: Pump) -> None:
    sender, five = pump.sender(), pump.receiver(5)
    pump.run(LATE)
    pump.send(sender, *range(10))
    done = handle(pump, five, 4)
    five.leave(pump.now, drain=False)
    pump.run(LATE + 0.5)
    assert five.left
    pump.send(sender, *range(10, 15))
    assert sender.waiting_for is not None
    nine = pump.receiver(9)
    handled = work_on(pump, pump.now + 3.0, nine)[9]
    assert sorted(done + handled) == list(range(15))
    assert sender.all_done


def test_one_that_left_hears_and_says_nothing_more(pump: Pump) -> None:
    sender, five = with_messages(pump)
    five.leave(pump.now, drain=False)
    pump.run(LATE + 0.2)
    assert five.left
    five.wake(pump.now)
    five.leave(pump.now)
    five.say_goodbye()
    pump.send(sender, "late")
    pump.run(pump.now + 1.0)
    assert five.take_outgoing() == [] and five.next_deadline() == math.inf


def test_a_sender_that_says_goodbye_is_no_longer_followed_whatever_comes_late(pump: Pump) -> None:
    sender, receiver = with_messages(pump, "a")
    handle(pump, receiver)
    late = [datagram for id, _, datagram in pump.passed if id == SENDER]
    sender.close(pump.now)
    pump.deliver()
    assert receiver.streams == {}
    for datagram in late:
        receiver.receive(pump.now, datagram, SENDER)
    assert receiver.streams == {}
    assert receiver.take(pump.now, 9) == []


def test_when_a_sender_dies_its_receivers_go_on_with_what_they_have(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    lost: list[bytes] = []

    def first_data_to_five(source: int, to: int, datagram: bytes) -> bool:
        if to == 5 and source == SENDER and peek(datagram)[0] <= FrameType.TAIL and len(lost) < 9:
            lost.append(datagram)
            return True
        return False

    pump.drop = first_data_to_five
    pump.send(sender, *range(10))
    pump.send(sender, *range(10, 20))
    pump.kill(SENDER)
    pump.drop = lambda source, to, datagram: False
    for datagram in lost[-1:]:
        five.receive(pump.now, datagram, SENDER)
    handled = work_on(pump, LATE + 4.0, five, six)
    assert all_of(handled) == list(range(20)), "6 gave 5 what it had missed"


def test_when_a_sender_dies_what_was_not_handled_is_reported_lost(pump: Pump) -> None:
    _, receiver = with_messages(pump, *range(20))
    pump.kill(SENDER)
    done = handle(pump, receiver, 5)
    pump.run(LATE + T.orphan_for + 1.0)
    assert handle(pump, receiver) == []
    assert receiver.stats.lost == 20 - len(done)


def test_a_sender_that_was_stopped_for_four_seconds_goes_on_where_it_was(pump: Pump) -> None:
    sender = pump.sender()
    receivers = pump.receivers(5, 6)
    pump.run(LATE)
    pump.send(sender, *range(10))
    pump.stop(SENDER)
    handled = work_on(pump, LATE + 4.0, *receivers)
    pump.go_on(SENDER)
    pump.run(pump.now + 0.5)
    assert sender.all_done
    assert sender.tables[GROUP].members == (5, 6), "nobody is struck out for its nap"
    pump.send(sender, *range(10, 20))
    more = work_on(pump, pump.now + 0.5, *receivers)
    assert sorted(all_of(handled) + all_of(more)) == list(range(20))


def test_one_who_joined_after_a_senders_nap_cannot_vouch_that_another_has_stopped(pump: Pump) -> None:
    """Two owners, once: 5 and 6 went on without the sender for 5 s, which came back; 7 joined; 5 was cut off."""
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.stop(SENDER)
    pump.run(LATE + 2.0)
    pump.go_on(SENDER)
    pump.run(LATE + 2.1)
    seven = pump.receiver(7)
    pump.run(LATE + 3.1)
    assert sender.tables[GROUP].members == (5, 6, 7)
    pump.send(sender, *range(30))
    others = (SENDER, 6, 7)
    pump.cut(*((5, other) for other in others), *((other, 5) for other in others))
    for _ in range(300):
        pump.run(pump.now + 0.02)
        for sequence in range(1, 31):
            owners = [r.id for r in (five, six, seven) if r.may_start(pump.now, SENDER, sequence)]
            assert len(owners) <= 1, (pump.now, sequence, owners)
    assert any(six.may_start(pump.now, SENDER, q) for q in range(3, 31, 3)), "and then there is an heir"


def test_a_receivers_own_nap_makes_no_sender_silent_and_no_peer_dead(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.stop(6)
    pump.run(LATE + 0.9)
    pump.go_on(6)
    pump.run(LATE + 1.5)
    heard = [frame.heard[0] for frame in pump.control(6, Alive) if frame.heard]
    assert not any(word.silent or word.orphaned for word in heard)
    assert six.table is not None and six.table.members == (5, 6)
    assert sender.tables[GROUP].members == (5, 6)
    assert five.left is False


def test_a_keeper_that_naps_buries_nobody(pump: Pump) -> None:
    sender = pump.sender()
    five, _ = pump.receivers(5, 6)
    pump.run(LATE)
    pump.stop(5)
    pump.run(LATE + 1.5)
    five.wake(pump.now)
    assert 6 in five.membership.peers
    pump.go_on(5)
    pump.run(LATE + 5.0)
    assert not any(frame.members == (Member(5, 1),) for frame in pump.control(5, TableFrame))
    assert sender.tables[GROUP].members == (5, 6)


# --- what others ask ----------------------------------------------------------------------------------------------


def hear(receiver: ReceiverMachine, now: float, frame: Control, source: Address = "x") -> list[tuple[Target, bytes]]:
    """What it says to that."""
    receiver.take_outgoing()
    receiver.receive(now, encode_control(frame, TAG), source)
    receiver.check_invariants()
    return receiver.take_outgoing()


def test_a_sender_that_lacks_the_table_gets_it(pump: Pump) -> None:
    _, receiver = with_messages(pump)
    ((target, datagram),) = hear(receiver, pump.now, AskTable(9, GROUP, Version(1, 5)), "the asker")
    assert target == "the asker"
    assert decode_control(datagram) == TableFrame(5, LABEL, GROUP, Version(1, 5), (Member(5, 1),), (), (0,) * 1024)
    assert hear(receiver, pump.now, AskTable(9, "other", Version(1, 5))) == []


def test_another_receiver_gets_stamps_and_frames_that_are_here(pump: Pump) -> None:
    _, receiver = with_messages(pump, *range(5))
    assert hear(receiver, pump.now, AskStamps(9, SENDER, 1, 9), "the asker") == [], "a stranger is not answered"
    hear(receiver, pump.now, Alive(9, LABEL, GROUP, 1, 1, False, False, 0, NO_VERSION, (), ()), "the asker")
    assert hear(receiver, pump.now, Nak(9, SENDER, (2, 3), ()), "another") == []
    ((target, datagram),) = hear(receiver, pump.now, AskStamps(9, SENDER, 1, 9), "the asker")
    assert target == "the asker" and isinstance(decode_control(datagram), Stamp)
    ((target, datagram),) = hear(receiver, pump.now, Nak(9, SENDER, (2, 3), ()), "the asker")
    assert target == "the asker" and peek(datagram)[0] == FrameType.DATA
    assert hear(receiver, pump.now, Nak(9, 0xDEF, (2, 3), ()), "the asker") == []
    assert hear(receiver, pump.now, Nak(9, SENDER, (50, 60), ()), "the asker") == []


def test_one_nak_is_answered_with_a_bounded_number_of_bytes(pump: Pump) -> None:
    _, receiver = with_messages(pump, *(bytes(50_000) for _ in range(20)))
    pump.run(pump.now + 1.0)
    hear(receiver, pump.now, Alive(9, LABEL, GROUP, 1, 1, False, False, 0, NO_VERSION, (), ()))
    answer = hear(receiver, pump.now, Nak(9, SENDER, (1, 20), ()))
    assert answer and sum(len(datagram) for _, datagram in answer) <= limits.REPAIR_BYTES_MAX // 4


def test_a_hello_is_answered_at_once_by_the_keeper_and_not_by_all(pump: Pump) -> None:
    five, six = pump.receivers(5, 6)
    pump.run(LATE + 0.07)
    hello = Alive(9, LABEL, GROUP, 1, 1, True, False, 0, NO_VERSION, (), ())
    hear(five, pump.now, hello)
    hear(six, pump.now, hello)
    assert five.next_deadline() <= pump.now + 0.006
    assert six.next_deadline() > pump.now + 0.006


# --- bounds and strangers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0, -1, limits.WEIGHT_MAX + 1, 1.0, True, "2"])
def test_a_weight_that_is_none_is_refused(weight: Any) -> None:
    with pytest.raises(BusError, match="weight"):
        ReceiverMachine(LABEL, 5, group=GROUP, weight=weight, timings=T, random=Random(1), now=0.0)


def test_data_of_streams_that_are_not_known_is_ignored(pump: Pump) -> None:
    _, receiver = with_messages(pump)
    records = Records.of([make_record("x")])
    receiver.receive(pump.now, encode_batch(Stamped(TAG, 1, 0xDEF, 1, 0.0, 0, 0), records), "x")
    assert not receiver.ready and receiver.stats.bad_frames == 0


def test_frames_of_other_labels_and_groups_are_ignored_and_not_counted(pump: Pump) -> None:
    _, receiver = with_messages(pump, "a")
    other = label_tag("other")
    frame = SenderAlive(0xDEF, "other", 1, True, 0, 0, 1, 0, (), ())
    receiver.receive(pump.now, encode_control(frame, other), "x")
    receiver.receive(pump.now, encode_control(frame, TAG), "x")
    receiver.receive(pump.now, encode_control(SenderGoodbye(SENDER, "other"), other), "x")
    records = Records.of([make_record("x")])
    receiver.receive(pump.now, encode_batch(Stamped(other, 1, SENDER, 2, 0.0, 0, 0), records), "x")
    hear(receiver, pump.now, TableFrame(1, LABEL, "audit", Version(9, 1), (Member(5, 1),), ()))
    hear(receiver, pump.now, Alive(1, LABEL, "audit", 1, 1, True, False, 0, NO_VERSION, (), ()))
    hear(receiver, pump.now, Goodbye(5, LABEL, "audit"))
    assert set(receiver.streams) == {SENDER}
    assert receiver.table is not None and receiver.table.version == (1, 5)
    assert receiver.stats.bad_frames == 0
    assert handle(pump, receiver) == ["a"]


def test_only_so_many_streams_are_followed(pump: Pump) -> None:
    receiver = pump.receiver(5)
    for id in range(1, limits.STREAMS_MAX + 10):
        frame = SenderAlive(id, LABEL, 1, False, 0, 0, 1, 0, (), ())
        receiver.receive(0.0, encode_control(frame, TAG), id)
    assert len(receiver.streams) == limits.STREAMS_MAX
    hear(receiver, 0.0, SenderGoodbye(1, LABEL))
    assert 1 in receiver.streams, "somebody else says so"
    hear(receiver, 0.0, SenderGoodbye(1, LABEL), 1)
    hear(receiver, 0.0, SenderAlive(99_999, LABEL, 1, False, 0, 0, 1, 0, (), ()))
    assert 99_999 in receiver.streams
    receiver.check_invariants()


def test_the_socket_buffer_is_shared_by_all_streams(pump: Pump) -> None:
    receiver = pump.receiver(5, receive_bytes=800_000)
    for id in (1, 2, 3, 4):
        hear(receiver, 0.0, SenderAlive(id, LABEL, 1, False, 0, 0, 1, 0, (), ()), id)
    assert [stream.intake.window for stream in receiver.streams.values()] == [200_000] * 4


def test_what_is_kept_is_bounded_and_what_had_no_room_is_asked_for_later(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECEIVED_BYTES", 200_000)
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    for n in range(40):
        pump.send(sender, bytes([n]) * 20_000)
        pump.run(pump.now + 0.02)
        kept = sum(stream.holding.bytes for stream in five.streams.values())
        assert kept <= limits.RECEIVED_BYTES + 25_000
    handled = work_on(pump, pump.now + 8.0, five, six)
    assert sorted(body[0] for bodies in handled.values() for body in bodies) == list(range(40))
    assert sender.all_done


@given(st.binary(max_size=200) | st.binary(min_size=56, max_size=99).map(lambda data: data[:4] + b"\x01" + data[5:]))
def test_garbage_is_counted_and_never_raises(datagram: bytes) -> None:
    receiver = ReceiverMachine(LABEL, 5, group=GROUP, weight=1, timings=T, random=Random(1), now=0.0)
    receiver.receive(0.0, datagram, "a stranger")
    assert receiver.stats.bad_frames == 1
    assert receiver.take_outgoing() == [] and receiver.streams == {}


def test_an_unreadable_frame_of_a_known_stream_is_counted_and_asked_for_again(pump: Pump) -> None:
    sender, receiver = pump.sender(), pump.receiver(5)
    pump.run(LATE)
    pump.drop = lambda source, to, datagram: peek(datagram)[0] == FrameType.DATA
    pump.send(sender, "genuine")
    (real,) = [datagram for _, target, datagram in pump.passed if peek(datagram)[0] == FrameType.DATA]
    pump.cut()
    receiver.receive(pump.now, real[:-1], SENDER)
    receiver.receive(pump.now, real, SENDER)
    assert work_on(pump, LATE + 1.0, receiver)[5] == ["genuine"]
    assert receiver.stats.bad_frames == 1


def real_frames() -> list[bytes]:
    """One of each that a receiver understands."""
    at = Stamped(TAG, 1, SENDER, 3, 0.0, 1, 5000)
    members = (Member(5, 1), Member(6, 2))
    entry = GroupStamp(GROUP, 2, 4, Version(2, 5), members, (7,), (), (8,))
    frames: Iterable[Control] = (
        SenderAlive(
            SENDER, LABEL, 99, True, 7, 900, 1, 2, (GroupState(GROUP, Version(2, 5), 1, False, ()),), (Echo(5, 3),)
        ),
        SenderAlive(0xB, LABEL, 1, True, 0, 0, 1, 0, (), ()),
        Stamp(SENDER, LABEL, 2, 4, False, (entry,)),
        Stamp(SENDER, LABEL, 3, 6, True, (entry._replace(since=3, at=6, members=(Member(5, 1),)),)),
        Progress(SENDER, 12345, (LaneAnswer(1, 0, 1, 2, (4, 5), True),), (Tried(3, 1, 6),)),
        Alive(6, LABEL, GROUP, 1, 7, True, False, 0, Version(2, 5), (Heard(SENDER, 9, 1, True, True),), ()),
        TableFrame(5, LABEL, GROUP, Version(7, 5), members, (9,)),
        Goodbye(6, LABEL, GROUP),
        AskTable(SENDER, GROUP, Version(1, 5)),
        Nak(6, SENDER, (1, 2), ()),
        AskStamps(6, SENDER, 1, 2),
    )
    return [
        *(encode_control(frame, TAG) for frame in frames),
        encode_batch(at, Records.of([make_record("a"), make_record("b", "key"), make_record(b"c", None, {"h": 1})])),
        encode_batch(at._replace(stamp=2, first=6), Records.of([make_record(b"c")] * 5)),
        *encode_fragments(at._replace(first=7), make_record(bytes(1500)), 512),
        encode_tail(at._replace(first=30)),
    ]


def mutated(random: Random, datagram: bytes) -> bytes:
    """A few bytes changed, cut off or put in; sometimes none."""
    changed = bytearray(datagram)
    for _ in range(random.randint(0, 3)):
        at = random.randrange(len(changed)) if changed else 0
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del changed[at : at + random.randint(1, 8)]
            case 2:
                changed[at:at] = random.randbytes(random.randint(1, 8))
            case 3:
                changed[at : at + 1] = bytes([random.choice((0x00, 0x7F, 0x90, 0xC0, 0xCF, 0xFF))])
    return bytes(changed)


@example(85055902).via("a frame that came anew, and longer, was read out of the shorter one that had been dropped")
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_real_frames_with_a_few_bytes_changed_never_raise(seed: int) -> None:
    """Also not from what follows: taking, acknowledging, waking and saying."""
    random = Random(seed)
    pump = Pump()
    _, receiver = with_messages(pump, *range(5))
    frames = real_frames()
    taken: list[Message] = []
    now = pump.now
    for _ in range(40):
        now += 0.01
        receiver.receive(now, mutated(random, random.choice(frames)), "a stranger")
        taken += receiver.take(now, 3)
        if taken and random.random() < 0.5:
            outcome = random.choice((receiver.acknowledge, receiver.retry, receiver.give_back))
            outcome(now, taken.pop())
        receiver.wake(now)
        for _, datagram in receiver.take_outgoing():
            peek(datagram)
    receiver.leave(now)
    receiver.wake(now + 0.3)


# --- trains: many frames in one datagram ----------------------------------------------------------------------------

SMALL = 600
"""Bytes of a frame, in the tests of trains."""


def on_a_small_network(pump: Pump) -> tuple[SenderMachine, ReceiverMachine, ReceiverMachine]:
    sender = pump.sender(frame_bytes=SMALL, train_frames=8)
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    pump.passed.clear()
    return sender, five, six


def send_many(pump: Pump, sender: SenderMachine, bodies: list[Any]) -> None:
    sender.submit_records(make_records(list(bodies)))
    sender.flush(pump.now)
    pump.deliver()


def cut_in_the_middle(target: Target, datagram: bytes) -> list[tuple[bytes, int]]:
    """The second half comes before the first, and a frame of the middle comes again after both."""
    if not isinstance(target, Cut):
        return [(datagram, 0)]
    frames, size = split(datagram, target.size), target.size
    middle = len(frames) // 2
    parts = [b"".join(frames[middle:]), b"".join(frames[:middle]), frames[middle], frames[0]]
    return [(part, size) for part in parts]


def first_frame_early(target: Target, datagram: bytes) -> list[tuple[bytes, int]]:
    """One frame comes by itself, and then again inside of the whole."""
    if not isinstance(target, Cut):
        return [(datagram, 0)]
    return [(split(datagram, target.size)[1], 0), (datagram, target.size)]


BODIES = [[b"%06d" % n for n in range(900)], [b"x" * (n % 80) for n in range(600)], list(range(900))]


@pytest.mark.parametrize("come_apart", [whole, apart, cut_in_the_middle, first_frame_early])
@pytest.mark.parametrize("bodies", BODIES, ids=["even", "of all lengths", "packed"])
def test_a_train_is_handed_out_once_however_it_comes_apart(pump: Pump, come_apart: Any, bodies: list[Any]) -> None:
    sender, five, six = on_a_small_network(pump)
    pump.come_apart = come_apart
    send_many(pump, sender, bodies)
    assert any(isinstance(target, Cut) for _, target, _ in pump.passed), "there was a train"
    handled = work_on(pump, pump.now + 2.0, five, six)
    assert sorted(map(repr, handled[5] + handled[6])) == sorted(map(repr, bodies))
    assert sender.all_done
    for end in (sender, five, six):
        end.check_invariants()


def test_the_frames_of_a_lost_train_are_asked_for_and_sent_one_by_one(pump: Pump) -> None:
    sender, five, six = on_a_small_network(pump)
    bodies = [b"%06d" % n for n in range(900)]
    trains = 0

    def lose_the_first_train(source: int, to: int, datagram: bytes) -> bool:
        nonlocal trains
        trains += len(datagram) > SMALL
        return len(datagram) > SMALL and trains <= 2

    pump.drop = lose_the_first_train
    send_many(pump, sender, bodies)
    handled = work_on(pump, pump.now + 2.0, five, six)
    assert sorted(handled[5] + handled[6]) == bodies
    assert sender.stats.repaired > 2
    answers = [datagram for id, target, datagram in pump.passed if id == SENDER and target in (5, 6)]
    assert answers and all(len(datagram) <= SMALL for datagram in answers)


def test_with_keys_the_frames_of_a_train_are_taken_one_by_one_and_in_order(pump: Pump) -> None:
    sender, five, six = on_a_small_network(pump)
    for n in range(300):
        sender.submit(pump.now, n, key=f"k{n % 7}")
    sender.flush(pump.now)
    handled = work_on(pump, pump.now + 3.0, five, six)
    for id in (5, 6):
        for key in range(7):
            own = [n for n in handled[id] if n % 7 == key]
            assert own == sorted(own)
    assert sorted(handled[5] + handled[6]) == list(range(300))


def test_a_train_of_an_unknown_stamp_waits_like_its_frames(pump: Pump) -> None:
    sender, five, six = on_a_small_network(pump)
    seven = pump.receiver(7)
    pump.drop = lambda source, to, datagram: peek(datagram)[0] == FrameType.STAMP and to in (5, 6)
    pump.run(pump.now + 0.5)
    bodies = [b"%06d" % n for n in range(900)]
    send_many(pump, sender, bodies)
    pump.drop = lambda source, to, datagram: False
    handled = work_on(pump, pump.now + 3.0, five, six, seven)
    assert sorted(handled[5] + handled[6] + handled[7]) == bodies


def test_a_datagram_that_only_looks_like_a_train_is_read_frame_by_frame(pump: Pump) -> None:
    sender, five, _ = on_a_small_network(pump)
    pump.send(sender, b"one")
    frame = next(datagram for id, _, datagram in pump.passed if id == SENDER and peek(datagram)[0] == FrameType.DATA)
    before = five.stats.bad_frames
    five.receive(pump.now, frame + b"rubbish", SENDER, len(frame))
    five.receive(pump.now, bytes(3000), SENDER, 100)
    assert five.stats.bad_frames == before + 31
    five.check_invariants()


# --- times, urgency, tries ----------------------------------------------------------------------------------------


def submit(pump: Pump, sender: SenderMachine, body: Any, **how: Any) -> None:
    sender.submit(pump.now, body, **how)
    sender.flush(pump.now)
    pump.deliver()


def test_a_delayed_message_is_handled_when_it_is_due_and_others_do_not_wait_for_it(pump: Pump) -> None:
    sender, receiver = with_messages(pump, "first")
    submit(pump, sender, "later", delay=3.0)
    submit(pump, sender, "now")
    due = pump.now + 3.0
    assert handle(pump, receiver) == ["first", "now"]
    pump.run(due - 0.01)
    assert handle(pump, receiver) == []
    pump.run(due)
    assert handle(pump, receiver) == ["later"]
    pump.run(due + 0.5)
    assert sender.all_done


def test_whoever_inherits_a_delayed_message_waits_for_the_same_moment(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receivers(5, 6)
    pump.run(LATE)
    for number in range(6):
        submit(pump, sender, number, delay=8.0)
    due = pump.now + 8.0
    assert [handle(pump, one) for one in (five, six)] == [[], []]
    pump.kill(6)
    assert all_of(work_on(pump, due - 0.1, five)) == []
    assert all_of(work_on(pump, due + 0.5, five)) == list(range(6))
    pump.run(pump.now + 0.5)
    assert sender.all_done


def test_an_urgent_message_goes_before_those_of_other_streams_too(pump: Pump) -> None:
    _, receiver = with_messages(pump, "a", "b")
    other = pump.sender(0xB)
    pump.run(pump.now + 2.0)
    submit(pump, other, "c")
    submit(pump, other, "!", urgent=True)
    assert receiver.has_urgent
    assert handle(pump, receiver, 1) == ["!"]
    assert not receiver.has_urgent
    assert all_of({5: handle(pump, receiver)}) == ["a", "b", "c"]


def test_who_kills_its_receiver_is_counted_by_the_heir(pump: Pump) -> None:
    sender = pump.sender()
    five, six = pump.receiver(5, tracked=True), pump.receiver(6, tracked=True)
    pump.run(LATE)
    pump.send(sender, *range(8))
    (poison,) = six.take(pump.now, 1)
    pump.deliver()
    pump.kill(6)
    attempts = {}
    while pump.now < LATE + 8.0:
        pump.run(pump.now + 0.05)
        for message in five.take(pump.now, 9):
            attempts[message.sequence] = message.attempt
            if message.sequence == poison.sequence:
                assert five.first_owner(message) == 6
            five.acknowledge(pump.now, message)
    assert attempts.pop(poison.sequence) == 2
    assert len(attempts) == 7 and set(attempts.values()) == {1}


def test_one_that_hands_back_thousands_of_holes_still_gets_away(pump: Pump) -> None:
    """Every second message waits for an hour. The sender must know of all that are done before it leaves."""
    sender, receiver = with_messages(pump)
    for number in range(3000):
        sender.submit(pump.now, number, delay=3600.0 if number % 2 else None)
    sender.flush(pump.now)
    pump.deliver()
    pump.run(pump.now + 0.1)
    assert len(handle(pump, receiver, 9999)) == 1500
    receiver.leave(pump.now, drain=False)
    pump.run(pump.now + 3.0)
    assert receiver.left
    assert sender.undone == 1500


def test_a_key_goes_on_after_two_switches_while_a_delayed_message_keeps_the_first_segment_open(pump: Pump) -> None:
    sender = pump.sender()
    five = pump.receiver(5)
    pump.run(LATE)
    submit(pump, sender, "later", key="z", delay=3600.0)
    receivers = [five]
    for id in (6, 7):
        for number in range(20):
            submit(pump, sender, number, key=f"key {number}")
        receivers.append(pump.receiver(id))
        pump.run(pump.now + 1.5)
    for number in range(20):
        submit(pump, sender, number, key=f"key {number}")
    handled = work_on(pump, pump.now + 3.0, *receivers)
    assert sorted(all_of(handled)) == sorted([*range(20)] * 3)
    assert sender.undone == 1


def test_one_whose_group_was_given_up_while_it_was_cut_off_begins_anew(pump: Pump) -> None:
    sender = pump.sender(hold=3.0)
    five, eight = pump.receiver(5), pump.receiver(8, group="other")
    pump.run(LATE)
    submit(pump, sender, "later", delay=3600.0)
    pump.send(sender, "a")
    assert handle(pump, eight) == ["a"], "and the other one keeps its first stamp open"
    pump.cut((SENDER, 5), (5, SENDER))
    pump.run(pump.now + 6.0)
    assert sender.stats.lost == 2
    pump.drop = lambda source, to, datagram: False
    pump.run(pump.now + 4.0)
    pump.send(sender, "b")
    assert (handle(pump, five), handle(pump, eight)) == (["b"], ["b"])
    five.leave(pump.now)
    pump.run(pump.now + 3.0)
    assert five.left, "nothing of before holds it"
