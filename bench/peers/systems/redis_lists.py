"""Redis lists: RPUSH of many values to BLMPOP of many, redis-py, blocking. Popped is gone: nothing is acknowledged."""

from __future__ import annotations

import time
from typing import Any

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.system import Job, System

KEY = "bench"
BATCH = 500
PIPELINED = 8
"""Commands that are sent before their answers are read."""
LISTED_MAX = 200_000
"""Messages in the list: above it the sender waits, as nothing else holds it back."""


def connect(job: Job) -> Any:
    import redis

    return redis.Redis(host="127.0.0.1", port=job.port)


def prepare(job: Job) -> None:
    connect(job).flushall()


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    client = connect(job)
    client.ping()
    seen = tally.seen
    board.set_ready(process)
    while not board.stop:
        popped = client.blmpop(0.05, 1, KEY, direction="LEFT", count=BATCH)
        if popped:
            seen += b"".join([body[:NUMBER_BYTES] for body in popped[1]])
            tally.tell()
    client.close()


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    client = connect(job)
    client.ping()
    board.set_ready(job.receivers + number)
    board.wait_for_go()
    for start in range(0, len(bodies), BATCH * PIPELINED):
        pipeline = client.pipeline(transaction=False)
        for first in range(start, min(start + BATCH * PIPELINED, len(bodies)), BATCH):
            pipeline.rpush(KEY, *bodies[first : first + BATCH])
        listed = pipeline.execute()[-1]
        while listed > LISTED_MAX:
            time.sleep(0.001)
            listed = client.llen(KEY)
    board.set_done(job.receivers + number)
    board.wait_for_stop()
    client.close()


SYSTEM = System(
    "Redis lists",
    "Redis lists, pipelined, blocking",
    receive,
    send,
    800_000,
    modules=("redis",),
    server="redis-server",
    prepare=prepare,
)
