"""The bench `growth`: what more receivers and more senders do to the rate, to processor time and to control traffic.

Up to sixteen receivers are real processes; up to a thousand, the simulator counts what every receiver hears.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.figures import Figure, keep_json, machine
from bench.peers import plot
from bench.peers.crowd import control_bytes_per_s
from bench.peers.one import Measured, measure
from bench.peers.systems import Job
from bench.peers.turns import in_turn

RECEIVERS = (1, 2, 4, 8, 16)
SENDERS, RECEIVERS_OF_SENDERS = (1, 2, 4, 8), 4
MEMBERS, MEMBERS_QUICK = (10, 25, 50, 100, 200, 500, 1000), (5, 10)
ROUNDS, COUNT, SIZE = 3, 1_500_000, 100
CPU_GROWTH_MOST = 1.25
"""Of the processor time per message of the whole group, from 2 to 8 receivers."""
LINEAR = 1.15
"""How much faster than linearly control traffic may seem to grow, as there is chance in it."""
GIGABIT_BYTES = 125_000_000


@dataclass
class Growth:
    by_receivers: dict[int, list[Measured]] = field(default_factory=dict)
    by_senders: dict[int, list[Measured]] = field(default_factory=dict)
    heard: dict[int, float] = field(default_factory=dict)
    """Members to bytes of control that each hears per second, on the wire."""
    machine: dict[str, Any] = field(default_factory=machine)
    """Before anything was measured."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "by_receivers": {n: _summary(runs) for n, runs in self.by_receivers.items()},
            "by_senders": {n: _summary(runs) for n, runs in self.by_senders.items()},
            "control_bytes_per_s_heard": self.heard,
        }


def _summary(runs: list[Measured]) -> dict[str, Any]:
    medians = {"rate": rate(runs), "cpu_s_per_million": cpu(runs), "control_per_s": control(runs)}
    return medians | {"wrong": sum(run.wrong for run in runs), "runs": [asdict(run) for run in runs]}


def rate(runs: list[Measured]) -> float:
    return median(run.rate for run in runs)


def cpu(runs: list[Measured]) -> float:
    return median(run.cpu_s_per_million for run in runs)


def control(runs: list[Measured]) -> float:
    return median(run.control_per_s for run in runs)


def run(quick: bool) -> Iterator[Figure]:
    growth = Growth({n: [] for n in RECEIVERS}, {n: [] for n in SENDERS})
    count = 20_000 if quick else COUNT
    for round in range(1 if quick else ROUNDS):
        for receivers in in_turn(RECEIVERS, round):
            job = Job("rvq batches", 1, receivers, count, SIZE)
            growth.by_receivers[receivers].append(measure(job))
        for senders in in_turn(SENDERS, round):
            job = Job("rvq batches", senders, RECEIVERS_OF_SENDERS, count // senders, SIZE)
            growth.by_senders[senders].append(measure(job))
    for members in MEMBERS_QUICK if quick else MEMBERS:
        growth.heard[members] = control_bytes_per_s(members)
    yield from _real(growth)
    yield from _simulated(growth)
    _keep(growth)


def _real(growth: Growth) -> Iterator[Figure]:
    everything = [*growth.by_receivers.values(), *growth.by_senders.values()]
    yield Figure("lost, repeated or invented", sum(run.wrong for runs in everything for run in runs), most=0)
    for receivers, runs in growth.by_receivers.items():
        name = f"1x{receivers}"
        yield Figure(f"{name}: rate", rate(runs), "messages/s")
        yield Figure(f"{name}: processor time", cpu(runs), "s per million, all processes")
        yield Figure(f"{name}: control sent by each receiver", control(runs), "datagrams/s")
    for senders, runs in growth.by_senders.items():
        yield Figure(f"{senders}x{RECEIVERS_OF_SENDERS}: rate of all", rate(runs), "messages/s")
    pairs = zip(growth.by_receivers[8], growth.by_receivers[2], strict=True)
    grown = median(eight.cpu_s_per_million / two.cpu_s_per_million for eight, two in pairs)
    yield Figure("processor time per message, 8 receivers", grown, "x that of 2", most=CPU_GROWTH_MOST)


def _simulated(growth: Growth) -> Iterator[Figure]:
    for members, bytes_per_s in growth.heard.items():
        yield Figure(f"{members:,} members: control heard by each", bytes_per_s / 1000, "kB/s")
    *_, small, large = sizes = sorted(growth.heard)
    for start in sorted({sizes[0], small}):
        yield _linear(growth, start, large)
    percent = 100 * growth.heard[large] / GIGABIT_BYTES
    yield Figure(f"{large:,} members: control heard by each", percent, "% of a gigabit", most=1)


def _linear(growth: Growth, small: int, large: int) -> Figure:
    faster = growth.heard[large] / growth.heard[small] / (large / small)
    return Figure(f"from {small:,} to {large:,} members: control grows", faster, "x as fast as linearly", most=LINEAR)


def _keep(growth: Growth) -> None:
    path = keep_json("-growth", growth.as_dict())
    print(f"kept in {path}", flush=True)
    try:
        for drawn in plot.draw_growth(growth, path.with_suffix("")):
            print(f"kept in {drawn}", flush=True)
    except plot.NoPlot as reason:
        print(f"(no plot: {reason})", flush=True)
