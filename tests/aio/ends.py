"""What the tests of senders and receivers share: awaiting, workers that handle what comes, strangers, both loops."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

import pytest
import uvloop

import rvq

T = TypeVar("T")

PATIENCE_S = 20.0
"""For everything that must come to pass. Long, because a busy machine is not a fault of rvq."""

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


async def soon(what: Awaitable[T]) -> T:
    """Its result; fails if it takes too long."""
    return await asyncio.wait_for(what, PATIENCE_S)


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Returns as soon as the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.002)


async def stays(condition: Callable[[], object], seconds: float = 0.3) -> None:
    """Fails as soon as the condition does not hold: for what must not come to pass."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        assert condition()
        await asyncio.sleep(0.005)


async def take(receiver: rvq.Receiver, count: int) -> list[rvq.Message]:
    """So many messages. Under auto all but the last are done then."""
    return [await soon(anext(receiver)) for _ in range(count)]


async def taken(receiver: rvq.Receiver, count: int) -> list[rvq.Message]:
    """So many messages, each acknowledged: for `ack="manual"`."""
    messages = []
    for _ in range(count):
        messages += await take(receiver, 1)
        messages[-1].ack()
    return messages


async def bodies(receiver: rvq.Receiver, count: int) -> list[Any]:
    return [message.body for message in await take(receiver, count)]


async def members(receivers: Iterable[rvq.Receiver], count: int) -> None:
    """Until each of them sees that many members."""
    every = list(receivers)
    await until(lambda: all(r.table is not None and len(r.table.members) == count for r in every))


class Worker:
    """An open receiver and a task that handles what it gets, until the block is left."""

    def __init__(self, bus: rvq.Bus, label: str = "work", *, work_s: float = 0.0, **options: Any) -> None:
        self.receiver = rvq.Receiver(label, bus=bus, **options)
        self.messages: list[rvq.Message] = []
        self._work_s = work_s
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Worker:
        await self.receiver.__aenter__()
        self._task = asyncio.create_task(self._handle())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.receiver.__aexit__(kind, error, traceback)

    async def _handle(self) -> None:
        async for message in self.receiver:
            self.messages.append(message)
            if self._work_s:
                await asyncio.sleep(self._work_s)

    @property
    def bodies(self) -> list[Any]:
        return [message.body for message in self.messages]

    async def ended(self) -> None:
        """Until its loop is over."""
        assert self._task is not None
        await soon(asyncio.shield(self._task))


class Stranger:
    """Sends any bytes to a label's addresses, and overhears what is sent there."""

    def __init__(self, bus: rvq.Bus, label: str = "work") -> None:
        self._targets = [(address(label), bus.port) for address in (bus.data_address, bus.control_address)]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._ears = [self._listen(target) for target in self._targets]

    @staticmethod
    def _listen(target: tuple[str, int]) -> socket.socket:
        ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ear.bind(target)
        loopback = socket.inet_aton("127.0.0.1")
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(target[0]) + loopback)
        ear.setblocking(False)
        return ear

    def send(self, datagram: bytes) -> None:
        """To both addresses."""
        for target in self._targets:
            self._socket.sendto(datagram, target)

    def overhear(self) -> list[bytes]:
        """Everything since the last time that others sent."""
        mine = self._socket.getsockname()[1]
        heard = []
        for ear in self._ears:
            with suppress(BlockingIOError):
                while True:
                    datagram, (_, port) = ear.recvfrom(65536)
                    if port != mine:
                        heard.append(datagram)
        return heard

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._socket, *self._ears):
            sock.close()


def open_sockets() -> set[str]:
    """The sockets of this process, as the kernel names them."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:"):
                found.add(target)
    return found


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test under asyncio's own loop and under uvloop; what a callback raises fails it."""

    def run(loop_name: str, **fixtures: Any) -> None:
        faults: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: faults.append(context))
            runner.run(_leaving_nothing(test(**fixtures)))
        assert not faults

    loop_name = inspect.Parameter("loop_name", inspect.Parameter.KEYWORD_ONLY)
    fixtures = inspect.signature(test).parameters.values()
    run.__signature__ = inspect.Signature([*fixtures, loop_name])  # type: ignore[attr-defined]
    run.__name__ = test.__name__
    return pytest.mark.parametrize("loop_name", LOOPS)(run)


async def _leaving_nothing(test: Coroutine[Any, Any, None]) -> None:
    await asyncio.wait_for(test, 2 * PATIENCE_S)
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def cancelled_after(turns: int, work: Coroutine[Any, Any, Any]) -> bool:
    """Cancels some work after so many turns of the loop. False if it was over by then."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    was_running = task.cancel()
    with suppress(asyncio.CancelledError):
        await soon(task)
    return was_running
