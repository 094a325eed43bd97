"""Dead letters back to their label as new messages. Owns the order: sent, done there, and only then acknowledged here.

Ended in between, a message was sent again and its letter is still there: at least once, never lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import rvq
from rvq.cli.letters import Found
from rvq.cli.words import Words
from rvq.errors import NotDelivered, RvqError

TICK_S = 0.1
"""Between two looks at what is done."""

PATIENCE_S = 0.5
"""How long it waits without a word why."""

AT_ONCE = 100
"""Sent and not done: what may be handled again if this process is killed."""


class Redriving:
    """Through one sender, whose first message is the first of these."""

    def __init__(self, sender: rvq.Sender, words: Words, *, prog: str, linger: float) -> None:
        self.done = 0
        """Done at their label, and their letters acknowledged."""
        self._sender = sender
        self._words = words
        self._prog = prog
        self._linger = linger
        self._sent = 0
        self._pending: dict[int, Found] = {}
        """By their number among the sent."""
        self._progress_at = 0.0
        self._said: str | None = None

    async def run(self, letters: Sequence[Found]) -> None:
        """NotDelivered when `linger` seconds passed in which nothing more was done; those before are acknowledged."""
        self._progress_at = time.monotonic()
        for found in letters:
            while len(self._pending) >= AT_ONCE or not await self._send(found):
                await self._wait(len(letters))
        while self._pending:
            await self._wait(len(letters))

    async def _send(self, found: Found) -> bool:
        """False if there is no room for it now."""
        letter = found.letter
        assert letter is not None
        try:
            async with asyncio.timeout(TICK_S):
                await self._sender.send(letter.body, key=letter.key, headers=letter.headers)
        except TimeoutError:
            return False
        except (RvqError, TypeError, ValueError) as error:
            self._words.say(f"{self._prog}: {found.id} cannot be sent again: {error}", urgent=True)
            return True
        self._sent += 1
        self._pending[self._sent] = found
        return True

    async def _wait(self, total: int) -> None:
        """A moment, and whatever was done in it."""
        before = self.done
        left = self._progress_at + self._linger - time.monotonic()
        try:
            await self._sender.flush(timeout=max(0.0, min(left, TICK_S)))
        except NotDelivered:
            self._settle()
            if self.done == before and left <= TICK_S:
                raise
        else:
            self._settle()
        if self.done != before:
            self._progress_at = time.monotonic()
        self._tell(total)

    def _settle(self) -> None:
        for number in [number for number in self._pending if self._sender.is_done(number)]:
            found = self._pending.pop(number)
            found.message.ack()
            self.done += 1

    def _tell(self, total: int) -> None:
        why = self._sender.waiting_for
        if why != self._said and (why is None or time.monotonic() - self._progress_at >= PATIENCE_S):
            self._said = why
            self._words.say(f"{self._prog}: " + ("going on" if why is None else f"waiting: {why}"))
        self._words.draw(f"{self.done:,} of {total:,} done again"[: self._words.columns])


async def redrive(label: str, bus: rvq.Bus, letters: Sequence[Found], words: Words, *, prog: str, linger: float) -> int:
    """How many are done again. What is not is said."""
    redriving: Redriving | None = None
    try:
        async with rvq.Sender(label, bus=bus, linger=linger) as sender:
            redriving = Redriving(sender, words, prog=prog, linger=linger)
            await redriving.run(letters)
    except NotDelivered as error:
        words.say(f"{prog}: gave up: {error}", urgent=True)
    except asyncio.CancelledError:
        done = redriving.done if redriving is not None else 0
        words.say(
            f"{prog}: interrupted when {done} of {len(letters)} were done again; the rest is still on {label}.dead"
        )
        raise
    finally:
        words.erase()
    await asyncio.sleep(0)  # the receiver tells what was acknowledged
    return redriving.done if redriving is not None else 0
