"""nats-py: a queue group on nats-server, on uvloop. Nothing is acknowledged."""

from __future__ import annotations

from typing import Any

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.system import Job, System
from rvq.aio import run

FLUSH_EVERY = 10_000
"""Messages after which the sender waits for the server, or the client's buffer grows without end."""


async def _connect(job: Job) -> Any:
    import nats

    return await nats.connect(f"nats://127.0.0.1:{job.port}", pending_size=8 << 20, allow_reconnect=False)


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    run(_receive(job, board, process, tally))


async def _receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    client = await _connect(job)
    seen, every = tally.seen, tally.EVERY

    async def take(message: Any) -> None:
        nonlocal seen
        seen += message.data[:NUMBER_BYTES]
        if not len(seen) % every:
            tally.tell()

    await client.subscribe("bench", queue="all", cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await client.flush()
    board.set_ready(process)
    await tally.tell_always()
    await client.close()


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    run(_send(job, board, number, bodies))


async def _send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    client = await _connect(job)
    board.set_ready(job.receivers + number)
    await board.go_said()
    for start in range(0, len(bodies), FLUSH_EVERY):
        for body in bodies[start : start + FLUSH_EVERY]:
            await client.publish("bench", body)
        await client.flush()
    board.set_done(job.receivers + number)
    await board.stop_said()
    await client.close()


SYSTEM = System(
    "nats-py", "nats-py, queue group, uvloop", receive, send, 150_000, modules=("nats",), server="nats-server"
)
