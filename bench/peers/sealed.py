"""The bench `sealed`: what a key costs. The same run with a key and without, in turns, on loopback and across hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from statistics import median

from bench.figures import Figure, Skipped
from bench.group.fleet import Trouble
from bench.peers.hosts import HOSTS, LOOPBACK, Way, measure_way
from bench.peers.one import Measured
from bench.peers.systems import SYSTEMS, Job
from bench.peers.turns import in_turn

ROUNDS = 5
SYSTEM = "rvq batches"
KEY = bytes(range(32)).hex()
SIZES = (100, 1024)
COST_PERCENT_MAX = 25


def run(quick: bool) -> Iterator[Figure]:
    for size in SIZES:
        count = SYSTEMS[SYSTEM].count * 100 // size
        yield from _compared(f"{size} bytes", Job(SYSTEM, 1, 3, count // 20 if quick else count, size), quick)
    with suppress(Skipped):  # no namespaces here: the figures on loopback stand without them
        job = Job(SYSTEM, 1, 3, SYSTEMS[SYSTEM].count // (40 if quick else 2), 100)
        yield from _compared("100 bytes across hosts", job, quick, HOSTS)


def _compared(what: str, job: Job, quick: bool, way: Way = LOOPBACK) -> Iterator[Figure]:
    runs: dict[str, list[Measured]] = {"": [], KEY: []}
    for round in range(1 if quick else ROUNDS):
        for key in in_turn(list(runs), round):
            measured = measure_way(way, replace(job, key=key))
            if measured.wrong:
                raise Trouble(f"{measured.wrong} lost, repeated or invented {'with' if key else 'without'} a key")
            runs[key].append(measured)
    plain, sealed = runs[""], runs[KEY]
    cost = median(100 * (1 - b.rate / a.rate) for a, b in zip(plain, sealed, strict=True))
    cpu = median(100 * (b.cpu_s_per_million / a.cpu_s_per_million - 1) for a, b in zip(plain, sealed, strict=True))
    most = COST_PERCENT_MAX if way is LOOPBACK else None
    yield Figure(f"{what}: rate without a key", median(one.rate for one in plain), "messages/s")
    yield Figure(f"{what}: rate with one", median(one.rate for one in sealed), "messages/s")
    yield Figure(f"{what}: cost", cost, "%", most=most)
    yield Figure(f"{what}: processor time without a key", median(one.cpu_s_per_million for one in plain), "s/M")
    yield Figure(f"{what}: processor time with one", median(one.cpu_s_per_million for one in sealed), "s/M")
    yield Figure(f"{what}: more processor time", cpu, "%", most=most)
