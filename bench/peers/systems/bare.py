"""The ceiling: bare multicast in pure Python, blocking. Datagrams of 60 KiB with a block of offsets; a receiver slices
out only its own; a window, so that nothing is lost. No membership, no acknowledgement, no repair: if anything were
lost, this would hang.
"""

from __future__ import annotations

import socket
import struct
from itertools import accumulate

from bench.peers.board import NUMBER_BYTES, Board, Tally
from bench.peers.systems.pace import Pace, note
from bench.peers.systems.system import Job, System
from rvq.aio import run

GROUP = "239.255.77.7"
DATAGRAM_BYTES = 60_000
WINDOW_BYTES = 3 << 20
"""Of all senders together, in datagrams on their way."""
BUFFER_BYTES = 8 << 20
REPORT_EVERY = 4
"""Datagrams of a sender that a receiver takes before it says so."""

_SO_RCVBUFFORCE = 33
_REPORT = struct.Struct("<HQ")
"""Which receiver, and how many datagrams it has had of this sender."""


def _open_receiving(job: Job) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    sock.bind((GROUP, job.port))
    member = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return sock


def _open_sending() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
    sock.bind(("127.0.0.1", 0))
    return sock


def receive(job: Job, board: Board, process: int, tally: Tally) -> None:
    if job.rate:
        run(_receive_timed(job, board, process, tally))
        return
    sock = _open_receiving(job)
    sock.settimeout(0.05)
    seen, number_of, step = tally.seen, struct.Struct("<H").unpack_from, job.receivers
    had: dict[tuple[str, int], int] = {}
    board.set_ready(process)
    while not board.stop:
        try:
            datagram, source = sock.recvfrom(65_536)
        except TimeoutError:
            for source, count in had.items():
                sock.sendto(_REPORT.pack(process, count), source)
            continue
        count = had[source] = had.get(source, 0) + 1
        if not count % REPORT_EVERY:
            sock.sendto(_REPORT.pack(process, count), source)
        (messages,) = number_of(datagram)
        ends = struct.unpack_from(f"<{messages + 1}H", datagram, 2)
        bodies = [
            datagram[start:end]
            for start, end in zip(ends[process:messages:step], ends[process + 1 :: step], strict=True)
        ]
        seen += b"".join([body[:NUMBER_BYTES] for body in bodies])
        tally.tell()
    sock.close()


def send(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    if job.rate:
        run(_send_timed(job, board, number, bodies))
        return
    sock = _open_sending()
    taken = [0] * job.receivers
    window = max(REPORT_EVERY, WINDOW_BYTES // DATAGRAM_BYTES // job.senders)
    # By the mean length: where lengths differ, that leaves room enough below the 65,507 bytes that a datagram may have.
    per_datagram = (DATAGRAM_BYTES - 4) // (job.size + 2)
    target = (GROUP, job.port)
    board.set_ready(job.receivers + number)
    board.wait_for_go()
    for sent, start in enumerate(range(0, len(bodies), per_datagram)):
        while sent - min(taken) >= window:
            receiver, count = _REPORT.unpack(sock.recv(64))
            taken[receiver] = max(count, taken[receiver])
        sock.sendto(pack(bodies[start : start + per_datagram]), target)
    board.set_done(job.receivers + number)
    board.wait_for_stop()
    sock.close()


def pack(bodies: list[bytes]) -> bytes:
    """The count, where each begins and the last ends, and all of them."""
    count = len(bodies)
    ends = accumulate(map(len, bodies), initial=2 * (count + 2))
    return b"".join((struct.pack(f"<{count + 2}H", count, *ends), *bodies))


# --- one message per datagram, on uvloop: the least latency that Python can have -----------------------------------


async def _receive_timed(job: Job, board: Board, process: int, tally: Tally) -> None:
    import asyncio

    sock = _open_receiving(job)
    sock.setblocking(False)

    def drain() -> None:
        while True:
            try:
                body = sock.recv(65_536)
            except BlockingIOError:
                return
            if body[0] % job.receivers == process:
                note(tally, body)

    asyncio.get_running_loop().add_reader(sock.fileno(), drain)
    board.set_ready(process)
    await tally.tell_always()
    asyncio.get_running_loop().remove_reader(sock.fileno())
    sock.close()


async def _send_timed(job: Job, board: Board, number: int, bodies: list[bytes]) -> None:
    sock = _open_sending()
    target = (GROUP, job.port)
    board.set_ready(job.receivers + number)
    await board.go_said()
    async for body in Pace(job.rate, bodies):
        sock.sendto(body, target)
    board.set_done(job.receivers + number)
    await board.stop_said()
    sock.close()


SYSTEM = System("bare multicast", "bare batched multicast (ceiling)", receive, send, 1_600_000)
