"""Printing: written first, then acknowledged, and no more than asked for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from rvq.cli.bodies import lines_of
from rvq.cli.output import Output
from rvq.cli.printer import BATCH, Printer
from rvq.cli.quiet import Quiet
from tests.cli.fakes import FakeReceiver


class FakeOutput:
    """Keeps what is written, and looks at who is acknowledged by then."""

    def __init__(self, receiver: FakeReceiver) -> None:
        self._receiver = receiver
        self.written: list[bytes] = []
        self.done_before: list[int] = []

    async def write(self, data: bytes) -> None:
        self.done_before.append(sum(message.outcome == "done" for message in self._receiver.messages))
        self.written.append(data)


def printer(receiver: FakeReceiver, output: Any, count: int | None = None, idle: float | None = None) -> Printer:
    quiet = Quiet(idle, receiver.leave)
    return Printer(cast(Any, receiver), cast(Output, output), lines_of, quiet, count)


def done(receiver: FakeReceiver) -> list[Any]:
    return [message.body for message in receiver.messages if message.outcome == "done"]


async def test_nothing_is_acknowledged_before_it_is_written() -> None:
    receiver = FakeReceiver(map(str, range(2 * BATCH)), auto=True)
    receiver.leave()
    output = FakeOutput(receiver)
    await printer(receiver, output).run()
    assert output.done_before == [0, BATCH]
    assert b"".join(output.written).split() == [message.body.encode() for message in receiver.messages]
    assert len(done(receiver)) == 2 * BATCH


@pytest.mark.parametrize("count", [1, 3, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 7])
async def test_no_more_are_taken_than_asked_for(count: int) -> None:
    receiver = FakeReceiver(map(str, range(3 * BATCH)), auto=True)
    output = FakeOutput(receiver)
    await printer(receiver, output, count).run()
    receiver.settle()
    assert b"".join(output.written).count(b"\n") == count == len(done(receiver))


async def test_fewer_than_asked_for_end_with_the_receiver() -> None:
    receiver = FakeReceiver("ab", auto=True)
    receiver.leave()
    await printer(receiver, FakeOutput(receiver), 5).run()
    assert done(receiver) == ["a", "b"]


async def test_what_could_not_be_written_is_not_acknowledged() -> None:
    class Broken(FakeOutput):
        async def write(self, data: bytes) -> None:
            raise BrokenPipeError

    receiver = FakeReceiver("ab", auto=True)
    with pytest.raises(BrokenPipeError):
        await printer(receiver, Broken(receiver)).run()
    assert done(receiver) == []


async def test_quiet_leaves() -> None:
    receiver = FakeReceiver("ab", auto=True)
    await asyncio.wait_for(printer(receiver, FakeOutput(receiver), idle=0.01).run(), 5)
    assert done(receiver) == ["a", "b"]


async def test_a_slow_write_is_not_quiet() -> None:
    class Slow(FakeOutput):
        async def write(self, data: bytes) -> None:
            await asyncio.sleep(0.05)
            assert not self._receiver._is_left
            await super().write(data)

    receiver = FakeReceiver("a", auto=True)
    await asyncio.wait_for(printer(receiver, Slow(receiver), idle=0.01).run(), 5)
    assert done(receiver) == ["a"]
