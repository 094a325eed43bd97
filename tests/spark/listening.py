"""A receiver in a thread of its own, for tests whose senders are Spark's."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any

from rvq.aio.receiver import Receiver
from rvq.bus import Bus


class Listening:
    """Everything that comes to a label, while the block lasts."""

    def __init__(self, bus: Bus, label: str = "work") -> None:
        self._bus, self._label = bus, label
        self.messages: list[Any] = []
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._listen()))

    @property
    def bodies(self) -> list[Any]:
        return [message.body for message in self.messages]

    async def _listen(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with Receiver(self._label, bus=self._bus) as receiver:
            self._ready.set()
            stopped = asyncio.ensure_future(self._stop.wait())
            taking = asyncio.ensure_future(self._take(receiver))
            await asyncio.wait({stopped, taking}, return_when=asyncio.FIRST_COMPLETED)
            taking.cancel()

    async def _take(self, receiver: Receiver) -> None:
        async for message in receiver:
            self.messages.append(message)

    def __enter__(self) -> Listening:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
