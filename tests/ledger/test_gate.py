"""Places that tasks and threads take in order."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rvq.errors import LedgerError
from rvq.ledger.gate import Gate


def open_gate(places: int = 1) -> Gate:
    gate = Gate(places)
    gate.open()
    return gate


async def turn() -> None:
    """Long enough for all tasks that can go on to do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_are_inside_than_there_are_places() -> None:
    gate, inside, most = open_gate(3), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        who = await gate.enter()
        inside += 1
        most = max(most, inside)
        await turn()
        inside -= 1
        gate.leave(who)

    await asyncio.gather(*(visit() for _ in range(20)))
    assert (inside, most) == (0, 3)


async def test_tasks_and_threads_enter_in_the_order_of_asking() -> None:
    gate, order = open_gate(), list[int]()
    waiting = gate._waiting
    first = await gate.enter()

    async def visit(number: int) -> None:
        who = await gate.enter()
        order.append(number)
        gate.leave(who)

    def visit_blocking(number: int) -> None:
        who = gate.enter_blocking()
        order.append(number)
        gate.leave(who)

    visits: list[asyncio.Task[None]] = []
    for number in range(10):
        visit_somehow = visit(number) if number % 2 else asyncio.to_thread(visit_blocking, number)
        visits.append(asyncio.create_task(visit_somehow))  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            while len(waiting) <= number:
                await asyncio.sleep(0.001)
    gate.leave(first)
    await asyncio.gather(*visits)
    assert order == list(range(10))


async def test_who_is_cancelled_while_waiting_is_passed_over() -> None:
    gate = open_gate()
    first = await gate.enter()
    cancelled, following = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
    await turn()
    cancelled.cancel()
    await asyncio.wait({cancelled})
    gate.leave(first)
    gate.leave(await following)


async def test_a_place_that_came_together_with_a_cancellation_goes_to_the_next() -> None:
    gate = open_gate()
    first = await gate.enter()
    cancelled, following = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
    await turn()
    gate.leave(first)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    assert cancelled.cancelled()
    gate.leave(await following)


async def test_one_task_does_not_wait_for_itself() -> None:
    gate = open_gate(2)
    who = await gate.enter()
    with pytest.raises(LedgerError, match="end that block before another"):
        await gate.enter()
    gate.leave(who)
    gate.leave(await gate.enter())


def test_one_thread_does_not_wait_for_itself() -> None:
    gate = open_gate()
    who = gate.enter_blocking()
    with pytest.raises(LedgerError, match="end that block before another"):
        gate.enter_blocking()
    gate.leave(who)


async def test_closing_turns_away_who_waits_and_awaits_who_is_inside() -> None:
    gate = open_gate()
    inside = asyncio.Event()

    async def stay() -> None:
        who = await gate.enter()
        await inside.wait()
        gate.leave(who)

    staying = asyncio.create_task(stay())
    await turn()
    waiting = asyncio.create_task(gate.enter())
    blocking = asyncio.create_task(asyncio.to_thread(gate.enter_blocking))
    async with asyncio.timeout(10):
        while len(gate._waiting) < 2:
            await asyncio.sleep(0.001)
    closing = asyncio.create_task(gate.close())
    for turned_away in (waiting, blocking):
        with pytest.raises(LedgerError, match="not open"):
            await turned_away
    assert not closing.done()
    inside.set()
    await closing
    await staying
    with pytest.raises(LedgerError, match="not open"):
        await gate.enter()
    gate.open()
    gate.leave(await gate.enter())


async def test_a_closed_gate_closes_at_once() -> None:
    await Gate(1).close()


def test_threads_alone_never_exceed_the_places() -> None:
    gate, lock, inside, most = open_gate(2), threading.Lock(), 0, 0

    def visit() -> None:
        nonlocal inside, most
        for _ in range(200):
            who = gate.enter_blocking()
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1
            gate.leave(who)

    threads = [threading.Thread(target=visit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert inside == 0
    assert most <= 2
