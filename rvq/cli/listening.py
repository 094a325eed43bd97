"""One run of `rvq-listen` on the event loop. Owns when it ends: signals, quiet, enough messages, or nobody who reads.

What becomes of the messages is the printer's or the workers' business.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack

import rvq
from rvq.bus import Bus
from rvq.cli.bodies import lines_of, meta_lines_of
from rvq.cli.command import ALL_DONE, FAULT
from rvq.cli.listen import GROUP
from rvq.cli.measuring import measuring
from rvq.cli.output import Output
from rvq.cli.printer import Printer
from rvq.cli.quiet import Quiet
from rvq.cli.signals import calling_on_signals
from rvq.cli.words import Words
from rvq.cli.workers import Workers

PATIENCE_S, PATIENCE_S_MAX = 1.0, 60.0
"""How long it stays without a word when it is to leave, and how long at most before it looks again what keeps it."""


def announcement(label: str, group: str | None, identity: int, table: rvq.TableView) -> str:
    """Who one is, for people. The index is the one that messages carry: from 0."""
    place = f"index {table.index} of {len(table.members)}" if table.index is not None else "and not in its table"
    return f"listening on {label} (group {group}) as {f'{identity:016x}'[:4]}… {place}"


class Listening:
    """A receiver, from joining to leaving."""

    def __init__(self, args: argparse.Namespace, bus: Bus, words: Words) -> None:
        self._args = args
        self._words = words
        self._announced = ""
        self._signals = 0
        self._leaving = False
        self._stopped: int | None = None
        self._telling: asyncio.Task[None] | None = None
        self._group = None if args.tap else args.group or GROUP
        self._receiver = rvq.Receiver(
            args.label,
            group=self._group,
            weight=args.weight or 1,
            ack="auto" if args.exec is None else "manual",
            bus=bus,
            on_table=self._announce,
            tracked=args.exec is not None,
            from_journal=args.from_journal,
        )

    async def run(self) -> int:
        """0 if everything that was begun is done."""
        try:
            code = await self._run()
        finally:
            if self._telling is not None:
                self._telling.cancel()
        # Why is said by the library's log, which is heard here. What a tap has not seen is nobody's loss.
        lost = self._receiver.dead_letters.left or (self._group is not None and self._receiver.stats.lost)
        return FAULT if lost else code

    async def _run(self) -> int:
        task = asyncio.current_task()
        assert task is not None
        with calling_on_signals(lambda: self._on_signal(task)):
            try:
                # Ended by an exception, it hands back at once what it holds: nothing that was not written is done.
                async with AsyncExitStack() as stack:
                    stack.enter_context(measuring(self._args, self._words, self._receiver))
                    await stack.enter_async_context(self._receiver)
                    if self._args.tap:
                        self._words.say(f"tapping {self._args.label}: sees everything, owns nothing")
                    try:
                        return await (self._print(task) if self._args.exec is None else self._work())
                    finally:
                        self._leaving = True
            except asyncio.CancelledError:
                if self._stopped is None:
                    raise
                return self._stopped
            except BrokenPipeError:
                return ALL_DONE  # whoever read the lines has enough of them

    async def _print(self, task: asyncio.Task[int]) -> int:
        output = Output(1)
        output.when_closed(lambda: self._stop(task, ALL_DONE))
        render = meta_lines_of if self._args.meta else lines_of
        quiet = Quiet(self._args.idle, self._leave)
        try:
            await Printer(self._receiver, output, render, quiet, self._args.count).run()
        finally:
            quiet.end()
        return ALL_DONE

    async def _work(self) -> int:
        args = self._args
        quiet = Quiet(args.idle, self._leave)
        workers = Workers(
            self._receiver,
            args.exec,
            self._words,
            quiet,
            prog=args.prog,
            concurrency=args.concurrency or 1,
            attempts=args.attempts,
            count=args.count,
        )
        try:
            await workers.run()
        finally:
            quiet.end()
        return FAULT if workers.buried else ALL_DONE

    def _announce(self, table: rvq.TableView) -> None:
        text = announcement(self._args.label, self._group, self._receiver.id, table)
        if text != self._announced and not self._leaving:  # then it is no news that others take its place
            self._announced = text
            self._words.say(text)

    def _on_signal(self, task: asyncio.Task[int]) -> None:
        self._signals += 1
        if self._signals > 1:
            self._stop(task, FAULT)
            return
        self._words.say(f"{self._args.prog}: leaving when what is in hand is done; once more to leave at once")
        self._leave()

    def _leave(self) -> None:
        self._leaving = True
        self._receiver.leave()
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_what_keeps_it())

    async def _tell_what_keeps_it(self) -> None:
        pause, said = PATIENCE_S, None
        while True:
            await asyncio.sleep(pause)
            why = self._receiver.waiting_for
            if why is not None and why != said:
                self._words.say(f"{self._args.prog}: still here: {why}")
                said = why
            pause = min(2 * pause, PATIENCE_S_MAX)

    def _stop(self, task: asyncio.Task[int], code: int) -> None:
        self._stopped = code
        self._leaving = True
        task.cancel()
