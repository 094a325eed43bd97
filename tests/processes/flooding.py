"""Real processes at work while a stranger floods their bus: `python -m tests.processes.flooding --seconds 30`.

Prints for each kind of flood how fast it was, what became of the real traffic before, in and after it, and how much
memory it took. `test_flood` runs a short one.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rvq.limits import MIB
from rvq.sim.floods import Floods
from tests.processes.harness import ROOT, Fleet, Worker, await_that

RATE = 500
"""Real messages per second."""

ENDS = ("r0", "r1", "s")


def resident(worker: Worker) -> int:
    """Bytes of memory that a process has had at most."""
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@dataclass
class Flooded:
    """What was seen."""

    kinds: str
    said: str = ""
    before: float = 0.0
    during: float = 0.0
    after: float = 0.0
    """Messages started per second."""
    grown: dict[str, int] = field(default_factory=dict)
    """Bytes by which each process was larger than before, at most."""

    def __str__(self) -> str:
        most = max(self.grown.values()) / MIB
        rates = f"{self.before:6.0f} {self.during:6.0f} {self.after:6.0f}"
        return f"{self.kinds:12} {rates}   {most:6.1f} MiB   {self.said}"


def measure(fleet: Fleet, port: int, kinds: str, seconds: float, *options: str, settle: float = 1.0) -> Flooded:
    """Two receivers and a sender, of which nothing may be lost; and the flood."""
    receivers = fleet.start_receivers("r0", "r1")
    sender = fleet.sender("s", rate=RATE)
    fleet.await_more(RATE // 2)
    everyone = [*receivers, sender]
    seen = Flooded(kinds or "all")
    before = {worker.name: resident(worker) for worker in everyone}
    seen.before = _rate(receivers, settle)
    command = [sys.executable, "-m", "tests.processes.flooder", "work", "--port", str(port), "--kinds", kinds]
    flooder = subprocess.Popen(
        [*command, "--seconds", str(seconds), *options], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        started, began = _started(receivers), time.monotonic()
        await_that(lambda: flooder.poll() is not None, "the flood is over", seconds + 60)
        seen.during = (_started(receivers) - started) / (time.monotonic() - began)
    finally:
        flooder.kill()
        seen.said = flooder.communicate()[0].strip()
    fleet.await_more(RATE)
    seen.after = _rate(receivers, settle)
    seen.grown = {worker.name: resident(worker) - before[worker.name] for worker in everyone}
    fleet.finish()
    fleet.verdict().assert_nothing_lost_or_invented()
    return seen


def _started(workers: Sequence[Worker]) -> int:
    return sum(worker.started for worker in workers)


def _rate(workers: Sequence[Worker], seconds: float) -> float:
    started, began = _started(workers), time.monotonic()
    time.sleep(seconds)
    return (_started(workers) - started) / (time.monotonic() - began)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of all kinds mixed; each alone a fifth of it")
    parser.add_argument("--rate", type=float, default=50_000.0)
    parser.add_argument("--sockets", type=int, default=4)
    parser.add_argument("--kinds", default="*", help="these only, in one flood")
    args = parser.parse_args(arguments)
    print(f"{'flood':12} before during after   grown by at most   the flood", flush=True)
    every = [*Floods("work", random.Random(1)).kinds, ""] if args.kinds == "*" else [args.kinds]
    for kinds in every:
        seconds = args.seconds if not kinds else args.seconds / 5
        port = random.randrange(20_000, 60_000)
        with tempfile.TemporaryDirectory() as folder:
            fleet = Fleet(Path(folder), port)
            try:
                options = ("--rate", str(args.rate), "--sockets", str(args.sockets))
                print(measure(fleet, port, kinds, seconds, *options, settle=2.0), flush=True)
            except AssertionError as error:
                print(f"{kinds or 'all':12} FAILED: {str(error)[:600]}", flush=True)
            finally:
                try:
                    fleet.end()
                except AssertionError as error:
                    print(f"{kinds or 'all':12} RAISED: {str(error)[:600]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
