"""Senders and receivers without a bus: what a command does with them is seen, and what they answer is chosen."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterable
from types import SimpleNamespace, TracebackType
from typing import Any

from rvq.cli.words import Words
from rvq.errors import NotDelivered


class FakeSender:
    """Takes everything. Each flush ends `done_per_flush` messages, or all."""

    def __init__(self, *, done_per_flush: int | None = None, waiting_for: str | None = None) -> None:
        self.sent: list[tuple[str | None, list[Any]]] = []
        self.options: list[dict[str, Any]] = []
        self.stats = SimpleNamespace(inserted=0)
        self.undone = 0
        self.waiting_for = waiting_for
        self.left_with: type[BaseException] | None = None
        self._done_per_flush = done_per_flush

    async def send(self, body: Any, *, key: Any = None, **options: Any) -> None:
        await self.send_many([body], key=key, **options)

    def is_done(self, number: int) -> bool:
        """The first are done first."""
        return number <= self.stats.inserted - self.undone

    async def send_many(self, bodies: Iterable[Any], *, key: str | None = None, **options: Any) -> None:
        bodies = list(bodies)
        self.sent.append((key, bodies))
        self.options.append(options)
        self.stats.inserted += len(bodies)
        self.undone += len(bodies)

    async def flush(self, timeout: float | None = None) -> None:
        done = self.undone if self._done_per_flush is None else self._done_per_flush
        self.undone = max(0, self.undone - done)
        if self.undone:
            await asyncio.sleep(timeout or 0)
            raise NotDelivered(self.undone)

    async def __aenter__(self) -> FakeSender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.left_with = kind

    @property
    def bodies(self) -> list[Any]:
        return [body for _, bodies in self.sent for body in bodies]


class FakeMessage:
    """Remembers what became of it."""

    def __init__(self, body: Any, number: int, receiver: FakeReceiver) -> None:
        self.body = body
        self.id = f"00000000000000ff-{number}"
        self.attempt = 1
        self.label = "work"
        self.key: Any = None
        self.headers: dict[str, Any] | None = None
        self.sent_at = 1_000_000_000.0
        self.lost = asyncio.Event()
        self.outcome = ""
        self.delays: list[float] = []
        self._receiver = receiver

    def ack(self) -> None:
        self.outcome = "done"

    def retry(self, delay: float = 0.0) -> None:
        self.outcome = "retried"
        self.delays.append(delay)
        self.attempt += 1
        self._receiver.give(self)

    def bury(self, error: str, *, trace: str = "", attempts: int = 0) -> None:
        self.outcome = f"buried after {attempts}: {error}"


class FakeReceiver:
    """Gives out what it is given, and ends when it is left. With `auto`, asking for more acknowledges."""

    def __init__(self, bodies: Iterable[Any] = (), *, auto: bool = False) -> None:
        self._auto = auto
        self._in_hand: list[FakeMessage] = []
        self.messages = [FakeMessage(body, number, self) for number, body in enumerate(bodies, 1)]
        self._waiting = [*self.messages]
        self._changed = asyncio.Event()
        self._is_left = False
        self.asked = 0

    def give(self, message: FakeMessage) -> None:
        self._waiting.append(message)
        self._changed.set()

    def leave(self) -> None:
        self._is_left = True
        self._changed.set()

    def settle(self) -> None:
        """As when its block is left without an exception."""
        for message in self._in_hand:
            message.ack()
        self._in_hand = []

    async def batches(self, max: int = 500) -> AsyncIterator[list[FakeMessage]]:
        while True:
            self.settle()
            if self._waiting:
                batch, self._waiting = self._waiting[:max], self._waiting[max:]
                self._in_hand = batch if self._auto else []
                yield batch
            elif self._is_left:
                return
            else:
                self._changed.clear()
                await self._changed.wait()

    async def __aiter__(self) -> AsyncIterator[FakeMessage]:
        async for batch in self.batches(max=1):
            self.asked += 1
            yield batch[0]


def overheard() -> tuple[Words, io.StringIO]:
    """Words, and what was said."""
    stream = io.StringIO()
    return Words(stream), stream
