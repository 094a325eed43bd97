"""`rvq.consume`: a handler for each message. Owns the workers, and when an error is tried again or given up."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, Literal

from rvq.aio.driver import logger
from rvq.aio.receiver import Receiver, mark_of
from rvq.aio.tracing import in_use
from rvq.bus import Bus
from rvq.core.retries import Backoff
from rvq.core.table import TableView
from rvq.dead import dead_label
from rvq.errors import AlreadyDone, BadArgument
from rvq.ledger.ledger import Ledger
from rvq.message import Message
from rvq.names import check_label

Handler = Callable[[Message], Awaitable[Any]] | Callable[[Message], Any]
OnLost = Literal["cancel", "tell"]

ATTEMPTS = 5
"""Before a message is given up, unless told."""

LOOK_S = 0.05
"""Between two looks whether what is being handled is still ours."""


async def consume(
    label: str,
    handler: Handler,
    *,
    group: str = "default",
    concurrency: int = 1,
    attempts: int = ATTEMPTS,
    backoff: Backoff | None = None,
    ledger: Ledger | None = None,
    on_lost: OnLost = "cancel",
    hand_over: bool = True,
    weight: int = 1,
    bus: Bus | None = None,
    stop: asyncio.Event | None = None,
    on_table: Callable[[TableView], None] | None = None,
    from_journal: str | Path | None = None,
) -> None:
    """Call `handler(message)` for each message of `label` that is ours, until it is cancelled or `stop` is set.

    A coroutine function runs in the loop, a plain one in a thread. A message is done when its handler returns. If it
    raises, the message is tried again at once, then after growing pauses, `attempts` times in all; then it goes to the
    label `<label>.dead`. So does one whose handlers ended their process that often.

    concurrency: handlers at a time; only what they have time for is taken.
    backoff: the pauses, `rvq.Backoff(first=0.2, factor=2, most=30, jitter=0.5)`.
    ledger: `message.transaction()` writes to it; what is marked there is acknowledged without calling the handler. It
        is opened, and closed again, unless it is open.
    on_lost: when a message is no longer ours (the lease is over), "cancel" its handler, or "tell" by `message.lost`.
        Under "cancel" one that saw that and returns has given up; under "tell" it has done its work, unless it raises
        or calls `message.retry()`.
    hand_over: give what waits here for long to a receiver of the group that has nothing to do.
    from_journal: a journal's folder: also what was recorded before the group came, as of `Receiver`.
    stop: when it is set, what is ours is finished, and `consume` returns. If cancelled, handlers are cancelled, and
        what they had begun is handled elsewhere; plain functions cannot be cancelled, and are waited for.
    """
    consumer = Consumer(
        Receiver(
            label,
            group=group,
            weight=weight,
            ack="manual",
            bus=bus,
            on_table=on_table,
            ledger=ledger,
            tracked=True,
            hand_over=hand_over,
            from_journal=from_journal,
        ),
        handler,
        concurrency=_at_least_one("concurrency", concurrency),
        attempts=_at_least_one("attempts", attempts),
        backoff=backoff if backoff is not None else Backoff(),
        on_lost=on_lost,
    )
    check_label(dead_label(label) or label)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise BadArgument(f"ledger={ledger!r:.60} is not a ledger: give rvq.Ledger.sqlite('file.db')")
    if stop is not None and not isinstance(stop, asyncio.Event):
        raise BadArgument(f"stop={stop!r:.60} is not an asyncio.Event: make one, and set it to stop")
    async with AsyncExitStack() as stack:
        if ledger is not None and not ledger.is_open:
            await stack.enter_async_context(ledger)
        await stack.enter_async_context(consumer.receiver)
        if stop is not None:
            stopping = asyncio.create_task(_leave_at(stop, consumer.receiver))
            stack.callback(stopping.cancel)
        await consumer.run()


async def _leave_at(stop: asyncio.Event, receiver: Receiver) -> None:
    await stop.wait()
    receiver.leave()


class Consumer:
    """Hands messages of a receiver to a handler, so many at a time."""

    def __init__(
        self,
        receiver: Receiver,
        handler: Handler,
        *,
        concurrency: int,
        attempts: int,
        backoff: Backoff,
        on_lost: OnLost = "cancel",
    ) -> None:
        if not callable(handler):
            raise BadArgument(f"handler={handler!r:.60} cannot be called: give a function of the message")
        if _makes_generators(handler):
            raise BadArgument(_GENERATOR.format(what=f"handler={_name_of(handler)}"))
        if not _takes_a_message(handler):
            raise BadArgument(f"handler={_name_of(handler)} does not take one message: give a function of the message")
        if on_lost not in ("cancel", "tell"):
            raise BadArgument(f'on_lost={on_lost!r} is not known: give "cancel" or "tell"')
        if not isinstance(backoff, Backoff):
            raise BadArgument(f"backoff={backoff!r:.60} is not known: give rvq.Backoff(first=…, most=…)")
        self.receiver = receiver
        self._handler = handler
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004  # an object whose call is a coroutine function
        )
        tracing = in_use()
        if tracing is not None:
            self._handler = tracing.handling(handler, is_async=self._is_async)
        self._concurrency, self._attempts, self._backoff, self._on_lost = concurrency, attempts, backoff, on_lost
        self._random = Random()
        self._running: dict[asyncio.Task[None], Message] = {}
        self._lost: set[asyncio.Task[None]] = set()
        self._in_hand: set[Message] = set()
        """Those whose handlers run."""
        self._seen_lost: set[Message] = set()
        """Those of them whose handlers have looked, and seen that they are no longer ours."""
        self._in_threads: set[asyncio.Task[None]] = set()
        """Tasks whose plain functions run, which nobody can cancel."""
        receiver.when_seen_lost = self._note_seen_lost
        self._threads: ThreadPoolExecutor | None = None
        self._ending = False

    async def run(self) -> None:
        """Until the receiver has left."""
        watching = asyncio.create_task(self._watch())
        if not self._is_async:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="rvq-handler")
        try:
            while messages := await self.receiver.take(self._concurrency - len(self._running)):
                for message in messages:
                    self._start(message)
                if len(self._running) >= self._concurrency:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            if self._running:
                await asyncio.wait(self._running)
        finally:
            self._ending = True
            watching.cancel()
            try:
                await self._end_handlers()
            finally:
                if self._threads is not None:
                    self._threads.shutdown(wait=False, cancel_futures=True)

    async def _end_handlers(self) -> None:
        if self._running:
            self.receiver.leave()  # nothing new comes while the last of them end
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, message: Message) -> None:
        task = asyncio.create_task(self._handle(message))
        self._running[task] = message
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._lost.discard(task)

    async def _handle(self, message: Message) -> None:
        if message.attempt > self._attempts:
            tries = message.attempt - 1
            await self._bury(message, f"its receiver ended or was cut off at each of {tries} attempts", "", tries)
            return
        attempt = message.attempt
        try:
            if self.receiver.ledger is not None and await self.receiver.is_marked(message):
                handled = True
            elif self.receiver.is_lost(message):
                handled = False  # its process stood still, or its mark was looked for, for longer than the lease
            else:
                handled = await self._call(message)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # also a cancellation that is the handler's own
            if isinstance(error, AlreadyDone) and error.mark == mark_of(message):
                handled = True
            elif self._is_cancelled:
                handled = False
            else:
                await self._failed(message, attempt, error)
                return
        if message.attempt != attempt:
            return  # it has said itself that it is to be tried again, and perhaps it is being tried now
        if handled:
            message.ack()
        elif not self._ending:
            message.retry()  # in case it comes back to us

    @property
    def _is_cancelled(self) -> bool:
        """Was this task told to end its handler?"""
        return self._ending or (self._on_lost == "cancel" and asyncio.current_task() in self._lost)

    async def _call(self, message: Message) -> bool:
        """Has the handler done its work? One that was cancelled and returned all the same may not have."""
        self._in_hand.add(message)
        try:
            if self._threads is None:
                await self._handler(message)
            else:
                result, handled = await self._call_plain(self._threads, message)
                if not inspect.isawaitable(result):
                    return handled
                if self._is_cancelled:
                    getattr(result, "close", bool)()
                    return False
                await result  # a plain function that returned a coroutine, as a lambda may
            return not (self._is_cancelled or self._has_given_up(message))
        finally:
            self._in_hand.discard(message)
            self._seen_lost.discard(message)

    def _has_given_up(self, message: Message) -> bool:
        """Under "cancel", did its handler see that it is no longer ours? Then it has not gone on, as if cancelled."""
        return self._on_lost == "cancel" and message in self._seen_lost

    async def _call_plain(self, threads: ThreadPoolExecutor, message: Message) -> tuple[Any, bool]:
        """What a plain function returned, and whether it has done its work."""
        task = asyncio.current_task()
        assert task is not None
        self._in_threads.add(task)
        try:
            result = await self._call_in_thread(threads, message)
            if inspect.isawaitable(result):
                return result, False
            if inspect.isgenerator(result) or inspect.isasyncgen(result):
                raise BadArgument(_GENERATOR.format(what=f"what {_name_of(self._handler)} returned"))
            return result, await self._is_handled(message)
        finally:
            self._in_threads.discard(task)

    async def _is_handled(self, message: Message) -> bool:
        """A plain function has returned. If the message is another's by now, that one handles it.

        A process that was stopped cannot know yet whether it is, so it waits for word from the sender.
        """
        if self._on_lost == "tell":
            return True
        loop, receiver = asyncio.get_running_loop(), self.receiver
        gives_up_at = loop.time() + receiver.bus.orphan_for
        while not self._has_given_up(message):
            if not receiver.is_lost(message):
                return True
            if receiver.is_anothers(message) or loop.time() >= gives_up_at:
                return False
            await asyncio.sleep(LOOK_S)
        return False

    def _note_seen_lost(self, message: Message) -> None:
        """Called in the thread of whoever looked."""
        if message in self._in_hand:
            self._seen_lost.add(message)

    async def _call_in_thread(self, threads: ThreadPoolExecutor, message: Message) -> Any:
        """A thread cannot be cancelled: until it returns, its worker is taken and the message in its hands.

        Only who is cancelled twice goes without it.
        """
        future = asyncio.get_running_loop().run_in_executor(threads, _call, self._handler, message)
        was_cancelled = False
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                if was_cancelled:
                    future.add_done_callback(_look_at)
                    raise
                was_cancelled = True
        return future.result()

    async def _failed(self, message: Message, attempt: int, error: BaseException) -> None:
        said = _words(error)
        if message.attempt != attempt or self.receiver.is_settled(message):
            logger.warning(
                "%s of %s: its handler raised after its own verdict at attempt %d, which stands: %s",
                message.id,
                message.label,
                attempt,
                said,
            )
            return
        if self.receiver.is_lost(message):
            message.retry()
            return
        if attempt >= self._attempts:
            logger.error("%s of %s failed at attempt %d, and is given up: %s", message.id, message.label, attempt, said)
            await self._bury(message, said, "".join(traceback.format_exception(error)), attempt)
            return
        pause = self._backoff.pause(attempt, self._random)
        logger.warning(
            "%s of %s failed at attempt %d, again in %.1f s: %s", message.id, message.label, attempt, pause, said
        )
        message.retry(pause)

    async def _bury(self, message: Message, error: str, trace: str, attempts: int) -> None:
        """As soon as there is room for its letter: until then its worker takes nothing else."""
        letters = self.receiver.dead_letters
        if not letters.has_room:
            logger.warning("%s of %s waits: nobody takes its dead letters", message.id, message.label)
        try:
            while not (letters.has_room or self.receiver.leaving):
                await asyncio.sleep(LOOK_S)
        except asyncio.CancelledError:
            pass  # it is no longer ours, or we end: said below
        if self.receiver.is_lost(message):
            message.retry()
        elif letters.has_room or not self._ending:
            message.bury(error, trace=trace, attempts=attempts)

    async def _watch(self) -> None:
        """Handlers of messages that are no longer ours are told."""
        while True:
            await asyncio.sleep(LOOK_S)
            for task, message in list(self._running.items()):
                if task not in self._lost and self.receiver.is_lost(message):
                    self._lost.add(task)
                    logger.warning("%s of %s is no longer ours to handle", message.id, message.label)
                    if self._on_lost == "cancel" and task not in self._in_threads:
                        task.cancel()


def _call(handler: Handler, message: Message) -> Any:
    """In a thread. A future cannot tell of StopIteration, as of `next()` of something empty: it would never be done."""
    try:
        return handler(message)
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error


def _look_at(future: asyncio.Future[Any]) -> None:
    """What became of a thread that was not waited for is nobody's business; asyncio would complain."""
    if not future.cancelled():
        future.exception()


_GENERATOR = "{what} is a generator, of which nothing would ever run: leave out `yield`, and return when it is done"


def _makes_generators(handler: Handler) -> bool:
    return any(
        inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        for function in (handler, getattr(handler, "__call__", None))  # noqa: B004  # an object, too
    )


def _takes_a_message(handler: Handler) -> bool:
    """Otherwise every message would fail, and be given up."""
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return True  # one written in C may not tell
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _name_of(handler: Handler) -> str:
    return str(getattr(handler, "__qualname__", None) or f"{handler!r:.60}")


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(which has no words)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _at_least_one(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadArgument(f"{name}={value!r} is not a number of them: give 1 or more")
    return value
