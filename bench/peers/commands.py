"""The commands as a user runs them: `rvq-send < file` to three `rvq-listen > file`. And what rvq costs when idle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.group.fleet import ROOT, Trouble, free_port
from bench.peers.board import bind_to, cpu_seconds

LISTENERS = 3
LABEL = "bench"
READY_S_MAX, SENT_S_MAX, LEAVE_S_MAX = 20.0, 60.0, 15.0


@dataclass(frozen=True)
class Lines:
    """`seconds` are those of the whole rvq-send, Python's start included. `wrong`: lines that are not there once."""

    seconds: float
    wrong: int
    memory_mib: float


def measure_lines(count: int) -> Lines:
    with tempfile.TemporaryDirectory(prefix="rvq-bench-") as folder, _listeners(Path(folder)) as (port, listeners):
        lines = [f"line {number:>12} of a file that somebody wants done" for number in range(count)]
        (Path(folder) / "in").write_text("\n".join(lines) + "\n")
        began = time.monotonic()
        with (Path(folder) / "in").open("rb") as source, (Path(folder) / "send.err").open("wb") as errors:
            sending = _start("send", port, source.fileno(), subprocess.DEVNULL, errors.fileno())
        memory_kib = _wait(sending, SENT_S_MAX, Path(folder) / "send.err")
        seconds = time.monotonic() - began
        for listener in listeners:
            listener.send_signal(signal.SIGTERM)
        for number, listener in enumerate(listeners):
            memory_kib = max(memory_kib, _wait(listener, LEAVE_S_MAX, Path(folder) / f"{number}.err"))
        printed = [(Path(folder) / f"{number}.out").read_text().splitlines() for number in range(LISTENERS)]
    return Lines(seconds, _wrong(lines, sorted(line for one in printed for line in one)), memory_kib / 1024)


def _wrong(lines: list[str], printed: list[str]) -> int:
    if printed == lines:  # they sort as they were made
        return 0
    return len(set(lines) - set(printed)) + len(printed) - len(set(printed) & set(lines))


@contextmanager
def _listeners(folder: Path) -> Iterator[tuple[int, list[subprocess.Popen[bytes]]]]:
    """Three of them, and each knows of the others. Gone when the block is left."""
    port = free_port()
    listeners = []
    try:
        for number in range(LISTENERS):
            with (folder / f"{number}.out").open("wb") as out, (folder / f"{number}.err").open("wb") as errors:
                listeners.append(_start("listen", port, subprocess.DEVNULL, out.fileno(), errors.fileno()))
        limit = time.monotonic() + READY_S_MAX
        while not all(f"of {LISTENERS}\n" in (folder / f"{n}.err").read_text() for n in range(LISTENERS)):
            if time.monotonic() > limit:
                raise Trouble(f"rvq-listen: not ready: {(folder / '0.err').read_text()}")
            time.sleep(0.02)
        yield port, listeners
    finally:
        for listener in listeners:
            _end(listener)


def _start(command: str, port: int, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"rvq.cli.{command}", LABEL, "--port", str(port), "--interface", "lo"],
        cwd=ROOT,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        preexec_fn=partial(bind_to, os.getpid()),
    )


def _wait(process: subprocess.Popen[bytes], most: float, errors: Path) -> int:
    """The most memory that it had, in KiB."""
    limit = time.monotonic() + most
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise Trouble(f"exit code {process.returncode}: {errors.read_text()[-1000:]}")
            return usage.ru_maxrss
        if time.monotonic() > limit:
            raise Trouble(f"not done after {most:g} s: {errors.read_text()[-1000:]}")
        time.sleep(0.005)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait(10)


# --- idle ---------------------------------------------------------------------------------------------------------

_PROGRAM = """
import asyncio, rvq
from rvq.aio import run
async def main():
    bus = rvq.Bus(port={port})
    {use}
run(main())
"""
_USES = {
    "receiver": "async with rvq.Receiver('bench', bus=bus) as end:\n        async for _ in end: pass",
    "sender": "async with rvq.Sender('bench', bus=bus) as end: await end.send(1); await asyncio.sleep(600)",
}


def measure_idle(seconds: float) -> dict[str, float]:
    """Percent of a core that a sender, and a receiver that waits for messages, take when there is nothing to do."""
    port = free_port()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for role, use in _USES.items():
            program = _PROGRAM.format(port=port, use=use)
            command = [sys.executable, "-c", program]
            processes[role] = subprocess.Popen(command, cwd=ROOT, preexec_fn=partial(bind_to, os.getpid()))
        time.sleep(3.0)  # until both have started, met, and are done with the one message
        before = {role: cpu_seconds(process.pid) for role, process in processes.items()}
        time.sleep(seconds)
        taken = {role: cpu_seconds(process.pid) - before[role] for role, process in processes.items()}
        for role, process in processes.items():
            if process.poll() is not None:  # the dead take no time either
                raise Trouble(f"the idle {role} ended early, with exit code {process.returncode}")
        return {role: 100 * cpu / seconds for role, cpu in taken.items()}
    finally:
        for process in processes.values():
            _end(process)
