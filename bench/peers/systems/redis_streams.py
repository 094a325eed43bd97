"""Redis Streams: XADD pipelined to XREADGROUP and XACK of many, redis-py, blocking. As rvq, acknowledged."""

from __future__ import annotations

from typing import Any

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.redis_lists import BATCH, KEY, connect
from bench.peers.systems.system import Job, System

GROUP = "all"


def prepare(job: Job) -> None:
    client = connect(job)
    client.flushall()
    client.xgroup_create(KEY, GROUP, id="0", mkstream=True)
    client.close()


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    client = connect(job)
    client.ping()
    seen, name = tally.seen, str(process)
    board.set_ready(process)
    while not board.stop:
        found = client.xreadgroup(GROUP, name, {KEY: ">"}, count=BATCH, block=50)
        for messages in _lists_in(found):
            seen += b"".join([fields[b"b"][:NUMBER_BYTES] for _, fields in messages])
            client.xack(KEY, GROUP, *[id for id, _ in messages])
            tally.tell()
    client.close()


def _lists_in(found: Any) -> list[list[Any]]:
    """The messages of each stream in an answer: redis-py shapes it by the version of the protocol."""
    if isinstance(found, dict):
        return [messages for lists in found.values() for messages in lists]
    return [messages for _, messages in found or ()]


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    client = connect(job)
    client.ping()
    board.set_ready(job.receivers + number)
    board.wait_for_go()
    for start in range(0, len(bodies), BATCH):
        pipeline = client.pipeline(transaction=False)
        for body in bodies[start : start + BATCH]:
            pipeline.xadd(KEY, {"b": body})
        pipeline.execute()
    board.set_done(job.receivers + number)
    board.wait_for_stop()
    client.close()


SYSTEM = System(
    "Redis Streams",
    "Redis Streams with acks, blocking",
    receive,
    send,
    80_000,
    modules=("redis",),
    server="redis-server",
    prepare=prepare,
)
