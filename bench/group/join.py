"""A receiver that joins causes no pause: latency around the switch against latency when nothing happens.

Joiners are started beforehand and held, so that what is measured is the join and not Python's start on a busy core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

from bench.figures import Figure
from bench.group.fleet import Fleet, Handling, Worker, judge, percentile

RATE = 5000
RECEIVERS, JOINERS = 3, 4
EVERY_S = 3.0
AROUND_S = 0.5
"""The second around a switch: so much before and after."""


def run(quick: bool) -> Iterator[Figure]:
    joiners = 1 if quick else JOINERS
    count = int(RATE * EVERY_S * (joiners + 1))
    with Fleet() as fleet:
        fleet.start_receivers(RECEIVERS, "--times")
        held = [fleet.receiver("--times", "--hold") for _ in range(joiners)]
        sender = fleet.sender(count, rate=RATE)
        began = sender.when("begin").at
        asked = [_join(worker, began + (index + 1) * EVERY_S) for index, worker in enumerate(held)]
        fleet.await_senders()
        fleet.release()
        handled = [worker.handlings() for worker in fleet.receivers]
    verdict = judge([count], ([h.number for h in hs] for hs in handled))
    messages = sorted((h for hs in handled for h in hs), key=lambda h: h.sent)
    switches = [min(h.sent for h in hs) for hs in handled[RECEIVERS:]]
    steady = _latencies(messages, _calm(began, asked, switches))
    around = [_latencies(messages, [(at - AROUND_S, at + AROUND_S)]) for at in switches]
    ratios = [percentile(each, 99) / percentile(steady, 99) for each in around]
    yield Figure("lost, repeated or invented", verdict.lost + verdict.repeated + verdict.invented, most=0)
    yield Figure("rate", RATE, "messages/s")
    yield Figure("steady, p50", percentile(steady, 50) * 1000, "ms")
    yield Figure("steady, p99", percentile(steady, 99) * 1000, "ms")
    yield Figure("around a switch, p99 (median of the joins)", median(percentile(e, 99) for e in around) * 1000, "ms")
    yield Figure("around a switch, p99 (worst of the joins)", max(percentile(e, 99) for e in around) * 1000, "ms")
    yield Figure("around a switch, longest", max(max(each) for each in around) * 1000, "ms")
    yield Figure("p99 around a switch / steady p99 (median)", median(ratios), "x", most=3)
    yield Figure("p99 around a switch / steady p99 (worst)", max(ratios), "x")
    first = [switch - at for switch, at in zip(switches, asked, strict=True)]
    yield Figure("from opening a receiver to its first message (worst)", max(first), "s")


def _join(worker: Worker, when: float) -> float:
    time.sleep(max(0.0, when - time.monotonic()))
    return worker.go()


def _calm(began: float, asked: Sequence[float], switches: Sequence[float]) -> list[tuple[float, float]]:
    """The times in which nothing happens: not the first second, and not from a join to a second after its switch."""
    starts = [began + 1.0, *(switch + 1.0 for switch in switches)]
    return list(zip(starts, [*asked, float("inf")], strict=True))


def _latencies(messages: Sequence[Handling], spans: Sequence[tuple[float, float]]) -> list[float]:
    return [h.at - h.sent for h in messages if any(since <= h.sent < to for since, to in spans)]
