"""One key at a time, in order: against a plain list of what was sent."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rvq.core.order import Gate, KeyOrder
from rvq.message import Message, Origin, RichMessage
from rvq.wire.records import Content


def message(sequence: int, key: str | bytes = "k", due_at: float | None = None) -> Message:
    origin = cast(Origin, SimpleNamespace(stream=7, label="work", sequence_of=lambda place: place))
    return RichMessage(Content("body", key, None, due_at), origin, sequence)


FIRST = Gate(1, 1, 0)
"""Of the first segment: there is nothing before it."""


def done_to(sequence: int) -> Callable[[Gate], bool]:
    """Everything up to here is done, and nothing more is known."""
    return lambda gate: gate.at <= sequence + 1


@pytest.fixture
def order() -> KeyOrder:
    return KeyOrder()


def test_the_first_of_a_key_may_start_and_the_next_one_waits_for_it(order: KeyOrder) -> None:
    first, second = message(1), message(2)
    assert order.admit(first, FIRST, done_to(0))
    assert not order.admit(second, FIRST, done_to(0))
    assert order.finished(first) is second
    assert order.finished(second) is None
    order.check_invariants()


def test_a_key_that_is_free_again_is_taken_at_once(order: KeyOrder) -> None:
    first, second = message(1), message(2)
    order.admit(first, FIRST, done_to(0))
    order.finished(first)
    assert order.admit(second, FIRST, done_to(0))


def test_other_keys_do_not_wait(order: KeyOrder) -> None:
    assert order.admit(message(1, "a"), FIRST, done_to(0))
    assert order.admit(message(2, "b"), FIRST, done_to(0))
    assert order.admit(message(3, b"a"), FIRST, done_to(0)), "text and bytes are different keys"


def test_three_of_a_key_come_in_order(order: KeyOrder) -> None:
    first, second, third = message(1), message(2), message(3)
    assert [order.admit(m, FIRST, done_to(0)) for m in (first, second, third)] == [True, False, False]
    assert order.finished(first) is second
    assert order.finished(second) is third
    order.check_invariants()


def test_finishing_one_that_is_not_the_current_one_frees_nothing(order: KeyOrder) -> None:
    first, second, third = message(1), message(2), message(3)
    for m in (first, second, third):
        order.admit(m, FIRST, done_to(0))
    assert order.finished(second) is None
    assert order.finished(first) is second


def test_one_that_is_tried_again_keeps_its_key(order: KeyOrder) -> None:
    """It is the same message: nothing is said of it here, so nothing of its key goes before it."""
    first, second = message(1), message(2)
    order.admit(first, FIRST, done_to(0))
    assert not order.admit(second, FIRST, done_to(0))
    assert order.finished(first) is second
    assert order.finished(first) is None, "its outcome counts once"
    assert order.finished(second) is None


def test_a_keyed_message_waits_until_its_gate_is_open(order: KeyOrder) -> None:
    first, second = message(11), message(12)
    gate = Gate(2, 11, 0)
    assert not order.admit(first, gate, done_to(9))
    assert not order.admit(second, gate, done_to(9))
    assert order.released(done_to(9)) == []
    assert order.released(done_to(10)) == [first, second]
    assert order.released(done_to(10)) == [], "each is released once"
    assert order.admit(first, gate, done_to(10))


def test_each_gate_opens_by_itself_and_older_ones_are_released_first(order: KeyOrder) -> None:
    gates = [Gate(3, 21, 7), Gate(2, 11, 7), Gate(2, 11, 8)]
    waiting = [message(21, "a"), message(11, "a"), message(12, "b")]
    for held, gate in zip(waiting, gates, strict=True):
        assert not order.admit(held, gate, lambda _gate: False)
    assert order.released(lambda gate: gate.shard == 8) == [waiting[2]]
    assert order.released(lambda gate: gate.shard == 7) == [waiting[1], waiting[0]]


def test_a_key_whose_current_message_another_receiver_has_done_goes_on_with_the_first_that_is_open(
    order: KeyOrder,
) -> None:
    first, second, third, fourth = (message(n) for n in (1, 2, 3, 4))
    for m in (first, second, third, fourth):
        order.admit(m, FIRST, done_to(0))
    assert order.overtaken(2) == [third]
    assert order.finished(third) is fourth
    order.check_invariants()


def test_a_key_of_which_everything_was_overtaken_is_free(order: KeyOrder) -> None:
    order.admit(message(1), FIRST, done_to(0))
    order.admit(message(2), FIRST, done_to(0))
    assert order.overtaken(2) == []
    assert order.admit(message(3), FIRST, done_to(2))
    order.check_invariants()


def test_a_current_message_that_is_still_open_is_not_overtaken(order: KeyOrder) -> None:
    order.admit(message(5), FIRST, done_to(0))
    assert order.overtaken(4) == []
    assert not order.admit(message(6), FIRST, done_to(4))


class Keys(RuleBasedStateMachine):
    """Messages come in the order of the stream, in segments of five; whatever may start, starts."""

    def __init__(self) -> None:
        super().__init__()
        self.order = KeyOrder()
        self.sequence = 0
        self.done_to = 0
        self.running: dict[str, Message] = {}
        self.started: dict[str, list[int]] = {}
        self.open: set[int] = set()

    def start(self, message: Message) -> None:
        key = cast(str, message.key)
        assert key not in self.running, "two of a key at once"
        assert message.sequence not in self.started.get(key, ()), "one was started twice"
        self.running[key] = message
        self.started.setdefault(key, []).append(message.sequence)

    def gate(self, sequence: int) -> Gate:
        segment = (sequence - 1) // 5
        return Gate(segment, 5 * segment + 1, 0)

    def is_open(self, gate: Gate) -> bool:
        return gate.at <= self.done_to + 1

    @rule(key=st.sampled_from("ab"))
    def come(self, key: str) -> None:
        self.sequence += 1
        self.open.add(self.sequence)
        arrived = message(self.sequence, key)
        if self.order.admit(arrived, self.gate(self.sequence), self.is_open):
            self.start(arrived)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        ended = self.running.pop(key)
        self.open.discard(ended.sequence)
        following = self.order.finished(ended)
        if following is not None:
            self.start(following)

    @rule()
    def hear_what_is_done(self) -> None:
        self.done_to = min(self.open, default=self.sequence + 1) - 1
        for released in self.order.released(self.is_open):
            if self.order.admit(released, self.gate(released.sequence), self.is_open):
                self.start(released)

    @invariant()
    def each_key_is_in_order(self) -> None:
        self.order.check_invariants()
        for sequences in self.started.values():
            assert sequences == sorted(sequences)

    def teardown(self) -> None:
        """Nothing is forgotten: in the end all of it was started."""
        for _ in range(2 * self.sequence + 2):
            for key in list(self.running):
                ended = self.running.pop(key)
                self.open.discard(ended.sequence)
                following = self.order.finished(ended)
                if following is not None:
                    self.start(following)
            self.hear_what_is_done()
        assert not self.open


TestKeys = Keys.TestCase
TestKeys.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


# --- with due times -----------------------------------------------------------------------------------------------


def test_a_message_with_a_due_time_waits_for_no_gate() -> None:
    order = KeyOrder()
    assert order.admit(message(11, due_at=5.0), Gate(2, 11, 0), lambda _gate: False)


def test_a_message_with_a_due_time_is_never_handled_together_with_another_of_its_key() -> None:
    order = KeyOrder()
    later, plain = message(1, due_at=5.0), message(2)
    assert order.admit(plain, FIRST, done_to(0))
    assert not order.admit(later, FIRST, done_to(0))
    assert order.finished(plain) is later
    assert not order.admit(message(3), FIRST, done_to(0))
    order.check_invariants()


def test_an_open_gate_says_that_a_message_of_an_older_segment_was_done_by_another() -> None:
    """Its lane was lost while it was in hand: what comes in the new segment does not wait for it."""
    order = KeyOrder()
    stale, fresh, following = message(5), message(11), message(12)
    assert order.admit(stale, FIRST, done_to(0))
    assert order.admit(fresh, Gate(2, 11, 0), lambda _gate: True)
    assert not order.admit(following, Gate(2, 11, 0), lambda _gate: True)
    assert order.finished(stale) is None, "it holds nothing any more"
    assert order.finished(fresh) is following


def test_whatever_waited_behind_an_overtaken_message_still_comes_up() -> None:
    order = KeyOrder()
    stale, later, fresh = message(5), message(7, due_at=1.0), message(11)
    assert order.admit(stale, FIRST, done_to(0))
    assert not order.admit(later, FIRST, done_to(0))
    assert order.admit(fresh, Gate(2, 11, 0), lambda _gate: True), "nobody else would start it"
    assert order.finished(fresh) is later
    order.check_invariants()


def test_an_open_gate_says_nothing_of_a_message_with_a_due_time() -> None:
    order = KeyOrder()
    assert order.admit(message(5, due_at=1.0), FIRST, done_to(0))
    assert not order.admit(message(11), Gate(2, 11, 0), lambda _gate: True), "it is in hand here"
