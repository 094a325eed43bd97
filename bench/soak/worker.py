"""One process of a soak: `python -m bench.soak.worker receive --group ledger --name a0.1 --folder F --key K`.

Senders write each message down before they send it, receivers before and after they handle it, a line each, by the
machine's true clock (`bench.soak.clocks`). What is done to it from outside (its wall clock set, its disk slowed) stands
in a file that it looks at as often as at its own clock. `story` reads the logs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import signal
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import rvq
from bench.soak.clocks import TrueClock, Wall
from bench.soak.schedule import GROUPS, JOURNAL, LABEL, LEDGER
from rvq.aio import run
from rvq.core import stream
from rvq.journal.storage import OsFile
from tests.processes.worker import NAP_S, WATCH_S, filler, name_of

FLAKY, LATER, LARGE, KEYED = 23, 17, 211, 2
"""Every so manieth message fails at first, is due later, is large; and every second of the others has a key."""
KEYS = 7
LARGE_BYTES = 60_000
WORK_S = 0.004
CONCURRENCY = 4
LATER_S = (0.2, 0.5, 1.0, 2.0)
FLUSH_EVERY, FLUSH_S = 150, 4.0
"""After so many messages a sender waits so long for all of them to be done: what was done then is known for certain."""
LINGER_S = 120.0
RETRIES = rvq.Backoff(first=0.2, most=2.0)
WAIT_FOR_WRITERS_S = 5.0
"""For whoever has the ledger's lock: it may be stopped."""
NEVER_GIVE_UP = 1_000_000

_LOST = re.compile(r"gone: lost (or handled .*, )?\d+ messages?: (.*)")
_REKEYED = "seals with key"


class Log:
    """Lines of words, by the true clock. Unbuffered, so that kill -9 loses nothing that has happened."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.now = TrueClock()

    def write(self, event: str, *words: object) -> None:
        os.write(self._file, f"{event} {self.now():.6f} {' '.join(map(str, words))}\n".encode())


class Telling(logging.Handler):
    """What the log of rvq says and the judge has to know: what is lost, and that there are other keys."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage()
        if found := _LOST.search(words):
            self._log.write("doubtful" if found[1] else "lost", found[2].replace(" ", ""))
        elif _REKEYED in words:
            self._log.write("rekeyed")


class Outside:
    """What is done to this process from outside."""

    def __init__(self, path: Path, log: Log) -> None:
        self.wall = Wall()
        self.sync_s = 0.0
        self._path, self._log = path, log
        self._seen = 0
        self.look()

    def look(self) -> None:
        try:
            changed = os.stat(self._path).st_mtime_ns
        except FileNotFoundError:
            return
        if changed != self._seen:
            self._seen = changed
            orders = json.loads(self._path.read_text())
            self.sync_s = orders["sync_s"]
            if orders["wall_s"] != self.wall.off_s:
                self._log.write("wall", f"{orders['wall_s'] - self.wall.off_s:.6f}")
                self.wall.off_s = orders["wall_s"]

    def slow_down_the_disk(self) -> None:
        """A disk whose every sync takes longer: OsFile with a wait behind it, in the thread that writes."""
        sync = OsFile.sync

        def slow_sync(file: OsFile) -> None:
            sync(file)
            if self.sync_s:
                time.sleep(self.sync_s)

        OsFile.sync = slow_sync  # type: ignore[method-assign]


async def watch(log: Log, outside: Outside) -> None:
    """Does what is told from outside, and writes down each time that the machine gave us no turn."""
    awake, worked = log.now(), time.process_time()
    while True:
        now, work = log.now(), time.process_time()
        if now - awake > NAP_S and work - worked < NAP_S / 2:
            log.write("nap", f"{awake:.6f}")
        awake, worked = now, work
        outside.look()
        await asyncio.sleep(WATCH_S)


class Failing(Exception):
    """The first attempt of some messages."""


class Handler:
    """Writes down what it does, and in the ledger's group into the ledger."""

    def __init__(self, args: argparse.Namespace, log: Log) -> None:
        self._name, self._log = args.name, log
        self._with_ledger = args.group == LEDGER

    async def __call__(self, message: rvq.Message) -> None:
        self._write_start(message)
        try:
            await asyncio.sleep(WORK_S)
            if message.attempt == 1 and message.sequence % FLAKY == 0:
                raise Failing("at first")
            if self._with_ledger:
                await self._have_effect(message)
        except rvq.AlreadyDone:
            self._log.write("taken", message.id)
            raise
        except asyncio.CancelledError:
            self._log.write("cancelled", message.id)
            raise
        except Exception:
            self._log.write("failed", message.id)
            raise
        self._log.write("finish", message.id)

    def _write_start(self, message: rvq.Message) -> None:
        asked = int(message.lane_asked_at is not None)
        due = "-" if message.due_at is None else f"{message.due_at:.6f}"
        facts = (message.attempt, asked, int(message.redelivered), message.key or "-", f"{time.time():.6f}", due)
        self._log.write("start", message.id, name_of(message.body), *facts)

    async def _have_effect(self, message: rvq.Message) -> None:
        async with message.transaction() as tx:
            await tx.execute("INSERT INTO effects VALUES (?, ?, ?)", (message.id, self._name, self._log.now()))


async def receive(args: argparse.Namespace, bus: rvq.Bus, log: Log) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    ledger = rvq.Ledger.sqlite(args.folder / "ledger.db", timeout=WAIT_FOR_WRITERS_S) if args.group == LEDGER else None
    await rvq.consume(
        LABEL,
        Handler(args, log),
        group=args.group,
        concurrency=CONCURRENCY,
        attempts=NEVER_GIVE_UP,
        backoff=RETRIES,
        ledger=ledger,
        bus=bus,
        stop=stop,
        on_table=lambda table: log.write("table", len(table.members)),
    )


async def record(args: argparse.Namespace, bus: rvq.Bus, log: Log) -> None:
    recorder = rvq.Recorder(
        args.folder / "journal", LABEL, bus=bus, on_table=lambda _, table: log.write("table", len(table.members))
    )
    async with recorder:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, recorder.leave)
        await recorder.wait()


async def send(args: argparse.Namespace, bus: rvq.Bus, log: Log) -> None:
    told_to_end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_end.set)
    async with rvq.Sender(LABEL, bus=bus, linger=LINGER_S) as sender:
        log.write("stream", f"{sender.id:016x}")
        while not set(sender.tables) >= set(GROUPS) and not told_to_end.is_set():
            await asyncio.sleep(WATCH_S)
        for number in count(1):
            if told_to_end.is_set():
                break
            await send_one(args, sender, log, number)
            if number % FLUSH_EVERY == 0:
                await make_sure(sender, log, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(1 / args.rate):
                    await told_to_end.wait()
        await sender.flush(LINGER_S)
        log.write("done", sender.undone)


async def send_one(args: argparse.Namespace, sender: rvq.Sender, log: Log, number: int) -> None:
    name = f"{args.name}/{number}"
    options: dict[str, Any] = {}
    if number % LATER == 0:
        options["delay"] = LATER_S[number // LATER % len(LATER_S)]
    elif number % KEYED == 0:
        options["key"] = f"{args.name}.{number // KEYED % KEYS}"
    body = [name, filler(name, LARGE_BYTES)] if number % LARGE == 0 else name
    log.write("write", number, name, options.get("key", "-"), options.get("delay", "-"))
    await sender.send(body, **options)


async def make_sure(sender: rvq.Sender, log: Log, number: int) -> None:
    """All up to this one are done in every group, if it does not take too long."""
    with suppress(rvq.NotDelivered):
        await sender.flush(FLUSH_S)
        log.write("checkpoint", number)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak.worker", description=__doc__)
    parser.add_argument("role", choices=["receive", "record", "send"])
    parser.add_argument("--name", required=True, help="of this process: host.number")
    parser.add_argument("--group", default=JOURNAL)
    parser.add_argument("--folder", type=Path, required=True, help="that all hosts share: key, ledger, journal")
    parser.add_argument("--rate", type=float, default=40.0, help="send: messages per second")
    parser.add_argument("--log", type=Path, required=True)
    return parser.parse_args(arguments)


async def live(args: argparse.Namespace, log: Log) -> None:
    outside = Outside(args.folder / f"{args.name.partition('.')[0]}.outside", log)
    outside.wall.install()
    outside.slow_down_the_disk()
    bus = rvq.Bus(interface="eth0", key=args.folder / "bus.key")
    watching = asyncio.create_task(watch(log, outside))
    try:
        await {"receive": receive, "record": record, "send": send}[args.role](args, bus, log)
        log.write("end")
    finally:
        watching.cancel()


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    log = Log(args.log)
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    logging.getLogger("rvq").addHandler(Telling(log))
    stream.LOST_SHOWN = sys.maxsize  # the judge wants to know all of them
    run(live(args, log))


if __name__ == "__main__":
    main(sys.argv[1:])
