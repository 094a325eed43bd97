"""The bench `peers`: rvq, its peers and bare multicast in turns, so that a busy machine is busy for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from statistics import median
from typing import Any, TypeVar

from bench.figures import Figure, keep_json, machine
from bench.group.fleet import Trouble
from bench.peers import plot
from bench.peers.commands import measure_idle, measure_lines
from bench.peers.one import Measured, measure
from bench.peers.servers import Server
from bench.peers.systems import SYSTEMS, Job, System
from bench.peers.turns import in_turn

SIZES = (100, 1024)
ROUNDS = 3
SPREAD = 50
"""Of mixed lengths: 50 to 150 bytes, with a mean of 100."""
MAIN = (1, 3)
OTHER_SHAPES = ((1, 1), (3, 3), (1, 8), (10, 10))
IN_OTHER_SHAPES = ("rvq batches", "Redis lists", "pyzmq")
"""In every round. The others run in these shapes once, and not in the largest."""
LARGEST = OTHER_SHAPES[-1]
IN_MIXED = ("rvq batches", "Redis lists", "pyzmq", "bare multicast")
LATENCY = ("rvq each", "pyzmq uvloop", "bare multicast")
LATENCY_RATE, LATENCY_COUNT = 5000.0, 6000
LINES, LINES_PER_S_LEAST = 1_000_000, 300_000
IDLE_S = 5.0

BATCHES_LEAST = {"Redis lists": 2.0, "pyzmq": 4.0, "nats-py": 8.0, "Redis Streams": 20.0, "bare multicast": 0.5}
RVQ = ("rvq batches", "rvq each")
EACH_LEAST = {"pyzmq": 1.0, "pyzmq uvloop": 5.0}

Key = TypeVar("Key")
Shape = tuple[int, int]
"""Senders, receivers."""
Case = tuple[str, int, int, int, int]
"""System, senders, receivers, bytes of a message, and by how many of them messages are shorter or longer."""


class Comparison:
    """All measurements of one run."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.machine = machine()  # before anything is measured: its load is not ours
        self.runs: dict[Case, list[Measured]] = {}
        self.latency: dict[str, list[Measured]] = {}
        self.skipped = {name: system.missing for name, system in SYSTEMS.items() if system.missing}
        self.systems = [system for name, system in SYSTEMS.items() if name not in self.skipped]
        self._servers: dict[str, Server] = {}

    def measure(self) -> None:
        with ExitStack() as stack:
            for name in {system.server for system in self.systems if system.server}:
                self._servers[name] = stack.enter_context(Server(name))
            for round in range(1 if self.quick else ROUNDS):
                for case in self.order(round):
                    self._measure(case[0], self.runs, case, self._job(case))
                for name in in_turn(self.installed(LATENCY), round):
                    self._measure(name, self.latency, name, self._latency_job(name))

    def _measure(self, name: str, runs: dict[Key, list[Measured]], key: Key, job: Job) -> None:
        if name in self.skipped:
            return
        try:
            runs.setdefault(key, []).append(measure(job))
        except Trouble as trouble:
            if name.startswith("rvq"):
                raise
            self._give_up(name, str(trouble))

    def _give_up(self, name: str, why: str) -> None:
        """A peer that fails costs the others nothing. Without it from now on, and without what was measured of it."""
        self.skipped[name] = f"failed: {why}"
        self.systems = [system for system in self.systems if system.name != name]
        for case in [case for case in self.runs if case[0] == name]:
            del self.runs[case]
        self.latency.pop(name, None)

    def cases(self, round: int) -> Iterator[list[Case]]:
        """Those that are compared with each other, and so run soon after each other, together."""
        for size in SIZES:
            yield [(system.name, *MAIN, size, 0) for system in self.systems]
            for shape in OTHER_SHAPES:
                yield [(name, *shape, size, 0) for name in self._in_shape(shape, size, round)]
        yield [(name, *MAIN, SIZES[0], SPREAD) for name in self.installed(IN_MIXED)]

    def _in_shape(self, shape: Shape, size: int, round: int) -> list[str]:
        if round == 0 and shape != LARGEST:
            return [system.name for system in self.systems]
        return self.installed(IN_OTHER_SHAPES if size == SIZES[0] else IN_OTHER_SHAPES[:1])

    def order(self, round: int) -> list[Case]:
        return [case for together in self.cases(round) for case in in_turn(together, round)]

    def installed(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.skipped]

    def _job(self, case: Case) -> Job:
        name, senders, receivers, size, spread = case
        system = SYSTEMS[name]
        count = system.count // (1 if (senders, receivers) == MAIN else 2)
        count = count * SIZES[0] * 3 // size if size > SIZES[0] else count
        job = Job(name, senders, receivers, self._fewer(count) // senders, size, spread=spread)
        return self._at_server(system, job)

    def _latency_job(self, name: str) -> Job:
        count = self._fewer(LATENCY_COUNT)
        return self._at_server(SYSTEMS[name], Job(name, *MAIN, count, SIZES[0], rate=LATENCY_RATE))

    def _fewer(self, count: int) -> int:
        return max(1000, count // 100) if self.quick else count

    def _at_server(self, system: System, job: Job) -> Job:
        server = self._servers.get(system.server)
        return replace(job, port=server.port, server_pid=server.pid) if server else job

    # --- what came out --------------------------------------------------------------------------------------------

    def rate(self, name: str, shape: Shape = MAIN, size: int = SIZES[0], spread: int = 0) -> float:
        return median(run.rate for run in self.runs[name, *shape, size, spread])

    def cpu(self, name: str, shape: Shape = MAIN, size: int = SIZES[0], spread: int = 0) -> float:
        return median(run.cpu_s_per_million for run in self.runs[name, *shape, size, spread])

    def rates(self, rvq: str, peer: str, size: int = SIZES[0], spread: int = 0) -> float:
        """How many times a peer's rate: the median over the rounds, in each of which both ran at the same time."""
        cases = ((name, *MAIN, size, spread) for name in (rvq, peer))
        return _ratio(*(map(_rate, self.runs[case]) for case in cases))

    def cpus(self, rvq: str, peer: str, size: int = SIZES[0], spread: int = 0) -> float:
        cases = ((name, *MAIN, size, spread) for name in (rvq, peer))
        return _ratio(*((run.cpu_s_per_million for run in self.runs[case]) for case in cases))

    def shapes(self, name: str, shape: Shape, size: int = SIZES[0]) -> float:
        """The rate in another shape, of that in the main one."""
        return _ratio(*(map(_rate, self.runs[name, *one, size, 0]) for one in (shape, MAIN)))

    def p50(self, name: str) -> float:
        return median(run.p50_us for run in self.latency[name])

    def p99(self, name: str) -> float:
        return median(run.p99_us for run in self.latency[name])

    def p50s(self, rvq: str, peer: str) -> float:
        return _ratio(*((run.p50_us for run in self.latency[name]) for name in (rvq, peer)))

    def p99s(self, rvq: str, peer: str) -> float:
        return _ratio(*((run.p99_us for run in self.latency[name]) for name in (rvq, peer)))

    @property
    def wrong(self) -> int:
        return sum(run.wrong for runs in (*self.runs.values(), *self.latency.values()) for run in runs)

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "skipped": self.skipped,
            "ratios": [
                {"rvq": rvq, "peer": system.name, "senders": MAIN[0], "receivers": MAIN[1], "bytes": size}
                | {"rate": self.rates(rvq, system.name, size), "cpu": self.cpus(rvq, system.name, size)}
                for size in SIZES
                for rvq in RVQ
                for system in self.systems
                if system.name != rvq
            ],
            "rates": [
                {"system": name, "senders": senders, "receivers": receivers, "bytes": size, "spread": spread}
                | {"runs": [asdict(run) for run in runs]}
                for (name, senders, receivers, size, spread), runs in self.runs.items()
            ],
            "latency": {name: [asdict(run) for run in runs] for name, runs in self.latency.items()},
        }


def _rate(run: Measured) -> float:
    return run.rate


def _ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def run(quick: bool) -> Iterator[Figure]:
    comparison = Comparison(quick)
    comparison.measure()
    print("\n".join(["", *lines_of(comparison)]), flush=True)
    for path in keep(comparison):
        print(f"kept in {path}", flush=True)
    yield Figure("peers: lost, repeated or invented", comparison.wrong, most=0)
    yield from _ratios(comparison)
    yield from _latencies(comparison)
    ten = comparison.shapes("rvq batches", (10, 10))
    yield Figure("rvq batches: 10x10 of the rate of 1x3", 100 * ten, "%", least=80)
    yield from _commands(quick)


def _ratios(comparison: Comparison) -> Iterator[Figure]:
    for rvq, least in (("rvq batches", BATCHES_LEAST), ("rvq each", EACH_LEAST)):
        for peer, times in least.items():
            if peer not in comparison.skipped:
                yield Figure(f"{rvq}: rate", comparison.rates(rvq, peer), f"x {peer}", least=times)
    for peer, times in BATCHES_LEAST.items():
        if peer in comparison.installed(IN_MIXED):
            ratio = comparison.rates("rvq batches", peer, spread=SPREAD)
            yield Figure("rvq batches, mixed lengths: rate", ratio, f"x {peer}", least=times)
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
            for which, times in (("p50", comparison.p50s), ("p99", comparison.p99s)):
                yield Figure(f"latency: rvq each, {which}", times("rvq each", peer), f"x {peer}", most=most)


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
    yield f"100 B mixed: {SIZES[0] - SPREAD} to {SIZES[0] + SPREAD} bytes; 1 sender, 3 receivers"
    head = ["", "100 B mixed msgs/s", "CPU s/M", "batches is", "of its own 100 B"]
    yield from _aligned([head, *(_mixed_row(comparison, name) for name in comparison.installed(IN_MIXED))])
    yield ""
    yield f"other shapes, msgs/s of all senders together and CPU s/M (once, but {', '.join(IN_OTHER_SHAPES)} as above)"
    shapes = [(shape, size) for size in SIZES for shape in (MAIN, *OTHER_SHAPES)]
    names = [system.name for system in comparison.systems]
    yield from _aligned([["", *names], *(_shape_row(comparison, shape, size, names) for shape, size in shapes)])
    for name, why in comparison.skipped.items():
        yield f"skipped: {name}: {why}"


def _row(comparison: Comparison, system: System) -> list[str]:
    row = [system.what]
    for size in SIZES:
        row += [f"{comparison.rate(system.name, size=size):,.0f}", f"{comparison.cpu(system.name, size=size):.2f}"]
        row += [f"{comparison.rates(rvq, system.name, size):.2f} x" for rvq in RVQ]
    return row


def _mixed_row(comparison: Comparison, name: str) -> list[str]:
    rate, cpu = comparison.rate(name, spread=SPREAD), comparison.cpu(name, spread=SPREAD)
    times = comparison.rates("rvq batches", name, spread=SPREAD)
    return [
        SYSTEMS[name].what,
        f"{rate:,.0f}",
        f"{cpu:.2f}",
        f"{times:.2f} x",
        f"{100 * rate / comparison.rate(name):.0f} %",
    ]


def _shape_row(comparison: Comparison, shape: Shape, size: int, names: Iterable[str]) -> list[str]:
    cells = [
        f"{comparison.rate(name, shape, size):,.0f} ({comparison.cpu(name, shape, size):.2f})"
        if (name, *shape, size, 0) in comparison.runs
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
    path = keep_json("-peers", comparison.as_dict())
    yield str(path)
    try:
        yield from map(str, plot.draw_peers(comparison, path.with_suffix("")))
    except plot.NoPlot as reason:
        yield f"(no plot: {reason})"
