"""pyzmq PUSH/PULL over TCP, blocking. Nothing is acknowledged: what a receiver holds when it dies is lost."""

from __future__ import annotations

from typing import Any

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.system import Job, System

QUEUED_MAX = 10_000
"""Messages per connection and side. The default of 1,000 costs some speed."""


def open_push(context: Any, job: Job, number: int) -> Any:
    """With all receivers connected, or the first would get everything. Watched from before it can be found."""
    import zmq
    from zmq.utils.monitor import recv_monitor_message

    socket = context.socket(zmq.PUSH)
    socket.set_hwm(QUEUED_MAX)
    events = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    socket.bind(f"tcp://127.0.0.1:{job.port + number}")
    for _ in range(job.receivers):
        if not events.poll(20_000):
            raise TimeoutError("a receiver did not connect")
        recv_monitor_message(events)
    socket.disable_monitor()
    return socket


def open_pull(context: Any, job: Job) -> Any:
    import zmq

    socket = context.socket(zmq.PULL)
    socket.set_hwm(QUEUED_MAX)
    for number in range(job.senders):
        socket.connect(f"tcp://127.0.0.1:{job.port + number}")
    return socket


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    import zmq

    socket = open_pull(zmq.Context(), job)
    socket.rcvtimeo = 50
    seen, every, recv = tally.seen, tally.EVERY, socket.recv
    board.set_ready(process)
    while not board.stop:
        try:
            while True:
                seen += recv()[:NUMBER_BYTES]
                if not len(seen) % every:
                    tally.tell()
        except zmq.Again:
            tally.tell(now=False)
    socket.close(0)


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    import zmq

    socket = open_push(zmq.Context(), job, number)
    board.set_ready(job.receivers + number)
    board.wait_for_go()
    push = socket.send
    for body in bodies:
        push(body)
    board.set_done(job.receivers + number)
    board.wait_for_stop()
    socket.close(0)


SYSTEM = System("pyzmq", "pyzmq PUSH/PULL, blocking", receive, send, 500_000, modules=("zmq",))
