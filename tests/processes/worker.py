"""A sender or a receiver as a process of its own: `python -m tests.processes.worker receive work --log F --port N`.

Writes what happens to its log, a line each and unbuffered, so that kill -9 loses nothing that has happened. Times are
CLOCK_MONOTONIC, which all processes of a machine share. `harness` reads the log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import rvq
from rvq.aio import run

MANY = 1_000_000

WATCH_S = 0.02
"""How often the table and the clock are looked at. Tests await it, and assert nothing on how long it took."""

NAP_S = 0.3
"""No turn for so long counts as having been stopped; unless half of it was spent on the CPU: then it was our doing."""


class Log:
    """Lines of words."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, event: str, *words: object) -> None:
        os.write(self._file, f"{event} {time.monotonic():.6f} {' '.join(map(str, words))}\n".encode())


def filler(name: str, size: int) -> bytes:
    """What a message of that name and size carries: no two messages alike, no two parts of one alike."""
    line = b"".join(f"{name}+{offset}|".encode() for offset in range(0, size, 4))
    return line[:size]


def name_of(body: Any) -> str:
    """The name that the sender gave the message, or one that no sender gives."""
    if isinstance(body, str):
        return body
    name, data = body
    return str(name) if data == filler(name, len(data)) else f"spoilt:{name}"


async def receive(args: argparse.Namespace, bus: rvq.Bus, log: Log) -> None:
    loop = asyncio.get_running_loop()
    group = None if args.tap else args.group
    async with rvq.Receiver(args.label, group=group, weight=args.weight, bus=bus) as receiver:
        if args.tap:
            log.write("table", 0, None)  # it is open, and in no table
        loop.add_signal_handler(signal.SIGTERM, receiver.leave)
        watching = asyncio.create_task(watch(receiver, log))
        async for message in receiver:
            name = name_of(message.body)
            log.write("start", name, message.attempt, int(message.redelivered), message.key or "-")
            if args.work:
                await asyncio.sleep(args.work)
            log.write("finish", name)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    log.write("end")


async def watch(receiver: rvq.Receiver, log: Log) -> None:
    """Writes each table that the receiver sees in force, and each time that the machine gave it no turn."""
    seen = None
    awake, worked = time.monotonic(), time.process_time()
    while True:
        now, work = time.monotonic(), time.process_time()
        if now - awake > NAP_S and work - worked < NAP_S / 2:
            log.write("nap", f"{awake:.6f}")
        awake, worked = now, work
        table = receiver.table
        if table is not None and table != seen:
            seen = table
            log.write("table", len(table.members), table.index)
        await asyncio.sleep(WATCH_S)


async def send(args: argparse.Namespace, bus: rvq.Bus, log: Log) -> None:
    told_to_end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_end.set)
    async with rvq.Sender(args.label, bus=bus, linger=args.linger) as sender:
        while len(sender.tables) < args.groups:
            await asyncio.sleep(WATCH_S)
        began = time.monotonic()
        for first, last in chunks(args):
            if told_to_end.is_set():
                break
            if args.rate:
                await asyncio.sleep(max(0.0, began + first / args.rate - time.monotonic()))
            log.write("write", first, last)
            await send_chunk(args, sender, first, last)
        log.write("sent")
        await sender.flush()
        log.write("done", sender.undone)
    log.write("end")


def chunks(args: argparse.Namespace) -> Iterator[tuple[int, int]]:
    size = 1 if args.rate or args.keys or args.size else 100
    for first in range(0, args.count or MANY, size):
        yield first, min(first + size, args.count or MANY) - 1


async def send_chunk(args: argparse.Namespace, sender: rvq.Sender, first: int, last: int) -> None:
    names = [f"{args.name}/{number}" for number in range(first, last + 1)]
    if args.keys:
        for number, name in enumerate(names, first):
            await sender.send(name, key=f"{args.name}.{number % args.keys}")
    elif args.size:
        for name in names:
            await sender.send([name, filler(name, args.size)])
    else:
        await sender.send_many(names)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["receive", "send"])
    parser.add_argument("label")
    parser.add_argument("--log", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--key", help="the bus is sealed with this key file")
    parser.add_argument("--group", default="default")
    parser.add_argument("--weight", type=int, default=1)
    parser.add_argument("--tap", type=int, default=0, help="1: in no group")
    parser.add_argument("--work", type=float, default=0.0, help="seconds that each message takes")
    parser.add_argument("--name", default="s", help="first part of the names of the messages")
    parser.add_argument("--count", type=int, default=0, help="0: goes on until SIGTERM")
    parser.add_argument("--rate", type=float, default=0.0, help="messages per second; 0: as fast as it goes")
    parser.add_argument("--keys", type=int, default=0, help="messages have one of that many keys in turn")
    parser.add_argument("--size", type=int, default=0, help="bytes of each message")
    parser.add_argument("--groups", type=int, default=0, help="begin when that many groups listen")
    parser.add_argument("--linger", type=float, default=30.0)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    bus = rvq.Bus.from_env(interface=args.interface, port=args.port, key=args.key)
    run({"receive": receive, "send": send}[args.role](args, bus, Log(args.log)))


if __name__ == "__main__":
    main(sys.argv[1:])
