"""pyzmq PUSH/PULL over TCP, `zmq.asyncio` on uvloop."""

from __future__ import annotations

import asyncio

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.pace import Pace, note
from bench.peers.systems.system import Job, System
from bench.peers.systems.zmq_blocking import open_pull, open_push
from rvq.aio import run


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    run(_receive(job, board, process, tally))


async def _receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    import zmq.asyncio

    socket = open_pull(zmq.asyncio.Context(), job)
    telling = asyncio.create_task(tally.tell_always())
    taking = asyncio.create_task(_take(socket, tally, bool(job.rate)))
    board.set_ready(process)
    await telling
    taking.cancel()
    await asyncio.wait([taking])
    socket.close(0)


async def _take(socket, tally: Tally, timed: bool) -> None:  # type: ignore[no-untyped-def]
    seen, every = tally.seen, tally.EVERY
    while timed:
        note(tally, await socket.recv())
    while True:
        seen += (await socket.recv())[:NUMBER_BYTES]
        if not len(seen) % every:
            tally.tell()


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    run(_send(job, board, number, bodies))


async def _send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    import zmq
    import zmq.asyncio

    socket = zmq.asyncio.Socket.from_socket(open_push(zmq.Context(), job, number))
    board.set_ready(job.receivers + number)
    await board.go_said()
    if job.rate:
        async for body in Pace(job.rate, bodies):
            await socket.send(body)
    else:
        for body in bodies:
            await socket.send(body)
    board.set_done(job.receivers + number)
    await board.stop_said()
    socket.close(0)


SYSTEM = System("pyzmq uvloop", "pyzmq PUSH/PULL on uvloop", receive, send, 80_000, modules=("zmq",))
