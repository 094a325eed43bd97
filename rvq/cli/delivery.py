"""One run of `rvq-send` on the event loop: sends what a source has, waits until all is done, and tells how it goes.

Owns when to give up, and when something is worth a word.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import rvq
from rvq.bus import Bus
from rvq.cli.account import Account
from rvq.cli.bar import render
from rvq.cli.bodies import Key, Keyed
from rvq.cli.command import FAULT, WrongUse, exit_code_of
from rvq.cli.dues import Dues, Timing
from rvq.cli.pacer import Pacer
from rvq.cli.signals import calling_on_signals
from rvq.cli.source import Source
from rvq.cli.words import Words
from rvq.errors import BadMessage, MessageTooLarge, NotDelivered, RvqError

TICK_S = 0.1
"""Between two looks at how it goes: as often as an eye follows."""

PATIENCE_S = 0.5
"""How long it waits without a word: everyone who has just started waits a little for a first table."""


class Teller:
    """Says why it waits, once and when that changes, and keeps the bar."""

    def __init__(self, prog: str, words: Words, account: Account, source: Source) -> None:
        self._prog = prog
        self._words = words
        self._account = account
        self._source = source
        self._said: str | None = None
        self._waits_since: float | None = None
        self._done_before = 0
        self.input_ended = False

    def tell(self, now: float, waiting_for: str | None) -> None:
        """How it goes at `now`."""
        if waiting_for is None:
            if self._said is not None:
                self._words.say(f"{self._prog}: going on")
            self._said = self._waits_since = None
        else:
            self._tell_waiting(now, waiting_for)
        if self.input_ended or not self._source.is_terminal:
            self._words.draw(self.bar(now))

    def bar(self, now: float) -> str:
        account = self._account
        read = 1.0 if self.input_ended else self._source.fraction()
        fraction = None if read is None else read * account.done / max(account.sent, 1)
        rate = account.done / max(now - account.began, TICK_S)
        return render(self._words.columns, account.sent, account.done, rate, fraction)

    def _tell_waiting(self, now: float, waiting_for: str) -> None:
        # A window that is full while work is being done is nothing to speak of.
        if self._waits_since is None or self._account.done != self._done_before:
            self._waits_since, self._done_before = now, self._account.done
        if waiting_for != self._said and now - self._waits_since >= PATIENCE_S:
            self._words.say(f"{self._prog}: waiting: {waiting_for}")
            self._said = waiting_for


class Delivery:
    """Everything between the first line and the last acknowledgement."""

    def __init__(
        self,
        prog: str,
        account: Account,
        words: Words,
        *,
        rate: float | None,
        linger: float,
        timing: Timing | None = None,
        measure: Callable[[rvq.Sender], AbstractContextManager[object]] | None = None,
    ) -> None:
        self._measure = measure
        self._prog = prog
        self._timing = timing if timing is not None else Timing()
        self._options = self._timing.options()
        self._dues = Dues()
        self._account = account
        self._words = words
        self._pacer = Pacer(rate, account.began) if rate is not None else None
        self._linger = linger
        self._interrupted = False

    async def run(self, label: str, bus: Bus, source: Source) -> int:
        """0 when all is done, 1 when it was given up or interrupted; raises what keeps it from sending anything."""
        task = asyncio.current_task()
        assert task is not None
        with calling_on_signals(lambda: self._interrupt(task)):
            try:
                sender = rvq.Sender(label, bus=bus, linger=self._linger)
                with self._measure(sender) if self._measure is not None else nullcontext():
                    async with sender:
                        return await self._deliver(sender, source)
            except asyncio.CancelledError:
                if not self._interrupted:
                    raise
                return FAULT
            except NotDelivered as error:
                self._words.say(f"{self._prog}: gave up: {error}", urgent=True)
                return FAULT

    def _interrupt(self, task: asyncio.Task[int]) -> None:
        self._interrupted = True
        task.cancel()

    async def _deliver(self, sender: rvq.Sender, source: Source) -> int:
        code = 0
        teller = Teller(self._prog, self._words, self._account, source)
        with self._telling(sender, teller):
            try:
                async for runs in source.runs():
                    for run in runs:
                        await self._send(sender, run)
            except (WrongUse, RvqError, OSError) as error:
                is_bad = isinstance(error, (BadMessage, MessageTooLarge))
                place = f"{source.what} {sender.stats.inserted + 1}: " if is_bad else ""
                # What was sent before is on its way: it is waited for all the same.
                self._words.say(f"{self._prog}: {place}{error}", urgent=True)
                code = exit_code_of(error)
            teller.input_ended = True
            await self._until_done(sender)
        return code

    @contextmanager
    def _telling(self, sender: rvq.Sender, teller: Teller) -> Iterator[None]:
        """Looks at the sender every now and then, and once more at the end."""
        ticking = asyncio.create_task(self._tick(sender, teller))
        try:
            yield
        finally:
            ticking.cancel()
            self._account.take(sender)
            self._words.erase()

    async def _tick(self, sender: rvq.Sender, teller: Teller) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._account.take(sender)
            teller.tell(time.monotonic(), sender.waiting_for or self._early(sender, teller.input_ended))

    async def _send(self, sender: rvq.Sender, run: Keyed) -> None:
        key, bodies = run
        if self._pacer is None:
            return await self._send_some(sender, key, bodies)
        while bodies:
            count = self._pacer.take(time.monotonic(), len(bodies))
            if count:
                await self._send_some(sender, key, bodies[:count])
                bodies = bodies[count:]
            else:
                await asyncio.sleep(self._pacer.wait_s())

    async def _send_some(self, sender: rvq.Sender, key: Key | None, bodies: list[Any]) -> None:
        now = time.time()
        await sender.send_many(bodies, key=key, **self._options)
        self._dues.add(now, self._timing.due_at(now), len(bodies))

    def _early(self, sender: rvq.Sender, input_ended: bool) -> str | None:
        """When the rest is due, if that is all that is waited for."""
        now = time.time()
        return self._dues.words(now) if input_ended and sender.undone <= self._dues.early(now) else None

    async def _until_done(self, sender: rvq.Sender) -> None:
        """Waits for as long as it goes on: NotDelivered only when `linger` has passed with nothing done in it.

        Time in which nothing was due does not count.
        """
        undone, gives_up_at = sender.undone, time.monotonic() + self._linger
        while True:
            early = self._dues.early(time.time())
            left = gives_up_at - time.monotonic()
            try:
                return await sender.flush(timeout=TICK_S if early else max(0.0, min(left, TICK_S)))
            except NotDelivered:
                if sender.undone < undone or sender.undone <= early:
                    undone, gives_up_at = sender.undone, time.monotonic() + self._linger
                elif left <= TICK_S:
                    raise
