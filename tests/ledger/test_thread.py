"""Steps in a thread, and what a cancellation waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rvq.ledger.thread import StepThread


async def test_a_step_returns_and_raises_what_it_does() -> None:
    thread = StepThread("rvq-ledger-test")
    assert await thread.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert await thread.run(threading.get_ident) != threading.get_ident()
    thread.end()


@pytest.mark.parametrize("cancellations", [1, 3])
async def test_a_cancelled_caller_gets_on_only_when_its_step_has_ended(cancellations: int) -> None:
    thread = StepThread("rvq-ledger-test")
    begun, may_end, hurried = threading.Event(), threading.Event(), threading.Event()

    def step() -> None:
        begun.set()
        may_end.wait(30)
        raise ValueError("what a step that was hurried says is not of interest")

    task = asyncio.create_task(thread.run(step, hurried.set))
    await asyncio.to_thread(begun.wait, 30)
    for _ in range(cancellations):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert hurried.is_set()
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    thread.end()


async def test_steps_run_in_the_order_of_asking() -> None:
    thread, order = StepThread("rvq-ledger-test"), list[int]()
    await asyncio.gather(*(thread.run(lambda number=number: order.append(number)) for number in range(20)))  # type: ignore[misc]
    assert order == list(range(20))
    thread.end()
