"""What is on a label of dead letters, without taking it away. Owns when everything is there that will come.

A letter lives in the process that gave its message up. Whoever joins the label is sent all of them, and who leaves
without acknowledging any leaves them to the next.
"""

from __future__ import annotations

import asyncio

import rvq
from rvq.bus import Bus
from rvq.cli.letters import Found
from rvq.cli.words import Words

WAIT_S = 1.5
"""Quiet after which no more is expected: senders find a new receiver in 0.4 s, and miss a killed one after 1.2 s."""

INHERIT_S = 15.0
"""How long to wait for what one held that was killed: it passes on after 5.5 s, when nobody can be at it any more."""

OTHERS_S = 5.0
"""How long to wait for another receiver to leave what it holds: one that is on its way out is gone by then."""

PATIENCE_S = 3.0
"""A look takes less. One that takes longer says what it waits for."""

BATCH = 500


class Collecting:
    """Joins a label of dead letters and gathers what comes. They are held, unacknowledged, until the block is left."""

    def __init__(self, label: str, bus: Bus, words: Words, wait: float, *, prog: str = "rvq dead") -> None:
        self.others = 0
        """Other receivers that were there at the end: what they hold was not seen."""
        self._label = label
        self._words = words
        self._wait = wait
        self._prog = prog
        self._limit: asyncio.Timeout | None = None
        self._first_other_at: float | None = None
        self._found: dict[str, Found] = {}
        self.receiver = rvq.Receiver(label, ack="manual", bus=bus, on_table=self._look_around)

    async def run(self) -> list[Found]:
        """Everything that is there, in the order in which it came there."""
        gives_up_at = asyncio.get_running_loop().time() + INHERIT_S
        telling = asyncio.create_task(self._tell_what_it_waits_for())
        try:
            await self._gather()
            while self.receiver.inheriting and asyncio.get_running_loop().time() < gives_up_at:
                await self._gather()
        finally:
            telling.cancel()
            self._words.erase()
        return sorted(self._found.values(), key=lambda found: (found.at, found.id))

    async def _gather(self) -> None:
        """Until it is quiet."""
        self._draw()
        try:
            async with asyncio.timeout(None) as self._limit:
                self._put_off()
                while batch := await self.receiver.take(BATCH):
                    for message in batch:
                        self._found[message.id] = Found.of(message)
                    self._put_off()
                    self._draw()
        except TimeoutError:
            pass
        finally:
            self._limit = None

    async def _tell_what_it_waits_for(self) -> None:
        await asyncio.sleep(max(PATIENCE_S, 2 * self._wait))
        self._words.say(f"{self._prog}: still looking at {self._label}: {self.waits_for}")

    @property
    def waits_for(self) -> str:
        """Why it is not at an end, in words."""
        if self.receiver.inheriting:
            return "what a receiver held that is gone without a goodbye passes on when it surely is dead, after 8 s"
        if self.others:
            return f"{_others(self.others)} there, and may leave what it holds: {OTHERS_S:g} s are given to that"
        return f"{len(self._found):,} came, and more may come until it is quiet for {self._wait:g} s"

    def _look_around(self, table: rvq.TableView) -> None:
        """Who comes or goes may bring something."""
        now = asyncio.get_running_loop().time()
        self.others = len(table.members) - (table.index is not None)
        if not self.others:
            self._first_other_at = None
        elif self._first_other_at is None:
            self._first_other_at = now
        self._put_off()

    def _put_off(self) -> None:
        """Quiet begins again. While others are there it is not counted, for as long as they may be on their way out."""
        if self._limit is not None:
            ends_at = asyncio.get_running_loop().time() + self._wait
            if self._first_other_at is not None:
                ends_at = max(ends_at, self._first_other_at + OTHERS_S)
            self._limit.reschedule(ends_at)

    def _draw(self) -> None:
        more = ", and what another held that was killed" if self.receiver.inheriting else ""
        self._words.draw(f"looking at {self._label}: {len(self._found):,} so far{more}"[: self._words.columns])


def _others(number: int) -> str:
    return "another receiver is" if number == 1 else f"{number} other receivers are"
