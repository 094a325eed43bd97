"""What a receiver remembers of orders, and which word on a pause counts."""

from __future__ import annotations

from random import Random

from rvq.core.orders import Orders
from rvq.limits import ORDERS_REMEMBERED_MAX
from rvq.wire.frames import NO_PAUSE, Order, OrderKind, OrderOutcome, Pause


def order(what: OrderKind, counter: int, source: int = 7, nonce: int = 1) -> Order:
    return Order(source, "work", "default", 0, nonce, what, 0, counter, "ops")


def test_a_newcomer_rests_until_it_knows_that_there_is_no_pause() -> None:
    orders = Orders()
    assert orders.rests and not orders.pause.paused
    orders.asked = True
    assert not orders.rests


def test_the_newer_word_counts_whatever_came_first() -> None:
    words = [Pause(1, 5, True), Pause(2, 3, False), Pause(2, 9, True), NO_PAUSE]
    for seed in range(20):
        orders = Orders()
        Random(seed).shuffle(words)
        for word in words:
            orders.hear(word)
        assert orders.pause == Pause(2, 9, True)


def test_only_what_changes_the_pause_is_news() -> None:
    orders = Orders()
    assert orders.hear(Pause(1, 5, True))
    assert not orders.hear(Pause(1, 5, True))
    assert not orders.hear(Pause(2, 5, True))
    assert not orders.hear(Pause(1, 9, False))
    assert orders.hear(Pause(3, 1, False))


def test_an_order_is_carried_out_was_so_or_is_overruled() -> None:
    orders = Orders()
    assert orders.set_pause(order(OrderKind.PAUSE, 1)) is OrderOutcome.CARRIED_OUT
    assert orders.set_pause(order(OrderKind.PAUSE, 2)) is OrderOutcome.WAS_SO
    assert orders.set_pause(order(OrderKind.RESUME, 1)) is OrderOutcome.OVERRULED
    assert orders.pause.paused
    assert orders.set_pause(order(OrderKind.RESUME, 3)) is OrderOutcome.CARRIED_OUT
    assert not orders.pause.paused


def test_answers_are_remembered_by_who_asked_and_are_bounded() -> None:
    orders = Orders()
    orders.remember(order(OrderKind.PAUSE, 1, source=7), OrderOutcome.REFUSED)
    assert orders.answered(order(OrderKind.PAUSE, 1, source=7)) is OrderOutcome.REFUSED
    assert orders.answered(order(OrderKind.PAUSE, 1, source=8)) is None
    for nonce in range(2, ORDERS_REMEMBERED_MAX + 2):
        orders.remember(order(OrderKind.PAUSE, 1, nonce=nonce), OrderOutcome.WAS_SO)
        orders.check_invariants()
    assert orders.answered(order(OrderKind.PAUSE, 1, source=7)) is None
