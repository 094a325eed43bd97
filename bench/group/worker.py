"""A sender or a receiver as a process of its own: `python -m bench.group.worker receive --port N --log F`.

It says on stdout what happens, a line each with the time (CLOCK_MONOTONIC, which all processes of a machine share);
`fleet` reads that. Messages are bytes: a number of 8 bytes, the time of `send` in 8, and filling. A receiver writes
every message that it was handed to its log before it acknowledges it: the number, or with --times the number and the
times of sending and handling.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct

import rvq
from rvq.aio import run

HEAD = Struct(">Qd")
"""A message begins with its number and the time at which it was sent."""

TIMED = Struct("=Qdd")
"""A line of the log with --times: number, sent, handed out."""

SENDER_SHIFT = 40
"""The number of a message is its sender's in the upper bits, and its place in the lower."""

monotonic = time.monotonic


def say(event: str, *words: object) -> None:
    """Tell the parent. Unbuffered, so that kill -9 loses nothing that has happened."""
    os.write(1, f"{event} {monotonic():.6f} {' '.join(map(str, words))}\n".encode())


def say_stats(end: rvq.Sender | rvq.Receiver) -> None:
    """What it counted, what it took of memory at most, and of processor time."""
    say_usage(end.stats)


def say_usage(stats: rvq.Stats) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    facts = stats.as_dict() | {"rss_kib": usage.ru_maxrss, "cpu_s": round(usage.ru_utime + usage.ru_stime, 3)}
    say("stats", json.dumps(facts))


async def receive(args: argparse.Namespace) -> None:
    log = os.open(args.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if args.hold:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    receiver = rvq.Receiver(
        "bench", bus=bus_of(args), ack=args.ack, on_table=lambda table: say("table", len(table.members))
    )
    async with receiver:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, receiver.leave)
        if args.stall:
            await stall(receiver, log)
        elif args.times:
            await receive_each(receiver, log, args.work)
        else:
            await receive_batches(receiver, log)
        say_stats(receiver)
    say("end")


async def receive_batches(receiver: rvq.Receiver, log: int) -> None:
    """The fast way."""
    number_of = Struct(">Q").unpack_from
    async for batch in receiver.batches(max=500):
        os.write(log, array("Q", [number_of(message.body)[0] for message in batch]).tobytes())


async def receive_each(receiver: rvq.Receiver, log: int, work: float) -> None:
    """One by one, each with its times; handling takes `work` seconds."""
    async for message in receiver:
        number, sent = HEAD.unpack_from(message.body)
        os.write(log, TIMED.pack(number, sent, monotonic()))
        if work:
            await asyncio.sleep(work)


async def stall(receiver: rvq.Receiver, log: int) -> None:
    """Takes one batch, and then nothing any more. Its loop goes on: it is alive and says so."""
    number_of = Struct(">Q").unpack_from
    async for batch in receiver.batches(max=10):
        os.write(log, array("Q", [number_of(message.body)[0] for message in batch]).tobytes())
        say("stalled")
        await asyncio.get_running_loop().create_future()


async def record(args: argparse.Namespace) -> None:
    """Into the folder that the log names."""
    recorder = rvq.Recorder(
        args.log, "bench", bus=bus_of(args), on_table=lambda _, table: say("table", len(table.members))
    )
    async with recorder:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, recorder.leave)
        await recorder.wait()
        say_usage(recorder.stats["bench"])
    say("end")


async def send(args: argparse.Namespace) -> None:
    async with rvq.Sender("bench", bus=bus_of(args), linger=args.linger) as sender:
        if args.hold:
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop_waiting, asyncio.current_task())
        with suppress(asyncio.CancelledError):
            say("begin")
            await (send_paced(args, sender) if args.rate else send_fast(args, sender))
            say("sent")
            await sender.flush(args.linger)
            say("done", sender.undone)
            await sender.aclose()
        say_stats(sender)
        if sender.undone:
            say("undone", sender.undone)
            os._exit(0)  # told to stop in mid-stream: there is nothing to wait for
    say("end")


def stop_waiting(task: asyncio.Task[None] | None) -> None:
    assert task is not None
    task.cancel()


async def send_fast(args: argparse.Namespace, sender: rvq.Sender) -> None:
    await sender.send_many(bodies(args))


async def send_paced(args: argparse.Namespace, sender: rvq.Sender) -> None:
    """One by one, by the clock: a late one does not put off those behind it."""
    began = monotonic()
    for place, body in enumerate(bodies(args)):
        due = began + place / args.rate
        while (ahead := due - monotonic()) > 0.0005:
            await asyncio.sleep(ahead)
        await sender.send(HEAD.pack(HEAD.unpack_from(body)[0], monotonic()) + body[HEAD.size :])


def bodies(args: argparse.Namespace) -> Iterator[bytes]:
    base, filling = args.number << SENDER_SHIFT, bytes(max(0, args.size - HEAD.size))
    pack = HEAD.pack
    for place in range(args.count):
        yield pack(base + place, 0.0) + filling


def bus_of(args: argparse.Namespace) -> rvq.Bus:
    return rvq.Bus(interface=args.interface, port=args.port)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.group.worker", description=__doc__)
    parser.add_argument("role", choices=["receive", "send", "record"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--hold", action="store_true", help="be started and ready, and begin at a line on stdin")
    parser.add_argument("--log", help="receive: a file for the messages")
    parser.add_argument("--times", action="store_true", help="receive: one by one, with times")
    parser.add_argument("--work", type=float, default=0.0, help="receive: seconds that each message takes")
    parser.add_argument("--ack", default="auto")
    parser.add_argument("--stall", action="store_true", help="receive: stop reading after the first batch")
    parser.add_argument("--number", type=int, default=0, help="send: which sender this is")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.0, help="send: messages per second; 0: as fast as it goes")
    parser.add_argument("--size", type=int, default=64, help="send: bytes of each message")
    parser.add_argument("--linger", type=float, default=100.0)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    args = parse(arguments)
    run({"receive": receive, "send": send, "record": record}[args.role](args))


if __name__ == "__main__":
    main(sys.argv[1:])
