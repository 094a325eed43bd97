"""A sender in a thread of its own, for tests whose receivers are Spark's."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from types import TracebackType

from rvq.aio.sender import Sender
from rvq.bus import Bus

PAUSE_S = 0.02
"""Between bursts, so that a test may last without a flood."""
BURST = 10


class Talking:
    """Texts 0, 1, 2 … to a label, one after the other, until it is told to finish."""

    def __init__(self, bus: Bus, label: str = "work") -> None:
        self._bus, self._label = bus, label
        self._sender: Sender | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._finishing = False
        self._sent: list[str] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def undone(self) -> int:
        """Messages of which nobody has said yet that they are done."""
        assert self._sender is not None
        return self._sender.undone

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._send())

    async def _send(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        async with Sender(self._label, bus=self._bus, linger=600) as self._sender:
            self._ready.set()
            while not self._finishing:
                texts = [f"{len(self._sent) + n}" for n in range(BURST)]
                await self._sender.send_many(texts)
                self._sent += texts
                await asyncio.sleep(PAUSE_S)

    def wait_for_done(self, count: int, patience: float) -> None:
        """Until so many are done."""
        end = time.monotonic() + patience
        while len(self._sent) - self.undone < count:
            assert time.monotonic() < end, f"{self.undone} of {len(self._sent)} are not done"
            time.sleep(0.01)

    def finish(self, patience: float) -> list[str]:
        """What was sent, when all of it is done."""
        self._finishing = True
        self._thread.join(patience)
        assert not self._thread.is_alive(), f"{self.undone} messages are not done"
        return self._sent

    def __enter__(self) -> Talking:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive() and self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(20)
