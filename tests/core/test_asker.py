"""Orders from the asking end to the receivers and back: who is meant, how often it is said, and what became of it."""

from __future__ import annotations

from itertools import count

import pytest

from rvq.core.asker import LISTEN_BEATS, PATIENCE_EXPIRIES, SEEN_MAX, AskerMachine, Wish
from rvq.limits import WEIGHT_MAX
from rvq.wire.codec import decode_control, encode_control, peek
from rvq.wire.frames import NO_PAUSE, NO_VERSION, Alive, FrameType, Order, OrderDone, OrderKind, Pause
from tests.core.test_receiver import GROUP, LABEL, LATE, TAG, Pump, T

ASKER = 0xF00D
IDS = (0x1A << 56, 0x1B << 56, 0x2C << 56)
NONCES = count(1)
FIRST = f"{IDS[0]:016x}"


def a_pump(*ids: int) -> Pump:
    pump = Pump()
    pump.receivers(*(ids or IDS))
    pump.run(LATE)
    return pump


def ask(pump: Pump, what: OrderKind, whom: str, value: int = 0, id: int = ASKER) -> AskerMachine:
    asker = AskerMachine(LABEL, id, Wish(what, whom, value), nonce=next(NONCES), by="ops", timings=T, now=pump.now)
    pump.ends[id] = asker  # type: ignore[assignment]
    return asker


def asked(pump: Pump, what: OrderKind, whom: str, value: int = 0, id: int = ASKER) -> AskerMachine:
    """Until it is known what became of it."""
    asker = ask(pump, what, whom, value, id)
    gives_up = pump.now + LISTEN_BEATS * T.heartbeat + PATIENCE_EXPIRIES * T.expiry + 2 * T.heartbeat
    while not asker.over and pump.now < gives_up:
        pump.run(pump.now + T.heartbeat / 4)
        pump.now += T.heartbeat / 4
    assert asker.over
    del pump.ends[id]
    return asker


def orders_said(pump: Pump) -> int:
    return sum(peek(datagram)[0] == FrameType.ORDER for _, _, datagram in pump.passed)


def test_a_receiver_told_to_drain_leaves_and_the_asker_knows() -> None:
    pump = a_pump()
    asker = asked(pump, OrderKind.DRAIN, FIRST)
    assert (asker.fault, asker.ordered, asker.group) == (None, [IDS[0]], GROUP)
    pump.run(pump.now + 1.0)
    assert pump.ends[IDS[0]].left  # type: ignore[union-attr]
    assert not any(pump.ends[id].left for id in IDS[1:])  # type: ignore[union-attr]


def test_a_full_id_needs_no_waiting_for_others() -> None:
    pump = a_pump()
    began = pump.now
    asked(pump, OrderKind.WEIGHT, FIRST, 3)
    assert pump.now <= began + 2 * T.heartbeat


def test_a_weight_goes_into_the_next_table() -> None:
    pump = a_pump()
    asker = asked(pump, OrderKind.WEIGHT, "2c", 5)
    assert (asker.fault, asker.ordered) == (None, [IDS[2]])
    pump.run(pump.now + 1.0)
    for id in IDS:
        table = pump.ends[id].membership.table  # type: ignore[union-attr]
        assert [member.weight for member in table.members] == [1, 1, 5]


def test_all_of_a_group_pause_and_go_on() -> None:
    pump = a_pump()
    other = pump.receiver(0x5, group="other")
    pump.run(pump.now + 1.0)
    assert asked(pump, OrderKind.PAUSE, GROUP).ordered == list(IDS)
    receivers = [pump.ends[id] for id in IDS]
    assert all(receiver.paused for receiver in receivers) and not other.paused  # type: ignore[union-attr]
    assert asked(pump, OrderKind.RESUME, GROUP).ordered == list(IDS)
    assert not any(receiver.paused for receiver in receivers)  # type: ignore[union-attr]


def test_what_a_group_knows_makes_an_order_newer() -> None:
    pump = a_pump()
    for _ in range(3):
        asked(pump, OrderKind.PAUSE, GROUP)
        asked(pump, OrderKind.RESUME, GROUP, id=3)
    assert {pump.ends[id].orders.pause for id in IDS} == {Pause(6, 3, False)}  # type: ignore[union-attr]


def test_an_order_is_said_until_it_is_answered_and_carried_out_once() -> None:
    pump = a_pump()
    lost = 5

    def drop(source: int, to: int, datagram: bytes) -> bool:
        nonlocal lost
        is_answer = peek(datagram)[0] == FrameType.ORDER_DONE
        lost -= is_answer
        return is_answer and lost >= 0

    pump.drop = drop
    assert asked(pump, OrderKind.DRAIN, FIRST).fault is None
    receiver = pump.ends[IDS[0]]
    assert sum("told to leave" in event for event in receiver.events) == 1  # type: ignore[union-attr]
    pump.drop = lambda source, to, datagram: False


def test_a_repeated_order_is_not_carried_out_after_another_one() -> None:
    pump = a_pump()
    receiver = pump.ends[IDS[0]]
    five = Order(ASKER, LABEL, GROUP, IDS[0], 1, OrderKind.WEIGHT, 5, 0, "ops")
    seven = Order(ASKER, LABEL, GROUP, IDS[0], 2, OrderKind.WEIGHT, 7, 0, "ops")
    for order in (five, seven, five):
        receiver.receive(pump.now, encode_control(order, TAG), ASKER)
    assert receiver.membership.weight == 7  # type: ignore[union-attr]
    answers = [frame for frame in map(decode_control, said_to(receiver, ASKER)) if isinstance(frame, OrderDone)]
    assert [answer.nonce for answer in answers] == [1, 2, 1]


def said_to(end: object, address: int) -> list[bytes]:
    return [datagram for target, datagram in end.take_outgoing() if target == address]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("what", "whom", "words"),
    [
        (OrderKind.DRAIN, "ff", f"no receiver ff of 'work': there are {FIRST}"),
        (OrderKind.DRAIN, "1", "1 begins the ids of 2 receivers"),
        (OrderKind.PAUSE, "other", "nobody of group 'other' listens to 'work': there are 'default'"),
    ],
)
def test_whom_it_cannot_find_it_says(what: OrderKind, whom: str, words: str) -> None:
    pump = a_pump()
    asker = asked(pump, what, whom)
    assert asker.fault is not None and asker.fault.startswith(words)
    assert not orders_said(pump)


def test_with_nobody_there_it_says_that() -> None:
    assert asked(Pump(), OrderKind.DRAIN, "1").fault == "no receiver of 'work' is there"


def test_one_that_does_not_answer_is_named() -> None:
    pump = a_pump()
    pump.drop = lambda source, to, datagram: to == IDS[0] and peek(datagram)[0] == FrameType.ORDER
    asker = asked(pump, OrderKind.DRAIN, FIRST)
    assert asker.fault is not None and asker.fault.startswith(f"no answer from {FIRST}")
    assert orders_said(pump) > 3


def test_a_pause_that_another_told_counts_as_answered() -> None:
    pump = a_pump()
    pump.drop = lambda source, to, datagram: to == IDS[0] and peek(datagram)[0] == FrameType.ORDER
    assert asked(pump, OrderKind.PAUSE, GROUP).ordered == list(IDS)
    assert pump.ends[IDS[0]].paused  # type: ignore[union-attr]


def test_whoever_dies_meanwhile_is_not_waited_for() -> None:
    pump = a_pump()
    asker = ask(pump, OrderKind.PAUSE, GROUP)
    pump.drop = lambda source, to, datagram: source == IDS[0]
    pump.run(pump.now + LISTEN_BEATS * T.heartbeat + T.expiry + 3 * T.heartbeat)
    assert asker.over and asker.fault is None and asker.ordered == list(IDS[1:])


def test_of_two_orders_at_the_same_time_one_stands_everywhere_and_the_other_says_so() -> None:
    pump = a_pump()
    low, high = ask(pump, OrderKind.PAUSE, GROUP, id=1), ask(pump, OrderKind.RESUME, GROUP, id=2)
    pump.drop = lambda source, to, datagram: source == 1 and peek(datagram)[0] == FrameType.ORDER and pump.now < 3.5
    pump.run(pump.now + 6.0)
    assert high.fault is None
    assert low.fault is not None and "another order" in low.fault
    assert {pump.ends[id].orders.pause for id in IDS} == {Pause(1, 2, False)}  # type: ignore[union-attr]


def test_a_weight_that_no_table_has_room_for_is_refused() -> None:
    pump = a_pump(IDS[0])
    machine = pump.ends[IDS[0]]
    machine.membership._slots += 16_384 - WEIGHT_MAX  # type: ignore[union-attr]
    order = Order(ASKER, LABEL, GROUP, IDS[0], 1, OrderKind.WEIGHT, WEIGHT_MAX + 1, 0, "ops")
    machine._on_order(pump.now, order, ASKER)  # type: ignore[union-attr]
    asker = ask(pump, OrderKind.WEIGHT, FIRST, WEIGHT_MAX)
    asker._order = order
    asker.seen.clear()
    (answer,) = said_to(machine, ASKER)
    asker.receive(pump.now, answer, IDS[0])
    assert not asker.answers, "an answer of one that was never heard is nobody's"
    asker.receive(pump.now, alive_of(IDS[0]), IDS[0])
    asker._nonce = 1
    asker.receive(pump.now, answer, IDS[0])
    assert asker.fault is not None and asker.fault.startswith("it refused")


def alive_of(id: int) -> bytes:
    return encode_control(Alive(id, LABEL, GROUP, 1, 1, False, False, 0, NO_VERSION, (), (), False, NO_PAUSE), TAG)


def test_strangers_and_crowds_do_not_trouble_it() -> None:
    asker = AskerMachine(LABEL, ASKER, Wish(OrderKind.DRAIN, "1"), nonce=1, by="ops", timings=T, now=0.0)
    for datagram in (b"", b"rvq\x01", bytes(40), encode_control(OrderDone(5, 1, 1), TAG)):
        asker.receive(0.0, datagram, 5)
    for id in range(1, SEEN_MAX + 10):
        asker.receive(0.0, alive_of(id), id)
    asker.check_invariants()
    assert len(asker.seen) == SEEN_MAX and not asker.answers
