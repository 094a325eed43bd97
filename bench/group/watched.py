"""What looking on costs: the same run with `rvq top` in a terminal and without, in turns."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
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


class Turn(NamedTuple):
    """What one run took. Processor times are in seconds."""

    rate: float
    bus_cpu_s: float
    """Of the sender and all receivers, while messages flowed."""
    top_part: float
    """Of one core, that `rvq top` took meanwhile."""


def run(quick: bool) -> Iterator[Figure]:
    count, rounds = (COUNT // 40, 1) if quick else (COUNT, ROUNDS)
    turns: dict[bool, list[Turn]] = {False: [], True: []}
    for number in range(rounds):
        # Which of the two comes first changes, so that a machine that gets slower favours neither.
        for watched in (False, True) if number % 2 else (True, False):
            turns[watched].append(_turn(count, watched))
    without, with_it = ([turn.rate for turn in turns[watched]] for watched in (False, True))
    yield Figure("rate with nobody looking", median(without), "messages/s")
    yield Figure("rate with rvq top open", median(with_it), "messages/s")
    cost = median(100 * (1 - b / a) for a, b in zip(without, with_it, strict=True))
    yield Figure("cost, median of the turns", cost, "%", most=COST_PERCENT_MAX)
    cpu = [median(turn.bus_cpu_s for turn in turns[watched]) * 1e6 / count for watched in (False, True)]
    yield Figure("processor time of the bus, nobody looking", cpu[0], "s per million messages")
    yield Figure("processor time of the bus, with rvq top open", cpu[1], "s per million messages")
    yield Figure("processor time of rvq top itself", 100 * median(turn.top_part for turn in turns[True]), "% of a core")


def _turn(count: int, watched: bool) -> Turn:
    """Everything was handled once; else Trouble."""
    port = free_port()
    with Fleet(port=port) as fleet:
        fleet.start_receivers(RECEIVERS)
        with _looking_on(port) if watched else nullcontext() as top:
            before = top and _cpu_s(top)
            idle = sum(_cpu_s(worker.process.pid) for worker in fleet.receivers)
            fleet.sender(count, size=SIZE)
            seconds = fleet.await_senders()
            bus = sum(_cpu_s(worker.process.pid) for worker in (*fleet.receivers, *fleet.senders)) - idle
            part = (_cpu_s(top) - before) / seconds if top and before is not None else 0.0
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
