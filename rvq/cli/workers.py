"""A shell command for each message: `rvq-listen --exec`. Owns the processes, and what their exit codes mean.

Commands run in sessions of their own: Ctrl-C is for rvq-listen, which lets them finish.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import rvq
from rvq.cli.bodies import line_of
from rvq.cli.quiet import Quiet
from rvq.cli.words import Words

RETRY_S_FIRST, RETRY_S_MAX = 0.2, 30.0
"""Pauses before a failed message is tried again: doubled each time, so that what is broken for long costs little."""

STOP_S = 2.0
"""How long a command that is told to stop may take for it."""


def retry_delay(attempt: int) -> float:
    """The pause after that many attempts have failed."""
    return float(min(RETRY_S_FIRST * 2.0 ** min(attempt - 1, 30), RETRY_S_MAX))


def describe(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


class Workers:
    """Runs `command` for each message, `concurrency` at once, until `count` of them are done or rejected."""

    def __init__(
        self,
        receiver: rvq.Receiver,
        command: str,
        words: Words,
        quiet: Quiet,
        *,
        prog: str,
        concurrency: int = 1,
        attempts: int | None = None,
        count: int | None = None,
    ) -> None:
        self._receiver = receiver
        self._command = command
        self._words = words
        self._quiet = quiet
        self._prog = prog
        self._concurrency = concurrency
        self._attempts = attempts
        self._count = count
        self._running = 0
        self._finished = 0
        self._changed = asyncio.Condition()
        self.rejected = 0

    async def run(self) -> None:
        """Until the receiver has left, or enough is done. If it is cancelled, the commands are stopped."""
        messages = aiter(self._receiver)
        async with asyncio.TaskGroup() as tasks:
            while await self._has_place():
                self._look_quiet()
                try:
                    message = await anext(messages)
                except StopAsyncIteration:
                    break
                self._running += 1
                self._quiet.end()
                tasks.create_task(self._handle(message))

    async def _has_place(self) -> bool:
        """Waits for a free place. False if `count` are finished: never is more begun than that."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._finished == self._count or self._running < self._places())
        return self._finished != self._count

    def _places(self) -> int:
        return self._concurrency if self._count is None else min(self._concurrency, self._count - self._finished)

    def _look_quiet(self) -> None:
        if not self._running:
            self._quiet.begin()

    async def _handle(self, message: rvq.Message) -> None:
        try:
            if self._settle(message, await self._outcome(message)):
                self._finished += 1
        finally:
            self._running -= 1
            self._look_quiet()
            async with self._changed:
                self._changed.notify_all()

    def _settle(self, message: rvq.Message, fault: str | None) -> bool:
        """Acknowledges, rejects, or tries again. False if the message is not finished here."""
        if fault is None:
            message.ack()
            return True
        if message.lost.is_set():
            self._words.say(f"{self._prog}: {message.id}: no longer ours to handle, {fault}")
            message.retry()  # in case it comes back to us
            return False
        if self._attempts is not None and message.attempt >= self._attempts:
            self.rejected += 1
            message.reject(f"{fault} at attempt {message.attempt}")
            self._words.say(f"{self._prog}: {message.id} rejected: {fault} at attempt {message.attempt}")
            return True
        delay = retry_delay(message.attempt)
        self._words.say(f"{self._prog}: {message.id}: {fault} at attempt {message.attempt}, again in {delay:g} s")
        message.retry(delay)
        return False

    async def _outcome(self, message: rvq.Message) -> str | None:
        """None if the command says that it is done, else what went wrong."""
        try:
            process = await self._start(message)
        except OSError as error:
            return f"could not be run ({error.strerror})"
        working = asyncio.ensure_future(process.wait())
        lost = asyncio.ensure_future(message.lost.wait())
        try:
            await asyncio.wait((working, lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
            if not working.done():
                await _stop(process, working)
        code = working.result()
        return None if code == 0 else describe(code)

    async def _start(self, message: rvq.Message) -> asyncio.subprocess.Process:
        # A file in memory and not a pipe: the command may read as much or as little of it as it likes, and whenever.
        with open(os.memfd_create("rvq-message"), "w+b") as body:
            body.write(line_of(message.body))
            body.seek(0)
            facts = {"RVQ_MESSAGE_ID": message.id, "RVQ_MESSAGE_ATTEMPT": str(message.attempt)}
            return await asyncio.create_subprocess_shell(
                self._command, stdin=body, env=os.environ | facts, start_new_session=True
            )


async def _stop(process: asyncio.subprocess.Process, ending: asyncio.Future[int]) -> None:
    """Ends a command and everything that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if (await asyncio.wait((ending,), timeout=STOP_S))[0]:
            return
