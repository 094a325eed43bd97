"""One measurement: `python -m bench.peers.one JOB`, a job as JSON in, what was measured as JSON out.

A process of its own imports what it needs, and forks every sender and receiver: so no import is in the figures, and
whoever gives up ends one process and with it all.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.group.fleet import ROOT, Trouble, free_port, judge, percentile
from bench.peers.board import NAP_S, Board, Tally, bind_to, cpu_seconds, make_bodies, numbers_in
from bench.peers.namespaces import enter_namespace
from bench.peers.servers import free_tcp_port
from bench.peers.systems import SYSTEMS, Job
from bench.peers.systems.pace import latencies_us, numbers

NO_OFFLOAD = "RVQ_NO_OFFLOAD"
"""Set to 1 in the environment, rvq sends and reads datagrams one by one."""

READY_S_MAX, MEASURED_S_MAX, LEAVE_S_MAX = 20.0, 40.0, 10.0


@dataclass(frozen=True)
class Measured:
    """`wrong`: lost, repeated or invented. `control_per_s`: datagrams that a receiver of rvq sent, on average."""

    seconds: float
    rate: float
    cpu_s_per_million: float
    cpu_s_per_million_of: dict[str, float]
    """Of all senders, of all receivers, and of the server."""
    wrong: int
    p50_us: float = 0.0
    p99_us: float = 0.0
    control_per_s: float = 0.0


def measure(job: Job) -> Measured:
    """In a process of its own. Trouble says why it could not be measured."""
    job = replace(job, port=job.port or _free_ports(job))
    command = [sys.executable, "-m", "bench.peers.one", json.dumps(asdict(job))]
    limit = READY_S_MAX + MEASURED_S_MAX + LEAVE_S_MAX + 20
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False, env=_environment(job)
        )
    except subprocess.TimeoutExpired:
        raise Trouble(f"{job.system}: not done within {limit:g} s") from None
    if done.returncode:
        raise Trouble(f"{job.system} {job.senders}x{job.receivers}: {done.stderr.strip()[-1500:]}")
    return Measured(**json.loads(done.stdout))


def _environment(job: Job) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if name != NO_OFFLOAD}
    return others if job.offload else others | {NO_OFFLOAD: "1"}


def _free_ports(job: Job) -> int:
    return free_tcp_port(job.senders) if job.system.startswith("pyzmq") else free_port()


class Processes:
    """The forked ones, by their row on the board."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self.board = Board(job.receivers + job.senders)
        self.pids: list[int] = []
        self._folder = folder
        self._system = SYSTEMS[job.system]

    def start(self) -> None:
        for number in range(self.job.receivers):
            self._fork(lambda number=number: self._receive(number))
        for number in range(self.job.senders):
            self._fork(lambda number=number: self._send(number))
        self.until("not ready", READY_S_MAX, lambda: all(map(self.board.is_ready, range(len(self.pids)))))

    def _fork(self, work: Callable[[], None]) -> None:
        parent, pid = os.getpid(), os.fork()
        if pid:
            self.pids.append(pid)
            return
        code = 1
        try:
            bind_to(parent)
            if self.job.namespaces:
                enter_namespace(self.job.namespaces[len(self.pids)])
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _receive(self, number: int) -> None:
        tally = Tally(self.board, number)
        self._system.receive(self.job, self.board, number, tally)
        tally.keep(self.log_of(number))

    def _send(self, number: int) -> None:
        bodies = make_bodies(number, self.job.count, self.job.size, self.job.spread)
        gc.freeze()  # or every full collection goes through all of them, at those who make objects of their own
        self._system.send(self.job, self.board, number, bodies)

    def log_of(self, receiver: int) -> Path:
        return self._folder / str(receiver)

    @property
    def handled(self) -> int:
        return sum(self.board.counted(number) for number in range(self.job.receivers))

    @property
    def all_done(self) -> bool:
        return self.handled >= self.job.total and all(
            map(self.board.is_done, range(self.job.receivers, len(self.pids)))
        )

    @property
    def last_at(self) -> float:
        return max(map(self.board.last_at, range(len(self.pids))))

    def cpu_seconds(self) -> dict[str, float]:
        """By role."""
        receivers, senders = self.pids[: self.job.receivers], self.pids[self.job.receivers :]
        roles = {
            "senders": senders,
            "receivers": receivers,
            "server": [self.job.server_pid] * bool(self.job.server_pid),
        }
        return {role: sum(map(cpu_seconds, pids)) for role, pids in roles.items()}

    def until(self, words: str, most: float, so: Callable[[], bool]) -> None:
        limit = time.monotonic() + most
        while not so():
            if time.monotonic() > limit:
                raise Trouble(f"{words} after {most:g} s ({self.handled:,} of {self.job.total:,} handled)")
            if any(_has_ended(pid) for pid in self.pids):
                raise Trouble("a process ended early")
            time.sleep(NAP_S)

    def stop(self) -> None:
        """All leave by themselves, or are ended."""
        self.board.say_stop()
        limit = time.monotonic() + LEAVE_S_MAX
        for pid in self.pids:
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > limit:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(NAP_S)


def _has_ended(pid: int) -> bool:
    """Without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def run_here(job: Job) -> Measured:
    SYSTEMS[job.system].prepare(job)
    with tempfile.TemporaryDirectory(prefix="rvq-bench-") as folder:
        processes = Processes(job, Path(folder))
        try:
            processes.start()
            cpu_before, began = processes.cpu_seconds(), time.monotonic()
            processes.board.say_go()
            processes.until("not done", MEASURED_S_MAX, lambda: processes.all_done)
            cpu = {role: (s - cpu_before[role]) / job.total * 1e6 for role, s in processes.cpu_seconds().items()}
            seconds = processes.last_at - began
        finally:
            processes.stop()
        noted = [numbers_in(processes.log_of(number)) for number in range(job.receivers)]
    # The latency of the first tenth is that of a system that still warms up.
    latencies = [us for one in noted for us in latencies_us(one[len(one) // 10 :])] if job.rate else []
    return Measured(
        seconds,
        job.total / seconds,
        sum(cpu.values()),
        cpu,
        _wrong(job, [numbers(one) for one in noted] if job.rate else [one.tolist() for one in noted]),
        percentile(latencies, 50) if latencies else 0.0,
        percentile(latencies, 99) if latencies else 0.0,
        sum(map(processes.board.extra, range(job.receivers))) / job.receivers / seconds,
    )


def _wrong(job: Job, handled: list[list[int]]) -> int:
    everything = sorted(number for one in handled for number in one)
    if job.senders == 1 and everything == list(range(job.count)):
        return 0
    verdict = judge([job.count] * job.senders, handled)
    return verdict.lost + verdict.repeated + verdict.invented


if __name__ == "__main__":
    print(json.dumps(asdict(run_here(Job(**json.loads(sys.argv[1]))))))
