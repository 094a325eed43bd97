"""A process with `rvq.consume`: `python -m tests.processes.consumer count work --port N --log F --ledger PLACE`.

What its handler does is its first word. Writes what happens to its log as `worker` does; times are the wall clock's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import rvq
from rvq.aio import run
from tests.ledger.places import find


class Handlers:
    """By name."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._log = os.open(args.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._hold = Path(args.hold) if args.hold else None
        self._sql = "?" if args.ledger.startswith("sqlite") else "%s"

    def note(self, event: str, *words: object) -> None:
        os.write(self._log, f"{event} {time.time():.6f} {' '.join(map(str, words))}\n".encode())

    async def plain(self, message: rvq.Message) -> None:
        self.note("handled", message.body, message.due_at, message.attempt)

    async def wait(self, message: rvq.Message) -> None:
        """As long as there is such a file."""
        self.note("begun", message.body, message.due_at, message.attempt)
        while self._hold is not None and self._hold.exists():
            await asyncio.sleep(0.01)
        self.note("handled", message.body, message.due_at, message.attempt)

    def look(self, message: rvq.Message) -> None:
        """The same in a thread, and gives up when its message is lost."""
        self.note("begun", message.body, message.due_at, message.attempt)
        while self._hold is not None and self._hold.exists():
            if message.lost.is_set():
                self.note("gave-up", message.body, message.due_at, message.attempt)
                return
            time.sleep(0.01)
        self.note("handled", message.body, message.due_at, message.attempt)

    def block(self, message: rvq.Message) -> None:
        """The same, and looks at nothing."""
        self.note("begun", message.body, message.due_at, message.attempt)
        while self._hold is not None and self._hold.exists():
            time.sleep(0.01)
        self.note("handled", message.body, message.due_at, message.attempt)

    async def poison(self, message: rvq.Message) -> None:
        """Ends its process, and is written down before."""
        self.note("handled", message.body, message.due_at, message.attempt)
        if message.body == "poison":
            os.kill(os.getpid(), signal.SIGKILL)

    async def count(self, message: rvq.Message) -> None:
        """One more of a word."""
        self.note("begun", message.body, message.due_at, message.attempt)
        async with message.transaction() as tx:
            await tx.execute(f"UPDATE words SET times = times + 1 WHERE word = {self._sql}", (message.key,))
        self.note("handled", message.body, message.due_at, message.attempt)

    async def hold(self, message: rvq.Message) -> None:
        """In mid-transaction, as long as there is such a file."""
        async with message.transaction() as tx:
            await tx.execute(f"UPDATE words SET times = times + 1 WHERE word = {self._sql}", (message.key,))
            self.note("inside", message.body, message.due_at, message.attempt)
            while self._hold is not None and self._hold.exists():
                await asyncio.sleep(0.01)
        self.note("handled", message.body, message.due_at, message.attempt)


async def consume(args: argparse.Namespace) -> None:
    handlers, stop = Handlers(args), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await rvq.consume(
        args.label,
        getattr(handlers, args.handler),
        attempts=args.attempts,
        concurrency=args.concurrency,
        ledger=find(args.ledger).ledger() if args.ledger else None,
        bus=rvq.Bus.from_env(port=args.port),
        stop=stop,
        on_table=lambda table: handlers.note("table", len(table.members), os.getpid()),
    )
    handlers.note("end")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("handler", choices=["plain", "wait", "look", "block", "poison", "count", "hold"])
    parser.add_argument("label")
    parser.add_argument("--log", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ledger", default="")
    parser.add_argument("--hold", default="", help="a file")
    parser.add_argument("--attempts", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=4)
    run(consume(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
