"""The bench `fanout`: what doing without multicast costs. The same run with it and with peers, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from bench.figures import Figure
from bench.group.fleet import Trouble
from bench.peers.hosts import LOOPBACK, measure_way
from bench.peers.one import Measured
from bench.peers.systems import SYSTEMS, Job
from bench.peers.turns import in_turn

ROUNDS = 5
SYSTEM = "rvq batches"
PEERS = "127.0.0.1"
RECEIVERS = (1, 3, 8)


def run(quick: bool) -> Iterator[Figure]:
    for receivers in RECEIVERS:
        count = SYSTEMS[SYSTEM].count // (20 if quick else 1)
        yield from _compared(f"1x{receivers}", Job(SYSTEM, 1, receivers, count, 100), quick)


def _compared(what: str, job: Job, quick: bool) -> Iterator[Figure]:
    runs: dict[str, list[Measured]] = {"": [], PEERS: []}
    for round in range(1 if quick else ROUNDS):
        for peers in in_turn(list(runs), round):
            measured = measure_way(LOOPBACK, replace(job, peers=peers))
            if measured.wrong:
                raise Trouble(
                    f"{measured.wrong} lost, repeated or invented {'with peers' if peers else 'by multicast'}"
                )
            runs[peers].append(measured)
    multicast, fanned = runs[""], runs[PEERS]
    share = median(100 * b.rate / a.rate for a, b in zip(multicast, fanned, strict=True))
    cpu = median(b.cpu_s_per_million / a.cpu_s_per_million for a, b in zip(multicast, fanned, strict=True))
    yield Figure(f"{what}: rate by multicast", median(one.rate for one in multicast), "messages/s")
    yield Figure(f"{what}: rate with peers", median(one.rate for one in fanned), "messages/s")
    yield Figure(f"{what}: share", share, "%")
    yield Figure(f"{what}: processor time, times that of multicast", cpu, "x")
