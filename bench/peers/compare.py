"""The bench `peers`: rvq, its peers and bare multicast in turns, so that a busy machine is busy for all of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from statistics import median
from typing import Any

from bench.figures import RESULTS, Figure, machine
from bench.peers import plot
from bench.peers.commands import measure_idle, measure_lines
from bench.peers.one import Measured, measure
from bench.peers.servers import Server
from bench.peers.systems import SYSTEMS, Job, System

SIZES = (100, 1024)
ROUNDS = 3
MAIN = (1, 3)
OTHER_SHAPES = ((1, 1), (3, 3), (1, 8), (10, 10))
IN_OTHER_SHAPES = ("rvq batches", "Redis lists", "pyzmq")
LATENCY = ("rvq each", "pyzmq uvloop", "bare multicast")
LATENCY_RATE, LATENCY_COUNT = 5000.0, 6000
LINES, LINES_PER_S_LEAST = 1_000_000, 300_000
IDLE_S = 5.0

BATCHES_LEAST = {"Redis lists": 2.0, "pyzmq": 4.0, "nats-py": 8.0, "Redis Streams": 20.0, "bare multicast": 0.5}
EACH_LEAST = {"pyzmq": 1.0, "pyzmq uvloop": 5.0}

Case = tuple[str, int, int, int]
"""System, senders, receivers, bytes of a message."""


class Comparison:
    """All measurements of one run."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.runs: dict[Case, list[Measured]] = {}
        self.latency: dict[str, list[Measured]] = {}
        self.skipped = {name: system.missing for name, system in SYSTEMS.items() if system.missing}
        self.systems = [system for name, system in SYSTEMS.items() if name not in self.skipped]
        self._servers: dict[str, Server] = {}

    def measure(self) -> None:
        with ExitStack() as stack:
            for name in {system.server for system in self.systems if system.server}:
                self._servers[name] = stack.enter_context(Server(name))
            for _ in range(1 if self.quick else ROUNDS):
                for case in self.cases():
                    self.runs.setdefault(case, []).append(measure(self._job(case)))
                for name in LATENCY:
                    if name not in self.skipped:
                        self.latency.setdefault(name, []).append(measure(self._latency_job(name)))

    def cases(self) -> Iterator[Case]:
        for size in SIZES:
            for system in self.systems:
                yield system.name, *MAIN, size
            for senders, receivers in OTHER_SHAPES:
                for name in IN_OTHER_SHAPES if size == SIZES[0] else IN_OTHER_SHAPES[:1]:
                    if name not in self.skipped:
                        yield name, senders, receivers, size

    def _job(self, case: Case) -> Job:
        name, senders, receivers, size = case
        system = SYSTEMS[name]
        count = system.count // (1 if (senders, receivers) == MAIN else 2)
        count = count * SIZES[0] * 3 // size if size > SIZES[0] else count
        return self._at_server(system, Job(name, senders, receivers, self._fewer(count) // senders, size))

    def _latency_job(self, name: str) -> Job:
        count = self._fewer(LATENCY_COUNT)
        return self._at_server(SYSTEMS[name], Job(name, *MAIN, count, SIZES[0], rate=LATENCY_RATE))

    def _fewer(self, count: int) -> int:
        return max(1000, count // 100) if self.quick else count

    def _at_server(self, system: System, job: Job) -> Job:
        server = self._servers.get(system.server)
        return replace(job, port=server.port, server_pid=server.pid) if server else job

    # --- what came out --------------------------------------------------------------------------------------------

    def rate(self, name: str, shape: tuple[int, int] = MAIN, size: int = SIZES[0]) -> float:
        return median(run.rate for run in self.runs[name, *shape, size])

    def cpu(self, name: str, shape: tuple[int, int] = MAIN, size: int = SIZES[0]) -> float:
        return median(run.cpu_s_per_million for run in self.runs[name, *shape, size])

    def rates(self, rvq: str, peer: str, size: int = SIZES[0]) -> float:
        """How many times a peer's rate: the median over the rounds, in each of which both ran at the same time."""
        pairs = zip(self.runs[rvq, *MAIN, size], self.runs[peer, *MAIN, size], strict=True)
        return median(ours.rate / theirs.rate for ours, theirs in pairs)

    def cpus(self, rvq: str, peer: str) -> float:
        pairs = zip(self.runs[rvq, *MAIN, SIZES[0]], self.runs[peer, *MAIN, SIZES[0]], strict=True)
        return median(ours.cpu_s_per_million / theirs.cpu_s_per_million for ours, theirs in pairs)

    def p50(self, name: str) -> float:
        return median(run.p50_us for run in self.latency[name])

    def p99(self, name: str) -> float:
        return median(run.p99_us for run in self.latency[name])

    @property
    def wrong(self) -> int:
        return sum(run.wrong for runs in (*self.runs.values(), *self.latency.values()) for run in runs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": machine(),
            "skipped": self.skipped,
            "rates": [
                {"system": name, "senders": senders, "receivers": receivers, "bytes": size}
                | {"runs": [asdict(run) for run in runs]}
                for (name, senders, receivers, size), runs in self.runs.items()
            ],
            "latency": {name: [asdict(run) for run in runs] for name, runs in self.latency.items()},
        }


def run(quick: bool) -> Iterator[Figure]:
    comparison = Comparison(quick)
    comparison.measure()
    print("\n".join(["", *lines_of(comparison)]), flush=True)
    yield Figure("peers: lost, repeated or invented", comparison.wrong, most=0)
    yield from _ratios(comparison)
    yield from _latencies(comparison)
    ten, main = comparison.rate("rvq batches", (10, 10)), comparison.rate("rvq batches")
    yield Figure("rvq batches: 10x10 of the rate of 1x3", 100 * ten / main, "%", least=80)
    yield from _commands(quick)
    for path in keep(comparison):
        print(f"kept in {path}", flush=True)


def _ratios(comparison: Comparison) -> Iterator[Figure]:
    for rvq, least in (("rvq batches", BATCHES_LEAST), ("rvq each", EACH_LEAST)):
        for peer, times in least.items():
            if peer not in comparison.skipped:
                yield Figure(f"{rvq}: rate", comparison.rates(rvq, peer), f"x {peer}", least=times)
    for peer in comparison.systems:
        if not peer.name.startswith(("rvq", "bare")):
            ratio = comparison.cpus("rvq batches", peer.name)
            yield Figure("rvq batches: processor time", ratio, f"x {peer.name}", most=1)


def _latencies(comparison: Comparison) -> Iterator[Figure]:
    for name in comparison.latency:
        yield Figure(f"latency: {name}, p50", comparison.p50(name), "us")
        yield Figure(f"latency: {name}, p99", comparison.p99(name), "us")
    for peer, most in (("pyzmq uvloop", 1.0), ("bare multicast", 1.5)):
        if peer in comparison.latency:
            for which, of in (("p50", comparison.p50), ("p99", comparison.p99)):
                yield Figure(f"latency: rvq each, {which}", of("rvq each") / of(peer), f"x {peer}", most=most)


def _commands(quick: bool) -> Iterator[Figure]:
    count = LINES // 100 if quick else LINES
    lines = measure_lines(count)
    yield Figure("rvq-send < file to 3 rvq-listen > file", count / lines.seconds, "lines/s", least=LINES_PER_S_LEAST)
    yield Figure("rvq-send, rvq-listen: lines not there once", lines.wrong, most=0)
    yield Figure("rvq-send, rvq-listen: memory of the largest", lines.memory_mib, "MiB")
    for role, percent in measure_idle(0.5 if quick else IDLE_S).items():
        yield Figure(f"idle: {role}", percent, "% of a core", most=0.5)


# --- a table for people -------------------------------------------------------------------------------------------


def lines_of(comparison: Comparison) -> Iterator[str]:
    head = ["", "100 B msgs/s", "CPU s/M", "batches is", "each is", "1 KiB msgs/s", "CPU s/M", "batches is", "each is"]
    yield f"1 sender, 3 receivers; medians of {1 if comparison.quick else ROUNDS}; 'is': rvq's rate, times this one's"
    yield from _aligned([head, *(_row(comparison, system) for system in comparison.systems)])
    yield ""
    yield "other shapes, msgs/s of all senders together and CPU s/M"
    shapes = [(shape, size) for size in SIZES for shape in (MAIN, *OTHER_SHAPES)]
    names = [name for name in IN_OTHER_SHAPES if name not in comparison.skipped]
    yield from _aligned([["", *names], *(_shape_row(comparison, shape, size, names) for shape, size in shapes)])
    for name, why in comparison.skipped.items():
        yield f"skipped: {name}: {why}"


def _row(comparison: Comparison, system: System) -> list[str]:
    row = [system.what]
    for size in SIZES:
        row += [f"{comparison.rate(system.name, size=size):,.0f}", f"{comparison.cpu(system.name, size=size):.2f}"]
        row += [f"{comparison.rates(rvq, system.name, size):.2f} x" for rvq in ("rvq batches", "rvq each")]
    return row


def _shape_row(comparison: Comparison, shape: tuple[int, int], size: int, names: Iterable[str]) -> list[str]:
    cells = [
        f"{comparison.rate(name, shape, size):,.0f} ({comparison.cpu(name, shape, size):.2f})"
        if (name, *shape, size) in comparison.runs
        else ""
        for name in names
    ]
    return [f"{shape[0]}x{shape[1]}, {size} B", *cells]


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"  {first:<{widths[0]}}", *cells]).rstrip()


def keep(comparison: Comparison) -> Iterator[str]:
    """All figures, and a plot of them if there is matplotlib."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}-peers.json"
    path.write_text(json.dumps(comparison.as_dict(), indent=1) + "\n")
    yield str(path)
    try:
        yield from map(str, plot.draw_peers(comparison, path.with_suffix("")))
    except plot.NoPlot as reason:
        yield f"(no plot: {reason})"
