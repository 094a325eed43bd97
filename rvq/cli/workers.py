"""A shell command for each message: `rvq-listen --exec`. Owns the processes, and what their exit codes mean.

Commands run in sessions of their own: Ctrl-C is for rvq-listen, which lets them finish.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from random import Random

import rvq
from rvq.cli.bodies import line_of
from rvq.cli.quiet import Quiet
from rvq.cli.words import Words
from rvq.dead import dead_label

STOP_S = 2.0
"""How long a command that is told to stop may take for it."""


def describe(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"


class Workers:
    """Runs `command` for each message, `concurrency` at once, until `count` of them are done or given up.

    attempts: after so many that failed, or took their whole process with them, a message is given up; else never.
    """

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
        self._backoff = rvq.Backoff()
        self._random = Random()
        self.buried = 0

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
            if self._is_beyond(message) or self._settle(message, await self._outcome(message)):
                self._finished += 1
        finally:
            self._running -= 1
            self._look_quiet()
            async with self._changed:
                self._changed.notify_all()

    def _is_beyond(self, message: rvq.Message) -> bool:
        """One that ended its processes often enough is given up, and not tried here."""
        tries = message.attempt - 1
        if self._attempts is None or tries < self._attempts:
            return False
        self._bury(message, f"its receiver ended or was cut off at each of {tries} attempts", tries)
        return True

    def _bury(self, message: rvq.Message, fault: str, attempts: int) -> None:
        self.buried += 1
        message.bury(fault, attempts=attempts)
        label, dead = message.label, dead_label(message.label)
        tries = f"after {attempts} attempt{'s' * (attempts != 1)}"
        where = f"now on {dead} (rvq dead ls {label})" if dead is not None else "dropped, since it was a dead letter"
        self._words.say(f"{self._prog}: {message.id}: {fault}, given up {tries}: {where}")

    def _settle(self, message: rvq.Message, fault: str | None) -> bool:
        """Acknowledges, gives up, or tries again. False if the message is not finished here."""
        if fault is None:
            message.ack()
            return True
        if message.lost.is_set():
            self._words.say(f"{self._prog}: {message.id}: no longer ours to handle, {fault}")
            message.retry()  # in case it comes back to us
            return False
        if self._attempts is not None and message.attempt >= self._attempts:
            self._bury(message, fault, message.attempt)
            return True
        pause = self._backoff.pause(message.attempt, self._random)
        when = f"in {pause:.1f} s" if pause else "at once"
        self._words.say(f"{self._prog}: {message.id}: {fault} at attempt {message.attempt}, again {when}")
        message.retry(pause)
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
            was_stopped = not working.done()
        finally:
            lost.cancel()
            if not working.done():
                await _stop(process, working)
        code = working.result()
        if code == 0:
            return "stopped" if was_stopped else None
        return describe(code)

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
