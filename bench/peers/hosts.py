"""The bench `hosts`: the same job on loopback and across hosts, in turns. The hosts are network namespaces on one
bridge with an MTU of 1,500 bytes, one for each process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median

from bench.figures import Figure
from bench.peers.namespaces import hosts
from bench.peers.one import Measured, measure
from bench.peers.systems import Job
from bench.peers.turns import in_turn

SENDERS, RECEIVERS, SIZE = 1, 3, 100
ROUNDS, COUNT, COUNT_QUICK = 3, 1_200_000, 20_000
OF_LOOPBACK_LEAST = 60
"""Percent of the rate on loopback that is left across hosts."""

NAMES = (*(f"r{number}" for number in range(RECEIVERS)), *(f"s{number}" for number in range(SENDERS)))
PORT = 7400
"""Nobody else is on these networks."""


@dataclass(frozen=True)
class Way:
    """How messages get from one process to the others."""

    name: str
    across: bool = True
    offload: bool = True
    whole: bool = True
    """Runs of datagrams pass the bridge as one. If not, each for itself, as on a wire."""


LOOPBACK = Way("loopback", across=False)
HOSTS = Way("hosts")
NO_OFFLOAD = Way("hosts, no GSO/GRO", offload=False)
CUT = Way("hosts, cut at the sender's interface", whole=False)
WAYS = (LOOPBACK, HOSTS, NO_OFFLOAD, CUT)


def run(quick: bool) -> Iterator[Figure]:
    rounds = 1 if quick else ROUNDS
    job = Job("rvq batches", SENDERS, RECEIVERS, COUNT_QUICK if quick else COUNT, SIZE)
    runs: dict[Way, list[Measured]] = {way: [] for way in WAYS}
    for number in range(rounds):
        # In turns, so that a machine that is busy for a while is busy for all; in another order each time.
        for way in in_turn(WAYS, number):
            runs[way].append(measure_way(way, job))
    yield Figure("messages, all ways together", job.total * rounds * len(WAYS))
    yield Figure("lost, repeated or invented", sum(one.wrong for some in runs.values() for one in some), most=0)
    for way, some in runs.items():
        yield Figure(f"{way.name}: rate (median of {rounds})", median(one.rate for one in some), "messages/s")
        yield Figure(f"{way.name}: processor time", median(one.cpu_s_per_million for one in some), "s per million")
    for way in WAYS[1:]:
        least = OF_LOOPBACK_LEAST if way is HOSTS else None
        yield Figure(f"{way.name}: of loopback", 100 * share(runs[way], runs[LOOPBACK]), "%", least=least)


def share(some: list[Measured], whole: list[Measured]) -> float:
    """One rate as part of the other: the median over the rounds, in each of which both ran."""
    return median(one.rate / other.rate for one, other in zip(some, whole, strict=True))


def measure_way(way: Way, job: Job) -> Measured:
    """Raises Skipped where there are no hosts to be had."""
    if not way.across:
        return measure(job)
    with hosts(NAMES, whole=way.whole) as namespaces:
        there = replace(job, interface="eth0", port=PORT, namespaces=namespaces, offload=way.offload)
        return measure(there)
