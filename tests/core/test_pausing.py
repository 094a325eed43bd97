"""A group that is paused, with whole machines: what is started, what is not, who learns of it, and who leaves."""

from __future__ import annotations

from rvq.core.receiver import ReceiverMachine
from rvq.message import Message
from rvq.wire.codec import encode_control, peek
from rvq.wire.frames import FrameType, Order, OrderKind
from tests.core.test_receiver import GROUP, LABEL, LATE, TAG, Pump, T

ASKER = 0xF00D


def order(pump: Pump, what: OrderKind, *ids: int, counter: int = 1) -> None:
    """Only these hear it; the others learn it from them."""
    for id in ids:
        datagram = encode_control(Order(ASKER, LABEL, GROUP, 0, counter, what, 0, counter, "ops"), TAG)
        pump.ends[id].receive(pump.now, datagram, ASKER)
    pump.run(pump.now + 2 * T.heartbeat)


def take(pump: Pump, *receivers: ReceiverMachine, most: int = 1000) -> list[Message]:
    return [message for receiver in receivers for message in receiver.take(pump.now, most)]


def a_busy_pump(*ids: int, messages: int = 90, **options: object) -> Pump:
    pump = Pump()
    for id in ids:
        pump.receiver(id, **options)
    sender = pump.sender()
    pump.run(LATE)
    for number in range(messages):
        sender.submit(pump.now, number)
    sender.flush(pump.now)
    pump.run(pump.now + 0.1)
    return pump


def test_a_paused_group_starts_nothing_and_goes_on_where_it_was() -> None:
    pump = a_busy_pump(1, 2)
    one, two = pump.ends[1], pump.ends[2]
    assert isinstance(one, ReceiverMachine) and isinstance(two, ReceiverMachine)
    (running,) = take(pump, one, most=1)
    order(pump, OrderKind.PAUSE, 1)
    assert one.paused and two.paused, "the other learned it from a heartbeat"
    assert not one.ready and not take(pump, one, two)
    assert not one.may_start(pump.now, running.sender, running.sequence + 2)
    one.acknowledge(pump.now, running)
    pump.run(pump.now + 10.0)
    assert not take(pump, one, two), "and for as long as it lasts"
    order(pump, OrderKind.RESUME, 2, counter=2)
    rest = take(pump, one, two)
    assert sorted(message.body for message in [running, *rest]) == list(range(90))


def test_who_paused_stands_in_the_log_of_all() -> None:
    pump = a_busy_pump(1, 2)
    order(pump, OrderKind.PAUSE, 1)
    told = [[event for event in pump.ends[id].events if "paused" in event] for id in (1, 2)]  # type: ignore[union-attr]
    assert told == [
        ["paused by 'ops', order of 000000000000f00d"],
        ["paused (word of 0000000000000001), order of 000000000000f00d"],
    ]


def test_whoever_joins_a_paused_group_starts_nothing_even_if_it_hears_the_sender_first() -> None:
    pump = a_busy_pump(1, messages=0)
    order(pump, OrderKind.PAUSE, 1)
    quiet_until = pump.now + 0.5
    # Tables come, and so do stamps; but for a while no heartbeat of the group.
    pump.drop = lambda source, to, datagram: (
        source == 1 and to == 2 and peek(datagram)[0] == FrameType.ALIVE and pump.now < quiet_until
    )
    newcomer = pump.receiver(2)
    pump.run(pump.now + 0.4)
    assert newcomer.membership.table is not None and not newcomer.paused
    sender = pump.ends[0xA]
    for number in range(20):
        sender.submit(pump.now, number)  # type: ignore[union-attr]
    sender.flush(pump.now)  # type: ignore[union-attr]
    pump.run(pump.now + 0.05)
    assert any(stream.work.ready for stream in newcomer.streams.values())
    assert not newcomer.ready and not take(pump, newcomer)
    pump.run(pump.now + 1.0)
    assert newcomer.paused and not take(pump, newcomer)
    order(pump, OrderKind.RESUME, 1, counter=2)
    assert take(pump, newcomer)


def test_a_pause_outlives_those_who_heard_the_order() -> None:
    pump = a_busy_pump(1, 2)
    order(pump, OrderKind.PAUSE, 1)
    del pump.ends[1]
    pump.run(pump.now + 3.0)
    newcomer = pump.receiver(3)
    pump.run(pump.now + 3.0)
    assert pump.ends[2].paused and newcomer.paused  # type: ignore[union-attr]


def test_a_paused_receiver_that_is_told_to_leave_hands_back_what_it_has_not_started() -> None:
    pump = a_busy_pump(1, 2)
    one, two = pump.ends[1], pump.ends[2]
    assert isinstance(one, ReceiverMachine) and isinstance(two, ReceiverMachine)
    (running,) = take(pump, one, most=1)
    order(pump, OrderKind.PAUSE, 1)
    one.leave(pump.now)
    pump.run(pump.now + 2.0)
    assert not one.left, "what runs is finished first"
    one.acknowledge(pump.now, running)
    pump.run(pump.now + 2.0)
    assert one.left
    order(pump, OrderKind.RESUME, 2, counter=2)
    pump.run(pump.now + 3.0)
    rest = take(pump, two)
    assert sorted(message.body for message in [running, *rest]) == list(range(90))


def test_a_paused_group_gives_no_work_to_who_is_idle() -> None:
    pump = a_busy_pump(1, 2, hand_over=True)
    one, two = pump.ends[1], pump.ends[2]
    assert isinstance(one, ReceiverMachine) and isinstance(two, ReceiverMachine)
    two.acknowledge_all(pump.now, take(pump, two))
    order(pump, OrderKind.PAUSE, 1)
    pump.run(pump.now + 5.0)
    assert one.stats.handed_over == 0
    order(pump, OrderKind.RESUME, 1, counter=2)
    pump.run(pump.now + 5.0)
    assert one.stats.handed_over > 0


def test_sender_and_receivers_say_that_the_group_is_paused() -> None:
    pump = a_busy_pump(1, 2)
    sender, one = pump.ends[0xA], pump.ends[1]
    assert isinstance(one, ReceiverMachine)
    assert one.waiting_for is None and sender.waiting_for is None
    order(pump, OrderKind.PAUSE, 1)
    assert sender.waiting_for == "group 'default' of 'work' is paused: rvq resume work default"
    assert one.waiting_for == sender.waiting_for
    order(pump, OrderKind.RESUME, 1, counter=2)
    assert one.waiting_for is None and sender.waiting_for is None
