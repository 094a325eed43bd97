"""rvq the fast way: `send_many` to `batches()`. Every message is acknowledged, and known as done at its sender."""

from __future__ import annotations

import asyncio

import rvq
from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.system import Job, System
from rvq.aio import run

LABEL = "bench"
_ = rvq.Receiver, rvq.Sender  # public names are imported when first used: here, before the processes fork


def bus_of(job: Job) -> rvq.Bus:
    peers = [job.peers] if job.peers else None
    return rvq.Bus(interface=job.interface, port=job.port, key=bytes.fromhex(job.key) or None, peers=peers)


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    run(_receive(job, board, process, tally))


async def _receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    seen = tally.seen
    async with rvq.Receiver(LABEL, bus=bus_of(job)) as receiver:
        leaving = asyncio.create_task(leave(board, process, receiver))
        await gathered(job, board, process, receiver)
        async for batch in receiver.batches():
            seen += b"".join([message.body[:NUMBER_BYTES] for message in batch])
            tally.tell()
        await leaving


async def gathered(job: Job, board: Board, process: int, receiver: rvq.Receiver) -> None:
    while receiver.table is None or len(receiver.table.members) < job.receivers:
        await asyncio.sleep(0.01)
    board.set_ready(process)


async def leave(board: Board, process: int, receiver: rvq.Receiver) -> None:
    await board.go_said()
    before = datagrams_out(receiver)
    await board.stop_said()
    board.set_extra(process, datagrams_out(receiver) - before)
    receiver.leave()


def datagrams_out(receiver: rvq.Receiver) -> int:
    """A receiver sends nothing but control. Not public: it is of interest to nobody but a bench."""
    assert receiver._driver is not None
    return receiver._driver._endpoint.datagrams_out


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    run(_send(job, board, job.receivers + number, bodies))


async def _send(job: Job, board: Board, process: int, bodies: list[bytes]) -> None:
    async with rvq.Sender(LABEL, bus=bus_of(job)) as sender:
        await heard(job, board, process, sender)
        await sender.send_many(bodies)
        await sender.flush()
        board.set_done(process)
        await board.stop_said()


async def heard(job: Job, board: Board, process: int, sender: rvq.Sender) -> None:
    """All receivers are in force here, and everyone else is ready too."""
    while sum(len(table.members) for table in sender.tables.values()) < job.receivers:
        await asyncio.sleep(0.01)
    board.set_ready(process)
    await board.go_said()


SYSTEM = System("rvq batches", "rvq, send_many -> batches()", receive, send, 1_200_000)
