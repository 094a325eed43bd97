"""rvq one by one: `await send` per message to `async for`. With a rate, each message carries when it was sent."""

from __future__ import annotations

import asyncio

import rvq
from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.pace import Pace, note
from bench.peers.systems.rvq_batches import LABEL, bus_of, gathered, heard, leave
from bench.peers.systems.system import Job, System
from rvq.aio import run


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    run(_receive(job, board, process, tally))


async def _receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    async with rvq.Receiver(LABEL, bus=bus_of(job)) as receiver:
        leaving = asyncio.create_task(leave(board, process, receiver))
        telling = asyncio.create_task(tally.tell_always())
        await gathered(job, board, process, receiver)
        await (_time_each(receiver, tally) if job.rate else _take_each(receiver, tally))
        await leaving
        await telling


async def _take_each(receiver: rvq.Receiver, tally: Tally) -> None:
    seen, every = tally.seen, tally.EVERY
    async for message in receiver:
        seen += message.body[:NUMBER_BYTES]
        if not len(seen) % every:
            tally.tell()


async def _time_each(receiver: rvq.Receiver, tally: Tally) -> None:
    async for message in receiver:
        note(tally, message.body)


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    run(_send(job, board, job.receivers + number, bodies))


async def _send(job: Job, board: Board, process: int, bodies: list[bytes]) -> None:
    async with rvq.Sender(LABEL, bus=bus_of(job)) as sender:
        await heard(job, board, process, sender)
        if job.rate:
            async for body in Pace(job.rate, bodies):
                await sender.send(body)
        else:
            for body in bodies:
                await sender.send(body)
        await sender.flush()
        board.set_done(process)
        await board.stop_said()


SYSTEM = System("rvq each", "rvq, await send -> async for", receive, send, 300_000)
