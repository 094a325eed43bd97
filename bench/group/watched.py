"""What looking on costs: the same run with `rvq top` in a terminal, with its page open too, and without, in turns.

Whoever looks at the page is a reader of its pictures on this machine: what a browser takes to draw is not in it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.figures import Figure
from bench.group.fleet import ROOT, Fleet, Trouble, free_port, judge

RECEIVERS, ROUNDS = 3, 7
SIZE, COUNT = 100, 4_000_000
COLUMNS, LINES = 140, 40
COST_PERCENT_MAX = 3
DRAWN_S = 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Open(Enum):
    """What is open while messages flow."""

    NOTHING = "nobody looking"
    TERMINAL = "rvq top open"
    BOTH = "rvq top and its page open"


class Turn(NamedTuple):
    """What one run took. Processor times are in seconds."""

    rate: float
    bus_cpu_s: float
    """Of the sender and all receivers, while messages flowed."""
    top_part: float
    """Of one core, that `rvq top` took meanwhile, and its page's server."""


def run(quick: bool) -> Iterator[Figure]:
    count, rounds = (COUNT // 40, 1) if quick else (COUNT, ROUNDS)
    kinds = [kind for kind in Open if kind is not Open.BOTH or find_spec("aiohttp")]
    turns: dict[Open, list[Turn]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        # Which of them comes first changes, so that a machine that gets slower favours none.
        for kind in kinds if number % 2 else reversed(kinds):
            turns[kind].append(_turn(count, kind))
    for kind in kinds:
        yield Figure(f"rate, {kind.value}", median(turn.rate for turn in turns[kind]), "messages/s")
    for kind in kinds[1:]:
        pairs = zip(turns[Open.NOTHING], turns[kind], strict=True)
        cost = median(100 * (1 - b.rate / a.rate) for a, b in pairs)
        yield Figure(f"cost, median of the turns, {kind.value}", cost, "%", most=COST_PERCENT_MAX)
    for kind in kinds:
        cpu = median(turn.bus_cpu_s for turn in turns[kind]) * 1e6 / count
        yield Figure(f"processor time of the bus, {kind.value}", cpu, "s per million messages")
    for kind in kinds[1:]:
        part = 100 * median(turn.top_part for turn in turns[kind])
        yield Figure(f"processor time of whoever looks, {kind.value}", part, "% of a core")
        cores = len(os.sched_getaffinity(0))
        yield Figure(f"that is, of all cores, {kind.value}", part / cores, "%", most=COST_PERCENT_MAX)


def _turn(count: int, kind: Open) -> Turn:
    """Everything was handled once; else Trouble."""
    port = free_port()
    with Fleet(port=port) as fleet, ExitStack() as stack:
        fleet.start_receivers(RECEIVERS)
        tops = [stack.enter_context(_looking_on(port))] if kind is not Open.NOTHING else []
        tops += [stack.enter_context(_page(port))] if kind is Open.BOTH else []
        before = sum(map(_cpu_s, tops))
        idle = sum(_cpu_s(worker.process.pid) for worker in fleet.receivers)
        fleet.sender(count, size=SIZE)
        seconds = fleet.await_senders()
        bus = sum(_cpu_s(worker.process.pid) for worker in (*fleet.receivers, *fleet.senders)) - idle
        part = (sum(map(_cpu_s, tops)) - before) / seconds
        stack.close()
        fleet.release()
        verdict = judge([count], (worker.numbers() for worker in fleet.receivers))
    if not verdict.clean:
        raise Trouble(f"not everything was handled once: {verdict}")
    return Turn(count / seconds, bus, part)


def _cpu_s(pid: int) -> float:
    """What a process has had of processors until now."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # a sender may have ended; what it took is then missing in both kinds of turns
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


@contextmanager
def _looking_on(port: int) -> Iterator[int]:
    """`rvq top` in a terminal of its own, from when it has drawn the receivers. The id of its process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "rvq.cli", "top", "--port", str(port)]
    environment = os.environ | {"TERM": "xterm-256color"}
    top = subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    drawn, before = threading.Event(), bytearray()

    def read() -> None:
        with suppress(OSError):
            while some := os.read(ours, 65536):
                if not drawn.is_set():
                    before.extend(some)
                    if f"{RECEIVERS} receivers".encode() in before:
                        drawn.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        if not drawn.wait(DRAWN_S):
            raise Trouble(f"rvq top drew no {RECEIVERS} receivers: {bytes(before[-500:])!r}")
        yield top.pid
        if top.poll() is not None:
            raise Trouble(f"rvq top ended: {top.returncode}")
    finally:
        top.kill()
        top.wait(10)
        reader.join(10)
        os.close(ours)


@contextmanager
def _page(port: int) -> Iterator[int]:
    """`rvq top --web`, and one who reads its pictures, from when they have the receivers. The id of its process."""
    command = [sys.executable, "-m", "rvq.cli", "top", "--web", "0", "--port", str(port)]
    top = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert top.stderr is not None
    said = top.stderr.readline()
    reader, drawn = None, threading.Event()

    def read(url: str) -> None:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with suppress(OSError, ValueError, HTTPException), direct.open(f"{url}pictures", timeout=DRAWN_S) as pictures:
            for line in pictures:
                if f'"receivers":{RECEIVERS},'.encode() in line:
                    drawn.set()

    try:
        url = said.partition("the page is at ")[2].split()
        if not url:
            raise Trouble(f"rvq top --web served no page: {said!r}")
        reader = threading.Thread(target=read, args=url[:1], daemon=True)
        reader.start()
        if not drawn.wait(DRAWN_S):
            raise Trouble(f"the page had no picture of {RECEIVERS} receivers")
        yield top.pid
        if top.poll() is not None:
            raise Trouble(f"rvq top --web ended: {top.returncode}")
    finally:
        top.kill()
        top.wait(10)
        if reader is not None:
            reader.join(10)
        top.stderr.close()
