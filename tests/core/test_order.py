"""One key at a time, in order: against a plain list of what was sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rvq.core.order import KeyOrder
from rvq.message import Message, Origin, RichMessage


def message(sequence: int, key: str | bytes = "k") -> Message:
    origin = cast(Origin, SimpleNamespace(stream=7, label="work", sequence_of=lambda place: place))
    return RichMessage("body", origin, sequence, key, None)


@pytest.fixture
def order() -> KeyOrder:
    return KeyOrder()


def test_the_first_of_a_key_may_start_and_the_next_one_waits_for_it(order: KeyOrder) -> None:
    first, second = message(1), message(2)
    assert order.admit(first, 0, 0)
    assert not order.admit(second, 0, 0)
    assert order.finished(first) is second
    assert order.finished(second) is None
    order.check_invariants()


def test_a_key_that_is_free_again_is_taken_at_once(order: KeyOrder) -> None:
    first, second = message(1), message(2)
    order.admit(first, 0, 0)
    order.finished(first)
    assert order.admit(second, 0, 0)


def test_other_keys_do_not_wait(order: KeyOrder) -> None:
    assert order.admit(message(1, "a"), 0, 0)
    assert order.admit(message(2, "b"), 0, 0)
    assert order.admit(message(3, b"a"), 0, 0), "text and bytes are different keys"


def test_three_of_a_key_come_in_order(order: KeyOrder) -> None:
    first, second, third = message(1), message(2), message(3)
    assert [order.admit(m, 0, 0) for m in (first, second, third)] == [True, False, False]
    assert order.finished(first) is second
    assert order.finished(second) is third
    order.check_invariants()


def test_finishing_one_that_is_not_the_current_one_frees_nothing(order: KeyOrder) -> None:
    first, second, third = message(1), message(2), message(3)
    for m in (first, second, third):
        order.admit(m, 0, 0)
    assert order.finished(second) is None
    assert order.finished(first) is second


def test_one_that_is_tried_again_keeps_its_key(order: KeyOrder) -> None:
    """It is the same message: nothing is said of it here, so nothing of its key goes before it."""
    first, second = message(1), message(2)
    order.admit(first, 0, 0)
    assert not order.admit(second, 0, 0)
    assert order.finished(first) is second
    assert order.finished(first) is None, "its outcome counts once"
    assert order.finished(second) is None


def test_a_keyed_message_waits_until_the_older_segments_are_done(order: KeyOrder) -> None:
    first, second = message(11), message(12)
    assert not order.admit(first, 10, 9)
    assert not order.admit(second, 10, 9)
    assert order.released(9) == []
    assert order.released(10) == [first, second]
    assert order.released(10) == [], "each is released once"
    assert order.admit(first, 10, 10)


def test_what_was_done_meanwhile_is_not_released(order: KeyOrder) -> None:
    done, open_ = message(11), message(13)
    order.admit(done, 10, 5)
    order.admit(open_, 10, 5)
    assert order.released(12) == [open_]


def test_a_key_whose_current_message_another_receiver_has_done_goes_on_with_the_first_that_is_open(
    order: KeyOrder,
) -> None:
    first, second, third, fourth = (message(n) for n in (1, 2, 3, 4))
    for m in (first, second, third, fourth):
        order.admit(m, 0, 0)
    assert order.overtaken(2) == [third]
    assert order.finished(third) is fourth
    order.check_invariants()


def test_a_key_of_which_everything_was_overtaken_is_free(order: KeyOrder) -> None:
    order.admit(message(1), 0, 0)
    order.admit(message(2), 0, 0)
    assert order.overtaken(2) == []
    assert order.admit(message(3), 0, 2)
    order.check_invariants()


def test_a_current_message_that_is_still_open_is_not_overtaken(order: KeyOrder) -> None:
    order.admit(message(5), 0, 0)
    assert order.overtaken(4) == []
    assert not order.admit(message(6), 0, 4)


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

    def after(self, sequence: int) -> int:
        return (sequence - 1) // 5 * 5

    @rule(key=st.sampled_from("ab"))
    def come(self, key: str) -> None:
        self.sequence += 1
        self.open.add(self.sequence)
        arrived = message(self.sequence, key)
        if self.order.admit(arrived, self.after(self.sequence), self.done_to):
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
        for released in self.order.released(self.done_to):
            if self.order.admit(released, self.after(released.sequence), self.done_to):
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
