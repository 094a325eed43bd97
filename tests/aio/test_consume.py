"""`rvq.consume` on real sockets: so many at a time, retried and given up as told, handed back when it ends."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import pytest

import rvq
from rvq.aio.consume import Consumer
from rvq.aio.dead import DeadLetters
from rvq.limits import FRAME_BYTES_MIN, LABEL_BYTES_MAX
from tests.aio.ends import members, on_both_loops, soon, stays, taken, until

AT_ONCE = rvq.Backoff(first=0.0, most=0.0)
"""No pauses between attempts."""


class Consuming:
    """`rvq.consume` as a task. Leaving the block stops it in good order."""

    def __init__(self, bus: rvq.Bus, handler: Any, label: str = "work", **options: Any) -> None:
        self.table: rvq.TableView | None = None
        self.stop = asyncio.Event()
        self._consume = functools.partial(
            rvq.consume, label, handler, bus=bus, stop=self.stop, on_table=self._see, **options
        )

    def _see(self, table: rvq.TableView) -> None:
        self.table = table

    async def __aenter__(self) -> Consuming:
        self.task = asyncio.create_task(self._consume())
        await until(lambda: self.table is not None or self.task.done())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop.set()
        if kind is not None:
            self.task.cancel()
        if not self.task.cancelled():
            await soon(asyncio.wait({self.task}))
        if kind is None and not self.task.cancelled():
            self.task.result()

    async def cancel(self) -> None:
        """As who does not wait for the rest."""
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(self.task)


class Hands:
    """A handler that notes what it got, and can be held up."""

    def __init__(self, *, open: bool = True) -> None:
        self.started: list[rvq.Message] = []
        self.finished: list[Any] = []
        self.at_once = self.most_at_once = 0
        self.gate = asyncio.Event()
        if open:
            self.gate.set()

    async def handle(self, message: rvq.Message) -> None:
        self.started.append(message)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
            self.finished.append(message.body)
        finally:
            self.at_once -= 1


# --- so many at a time ----------------------------------------------------------------------------------------------


@on_both_loops
async def test_only_so_many_are_taken_and_what_was_not_started_is_handled_elsewhere(bus: rvq.Bus) -> None:
    first, second = Hands(open=False), Hands()
    async with (
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, first.handle, concurrency=3, hand_over=False) as leaver,
    ):
        await sender.send_many(range(20))
        await until(lambda: first.at_once == 3)
        async with Consuming(bus, second.handle):
            await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
            await stays(lambda: first.at_once == 3 and len(first.started) == 3, 0.2)
            assert not second.started, "what was sent before belongs to the first"
            await leaver.cancel()
            await soon(sender.flush())
    assert first.finished == []
    assert sorted(second.finished) == list(range(20))
    assert all(message.redelivered for message in second.started)
    begun = {message.body for message in first.started}
    assert {message.body for message in second.started if message.attempt == 2} == begun, "each start was told"


async def test_a_worker_that_is_free_takes_the_next(bus: rvq.Bus) -> None:
    hands = Hands()
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, hands.handle, concurrency=4):
        await sender.send_many(range(500))
        await soon(sender.flush())
    assert sorted(hands.finished) == list(range(500))
    assert 1 <= hands.most_at_once <= 4


async def test_one_key_is_handled_in_order_and_one_at_a_time_however_many_workers(bus: rvq.Bus) -> None:
    running: Counter[object] = Counter()
    handled: dict[object, list[int]] = {}

    async def handle(message: rvq.Message) -> None:
        running[message.key] += 1
        assert running[message.key] == 1
        await asyncio.sleep(0)
        running[message.key] -= 1
        if message.body % 7 == 3 and message.attempt < 3:
            raise ValueError("again")
        handled.setdefault(message.key, []).append(message.body)

    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, concurrency=8, backoff=AT_ONCE):
        for number in range(120):
            await sender.send(number, key=f"key-{number % 5}")
        await soon(sender.flush())
    assert handled == {f"key-{key}": list(range(key, 120, 5)) for key in range(5)}


# --- handlers of all kinds ------------------------------------------------------------------------------------------


class AsyncCall:
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    async def __call__(self, message: rvq.Message) -> None:
        await self.method(message)

    async def method(self, message: rvq.Message) -> None:
        await asyncio.sleep(0)
        self.seen.append(message.body)


class PlainCall:
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def __call__(self, message: rvq.Message) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.seen.append(message.body)


KINDS: dict[str, Callable[[list[Any]], Any]] = {
    "coroutine function": lambda seen: AsyncCall(seen).method,
    "object with a coroutine": AsyncCall,
    "partial of a coroutine function": lambda seen: functools.partial(AsyncCall.method, AsyncCall(seen)),
    "lambda that returns a coroutine": lambda seen: lambda message: AsyncCall(seen).method(message),
    "plain object": PlainCall,
    "plain function": lambda seen: PlainCall(seen).__call__,
    "plain lambda": lambda seen: lambda message: seen.append(message.body),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_is_anything_that_can_be_called(bus: rvq.Bus, kind: str) -> None:
    seen: list[Any] = []
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, KINDS[kind](seen), concurrency=2):
        await sender.send_many(range(10))
        await soon(sender.flush())
    assert sorted(seen) == list(range(10))


async def test_plain_functions_run_side_by_side_in_threads_and_do_not_hold_up_the_loop(bus: rvq.Bus) -> None:
    together, go_on = threading.Barrier(3), threading.Event()

    def handle(message: rvq.Message) -> None:
        together.wait(20)
        assert go_on.wait(20)

    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, concurrency=3):
        await sender.send_many(range(3))
        await until(lambda: together.n_waiting == 0 and sender.undone == 3)
        go_on.set()  # by the loop, which is free to do so while three functions block
        await soon(sender.flush())


# --- leases ---------------------------------------------------------------------------------------------------------


async def test_handlers_that_take_three_leases_keep_theirs(bus: rvq.Bus) -> None:
    lost = []

    async def slow(message: rvq.Message) -> None:
        await asyncio.sleep(3 * bus.lease)
        lost.append(message.lost.is_set())

    def blocking(message: rvq.Message) -> None:
        time.sleep(3 * bus.lease)
        lost.append(message.lost.is_set())

    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, slow), Consuming(bus, blocking, group="threads"):
        await until(lambda: len(sender.tables) == 2)
        await sender.send(1)
        await soon(sender.flush())
    assert lost == [False, False]


@pytest.fixture
async def lone_message(bus: rvq.Bus) -> Any:
    """Sends one message to a number of groups; then, when asked, ends without a word: all leases on it run out."""
    sender = rvq.Sender("work", bus=bus)
    sender.open()

    async def send(groups: int) -> rvq.Sender:
        await until(lambda: len(sender.tables) == groups)
        await sender.send("lone")
        return sender

    yield send
    sender.end()


async def test_what_was_lost_while_it_waited_for_its_turn_is_not_begun(
    bus: rvq.Bus, lone_message: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for its mark took longer than the lease, as when the process is stopped meanwhile."""
    looking, begun = asyncio.Event(), asyncio.Event()
    receivers: list[rvq.Receiver] = []

    async def look_for_long(receiver: rvq.Receiver, message: rvq.Message) -> bool:
        receivers.append(receiver)
        looking.set()
        await message.lost.wait()
        return False

    async def handle(message: rvq.Message) -> None:
        begun.set()

    monkeypatch.setattr(rvq.Receiver, "is_marked", look_for_long)
    async with Consuming(bus, handle, ledger=rvq.Ledger.sqlite(tmp_path / "ledger.db"), on_lost="tell"):
        sender = await lone_message(1)
        await soon(looking.wait())
        sender.end()
        await until(lambda: receivers[0].stats.retried == 1)
        assert not begun.is_set()


async def test_what_was_handed_out_just_before_its_process_was_stopped_is_not_begun_when_it_goes_on(
    bus: rvq.Bus,
) -> None:
    done: list[object] = []
    receiver = rvq.Receiver("work", ack="manual", bus=bus)
    consumer = Consumer(receiver, done.append, concurrency=1, attempts=5, backoff=AT_ONCE)
    receiver.is_lost = lambda message: True  # type: ignore[method-assign]
    message = SimpleNamespace(attempt=1, retry=lambda: done.append("given back"))
    await consumer._handle(message)  # type: ignore[arg-type]
    assert done == ["given back"]


async def test_when_a_message_is_lost_its_handler_is_cancelled_or_told_as_chosen(
    bus: rvq.Bus, lone_message: Any
) -> None:
    cancelled, told, thread_told = asyncio.Event(), asyncio.Event(), threading.Event()
    begun = threading.Barrier(4)

    async def wait_for_ever(message: rvq.Message) -> None:
        await asyncio.to_thread(begun.wait, 20)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert message.lost.is_set()
            cancelled.set()
            raise

    async def wait_for_loss(message: rvq.Message) -> None:
        await asyncio.to_thread(begun.wait, 20)
        await message.lost.wait()
        told.set()

    def wait_in_thread(message: rvq.Message) -> None:
        begun.wait(20)
        while not message.lost.is_set():
            time.sleep(0.01)
        thread_told.set()

    async with (
        Consuming(bus, wait_for_ever),
        Consuming(bus, wait_for_loss, group="told", on_lost="tell"),
        Consuming(bus, wait_in_thread, group="threads"),
    ):
        sender = await lone_message(3)
        await asyncio.to_thread(begun.wait, 20)
        await stays(lambda: not (cancelled.is_set() or told.is_set() or thread_told.is_set()), 0.2)
        sender.end()
        await until(lambda: cancelled.is_set() and told.is_set() and thread_told.is_set())


@pytest.mark.parametrize(("on_lost", "outcome"), [("cancel", (0, 1)), ("tell", (1, 0))])
async def test_a_plain_function_that_sees_the_loss_and_returns_has_given_up_unless_it_is_only_told(
    bus: rvq.Bus, lone_message: Any, on_lost: Any, outcome: tuple[int, int]
) -> None:
    def handle(message: rvq.Message) -> None:
        while not message.lost.is_set():
            time.sleep(0.01)

    receiver = rvq.Receiver("work", ack="manual", bus=bus, tracked=True)
    consumer = Consumer(receiver, handle, concurrency=1, attempts=5, backoff=AT_ONCE, on_lost=on_lost)
    async with receiver:
        running = asyncio.create_task(consumer.run())
        sender = await lone_message(1)
        await until(lambda: receiver.stats.emitted == 1)
        sender.end()
        await until(lambda: receiver.stats.acked + receiver.stats.retried == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(running)
    assert (receiver.stats.acked, receiver.stats.retried) == outcome


@pytest.mark.parametrize(
    ("lost", "given", "handled"), [((True, False), False, True), ((True,), True, False), ((), True, True)]
)
async def test_a_plain_function_that_did_not_look_has_handled_what_is_ours_after_all(
    bus: rvq.Bus, lost: tuple[bool, ...], given: bool, handled: bool
) -> None:
    """A lease can be over without anybody else having the message: its process slept, and nobody else was there."""
    answers = list(lost)
    receiver = rvq.Receiver("work", ack="manual", bus=bus)
    consumer = Consumer(receiver, print, concurrency=1, attempts=5, backoff=AT_ONCE)
    receiver.is_lost = lambda message: answers.pop(0) if answers else False  # type: ignore[method-assign]
    receiver.is_anothers = lambda message: given  # type: ignore[method-assign]
    assert await consumer._is_handled(Any) is handled  # type: ignore[arg-type]


async def test_an_error_after_the_loss_makes_no_dead_letter(
    bus: rvq.Bus, lone_message: Any, caplog: pytest.LogCaptureFixture
) -> None:
    begun, raised = asyncio.Event(), asyncio.Event()

    async def handle(message: rvq.Message) -> None:
        begun.set()
        await message.lost.wait()
        raised.set()
        raise ValueError("too late")

    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        Consuming(bus, handle, attempts=1, on_lost="tell"),
    ):
        sender = await lone_message(1)
        await soon(begun.wait())
        sender.end()
        await soon(raised.wait())
        burying = asyncio.create_task(anext(dead))
        await stays(lambda: not burying.done())
        burying.cancel()
    assert "given up" not in caplog.text, "whoever has it now decides"


@pytest.mark.parametrize("on_lost", ["cancel", "tell"])
async def test_a_handler_that_returns_although_it_was_cancelled_has_not_handled_its_message(
    bus: rvq.Bus, lone_message: Any, on_lost: Any
) -> None:
    outcomes: list[str] = []

    async def handle(message: rvq.Message) -> None:
        try:
            await message.lost.wait() if on_lost == "tell" else await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcomes.append("swallowed")

    receiver = rvq.Receiver("work", ack="manual", bus=bus, tracked=True)
    consumer = Consumer(receiver, handle, concurrency=1, attempts=5, backoff=AT_ONCE, on_lost=on_lost)
    async with receiver:
        running = asyncio.create_task(consumer.run())
        sender = await lone_message(1)
        await until(lambda: receiver.stats.emitted == 1)
        sender.end()
        await until(lambda: receiver.stats.acked + receiver.stats.retried == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(running)
    if on_lost == "cancel":
        assert (outcomes, receiver.stats.retried, receiver.stats.acked) == (["swallowed"], 1, 0)
    else:
        assert (outcomes, receiver.stats.retried, receiver.stats.acked) == ([], 0, 1), "it was told, and went on"


# --- the end --------------------------------------------------------------------------------------------------------


@on_both_loops
async def test_when_it_is_told_to_stop_it_finishes_what_is_its_own(bus: rvq.Bus) -> None:
    hands = Hands(open=False)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, hands.handle, concurrency=2) as consuming:
        await sender.send_many(range(10))
        await until(lambda: hands.at_once == 2)
        consuming.stop.set()
        await stays(lambda: not consuming.task.done(), 0.2)
        hands.gate.set()
        await soon(asyncio.shield(consuming.task))
        assert sorted(hands.finished) == list(range(10))
        await soon(sender.flush())


async def test_one_that_is_told_to_stop_before_it_begins_ends(bus: rvq.Bus) -> None:
    stop = asyncio.Event()
    stop.set()
    await soon(rvq.consume("work", print, bus=bus, stop=stop))


async def test_what_it_had_begun_when_it_was_cancelled_is_handled_elsewhere(bus: rvq.Bus) -> None:
    first, second = Hands(open=False), Hands()
    async with rvq.Sender("work", bus=bus) as sender:
        async with Consuming(bus, first.handle) as leaver:
            await sender.send("job")
            await until(lambda: first.started)
            await leaver.cancel()
        async with Consuming(bus, second.handle):
            await soon(sender.flush())
    (again,) = second.started
    assert (again.body, again.attempt, again.redelivered) == ("job", 2, True)
    assert first.finished == []


async def test_a_handler_that_swallows_the_end_has_not_handled_its_message(bus: rvq.Bus) -> None:
    second, begun = Hands(), asyncio.Event()

    async def swallow(message: rvq.Message) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    async with rvq.Sender("work", bus=bus) as sender:
        async with Consuming(bus, swallow) as leaver:
            await sender.send("job")
            await soon(begun.wait())
            await leaver.cancel()
        async with Consuming(bus, second.handle):
            await soon(sender.flush())
    assert second.finished == ["job"]


async def test_a_plain_function_cannot_be_cancelled_so_it_is_waited_for_and_its_message_is_done(bus: rvq.Bus) -> None:
    begun, go_on = threading.Event(), threading.Event()
    handled, elsewhere = [], Hands()

    def handle(message: rvq.Message) -> None:
        begun.set()
        assert go_on.wait(20)
        handled.append(message.body)

    async with (
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, handle) as leaver,
    ):
        await sender.send_many(["begun", "not begun"])
        await until(begun.is_set)
        async with Consuming(bus, elsewhere.handle):
            leaver.task.cancel()
            await stays(lambda: not leaver.task.done(), 0.2)
            assert not elsewhere.started, "nobody else has it while our thread does"
            go_on.set()
            await soon(sender.flush())
    assert leaver.task.cancelled()
    assert (handled, elsewhere.finished) == (["begun"], ["not begun"])


async def test_who_is_cancelled_twice_does_not_wait_for_its_threads(bus: rvq.Bus) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handle(message: rvq.Message) -> None:
        begun.set()
        assert go_on.wait(20)
        raise ValueError("which nobody hears")

    elsewhere = Hands()
    async with rvq.Sender("work", bus=bus) as sender:
        async with Consuming(bus, handle) as leaver:
            await sender.send("job")
            await until(begun.is_set)
            leaver.task.cancel()
            await stays(lambda: not leaver.task.done(), 0.1)
            await leaver.cancel()
        async with Consuming(bus, elsewhere.handle):
            await soon(sender.flush())
        go_on.set()
        await until(lambda: not [thread for thread in threading.enumerate() if "rvq-handler" in thread.name])
    assert elsewhere.finished == ["job"]


# --- errors ---------------------------------------------------------------------------------------------------------


async def test_an_error_is_retried_at_once_and_then_after_growing_pauses(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    at: list[float] = []

    async def handle(message: rvq.Message) -> None:
        at.append(time.monotonic())
        assert message.attempt == len(at)
        if message.attempt < 5:
            raise ValueError(f"no {message.attempt}")

    backoff = rvq.Backoff(first=0.1, factor=3, most=0.2, jitter=0)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, attempts=5, backoff=backoff):
        await sender.send("job")
        await soon(sender.flush())
    said = [record.getMessage() for record in caplog.records if "failed at attempt" in record.getMessage()]
    assert [words.split("failed at ")[1] for words in said] == [
        "attempt 1, again in 0.0 s: ValueError: no 1",
        "attempt 2, again in 0.1 s: ValueError: no 2",
        "attempt 3, again in 0.2 s: ValueError: no 3",
        "attempt 4, again in 0.2 s: ValueError: no 4",
    ]
    assert all(later - before >= pause for before, later, pause in zip(at, at[1:], (0, 0.1, 0.2, 0.2), strict=False))


async def test_what_fails_too_often_is_one_dead_letter_that_tells_all(bus: rvq.Bus) -> None:
    tries = []
    tables: list[rvq.TableView] = []

    async def handle(message: rvq.Message) -> None:
        tries.append(message.attempt)
        raise KeyError("no such customer")

    async def consume() -> None:
        await rvq.consume("work", handle, bus=bus, attempts=3, backoff=AT_ONCE, on_table=tables.append)

    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead, rvq.Sender("work", bus=bus) as sender:
        consuming = asyncio.create_task(consume())
        before = time.time()
        await sender.send({"job": 1}, key="user-7", headers={"trace": "a1"})
        await soon(sender.flush())
        (message,) = await taken(dead, 1)
        another = asyncio.create_task(anext(dead))
        await stays(lambda: not another.done())
        another.cancel()
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(consuming)
    letter = rvq.DeadLetter.from_body(message.body)
    assert tries == [1, 2, 3]
    assert (letter.body, letter.key, letter.headers) == ({"job": 1}, "user-7", {"trace": "a1"})
    assert (letter.label, letter.group, letter.id) == ("work", "default", f"{sender.id:016x}-1")
    assert (letter.error, letter.attempts) == ("KeyError: 'no such customer'", 3)
    assert letter.traceback.startswith("Traceback (most recent call last)")
    assert 'raise KeyError("no such customer")' in letter.traceback
    assert before <= letter.sent_at <= letter.died_at <= time.time()
    assert letter.first_owner == letter.last_owner == f"{tables[0].members[0]:016x}"


async def test_one_that_fails_does_not_hold_up_the_others(bus: rvq.Bus) -> None:
    handled = []

    async def handle(message: rvq.Message) -> None:
        if message.body == 0:
            raise ValueError("never")
        handled.append(message.body)

    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, handle, attempts=2, backoff=rvq.Backoff(first=0.2)),
    ):
        await sender.send_many(range(50))
        await soon(sender.flush())
        (letter,) = await taken(dead, 1)
    assert sorted(handled) == list(range(1, 50))
    assert letter.body["body"] == 0


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Rude(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncio.CancelledError(), "CancelledError"),
        (Rude("not an Exception"), "Rude: not an Exception"),
        (StopIteration("empty"), "RuntimeError: "),
        (Wordless(), "Wordless: (which has no words)"),
        (FileNotFoundError("/data/\udcff"), "FileNotFoundError: /data/\\udcff"),
        (ValueError("x" * 10_000), f"ValueError: {'x' * 4084}"),
        (rvq.AlreadyDone(("work", "default", 1, 1)), "AlreadyDone: message 1 of sender"),
    ],
    ids=["cancelled", "base", "empty", "wordless", "surrogate", "long", "of another message"],
)
@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_an_odd_error_is_an_error_too(bus: rvq.Bus, error: BaseException, words: str, where: str) -> None:
    async def handle(message: rvq.Message) -> None:
        raise error

    def handle_in_thread(message: rvq.Message) -> None:
        raise error

    handler = handle if where == "loop" else handle_in_thread
    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, handler, attempts=2, backoff=AT_ONCE),
    ):
        await sender.send("job")
        await soon(sender.flush())
        (letter,) = await taken(dead, 1)
    assert letter.body["error"].startswith(words)
    assert (letter.body["body"], letter.body["attempts"]) == ("job", 2)


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_handler_may_say_itself_what_becomes_of_its_message(bus: rvq.Bus, where: str) -> None:
    attempts: dict[str, list[int]] = {"later": [], "never": [], "done": []}

    def decide(message: rvq.Message) -> None:
        attempts[message.body].append(message.attempt)
        match message.body, message.attempt:
            case "later", 1:
                message.retry(delay=0.05)
            case "never", _:
                message.reject("no such thing")
            case "done", _:
                message.ack()

    async def decide_in_loop(message: rvq.Message) -> None:
        decide(message)

    handler = decide if where == "thread" else decide_in_loop
    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, handler),
    ):
        await sender.send_many(list(attempts))
        await soon(sender.flush())
        (letter,) = await taken(dead, 1)
    assert attempts == {"later": [1, 2], "never": [1], "done": [1]}
    assert (letter.body["body"], letter.body["error"]) == ("never", "no such thing")


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_an_error_after_its_own_verdict_changes_nothing_and_is_said(
    bus: rvq.Bus, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    attempts: dict[str, list[int]] = {"later": [], "never": [], "done": []}

    def decide(message: rvq.Message) -> None:
        attempts[message.body].append(message.attempt)
        match message.body, message.attempt:
            case "later", 1:
                message.retry()
            case "never", _:
                message.reject("no such thing")
            case _:
                message.ack()
        raise ValueError("afterwards")

    async def decide_in_loop(message: rvq.Message) -> None:
        decide(message)

    handler = decide if where == "thread" else decide_in_loop
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handler, attempts=2):
        await sender.send_many(list(attempts))
        await soon(sender.flush())
    assert attempts == {"later": [1, 2], "never": [1], "done": [1]}
    said = [record.getMessage() for record in caplog.records if "afterwards" in record.getMessage()]
    assert sorted(words.split(": its handler ")[1] for words in said) == [
        *["raised after its own verdict at attempt 1, which stands: ValueError: afterwards"] * 3,
        "raised after its own verdict at attempt 2, which stands: ValueError: afterwards",
    ]


async def test_an_attempt_that_asked_for_the_next_cannot_end_that(bus: rvq.Bus) -> None:
    second, go_on = asyncio.Event(), asyncio.Event()

    async def handle(message: rvq.Message) -> None:
        if message.attempt == 1:
            message.retry()
            await second.wait()
        else:
            second.set()
            await go_on.wait()

    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, concurrency=2):
        await sender.send("job")
        await soon(second.wait())
        await stays(lambda: sender.undone)
        go_on.set()
        await soon(sender.flush())


async def yielding(message: rvq.Message) -> AsyncIterator[int]:
    yield 1


def generating(message: rvq.Message) -> Iterator[int]:
    yield 1


class Generating:
    def __call__(self, message: rvq.Message) -> Iterator[int]:
        yield 1


async def test_a_function_that_returns_a_generator_has_failed(bus: rvq.Bus) -> None:
    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, lambda message: generating(message), attempts=1),
    ):
        await sender.send("job")
        (letter,) = await taken(dead, 1)
    assert "returned is a generator, of which nothing would ever run" in letter.body["error"]


async def test_a_message_waits_at_its_worker_when_no_more_dead_letters_fit(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(message: rvq.Message) -> None:
        raise ValueError("no")

    receiver = rvq.Receiver("work", ack="manual", bus=bus, tracked=True)
    receiver.dead_letters = DeadLetters("work", bus, window=FRAME_BYTES_MIN)
    consumer = Consumer(receiver, handle, concurrency=2, attempts=1, backoff=AT_ONCE)
    async with rvq.Sender("work", bus=bus) as sender, receiver:
        running = asyncio.create_task(consumer.run())
        await sender.send_many([str(number) * 300 for number in range(10)])
        await until(lambda: "waits: nobody takes its dead letters" in caplog.text)
        await stays(lambda: sender.undone > 0, 0.2)
        async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead:
            letters = await taken(dead, 10)
            await soon(sender.flush())
        receiver.leave()
        await soon(running)
    assert sorted(letter.body["body"][0] for letter in letters) == [str(number) for number in range(10)]
    assert "is lost" not in caplog.text


# --- wrong use ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"attempts": 0}, ValueError, "attempts=0 is not a number of them: give 1 or more"),
        ({"attempts": -1}, ValueError, "attempts=-1 "),
        ({"attempts": True}, ValueError, "attempts=True "),
        ({"attempts": 2.0}, ValueError, r"attempts=2\.0 "),
        ({"concurrency": 0}, ValueError, "concurrency=0 is not a number of them: give 1 or more"),
        ({"concurrency": None}, ValueError, "concurrency=None "),
        ({"handler": None}, TypeError, "handler=None cannot be called: give a function of the message"),
        ({"handler": "print"}, TypeError, "handler='print' cannot be called"),
        ({"handler": yielding}, TypeError, "handler=yielding is a generator, of which nothing would ever run"),
        ({"handler": generating}, TypeError, "handler=generating is a generator"),
        ({"handler": functools.partial(generating)}, TypeError, "is a generator"),
        ({"handler": Generating()}, TypeError, "is a generator"),
        ({"handler": lambda: None}, TypeError, "handler=.*lambda.* does not take one message"),
        ({"handler": dict.get}, TypeError, "handler=dict.get does not take one message"),
        ({"handler": type("Work", (), {})}, TypeError, "handler=Work does not take one message"),
        ({"on_table": 5}, TypeError, "on_table=5 cannot be called"),
        ({"on_lost": "shrug"}, ValueError, "on_lost='shrug' is not known"),
        ({"backoff": 0.5}, TypeError, r"backoff=0\.5 is not known: give rvq\.Backoff"),
        ({"ledger": "work.db"}, TypeError, r"ledger='work\.db' is not a ledger: give rvq\.Ledger\.sqlite"),
        ({"stop": True}, TypeError, r"stop=True is not an asyncio\.Event"),
        ({"weight": 0}, Exception, "weight"),
        ({"label": ""}, rvq.BadLabel, "label is empty"),
        ({"label": "x" * (LABEL_BYTES_MAX - 4)}, rvq.BadLabel, "bytes long"),
    ],
)
async def test_wrong_use_is_said_at_once(bus: rvq.Bus, options: dict[str, Any], error: Any, words: str) -> None:
    arguments = {"label": "work", "handler": print, "bus": bus} | options
    with pytest.raises(error, match=words):
        await rvq.consume(**arguments)


# --- ledgers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE effects (body TEXT)")
    return path


def effects(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return sorted(body for (body,) in connection.execute("SELECT body FROM effects"))


async def test_a_transaction_without_a_ledger_is_said_to_be_one(bus: rvq.Bus) -> None:
    async def handle(message: rvq.Message) -> None:
        async with message.transaction():
            pass

    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        Consuming(bus, handle, attempts=1),
    ):
        await sender.send("job")
        (letter,) = await taken(dead, 1)
    assert letter.body["error"].startswith("LedgerError: there is no ledger here: rvq.consume(")


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_a_transaction_commits_the_effect_and_the_mark_together(bus: rvq.Bus, file: Path, where: str) -> None:
    async def handle(message: rvq.Message) -> None:
        async with message.transaction() as tx:
            await tx.execute("INSERT INTO effects VALUES (?)", (message.body,))

    def handle_in_thread(message: rvq.Message) -> None:
        with message.transaction() as tx:
            tx.execute("INSERT INTO effects VALUES (?)", (message.body,))

    handler = handle if where == "loop" else handle_in_thread
    ledger = rvq.Ledger.sqlite(file)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handler, ledger=ledger, concurrency=3):
        await sender.send_many(["a", "b", "c", "d", "e"])
        await soon(sender.flush())
        assert ledger.is_open
    assert effects(file) == ["a", "b", "c", "d", "e"]
    assert not ledger.is_open, "who opens it closes it"


async def test_an_error_in_mid_transaction_leaves_nothing_and_is_retried(bus: rvq.Bus, file: Path) -> None:
    found = []

    async def handle(message: rvq.Message) -> None:
        async with message.transaction() as tx:
            cursor = await tx.execute("SELECT count(*) FROM effects")
            found.append(await cursor.fetchone())
            await tx.execute("INSERT INTO effects VALUES (?)", (message.body,))
            if message.attempt == 1:
                raise rvq.LedgerError("the database went away")
            if message.attempt == 2:
                await tx.execute("INSERT INTO no_such_table VALUES (1)")

    ledger = rvq.Ledger.sqlite(file)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, ledger=ledger, backoff=AT_ONCE):
        await sender.send("job")
        await soon(sender.flush())
    assert found == [(0,), (0,), (0,)]
    assert effects(file) == ["job"]


async def test_what_is_marked_is_acknowledged_without_calling_the_handler(bus: rvq.Bus, file: Path) -> None:
    first, called = asyncio.Event(), []

    async def commit_and_hang(message: rvq.Message) -> None:
        async with message.transaction() as tx:
            await tx.execute("INSERT INTO effects VALUES (?)", (message.body,))
        first.set()
        await asyncio.Event().wait()

    async with rvq.Ledger.sqlite(file) as ledger, rvq.Sender("work", bus=bus) as sender:
        async with Consuming(bus, commit_and_hang, ledger=ledger) as leaver:
            await sender.send("job")
            await soon(first.wait())
            await leaver.cancel()
        assert ledger.is_open, "it was open, and is its owner's to close"
        async with Consuming(bus, called.append, ledger=ledger):
            await soon(sender.flush())
    assert called == []
    assert effects(file) == ["job"]


async def test_a_rival_that_commits_first_makes_ours_done(
    bus: rvq.Bus, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The mark comes between the look and the transaction."""
    attempts = []

    async def handle(message: rvq.Message) -> None:
        attempts.append(message.attempt)
        async with message.transaction() as tx:
            await tx.execute("INSERT INTO effects VALUES (?)", (message.body,))
        async with message.transaction():
            raise AssertionError("entered twice")

    ledger = rvq.Ledger.sqlite(file)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle, ledger=ledger):
        await sender.send("job")
        await soon(sender.flush())
    assert (attempts, effects(file)) == ([1], ["job"])
    assert "failed at attempt" not in caplog.text, "it is no error, and no attempt more"


# --- time and haste -------------------------------------------------------------------------------------------------


async def test_an_urgent_message_is_the_next_that_a_worker_takes(bus: rvq.Bus) -> None:
    hands = Hands(open=False)
    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, hands.handle):
        await sender.send_many(range(5))
        await until(lambda: hands.started)
        await sender.send("urgent", urgent=True)
        await sender.send("marker", urgent=True)
        await stays(lambda: len(hands.started) == 1, 0.1)
        hands.gate.set()
        await soon(sender.flush())
    assert hands.finished == [0, "urgent", "marker", 1, 2, 3, 4]


async def test_a_message_that_is_over_is_not_handled_and_one_that_waits_is_handled_when_due(bus: rvq.Bus) -> None:
    handled: dict[str, float] = {}

    async def handle(message: rvq.Message) -> None:
        handled[message.body] = time.time()

    async with rvq.Sender("work", bus=bus) as sender, Consuming(bus, handle):
        before = time.time()
        await sender.send("over", ttl=0.0)
        await sender.send("later", delay=0.3)
        await sender.send("now")
        await soon(sender.flush())
    assert list(handled) == ["now", "later"]
    assert handled["later"] >= before + 0.3


async def test_receivers_of_both_kinds_share_a_group(bus: rvq.Bus) -> None:
    """One with `async for`, one with `consume`."""
    hands, seen = Hands(), []
    async with (
        rvq.Sender("work", bus=bus) as sender,
        rvq.Receiver("work", bus=bus) as receiver,
        Consuming(bus, hands.handle),
    ):
        await members([receiver], 2)
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)

        async def loop() -> None:
            async for message in receiver:
                seen.append(message.body)

        looping = asyncio.create_task(loop())
        await sender.send_many(range(100))
        await soon(sender.flush())
        receiver.leave()
        await soon(looping)
    assert sorted(seen + hands.finished) == list(range(100))
    assert len(seen) == len(hands.finished) == 50
